/*
 * candidates.h - inside convolution/: plans and kernels that could compute one convolution.
 *
 * A candidate is an execution plan of a library, perhaps followed by a kernel of our own, or such a
 * kernel alone. convolutions.c takes the fastest one whose result is right.
 */
#ifndef STK_BACKEND_CUDA_CONVOLUTION_CANDIDATES_H
#define STK_BACKEND_CUDA_CONVOLUTION_CANDIDATES_H

#include "backend/cuda/convolution/blaslt.h"
#include "backend/cuda/convolution/convolutions.h"
#include "backend/cuda/convolution/own_kernels.h"
#include "backend/cuda/convolution/cudnn.h"

/* The values are stored on disk. CUDA_CANDIDATE_OWN is not stored: finding it takes no time. */
typedef enum cuda_candidate_kind {
    CUDA_CANDIDATE_FUSED = 'f',   /* cuDNN, with what follows the convolution */
    CUDA_CANDIDATE_DNN = 'd',     /* cuDNN, then our kernel where something follows */
    CUDA_CANDIDATE_PRODUCT = 'p', /* cuBLASLt, then our kernel where something follows */
    CUDA_CANDIDATE_BLOCKS = 'b',  /* our kernel for 16 channels: kernels/conv_blocks.cu */
    CUDA_CANDIDATE_ROWS = 'r',    /* our kernel for 1x1 and few channels: kernels/conv_rows.cu */
    CUDA_CANDIDATE_OWN = 'o'      /* our kernel for every shape: kernels/conv_plain.cu */
} cuda_candidate_kind;

typedef struct cuda_candidate {
    cuda_candidate_kind kind;
    int64_t engine; /* of cuDNN; not known of a candidate from disk */
    cuda_dnn_plan *dnn;
    cuda_lt_plan *product;
} cuda_candidate;

/* What candidates are made with; all borrowed. */
typedef struct cuda_candidate_makers {
    const cuda_convs_config *config;
    cuda_dnn *dnn;
    cuda_lt *lt;
} cuda_candidate_makers;

#define CUDA_MOST_CANDIDATES 21

typedef struct cuda_candidates {
    cuda_candidate items[CUDA_MOST_CANDIDATES];
    int count;
} cuda_candidates;

/* All candidates that are worth timing: those of the libraries first, best offer first. May be
 * none. */
STK_CHECKED stk_status stk_cuda_candidates_gather(const cuda_candidate_makers *makers,
                                                  const cuda_conv_shape *shape,
                                                  cuda_candidates *candidates, stk_error *err);
void stk_cuda_candidates_free(const cuda_candidate_makers *makers, cuda_candidates *candidates);
void stk_cuda_candidate_free(const cuda_candidate_makers *makers, cuda_candidate *candidate);

/* Runs a candidate on the stream; `own` has the kernels of our own that it needs. */
STK_CHECKED stk_status stk_cuda_candidate_run(const cuda_candidate_makers *makers,
                                              const cuda_candidate *candidate, const cuda_own *own,
                                              const cuda_conv_call *call, stk_error *err);

/* A candidate as bytes for the store (freed with stk_mem_free; NULL: it cannot be stored), and
 * back (false: the bytes are of no use). */
void stk_cuda_candidate_write(const cuda_candidate_makers *makers, const cuda_candidate *candidate,
                              char **bytes, size_t *count);
bool stk_cuda_candidate_read(const cuda_candidate_makers *makers, const cuda_conv_shape *shape,
                             const char *bytes, size_t count, cuda_candidate *candidate);

#endif
