/*
 * tune.h - what --tune tries while something is trained, and whether it stays.
 *
 * Pure: whoever trains tells after every stretch how fast it was and why, and does what is said.
 * One thing is tried at a time; the stretch behind a change settles, the one after that judges it:
 * it stays where images/s rose by more than noise and is taken back otherwise. What was tried in
 * vain under a verdict is not tried again under it until something else has helped; so there is an
 * end to trying. Only verdicts on the input cause anything.
 *
 * Threads: one at a time. Starts zeroed.
 */
#ifndef STK_MONITOR_TUNE_H
#define STK_MONITOR_TUNE_H

#include <stdbool.h>

#include "monitor/verdict.h"

typedef enum stk_tune_knob {
    STK_TUNE_WORKERS,
    STK_TUNE_SLOTS, /* batches that the ring holds */
    STK_TUNE_CACHE, /* 0 off, 1 on */
    STK_TUNE_KNOBS
} stk_tune_knob;

/* What a stretch of training was like. */
typedef struct stk_tune_stretch {
    double seconds;
    double images_per_second;
    stk_verdict_kind verdict;
    int epoch;                /* that it ended in, from 1 */
    int now[STK_TUNE_KNOBS];  /* what each knob was set to */
    int most[STK_TUNE_KNOBS]; /* what it may be set to; that of now: it is not to be touched */
} stk_tune_stretch;

typedef enum stk_tune_act {
    STK_TUNE_NOTHING,
    STK_TUNE_TRY,      /* set the knob */
    STK_TUNE_KEEP,     /* nothing to do: what was tried stays */
    STK_TUNE_TAKE_BACK /* set the knob as it was */
} stk_tune_act;

typedef struct stk_tune_advice {
    stk_tune_act act;
    stk_tune_knob knob;
    int value;     /* that the knob is to have from now on */
    char what[64]; /* for the log: "workers 4 to 6" */
    char why[128]; /* "decode-bound at 2,900 img/s" */
} stk_tune_advice;

typedef struct stk_tune {
    bool on_trial;
    stk_tune_knob knob;       /* that is on trial */
    int before;               /* what it was */
    int tried;                /* what it is */
    double rate;              /* images/s before */
    stk_verdict_kind verdict; /* before */
    int epoch;                /* in which it was tried */
    bool is_settling;         /* the next stretch says nothing */
    bool in_vain[STK_VERDICT_COUNT][STK_TUNE_KNOBS];
} stk_tune;

stk_tune_advice stk_tune_after(stk_tune *tune, const stk_tune_stretch *stretch);

/*
 * A training has ended, and with it the loader that something was tried on: there is nothing left
 * to judge or to take back. A cache stays, and its trial goes on in the training that follows.
 */
void stk_tune_fold_ended(stk_tune *tune);

#endif
