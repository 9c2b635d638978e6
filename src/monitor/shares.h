/*
 * shares.h - the parts of training time, as shares of it. Pure. Threads: safe.
 *
 * Training time is all but validations and checkpoints. A part that is not known counts as 0.
 */
#ifndef STK_MONITOR_SHARES_H
#define STK_MONITOR_SHARES_H

#include <stoker/events.h>

typedef struct stk_shares {
    double training_s; /* seconds; 0: nothing was trained, and all shares are 0 */
    double read;       /* this and all that follow: 0 to 1 */
    double decode;
    double queue;
    double wait; /* for data: the three together */
    double copy;
    double compute; /* forward, backward and the optimiser */
    double other;
} stk_shares;

stk_shares stk_shares_of(const stk_times *times);

#endif
