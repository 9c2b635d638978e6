/*
 * dnn_run.c - computes what a plan of the look-alike of cuDNN says, in float32.
 *
 * Every tensor of a program becomes a dense array of floats in the order (n, h, w, c), whatever its
 * strides and type; operations work on these; what is not virtual is rounded and stored. So there
 * is one loop per operation, and the innermost one runs over channels.
 */
#include "dnn_emulated.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "numbers16.h"

typedef struct dnn_view {
    float *data; /* (n, h, w, c) */
    int n, c, h, w;
} dnn_view;

typedef struct dnn_work {
    const dnn_run *run;
    dnn_view views[DNN_MOST_TENSORS]; /* data NULL: not there yet */
} dnn_work;

static size_t element_bytes(int type) {
    return type == DNN_FLOAT ? 4 : 2;
}

static float load(const unsigned char *at, int type) {
    if (type == DNN_FLOAT) {
        float value;
        memcpy(&value, at, sizeof value);
        return value;
    }
    uint16_t bits;
    memcpy(&bits, at, sizeof bits);
    return type == DNN_HALF ? float_of_half(bits) : float_of_bf16(bits);
}

static void store(unsigned char *at, int type, float value) {
    if (type == DNN_FLOAT) {
        memcpy(at, &value, sizeof value);
        return;
    }
    uint16_t bits = type == DNN_HALF ? half_of_float(value) : bf16_of_float(value);
    memcpy(at, &bits, sizeof bits);
}

static size_t view_count(const dnn_view *view) {
    return (size_t)view->n * (size_t)view->c * (size_t)view->h * (size_t)view->w;
}

static void view_take(dnn_view *view, const dnn_tensor *tensor) {
    view->n = (int)tensor->dims[0];
    view->c = (int)tensor->dims[1];
    view->h = (int)tensor->dims[2];
    view->w = (int)tensor->dims[3];
    view->data = calloc(view_count(view), sizeof(float));
    if (view->data == NULL) {
        fprintf(stderr, "the emulated cuDNN has no memory\n");
        abort();
    }
}

/* Moves a tensor between memory of the device and its view. */
static void transfer(const dnn_tensor *tensor, unsigned char *memory, dnn_view *view, bool in) {
    size_t bytes = element_bytes(tensor->type);
    float *value = view->data;
    for (int n = 0; n < view->n; n++) {
        for (int h = 0; h < view->h; h++) {
            for (int w = 0; w < view->w; w++) {
                int64_t at =
                    n * tensor->strides[0] + h * tensor->strides[2] + w * tensor->strides[3];
                for (int c = 0; c < view->c; c++, value++) {
                    unsigned char *p = memory + (size_t)(at + c * tensor->strides[1]) * bytes;
                    if (in) {
                        *value = load(p, tensor->type);
                    } else {
                        store(p, tensor->type, *value);
                    }
                }
            }
        }
    }
}

static dnn_view *input(dnn_work *work, int t) {
    dnn_view *view = &work->views[t];
    const dnn_tensor *tensor = &work->run->program.tensors[t];
    if (view->data == NULL) { /* not made by an operation before: it lies in memory */
        view_take(view, tensor);
        transfer(tensor, work->run->pointers[t], view, true);
    }
    return view;
}

/* A zeroed view for what an operation makes; `old`: what was there before, for beta. */
static dnn_view *output(dnn_work *work, int t) {
    view_take(&work->views[t], &work->run->program.tensors[t]);
    return &work->views[t];
}

/* y = alpha * y + beta * what was there; then rounds to the tensor's type, and stores. */
static void finish(dnn_work *work, int t, float alpha, float beta) {
    const dnn_tensor *tensor = &work->run->program.tensors[t];
    dnn_view *view = &work->views[t];
    size_t count = view_count(view);
    dnn_view old = {NULL, 0, 0, 0, 0};
    if (beta != 0 && !tensor->is_virtual) {
        view_take(&old, tensor);
        transfer(tensor, work->run->pointers[t], &old, true);
    }
    for (size_t i = 0; i < count; i++) {
        float value = alpha * view->data[i];
        view->data[i] = old.data != NULL ? value + beta * old.data[i] : value;
    }
    free(old.data);
    if (!tensor->is_virtual) {
        transfer(tensor, work->run->pointers[t], view, false);
    }
    for (size_t i = 0; i < count && tensor->type != DNN_FLOAT; i++) {
        unsigned char stored[4];
        store(stored, tensor->type, view->data[i]);
        view->data[i] = load(stored, tensor->type);
    }
}

/* What tensor cores do to float32; numbers of 16 bits stay as they are. */
static void round_inputs(dnn_view *view) {
    size_t count = view_count(view);
    for (size_t i = 0; i < count; i++) {
        view->data[i] = tf32_of_float(view->data[i]);
    }
}

typedef struct dnn_taps {
    const dnn_op *op;
    const dnn_view *x, *w, *y; /* or their gradients */
    bool backwards;            /* samples in the other order */
} dnn_taps;

/*
 * Calls `tap` for every pixel of y and every tap of the filter that meets a pixel of x; `x`, `w`
 * and `y` point to the channels there. Filters lie as `w` says: (k, r, s, c) of a view of (k, c, r,
 * s), or with `rsck` as (r, s, c, k).
 */
typedef void (*dnn_tap)(const dnn_taps *taps, float *x, float *y, int r, int s);

static void each_tap(const dnn_taps *taps, dnn_tap tap) {
    const dnn_op *op = taps->op;
    const dnn_view *x = taps->x, *w = taps->w, *y = taps->y;
    for (int i = 0; i < y->n; i++) {
        int n = taps->backwards ? y->n - 1 - i : i;
        for (int oh = 0; oh < y->h; oh++) {
            for (int ow = 0; ow < y->w; ow++) {
                float *to =
                    y->data + ((size_t)(n * y->h + oh) * (size_t)y->w + (size_t)ow) * (size_t)y->c;
                for (int r = 0; r < w->h; r++) {
                    int ih = oh * op->stride[0] - op->pre[0] + r * op->dilation[0];
                    for (int s = 0; s < w->w && ih >= 0 && ih < x->h; s++) {
                        int iw = ow * op->stride[1] - op->pre[1] + s * op->dilation[1];
                        if (iw >= 0 && iw < x->w) {
                            tap(taps,
                                x->data + ((size_t)(n * x->h + ih) * (size_t)x->w + (size_t)iw) *
                                              (size_t)x->c,
                                to, r, s);
                        }
                    }
                }
            }
        }
    }
}

/* to[i] += values[0] * rows[0][i] and so on, in the order of the rows, which are `step` apart; four
 * at a time, so that what is added to need not be written for each. */
static void add_rows(float *restrict to, int length, const float *values, int count,
                     const float *restrict rows, size_t step) {
    int row = 0;
    for (; row + 4 <= count; row += 4, rows += 4 * step) {
        const float *v = values + row;
        const float *restrict b = rows + step;
        const float *restrict c = b + step;
        const float *restrict d = c + step;
        for (int i = 0; i < length; i++) {
            to[i] = to[i] + v[0] * rows[i] + v[1] * b[i] + v[2] * c[i] + v[3] * d[i];
        }
    }
    for (; row < count; row++, rows += step) {
        for (int i = 0; i < length; i++) {
            to[i] += values[row] * rows[i];
        }
    }
}

/* w is (r, s, c, k) here, so that the innermost loop runs over outputs. */
static void tap_forward(const dnn_taps *taps, float *x, float *y, int r, int s) {
    const dnn_view *w = taps->w;
    add_rows(y, w->n, x, w->c, w->data + (size_t)(r * w->w + s) * (size_t)(w->c * w->n),
             (size_t)w->n);
}

static void tap_data(const dnn_taps *taps, float *x, float *y, int r, int s) {
    const dnn_view *w = taps->w;
    add_rows(x, w->c, y, w->n, w->data + (size_t)(r * w->w + s) * (size_t)w->c,
             (size_t)(w->h * w->w) * (size_t)w->c);
}

static void tap_filter(const dnn_taps *taps, float *x, float *y, int r, int s) {
    const dnn_view *w = taps->w;
    const float *restrict from = x;
    float *restrict row = w->data + (size_t)(r * w->w + s) * (size_t)w->c;
    for (int k = 0; k < w->n; k++, row += (size_t)(w->h * w->w) * (size_t)w->c) {
        float value = y[k];
        for (int c = 0; c < w->c; c++) {
            row[c] += value * from[c];
        }
    }
}

/* (k, r, s, c) to (r, s, c, k). */
static dnn_view turned(const dnn_view *w) {
    dnn_view t = *w;
    size_t inner = (size_t)w->h * (size_t)w->w * (size_t)w->c;
    t.data = malloc(view_count(w) * sizeof(float));
    if (t.data == NULL) {
        fprintf(stderr, "the emulated cuDNN has no memory\n");
        abort();
    }
    for (int k = 0; k < w->n; k++) {
        for (size_t i = 0; i < inner; i++) {
            t.data[i * (size_t)w->n + (size_t)k] = w->data[(size_t)k * inner + i];
        }
    }
    return t;
}

/* Numbers of about the right size: inputs, in some order. */
static void make_nonsense(dnn_view *made, const dnn_view *x) {
    size_t count = view_count(made);
    for (size_t i = 0; i < count; i++) {
        made->data[i] = x->data[i * 7 % view_count(x)] * 3;
    }
}

static void convolve(dnn_work *work, const dnn_op *op) {
    dnn_view *a = input(work, op->in[0]);
    dnn_view *b = input(work, op->in[1]);
    dnn_view *made = output(work, op->out[0]);
    dnn_taps taps = {.op = op};
    if (work->run->program.engine == DNN_ENGINE_TENSOR) {
        round_inputs(a);
        round_inputs(b);
    }
    taps.backwards = work->run->program.engine == DNN_ENGINE_CARELESS && work->run->turn % 2 == 1;
    if (op->kind == DNN_OP_FORWARD) {
        dnn_view w = turned(b);
        taps.x = a;
        taps.w = &w;
        taps.y = made;
        each_tap(&taps, tap_forward);
        free(w.data);
    } else if (op->kind == DNN_OP_DATA) {
        taps.x = made;
        taps.w = a;
        taps.y = b;
        each_tap(&taps, tap_data);
    } else if (work->run->program.engine == DNN_ENGINE_WRONG) {
        make_nonsense(made, a);
    } else {
        taps.x = a;
        taps.w = made;
        taps.y = b;
        each_tap(&taps, tap_filter);
    }
    finish(work, op->out[0], op->alpha[0], op->beta);
}

static float point(const dnn_op *op, float x, float b) {
    switch (op->mode) {
    case DNN_ADD:
        return x + b;
    case DNN_MUL:
        return x * b;
    case DNN_RELU:
        return x < op->lower ? op->lower + op->slope * (x - op->lower) : fminf(x, op->upper);
    case DNN_SIGMOID:
        return 1 / (1 + expf(-x));
    case DNN_SWISH:
        return x / (1 + expf(-op->swish_beta * x));
    case DNN_RELU_BACKWARD: /* b is the gradient */
        return x > op->lower && x < op->upper ? b : op->slope * b;
    default: /* DNN_IDENTITY */
        return x;
    }
}

/* Where a view that is repeated along its sides of 1 has the number for a place of another. */
static float spread_at(const dnn_view *view, int n, int h, int w, int c) {
    size_t at = view->n == 1 ? 0 : (size_t)n;
    at = at * (size_t)view->h + (view->h == 1 ? 0 : (size_t)h);
    at = at * (size_t)view->w + (view->w == 1 ? 0 : (size_t)w);
    return view->data[at * (size_t)view->c + (view->c == 1 ? 0 : (size_t)c)];
}

static void pointwise(dnn_work *work, const dnn_op *op) {
    const dnn_view *x = input(work, op->in[0]);
    const dnn_view *b = op->in_count == 2 ? input(work, op->in[1]) : NULL;
    dnn_view *y = output(work, op->out[0]);
    float *to = y->data;
    for (int n = 0; n < y->n; n++) {
        for (int h = 0; h < y->h; h++) {
            for (int w = 0; w < y->w; w++) {
                for (int c = 0; c < y->c; c++) {
                    float first = op->alpha[0] * spread_at(x, n, h, w, c);
                    float second = b != NULL ? op->alpha[1] * spread_at(b, n, h, w, c) : 0;
                    *to++ = point(op, first, second);
                }
            }
        }
    }
    finish(work, op->out[0], 1, 0);
}

static void statistics(dnn_work *work, const dnn_op *op) {
    const dnn_view *x = input(work, op->in[0]);
    dnn_view *sum = output(work, op->out[0]);
    dnn_view *squares = output(work, op->out[1]);
    size_t pixels = view_count(x) / (size_t)x->c;
    for (size_t i = 0; i < pixels; i++) {
        const float *row = x->data + i * (size_t)x->c;
        for (int c = 0; c < x->c; c++) {
            sum->data[c] += row[c];
            squares->data[c] += row[c] * row[c];
        }
    }
    finish(work, op->out[0], 1, 0);
    finish(work, op->out[1], 1, 0);
}

void dnn_compute(void *arg) {
    const dnn_run *run = arg;
    dnn_work work = {.run = run};
    size_t workspace = dnn_workspace_bytes(run->program.engine);
    if (workspace > 0) { /* whoever keeps something there shall notice */
        memset(run->workspace, 0xff, 1024);
        memset(run->workspace + workspace - 1024, 0xff, 1024);
    }
    for (int i = 0; i < run->program.op_count; i++) {
        const dnn_op *op = &run->program.ops[i];
        if (op->kind == DNN_OP_POINTWISE) {
            pointwise(&work, op);
        } else if (op->kind == DNN_OP_STATS) {
            statistics(&work, op);
        } else {
            convolve(&work, op);
        }
    }
    for (int i = 0; i < run->program.tensor_count; i++) {
        free(work.views[i].data);
    }
}
