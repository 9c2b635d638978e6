/*
 * guard_process.c - the process between the maker and the commands.
 *
 * One poll waits for orders, for the end of the maker and for the end of processes, never for one
 * of them alone: while a program loads for minutes from a slow mount, the guardian must still
 * notice that its maker was killed. It has one thread, so a forked child may call anything before
 * exec.
 */
#include "supervise/process/guard_process.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/files/file.h"
#include "base/mem.h"
#include "base/threads/thread.h"
#include "supervise/process/tree_kill.h"

/* The maker's end cannot be seen at the socket if another process that the maker forked holds it
 * open. So the parent's process id is checked this often. */
#define MAKER_LOOK_MS 500

/* Wait for killed processes. A process that the kernel still holds then, in a device transfer that
 * does not end, dies with that transfer. */
#define LAST_KILL_S 30

#define READ_BYTES ((size_t)64 << 10) /* most bytes of orders read at once */

#define STAT_BYTES 2048 /* largest size of /proc/self/stat */

enum { IN, OUT, ERR, STANDARD_COUNT };

enum { POLL_ORDERS, POLL_CHILDREN, POLL_START, POLL_COUNT };

typedef struct guard_state {
    pid_t maker;
    int64_t until_ns;             /* when the guardian ends all; 0: never */
    int orders;                   /* the socket */
    int children;                 /* signalfd: readable when a child has ended */
    int start;                    /* pipe that exec of a starting command closes; -1: none */
    int standard[STANDARD_COUNT]; /* standard descriptors of commands */
    pid_t command;                /* first process of the command; 0: none runs */
    stk_bytes inbox;              /* orders that are not complete yet */
    stk_bytes orphaned;           /* paths of stk_guardian_on_orphaned(); empty: no order */
    bool quit;                    /* ordered to end */
    bool alone;                   /* the maker has ended, sent nonsense, or is too late */
} guard_state;

/* ---- Becoming a guardian ---- */

static void set_signals(void (*handler)(int), const int *numbers, size_t count) {
    struct sigaction action = {.sa_handler = handler};
    for (size_t i = 0; i < count; i++) {
        sigaction(numbers[i], &action, NULL);
    }
}

static void default_signals(void) {
    for (int number = 1; number < NSIG; number++) {
        set_signals(SIG_DFL, &number, 1);
    }
}

/* Signals to the maker's group or from the terminal are not for the guardian. */
static void ignore_signals(void) {
    static const int ignored[] = {SIGINT,  SIGTERM, SIGHUP,  SIGPIPE, SIGQUIT,
                                  SIGTSTP, SIGTTIN, SIGTTOU, SIGUSR1, SIGUSR2};
    set_signals(SIG_IGN, ignored, STK_COUNT(ignored));
}

static bool is_kept(const guard_state *g, int fd) {
    return fd == g->orders || fd == g->standard[IN] || fd == g->standard[OUT] ||
           fd == g->standard[ERR];
}

/* Locks and pipes of the maker must not stay open here. */
static void close_others(const guard_state *g) {
    int most = (int)sysconf(_SC_OPEN_MAX);
    DIR *folder = opendir("/proc/self/fd");
    if (folder != NULL) {
        const struct dirent *entry = NULL;
        most = 0;
        while ((entry = readdir(folder)) != NULL) {
            int fd = (int)strtol(entry->d_name, NULL, 10);
            most = fd >= most ? fd + 1 : most;
        }
        closedir(folder);
    }
    for (int fd = 0; fd < most; fd++) {
        if (!is_kept(g, fd)) {
            close(fd);
        }
    }
}

/* A copy of a descriptor above the standard ones; -1 is /dev/null. */
static int set_aside(int fd) {
    int null = fd < 0 ? open("/dev/null", O_RDWR | O_CLOEXEC) : -1;
    return fcntl(fd < 0 ? null : fd, F_DUPFD_CLOEXEC, STANDARD_COUNT);
}

/*
 * Replaces process name and command line by the guardian's name: `pkill -9 -f 'stoker run'` must
 * hit only the maker, whose end then ends everything. Fields 48 and 49 of /proc/self/stat say where
 * in memory the command line lies; other processes see what is written there.
 */
static void take_name(void) {
    prctl(PR_SET_NAME, STK_GUARDIAN_NAME, 0, 0, 0);
    char text[STAT_BYTES];
    int fd = open("/proc/self/stat", O_RDONLY | O_CLOEXEC);
    ssize_t length = fd >= 0 ? read(fd, text, sizeof text - 1) : 0;
    if (fd >= 0) {
        close(fd);
    }
    text[length > 0 ? length : 0] = '\0';
    const char *at = strrchr(text, ')'); /* after field 2 */
    for (int field = 2; at != NULL && field < 48; field++) {
        at = strchr(at + 1, ' ');
    }
    unsigned long start = 0;
    unsigned long end = 0;
    if (at != NULL && sscanf(at, " %lu %lu", &start, &end) == 2 && start != 0 && end > start) {
        char *words = (char *)(uintptr_t)start;
        memset(words, '\0', end - start);
        snprintf(words, end - start, STK_GUARDIAN_NAME);
    }
}

static void begin(guard_state *g, int socket, const stk_guardian_config *config, pid_t maker) {
    *g = (guard_state){.maker = maker, .until_ns = config->until_ns, .start = -1};
    g->orders = set_aside(socket);
    g->standard[IN] = set_aside(config->in);
    g->standard[OUT] = set_aside(config->out);
    g->standard[ERR] = set_aside(config->err);
    close_others(g);
    for (int fd = 0; fd < STANDARD_COUNT; fd++) {
        /* open() returns the lowest free number. The standard descriptors stay open over exec. */
        (void)open("/dev/null", O_RDWR);
    }
    take_name(); /* before setsid: see tree_kill.h */
    setsid();
    prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0);
    default_signals();
    ignore_signals();
    sigset_t ended;
    sigemptyset(&ended);
    sigaddset(&ended, SIGCHLD);
    sigprocmask(SIG_SETMASK, &ended, NULL);
    g->children = signalfd(-1, &ended, SFD_CLOEXEC | SFD_NONBLOCK);
    g->alone = g->orders < 0 || g->children < 0;
}

/* ---- Commands ---- */

/* In the child: becomes the command, or writes errno into the pipe. */
static _Noreturn void become(const guard_state *g, char **argv, char **envp, int tell) {
    pid_t guardian = getppid();
    int error = 0;
    setsid();
    /* If the guardian is killed, the command must not run unguarded. */
    prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0);
    for (int i = 0; i < STANDARD_COUNT && error == 0; i++) {
        error = dup2(g->standard[i], i) < 0 ? errno : 0;
    }
    default_signals();
    sigset_t none;
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, NULL);
    if (error == 0 && getppid() == guardian) {
        environ = envp; /* execvp() searches the PATH of `environ` */
        execvp(argv[0], argv);
        error = errno;
    }
    (void)!write(tell, &error, sizeof error);
    _exit(127);
}

static void answer(guard_state *g, stk_guard_kind kind, pid_t pid, int value) {
    const stk_guard_answer message = {.kind = kind, .pid = pid, .value = value};
    (void)!send(g->orders, &message, sizeof message, MSG_NOSIGNAL | MSG_DONTWAIT);
}

static void launch(guard_state *g, char **argv, char **envp) {
    int ends[2] = {-1, -1};
    pid_t pid = stk_pipe(ends, O_NONBLOCK) == 0 ? stk_fork() : -1;
    int error = errno;
    if (pid == 0) {
        become(g, argv, envp, ends[1]);
    }
    if (ends[1] >= 0) {
        close(ends[1]);
    }
    if (pid < 0) {
        if (ends[0] >= 0) {
            close(ends[0]);
        }
        answer(g, STK_GUARD_LAUNCHED, 0, error);
        return;
    }
    if (g->start >= 0) {
        close(g->start);
    }
    g->command = pid;
    g->start = ends[0];
}

/* Checks whether a starting command has closed its pipe: by exec, or after writing an errno. */
static void started(guard_state *g) {
    int error = 0;
    ssize_t got = g->start >= 0 ? read(g->start, &error, sizeof error) : -1;
    if (got < 0) {
        return;
    }
    close(g->start);
    g->start = -1;
    pid_t pid = g->command;
    if (got == sizeof error) {
        g->command = 0;
        kill(pid, SIGKILL); /* the process is about to end; it must have ended before the answer */
        waitpid(pid, NULL, 0);
    }
    answer(g, STK_GUARD_LAUNCHED, pid, error);
}

/*
 * Waits for all ended children, inherited ones too. A command that could not start closes its pipe
 * before it ends, so started() reads the pipe first.
 */
static void reap(guard_state *g) {
    struct signalfd_siginfo unused;
    while (read(g->children, &unused, sizeof unused) > 0) {
    }
    siginfo_t info = {0};
    while (waitid(P_ALL, 0, &info, WEXITED | WNOHANG | WNOWAIT) == 0 && info.si_pid != 0) {
        started(g);
        int how = 0;
        pid_t pid = waitpid(info.si_pid, &how, WNOHANG);
        info.si_pid = 0;
        if (pid == g->command) {
            g->command = 0;
            answer(g, STK_GUARD_ENDED, pid, how);
        }
    }
}

/* ---- Orders ---- */

/* An array of pointers to the `count` texts at *at, ended by NULL; moves *at past them. NULL: out
 * of memory, or they do not end before `end`. */
static char **texts_at(char **at, const char *end, uint32_t count) {
    char **texts = stk_mem_new((size_t)count + 1, sizeof *texts);
    for (uint32_t i = 0; texts != NULL && i < count; i++) {
        char *after = *at < end ? memchr(*at, '\0', (size_t)(end - *at)) : NULL;
        if (after == NULL) {
            stk_mem_free(texts);
            return NULL;
        }
        texts[i] = *at;
        *at = after + 1;
    }
    return texts;
}

static void run_launch(guard_state *g, const stk_guard_order *order, char *texts) {
    const char *end = texts + order->bytes;
    char **argv = texts_at(&texts, end, order->first_texts);
    char **envp = texts_at(&texts, end, order->more_texts);
    if (argv != NULL && argv[0] != NULL && envp != NULL) {
        launch(g, argv, envp);
    } else {
        answer(g, STK_GUARD_LAUNCHED, 0, ENOMEM);
    }
    stk_mem_free(argv);
    stk_mem_free(envp);
}

static void run_order(guard_state *g, const stk_guard_order *order, char *texts) {
    if (order->kind == STK_GUARD_LAUNCH) {
        run_launch(g, order, texts);
    } else if (order->kind == STK_GUARD_ORPHANED) {
        g->orphaned.size = 0;
        if (order->bytes > 0 && stk_bytes_reserve(&g->orphaned, order->bytes)) {
            memcpy(g->orphaned.data, texts, order->bytes);
            g->orphaned.size = order->bytes;
        }
    } else if (order->kind == STK_GUARD_QUIT) {
        g->quit = true;
    } else {
        g->alone = true;
    }
}

static void run_orders(guard_state *g) {
    stk_guard_order order;
    size_t done = 0;
    while (!g->quit && g->inbox.size - done >= sizeof order) {
        memcpy(&order, g->inbox.data + done, sizeof order);
        size_t whole = sizeof order + order.bytes;
        if (g->inbox.size - done < whole) {
            break;
        }
        void *texts = g->inbox.data + done + sizeof order;
        run_order(g, &order, texts);
        done += whole;
    }
    if (done > 0) {
        memmove(g->inbox.data, g->inbox.data + done, g->inbox.size - done);
        g->inbox.size -= done;
    }
}

/* Reads orders. Orders sent before the maker ended are carried out before its end is noticed. */
static void receive(guard_state *g) {
    for (;;) {
        if (!stk_bytes_reserve(&g->inbox, g->inbox.size + READ_BYTES)) {
            g->alone = true; /* out of memory: the guardian cannot serve its maker */
            return;
        }
        ssize_t got = recv(g->orders, g->inbox.data + g->inbox.size, READ_BYTES, MSG_DONTWAIT);
        if (got < 0 && (errno == EAGAIN || errno == EINTR)) {
            return;
        }
        if (got <= 0) {
            g->alone = true;
            return;
        }
        g->inbox.size += (size_t)got;
        run_orders(g);
    }
}

/* ---- The end ---- */

static bool same_contents(const char *a, const char *b) {
    char *of_a = NULL;
    char *of_b = NULL;
    size_t size_a = 0;
    size_t size_b = 0;
    bool same = stk_file_read(a, 0, &of_a, &size_a, NULL) == STK_OK &&
                stk_file_read(b, 0, &of_b, &size_b, NULL) == STK_OK && size_a == size_b &&
                memcmp(of_a, of_b, size_a) == 0;
    stk_mem_free(of_a);
    stk_mem_free(of_b);
    return same;
}

static void restore_file(guard_state *g) {
    void *first = g->orphaned.data;
    char *at = first;
    char **paths = g->orphaned.size > 0 ? texts_at(&at, at + g->orphaned.size, 3) : NULL;
    char *data = NULL;
    size_t size = 0;
    if (paths != NULL && same_contents(paths[0], paths[1]) &&
        stk_file_read(paths[2], 0, &data, &size, NULL) == STK_OK) {
        (void)!stk_file_rewrite(paths[0], data, size, NULL);
    }
    stk_mem_free(data);
    stk_mem_free(paths);
}

static void wait_for_something(const guard_state *g) {
    struct pollfd waiting[POLL_COUNT] = {
        [POLL_ORDERS] = {.fd = g->orders, .events = POLLIN},
        [POLL_CHILDREN] = {.fd = g->children, .events = POLLIN},
        [POLL_START] = {.fd = g->start, .events = POLLIN},
    };
    (void)poll(waiting, POLL_COUNT, MAKER_LOOK_MS);
}

_Noreturn void stk_guard_run(int socket, const stk_guardian_config *config, pid_t maker) {
    guard_state g;
    begin(&g, socket, config, maker);
    while (!g.quit && !g.alone) {
        wait_for_something(&g);
        started(&g);
        reap(&g);
        receive(&g);
        bool late = g.until_ns > 0 && stk_clock_ns() >= g.until_ns;
        g.alone = g.alone || late || getppid() != g.maker;
    }
    const stk_kill_target all = {.root = getpid()};
    (void)stk_tree_kill(&all, LAST_KILL_S);
    if (!g.quit) {
        restore_file(&g);
    }
    _exit(0);
}
