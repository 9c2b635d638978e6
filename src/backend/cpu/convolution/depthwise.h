/*
 * depthwise.h - inside the CPU backend: depthwise convolution, in the parts that chains use,
 * and the loops over vectors that depthwise_tile.h compiles per kind of instructions.
 */
#ifndef STK_BACKEND_CPU_CONVOLUTION_DEPTHWISE_H
#define STK_BACKEND_CPU_CONVOLUTION_DEPTHWISE_H

#include "backend/cpu/kernels/kernels.h"

/*
 * y = depthwise(x). With `stats` not NULL it also writes statistics of y while y is in the cache:
 * all pixels of the batch are cut into blocks of stk_cpu_depthwise_block() pixels, of which the
 * last may be short, and `stats` is (blocks, 2, channels): means, and sums of squared differences
 * from them. `lanes` is what stk_cpu_chain_moments() wants per thread, `lanes_step` floats apart.
 */
void stk_cpu_depthwise_forward(const cpu_call *call, float *stats, size_t width, float *lanes,
                               size_t lanes_step);

/* Pixels of one block for an output of this shape. */
size_t stk_cpu_depthwise_block(stk_shape out);

/* Rows of taps that one line takes at a time; more come in further rounds. */
#define CPU_LINE_ROWS 8

/*
 * A row of outputs, each a sum over rows of taps:
 *     out[o] = sum over r, k of rows[r][column[r] + o * stride + k] * weights[r][k]
 * where columns outside 0 .. columns-1 count as zeros. All have `channels` floats per column.
 */
typedef struct cpu_line {
    size_t channels;
    int row_count;
    const float *rows[CPU_LINE_ROWS];    /* (columns, channels) */
    const float *weights[CPU_LINE_ROWS]; /* (taps, channels) */
    int column[CPU_LINE_ROWS];           /* under the first tap of output 0 */
    int columns;
    int taps;   /* 1, 2, 3 or 5 per row */
    int stride; /* columns from one output to the next; 1 tap: any; 2 taps: 1; 3 or 5: 1 or 2 */
    int outputs;
    float *out;
    size_t out_step; /* floats from one output to the next */
    bool add;        /* to `out`, instead of writing it */
} cpu_line;

/* The gradient of the weights in channels from .. to-1, over one sample. */
typedef struct cpu_line_weights {
    size_t channels;
    size_t from, to;
    const float *x;     /* (in.height, in.width, channels) */
    const float *dy;    /* (out.height, out.width, channels) */
    const float *zeros; /* a row of x outside the picture */
    stk_shape in;
    stk_shape out;
    int kernel, stride, pad;
    float *sums; /* (taps, channels): added to */
} cpu_line_weights;

#endif
