/*
 * dnn_graph.c - what tensors, operations and graphs of the look-alike of cuDNN must be like, and
 * how a graph becomes a program.
 */
#include "dnn_emulated.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static const int64_t *integers(const dnn_descriptor *d, int name) {
    return dnn_find(d, name)->data;
}

static bool is_float_type(int64_t type) {
    return type == DNN_FLOAT || type == DNN_HALF || type == DNN_BFLOAT16;
}

int dnn_check_tensor(const dnn_descriptor *d) {
    int64_t id = dnn_integer(d, DNN_TENSOR_ID, 0);
    const dnn_attribute *dims = dnn_find(d, DNN_TENSOR_DIMENSIONS);
    const dnn_attribute *strides = dnn_find(d, DNN_TENSOR_STRIDES);
    if (dims->count != 4 || strides->count != 4) {
        return dnn_fail(DNN_BAD_PARAM, "tensor %lld has not four dimensions and strides",
                        (long long)id);
    }
    for (int i = 0; i < 4; i++) {
        if (((const int64_t *)dims->data)[i] < 1 || ((const int64_t *)strides->data)[i] < 1) {
            return dnn_fail(DNN_BAD_PARAM, "tensor %lld: dimension or stride %d is not positive",
                            (long long)id, i);
        }
    }
    if (!is_float_type(dnn_integer(d, DNN_TENSOR_DATA_TYPE, -1))) {
        return dnn_fail(DNN_NOT_SUPPORTED_DATA_TYPE, "tensor %lld is of an unknown type",
                        (long long)id);
    }
    int64_t alignment = dnn_integer(d, DNN_TENSOR_ALIGNMENT, 0);
    if (alignment < 1 || (alignment & (alignment - 1)) != 0) {
        return dnn_fail(DNN_BAD_PARAM, "tensor %lld lies on %lld bytes, which is no power of two",
                        (long long)id, (long long)alignment);
    }
    if (dnn_integer(d, DNN_TENSOR_BY_VALUE, 0) || dnn_integer(d, DNN_TENSOR_REORDERING, 0)) {
        return dnn_fail(DNN_NOT_SUPPORTED, "tensor %lld is given by value or reordered",
                        (long long)id);
    }
    return DNN_GOOD;
}

int dnn_check_convolution(const dnn_descriptor *d) {
    static const int pairs[] = {DNN_CONVOLUTION_DILATIONS, DNN_CONVOLUTION_STRIDES,
                                DNN_CONVOLUTION_PRE_PADDINGS, DNN_CONVOLUTION_POST_PADDINGS};
    if (dnn_integer(d, DNN_CONVOLUTION_DIMENSIONS, 0) != 2) {
        return dnn_fail(DNN_NOT_SUPPORTED, "a convolution here has two dimensions");
    }
    for (int i = 0; i < 4; i++) {
        const dnn_attribute *pair = dnn_find(d, pairs[i]);
        int64_t least = i < 2 ? 1 : 0;
        if (pair->count != 2 || ((const int64_t *)pair->data)[0] < least ||
            ((const int64_t *)pair->data)[1] < least) {
            return dnn_fail(DNN_BAD_PARAM, "attribute %d of a convolution is not two numbers >= %d",
                            pairs[i], (int)least);
        }
    }
    if (dnn_integer(d, DNN_CONVOLUTION_MODE, 0) != DNN_CROSS_CORRELATION) {
        return dnn_fail(DNN_NOT_SUPPORTED, "a convolution here is a cross-correlation");
    }
    if (dnn_integer(d, DNN_CONVOLUTION_PRECISION, -1) != DNN_FLOAT) {
        return dnn_fail(DNN_NOT_SUPPORTED_DATA_TYPE, "a convolution here adds up in float");
    }
    return DNN_GOOD;
}

static int inputs_of_mode(int64_t mode) {
    switch (mode) {
    case DNN_ADD:
    case DNN_MUL:
    case DNN_RELU_BACKWARD:
        return 2;
    case DNN_IDENTITY:
    case DNN_RELU:
    case DNN_SIGMOID:
    case DNN_SWISH:
        return 1;
    default:
        return 0;
    }
}

int dnn_check_pointwise(const dnn_descriptor *d) {
    if (inputs_of_mode(dnn_integer(d, DNN_POINTWISE_MODE, -1)) == 0) {
        return dnn_fail(DNN_NOT_SUPPORTED, "pointwise mode %d is not known here",
                        (int)dnn_integer(d, DNN_POINTWISE_MODE, -1));
    }
    if (dnn_integer(d, DNN_POINTWISE_PRECISION, -1) != DNN_FLOAT) {
        return dnn_fail(DNN_NOT_SUPPORTED_DATA_TYPE, "a pointwise operation here is in float");
    }
    return DNN_GOOD;
}

/* Names of what a convolution's descriptor holds, in the order x, w, y. */
typedef struct conv_names {
    int tensors[3];
    int convolution, alpha, beta;
} conv_names;

static conv_names names_of(int kind) {
    switch (kind) {
    case DNN_OP_DATA:
        return (conv_names){{DNN_DATA_DX, DNN_DATA_W, DNN_DATA_DY},
                            DNN_DATA_CONVOLUTION,
                            DNN_DATA_ALPHA,
                            DNN_DATA_BETA};
    case DNN_OP_FILTER:
        return (conv_names){{DNN_FILTER_X, DNN_FILTER_DW, DNN_FILTER_DY},
                            DNN_FILTER_CONVOLUTION,
                            DNN_FILTER_ALPHA,
                            DNN_FILTER_BETA};
    default:
        return (conv_names){{DNN_FORWARD_X, DNN_FORWARD_W, DNN_FORWARD_Y},
                            DNN_FORWARD_CONVOLUTION,
                            DNN_FORWARD_ALPHA,
                            DNN_FORWARD_BETA};
    }
}

static bool is_a(const dnn_descriptor *d, int kind) {
    return d != NULL && d->kind == kind;
}

static int check_conv(const dnn_descriptor *d) {
    conv_names names = names_of(d->kind);
    const dnn_descriptor *conv = dnn_child(d, names.convolution);
    const dnn_descriptor *tensors[3];
    for (int i = 0; i < 3; i++) {
        tensors[i] = dnn_child(d, names.tensors[i]);
        if (!is_a(tensors[i], DNN_TENSOR)) {
            return dnn_fail(DNN_DESCRIPTOR_TYPE, "attribute %d is no tensor", names.tensors[i]);
        }
    }
    if (!is_a(conv, DNN_CONVOLUTION)) {
        return dnn_fail(DNN_DESCRIPTOR_TYPE, "attribute %d is no convolution", names.convolution);
    }
    const int64_t *x = integers(tensors[0], DNN_TENSOR_DIMENSIONS);
    const int64_t *w = integers(tensors[1], DNN_TENSOR_DIMENSIONS);
    const int64_t *y = integers(tensors[2], DNN_TENSOR_DIMENSIONS);
    if (x[0] != y[0] || x[1] != w[1] || y[1] != w[0]) {
        return dnn_fail(DNN_SHAPE_MISMATCH,
                        "batch or channels of a convolution do not fit: x %lld "
                        "%lld, w %lld %lld, y %lld %lld",
                        (long long)x[0], (long long)x[1], (long long)w[0], (long long)w[1],
                        (long long)y[0], (long long)y[1]);
    }
    for (int i = 0; i < 2; i++) {
        int64_t reach = integers(conv, DNN_CONVOLUTION_DILATIONS)[i] * (w[2 + i] - 1) + 1;
        int64_t room = x[2 + i] + integers(conv, DNN_CONVOLUTION_PRE_PADDINGS)[i] +
                       integers(conv, DNN_CONVOLUTION_POST_PADDINGS)[i] - reach;
        int64_t side = room < 0 ? 0 : room / integers(conv, DNN_CONVOLUTION_STRIDES)[i] + 1;
        if (side != y[2 + i]) {
            return dnn_fail(DNN_SHAPE_MISMATCH,
                            "side %d of a convolution's output is %lld, not "
                            "%lld",
                            i, (long long)side, (long long)y[2 + i]);
        }
    }
    /* What is read has one type; sums over 16-bit numbers are not stored as float weights. */
    int64_t types[3];
    for (int i = 0; i < 3; i++) {
        types[i] = dnn_integer(tensors[i], DNN_TENSOR_DATA_TYPE, -1);
    }
    if ((d->kind == DNN_OP_FORWARD && types[0] != types[1]) ||
        (d->kind == DNN_OP_DATA && types[1] != types[2]) ||
        (d->kind == DNN_OP_FILTER && (types[0] != types[2] || types[0] != types[1]))) {
        return dnn_fail(DNN_NOT_SUPPORTED_DATA_TYPE, "a convolution mixes types");
    }
    return DNN_GOOD;
}

/* Whether `small` can be repeated along some dimensions to become `big`. */
static bool spreads(const dnn_descriptor *small, const dnn_descriptor *big) {
    const int64_t *s = integers(small, DNN_TENSOR_DIMENSIONS);
    const int64_t *b = integers(big, DNN_TENSOR_DIMENSIONS);
    for (int i = 0; i < 4; i++) {
        if (s[i] != b[i] && s[i] != 1) {
            return false;
        }
    }
    return true;
}

static int check_pointwise_op(const dnn_descriptor *d) {
    const dnn_descriptor *what = dnn_child(d, DNN_OP_POINTWISE_WHAT);
    if (!is_a(what, DNN_POINTWISE)) {
        return dnn_fail(DNN_DESCRIPTOR_TYPE, "a pointwise operation without its description");
    }
    bool backward = dnn_integer(what, DNN_POINTWISE_MODE, -1) == DNN_RELU_BACKWARD;
    int second = backward ? DNN_OP_POINTWISE_DY : DNN_OP_POINTWISE_B;
    const dnn_descriptor *x = dnn_child(d, DNN_OP_POINTWISE_X);
    const dnn_descriptor *b = dnn_child(d, second);
    const dnn_descriptor *y = dnn_child(d, backward ? DNN_OP_POINTWISE_DX : DNN_OP_POINTWISE_Y);
    bool two = inputs_of_mode(dnn_integer(what, DNN_POINTWISE_MODE, -1)) == 2;
    if (!is_a(x, DNN_TENSOR) || !is_a(y, DNN_TENSOR) || two != (b != NULL) ||
        (two && !is_a(b, DNN_TENSOR))) {
        return dnn_fail(DNN_BAD_PARAM,
                        "a pointwise operation of mode %d with other tensors than "
                        "it needs",
                        (int)dnn_integer(what, DNN_POINTWISE_MODE, -1));
    }
    if (!spreads(x, y) || (two && !spreads(b, y))) {
        return dnn_fail(DNN_SHAPE_MISMATCH, "tensors of a pointwise operation do not fit");
    }
    return DNN_GOOD;
}

static int check_stats(const dnn_descriptor *d) {
    const dnn_descriptor *x = dnn_child(d, DNN_STATS_X);
    const dnn_descriptor *sums[] = {dnn_child(d, DNN_STATS_SUM), dnn_child(d, DNN_STATS_SQUARES)};
    if (!is_a(x, DNN_TENSOR) || !is_a(sums[0], DNN_TENSOR) || !is_a(sums[1], DNN_TENSOR)) {
        return dnn_fail(DNN_DESCRIPTOR_TYPE, "statistics take tensors");
    }
    for (int i = 0; i < 2; i++) {
        const int64_t *dims = integers(sums[i], DNN_TENSOR_DIMENSIONS);
        if (dims[0] != 1 || dims[1] != integers(x, DNN_TENSOR_DIMENSIONS)[1] || dims[2] != 1 ||
            dims[3] != 1) {
            return dnn_fail(DNN_SHAPE_MISMATCH, "statistics are one number per channel");
        }
        if (dnn_integer(sums[i], DNN_TENSOR_DATA_TYPE, -1) != DNN_FLOAT) {
            return dnn_fail(DNN_NOT_SUPPORTED_DATA_TYPE, "statistics are float");
        }
    }
    return DNN_GOOD;
}

int dnn_check_operation(const dnn_descriptor *d) {
    switch (d->kind) {
    case DNN_OP_POINTWISE:
        return check_pointwise_op(d);
    case DNN_OP_STATS:
        return check_stats(d);
    default:
        return check_conv(d);
    }
}

/* The number of a tensor in the program, which gets it if it is new; -1 when it does not fit. */
static int tensor_number(dnn_program *p, const dnn_descriptor *d) {
    dnn_tensor tensor = {.uid = dnn_integer(d, DNN_TENSOR_ID, 0),
                         .alignment = dnn_integer(d, DNN_TENSOR_ALIGNMENT, 0),
                         .type = (int32_t)dnn_integer(d, DNN_TENSOR_DATA_TYPE, 0),
                         .is_virtual = (int32_t)dnn_integer(d, DNN_TENSOR_VIRTUAL, 0)};
    memcpy(tensor.dims, integers(d, DNN_TENSOR_DIMENSIONS), sizeof tensor.dims);
    memcpy(tensor.strides, integers(d, DNN_TENSOR_STRIDES), sizeof tensor.strides);
    for (int i = 0; i < p->tensor_count; i++) {
        if (p->tensors[i].uid == tensor.uid) {
            return memcmp(&p->tensors[i], &tensor, sizeof tensor) == 0 ? i : -1;
        }
    }
    if (p->tensor_count == DNN_MOST_TENSORS) {
        return -1;
    }
    p->tensors[p->tensor_count] = tensor;
    return p->tensor_count++;
}

static void add_in(dnn_program *p, dnn_op *op, const dnn_descriptor *tensor) {
    op->in[op->in_count++] = tensor_number(p, tensor);
}

static void add_out(dnn_program *p, dnn_op *op, const dnn_descriptor *tensor) {
    op->out[op->out_count++] = tensor_number(p, tensor);
}

static void conv_to_op(dnn_program *p, dnn_op *op, const dnn_descriptor *d) {
    conv_names names = names_of(d->kind);
    const dnn_descriptor *conv = dnn_child(d, names.convolution);
    int made = d->kind == DNN_OP_FORWARD ? 2 : d->kind == DNN_OP_DATA ? 0 : 1;
    for (int i = 0; i < 3; i++) {
        const dnn_descriptor *tensor = dnn_child(d, names.tensors[i]);
        if (i == made) {
            add_out(p, op, tensor);
        } else {
            add_in(p, op, tensor);
        }
    }
    op->alpha[0] = dnn_real(d, names.alpha, 1);
    op->beta = dnn_real(d, names.beta, 0);
    for (int i = 0; i < 2; i++) {
        op->pre[i] = (int32_t)integers(conv, DNN_CONVOLUTION_PRE_PADDINGS)[i];
        op->stride[i] = (int32_t)integers(conv, DNN_CONVOLUTION_STRIDES)[i];
        op->dilation[i] = (int32_t)integers(conv, DNN_CONVOLUTION_DILATIONS)[i];
    }
}

static void pointwise_to_op(dnn_program *p, dnn_op *op, const dnn_descriptor *d) {
    const dnn_descriptor *what = dnn_child(d, DNN_OP_POINTWISE_WHAT);
    op->mode = (int32_t)dnn_integer(what, DNN_POINTWISE_MODE, -1);
    bool backward = op->mode == DNN_RELU_BACKWARD;
    add_in(p, op, dnn_child(d, DNN_OP_POINTWISE_X));
    if (inputs_of_mode(op->mode) == 2) {
        add_in(p, op, dnn_child(d, backward ? DNN_OP_POINTWISE_DY : DNN_OP_POINTWISE_B));
    }
    add_out(p, op, dnn_child(d, backward ? DNN_OP_POINTWISE_DX : DNN_OP_POINTWISE_Y));
    op->alpha[0] = dnn_real(d, DNN_OP_POINTWISE_ALPHA1, 1);
    op->alpha[1] = dnn_real(d, DNN_OP_POINTWISE_ALPHA2, 1);
    op->lower = dnn_real(what, DNN_POINTWISE_LOWER_CLIP, 0);
    op->upper = dnn_real(what, DNN_POINTWISE_UPPER_CLIP, INFINITY);
    op->slope = dnn_real(what, DNN_POINTWISE_SLOPE, 0);
    op->swish_beta = dnn_real(what, DNN_POINTWISE_SWISH_BETA, 1);
}

static int add_op(dnn_program *p, dnn_op *op, const dnn_descriptor *d) {
    *op = (dnn_op){.kind = d->kind};
    switch (d->kind) {
    case DNN_OP_FORWARD:
    case DNN_OP_DATA:
    case DNN_OP_FILTER:
        conv_to_op(p, op, d);
        break;
    case DNN_OP_POINTWISE:
        pointwise_to_op(p, op, d);
        break;
    case DNN_OP_STATS:
        add_in(p, op, dnn_child(d, DNN_STATS_X));
        add_out(p, op, dnn_child(d, DNN_STATS_SUM));
        add_out(p, op, dnn_child(d, DNN_STATS_SQUARES));
        break;
    default:
        return dnn_fail(DNN_DESCRIPTOR_TYPE, "a descriptor of kind %d is no operation", d->kind);
    }
    for (int i = 0; i < op->in_count + op->out_count; i++) {
        if ((i < op->in_count ? op->in[i] : op->out[i - op->in_count]) < 0) {
            return dnn_fail(DNN_DUPLICATED_ENTRIES,
                            "two tensors of a graph have one number, or there are too many");
        }
    }
    return DNN_GOOD;
}

/* Operations in an order in which each finds its virtual inputs made. */
static int sort_ops(dnn_program *p, const dnn_op *given, int count) {
    bool made[DNN_MOST_TENSORS] = {false};
    bool done[DNN_MOST_OPS] = {false};
    bool some = true;
    while (p->op_count < count && some) {
        some = false;
        for (int i = 0; i < count; i++) {
            bool ready = !done[i];
            for (int k = 0; k < given[i].in_count && ready; k++) {
                int t = given[i].in[k];
                bool by_another = p->tensors[t].is_virtual;
                for (int j = 0; j < count; j++) {
                    by_another = by_another || given[j].out[0] == t;
                }
                ready = made[t] || !by_another;
            }
            if (!ready) {
                continue;
            }
            for (int k = 0; k < given[i].out_count; k++) {
                if (made[given[i].out[k]]) {
                    return dnn_fail(DNN_BAD_PARAM, "two operations of a graph make one tensor");
                }
                made[given[i].out[k]] = true;
            }
            p->ops[p->op_count++] = given[i];
            done[i] = some = true;
        }
    }
    return p->op_count == count
               ? DNN_GOOD
               : dnn_fail(DNN_BAD_PARAM, "a virtual tensor is read that no operation makes");
}

int dnn_make_graph(dnn_descriptor *d) {
    const dnn_attribute *ops = dnn_find(d, DNN_GRAPH_OPS);
    dnn_program *p = calloc(1, sizeof *p);
    if (p == NULL) {
        return dnn_fail(DNN_NO_MEMORY, "no memory for a program");
    }
    dnn_op given[DNN_MOST_OPS];
    int status = DNN_GOOD;
    for (int64_t i = 0; i < ops->count && status == DNN_GOOD; i++) {
        status = add_op(p, &given[i], ((dnn_descriptor **)ops->data)[i]);
    }
    if (status == DNN_GOOD) {
        status = sort_ops(p, given, (int)ops->count);
    }
    if (status == DNN_GOOD) {
        int64_t engines = dnn_has_wrong() ? DNN_ENGINES : DNN_ENGINES - 1;
        status = dnn_put(d, DNN_GRAPH_ENGINES, DNN_TYPE_INT64, 1, &engines);
    }
    if (status != DNN_GOOD) {
        free(p);
        return status;
    }
    free(d->program);
    d->program = p;
    return DNN_GOOD;
}
