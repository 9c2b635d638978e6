/*
 * cpu_reference.h - a naive float64 evaluation of a graph, and a small network on the CPU backend
 * that is compared with it: losses, and every gradient against finite differences.
 */
#ifndef STK_TESTS_CPU_REFERENCE_H
#define STK_TESTS_CPU_REFERENCE_H

#include <string.h>

#include "backend/cpu/device.h"
#include "base/numbers/rng.h"
#include "check.h"
#include "engine/drop.h"
#include "op_networks.h"

/* ---- the reference: plain loops in float64, written from the definitions ---- */

typedef struct reference {
    const stk_graph *graph;
    size_t batch;
    bool train;      /* norms use the batch's statistics, drops drop */
    bool kept_stats; /* norms use their running statistics nevertheless */
    double *params;  /* graph->param_elements */
    double **values; /* one array per value */
    double mean_loss;
} reference;

static inline double *param_of(const reference *r, const stk_node *node, int which) {
    return r->params + r->graph->params[node->params[which]].offset;
}

static inline void reference_conv(const reference *r, const stk_node *node, const double *x,
                                  double *y) {
    stk_shape in = r->graph->values[node->inputs[0]].shape;
    stk_shape out = r->graph->values[node->output].shape;
    const double *w = param_of(r, node, 0);
    bool depthwise = node->op == STK_OP_DEPTHWISE;
    int depth = depthwise ? 1 : in.channels;
    for (size_t n = 0; n < r->batch; n++)
        for (int oy = 0; oy < out.height; oy++)
            for (int ox = 0; ox < out.width; ox++)
                for (int o = 0; o < out.channels; o++) {
                    double sum = node->param_count > 1 ? param_of(r, node, 1)[o] : 0;
                    for (int ky = 0; ky < node->kernel; ky++)
                        for (int kx = 0; kx < node->kernel; kx++) {
                            int iy = oy * node->stride + ky - node->pad;
                            int ix = ox * node->stride + kx - node->pad;
                            if (iy < 0 || iy >= in.height || ix < 0 || ix >= in.width) {
                                continue;
                            }
                            for (int c = 0; c < depth; c++)
                                sum += x[((n * (size_t)in.height + (size_t)iy) * (size_t)in.width +
                                          (size_t)ix) *
                                             (size_t)in.channels +
                                         (size_t)(depthwise ? o : c)] *
                                       w[((o * node->kernel + ky) * node->kernel + kx) * depth + c];
                        }
                    *y++ = sum;
                }
}

static inline void reference_norm(const reference *r, const stk_node *node, const double *x,
                                  double *y) {
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
        if (!r->train || r->kept_stats) {
            mean = param_of(r, node, 2)[c];
            var = param_of(r, node, 3)[c];
        }
        for (size_t i = 0; i < rows; i++) {
            y[i * channels + c] = (x[i * channels + c] - mean) / sqrt(var + (double)node->epsilon) *
                                      param_of(r, node, 0)[c] +
                                  param_of(r, node, 1)[c];
        }
    }
}

static inline void reference_max(const reference *r, const stk_node *node, const double *x,
                                 double *y) {
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

static inline double reference_target(const stk_step_input *in, size_t i, int c) {
    double keep = in->mix.kind == STK_MIX_NONE ? 1 : in->mix.keep;
    double hard =
        (c == in->labels[i] ? keep : 0) + (c == in->labels[in->count - 1 - i] ? 1 - keep : 0);
    return in->label_smoothing / CLASSES + (1 - in->label_smoothing) * hard;
}

/* The target of an output of any other loss; NaN: it is not known. */
static inline double reference_output_target(const reference *r, const stk_step_input *in, size_t i,
                                             size_t o) {
    size_t outputs = (size_t)r->graph->classes;
    double keep = in->mix.kind == STK_MIX_NONE ? 1 : (double)in->mix.keep;
    double smooth = r->graph->loss.kind == STK_LOSS_SIGMOID ? (double)in->label_smoothing : 0;
    double own = in->targets[i * outputs + o];
    double other = in->targets[(in->count - 1 - i) * outputs + o];
    double t = in->mix.kind == STK_MIX_NONE ? own : keep * own + (1 - keep) * other;
    return t * (1 - smooth) + smooth / 2;
}

/* The loss of one output, as its definition has it; exact enough for small logits alone. */
static inline double reference_point(const stk_loss *loss, double x, double t, size_t o) {
    double d = fabs(x - t);
    double delta = loss->huber_delta;
    double p = 1 / (1 + exp(-x));
    double m = fmax(p - (double)loss->margin, 0);
    double weight = loss->positive_weights != NULL ? (double)loss->positive_weights[o] : 1;
    switch (loss->kind) {
    case STK_LOSS_SIGMOID:
        return -weight * t * pow(1 - p, (double)loss->gamma_pos) * log(p) -
               (1 - t) * pow(m, (double)loss->gamma_neg) * log(1 - m);
    case STK_LOSS_SQUARED:
        return 0.5 * d * d;
    case STK_LOSS_ABSOLUTE:
        return d;
    default:
        return d <= delta ? 0.5 * d * d : delta * (d - delta / 2);
    }
}

/* The loss of a place on a scale, from the place itself instead of from the logits. */
static inline double reference_place_loss(const reference *r, const stk_step_input *in, size_t i) {
    int producer = r->graph->values[r->graph->logits].producer;
    double place = r->values[r->graph->nodes[producer].inputs[0]][i];
    double classes = r->graph->classes;
    double keep = in->mix.kind == STK_MIX_NONE ? 1 : (double)in->mix.keep;
    double y = keep * in->labels[i] + (1 - keep) * in->labels[in->count - 1 - i];
    double d = place - (y - (classes - 1) / 2) / sqrt((classes * classes - 1) / 12);
    return 0.5 * d * d;
}

static inline double reference_loss(const reference *r, const stk_step_input *in, const double *x) {
    size_t outputs = (size_t)r->graph->classes;
    double sum = 0;
    for (size_t n = 0; n < r->batch && r->graph->loss.kind == STK_LOSS_STEPS; n++) {
        sum += reference_place_loss(r, in, n);
    }
    if (r->graph->loss.kind == STK_LOSS_STEPS) {
        return sum / (double)r->batch;
    }
    for (size_t n = 0; n < r->batch; n++) {
        double exps = 0;
        for (size_t o = 0; o < outputs; o++) {
            exps += exp(x[n * outputs + o]);
        }
        for (size_t o = 0; o < outputs; o++) {
            double v = x[n * outputs + o];
            if (r->graph->loss.kind == STK_LOSS_SOFTMAX) {
                sum -= reference_target(in, n, (int)o) * (v - log(exps));
                continue;
            }
            double t = reference_output_target(r, in, n, o);
            sum += isnan(t) ? 0 : reference_point(&r->graph->loss, v, t, o);
        }
    }
    return sum / (double)r->batch;
}

static inline double reference_pixel(const stk_graph *g, const stk_step_input *in, size_t i,
                                     size_t at) {
    size_t channels = (size_t)g->channels;
    size_t floats = (size_t)g->img_size * (size_t)g->img_size * channels;
    size_t c = at % channels;
    double own = (in->images[i * floats + at] / 255.0 - g->mean[c]) / g->std[c];
    double other = (in->images[(in->count - 1 - i) * floats + at] / 255.0 - g->mean[c]) / g->std[c];
    int y = (int)(at / channels / (size_t)g->img_size);
    int x = (int)(at / channels % (size_t)g->img_size);
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

static inline double reference_activation(stk_op op, double x) {
    switch (op) {
    case STK_OP_RELU:
        return fmax(x, 0);
    case STK_OP_RELU6:
        return fmin(fmax(x, 0), 6);
    case STK_OP_SILU:
        return x / (1 + exp(-x));
    default:
        return 1 / (1 + exp(-x));
    }
}

static inline void reference_shortcut(const reference *r, const stk_node *node, const double *x,
                                      double *y) {
    stk_shape in = r->graph->values[node->inputs[0]].shape;
    stk_shape out = r->graph->values[node->output].shape;
    int before = (out.channels - in.channels) / 2;
    for (size_t n = 0; n < r->batch; n++)
        for (int oy = 0; oy < out.height; oy++)
            for (int ox = 0; ox < out.width; ox++)
                for (int o = 0; o < out.channels; o++) {
                    int c = o - before;
                    size_t row = n * (size_t)in.height + (size_t)(oy * node->stride);
                    size_t pixel = row * (size_t)in.width + (size_t)(ox * node->stride);
                    bool padded = c < 0 || c >= in.channels;
                    *y++ = padded ? 0 : x[pixel * (size_t)in.channels + (size_t)c];
                }
}

/* `run` is how many elements share a factor. */
static inline void reference_drop(const reference *r, const stk_node *node,
                                  const stk_step_input *in, const double *x, double *y,
                                  size_t run) {
    size_t count = r->batch * stk_shape_count(r->graph->values[node->output].shape);
    for (size_t i = 0; i < count; i++) {
        float factor =
            stk_drop_factor(node->rate, in->seed, in->step, (int)(node - r->graph->nodes), i / run);
        y[i] = x[i] * (r->train ? (double)factor : 1);
    }
}

static inline void reference_node(reference *r, const stk_node *node, const stk_step_input *in) {
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
    case STK_OP_DEPTHWISE:
        reference_conv(r, node, x, y);
        break;
    case STK_OP_BATCH_NORM:
        reference_norm(r, node, x, y);
        break;
    case STK_OP_RELU:
    case STK_OP_RELU6:
    case STK_OP_SILU:
    case STK_OP_SIGMOID:
        for (size_t i = 0; i < count; i++) {
            y[i] = reference_activation(node->op, x[i]);
        }
        break;
    case STK_OP_SCALE:
        for (size_t i = 0; i < count; i++) {
            size_t channels = (size_t)shape.channels;
            y[i] = x[i] * r->values[node->inputs[1]][i / inputs * channels + i % channels];
        }
        break;
    case STK_OP_SHORTCUT:
        reference_shortcut(r, node, x, y);
        break;
    case STK_OP_DROPOUT:
        reference_drop(r, node, in, x, y, 1);
        break;
    case STK_OP_DROP_PATH:
        reference_drop(r, node, in, x, y, inputs);
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
    case STK_OP_FEATURES:
        for (size_t i = 0; i < count; i++) {
            size_t at = (in->count - 1 - i / inputs) * inputs + i % inputs;
            double keep = in->mix.kind == STK_MIX_NONE ? 1 : (double)in->mix.keep;
            y[i] = keep * (double)in->features[i] + (1 - keep) * (double)in->features[at];
        }
        break;
    case STK_OP_CONCAT:
        for (size_t i = 0; i < count; i++) {
            size_t c = i % (size_t)shape.channels;
            size_t n = i / (size_t)shape.channels;
            size_t rest = (size_t)shape.channels - inputs;
            y[i] =
                c < inputs ? x[n * inputs + c] : r->values[node->inputs[1]][n * rest + c - inputs];
        }
        break;
    case STK_OP_STEPS: {
        double classes = shape.channels;
        for (size_t i = 0; i < count; i++) { /* the distance to the place, without its square */
            double k = (double)(i % (size_t)shape.channels);
            double g = (classes - 1) / 2 +
                       x[i / (size_t)shape.channels] * sqrt((classes * classes - 1) / 12);
            double middle = (classes - 1) / 2;
            double own = (k - g) * (k - g) - (middle - g) * (middle - g);
            y[i] = -own / (2 * 0.6 * 0.6);
        }
        break;
    }
    case STK_OP_LOSS:
        r->mean_loss = reference_loss(r, in, x);
        break;
    default:
        CHECK_FAIL("the reference does not know operation %d", node->op);
    }
}

static inline double reference_run(reference *r, const stk_step_input *in) {
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
    float targets[16 * CLASSES]; /* for losses that have them; some are not known */
    float features[16 * 16];     /* of networks that have any */
    size_t batch;
    stk_error err;
} bench;

static const stk_backend *const cpu = &stk_cpu_backend;

static inline void bench_close(bench *b) {
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
static inline void bench_fill(bench *b, uint64_t seed) {
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
    size_t pixels = b->batch * stk_shape_count(b->graph->values[b->graph->input].shape);
    free(b->images);
    b->images = malloc(pixels);
    for (size_t i = 0; i < pixels; i++) {
        b->images[i] = (uint8_t)stk_rng_below(&rng, 256);
    }
    for (size_t i = 0; i < b->batch; i++) {
        b->labels[i] = (int)stk_rng_below(&rng, CLASSES);
    }
    for (size_t i = 0; i < sizeof b->features / sizeof *b->features; i++) {
        b->features[i] = (float)stk_rng_normal(&rng);
    }
    for (size_t i = 0; i < b->batch * CLASSES; i++) {
        double known[] = {0, 1, stk_rng_range(&rng, 0, 1)};
        b->targets[i] = i % 7 == 3 ? NAN : (float)known[stk_rng_below(&rng, 3)];
    }
}

static inline bool bench_open(bench *b, builder *build, int img_size, size_t batch, int threads) {
    memset(b, 0, sizeof *b);
    b->batch = batch;
    bool good = batch <= sizeof b->labels / sizeof *b->labels &&
                stk_graph_new(&b->graph, img_size, CLASSES, &b->err) == STK_OK;
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

static inline stk_step_input input_of(const bench *b) {
    return (stk_step_input){.images = b->images,
                            .labels = b->labels,
                            .targets = b->targets,
                            .features = b->features,
                            .count = b->batch,
                            .seed = 3,
                            .step = 5};
}

/* One parameter's gradients against central differences of the reference. */
static inline void check_param(bench *b, int p, const stk_step_input *in) {
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

static inline void check_all_params(bench *b, const stk_step_input *in) {
    stk_step_output out;
    CHECK(cpu->step(b->train, in, &out, &b->err) == STK_OK);
    double loss = reference_run(&b->ref, in);
    CHECK_NEAR(out.loss_sum / (double)b->batch, loss, 1e-4);
    for (int p = 0; p < b->graph->param_count; p++) {
        if (b->graph->params[p].trainable) {
            check_param(b, p, in);
        }
    }
}

/* With norms that keep their running statistics. */
static inline void check_kept_gradients(builder *build, int img_size, size_t batch) {
    bench b;
    if (bench_open(&b, build, img_size, batch, 2)) {
        stk_step_input in = input_of(&b);
        stk_compile_config config = {.batch = batch, .train = true, .kept_stats = true};
        cpu->exec_free(b.train);
        b.train = NULL;
        CHECK(cpu->compile(&b.train, b.state, &config, &b.err) == STK_OK);
        b.ref.kept_stats = true;
        check_all_params(&b, &in);
    }
    bench_close(&b);
}

static inline void check_gradients(builder *build, int img_size, size_t batch, stk_mix mix,
                                   float smoothing) {
    bench b;
    if (bench_open(&b, build, img_size, batch, 2)) {
        stk_step_input in = input_of(&b);
        in.mix = mix;
        in.label_smoothing = smoothing;
        check_all_params(&b, &in);
    }
    bench_close(&b);
}

static const stk_mix no_mix = {.kind = STK_MIX_NONE};

#endif
