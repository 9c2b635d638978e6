/*
 * rng.h - random numbers that are a function of what they are for.
 *
 * A generator is made from (seed, purpose, epoch, index) and gives the same numbers wherever and
 * whenever it is made: nothing depends on how many threads run or on what was drawn before. It is a
 * counter that goes through a 64-bit mixer (splitmix64). Threads: a generator belongs to one.
 */
#ifndef STK_BASE_NUMBERS_RNG_H
#define STK_BASE_NUMBERS_RNG_H

#include <stdint.h>

/* What numbers are drawn for; two purposes never share numbers. */
typedef enum stk_rng_purpose {
    STK_RNG_SPLIT = 1,   /* dividing samples into train, validation and folds */
    STK_RNG_ORDER,       /* the order of samples in an epoch */
    STK_RNG_AUGMENT,     /* how one sample is cropped, flipped, coloured */
    STK_RNG_INIT,        /* first weights */
    STK_RNG_MIX,         /* mixup and CutMix of one batch */
    STK_RNG_SAMPLE_DATA, /* the pictures of `stoker sample` */
    STK_RNG_TEST,        /* tests */
    STK_RNG_CLASS,       /* the order of the samples of one class */
    STK_RNG_PAUSE,       /* how long to wait before trying again */
    STK_RNG_SUBSET,      /* which classes and samples a subset has */
    STK_RNG_DROP         /* what dropout and stochastic depth leave out */
} stk_rng_purpose;

typedef struct stk_rng {
    uint64_t key;     /* what the numbers are for, mixed */
    uint64_t counter; /* numbers drawn so far; setting it to n skips the first n */
} stk_rng;

stk_rng stk_rng_make(uint64_t seed, stk_rng_purpose purpose, uint64_t epoch, uint64_t index);

uint64_t stk_rng_u64(stk_rng *rng);

/* In [0, 1). */
double stk_rng_uniform(stk_rng *rng);

/* In [low, high). */
double stk_rng_range(stk_rng *rng, double low, double high);

/* In 0 .. n-1; n > 0. */
uint64_t stk_rng_below(stk_rng *rng, uint64_t n);

/* Normal with mean 0 and deviation 1. */
double stk_rng_normal(stk_rng *rng);

/* Gamma(shape, 1), from which mixup's Beta is made; shape > 0. */
double stk_rng_gamma(stk_rng *rng, double shape);

/*
 * Where index i of 0 .. n-1 goes in the permutation that `key` names: a bijection that needs no
 * table, so that any position of any epoch can be asked for at once.
 */
uint64_t stk_rng_permute(uint64_t key, uint64_t n, uint64_t i);

#endif
