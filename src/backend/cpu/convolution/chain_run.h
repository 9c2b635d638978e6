/*
 * chain_run.h - inside the CPU backend: the loops of a chain over consecutive pixels.
 *
 * A chain makes z = act(f (a y + b) + r) out of the convolution's output y: a and b are the norm's
 * scale and shift per channel, f is what stochastic depth does to the sample, r is what is added.
 * Coefficients repeat: with few channels, several pixels are taken at once, `width` floats in all,
 * so that loops are long enough for vectors.
 */
#ifndef STK_BACKEND_CPU_CONVOLUTION_CHAIN_RUN_H
#define STK_BACKEND_CPU_CONVOLUTION_CHAIN_RUN_H

#include <stdbool.h>
#include <stddef.h>

typedef enum cpu_chain_act {
    CPU_ACT_NONE,
    CPU_ACT_RELU,
    CPU_ACT_RELU6,
    CPU_ACT_SILU
} cpu_chain_act;

/* Pixels of one sample, or of many when nothing is dropped. Unused pointers are NULL. */
typedef struct cpu_chain_run {
    cpu_chain_act act;
    size_t width;       /* floats after which the coefficients repeat: channels times pixels */
    size_t count;       /* floats in this run, whole pixels */
    float factor;       /* f */
    const float *scale; /* width: a */
    const float *shift; /* width: b */
    const float *y;     /* count */

    /* forward */
    const float *residual; /* count; NULL: nothing is added */
    float *z;              /* count; may be y itself */

    /* backward */
    const float *dz;   /* count */
    const float *kept; /* count: z, from which the activation's slope follows; NULL: from y */
    const float *mean; /* width */
    float *sums;       /* (2, width): gradients, and gradients times (y - mean); added to */
    /* width each: coefficients of dy = by_gradient * g + by_y * y + by_one, where g is the gradient
     * of the norm's output. */
    const float *by_gradient;
    const float *by_y;
    const float *by_one;
    float *dy;        /* count; may be dz itself; NULL: not wanted */
    float *dresidual; /* count; NULL: not wanted */
    bool add_dy;      /* dy is added to, not written */
    bool add_dresidual;
} cpu_chain_run;

void stk_cpu_chain_forward(const cpu_chain_run *run);
/* The sums that the coefficients of the gradient derive from. */
void stk_cpu_chain_sums(const cpu_chain_run *run);
void stk_cpu_chain_gradients(const cpu_chain_run *run);

/*
 * Statistics of `count` floats of y, whole pixels: the mean of each channel, and the sum of squared
 * differences from it. `lanes` is room for (3, width) floats. Sums are taken about the mean of the
 * first few pixels, so that large means cost no digits.
 */
void stk_cpu_chain_moments(const float *y, size_t count, size_t channels, size_t width,
                           float *lanes, float *mean, float *squares);

#endif
