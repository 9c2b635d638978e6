/* analysis.c - which values are stored, computed again or never stored: the rules of lower.h. */
#include "backend/cuda/lowering/lowering.h"

static bool is_single(const lowering *l, int piece, stk_op op) {
    int node = piece >= 0 ? l->pieces->items[piece].node : STK_NO_NODE;
    return node != STK_NO_NODE && graph_node_of(l, node)->op == op;
}

static bool reads(const stk_piece *piece, int value) {
    return (piece->input_count > 0 && piece->inputs[0] == value) ||
           (piece->input_count > 1 && piece->inputs[1] == value);
}

/* The pieces that read a value, at most `room` of them; returns how many there are. */
static int find_readers(const lowering *l, int value, int *readers, int room) {
    int count = 0;
    for (int i = l->values[value].maker + 1; i < l->pieces->count; i++) {
        if (reads(&l->pieces->items[i], value)) {
            if (count < room) {
                readers[count] = i;
            }
            count++;
        }
    }
    return count;
}

/* The only reader of a piece's output, if that is a single node of this kind; -1 otherwise. */
static int next_single(const lowering *l, int piece, stk_op op) {
    int reader = piece >= 0 ? l->values[l->pieces->items[piece].output].reader : -1;
    return is_single(l, reader, op) ? reader : -1;
}

static int next_gate(const lowering *l, int piece) {
    int conv = next_single(l, piece, STK_OP_CONV);
    const stk_node *node = conv >= 0 ? graph_node_of(l, l->pieces->items[conv].node) : NULL;
    return node != NULL && node->kernel == 1 && node->param_count == 2 ? conv : -1;
}

/*
 * A squeeze-and-excite block after the chain `source`: the mean over pixels, two convolutions with
 * biases, and a product with the chain's output.
 */
static void find_squeeze(lowering *l, int source) {
    const stk_piece *chain = &l->pieces->items[source];
    int readers[2];
    if (chain->conv == STK_NO_NODE || chain->add != STK_NO_NODE || chain->drop != STK_NO_NODE ||
        chain->act == STK_NO_NODE || find_readers(l, chain->output, readers, 2) != 2 ||
        !is_single(l, readers[0], STK_OP_AVG_POOL) || !is_single(l, readers[1], STK_OP_SCALE)) {
        return;
    }
    int mean = readers[0];
    int product = readers[1];
    int first = next_gate(l, mean);
    int act = next_single(l, first, STK_OP_SILU);
    act = act >= 0 ? act : next_single(l, first, STK_OP_RELU);
    int second = next_gate(l, act);
    int sigmoid = next_single(l, second, STK_OP_SIGMOID);
    const stk_piece *last = &l->pieces->items[product];
    if (sigmoid < 0 || l->values[l->pieces->items[sigmoid].output].reader != product ||
        last->inputs[0] != chain->output || last->inputs[1] != l->pieces->items[sigmoid].output) {
        return;
    }
    int absorbed[] = {mean, first, act, second, sigmoid};
    for (int i = 0; i < 5; i++) {
        l->items[absorbed[i]].kind = LOWER_ABSORBED;
    }
    const stk_node *reduce = graph_node_of(l, l->pieces->items[first].node);
    const stk_node *expand = graph_node_of(l, l->pieces->items[second].node);
    lowered_piece *item = &l->items[product];
    item->kind = LOWER_SQUEEZE;
    item->source = source;
    item->squeeze = (cuda_squeeze){
        .plane = lower_plane(l, chain->output),
        .act = graph_node_of(l, chain->act)->op,
        .reduced = value_shape(l, reduce->output).channels,
        .hidden_act = graph_node_of(l, l->pieces->items[act].node)->op,
        .w1 = cuda_value(l->layout, reduce->params[0]),
        .b1 = cuda_value(l->layout, reduce->params[1]),
        .w2 = cuda_value(l->layout, expand->params[0]),
        .b2 = cuda_value(l->layout, expand->params[1]),
        .dw1 = cuda_fresh(l->layout, reduce->params[0]),
        .db1 = cuda_fresh(l->layout, reduce->params[1]),
        .dw2 = cuda_fresh(l->layout, expand->params[0]),
        .db2 = cuda_fresh(l->layout, expand->params[1]),
    };
    l->items[source].by = LOWER_BY_SQUEEZE;
}

/* Sets `by` of a chain whose only reader computes the norm and the activation as it loads. */
static void find_by(lowering *l, int index) {
    const stk_piece *chain = &l->pieces->items[index];
    int reader = l->values[chain->output].reader;
    bool bare = chain->add == STK_NO_NODE && chain->drop == STK_NO_NODE;
    if (l->items[index].by != LOWER_BY_ITSELF || reader < 0 || !bare) {
        return;
    }
    const stk_piece *next = &l->pieces->items[reader];
    bool filters = next->node == STK_NO_NODE && next->conv != STK_NO_NODE;
    if (filters && chain->conv != STK_NO_NODE &&
        graph_node_of(l, next->conv)->op == STK_OP_DEPTHWISE && next->inputs[0] == chain->output) {
        l->items[index].by = LOWER_BY_DEPTHWISE;
    } else if (is_single(l, reader, STK_OP_MAX_POOL) && chain->conv != STK_NO_NODE) {
        l->items[index].by = LOWER_BY_POOL;
        l->items[index].pool = reader;
    } else if (next->add != STK_NO_NODE && next->inputs[1] == chain->output &&
               chain->act == STK_NO_NODE && chain->conv != STK_NO_NODE &&
               chain->training == next->training) {
        l->items[index].by = LOWER_BY_SUM;
    }
}

/* Whether backward may compute a value again: only a weight gradient reads it there. */
static bool can_come_again(const lowering *l, int value) {
    int reader = l->values[value].reader;
    if (reader < 0) {
        return false;
    }
    const stk_piece *next = &l->pieces->items[reader];
    if (next->node != STK_NO_NODE) {
        return graph_node_of(l, next->node)->op == STK_OP_CONV;
    }
    return next->conv != STK_NO_NODE && graph_node_of(l, next->conv)->op == STK_OP_CONV &&
           next->inputs[0] == value;
}

/* A first layer of stride 2 reads pictures as blocks of 2 by 2 pixels; see cuda_stem. */
static void find_stem(lowering *l) {
    int reader = l->values[l->graph->input].reader;
    if (reader < 0 || l->graph->channels > CUDA_STEM_CHANNELS) {
        return;
    }
    const stk_piece *piece = &l->pieces->items[reader];
    int node = piece->node != STK_NO_NODE ? piece->node : piece->conv;
    if (node == STK_NO_NODE || graph_node_of(l, node)->op != STK_OP_CONV ||
        graph_node_of(l, node)->stride != 2) {
        return;
    }
    const stk_node *conv = graph_node_of(l, node);
    stk_shape out = value_shape(l, conv->output);
    int lead = conv->pad % 2;
    int taps = (conv->kernel + lead + 1) / 2;
    l->stem = (cuda_stem){.side = out.height + taps - 1,
                          .before = conv->pad + lead,
                          .lead = lead,
                          .taps = taps,
                          .kernel = conv->kernel,
                          .channels = l->graph->channels};
}

void stk_cuda_lower_analyse(lowering *l) {
    int readers[1];
    for (int i = 0; i < l->pieces->count; i++) {
        const stk_piece *piece = &l->pieces->items[i];
        l->items[i].kind = piece->node == STK_NO_NODE ? LOWER_CHAIN : LOWER_NODE;
        l->values[piece->output].maker = i;
    }
    for (int i = 0; i < l->pieces->count; i++) {
        int output = l->pieces->items[i].output;
        l->values[output].reader = find_readers(l, output, readers, 1) == 1 ? readers[0] : -1;
    }
    find_stem(l);
    /* Inference folds norms into convolutions instead, save for depthwise ones. */
    for (int i = 0; i < l->pieces->count; i++) {
        const stk_piece *piece = &l->pieces->items[i];
        bool depthwise =
            piece->conv != STK_NO_NODE && graph_node_of(l, piece->conv)->op == STK_OP_DEPTHWISE;
        if (l->items[i].kind == LOWER_CHAIN && (l->train || depthwise)) {
            find_squeeze(l, i);
        }
        if (l->items[i].kind == LOWER_CHAIN && l->train) {
            find_by(l, i);
        }
    }
    for (int i = 0; i < l->pieces->count; i++) {
        const stk_piece *piece = &l->pieces->items[i];
        bool chain = l->items[i].kind == LOWER_CHAIN && l->items[i].by == LOWER_BY_ITSELF &&
                     piece->add == STK_NO_NODE && piece->act != STK_NO_NODE;
        l->values[piece->output].again = (chain || l->items[i].kind == LOWER_SQUEEZE) &&
                                         piece->live && can_come_again(l, piece->output);
    }
}
