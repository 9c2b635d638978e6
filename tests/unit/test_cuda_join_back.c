/*
 * test_cuda_join_back.c - kernels/join_back.cu on a GPU, real or emulated, against float64: rows
 * that are no multiple of a tile, channels of one block and of several, gradients in place and
 * apart.
 */
#include "backend/cuda/emit/emit.h"
#include "base/mem.h"
#include "cuda_play.h"

typedef struct join_case {
    int batch, pixels;
    int filters, channels;
    int multiprocessors;
    bool apart; /* dz does not lie on the gradient that was there */
    bool other; /* a second norm was added */
} join_case;

typedef struct numbers {
    join_case c;
    cuda_type type;
    size_t rows, n, k;
    float *dy, *weight, *old;
    unsigned char *mask;
    float *dz; /* what came out */
    struct one_norm {
        float *x, *coefs, *weight;
        float *weight_grad, *bias_grad, *back; /* what came out */
    } norms[2];
} numbers;

static void fill_numbers(numbers *m, cuda_type type, const join_case *c) {
    *m = (numbers){.c = *c,
                   .type = type,
                   .rows = (size_t)c->batch * (size_t)c->pixels,
                   .n = (size_t)c->filters,
                   .k = (size_t)c->channels};
    size_t rk = m->rows * m->k;
    m->dy = play_random_new(type, m->rows * m->n, -1, 1, 1);
    m->weight = play_random_new(type, m->n * m->k, -0.3, 0.3, 2);
    m->old = play_random_new(type, rk, -2, 2, 3);
    for (size_t i = 0; i < 2; i++) {
        m->norms[i] =
            (struct one_norm){.x = play_random_new(type, rk, -1, 3, 10 + i),
                              .coefs = play_random_new(CUDA_TYPE_F32, 4 * m->k, 0.5, 1.5, 20 + i),
                              .weight = play_random_new(CUDA_TYPE_F32, m->k, -1, 1, 30 + i),
                              .weight_grad = stk_mem_new(m->k, sizeof(float)),
                              .bias_grad = stk_mem_new(m->k, sizeof(float)),
                              .back = stk_mem_new(3 * m->k, sizeof(float))};
    }
    m->mask = stk_mem_new(rk / 8, 1);
    stk_rng rng = stk_rng_make(7, STK_RNG_TEST, 0, 0);
    for (size_t i = 0; i < rk / 8; i++) {
        m->mask[i] = (unsigned char)stk_rng_below(&rng, 256);
    }
    m->dz = stk_mem_new(rk, sizeof(float));
}

static void free_numbers(numbers *m) {
    void *all[] = {m->dy, m->weight, m->old, m->mask, m->dz};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        stk_mem_free(all[i]);
    }
    for (int i = 0; i < 2; i++) {
        struct one_norm *norm = &m->norms[i];
        void *some[] = {norm->x,           norm->coefs,     norm->weight,
                        norm->weight_grad, norm->bias_grad, norm->back};
        for (size_t k = 0; k < sizeof some / sizeof *some; k++) {
            stk_mem_free(some[k]);
        }
    }
}

/* ---- what is expected ---- */

/* One rounding of the result, and some of float32 sums of what it consists of. */
static void check_dz(const numbers *m) {
    double epsilon = play_epsilon(m->type);
    for (size_t i = 0; i < m->rows * m->k; i++) {
        size_t row = i / m->k;
        size_t k = i % m->k;
        bool passes = m->mask[i / 8] >> (i % 8) & 1;
        double sum = (double)m->old[i];
        double size = fabs(sum);
        for (size_t n = 0; n < m->n; n++) {
            double product = (double)m->dy[row * m->n + n] * (double)m->weight[n * m->k + k];
            sum += product;
            size += fabs(product);
        }
        double want = passes ? sum : 0;
        double room = passes ? epsilon * fabs(sum) + 1e-5 * size : 0;
        if (!(fabs((double)m->dz[i] - want) <= room)) {
            CHECK_FAIL("%zu rows, %zu from %zu channels: row %zu, channel %zu is %.9g, expected "
                       "%.9g",
                       m->rows, m->k, m->n, row, k, (double)m->dz[i], want);
            return;
        }
    }
}

/* From the numbers that are stored, so that nothing but the sums' own rounding is let pass. */
static void check_sums(const numbers *m, const struct one_norm *norm) {
    double rows = (double)m->rows;
    for (size_t k = 0; k < m->k; k++) {
        double invstd = (double)norm->coefs[m->k + k];
        double sum = 0;
        double product = 0;
        double size = 0;
        for (size_t row = 0; row < m->rows; row++) {
            double dz = (double)m->dz[row * m->k + k];
            double x = (double)norm->x[row * m->k + k] - (double)norm->coefs[k];
            sum += dz;
            product += dz * x * invstd;
            size += fabs(dz) + fabs(dz * x * invstd);
        }
        double a = (double)norm->weight[k] * invstd;
        double room = 1e-6 * size + 1e-7;
        CHECK_NEAR(norm->bias_grad[k], sum, room);
        CHECK_NEAR(norm->weight_grad[k], product, room);
        CHECK_NEAR(norm->back[k], a, 1e-6);
        CHECK_NEAR(norm->back[m->k + k], -a * invstd * product / rows, room * 3 / rows + 1e-6);
        CHECK_NEAR(norm->back[2 * m->k + k], -a * sum / rows, room * 3 / rows + 1e-6);
    }
}

/* ---- running ---- */

static cuda_norm place_norm(cuda_program *p, size_t channels) {
    size_t vector = channels * sizeof(float);
    return (cuda_norm){.weight = stk_cuda_buffer(p, vector),
                       .weight_grad = stk_cuda_buffer(p, vector),
                       .bias_grad = stk_cuda_buffer(p, vector),
                       .coefs = stk_cuda_buffer(p, 4 * vector),
                       .back = stk_cuda_buffer(p, 3 * vector)};
}

/* Appends what a norm reads and writes; returns how much that is. */
static int data_of(play_data *data, const numbers *m, const struct one_norm *norm,
                   const cuda_norm *at, cuda_ref x) {
    play_data all[] = {
        play_in(x, PLAY_T, m->rows * m->k, norm->x),
        play_in(at->weight, PLAY_FLOAT, m->k, norm->weight),
        play_in(at->coefs, PLAY_FLOAT, 4 * m->k, norm->coefs),
        play_out(at->weight_grad, PLAY_FLOAT, m->k, norm->weight_grad),
        play_out(at->bias_grad, PLAY_FLOAT, m->k, norm->bias_grad),
        play_out(at->back, PLAY_FLOAT, 3 * m->k, norm->back),
    };
    memcpy(data, all, sizeof all);
    return (int)(sizeof all / sizeof *all);
}

static bool run_numbers(play_device *play, numbers *m) {
    cuda_program p;
    size_t half = cuda_type_bytes(m->type);
    size_t rk = m->rows * m->k;
    stk_cuda_program_begin(&p, m->type, false, m->c.multiprocessors);
    p.major = play->major;
    cuda_norm norm = place_norm(&p, m->k);
    cuda_norm other = place_norm(&p, m->k);
    cuda_join_back join = {.plane = {m->c.batch, m->c.pixels, m->c.channels},
                           .filters = m->c.filters,
                           .dy = stk_cuda_buffer(&p, m->rows * m->n * half),
                           .weight = stk_cuda_buffer(&p, m->n * m->k * half),
                           .old = stk_cuda_buffer(&p, rk * half),
                           .mask = stk_cuda_buffer(&p, rk / 8),
                           .x = stk_cuda_buffer(&p, rk * half),
                           .norm = &norm,
                           .other_x = stk_cuda_buffer(&p, rk * half),
                           .other_norm = m->c.other ? &other : NULL};
    join.dz = m->c.apart ? stk_cuda_buffer(&p, rk * half) : join.old;
    size_t bytes = stk_cuda_join_back_scratch(&p, &join);
    CHECK(bytes > 0);
    join.partial = stk_cuda_buffer(&p, bytes);
    stk_cuda_join_back(&p, &join);
    stk_cuda_join_back_finalise(&p, &join);
    play_data data[20] = {play_in(join.dy, PLAY_T, m->rows * m->n, m->dy),
                          play_in(join.weight, PLAY_T, m->n * m->k, m->weight),
                          {join.old, PLAY_T, rk, m->old, m->c.apart ? NULL : m->dz},
                          play_in(join.mask, PLAY_BYTES, rk / 8, m->mask)};
    int used = 4;
    used += data_of(data + used, m, &m->norms[0], &norm, join.x);
    if (m->c.other) {
        used += data_of(data + used, m, &m->norms[1], &other, join.other_x);
    }
    if (m->c.apart) {
        data[used++] = play_out(join.dz, PLAY_T, rk, m->dz);
    }
    bool good = bytes > 0 && play_run(play, &p, data, used);
    stk_cuda_program_free(&p);
    return good;
}

static void check_same(const numbers *m, const numbers *again) {
    CHECK(memcmp(m->dz, again->dz, m->rows * m->k * sizeof *m->dz) == 0);
    for (int i = 0; i < 1 + m->c.other; i++) {
        const struct one_norm *a = &m->norms[i];
        const struct one_norm *b = &again->norms[i];
        CHECK(memcmp(a->weight_grad, b->weight_grad, m->k * sizeof *a->weight_grad) == 0);
        CHECK(memcmp(a->back, b->back, 3 * m->k * sizeof *a->back) == 0);
    }
}

static void play_case(play_device *play, cuda_type type, const void *given) {
    const join_case *c = given;
    numbers m;
    numbers again;
    fill_numbers(&m, type, c);
    if (run_numbers(play, &m)) {
        check_dz(&m);
        for (int i = 0; i < 1 + c->other; i++) {
            check_sums(&m, &m.norms[i]);
        }
    }
    fill_numbers(&again, type, c);
    if (!play->emulated && run_numbers(play, &again)) { /* the emulated one ran twice */
        check_same(&m, &again);
    }
    free_numbers(&again);
    free_numbers(&m);
}

/* The layers that this was made for. */
static void layers_of_networks(void) {
    static const join_case cases[] = {
        {5, 26, 64, 256, 1, false, false},  {5, 26, 128, 512, 2, false, false},
        {4, 49, 128, 256, 2, false, false}, {4, 49, 256, 512, 4, false, false},
        {5, 26, 64, 256, 1, false, true},   {5, 26, 128, 512, 2, false, true},
    };
    EACH_CASE(cases, play_case);
}

static void rows_and_channels(void) {
    static const join_case cases[] = {
        {1, 1, 64, 256, 3, true, false},      {1, 63, 32, 128, 1, false, true},
        {10, 100, 16, 128, 3, true, false},   {1, 16, 48, 384, 2, false, false},
        {1, 17, 112, 128, 1, true, true},     {10, 100, 64, 128, 2, false, false},
        {1, 200, 128, 1024, 1, false, false}, {1, 130, 80, 640, 4, true, false},
        {2, 99, 240, 128, 1, false, false},   {1, 33, 256, 256, 2, false, true},
    };
    EACH_CASE(cases, play_case);
}

/* What cannot be done in one pass is said to be so. */
static void limits(void) {
    cuda_program p;
    cuda_join_back join = {.plane = {2, 100, 256}, .filters = 64};
    stk_cuda_program_begin(&p, CUDA_TYPE_F16, false, 4);
    CHECK(stk_cuda_join_back_scratch(&p, &join) == 0);
    p.major = 9;
    CHECK(stk_cuda_join_back_scratch(&p, &join) == (size_t)7 * 2 * 256 * sizeof(float));
    join.plane.pixels = 40;
    CHECK(stk_cuda_join_back_scratch(&p, &join) == (size_t)3 * 2 * 256 * sizeof(float));
    join.plane.channels = 192;
    CHECK(stk_cuda_join_back_scratch(&p, &join) == 0);
    join.plane.channels = 256;
    join.filters = 72;
    CHECK(stk_cuda_join_back_scratch(&p, &join) == 0);
    join.filters = 272;
    CHECK(stk_cuda_join_back_scratch(&p, &join) == 0);
    join.filters = 128;
    CHECK(stk_cuda_join_back_scratch(&p, &join) > 0);
    stk_cuda_program_free(&p);
    stk_cuda_program_begin(&p, CUDA_TYPE_F32, false, 4);
    p.major = 9;
    CHECK(stk_cuda_join_back_scratch(&p, &join) == 0);
    stk_cuda_program_free(&p);
}

static const check_test tests[] = {
    TEST(layers_of_networks),
    TEST(rows_and_channels),
    TEST(limits),
};

CHECK_MAIN(tests)
