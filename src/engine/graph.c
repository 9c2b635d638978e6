/* graph.c - building a graph: shapes are checked and derived as layers are added. */
#include "engine/graph.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/error.h"
#include "base/mem.h"
#include "base/numbers/rng.h"

const stk_op_trait stk_op_traits[STK_OP_COUNT] = {
    [STK_OP_INPUT] = {.name = "input"},
    [STK_OP_CONV] = {.name = "conv", .backward_reads_input = {true}},
    [STK_OP_DEPTHWISE] = {.name = "depthwise", .backward_reads_input = {true}},
    [STK_OP_BATCH_NORM] = {.name = "batch_norm", .backward_reads_input = {true}},
    [STK_OP_RELU] = {.name = "relu", .backward_reads_output = true, .in_place = true},
    [STK_OP_RELU6] = {.name = "relu6", .backward_reads_output = true, .in_place = true},
    [STK_OP_SILU] = {.name = "silu", .backward_reads_input = {true}},
    [STK_OP_SIGMOID] = {.name = "sigmoid", .backward_reads_output = true, .in_place = true},
    [STK_OP_ADD] = {.name = "add"},
    [STK_OP_SCALE] = {.name = "scale", .backward_reads_input = {true, true}},
    [STK_OP_SHORTCUT] = {.name = "shortcut"},
    [STK_OP_MAX_POOL] = {.name = "max_pool"},
    [STK_OP_AVG_POOL] = {.name = "avg_pool"},
    [STK_OP_DROPOUT] = {.name = "dropout", .in_place = true},
    [STK_OP_DROP_PATH] = {.name = "drop_path", .in_place = true},
    [STK_OP_LINEAR] = {.name = "linear", .backward_reads_input = {true}},
    [STK_OP_FEATURES] = {.name = "features"},
    [STK_OP_CONCAT] = {.name = "concat"},
    [STK_OP_STEPS] = {.name = "steps"},
    [STK_OP_LOSS] = {.name = "loss", .backward_reads_output = true},
};

static bool failed(const stk_graph *graph) {
    return graph->error.status != STK_OK;
}

/* Adds a node over up to two inputs and the value it makes; STK_NO_VALUE after a mistake. */
static int add_node(stk_graph *graph, stk_node node, stk_shape shape) {
    if (!STK_RESERVE(graph->nodes, graph->node_capacity, (size_t)graph->node_count + 1) ||
        !STK_RESERVE(graph->values, graph->value_capacity, (size_t)graph->value_count + 1)) {
        STK_FAIL_MEMORY(&graph->error, "a network's graph");
        return STK_NO_VALUE;
    }
    int index = graph->node_count++;
    int output = graph->value_count++;
    bool from_features = node.op == STK_OP_FEATURES;
    for (int i = 0; i < node.input_count; i++) {
        graph->values[node.inputs[i]].uses++;
        from_features = from_features || graph->values[node.inputs[i]].from_features;
    }
    node.output = output;
    graph->nodes[index] = node;
    graph->values[output] =
        (stk_value){.shape = shape, .producer = index, .from_features = from_features};
    return output;
}

/* Adds a parameter to the node being made. */
static void add_param(stk_graph *graph, stk_node *node, const char *module, const char *part,
                      stk_param param) {
    if (!STK_RESERVE(graph->params, graph->param_capacity, (size_t)graph->param_count + 1)) {
        STK_FAIL_MEMORY(&graph->error, "a network's parameters");
        return;
    }
    int length = snprintf(param.name, sizeof param.name, "%s.%s", module, part);
    if (length >= (int)sizeof param.name) {
        STK_FAIL(&graph->error, STK_ERR_INTERNAL, "the parameter name %s.%s is too long", module,
                 part);
    }
    param.count = 1;
    for (int i = 0; i < param.rank; i++) {
        param.count *= (size_t)param.shape[i];
    }
    param.offset = graph->param_elements;
    graph->param_elements += param.count;
    node->params[node->param_count++] = graph->param_count;
    graph->params[graph->param_count++] = param;
}

stk_status stk_graph_new(stk_graph **out, int img_size, int classes, stk_error *err) {
    stk_graph *graph = stk_mem_new(1, sizeof *graph);
    if (graph == NULL) {
        return STK_FAIL_MEMORY(err, "a network's graph");
    }
    graph->img_size = img_size;
    graph->classes = classes;
    graph->features = STK_NO_VALUE;
    graph->logits = STK_NO_VALUE;
    graph->norm_epsilon = 1e-5f;
    graph->channels = 3;
    for (int c = 0; c < graph->channels; c++) {
        graph->std[c] = 1;
    }
    stk_node node = {.op = STK_OP_INPUT};
    graph->input = add_node(graph, node, (stk_shape){img_size, img_size, graph->channels});
    *out = graph;
    return STK_OK;
}

void stk_graph_free(stk_graph *graph) {
    if (graph != NULL) {
        stk_mem_free(graph->nodes);
        stk_mem_free(graph->values);
        stk_mem_free(graph->params);
        stk_mem_free((void *)graph->loss.positive_weights);
        stk_mem_free(graph);
    }
}

stk_status stk_graph_check_params(const stk_graph *graph, const stk_graph *other, stk_error *err) {
    bool same = graph->param_count == other->param_count;
    for (int i = 0; same && i < graph->param_count; i++) {
        same = graph->params[i].count == other->params[i].count;
    }
    return same ? STK_OK
                : STK_FAIL(err, STK_ERR_USAGE,
                           "the network has other weights for pictures of %d px than for %d px",
                           other->img_size, graph->img_size);
}

void stk_graph_set_channels(stk_graph *graph, int channels) {
    if (failed(graph) || channels == graph->channels) {
        return;
    }
    if (channels < 1 || channels > STK_MOST_CHANNELS || graph->node_count > 1) {
        STK_FAIL(&graph->error, STK_ERR_INTERNAL,
                 "a network's pictures cannot have %d channels: 1 to %d are possible, set before "
                 "the first layer",
                 channels, STK_MOST_CHANNELS);
        return;
    }
    graph->channels = channels;
    graph->values[graph->input].shape.channels = channels;
    for (int c = 0; c < channels; c++) {
        graph->mean[c] = 0.5f;
        graph->std[c] = 0.5f;
    }
}

int stk_graph_input(stk_graph *graph) {
    return graph->input;
}

int stk_graph_features(stk_graph *graph, int count) {
    if (failed(graph)) {
        return STK_NO_VALUE;
    }
    if (count < 1 || graph->features != STK_NO_VALUE) {
        STK_FAIL(&graph->error, STK_ERR_INTERNAL,
                 "a network cannot have %d features, or features twice", count);
        return STK_NO_VALUE;
    }
    stk_node node = {.op = STK_OP_FEATURES};
    graph->features = add_node(graph, node, (stk_shape){1, 1, count});
    return graph->features;
}

/*
 * Output side of a window that moves over a padded side; 0 or less when it does not fit. *pad
 * becomes the padding before the picture.
 */
static int window_out(int side, int kernel, int stride, int *pad) {
    if (*pad != STK_PAD_SAME) {
        return side + 2 * *pad < kernel ? 0 : (side + 2 * *pad - kernel) / stride + 1;
    }
    int out = (side + stride - 1) / stride;
    int all = (out - 1) * stride + kernel - side;
    *pad = all > 0 ? all / 2 : 0;
    return out;
}

/* The output shape of a window operation; a mistake of the graph when the window does not fit. */
static stk_shape window_shape(stk_graph *graph, int x, stk_node *node, int channels) {
    stk_shape in = graph->values[x].shape; /* a square: both sides are padded alike */
    int side = window_out(in.height, node->kernel, node->stride, &node->pad);
    if (side < 1) {
        STK_FAIL(&graph->error, STK_ERR_USAGE,
                 "images of %d px are too small for this network: at one layer %d px are left for "
                 "a window of %d; use a larger --img-size",
                 graph->img_size, in.height, node->kernel);
    }
    return (stk_shape){side, side, channels};
}

/* Adds a convolution with `channels` filters of `inputs` channels each, with or without a bias. */
static int add_filters(stk_graph *graph, stk_node node, const char *name, int channels, int inputs,
                       bool bias) {
    if (failed(graph)) {
        return STK_NO_VALUE;
    }
    stk_shape shape = window_shape(graph, node.inputs[0], &node, channels);
    int taps = node.kernel * node.kernel;
    stk_param weight = {.rank = 4,
                        .shape = {channels, inputs, node.kernel, node.kernel},
                        .trainable = true,
                        .decay = true,
                        .init = STK_INIT_HE,
                        .fan = node.op == STK_OP_DEPTHWISE ? taps : channels * taps};
    stk_param start = {
        .rank = 1, .shape = {channels}, .trainable = true, .init = STK_INIT_ZERO, .fan = inputs};
    add_param(graph, &node, name, "weight", weight);
    if (bias) {
        add_param(graph, &node, name, "bias", start);
    }
    return failed(graph) ? STK_NO_VALUE : add_node(graph, node, shape);
}

static stk_node window_node(stk_op op, int x, int kernel, int stride, int pad) {
    return (stk_node){
        .op = op, .inputs = {x}, .input_count = 1, .kernel = kernel, .stride = stride, .pad = pad};
}

static int add_conv(stk_graph *graph, int x, const char *name, int channels, int kernel, int stride,
                    int pad, bool bias) {
    stk_node node = window_node(STK_OP_CONV, x, kernel, stride, pad);
    int inputs = failed(graph) ? 0 : graph->values[x].shape.channels;
    return add_filters(graph, node, name, channels, inputs, bias);
}

int stk_graph_conv(stk_graph *graph, int x, const char *name, int channels, int kernel, int stride,
                   int pad) {
    return add_conv(graph, x, name, channels, kernel, stride, pad, false);
}

int stk_graph_conv_bias(stk_graph *graph, int x, const char *name, int channels, int kernel,
                        int stride, int pad) {
    return add_conv(graph, x, name, channels, kernel, stride, pad, true);
}

int stk_graph_depthwise(stk_graph *graph, int x, const char *name, int kernel, int stride,
                        int pad) {
    stk_node node = window_node(STK_OP_DEPTHWISE, x, kernel, stride, pad);
    int channels = failed(graph) ? 0 : graph->values[x].shape.channels;
    return add_filters(graph, node, name, channels, 1, false);
}

int stk_graph_batch_norm(stk_graph *graph, int x, const char *name, stk_init init) {
    if (failed(graph)) {
        return STK_NO_VALUE;
    }
    stk_node node = {
        .op = STK_OP_BATCH_NORM, .inputs = {x}, .input_count = 1, .epsilon = graph->norm_epsilon};
    stk_shape shape = graph->values[x].shape;
    stk_param param = {.rank = 1, .shape = {shape.channels}, .trainable = true, .init = init};
    add_param(graph, &node, name, "weight", param);
    param.init = STK_INIT_ZERO;
    add_param(graph, &node, name, "bias", param);
    param.trainable = false;
    add_param(graph, &node, name, "running_mean", param);
    param.init = STK_INIT_ONE;
    add_param(graph, &node, name, "running_var", param);
    return failed(graph) ? STK_NO_VALUE : add_node(graph, node, shape);
}

/* A node whose output has the shape of its input. */
static int add_pointwise(stk_graph *graph, stk_op op, int x, float rate) {
    if (failed(graph)) {
        return STK_NO_VALUE;
    }
    stk_node node = {.op = op, .inputs = {x}, .input_count = 1, .rate = rate};
    return add_node(graph, node, graph->values[x].shape);
}

int stk_graph_relu(stk_graph *graph, int x) {
    return add_pointwise(graph, STK_OP_RELU, x, 0);
}

int stk_graph_relu6(stk_graph *graph, int x) {
    return add_pointwise(graph, STK_OP_RELU6, x, 0);
}

int stk_graph_silu(stk_graph *graph, int x) {
    return add_pointwise(graph, STK_OP_SILU, x, 0);
}

int stk_graph_sigmoid(stk_graph *graph, int x) {
    return add_pointwise(graph, STK_OP_SIGMOID, x, 0);
}

int stk_graph_add(stk_graph *graph, int a, int b) {
    if (failed(graph)) {
        return STK_NO_VALUE;
    }
    stk_shape shape = graph->values[a].shape;
    stk_shape other = graph->values[b].shape;
    if (shape.height != other.height || shape.width != other.width ||
        shape.channels != other.channels || a == b) {
        STK_FAIL(&graph->error, STK_ERR_INTERNAL,
                 "cannot add (%d,%d,%d) and (%d,%d,%d) in a network", shape.height, shape.width,
                 shape.channels, other.height, other.width, other.channels);
        return STK_NO_VALUE;
    }
    stk_node node = {.op = STK_OP_ADD, .inputs = {a, b}, .input_count = 2};
    return add_node(graph, node, shape);
}

int stk_graph_scale(stk_graph *graph, int x, int gate) {
    if (failed(graph)) {
        return STK_NO_VALUE;
    }
    stk_shape shape = graph->values[x].shape;
    stk_shape other = graph->values[gate].shape;
    if (other.height != 1 || other.width != 1 || other.channels != shape.channels || x == gate) {
        STK_FAIL(&graph->error, STK_ERR_INTERNAL,
                 "cannot scale (%d,%d,%d) by (%d,%d,%d) in a network", shape.height, shape.width,
                 shape.channels, other.height, other.width, other.channels);
        return STK_NO_VALUE;
    }
    stk_node node = {.op = STK_OP_SCALE, .inputs = {x, gate}, .input_count = 2};
    return add_node(graph, node, shape);
}

int stk_graph_shortcut(stk_graph *graph, int x, int channels, int stride) {
    if (failed(graph)) {
        return STK_NO_VALUE;
    }
    stk_shape in = graph->values[x].shape;
    if (channels < in.channels || (channels - in.channels) % 2 != 0 || stride < 1) {
        STK_FAIL(&graph->error, STK_ERR_INTERNAL, "cannot pad %d channels to %d on both sides",
                 in.channels, channels);
        return STK_NO_VALUE;
    }
    stk_node node = {.op = STK_OP_SHORTCUT, .inputs = {x}, .input_count = 1, .stride = stride};
    return add_node(
        graph, node,
        (stk_shape){(in.height - 1) / stride + 1, (in.width - 1) / stride + 1, channels});
}

int stk_graph_max_pool(stk_graph *graph, int x, int kernel, int stride, int pad) {
    if (failed(graph)) {
        return STK_NO_VALUE;
    }
    stk_node node = window_node(STK_OP_MAX_POOL, x, kernel, stride, pad);
    if (kernel * kernel > 256 || pad >= kernel) {
        STK_FAIL(&graph->error, STK_ERR_INTERNAL,
                 "cannot pool over windows of %d px with %d px of padding", kernel, pad);
        return STK_NO_VALUE;
    }
    stk_shape shape = window_shape(graph, x, &node, graph->values[x].shape.channels);
    return failed(graph) ? STK_NO_VALUE : add_node(graph, node, shape);
}

int stk_graph_avg_pool(stk_graph *graph, int x) {
    if (failed(graph)) {
        return STK_NO_VALUE;
    }
    stk_node node = {.op = STK_OP_AVG_POOL, .inputs = {x}, .input_count = 1};
    return add_node(graph, node, (stk_shape){1, 1, graph->values[x].shape.channels});
}

int stk_graph_dropout(stk_graph *graph, int x, double rate) {
    return rate > 0 ? add_pointwise(graph, STK_OP_DROPOUT, x, (float)rate) : x;
}

int stk_graph_drop_path(stk_graph *graph, int x, double rate) {
    return rate > 0 ? add_pointwise(graph, STK_OP_DROP_PATH, x, (float)rate) : x;
}

int stk_graph_concat(stk_graph *graph, int a, int b) {
    if (failed(graph)) {
        return STK_NO_VALUE;
    }
    stk_shape first = graph->values[a].shape;
    stk_shape second = graph->values[b].shape;
    if (first.height != 1 || first.width != 1 || second.height != 1 || second.width != 1 ||
        a == b) {
        STK_FAIL(&graph->error, STK_ERR_INTERNAL,
                 "cannot concatenate (%d,%d,%d) and (%d,%d,%d) in a network", first.height,
                 first.width, first.channels, second.height, second.width, second.channels);
        return STK_NO_VALUE;
    }
    stk_node node = {.op = STK_OP_CONCAT, .inputs = {a, b}, .input_count = 2};
    return add_node(graph, node, (stk_shape){1, 1, first.channels + second.channels});
}

int stk_graph_steps(stk_graph *graph, int x) {
    if (failed(graph)) {
        return STK_NO_VALUE;
    }
    if (stk_shape_count(graph->values[x].shape) != 1) {
        STK_FAIL(&graph->error, STK_ERR_INTERNAL,
                 "the place on a scale is one number in a network, not %zu",
                 stk_shape_count(graph->values[x].shape));
        return STK_NO_VALUE;
    }
    stk_node node = {.op = STK_OP_STEPS, .inputs = {x}, .input_count = 1};
    return add_node(graph, node, (stk_shape){1, 1, graph->classes});
}

int stk_graph_embed(stk_graph *graph, int outputs) {
    if (failed(graph)) {
        return STK_NO_VALUE;
    }
    int inputs = graph->nodes[graph->values[outputs].producer].inputs[0];
    int both = stk_graph_concat(graph, outputs, inputs);
    graph->embedded = failed(graph) ? 0 : graph->values[inputs].shape.channels;
    return both;
}

int stk_graph_linear(stk_graph *graph, int x, const char *name, int channels) {
    if (failed(graph)) {
        return STK_NO_VALUE;
    }
    stk_node node = {.op = STK_OP_LINEAR, .inputs = {x}, .input_count = 1};
    int inputs = (int)stk_shape_count(graph->values[x].shape);
    stk_param weight = {.rank = 2,
                        .shape = {channels, inputs},
                        .trainable = true,
                        .decay = true,
                        .init = STK_INIT_LINEAR,
                        .fan = inputs};
    stk_param bias = {
        .rank = 1, .shape = {channels}, .trainable = true, .init = STK_INIT_LINEAR, .fan = inputs};
    add_param(graph, &node, name, "weight", weight);
    add_param(graph, &node, name, "bias", bias);
    return failed(graph) ? STK_NO_VALUE : add_node(graph, node, (stk_shape){1, 1, channels});
}

void stk_graph_start_as(stk_graph *graph, int x, stk_init init, int fan) {
    if (failed(graph)) {
        return;
    }
    const stk_node *node = &graph->nodes[graph->values[x].producer];
    graph->params[node->params[0]].init = init;
    graph->params[node->params[0]].fan = fan;
    if (node->param_count > 1) {
        graph->params[node->params[1]].init = STK_INIT_ZERO;
    }
}

/* A mistake of the graph where a number of the loss is out of its range. */
static void check_loss(stk_graph *graph, const stk_loss *loss) {
    bool good =
        loss->kind != STK_LOSS_HUBER || (isfinite(loss->huber_delta) && loss->huber_delta > 0);
    if (loss->kind == STK_LOSS_SIGMOID) {
        good = loss->gamma_pos >= 0 && isfinite(loss->gamma_pos) && loss->gamma_neg >= 0 &&
               isfinite(loss->gamma_neg) && loss->margin >= 0 && loss->margin < 1;
    }
    for (int i = 0; loss->positive_weights != NULL && i < graph->classes; i++) {
        good = good && loss->positive_weights[i] >= 0 && isfinite(loss->positive_weights[i]);
    }
    if (!good) {
        STK_FAIL(&graph->error, STK_ERR_INTERNAL,
                 "a network's loss of kind %d has a number out of its range", (int)loss->kind);
    }
}

void stk_graph_set_loss(stk_graph *graph, const stk_loss *loss) {
    if (failed(graph)) {
        return;
    }
    check_loss(graph, loss);
    stk_mem_free((void *)graph->loss.positive_weights);
    graph->loss = *loss;
    graph->loss.positive_weights = NULL;
    if (failed(graph) || loss->kind != STK_LOSS_SIGMOID || loss->positive_weights == NULL) {
        return;
    }
    size_t count = (size_t)graph->classes;
    float *weights = stk_mem_raw(count, sizeof *weights);
    if (weights == NULL) {
        STK_FAIL_MEMORY(&graph->error, "the weights of a network's outputs");
        return;
    }
    memcpy(weights, loss->positive_weights, count * sizeof *weights);
    graph->loss.positive_weights = weights;
}

const stk_node *stk_graph_classifier(const stk_graph *graph) {
    const stk_node *last = &graph->nodes[graph->values[graph->logits].producer];
    return last->op == STK_OP_STEPS ? &graph->nodes[graph->values[last->inputs[0]].producer] : last;
}

/* A mistake of the graph where its outputs are not what its loss is for. */
static void check_logits(stk_graph *graph) {
    if (stk_shape_count(graph->values[graph->logits].shape) != stk_graph_answers(graph)) {
        STK_FAIL(&graph->error, STK_ERR_INTERNAL, "the network's output is not one per class");
        return;
    }
    const stk_node *last = &graph->nodes[graph->values[graph->logits].producer];
    bool places = last->op == STK_OP_STEPS && graph->classes > 1;
    if (graph->loss.kind == STK_LOSS_STEPS && !places) {
        STK_FAIL(&graph->error, STK_ERR_INTERNAL,
                 "the loss of places on a scale is for a network whose logits are those of the "
                 "scale's steps, two or more");
    }
}

/* Marks the parameters of the head: see stk_param.head. */
static void mark_head(stk_graph *graph) {
    const stk_node *classifier = stk_graph_classifier(graph);
    for (int n = 0; n < graph->node_count; n++) {
        const stk_node *node = &graph->nodes[n];
        bool head = node == classifier || graph->values[node->output].from_features;
        for (int i = 0; i < node->param_count && head; i++) {
            graph->params[node->params[i]].head = true;
        }
    }
}

stk_status stk_graph_finish(stk_graph *graph, int logits, stk_error *err) {
    if (!failed(graph)) {
        graph->logits = logits;
        check_logits(graph);
        mark_head(graph);
        stk_node node = {.op = STK_OP_LOSS, .inputs = {logits}, .input_count = 1};
        add_node(graph, node, graph->values[logits].shape);
    }
    if (failed(graph)) {
        return STK_FAIL(err, graph->error.status, "%s", graph->error.message);
    }
    return STK_OK;
}

void stk_graph_init_part(const stk_graph *graph, int index, uint64_t seed, size_t from,
                         size_t count, float *values) {
    const stk_param *param = &graph->params[index];
    stk_rng rng = stk_rng_make(seed, STK_RNG_INIT, 0, (uint64_t)index);
    rng.counter =
        from * (param->init == STK_INIT_HE ? 2 : 1); /* two uniform numbers make a normal one */
    double deviation = param->init == STK_INIT_HE ? sqrt(2.0 / param->fan) : 0;
    double bound = param->init == STK_INIT_LINEAR ? 1.0 / sqrt(param->fan) : 0;
    for (size_t i = 0; i < count; i++) {
        switch (param->init) {
        case STK_INIT_HE:
            values[i] = (float)(deviation * stk_rng_normal(&rng));
            break;
        case STK_INIT_LINEAR:
            values[i] = (float)stk_rng_range(&rng, -bound, bound);
            break;
        case STK_INIT_ZERO:
            values[i] = 0;
            break;
        case STK_INIT_ONE:
            values[i] = 1;
            break;
        }
    }
}
