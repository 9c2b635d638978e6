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

#endif
