/*
 * test_losses.c - losses and their gradients against numbers computed with a hundred digits, on the
 * CPU and on CUDA; which samples count as right; what a step without targets is told.
 *
 * The network's weights are zeros: its logits are its biases, and the gradients of the biases are
 * those of the logits.
 */
#include "cuda_pair.h"
#include "loss_golden.h"

typedef struct bias_net {
    stk_graph *graph;
    stk_device *device;
    stk_state *state;
    stk_exec *exec;
    const stk_backend *backend;
    size_t batch;
    stk_error err;
} bias_net;

static const uint8_t black[8 * 3];

static void close_net(bias_net *n) {
    n->backend->exec_free(n->exec);
    n->backend->state_free(n->state);
    n->backend->device_close(n->device);
    stk_graph_free(n->graph);
}

static bool open_net(bias_net *n, const stk_backend *backend, const stk_loss *loss, int outputs,
                     size_t batch) {
    *n = (bias_net){.backend = backend, .batch = batch};
    stk_device_config device = {.threads = 2};
    stk_compile_config config = {
        .batch = batch, .train = true, .precision = STK_PRECISION_FP32_STRICT};
    bool good = stk_graph_new(&n->graph, 1, outputs, &n->err) == STK_OK;
    if (good) {
        stk_graph_set_loss(n->graph, loss);
        int logits = stk_graph_linear(n->graph, stk_graph_input(n->graph), "fc", outputs);
        good = stk_graph_finish(n->graph, logits, &n->err) == STK_OK;
    }
    good = good && backend->device_open(&n->device, &device, &n->err) == STK_OK &&
           backend->state_new(&n->state, n->device, n->graph, &(stk_state_config){.train = true},
                              &n->err) == STK_OK &&
           backend->compile(&n->exec, n->state, &config, &n->err) == STK_OK;
    if (!good) {
        CHECK_FAIL("%s", n->err.message);
        close_net(n);
    }
    return good;
}

static stk_step_output run_net(bias_net *n, const float *logits, const float *targets,
                               float smoothing, stk_mix mix, float *gradients) {
    stk_step_input input = {.images = black,
                            .targets = targets,
                            .count = n->batch,
                            .mix = mix,
                            .label_smoothing = smoothing};
    stk_step_output out = {0};
    CHECK(n->backend->state_write(n->state, STK_TENSOR_VALUE, 1, logits, &n->err) == STK_OK);
    if (n->backend->step(n->exec, &input, &out, &n->err) != STK_OK) {
        CHECK_FAIL("%s", n->err.message);
    }
    CHECK(n->backend->state_read(n->state, STK_TENSOR_GRADIENT, 1, gradients, &n->err) == STK_OK);
    return out;
}

static void check_golden(const stk_backend *backend, double room) {
    for (size_t k = 0; k < STK_COUNT(golden_losses); k++) {
        const golden_loss *g = &golden_losses[k];
        bias_net n;
        float gradients[GOLDEN_OUTPUTS];
        double sum = 0;
        if (!open_net(&n, backend, &g->loss, GOLDEN_OUTPUTS, 1)) {
            return;
        }
        stk_step_output out = run_net(&n, golden_logits, golden_targets, g->smoothing,
                                      (stk_mix){.kind = STK_MIX_NONE}, gradients);
        for (size_t o = 0; o < GOLDEN_OUTPUTS; o++) {
            sum += g->losses[o];
            double size = fabs(g->gradients[o]);
            if (!(fabs(gradients[o] - g->gradients[o]) <= room * (1e-3 + size))) {
                CHECK_FAIL("loss %zu, output %zu: the gradient is %.9g, expected %.9g", k, o,
                           gradients[o], g->gradients[o]);
            }
        }
        CHECK_NEAR(out.loss_sum, sum, room * sum);
        close_net(&n);
    }
}

static void golden_on_the_cpu(void) {
    check_golden(&stk_cpu_backend, 1e-6);
}

static void golden_on_cuda(void) {
    if (pair_choose_gpu()) {
        check_golden(&stk_cuda_backend, 1e-5);
    }
}

/* One output at a time, so that a large loss hides no small one. */
static void each_golden_loss_alone(void) {
    for (size_t k = 0; k < STK_COUNT(golden_losses); k++) {
        const golden_loss *g = &golden_losses[k];
        for (size_t o = 0; o < GOLDEN_OUTPUTS; o++) {
            stk_loss loss = g->loss;
            loss.positive_weights = loss.positive_weights != NULL ? &golden_weights[o] : NULL;
            bias_net n;
            float gradient;
            REQUIRE(open_net(&n, &stk_cpu_backend, &loss, 1, 1));
            stk_step_output out = run_net(&n, &golden_logits[o], &golden_targets[o], g->smoothing,
                                          (stk_mix){.kind = STK_MIX_NONE}, &gradient);
            CHECK_NEAR(out.loss_sum, g->losses[o], 1e-12 + 1e-6 * g->losses[o]);
            close_net(&n);
        }
    }
}

static void check_right(const stk_backend *backend) {
    static const stk_loss sigmoid = {.kind = STK_LOSS_SIGMOID};
    static const stk_loss squared = {.kind = STK_LOSS_SQUARED};
    static const float logits[3] = {2, -1, 0.5f};
    static const float targets[4 * 3] = {1,   0,   1,   /* right */
                                         1,   1,   1,   /* the second is wrong */
                                         NAN, NAN, NAN, /* nothing is known */
                                         NAN, 0,   0.4f,
                                         /* the third is wrong */};
    const stk_mix lesser = {.kind = STK_MIX_MIXUP, .keep = 0.25f};
    float gradients[3];
    bias_net n;
    if (open_net(&n, backend, &sigmoid, 3, 4)) {
        CHECK_INT(run_net(&n, logits, targets, 0, (stk_mix){0}, gradients).correct, 2);
        close_net(&n);
    }
    if (open_net(&n, backend, &sigmoid, 3, 2)) {
        /* Each sample is mostly the other one: the first of these is right for both. */
        CHECK_INT(run_net(&n, logits, targets, 0, lesser, gradients).correct, 1);
        close_net(&n);
    }
    if (open_net(&n, backend, &squared, 3, 4)) {
        CHECK_INT(run_net(&n, logits, targets, 0, (stk_mix){0}, gradients).correct, 0);
        close_net(&n);
    }
}

static void who_is_right(void) {
    check_right(&stk_cpu_backend);
    if (pair_choose_gpu()) {
        check_right(&stk_cuda_backend);
    }
}

/* What is not known in one of two mixed samples is not known in the mixture; with one of them
 * alone, only that one counts. */
static void unknown_targets_in_mixtures(void) {
    static const stk_loss squared = {.kind = STK_LOSS_SQUARED};
    static const float targets[2 * 2] = {1, NAN, 3, 5};
    static const float logits[2] = {0, 0};
    float gradients[2];
    bias_net n;
    REQUIRE(open_net(&n, &stk_cpu_backend, &squared, 2, 2));
    const stk_mix half = {.kind = STK_MIX_MIXUP, .keep = 0.5f};
    const stk_mix own = {.kind = STK_MIX_CUTMIX, .keep = 1};
    CHECK_NEAR(run_net(&n, logits, targets, 0, half, gradients).loss_sum, 4, 0); /* 2 * 2^2 / 2 */
    CHECK_NEAR(gradients[1], 0, 0);
    CHECK_NEAR(run_net(&n, logits, targets, 0, own, gradients).loss_sum, (1 + 9 + 25) * 0.5, 0);
    CHECK_NEAR(gradients[1], -2.5, 0);
    close_net(&n);
}

/* A training that has diverged must show. */
static void logits_that_are_no_numbers(void) {
    static const float target = 0;
    static const float logits[] = {NAN, INFINITY};
    for (loss_number = 0; loss_number < SOME_LOSSES; loss_number++) {
        for (int i = 0; i < 2; i++) {
            bias_net n;
            float gradient;
            const stk_loss *loss = &some_losses[loss_number];
            if (i == 1 && loss->margin > 0) {
                continue; /* log(1 - m) is finite there */
            }
            REQUIRE(open_net(&n, &stk_cpu_backend, loss, 1, 1));
            CHECK(!isfinite(run_net(&n, &logits[i], &target, 0, (stk_mix){0}, &gradient).loss_sum));
            close_net(&n);
        }
    }
}

/* Every loss and mixture on both backends, in every precision. */
static void cuda_agrees(void) {
    const stk_mix mixes[] = {{.kind = STK_MIX_NONE},
                             {.kind = STK_MIX_MIXUP, .keep = 0.7f},
                             {.kind = STK_MIX_CUTMIX, .keep = 0.4f, .right = 3, .bottom = 2}};
    const stk_precision precisions[] = {STK_PRECISION_FP32_STRICT, STK_PRECISION_FP16};
    for (loss_number = 0; loss_number < SOME_LOSSES; loss_number++) {
        pair p;
        stk_precision precision = precisions[loss_number % 2];
        stk_graph *graph = pair_graph(build_loss, 5);
        if (pair_open(&p, graph, &(pair_wish){.batch = 3, .precision = precision})) {
            for (int i = 0; i < 3; i++) {
                char what[32];
                stk_step_input in = pair_input(&p);
                in.mix = mixes[i];
                in.label_smoothing = 0.1f * (float)i;
                snprintf(what, sizeof what, "loss %d, mix %d", loss_number, i);
                pair_step(&p, &in, what);
            }
            pair_close(&p);
        }
        stk_graph_free(graph);
    }
}

static void refusals(void) {
    static const float bad_weights[] = {1, -1};
    static const stk_loss bad[] = {{.kind = STK_LOSS_HUBER},
                                   {.kind = STK_LOSS_SIGMOID, .gamma_pos = -1},
                                   {.kind = STK_LOSS_SIGMOID, .gamma_neg = NAN},
                                   {.kind = STK_LOSS_SIGMOID, .margin = 1},
                                   {.kind = STK_LOSS_SIGMOID, .positive_weights = bad_weights}};
    for (size_t i = 0; i < STK_COUNT(bad); i++) {
        stk_graph *graph = NULL;
        stk_error err = {0};
        REQUIRE_OK(stk_graph_new(&graph, 1, 2, &err), &err);
        stk_graph_set_loss(graph, &bad[i]);
        int logits = stk_graph_linear(graph, stk_graph_input(graph), "fc", 2);
        CHECK_INT(stk_graph_finish(graph, logits, &err), STK_ERR_INTERNAL);
        stk_graph_free(graph);
    }
    bias_net n;
    static const stk_loss softmax = {.kind = STK_LOSS_SOFTMAX};
    static const stk_loss sigmoid = {.kind = STK_LOSS_SIGMOID};
    const stk_loss *losses[] = {&softmax, &sigmoid};
    for (int i = 0; i < 2; i++) {
        REQUIRE(open_net(&n, &stk_cpu_backend, losses[i], 2, 1));
        stk_step_input input = {.images = black, .count = 1};
        stk_step_output out;
        CHECK_INT(n.backend->step(n.exec, &input, &out, &n.err), STK_ERR_INTERNAL);
        CHECK(strstr(n.err.message, i == 0 ? "labels" : "targets") != NULL);
        close_net(&n);
    }
}

static void no_memory_for_weights(void) {
    static const float weights[] = {1, 2};
    static const stk_loss loss = {.kind = STK_LOSS_SIGMOID, .positive_weights = weights};
    stk_graph *graph = NULL;
    stk_error err = {0};
    REQUIRE_OK(stk_graph_new(&graph, 1, 2, &err), &err);
    int logits = stk_graph_linear(graph, stk_graph_input(graph), "fc", 2);
    stk_mem_fail_after(0);
    stk_graph_set_loss(graph, &loss);
    stk_mem_fail_after(-1);
    CHECK_INT(stk_graph_finish(graph, logits, &err), STK_ERR_MEMORY);
    stk_graph_free(graph);
}

static const check_test tests[] = {
    TEST(golden_on_the_cpu),
    TEST(golden_on_cuda),
    TEST(each_golden_loss_alone),
    TEST(who_is_right),
    TEST(unknown_targets_in_mixtures),
    TEST(logits_that_are_no_numbers),
    TEST(cuda_agrees),
    TEST(refusals),
    TEST(no_memory_for_weights),
};

CHECK_MAIN(tests)
