/*
 * tuner.h - how many workers and slots a loader should have, from where its time went.
 *
 * Pure arithmetic: whoever runs the loader samples its counters now and then and does what the
 * tuner says. A consumer that waits while workers never do needs more workers, as far as there are
 * cores; one that waits although workers also wait for slots needs more slots, as far as there is
 * memory; workers that mostly wait for slots are more than needed.
 */
#ifndef STK_LOADER_TUNER_H
#define STK_LOADER_TUNER_H

#include <stdbool.h>
#include <stdint.h>

typedef struct stk_tuner {
    int most_workers; /* cores that may be used */
    int most_slots;   /* that the memory allows */
    bool fix_workers; /* the user gave their number */
    bool fix_slots;
    int idle_samples; /* samples in a row that showed more workers than needed */
} stk_tuner;

/* What happened since the sample before. */
typedef struct stk_tuner_sample {
    double seconds;
    double wait_s;       /* the consumer waited for a batch */
    double full_wait_s;  /* waits of workers that began when no slot was free, summed over them */
    double other_wait_s; /* their other waits, which were for bytes */
    int workers;         /* as they are */
    int slots;
} stk_tuner_sample;

typedef struct stk_tuner_advice {
    int workers;
    int slots;
} stk_tuner_advice;

stk_tuner_advice stk_tuner_judge(stk_tuner *tuner, const stk_tuner_sample *sample);

#endif
