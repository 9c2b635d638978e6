/*
 * inference.h - how long validation and prediction take. Pure arithmetic.
 *
 * The estimate rests on the last validations. Before the first one it rests on the training steps,
 * so that even the shortest budget keeps time for predicting. Without a validation set steps are
 * all there is.
 *
 * Test pictures are read for the first time when they are predicted, while those of a validation
 * soon lie in the memory of the machine. So a prediction is expected to take as long per picture as
 * the first validation did, if that was slower than the last ones.
 */
#ifndef STK_BUDGET_INFERENCE_H
#define STK_BUDGET_INFERENCE_H

#include <stdbool.h>
#include <stddef.h>

#include "base/numbers/typical.h"

/* Inference takes about a third of the time of a training step, per picture. */
#define STK_INFERENCE_PART 0.33

/* Validations that are remembered: the median ignores one that was held up. */
#define STK_VALIDATIONS_KEPT 3

/* Times of validations. Zero-initialised: none yet. */
typedef struct stk_validations {
    double val_s[STK_VALIDATIONS_KEPT];  /* a ring: seconds of the last validations */
    double step_s[STK_VALIDATIONS_KEPT]; /* seconds of a step at each of them; NaN: not known */
    double even_s; /* seconds of the last one, had its slowest batch been as fast as the others */
    int count;     /* validations so far */
} stk_validations;

void stk_validations_note(stk_validations *past, double val_s, double even_s, double step_s);

/*
 * Seconds of a validation now that a step takes step_s. When steps have become slower, validations
 * have too. Faster steps are ignored, since they may not last. NaN before the first validation.
 */
double stk_validations_now(const stk_validations *past, double step_s);

typedef struct stk_inference_facts {
    double budget_s;   /* NaN: none */
    double step_s;     /* seconds per training step; NaN: not measured yet */
    double wait_s;     /* part of step_s spent waiting for pictures; NaN: not known */
    size_t batch;      /* pictures of a step */
    double pixels;     /* of a picture in inference, relative to one in training */
    double val_s;      /* measured seconds of a validation; NaN: none yet */
    size_t val_images; /* 0: there is no validation set */
    size_t test_images;
    double unread_s;  /* seconds per picture when pictures were read for the first time; NaN: not
                         known */
    size_t predicted; /* pictures that all models of the run predict in a view */
    int views;        /* wanted views of each test picture, at least 1 */
    int least_views;  /* as in stk_view_facts */
} stk_inference_facts;

/* Estimated seconds; NaN where nothing was measured. */
typedef struct stk_inference {
    double picture_s; /* of a picture in one view */
    double val_s;     /* of a validation */
    double view_s;    /* of predicting the test set in one view */
    int views;        /* views that there is time for, see stk_views_in_reserve() */
    double predict_s; /* of predicting the test set in these views, the first view with care */
    bool timed;       /* a validation tells, or steps do where there is no validation set */
} stk_inference;

stk_inference stk_inference_estimate(const stk_inference_facts *facts);

/* Speed of the running validation: more recent than the times of validations that ended. */
typedef struct stk_inference_watch {
    size_t images; /* of the whole validation */
    size_t test_images;
    double first_s;        /* seconds until its first batch: starting takes extra time */
    size_t first;          /* pictures of that batch; 0: not yet */
    size_t seen;           /* pictures up to the last batch */
    double seen_s;         /* seconds up to the last batch */
    stk_typical picture_s; /* seconds per picture of the batches after the first */
} stk_inference_watch;

/*
 * Seconds per picture after `seen` pictures in `seconds`, from a typical batch: a batch that was
 * held up says nothing about the others, and on a busy machine the fastest one was only lucky. NaN
 * while there are too few batches, and when few pictures are left compared with the test set:
 * ending the validation would then gain nothing.
 */
double stk_inference_look(stk_inference_watch *watch, size_t seen, double seconds);

#endif
