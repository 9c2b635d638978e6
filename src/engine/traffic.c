/* traffic.c - counts the passes over tensors, piece by piece, and multiply-adds. */
#include "engine/traffic.h"

#include "engine/pieces.h"

/* Passes over the output of a normalisation: its sums, then reading and writing; backward its sums
 * from two tensors, then reading both and writing one. */
#define NORM_FORWARD 3.0
#define NORM_BACKWARD 5.0

/* Where two gradients meet both are read and their sum is written. */
#define GRADIENT_ADD 3.0

/* float32 weight, gradient and momentum read, weight and momentum written. */
#define OPTIMIZER_BYTES 20.0

typedef struct counter {
    const stk_pieces *pieces;
    bool train;
    double numbers; /* of activations, per picture */
} counter;

static double size_of(const counter *c, int value) {
    return (double)stk_shape_count(c->pieces->graph->values[value].shape);
}

static bool needs_grad(const counter *c, int value) {
    return c->train && c->pieces->needs_grad[value];
}

/* Passes of a convolution: forward, the gradient of its input if needed, that of its weights. */
static void count_conv(counter *c, int input, int output) {
    double both = size_of(c, input) + size_of(c, output);
    c->numbers += both + (c->train ? both : 0) + (needs_grad(c, input) ? both : 0);
}

/* An inference applies a norm where the convolution writes its output. */
static void count_chain(counter *c, const stk_piece *piece) {
    double size = size_of(c, piece->output);
    if (piece->conv != STK_NO_NODE) {
        count_conv(c, piece->inputs[0], piece->inner);
    }
    if (c->train) {
        c->numbers += (NORM_FORWARD + NORM_BACKWARD) * size;
    } else if (piece->conv == STK_NO_NODE) {
        c->numbers += 2 * size;
    }
    if (piece->add != STK_NO_NODE) { /* read; its gradient is written */
        c->numbers += size + (c->train ? size : 0);
    }
}

/* Everything is read and written once; backward the output's gradient is read, those of the inputs
 * are written, and what the operation needs to remember is read again. */
static void count_node(counter *c, const stk_piece *piece) {
    const stk_op_trait *trait = &stk_op_traits[c->pieces->graph->nodes[piece->node].op];
    double out = size_of(c, piece->output);
    c->numbers += out;
    if (c->train && piece->live) {
        c->numbers += out + (trait->backward_reads_output ? out : 0);
    }
    for (int i = 0; i < piece->input_count; i++) {
        double in = size_of(c, piece->inputs[i]);
        bool remembered = c->train && piece->live && trait->backward_reads_input[i];
        c->numbers += in + (remembered ? in : 0) + (needs_grad(c, piece->inputs[i]) ? in : 0);
    }
}

/*
 * The pool of a squeeze-and-excite block costs no pass over its input: the mean is summed where the
 * input is made, and the pool's gradient, one number per channel, is added where the gradient of
 * the other reader is written.
 */
static bool pools_beside(const stk_graph *graph, const stk_node *node) {
    return node->op == STK_OP_AVG_POOL && graph->values[node->inputs[0]].uses > 1;
}

static void count_piece(counter *c, const stk_piece *piece) {
    const stk_graph *graph = c->pieces->graph;
    stk_op op = piece->node != STK_NO_NODE ? graph->nodes[piece->node].op : STK_OP_BATCH_NORM;
    if (piece->node == STK_NO_NODE) {
        count_chain(c, piece);
    } else if (pools_beside(graph, &graph->nodes[piece->node])) {
        c->numbers += size_of(c, piece->output);
    } else if (op == STK_OP_CONV || op == STK_OP_DEPTHWISE || op == STK_OP_LINEAR) {
        count_conv(c, piece->inputs[0], piece->output);
    } else {
        count_node(c, piece);
    }
}

/* Values with several readers: their gradients meet. */
static void count_meetings(counter *c) {
    const stk_graph *graph = c->pieces->graph;
    for (int v = 0; v < graph->value_count; v++) {
        if (graph->values[v].uses > 1 && needs_grad(c, v)) {
            c->numbers += GRADIENT_ADD * (graph->values[v].uses - 1) * size_of(c, v);
        }
    }
    for (int n = 0; n < graph->node_count; n++) {
        int input = graph->nodes[n].inputs[0];
        if (pools_beside(graph, &graph->nodes[n]) && needs_grad(c, input)) {
            c->numbers -= GRADIENT_ADD * size_of(c, input);
        }
    }
}

/* Every number of an output takes one multiply-add for each weight that it sums over. */
static double count_multiply_adds(const stk_graph *graph) {
    double sum = 0;
    for (int n = 0; n < graph->node_count; n++) {
        const stk_node *node = &graph->nodes[n];
        if (node->op == STK_OP_CONV || node->op == STK_OP_DEPTHWISE || node->op == STK_OP_LINEAR) {
            const stk_param *weight = &graph->params[node->params[0]];
            double each = (double)weight->count / weight->shape[0];
            sum += each * (double)stk_shape_count(graph->values[node->output].shape);
        }
    }
    return sum;
}

stk_status stk_graph_traffic(const stk_graph *graph, bool train, int number_bytes,
                             stk_traffic *traffic, stk_error *err) {
    stk_pieces pieces;
    stk_pieces_config config = {.train = train, .fuse = true};
    *traffic = (stk_traffic){0};
    stk_status status = stk_pieces_make(&pieces, graph, &config, err);
    counter c = {.pieces = &pieces, .train = train};
    for (int i = 0; i < pieces.count && status == STK_OK; i++) {
        count_piece(&c, &pieces.items[i]);
    }
    if (status == STK_OK) {
        count_meetings(&c);
    }
    traffic->image_bytes = c.numbers * number_bytes;
    /* Training passes over the weights three times: forward, and once for each gradient. */
    double passes = train ? 3.0 * number_bytes + OPTIMIZER_BYTES : number_bytes;
    traffic->step_bytes = passes * (double)graph->param_elements;
    traffic->multiply_adds = count_multiply_adds(graph);
    stk_pieces_free(&pieces);
    return status;
}
