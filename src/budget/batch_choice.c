/*
 * batch_choice.c - chooses a batch by data set, memory and measured speed: a power of two, or with
 * `fill` the largest that fits.
 */
#include "budget/batch_choice.h"

#include <math.h>

#include "train/train.h"

#define LEAST_BATCH 8
#define USUAL_MOST 128 /* the most where nothing was measured */

/* The most that is chosen for its speed: larger ones learn worse with the same learning rate and
 * schedule. */
#define MOST_BATCH 512

/* With `fill` a batch is a whole multiple of FILL_MULTIPLE, unless that would leave less than
 * FILL_LEAST_PART of the free memory in use. */
#define FILL_MULTIPLE 8
#define FILL_LEAST_PART 0.70

/* Measuring takes at most so much of the time that is left, and of a short time nothing. */
#define MEASURE_SHARE 0.05
#define MEASURE_MOST_S 60.0
#define MEASURE_LEAST_LEFT_S 60.0

static size_t least_of(size_t a, size_t b) {
    return a < b ? a : b;
}

int stk_batch_least_steps(const stk_batch_facts *f, size_t batch) {
    return f->policy == STK_BATCH_SPEED && batch > USUAL_MOST ? STK_BATCH_FAST_STEPS
                                                              : STK_BATCH_STEPS;
}

static bool has_steps(const stk_batch_facts *f, size_t batch) {
    return f->train_count / batch >= (size_t)stk_batch_least_steps(f, batch);
}

static size_t least_batch(const stk_batch_facts *f) {
    return f->least > 0 ? f->least : LEAST_BATCH;
}

static bool is_too_few_updates(const stk_batch_facts *f, size_t batch) {
    return f->learns_most > 0 && batch > f->learns_most;
}

/*
 * The largest of `start`, `start` / 2 and so on that leaves an epoch its steps and a training its
 * updates, and is quick enough; not below least_batch(), but never above the training set. *limit
 * says why it is not larger.
 */
static size_t by_rule(const stk_batch_facts *f, size_t start, stk_batch_limit *limit) {
    size_t batch = start;
    *limit = STK_BATCH_BY_RULE;
    while (batch > least_batch(f) &&
           (!has_steps(f, batch) || batch > f->quick_most || is_too_few_updates(f, batch))) {
        *limit = !has_steps(f, batch)           ? STK_BATCH_BY_DATA
                 : is_too_few_updates(f, batch) ? STK_BATCH_BY_UPDATES
                                                : STK_BATCH_BY_STEP_TIME;
        batch /= 2;
    }
    return least_of(batch, f->train_count);
}

static uint64_t part_of(uint64_t bytes, double part) {
    return (uint64_t)((double)bytes * part);
}

/* Before a run begins: halves a batch until it fits into so many bytes; 0: it never does. During a
 * run stk_batch_halve() makes a batch smaller. */
static size_t halve_to_fit(const stk_batch_facts *f, size_t batch, uint64_t bytes) {
    while (batch > 0 && f->need(f->user, batch) > bytes) {
        batch /= 2;
    }
    return batch;
}

/* Where memory is short, an update takes more steps. */
static void add_up(const stk_batch_facts *f, stk_batch_choice *c) {
    size_t steps = c->batch > 0 ? (c->wanted + c->batch / 2) / c->batch : 1;
    int64_t all = f->accumulate * (int64_t)(steps > 1 ? steps : 1);
    c->accumulate = all < STK_MOST_ACCUMULATE ? all : STK_MOST_ACCUMULATE;
    c->bytes = c->batch > 0 ? f->need(f->user, c->batch) : 0;
}

static stk_batch_choice plan_given(const stk_batch_facts *f) {
    stk_batch_choice c = {.limit = STK_BATCH_GIVEN, .wanted = least_of(f->given, f->train_count)};
    c.batch = halve_to_fit(f, c.wanted, f->free_bytes);
    c.limit = c.batch < c.wanted ? STK_BATCH_BY_MEMORY : STK_BATCH_GIVEN;
    return c;
}

/* The policy `speed`, before anything is measured. */
static stk_batch_choice plan_for_speed(const stk_batch_facts *f) {
    stk_batch_choice c = {0};
    uint64_t bytes = part_of(f->free_bytes, STK_BATCH_MEMORY_PART);
    c.wanted = by_rule(f, USUAL_MOST, &c.limit);
    c.batch = halve_to_fit(f, c.wanted, bytes);
    if (c.batch < LEAST_BATCH && c.batch < c.wanted) { /* norms learn little from so few */
        c.batch = halve_to_fit(f, least_of(c.wanted, LEAST_BATCH), f->free_bytes);
    }
    c.search_most = by_rule(f, MOST_BATCH, &c.search_limit);
    size_t fits = halve_to_fit(f, c.search_most, bytes);
    if (fits < c.search_most) {
        c.search_most = fits > c.batch ? fits : c.batch;
        c.search_limit = STK_BATCH_BY_MEMORY;
    }
    if (c.batch < c.wanted) {
        c.limit = STK_BATCH_BY_MEMORY;
    }
    return c;
}

/* The largest batch up to `most` that fits; 0: none does. */
static size_t largest_in(const stk_batch_facts *f, size_t most, uint64_t bytes) {
    size_t low = 0;
    size_t high = most + 1;
    while (high - low > 1) {
        size_t middle = low + (high - low) / 2;
        bool fits = f->need(f->user, middle) <= bytes;
        low = fits ? middle : low;
        high = fits ? high : middle;
    }
    return low;
}

static stk_batch_choice plan_to_fill(const stk_batch_facts *f) {
    /* Never less than the policy `speed` takes, which allows 8 where fewer fit into 85 %. `wanted`
     * stays that policy's: gradients are added up only where the batch is smaller than that. */
    stk_batch_choice c = plan_for_speed(f);
    size_t data = f->train_count / STK_BATCH_STEPS;
    size_t most = data > LEAST_BATCH ? data : least_of(LEAST_BATCH, f->train_count);
    bool by_device = f->device_most > 0 && f->device_most < most;
    most = by_device ? f->device_most : most;
    size_t batch = largest_in(f, most, part_of(f->free_bytes, STK_BATCH_MEMORY_PART));
    size_t whole = batch / FILL_MULTIPLE * FILL_MULTIPLE;
    c.limit = batch < most ? STK_BATCH_BY_MEMORY
              : by_device  ? STK_BATCH_BY_DEVICE
                           : STK_BATCH_BY_DATA;
    if (whole > 0 && (c.limit != STK_BATCH_BY_MEMORY ||
                      f->need(f->user, whole) >= part_of(f->free_bytes, FILL_LEAST_PART))) {
        batch = whole;
    }
    c.batch = batch > c.batch ? batch : c.batch;
    return c;
}

stk_batch_choice stk_batch_plan(const stk_batch_facts *f) {
    stk_batch_choice c = f->given > 0                  ? plan_given(f)
                         : f->policy == STK_BATCH_FILL ? plan_to_fill(f)
                                                       : plan_for_speed(f);
    /* Neither twice nor half of this batch may be tried. */
    bool nothing_to_compare = c.search_most <= c.batch && c.batch < 2 * LEAST_BATCH;
    if (f->given > 0 || f->policy == STK_BATCH_FILL || nothing_to_compare) {
        c.search_most = 0;
    }
    add_up(f, &c);
    return c;
}

size_t stk_batch_knee(const stk_batch_point *points, size_t count) {
    double best = 0;
    size_t knee = 0;
    for (size_t i = 0; i < count; i++) {
        best = fmax(best, points[i].images_per_second);
    }
    for (size_t i = 0; i < count; i++) {
        bool near = points[i].images_per_second >= (1 - STK_BATCH_KNEE) * best;
        if (near && (knee == 0 || points[i].batch < knee)) {
            knee = points[i].batch;
        }
    }
    return knee;
}

/* The smallest and the largest batch that were measured. */
static void find_ends(const stk_batch_curve *curve, size_t *smallest, size_t *largest) {
    *smallest = SIZE_MAX;
    *largest = 0;
    for (size_t i = 0; i < curve->count; i++) {
        size_t batch = curve->points[i].batch;
        *smallest = batch < *smallest ? batch : *smallest;
        *largest = batch > *largest ? batch : *largest;
    }
}

size_t stk_batch_next(const stk_batch_choice *plan, const stk_batch_curve *curve) {
    if (plan->search_most == 0 || curve->count == STK_MOST_MEASURED) {
        return 0;
    }
    if (curve->count == 0) {
        return plan->batch;
    }
    size_t smallest;
    size_t largest;
    find_ends(curve, &smallest, &largest);
    size_t knee = stk_batch_knee(curve->points, curve->count);
    if (knee == largest && 2 * largest <= plan->search_most) {
        return 2 * largest;
    }
    return knee == smallest && smallest >= 2 * LEAST_BATCH ? smallest / 2 : 0;
}

stk_batch_choice stk_batch_choose_measured(const stk_batch_facts *f, const stk_batch_choice *plan,
                                           const stk_batch_curve *curve) {
    stk_batch_choice c = *plan;
    size_t smallest;
    size_t largest;
    find_ends(curve, &smallest, &largest);
    if (curve->count == 0) {
        return c;
    }
    c.batch = stk_batch_knee(curve->points, curve->count);
    c.limit = c.batch < largest         ? STK_BATCH_BY_SPEED
              : c.batch < c.search_most ? STK_BATCH_BY_TIME
                                        : c.search_limit;
    /* Speed may choose a smaller batch than planned; only lack of memory adds steps to an update.
     */
    c.wanted = c.limit == STK_BATCH_BY_MEMORY && c.batch < c.wanted ? c.wanted : c.batch;
    add_up(f, &c);
    return c;
}

double stk_batch_measure_s(double left_s) {
    return left_s < MEASURE_LEAST_LEFT_S ? 0 : fmin(MEASURE_SHARE * left_s, MEASURE_MOST_S);
}

double stk_batch_rate_scale(const stk_batch_facts *f, const stk_batch_choice *c) {
    double asked = (double)f->given * (double)f->accumulate;
    return f->given > 0 ? (double)c->batch * (double)c->accumulate / asked : 1;
}

bool stk_batch_halve(size_t *batch, int64_t *accumulate, int64_t images) {
    size_t half = *batch / 2;
    if (half < STK_LEAST_RETRY_BATCH) {
        return false;
    }
    int64_t size = (int64_t)half;
    *batch = half;
    *accumulate = (images + size / 2) / size; /* rounded */
    return true;
}
