/*
 * test_losses.c - losses and their gradients against numbers computed with a hundred digits, on the
 * CPU and on CUDA; which samples count as right; what a step without targets is told.
 *
 * The network's weights are zeros: its logits (of STK_LOSS_STEPS its place on the scale) are its
 * biases, and the gradients of the biases are those of the logits.
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
        bool steps = loss->kind == STK_LOSS_STEPS;
        int logits =
            stk_graph_linear(n->graph, stk_graph_input(n->graph), "fc", steps ? 1 : outputs);
        logits = steps ? stk_graph_steps(n->graph, logits) : logits;
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
    for (loss_number = 0; loss_number < SOME_LOSSES + 2; loss_number++) { /* places: in both */
        pair p;
        stk_precision precision = precisions[loss_number % 2];
        stk_graph *graph = pair_graph(loss_number < SOME_LOSSES ? build_loss : build_places, 5);
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

/* A place on a scale, worked out by hand. Of five steps the middle is 2 and the deviation the root
 * of 2, of two 0.5 and 0.5, of fifteen 7 and the root of 56 / 3. */
static void check_places(const stk_backend *backend, double room) {
    static const struct {
        int classes, labels[2]; /* of both samples */
        float place, keep, smoothing;
        double loss, gradient; /* the sum over both, and the mean */
        int64_t correct;
    } cases[] = {
        /* 3 is 1 / root 2 up, and place 1 is nearest to it. */
        {5, {3, 3}, 1, 1, 0, 0.085786437627, 0.292893218813, 2},
        {5, {2, 2}, -1.5f, 1, 0.3f, 2.25, -1.5, 0},
        /* Mixed they are 1 and 3: (0.5 + 1 / root 2)^2 / 2 + (0.5 - 1 / root 2)^2 / 2. Place 0.5 is
         * nearest to 3, which neither was. */
        {5, {0, 4}, 0.5f, 0.75f, 0.3f, 0.75, 0.5, 0},
        /* 0.75 and 2.25; the first is mostly 0, and the second 3. */
        {5, {3, 0}, 0.5f, 0.25f, 0, 1.009803390593, 0.853553390593, 1},
        {2, {1, 1}, 0.25f, 1, 0, 0.5625, -0.75, 2},
        {15, {7, 14}, 0, 1, 0.1f, 1.3125, -0.810092587301, 1},
    };
    for (size_t k = 0; k < STK_COUNT(cases); k++) {
        bias_net n;
        float gradient = NAN;
        stk_step_output out = {0};
        if (!open_net(&n, backend, &place_loss, cases[k].classes, 2)) {
            return;
        }
        stk_step_input input = {.images = black,
                                .labels = cases[k].labels,
                                .count = 2,
                                .mix = {.kind = STK_MIX_MIXUP, .keep = cases[k].keep},
                                .label_smoothing = cases[k].smoothing};
        CHECK(n.backend->state_write(n.state, STK_TENSOR_VALUE, 1, &cases[k].place, &n.err) ==
              STK_OK);
        CHECK(n.backend->step(n.exec, &input, &out, &n.err) == STK_OK);
        CHECK(n.backend->state_read(n.state, STK_TENSOR_GRADIENT, 1, &gradient, &n.err) == STK_OK);
        CHECK_NEAR(out.loss_sum, cases[k].loss, room * cases[k].loss);
        CHECK_NEAR(gradient, cases[k].gradient, room * fabs(cases[k].gradient));
        CHECK_INT(out.correct, cases[k].correct);
        const float nothing = NAN;
        CHECK(n.backend->state_write(n.state, STK_TENSOR_VALUE, 1, &nothing, &n.err) == STK_OK);
        CHECK(n.backend->step(n.exec, &input, &out, &n.err) == STK_OK);
        CHECK(isnan(out.loss_sum)); /* a training that has diverged must show */
        close_net(&n);
    }
}

static void places_on_a_scale(void) {
    check_places(&stk_cpu_backend, 1e-6);
    if (pair_choose_gpu()) {
        check_places(&stk_cuda_backend, 1e-5);
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
    const stk_loss *losses[] = {&softmax, &sigmoid, &place_loss};
    for (int i = 0; i < 3; i++) {
        REQUIRE(open_net(&n, &stk_cpu_backend, losses[i], 2, 1));
        stk_step_input input = {.images = black, .count = 1};
        stk_step_output out;
        CHECK_INT(n.backend->step(n.exec, &input, &out, &n.err), STK_ERR_INTERNAL);
        CHECK(strstr(n.err.message, i == 1 ? "targets" : "labels") != NULL);
        close_net(&n);
    }
}

/* Logits of which none says the place on a scale have no such loss, nor has a scale of one step. */
static void places_need_steps(void) {
    for (int classes = 1; classes <= 2; classes++) {
        stk_graph *graph = NULL;
        stk_error err = {0};
        REQUIRE_OK(stk_graph_new(&graph, 1, classes, &err), &err);
        stk_graph_set_loss(graph, &place_loss);
        int logits = stk_graph_linear(graph, stk_graph_input(graph), "fc", classes);
        logits = classes == 1 ? stk_graph_steps(graph, logits) : logits;
        CHECK_INT(stk_graph_finish(graph, logits, &err), STK_ERR_INTERNAL);
        CHECK_CONTAINS(err.message, "loss of places on a scale");
        stk_graph_free(graph);
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
    TEST(places_on_a_scale),
    TEST(refusals),
    TEST(places_need_steps),
    TEST(no_memory_for_weights),
};

CHECK_MAIN(tests)
