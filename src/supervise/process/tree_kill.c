/* tree_kill.c - reads /proc again and again, since a tree changes while it is read. */
#include "supervise/process/tree_kill.h"

#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/threads/proc_tree.h"

/* A reading can miss a process whose parent changes at that moment; two readings in a row hardly
 * do. */
#define CALM_READINGS 2

/* Rounds of stopping; after that all known processes are killed even if new ones still appear. */
#define STOP_ROUNDS 50

/* Rounds of reading only the root's children, which takes a fraction of a whole reading. */
#define CATCHES 50

#define CHILDREN_BYTES 4096 /* bytes of the list of children that are read */

/* Pause between two rounds of killing. */
#define FIRST_PAUSE_US 500
#define LONGEST_PAUSE_US 20000

static bool is_stray(const stk_kill_target *target, const stk_proc *child) {
    return child->born >= target->since && getsid(child->pid) != getsid(0) &&
           strcmp(child->name, STK_GUARDIAN_NAME) != 0;
}

static bool is_meant(const stk_kill_target *target, const stk_proc *proc,
                     const stk_proc_tree *meant) {
    if (!target->strays) {
        return true;
    }
    return proc->depth == 1 ? is_stray(target, proc)
                            : stk_proc_tree_find(meant, proc->parent) != NULL;
}

/* Reads the live processes of the target; waits for dead children. False: /proc is not readable. */
static bool read_live(const stk_kill_target *target, stk_proc_tree *tree) {
    if (!stk_proc_tree_read(tree, target->root)) {
        return false;
    }
    size_t all = tree->count;
    tree->count = 0;
    for (size_t i = 1; i < all; i++) {
        stk_proc proc = tree->items[i];
        if (!is_meant(target, &proc, tree)) {
            continue;
        }
        if (!stk_proc_is_dead(&proc)) {
            tree->items[tree->count++] = proc;
        } else if (proc.parent == getpid()) {
            waitpid(proc.pid, NULL, WNOHANG);
        }
    }
    return true;
}

/* Opens the pidfd first: if the start time is the same afterwards, it is the right process. */
static void send_signal(const stk_proc *proc, int number) {
    int fd = -1;
#ifdef SYS_pidfd_open
    fd = (int)syscall(SYS_pidfd_open, proc->pid, 0);
#endif
    stk_proc now;
    if (stk_proc_read(&now, proc->pid) && now.born == proc->born) {
        int sent = -1;
#ifdef SYS_pidfd_send_signal
        sent = fd >= 0 ? (int)syscall(SYS_pidfd_send_signal, fd, number, NULL, 0) : -1;
#endif
        if (sent != 0) {
            kill(proc->pid, number);
        }
    }
    if (fd >= 0) {
        close(fd);
    }
}

static void send_to_all(const stk_proc_tree *tree, int number) {
    for (size_t i = 0; i < tree->count; i++) {
        send_signal(&tree->items[i], number);
    }
}

/* Stops processes that are new since the last reading; false: there were none. */
static bool stop_new(const stk_proc_tree *before, const stk_proc_tree *now) {
    bool any = false;
    for (size_t i = 0; i < now->count; i++) {
        const stk_proc *known = stk_proc_tree_find(before, now->items[i].pid);
        if (known == NULL || known->born != now->items[i].born) {
            send_signal(&now->items[i], SIGSTOP);
            any = true;
        }
    }
    return any;
}

/* Stops all processes, so that none forks while others are killed. Fills `tree` with them. */
static void stop_all(const stk_kill_target *target, stk_proc_tree *tree, int64_t start_ns,
                     double within_s) {
    stk_proc_tree before = {0};
    int calm = 0;
    tree->count = 0; /* processes read earlier were not stopped */
    for (int round = 0; round < STOP_ROUNDS && calm < CALM_READINGS; round++) {
        if (round > 0 && stk_clock_since_s(start_ns) > within_s) {
            break;
        }
        stk_proc_tree room = before;
        before = *tree;
        *tree = room;
        if (!read_live(target, tree)) {
            break;
        }
        calm = stop_new(&before, tree) ? 0 : calm + 1;
    }
    stk_proc_tree_free(&before);
}

/* Reads the ids of the root's children (of its first thread); false, and "": the kernel has no such
 * list. Ids that do not fit appear once the first children are gone. */
static bool read_children(const stk_kill_target *target, char text[CHILDREN_BYTES]) {
    char path[64];
    snprintf(path, sizeof path, "/proc/%lld/task/%lld/children", (long long)target->root,
             (long long)target->root);
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t length = fd >= 0 ? read(fd, text, CHILDREN_BYTES - 1) : 0;
    if (fd >= 0) {
        close(fd);
    }
    text[length > 0 ? length : 0] = '\0';
    return fd >= 0 && length >= 0;
}

/*
 * Sends a signal to the root's children at once. This catches a process that forks and exits again
 * and again, and so is gone when a whole reading comes to its id. True: there was a child, or one
 * was gone by then; the kernel's list may omit children when one of them exits during the reading.
 */
static bool catch_children(const stk_kill_target *target, int number) {
    char text[CHILDREN_BYTES];
    (void)read_children(target, text);
    bool any = false;
    char *end = NULL;
    for (char *at = text;; at = end) {
        pid_t pid = (pid_t)strtol(at, &end, 10);
        stk_proc proc;
        if (end == at) {
            return any;
        }
        if (!stk_proc_read(&proc, pid)) {
            any = true;
        } else if (!stk_proc_is_dead(&proc) && proc.parent == target->root &&
                   (!target->strays || is_stray(target, &proc))) {
            send_signal(&proc, number);
            any = true;
        }
    }
}

/* Kills the root's children until there is none. Returns the rounds that found one; CATCHES: some
 * are left. */
static int catch_all(const stk_kill_target *target) {
    int found = 0;
    while (found < CATCHES && catch_children(target, SIGKILL)) {
        found++;
    }
    return found;
}

/* Whether a process exists that whole readings miss. A single look may miss it too, or find a
 * process that is just ending; so most looks must find one. */
static bool has_runner(const stk_kill_target *target) {
    int found = 0;
    for (int i = 0; i < CATCHES; i++) {
        found += catch_children(target, 0);
    }
    return found > CATCHES / 2;
}

/* Returns 0 or 1 (any number); needs no memory for a list. Orphans become children of the root, so
 * a root without children has no processes below it. */
static size_t count_unlisted(const stk_kill_target *target) {
    char text[CHILDREN_BYTES];
    return read_children(target, text) && !has_runner(target) ? 0 : 1;
}

size_t stk_tree_alive(const stk_kill_target *target) {
    stk_proc_tree tree = {0};
    size_t count = 0;
    for (int calm = 0; calm < CALM_READINGS && count == 0; calm++) {
        count = read_live(target, &tree) ? tree.count : count_unlisted(target);
    }
    if (count == 0 && has_runner(target)) {
        count = 1;
    }
    stk_proc_tree_free(&tree);
    return count;
}

void stk_tree_signal(const stk_kill_target *target, pid_t only, pid_t except, int number) {
    stk_proc_tree tree = {0};
    bool read = read_live(target, &tree);
    for (size_t i = 0; read && i < tree.count; i++) {
        pid_t pid = tree.items[i].pid;
        if ((only == 0 || pid == only) && pid != except) {
            send_signal(&tree.items[i], number);
        }
    }
    stk_proc_tree_free(&tree);
}

size_t stk_tree_kill(const stk_kill_target *target, double within_s) {
    int64_t start_ns = stk_clock_ns();
    stk_proc_tree tree = {0};
    useconds_t pause_us = FIRST_PAUSE_US;
    size_t left = 1;
    int calm = 0;
    for (bool tried = false; calm < CALM_READINGS; tried = true) {
        bool listed = read_live(target, &tree);
        left = listed ? tree.count : count_unlisted(target);
        int found = left == 0 || !listed ? catch_all(target) : 0;
        left = found == CATCHES ? 1 : left;
        calm = left == 0 && found == 0 ? calm + 1 : 0;
        if (left == 0) {
            usleep(FIRST_PAUSE_US);
            continue;
        }
        if (tried && stk_clock_since_s(start_ns) > within_s) {
            break;
        }
        stop_all(target, &tree, start_ns, within_s);
        send_to_all(&tree, SIGKILL);
        usleep(pause_us);
        pause_us = pause_us * 2 < LONGEST_PAUSE_US ? pause_us * 2 : LONGEST_PAUSE_US;
    }
    stk_proc_tree_free(&tree);
    return left;
}
