/*
 * test_cpu_optim.c - the optimisers against PyTorch's own numbers and against their formulas, with
 * gradients that are written down rather than computed.
 */
#include "backend/cpu/optim.h"

#include "backend/cpu/device.h"
#include "base/mem.h"
#include "check.h"
#include "optim_golden.h"

#define CLASSES 3

typedef struct model {
    stk_graph *graph;
    stk_device *device;
    stk_state *state;
} model;

static stk_error error;

/* A convolution, a norm, and a classifier. */
static stk_graph *small_graph(int channels) {
    stk_graph *graph = NULL;
    if (stk_graph_new(&graph, 4, CLASSES, &error) != STK_OK) {
        exit(1);
    }
    int x = stk_graph_conv(graph, stk_graph_input(graph), "conv", channels, 1, 1, 0);
    x = stk_graph_avg_pool(graph, stk_graph_batch_norm(graph, x, "bn", STK_INIT_ONE));
    if (stk_graph_finish(graph, stk_graph_linear(graph, x, "fc", CLASSES), &error) != STK_OK) {
        exit(1);
    }
    return graph;
}

/* Element `nth` of those that learn; SIZE_MAX for running statistics. */
static size_t nth_of(const stk_graph *graph, int param, size_t i) {
    size_t nth = i;
    for (int p = 0; p < param; p++) {
        nth += graph->params[p].trainable ? graph->params[p].count : 0;
    }
    return graph->params[param].trainable ? nth : SIZE_MAX;
}

static void open_model(model *m, int channels, int threads, const stk_state_config *config) {
    const stk_backend *cpu = &stk_cpu_backend;
    m->graph = small_graph(channels);
    if (cpu->device_open(&m->device, &(stk_device_config){.threads = threads}, &error) != STK_OK ||
        cpu->state_new(&m->state, m->device, m->graph, config, &error) != STK_OK) {
        exit(1);
    }
    float *w = m->state->blocks[STK_TENSOR_VALUE];
    for (int p = 0; p < m->graph->param_count; p++) {
        const stk_param *param = &m->graph->params[p];
        for (size_t i = 0; i < param->count; i++) {
            size_t nth = nth_of(m->graph, p, i);
            w[param->offset + i] = nth != SIZE_MAX ? ((float)((5 * nth) % 9) - 4) / 8 : 1;
        }
    }
}

static void close_model(model *m) {
    stk_cpu_backend.state_free(m->state);
    stk_cpu_backend.device_close(m->device);
    stk_graph_free(m->graph);
}

static void set_gradients(const model *m, int64_t step) {
    for (int p = 0; p < m->graph->param_count; p++) {
        const stk_param *param = &m->graph->params[p];
        for (size_t i = 0; i < param->count; i++) {
            size_t nth = nth_of(m->graph, p, i);
            m->state->blocks[STK_TENSOR_GRADIENT][param->offset + i] =
                nth != SIZE_MAX ? ((float)((7 * nth + 13 * (size_t)step) % 11) - 5) / 8 : 100;
        }
    }
}

static void check_golden(const model *m, const char *name, const float *golden) {
    double worst = 0;
    for (int p = 0; p < m->graph->param_count; p++) {
        const stk_param *param = &m->graph->params[p];
        for (size_t i = 0; i < param->count; i++) {
            size_t nth = nth_of(m->graph, p, i);
            float w = m->state->blocks[STK_TENSOR_VALUE][param->offset + i];
            /* Running statistics are none of the optimiser's business. */
            float expected = nth != SIZE_MAX ? golden[nth] : 1;
            worst = fmax(worst, fabs((double)w - expected));
        }
    }
    if (!(worst < 2e-6)) {
        CHECK_FAIL("%s: %.3g away from PyTorch", name, worst);
    }
}

typedef struct golden_case {
    const char *name;
    const float *golden;
    stk_optimizer kind;
    float momentum, beta2;
    bool nesterov;
    float clip_norm;
    float weight_decay;
    int frozen_steps;
} golden_case;

static const golden_case goldens[] = {
    {"sgd", golden_sgd, STK_SGD, 0.9f, 0, false, 0, 0.125f, 0},
    {"nesterov", golden_nesterov, STK_SGD, 0.9f, 0, true, 0, 0.125f, 0},
    {"sgd clipped", golden_sgd_clipped, STK_SGD, 0.5f, 0, false, 0.75f, 0.125f, 0},
    {"adamw", golden_adamw, STK_ADAMW, 0.9f, 0.999f, false, 0, 0.5f, 0},
    {"adamw clipped", golden_adamw_clipped, STK_ADAMW, 0.8f, 0.99f, false, 0.75f, 0.5f, 0},
    {"adamw thawed", golden_adamw_thawed, STK_ADAMW, 0.9f, 0.999f, false, 0, 0.5f, 2},
};

/* Gradients of `batches` steps that were added up, each as large as the one of PyTorch. */
static void run_golden(const golden_case *c, int batches) {
    model m;
    open_model(&m, 4, 1, &(stk_state_config){.train = true, .optimizer = c->kind});
    for (int step = 1; step <= 5; step++) {
        bool frozen = step <= c->frozen_steps;
        stk_update update = {.kind = c->kind,
                             .lr = 0.05f,
                             .head_lr = 0.2f,
                             .momentum = c->momentum,
                             .nesterov = c->nesterov,
                             .beta2 = c->beta2,
                             .epsilon = 1e-8f,
                             .updates = step - c->frozen_steps,
                             .head_updates = step,
                             .weight_decay = c->weight_decay,
                             .grad_scale = 1.0f / (float)batches,
                             .clip_norm = c->clip_norm};
        set_gradients(&m, step);
        for (size_t i = 0; i < m.graph->param_elements; i++) {
            m.state->blocks[STK_TENSOR_GRADIENT][i] *= (float)batches;
        }
        (void)stk_cpu_optimize(m.state, &update, frozen);
    }
    check_golden(&m, c->name, c->golden);
    close_model(&m);
}

static void as_pytorch(void) {
    for (size_t i = 0; i < sizeof goldens / sizeof *goldens; i++) {
        run_golden(&goldens[i], 1);
        run_golden(&goldens[i], 4); /* clipping sees the mean, not the sum */
    }
}

/* ---- formulas ---- */

static stk_update plain_update(float lr) {
    return (stk_update){
        .kind = STK_SGD, .lr = lr, .head_lr = lr, .updates = 1, .head_updates = 1, .grad_scale = 1};
}

static void norm_is_told(void) {
    model m;
    open_model(&m, 4, 1, &(stk_state_config){.train = true});
    set_gradients(&m, 1);
    double sum = 0;
    double head = 0;
    for (int p = 0; p < m.graph->param_count; p++) {
        const stk_param *param = &m.graph->params[p];
        for (size_t i = 0; i < param->count && param->trainable; i++) {
            double g = m.state->blocks[STK_TENSOR_GRADIENT][param->offset + i];
            sum += g * g;
            head += param->head ? g * g : 0;
        }
    }
    stk_update update = plain_update(0);
    CHECK(isnan(stk_cpu_optimize(m.state, &update, false)));
    update.clip_norm = 1e-3f;
    CHECK_NEAR(stk_cpu_optimize(m.state, &update, false), sqrt(sum), 1e-9);
    update.grad_scale = 0.25f;
    CHECK_NEAR(stk_cpu_optimize(m.state, &update, false), sqrt(sum) / 4, 1e-9);
    CHECK_NEAR(stk_cpu_optimize(m.state, &update, true), sqrt(head) / 4, 1e-9);
    close_model(&m);
}

/* A norm below the limit changes no bit. */
static void wide_clipping_does_nothing(void) {
    model a;
    model b;
    open_model(&a, 4, 1, &(stk_state_config){.train = true});
    open_model(&b, 4, 1, &(stk_state_config){.train = true});
    stk_update update = plain_update(0.1f);
    set_gradients(&a, 1);
    set_gradients(&b, 1);
    (void)stk_cpu_optimize(a.state, &update, false);
    update.clip_norm = 1000;
    (void)stk_cpu_optimize(b.state, &update, false);
    CHECK(memcmp(a.state->blocks[STK_TENSOR_VALUE], b.state->blocks[STK_TENSOR_VALUE],
                 a.graph->param_elements * sizeof(float)) == 0);
    close_model(&a);
    close_model(&b);
}

static void frozen_backbone_stays(void) {
    static const stk_optimizer kinds[] = {STK_SGD, STK_ADAMW};
    for (size_t k = 0; k < 2; k++) {
        model m;
        open_model(&m, 4, 1, &(stk_state_config){.train = true, .optimizer = kinds[k]});
        float before[64];
        REQUIRE(m.graph->param_elements <= 64);
        memcpy(before, m.state->blocks[STK_TENSOR_VALUE], m.graph->param_elements * sizeof(float));
        stk_update update = plain_update(0.1f);
        update.kind = kinds[k];
        update.weight_decay = 0.1f;
        update.momentum = 0.5f;
        update.beta2 = 0.5f;
        update.epsilon = 1e-8f;
        set_gradients(&m, 1);
        (void)stk_cpu_optimize(m.state, &update, true);
        for (int p = 0; p < m.graph->param_count; p++) {
            const stk_param *param = &m.graph->params[p];
            bool moved =
                memcmp(before + param->offset, m.state->blocks[STK_TENSOR_VALUE] + param->offset,
                       param->count * sizeof(float)) != 0;
            CHECK_INT(moved, param->head);
        }
        close_model(&m);
    }
}

/* Running statistics are averaged, too, and what is frozen draws nearer to its value. */
static void average_of_everything(void) {
    model m;
    open_model(&m, 4, 1, &(stk_state_config){.train = true, .ema = true});
    size_t count = m.graph->param_elements;
    float *mean = m.state->blocks[STK_TENSOR_EMA];
    double expected[64] = {0};
    REQUIRE(count <= 64);
    for (int step = 1; step <= 6; step++) {
        stk_update update = plain_update(0.1f);
        update.ema_decay = 0.75f;
        set_gradients(&m, step);
        (void)stk_cpu_optimize(m.state, &update, step > 4);
        for (size_t i = 0; i < count; i++) {
            expected[i] = 0.75 * expected[i] + 0.25 * m.state->blocks[STK_TENSOR_VALUE][i];
            CHECK_NEAR(mean[i], expected[i], 1e-6);
        }
    }
    CHECK_NEAR(mean[m.graph->params[3].offset], 1 - pow(0.75, 6), 1e-6); /* bn.running_mean */
    CHECK_STR(m.graph->params[3].name, "bn.running_mean");
    close_model(&m);
}

/* Parameters of more than one span; the same bits for any number of threads. */
static void threads_change_nothing(void) {
    static const stk_optimizer kinds[] = {STK_SGD, STK_ADAMW};
    for (size_t k = 0; k < 2; k++) {
        model first;
        stk_state_config config = {.train = true, .optimizer = kinds[k], .ema = true};
        double norms[3];
        open_model(&first, 20000, 1, &config);
        CHECK(first.state->span_count > 6);
        for (int threads = 1; threads <= 3; threads++) {
            model m;
            open_model(&m, 20000, threads, &config);
            for (int step = 1; step <= 2; step++) {
                stk_update update = plain_update(0.1f);
                update.kind = kinds[k];
                update.momentum = 0.9f;
                update.beta2 = 0.99f;
                update.epsilon = 1e-8f;
                update.updates = update.head_updates = step;
                update.clip_norm = 3;
                update.ema_decay = 0.5f;
                set_gradients(&m, step);
                norms[threads - 1] = stk_cpu_optimize(m.state, &update, false);
            }
            CHECK(norms[threads - 1] == norms[0]);
            for (int kind = 0; kind < STK_TENSOR_KINDS; kind++) {
                size_t bytes = m.graph->param_elements * sizeof(float);
                if (threads == 1 && m.state->blocks[kind] != NULL) {
                    memcpy(first.state->blocks[kind], m.state->blocks[kind], bytes);
                } else if (m.state->blocks[kind] != NULL) {
                    CHECK(memcmp(first.state->blocks[kind], m.state->blocks[kind], bytes) == 0);
                }
            }
            close_model(&m);
        }
        close_model(&first);
    }
}

/* Every element is in one span and no span crosses a parameter's end. */
static void spans_cover_all(void) {
    model m;
    open_model(&m, 6000, 1, &(stk_state_config){.train = true});
    size_t at = 0;
    for (size_t i = 0; i < m.state->span_count; i++) {
        const cpu_span *span = &m.state->spans[i];
        const stk_param *param = &m.graph->params[span->param];
        CHECK_INT(span->from, at);
        CHECK(span->to > span->from && span->from >= param->offset &&
              span->to <= param->offset + param->count);
        at = span->to;
    }
    CHECK_INT(at, m.graph->param_elements);
    close_model(&m);
}

static void state_without_memory(void) {
    stk_graph *graph = small_graph(4);
    stk_device *device = NULL;
    REQUIRE_OK(stk_cpu_backend.device_open(&device, &(stk_device_config){.threads = 1}, &error),
               &error);
    stk_status status = STK_ERR_MEMORY;
    int failures = 0;
    for (int64_t n = 0; n < 50 && status != STK_OK; n++) {
        stk_state *state = NULL;
        stk_error err = {0};
        stk_mem_fail_after(n);
        status = stk_cpu_backend.state_new(
            &state, device, graph,
            &(stk_state_config){.train = true, .optimizer = STK_ADAMW, .ema = true}, &err);
        stk_mem_fail_after(-1);
        CHECK(status == STK_OK || (status == STK_ERR_MEMORY && state == NULL));
        failures += status != STK_OK;
        stk_cpu_backend.state_free(state);
    }
    CHECK_INT(status, STK_OK);
    CHECK_INT(failures, 8); /* the state, five kinds of tensors, spans, their squares */
    stk_cpu_backend.device_close(device);
    stk_graph_free(graph);
}

static const check_test tests[] = {
    TEST(as_pytorch),
    TEST(norm_is_told),
    TEST(wide_clipping_does_nothing),
    TEST(frozen_backbone_stays),
    TEST(average_of_everything),
    TEST(threads_change_nothing),
    TEST(spans_cover_all),
    TEST(state_without_memory),
};

CHECK_MAIN(tests)
