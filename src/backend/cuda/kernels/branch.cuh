/*
 * branch.cuh - what lies between a norm and the activation after it: stochastic depth may drop a
 * sample, and a tensor or the norm of a tensor may be added.
 *
 *     before activation = factor * (scale * x + shift) + added
 *
 * Defines (-D), 0 where not defined:
 *   DROP    1: stochastic depth
 *   ADDED   0: nothing is added; 1: a tensor; 2: the norm of a tensor, added_scale * added +
 *           added_shift
 */
#ifndef DROP
#define DROP 0
#endif
#ifndef ADDED
#define ADDED 0
#endif

/*
 * The parameters of stochastic depth, copied to registers: the compiler would load them from memory
 * again after every store.
 */
typedef struct dropping {
    u64 seed, step;
    u32 pixels; /* rows of a sample */
    float rate;
    int node;
} dropping;

DEVICE dropping dropping_of(const cuda_step_constants *constants, u32 pixels, float rate, int node) {
    dropping drop = {0, 0, pixels, rate, node};
    if (DROP) {
        drop.seed = constants->seed;
        drop.step = constants->step;
    }
    return drop;
}

/* The factor of the row's sample: 0 where it is dropped, otherwise 1 / (1 - rate). */
DEVICE float row_factor(dropping drop, u32 row) {
    return DROP ? drop_factor(drop.rate, drop.seed, drop.step, drop.node, row / drop.pixels) : 1;
}

DEVICE lanes times(lanes x, float factor) {
    UNROLL
    for (int i = 0; i < LANES; i++) {
        x.v[i] = DROP ? x.v[i] * factor : x.v[i];
    }
    return x;
}

/* Scale and shift of a group of channels: of the norm, and of the norm of the added tensor. */
typedef struct forms {
    lanes scale, shift;
    lanes added_scale, added_shift; /* only with ADDED 2 */
} forms;

/* The input of the activation, for channel i of the group. */
DEVICE float before_act(const forms *f, int i, float x, float added, float factor) {
    float y = fmaf(f->scale.v[i], x, f->shift.v[i]);
    if (DROP) {
        y *= factor;
    }
    if (ADDED == 2) {
        y += fmaf(f->added_scale.v[i], added, f->added_shift.v[i]);
    } else if (ADDED == 1) {
        y += added;
    }
    return y;
}
