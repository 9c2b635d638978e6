/*
 * sync.c - clone(2) of a child that shares our memory and calls fsync.
 *
 * Sharing copies nothing, however much memory the process has; the child touches nothing that other
 * threads use. It sends no signal when it ends, so code that waits for children of its own does not
 * see it.
 */
#include "base/files/sync.h"

#include <errno.h>
#include <limits.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <sys/types.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/threads/thread.h"

#define STACK_BYTES 65536

/* Descriptors that are closed one by one where close_range is missing. */
#define MOST_FILES 1024

/* ThreadSanitizer takes a child that shares our memory for one that has its own. */
#ifdef __SANITIZE_THREAD__
#define HAS_CHILDREN false
#elif defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define HAS_CHILDREN false
#endif
#endif
#ifndef HAS_CHILDREN
#define HAS_CHILDREN true
#endif

typedef struct sync_request {
    int fd;
    int error; /* errno of the call; 0: it went well */
} sync_request;

static int sync_in_child(void *state) {
    sync_request *r = state;
    unsigned fd = (unsigned)r->fd;
    bool closed =
        (fd == 0 || close_range(0, fd - 1, 0) == 0) && close_range(fd + 1, UINT_MAX, 0) == 0;
    for (int i = 0; i < MOST_FILES && !closed; i++) {
        if (i != r->fd) {
            (void)close(i);
        }
    }
    r->error = fsync(r->fd) == 0 ? 0 : errno;
    return 0;
}

/* The child runs on a stack in this frame: CLONE_VFORK holds this thread here until it ends. */
static pid_t start(sync_request *r) {
    _Alignas(16) char stack[STACK_BYTES];
    sigset_t all;
    sigset_t before;
    if (!HAS_CHILDREN || stk_start_must_fail(STK_START_PROCESS)) {
        return -1;
    }
    /* Signals are for the process, not for its child. */
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    pid_t child = clone(sync_in_child, stack + sizeof stack, CLONE_VM | CLONE_VFORK, r);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return child;
}

int stk_sync(int fd) {
    sync_request r = {.fd = fd, .error = EIO}; /* of a child that was killed */
    pid_t child = start(&r);
    if (child < 0) {
        return fsync(fd);
    }
    while (waitpid(child, NULL, __WCLONE) < 0 && errno == EINTR) {
    }
    errno = r.error != 0 ? r.error : errno;
    return r.error != 0 ? -1 : 0;
}
