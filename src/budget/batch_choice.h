/*
 * batch_choice.h - how many images a step has, and how many steps an update: pure arithmetic.
 *
 * First comes a plan, from the data set and the memory alone. Where speed may be measured, a search
 * around it follows: it says which batch to measure next, and chooses once it has nothing to ask.
 */
#ifndef STK_BUDGET_BATCH_CHOICE_H
#define STK_BUDGET_BATCH_CHOICE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <stoker/job.h>

/*
 * An epoch of fewer steps moves the weights too seldom to learn. Batches that are larger than usual
 * only because they are faster have to leave more of them: a tenth of the time is not worth half of
 * the updates when there are few.
 */
#define STK_BATCH_STEPS 15
#define STK_BATCH_FAST_STEPS 100

/* Part of the free memory that a batch which nobody gave may take; fewer than 8 images may take all
 * of it. */
#define STK_BATCH_MEMORY_PART 0.85

/* Less than this part of images/s is no loss. */
#define STK_BATCH_KNEE 0.03

/* In the order of the option's choices. */
typedef enum stk_batch_policy {
    STK_BATCH_SPEED, /* the smallest that is about as fast as any */
    STK_BATCH_FILL   /* the largest that the memory and the data set allow */
} stk_batch_policy;

/* Why a batch is not larger. */
typedef enum stk_batch_limit {
    STK_BATCH_GIVEN,     /* it is what was asked for */
    STK_BATCH_BY_DATA,   /* an epoch would have too few steps */
    STK_BATCH_BY_MEMORY, /* it would not fit */
    STK_BATCH_BY_DEVICE, /* a step would take too long: on a CPU */
    STK_BATCH_BY_HABIT,  /* larger ones are not taken without need */
    STK_BATCH_BY_SPEED,  /* a larger one was measured, and is hardly faster */
    STK_BATCH_BY_TIME    /* a larger one could be faster, and was not measured */
} stk_batch_limit;

typedef struct stk_batch_facts {
    size_t given;       /* images a step that were asked for; 0: as Stoker likes */
    int64_t accumulate; /* steps an update that were asked for, at least 1 */
    size_t train_count; /* images that a fold trains on, at least 1 */
    size_t most;        /* images that the device does in a step of bearable length */
    stk_batch_policy policy;
    uint64_t free_bytes; /* of the device's memory */
    /* The bytes that training with such a batch takes; more for a larger one. */
    uint64_t (*need)(void *user, size_t batch);
    void *user;
} stk_batch_facts;

typedef struct stk_batch_choice {
    size_t batch;          /* images a step; 0: not even one fits */
    int64_t accumulate;    /* steps an update: more than asked for where the memory is short */
    size_t wanted;         /* images of so many steps as were asked for, were there more memory */
    uint64_t bytes;        /* that this batch needs */
    stk_batch_limit limit; /* why it is not larger */
    size_t most;           /* the largest that is worth measuring; 0: none is */
    stk_batch_limit most_limit; /* why no larger one is worth measuring */
} stk_batch_choice;

/* Steps that an epoch with such a batch has to have. */
int stk_batch_least_steps(const stk_batch_facts *facts, size_t batch);

/* Without any measurement. */
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
 * Which batch to measure next: the planned one, then twice as large ones while they are faster; if
 * none is, half as large ones while these are not slower. 0: no other is worth it.
 */
size_t stk_batch_next(const stk_batch_choice *plan, const stk_batch_curve *curve);

/* What the plan becomes by what was measured; without any points it stays. */
stk_batch_choice stk_batch_settle(const stk_batch_facts *facts, const stk_batch_choice *plan,
                                  const stk_batch_curve *curve);

/* Seconds that the steps of the first batch, which has to be compiled anyway, may take where so
 * many are left (INFINITY: no budget), and once more measuring all others; 0: nothing is worth
 * measuring. */
double stk_batch_measure_s(double left_s);

/* What a given learning rate is multiplied with: images of an update, by those asked for. */
double stk_batch_rate_scale(const stk_batch_facts *facts, const stk_batch_choice *choice);

#endif
