/*
 * batch_choice.h - how many images a step has, and how many steps an update has. Pure arithmetic.
 *
 * stk_batch_plan() chooses from the data set and the memory alone. Where speed may be measured, a
 * search around that batch follows: stk_batch_next() says which batch to measure, and
 * stk_batch_choose_measured() chooses once nothing is left to measure. stk_batch_halve() makes a
 * batch smaller when memory runs out.
 */
#ifndef STK_BUDGET_BATCH_CHOICE_H
#define STK_BUDGET_BATCH_CHOICE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <stoker/job.h>

/*
 * Least steps of an epoch: with fewer, the weights are updated too seldom. A batch above 128, which
 * is taken only because it is faster, must leave STK_BATCH_FAST_STEPS: where an epoch has few
 * updates, losing half of them costs more than a tenth of the time is worth.
 */
#define STK_BATCH_STEPS 15
#define STK_BATCH_FAST_STEPS 100

/* Share of the free memory for a batch that nobody gave; where fewer than 8 images fit into it, up
 * to 8 may take all of the memory. */
#define STK_BATCH_MEMORY_PART 0.85

/* Relative loss of images/s that does not matter. */
#define STK_BATCH_KNEE 0.03

/* In the order of the option's choices. */
typedef enum stk_batch_policy {
    STK_BATCH_SPEED, /* the smallest that is about as fast as any */
    STK_BATCH_FILL   /* the largest that the memory and the data set allow */
} stk_batch_policy;

/* Why a batch is not larger. */
typedef enum stk_batch_limit {
    STK_BATCH_GIVEN,        /* the user asked for this batch */
    STK_BATCH_BY_DATA,      /* an epoch would have too few steps */
    STK_BATCH_BY_UPDATES,   /* the whole training would have too few updates */
    STK_BATCH_BY_MEMORY,    /* it would not fit */
    STK_BATCH_BY_DEVICE,    /* the device takes no larger batch (stk_backend.most_batch) */
    STK_BATCH_BY_STEP_TIME, /* a larger step would take too long on a CPU */
    STK_BATCH_BY_RULE,      /* no larger one is taken unasked: 128; where speed is measured, 512 */
    STK_BATCH_BY_SPEED,     /* a larger one was measured, and is hardly faster */
    STK_BATCH_BY_TIME       /* a larger one could be faster, and was not measured */
} stk_batch_limit;

typedef struct stk_batch_facts {
    /* Images per step that were asked for, or that a resumed run began with; 0: auto. */
    size_t given;
    int64_t accumulate; /* steps per update that were asked for, at least 1 */
    size_t train_count; /* training images of a fold, at least 1 */
    size_t quick_most;  /* images of a step that is short enough; SIZE_MAX: no limit (a GPU) */
    size_t learns_most; /* images of an update that leave a training updates enough; 0: any */
    size_t least;       /* images that the rule does not go below for more steps; 0: 8 */
    size_t device_most; /* images that the device can compute in a step at all; 0: any number */
    stk_batch_policy policy;
    uint64_t free_bytes; /* free memory of the device */
    /* Bytes that training with such a batch takes; grows with the batch. */
    uint64_t (*need)(void *user, size_t batch);
    void *user;
} stk_batch_facts;

typedef struct stk_batch_choice {
    size_t batch;       /* images per step; 0: not even one fits */
    int64_t accumulate; /* steps per update: more than asked for when memory is short */
    /* Images per step, if memory were not short; with `fill`, what the policy `speed` would want.
     * Where `batch` is smaller, the gradients of several steps are added up. */
    size_t wanted;
    uint64_t bytes;               /* memory that the batch needs */
    stk_batch_limit limit;        /* why it is not larger */
    size_t search_most;           /* the largest batch worth measuring; 0: none */
    stk_batch_limit search_limit; /* why no larger batch is worth measuring */
} stk_batch_choice;

/* Least steps of an epoch with such a batch. */
int stk_batch_least_steps(const stk_batch_facts *facts, size_t batch);

/* Chooses without measuring. */
stk_batch_choice stk_batch_plan(const stk_batch_facts *facts);

typedef struct stk_batch_point {
    size_t batch;
    double images_per_second;
} stk_batch_point;

typedef struct stk_batch_curve {
    stk_batch_point points[STK_MOST_MEASURED]; /* in any order */
    size_t count;
} stk_batch_curve;

/* The smallest batch whose images/s are nearly the best; 0 without any points. */
size_t stk_batch_knee(const stk_batch_point *points, size_t count);

/*
 * Which batch to measure next: the planned one, then doubled ones while they are faster; if none
 * is, halved ones while they are not slower. 0: nothing is left to measure.
 */
size_t stk_batch_next(const stk_batch_choice *plan, const stk_batch_curve *curve);

/* The choice after measuring; without any points it is the plan. */
stk_batch_choice stk_batch_choose_measured(const stk_batch_facts *facts,
                                           const stk_batch_choice *plan,
                                           const stk_batch_curve *curve);

/* Limit in seconds when left_s are left (INFINITY: no budget); 0: too little time. It holds for the
 * steps of the first batch, and once more for measuring all other batches together, compiling
 * included. Training has to compile the first batch anyway. */
double stk_batch_measure_s(double left_s);

/* Factor for a learning rate that was given: images per update over images asked for. */
double stk_batch_rate_scale(const stk_batch_facts *facts, const stk_batch_choice *choice);

/* The least batch that is tried after memory ran out. A plan may have 1, by request or where no
 * more fits, but a larger batch does not go down to 1: norms learn little from one picture. */
#define STK_LEAST_RETRY_BATCH 2

/*
 * Halves a batch that memory is too small for, and doubles the steps of an update, so that an
 * update has as many images as before and the learning rate stays right. `images` is the number of
 * images per update that was asked for: an odd batch comes as near to it as whole batches allow.
 * False, with nothing changed, where the half would be below STK_LEAST_RETRY_BATCH.
 */
bool stk_batch_halve(size_t *batch, int64_t *accumulate, int64_t images);

#endif
