/*
 * test_cuda_backend.c - everything that a step of the CUDA backend can be asked for, against the
 * CPU's; its memory, and that its bits are always the same.
 */
#include "cuda_pair.h"
#include "train/train.h"

static int build_both(stk_graph *g) {
    int x = stk_graph_conv(g, stk_graph_input(g), "conv1", 8, 3, 1, 1);
    x = stk_graph_silu(g, stk_graph_batch_norm(g, x, "bn1", STK_INIT_ONE));
    int y = stk_graph_depthwise(g, x, "dw", 3, 1, 1);
    y = stk_graph_batch_norm(g, y, "bn2", STK_INIT_ONE);
    y = stk_graph_drop_path(g, y, 0.3);
    x = stk_graph_relu(g, stk_graph_add(g, y, x));
    x = stk_graph_dropout(g, stk_graph_avg_pool(g, x), 0.2);
    return stk_graph_linear(g, x, "fc", CLASSES);
}

static const stk_update sgd = {.kind = STK_SGD,
                               .lr = 0.1f,
                               .head_lr = 0.3f,
                               .momentum = 0.9f,
                               .weight_decay = 0.01f,
                               .grad_scale = 1,
                               .ema_decay = 0.9f};
static const stk_update adamw = {.kind = STK_ADAMW,
                                 .lr = 0.01f,
                                 .head_lr = 0.02f,
                                 .momentum = 0.9f,
                                 .beta2 = 0.99f,
                                 .epsilon = 1e-3f,
                                 .updates = 1,
                                 .head_updates = 4,
                                 .weight_decay = 0.05f,
                                 .grad_scale = 1,
                                 .ema_decay = 0.8f};

static bool open_both(pair *p, stk_graph **graph, pair_wish wish) {
    *graph = pair_graph(build_both, 9);
    wish.batch = 6;
    if (pair_open(p, *graph, &wish)) {
        return true;
    }
    stk_graph_free(*graph);
    return false;
}

static void close_both(pair *p, stk_graph *graph) {
    pair_close(p);
    stk_graph_free(graph);
}

/* Three updates, so that moments and averages are no longer zeros. */
static void check_updates(stk_update update, pair_wish wish, const char *what) {
    pair p;
    stk_graph *graph;
    if (!open_both(&p, &graph, wish)) {
        return;
    }
    for (int i = 0; i < 3; i++) {
        stk_step_input in = pair_input(&p);
        in.update = &update;
        in.step += (uint64_t)i;
        pair_step(&p, &in, what);
        update.updates++;
        update.head_updates++;
    }
    close_both(&p, graph);
}

static const pair_wish strict = {.precision = STK_PRECISION_FP32_STRICT, .share = 5e-5};

static void updates_of_sgd(void) {
    stk_update update = sgd;
    check_updates(update, strict, "sgd");
    update.nesterov = true;
    check_updates(update, strict, "nesterov");
    update.clip_norm = 0.05f;
    check_updates(update, strict, "clipped");
    update.clip_norm = 1000;
    check_updates(update, strict, "not clipped");
}

static void updates_of_adamw(void) {
    stk_update update = adamw;
    pair_wish wish = strict;
    wish.state.optimizer = STK_ADAMW;
    check_updates(update, wish, "adamw");
    wish.state.ema = true;
    update.clip_norm = 0.1f;
    check_updates(update, wish, "adamw, average");
}

static void averages(void) {
    pair_wish wish = strict;
    wish.state.ema = true;
    check_updates(sgd, wish, "average");
}

static void frozen_backbones(void) {
    pair_wish wish = strict;
    wish.frozen = true;
    wish.state.ema = true;
    check_updates(sgd, wish, "frozen");
    wish.plain = true;
    check_updates(sgd, wish, "frozen, plain");
}

static void kept_statistics(void) {
    pair_wish wish = strict;
    wish.kept_stats = true;
    check_updates(sgd, wish, "kept statistics");
    wish.plain = true;
    check_updates(sgd, wish, "kept statistics, plain");
}

static void accumulated_steps(void) {
    pair p;
    stk_graph *graph;
    stk_update update = sgd;
    update.grad_scale = 0.5f;
    if (!open_both(&p, &graph, strict)) {
        return;
    }
    for (int i = 0; i < 4; i++) {
        stk_step_input in = pair_input(&p);
        in.step += (uint64_t)i;
        in.keep_gradients = i % 2 == 1;
        in.update = i % 2 == 1 ? &update : NULL;
        pair_step(&p, &in, "accumulation");
    }
    close_both(&p, graph);
}

static void mixed_samples(void) {
    static const stk_mix mixes[] = {
        {.kind = STK_MIX_MIXUP, .keep = 0.3f},
        {.kind = STK_MIX_MIXUP, .keep = 0.75f},
        {.kind = STK_MIX_CUTMIX, .keep = 0.7f, .left = 2, .top = 1, .right = 6, .bottom = 7},
        {.kind = STK_MIX_CUTMIX, .keep = 1, .left = 4, .top = 4, .right = 4, .bottom = 9},
    };
    pair p;
    stk_graph *graph;
    if (!open_both(&p, &graph, strict)) {
        return;
    }
    for (size_t i = 0; i < sizeof mixes / sizeof *mixes; i++) {
        stk_step_input in = pair_input(&p);
        in.mix = mixes[i];
        in.label_smoothing = 0.1f * (float)i;
        pair_step(&p, &in, in.mix.kind == STK_MIX_MIXUP ? "mixup" : "cutmix");
    }
    close_both(&p, graph);
}

static void check_fewer_samples(pair_wish wish) {
    pair p;
    stk_graph *graph;
    if (!open_both(&p, &graph, wish)) {
        return;
    }
    static const size_t counts[] = {6, 4, 1, 6, 4};
    const pair_side *gpu = &p.sides[PAIR_GPU];
    uint64_t bytes = gpu->backend->exec_bytes(gpu->exec);
    stk_device_memory before, after;
    CHECK(gpu->backend->memory(gpu->device, &before, &p.err) == STK_OK);
    for (size_t i = 0; i < sizeof counts / sizeof *counts; i++) {
        stk_step_input in = pair_input(&p);
        char what[32];
        snprintf(what, sizeof what, "%zu of 6 samples", counts[i]);
        in.count = counts[i];
        in.update = &sgd;
        pair_step(&p, &in, what);
        /* The memory of the whole batch is enough, as its plan says. */
        CHECK(gpu->backend->memory(gpu->device, &after, &p.err) == STK_OK);
        CHECK_INT(gpu->backend->exec_bytes(gpu->exec), bytes);
        if (getenv("STOKER_CUDA_LIBS") != NULL) { /* a driver takes some for code */
            CHECK_INT(after.free_bytes, before.free_bytes);
        }
    }
    close_both(&p, graph);
}

static void fewer_samples_than_the_batch(void) {
    pair_wish wish = strict;
    check_fewer_samples(wish);
    wish.frozen = true;
    check_fewer_samples(wish);
}

/* A step that leaves the range of fp16 is left out, and the next one has half the loss scale. */
static void loss_scale_of_fp16(void) {
    pair p;
    stk_graph *graph;
    pair_wish wish = {.precision = STK_PRECISION_FP16, .share = 5e-2};
    if (!open_both(&p, &graph, wish)) {
        return;
    }
    stk_step_input in = pair_input(&p);
    stk_step_output out;
    const pair_side *gpu = &p.sides[PAIR_GPU];
    in.update = &sgd;
    CHECK(gpu->backend->step(gpu->exec, &in, &out, &p.err) == STK_OK);
    CHECK(!out.skipped && out.loss_scale >= 256);
    /* Weights so large that gradients overflow. */
    const stk_param *last = &graph->params[graph->param_count - 2];
    float *huge = stk_mem_new(last->count, sizeof *huge);
    float *before = pair_read(&p, PAIR_GPU, STK_TENSOR_VALUE);
    for (size_t i = 0; i < last->count; i++) {
        huge[i] = i % 2 ? 30000.0f : -30000.0f;
    }
    CHECK(gpu->backend->state_write(gpu->state, STK_TENSOR_VALUE, graph->param_count - 2, huge,
                                    &p.err) == STK_OK);
    CHECK(gpu->backend->step(gpu->exec, &in, &out, &p.err) == STK_OK);
    CHECK(out.skipped);
    float first = out.loss_scale;
    float *after = pair_read(&p, PAIR_GPU, STK_TENSOR_VALUE);
    for (int i = 0; i < graph->param_count; i++) {
        const stk_param *param = &graph->params[i];
        if (param->trainable && param != last) {
            CHECK(memcmp(before + param->offset, after + param->offset,
                         param->count * sizeof *before) == 0);
        }
    }
    CHECK(gpu->backend->step(gpu->exec, &in, &out, &p.err) == STK_OK);
    CHECK(out.loss_scale == first / 2);
    /* Gradients that fit again move the weights again. */
    CHECK(gpu->backend->state_write(gpu->state, STK_TENSOR_VALUE, graph->param_count - 2,
                                    before + last->offset, &p.err) == STK_OK);
    CHECK(gpu->backend->step(gpu->exec, &in, &out, &p.err) == STK_OK);
    CHECK(!out.skipped && isfinite(out.loss_sum));
    CHECK(out.loss_scale == first / 4);
    stk_mem_free(after);
    after = pair_read(&p, PAIR_GPU, STK_TENSOR_VALUE);
    CHECK(memcmp(before + last->offset, after + last->offset, last->count * sizeof *before) != 0);
    /* Another training begins with the first scale again. */
    float extras[STK_STATE_EXTRAS] = {0};
    CHECK(stk_train_reset_state(gpu->backend, gpu->state, graph, &p.err) == STK_OK);
    CHECK(gpu->backend->extras_read(gpu->state, extras, &p.err) == STK_OK);
    CHECK(extras[0] == 65536 && extras[1] == 1 && extras[2] == 0);
    stk_mem_free(huge);
    stk_mem_free(before);
    stk_mem_free(after);
    close_both(&p, graph);
}

/* An update that is left out, and then the state as a training that is taken up again has it. */
static void leave_one_out(pair *p, const stk_step_input *in) {
    const pair_side *gpu = &p->sides[PAIR_GPU];
    int last = p->graph->param_count - 2;
    const stk_param *param = &p->graph->params[last];
    float *broken = stk_mem_new(param->count, sizeof *broken);
    float *values = pair_read(p, PAIR_GPU, STK_TENSOR_VALUE);
    float extras[STK_STATE_EXTRAS] = {0};
    stk_step_output out = {0};
    for (size_t i = 0; i < param->count; i++) {
        broken[i] = INFINITY;
    }
    CHECK(gpu->backend->state_write(gpu->state, STK_TENSOR_VALUE, last, broken, &p->err) == STK_OK);
    CHECK(gpu->backend->step(gpu->exec, in, &out, &p->err) == STK_OK);
    CHECK(out.skipped);
    /* Running statistics too, about which the next ones are summed. */
    for (int i = 0; i < p->graph->param_count; i++) {
        CHECK(gpu->backend->state_write(gpu->state, STK_TENSOR_VALUE, i,
                                        values + p->graph->params[i].offset, &p->err) == STK_OK);
    }
    CHECK(gpu->backend->extras_read(gpu->state, extras, &p->err) == STK_OK);
    CHECK(extras[3] == 1 && extras[4] == 1);
    extras[0] *= 2; /* so that gradients are rounded as without it */
    CHECK(gpu->backend->extras_write(gpu->state, NULL, &p->err) == STK_OK);
    CHECK(gpu->backend->extras_write(gpu->state, extras, &p->err) == STK_OK);
    extras[4] = 2; /* more of the backbone's than of the head's */
    CHECK(gpu->backend->extras_write(gpu->state, extras, &p->err) == STK_ERR_DATA);
    stk_mem_free(broken);
    stk_mem_free(values);
}

/* AdamW goes on as if an update that was left out had never been counted. */
static void adamw_counts_updates_that_were_made(void) {
    float *values[2] = {NULL, NULL};
    for (int with = 0; with < 2; with++) {
        pair p;
        stk_graph *graph;
        pair_wish wish = {.precision = STK_PRECISION_FP16, .deterministic = true};
        stk_update update = adamw;
        wish.state.optimizer = STK_ADAMW;
        if (!open_both(&p, &graph, wish)) {
            break;
        }
        const pair_side *gpu = &p.sides[PAIR_GPU];
        stk_step_input in = pair_input(&p);
        stk_step_output out = {0};
        in.update = &update;
        for (int i = 0; i < 2; i++, update.updates++, update.head_updates++) {
            CHECK(gpu->backend->step(gpu->exec, &in, &out, &p.err) == STK_OK);
            CHECK(!out.skipped);
            if (i == 0 && with) {
                update.updates++, update.head_updates++;
                leave_one_out(&p, &in);
            }
        }
        values[with] = pair_read(&p, PAIR_GPU, STK_TENSOR_VALUE);
        CHECK(!with || values[0] == NULL ||
              memcmp(values[0], values[1], graph->param_elements * sizeof(float)) == 0);
        close_both(&p, graph);
    }
    stk_mem_free(values[0]);
    stk_mem_free(values[1]);
}

/*
 * How long the device took for the parts of a step. The emulated one tells a thousand times what
 * passed, and others may have the cores meanwhile.
 */
#define MOST_S 1e6
static void check_times(const stk_step_output *out, bool update) {
    CHECK(out->busy_s > 0 && out->busy_s < MOST_S);
    CHECK(update ? out->update_s > 0 : out->update_s >= 0);
    CHECK(out->update_s < out->busy_s);
    CHECK(out->copy_s > 0 && out->copy_s < MOST_S);
    CHECK(out->copy_wait_s >= 0 && out->copy_wait_s <= out->copy_s);
}

/* Steps that nobody waits for come to the same as those that are waited for. */
static void steps_run_ahead(void) {
    enum { STEPS = 20 };
    pair p;
    stk_graph *graph;
    pair_wish wish = strict;
    wish.share = 1e-3; /* twenty updates */
    if (!open_both(&p, &graph, wish)) {
        return;
    }
    stk_step_output expected[STEPS], got[STEPS];
    size_t count = 0;
    for (int i = 0; i < STEPS; i++) {
        stk_step_input in = pair_input(&p);
        stk_update update = sgd;
        size_t more = 0;
        update.lr = 0.02f;
        update.head_lr = 0.02f;
        in.step += (uint64_t)i;
        in.update = &update;
        in.count = i == 7 ? 3 : in.count; /* a smaller batch in between */
        CHECK(p.sides[PAIR_CPU].backend->step(p.sides[PAIR_CPU].exec, &in, &expected[i], &p.err) ==
              STK_OK);
        CHECK(p.sides[PAIR_GPU].backend->step(p.sides[PAIR_GPU].exec, &in, NULL, &p.err) == STK_OK);
        if (i % 3 == 2) {
            CHECK(p.sides[PAIR_GPU].backend->collect(p.sides[PAIR_GPU].exec, false, got + count,
                                                     STEPS - count, &more, &p.err) == STK_OK);
            count += more;
        }
    }
    for (size_t more = 1; more > 0 && count < STEPS; count += more) {
        CHECK(p.sides[PAIR_GPU].backend->collect(p.sides[PAIR_GPU].exec, true, got + count,
                                                 STEPS - count, &more, &p.err) == STK_OK);
    }
    CHECK_INT(count, STEPS);
    for (size_t i = 0; i < count; i++) {
        pair_compare_output(&p, &expected[i], &got[i], "ahead");
        check_times(&got[i], true);
    }
    pair_compare_kind(&p, STK_TENSOR_VALUE, "ahead");
    close_both(&p, graph);
}

/* A step that is waited for tells its own result, and those before it are collected as ever. */
static void one_step_of_many_is_waited_for(void) {
    enum { STEPS = 4, WAITED = 2 };
    pair p;
    stk_graph *graph;
    if (!open_both(&p, &graph, strict)) {
        return;
    }
    const pair_side *gpu = &p.sides[PAIR_GPU];
    stk_step_output expected[STEPS], got[STEPS], waited;
    size_t count = 0;
    for (int i = 0; i < STEPS; i++) {
        stk_step_input in = pair_input(&p);
        in.count -= (size_t)i; /* so that no two losses are the same */
        in.count = i == WAITED ? p.config.batch : in.count;
        in.label_smoothing = 0.1f * (float)i;
        CHECK(p.sides[PAIR_CPU].backend->step(p.sides[PAIR_CPU].exec, &in, &expected[i], &p.err) ==
              STK_OK);
        CHECK(gpu->backend->step(gpu->exec, &in, i == WAITED ? &waited : NULL, &p.err) == STK_OK);
    }
    CHECK(gpu->backend->collect(gpu->exec, true, got, STEPS, &count, &p.err) == STK_OK);
    CHECK_INT(count, STEPS - 1);
    pair_compare_output(&p, &expected[WAITED], &waited, "the one that is waited for");
    check_times(&waited, false);
    for (int i = 0; i < STEPS - 1; i++) {
        check_times(&got[i], false);
        pair_compare_output(&p, &expected[i < WAITED ? i : i + 1], &got[i], "the others");
    }
    close_both(&p, graph);
}

/* An inference with norms folded into weights sees what any step has changed. */
static void inferences_between_steps(void) {
    pair p;
    stk_graph *graph;
    if (!open_both(&p, &graph, strict)) {
        return;
    }
    stk_compile_config infer = {.batch = 6, .precision = strict.precision};
    stk_exec *train[2];
    for (int i = 0; i < 2; i++) {
        train[i] = p.sides[i].exec;
        CHECK(p.sides[i].backend->compile(&p.sides[i].exec, p.sides[i].state, &infer, &p.err) ==
              STK_OK);
    }
    for (int round = 0; round < 4; round++) {
        stk_step_input in = pair_input(&p);
        in.update = round == 3 ? &sgd : NULL; /* running statistics move without one */
        for (int i = 0; i < 2 && round > 0; i++) {
            stk_step_output out;
            CHECK(p.sides[i].backend->step(train[i], &in, &out, &p.err) == STK_OK);
        }
        pair_infer(&p, 6, round == 3 ? "after an update" : "after a step");
    }
    for (int i = 0; i < 2; i++) {
        p.sides[i].backend->exec_free(train[i]);
    }
    close_both(&p, graph);
}

/* The same weights with larger pictures, after an update with small ones. */
static void inferences_of_another_size(void) {
    pair p;
    stk_graph *graph;
    if (!open_both(&p, &graph, strict)) {
        return;
    }
    stk_graph *large = pair_graph(build_both, 14);
    stk_compile_config infer = {.graph = large, .batch = 6, .precision = strict.precision};
    stk_exec *train[2];
    uint8_t *small = p.images;
    size_t bytes = 6 * stk_shape_count(large->values[large->input].shape);
    uint8_t *images = stk_mem_new(bytes, 1);
    stk_rng rng = stk_rng_make(3, 0, 0, 0);
    for (size_t i = 0; i < bytes; i++) {
        images[i] = (uint8_t)stk_rng_below(&rng, 256);
    }
    stk_step_input in = pair_input(&p);
    in.update = &sgd;
    pair_step(&p, &in, "small pictures");
    p.images = images;
    for (int i = 0; i < 2; i++) {
        train[i] = p.sides[i].exec;
        CHECK(p.sides[i].backend->compile(&p.sides[i].exec, p.sides[i].state, &infer, &p.err) ==
              STK_OK);
    }
    pair_infer(&p, 6, "large pictures");
    pair_infer(&p, 2, "two large pictures");
    p.images = small;
    stk_mem_free(images);
    for (int i = 0; i < 2; i++) {
        p.sides[i].backend->exec_free(train[i]);
    }
    close_both(&p, graph);
    stk_graph_free(large);
}

/* ---- memory, and the same bits ---- */

static void plans_are_what_is_allocated(void) {
    pair p;
    stk_graph *graph;
    if (!open_both(&p, &graph, strict)) {
        return;
    }
    const pair_side *gpu = &p.sides[PAIR_GPU];
    for (int form = 0; form < 8; form++) {
        stk_compile_config config = {.batch = 1 + (size_t)form * 3,
                                     .train = form & 1,
                                     .plain = form & 2,
                                     .precision =
                                         form & 4 ? STK_PRECISION_FP16 : STK_PRECISION_FP32};
        uint64_t bytes = 0;
        stk_exec *exec = NULL;
        stk_device_memory before, after;
        CHECK(gpu->backend->exec_need(gpu->device, graph, &config, &bytes, NULL, &p.err) == STK_OK);
        CHECK(gpu->backend->memory(gpu->device, &before, &p.err) == STK_OK);
        CHECK(gpu->backend->compile(&exec, gpu->state, &config, &p.err) == STK_OK);
        CHECK(gpu->backend->memory(gpu->device, &after, &p.err) == STK_OK);
        CHECK_INT(gpu->backend->exec_bytes(exec), bytes);
        if (getenv("STOKER_CUDA_LIBS") != NULL) { /* a GPU has pages of 2 MiB */
            CHECK_INT(before.free_bytes - after.free_bytes, bytes);
        }
        gpu->backend->exec_free(exec);
    }
    /* What no launch can be made for has a plan all the same. */
    stk_compile_config large = {.batch = 65536};
    stk_exec *none = NULL;
    uint64_t need = 0;
    CHECK(gpu->backend->exec_need(gpu->device, graph, &large, &need, NULL, &p.err) == STK_OK);
    CHECK(need > (uint64_t)65536 * 9 * 9 * 3);
    CHECK(gpu->backend->compile(&none, gpu->state, &large, &p.err) == STK_ERR_USAGE);
    close_both(&p, graph);
}

static void the_same_bits_in_every_run(void) {
    float *first = NULL;
    for (int run = 0; run < 2; run++) {
        pair p;
        stk_graph *graph;
        pair_wish wish = {.precision = STK_PRECISION_FP16, .deterministic = true};
        if (!open_both(&p, &graph, wish)) {
            return;
        }
        const pair_side *gpu = &p.sides[PAIR_GPU];
        for (int i = 0; i < 3; i++) {
            stk_step_input in = pair_input(&p);
            stk_step_output out;
            in.update = &sgd;
            in.step += (uint64_t)i;
            CHECK(gpu->backend->step(gpu->exec, &in, &out, &p.err) == STK_OK);
        }
        float *values = pair_read(&p, PAIR_GPU, STK_TENSOR_VALUE);
        if (first != NULL) {
            CHECK(memcmp(first, values, graph->param_elements * sizeof *values) == 0);
            stk_mem_free(values);
        } else {
            first = values;
        }
        close_both(&p, graph);
    }
    stk_mem_free(first);
}

static const check_test tests[] = {
    TEST(updates_of_sgd),
    TEST(updates_of_adamw),
    TEST(averages),
    TEST(frozen_backbones),
    TEST(kept_statistics),
    TEST(accumulated_steps),
    TEST(mixed_samples),
    TEST(fewer_samples_than_the_batch),
    TEST(loss_scale_of_fp16),
    TEST(adamw_counts_updates_that_were_made),
    TEST(steps_run_ahead),
    TEST(one_step_of_many_is_waited_for),
    TEST(inferences_between_steps),
    TEST(inferences_of_another_size),
    TEST(plans_are_what_is_allocated),
    TEST(the_same_bits_in_every_run),
};

CHECK_MAIN(tests)
