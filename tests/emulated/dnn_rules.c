/*
 * dnn_rules.c - which attributes a descriptor of the look-alike has, of which type, and which of
 * them must be there. What a caller sets and is not in this table is refused.
 */
#include "dnn_emulated.h"

#define ANY INT32_MAX

/* kind, name, type, most elements, needed, told */
static const dnn_rule rules[] = {
    {DNN_TENSOR, DNN_TENSOR_ALIGNMENT, DNN_TYPE_INT64, 1, true, false},
    {DNN_TENSOR, DNN_TENSOR_DATA_TYPE, DNN_TYPE_DATA_TYPE, 1, true, false},
    {DNN_TENSOR, DNN_TENSOR_DIMENSIONS, DNN_TYPE_INT64, 8, true, false},
    {DNN_TENSOR, DNN_TENSOR_STRIDES, DNN_TYPE_INT64, 8, true, false},
    {DNN_TENSOR, DNN_TENSOR_ID, DNN_TYPE_INT64, 1, true, false},
    {DNN_TENSOR, DNN_TENSOR_VIRTUAL, DNN_TYPE_BOOLEAN, 1, false, false},
    {DNN_TENSOR, DNN_TENSOR_BY_VALUE, DNN_TYPE_BOOLEAN, 1, false, false},
    {DNN_TENSOR, DNN_TENSOR_REORDERING, DNN_TYPE_REORDERING_MODE, 1, false, false},

    {DNN_CONVOLUTION, DNN_CONVOLUTION_PRECISION, DNN_TYPE_DATA_TYPE, 1, true, false},
    {DNN_CONVOLUTION, DNN_CONVOLUTION_MODE, DNN_TYPE_CONVOLUTION_MODE, 1, true, false},
    {DNN_CONVOLUTION, DNN_CONVOLUTION_DIMENSIONS, DNN_TYPE_INT64, 1, true, false},
    {DNN_CONVOLUTION, DNN_CONVOLUTION_DILATIONS, DNN_TYPE_INT64, 3, true, false},
    {DNN_CONVOLUTION, DNN_CONVOLUTION_STRIDES, DNN_TYPE_INT64, 3, true, false},
    {DNN_CONVOLUTION, DNN_CONVOLUTION_PRE_PADDINGS, DNN_TYPE_INT64, 3, true, false},
    {DNN_CONVOLUTION, DNN_CONVOLUTION_POST_PADDINGS, DNN_TYPE_INT64, 3, true, false},

    {DNN_POINTWISE, DNN_POINTWISE_MODE, DNN_TYPE_POINTWISE_MODE, 1, true, false},
    {DNN_POINTWISE, DNN_POINTWISE_PRECISION, DNN_TYPE_DATA_TYPE, 1, true, false},
    {DNN_POINTWISE, DNN_POINTWISE_NAN_PROPAGATION, DNN_TYPE_NAN_PROPAGATION, 1, false, false},
    {DNN_POINTWISE, DNN_POINTWISE_LOWER_CLIP, DNN_TYPE_DOUBLE, 1, false, false},
    {DNN_POINTWISE, DNN_POINTWISE_UPPER_CLIP, DNN_TYPE_DOUBLE, 1, false, false},
    {DNN_POINTWISE, DNN_POINTWISE_SLOPE, DNN_TYPE_DOUBLE, 1, false, false},
    {DNN_POINTWISE, DNN_POINTWISE_SWISH_BETA, DNN_TYPE_DOUBLE, 1, false, false},

    {DNN_OP_FORWARD, DNN_FORWARD_ALPHA, DNN_TYPE_FLOAT, 1, true, false},
    {DNN_OP_FORWARD, DNN_FORWARD_BETA, DNN_TYPE_FLOAT, 1, true, false},
    {DNN_OP_FORWARD, DNN_FORWARD_CONVOLUTION, DNN_TYPE_DESCRIPTOR, 1, true, false},
    {DNN_OP_FORWARD, DNN_FORWARD_W, DNN_TYPE_DESCRIPTOR, 1, true, false},
    {DNN_OP_FORWARD, DNN_FORWARD_X, DNN_TYPE_DESCRIPTOR, 1, true, false},
    {DNN_OP_FORWARD, DNN_FORWARD_Y, DNN_TYPE_DESCRIPTOR, 1, true, false},

    {DNN_OP_DATA, DNN_DATA_ALPHA, DNN_TYPE_FLOAT, 1, true, false},
    {DNN_OP_DATA, DNN_DATA_BETA, DNN_TYPE_FLOAT, 1, true, false},
    {DNN_OP_DATA, DNN_DATA_CONVOLUTION, DNN_TYPE_DESCRIPTOR, 1, true, false},
    {DNN_OP_DATA, DNN_DATA_W, DNN_TYPE_DESCRIPTOR, 1, true, false},
    {DNN_OP_DATA, DNN_DATA_DX, DNN_TYPE_DESCRIPTOR, 1, true, false},
    {DNN_OP_DATA, DNN_DATA_DY, DNN_TYPE_DESCRIPTOR, 1, true, false},

    {DNN_OP_FILTER, DNN_FILTER_ALPHA, DNN_TYPE_FLOAT, 1, true, false},
    {DNN_OP_FILTER, DNN_FILTER_BETA, DNN_TYPE_FLOAT, 1, true, false},
    {DNN_OP_FILTER, DNN_FILTER_CONVOLUTION, DNN_TYPE_DESCRIPTOR, 1, true, false},
    {DNN_OP_FILTER, DNN_FILTER_DW, DNN_TYPE_DESCRIPTOR, 1, true, false},
    {DNN_OP_FILTER, DNN_FILTER_X, DNN_TYPE_DESCRIPTOR, 1, true, false},
    {DNN_OP_FILTER, DNN_FILTER_DY, DNN_TYPE_DESCRIPTOR, 1, true, false},

    {DNN_OP_POINTWISE, DNN_OP_POINTWISE_WHAT, DNN_TYPE_DESCRIPTOR, 1, true, false},
    {DNN_OP_POINTWISE, DNN_OP_POINTWISE_X, DNN_TYPE_DESCRIPTOR, 1, true, false},
    {DNN_OP_POINTWISE, DNN_OP_POINTWISE_B, DNN_TYPE_DESCRIPTOR, 1, false, false},
    {DNN_OP_POINTWISE, DNN_OP_POINTWISE_Y, DNN_TYPE_DESCRIPTOR, 1, false, false},
    {DNN_OP_POINTWISE, DNN_OP_POINTWISE_ALPHA1, DNN_TYPE_FLOAT, 1, false, false},
    {DNN_OP_POINTWISE, DNN_OP_POINTWISE_ALPHA2, DNN_TYPE_FLOAT, 1, false, false},
    {DNN_OP_POINTWISE, DNN_OP_POINTWISE_DX, DNN_TYPE_DESCRIPTOR, 1, false, false},
    {DNN_OP_POINTWISE, DNN_OP_POINTWISE_DY, DNN_TYPE_DESCRIPTOR, 1, false, false},

    {DNN_OP_STATS, DNN_STATS_MODE, DNN_TYPE_STATS_MODE, 1, true, false},
    {DNN_OP_STATS, DNN_STATS_PRECISION, DNN_TYPE_DATA_TYPE, 1, true, false},
    {DNN_OP_STATS, DNN_STATS_X, DNN_TYPE_DESCRIPTOR, 1, true, false},
    {DNN_OP_STATS, DNN_STATS_SUM, DNN_TYPE_DESCRIPTOR, 1, true, false},
    {DNN_OP_STATS, DNN_STATS_SQUARES, DNN_TYPE_DESCRIPTOR, 1, true, false},

    {DNN_GRAPH, DNN_GRAPH_HANDLE, DNN_TYPE_HANDLE, 1, false, false},
    {DNN_GRAPH, DNN_GRAPH_OPS, DNN_TYPE_DESCRIPTOR, DNN_MOST_OPS, true, false},
    {DNN_GRAPH, DNN_GRAPH_ENGINES, DNN_TYPE_INT64, 1, false, true},

    {DNN_DEVICE, DNN_DEVICE_ID, DNN_TYPE_INT32, 1, false, false},
    {DNN_DEVICE, DNN_DEVICE_HANDLE, DNN_TYPE_HANDLE, 1, false, false},
    {DNN_DEVICE, DNN_DEVICE_JSON, DNN_TYPE_CHAR, ANY, false, false},

    {DNN_HEURISTIC, DNN_HEURISTIC_MODE, DNN_TYPE_HEURISTIC_MODE, 1, true, false},
    {DNN_HEURISTIC, DNN_HEURISTIC_GRAPH, DNN_TYPE_DESCRIPTOR, 1, true, false},
    {DNN_HEURISTIC, DNN_HEURISTIC_MULTIPROCESSORS, DNN_TYPE_INT32, 1, false, false},
    {DNN_HEURISTIC, DNN_HEURISTIC_DEVICE, DNN_TYPE_DESCRIPTOR, 1, false, false},
    {DNN_HEURISTIC, DNN_HEURISTIC_RESULTS, DNN_TYPE_DESCRIPTOR, DNN_MOST_OFFERS, false, true},

    {DNN_ENGINE, DNN_ENGINE_GRAPH, DNN_TYPE_DESCRIPTOR, 1, true, false},
    {DNN_ENGINE, DNN_ENGINE_NUMBER, DNN_TYPE_INT64, 1, true, false},
    {DNN_ENGINE, DNN_ENGINE_MULTIPROCESSORS, DNN_TYPE_INT32, 1, false, false},
    {DNN_ENGINE, DNN_ENGINE_DEVICE, DNN_TYPE_DESCRIPTOR, 1, false, false},
    {DNN_ENGINE, DNN_ENGINE_KNOBS, DNN_TYPE_DESCRIPTOR, 4, false, true},
    {DNN_ENGINE, DNN_ENGINE_NUMERICAL_NOTES, DNN_TYPE_NUMERICAL_NOTE, 10, false, true},
    {DNN_ENGINE, DNN_ENGINE_BEHAVIOR_NOTES, DNN_TYPE_BEHAVIOR_NOTE, 5, false, true},

    {DNN_KNOB_INFO, DNN_KNOB_INFO_TYPE, DNN_TYPE_KNOB_TYPE, 1, false, true},
    {DNN_KNOB_INFO, DNN_KNOB_INFO_MOST, DNN_TYPE_INT64, 1, false, true},
    {DNN_KNOB_INFO, DNN_KNOB_INFO_LEAST, DNN_TYPE_INT64, 1, false, true},
    {DNN_KNOB_INFO, DNN_KNOB_INFO_STRIDE, DNN_TYPE_INT64, 1, false, true},

    {DNN_KNOB, DNN_KNOB_TYPE, DNN_TYPE_KNOB_TYPE, 1, true, false},
    {DNN_KNOB, DNN_KNOB_VALUE, DNN_TYPE_INT64, 1, true, false},

    {DNN_CONFIG, DNN_CONFIG_ENGINE, DNN_TYPE_DESCRIPTOR, 1, true, false},
    {DNN_CONFIG, DNN_CONFIG_KNOBS, DNN_TYPE_DESCRIPTOR, 8, false, false},
    {DNN_CONFIG, DNN_CONFIG_WORKSPACE, DNN_TYPE_INT64, 1, false, true},

    {DNN_PLAN, DNN_PLAN_HANDLE, DNN_TYPE_HANDLE, 1, false, false},
    {DNN_PLAN, DNN_PLAN_CONFIG, DNN_TYPE_DESCRIPTOR, 1, false, false},
    {DNN_PLAN, DNN_PLAN_DEVICE, DNN_TYPE_DESCRIPTOR, 1, false, false},
    {DNN_PLAN, DNN_PLAN_JSON, DNN_TYPE_CHAR, ANY, false, false},
    {DNN_PLAN, DNN_PLAN_WORKSPACE, DNN_TYPE_INT64, 1, false, true},

    {DNN_PACK, DNN_PACK_IDS, DNN_TYPE_INT64, DNN_MOST_TENSORS, true, false},
    {DNN_PACK, DNN_PACK_POINTERS, DNN_TYPE_POINTER, DNN_MOST_TENSORS, true, false},
    {DNN_PACK, DNN_PACK_WORKSPACE, DNN_TYPE_POINTER, 1, false, false},
};

static const int rule_count = (int)(sizeof rules / sizeof rules[0]);

const dnn_rule *dnn_rule_of(int kind, int name) {
    for (int i = 0; i < rule_count; i++) {
        if (rules[i].kind == kind && rules[i].name == name) {
            return &rules[i];
        }
    }
    return NULL;
}

const dnn_rule *dnn_rule_missing(const dnn_descriptor *d) {
    for (int i = 0; i < rule_count; i++) {
        if (rules[i].kind == d->kind && rules[i].needed && dnn_find(d, rules[i].name) == NULL) {
            return &rules[i];
        }
    }
    return NULL;
}

bool dnn_kind_known(int kind) {
    for (int i = 0; i < rule_count; i++) {
        if (rules[i].kind == kind) {
            return true;
        }
    }
    return false;
}

size_t dnn_type_bytes(int type) {
    switch (type) {
    case DNN_TYPE_HANDLE:
    case DNN_TYPE_INT64:
    case DNN_TYPE_DOUBLE:
    case DNN_TYPE_POINTER:
    case DNN_TYPE_DESCRIPTOR:
        return 8;
    case DNN_TYPE_BOOLEAN:
    case DNN_TYPE_CHAR:
        return 1;
    default: /* enumerations, float, int32 */
        return 4;
    }
}
