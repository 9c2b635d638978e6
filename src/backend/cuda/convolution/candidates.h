/*
 * candidates.h - inside cuda_conv*.c: ways to compute one convolution.
 *
 * A way is a plan of a library, perhaps followed by a kernel of our own, or such a kernel alone. A
 * candidate that can be built is a way; the fastest one that can be believed is taken.
 */
#ifndef STK_BACKEND_CUDA_CONVOLUTION_CANDIDATES_H
#define STK_BACKEND_CUDA_CONVOLUTION_CANDIDATES_H

#include "backend/cuda/convolution/blaslt.h"
#include "backend/cuda/convolution/convolutions.h"
#include "backend/cuda/convolution/own_kernels.h"
#include "backend/cuda/convolution/cudnn.h"

/* The values are kept on disk; our own kernel alone is not, and is found again at once. */
typedef enum cuda_way_kind {
    CUDA_WAY_FUSED = 'f',   /* cuDNN, with what follows the convolution */
    CUDA_WAY_DNN = 'd',     /* cuDNN, then our kernel where something follows */
    CUDA_WAY_PRODUCT = 'p', /* cuBLASLt, then our kernel where something follows */
    CUDA_WAY_BLOCKS = 'b',  /* our kernel for 16 channels */
    CUDA_WAY_ROWS = 'r',    /* our kernel for 1 by 1 */
    CUDA_WAY_OWN = 'o'      /* our kernel alone */
} cuda_way_kind;

typedef struct cuda_way {
    cuda_way_kind kind;
    int64_t engine; /* of cuDNN, whose settings this is one of; not known of what was kept */
    cuda_dnn_plan *dnn;
    cuda_lt_plan *product;
} cuda_way;

/* What ways are made with. */
typedef struct cuda_way_makers {
    const cuda_convs_config *config;
    cuda_dnn *dnn;
    cuda_lt *lt;
} cuda_way_makers;

#define CUDA_MOST_WAYS 21

typedef struct cuda_ways {
    cuda_way ways[CUDA_MOST_WAYS];
    int count;
} cuda_ways;

/* All ways that are worth timing, those of the libraries first, in their order; may be none. */
STK_CHECKED stk_status stk_cuda_ways_gather(const cuda_way_makers *makers,
                                            const cuda_conv_shape *shape, cuda_ways *ways,
                                            stk_error *err);
void stk_cuda_ways_free(const cuda_way_makers *makers, cuda_ways *ways);
void stk_cuda_way_free(const cuda_way_makers *makers, cuda_way *way);

/* Runs a way on the stream; `own` holds the kernels that it needs. */
STK_CHECKED stk_status stk_cuda_way_run(const cuda_way_makers *makers, const cuda_way *way,
                                        const cuda_own *own, const cuda_conv_call *call,
                                        stk_error *err);

/* A way as bytes (freed with stk_mem_free; NULL: it cannot be kept), and back (false: no). */
void stk_cuda_way_write(const cuda_way_makers *makers, const cuda_way *way, char **bytes,
                        size_t *count);
bool stk_cuda_way_read(const cuda_way_makers *makers, const cuda_conv_shape *shape,
                       const char *bytes, size_t count, cuda_way *way);

#endif
