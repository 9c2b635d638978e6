/*
 * dnn_numbers.h - numbers of cuDNN's graph interface that the look-alike knows and cudnn.h
 * does not have, since the backend has no use for them yet.
 */
#ifndef STK_TESTS_EMULATED_DNN_NUMBERS_H
#define STK_TESTS_EMULATED_DNN_NUMBERS_H

#include "backend/cuda/convolution/cudnn.h"

enum { /* cudnnStatus_t */
       DNN_GOOD = 0,
       DNN_NOT_INITIALIZED = 1001,
       DNN_BAD_PARAM = 2000,
       DNN_NULL_POINTER = 2002,
       DNN_MISALIGNED_POINTER = 2003,
       DNN_NOT_FINALIZED = 2004,
       DNN_SHAPE_MISMATCH = 2008,
       DNN_DUPLICATED_ENTRIES = 2009,
       DNN_ATTRIBUTE_TYPE = 2010,
       DNN_DESCRIPTOR_TYPE = 2012,
       DNN_NOT_SUPPORTED = 3000,
       DNN_NOT_SUPPORTED_PATTERN = 3001,
       DNN_NOT_SUPPORTED_DATA_TYPE = 3003,
       DNN_NO_MEMORY = 4003,
       DNN_EXECUTION_FAILED = 5000
};

enum { /* cudnnBackendDescriptorType_t */ DNN_KNOB_INFO = 8 };

enum { /* cudnnBackendAttributeType_t */
       DNN_TYPE_NAN_PROPAGATION = 10,
       DNN_TYPE_REORDERING_MODE = 20,
       DNN_TYPE_INT32 = 23
};

enum { /* cudnnBackendAttributeName_t */
       DNN_POINTWISE_NAN_PROPAGATION = 2,
       DNN_POINTWISE_LOWER_CLIP = 3,
       DNN_POINTWISE_SLOPE = 5,
       DNN_HEURISTIC_MULTIPROCESSORS = 203,
       DNN_CONFIG_WORKSPACE = 303,
       DNN_OP_POINTWISE_ALPHA1 = 754,
       DNN_OP_POINTWISE_ALPHA2 = 755,
       DNN_OP_POINTWISE_DX = 756,
       DNN_OP_POINTWISE_DY = 757,
       DNN_GRAPH_ENGINES = 802,
       DNN_TENSOR_BY_VALUE = 908,
       DNN_TENSOR_REORDERING = 909,
       DNN_KNOB_INFO_TYPE = 1200,
       DNN_KNOB_INFO_MOST = 1201,
       DNN_KNOB_INFO_LEAST = 1202,
       DNN_KNOB_INFO_STRIDE = 1203,
       DNN_ENGINE_KNOBS = 1302,
       DNN_ENGINE_MULTIPROCESSORS = 1306,
       DNN_DEVICE_ID = 2700
};

enum { /* cudnnPointwiseMode_t */ DNN_MUL = 1, DNN_IDENTITY = 21, DNN_RELU_BACKWARD = 200 };

enum {
    DNN_HEURISTIC_MODES = 4, /* CUDNN_HEUR_MODES_COUNT */
    DNN_KNOB_TILE = 2,       /* CUDNN_KNOB_TYPE_TILE_SIZE */
    DNN_KNOB_STAGES = 14     /* CUDNN_KNOB_TYPE_STAGES */
};

#endif
