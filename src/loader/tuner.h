/*
 * tuner.h - how many workers and slots a loader should have, from where its time went.
 *
 * Pure arithmetic: whoever runs the loader reads its counters now and then and does what the
 * tuner says. If the consumer waits and workers hardly do, it advises more workers, as far as there
 * are cores. If the consumer waits although workers wait for slots, it advises more slots, as far
 * as there is memory. If the consumer does not wait and workers often wait for slots, it advises
 * fewer workers.
 */
#ifndef STK_LOADER_TUNER_H
#define STK_LOADER_TUNER_H

#include <stdbool.h>

typedef struct stk_tuner {
    int most_workers; /* cores that may be used */
    int most_slots;   /* slots that the memory allows */
    bool fix_workers; /* the user gave the number of workers */
    bool fix_slots;
    int idle_readings; /* readings in a row that showed more workers than needed */
} stk_tuner;

/* What the counters say of the time since the reading before. */
typedef struct stk_tuner_reading {
    double seconds;
    double wait_s;       /* the consumer waited for a batch */
    double full_wait_s;  /* waits of workers that began when no slot was free, summed over them */
    double other_wait_s; /* other waits of workers, for bytes */
    int workers;         /* present number */
    int slots;
} stk_tuner_reading;

typedef struct stk_tuner_advice {
    int workers;
    int slots;
} stk_tuner_advice;

stk_tuner_advice stk_tuner_judge(stk_tuner *tuner, const stk_tuner_reading *reading);

/*
 * How many workers decode beside a device, where batches are missing. The others feed the device,
 * which decodes far more than a core: too many workers that decode leave it without pictures, or
 * its thread without a core. How many are too many depends on the machine and on what else runs
 * there. So now and then another number is tried for one reading, and kept if more pictures come.
 */
typedef struct stk_core_share {
    int cores;   /* workers that may decode now; at first whatever seems right */
    int kept;    /* the number to go back to after a trial */
    double rate; /* pictures per second with that number; 0: not known */
    bool tries;  /* `cores` is a trial */
    int way;     /* of the next trial: 1 or -1; 0: none was made yet */
    int held;    /* readings since the last trial */
} stk_core_share;

typedef struct stk_core_reading {
    double seconds;
    double wait_s; /* the consumer waited for a batch */
    double idle_s; /* the device had no pictures */
    double images; /* that were decoded, by anybody */
    int workers;
} stk_core_reading;

/* Sets share->cores for the time until the next reading, between 0 and one less than all workers.
 */
void stk_core_share_judge(stk_core_share *share, const stk_core_reading *reading);

#endif
