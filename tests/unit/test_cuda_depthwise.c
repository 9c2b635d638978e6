/*
 * test_cuda_depthwise.c - depthwise convolutions on a GPU or an emulated one, against float64: each
 * output, with and without a norm in front, for kernels, strides, paddings and sizes that do not
 * fit the tiles.
 */
#include "cuda_play.h"

#include "backend/cuda/emit/emit.h"

#define MOST_DATA 32
#define EPSILON 1e-3f

typedef struct dw_case {
    int batch, height, width, channels;
    int kernel, stride, pad, out_height, out_width;
    stk_op act;  /* behind the norm in front; STK_OP_COUNT: there is none */
    double mean; /* of x */
} dw_case;

static const dw_case cases[] = {
    {2, 9, 7, 16, 3, 1, 1, 9, 7, STK_OP_SILU, 0},
    {3, 8, 10, 24, 3, 2, 0, 4, 5, STK_OP_SILU, 0},  /* as TensorFlow pads */
    {2, 11, 13, 8, 5, 2, 2, 6, 7, STK_OP_RELU, 0},  /* odd sides */
    {2, 14, 14, 32, 5, 2, 1, 7, 7, STK_OP_SILU, 0}, /* as TensorFlow pads */
    {5, 7, 7, 48, 5, 1, 2, 7, 7, STK_OP_SILU, 0},   /* several samples in a block */
    {2, 6, 5, 13, 3, 1, 1, 6, 5, STK_OP_RELU6, 0},  /* channels that are no multiple of 8 */
    {2, 7, 6, 70, 5, 2, 2, 4, 3, STK_OP_COUNT, 0},  /* more than a slab of them */
    {1, 9, 8, 8, 7, 1, 3, 9, 8, STK_OP_SILU, 0},    /* a larger kernel */
    {1, 10, 11, 3, 9, 2, 4, 5, 6, STK_OP_COUNT, 0}, /* a very large one */
    {2, 5, 4, 8, 1, 1, 0, 5, 4, STK_OP_COUNT, 0},   /* a kernel of one tap */
    {2, 6, 6, 8, 3, 1, 0, 4, 4, STK_OP_COUNT, 0},   /* no padding at all */
    {2, 8, 8, 8, 3, 3, 1, 3, 3, STK_OP_SILU, 0},    /* a stride of three */
    {1, 30, 29, 64, 3, 1, 1, 30, 29, STK_OP_SILU, 0},
    {2, 12, 12, 8, 3, 1, 0, 10, 10, STK_OP_COUNT, 100}, /* statistics with a large mean */
};

static double act_of(stk_op act, double x) {
    switch (act) {
    case STK_OP_RELU:
        return x > 0 ? x : 0;
    case STK_OP_RELU6:
        return x > 6 ? 6 : x > 0 ? x : 0;
    case STK_OP_SILU:
        return x / (1 + exp(-x));
    default:
        return x;
    }
}

static double slope_of(stk_op act, double x) {
    double s = 1 / (1 + exp(-x));
    switch (act) {
    case STK_OP_RELU:
        return x > 0;
    case STK_OP_RELU6:
        return x > 0 && x < 6;
    case STK_OP_SILU:
        return s * (1 + x * (1 - s));
    default:
        return 1;
    }
}

/* How exact results of a type are, as a part of their size. */
static double share_of(cuda_type type) {
    return type == CUDA_TYPE_F32 ? 2e-6 : type == CUDA_TYPE_F16 ? 1e-3 : 8e-3;
}

/* What one case is given and what is expected; float32 arrays are given, the others computed. */
typedef struct dw_data {
    const dw_case *k;
    cuda_type type;
    size_t in_count, out_count, taps;
    float *x, *dy, *before, *weight, *coefs, *norm_weight, *running, *norm_bias;
    double *input; /* what the convolution reads */
    float *y, *dx, *dw, *dn_sum, *dn_product;
} dw_data;

static float *floats(size_t count) {
    return stk_mem_new(count, sizeof(float));
}

/* Where tap (ky, kx) of the output at `at` reads, or -1. */
static long reads(const dw_case *k, size_t at, int ky, int kx) {
    int c = (int)(at % (size_t)k->channels);
    size_t pixel = at / (size_t)k->channels;
    int ox = (int)(pixel % (size_t)k->out_width);
    int oy = (int)(pixel / (size_t)k->out_width % (size_t)k->out_height);
    int n = (int)(pixel / (size_t)(k->out_width * k->out_height));
    int iy = oy * k->stride - k->pad + ky;
    int ix = ox * k->stride - k->pad + kx;
    if (iy < 0 || iy >= k->height || ix < 0 || ix >= k->width) {
        return -1;
    }
    return (((long)n * k->height + iy) * k->width + ix) * k->channels + c;
}

/* y, dx and dw without what belongs to the norm. */
static void convolve(dw_data *d) {
    const dw_case *k = d->k;
    size_t taps = d->taps;
    double *dx = stk_mem_new(d->in_count, sizeof *dx);
    double *dw = stk_mem_new(taps * (size_t)k->channels, sizeof *dw);
    for (size_t at = 0; at < d->out_count; at++) {
        size_t c = at % (size_t)k->channels;
        double sum = 0;
        for (size_t tap = 0; tap < taps; tap++) {
            long from = reads(k, at, (int)tap / k->kernel, (int)tap % k->kernel);
            if (from >= 0) {
                sum += d->input[from] * (double)d->weight[c * taps + tap];
                dx[from] += (double)d->dy[at] * (double)d->weight[c * taps + tap];
                dw[c * taps + tap] += (double)d->dy[at] * d->input[from];
            }
        }
        d->y[at] = (float)sum;
    }
    for (size_t c = 0; c < (size_t)k->channels * taps; c++) {
        d->dw[c] = (float)dw[c];
    }
    double *sums = stk_mem_new(2 * (size_t)k->channels, sizeof *sums);
    for (size_t i = 0; i < d->in_count; i++) {
        size_t c = i % (size_t)k->channels;
        const float *coefs = d->coefs + c;
        size_t step = (size_t)k->channels;
        double normalised = ((double)d->x[i] - (double)coefs[0]) * (double)coefs[step];
        double z = (double)coefs[2 * step] * (double)d->x[i] + (double)coefs[3 * step];
        double grad = k->act != STK_OP_COUNT ? dx[i] * slope_of(k->act, z) : dx[i];
        d->dx[i] = (float)grad;
        sums[c] += grad;
        sums[step + c] += grad * normalised;
    }
    for (size_t c = 0; c < (size_t)k->channels; c++) {
        d->dn_sum[c] = (float)sums[c];
        d->dn_product[c] = (float)sums[(size_t)k->channels + c];
    }
    stk_mem_free(sums);
    stk_mem_free(dx);
    stk_mem_free(dw);
}

static dw_data data_of(const dw_case *k, cuda_type type) {
    size_t channels = (size_t)k->channels;
    dw_data d = {.k = k, .type = type};
    d.in_count = (size_t)(k->batch * k->height * k->width) * channels;
    d.out_count = (size_t)(k->batch * k->out_height * k->out_width) * channels;
    d.taps = (size_t)(k->kernel * k->kernel);
    d.x = play_random_new(type, d.in_count, k->mean - 1, k->mean + 1, 1);
    d.dy = play_random_new(type, d.out_count, -1, 1, 2);
    d.before = play_random_new(type, d.in_count, -1, 1, 3);
    d.weight = play_random_new(CUDA_TYPE_F32, d.taps * channels, -1, 1, 4);
    d.coefs = play_random_new(CUDA_TYPE_F32, 4 * channels, 0.3, 1.5, 5);
    d.norm_weight = play_random_new(CUDA_TYPE_F32, channels, 0.5, 1.5, 6);
    d.norm_bias = play_random_new(CUDA_TYPE_F32, channels, -1, 1, 7);
    d.running = play_random_new(CUDA_TYPE_F32, 2 * channels, 0.5, 1.5, 8);
    d.input = stk_mem_new(d.in_count, sizeof *d.input);
    for (size_t i = 0; i < d.in_count; i++) {
        size_t c = i % channels;
        double z =
            (double)d.coefs[2 * channels + c] * (double)d.x[i] + (double)d.coefs[3 * channels + c];
        d.input[i] = k->act != STK_OP_COUNT ? act_of(k->act, z) : (double)d.x[i];
    }
    d.y = floats(d.out_count);
    d.dx = floats(d.in_count);
    d.dw = floats(d.taps * channels);
    d.dn_sum = floats(channels);
    d.dn_product = floats(channels);
    convolve(&d);
    return d;
}

static void data_free(dw_data *d) {
    float *all[] = {d->x,           d->dy,      d->before,    d->weight, d->coefs,
                    d->norm_weight, d->running, d->norm_bias, d->y,      d->dx,
                    d->dw,          d->dn_sum,  d->dn_product};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        stk_mem_free(all[i]);
    }
    stk_mem_free(d->input);
}

/* A program and the memory that is given to it and wanted from it. */
typedef struct dw_play {
    cuda_program p;
    play_data data[MOST_DATA];
    int count;
} dw_play;

static cuda_ref give(dw_play *play, play_kind kind, size_t count, const float *in) {
    size_t bytes = kind == PLAY_T ? cuda_type_bytes(play->p.type) : sizeof(float);
    cuda_ref ref = stk_cuda_buffer(&play->p, count * bytes);
    play->data[play->count++] = play_in(ref, kind, count, in);
    return ref;
}

/* `out` is filled, and is what lies there before when `given`. */
static cuda_ref want(dw_play *play, play_kind kind, size_t count, float *out, bool given) {
    cuda_ref ref = give(play, kind, count, given ? out : NULL);
    play->data[play->count - 1].out = out;
    return ref;
}

/* What kernels write about a norm behind which they are. */
typedef struct dw_norm {
    cuda_norm norm;
    float *weight_grad, *bias_grad, *back;
} dw_norm;

static dw_norm norm_in_front(dw_play *play, const dw_data *d, cuda_ref coefs) {
    size_t channels = (size_t)d->k->channels;
    dw_norm n = {.weight_grad = floats(channels),
                 .bias_grad = floats(channels),
                 .back = floats(3 * channels)};
    n.norm = (cuda_norm){.coefs = coefs, .epsilon = EPSILON};
    n.norm.weight = give(play, PLAY_FLOAT, channels, d->norm_weight);
    n.norm.weight_grad = want(play, PLAY_FLOAT, channels, n.weight_grad, false);
    n.norm.bias_grad = want(play, PLAY_FLOAT, channels, n.bias_grad, false);
    n.norm.back = want(play, PLAY_FLOAT, 3 * channels, n.back, false);
    return n;
}

static void check_norm_grads(const dw_data *d, const dw_norm *n) {
    size_t channels = (size_t)d->k->channels;
    double rows = (double)d->in_count / (double)channels;
    float *back = floats(3 * channels);
    for (size_t c = 0; c < channels; c++) {
        double invstd = (double)d->coefs[channels + c];
        double a = (double)d->norm_weight[c] * invstd;
        back[c] = (float)a;
        back[channels + c] = (float)(-a * invstd * (double)d->dn_product[c] / rows);
        back[2 * channels + c] = (float)(-a * (double)d->dn_sum[c] / rows);
    }
    double share = 1e-5;
    play_check_norm("bias_grad", n->bias_grad, d->dn_sum, channels, share);
    play_check_norm("weight_grad", n->weight_grad, d->dn_product, channels, share);
    play_check_norm("a", n->back, back, channels, share);
    play_check_norm("b", n->back + channels, back + channels, channels, share);
    play_check_norm("d", n->back + 2 * channels, back + 2 * channels, channels, share);
    stk_mem_free(back);
}

static void norm_free(dw_norm *n) {
    stk_mem_free(n->weight_grad);
    stk_mem_free(n->bias_grad);
    stk_mem_free(n->back);
}

static cuda_depthwise conv_of(dw_play *play, const dw_data *d) {
    const dw_case *k = d->k;
    return (cuda_depthwise){.batch = k->batch,
                            .height = k->height,
                            .width = k->width,
                            .channels = k->channels,
                            .out_height = k->out_height,
                            .out_width = k->out_width,
                            .kernel = k->kernel,
                            .stride = k->stride,
                            .pad = k->pad,
                            .weight =
                                give(play, PLAY_FLOAT, d->taps * (size_t)k->channels, d->weight),
                            .weight_grad = cuda_nothing(),
                            .x = give(play, PLAY_T, d->in_count, d->x),
                            .in_act = k->act};
}

/* Statistics of y as it was stored: coefs, and where the running ones went. */
static void check_statistics(const dw_data *d, const float *y, const float *coefs,
                             const float *running) {
    size_t channels = (size_t)d->k->channels;
    double rows = (double)d->out_count / (double)channels;
    for (size_t c = 0; c < channels; c++) {
        double mean = 0;
        double squares = 0;
        for (size_t i = c; i < d->out_count; i += channels) {
            mean += (double)y[i] / rows;
        }
        for (size_t i = c; i < d->out_count; i += channels) {
            squares += ((double)y[i] - mean) * ((double)y[i] - mean);
        }
        double invstd = 1 / sqrt(squares / rows + (double)EPSILON);
        double scale = (double)d->norm_weight[c] * invstd;
        double shift = (double)d->norm_bias[c] - mean * scale;
        double size = fabs(mean) + 1;
        CHECK_NEAR(coefs[c], mean, 1e-6 * size);
        CHECK_NEAR(coefs[channels + c] / invstd, 1, 1e-5);
        CHECK_NEAR(coefs[2 * channels + c], scale, 1e-5 * fabs(scale));
        CHECK_NEAR(coefs[3 * channels + c], shift, 1e-5 * (fabs(mean * scale) + 1));
        double old = (double)d->running[c], spread = (double)d->running[channels + c];
        CHECK_NEAR(running[c], old + 0.1 * (mean - old), 1e-6 * size);
        double unbiased = squares / (rows - 1);
        CHECK_NEAR(running[channels + c], spread + 0.1 * (unbiased - spread),
                   1e-5 * (unbiased + 1));
    }
}

static void check_forward(play_device *device, const dw_data *d, int processors) {
    size_t channels = (size_t)d->k->channels;
    dw_play play = {.count = 0};
    stk_cuda_program_begin(&play.p, d->type, false, processors);
    float *y = floats(d->out_count), *again = floats(d->out_count);
    float *coefs = floats(4 * channels), *running = floats(2 * channels);
    memcpy(running, d->running, 2 * channels * sizeof *running);
    cuda_depthwise conv = conv_of(&play, d);
    cuda_norm in_norm = {.coefs = give(&play, PLAY_FLOAT, 4 * channels, d->coefs)};
    conv.in_norm = d->k->act != STK_OP_COUNT ? &in_norm : NULL;
    cuda_norm norm = {.epsilon = EPSILON};
    norm.weight = give(&play, PLAY_FLOAT, channels, d->norm_weight);
    norm.bias = give(&play, PLAY_FLOAT, channels, d->norm_bias);
    norm.running_mean = want(&play, PLAY_FLOAT, channels, running, true);
    norm.running_var = want(&play, PLAY_FLOAT, channels, running + channels, true);
    norm.coefs = want(&play, PLAY_FLOAT, 4 * channels, coefs, false);
    stk_cuda_depthwise(&play.p, &conv, want(&play, PLAY_T, d->out_count, y, false), &norm);
    stk_cuda_depthwise(&play.p, &conv, want(&play, PLAY_T, d->out_count, again, false), NULL);
    if (play_run(device, &play.p, play.data, play.count)) {
        play_check_norm("y", y, d->y, d->out_count, share_of(d->type));
        play_check_norm("y without statistics", again, y, d->out_count, 0);
        check_statistics(d, y, coefs, running);
    }
    stk_cuda_program_free(&play.p);
    stk_mem_free(y);
    stk_mem_free(again);
    stk_mem_free(coefs);
    stk_mem_free(running);
}

/* The gradient of the filters by itself, and both in one pass. */
static void check_backward(play_device *device, const dw_data *d, int processors) {
    size_t channels = (size_t)d->k->channels, weights = d->taps * channels;
    bool normalised = d->k->act != STK_OP_COUNT;
    dw_play play = {.count = 0};
    stk_cuda_program_begin(&play.p, d->type, false, processors);
    float *dx = floats(d->in_count), *dw = floats(weights), *dw_both = floats(weights);
    cuda_depthwise conv = conv_of(&play, d);
    cuda_ref coefs = give(&play, PLAY_FLOAT, 4 * channels, d->coefs);
    cuda_ref dy = give(&play, PLAY_T, d->out_count, d->dy);
    dw_norm norm = norm_in_front(&play, d, coefs);

    conv.in_norm = normalised ? &norm.norm : NULL;
    conv.weight_grad = want(&play, PLAY_FLOAT, weights, dw, false);
    stk_cuda_depthwise_weight(&play.p, &conv, dy);
    conv.weight_grad = want(&play, PLAY_FLOAT, weights, dw_both, false);
    stk_cuda_depthwise_back(&play.p, &conv, dy, want(&play, PLAY_T, d->in_count, dx, false), false);
    if (play_run(device, &play.p, play.data, play.count)) {
        play_check_norm("dx", dx, d->dx, d->in_count, share_of(d->type));
        play_check_norm("dw", dw, d->dw, weights, 5e-6);
        play_check_norm("dw of both", dw_both, d->dw, weights, 5e-6);
        if (normalised) {
            check_norm_grads(d, &norm);
        }
    }
    stk_cuda_program_free(&play.p);
    norm_free(&norm);
    stk_mem_free(dx);
    stk_mem_free(dw);
    stk_mem_free(dw_both);
}

/* dx is added to what is there. */
static void check_added(play_device *device, const dw_data *d) {
    size_t weights = d->taps * (size_t)d->k->channels;
    dw_play play = {.count = 0};
    stk_cuda_program_begin(&play.p, d->type, false, 4);
    float *dx = floats(d->in_count), *dw = floats(weights), *wanted = floats(d->in_count);
    memcpy(dx, d->before, d->in_count * sizeof *dx);
    for (size_t i = 0; i < d->in_count; i++) {
        wanted[i] = d->before[i] + d->dx[i];
    }
    cuda_depthwise conv = conv_of(&play, d);
    cuda_ref dy = give(&play, PLAY_T, d->out_count, d->dy);
    conv.weight_grad = want(&play, PLAY_FLOAT, weights, dw, false);
    stk_cuda_depthwise_back(&play.p, &conv, dy, want(&play, PLAY_T, d->in_count, dx, true), true);
    if (play_run(device, &play.p, play.data, play.count)) {
        play_check_norm("dx", dx, wanted, d->in_count, share_of(d->type));
        play_check_norm("dw", dw, d->dw, weights, 5e-6);
    }
    stk_cuda_program_free(&play.p);
    stk_mem_free(dx);
    stk_mem_free(dw);
    stk_mem_free(wanted);
}

/* Each shape is kernels to be compiled: in an ordinary run it is in one type. */
static void run_cases(cuda_type type) {
    play_device device;
    if (!play_open(&device)) {
        return;
    }
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        int before = check_failures;
        if (!play_takes(i + 1, type)) {
            continue;
        }
        dw_data d = data_of(&cases[i], type);
        check_forward(&device, &d, 4);
        check_backward(&device, &d, 4);
        if (cases[i].act == STK_OP_COUNT) {
            check_added(&device, &d);
        }
        data_free(&d);
        if (check_failures > before) {
            printf("  that was case %zu\n", i);
        }
    }
    play_close(&device);
}

static void depthwise_in_float32(void) {
    run_cases(CUDA_TYPE_F32);
}

static void depthwise_in_float16(void) {
    run_cases(CUDA_TYPE_F16);
}

static void depthwise_in_bfloat16(void) {
    run_cases(CUDA_TYPE_BF16);
}

/* With many blocks sums go through teams of workers; with one multiprocessor, through few. */
static void many_workers_and_few(void) {
    static const dw_case k = {37, 24, 20, 8, 3, 1, 1, 24, 20, STK_OP_SILU, 0};
    play_device device;
    if (!play_open(&device)) {
        return;
    }
    dw_data d = data_of(&k, CUDA_TYPE_F16);
    check_forward(&device, &d, 132);
    check_backward(&device, &d, 132);
    check_forward(&device, &d, 1);
    check_backward(&device, &d, 1);
    cuda_program p;
    stk_cuda_program_begin(&p, CUDA_TYPE_F16, false, 132);
    cuda_depthwise conv = {.batch = k.batch,
                           .height = k.height,
                           .width = k.width,
                           .channels = k.channels,
                           .out_height = k.out_height,
                           .out_width = k.out_width,
                           .kernel = 3,
                           .stride = 1,
                           .pad = 1};
    stk_cuda_depthwise_weight(&p, &conv, cuda_nothing());
    CHECK(p.ops[0].launch.grid[1] > 16);
    stk_cuda_program_free(&p);
    data_free(&d);
    play_close(&device);
}

/* The networks that depthwise convolutions are for have no shape that cannot be cut. */
static void shapes_of_networks(void) {
    static const int sides[] = {7, 14, 28, 56, 112, 12, 24, 48, 95, 190, 300};
    static const int channels[] = {16, 24, 32, 48, 96, 144, 336, 672, 960, 1632, 2688, 3840};
    for (size_t i = 0; i < sizeof sides / sizeof *sides; i++) {
        for (size_t j = 0; j < sizeof channels / sizeof *channels; j++) {
            for (int kernel = 3; kernel <= 5; kernel += 2) {
                cuda_program p;
                stk_cuda_program_begin(&p, CUDA_TYPE_F32, false, 132);
                cuda_norm norm = {.epsilon = EPSILON};
                int stride = 1 + (int)(i + j) % 2;
                int out = (sides[i] + stride - 1) / stride;
                cuda_depthwise conv = {.batch = 128,
                                       .height = sides[i],
                                       .width = sides[i],
                                       .channels = channels[j],
                                       .out_height = out,
                                       .out_width = out,
                                       .kernel = kernel,
                                       .stride = stride,
                                       .pad = (kernel - 1) / 2,
                                       .in_norm = &norm,
                                       .in_act = STK_OP_SILU};
                cuda_ref y = stk_cuda_buffer(&p, 1);
                stk_cuda_depthwise(&p, &conv, y, &norm);
                stk_cuda_depthwise_back(&p, &conv, y, y, false);
                for (int op = 0; op < p.op_count; op++) {
                    const cuda_launch *l = &p.ops[op].launch;
                    CHECK(l->threads >= 32 && l->threads <= 512);
                    CHECK(l->shared_bytes > 0 && l->shared_bytes <= 227 * 1024);
                    CHECK(l->grid[0] > 0 && l->grid[1] > 0);
                    CHECK(strlen(l->defines) < sizeof l->defines - 1);
                }
                for (int b = CUDA_FIXED_COUNT; b < p.buffer_count; b++) {
                    CHECK(p.buffers[b].bytes < (size_t)16 << 20);
                }
                stk_cuda_program_free(&p);
            }
        }
    }
}

static const check_test tests[] = {
    TEST(depthwise_in_float32), TEST(depthwise_in_float16), TEST(depthwise_in_bfloat16),
    TEST(many_workers_and_few), TEST(shapes_of_networks),
};

CHECK_MAIN(tests)
