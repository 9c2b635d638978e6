/* disk_call.h - a call that may hang on a dead disk, abandoned after a time-out. */
#ifndef STK_SUPERVISE_FILES_DISK_CALL_H
#define STK_SUPERVISE_FILES_DISK_CALL_H

#include <stdbool.h>

/*
 * Calls work(state) on a thread of its own, or on this thread if none can be started. True: the
 * work has ended. False: it was abandoned after within_s; the state then belongs to the thread,
 * which calls drop(state) if the work ever ends.
 */
bool stk_disk_call(void (*work)(void *state), void *state, void (*drop)(void *state),
                   double within_s);

#endif
