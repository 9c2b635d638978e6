/*
 * test_features.c - numbers beside the pictures: a network learns from them alone, on the CPU and
 * on CUDA; what of it is the head; kernels against plain loops; what is refused.
 */
#include "cuda_cases.h"
#include "cuda_pair.h"

enum { SIDE = 4, FEATURES = 3, BATCH = 16, STEPS = 60 };

/* Pooled pictures beside a hidden layer over the features. */
static int build_small(stk_graph *g) {
    int x = stk_graph_conv(g, stk_graph_input(g), "conv1", 4, 3, 1, 1);
    x = stk_graph_avg_pool(g, stk_graph_relu(g, x));
    int made = stk_graph_linear(g, stk_graph_features(g, FEATURES), "numbers", 8);
    x = stk_graph_concat(g, x, stk_graph_relu(g, made));
    return stk_graph_linear(g, x, "fc", CLASSES);
}

/* The pictures are all the same; the label follows from the first two features. */
static void make_samples(stk_rng *rng, float *features, int *labels) {
    for (int i = 0; i < BATCH; i++) {
        float *f = features + i * FEATURES;
        for (int k = 0; k < FEATURES; k++) {
            f[k] = (float)stk_rng_range(rng, -1, 1);
        }
        labels[i] = (f[0] > 0 ? 1 : 0) + (f[1] > 0 ? 2 : 0);
    }
}

static size_t right_answers(const float *logits, const int *labels) {
    size_t right = 0;
    for (int i = 0; i < BATCH; i++) {
        int best = 0;
        for (int c = 1; c < CLASSES; c++) {
            best = logits[i * CLASSES + c] > logits[i * CLASSES + best] ? c : best;
        }
        right += best == labels[i];
    }
    return right;
}

static void learn(const stk_backend *backend, bool frozen) {
    static uint8_t images[BATCH * SIDE * SIDE * 3];
    static float features[BATCH * FEATURES], logits[BATCH * CLASSES];
    int labels[BATCH];
    stk_error err = {0};
    stk_device *device = NULL;
    stk_state *state = NULL;
    stk_exec *train = NULL, *infer = NULL;
    stk_graph *graph = pair_graph(build_small, SIDE);
    stk_compile_config config = {
        .batch = BATCH, .train = true, .frozen = frozen, .precision = STK_PRECISION_FP32_STRICT};
    REQUIRE_OK(backend->device_open(&device, &(stk_device_config){.threads = 2}, &err), &err);
    REQUIRE_OK(backend->state_new(&state, device, graph, &(stk_state_config){.train = true}, &err),
               &err);
    REQUIRE_OK(stk_state_first_weights(backend, state, graph, 1, &err), &err);
    REQUIRE_OK(backend->compile(&train, state, &config, &err), &err);
    config.train = config.frozen = false;
    REQUIRE_OK(backend->compile(&infer, state, &config, &err), &err);
    stk_rng rng = stk_rng_make(4, STK_RNG_TEST, 0, 0);
    stk_update update = {
        .kind = STK_SGD, .lr = 0.2f, .head_lr = 0.2f, .momentum = 0.9f, .grad_scale = 1};
    for (int s = 0; s < STEPS; s++) {
        make_samples(&rng, features, labels);
        stk_step_input input = {.images = images,
                                .labels = labels,
                                .features = features,
                                .count = BATCH,
                                .update = &update};
        stk_step_output out;
        CHECK(backend->step(train, &input, &out, &err) == STK_OK);
    }
    size_t right = 0;
    for (int i = 0; i < 4; i++) {
        make_samples(&rng, features, labels);
        CHECK(backend->infer(infer, images, features, BATCH, logits, &err) == STK_OK);
        right += right_answers(logits, labels);
    }
    if (right < 4 * BATCH * 8 / 10) {
        CHECK_FAIL("only %zu of %d are right", right, 4 * BATCH);
    }
    stk_step_input without = {.images = images, .labels = labels, .count = BATCH};
    stk_step_output out;
    CHECK_INT(backend->step(train, &without, &out, &err), STK_ERR_INTERNAL);
    CHECK_INT(backend->infer(infer, images, NULL, BATCH, logits, &err), STK_ERR_INTERNAL);
    CHECK(strstr(err.message, "3 features") != NULL);
    backend->exec_free(train);
    backend->exec_free(infer);
    backend->state_free(state);
    backend->device_close(device);
    stk_graph_free(graph);
}

static void learns_on_the_cpu(void) {
    learn(&stk_cpu_backend, false);
    learn(&stk_cpu_backend, true);
}

static void learns_on_cuda(void) {
    if (pair_choose_gpu()) {
        learn(&stk_cuda_backend, false);
        learn(&stk_cuda_backend, true);
    }
}

/* Mixed, frozen, of a smaller batch than the executable's, and inferences. */
static void cuda_agrees(void) {
    const stk_mix mixes[] = {{.kind = STK_MIX_NONE},
                             {.kind = STK_MIX_MIXUP, .keep = 0.7f},
                             {.kind = STK_MIX_CUTMIX, .keep = 0.4f, .right = 3, .bottom = 2}};
    for (int frozen = 0; frozen < 2; frozen++) {
        pair p;
        stk_graph *graph = pair_graph(build_small, SIDE);
        pair_wish wish = {
            .batch = 4, .precision = STK_PRECISION_FP32_STRICT, .frozen = frozen == 1};
        if (pair_open(&p, graph, &wish)) {
            for (int i = 0; i < 4; i++) {
                stk_step_input in = pair_input(&p);
                in.mix = mixes[i % 3];
                in.count = i == 3 ? 3 : 4;
                pair_step(&p, &in, frozen ? "frozen" : "not frozen");
            }
            pair_close(&p);
        }
        stk_graph_free(graph);
    }
}

/* Layers over features are new with every task, and so is what comes after them. */
static void the_head(void) {
    stk_graph *graph = pair_graph(build_features, 8);
    for (int p = 0; p < graph->param_count; p++) {
        const char *name = graph->params[p].name;
        bool backbone = strstr(name, "conv1") != NULL || strstr(name, "bn1") != NULL;
        if (graph->params[p].head == backbone) {
            CHECK_FAIL("%s is%s of the head", name, backbone ? "" : " not");
        }
    }
    stk_graph_free(graph);
}

static int features_twice(stk_graph *g) {
    int a = stk_graph_features(g, 2);
    return stk_graph_linear(g, stk_graph_concat(g, a, stk_graph_features(g, 2)), "fc", CLASSES);
}

static int no_features(stk_graph *g) {
    return stk_graph_linear(g, stk_graph_features(g, 0), "fc", CLASSES);
}

static int a_value_beside_itself(stk_graph *g) {
    int a = stk_graph_features(g, 2);
    return stk_graph_linear(g, stk_graph_concat(g, a, a), "fc", CLASSES);
}

static int pictures_beside_features(stk_graph *g) {
    int a = stk_graph_features(g, 2);
    return stk_graph_linear(g, stk_graph_concat(g, stk_graph_input(g), a), "fc", CLASSES);
}

static void refusals(void) {
    builder *bad[] = {features_twice, no_features, a_value_beside_itself, pictures_beside_features};
    for (size_t i = 0; i < STK_COUNT(bad); i++) {
        stk_graph *graph = NULL;
        stk_error err = {0};
        REQUIRE_OK(stk_graph_new(&graph, SIDE, CLASSES, &err), &err);
        CHECK_INT(stk_graph_finish(graph, bad[i](graph), &err), STK_ERR_INTERNAL);
        stk_graph_free(graph);
    }
}

/* ---- kernels ---- */

static void check_features(play_device *play, cuda_type type, int batch, int count, bool train) {
    static float given[2000], got[2000], wanted[2000];
    cuda_step_constants constants = {.mix_kind = STK_MIX_CUTMIX, .mix_keep = 0.3f};
    size_t all = (size_t)batch * (size_t)count;
    double keep = train ? (double)constants.mix_keep : 1;
    play_random(CUDA_TYPE_F32, given, all, -3, 3, 5);
    for (size_t i = 0; i < all; i++) {
        size_t partner = ((size_t)batch - 1 - i / (size_t)count) * (size_t)count;
        wanted[i] = (float)(keep * (double)given[i] +
                            (1 - keep) * (double)given[partner + i % (size_t)count]);
    }
    cuda_pointer place = case_put(play, given, all * sizeof *given);
    constants.features = place;
    cuda_program p = case_begin(type);
    cuda_ref y = case_values(&p, all);
    stk_cuda_features(&p, batch, count, train, y);
    play_data data[] = {
        play_in(cuda_fixed_at(CUDA_FIXED_CONSTANTS, 0), PLAY_BYTES, sizeof constants, &constants),
        play_out(y, PLAY_T, all, got)};
    CASE_RUN(play, &p, data);
    case_take_back(play, place);
    play_check_each("features", got, wanted, all, 1e-6, case_room(type));
}

static void check_concat(play_device *play, cuda_type type, int batch, int first, int second) {
    static float a[2000], b[2000], y[4000], back_a[2000], back_b[2000], wanted[4000];
    size_t counts[2] = {(size_t)(batch * first), (size_t)(batch * second)};
    size_t all = counts[0] + counts[1];
    play_random(type, a, counts[0], -1, 1, 1);
    play_random(type, b, counts[1], -1, 1, 2);
    for (size_t i = 0; i < all; i++) {
        size_t n = i / (size_t)(first + second);
        size_t c = i % (size_t)(first + second);
        wanted[i] = c < (size_t)first ? a[n * (size_t)first + c]
                                      : b[n * (size_t)second + c - (size_t)first];
    }
    cuda_program p = case_begin(type);
    cuda_ref from_a = case_values(&p, counts[0]), from_b = case_values(&p, counts[1]);
    cuda_ref to = case_values(&p, all);
    cuda_ref to_a = case_values(&p, counts[0]), to_b = case_values(&p, counts[1]);
    stk_cuda_concat(&p, batch, first, second, from_a, from_b, to);
    stk_cuda_concat_back(&p, batch, first, second, to, to_a, false, cuda_nothing(), false);
    stk_cuda_concat_back(&p, batch, first, second, to, to_a, true, to_b, false);
    play_data data[] = {play_in(from_a, PLAY_T, counts[0], a),
                        play_in(from_b, PLAY_T, counts[1], b), play_out(to, PLAY_T, all, y),
                        play_out(to_a, PLAY_T, counts[0], back_a),
                        play_out(to_b, PLAY_T, counts[1], back_b)};
    CASE_RUN(play, &p, data);
    play_check_each("side by side", y, wanted, all, 0, 0);
    play_check_each("second again", back_b, b, counts[1], 0, 0);
    for (size_t i = 0; i < counts[0]; i++) {
        a[i] *= 2;
    }
    play_check_each("first twice", back_a, a, counts[0], 0, 0);
}

static void kernels(void) {
    play_device play;
    if (!play_open(&play)) {
        return;
    }
    EACH_TYPE(type) {
        check_features(&play, type, 5, 13, true);
        check_features(&play, type, 4, 192, false);
        check_concat(&play, type, 3, 5, 7);
        check_concat(&play, type, 2, 256, 1);
    }
    play_close(&play);
}

static const check_test tests[] = {
    TEST(learns_on_the_cpu), TEST(learns_on_cuda), TEST(cuda_agrees),
    TEST(the_head),          TEST(refusals),       TEST(kernels),
};

CHECK_MAIN(tests)
