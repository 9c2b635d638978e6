/* conv_weight.h - inside the CPU backend: the gradient of a convolution's weights, divided into
 * tasks. Only for conv.c; other kernels use conv.h. */
#ifndef STK_BACKEND_CPU_CONVOLUTION_CONV_WEIGHT_H
#define STK_BACKEND_CPU_CONVOLUTION_CONV_WEIGHT_H

#include "backend/cpu/gemm/patches.h"

/* dW (filters, depth) = dy' (filters, pixels) times the patches (pixels, depth). */
typedef struct cpu_weight_product {
    const cpu_gemm *gemm;
    cpu_patches patches;
    size_t pixels; /* patches of the batch */
    size_t filters;
    const float *dy; /* (pixels, filters) */
    float *grad;     /* (filters, depth), added to */
    float *parts;    /* (part_count, filters, depth); unused when there is one */
    /* A task takes a part of the pixels, some columns and some filters. */
    size_t part_count;
    size_t col_shares;
    size_t filter_shares;
} cpu_weight_product;

#define CPU_WEIGHT_FILTERS ((size_t)336) /* columns of dy that are packed at a time */
/* Floats of scratch that a task needs of its thread. */
#define CPU_WEIGHT_SCRATCH (CPU_GEMM_DEPTH * CPU_GEMM_PITCH + CPU_WEIGHT_FILTERS * CPU_GEMM_DEPTH)

/* Fills in how the work is divided; gemm, patches, pixels and filters are given. */
void stk_cpu_weight_divide(cpu_weight_product *product);
/* Floats of `parts`: never less for more pixels. */
size_t stk_cpu_weight_part_floats(const cpu_weight_product *product);
/* scratch is (threads, CPU_WEIGHT_SCRATCH). */
void stk_cpu_weight_run(const cpu_weight_product *product, stk_pool *pool, float *scratch);

#endif
