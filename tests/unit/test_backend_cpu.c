/*
 * test_backend_cpu.c - the CPU backend against a naive float64 evaluation of the same graph, and
 * every gradient against finite differences of that evaluation.
 */
#include "backend/cpu/cpu_device.h"

#include <string.h>

#include "base/mem.h"
#include "base/rng.h"
#include "check.h"
#include "engine/plan.h"

#define CLASSES 5

/* ---- the reference: plain loops in float64, written from the definitions ---- */

typedef struct reference {
    const stk_graph *graph;
    size_t batch;
    bool train;
    double *params;  /* graph->param_elements */
    double **values; /* one array per value */
    double mean_loss;
} reference;

static double *param_of(const reference *r, const stk_node *node, int which) {
    return r->params + r->graph->params[node->params[which]].offset;
}

static void reference_conv(const reference *r, const stk_node *node, const double *x, double *y) {
    stk_shape in = r->graph->values[node->inputs[0]].shape;
    stk_shape out = r->graph->values[node->output].shape;
    const double *w = param_of(r, node, 0);
    for (size_t n = 0; n < r->batch; n++)
        for (int oy = 0; oy < out.height; oy++)
            for (int ox = 0; ox < out.width; ox++)
                for (int o = 0; o < out.channels; o++) {
                    double sum = 0;
                    for (int ky = 0; ky < node->kernel; ky++)
                        for (int kx = 0; kx < node->kernel; kx++) {
                            int iy = oy * node->stride + ky - node->pad;
                            int ix = ox * node->stride + kx - node->pad;
                            if (iy < 0 || iy >= in.height || ix < 0 || ix >= in.width) {
                                continue;
                            }
                            for (int c = 0; c < in.channels; c++)
                                sum +=
                                    x[((n * (size_t)in.height + (size_t)iy) * (size_t)in.width +
                                       (size_t)ix) *
                                          (size_t)in.channels +
                                      (size_t)c] *
                                    w[((o * node->kernel + ky) * node->kernel + kx) * in.channels +
                                      c];
                        }
                    *y++ = sum;
                }
}

static void reference_norm(const reference *r, const stk_node *node, const double *x, double *y) {
    stk_shape s = r->graph->values[node->output].shape;
    size_t rows = r->batch * (size_t)s.height * (size_t)s.width;
    size_t channels = (size_t)s.channels;
    for (size_t c = 0; c < channels; c++) {
        double mean = 0;
        double var = 0;
        for (size_t i = 0; i < rows; i++) {
            mean += x[i * channels + c] / (double)rows;
        }
        for (size_t i = 0; i < rows; i++) {
            double d = x[i * channels + c] - mean;
            var += d * d / (double)rows;
        }
        if (!r->train) {
            mean = param_of(r, node, 2)[c];
            var = param_of(r, node, 3)[c];
        }
        for (size_t i = 0; i < rows; i++) {
            y[i * channels + c] =
                (x[i * channels + c] - mean) / sqrt(var + 1e-5) * param_of(r, node, 0)[c] +
                param_of(r, node, 1)[c];
        }
    }
}

static void reference_max(const reference *r, const stk_node *node, const double *x, double *y) {
    stk_shape in = r->graph->values[node->inputs[0]].shape;
    stk_shape out = r->graph->values[node->output].shape;
    for (size_t n = 0; n < r->batch; n++)
        for (int oy = 0; oy < out.height; oy++)
            for (int ox = 0; ox < out.width; ox++)
                for (int c = 0; c < out.channels; c++) {
                    double best = -INFINITY;
                    for (int k = 0; k < node->kernel * node->kernel; k++) {
                        int iy = oy * node->stride + k / node->kernel - node->pad;
                        int ix = ox * node->stride + k % node->kernel - node->pad;
                        if (iy >= 0 && iy < in.height && ix >= 0 && ix < in.width) {
                            best = fmax(best,
                                        x[((n * (size_t)in.height + (size_t)iy) * (size_t)in.width +
                                           (size_t)ix) *
                                              (size_t)in.channels +
                                          (size_t)c]);
                        }
                    }
                    *y++ = best;
                }
}

static double reference_target(const stk_step_input *in, size_t i, int c) {
    double keep = in->mix.kind == STK_MIX_NONE ? 1 : in->mix.keep;
    double hard =
        (c == in->labels[i] ? keep : 0) + (c == in->labels[in->count - 1 - i] ? 1 - keep : 0);
    return in->label_smoothing / CLASSES + (1 - in->label_smoothing) * hard;
}

static double reference_pixel(const stk_graph *g, const stk_step_input *in, size_t i, size_t at) {
    size_t floats = (size_t)g->img_size * (size_t)g->img_size * 3;
    size_t c = at % 3;
    double own = (in->images[i * floats + at] / 255.0 - g->mean[c]) / g->std[c];
    double other = (in->images[(in->count - 1 - i) * floats + at] / 255.0 - g->mean[c]) / g->std[c];
    int y = (int)(at / 3 / (size_t)g->img_size);
    int x = (int)(at / 3 % (size_t)g->img_size);
    switch (in->mix.kind) {
    case STK_MIX_MIXUP:
        return in->mix.keep * own + (1 - (double)in->mix.keep) * other;
    case STK_MIX_CUTMIX:
        return y >= in->mix.top && y < in->mix.bottom && x >= in->mix.left && x < in->mix.right
                   ? other
                   : own;
    default:
        return own;
    }
}

static void reference_node(reference *r, const stk_node *node, const stk_step_input *in) {
    const double *x = node->input_count > 0 ? r->values[node->inputs[0]] : NULL;
    double *y = r->values[node->output];
    stk_shape shape = r->graph->values[node->output].shape;
    size_t count = r->batch * stk_shape_count(shape);
    stk_shape from = node->input_count > 0 ? r->graph->values[node->inputs[0]].shape : shape;
    size_t inputs = stk_shape_count(from);
    switch (node->op) {
    case STK_OP_INPUT:
        for (size_t i = 0; i < count; i++) {
            y[i] = reference_pixel(r->graph, in, i / stk_shape_count(shape),
                                   i % stk_shape_count(shape));
        }
        break;
    case STK_OP_CONV:
        reference_conv(r, node, x, y);
        break;
    case STK_OP_BATCH_NORM:
        reference_norm(r, node, x, y);
        break;
    case STK_OP_RELU:
        for (size_t i = 0; i < count; i++) {
            y[i] = x[i] > 0 ? x[i] : 0;
        }
        break;
    case STK_OP_ADD:
        for (size_t i = 0; i < count; i++) {
            y[i] = x[i] + r->values[node->inputs[1]][i];
        }
        break;
    case STK_OP_MAX_POOL:
        reference_max(r, node, x, y);
        break;
    case STK_OP_AVG_POOL:
        for (size_t i = 0; i < count; i++) {
            size_t n = i / (size_t)shape.channels;
            size_t c = i % (size_t)shape.channels;
            size_t pixels = inputs / (size_t)shape.channels;
            y[i] = 0;
            for (size_t p = 0; p < pixels; p++) {
                y[i] += x[(n * pixels + p) * (size_t)shape.channels + c] / (double)pixels;
            }
        }
        break;
    case STK_OP_LINEAR:
        for (size_t i = 0; i < count; i++) {
            size_t o = i % (size_t)shape.channels;
            y[i] = param_of(r, node, 1)[o];
            for (size_t k = 0; k < inputs; k++) {
                y[i] += x[i / (size_t)shape.channels * inputs + k] *
                        param_of(r, node, 0)[o * inputs + k];
            }
        }
        break;
    case STK_OP_LOSS:
        r->mean_loss = 0;
        for (size_t n = 0; n < r->batch; n++) {
            double sum = 0;
            for (int c = 0; c < CLASSES; c++) {
                sum += exp(x[n * CLASSES + (size_t)c]);
            }
            for (int c = 0; c < CLASSES; c++) {
                double log_p = x[n * CLASSES + (size_t)c] - log(sum);
                r->mean_loss -= reference_target(in, n, c) * log_p / (double)r->batch;
            }
        }
        break;
    default:
        CHECK_FAIL("the reference does not know operation %d", node->op);
    }
}

static double reference_run(reference *r, const stk_step_input *in) {
    for (int n = 0; n < r->graph->node_count; n++) {
        reference_node(r, &r->graph->nodes[n], in);
    }
    return r->mean_loss;
}

/* ---- a network, random weights and inputs, on one device ---- */

typedef struct bench {
    stk_graph *graph;
    stk_device *device;
    stk_state *state;
    stk_exec *train;
    stk_exec *infer;
    reference ref;
    uint8_t *images;
    int labels[16];
    size_t batch;
    stk_error err;
} bench;

static const stk_backend *const cpu = &stk_cpu_backend;

static void bench_close(bench *b) {
    for (int v = 0; b->ref.values != NULL && v < b->graph->value_count; v++) {
        free(b->ref.values[v]);
    }
    free(b->ref.values);
    free(b->ref.params);
    free(b->images);
    cpu->exec_free(b->train);
    cpu->exec_free(b->infer);
    cpu->state_free(b->state);
    cpu->device_close(b->device);
    stk_graph_free(b->graph);
}

/* Random parameters, in the backend as float32 and in the reference as the same numbers. */
static void bench_fill(bench *b, uint64_t seed) {
    stk_rng rng = stk_rng_make(seed, STK_RNG_TEST, 0, 0);
    for (int p = 0; p < b->graph->param_count; p++) {
        const stk_param *param = &b->graph->params[p];
        float *values = malloc(param->count * sizeof *values);
        bool variance = strstr(param->name, "running_var") != NULL;
        bool norm_weight = strstr(param->name, "bn") != NULL && strstr(param->name, "weight");
        for (size_t i = 0; i < param->count; i++) {
            values[i] = (float)(variance      ? stk_rng_range(&rng, 0.5, 2)
                                : norm_weight ? stk_rng_range(&rng, 0.5, 1.5)
                                              : 0.4 * stk_rng_normal(&rng));
            b->ref.params[param->offset + i] = values[i];
        }
        CHECK(cpu->state_write(b->state, STK_TENSOR_VALUE, p, values, &b->err) == STK_OK);
        free(values);
    }
    size_t pixels = b->batch * (size_t)b->graph->img_size * (size_t)b->graph->img_size * 3;
    b->images = malloc(pixels);
    for (size_t i = 0; i < pixels; i++) {
        b->images[i] = (uint8_t)stk_rng_below(&rng, 256);
    }
    for (size_t i = 0; i < b->batch; i++) {
        b->labels[i] = (int)stk_rng_below(&rng, CLASSES);
    }
}

typedef int builder(stk_graph *graph);

static bool bench_open(bench *b, builder *build, int img_size, size_t batch, int threads) {
    memset(b, 0, sizeof *b);
    b->batch = batch;
    bool good = stk_graph_new(&b->graph, img_size, CLASSES, &b->err) == STK_OK;
    for (int c = 0; c < 3; c++) {
        b->graph->mean[c] = 0.4f + 0.05f * (float)c;
        b->graph->std[c] = 0.2f + 0.01f * (float)c;
    }
    int logits = build(b->graph);
    good = good && stk_graph_finish(b->graph, logits, &b->err) == STK_OK;
    stk_device_config device = {.threads = threads};
    stk_compile_config train = {.batch = batch, .train = true};
    stk_compile_config infer = {.batch = batch, .train = false};
    good = good && cpu->device_open(&b->device, &device, &b->err) == STK_OK &&
           cpu->state_new(&b->state, b->device, b->graph, &(stk_state_config){.train = true},
                          &b->err) == STK_OK &&
           cpu->compile(&b->train, b->state, &train, &b->err) == STK_OK &&
           cpu->compile(&b->infer, b->state, &infer, &b->err) == STK_OK;
    if (!good) {
        CHECK_FAIL("%s", b->err.message);
        return false;
    }
    b->ref.graph = b->graph;
    b->ref.batch = batch;
    b->ref.train = true;
    b->ref.params = calloc(b->graph->param_elements, sizeof *b->ref.params);
    b->ref.values = calloc((size_t)b->graph->value_count, sizeof *b->ref.values);
    for (int v = 0; v < b->graph->value_count; v++) {
        b->ref.values[v] =
            calloc(batch * stk_shape_count(b->graph->values[v].shape), sizeof(double));
    }
    bench_fill(b, 7);
    return true;
}

static stk_step_input input_of(const bench *b) {
    return (stk_step_input){.images = b->images, .labels = b->labels, .count = b->batch};
}

/* One parameter's gradients against central differences of the reference. */
static void check_param(bench *b, int p, const stk_step_input *in) {
    const stk_param *param = &b->graph->params[p];
    float *grads = malloc(param->count * sizeof *grads);
    CHECK(cpu->state_read(b->state, STK_TENSOR_GRADIENT, p, grads, &b->err) == STK_OK);
    double largest = 0;
    size_t wrong = 0;
    double *numeric = malloc(param->count * sizeof *numeric);
    for (size_t i = 0; i < param->count; i++) {
        double *w = &b->ref.params[param->offset + i];
        double kept = *w;
        double h = 1e-5;
        *w = kept + h;
        double above = reference_run(&b->ref, in);
        *w = kept - h;
        double below = reference_run(&b->ref, in);
        *w = kept;
        numeric[i] = (above - below) / (2 * h);
        largest = fmax(largest, fabs(numeric[i]));
    }
    for (size_t i = 0; i < param->count; i++) {
        wrong += !(fabs(grads[i] - numeric[i]) <= 2e-4 * largest + 1e-6);
    }
    if (wrong > 0) {
        CHECK_FAIL("%s: %zu of %zu gradients are wrong; the first is %g, expected %g", param->name,
                   wrong, param->count, grads[0], numeric[0]);
    }
    free(numeric);
    free(grads);
}

static void check_gradients(builder *build, int img_size, size_t batch, stk_mix mix,
                            float smoothing) {
    bench b;
    if (bench_open(&b, build, img_size, batch, 2)) {
        stk_step_input in = input_of(&b);
        stk_step_output out;
        in.mix = mix;
        in.label_smoothing = smoothing;
        CHECK(cpu->step(b.train, &in, &out, &b.err) == STK_OK);
        double loss = reference_run(&b.ref, &in);
        CHECK_NEAR(out.loss_sum / (double)batch, loss, 1e-4);
        for (int p = 0; p < b.graph->param_count; p++) {
            if (b.graph->params[p].trainable) {
                check_param(&b, p, &in);
            }
        }
    }
    bench_close(&b);
}

/* ---- networks that have each operation, at odd sizes ---- */

static int build_conv(stk_graph *g) {
    int x = stk_graph_conv(g, stk_graph_input(g), "conv1", 4, 3, 1, 1);
    x = stk_graph_conv(g, x, "conv2", 3, 3, 2, 1);
    x = stk_graph_conv(g, x, "conv3", 6, 1, 1, 0);
    x = stk_graph_conv(g, x, "conv4", 2, 2, 1, 0);
    return stk_graph_linear(g, stk_graph_avg_pool(g, x), "fc", CLASSES);
}

static int build_wide_kernel(stk_graph *g) {
    int x = stk_graph_conv(g, stk_graph_input(g), "conv1", 3, 7, 2, 3);
    x = stk_graph_conv(g, x, "conv2", 3, 5, 3, 4);
    return stk_graph_linear(g, x, "fc", CLASSES);
}

static int build_norm(stk_graph *g) {
    int x = stk_graph_conv(g, stk_graph_input(g), "conv1", 5, 3, 1, 1);
    x = stk_graph_batch_norm(g, x, "bn1", STK_INIT_ONE);
    x = stk_graph_conv(g, x, "conv2", 3, 1, 1, 0);
    x = stk_graph_batch_norm(g, x, "bn2", STK_INIT_ONE);
    return stk_graph_linear(g, stk_graph_avg_pool(g, x), "fc", CLASSES);
}

static int build_relu(stk_graph *g) {
    int x = stk_graph_conv(g, stk_graph_input(g), "conv1", 6, 3, 2, 1);
    x = stk_graph_relu(g, stk_graph_batch_norm(g, x, "bn1", STK_INIT_ONE));
    x = stk_graph_relu(g, stk_graph_conv(g, x, "conv2", 5, 3, 1, 1));
    return stk_graph_linear(g, stk_graph_avg_pool(g, x), "fc", CLASSES);
}

static int build_max_pool(stk_graph *g) {
    int x = stk_graph_conv(g, stk_graph_input(g), "conv1", 4, 3, 1, 1);
    x = stk_graph_max_pool(g, x, 3, 2, 1);
    x = stk_graph_max_pool(g, x, 2, 2, 0);
    return stk_graph_linear(g, x, "fc", CLASSES);
}

/* A value with three readers, so that its gradient is accumulated by every kind of operation. */
static int build_residual(stk_graph *g) {
    int x = stk_graph_conv(g, stk_graph_input(g), "conv1", 4, 3, 1, 1);
    x = stk_graph_relu(g, stk_graph_batch_norm(g, x, "bn1", STK_INIT_ONE));
    int a = stk_graph_batch_norm(g, stk_graph_conv(g, x, "conv2", 4, 3, 1, 1), "bn2", STK_INIT_ONE);
    int b = stk_graph_conv(g, x, "conv3", 4, 1, 1, 0);
    int y = stk_graph_relu(g, stk_graph_add(g, a, b));
    y = stk_graph_add(g, y, x);
    int pooled = stk_graph_max_pool(g, y, 3, 1, 1);
    int normed = stk_graph_batch_norm(g, y, "bn3", STK_INIT_ONE);
    int rectified = stk_graph_relu(g, y);
    y = stk_graph_add(g, stk_graph_add(g, pooled, normed), rectified);
    int mean = stk_graph_avg_pool(g, y);
    int other = stk_graph_linear(g, y, "fc2", CLASSES);
    return stk_graph_add(g, stk_graph_linear(g, mean, "fc", CLASSES), other);
}

static const stk_mix no_mix = {.kind = STK_MIX_NONE};

static void conv_gradients(void) {
    check_gradients(build_conv, 9, 3, no_mix, 0);
}

static void wide_kernel_gradients(void) {
    check_gradients(build_wide_kernel, 11, 2, no_mix, 0);
}

static void batch_norm_gradients(void) {
    check_gradients(build_norm, 7, 4, no_mix, 0);
}

static void relu_gradients(void) {
    check_gradients(build_relu, 9, 3, no_mix, 0);
}

static void max_pool_gradients(void) {
    check_gradients(build_max_pool, 9, 2, no_mix, 0);
}

static void residual_gradients(void) {
    check_gradients(build_residual, 6, 3, no_mix, 0);
}

static void loss_with_smoothing_and_mixing(void) {
    check_gradients(build_relu, 8, 5, (stk_mix){.kind = STK_MIX_MIXUP, .keep = 0.3f}, 0.1f);
    check_gradients(
        build_relu, 8, 4,
        (stk_mix){
            .kind = STK_MIX_CUTMIX, .keep = 0.75f, .left = 2, .top = 1, .right = 6, .bottom = 5},
        0);
}

static void inference_uses_running_statistics(void) {
    bench b;
    if (bench_open(&b, build_residual, 6, 4, 2)) {
        stk_step_input in = input_of(&b);
        float logits[4 * CLASSES];
        b.ref.train = false;
        reference_run(&b.ref, &in);
        CHECK(cpu->infer(b.infer, b.images, 4, logits, &b.err) == STK_OK);
        for (size_t i = 0; i < 4 * CLASSES; i++) {
            CHECK_NEAR(logits[i], b.ref.values[b.graph->logits][i], 1e-3);
        }
        /* Fewer samples than the batch it was compiled for give the same rows. */
        float fewer[2 * CLASSES];
        CHECK(cpu->infer(b.infer, b.images, 2, fewer, &b.err) == STK_OK);
        for (size_t i = 0; i < 2 * CLASSES; i++) {
            CHECK_NEAR(fewer[i], logits[i], 1e-3);
        }
    }
    bench_close(&b);
}

static void running_statistics_follow_the_batch(void) {
    bench b;
    if (bench_open(&b, build_norm, 7, 4, 2)) {
        stk_step_input in = input_of(&b);
        stk_step_output out;
        float before[2][5];
        float after[2][5];
        const stk_node *norm = &b.graph->nodes[2];
        REQUIRE(norm->op == STK_OP_BATCH_NORM);
        for (int k = 0; k < 2; k++) {
            CHECK(
                !cpu->state_read(b.state, STK_TENSOR_VALUE, norm->params[2 + k], before[k], NULL));
        }
        CHECK(cpu->step(b.train, &in, &out, &b.err) == STK_OK);
        for (int k = 0; k < 2; k++) {
            CHECK(!cpu->state_read(b.state, STK_TENSOR_VALUE, norm->params[2 + k], after[k], NULL));
        }
        reference_run(&b.ref, &in);
        const double *x = b.ref.values[norm->inputs[0]];
        size_t rows = 4 * 7 * 7;
        for (size_t c = 0; c < 5; c++) {
            double mean = 0;
            double var = 0;
            for (size_t i = 0; i < rows; i++) {
                mean += x[i * 5 + c] / (double)rows;
            }
            for (size_t i = 0; i < rows; i++) {
                var += (x[i * 5 + c] - mean) * (x[i * 5 + c] - mean) / (double)(rows - 1);
            }
            CHECK_NEAR(after[0][c], 0.9 * before[0][c] + 0.1 * mean, 1e-4);
            CHECK_NEAR(after[1][c], 0.9 * before[1][c] + 0.1 * var, 1e-4);
        }
    }
    bench_close(&b);
}

/* The updated parameters and the gradients of a whole step, for comparing bit for bit. */
static void step_twice(bench *b, float *values) {
    stk_step_input in = input_of(b);
    stk_step_output out;
    stk_update update = {
        .lr = 0.1f, .head_lr = 0.1f, .momentum = 0.9f, .weight_decay = 0.01f, .grad_scale = 1};
    in.update = &update;
    CHECK(cpu->step(b->train, &in, &out, &b->err) == STK_OK);
    CHECK(cpu->step(b->train, &in, &out, &b->err) == STK_OK);
    for (int p = 0; p < b->graph->param_count; p++) {
        CHECK(cpu->state_read(b->state, STK_TENSOR_VALUE, p, values + b->graph->params[p].offset,
                              &b->err) == STK_OK);
    }
}

static void same_bits_on_any_number_of_threads(void) {
    float *first = NULL;
    for (int threads = 1; threads <= 4; threads++) {
        bench b;
        REQUIRE(bench_open(&b, build_residual, 23, 9, threads));
        float *values = calloc(b.graph->param_elements, sizeof *values);
        step_twice(&b, values);
        if (first == NULL) {
            first = values;
        } else {
            CHECK(memcmp(first, values, b.graph->param_elements * sizeof *values) == 0);
            free(values);
        }
        bench_close(&b);
    }
    free(first);
}

static void sgd_follows_its_formula(void) {
    for (int nesterov = 0; nesterov < 2; nesterov++) {
        bench b;
        REQUIRE(bench_open(&b, build_relu, 8, 4, 1));
        stk_step_input in = input_of(&b);
        stk_step_output out;
        stk_update update = {.lr = 0.05f,
                             .head_lr = 0.05f,
                             .momentum = 0.8f,
                             .weight_decay = 0.1f,
                             .nesterov = nesterov == 1,
                             .grad_scale = 0.5f};
        in.update = &update;
        for (int p = 0; p < b.graph->param_count; p++) {
            const stk_param *param = &b.graph->params[p];
            if (!param->trainable) {
                continue;
            }
            float w[512], g[512], v[512], moved[512];
            REQUIRE(param->count <= 512);
            CHECK(!cpu->state_read(b.state, STK_TENSOR_VALUE, p, w, NULL));
            CHECK(!cpu->state_read(b.state, STK_TENSOR_MOMENTUM, p, v, NULL));
            CHECK(cpu->step(b.train, &in, &out, &b.err) == STK_OK);
            CHECK(!cpu->state_read(b.state, STK_TENSOR_GRADIENT, p, g, NULL));
            CHECK(!cpu->state_read(b.state, STK_TENSOR_VALUE, p, moved, NULL));
            for (size_t i = 0; i < param->count; i++) {
                double decay = param->decay ? 0.1 * w[i] : 0;
                double step = 0.5 * g[i] + decay;
                double velocity = 0.8 * v[i] + step;
                double change = nesterov ? step + 0.8 * velocity : velocity;
                CHECK_NEAR(moved[i], w[i] - 0.05 * change, 1e-5);
            }
        }
        CHECK(b.graph->params[0].decay);
        bench_close(&b);
    }
}

static void kept_gradients_add_up(void) {
    bench b;
    REQUIRE(bench_open(&b, build_conv, 9, 4, 2));
    stk_step_input in = input_of(&b);
    stk_step_output out;
    float once[256], twice[256];
    CHECK(cpu->step(b.train, &in, &out, &b.err) == STK_OK);
    CHECK(!cpu->state_read(b.state, STK_TENSOR_GRADIENT, 0, once, NULL));
    in.keep_gradients = true;
    CHECK(cpu->step(b.train, &in, &out, &b.err) == STK_OK);
    CHECK(!cpu->state_read(b.state, STK_TENSOR_GRADIENT, 0, twice, NULL));
    for (size_t i = 0; i < b.graph->params[0].count; i++) {
        CHECK_NEAR(twice[i], 2 * once[i], 1e-5);
    }
    bench_close(&b);
}

static void plan_is_what_is_allocated(void) {
    bench b;
    REQUIRE(bench_open(&b, build_residual, 16, 6, 2));
    for (int train = 0; train < 2; train++) {
        stk_compile_config config = {.batch = 6, .train = train == 1};
        uint64_t bytes = 0;
        CHECK(cpu->plan_bytes(b.device, b.graph, &config, &bytes, &b.err) == STK_OK);
        CHECK_INT(bytes, cpu->exec_bytes(train ? b.train : b.infer));
    }
    CHECK(cpu->exec_bytes(b.infer) < cpu->exec_bytes(b.train));
    bench_close(&b);
}

static void wrong_calls_are_refused(void) {
    bench b;
    REQUIRE(bench_open(&b, build_conv, 9, 3, 1));
    stk_step_input in = input_of(&b);
    stk_step_output out;
    float logits[4 * CLASSES];
    in.count = 4;
    CHECK(cpu->step(b.train, &in, &out, &b.err) == STK_ERR_INTERNAL);
    CHECK(cpu->infer(b.train, b.images, 3, logits, NULL) == STK_ERR_INTERNAL);
    CHECK(cpu->infer(b.infer, b.images, 0, logits, NULL) == STK_ERR_INTERNAL);
    bench_close(&b);
}

static void memory_failures_leak_nothing(void) {
    for (int n = 0; n < 40; n++) {
        bench b;
        stk_graph *graph = NULL;
        stk_error err = {0};
        REQUIRE(stk_graph_new(&graph, 9, CLASSES, &err) == STK_OK);
        REQUIRE(stk_graph_finish(graph, build_conv(graph), &err) == STK_OK);
        memset(&b, 0, sizeof b);
        stk_device_config device = {.threads = 2};
        stk_compile_config config = {.batch = 2, .train = true};
        stk_mem_fail_after(n);
        stk_status status = cpu->device_open(&b.device, &device, &err);
        status = status == STK_OK ? cpu->state_new(&b.state, b.device, graph,
                                                   &(stk_state_config){.train = true}, &err)
                                  : status;
        status = status == STK_OK ? cpu->compile(&b.train, b.state, &config, &err) : status;
        stk_mem_fail_after(-1);
        CHECK(status == STK_OK || status == STK_ERR_MEMORY);
        cpu->exec_free(b.train);
        cpu->state_free(b.state);
        cpu->device_close(b.device);
        stk_graph_free(graph);
    }
}

static const check_test tests[] = {
    TEST(conv_gradients),
    TEST(wide_kernel_gradients),
    TEST(batch_norm_gradients),
    TEST(relu_gradients),
    TEST(max_pool_gradients),
    TEST(residual_gradients),
    TEST(loss_with_smoothing_and_mixing),
    TEST(inference_uses_running_statistics),
    TEST(running_statistics_follow_the_batch),
    TEST(same_bits_on_any_number_of_threads),
    TEST(sgd_follows_its_formula),
    TEST(kept_gradients_add_up),
    TEST(plan_is_what_is_allocated),
    TEST(wrong_calls_are_refused),
    TEST(memory_failures_leak_nothing),
};

CHECK_MAIN(tests)
