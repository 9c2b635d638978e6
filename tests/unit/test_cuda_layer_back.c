/*
 * test_cuda_layer_back.c - kernels/layer_back.cu on a GPU, real or emulated, against float64: each
 * variant of what stands behind the norm, channels that are filled up and those that are not, rows
 * that are no multiple of a tile.
 */
#include "backend/cuda/emit/emit.h"
#include "base/mem.h"
#include "cuda_play.h"
#include "engine/drop.h"

#define SEED 4242
#define STEP 3
#define DROP_NODE 9

typedef struct layer_case {
    int batch, pixels;
    int filters, channels;
    int multiprocessors;
    stk_op act;
    bool mask;
    int added_dx; /* 0 none, 1 its own, 2 on g */
    bool accumulate;
    stk_op in_act; /* of the norm in front; STK_OP_LOSS: there is none */
    float drop;
} layer_case;

#define NONE STK_OP_COUNT
#define NO_NORM STK_OP_LOSS

typedef struct numbers {
    layer_case c;
    cuda_type type;
    size_t rows, n, k; /* n, k: channels behind the convolution and in front of it */
    float *g, *x, *input, *weight, *dx, *added_dx, *dw;
    float *coefs, *back, *in_coefs;
    unsigned char *mask;
    /* Expected, and the sums of the products' sizes. */
    float *want_dx, *want_added, *want_dw;
    double *dx_size, *dw_size;
} numbers;

static double epsilon_of(cuda_type type) {
    return type == CUDA_TYPE_F16 ? 0x1.0p-10 : 0x1.0p-7;
}

/* Mean, 1 / deviation, scale and shift; a, b and d. The scale is a. */
static void fill_coefs(numbers *m) {
    for (size_t i = 0; i < m->n; i++) {
        m->coefs[2 * m->n + i] = m->back[i];
    }
}

static void fill_numbers(numbers *m, cuda_type type, const layer_case *c) {
    *m = (numbers){.c = *c,
                   .type = type,
                   .rows = (size_t)c->batch * (size_t)c->pixels,
                   .n = (size_t)c->filters,
                   .k = (size_t)c->channels};
    size_t rn = m->rows * m->n;
    size_t rk = m->rows * m->k;
    size_t nk = m->n * m->k;
    m->g = play_random_new(type, rn, -1, 1, 1);
    m->x = play_random_new(type, rn, -2, 2, 2);
    m->input = play_random_new(type, rk, -1, 2, 3);
    m->weight = play_random_new(type, nk, -0.3, 0.3, 4);
    m->dx = play_random_new(type, rk, -3, 3, 5);
    m->coefs = play_random_new(CUDA_TYPE_F32, 4 * m->n, -1, 1, 6);
    m->back = play_random_new(CUDA_TYPE_F32, 3 * m->n, -1, 1, 7);
    m->in_coefs = play_random_new(CUDA_TYPE_F32, 4 * m->k, -1, 1, 8);
    m->mask = stk_mem_new(m->rows * m->n / 8, 1);
    stk_rng rng = stk_rng_make(9, STK_RNG_TEST, 0, 0);
    for (size_t i = 0; i < m->rows * m->n / 8; i++) {
        m->mask[i] = (unsigned char)stk_rng_below(&rng, 256);
    }
    m->added_dx = stk_mem_new(rn, sizeof(float));
    m->dw = stk_mem_new(nk, sizeof(float));
    m->want_dx = stk_mem_new(rk, sizeof(float));
    m->want_added = stk_mem_new(rn, sizeof(float));
    m->want_dw = stk_mem_new(nk, sizeof(float));
    m->dx_size = stk_mem_new(rk, sizeof(double));
    m->dw_size = stk_mem_new(nk, sizeof(double));
    fill_coefs(m);
}

static void free_numbers(numbers *m) {
    void *all[] = {m->g,          m->x,       m->input,   m->weight,   m->dx,   m->added_dx,
                   m->dw,         m->coefs,   m->back,    m->in_coefs, m->mask, m->want_dx,
                   m->want_added, m->want_dw, m->dx_size, m->dw_size};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        stk_mem_free(all[i]);
    }
}

/* ---- what is expected ---- */

/* Decided by the same float32 that the kernel looks at, since a slope jumps. */
static float slope_at(stk_op act, float x) {
    double s = 1 / (1 + exp(-(double)x));
    switch (act) {
    case STK_OP_RELU:
        return x > 0 ? 1 : 0;
    case STK_OP_RELU6:
        return x > 0 && x < 6 ? 1 : 0;
    case STK_OP_SILU:
        return (float)(s * (1 + (double)x * (1 - s)));
    default:
        return 1;
    }
}

static float act_at(stk_op act, float x) {
    switch (act) {
    case STK_OP_RELU:
        return x > 0 ? x : 0;
    case STK_OP_SILU:
        return (float)((double)x / (1 + exp(-(double)x)));
    default:
        return x;
    }
}

/* dy of one row, and the gradient of what was added. */
static void expect_row(numbers *m, size_t row, float *dy) {
    float factor =
        m->c.drop > 0 ? stk_drop_factor(m->c.drop, SEED, STEP, DROP_NODE, row / (size_t)m->c.pixels)
                      : 1;
    for (size_t i = 0; i < m->n; i++) {
        size_t at = row * m->n + i;
        float before = fmaf(m->back[i], m->x[at], m->coefs[3 * m->n + i]);
        float slope =
            m->c.mask ? (float)(m->mask[at / 8] >> (i % 8) & 1) : slope_at(m->c.act, before);
        float sg = m->g[at] * slope;
        m->want_added[at] = sg;
        dy[i] = (float)((double)m->back[i] * (double)(sg * factor) +
                        (double)m->back[m->n + i] * ((double)m->x[at] - (double)m->coefs[i]) +
                        (double)m->back[2 * m->n + i]);
    }
    play_round(m->type, dy, m->n);
}

static void expect_products(numbers *m, size_t row, const float *dy, const float *input,
                            double *dw) {
    for (size_t k = 0; k < m->k; k++) {
        double sum = m->c.accumulate ? (double)m->dx[row * m->k + k] : 0;
        double size = fabs(sum);
        for (size_t n = 0; n < m->n; n++) {
            double product = (double)dy[n] * (double)m->weight[n * m->k + k];
            double share = (double)dy[n] * (double)input[k];
            sum += product;
            size += fabs(product);
            dw[n * m->k + k] += share;
            m->dw_size[n * m->k + k] += fabs(share);
        }
        m->want_dx[row * m->k + k] = (float)sum;
        m->dx_size[row * m->k + k] = size;
    }
}

static void expect_all(numbers *m) {
    float *dy = stk_mem_new(m->n, sizeof *dy);
    float *input = stk_mem_new(m->k, sizeof *input);
    double *dw = stk_mem_new(m->n * m->k, sizeof *dw);
    for (size_t row = 0; row < m->rows; row++) {
        expect_row(m, row, dy);
        for (size_t k = 0; k < m->k; k++) {
            float x = m->input[row * m->k + k];
            input[k] = m->c.in_act == NO_NORM
                           ? x
                           : act_at(m->c.in_act,
                                    fmaf(m->in_coefs[2 * m->k + k], x, m->in_coefs[3 * m->k + k]));
        }
        play_round(m->type, input, m->k);
        expect_products(m, row, dy, input, dw);
    }
    for (size_t i = 0; i < m->n * m->k; i++) {
        m->want_dw[i] = (float)dw[i];
    }
    stk_mem_free(dy);
    stk_mem_free(input);
    stk_mem_free(dw);
}

/*
 * Off by a rounding of the result; and of what was summed, since dy may be rounded the other way.
 */
static void check_sums(const char *what, const numbers *m, const float *got, const float *want,
                       const double *size, size_t count) {
    double epsilon = epsilon_of(m->type);
    for (size_t i = 0; i < count; i++) {
        double room = epsilon * (fabs((double)want[i]) + size[i] / 8) + 1e-6;
        if (!(fabs((double)got[i] - (double)want[i]) <= room)) {
            CHECK_FAIL("%s of %zu rows, %zu to %zu channels: element %zu is %.9g, expected %.9g "
                       "give or take %.3g",
                       what, m->rows, m->k, m->n, i, (double)got[i], (double)want[i], room);
            return;
        }
    }
    play_check_norm(what, got, want, count, epsilon);
}

/* ---- running ---- */

typedef struct places {
    cuda_ref g, x, mask, added_dx, input, weight, weight_grad, dx;
    cuda_norm norm, in_norm;
} places;

static cuda_ref room_for(cuda_program *p, size_t count) {
    return stk_cuda_buffer(p, count * cuda_type_bytes(p->type));
}

static cuda_norm place_norm(cuda_program *p, size_t channels) {
    return (cuda_norm){.coefs = stk_cuda_buffer(p, 4 * channels * sizeof(float)),
                       .back = stk_cuda_buffer(p, 3 * channels * sizeof(float))};
}

static places place_all(cuda_program *p, const numbers *m) {
    places at = {.g = room_for(p, m->rows * m->n),
                 .x = room_for(p, m->rows * m->n),
                 .mask = m->c.mask ? stk_cuda_buffer(p, m->rows * m->n / 8) : cuda_nothing(),
                 .added_dx = cuda_nothing(),
                 .input = room_for(p, m->rows * m->k),
                 .weight = room_for(p, m->n * m->k),
                 .weight_grad = room_for(p, m->n * m->k),
                 .dx = room_for(p, m->rows * m->k),
                 .norm = place_norm(p, m->n),
                 .in_norm = place_norm(p, m->k)};
    if (m->c.added_dx > 0) {
        at.added_dx = m->c.added_dx == 2 ? at.g : room_for(p, m->rows * m->n);
    }
    return at;
}

static int data_of(play_data *data, numbers *m, const places *at,
                   const cuda_step_constants *constants, float *dx) {
    int used = 0;
    size_t rn = m->rows * m->n;
    size_t rk = m->rows * m->k;
    data[used++] =
        play_in(cuda_fixed_at(CUDA_FIXED_CONSTANTS, 0), PLAY_BYTES, sizeof *constants, constants);
    data[used++] = (play_data){at->g, PLAY_T, rn, m->g, m->c.added_dx == 2 ? m->added_dx : NULL};
    data[used++] = play_in(at->x, PLAY_T, rn, m->x);
    data[used++] = play_in(at->input, PLAY_T, rk, m->input);
    data[used++] = play_in(at->weight, PLAY_T, m->n * m->k, m->weight);
    data[used++] = play_in(at->norm.coefs, PLAY_FLOAT, 4 * m->n, m->coefs);
    data[used++] = play_in(at->norm.back, PLAY_FLOAT, 3 * m->n, m->back);
    data[used++] = play_out(at->weight_grad, PLAY_T, m->n * m->k, m->dw);
    data[used++] = (play_data){at->dx, PLAY_T, rk, m->c.accumulate ? m->dx : NULL, dx};
    if (m->c.in_act != NO_NORM) {
        data[used++] = play_in(at->in_norm.coefs, PLAY_FLOAT, 4 * m->k, m->in_coefs);
    }
    if (m->c.mask) {
        data[used++] = play_in(at->mask, PLAY_BYTES, rn / 8, m->mask);
    }
    if (m->c.added_dx == 1) {
        data[used++] = play_out(at->added_dx, PLAY_T, rn, m->added_dx);
    }
    return used;
}

static bool run_numbers(play_device *play, numbers *m, float *dx) {
    cuda_program p;
    play_data data[16];
    cuda_step_constants constants = {.seed = SEED, .step = STEP};
    cuda_tail tail = {.act = m->c.act, .drop_node = DROP_NODE, .drop_rate = m->c.drop};
    stk_cuda_program_begin(&p, m->type, false, m->c.multiprocessors);
    p.major = play->major;
    places at = place_all(&p, m);
    cuda_layer_back layer = {.plane = {m->c.batch, m->c.pixels, m->c.filters},
                             .channels = m->c.channels,
                             .g = at.g,
                             .x = at.x,
                             .norm = &at.norm,
                             .tail = tail,
                             .mask = at.mask,
                             .added_dx = at.added_dx,
                             .input = at.input,
                             .in_norm = m->c.in_act != NO_NORM ? &at.in_norm : NULL,
                             .in_act = m->c.in_act,
                             .weight = at.weight,
                             .weight_grad = at.weight_grad,
                             .dx = at.dx,
                             .accumulate = m->c.accumulate};
    size_t bytes = stk_cuda_layer_back_scratch(&p, &layer);
    CHECK(bytes > 0);
    layer.partial = stk_cuda_buffer(&p, bytes);
    stk_cuda_layer_back(&p, &layer);
    int used = data_of(data, m, &at, &constants, dx);
    bool good = bytes > 0 && play_run(play, &p, data, used);
    stk_cuda_program_free(&p);
    return good;
}

static void play_case(play_device *play, cuda_type type, const void *given) {
    const layer_case *c = given;
    numbers m;
    fill_numbers(&m, type, c);
    float *dx = stk_mem_new(m.rows * m.k, sizeof *dx);
    float *again = stk_mem_new(m.rows * m.k, sizeof *again);
    float *dw = stk_mem_new(m.n * m.k, sizeof *dw);
    expect_all(&m);
    if (run_numbers(play, &m, dx)) {
        check_sums("dx", &m, dx, m.want_dx, m.dx_size, m.rows * m.k);
        check_sums("dW", &m, m.dw, m.want_dw, m.dw_size, m.n * m.k);
        if (c->added_dx > 0) {
            play_check_each("what was added", m.added_dx, m.want_added, m.rows * m.n, 1e-6,
                            epsilon_of(type));
        }
    }
    memcpy(dw, m.dw, m.n * m.k * sizeof *dw);
    if (!play->emulated && run_numbers(play, &m, again)) { /* the emulated one ran twice */
        CHECK(memcmp(dw, m.dw, m.n * m.k * sizeof *dw) == 0);
        CHECK(memcmp(dx, again, m.rows * m.k * sizeof *dx) == 0);
    }
    stk_mem_free(dx);
    stk_mem_free(again);
    stk_mem_free(dw);
    free_numbers(&m);
}

/* The layers that this was made for. */
static void layers_of_networks(void) {
    static const layer_case cases[] = {
        {5, 65, 256, 64, 2, STK_OP_RELU, true, 2, false, STK_OP_RELU, 0},
        {5, 65, 64, 256, 2, STK_OP_RELU, false, 0, true, NO_NORM, 0},
        {3, 99, 64, 64, 1, STK_OP_RELU, false, 0, true, NO_NORM, 0},
        {5, 65, 256, 64, 2, STK_OP_RELU, true, 0, true, NO_NORM, 0},
        {4, 77, 144, 24, 2, NONE, false, 0, true, NO_NORM, 0},
        {4, 77, 24, 48, 2, NONE, false, 0, false, NO_NORM, 0.25F},
        {4, 77, 32, 192, 2, NONE, false, 0, false, NO_NORM, 0.25F},
    };
    EACH_CASE(cases, play_case);
}

static void variants(void) {
    static const layer_case cases[] = {
        {2, 65, 32, 16, 2, STK_OP_RELU, true, 1, false, NO_NORM, 0.5F},
        {2, 65, 32, 16, 2, STK_OP_RELU6, false, 1, true, NONE, 0},
        {2, 65, 16, 32, 2, STK_OP_SILU, false, 0, false, STK_OP_SILU, 0},
        {2, 65, 16, 32, 2, STK_OP_RELU6, true, 2, true, STK_OP_RELU, 0},
        {2, 65, 40, 56, 2, STK_OP_SILU, false, 2, true, STK_OP_SILU, 0},
        {2, 65, 56, 40, 2, NONE, false, 1, false, STK_OP_RELU, 0.5F},
    };
    EACH_CASE(cases, play_case);
}

static void rows_and_blocks(void) {
    static const layer_case cases[] = {
        {1, 1, 48, 32, 4, STK_OP_RELU, true, 2, true, STK_OP_RELU, 0},
        {1, 63, 48, 32, 1, STK_OP_RELU, true, 2, true, STK_OP_RELU, 0},
        {1, 64, 48, 32, 1, STK_OP_RELU, true, 2, true, STK_OP_RELU, 0},
        {10, 100, 48, 32, 3, STK_OP_RELU, true, 2, true, STK_OP_RELU, 0},
        {1, 65, 8, 8, 7, STK_OP_RELU, true, 1, false, NO_NORM, 0},
        {1, 129, 512, 32, 2, NONE, false, 0, false, NO_NORM, 0},
        {1, 129, 32, 512, 2, NONE, false, 0, true, NO_NORM, 0},
    };
    EACH_CASE(cases, play_case);
}

/* What cannot be done in one pass is said to be so. */
static void limits(void) {
    cuda_program p;
    cuda_norm norm = {.epsilon = 0};
    cuda_layer_back layer = {.plane = {2, 9, 64},
                             .channels = 64,
                             .norm = &norm,
                             .tail = {.act = STK_OP_COUNT},
                             .mask = cuda_nothing(),
                             .added_dx = cuda_nothing()};
    stk_cuda_program_begin(&p, CUDA_TYPE_F16, false, 4);
    CHECK(stk_cuda_layer_back_scratch(&p, &layer) == 0);
    p.major = 9;
    CHECK(stk_cuda_layer_back_scratch(&p, &layer) == 64 * 64 * sizeof(float));
    layer.plane.pixels = 9 * 64;
    CHECK(stk_cuda_layer_back_scratch(&p, &layer) == (size_t)8 * 64 * 64 * sizeof(float));
    layer.channels = 60;
    CHECK(stk_cuda_layer_back_scratch(&p, &layer) == 0);
    layer.channels = 512;
    CHECK(stk_cuda_layer_back_scratch(&p, &layer) == 0);
    layer.channels = 256;
    CHECK(stk_cuda_layer_back_scratch(&p, &layer) == (size_t)4 * 64 * 256 * sizeof(float));
    p.major = 8;
    CHECK(stk_cuda_layer_back_scratch(&p, &layer) == 0);
    p.major = 9;
    layer.channels = 64;
    layer.tail = (cuda_tail){.act = STK_OP_SILU, .drop_rate = 0.5F};
    CHECK(stk_cuda_layer_back_scratch(&p, &layer) == 0);
    layer.tail.drop_rate = 0;
    CHECK(stk_cuda_layer_back_scratch(&p, &layer) > 0);
    stk_cuda_program_free(&p);
    stk_cuda_program_begin(&p, CUDA_TYPE_F32, false, 4);
    p.major = 9;
    CHECK(stk_cuda_layer_back_scratch(&p, &layer) == 0);
    stk_cuda_program_free(&p);
}

static const check_test tests[] = {
    TEST(layers_of_networks),
    TEST(variants),
    TEST(rows_and_blocks),
    TEST(limits),
};

CHECK_MAIN(tests)
