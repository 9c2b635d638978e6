/*
 * timed_call.h - a call on a second thread that the caller can stop waiting for.
 *
 * A system call on a mount whose server is gone may never return, and nothing can end it. All that
 * a caller can do is to stop waiting: the call is abandoned. So a call has a state of its own with
 * copies of all that it needs. While somebody waits, the state belongs to the caller. Once the call
 * is abandoned, the state belongs to the thread, which drops it if the call ever returns.
 *
 *     stk_timed_call_open(&thread, "writes the metrics", &err);
 *     stk_timed_call_begin(thread, write_text, state, drop_state);
 *     if (!stk_timed_call_wait(thread, stk_clock_ns() + limit_ns)) { it takes too long }
 *     if (!stk_timed_call_close(thread)) drop_state(state);
 *
 * One call at a time; task_queue.h has many in order. Threads: one owner makes all calls below. The
 * child of a fork must not use a thread that its parent opened.
 */
#ifndef STK_BASE_THREADS_TIMED_CALL_H
#define STK_BASE_THREADS_TIMED_CALL_H

#include <stdbool.h>
#include <stdint.h>

#include <stoker/status.h>

/* The thread and its current call. */
typedef struct stk_timed_call stk_timed_call;

/* Starts the thread; `what` says what it does ("reads"), for an error. */
STK_CHECKED stk_status stk_timed_call_open(stk_timed_call **timed, const char *what,
                                           stk_error *err);

/*
 * Begins a call; the previous one must have ended. The thread calls work(state), and the caller may
 * not touch the state until the call has ended. The thread calls drop(state) only when an abandoned
 * call has returned after all.
 */
void stk_timed_call_begin(stk_timed_call *timed, void (*work)(void *state), void *state,
                          void (*drop)(void *state));

/* Whether no call is running. */
bool stk_timed_call_has_ended(stk_timed_call *timed);

/* Waits for the call, until a reading of stk_clock_ns() at most. True: no call is running. */
bool stk_timed_call_wait(stk_timed_call *timed, int64_t until_ns);

/*
 * Ends the thread and waits for that. A call that is still running is abandoned instead: then this
 * returns true, and the state is no longer the caller's. NULL is fine.
 */
bool stk_timed_call_close(stk_timed_call *timed);

/*
 * Calls work(state) on a thread of its own, or on this thread if none can be started. True: the
 * work has ended. False: it was abandoned after within_s; the state then belongs to the thread,
 * which calls drop(state) if the work ever ends.
 */
bool stk_timed_call_within(void (*work)(void *state), void *state, void (*drop)(void *state),
                           double within_s);

#endif
