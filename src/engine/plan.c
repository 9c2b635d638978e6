/*
 * plan.c - lifetimes, then places.
 *
 * Time is counted in node executions: the forward of node i at i, its backward at 2n-1-i. Each
 * buffer lives over an interval of that time. The largest buffers are placed first, each at the
 * lowest offset that is free during its whole life; with the nested lifetimes of training this
 * comes within a few per cent of the least possible.
 */
#include "engine/plan.h"

#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/mem.h"

typedef struct buffer {
    size_t bytes;
    int birth;      /* first time of use */
    int death;      /* last time of use, included */
    size_t *offset; /* where the answer goes */
    size_t placed;  /* the offset, once placed */
} buffer;

typedef struct planner {
    const stk_graph *graph;
    stk_plan *plan;
    buffer *buffers; /* values, then gradients, then saved memory; absent ones have 0 bytes */
    size_t count;
    int last; /* the time behind which nothing happens */
} planner;

static size_t rounded(size_t bytes) {
    return (bytes + STK_PLAN_ALIGN - 1) / STK_PLAN_ALIGN * STK_PLAN_ALIGN;
}

static int backward_time(const planner *p, int node) {
    return 2 * p->graph->node_count - 1 - node;
}

/*
 * A node may write over its input when nobody else reads that, neither another node nor the
 * backward of the node that made it.
 */
static bool runs_in_place(const planner *p, const stk_node *node) {
    if (!stk_op_traits[node->op].in_place) {
        return false;
    }
    const stk_value *input = &p->graph->values[node->inputs[0]];
    const stk_node *maker = &p->graph->nodes[input->producer];
    return input->uses == 1 && maker->op != STK_OP_INPUT &&
           !stk_op_traits[maker->op].backward_reads_output;
}

/* The value whose memory this one lies on: itself, or the input of a chain of in-place nodes. */
static int root_of(const planner *p, int value) {
    while (p->plan->aliased[value]) {
        value = p->graph->nodes[p->graph->values[value].producer].inputs[0];
    }
    return value;
}

static void extend(buffer *b, int time) {
    b->birth = time < b->birth ? time : b->birth;
    b->death = time > b->death ? time : b->death;
}

static bool is_skipped(const planner *p, int node) {
    return !p->plan->train && p->graph->nodes[node].op == STK_OP_LOSS;
}

/* The life of every activation: from its making to its last reader, forward or backward. */
static void plan_values(planner *p) {
    const stk_graph *graph = p->graph;
    for (int n = 0; n < graph->node_count; n++) {
        const stk_node *node = &graph->nodes[n];
        const stk_op_trait *trait = &stk_op_traits[node->op];
        if (is_skipped(p, n)) {
            continue;
        }
        buffer *out = &p->buffers[root_of(p, node->output)];
        size_t bytes = stk_shape_count(graph->values[node->output].shape) * sizeof(float);
        out->bytes = rounded(bytes * p->plan->batch);
        extend(out, n);
        if (p->plan->train && trait->backward_reads_output) {
            extend(out, backward_time(p, n));
        }
        for (int i = 0; i < node->input_count; i++) {
            buffer *in = &p->buffers[root_of(p, node->inputs[i])];
            extend(in, n);
            if (p->plan->train && trait->backward_reads_input) {
                extend(in, backward_time(p, n));
            }
        }
    }
    /* The logits are what inference gives back: they outlive the last node. */
    extend(&p->buffers[root_of(p, graph->logits)], graph->node_count - 1);
}

/* The life of every gradient: from the backward of its last consumer to that of its producer. */
static void plan_grads(planner *p) {
    const stk_graph *graph = p->graph;
    buffer *grads = p->buffers + graph->value_count;
    for (int v = 0; p->plan->train && v < graph->value_count; v++) {
        const stk_value *value = &graph->values[v];
        if (!value->needs_grad || value->last_consumer < 0) {
            continue;
        }
        buffer *grad = &grads[root_of(p, v)];
        grad->bytes = rounded(stk_shape_count(value->shape) * sizeof(float) * p->plan->batch);
        extend(grad, backward_time(p, value->last_consumer));
        extend(grad, backward_time(p, value->producer));
    }
}

static void plan_saved(planner *p, stk_plan_needs *needs, void *context) {
    const stk_graph *graph = p->graph;
    buffer *saved = p->buffers + 2 * graph->value_count;
    for (int n = 0; n < graph->node_count; n++) {
        if (is_skipped(p, n)) {
            continue;
        }
        stk_node_needs need = needs(context, graph, n, p->plan->batch, p->plan->train);
        saved[n].bytes = rounded(need.saved_bytes);
        extend(&saved[n], n);
        if (p->plan->train) {
            extend(&saved[n], backward_time(p, n));
        }
        size_t workspace = rounded(need.workspace_bytes);
        if (workspace > p->plan->workspace_bytes) {
            p->plan->workspace_bytes = workspace;
        }
    }
}

static int by_size(const void *a, const void *b) {
    const buffer *x = *(const buffer *const *)a;
    const buffer *y = *(const buffer *const *)b;
    if (x->bytes != y->bytes) {
        return x->bytes > y->bytes ? -1 : 1;
    }
    return x < y ? -1 : x > y; /* the same plan on every machine */
}

static int by_place(const void *a, const void *b) {
    const buffer *x = *(const buffer *const *)a;
    const buffer *y = *(const buffer *const *)b;
    return x->placed < y->placed ? -1 : x->placed > y->placed;
}

/* The lowest offset that no placed buffer with an overlapping life covers. */
static size_t lowest_place(const buffer *b, buffer *const *placed, size_t count, buffer **alive) {
    size_t living = 0;
    for (size_t i = 0; i < count; i++) {
        if (placed[i]->birth <= b->death && b->birth <= placed[i]->death) {
            alive[living++] = placed[i];
        }
    }
    qsort(alive, living, sizeof *alive, by_place);
    size_t offset = 0;
    for (size_t i = 0; i < living; i++) {
        if (alive[i]->placed >= offset + b->bytes) {
            break;
        }
        size_t end = alive[i]->placed + alive[i]->bytes;
        offset = end > offset ? end : offset;
    }
    return offset;
}

static stk_status place(planner *p, stk_error *err) {
    buffer **order = stk_mem_raw(p->count, sizeof *order);
    buffer **alive = stk_mem_raw(p->count, sizeof *alive);
    if (order == NULL || alive == NULL) {
        stk_mem_free(order);
        stk_mem_free(alive);
        return STK_FAIL_MEMORY(err, "the memory plan");
    }
    size_t wanted = 0;
    for (size_t i = 0; i < p->count; i++) {
        if (p->buffers[i].bytes > 0) {
            order[wanted++] = &p->buffers[i];
        }
    }
    qsort(order, wanted, sizeof *order, by_size);
    size_t end = 0;
    for (size_t i = 0; i < wanted; i++) {
        buffer *b = order[i];
        b->placed = lowest_place(b, order, i, alive);
        *b->offset = b->placed;
        end = b->placed + b->bytes > end ? b->placed + b->bytes : end;
    }
    p->plan->workspace = end;
    p->plan->arena_bytes = end + p->plan->workspace_bytes;
    stk_mem_free(order);
    stk_mem_free(alive);
    return STK_OK;
}

/* Values that lie on others take over their offsets, for activations and gradients alike. */
static void follow_aliases(planner *p) {
    for (int v = 0; v < p->graph->value_count; v++) {
        int root = root_of(p, v);
        p->plan->values[v] = p->plan->values[root];
        if (p->graph->values[v].needs_grad && p->graph->values[v].last_consumer >= 0) {
            p->plan->grads[v] = p->plan->grads[root];
        }
    }
}

static stk_status new_planner(planner *p, stk_error *err) {
    size_t values = (size_t)p->graph->value_count;
    size_t nodes = (size_t)p->graph->node_count;
    p->count = 2 * values + nodes;
    p->last = 2 * p->graph->node_count;
    p->buffers = stk_mem_new(p->count, sizeof *p->buffers);
    p->plan->values = stk_mem_raw(values, sizeof *p->plan->values);
    p->plan->grads = stk_mem_raw(values, sizeof *p->plan->grads);
    p->plan->saved = stk_mem_raw(nodes, sizeof *p->plan->saved);
    p->plan->aliased = stk_mem_new(values, sizeof *p->plan->aliased);
    if (p->buffers == NULL || p->plan->values == NULL || p->plan->grads == NULL ||
        p->plan->saved == NULL || p->plan->aliased == NULL) {
        return STK_FAIL_MEMORY(err, "the memory plan");
    }
    memset(p->plan->values, 0xFF, values * sizeof *p->plan->values);
    memset(p->plan->grads, 0xFF, values * sizeof *p->plan->grads);
    memset(p->plan->saved, 0xFF, nodes * sizeof *p->plan->saved);
    for (size_t i = 0; i < p->count; i++) {
        p->buffers[i].birth = p->last;
        p->buffers[i].death = -1;
        p->buffers[i].offset = i < values       ? &p->plan->values[i]
                               : i < 2 * values ? &p->plan->grads[i - values]
                                                : &p->plan->saved[i - 2 * values];
    }
    for (int n = 0; n < p->graph->node_count; n++) {
        const stk_node *node = &p->graph->nodes[n];
        p->plan->aliased[node->output] = runs_in_place(p, node);
    }
    return STK_OK;
}

stk_status stk_plan_make(stk_plan *plan, const stk_graph *graph, size_t batch, bool train,
                         stk_plan_needs *needs, void *context, stk_error *err) {
    memset(plan, 0, sizeof *plan);
    plan->batch = batch;
    plan->train = train;
    planner p = {.graph = graph, .plan = plan};
    stk_status status = new_planner(&p, err);
    if (status == STK_OK) {
        plan_values(&p);
        plan_grads(&p);
        plan_saved(&p, needs, context);
        status = place(&p, err);
    }
    if (status == STK_OK) {
        follow_aliases(&p);
    } else {
        stk_plan_free(plan);
    }
    stk_mem_free(p.buffers);
    return status;
}

void stk_plan_free(stk_plan *plan) {
    stk_mem_free(plan->values);
    stk_mem_free(plan->grads);
    stk_mem_free(plan->saved);
    stk_mem_free(plan->aliased);
    memset(plan, 0, sizeof *plan);
}
