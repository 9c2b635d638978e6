/* thread.c - threads, processes and descriptors, with a switch that makes requests fail. */
#include "base/threads/thread.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/error.h"

/* Requests left before they fail; negative: never. Relaxed: only tests set it, between calls. */
static atomic_llong requests_left[STK_START_KINDS] = {-1, -1, -1};

/* Whether only one request fails (stk_start_fail_once). */
static atomic_bool only_once[STK_START_KINDS];

bool stk_start_must_fail(stk_startable kind) {
    atomic_llong *counter = &requests_left[kind];
    long long left = atomic_load_explicit(counter, memory_order_relaxed);
    while (left > 0) {
        if (atomic_compare_exchange_weak_explicit(counter, &left, left - 1, memory_order_relaxed,
                                                  memory_order_relaxed)) {
            return false;
        }
    }
    if (left == 0 && atomic_load(&only_once[kind])) {
        return atomic_compare_exchange_strong(counter, &left, -1);
    }
    return left == 0;
}

void stk_start_fail_after(stk_startable kind, int64_t requests) {
    atomic_store(&only_once[kind], false);
    atomic_store(&requests_left[kind], requests);
}

void stk_start_fail_once(stk_startable kind, int64_t request) {
    atomic_store(&only_once[kind], true);
    atomic_store(&requests_left[kind], request);
}

/* 0 or the system's reason. */
static int create(pthread_t *thread, const stk_thread_config *config, void *(*work)(void *),
                  void *argument) {
    pthread_attr_t attributes;
    pthread_t started;
    int failed = pthread_attr_init(&attributes);
    if (failed != 0) {
        return failed;
    }
    if (config->stack_bytes > 0) {
        pthread_attr_setstacksize(&attributes, config->stack_bytes);
    }
    if (config->detached) {
        pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
    }
    /* A failed pthread_create may write to `started`, so *thread is set only after a success. */
    failed = pthread_create(&started, &attributes, work, argument);
    pthread_attr_destroy(&attributes);
    if (failed == 0 && thread != NULL) {
        *thread = started;
    }
    return failed;
}

stk_status stk_thread_start(pthread_t *thread, const stk_thread_config *config,
                            void *(*work)(void *), void *argument, stk_error *err) {
    sigset_t all, before;
    sigfillset(&all);
    if (config->no_signals) {
        pthread_sigmask(SIG_SETMASK, &all, &before); /* a new thread inherits the mask */
    }
    int failed =
        stk_start_must_fail(STK_START_THREAD) ? EAGAIN : create(thread, config, work, argument);
    if (config->no_signals) {
        pthread_sigmask(SIG_SETMASK, &before, NULL);
    }
    return failed == 0 ? STK_OK
                       : STK_FAIL(err, STK_ERR_DEVICE,
                                  "cannot start a thread that %s: %s; allow this user more "
                                  "processes (ulimit -u), or end some",
                                  config->what, strerror(failed));
}

/* True when the next descriptor is to be refused; errno says how. */
static bool refuse_descriptor(void) {
    bool refused = stk_start_must_fail(STK_START_DESCRIPTOR);
    errno = refused ? EMFILE : errno;
    return refused;
}

void stk_cond_init(pthread_cond_t *cond) {
    pthread_condattr_t monotonic;
    pthread_condattr_init(&monotonic);
    pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
    pthread_cond_init(cond, &monotonic);
    pthread_condattr_destroy(&monotonic);
}

bool stk_cond_wait_until(pthread_cond_t *cond, pthread_mutex_t *lock, int64_t until_ns) {
    struct timespec until = {.tv_sec = (time_t)(until_ns / STK_NS_PER_S),
                             .tv_nsec = (long)(until_ns % STK_NS_PER_S)};
    return pthread_cond_timedwait(cond, lock, &until) == 0;
}

int stk_pipe(int ends[2], int flags) {
    return refuse_descriptor() ? -1 : pipe2(ends, flags | O_CLOEXEC);
}

int stk_event_fd(void) {
    return refuse_descriptor() ? -1 : eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
}

int stk_epoll_fd(void) {
    return refuse_descriptor() ? -1 : epoll_create1(EPOLL_CLOEXEC);
}

int stk_socket_pair(int ends[2]) {
    return refuse_descriptor() ? -1 : socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends);
}

pid_t stk_fork(void) {
    if (stk_start_must_fail(STK_START_PROCESS)) {
        errno = EAGAIN;
        return -1;
    }
    return fork();
}
