/*
 * blaslt_emulated.h - a look-alike of libcublasLt.so.13: products of matrices, checked as strictly
 * as the library documents them, and computed in float32.
 */
#ifndef STK_TESTS_EMULATED_BLASLT_EMULATED_H
#define STK_TESTS_EMULATED_BLASLT_EMULATED_H

#include <stddef.h>
#include <stdint.h>

#define BLASLT_VERSION 130000

enum { /* cublasStatus_t */
       BLASLT_GOOD = 0,
       BLASLT_NO_MEMORY = 3,
       BLASLT_INVALID_VALUE = 7,
       BLASLT_EXECUTION_FAILED = 13,
       BLASLT_NOT_SUPPORTED = 15
};

enum { /* cudaDataType */ BLASLT_FLOAT = 0, BLASLT_HALF = 2, BLASLT_BFLOAT16 = 14 };

enum { /* cublasComputeType_t */
       BLASLT_COMPUTE_32F = 68,
       BLASLT_COMPUTE_32F_PEDANTIC = 69,
       BLASLT_COMPUTE_TF32 = 77
};

enum { /* cublasLtMatrixLayoutAttribute_t */
       BLASLT_LAYOUT_TYPE,
       BLASLT_LAYOUT_ORDER,
       BLASLT_LAYOUT_ROWS,
       BLASLT_LAYOUT_COLUMNS,
       BLASLT_LAYOUT_LEAD,
       BLASLT_LAYOUT_ATTRIBUTES
};

enum { /* cublasLtMatmulDescAttributes_t */
       BLASLT_PRODUCT_COMPUTE = 0,
       BLASLT_PRODUCT_SCALE = 1,
       BLASLT_PRODUCT_POINTERS = 2,
       BLASLT_PRODUCT_TURN_A = 3,
       BLASLT_PRODUCT_TURN_B = 4,
       BLASLT_PRODUCT_TURN_C = 5,
       BLASLT_PRODUCT_EPILOGUE = 7,
       BLASLT_PRODUCT_BIAS = 8,
       BLASLT_PRODUCT_BIAS_TYPE = 26,
       BLASLT_PRODUCT_ATTRIBUTES
};

enum { /* cublasLtMatmulPreferenceAttributes_t */
       BLASLT_WISH_WORKSPACE = 1,
       BLASLT_WISH_REDUCTION = 3,
       BLASLT_WISH_ALIGN_A = 5,
       BLASLT_WISH_ALIGN_B = 6,
       BLASLT_WISH_ALIGN_C = 7,
       BLASLT_WISH_ALIGN_D = 8,
       BLASLT_WISH_ATTRIBUTES
};

enum { BLASLT_EPILOGUE_NONE = 1, BLASLT_EPILOGUE_RELU = 2, BLASLT_EPILOGUE_BIAS = 4 };

typedef struct blaslt_handle {
    uint32_t seal;
} blaslt_handle;

typedef struct blaslt_layout {
    uint32_t seal;
    int64_t values[BLASLT_LAYOUT_ATTRIBUTES];
} blaslt_layout;

typedef struct blaslt_product {
    uint32_t seal;
    int64_t values[BLASLT_PRODUCT_ATTRIBUTES];
} blaslt_product;

typedef struct blaslt_wish {
    uint32_t seal;
    int64_t values[BLASLT_WISH_ATTRIBUTES];
} blaslt_wish;

typedef struct blaslt_algo { /* cublasLtMatmulAlgo_t: 64 bytes that the caller copies */
    uint64_t seal;
    uint64_t number;
    uint64_t workspace_bytes;
    uint64_t alignments[4]; /* of A, B, C, D that it was asked for */
    uint64_t reserved;
} blaslt_algo;

typedef struct blaslt_offer { /* cublasLtMatmulHeuristicResult_t */
    blaslt_algo algo;
    size_t workspace_bytes;
    int status;
    float waves;
    int reserved[4];
} blaslt_offer;

/* What the library exports. */
#pragma GCC visibility push(default)
size_t cublasLtGetVersion(void);
const char *cublasLtGetStatusString(int status);
const char *cublasLtGetStatusName(int status);
int cublasLtCreate(blaslt_handle **handle);
int cublasLtDestroy(blaslt_handle *handle);
int cublasLtMatrixLayoutCreate(blaslt_layout **layout, int type, uint64_t rows, uint64_t columns,
                               int64_t lead);
int cublasLtMatrixLayoutDestroy(blaslt_layout *layout);
int cublasLtMatrixLayoutSetAttribute(blaslt_layout *layout, int name, const void *value,
                                     size_t bytes);
int cublasLtMatmulDescCreate(blaslt_product **product, int compute, int scale);
int cublasLtMatmulDescDestroy(blaslt_product *product);
int cublasLtMatmulDescSetAttribute(blaslt_product *product, int name, const void *value,
                                   size_t bytes);
int cublasLtMatmulPreferenceCreate(blaslt_wish **wish);
int cublasLtMatmulPreferenceDestroy(blaslt_wish *wish);
int cublasLtMatmulPreferenceSetAttribute(blaslt_wish *wish, int name, const void *value,
                                         size_t bytes);
int cublasLtMatmulAlgoGetHeuristic(blaslt_handle *handle, blaslt_product *product, blaslt_layout *a,
                                   blaslt_layout *b, blaslt_layout *c, blaslt_layout *d,
                                   blaslt_wish *wish, int most, blaslt_offer *offers, int *count);
int cublasLtMatmulAlgoCheck(blaslt_handle *handle, blaslt_product *product, blaslt_layout *a,
                            blaslt_layout *b, blaslt_layout *c, blaslt_layout *d,
                            const blaslt_algo *algo, blaslt_offer *offer);
int cublasLtMatmul(blaslt_handle *handle, blaslt_product *product, const void *alpha, const void *a,
                   blaslt_layout *a_layout, const void *b, blaslt_layout *b_layout,
                   const void *beta, const void *c, blaslt_layout *c_layout, void *d,
                   blaslt_layout *d_layout, const blaslt_algo *algo, void *workspace,
                   size_t workspace_bytes, void *stream);
#pragma GCC visibility pop

#endif
