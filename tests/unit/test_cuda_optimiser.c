/*
 * test_cuda_optimiser.c - the optimiser's kernels against that of the CPU, the loss scale, and
 * what inference makes of weights and norms.
 */
#include "backend/cpu/device.h"
#include "backend/cpu/optim.h"
#include "backend/cuda/program/parameter_layout.h"
#include "cuda_cases.h"

#define CLASSES 5

static stk_error error;

/* Parameters of less than a chunk, of several, and of counts that are no multiples of 8. */
static stk_graph *small_graph(void) {
    stk_graph *graph = NULL;
    if (stk_graph_new(&graph, 8, CLASSES, &error) != STK_OK) {
        exit(1);
    }
    int x = stk_graph_conv(graph, stk_graph_input(graph), "conv1", 11, 3, 1, 1);
    x = stk_graph_batch_norm(graph, x, "bn", STK_INIT_ONE);
    x = stk_graph_conv(graph, stk_graph_relu(graph, x), "conv2", 13, 3, 1, 1);
    x = stk_graph_avg_pool(graph, stk_graph_depthwise(graph, x, "conv3", 3, 1, 1));
    if (stk_graph_finish(graph, stk_graph_linear(graph, x, "fc", CLASSES), &error) != STK_OK) {
        exit(1);
    }
    return graph;
}

/* A model on the CPU, and the same numbers as they lie on the GPU. */
typedef struct pair {
    stk_graph *graph;
    stk_device *device;
    stk_state *cpu;
    stk_state_config config;
    cuda_type type;
    cuda_parameter_layout layout;
    float *blocks[STK_TENSOR_KINDS]; /* layout.elements; what the GPU has */
    float *weights;                  /* the copy, as float32 */
    float *fresh;                    /* graph->param_elements: gradients of a step, unscaled */
    unsigned char *packed;           /* the same as they lie there, times the scale */
    cuda_step_constants constants;
    cuda_scaler scaler;
    cuda_result result;
} pair;

/* From the order of the graph to that of the GPU's blocks, with zeros between. */
static void spread(const pair *m, const float *flat, float *block) {
    memset(block, 0, m->layout.elements * sizeof *block);
    for (int i = 0; i < m->graph->param_count; i++) {
        const stk_param *param = &m->graph->params[i];
        memcpy(block + m->layout.offsets[i], flat + param->offset, param->count * sizeof *flat);
    }
}

static void open_pair(pair *m, cuda_type type, stk_optimizer kind, bool ema) {
    const stk_backend *cpu = &stk_cpu_backend;
    memset(m, 0, sizeof *m);
    m->graph = small_graph();
    m->type = type;
    m->config = (stk_state_config){.train = true, .optimizer = kind, .ema = ema};
    if (cpu->device_open(&m->device, &(stk_device_config){.threads = 1}, &error) != STK_OK ||
        cpu->state_new(&m->cpu, m->device, m->graph, &m->config, &error) != STK_OK ||
        stk_cuda_parameter_layout_make(&m->layout, m->graph, type, true, &error) != STK_OK) {
        exit(1);
    }
    for (int k = 0; k < STK_TENSOR_KINDS; k++) {
        m->blocks[k] = stk_mem_new(m->layout.elements, sizeof(float));
        if (m->cpu->blocks[k] != NULL) {
            double low = k == STK_TENSOR_SECOND ? 0 : -1;
            play_random(CUDA_TYPE_F32, m->cpu->blocks[k], m->graph->param_elements, low, 1,
                        (uint64_t)k);
            spread(m, m->cpu->blocks[k], m->blocks[k]);
        }
    }
    m->weights = stk_mem_new(m->layout.elements, sizeof(float));
    m->fresh = stk_mem_new(m->graph->param_elements, sizeof(float));
    m->packed = stk_mem_new(1, m->layout.fresh_bytes);
    m->scaler = (cuda_scaler){.scale = type == CUDA_TYPE_F16 ? 256.0f : 1,
                              .inverse = type == CUDA_TYPE_F16 ? 1 / 256.0f : 1,
                              .dynamic = type == CUDA_TYPE_F16};
}

static void close_pair(pair *m) {
    for (int k = 0; k < STK_TENSOR_KINDS; k++) {
        stk_mem_free(m->blocks[k]);
    }
    stk_mem_free(m->weights);
    stk_mem_free(m->fresh);
    stk_mem_free(m->packed);
    stk_cuda_parameter_layout_free(&m->layout);
    stk_cpu_backend.state_free(m->cpu);
    stk_cpu_backend.device_close(m->device);
    stk_graph_free(m->graph);
}

/* Gradients of a step; those of what does not learn are no numbers, which nobody may read. */
static void make_fresh(pair *m, bool frozen, uint64_t seed) {
    memset(m->packed, 0xFF, m->layout.fresh_bytes);
    play_random(CUDA_TYPE_F32, m->fresh, m->graph->param_elements, -2, 2, seed);
    for (int i = 0; i < m->graph->param_count; i++) {
        const stk_param *param = &m->graph->params[i];
        cuda_type type = m->layout.weight[i] ? m->type : CUDA_TYPE_F32;
        float scaled[2048];
        if (!param->trainable || (frozen && !param->head)) {
            continue;
        }
        for (size_t k = 0; k < param->count; k++) {
            scaled[k] = m->fresh[param->offset + k] * m->scaler.scale;
        }
        play_round(type, scaled, param->count);
        play_pack(type, scaled, m->packed + m->layout.fresh[i], param->count);
        for (size_t k = 0; k < param->count; k++) {
            m->fresh[param->offset + k] = scaled[k] / m->scaler.scale;
        }
    }
}

/* What the host writes into the constants for an update. */
static void write_constants(pair *m, const stk_update *u, bool keep, bool frozen) {
    m->constants = (cuda_step_constants){.keep_gradients = keep,
                                         .nesterov = u->nesterov,
                                         .lr = {u->lr, u->head_lr},
                                         .momentum = u->momentum,
                                         .beta2 = u->beta2,
                                         .epsilon = u->epsilon,
                                         .weight_decay = u->weight_decay,
                                         .grad_scale = u->grad_scale,
                                         .clip_norm = u->clip_norm,
                                         .ema_decay = u->ema_decay,
                                         .steps = {u->updates, u->head_updates},
                                         .frozen = frozen};
}

/* A step of the GPU: gather, and the update. */
static void run_gpu(play_device *play, pair *m) {
    static const cuda_fixed places[STK_TENSOR_KINDS] = {CUDA_FIXED_VALUES, CUDA_FIXED_GRADIENTS,
                                                        CUDA_FIXED_MOMENTUM, CUDA_FIXED_SECOND,
                                                        CUDA_FIXED_EMA};
    cuda_optimiser o = {m->layout.elements, m->config.optimizer, m->config.ema};
    size_t chunks = m->layout.elements / CUDA_CHUNK;
    cuda_program p = case_begin(m->type);
    stk_cuda_gather(&p, &o);
    stk_cuda_optimise(&p, &o);
    play_data data[16];
    int n = 0;
    for (int k = 0; k < STK_TENSOR_KINDS; k++) {
        if (m->cpu->blocks[k] != NULL) {
            data[n++] = play_both(cuda_fixed_at(places[k], 0), PLAY_FLOAT, m->layout.elements,
                                  m->blocks[k]);
        }
    }
    data[n++] =
        play_out(cuda_fixed_at(CUDA_FIXED_WEIGHTS, 0), PLAY_T, m->layout.elements, m->weights);
    data[n++] =
        play_in(cuda_fixed_at(CUDA_FIXED_FRESH, 0), PLAY_BYTES, m->layout.fresh_bytes, m->packed);
    data[n++] = play_in(cuda_fixed_at(CUDA_FIXED_TABLE, 0), PLAY_BYTES, chunks * sizeof(cuda_chunk),
                        m->layout.chunks);
    data[n++] = play_in(cuda_fixed_at(CUDA_FIXED_CONSTANTS, 0), PLAY_BYTES, sizeof m->constants,
                        &m->constants);
    data[n++] =
        play_both(cuda_fixed_at(CUDA_FIXED_SCALER, 0), PLAY_BYTES, sizeof m->scaler, &m->scaler);
    data[n++] =
        play_out(cuda_fixed_at(CUDA_FIXED_RESULT, 0), PLAY_BYTES, sizeof m->result, &m->result);
    (void)play_run(play, &p, data, n);
    stk_cuda_program_free(&p);
}

/* The same on the CPU, and the norm that it found. */
static double run_cpu(pair *m, const stk_update *u, bool keep, bool frozen) {
    float *g = m->cpu->blocks[STK_TENSOR_GRADIENT];
    for (int i = 0; i < m->graph->param_count; i++) {
        const stk_param *param = &m->graph->params[i];
        bool counts = param->trainable && (param->head || !frozen);
        for (size_t k = param->offset; k < param->offset + param->count; k++) {
            /* Of running statistics nobody ever writes one. */
            g[k] = (keep || !param->trainable ? g[k] : 0) + (counts ? m->fresh[k] : 0);
        }
    }
    return stk_cpu_optimize(m->cpu, u, frozen);
}

static void compare(const pair *m, bool frozen) {
    static const char *const names[] = {"values", "gradients", "momentum", "second", "averages"};
    float *wanted = stk_mem_new(m->layout.elements, sizeof *wanted);
    for (int k = 0; k < STK_TENSOR_KINDS; k++) {
        if (m->cpu->blocks[k] != NULL) {
            spread(m, m->cpu->blocks[k], wanted);
            play_check_each(names[k], m->blocks[k], wanted, m->layout.elements, 3e-7, 3e-6);
        }
    }
    memcpy(wanted, m->blocks[STK_TENSOR_VALUE], m->layout.elements * sizeof *wanted);
    play_round(m->type, wanted, m->layout.elements);
    for (int i = 0; i < m->graph->param_count; i++) {
        const stk_param *param = &m->graph->params[i];
        if (m->layout.weight[i] && (param->head || !frozen)) {
            play_check_each("the copy", m->weights + m->layout.offsets[i],
                            wanted + m->layout.offsets[i], param->count, 0, 0);
        }
    }
    stk_mem_free(wanted);
}

static const stk_update sgd = {.kind = STK_SGD,
                               .lr = 0.1f,
                               .head_lr = 0.3f,
                               .momentum = 0.9f,
                               .weight_decay = 0.02f,
                               .grad_scale = 1,
                               .ema_decay = 0.9f};
static const stk_update adamw = {.kind = STK_ADAMW,
                                 .lr = 0.01f,
                                 .head_lr = 0.03f,
                                 .momentum = 0.9f,
                                 .beta2 = 0.99f,
                                 .epsilon = 1e-8f,
                                 .updates = 1,
                                 .head_updates = 4,
                                 .weight_decay = 0.1f,
                                 .grad_scale = 1,
                                 .ema_decay = 0.99f};

/* Three updates, each on what the one before left. */
static void check_updates(play_device *play, cuda_type type, stk_update u, bool ema, bool keep,
                          bool frozen) {
    pair m;
    open_pair(&m, type, u.kind, ema);
    for (int step = 0; step < 3; step++, u.updates++, u.head_updates++) {
        float scale = m.scaler.scale;
        make_fresh(&m, frozen, (uint64_t)step + 50);
        write_constants(&m, &u, keep, frozen);
        double norm = run_cpu(&m, &u, keep, frozen);
        run_gpu(play, &m);
        compare(&m, frozen);
        CHECK_INT(m.result.skipped, 0);
        CHECK_NEAR(m.result.scale, scale, 0);
        CHECK_INT(m.scaler.good, m.scaler.dynamic ? step + 1 : 0);
        CHECK(u.clip_norm > 0 || isnan(m.result.grad_norm));
        if (u.clip_norm > 0) {
            CHECK_NEAR(m.result.grad_norm, norm, 1e-6 * norm);
        }
    }
    close_pair(&m);
}

static void updates(void) {
    play_device play;
    if (!play_open(&play)) {
        return;
    }
    stk_update nesterov = sgd;
    nesterov.nesterov = true;
    nesterov.grad_scale = 0.25f;
    stk_update clipped = sgd;
    clipped.clip_norm = 1;
    stk_update roomy = adamw;
    roomy.clip_norm = 1e6f;
    EACH_TYPE(type) {
        check_updates(&play, type, sgd, false, false, false);
        check_updates(&play, type, nesterov, true, true, false);
        check_updates(&play, type, clipped, true, false, true);
        check_updates(&play, type, adamw, true, false, false);
        check_updates(&play, type, roomy, false, true, true);
    }
    play_close(&play);
}

/* Puts one number that is none among the fresh gradients. */
static void spoil(pair *m, int param, size_t at) {
    float bad = INFINITY;
    cuda_type type = m->layout.weight[param] ? m->type : CUDA_TYPE_F32;
    play_pack(type, &bad, m->packed + m->layout.fresh[param] + at * cuda_type_bytes(type), 1);
}

/* An overflow halves the scale, and leaves weights, moments and averages alone. */
static void overflow(void) {
    play_device play;
    if (!play_open(&play)) {
        return;
    }
    for (int round = 0; round < 4; round++) {
        pair m;
        open_pair(&m, CUDA_TYPE_F16, round % 2 ? STK_ADAMW : STK_SGD, true);
        stk_update u = round % 2 ? adamw : sgd;
        u.clip_norm = round < 2 ? 0 : 1;
        m.scaler.good = 1999;
        make_fresh(&m, false, 9);
        /* The last of a convolution's, and one of a norm's: of both types. */
        spoil(&m, round < 2 ? 0 : 1, round < 2 ? m.graph->params[0].count - 1 : 3);
        write_constants(&m, &u, false, false);
        run_gpu(&play, &m);
        CHECK_INT(m.result.skipped, 1);
        CHECK_NEAR(m.result.scale, 256, 0);
        CHECK_NEAR(m.scaler.scale, 128, 0);
        CHECK_NEAR(m.scaler.inverse, 1 / 128.0, 0);
        CHECK_INT(m.scaler.overflow, 0);
        CHECK_INT(m.scaler.left_out[0], 1);
        CHECK_INT(m.scaler.left_out[1], 1);
        CHECK_INT(m.scaler.good, 0);
        float *wanted = stk_mem_new(m.layout.elements, sizeof *wanted);
        for (int k = 0; k < STK_TENSOR_KINDS; k++) {
            if (m.cpu->blocks[k] != NULL && k != STK_TENSOR_GRADIENT) {
                spread(&m, m.cpu->blocks[k], wanted);
                CHECK_INT(memcmp(wanted, m.blocks[k], m.layout.elements * sizeof *wanted), 0);
            }
        }
        stk_mem_free(wanted);
        /* The next one is as if nothing had been, though the host has counted one more. */
        make_fresh(&m, false, 10);
        (void)run_cpu(&m, &u, false, false);
        u.updates++;
        u.head_updates++;
        write_constants(&m, &u, false, false);
        run_gpu(&play, &m);
        CHECK_INT(m.result.skipped, 0);
        compare(&m, false);
        close_pair(&m);
    }
    play_close(&play);
}

/*
 * AdamW's corrections count the updates that were made: the CPU's, which never leaves one out, are
 * the same. What was left out while the backbone was frozen is missing in the head's count alone.
 */
static void updates_left_out_do_not_count(void) {
    static const struct {
        bool spoilt, frozen;
    } rounds[] = {{true, true},  {false, true}, {true, true},   {false, false},
                  {true, false}, {true, false}, {false, false}, {false, false}};
    play_device play;
    pair m;
    stk_update counted = adamw; /* by the host, which is ahead */
    stk_update made = adamw;
    int left_out[2] = {0, 0};
    if (!play_open(&play)) {
        return;
    }
    open_pair(&m, CUDA_TYPE_F16, STK_ADAMW, true);
    counted.updates = counted.head_updates = made.updates = made.head_updates = 1;
    for (size_t i = 0; i < sizeof rounds / sizeof *rounds; i++) {
        bool frozen = rounds[i].frozen;
        make_fresh(&m, frozen, 70 + i);
        write_constants(&m, &counted, false, frozen);
        if (rounds[i].spoilt) {
            spoil(&m, m.graph->param_count - 1, 2);
            left_out[0] += !frozen;
            left_out[1]++;
        } else {
            (void)run_cpu(&m, &made, false, frozen);
            made.updates += !frozen;
            made.head_updates++;
        }
        run_gpu(&play, &m);
        CHECK_INT(m.result.skipped, rounds[i].spoilt);
        CHECK_INT(m.scaler.left_out[0], left_out[0]);
        CHECK_INT(m.scaler.left_out[1], left_out[1]);
        if (!rounds[i].spoilt) {
            compare(&m, frozen);
        }
        counted.updates += !frozen;
        counted.head_updates++;
    }
    close_pair(&m);
    play_close(&play);
}

/* Without a loss scale that could be lowered a training that diverges must show. */
static void overflow_without_scale(void) {
    play_device play;
    if (!play_open(&play)) {
        return;
    }
    pair m;
    open_pair(&m, CUDA_TYPE_BF16, STK_SGD, false);
    make_fresh(&m, false, 9);
    spoil(&m, 0, 5);
    write_constants(&m, &sgd, false, false);
    run_gpu(&play, &m);
    CHECK_INT(m.result.skipped, 0);
    CHECK_NEAR(m.scaler.scale, 1, 0);
    CHECK_INT(m.scaler.overflow, 0);
    CHECK(!isfinite(m.blocks[STK_TENSOR_VALUE][m.layout.offsets[0] + 5]));
    CHECK(isfinite(m.blocks[STK_TENSOR_VALUE][m.layout.offsets[0] + 6]));
    close_pair(&m);
    play_close(&play);
}

/* What becomes of a scale after one update. */
static float next_scale(play_device *play, float scale, int good, bool bad, int *good_after) {
    pair m;
    open_pair(&m, CUDA_TYPE_F16, STK_SGD, false);
    m.scaler = (cuda_scaler){
        .scale = scale, .inverse = 1 / scale, .dynamic = 1, .good = good, .overflow = bad};
    memset(m.packed, 0, m.layout.fresh_bytes);
    write_constants(&m, &sgd, false, false);
    run_gpu(play, &m);
    CHECK_INT(m.result.skipped, bad);
    CHECK_NEAR(m.result.scale, scale, 0);
    CHECK_NEAR(m.scaler.inverse, 1 / m.scaler.scale, 0);
    *good_after = m.scaler.good;
    float after = m.scaler.scale;
    close_pair(&m);
    return after;
}

static void scales(void) {
    play_device play;
    if (!play_open(&play)) {
        return;
    }
    int good;
    CHECK_NEAR(next_scale(&play, 512, 1998, false, &good), 512, 0);
    CHECK_INT(good, 1999);
    CHECK_NEAR(next_scale(&play, 512, 1999, false, &good), 1024, 0);
    CHECK_INT(good, 0);
    CHECK_NEAR(next_scale(&play, 16777216, 1999, false, &good), 16777216, 0);
    CHECK_NEAR(next_scale(&play, 2, 7, true, &good), 1, 0); /* of a step that was added before */
    CHECK_INT(good, 0);
    CHECK_NEAR(next_scale(&play, 1, 7, true, &good), 1, 0);
    play_close(&play);
}

static void copies(void) {
    play_device play;
    if (!play_open(&play)) {
        return;
    }
    EACH_TYPE(type) {
        pair m;
        open_pair(&m, type, STK_SGD, false);
        size_t chunks = m.layout.elements / CUDA_CHUNK;
        cuda_program p = case_begin(type);
        stk_cuda_copy_weights(&p, m.layout.elements);
        play_data data[] = {
            play_in(cuda_fixed_at(CUDA_FIXED_VALUES, 0), PLAY_FLOAT, m.layout.elements,
                    m.blocks[STK_TENSOR_VALUE]),
            play_out(cuda_fixed_at(CUDA_FIXED_WEIGHTS, 0), PLAY_T, m.layout.elements, m.weights),
            play_in(cuda_fixed_at(CUDA_FIXED_TABLE, 0), PLAY_BYTES, chunks * sizeof(cuda_chunk),
                    m.layout.chunks)};
        CASE_RUN(&play, &p, data);
        play_round(type, m.blocks[STK_TENSOR_VALUE], m.layout.elements);
        for (int i = 0; i < m.graph->param_count; i++) {
            size_t at = m.layout.offsets[i];
            if (m.layout.weight[i]) {
                play_check_each("copy", m.weights + at, m.blocks[STK_TENSOR_VALUE] + at,
                                m.graph->params[i].count, 0, 0);
            } else {
                CHECK(isnan(m.weights[at])); /* nobody reads it, nobody need write it */
            }
        }
        close_pair(&m);
    }
    play_close(&play);
}

/* ---- weights and norms in inference ---- */

#define FILTERS 9

static void check_fold(play_device *play, cuda_type type, int per_filter, bool own, bool norm,
                       bool depthwise) {
    static float w[FILTERS * 300], folded[FILTERS * 300], wanted[FILTERS * 300];
    float params[5][FILTERS], bias[FILTERS], wanted_bias[FILTERS];
    size_t count = FILTERS * (size_t)per_filter;
    play_random(CUDA_TYPE_F32, w, count, -1, 1, 60);
    for (int k = 0; k < 5; k++) { /* weight, bias, mean, variance, the convolution's own bias */
        play_random(CUDA_TYPE_F32, params[k], FILTERS, k == 3 ? 0.1 : -1, 1, 61 + (uint64_t)k);
    }
    for (size_t i = 0; i < count; i++) {
        size_t f = i / (size_t)per_filter;
        double scale = norm ? params[0][f] / sqrt((double)params[3][f] + 1e-3) : 1;
        double shift = own ? params[4][f] : 0;
        wanted[i] = (float)(scale * (double)w[i]);
        wanted_bias[f] =
            (float)(norm ? (double)params[1][f] + (shift - (double)params[2][f]) * scale : shift);
    }
    cuda_program p = case_begin(type);
    cuda_ref refs[5];
    for (int k = 0; k < 5; k++) {
        refs[k] = case_floats(&p, FILTERS);
    }
    cuda_norm of = {.weight = refs[0],
                    .bias = refs[1],
                    .running_mean = refs[2],
                    .running_var = refs[3],
                    .epsilon = 1e-3f};
    cuda_ref weight = case_floats(&p, count);
    cuda_ref to = depthwise ? case_floats(&p, count) : case_values(&p, count);
    cuda_ref to_bias = case_floats(&p, FILTERS);
    stk_cuda_fold(&p, FILTERS, per_filter, weight, own ? refs[4] : cuda_nothing(),
                  norm ? &of : NULL, depthwise, to, to_bias);
    play_data data[] = {play_in(refs[0], PLAY_FLOAT, FILTERS, params[0]),
                        play_in(refs[1], PLAY_FLOAT, FILTERS, params[1]),
                        play_in(refs[2], PLAY_FLOAT, FILTERS, params[2]),
                        play_in(refs[3], PLAY_FLOAT, FILTERS, params[3]),
                        play_in(refs[4], PLAY_FLOAT, FILTERS, params[4]),
                        play_in(weight, PLAY_FLOAT, count, w),
                        play_out(to, depthwise ? PLAY_FLOAT : PLAY_T, count, folded),
                        play_out(to_bias, PLAY_FLOAT, FILTERS, bias)};
    CASE_RUN(play, &p, data);
    play_check_each("folded", folded, wanted, count, 1e-7, depthwise ? 1e-6 : case_room(type));
    play_check_each("its bias", bias, wanted_bias, FILTERS, 1e-6, 1e-6);
}

static void folds(void) {
    play_device play;
    if (!play_open(&play)) {
        return;
    }
    EACH_TYPE(type) {
        check_fold(&play, type, 147, false, true, false);
        check_fold(&play, type, 300, true, true, false);
        check_fold(&play, type, 25, false, true, true);
        check_fold(&play, type, 16, true, false, false);
        check_fold(&play, type, 9, false, false, true);
    }
    play_close(&play);
}

static const check_test tests[] = {TEST(updates),
                                   TEST(overflow),
                                   TEST(updates_left_out_do_not_count),
                                   TEST(overflow_without_scale),
                                   TEST(scales),
                                   TEST(copies),
                                   TEST(folds)};
CHECK_MAIN(tests)
