/* disk_call.h - calls of a disk that may hang, waited for within a time. */
#ifndef STK_SUPERVISE_FILES_DISK_CALL_H
#define STK_SUPERVISE_FILES_DISK_CALL_H

#include <stdbool.h>

/*
 * Calls work(state) on a thread of its own; where none can be started, here. True: it has ended and
 * the state is the caller's. False: it was left behind after within_s, and should it ever end,
 * drop(state) is called behind it.
 */
bool stk_disk_call(void (*work)(void *state), void *state, void (*drop)(void *state),
                   double within_s);

#endif
