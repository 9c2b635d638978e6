/*
 * shares.h - how training time divides into reading, decoding, copying, computing and the rest.
 *
 * Training time is all time except validation and checkpoints. An unknown part counts as 0.
 * Pure. Threads: safe.
 */
#ifndef STK_MONITOR_SHARES_H
#define STK_MONITOR_SHARES_H

#include <stoker/events.h>

typedef struct stk_shares {
    double training_s; /* seconds; 0: nothing was trained, and all shares are 0 */
    /* Shares of training_s, each 0 to 1. */
    double read;    /* waiting for storage */
    double decode;  /* waiting for decode workers */
    double queue;   /* waiting for a batch that is ready but not handed over */
    double wait;    /* waiting for data: read + decode + queue */
    double copy;    /* waiting for copies to the device */
    double compute; /* forward, backward and the optimiser */
    double other;   /* launching kernels and the like */
} stk_shares;

stk_shares stk_shares_of(const stk_times *times);

#endif
