/*
 * rates.h - how fast each stage of a training is by itself, and what follows for all of it.
 *
 * Pure arithmetic on measured rates: who wants to know what a change would bring copies the rates,
 * changes one of them and asks again. Rates are images per second; INFINITY where a stage does not
 * exist or never limits, NaN where it is not known (then it is left out of account).
 */
#ifndef STK_MONITOR_RATES_H
#define STK_MONITOR_RATES_H

#include <stdbool.h>
#include <stdint.h>

typedef struct stk_rates {
    double storage;   /* the place, with as many reads in flight as the loader has */
    double decode;    /* decoding, scaling and augmenting, of one worker with a core to itself */
    int workers;      /* that decode */
    int cores;        /* that there are for workers and whatever else computes */
    double copy;      /* from the host to the device */
    double step;      /* the bare training step, with all that it can use and pictures in memory */
    bool on_host;     /* the step is computed by the same cores that decode */
    int64_t batch;    /* images of a step */
    double fixed_s;   /* of a step: what does not grow with the batch */
    double source_px; /* mean pixels of a picture as it is stored: width times height */
    int img_size;     /* px, that training sees */
    int64_t images;   /* of an epoch */
} stk_rates;

typedef enum stk_stage_kind {
    STK_STAGE_STORAGE,
    STK_STAGE_DECODE,
    STK_STAGE_COPY,
    STK_STAGE_STEP,
    STK_STAGE_COUNT
} stk_stage_kind;

/* "storage", "decoding", "copying", "training step". */
const char *stk_stage_name(stk_stage_kind stage);

/* A rate within a sentence: "7,700", "3.4" where there are few, "?" where it is not known. */
typedef struct stk_rate_text {
    char text[32];
} stk_rate_text;

stk_rate_text stk_rates_text(double rate);

/* What the stage gives with all workers. */
double stk_rates_of(const stk_rates *rates, stk_stage_kind stage);

/* Images per second of all stages at work together, and which of them is the narrowest. */
double stk_rates_together(const stk_rates *rates, stk_stage_kind *narrowest);

/* Whether staging at this shorter side makes pictures smaller; false where their size is unknown.
 */
bool stk_rates_shrinks(const stk_rates *rates, int short_side_px);

/* The shorter side, px, that pictures staged for training at img_size should have. */
int stk_rates_stage_side(int img_size);

/* What --max-side of `stoker stage` has to be for it: that is the longer side, of a 4:3 picture. */
int stk_rates_max_side(int short_side_px);

/* The same rates after a change. */
stk_rates stk_rates_with_workers(const stk_rates *rates, int workers);
stk_rates stk_rates_with_cores(const stk_rates *rates, int cores);       /* and as many workers */
stk_rates stk_rates_with_batch(const stk_rates *rates, int64_t batch);   /* by fixed_s alone */
stk_rates stk_rates_staged(const stk_rates *rates, int short_side_px);   /* and read from near */
stk_rates stk_rates_with_img_size(const stk_rates *rates, int img_size); /* of training */
stk_rates stk_rates_cached(const stk_rates *rates);                      /* encoded, in memory */
stk_rates stk_rates_decoded(const stk_rates *rates);                     /* decoded, in memory */

#endif
