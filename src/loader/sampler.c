/* sampler.c - the order of samples, without tables: a keyed permutation, or keyed random draws. */
#include "loader/sampler.h"

#include <math.h>

#include "base/error.h"
#include "base/mem.h"
#include "base/numbers/rng.h"

struct stk_sampler {
    stk_sampler_config config; /* labels and weights are not kept */
    size_t count;              /* positions of this machine */
    double *sums;              /* owned: running sums of the weights; weighted and sqrt */
    size_t *members;           /* owned: entries class by class; balanced */
    size_t *starts;            /* owned: (classes+1), where each class begins in members */
    size_t classes;            /* that have samples */
};

static size_t share(const stk_sampler_config *c) {
    size_t share = c->count / c->world;
    bool one_more = c->rank < c->count % c->world;
    return share + (!c->equal_shares && one_more ? 1 : 0);
}

/* Sizes of the classes; samples without a label are the first class. */
static size_t *count_classes(const stk_sampler_config *c, size_t *classes) {
    *classes = 1;
    for (size_t i = 0; i < c->count; i++) {
        size_t needed = c->labels[i] < 0 ? 1 : (size_t)c->labels[i] + 2;
        *classes = needed > *classes ? needed : *classes;
    }
    size_t *sizes = stk_mem_new(*classes, sizeof *sizes);
    for (size_t i = 0; sizes != NULL && i < c->count; i++) {
        sizes[c->labels[i] + 1]++;
    }
    return sizes;
}

static stk_status sum_weights(stk_sampler *s, const double *weights, stk_error *err) {
    double sum = 0;
    s->sums = stk_mem_raw(s->config.count, sizeof *s->sums);
    if (s->sums == NULL) {
        return STK_FAIL_MEMORY(err, "sampling");
    }
    for (size_t i = 0; i < s->config.count; i++) {
        if (!(weights[i] >= 0) || isinf(weights[i])) {
            return STK_FAIL(err, STK_ERR_USAGE, "the weight of sample %zu is not 0 or more", i);
        }
        sum += weights[i];
        s->sums[i] = sum;
    }
    if (!(sum > 0) || isinf(sum)) {
        return STK_FAIL(err, STK_ERR_USAGE, "the weights of the samples have no usable sum");
    }
    return STK_OK;
}

/* A class of n samples has the weight sqrt(n), so each sample has 1 / sqrt(n). */
static stk_status weigh_by_sqrt(stk_sampler *s, const stk_sampler_config *c, stk_error *err) {
    size_t classes;
    size_t *sizes = count_classes(c, &classes);
    double *weights = stk_mem_raw(c->count, sizeof *weights);
    stk_status status = STK_OK;
    if (sizes == NULL || weights == NULL) {
        status = STK_FAIL_MEMORY(err, "sampling");
    } else {
        for (size_t i = 0; i < c->count; i++) {
            weights[i] = 1 / sqrt((double)sizes[c->labels[i] + 1]);
        }
        status = sum_weights(s, weights, err);
    }
    stk_mem_free(weights);
    stk_mem_free(sizes);
    return status;
}

static stk_status list_classes(stk_sampler *s, const stk_sampler_config *c, stk_error *err) {
    size_t classes;
    size_t *next = count_classes(c, &classes);
    s->members = stk_mem_raw(c->count, sizeof *s->members);
    s->starts = stk_mem_raw(classes + 1, sizeof *s->starts);
    if (next == NULL || s->members == NULL || s->starts == NULL) {
        stk_mem_free(next);
        return STK_FAIL_MEMORY(err, "sampling");
    }
    size_t start = 0;
    for (size_t i = 0; i < classes; i++) {
        size_t size = next[i];
        next[i] = start;
        if (size > 0) {
            s->starts[s->classes++] = start;
        }
        start += size;
    }
    s->starts[s->classes] = start;
    for (size_t i = 0; i < c->count; i++) {
        s->members[next[c->labels[i] + 1]++] = i;
    }
    stk_mem_free(next);
    return STK_OK;
}

stk_status stk_sampler_new(stk_sampler **out, const stk_sampler_config *config, stk_error *err) {
    stk_sampler *s = stk_mem_new(1, sizeof *s);
    if (s == NULL) {
        return STK_FAIL_MEMORY(err, "sampling");
    }
    s->config = *config;
    s->config.world = config->world > 0 ? config->world : 1;
    stk_status status = STK_OK;
    if (config->rank >= s->config.world) {
        status =
            STK_FAIL(err, STK_ERR_USAGE, "--rank %zu: with --world %zu it must be from 0 to %zu",
                     config->rank, s->config.world, s->config.world - 1);
    } else if ((s->count = share(&s->config)) == 0) {
        status = STK_FAIL(err, STK_ERR_DATA, "%zu samples are too few for %zu machines",
                          config->count, s->config.world);
    } else if (config->sampling == STK_SAMPLING_WEIGHTED) {
        status = sum_weights(s, config->weights, err);
    } else if (config->sampling == STK_SAMPLING_SQRT) {
        status = weigh_by_sqrt(s, config, err);
    } else if (config->sampling == STK_SAMPLING_BALANCED) {
        status = list_classes(s, config, err);
    }
    if (status != STK_OK) {
        stk_sampler_free(s);
        return status;
    }
    *out = s;
    return STK_OK;
}

void stk_sampler_free(stk_sampler *s) {
    if (s != NULL) {
        stk_mem_free(s->sums);
        stk_mem_free(s->members);
        stk_mem_free(s->starts);
        stk_mem_free(s);
    }
}

size_t stk_sampler_count(const stk_sampler *s) {
    return s->count;
}

/* The entry at a random point of the running sums. */
static size_t draw_weighted(const stk_sampler *s, uint64_t epoch, size_t position) {
    stk_rng rng = stk_rng_make(s->config.seed, STK_RNG_ORDER, epoch, position);
    double at = stk_rng_uniform(&rng) * s->sums[s->config.count - 1];
    size_t low = 0;
    size_t high = s->config.count - 1;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (s->sums[middle] > at) {
            high = middle;
        } else {
            low = middle + 1;
        }
    }
    return low;
}

/*
 * Positions are dealt to the classes in rounds, each class once in a round, in a new order each
 * time. The members of a class come in a random order, all of them before any comes again.
 */
static size_t draw_balanced(const stk_sampler *s, uint64_t epoch, size_t position) {
    uint64_t round = position / s->classes;
    stk_rng order = stk_rng_make(s->config.seed, STK_RNG_ORDER, epoch, round);
    size_t class = (size_t)stk_rng_permute(order.key, s->classes, position % s->classes);
    size_t size = s->starts[class + 1] - s->starts[class];
    stk_rng cycle = stk_rng_make(s->config.seed ^ round / size, STK_RNG_CLASS, epoch, class);
    return s->members[s->starts[class] + (size_t)stk_rng_permute(cycle.key, size, round % size)];
}

uint64_t stk_sampler_global(const stk_sampler *s, size_t position) {
    return (uint64_t)position * s->config.world + s->config.rank;
}

size_t stk_sampler_at(const stk_sampler *s, uint64_t epoch, size_t position) {
    size_t global = (size_t)stk_sampler_global(s, position);
    switch (s->config.sampling) {
    case STK_SAMPLING_BALANCED:
        return draw_balanced(s, epoch, global);
    case STK_SAMPLING_SQRT:
    case STK_SAMPLING_WEIGHTED:
        return draw_weighted(s, epoch, global);
    default:
        break;
    }
    if (!s->config.shuffle) {
        return global;
    }
    stk_rng rng = stk_rng_make(s->config.seed, STK_RNG_ORDER, epoch, 0);
    return (size_t)stk_rng_permute(rng.key, s->config.count, global);
}
