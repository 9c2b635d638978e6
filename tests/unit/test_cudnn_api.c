/*
 * test_cudnn_api.c - cuDNN and cuBLASLt: our numbers are NVIDIA's, and cuDNN has plans for what
 * networks need.
 *
 * cuDNN makes plans for a GPU that is only described, so that the second part needs the library
 * but no GPU.
 */
#include "check.h"

#include <dlfcn.h>

#include "backend/cuda/convolution/blaslt.h"
#include "backend/cuda/convolution/cudnn.h"
#include "base/mem.h"
#include "cuda_play.h"

#ifdef STK_HAVE_CUDNN_H
#include <cublasLt.h>
#include <cudnn_graph.h>

#define SAME(ours, theirs) _Static_assert((int)(ours) == (int)(theirs), #ours)
SAME(DNN_NO_HOST_MEMORY, CUDNN_STATUS_INTERNAL_ERROR_HOST_ALLOCATION_FAILED);
SAME(DNN_NO_DEVICE_MEMORY, CUDNN_STATUS_INTERNAL_ERROR_DEVICE_ALLOCATION_FAILED);
SAME(DNN_FLOAT, CUDNN_DATA_FLOAT);
SAME(DNN_HALF, CUDNN_DATA_HALF);
SAME(DNN_BFLOAT16, CUDNN_DATA_BFLOAT16);
SAME(DNN_POINTWISE, CUDNN_BACKEND_POINTWISE_DESCRIPTOR);
SAME(DNN_CONVOLUTION, CUDNN_BACKEND_CONVOLUTION_DESCRIPTOR);
SAME(DNN_ENGINE, CUDNN_BACKEND_ENGINE_DESCRIPTOR);
SAME(DNN_CONFIG, CUDNN_BACKEND_ENGINECFG_DESCRIPTOR);
SAME(DNN_HEURISTIC, CUDNN_BACKEND_ENGINEHEUR_DESCRIPTOR);
SAME(DNN_PLAN, CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR);
SAME(DNN_KNOB, CUDNN_BACKEND_KNOB_CHOICE_DESCRIPTOR);
SAME(DNN_OP_FORWARD, CUDNN_BACKEND_OPERATION_CONVOLUTION_FORWARD_DESCRIPTOR);
SAME(DNN_OP_FILTER, CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_FILTER_DESCRIPTOR);
SAME(DNN_OP_DATA, CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_DATA_DESCRIPTOR);
SAME(DNN_OP_POINTWISE, CUDNN_BACKEND_OPERATION_POINTWISE_DESCRIPTOR);
SAME(DNN_OP_STATS, CUDNN_BACKEND_OPERATION_GEN_STATS_DESCRIPTOR);
SAME(DNN_GRAPH, CUDNN_BACKEND_OPERATIONGRAPH_DESCRIPTOR);
SAME(DNN_PACK, CUDNN_BACKEND_VARIANT_PACK_DESCRIPTOR);
SAME(DNN_TENSOR, CUDNN_BACKEND_TENSOR_DESCRIPTOR);
SAME(DNN_TYPE_HANDLE, CUDNN_TYPE_HANDLE);
SAME(DNN_TYPE_DATA_TYPE, CUDNN_TYPE_DATA_TYPE);
SAME(DNN_TYPE_BOOLEAN, CUDNN_TYPE_BOOLEAN);
SAME(DNN_TYPE_INT64, CUDNN_TYPE_INT64);
SAME(DNN_TYPE_FLOAT, CUDNN_TYPE_FLOAT);
SAME(DNN_TYPE_DOUBLE, CUDNN_TYPE_DOUBLE);
SAME(DNN_TYPE_POINTER, CUDNN_TYPE_VOID_PTR);
SAME(DNN_TYPE_CONVOLUTION_MODE, CUDNN_TYPE_CONVOLUTION_MODE);
SAME(DNN_TYPE_HEURISTIC_MODE, CUDNN_TYPE_HEUR_MODE);
SAME(DNN_TYPE_KNOB_TYPE, CUDNN_TYPE_KNOB_TYPE);
SAME(DNN_TYPE_NUMERICAL_NOTE, CUDNN_TYPE_NUMERICAL_NOTE);
SAME(DNN_TYPE_POINTWISE_MODE, CUDNN_TYPE_POINTWISE_MODE);
SAME(DNN_TYPE_DESCRIPTOR, CUDNN_TYPE_BACKEND_DESCRIPTOR);
SAME(DNN_TYPE_STATS_MODE, CUDNN_TYPE_GENSTATS_MODE);
SAME(DNN_TYPE_BEHAVIOR_NOTE, CUDNN_TYPE_BEHAVIOR_NOTE);
SAME(DNN_TYPE_CHAR, CUDNN_TYPE_CHAR);
SAME(DNN_POINTWISE_MODE, CUDNN_ATTR_POINTWISE_MODE);
SAME(DNN_POINTWISE_PRECISION, CUDNN_ATTR_POINTWISE_MATH_PREC);
SAME(DNN_POINTWISE_UPPER_CLIP, CUDNN_ATTR_POINTWISE_RELU_UPPER_CLIP);
SAME(DNN_POINTWISE_SWISH_BETA, CUDNN_ATTR_POINTWISE_SWISH_BETA);
SAME(DNN_CONVOLUTION_PRECISION, CUDNN_ATTR_CONVOLUTION_COMP_TYPE);
SAME(DNN_CONVOLUTION_MODE, CUDNN_ATTR_CONVOLUTION_CONV_MODE);
SAME(DNN_CONVOLUTION_DILATIONS, CUDNN_ATTR_CONVOLUTION_DILATIONS);
SAME(DNN_CONVOLUTION_STRIDES, CUDNN_ATTR_CONVOLUTION_FILTER_STRIDES);
SAME(DNN_CONVOLUTION_POST_PADDINGS, CUDNN_ATTR_CONVOLUTION_POST_PADDINGS);
SAME(DNN_CONVOLUTION_PRE_PADDINGS, CUDNN_ATTR_CONVOLUTION_PRE_PADDINGS);
SAME(DNN_CONVOLUTION_DIMENSIONS, CUDNN_ATTR_CONVOLUTION_SPATIAL_DIMS);
SAME(DNN_HEURISTIC_MODE, CUDNN_ATTR_ENGINEHEUR_MODE);
SAME(DNN_HEURISTIC_GRAPH, CUDNN_ATTR_ENGINEHEUR_OPERATION_GRAPH);
SAME(DNN_HEURISTIC_RESULTS, CUDNN_ATTR_ENGINEHEUR_RESULTS);
SAME(DNN_CONFIG_ENGINE, CUDNN_ATTR_ENGINECFG_ENGINE);
SAME(DNN_CONFIG_KNOBS, CUDNN_ATTR_ENGINECFG_KNOB_CHOICES);
SAME(DNN_PLAN_HANDLE, CUDNN_ATTR_EXECUTION_PLAN_HANDLE);
SAME(DNN_PLAN_CONFIG, CUDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG);
SAME(DNN_PLAN_WORKSPACE, CUDNN_ATTR_EXECUTION_PLAN_WORKSPACE_SIZE);
SAME(DNN_PLAN_JSON, CUDNN_ATTR_EXECUTION_PLAN_JSON_REPRESENTATION);
SAME(DNN_KNOB_TYPE, CUDNN_ATTR_KNOB_CHOICE_KNOB_TYPE);
SAME(DNN_KNOB_VALUE, CUDNN_ATTR_KNOB_CHOICE_KNOB_VALUE);
SAME(DNN_FORWARD_ALPHA, CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_ALPHA);
SAME(DNN_FORWARD_BETA, CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_BETA);
SAME(DNN_FORWARD_CONVOLUTION, CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_CONV_DESC);
SAME(DNN_FORWARD_W, CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_W);
SAME(DNN_FORWARD_X, CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_X);
SAME(DNN_FORWARD_Y, CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_Y);
SAME(DNN_DATA_ALPHA, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_ALPHA);
SAME(DNN_DATA_BETA, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_BETA);
SAME(DNN_DATA_CONVOLUTION, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_CONV_DESC);
SAME(DNN_DATA_W, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_W);
SAME(DNN_DATA_DX, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_DX);
SAME(DNN_DATA_DY, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_DY);
SAME(DNN_FILTER_ALPHA, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_ALPHA);
SAME(DNN_FILTER_BETA, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_BETA);
SAME(DNN_FILTER_CONVOLUTION, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_CONV_DESC);
SAME(DNN_FILTER_DW, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_DW);
SAME(DNN_FILTER_X, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_X);
SAME(DNN_FILTER_DY, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_DY);
SAME(DNN_OP_POINTWISE_WHAT, CUDNN_ATTR_OPERATION_POINTWISE_PW_DESCRIPTOR);
SAME(DNN_OP_POINTWISE_X, CUDNN_ATTR_OPERATION_POINTWISE_XDESC);
SAME(DNN_OP_POINTWISE_B, CUDNN_ATTR_OPERATION_POINTWISE_BDESC);
SAME(DNN_OP_POINTWISE_Y, CUDNN_ATTR_OPERATION_POINTWISE_YDESC);
SAME(DNN_STATS_MODE, CUDNN_ATTR_OPERATION_GENSTATS_MODE);
SAME(DNN_STATS_PRECISION, CUDNN_ATTR_OPERATION_GENSTATS_MATH_PREC);
SAME(DNN_STATS_X, CUDNN_ATTR_OPERATION_GENSTATS_XDESC);
SAME(DNN_STATS_SUM, CUDNN_ATTR_OPERATION_GENSTATS_SUMDESC);
SAME(DNN_STATS_SQUARES, CUDNN_ATTR_OPERATION_GENSTATS_SQSUMDESC);
SAME(DNN_GRAPH_HANDLE, CUDNN_ATTR_OPERATIONGRAPH_HANDLE);
SAME(DNN_GRAPH_OPS, CUDNN_ATTR_OPERATIONGRAPH_OPS);
SAME(DNN_TENSOR_ALIGNMENT, CUDNN_ATTR_TENSOR_BYTE_ALIGNMENT);
SAME(DNN_TENSOR_DATA_TYPE, CUDNN_ATTR_TENSOR_DATA_TYPE);
SAME(DNN_TENSOR_DIMENSIONS, CUDNN_ATTR_TENSOR_DIMENSIONS);
SAME(DNN_TENSOR_STRIDES, CUDNN_ATTR_TENSOR_STRIDES);
SAME(DNN_TENSOR_ID, CUDNN_ATTR_TENSOR_UNIQUE_ID);
SAME(DNN_TENSOR_VIRTUAL, CUDNN_ATTR_TENSOR_IS_VIRTUAL);
SAME(DNN_PACK_IDS, CUDNN_ATTR_VARIANT_PACK_UNIQUE_IDS);
SAME(DNN_PACK_POINTERS, CUDNN_ATTR_VARIANT_PACK_DATA_POINTERS);
SAME(DNN_PACK_WORKSPACE, CUDNN_ATTR_VARIANT_PACK_WORKSPACE);
SAME(DNN_ENGINE_GRAPH, CUDNN_ATTR_ENGINE_OPERATION_GRAPH);
SAME(DNN_ENGINE_NUMBER, CUDNN_ATTR_ENGINE_GLOBAL_INDEX);
SAME(DNN_ENGINE_NUMERICAL_NOTES, CUDNN_ATTR_ENGINE_NUMERICAL_NOTE);
SAME(DNN_ENGINE_BEHAVIOR_NOTES, CUDNN_ATTR_ENGINE_BEHAVIOR_NOTE);
#if CUDNN_VERSION >= 90800
SAME(DNN_DEVICE, CUDNN_BACKEND_DEVICEPROP_DESCRIPTOR);
SAME(DNN_HEURISTIC_DEVICE, CUDNN_ATTR_ENGINEHEUR_DEVICEPROP);
SAME(DNN_PLAN_DEVICE, CUDNN_ATTR_EXECUTION_PLAN_DEVICEPROP);
SAME(DNN_ENGINE_DEVICE, CUDNN_ATTR_ENGINE_DEVICEPROP);
SAME(DNN_DEVICE_HANDLE, CUDNN_ATTR_DEVICEPROP_HANDLE);
SAME(DNN_DEVICE_JSON, CUDNN_ATTR_DEVICEPROP_JSON_REPRESENTATION);
#endif
SAME(DNN_ADD, CUDNN_POINTWISE_ADD);
SAME(DNN_MULTIPLY, CUDNN_POINTWISE_MUL);
SAME(DNN_RELU, CUDNN_POINTWISE_RELU_FWD);
SAME(DNN_SIGMOID, CUDNN_POINTWISE_SIGMOID_FWD);
SAME(DNN_SWISH, CUDNN_POINTWISE_SWISH_FWD);
SAME(DNN_NOTE_TENSOR_CORE, CUDNN_NUMERICAL_NOTE_TENSOR_CORE);
SAME(DNN_NOTE_DOWN_CONVERT, CUDNN_NUMERICAL_NOTE_DOWN_CONVERT_INPUTS);
SAME(DNN_NOTE_REDUCED_PRECISION, CUDNN_NUMERICAL_NOTE_REDUCED_PRECISION_REDUCTION);
SAME(DNN_NOTE_FFT, CUDNN_NUMERICAL_NOTE_FFT);
SAME(DNN_NOTE_NONDETERMINISTIC, CUDNN_NUMERICAL_NOTE_NONDETERMINISTIC);
SAME(DNN_NOTE_WINOGRAD, CUDNN_NUMERICAL_NOTE_WINOGRAD);
SAME(DNN_NOTE_WINOGRAD_LAST, CUDNN_NUMERICAL_NOTE_WINOGRAD_TILE_13x13);
SAME(DNN_BEHAVIOR_COMPILED, CUDNN_BEHAVIOR_NOTE_RUNTIME_COMPILATION);
SAME(DNN_CROSS_CORRELATION, CUDNN_CROSS_CORRELATION);
SAME(DNN_SUM_AND_SQUARES, CUDNN_GENSTATS_SUM_SQSUM);
SAME(DNN_HEURISTIC_A, CUDNN_HEUR_MODE_A);
SAME(DNN_HEURISTIC_B, CUDNN_HEUR_MODE_B);
SAME(DNN_HEURISTIC_FALLBACK, CUDNN_HEUR_MODE_FALLBACK);

SAME(LT_NO_MEMORY, CUBLAS_STATUS_ALLOC_FAILED);
SAME(LT_FLOAT, CUDA_R_32F);
SAME(LT_HALF, CUDA_R_16F);
SAME(LT_BFLOAT16, CUDA_R_16BF);
SAME(LT_COMPUTE_FLOAT, CUBLAS_COMPUTE_32F);
SAME(LT_COMPUTE_TF32, CUBLAS_COMPUTE_32F_FAST_TF32);
SAME(LT_TRANSPOSE, CUBLAS_OP_T);
SAME(LT_PRODUCT_TRANS_A, CUBLASLT_MATMUL_DESC_TRANSA);
SAME(LT_PRODUCT_TRANS_B, CUBLASLT_MATMUL_DESC_TRANSB);
SAME(LT_PREFERENCE_WORKSPACE, CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES);
SAME(LT_PREFERENCE_REDUCTION, CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK);
SAME(LT_REDUCTION_COMPUTE_TYPE, CUBLASLT_REDUCTION_SCHEME_COMPUTE_TYPE);
SAME(sizeof(cuda_lt_algo), sizeof(cublasLtMatmulAlgo_t));
SAME(sizeof(cuda_lt_result), sizeof(cublasLtMatmulHeuristicResult_t));
SAME(offsetof(cuda_lt_result, workspace_bytes),
     offsetof(cublasLtMatmulHeuristicResult_t, workspaceSize));
SAME(offsetof(cuda_lt_result, state), offsetof(cublasLtMatmulHeuristicResult_t, state));

static void names_and_numbers_are_nvidias(void) {
    CHECK_INT(DNN_TENSOR_ID, CUDNN_ATTR_TENSOR_UNIQUE_ID); /* the others are compared above */
}
#else
static void names_and_numbers_are_nvidias(void) {
    CHECK_SKIP("cudnn_graph.h and cublasLt.h are not installed");
}
#endif

/* ---- plans for a GPU that is described ---- */

static const char h200[] =
    "{\"deviceName\":\"NVIDIA H200\",\"deviceVer\":900,\"driverVer\":13000,\"cudaDeviceId\":0,"
    "\"multiProcessorCount\":132,\"warpSize\":32,\"maxGridSize\":[2147483647,65535,65535],"
    "\"maxBlockSize\":[1024,1024,64],\"regsPerBlock\":65536,\"maxSharedMemoryPerBlock\":49152,"
    "\"maxSharedMemoryPerBlockOptin\":232448,\"reservedSharedMemoryPerBlock\":1024,"
    "\"maxRegistersPerSM\":65536,\"maxCtasPerSM\":32,\"maxThreadsPerBlock\":1024,"
    "\"maxThreadsPerSM\":2048,\"pciDeviceId\":0,\"isTccDriver\":0,\"supportCoopLaunch\":1,"
    "\"totalGlobalMem\":150754820096,\"smClockRateKHz\":1980000,\"memClockRateKHz\":3201000,"
    "\"l2CacheSize\":62914560}";

/* cuDNN for the GPU above; NULL: the test is skipped. */
static cuda_dnn *described(void) {
    static const char *const places[] = {"libcudnn.so.9", "/usr/local/cuda/lib64/libcudnn.so.9"};
    void *library = NULL;
    cuda_dnn *dnn = NULL;
#ifdef CHECK_SANITIZED
    check_skip_reason = "cuDNN leaves memory behind, which a sanitizer takes for ours";
    return NULL;
#endif
    for (size_t i = 0; i < 2 && library == NULL; i++) {
        library = dlopen(places[i], RTLD_NOW | RTLD_NODELETE);
    }
    if (library == NULL || stk_cuda_dnn_open(&dnn, library, NULL, h200, NULL) != STK_OK) {
        check_skip_reason = "no cuDNN of 9.8 or later is installed";
    }
    return dnn;
}

/* How many of its offers can be built; the first goes to text and back. */
static int plans_of(cuda_dnn *dnn, const cuda_conv_shape *shape, bool plain) {
    cuda_dnn_offer offers[64];
    stk_error err = {0};
    int count = 64;
    int built = 0;
    CHECK_INT(stk_cuda_dnn_offers(dnn, shape, plain, false, offers, &count, &err), STK_OK);
    for (int i = 0; i < count; i++) {
        cuda_dnn_plan *plan = NULL;
        cuda_dnn_plan *again = NULL;
        char *text = NULL;
        if (!offers[i].compiled) {
            CHECK_INT(stk_cuda_dnn_build(dnn, shape, plain, &offers[i], &plan, &err), STK_OK);
        }
        if (plan != NULL && built++ == 0) {
            CHECK_INT(stk_cuda_dnn_write(dnn, plan, &text, &err), STK_OK);
            CHECK_INT(stk_cuda_dnn_read(dnn, text, &again, &err), STK_OK);
            CHECK(again != NULL);
            stk_mem_free(text);
            stk_cuda_dnn_plan_free(again);
        }
        stk_cuda_dnn_plan_free(plan);
    }
    return built;
}

typedef struct probe {
    const char *what;
    int batch, size, channels, filters, kernel, stride, pad, out;
} probe;

static const probe probes[] = {
    {"stem of ResNet", 256, 224, 4, 64, 7, 2, 3, 112},
    {"stem of EfficientNet", 128, 380, 4, 48, 3, 2, 0, 190}, /* padded below and right only */
    {"3 x 3", 256, 56, 64, 64, 3, 1, 1, 56},
    {"3 x 3 with stride", 256, 56, 128, 128, 3, 2, 1, 28},
    {"shortcut with stride", 256, 56, 256, 512, 1, 2, 0, 28},
    {"expansion", 256, 14, 256, 1024, 1, 1, 0, 14},
    {"narrow 1 x 1", 128, 190, 48, 24, 1, 1, 0, 190},
    {"last 1 x 1", 128, 12, 448, 1792, 1, 1, 0, 12},
    {"linear", 32, 1, 2048, 1000, 1, 1, 0, 1},
    {"linear with few classes", 256, 1, 1792, 10, 1, 1, 0, 1},
    {"20 channels", 8, 9, 20, 20, 3, 1, 1, 9},
    {"odd channels", 8, 9, 5, 7, 3, 2, 1, 5},
    {"3 channels", 8, 32, 3, 16, 3, 1, 1, 32},
    {"more padding behind", 8, 16, 16, 24, 5, 2, 1, 8},
    {"one pixel", 8, 1, 512, 512, 3, 1, 1, 1},
    {"a row too many", 8, 8, 64, 64, 1, 2, 0, 4},
    {"stem of ResNet in blocks", 256, 115, 16, 64, 4, 1, 0, 112},
    {"stem of EfficientNet in blocks", 128, 191, 16, 48, 2, 1, 0, 190},
};

static cuda_conv_shape shape_of(const probe *p, cuda_conv_kind kind, cuda_type type) {
    return (cuda_conv_shape){.kind = kind,
                             .type = type,
                             .batch = p->batch,
                             .height = p->size,
                             .width = p->size,
                             .channels = p->channels,
                             .out_height = p->out,
                             .out_width = p->out,
                             .filters = p->filters,
                             .kernel = p->kernel,
                             .stride = p->stride,
                             .pad = p->pad,
                             .act = STK_OP_COUNT};
}

/* Types take turns, as in cuda_play.h, unless STK_TEST_FULL is set. */
static void every_shape_has_plans(void) {
    bool is_full = check_is_full();
    cuda_dnn *dnn = described();
    if (dnn == NULL) {
        return;
    }
    for (size_t i = 0; i < sizeof probes / sizeof probes[0]; i++) {
        for (int v = 0; v < 3 * 4 * 2; v++) {
            int kind = v % 3, type = v / 3 % 4, more = v / 12;
            cuda_conv_shape shape =
                shape_of(&probes[i], (cuda_conv_kind)kind, (cuda_type)(type % 3));
            shape.strict = type == 3;
            shape.accumulate = more == 1;
            if (!is_full && i % 4 != (size_t)type) {
                continue;
            }
            if (more == 0 || kind == CUDA_CONV_DATA) {
                if (plans_of(dnn, &shape, true) == 0) {
                    CHECK_FAIL("%s: kind %d, type %d, accumulate %d has no plan", probes[i].what,
                               kind, type, more);
                }
            }
        }
    }
    stk_cuda_dnn_close(dnn);
}

/* With ReLU there are engines that need no compiling; others may have none. */
static void what_follows_can_be_fused(void) {
    cuda_dnn *dnn = described();
    if (dnn == NULL) {
        return;
    }
    for (int v = 0; v < 3 * 2 * 2; v++) {
        cuda_conv_shape shape =
            shape_of(&probes[v % 2 == 0 ? 2 : 5], CUDA_CONV_FORWARD, (cuda_type)(v / 4));
        shape.bias = true;
        shape.added = v / 2 % 2 == 1;
        shape.act = STK_OP_RELU;
        if (plans_of(dnn, &shape, false) == 0) {
            CHECK_FAIL("variant %d has no plan", v);
        }
    }
    stk_cuda_dnn_close(dnn);
}

/* Of ResNet-50, behind its stem; and the 1 x 1 convolutions of EfficientNet-B4. */
static const probe normalised[] = {
    {"1", 256, 56, 64, 64, 1, 1, 0, 56},       {"2", 256, 56, 64, 64, 3, 1, 1, 56},
    {"3", 256, 56, 64, 256, 1, 1, 0, 56},      {"4", 256, 56, 256, 64, 1, 1, 0, 56},
    {"5", 256, 56, 256, 128, 1, 1, 0, 56},     {"6", 256, 56, 128, 128, 3, 2, 1, 28},
    {"7", 256, 28, 128, 512, 1, 1, 0, 28},     {"8", 256, 56, 256, 512, 1, 2, 0, 28},
    {"9", 256, 28, 512, 128, 1, 1, 0, 28},     {"10", 256, 28, 128, 128, 3, 1, 1, 28},
    {"11", 256, 28, 512, 256, 1, 1, 0, 28},    {"12", 256, 28, 256, 256, 3, 2, 1, 14},
    {"13", 256, 14, 256, 1024, 1, 1, 0, 14},   {"14", 256, 28, 512, 1024, 1, 2, 0, 14},
    {"15", 256, 14, 1024, 256, 1, 1, 0, 14},   {"16", 256, 14, 256, 256, 3, 1, 1, 14},
    {"17", 256, 14, 1024, 512, 1, 1, 0, 14},   {"18", 256, 14, 512, 512, 3, 2, 1, 7},
    {"19", 256, 7, 512, 2048, 1, 1, 0, 7},     {"20", 256, 14, 1024, 2048, 1, 2, 0, 7},
    {"21", 256, 7, 2048, 512, 1, 1, 0, 7},     {"22", 256, 7, 512, 512, 3, 1, 1, 7},
    {"B4 1", 128, 190, 24, 144, 1, 1, 0, 190}, {"B4 2", 128, 12, 448, 1792, 1, 1, 0, 12},
    {"B4 3", 128, 48, 336, 56, 1, 1, 0, 48},
};

static void statistics_can_be_fused_in_float16(void) {
    cuda_dnn *dnn = described();
    if (dnn == NULL) {
        return;
    }
    for (size_t i = 0; i < sizeof normalised / sizeof normalised[0]; i++) {
        cuda_conv_shape shape = shape_of(&normalised[i], CUDA_CONV_FORWARD, CUDA_TYPE_F16);
        shape.stats = true;
        if (plans_of(dnn, &shape, false) == 0) {
            CHECK_FAIL("%s has no plan", normalised[i].what);
        }
    }
    stk_cuda_dnn_close(dnn);
}

/* In front of the second and third convolution of a block, forward and for their gradients. */
static void norms_in_front_can_be_fused_in_float16(void) {
    cuda_dnn *dnn = described();
    if (dnn == NULL) {
        return;
    }
    for (size_t i = 0; i < sizeof normalised / sizeof normalised[0]; i++) {
        cuda_conv_shape shape = shape_of(&normalised[i], CUDA_CONV_FORWARD, CUDA_TYPE_F16);
        shape.stats = true;
        shape.in_norm = true;
        if (plans_of(dnn, &shape, false) == 0) {
            CHECK_FAIL("%s has no plan", normalised[i].what);
        }
        shape.kind = CUDA_CONV_WEIGHT;
        shape.stats = false;
        if (plans_of(dnn, &shape, false) == 0) {
            CHECK_FAIL("%s has no plan for its gradient", normalised[i].what);
        }
    }
    stk_cuda_dnn_close(dnn);
}

static void strict_and_deterministic_leave_engines_out(void) {
    cuda_dnn *dnn = described();
    if (dnn == NULL) {
        return;
    }
    cuda_dnn_offer offers[64];
    stk_error err = {0};
    int counts[2][2];
    for (int v = 0; v < 4; v++) {
        cuda_conv_shape shape = shape_of(&probes[2], CUDA_CONV_WEIGHT, CUDA_TYPE_F32);
        int count = 64;
        shape.strict = v / 2 == 1;
        CHECK_INT(stk_cuda_dnn_offers(dnn, &shape, true, v % 2 == 1, offers, &count, &err), STK_OK);
        CHECK(count > 0);
        counts[v / 2][v % 2] = count;
    }
    CHECK(counts[1][0] < counts[0][0]);
    CHECK(counts[0][1] < counts[0][0]);
    stk_cuda_dnn_close(dnn);
}

static const check_test tests[] = {
    TEST(names_and_numbers_are_nvidias),
    TEST(every_shape_has_plans),
    TEST(what_follows_can_be_fused),
    TEST(statistics_can_be_fused_in_float16),
    TEST(norms_in_front_can_be_fused_in_float16),
    TEST(strict_and_deterministic_leave_engines_out),
};

CHECK_MAIN(tests)
