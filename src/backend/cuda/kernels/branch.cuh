/*
 * branch.cuh - what happens between a norm and the activation after it: a sample may be dropped
 * (stochastic depth), and a value or the norm of one may be added.
 *
 * Defines: DROP: 0 or 1; ADDED: 0, 1 a value, 2 the norm of one. What is not defined is 0.
 */
#ifndef DROP
#define DROP 0
#endif
#ifndef ADDED
#define ADDED 0
#endif

/*
 * What a launch knows of stochastic depth: in registers, since what is in memory would be read
 * again after every store.
 */
typedef struct dropping {
    u64 seed, step;
    u32 pixels; /* of a sample */
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

/* What a row's sample is multiplied with. */
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

/* scale and shift of the norm, and of the norm of what is added. */
typedef struct forms {
    lanes scale, shift;
    lanes added_scale, added_shift; /* with ADDED 2 */
} forms;

/* What the activation reads of channel i of the group. */
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
