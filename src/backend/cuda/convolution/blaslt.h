/*
 * blaslt.h - inside convolution/: 1x1 convolutions as products of matrices, by cuBLASLt.
 *
 * A convolution whose kernel is one pixel, with stride 1, multiplies rows of channels by a matrix.
 * cuBLASLt often computes such a product faster than cuDNN. A linear layer is one, too. The numbers
 * below are cuBLASLt's binary interface; tests/unit/test_cudnn_api.c compares them with NVIDIA's
 * headers. One thread at a time.
 */
#ifndef STK_BACKEND_CUDA_CONVOLUTION_BLASLT_H
#define STK_BACKEND_CUDA_CONVOLUTION_BLASLT_H

#include "backend/cuda/convolution/convolutions.h"

/* cublasLtMatmulAlgo_t: may be stored and used again with the same version of the library. */
typedef struct cuda_lt_algo {
    uint64_t data[8];
} cuda_lt_algo;

typedef struct cuda_lt_result { /* cublasLtMatmulHeuristicResult_t */
    cuda_lt_algo algo;
    size_t workspace_bytes;
    int state; /* 0: can be used */
    float waves;
    int reserved[4];
} cuda_lt_result;

typedef struct cublasLtContext *cuda_lt_handle;
typedef void *cuda_lt_object; /* a description of a product, a matrix or preferences */

/* X(name in the table, exported name, parameters); all return a cublasStatus_t, an int. */
#define CUDA_LT_FUNCTIONS(X)                                                                  \
    X(create, "cublasLtCreate", (cuda_lt_handle * handle))                                    \
    X(destroy, "cublasLtDestroy", (cuda_lt_handle handle))                                    \
    X(product_new, "cublasLtMatmulDescCreate",                                                \
      (cuda_lt_object * product, int compute, int scale_type))                                \
    X(product_free, "cublasLtMatmulDescDestroy", (cuda_lt_object product))                    \
    X(product_set, "cublasLtMatmulDescSetAttribute",                                          \
      (cuda_lt_object product, int name, const void *value, size_t bytes))                    \
    X(matrix_new, "cublasLtMatrixLayoutCreate",                                               \
      (cuda_lt_object * matrix, int type, uint64_t rows, uint64_t columns, int64_t leading))  \
    X(matrix_free, "cublasLtMatrixLayoutDestroy", (cuda_lt_object matrix))                    \
    X(preference_new, "cublasLtMatmulPreferenceCreate", (cuda_lt_object * preference))        \
    X(preference_free, "cublasLtMatmulPreferenceDestroy", (cuda_lt_object preference))        \
    X(preference_set, "cublasLtMatmulPreferenceSetAttribute",                                 \
      (cuda_lt_object preference, int name, const void *value, size_t bytes))                 \
    X(heuristic, "cublasLtMatmulAlgoGetHeuristic",                                            \
      (cuda_lt_handle handle, cuda_lt_object product, cuda_lt_object a, cuda_lt_object b,     \
       cuda_lt_object c, cuda_lt_object d, cuda_lt_object preference, int wanted,             \
       cuda_lt_result *results, int *found))                                                  \
    X(check, "cublasLtMatmulAlgoCheck",                                                       \
      (cuda_lt_handle handle, cuda_lt_object product, cuda_lt_object a, cuda_lt_object b,     \
       cuda_lt_object c, cuda_lt_object d, const cuda_lt_algo *algo, cuda_lt_result *result)) \
    X(multiply, "cublasLtMatmul",                                                             \
      (cuda_lt_handle handle, cuda_lt_object product, const void *alpha, cuda_pointer a,      \
       cuda_lt_object a_matrix, cuda_pointer b, cuda_lt_object b_matrix, const void *beta,    \
       cuda_pointer c, cuda_lt_object c_matrix, cuda_pointer d, cuda_lt_object d_matrix,      \
       const cuda_lt_algo *algo, cuda_pointer workspace, size_t workspace_bytes,              \
       cuda_stream stream))

typedef struct cuda_lt_functions {
/* A list of parameters takes no further brackets: NOLINTNEXTLINE(bugprone-macro-parentheses) */
#define X(name, symbol, parameters) int(*name) parameters;
    CUDA_LT_FUNCTIONS(X)
#undef X
} cuda_lt_functions;

enum {
    LT_NO_MEMORY = 3, /* cublasStatus_t */
    LT_FLOAT = 0,     /* cudaDataType_t */
    LT_HALF = 2,
    LT_BFLOAT16 = 14,
    LT_COMPUTE_FLOAT = 68, /* cublasComputeType_t */
    LT_COMPUTE_TF32 = 77,
    LT_TRANSPOSE = 1,       /* cublasOperation_t */
    LT_PRODUCT_TRANS_A = 3, /* cublasLtMatmulDescAttributes_t */
    LT_PRODUCT_TRANS_B = 4,
    LT_PREFERENCE_WORKSPACE = 1, /* cublasLtMatmulPreferenceAttributes_t */
    LT_PREFERENCE_REDUCTION = 3,
    LT_REDUCTION_COMPUTE_TYPE = 2 /* cublasLtReductionScheme_t */
};

typedef struct cuda_lt cuda_lt;
typedef struct cuda_lt_plan cuda_lt_plan;

STK_CHECKED stk_status stk_cuda_lt_open(cuda_lt **lt, void *library, cuda_stream stream,
                                        stk_error *err);
void stk_cuda_lt_close(cuda_lt *lt);

/* Whether a convolution is a product of two matrices. Bias and activation do not matter. */
bool stk_cuda_lt_can(const cuda_conv_shape *shape);

/* Algorithms that the library offers, best first; *count is the room before the call. */
STK_CHECKED stk_status stk_cuda_lt_offers(cuda_lt *lt, const cuda_conv_shape *shape,
                                          cuda_lt_algo *algos, int *count, stk_error *err);

/* *plan is NULL when the library refuses this algorithm. */
STK_CHECKED stk_status stk_cuda_lt_build(cuda_lt *lt, const cuda_conv_shape *shape,
                                         const cuda_lt_algo *algo, cuda_lt_plan **plan,
                                         stk_error *err);
void stk_cuda_lt_plan_free(cuda_lt *lt, cuda_lt_plan *plan);
const cuda_lt_algo *stk_cuda_lt_plan_algo(const cuda_lt_plan *plan);

STK_CHECKED stk_status stk_cuda_lt_run(cuda_lt *lt, const cuda_lt_plan *plan,
                                       const cuda_conv_call *call, stk_error *err);

#endif
