/* test_cuda_pooling.c - pooling on the GPU against plain loops. */
#include "cuda_cases.h"

#define MOST 8000
#define BATCH 2

/* Kernel, stride, pad; shapes with rows that no window covers, and windows that reach outside. */
static const cuda_pool pools[] = {
    {BATCH, {9, 11, 16}, {5, 6, 16}, 3, 2, 1}, {BATCH, {8, 6, 8}, {4, 3, 8}, 3, 2, 0},
    {BATCH, {7, 5, 5}, {3, 2, 5}, 2, 2, 0},    {BATCH, {5, 6, 8}, {5, 6, 8}, 3, 1, 1},
    {BATCH, {9, 9, 3}, {4, 4, 3}, 5, 2, 1},    {BATCH, {4, 4, 24}, {2, 2, 24}, 1, 2, 0}};
#define POOLS (sizeof pools / sizeof *pools)

static size_t place(stk_shape s, int n, int y, int x, int c) {
    return (((size_t)n * (size_t)s.height + (size_t)y) * (size_t)s.width + (size_t)x) *
               (size_t)s.channels +
           (size_t)c;
}

/* The first of the largest wins; `won` is where it lies in x. */
static void reference_max_pool(const cuda_pool *pool, const float *x, float *y, uint8_t *where,
                               size_t *won) {
    size_t at = 0;
    for (int n = 0; n < pool->batch; n++)
        for (int oy = 0; oy < pool->out.height; oy++)
            for (int ox = 0; ox < pool->out.width; ox++)
                for (int c = 0; c < pool->out.channels; c++, at++) {
                    bool first = true;
                    for (int k = 0; k < pool->kernel * pool->kernel; k++) {
                        int iy = oy * pool->stride - pool->pad + k / pool->kernel;
                        int ix = ox * pool->stride - pool->pad + k % pool->kernel;
                        if (iy < 0 || iy >= pool->in.height || ix < 0 || ix >= pool->in.width) {
                            continue;
                        }
                        size_t from = place(pool->in, n, iy, ix, c);
                        if (first || x[from] > y[at]) {
                            y[at] = x[from];
                            where[at] = (uint8_t)k;
                            won[at] = from;
                        }
                        first = false;
                    }
                }
}

/* Whole numbers, so that many are equal and sums are exact. */
static void whole(float *x, size_t count, uint64_t seed) {
    play_random(CUDA_TYPE_F32, x, count, -4, 4, seed);
    for (size_t i = 0; i < count; i++) {
        x[i] = rintf(x[i]);
    }
}

static void check_max_pool(play_device *play, cuda_type type, const cuda_pool *pool, bool norm,
                           bool add) {
    static float x[MOST], seen[MOST], y[MOST], dy[MOST], dx[MOST], wanted[MOST], wanted_dx[MOST];
    static float coefs[4 * 64];
    static uint8_t where[MOST], wanted_where[MOST];
    static size_t won[MOST];
    size_t ins = BATCH * stk_shape_count(pool->in);
    size_t outs = BATCH * stk_shape_count(pool->out);
    size_t channels = (size_t)pool->in.channels;
    whole(x, ins, 1);
    whole(dy, outs, 2);
    whole(dx, ins, 3);
    whole(coefs, 4 * channels, 4);
    for (size_t i = 0; i < ins; i++) {
        float n = coefs[2 * channels + i % channels] * x[i] + coefs[3 * channels + i % channels];
        seen[i] = !norm ? x[i] : n > 0 ? n : 0;
    }
    reference_max_pool(pool, seen, wanted, wanted_where, won);
    for (size_t i = 0; i < ins; i++) {
        wanted_dx[i] = add ? dx[i] : 0;
    }
    for (size_t i = 0; i < outs; i++) {
        wanted_dx[won[i]] += dy[i];
    }
    cuda_program p = case_begin(type);
    cuda_norm of = {.coefs = case_floats(&p, 4 * channels)};
    cuda_ref from = case_values(&p, ins);
    cuda_ref to = case_values(&p, outs);
    cuda_ref again = case_values(&p, outs);
    cuda_ref places = stk_cuda_buffer(&p, outs);
    cuda_ref back = case_values(&p, outs);
    cuda_ref grad = case_values(&p, ins);
    stk_cuda_max_pool(&p, pool, from, norm ? &of : NULL, STK_OP_RELU, to, places);
    stk_cuda_max_pool(&p, pool, from, norm ? &of : NULL, STK_OP_RELU, again, cuda_nothing());
    stk_cuda_max_pool_back(&p, pool, places, back, grad, add);
    static float y_again[MOST];
    play_data data[] = {play_in(of.coefs, PLAY_FLOAT, 4 * channels, coefs),
                        play_in(from, PLAY_T, ins, x),
                        play_out(to, PLAY_T, outs, y),
                        play_out(again, PLAY_T, outs, y_again),
                        play_out(places, PLAY_BYTES, outs, where),
                        play_in(back, PLAY_T, outs, dy),
                        {grad, PLAY_T, ins, add ? dx : NULL, dx}};
    CASE_RUN(play, &p, data);
    play_check_each("max pool", y, wanted, outs, 0, 0);
    play_check_each("max pool in inference", y_again, wanted, outs, 0, 0);
    CHECK_INT(memcmp(where, wanted_where, outs), 0);
    play_check_each("its gradient", dx, wanted_dx, ins, 0, 0);
}

static void max_pools(void) {
    play_device play;
    if (!play_open(&play)) {
        return;
    }
    EACH_TYPE(type) {
        for (size_t k = 0; k < POOLS; k++) {
            if (play_takes(k + 1, type)) {
                check_max_pool(&play, type, &pools[k], k % 3 == 0, k % 2 == 0);
            }
        }
        if (play_takes(2, type)) {
            check_max_pool(&play, type, &pools[0], false, false);
        }
        if (play_takes(1, type)) {
            check_max_pool(&play, type, &pools[2], true, true);
        }
    }
    play_close(&play);
}

/* What is no number wins where it comes first and never later, as on the CPU. */
static void max_pool_of_no_number(void) {
    play_device play;
    if (!play_open(&play)) {
        return;
    }
    const cuda_pool pool = {1, {2, 4, 1}, {1, 2, 1}, 2, 2, 0};
    const float x[] = {NAN, 1, 1, NAN, 2, 3, 2, 3};
    float y[2];
    const float wanted[] = {NAN, 3};
    cuda_program p = case_begin(CUDA_TYPE_F16);
    cuda_ref from = case_values(&p, 8);
    cuda_ref to = case_values(&p, 2);
    stk_cuda_max_pool(&p, &pool, from, NULL, STK_OP_COUNT, to, cuda_nothing());
    play_data data[] = {play_in(from, PLAY_T, 8, x), play_out(to, PLAY_T, 2, y)};
    CASE_RUN(&play, &p, data);
    play_check_each("max pool", y, wanted, 2, 0, 0);
    play_close(&play);
}

/* The norm in front of a maximum: scale = weight * invstd, as its own forward pass leaves it. */
static void check_pool_norm(play_device *play, cuda_type type, const cuda_pool *pool, stk_op act) {
    static float x[MOST], seen[MOST], y[MOST], dy[MOST], dx[MOST], wanted[MOST];
    static float coefs[4 * 64], weight[64], grads[2][64], wanted_grads[2][64];
    static double dn[MOST];
    static uint8_t where[MOST];
    static size_t won[MOST];
    size_t ins = BATCH * stk_shape_count(pool->in);
    size_t outs = BATCH * stk_shape_count(pool->out);
    size_t channels = (size_t)pool->in.channels;
    double rows = (double)(ins / channels);
    whole(x, ins, 1);
    whole(dy, outs, 2);
    whole(coefs, 4 * channels, 4);
    for (size_t c = 0; c < channels; c++) {
        coefs[c] = 0.25f * coefs[c];
        coefs[channels + c] = 0.5f;
        weight[c] = 2 * coefs[2 * channels + c];
    }
    for (size_t i = 0; i < ins; i++) {
        float n = coefs[2 * channels + i % channels] * x[i] + coefs[3 * channels + i % channels];
        seen[i] = act == STK_OP_COUNT || n > 0 ? n : 0;
        dn[i] = 0;
    }
    reference_max_pool(pool, seen, y, where, won);
    for (size_t i = 0; i < outs; i++) {
        dn[won[i]] += act == STK_OP_COUNT || seen[won[i]] > 0 ? dy[i] : 0;
    }
    for (size_t c = 0; c < channels; c++) {
        double sum = 0, product = 0, invstd = coefs[channels + c], a = weight[c] * invstd;
        for (size_t i = c; i < ins; i += channels) {
            sum += dn[i];
            product += dn[i] * (x[i] - coefs[c]) * invstd;
        }
        wanted_grads[0][c] = (float)product;
        wanted_grads[1][c] = (float)sum;
        for (size_t i = c; i < ins; i += channels) {
            wanted[i] =
                (float)(a * (dn[i] - sum / rows - invstd * product / rows * (x[i] - coefs[c])));
        }
    }
    cuda_program p = case_begin(type);
    cuda_norm norm = {.weight = case_floats(&p, channels),
                      .weight_grad = case_floats(&p, channels),
                      .bias_grad = case_floats(&p, channels),
                      .coefs = case_floats(&p, 4 * channels),
                      .back = case_floats(&p, 3 * channels)};
    cuda_ref places = stk_cuda_buffer(&p, outs);
    cuda_ref from = case_values(&p, ins);
    cuda_ref back = case_values(&p, outs);
    cuda_ref grad = case_values(&p, ins);
    stk_cuda_pool_norm_back(&p, pool, places, back, from, &norm, act, grad);
    play_data data[] = {play_in(norm.weight, PLAY_FLOAT, channels, weight),
                        play_in(norm.coefs, PLAY_FLOAT, 4 * channels, coefs),
                        play_in(from, PLAY_T, ins, x),
                        play_in(places, PLAY_BYTES, outs, where),
                        play_in(back, PLAY_T, outs, dy),
                        play_out(norm.weight_grad, PLAY_FLOAT, channels, grads[0]),
                        play_out(norm.bias_grad, PLAY_FLOAT, channels, grads[1]),
                        play_out(grad, PLAY_T, ins, dx)};
    CASE_RUN(play, &p, data);
    play_check_each("gradient of the weight", grads[0], wanted_grads[0], channels, 1e-4, 1e-6);
    play_check_each("gradient of the bias", grads[1], wanted_grads[1], channels, 0, 0);
    play_check_each("gradient of the input", dx, wanted, ins, 1e-4, case_room(type));
}

static void norms_in_front_of_maxima(void) {
    play_device play;
    if (!play_open(&play)) {
        return;
    }
    EACH_TYPE(type) {
        for (size_t k = 0; k < POOLS; k++) {
            if (play_takes(k, type)) {
                check_pool_norm(&play, type, &pools[k], k % 3 == 2 ? STK_OP_COUNT : STK_OP_RELU);
            }
        }
    }
    play_close(&play);
}

static void check_avg_pool(play_device *play, cuda_type type, cuda_plane plane, bool add) {
    static float x[MOST], y[MOST], dy[MOST], dx[MOST], wanted[MOST], wanted_dx[MOST];
    size_t channels = (size_t)plane.channels;
    size_t sample = (size_t)plane.pixels * channels;
    size_t ins = (size_t)plane.batch * sample;
    size_t outs = (size_t)plane.batch * channels;
    play_random(type, x, ins, -2, 2, 5);
    play_random(type, dy, outs, -2, 2, 6);
    play_random(type, dx, ins, -2, 2, 7);
    for (size_t i = 0; i < outs; i++) {
        double sum = 0;
        for (size_t k = 0; k < (size_t)plane.pixels; k++) {
            sum += x[i / channels * sample + k * channels + i % channels];
        }
        wanted[i] = (float)(sum / plane.pixels);
    }
    for (size_t i = 0; i < ins; i++) {
        wanted_dx[i] =
            (add ? dx[i] : 0) + dy[i / sample * channels + i % channels] / (float)plane.pixels;
    }
    cuda_program p = case_begin(type);
    cuda_ref from = case_values(&p, ins);
    cuda_ref to = case_values(&p, outs);
    cuda_ref back = case_values(&p, outs);
    cuda_ref grad = case_values(&p, ins);
    stk_cuda_avg_pool(&p, plane, from, to);
    stk_cuda_avg_pool_back(&p, plane, back, grad, add);
    play_data data[] = {play_in(from, PLAY_T, ins, x),
                        play_out(to, PLAY_T, outs, y),
                        play_in(back, PLAY_T, outs, dy),
                        {grad, PLAY_T, ins, add ? dx : NULL, dx}};
    CASE_RUN(play, &p, data);
    play_check_each("average", y, wanted, outs, 1e-6, case_room(type));
    play_check_each("its gradient", dx, wanted_dx, ins, 1e-6 + case_room(type) / 2,
                    case_room(type));
}

static void averages(void) {
    play_device play;
    if (!play_open(&play)) {
        return;
    }
    static const cuda_plane planes[] = {
        {2, 49, 72}, {3, 50, 8}, {2, 9, 264}, {3, 7, 35}, {1, 1, 1}};
    EACH_TYPE(type) {
        for (size_t k = 0; k < sizeof planes / sizeof *planes; k++) {
            if (play_takes(k + 1, type)) {
                check_avg_pool(&play, type, planes[k], k % 2 == 1);
            }
        }
    }
    play_close(&play);
}

static const check_test tests[] = {TEST(max_pools), TEST(max_pool_of_no_number),
                                   TEST(norms_in_front_of_maxima), TEST(averages)};
CHECK_MAIN(tests)
