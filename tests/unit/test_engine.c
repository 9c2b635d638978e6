/*
 * test_engine.c - the graph's builder, first weights, and the memory layout. The plan is checked by
 * playing a whole step on a map of the arena: whoever reads a block must find there what was
 * written for it.
 */
#include "check.h"
#include "first_values.h"

#include <stdint.h>

#include "base/mem.h"
#include "engine/memory_layout.h"
#include "models/models.h"

static stk_graph *new_graph(int img_size, int classes) {
    stk_graph *graph = NULL;
    stk_error err = {0};
    if (stk_graph_new(&graph, img_size, classes, &err) != STK_OK) {
        CHECK_FAIL("%s", err.message);
        exit(1);
    }
    return graph;
}

static stk_graph *model_graph(const char *name, int img_size, int classes) {
    const stk_model *model = NULL;
    stk_graph *graph = NULL;
    stk_error err = {0};
    if (stk_model_find(name, &model, &err) != STK_OK ||
        stk_model_build(model, &(stk_model_config){.img_size = img_size, .classes = classes},
                        &graph, &err) != STK_OK) {
        CHECK_FAIL("%s", err.message);
        exit(1);
    }
    return graph;
}

static void has_shape(const stk_graph *graph, int value, int height, int width, int channels) {
    REQUIRE(value >= 0 && value < graph->value_count);
    stk_shape s = graph->values[value].shape;
    if (s.height != height || s.width != width || s.channels != channels) {
        CHECK_FAIL("value %d is (%d,%d,%d), expected (%d,%d,%d)", value, s.height, s.width,
                   s.channels, height, width, channels);
    }
}

/* ---- the builder ---- */

static void shapes_are_derived(void) {
    stk_graph *g = new_graph(33, 4);
    stk_error err = {0};
    int x = stk_graph_input(g);
    has_shape(g, x, 33, 33, 3);
    int a = stk_graph_conv(g, x, "a", 8, 7, 2, 3);
    has_shape(g, a, 17, 17, 8);
    int b = stk_graph_relu(g, stk_graph_batch_norm(g, a, "n", STK_INIT_ONE));
    has_shape(g, b, 17, 17, 8);
    int c = stk_graph_max_pool(g, b, 3, 2, 1);
    has_shape(g, c, 9, 9, 8);
    int d = stk_graph_conv(g, c, "d", 8, 3, 1, 1);
    int e = stk_graph_add(g, d, c);
    has_shape(g, e, 9, 9, 8);
    int f = stk_graph_conv(g, e, "f", 5, 1, 1, 0);
    has_shape(g, f, 9, 9, 5);
    int h = stk_graph_conv(g, f, "h", 6, 9, 1, 0);
    has_shape(g, h, 1, 1, 6);
    int p = stk_graph_avg_pool(g, f);
    has_shape(g, p, 1, 1, 5);
    int logits = stk_graph_linear(g, p, "fc", 4);
    has_shape(g, logits, 1, 1, 4);
    REQUIRE_OK(stk_graph_finish(g, logits, &err), &err);
    CHECK_INT(g->logits, logits);
    CHECK_INT(g->nodes[g->node_count - 1].op, STK_OP_LOSS);
    CHECK_INT(g->values[c].uses, 2);
    stk_graph_free(g);
    stk_graph_free(NULL);
}

/* A linear layer over pixels that were not averaged reads all of them. */
static void parameters_follow_each_other(void) {
    stk_graph *g = new_graph(4, 2);
    stk_error err = {0};
    int x = stk_graph_conv(g, stk_graph_input(g), "c", 5, 3, 1, 1);
    x = stk_graph_batch_norm(g, x, "b", STK_INIT_ZERO);
    int logits = stk_graph_linear(g, x, "l", 2);
    REQUIRE_OK(stk_graph_finish(g, logits, &err), &err);
    static const struct {
        const char *name;
        size_t count;
        bool trainable;
        bool decay;
    } expected[] = {{"c.weight", 135, true, true},      {"b.weight", 5, true, false},
                    {"b.bias", 5, true, false},         {"b.running_mean", 5, false, false},
                    {"b.running_var", 5, false, false}, {"l.weight", 160, true, true},
                    {"l.bias", 2, true, false}};
    size_t offset = 0;
    REQUIRE(g->param_count == 7);
    for (int i = 0; i < 7; i++) {
        const stk_param *p = &g->params[i];
        CHECK_STR(p->name, expected[i].name);
        CHECK_INT(p->count, expected[i].count);
        CHECK_INT(p->trainable, expected[i].trainable);
        CHECK_INT(p->decay, expected[i].decay);
        CHECK_INT(p->offset, offset);
        offset += p->count;
    }
    CHECK_INT(g->param_elements, offset);
    CHECK_INT(g->params[0].rank, 4);
    CHECK(g->params[0].shape[0] == 5 && g->params[0].shape[1] == 3 && g->params[0].shape[2] == 3);
    CHECK(g->params[5].shape[0] == 2 && g->params[5].shape[1] == 80);
    CHECK_INT(g->params[0].fan, 45);
    CHECK_INT(g->params[5].fan, 80);
    stk_graph_free(g);
}

static void too_small_an_image_is_told(void) {
    stk_graph *g = new_graph(10, 2);
    stk_error err = {0};
    int x = stk_graph_conv(g, stk_graph_input(g), "a", 4, 7, 2, 0);
    has_shape(g, x, 2, 2, 4);
    x = stk_graph_conv(g, x, "b", 4, 5, 1, 1);
    CHECK_INT(x, STK_NO_VALUE);
    CHECK_INT(stk_graph_finish(g, x, &err), STK_ERR_USAGE);
    CHECK_CONTAINS(err.message, "10 px");
    CHECK_CONTAINS(err.message, "2 px are left for a window of 5");
    CHECK_CONTAINS(err.message, "--img-size");
    stk_graph_free(g);
    g = new_graph(3, 2);
    CHECK_INT(stk_graph_max_pool(g, stk_graph_input(g), 4, 1, 0), STK_NO_VALUE);
    stk_graph_free(g);
    g = new_graph(0, 2);
    CHECK_INT(stk_graph_conv(g, stk_graph_input(g), "a", 4, 3, 1, 1), STK_NO_VALUE);
    stk_graph_free(g);
}

static void the_first_mistake_is_kept(void) {
    stk_graph *g = new_graph(8, 2);
    stk_error err = {0};
    int in = stk_graph_input(g);
    int a = stk_graph_conv(g, in, "a", 4, 3, 1, 1);
    int nodes = g->node_count;
    int wrong = stk_graph_add(g, a, in);
    CHECK_INT(wrong, STK_NO_VALUE);
    CHECK_INT(stk_graph_conv(g, wrong, "x", 4, 99, 1, 0), STK_NO_VALUE);
    CHECK_INT(stk_graph_batch_norm(g, wrong, "x", STK_INIT_ONE), STK_NO_VALUE);
    CHECK_INT(stk_graph_relu(g, a), STK_NO_VALUE);
    CHECK_INT(stk_graph_add(g, a, a), STK_NO_VALUE);
    CHECK_INT(stk_graph_max_pool(g, a, 3, 2, 1), STK_NO_VALUE);
    CHECK_INT(stk_graph_avg_pool(g, a), STK_NO_VALUE);
    CHECK_INT(stk_graph_linear(g, a, "x", 2), STK_NO_VALUE);
    CHECK_INT(g->node_count, nodes);
    CHECK_INT(stk_graph_finish(g, STK_NO_VALUE, &err), STK_ERR_INTERNAL);
    CHECK_CONTAINS(err.message, "cannot add (8,8,4) and (8,8,3)");
    stk_graph_free(g);
}

static void other_mistakes_are_told(void) {
    stk_graph *g = new_graph(8, 3);
    stk_error err = {0};
    int in = stk_graph_input(g);
    CHECK_INT(stk_graph_finish(g, stk_graph_linear(g, in, "fc", 2), &err), STK_ERR_INTERNAL);
    CHECK_CONTAINS(err.message, "one per class");
    stk_graph_free(g);
    g = new_graph(8, 3);
    in = stk_graph_input(g);
    CHECK_INT(stk_graph_add(g, in, in), STK_NO_VALUE);
    stk_graph_free(g);
    char name[200];
    memset(name, 'n', sizeof name - 1);
    name[sizeof name - 1] = '\0';
    g = new_graph(8, 3);
    CHECK_INT(stk_graph_conv(g, stk_graph_input(g), name, 4, 3, 1, 1), STK_NO_VALUE);
    CHECK_CONTAINS(g->error.message, "too long");
    stk_graph_free(g);
}

/* ---- first weights ---- */

static float *first_weights(const stk_graph *g, int param, uint64_t seed) {
    float *values = stk_mem_raw(g->params[param].count, sizeof *values);
    if (values == NULL) {
        exit(1);
    }
    first_values(g, param, seed, values);
    return values;
}

static void first_weights_have_the_right_spread(void) {
    stk_graph *g = model_graph("resnet18", 64, 10);
    for (int p = 0; p < g->param_count; p++) {
        const stk_param *param = &g->params[p];
        float *w = first_weights(g, p, 1);
        double sum = 0;
        double squares = 0;
        double most = 0;
        double n = (double)param->count;
        for (size_t i = 0; i < param->count; i++) {
            sum += w[i];
            squares += (double)w[i] * w[i];
            most = fmax(most, fabs(w[i]));
        }
        if (param->init == STK_INIT_HE) {
            double fan = param->shape[0] * param->shape[2] * param->shape[3];
            double deviation = sqrt(2 / fan);
            CHECK_NEAR(sqrt(squares / n) / deviation, 1, 5 / sqrt(2 * n));
            CHECK_NEAR(sum / n / deviation, 0, 5 / sqrt(n));
            CHECK(most > 3 * deviation && most < 7 * deviation);
        } else if (param->init == STK_INIT_LINEAR) {
            double bound = 1 / sqrt(512);
            CHECK(most <= bound && (most > 0.9 * bound || param->count < 50));
            CHECK_NEAR(sqrt(squares / n) / (bound / sqrt(3)), 1, 3 / sqrt(n));
        } else {
            CHECK_INT(squares, param->init == STK_INIT_ONE ? (long long)param->count : 0);
        }
        stk_mem_free(w);
    }
    stk_graph_free(g);
}

/* Many threads draw parts of one parameter. */
static void parts_of_first_weights_are_those_of_all(void) {
    stk_graph *g = model_graph("resnet18", 64, 10);
    int params[] = {0, 1, g->param_count - 2, g->param_count - 1}; /* of different kinds */
    for (size_t i = 0; i < sizeof params / sizeof *params; i++) {
        size_t count = g->params[params[i]].count;
        size_t from = count / 3;
        float *all = first_weights(g, params[i], 5);
        float *part = stk_mem_raw(count, sizeof *part);
        stk_graph_init_part(g, params[i], 5, from, count - from, part);
        CHECK(memcmp(part, all + from, (count - from) * sizeof *part) == 0);
        stk_mem_free(all);
        stk_mem_free(part);
    }
    stk_graph_free(g);
}

static void first_weights_depend_on_seed_and_place_only(void) {
    stk_graph *g = model_graph("convnet_s", 32, 3);
    stk_graph *other = model_graph("convnet_s", 64, 9);
    int second = -1; /* two weights of one shape */
    for (int p = 1; p < g->param_count; p++) {
        second = strcmp(g->params[p].name, "conv3.weight") == 0 ? p : second;
    }
    REQUIRE(second > 0);
    float *a = first_weights(g, second, 7);
    float *b = first_weights(g, second, 7);
    float *c = first_weights(g, second, 8);
    float *d = first_weights(other, second, 7);
    float *e = first_weights(g, 0, 7);
    size_t bytes = g->params[second].count * sizeof *a;
    CHECK(memcmp(a, b, bytes) == 0);
    CHECK(memcmp(a, c, bytes) != 0);
    CHECK(memcmp(a, d, bytes) == 0);
    CHECK(memcmp(a, e, 100 * sizeof *a) != 0);
    float *all[] = {a, b, c, d, e};
    for (int i = 0; i < 5; i++) {
        stk_mem_free(all[i]);
    }
    stk_graph_free(g);
    stk_graph_free(other);
}

/* ---- the plan ---- */

/* Needs that no real backend has: some pieces with, some without, none a multiple of 64. */
static stk_piece_needs odd_needs(void *context, const stk_pieces *pieces, int piece, size_t batch) {
    int *calls = context;
    (*calls)++;
    bool live = pieces->items[piece].live;
    return (stk_piece_needs){.saved_bytes = live && piece % 3 == 0 ? 100 + batch * 37 : 0,
                             .workspace_bytes = piece % 4 == 1 ? 1000 + (size_t)piece * batch : 0};
}

static const stk_pieces_config training = {.train = true};
static const stk_pieces_config fused = {.train = true, .fuse = true};
static const stk_pieces_config frozen = {.train = true, .fuse = true, .frozen = true};
static const stk_pieces_config inference = {.fuse = true};

static size_t arena_of(const stk_graph *graph, const stk_pieces_config *config, size_t batch,
                       stk_pieces *pieces, stk_memory_layout *plan) {
    stk_error err = {0};
    int calls = 0;
    if (stk_pieces_make(pieces, graph, config, &err) != STK_OK ||
        stk_memory_layout_make(plan, pieces, batch, odd_needs, &calls, &err) != STK_OK) {
        CHECK_FAIL("%s", err.message);
        exit(1);
    }
    CHECK_INT(calls, config->train ? pieces->count : pieces->count - 1);
    return plan->arena_bytes;
}

static void free_plan(stk_pieces *pieces, stk_memory_layout *plan) {
    stk_memory_layout_free(plan);
    stk_pieces_free(pieces);
}

/* The arena in blocks of STK_MEMORY_LAYOUT_ALIGN bytes, each with the mark of what was written
 * last. */
typedef struct arena {
    const stk_graph *graph;
    const stk_pieces *pieces;
    const stk_memory_layout *plan;
    int *marks;
    size_t blocks;
    int faults;
} arena;

enum { MARK_VALUE = 1, MARK_GRAD = 100000, MARK_SAVED = 200000, MARK_WORKSPACE = 300000 };

static void touch(arena *a, size_t offset, size_t bytes, int mark, bool write) {
    size_t last = (bytes + STK_MEMORY_LAYOUT_ALIGN - 1) / STK_MEMORY_LAYOUT_ALIGN;
    if (offset == SIZE_MAX || offset % STK_MEMORY_LAYOUT_ALIGN != 0 ||
        offset + bytes > a->plan->arena_bytes) {
        a->faults++;
        return;
    }
    for (size_t i = 0; i < last; i++) {
        int *at = &a->marks[offset / STK_MEMORY_LAYOUT_ALIGN + i];
        if (write) {
            *at = mark;
        } else if (*at != mark) {
            a->faults++;
        }
    }
}

static size_t value_bytes(const arena *a, int value) {
    return stk_shape_count(a->graph->values[value].shape) * sizeof(float) * a->plan->batch;
}

static void touch_value(arena *a, int value, bool write) {
    touch(a, a->plan->values[value], value_bytes(a, value), MARK_VALUE + value, write);
}

static void touch_grad(arena *a, int value, bool write) {
    touch(a, a->plan->grads[value], value_bytes(a, value), MARK_GRAD + value, write);
}

static void touch_own(arena *a, int piece, bool forward) {
    int calls = 0;
    stk_piece_needs need = odd_needs(&calls, a->pieces, piece, a->plan->batch);
    if (need.saved_bytes > 0) {
        touch(a, a->plan->saved[piece], need.saved_bytes, MARK_SAVED + piece, forward);
    } else {
        a->faults += a->plan->saved[piece] != SIZE_MAX;
    }
    if (need.workspace_bytes > 0) {
        a->faults += need.workspace_bytes > a->plan->workspace_bytes;
        touch(a, a->plan->workspace, need.workspace_bytes, MARK_WORKSPACE + piece, true);
    }
}

static bool is_loss(const arena *a, int index) {
    int node = a->pieces->items[index].node;
    return node != STK_NO_NODE && a->graph->nodes[node].op == STK_OP_LOSS;
}

/* The output lies on the first input. */
static bool in_place(const arena *a, const stk_piece *piece) {
    return piece->input_count > 0 &&
           a->plan->values[piece->output] == a->plan->values[piece->inputs[0]];
}

/* Everything a piece reads is there when it has written: only one in place may write over it. */
static void play_forward(arena *a, int index) {
    const stk_piece *piece = &a->pieces->items[index];
    bool stored = piece->inner != STK_NO_VALUE;
    for (int i = 0; i < piece->input_count; i++) {
        touch_value(a, piece->inputs[i], false);
    }
    touch_own(a, index, true);
    if (stored) {
        touch_value(a, piece->inner, true);
    }
    for (int i = 0; i < piece->input_count && stored; i++) {
        touch_value(a, piece->inputs[i], false); /* the addition comes behind the convolution */
    }
    touch_value(a, piece->output, true);
    for (int i = 0; i < piece->input_count && !in_place(a, piece); i++) {
        touch_value(a, piece->inputs[i], false);
    }
    if (piece->live) {
        touch_own(a, index, false);
        if (stored) {
            touch_value(a, piece->inner, false);
        }
    }
}

/* What each operation's backward reads is written out here, so that the traits are checked too. */
static bool reads_input(const arena *a, const stk_piece *piece, int which) {
    if (piece->node == STK_NO_NODE) {
        return which == 0;
    }
    switch (a->graph->nodes[piece->node].op) {
    case STK_OP_CONV:
    case STK_OP_DEPTHWISE:
    case STK_OP_BATCH_NORM:
    case STK_OP_LINEAR:
    case STK_OP_SILU:
    case STK_OP_SCALE:
        return true;
    default:
        return false;
    }
}

static bool reads_output(const arena *a, const stk_piece *piece) {
    if (piece->node == STK_NO_NODE) {
        return piece->add != STK_NO_NODE && piece->act != STK_NO_NODE;
    }
    stk_op op = a->graph->nodes[piece->node].op;
    return op == STK_OP_RELU || op == STK_OP_RELU6 || op == STK_OP_SIGMOID || op == STK_OP_LOSS;
}

static void play_backward(arena *a, int index) {
    const stk_piece *piece = &a->pieces->items[index];
    if (!piece->live) {
        return;
    }
    for (int pass = 0; pass < 2; pass++) {
        if (!is_loss(a, index) && !(pass == 1 && in_place(a, piece))) {
            touch_grad(a, piece->output, false);
        }
        for (int i = 0; i < piece->input_count; i++) {
            if (reads_input(a, piece, i)) {
                touch_value(a, piece->inputs[i], false);
            }
        }
        if (piece->inner != STK_NO_VALUE) {
            touch_value(a, piece->inner, false);
            a->faults += a->plan->grads[piece->inner] != a->plan->grads[piece->output];
        }
        if (reads_output(a, piece)) {
            touch_value(a, piece->output, false);
        }
        touch_own(a, index, false);
        for (int i = 0; i < piece->input_count && pass == 0; i++) {
            int value = piece->inputs[i];
            if (a->pieces->needs_grad[value] && a->pieces->last_reader[value] != index) {
                touch_grad(a, value, false); /* it is added to */
            }
            if (a->pieces->needs_grad[value]) {
                touch_grad(a, value, true);
            }
        }
    }
}

static int play(const stk_pieces *pieces, const stk_memory_layout *plan) {
    arena a = {.graph = pieces->graph,
               .pieces = pieces,
               .plan = plan,
               .blocks = plan->arena_bytes / STK_MEMORY_LAYOUT_ALIGN};
    a.marks = stk_mem_new(a.blocks, sizeof *a.marks);
    if (a.marks == NULL) {
        return -1;
    }
    for (int i = 0; i < pieces->count; i++) {
        if (pieces->config.train || !is_loss(&a, i)) {
            play_forward(&a, i);
        }
    }
    touch_value(&a, pieces->graph->logits, false);
    for (int i = pieces->count - 1; i >= 0 && pieces->config.train; i--) {
        play_backward(&a, i);
    }
    stk_mem_free(a.marks);
    return a.faults;
}

/* Every node is in exactly one piece, and a piece reads only what pieces before it have made. */
static void check_pieces(const stk_pieces *pieces) {
    const stk_graph *graph = pieces->graph;
    bool *made = stk_mem_new((size_t)graph->value_count, sizeof *made);
    int nodes = 0;
    REQUIRE(made != NULL);
    for (int i = 0; i < pieces->count; i++) {
        const stk_piece *piece = &pieces->items[i];
        int members[] = {piece->node, piece->conv, piece->norm,
                         piece->drop, piece->add,  piece->act};
        for (int m = 0; m < 6; m++) {
            nodes += members[m] != STK_NO_NODE;
        }
        for (int k = 0; k < piece->input_count; k++) {
            CHECK(made[piece->inputs[k]]);
        }
        CHECK(!made[piece->output]);
        made[piece->output] = true;
    }
    CHECK_INT(nodes, graph->node_count);
    stk_mem_free(made);
}

static void check_plan(const stk_graph *graph, size_t batch, const stk_pieces_config *config) {
    stk_pieces pieces;
    stk_memory_layout plan;
    size_t sum = 0;
    arena_of(graph, config, batch, &pieces, &plan);
    check_pieces(&pieces);
    CHECK_INT(plan.arena_bytes % STK_MEMORY_LAYOUT_ALIGN, 0);
    CHECK_INT(plan.workspace % STK_MEMORY_LAYOUT_ALIGN, 0);
    CHECK_INT(plan.arena_bytes, plan.workspace + plan.workspace_bytes);
    CHECK_INT(play(&pieces, &plan), 0);
    for (int i = 0; i < pieces.count; i++) {
        const stk_piece *piece = &pieces.items[i];
        int value = piece->output;
        bool made = config->train || i + 1 < pieces.count;
        bool grad = pieces.needs_grad[value] && pieces.last_reader[value] >= 0;
        CHECK_INT(plan.values[value] != SIZE_MAX, made);
        CHECK_INT(plan.grads[value] != SIZE_MAX, grad);
        size_t bytes = stk_shape_count(graph->values[value].shape) * sizeof(float) * batch;
        bool inner = piece->inner != STK_NO_VALUE && piece->live;
        sum += (made ? bytes : 0) + (grad ? bytes : 0) + (inner ? bytes : 0);
    }
    CHECK(plan.arena_bytes < sum + plan.workspace_bytes); /* sharing saves something */
    free_plan(&pieces, &plan);
    CHECK(plan.values == NULL && plan.arena_bytes == 0);
}

static void check_plans(const stk_graph *graph, size_t batch) {
    check_plan(graph, batch, &training);
    check_plan(graph, batch, &fused);
    check_plan(graph, batch, &frozen);
    check_plan(graph, batch, &inference);
}

static void nothing_is_written_over_while_it_is_needed(void) {
    static const size_t batches[] = {1, 2, 3, 7, 16, 33};
    for (int m = 0; m < 4; m++) {
        stk_graph *g = model_graph(m % 2 == 0 ? "resnet18" : "convnet_s", m < 2 ? 32 : 57, 6);
        for (size_t b = 0; b < sizeof batches / sizeof *batches; b++) {
            check_plans(g, batches[b]);
        }
        stk_graph_free(g);
    }
}

/* Values with many readers, chains of ReLUs, a value that is both added and read later. */
static void odd_graphs_are_planned_right(void) {
    stk_graph *g = new_graph(9, 3);
    stk_error err = {0};
    int x = stk_graph_input(g);
    int a = stk_graph_conv(g, stk_graph_relu(g, x), "a", 3, 3, 1, 1);
    int r = stk_graph_relu(g, a); /* not in place: a is read once more */
    int b = stk_graph_add(g, a, stk_graph_input(g));
    int c = stk_graph_relu(g, stk_graph_relu(g, b));
    int d = stk_graph_relu(g, c);
    int e = stk_graph_add(g, stk_graph_add(g, c, d), r);
    int f = stk_graph_max_pool(g, e, 3, 1, 1);
    int h = stk_graph_add(g, stk_graph_batch_norm(g, f, "n", STK_INIT_ONE), e);
    int logits = stk_graph_linear(g, stk_graph_avg_pool(g, h), "fc", 3);
    REQUIRE_OK(stk_graph_finish(g, logits, &err), &err);
    for (size_t batch = 1; batch < 40; batch += 3) {
        check_plans(g, batch);
    }
    stk_graph_free(g);
}

static void only_what_may_runs_in_place(void) {
    static const char *const names[] = {"resnet18", "convnet_s"};
    for (int m = 0; m < 2; m++) {
        stk_graph *g = model_graph(names[m], 64, 6);
        stk_pieces pieces;
        stk_memory_layout plan;
        int aliased = 0;
        arena_of(g, &training, 8, &pieces, &plan);
        for (int v = 0; v < g->value_count; v++) {
            const stk_node *node = &g->nodes[g->values[v].producer];
            if (plan.alias[v] == v) {
                continue;
            }
            int input = node->inputs[0];
            aliased++;
            CHECK_INT(node->op, STK_OP_RELU);
            CHECK_INT(g->values[input].uses, 1);
            CHECK(g->nodes[g->values[input].producer].op != STK_OP_INPUT);
            CHECK(g->nodes[g->values[input].producer].op != STK_OP_RELU);
            CHECK_INT(plan.values[v], plan.values[input]);
            CHECK_INT(plan.grads[v], plan.grads[input]);
        }
        CHECK_INT(aliased, m == 0 ? 17 : 6);
        free_plan(&pieces, &plan);
        stk_graph_free(g);
    }
}

static void chains_are_found(void) {
    stk_graph *g = model_graph("resnet18", 64, 6);
    stk_pieces pieces;
    stk_error err = {0};
    REQUIRE_OK(stk_pieces_make(&pieces, g, &fused, &err), &err);
    int chains = 0;
    int added = 0;
    for (int i = 0; i < pieces.count; i++) {
        const stk_piece *piece = &pieces.items[i];
        bool chain = piece->norm != STK_NO_NODE;
        chains += chain;
        added += piece->add != STK_NO_NODE;
        CHECK_INT(chain, piece->conv != STK_NO_NODE);
        CHECK(!chain || piece->act != STK_NO_NODE ||
              strstr(g->params[g->nodes[piece->norm].params[0]].name, "downsample"));
    }
    CHECK_INT(chains, 20);
    CHECK_INT(added, 8);
    CHECK_INT(pieces.count, 20 + 5); /* input, two pools, classifier, loss */
    stk_pieces_free(&pieces);
    stk_graph_free(g);
}

/* Stochastic depth, a gate, and activations of all kinds; a sum of a value with its own chain. */
static void other_operations_are_planned_right(void) {
    stk_graph *g = new_graph(17, 3);
    stk_error err = {0};
    int x = stk_graph_conv(g, stk_graph_input(g), "a", 8, 3, 2, STK_PAD_SAME);
    x = stk_graph_silu(g, stk_graph_batch_norm(g, x, "an", STK_INIT_ONE));
    int y = stk_graph_depthwise(g, x, "b", 5, 1, STK_PAD_SAME);
    y = stk_graph_silu(g, stk_graph_batch_norm(g, y, "bn", STK_INIT_ONE));
    int gate = stk_graph_silu(g, stk_graph_conv_bias(g, stk_graph_avg_pool(g, y), "r", 2, 1, 1, 0));
    gate = stk_graph_sigmoid(g, stk_graph_conv_bias(g, gate, "e", 8, 1, 1, 0));
    y = stk_graph_scale(g, y, gate);
    y = stk_graph_batch_norm(g, stk_graph_conv(g, y, "c", 8, 1, 1, 0), "cn", STK_INIT_ONE);
    x = stk_graph_add(g, stk_graph_drop_path(g, y, 0.2), x);
    x = stk_graph_add(
        g, stk_graph_batch_norm(g, stk_graph_conv(g, x, "d", 8, 1, 1, 0), "dn", STK_INIT_ONE), x);
    x = stk_graph_add(g, stk_graph_shortcut(g, x, 12, 2),
                      stk_graph_relu6(g, stk_graph_conv(g, x, "f", 12, 3, 2, 1)));
    x = stk_graph_dropout(g, stk_graph_avg_pool(g, x), 0.3);
    REQUIRE_OK(stk_graph_finish(g, stk_graph_linear(g, x, "fc", 3), &err), &err);
    for (size_t batch = 1; batch < 9; batch++) {
        check_plans(g, batch);
    }
    stk_graph_free(g);
}

static void freezing_leaves_only_the_head(void) {
    stk_graph *g = model_graph("resnet18", 64, 6);
    stk_pieces pieces;
    stk_memory_layout plan;
    size_t all = arena_of(g, &fused, 8, &pieces, &plan);
    free_plan(&pieces, &plan);
    size_t head = arena_of(g, &frozen, 8, &pieces, &plan);
    int live = 0;
    for (int i = 0; i < pieces.count; i++) {
        live += pieces.items[i].live;
        CHECK(!pieces.items[i].live || pieces.items[i].norm == STK_NO_NODE);
    }
    CHECK_INT(live, 2); /* classifier and loss */
    CHECK(head * 2 < all);
    free_plan(&pieces, &plan);
    stk_graph_free(g);
}

static void a_larger_batch_never_needs_less(void) {
    static const char *const names[] = {"resnet18", "convnet_s"};
    for (int m = 0; m < 4; m++) {
        stk_graph *g = model_graph(names[m / 2], 64, 10);
        size_t before = 0;
        for (size_t batch = 1; batch <= 70; batch++) {
            stk_pieces pieces;
            stk_memory_layout plan;
            size_t now = arena_of(g, m % 2 == 0 ? &training : &inference, batch, &pieces, &plan);
            if (now <= before) {
                CHECK_FAIL("%s: batch %zu needs %zu bytes, one less %zu", names[m / 2], batch, now,
                           before);
            }
            before = now;
            free_plan(&pieces, &plan);
        }
        stk_graph_free(g);
    }
}

static void inference_needs_less_than_half_of_training(void) {
    stk_graph *g = model_graph("resnet18", 224, 1000);
    stk_memory_layout plans[3];
    stk_pieces pieces[3];
    arena_of(g, &training, 4, &pieces[0], &plans[0]);
    arena_of(g, &inference, 4, &pieces[1], &plans[1]);
    arena_of(g, &training, 4, &pieces[2], &plans[2]);
    size_t bytes = (size_t)g->value_count * sizeof *plans[0].values;
    CHECK(plans[1].arena_bytes * 2 < plans[0].arena_bytes);
    CHECK(memcmp(plans[0].values, plans[2].values, bytes) == 0);
    CHECK(memcmp(plans[0].grads, plans[2].grads, bytes) == 0);
    /* The first convolution's output is the least for inference. */
    CHECK(plans[1].arena_bytes >= 4 * 4 * (size_t)64 * 112 * 112);
    for (int i = 0; i < 3; i++) {
        free_plan(&pieces[i], &plans[i]);
    }
    stk_graph_free(g);
}

static void no_memory_is_told(void) {
    const stk_model *model = NULL;
    stk_error err = {0};
    REQUIRE_OK(stk_model_find("resnet18", &model, &err), &err);
    bool done = false;
    for (int n = 0; n < 1000 && !done; n++) {
        stk_graph *graph = NULL;
        stk_memory_layout plan = {0};
        stk_pieces pieces = {0};
        int calls = 0;
        memset(&err, 0, sizeof err);
        stk_mem_fail_after(n);
        stk_status status = stk_model_build(
            model, &(stk_model_config){.img_size = 64, .classes = 10}, &graph, &err);
        if (status == STK_OK) {
            status = stk_pieces_make(&pieces, graph, &fused, &err);
        }
        if (status == STK_OK) {
            status = stk_memory_layout_make(&plan, &pieces, 2, odd_needs, &calls, &err);
        }
        stk_mem_fail_after(-1);
        done = status == STK_OK;
        if (!done) {
            CHECK_INT(status, STK_ERR_MEMORY);
            CHECK_INT(err.status, STK_ERR_MEMORY);
            CHECK(plan.values == NULL && plan.alias == NULL);
        }
        free_plan(&pieces, &plan);
        stk_graph_free(graph);
    }
    CHECK(done);
}

static const check_test tests[] = {
    TEST(shapes_are_derived),
    TEST(parameters_follow_each_other),
    TEST(too_small_an_image_is_told),
    TEST(the_first_mistake_is_kept),
    TEST(other_mistakes_are_told),
    TEST(first_weights_have_the_right_spread),
    TEST(parts_of_first_weights_are_those_of_all),
    TEST(first_weights_depend_on_seed_and_place_only),
    TEST(nothing_is_written_over_while_it_is_needed),
    TEST(odd_graphs_are_planned_right),
    TEST(only_what_may_runs_in_place),
    TEST(chains_are_found),
    TEST(other_operations_are_planned_right),
    TEST(freezing_leaves_only_the_head),
    TEST(a_larger_batch_never_needs_less),
    TEST(inference_needs_less_than_half_of_training),
    TEST(no_memory_is_told),
};

CHECK_MAIN(tests)
