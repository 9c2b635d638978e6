/*
 * inference.h - what validating and predicting take: pure arithmetic.
 *
 * The last validations tell it. Before the first one it is estimated from the training's steps, so
 * that even the shortest budget keeps time for predicting with what it trains.
 */
#ifndef STK_BUDGET_INFERENCE_H
#define STK_BUDGET_INFERENCE_H

#include <stddef.h>

#include "base/numbers/typical.h"

/* A picture takes about a third of the time where nothing is learnt from it. */
#define STK_INFERENCE_PART 0.33

/* Validations that are remembered: one that was held up is outvoted by the others. */
#define STK_VALIDATIONS_KEPT 3

/* Zero-initialised: there was none. */
typedef struct stk_validations {
    double val_s[STK_VALIDATIONS_KEPT];  /* a ring: seconds of the last validations */
    double step_s[STK_VALIDATIONS_KEPT]; /* seconds of a step at each of them; NaN: not known */
    double even_s; /* of the last one, had its slowest batch been as fast as the others */
    int count;     /* of all */
} stk_validations;

void stk_validations_note(stk_validations *past, double val_s, double even_s, double step_s);

/*
 * What a validation takes now that a step takes step_s: where steps have become slower, so have
 * validations; where they have become faster, it may not last. NaN where there was none.
 */
double stk_validations_now(const stk_validations *past, double step_s);

typedef struct stk_inference_facts {
    double budget_s; /* NaN: none */
    double step_s;   /* seconds per training step; NaN: not measured yet */
    double wait_s;   /* of these, waiting for pictures; NaN: not known */
    size_t batch;    /* pictures of a step */
    double val_s;    /* seconds of a validation, as measured; NaN: there was none */
    size_t val_images;
    size_t test_images;
    int views; /* wanted of each test picture, at least 1 */
} stk_inference_facts;

/* Seconds; NaN where nothing was measured that tells. */
typedef struct stk_inference {
    double val_s;     /* for a validation */
    double view_s;    /* for the test set in one view */
    int views;        /* that time is kept for */
    double predict_s; /* for the test set in these */
} stk_inference;

stk_inference stk_inference_estimate(const stk_inference_facts *facts);

/* What a running validation tells, which knows of now what the last one cannot. */
typedef struct stk_inference_watch {
    size_t images; /* of the whole validation */
    size_t test_images;
    double first_s;        /* when its first batch was seen: beginning takes a while of its own */
    size_t first;          /* pictures of that; 0: not yet */
    size_t seen;           /* pictures with the last batch that was seen */
    double seen_s;         /* when the last batch was seen */
    stk_typical picture_s; /* of the batches between the two */
} stk_inference_watch;

/*
 * Seconds per picture once it has seen `seen` in `seconds`: of a typical batch, since one that was
 * held up tells nothing of the others, and on a busy machine the fastest was only lucky. NaN while
 * they are too few, and where those that it has still to see are, beside the test pictures: ending
 * it would bring nothing.
 */
double stk_inference_look(stk_inference_watch *watch, size_t seen, double seconds);

#endif
