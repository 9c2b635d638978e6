/*
 * test_cuda_join.c - kernels/join.cu on a GPU, real or emulated, against float64: rows that are no
 * multiple of a tile, what is added as it is and through a norm, channels of ResNet and others.
 */
#include "backend/cuda/emit/emit.h"
#include "base/mem.h"
#include "cuda_play.h"

#define EPSILON 1e-3f

typedef struct join_case {
    int batch, pixels;
    int filters, channels;
    int multiprocessors;
    bool normalised; /* what is added has a norm of its own */
} join_case;

typedef struct numbers {
    join_case c;
    cuda_type type;
    size_t rows, n, k;
    float *x, *added, *weight;
    float *coefs, *added_coefs, *norm_weight, *norm_bias;
    float *y, *z, *mean, *var, *next_coefs, *narrow; /* what came out */
    unsigned char *mask;
} numbers;

static void fill_numbers(numbers *m, cuda_type type, const join_case *c) {
    *m = (numbers){.c = *c,
                   .type = type,
                   .rows = (size_t)c->batch * (size_t)c->pixels,
                   .n = (size_t)c->filters,
                   .k = (size_t)c->channels};
    size_t rk = m->rows * m->k;
    m->x = play_random_new(type, rk, -1, 2, 1);
    m->added = play_random_new(type, rk, -2, 1, 2);
    m->weight = play_random_new(type, m->n * m->k, -0.3, 0.3, 3);
    m->coefs = play_random_new(CUDA_TYPE_F32, 4 * m->k, -1, 1.5, 4);
    m->added_coefs = play_random_new(CUDA_TYPE_F32, 4 * m->k, -1, 1.5, 5);
    m->norm_weight = play_random_new(CUDA_TYPE_F32, m->n, -1, 1, 6);
    m->norm_bias = play_random_new(CUDA_TYPE_F32, m->n, -1, 1, 7);
    m->mean = play_random_new(CUDA_TYPE_F32, m->n, -1, 1, 8);
    m->var = play_random_new(CUDA_TYPE_F32, m->n, 0, 1, 9);
    m->y = stk_mem_new(rk, sizeof(float));
    m->z = stk_mem_new(m->rows * m->n, sizeof(float));
    m->next_coefs = stk_mem_new(4 * m->n, sizeof(float));
    m->narrow = stk_mem_new(2 * m->n, sizeof(float));
    m->mask = stk_mem_new(rk / 8, 1);
}

static void free_numbers(numbers *m) {
    void *all[] = {m->x,           m->added,      m->weight, m->coefs, m->added_coefs,
                   m->norm_weight, m->norm_bias,  m->mean,   m->var,   m->y,
                   m->z,           m->next_coefs, m->narrow, m->mask};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        stk_mem_free(all[i]);
    }
}

/* ---- what is expected ---- */

static double norm_of(const float *coefs, size_t channels, size_t c, float x) {
    return (double)coefs[2 * channels + c] * (double)x + (double)coefs[3 * channels + c];
}

static void check_y(const numbers *m) {
    double epsilon = play_epsilon(m->type);
    for (size_t i = 0; i < m->rows * m->k; i++) {
        size_t c = i % m->k;
        double other =
            m->c.normalised ? norm_of(m->added_coefs, m->k, c, m->added[i]) : (double)m->added[i];
        double sum = norm_of(m->coefs, m->k, c, m->x[i]) + other;
        double want = sum > 0 ? sum : 0;
        bool passes = m->mask[i / 8] >> (i % 8) & 1;
        if (!(fabs((double)m->y[i] - want) <= epsilon * want + 1e-6) ||
            (fabs(sum) > 1e-5 && passes != (sum > 0))) {
            CHECK_FAIL("%zu rows, %zu to %zu channels: row %zu, channel %zu is %.9g with bit %d, "
                       "expected %.9g",
                       m->rows, m->k, m->n, i / m->k, c, (double)m->y[i], passes, want);
            return;
        }
    }
}

/* From y as it is stored. */
static void check_z(const numbers *m) {
    double epsilon = play_epsilon(m->type);
    for (size_t i = 0; i < m->rows * m->n; i++) {
        double sum = 0;
        double size = 0;
        for (size_t c = 0; c < m->k; c++) {
            double product =
                (double)m->y[i / m->n * m->k + c] * (double)m->weight[i % m->n * m->k + c];
            sum += product;
            size += fabs(product);
        }
        if (!(fabs((double)m->z[i] - sum) <= epsilon * fabs(sum) + 1e-5 * size)) {
            CHECK_FAIL("%zu rows, %zu to %zu channels: row %zu, filter %zu is %.9g, expected %.9g",
                       m->rows, m->k, m->n, i / m->n, i % m->n, (double)m->z[i], sum);
            return;
        }
    }
}

/* From z as it is stored; running statistics began as their seeds say. */
static void check_statistics(const numbers *m) {
    float *mean_before = play_random_new(CUDA_TYPE_F32, m->n, -1, 1, 8);
    float *var_before = play_random_new(CUDA_TYPE_F32, m->n, 0, 1, 9);
    double rows = (double)m->rows;
    for (size_t c = 0; c < m->n; c++) {
        double sum = 0;
        double squares = 0;
        for (size_t row = 0; row < m->rows; row++) {
            sum += (double)m->z[row * m->n + c];
        }
        double mean = sum / rows;
        for (size_t row = 0; row < m->rows; row++) {
            double apart = (double)m->z[row * m->n + c] - mean;
            squares += apart * apart;
        }
        double scale = (double)m->norm_weight[c] / sqrt(squares / rows + (double)EPSILON);
        double shift = (double)m->norm_bias[c] - mean * scale;
        double var = squares / rows; /* sums are about zero: it is known as far as mean^2 is */
        double doubt = 1e-5 + 0x1.0p-22 * (var + mean * mean) / (var + (double)EPSILON);
        double room = 1e-5 + doubt * (fabs(mean) + fabs(scale) * (1 + fabs(mean)));
        CHECK_NEAR(m->next_coefs[c], mean, room);
        CHECK_NEAR(m->next_coefs[2 * m->n + c], scale, room);
        CHECK_NEAR(m->next_coefs[3 * m->n + c], shift, room);
        CHECK_NEAR(m->narrow[c], scale, room + play_epsilon(m->type) * fabs(scale));
        CHECK_NEAR(m->mean[c], 0.9 * (double)mean_before[c] + 0.1 * mean, room);
        double unbiased = rows > 1 ? squares / (rows - 1) : squares;
        CHECK_NEAR(m->var[c], 0.9 * (double)var_before[c] + 0.1 * unbiased,
                   1e-4 * (1 + unbiased + mean * mean));
    }
    stk_mem_free(mean_before);
    stk_mem_free(var_before);
}

/* ---- running ---- */

static bool run_numbers(play_device *play, numbers *m) {
    cuda_program p;
    size_t half = cuda_type_bytes(m->type);
    size_t vector = m->n * sizeof(float);
    size_t rk = m->rows * m->k;
    stk_cuda_program_begin(&p, m->type, false, m->c.multiprocessors);
    p.major = play->major;
    cuda_norm norm = {.coefs = stk_cuda_buffer(&p, 4 * m->k * sizeof(float))};
    cuda_norm other = {.coefs = stk_cuda_buffer(&p, 4 * m->k * sizeof(float))};
    cuda_norm next = {.weight = stk_cuda_buffer(&p, vector),
                      .bias = stk_cuda_buffer(&p, vector),
                      .running_mean = stk_cuda_buffer(&p, vector),
                      .running_var = stk_cuda_buffer(&p, vector),
                      .coefs = stk_cuda_buffer(&p, 5 * vector),
                      .narrow = true,
                      .epsilon = EPSILON};
    cuda_added added = {.x = stk_cuda_buffer(&p, rk * half),
                        .norm = m->c.normalised ? &other : NULL,
                        .dx = cuda_nothing()};
    cuda_join join = {.plane = {m->c.batch, m->c.pixels, m->c.channels},
                      .x = stk_cuda_buffer(&p, rk * half),
                      .norm = &norm,
                      .added = &added,
                      .y = stk_cuda_buffer(&p, rk * half),
                      .mask = stk_cuda_buffer(&p, rk / 8),
                      .filters = m->c.filters,
                      .weight = stk_cuda_buffer(&p, m->n * m->k * half),
                      .z = stk_cuda_buffer(&p, m->rows * m->n * half),
                      .next = &next};
    size_t bytes = stk_cuda_join_scratch(&p, &join);
    CHECK(bytes > 0);
    join.partial = stk_cuda_buffer(&p, bytes);
    stk_cuda_join(&p, &join);
    stk_cuda_join_finalise(&p, &join);
    play_data data[] = {
        play_in(join.x, PLAY_T, rk, m->x),
        play_in(added.x, PLAY_T, rk, m->added),
        play_in(join.weight, PLAY_T, m->n * m->k, m->weight),
        play_in(norm.coefs, PLAY_FLOAT, 4 * m->k, m->coefs),
        play_in(other.coefs, PLAY_FLOAT, 4 * m->k, m->added_coefs),
        play_in(next.weight, PLAY_FLOAT, m->n, m->norm_weight),
        play_in(next.bias, PLAY_FLOAT, m->n, m->norm_bias),
        play_both(next.running_mean, PLAY_FLOAT, m->n, m->mean),
        play_both(next.running_var, PLAY_FLOAT, m->n, m->var),
        play_out(join.y, PLAY_T, rk, m->y),
        play_out(join.mask, PLAY_BYTES, rk / 8, m->mask),
        play_out(join.z, PLAY_T, m->rows * m->n, m->z),
        play_out(next.coefs, PLAY_FLOAT, 4 * m->n, m->next_coefs),
        play_out(cuda_norm_narrow(&next, m->c.filters), PLAY_T, 2 * m->n, m->narrow),
    };
    bool good = bytes > 0 && play_run(play, &p, data, sizeof data / sizeof *data);
    stk_cuda_program_free(&p);
    return good;
}

static void play_case(play_device *play, cuda_type type, const void *given) {
    const join_case *c = given;
    numbers m;
    numbers again;
    fill_numbers(&m, type, c);
    if (run_numbers(play, &m)) {
        check_y(&m);
        check_z(&m);
        check_statistics(&m);
    }
    fill_numbers(&again, type, c);
    if (!play->emulated && run_numbers(play, &again)) { /* the emulated one ran twice */
        CHECK(memcmp(m.y, again.y, m.rows * m.k * sizeof *m.y) == 0);
        CHECK(memcmp(m.z, again.z, m.rows * m.n * sizeof *m.z) == 0);
        CHECK(memcmp(m.next_coefs, again.next_coefs, 4 * m.n * sizeof *m.next_coefs) == 0);
    }
    free_numbers(&again);
    free_numbers(&m);
}

/* The layers that this was made for. */
static void layers_of_networks(void) {
    static const join_case cases[] = {
        {5, 26, 64, 256, 1, false},  {5, 26, 64, 256, 1, true},  {4, 49, 128, 256, 1, true},
        {4, 49, 128, 512, 1, false}, {2, 49, 128, 512, 2, true},
    };
    EACH_CASE(cases, play_case);
}

static void rows_and_channels(void) {
    static const join_case cases[] = {
        {1, 1, 64, 256, 3, true},    {1, 63, 64, 64, 1, false},  {10, 100, 64, 128, 3, true},
        {1, 16, 128, 128, 2, false}, {1, 65, 64, 256, 1, false}, {3, 33, 192, 64, 2, true},
    };
    EACH_CASE(cases, play_case);
}

/* What cannot be done in one pass is said to be so. */
static void limits(void) {
    static const struct {
        int filters, channels;
        bool possible;
    } cases[] = {{64, 256, true},   {128, 512, true},  {72, 256, false},  {256, 1024, false},
                 {256, 512, false}, {64, 192, false},  {32, 256, false},  {64, 200, false},
                 {512, 64, true},   {2048, 64, false}, {512, 2048, false}};
    cuda_program p;
    cuda_join join = {.plane = {2, 100, 256}, .filters = 64};
    stk_cuda_program_begin(&p, CUDA_TYPE_F16, false, 4);
    CHECK(stk_cuda_join_scratch(&p, &join) == 0); /* nothing is known of the GPU */
    p.major = 9;
    CHECK(stk_cuda_join_scratch(&p, &join) == (size_t)8 * 2 * 64 * sizeof(float));
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        join.filters = cases[i].filters;
        join.plane.channels = cases[i].channels;
        if ((stk_cuda_join_scratch(&p, &join) > 0) != cases[i].possible) {
            CHECK_FAIL("%d to %d channels", cases[i].channels, cases[i].filters);
        }
    }
    stk_cuda_program_free(&p);
    join = (cuda_join){.plane = {2, 100, 256}, .filters = 64};
    stk_cuda_program_begin(&p, CUDA_TYPE_F32, false, 4);
    p.major = 9;
    CHECK(stk_cuda_join_scratch(&p, &join) == 0);
    stk_cuda_program_free(&p);
}

static const check_test tests[] = {
    TEST(layers_of_networks),
    TEST(rows_and_channels),
    TEST(limits),
};

CHECK_MAIN(tests)
