/*
 * thread.h - starting threads and processes, and the descriptors between them.
 *
 * The system may refuse any request: processes and descriptors are limited. All of the library's
 * requests come through here, so that a test can make the Nth one fail. Threads: safe.
 */
#ifndef STK_BASE_THREADS_THREAD_H
#define STK_BASE_THREADS_THREAD_H

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include <stoker/status.h>

typedef struct stk_thread_config {
    const char *what;   /* what the thread does, for the error: "reads" */
    size_t stack_bytes; /* 0: the system's default */
    bool detached;      /* nobody waits for its end */
    bool no_signals;    /* all signals are blocked on the thread */
} stk_thread_config;

/*
 * Starts a thread. A failure is STK_ERR_DEVICE with a sentence that names the limit to raise, and
 * leaves *thread as it was. `thread` may be NULL where it is detached.
 */
STK_CHECKED stk_status stk_thread_start(pthread_t *thread, const stk_thread_config *config,
                                        void *(*work)(void *argument), void *argument,
                                        stk_error *err);

/* A condition whose waits go by stk_clock_ns(), with pthread_cond_destroy at its end. */
void stk_cond_init(pthread_cond_t *cond);

/* pthread_cond_wait, until a reading of stk_clock_ns() at the latest; false: that moment came. */
bool stk_cond_wait_until(pthread_cond_t *cond, pthread_mutex_t *lock, int64_t until_ns);

/*
 * The system's calls of these names; all descriptors are closed by exec. On failure they return
 * what the system's do, errno says why, and nothing was made.
 */
int stk_pipe(int ends[2], int flags); /* O_NONBLOCK or 0 */
int stk_event_fd(void);               /* it does not block */
int stk_epoll_fd(void);
int stk_socket_pair(int ends[2]); /* of streams */
pid_t stk_fork(void);

/* What tests can make fail. */
typedef enum stk_startable {
    STK_START_THREAD,
    STK_START_DESCRIPTOR, /* of a pipe, an event, an epoll or a socket */
    STK_START_PROCESS,    /* also those of process.h */
    STK_START_KINDS
} stk_startable;

/*
 * For tests: the request of this kind with this number (0 is the next) and all later ones fail; a
 * negative number ends that. As of stk_mem_fail_after, this is state of the whole process.
 */
void stk_start_fail_after(stk_startable kind, int64_t requests);

/* For tests: the same, but later requests succeed. */
void stk_start_fail_once(stk_startable kind, int64_t request);

/* For process.c: whether a test wants this request to fail. */
bool stk_start_must_fail(stk_startable kind);

#endif
