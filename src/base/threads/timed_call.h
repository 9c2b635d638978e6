/*
 * timed_call.h - work on a second thread that may be left behind.
 *
 * A call of a mount whose server is gone may never return, and nothing can end it: all that can be
 * done is to stop waiting. So the work has a state of its own, which holds copies of all that it
 * needs. While somebody waits the state is his; once the work is left behind it belongs to the
 * thread, which drops it should the work ever return.
 *
 *     stk_timed_call_open(&aside, "writes the metrics", &err);
 *     stk_timed_call_begin(aside, write_text, state, drop_state);
 *     if (!stk_timed_call_wait(aside, stk_clock_ns() + limit_ns)) ... it takes too long
 *     if (!stk_timed_call_close(aside)) drop_state(state);
 *
 * One piece of work at a time. Threads: one owner, who makes all of the calls. A process that forks
 * must not use it in the child.
 */
#ifndef STK_BASE_THREADS_TIMED_CALL_H
#define STK_BASE_THREADS_TIMED_CALL_H

#include <stdbool.h>
#include <stdint.h>

#include <stoker/status.h>

typedef struct stk_timed_call stk_timed_call;

/* Starts the thread; `what` says what it does ("reads"), for an error. */
STK_CHECKED stk_status stk_timed_call_open(stk_timed_call **aside, const char *what,
                                           stk_error *err);

/*
 * Begins a piece of work, the one before must have ended: the thread calls work(state). The caller
 * may not touch the state until it has ended. drop(state) is called by the thread, and only when
 * the work was left behind and has returned after all.
 */
void stk_timed_call_begin(stk_timed_call *aside, void (*work)(void *state), void *state,
                          void (*drop)(void *state));

/* Whether no work is under way. */
bool stk_timed_call_has_ended(stk_timed_call *aside);

/* Waits until no work is under way, until a reading of stk_clock_ns() at most. True: it has ended.
 */
bool stk_timed_call_wait(stk_timed_call *aside, int64_t until_ns);

/*
 * Ends the thread, which is waited for. Work that is under way is left behind instead: then this
 * returns true, and the state is not the caller's any more. NULL is fine.
 */
bool stk_timed_call_close(stk_timed_call *aside);

#endif
