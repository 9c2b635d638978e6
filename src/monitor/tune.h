/*
 * tune.h - the search behind --tune: which loader setting to change next, and whether to keep it.
 *
 * Pure arithmetic. The caller measures an interval of training, passes it to stk_tune_after() and
 * applies the advice. One setting is tried at a time. The first interval after a change is ignored,
 * because the loader is still adapting. The second one decides: the new value is kept if images/s
 * rose by more than noise, and reverted otherwise. A setting that failed under a verdict is not
 * tried again under that verdict until another change has helped, so the search ends. Only
 * verdicts on the input (storage-bound, decode-bound) start a trial.
 *
 * Threads: one at a time. A zeroed stk_tune is ready for use.
 */
#ifndef STK_MONITOR_TUNE_H
#define STK_MONITOR_TUNE_H

#include <stdbool.h>

#include "monitor/verdict.h"

typedef enum stk_tune_setting {
    STK_TUNE_WORKERS,
    STK_TUNE_SLOTS, /* batches that the loader's ring holds */
    STK_TUNE_CACHE, /* 0 off, 1 on */
    STK_TUNE_SETTINGS
} stk_tune_setting;

/* One measured interval of training. */
typedef struct stk_tune_interval {
    double seconds;
    double images_per_second;
    stk_verdict_kind verdict;
    int epoch;                   /* in which the interval ended, from 1 */
    int now[STK_TUNE_SETTINGS];  /* value of each setting during the interval */
    int most[STK_TUNE_SETTINGS]; /* highest value allowed; equal to `now`: leave the setting alone
                                  */
} stk_tune_interval;

typedef enum stk_tune_action {
    STK_TUNE_NOTHING,
    STK_TUNE_TRY,      /* change `setting` to `value` */
    STK_TUNE_KEEP,     /* the trial helped; nothing to change */
    STK_TUNE_TAKE_BACK /* the trial failed: change `setting` back to `value` */
} stk_tune_action;

typedef struct stk_tune_advice {
    stk_tune_action action;
    stk_tune_setting setting;
    int value;     /* of the setting from now on */
    char what[64]; /* for the log: "workers 4 to 6" */
    char why[128]; /* for the log: "decode-bound at 2,900 img/s" */
} stk_tune_advice;

/* State of the search. */
typedef struct stk_tune {
    bool is_trying;           /* a trial runs; the six fields below describe it */
    stk_tune_setting setting; /* the setting that is tried */
    int before;               /* its value before the trial */
    int tried;                /* its value during the trial */
    double rate;              /* images/s before the trial */
    stk_verdict_kind verdict; /* before the trial */
    int epoch;                /* in which the trial began */
    bool is_settling;         /* the next interval is ignored */
    bool failed[STK_VERDICT_COUNT][STK_TUNE_SETTINGS]; /* tried under this verdict, no gain */
} stk_tune;

/* Takes in one interval; says what to do before the next. */
stk_tune_advice stk_tune_after(stk_tune *tune, const stk_tune_interval *interval);

/*
 * Ends a fold. Its loader is gone, so a trial of workers or slots is dropped without judgement. A
 * cache outlives the fold: its trial continues in the next one.
 */
void stk_tune_fold_ended(stk_tune *tune);

#endif
