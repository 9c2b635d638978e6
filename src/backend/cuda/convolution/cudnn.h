/*
 * cudnn.h - inside convolution/: cuDNN's graph interface, as far as convolutions need it.
 *
 * A shape becomes a graph of operations. Heuristics offer engines with settings (cuDNN calls these
 * knobs). An offer that is built is an execution plan, which can run and can be stored as text. The
 * numbers below are cuDNN's binary interface, which version 9 keeps stable;
 * tests/unit/test_cudnn_api.c compares them with NVIDIA's headers where these are installed. For
 * threads see stk_cuda_dnn_threaded().
 */
#ifndef STK_BACKEND_CUDA_CONVOLUTION_CUDNN_H
#define STK_BACKEND_CUDA_CONVOLUTION_CUDNN_H

#include "backend/cuda/convolution/convolutions.h"

typedef struct cudnnContext *cuda_dnn_handle;
typedef void *cuda_dnn_descriptor;

/* X(name in the table, exported name, parameters); all return a cudnnStatus_t, an int. */
#define CUDA_DNN_FUNCTIONS(X)                                                                  \
    X(create, "cudnnCreate", (cuda_dnn_handle * handle))                                       \
    X(destroy, "cudnnDestroy", (cuda_dnn_handle handle))                                       \
    X(set_stream, "cudnnSetStream", (cuda_dnn_handle handle, cuda_stream stream))              \
    X(describe, "cudnnBackendCreateDescriptor", (int type, cuda_dnn_descriptor *descriptor))   \
    X(drop, "cudnnBackendDestroyDescriptor", (cuda_dnn_descriptor descriptor))                 \
    X(finish, "cudnnBackendFinalize", (cuda_dnn_descriptor descriptor))                        \
    X(set, "cudnnBackendSetAttribute",                                                         \
      (cuda_dnn_descriptor descriptor, int name, int type, int64_t count, const void *values)) \
    X(get, "cudnnBackendGetAttribute",                                                         \
      (cuda_dnn_descriptor descriptor, int name, int type, int64_t room, int64_t *count,       \
       void *values))                                                                          \
    X(execute, "cudnnBackendExecute",                                                          \
      (cuda_dnn_handle handle, cuda_dnn_descriptor plan, cuda_dnn_descriptor pack))

typedef struct cuda_dnn_functions {
/* A list of parameters takes no further brackets: NOLINTNEXTLINE(bugprone-macro-parentheses) */
#define X(name, symbol, parameters) int(*name) parameters;
    CUDA_DNN_FUNCTIONS(X)
#undef X
    const char *(*error_string)(int status);
} cuda_dnn_functions;

/* cudnnStatus_t: values that the code distinguishes */
enum { DNN_NO_HOST_MEMORY = 4003, DNN_NO_DEVICE_MEMORY = 4004 };

/* cudnnDataType_t */
enum { DNN_FLOAT = 0, DNN_HALF = 2, DNN_BFLOAT16 = 9 };

/* cudnnBackendDescriptorType_t */
enum { DNN_POINTWISE = 0, DNN_CONVOLUTION = 1, DNN_ENGINE = 2, DNN_CONFIG = 3, DNN_HEURISTIC = 4 };
enum { DNN_PLAN = 5, DNN_KNOB = 7, DNN_OP_FORWARD = 10, DNN_OP_FILTER = 11, DNN_OP_DATA = 12 };
enum { DNN_OP_POINTWISE = 13, DNN_OP_STATS = 14, DNN_GRAPH = 15, DNN_PACK = 16, DNN_TENSOR = 17 };
enum { DNN_DEVICE = 38 };

/* cudnnBackendAttributeType_t */
enum { DNN_TYPE_HANDLE = 0, DNN_TYPE_DATA_TYPE = 1, DNN_TYPE_BOOLEAN = 2, DNN_TYPE_INT64 = 3 };
enum { DNN_TYPE_FLOAT = 4, DNN_TYPE_DOUBLE = 5, DNN_TYPE_POINTER = 6 };
enum { DNN_TYPE_CONVOLUTION_MODE = 7, DNN_TYPE_HEURISTIC_MODE = 8, DNN_TYPE_KNOB_TYPE = 9 };
enum { DNN_TYPE_NUMERICAL_NOTE = 11, DNN_TYPE_POINTWISE_MODE = 14, DNN_TYPE_DESCRIPTOR = 15 };
enum { DNN_TYPE_STATS_MODE = 16, DNN_TYPE_BEHAVIOR_NOTE = 19, DNN_TYPE_CHAR = 24 };

/* cudnnBackendAttributeName_t */
enum { DNN_POINTWISE_MODE = 0, DNN_POINTWISE_PRECISION = 1, DNN_POINTWISE_UPPER_CLIP = 4 };
enum { DNN_POINTWISE_SWISH_BETA = 8 };
enum { DNN_CONVOLUTION_PRECISION = 100, DNN_CONVOLUTION_MODE = 101 };
enum { DNN_CONVOLUTION_DILATIONS = 102, DNN_CONVOLUTION_STRIDES = 103 };
enum { DNN_CONVOLUTION_POST_PADDINGS = 104, DNN_CONVOLUTION_PRE_PADDINGS = 105 };
enum { DNN_CONVOLUTION_DIMENSIONS = 106 };
enum { DNN_HEURISTIC_MODE = 200, DNN_HEURISTIC_GRAPH = 201, DNN_HEURISTIC_RESULTS = 202 };
enum { DNN_HEURISTIC_DEVICE = 204 };
enum { DNN_CONFIG_ENGINE = 300, DNN_CONFIG_KNOBS = 302 };
enum { DNN_PLAN_HANDLE = 400, DNN_PLAN_CONFIG = 401, DNN_PLAN_WORKSPACE = 402 };
enum { DNN_PLAN_JSON = 405, DNN_PLAN_DEVICE = 407 };
enum { DNN_KNOB_TYPE = 600, DNN_KNOB_VALUE = 601 };
enum { DNN_FORWARD_ALPHA = 700, DNN_FORWARD_BETA = 701, DNN_FORWARD_CONVOLUTION = 702 };
enum { DNN_FORWARD_W = 703, DNN_FORWARD_X = 704, DNN_FORWARD_Y = 705 };
enum { DNN_DATA_ALPHA = 706, DNN_DATA_BETA = 707, DNN_DATA_CONVOLUTION = 708, DNN_DATA_W = 709 };
enum { DNN_DATA_DX = 710, DNN_DATA_DY = 711 };
enum { DNN_FILTER_ALPHA = 712, DNN_FILTER_BETA = 713, DNN_FILTER_CONVOLUTION = 714 };
enum { DNN_FILTER_DW = 715, DNN_FILTER_X = 716, DNN_FILTER_DY = 717 };
enum { DNN_OP_POINTWISE_WHAT = 750, DNN_OP_POINTWISE_X = 751, DNN_OP_POINTWISE_B = 752 };
enum { DNN_OP_POINTWISE_Y = 753 };
enum { DNN_STATS_MODE = 770, DNN_STATS_PRECISION = 771, DNN_STATS_X = 772, DNN_STATS_SUM = 773 };
enum { DNN_STATS_SQUARES = 774 };
enum { DNN_GRAPH_HANDLE = 800, DNN_GRAPH_OPS = 801 };
enum { DNN_TENSOR_ALIGNMENT = 900, DNN_TENSOR_DATA_TYPE = 901, DNN_TENSOR_DIMENSIONS = 902 };
enum { DNN_TENSOR_STRIDES = 903, DNN_TENSOR_ID = 906, DNN_TENSOR_VIRTUAL = 907 };
enum { DNN_PACK_IDS = 1000, DNN_PACK_POINTERS = 1001, DNN_PACK_WORKSPACE = 1003 };
enum { DNN_ENGINE_GRAPH = 1300, DNN_ENGINE_NUMBER = 1301, DNN_ENGINE_NUMERICAL_NOTES = 1303 };
enum { DNN_ENGINE_BEHAVIOR_NOTES = 1305, DNN_ENGINE_DEVICE = 1307 };
enum { DNN_DEVICE_HANDLE = 2701, DNN_DEVICE_JSON = 2702 };

/* cudnnPointwiseMode_t */
enum { DNN_ADD = 0, DNN_MULTIPLY = 1, DNN_RELU = 100, DNN_SIGMOID = 102, DNN_SWISH = 106 };

/* cudnnBackendNumericalNote_t */
enum { DNN_NOTE_TENSOR_CORE = 0, DNN_NOTE_DOWN_CONVERT = 1, DNN_NOTE_REDUCED_PRECISION = 2 };
enum { DNN_NOTE_FFT = 3, DNN_NOTE_NONDETERMINISTIC = 4, DNN_NOTE_WINOGRAD = 5 };
enum { DNN_NOTE_WINOGRAD_LAST = 8 };

enum {
    DNN_BEHAVIOR_COMPILED = 0, /* CUDNN_BEHAVIOR_NOTE_RUNTIME_COMPILATION */
    DNN_CROSS_CORRELATION = 1, /* cudnnConvolutionMode_t */
    DNN_SUM_AND_SQUARES = 0,   /* cudnnGenStatsMode_t */
    DNN_HEURISTIC_B = 1,       /* cudnnBackendHeurMode_t */
    DNN_HEURISTIC_FALLBACK = 2,
    DNN_HEURISTIC_A = 3
};

/* Identifiers of tensors in a graph. */
enum {
    DNN_ID_X = 1,
    DNN_ID_W,
    DNN_ID_Y,
    DNN_ID_BIAS,
    DNN_ID_ADDED,
    DNN_ID_SUM,
    DNN_ID_SQUARES,
    DNN_ID_SCALE,
    DNN_ID_SHIFT,
    DNN_ID_VIRTUAL,
    DNN_ID_NORMALISED = DNN_ID_VIRTUAL + 3
};

#define CUDA_DNN_MOST_KNOBS 24

/*
 * cuDNN's fusions want the bias in the type of activations: it lies at the end of the workspace,
 * after the part that plans may use.
 */
#define CUDA_DNN_MOST_FILTERS 32768
#define CUDA_DNN_WORKSPACE_BYTES (CUDA_WORKSPACE_BYTES - 2 * (size_t)CUDA_DNN_MOST_FILTERS)
static inline cuda_pointer cuda_dnn_bias(const cuda_conv_call *call) {
    return call->workspace + CUDA_DNN_WORKSPACE_BYTES;
}

typedef struct cuda_dnn cuda_dnn;
typedef struct cuda_dnn_plan cuda_dnn_plan;

/* An engine with its settings. */
typedef struct cuda_dnn_offer {
    int64_t engine;
    int64_t knobs[CUDA_DNN_MOST_KNOBS][2]; /* type and value */
    int knob_count;
    bool compiled; /* at run time, which takes most of a second */
    bool fallback; /* only the fallback heuristic offers it */
} cuda_dnn_offer;

/*
 * `library` is from dlopen. `described` describes a GPU in cuDNN's JSON: offers and plans can then
 * be made, but not run, without that GPU. NULL: the GPU whose context is current.
 */
STK_CHECKED stk_status stk_cuda_dnn_open(cuda_dnn **dnn, void *library, cuda_stream stream,
                                         const char *described, stk_error *err);
void stk_cuda_dnn_close(cuda_dnn *dnn);

/* Whether several threads may get offers and build plans at the same time. */
bool stk_cuda_dnn_threaded(const cuda_dnn *dnn);

/*
 * What the heuristics offer for a shape, best first, without repetition; *count is `most` before
 * the call. `plain`: without what follows the convolution (bias, addition, activation, statistics).
 * None is no error. Engines that are less exact than the shape allows are skipped, and with
 * `deterministic` those whose sums depend on the order in which blocks finish.
 */
STK_CHECKED stk_status stk_cuda_dnn_offers(cuda_dnn *dnn, const cuda_conv_shape *shape, bool plain,
                                           bool deterministic, cuda_dnn_offer *offers, int *count,
                                           stk_error *err);

/*
 * Builds an offer; *plan is NULL when the engine refuses it or needs more than
 * CUDA_DNN_WORKSPACE_BYTES.
 */
STK_CHECKED stk_status stk_cuda_dnn_build(cuda_dnn *dnn, const cuda_conv_shape *shape, bool plain,
                                          const cuda_dnn_offer *offer, cuda_dnn_plan **plan,
                                          stk_error *err);

/* The plan as text, freed with stk_mem_free, and back; *plan is NULL when that is not possible. */
STK_CHECKED stk_status stk_cuda_dnn_write(cuda_dnn *dnn, const cuda_dnn_plan *plan, char **text,
                                          stk_error *err);
STK_CHECKED stk_status stk_cuda_dnn_read(cuda_dnn *dnn, const char *text, cuda_dnn_plan **plan,
                                         stk_error *err);
void stk_cuda_dnn_plan_free(cuda_dnn_plan *plan);

/*
 * Replaces a plan that was built for a description of the device by the same one for the handle
 * that will run it. Where that is not possible the plan stays, and may run nevertheless.
 */
void stk_cuda_dnn_bind(cuda_dnn *dnn, cuda_dnn_plan **plan);

/* Runs a plan on the stream; a bias that is not float32 is at cuda_dnn_bias(). */
STK_CHECKED stk_status stk_cuda_dnn_run(cuda_dnn *dnn, const cuda_dnn_plan *plan,
                                        const cuda_conv_call *call, bool plain, stk_error *err);

#endif
