/*
 * inference.h - what validating and predicting take: pure arithmetic.
 *
 * The last validation tells it. Before the first one it is estimated from the training's steps, so
 * that even the shortest budget keeps time for predicting with what it trains.
 */
#ifndef STK_BUDGET_INFERENCE_H
#define STK_BUDGET_INFERENCE_H

#include <stddef.h>

/* A picture takes about a third of the time where nothing is learnt from it. */
#define STK_INFERENCE_PART 0.33

typedef struct stk_inference_facts {
    double budget_s; /* NaN: none */
    double step_s;   /* seconds per training step; NaN: not measured yet */
    double wait_s;   /* of these, waiting for pictures; NaN: not known */
    size_t batch;    /* pictures of a step */
    double val_s;    /* seconds of the last validation; NaN: there was none */
    double slower;   /* how many times as long steps take as they did then; below 1 counts as 1 */
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
    double first_s;   /* when its first batch was seen: beginning takes a while of its own */
    size_t first;     /* pictures of that; 0: not yet */
    size_t seen;      /* with the last one ... */
    double seen_s;    /* ... after so many seconds */
    int batches;      /* between the two */
    double picture_s; /* of the fastest of these */
} stk_inference_watch;

/*
 * Seconds per picture once it has seen `seen` in `seconds`: of the fastest batch, since one that
 * was held up tells nothing of the others. NaN while they are too few, and where those that it has
 * still to see are, beside the test pictures: ending it would bring nothing.
 */
double stk_inference_look(stk_inference_watch *watch, size_t seen, double seconds);

#endif
