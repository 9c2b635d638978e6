/*
 * sampler.h - says which sample stands at which position of which epoch.
 *
 * A pure function of (seed, epoch, position) that any thread may call. Positions count on one
 * machine of `world`. In natural sampling the machines' shares do not overlap. In the other kinds
 * there is one sequence of draws, from which each machine takes every world-th.
 */
#ifndef STK_LOADER_SAMPLER_H
#define STK_LOADER_SAMPLER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <stoker/status.h>

typedef enum stk_sampling {
    STK_SAMPLING_NATURAL,  /* every sample once per epoch */
    STK_SAMPLING_BALANCED, /* every class equally often */
    STK_SAMPLING_SQRT,     /* classes in proportion to the square root of their size */
    STK_SAMPLING_AUTO,     /* left to whoever knows the data set; natural where nobody chooses */
    STK_SAMPLING_WEIGHTED  /* samples in proportion to weights that are given */
} stk_sampling;

/* Whether it needs the classes of the samples. */
static inline bool stk_sampling_is_by_class(stk_sampling sampling) {
    return sampling == STK_SAMPLING_BALANCED || sampling == STK_SAMPLING_SQRT;
}

typedef struct stk_sampler_config {
    size_t count;          /* entries of the list, 1 or more */
    const int *labels;     /* (count), borrowed for the call; balanced and sqrt only */
    const double *weights; /* (count), borrowed for the call; weighted only */
    stk_sampling sampling;
    bool shuffle; /* natural sampling: a new order in every epoch */
    uint64_t seed;
    size_t rank;       /* 0 .. world-1 */
    size_t world;      /* 0 means 1 */
    bool equal_shares; /* leave out what cannot be shared evenly */
} stk_sampler_config;

typedef struct stk_sampler stk_sampler;

STK_CHECKED stk_status stk_sampler_new(stk_sampler **sampler, const stk_sampler_config *config,
                                       stk_error *err);
void stk_sampler_free(stk_sampler *sampler);

/* Positions of an epoch on this machine. */
size_t stk_sampler_count(const stk_sampler *sampler);

/* The number of a position among those of all machines, from which its augmentation is drawn. */
uint64_t stk_sampler_global(const stk_sampler *sampler, size_t position);

/* The entry at a position: 0 .. config.count-1. */
size_t stk_sampler_at(const stk_sampler *sampler, uint64_t epoch, size_t position);

#endif
