/*
 * test_cuda_squeeze.c - squeeze and excite on a GPU or an emulated one, against float64: forward,
 * and every gradient, for sizes that fit and sizes that do not.
 */
#include "cuda_play.h"

#include "backend/cuda/emit/emit.h"

#define MOST_DATA 40

typedef struct sq_case {
    int batch, pixels, channels, reduced;
    stk_op act, hidden_act;
    int processors; /* that are told to the program: many make many chunks of pixels */
} sq_case;

static const sq_case cases[] = {
    {3, 49, 48, 12, STK_OP_SILU, STK_OP_SILU, 4},
    {5, 35, 13, 5, STK_OP_SILU, STK_OP_SILU, 132},   /* channels one by one */
    {2, 900, 16, 3, STK_OP_RELU6, STK_OP_RELU, 132}, /* chunks of pixels */
    {18, 4, 552, 37, STK_OP_SILU, STK_OP_SILU, 132}, /* no span divides the channels */
    {140, 1, 24, 6, STK_OP_RELU, STK_OP_SILU, 1},    /* one pixel; more samples than a part */
    {2, 2, 3100, 72, STK_OP_SILU, STK_OP_SILU, 132}, /* more channels than a round */
    {2, 3, 70, 300, STK_OP_SILU, STK_OP_RELU, 132},  /* more hidden channels than channels */
};

static double act_of(stk_op act, double x) {
    switch (act) {
    case STK_OP_RELU:
        return x > 0 ? x : 0;
    case STK_OP_RELU6:
        return x > 6 ? 6 : x > 0 ? x : 0;
    default:
        return x / (1 + exp(-x));
    }
}

static double slope_of(stk_op act, double x) {
    double s = 1 / (1 + exp(-x));
    switch (act) {
    case STK_OP_RELU:
        return x > 0;
    case STK_OP_RELU6:
        return x > 0 && x < 6;
    default:
        return s * (1 + x * (1 - s));
    }
}

/* What comes out: of the device, or what is expected. */
typedef struct sq_out {
    float *p, *squeezed, *hidden, *gate; /* forward */
    float *again, *dx, *dsqueezed;
    float *dw1, *db1, *dw2, *db2, *weight_grad, *bias_grad, *back;
} sq_out;

typedef struct sq_data {
    const sq_case *k;
    cuda_type type;
    size_t count;                        /* of x */
    float *x, *dp, *coefs, *norm_weight; /* coefs are the true ones of x */
    float *w1, *b1, *w2, *b2;
} sq_data;

static float *floats(size_t count) {
    return stk_mem_new(count, sizeof(float));
}

static sq_out out_new(const sq_data *d) {
    size_t n = (size_t)d->k->batch, c = (size_t)d->k->channels, r = (size_t)d->k->reduced;
    return (sq_out){.p = floats(d->count),
                    .squeezed = floats(n * c),
                    .hidden = floats(n * r),
                    .gate = floats(n * c),
                    .again = floats(d->count),
                    .dx = floats(d->count),
                    .dsqueezed = floats(n * c),
                    .dw1 = floats(r * c),
                    .db1 = floats(r),
                    .dw2 = floats(c * r),
                    .db2 = floats(c),
                    .weight_grad = floats(c),
                    .bias_grad = floats(c),
                    .back = floats(3 * c)};
}

static void out_free(sq_out *o) {
    float *all[] = {o->p,   o->squeezed,    o->hidden,    o->gate, o->again,
                    o->dx,  o->dsqueezed,   o->dw1,       o->db1,  o->dw2,
                    o->db2, o->weight_grad, o->bias_grad, o->back};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        stk_mem_free(all[i]);
    }
}

/* Mean, deviation, scale and shift of x, so that the norm's backward can be checked as a whole. */
static void find_coefs(sq_data *d) {
    size_t channels = (size_t)d->k->channels;
    double rows = (double)(d->k->batch * d->k->pixels);
    for (size_t c = 0; c < channels; c++) {
        double mean = 0;
        double squares = 0;
        for (size_t i = c; i < d->count; i += channels) {
            mean += (double)d->x[i] / rows;
        }
        for (size_t i = c; i < d->count; i += channels) {
            squares += ((double)d->x[i] - mean) * ((double)d->x[i] - mean);
        }
        double invstd = 1 / sqrt(squares / rows + 1e-3);
        d->coefs[c] = (float)mean;
        d->coefs[channels + c] = (float)invstd;
        d->coefs[2 * channels + c] = (float)((double)d->norm_weight[c] * invstd);
        d->coefs[3 * channels + c] = (float)(0.25 - mean * (double)d->norm_weight[c] * invstd);
    }
}

static sq_data data_of(const sq_case *k, cuda_type type) {
    size_t c = (size_t)k->channels, r = (size_t)k->reduced;
    sq_data d = {.k = k, .type = type, .count = (size_t)(k->batch * k->pixels) * c};
    d.x = play_random_new(type, d.count, -1, 2, 1);
    d.dp = play_random_new(type, d.count, -1, 1, 2);
    d.norm_weight = play_random_new(CUDA_TYPE_F32, c, 0.5, 1.5, 3);
    d.coefs = floats(4 * c);
    d.w1 = play_random_new(CUDA_TYPE_F32, r * c, -0.5, 0.5, 4);
    d.b1 = play_random_new(CUDA_TYPE_F32, r, -1, 1, 5);
    d.w2 = play_random_new(CUDA_TYPE_F32, c * r, -0.5, 0.5, 6);
    d.b2 = play_random_new(CUDA_TYPE_F32, c, -1, 1, 7);
    find_coefs(&d);
    return d;
}

static void data_free(sq_data *d) {
    float *all[] = {d->x, d->dp, d->coefs, d->norm_weight, d->w1, d->b1, d->w2, d->b2};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        stk_mem_free(all[i]);
    }
}

/* What the activation reads, of element i of x. */
static double z_of(const sq_data *d, size_t i) {
    size_t channels = (size_t)d->k->channels, c = i % channels;
    return (double)d->coefs[2 * channels + c] * (double)d->x[i] +
           (double)d->coefs[3 * channels + c];
}

static size_t sample_of(const sq_data *d, size_t i) {
    return i / ((size_t)d->k->channels * (size_t)d->k->pixels);
}

static void forward(const sq_data *d, sq_out *o) {
    const sq_case *k = d->k;
    size_t channels = (size_t)k->channels, reduced = (size_t)k->reduced;
    double *means = stk_mem_new((size_t)k->batch * channels, sizeof *means);
    for (size_t i = 0; i < d->count; i++) {
        means[sample_of(d, i) * channels + i % channels] += act_of(k->act, z_of(d, i)) / k->pixels;
    }
    for (size_t n = 0; n < (size_t)k->batch; n++) {
        for (size_t r = 0; r < reduced; r++) {
            double sum = (double)d->b1[r];
            for (size_t c = 0; c < channels; c++) {
                sum += means[n * channels + c] * (double)d->w1[r * channels + c];
            }
            o->hidden[n * reduced + r] = (float)sum;
        }
        for (size_t c = 0; c < channels; c++) {
            double sum = (double)d->b2[c];
            for (size_t r = 0; r < reduced; r++) {
                sum += act_of(k->hidden_act, (double)o->hidden[n * reduced + r]) *
                       (double)d->w2[c * reduced + r];
            }
            o->squeezed[n * channels + c] = (float)means[n * channels + c];
            o->gate[n * channels + c] = (float)(1 / (1 + exp(-sum)));
        }
    }
    for (size_t i = 0; i < d->count; i++) {
        double gate = (double)o->gate[sample_of(d, i) * channels + i % channels];
        o->p[i] = (float)(act_of(k->act, z_of(d, i)) * gate);
    }
    stk_mem_free(means);
}

/* Gradients of the two layers of one sample; dgate is in front of the sigmoid. */
static void layers_back(const sq_data *d, sq_out *o, size_t n, const double *dgate) {
    size_t channels = (size_t)d->k->channels, reduced = (size_t)d->k->reduced;
    for (size_t c = 0; c < channels; c++) {
        o->db2[c] += (float)dgate[c];
    }
    for (size_t r = 0; r < reduced; r++) {
        double before = (double)o->hidden[n * reduced + r];
        double sum = 0;
        for (size_t c = 0; c < channels; c++) {
            sum += dgate[c] * (double)d->w2[c * reduced + r];
            o->dw2[c * reduced + r] += (float)(dgate[c] * act_of(d->k->hidden_act, before));
        }
        double dhidden = sum * slope_of(d->k->hidden_act, before);
        o->db1[r] += (float)dhidden;
        for (size_t c = 0; c < channels; c++) {
            o->dw1[r * channels + c] += (float)(dhidden * (double)o->squeezed[n * channels + c]);
            o->dsqueezed[n * channels + c] += (float)(dhidden * (double)d->w1[r * channels + c]);
        }
    }
}

/* dn of element i: what the norm's output gets. */
static double dn_of(const sq_data *d, const sq_out *o, size_t i) {
    size_t at = sample_of(d, i) * (size_t)d->k->channels + i % (size_t)d->k->channels;
    return ((double)d->dp[i] * (double)o->gate[at] + (double)o->dsqueezed[at] / d->k->pixels) *
           slope_of(d->k->act, z_of(d, i));
}

static void norm_back(const sq_data *d, sq_out *o) {
    size_t channels = (size_t)d->k->channels;
    double rows = (double)(d->k->batch * d->k->pixels);
    for (size_t c = 0; c < channels; c++) {
        double mean = (double)d->coefs[c], invstd = (double)d->coefs[channels + c];
        double sum = 0;
        double product = 0;
        for (size_t i = c; i < d->count; i += channels) {
            sum += dn_of(d, o, i);
            product += dn_of(d, o, i) * ((double)d->x[i] - mean) * invstd;
        }
        double a = (double)d->norm_weight[c] * invstd;
        double b = -a * invstd * product / rows;
        o->bias_grad[c] = (float)sum;
        o->weight_grad[c] = (float)product;
        o->back[c] = (float)a;
        o->back[channels + c] = (float)b;
        o->back[2 * channels + c] = (float)(-a * sum / rows);
        for (size_t i = c; i < d->count; i += channels) {
            o->dx[i] = (float)(a * dn_of(d, o, i) + b * ((double)d->x[i] - mean) - a * sum / rows);
        }
    }
}

static void backward(const sq_data *d, sq_out *o) {
    const sq_case *k = d->k;
    size_t channels = (size_t)k->channels, sample = channels * (size_t)k->pixels;
    double *dgate = stk_mem_new(channels, sizeof *dgate);
    for (size_t n = 0; n < (size_t)k->batch; n++) {
        memset(dgate, 0, channels * sizeof *dgate);
        for (size_t i = n * sample; i < (n + 1) * sample; i++) {
            dgate[i % channels] += (double)d->dp[i] * act_of(k->act, z_of(d, i));
        }
        for (size_t c = 0; c < channels; c++) {
            double gate = (double)o->gate[n * channels + c];
            dgate[c] *= gate * (1 - gate);
        }
        layers_back(d, o, n, dgate);
    }
    norm_back(d, o);
    stk_mem_free(dgate);
}

/* ---- the device ---- */

typedef struct sq_play {
    cuda_program p;
    play_data data[MOST_DATA];
    int count;
} sq_play;

static cuda_ref give(sq_play *play, play_kind kind, size_t count, const float *in) {
    size_t bytes = kind == PLAY_T ? cuda_type_bytes(play->p.type) : sizeof(float);
    cuda_ref ref = stk_cuda_buffer(&play->p, count * bytes);
    play->data[play->count++] = play_in(ref, kind, count, in);
    return ref;
}

static cuda_ref want(sq_play *play, play_kind kind, size_t count, float *out) {
    cuda_ref ref = give(play, kind, count, NULL);
    play->data[play->count - 1].out = out;
    return ref;
}

static cuda_norm norm_of(sq_play *play, const sq_data *d, sq_out *o) {
    size_t c = (size_t)d->k->channels;
    cuda_norm norm = {.epsilon = 1e-3f};
    norm.coefs = give(play, PLAY_FLOAT, 4 * c, d->coefs);
    norm.weight = give(play, PLAY_FLOAT, c, d->norm_weight);
    norm.weight_grad = want(play, PLAY_FLOAT, c, o->weight_grad);
    norm.bias_grad = want(play, PLAY_FLOAT, c, o->bias_grad);
    norm.back = want(play, PLAY_FLOAT, 3 * c, o->back);
    return norm;
}

static cuda_squeeze block_of(sq_play *play, const sq_data *d, const cuda_norm *norm, sq_out *o) {
    size_t n = (size_t)d->k->batch, c = (size_t)d->k->channels, r = (size_t)d->k->reduced;
    return (cuda_squeeze){.plane = {d->k->batch, d->k->pixels, d->k->channels},
                          .x = give(play, PLAY_T, d->count, d->x),
                          .norm = norm,
                          .act = d->k->act,
                          .reduced = d->k->reduced,
                          .hidden_act = d->k->hidden_act,
                          .w1 = give(play, PLAY_FLOAT, r * c, d->w1),
                          .b1 = give(play, PLAY_FLOAT, r, d->b1),
                          .w2 = give(play, PLAY_FLOAT, c * r, d->w2),
                          .b2 = give(play, PLAY_FLOAT, c, d->b2),
                          .dw1 = want(play, PLAY_T, r * c, o->dw1),
                          .db1 = want(play, PLAY_FLOAT, r, o->db1),
                          .dw2 = want(play, PLAY_T, c * r, o->dw2),
                          .db2 = want(play, PLAY_FLOAT, c, o->db2),
                          .squeezed = want(play, PLAY_FLOAT, n * c, o->squeezed),
                          .hidden = want(play, PLAY_FLOAT, n * r, o->hidden),
                          .gate = want(play, PLAY_FLOAT, n * c, o->gate)};
}

static void compare(const sq_data *d, const sq_out *got, const sq_out *wanted, bool again) {
    size_t n = (size_t)d->k->batch, c = (size_t)d->k->channels, r = (size_t)d->k->reduced;
    double rounding = d->type == CUDA_TYPE_F32 ? 1e-5 : d->type == CUDA_TYPE_F16 ? 5e-4 : 4e-3;
    play_check_norm("squeezed", got->squeezed, wanted->squeezed, n * c, 1e-5);
    play_check_norm("hidden", got->hidden, wanted->hidden, n * r, 1e-5);
    play_check_norm("gate", got->gate, wanted->gate, n * c, 1e-5);
    play_check_norm("p", got->p, wanted->p, d->count, rounding);
    if (again) {
        play_check_norm("p once more", got->again, got->p, d->count, 0);
    }
    play_check_norm("dw1", got->dw1, wanted->dw1, r * c, 2 * rounding);
    play_check_norm("db1", got->db1, wanted->db1, r, 2e-5);
    play_check_norm("dw2", got->dw2, wanted->dw2, c * r, 2 * rounding);
    play_check_norm("db2", got->db2, wanted->db2, c, 2e-5);
    play_check_norm("dsqueezed", got->dsqueezed, wanted->dsqueezed, n * c, 2e-5);
    play_check_norm("weight_grad", got->weight_grad, wanted->weight_grad, c, 2e-5);
    play_check_norm("bias_grad", got->bias_grad, wanted->bias_grad, c, 2e-5);
    play_check_norm("a", got->back, wanted->back, c, 2e-5);
    play_check_norm("b", got->back + c, wanted->back + c, c, 2e-5);
    play_check_norm("d", got->back + 2 * c, wanted->back + 2 * c, c, 2e-5);
    play_check_norm("dx", got->dx, wanted->dx, d->count, rounding);
}

/* Forward and backward in one program; on odd cases dx lies on dp and nothing is computed again. */
static void check_case(play_device *device, const sq_case *k, cuda_type type, bool plain) {
    sq_data d = data_of(k, type);
    sq_out got = out_new(&d), wanted = out_new(&d);
    sq_play play = {.count = 0};
    forward(&d, &wanted);
    backward(&d, &wanted);
    stk_cuda_program_begin(&play.p, type, false, k->processors);
    cuda_norm norm = norm_of(&play, &d, &got);
    cuda_squeeze block = block_of(&play, &d, &norm, &got);
    cuda_ref dp = give(&play, PLAY_T, d.count, d.dp);
    cuda_ref dsqueezed = want(&play, PLAY_FLOAT, (size_t)(k->batch * k->channels), got.dsqueezed);
    cuda_ref dx = dp;
    if (plain) {
        play.data[play.count - 2].out = got.dx;
    } else {
        dx = want(&play, PLAY_T, d.count, got.dx);
    }
    stk_cuda_squeeze(&play.p, &block, want(&play, PLAY_T, d.count, got.p));
    cuda_ref again = plain ? cuda_nothing() : want(&play, PLAY_T, d.count, got.again);
    stk_cuda_squeeze_reduce(&play.p, &block, dp, again, dsqueezed);
    stk_cuda_squeeze_backward(&play.p, &block, dp, dsqueezed, dx);
    if (play_run(device, &play.p, play.data, play.count)) {
        compare(&d, &got, &wanted, !plain);
    }
    stk_cuda_program_free(&play.p);
    out_free(&got);
    out_free(&wanted);
    data_free(&d);
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
        check_case(&device, &cases[i], type, i % 2 == 1);
        if (check_failures > before) {
            printf("  that was case %zu\n", i);
        }
    }
    play_close(&device);
}

static void squeeze_in_float32(void) {
    run_cases(CUDA_TYPE_F32);
}

static void squeeze_in_float16(void) {
    run_cases(CUDA_TYPE_F16);
}

static void squeeze_in_bfloat16(void) {
    run_cases(CUDA_TYPE_BF16);
}

static const check_test tests[] = {
    TEST(squeeze_in_float32),
    TEST(squeeze_in_float16),
    TEST(squeeze_in_bfloat16),
};

CHECK_MAIN(tests)
