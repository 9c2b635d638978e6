/*
 * emu_fibers.c - runs the blocks of a kernel one after another, the threads of a block as fibers.
 *
 * A fiber runs until its kernel waits for others: at a barrier of the block or a meeting of the
 * warp. So threads never run at the same time, and what they do between two waits happens in one
 * go; a kernel that forgets a barrier shows it by depending on the order of threads, which
 * emu_set_order() turns round. Where threads can never come together the process ends with a
 * sentence: a GPU would hang, or worse.
 */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "emu_inside.h"

#define STACK_BYTES ((size_t)64 << 10)
#define PAGE_BYTES ((size_t)4096)

typedef enum fiber_state { READY, DONE, AT_BARRIER, AT_MEETING } fiber_state;

typedef struct fiber {
    void *stack; /* pointer that it was left with */
    fiber_state state;
    emu_meeting meeting;
    int line; /* where it waits */
    emu_uint3 thread;
} fiber;

typedef struct warp {
    unsigned long long values[2][EMU_WARP];
    int turn; /* which of the two the next meeting writes */
} warp;

static struct {
    fiber fibers[EMU_MOST_THREADS];
    warp warps[EMU_MOST_THREADS / EMU_WARP];
    void *own_stack; /* of whoever launched */
    int current;     /* the fiber that runs; -1: none */
    bool made;       /* stacks are there */
    bool reversed;   /* by emu_set_order() */
    bool backwards;  /* this launch runs in the opposite order */
    const emu_launch *launch;
    char *shared_end; /* where dynamic shared memory ends, at a page that cannot be touched */
} run = {.current = -1};

/* Saves what a function must keep, leaves the stack pointer in *from and goes on where `to` was. */
void emu_switch(void **from, void *to);

#if defined(__x86_64__)
__asm__(".text\n"
        ".type emu_switch, @function\n"
        ".hidden emu_switch\n"
        ".globl emu_switch\n"
        "emu_switch:\n"
        "    pushq %rbp\n"
        "    pushq %rbx\n"
        "    pushq %r12\n"
        "    pushq %r13\n"
        "    pushq %r14\n"
        "    pushq %r15\n"
        "    movq %rsp, (%rdi)\n"
        "    movq %rsi, %rsp\n"
        "    popq %r15\n"
        "    popq %r14\n"
        "    popq %r13\n"
        "    popq %r12\n"
        "    popq %rbx\n"
        "    popq %rbp\n"
        "    popq %rdx\n"
        "    jmp *%rdx\n"
        ".size emu_switch, . - emu_switch\n");
enum { FRAME_BYTES = 64, FRAME_RETURN = 48 };
#elif defined(__aarch64__)
__asm__(".text\n"
        ".type emu_switch, %function\n"
        ".hidden emu_switch\n"
        ".globl emu_switch\n"
        "emu_switch:\n"
        "    sub sp, sp, #160\n"
        "    stp x19, x20, [sp]\n"
        "    stp x21, x22, [sp, #16]\n"
        "    stp x23, x24, [sp, #32]\n"
        "    stp x25, x26, [sp, #48]\n"
        "    stp x27, x28, [sp, #64]\n"
        "    stp x29, x30, [sp, #80]\n"
        "    stp d8, d9, [sp, #96]\n"
        "    stp d10, d11, [sp, #112]\n"
        "    stp d12, d13, [sp, #128]\n"
        "    stp d14, d15, [sp, #144]\n"
        "    mov x2, sp\n"
        "    str x2, [x0]\n"
        "    mov sp, x1\n"
        "    ldp x19, x20, [sp]\n"
        "    ldp x21, x22, [sp, #16]\n"
        "    ldp x23, x24, [sp, #32]\n"
        "    ldp x25, x26, [sp, #48]\n"
        "    ldp x27, x28, [sp, #64]\n"
        "    ldp x29, x30, [sp, #80]\n"
        "    ldp d8, d9, [sp, #96]\n"
        "    ldp d10, d11, [sp, #112]\n"
        "    ldp d12, d13, [sp, #128]\n"
        "    ldp d14, d15, [sp, #144]\n"
        "    add sp, sp, #160\n"
        "    ret\n"
        ".size emu_switch, . - emu_switch\n");
enum { FRAME_BYTES = 160, FRAME_RETURN = 88 };
#else
#error "The emulated GPU switches stacks on x86_64 and arm64 only."
#endif

static void leave_fiber(fiber_state state, int line) {
    fiber *f = &run.fibers[run.current];
    f->state = state;
    f->line = line;
    emu_switch(&f->stack, run.own_stack);
}

/* What a fiber does all its life: one thread after another. */
static void live(void) {
    for (;;) {
        run.launch->kernel->call(run.launch->arguments);
        leave_fiber(DONE, 0);
    }
}

static void make_fibers(void) {
    char *stacks = mmap(NULL, EMU_MOST_THREADS * STACK_BYTES, PROT_READ | PROT_WRITE,
                        MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    void *base;
    size_t mapped;
    char *shared = emu_pages_take(EMU_MOST_SHARED, 16, &base, &mapped);
    if (stacks == MAP_FAILED || shared == NULL) {
        emu_die("no memory for the stacks of %d threads", EMU_MOST_THREADS);
    }
    run.shared_end = shared + EMU_MOST_SHARED;
    for (size_t i = 0; i < EMU_MOST_THREADS; i++) {
        char *stack = stacks + i * STACK_BYTES;
        (void)mprotect(stack, PAGE_BYTES, PROT_NONE);
        /* Tops at different places within a page, or they would all want the same cache lines. */
        char *frame = stack + STACK_BYTES - (i % 16) * 192 - FRAME_BYTES;
        void (*entry)(void) = live;
        memset(frame, 0, FRAME_BYTES);
        memcpy(frame + FRAME_RETURN, &entry, sizeof entry);
        run.fibers[i].stack = frame;
    }
    run.made = true;
}

static void barrier(int line) {
    leave_fiber(AT_BARRIER, line);
}

static int meet(emu_meeting meeting, unsigned mask, unsigned long long value,
                const unsigned long long **all, int line) {
    int lane = run.current % EMU_WARP;
    warp *w = &run.warps[run.current / EMU_WARP];
    int turn = w->turn;
    if (mask != 0xFFFFFFFFu) {
        emu_die("kernel %s, line %d: a mask of lanes that is not full", run.launch->name, line);
    }
    w->values[turn][lane] = value;
    run.fibers[run.current].meeting = meeting;
    leave_fiber(AT_MEETING, line);
    *all = w->values[turn];
    return lane;
}

/* "waits at line 12" and the like. */
static const char *doing(const fiber *f, char *text, size_t room) {
    if (f->state == DONE) {
        return "has ended";
    }
    snprintf(text, room, "waits %s at line %d",
             f->state == AT_BARRIER ? "for the block" : "for its warp", f->line);
    return text;
}

static void die_apart(int a, int b) {
    char text[2][64];
    const emu_uint3 *block = &run.launch->link->block;
    emu_die(
        "kernel %s, block (%u, %u): its threads never come together: thread %d %s, thread %d %s",
        run.launch->name, block->x, block->y, a, doing(&run.fibers[a], text[0], sizeof text[0]), b,
        doing(&run.fibers[b], text[1], sizeof text[1]));
}

/* Lets every thread of first .. end - 1 that can go on do so. */
static void run_threads(int first, int end) {
    for (int i = first; i < end; i++) {
        int at = run.backwards ? end - 1 - (i - first) : i;
        if (run.fibers[at].state == READY) {
            run.current = at;
            run.launch->link->thread = &run.fibers[at].thread;
            emu_switch(&run.own_stack, run.fibers[at].stack);
        }
    }
    run.current = -1;
}

static bool same_wait(const fiber *a, const fiber *b) {
    return a->state == b->state && a->line == b->line &&
           (a->state != AT_MEETING || a->meeting == b->meeting);
}

/* Runs a warp until its threads wait for the block or have ended. */
static void run_warp(int first, int end) {
    for (;;) {
        run_threads(first, end);
        int waiting = -1;
        for (int i = first; i < end && waiting < 0; i++) {
            waiting = run.fibers[i].state == AT_MEETING ? i : -1;
        }
        if (waiting < 0) {
            return;
        }
        for (int i = first; i < end; i++) {
            if (!same_wait(&run.fibers[i], &run.fibers[waiting])) {
                die_apart(waiting, i);
            }
        }
        run.warps[first / EMU_WARP].turn ^= 1;
        for (int i = first; i < end; i++) {
            run.fibers[i].state = READY;
        }
    }
}

static void run_block(int threads) {
    int warps = (threads + EMU_WARP - 1) / EMU_WARP;
    for (int i = 0; i < threads; i++) {
        run.fibers[i].state = READY;
    }
    for (;;) {
        for (int i = 0; i < warps; i++) {
            int first = (run.backwards ? warps - 1 - i : i) * EMU_WARP;
            run_warp(first, first + EMU_WARP < threads ? first + EMU_WARP : threads);
        }
        for (int i = 1; i < threads; i++) {
            if (!same_wait(&run.fibers[0], &run.fibers[i])) {
                die_apart(0, i);
            }
        }
        if (run.fibers[0].state == DONE) {
            return;
        }
        for (int i = 0; i < threads; i++) {
            run.fibers[i].state = READY;
        }
    }
}

/* ---- what a kernel dies of ---- */

static const int deadly[] = {SIGSEGV, SIGBUS, SIGILL, SIGTRAP, SIGFPE};
enum { DEADLY = sizeof deadly / sizeof *deadly };

static void report_death(int number, siginfo_t *info, void *context) {
    char where[160];
    (void)context;
    /* x86 tells a misaligned vector as a fault that the kernel raised, without an address. */
    bool memory = number == SIGBUS || (number == SIGSEGV && info->si_code != SI_KERNEL);
    if (run.current >= 0) {
        const emu_uint3 *block = &run.launch->link->block;
        emu_memory_describe(info->si_addr, where, sizeof where);
        dprintf(STDERR_FILENO, "emulated GPU: kernel %s, block (%u, %u), thread %d %s%s\n",
                run.launch->name, block->x, block->y, run.current,
                memory ? "touched memory that is not its own: "
                       : "did something undefined (a misaligned address, an index outside of its "
                         "array, an overflow, a division by 0)",
                memory ? where : "");
    }
    signal(number, SIG_DFL);
    raise(number);
}

typedef struct guard {
    struct sigaction actions[DEADLY];
    stack_t stack;
} guard;

static void guard_begin(guard *old) {
    static char stack[64 << 10];
    stack_t own = {.ss_sp = stack, .ss_size = sizeof stack};
    struct sigaction action = {.sa_sigaction = report_death, .sa_flags = SA_SIGINFO | SA_ONSTACK};
    (void)sigaltstack(&own, &old->stack);
    for (int i = 0; i < DEADLY; i++) {
        (void)sigaction(deadly[i], &action, &old->actions[i]);
    }
}

static void guard_end(const guard *old) {
    for (int i = 0; i < DEADLY; i++) {
        (void)sigaction(deadly[i], &old->actions[i], NULL);
    }
    (void)sigaltstack(&old->stack, NULL);
}

/* ---- launches ---- */

static void prepare(const emu_launch *launch, int threads) {
    if (!run.made) {
        make_fibers();
    }
    const char *reverse = getenv("STK_EMU_REVERSE");
    run.launch = launch;
    run.backwards = run.reversed != (reverse != NULL && strcmp(reverse, "1") == 0);
    for (int i = 0; i < threads; i++) {
        unsigned at = (unsigned)i;
        run.fibers[i].thread =
            (emu_uint3){at % launch->threads[0], at / launch->threads[0] % launch->threads[1],
                        at / launch->threads[0] / launch->threads[1]};
    }
    memset(run.warps, 0xFF, sizeof run.warps);
    for (size_t i = 0; i < sizeof run.warps / sizeof *run.warps; i++) {
        run.warps[i].turn = 0;
    }
    emu_link_table *link = launch->link;
    link->grid_dim = (emu_uint3){launch->grid[0], launch->grid[1], launch->grid[2]};
    link->block_dim = (emu_uint3){launch->threads[0], launch->threads[1], launch->threads[2]};
    link->barrier = barrier;
    link->meet = meet;
    /* So that it ends at the page that cannot be touched; what rounding leaves is looked at. */
    link->shared = run.shared_end - (launch->shared_bytes + 15u) / 16 * 16;
}

void emu_run(const emu_launch *launch) {
    guard old;
    int threads = (int)(launch->threads[0] * launch->threads[1] * launch->threads[2]);
    unsigned blocks = launch->grid[0] * launch->grid[1] * launch->grid[2];
    emu_link_table *link = launch->link;
    prepare(launch, threads);
    guard_begin(&old);
    const unsigned char *slack = (unsigned char *)link->shared + launch->shared_bytes;
    for (unsigned i = 0; i < blocks; i++) {
        unsigned at = run.backwards ? blocks - 1 - i : i;
        link->block = (emu_uint3){at % launch->grid[0], at / launch->grid[0] % launch->grid[1],
                                  at / launch->grid[0] / launch->grid[1]};
        memset(link->shared, 0xFF, (size_t)(run.shared_end - (char *)link->shared));
        run_block(threads);
        for (const unsigned char *p = slack; p < (unsigned char *)run.shared_end; p++) {
            if (*p != 0xFF) {
                emu_die("kernel %s, block (%u, %u) wrote behind its %u bytes of shared memory",
                        launch->name, link->block.x, link->block.y, launch->shared_bytes);
            }
        }
    }
    guard_end(&old);
}

EMU_EXPORT void emu_set_order(int reversed);

void emu_set_order(int reversed) {
    run.reversed = reversed != 0;
}
