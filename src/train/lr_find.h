/*
 * lr_find.h - the learning-rate range test.
 *
 * The rate grows by the same factor from step to step while a network is trained with it: too low
 * a rate leaves the loss where it was, a good one lowers it, and one that is too high makes it
 * explode. The suggestion is a third of the lowest rate that brought the smoothed loss near its
 * minimum. At that rate the network is about to stop learning; a third of it suits a training that
 * warms up and ends with a low rate. Other programs suggest the point of steepest descent, which
 * moves tenfold with the noise of single batches.
 */
#ifndef STK_TRAIN_LR_FIND_H
#define STK_TRAIN_LR_FIND_H

#include "train/train.h"

#define STK_LR_FROM 1e-7
#define STK_LR_TO 10.0
#define STK_LR_STEPS 100

/* The test ends when the smoothed loss is so many times its lowest. */
#define STK_LR_EXPLOSION 4.0

typedef struct stk_lr_find_config {
    const stk_backend *backend;
    stk_state *state; /* ready to train; comes back as it was, its optimiser's memory zero */
    const stk_graph *graph;
    const stk_train_options *options; /* its autos resolved; the schedule does not matter */
    stk_compile_config compile;
    stk_loader_config train_data; /* as stk_train_config.train_data */
    uint64_t seed;
    int steps;                /* at least 2 */
    const stk_events *events; /* told progress and bad pictures */
    stk_halt halt;            /* asked before every step */
} stk_lr_find_config;

typedef struct stk_lr_curve {
    stk_lr_point *points; /* owned */
    int count;
    bool halted;       /* before it was at its end */
    bool exploded;     /* ended by the loss, not by the highest rate */
    double suggestion; /* NaN: halted, or the loss never fell */
    double seconds;
} stk_lr_curve;

STK_CHECKED stk_status stk_lr_find(const stk_lr_find_config *config, stk_lr_curve *curve,
                                   stk_error *err);
void stk_lr_curve_free(stk_lr_curve *curve);

/* The rate of step i of `steps`. */
double stk_lr_at(int i, int steps);

/*
 * Fills in point i from the points before it, its rate and its loss, and says whether the test is
 * over: the loss has exploded or is no number.
 */
bool stk_lr_add(stk_lr_point *points, int i, int steps, double lr, double loss);

/* The rate that the points suggest, rounded to two digits; NaN when the loss never fell. */
double stk_lr_suggest(const stk_lr_point *points, int count);

#endif
