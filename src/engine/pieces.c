/*
 * pieces.c - finds the chains of a graph.
 *
 * A chain begins at a batch norm whose input nobody else reads and grows forward as long as its
 * last value has one reader of the right kind. A chain is computed at the position of its last
 * node, when the value of a shortcut that it adds exists, too.
 */
#include "engine/pieces.h"

#include <string.h>

#include "base/error.h"
#include "base/mem.h"

/* The only node that reads a value, or STK_NO_NODE. */
static int only_reader(const stk_graph *graph, int value) {
    if (graph->values[value].uses != 1) {
        return STK_NO_NODE;
    }
    for (int n = graph->values[value].producer + 1; n < graph->node_count; n++) {
        for (int i = 0; i < graph->nodes[n].input_count; i++) {
            if (graph->nodes[n].inputs[i] == value) {
                return n;
            }
        }
    }
    return STK_NO_NODE;
}

static bool is_op(const stk_graph *graph, int node, stk_op op) {
    return node != STK_NO_NODE && graph->nodes[node].op == op;
}

static bool is_activation(const stk_graph *graph, int node) {
    return is_op(graph, node, STK_OP_RELU) || is_op(graph, node, STK_OP_RELU6) ||
           is_op(graph, node, STK_OP_SILU);
}

/* Nodes that belong to a chain already are marked in `taken`. */
static int free_reader(const stk_graph *graph, int value, const bool *taken) {
    int node = only_reader(graph, value);
    return node != STK_NO_NODE && !taken[node] ? node : STK_NO_NODE;
}

static stk_piece single(const stk_graph *graph, int n) {
    const stk_node *node = &graph->nodes[n];
    const stk_op_trait *trait = &stk_op_traits[node->op];
    stk_piece piece = {.node = n,
                       .conv = STK_NO_NODE,
                       .norm = STK_NO_NODE,
                       .drop = STK_NO_NODE,
                       .add = STK_NO_NODE,
                       .act = STK_NO_NODE,
                       .input_count = node->input_count,
                       .inner = STK_NO_VALUE,
                       .output = node->output,
                       .backward_reads_output = trait->backward_reads_output,
                       .in_place = trait->in_place};
    for (int i = 0; i < node->input_count; i++) {
        piece.inputs[i] = node->inputs[i];
        piece.backward_reads_input[i] = trait->backward_reads_input[i];
    }
    return piece;
}

/* Grows a chain around the norm `n`; returns its last node and marks all of them as taken. */
static int grow_chain(const stk_graph *graph, int n, bool *taken, stk_piece *piece) {
    *piece = single(graph, n);
    piece->node = STK_NO_NODE;
    piece->norm = n;
    int input = graph->nodes[n].inputs[0];
    int maker = graph->values[input].producer;
    bool filters = is_op(graph, maker, STK_OP_CONV) || is_op(graph, maker, STK_OP_DEPTHWISE);
    if (filters && graph->values[input].uses == 1 && graph->nodes[maker].param_count == 1) {
        piece->conv = maker;
        piece->inner = input;
        piece->inputs[0] = graph->nodes[maker].inputs[0];
        taken[maker] = true;
    }
    int last = n;
    int next = free_reader(graph, graph->nodes[last].output, taken);
    if (is_op(graph, next, STK_OP_DROP_PATH)) {
        piece->drop = last = next;
        next = free_reader(graph, graph->nodes[last].output, taken);
    }
    const stk_node *add = is_op(graph, next, STK_OP_ADD) ? &graph->nodes[next] : NULL;
    int own = graph->nodes[last].output;
    int other = add == NULL ? STK_NO_VALUE : add->inputs[add->inputs[0] == own ? 1 : 0];
    /* A chain cannot add its own input: two gradients of one value would be written at once. */
    if (add != NULL && other != piece->inputs[0]) {
        piece->inputs[1] = other;
        piece->input_count = 2;
        piece->add = last = next;
        next = free_reader(graph, graph->nodes[last].output, taken);
    }
    /* After an addition the slope is derived from the output, which SiLU does not allow. */
    bool hidden = piece->add != STK_NO_NODE && is_op(graph, next, STK_OP_SILU);
    if (is_activation(graph, next) && !hidden) {
        piece->act = last = next;
    }
    int members[] = {piece->norm, piece->drop, piece->add, piece->act};
    for (int i = 0; i < 4; i++) {
        if (members[i] != STK_NO_NODE) {
            taken[members[i]] = true;
        }
    }
    piece->output = graph->nodes[last].output;
    /* Without an addition the activation's input can be computed again from the norm's input. */
    piece->backward_reads_output = piece->add != STK_NO_NODE && piece->act != STK_NO_NODE;
    piece->in_place = false;
    return last;
}

/* Chains are found first; `at` says per node which chain ends there, -1: none. */
static void list_pieces(stk_pieces *p, bool *taken, int *at, stk_piece *chains) {
    const stk_graph *graph = p->graph;
    int count = 0;
    for (int n = 0; n < graph->node_count; n++) {
        at[n] = -1;
    }
    for (int n = 0; n < graph->node_count && p->config.fuse; n++) {
        if (graph->nodes[n].op == STK_OP_BATCH_NORM) {
            at[grow_chain(graph, n, taken, &chains[count])] = count;
            count++;
        }
    }
    for (int n = 0; n < graph->node_count; n++) {
        if (at[n] >= 0) {
            p->items[p->count++] = chains[at[n]];
        } else if (!taken[n]) {
            p->items[p->count++] = single(graph, n);
        }
    }
}

static bool learns(const stk_pieces *p, int node) {
    if (node == STK_NO_NODE || !p->config.train) {
        return false;
    }
    const stk_node *n = &p->graph->nodes[node];
    for (int i = 0; i < n->param_count; i++) {
        const stk_param *param = &p->graph->params[n->params[i]];
        if (param->trainable && (param->head || !p->config.frozen)) {
            return true;
        }
    }
    return false;
}

/* Which values need gradients, which pieces pass them on, and who writes them first. */
static void derive_backward(stk_pieces *p) {
    for (int v = 0; v < p->graph->value_count; v++) {
        p->last_reader[v] = -1;
    }
    for (int i = 0; i < p->count; i++) {
        stk_piece *piece = &p->items[i];
        bool live = learns(p, piece->node) || learns(p, piece->conv) || learns(p, piece->norm);
        for (int k = 0; k < piece->input_count; k++) {
            live = live || p->needs_grad[piece->inputs[k]];
            p->last_reader[piece->inputs[k]] = i;
        }
        piece->live = live;
        p->needs_grad[piece->output] = live;
        if (piece->inner != STK_NO_VALUE) {
            p->needs_grad[piece->inner] = live;
            p->last_reader[piece->inner] = i;
        }
        bool drops =
            piece->node != STK_NO_NODE && p->graph->nodes[piece->node].op == STK_OP_DROPOUT;
        piece->training = p->config.train && (!p->config.frozen || live || drops);
    }
}

stk_status stk_pieces_make(stk_pieces *pieces, const stk_graph *graph,
                           const stk_pieces_config *config, stk_error *err) {
    size_t nodes = (size_t)graph->node_count;
    size_t values = (size_t)graph->value_count;
    *pieces = (stk_pieces){.graph = graph, .config = *config};
    bool *taken = stk_mem_new(nodes, sizeof *taken);
    int *at = stk_mem_raw(nodes, sizeof *at);
    stk_piece *chains = stk_mem_raw(nodes, sizeof *chains);
    pieces->items = stk_mem_raw(nodes, sizeof *pieces->items);
    pieces->needs_grad = stk_mem_new(values, sizeof *pieces->needs_grad);
    pieces->last_reader = stk_mem_raw(values, sizeof *pieces->last_reader);
    bool good = taken != NULL && at != NULL && chains != NULL && pieces->items != NULL &&
                pieces->needs_grad != NULL && pieces->last_reader != NULL;
    stk_status status = STK_OK;
    if (good) {
        list_pieces(pieces, taken, at, chains);
        derive_backward(pieces);
    } else {
        status = STK_FAIL_MEMORY(err, "the pieces of a network");
        stk_pieces_free(pieces);
    }
    stk_mem_free(taken);
    stk_mem_free(at);
    stk_mem_free(chains);
    return status;
}

void stk_pieces_free(stk_pieces *pieces) {
    stk_mem_free(pieces->items);
    stk_mem_free(pieces->needs_grad);
    stk_mem_free(pieces->last_reader);
    memset(pieces, 0, sizeof *pieces);
}
