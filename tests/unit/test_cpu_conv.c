/*
 * test_cpu_conv.c - convolutions on the CPU against loops that do nothing for speed, with every
 * kind of instructions that this machine has. What the kernels may not read is not a number, so
 * that it would show in the results.
 */
#include "check.h"

#include "backend/cpu/convolution/conv.h"
#include "base/error.h"
#include "base/mem.h"
#include "base/numbers/rng.h"

#define GUARD ((size_t)64) /* floats on each side of a tensor that must stay as they are */
#define GUARD_VALUE 12345.5f

typedef struct geometry {
    size_t batch;
    int height, width, in, out;
    int kernel, stride;
    int before, after; /* padding */
    bool bias;
    bool accumulate;
} geometry;

/* A tensor between guards. */
typedef struct tensor {
    float *block;
    float *values;
    size_t count;
} tensor;

/* One convolution with its tensors. */
typedef struct fixture {
    stk_value values[2];
    stk_node node;
    stk_graph graph;
    tensor x, y, dy, dx, weight, bias, weight_grad, bias_grad, workspace, stats;
    cpu_call call;
} fixture;

static tensor new_tensor(size_t count, float value) {
    tensor t = {.block = stk_mem_aligned((count + 2 * GUARD) * sizeof(float)), .count = count};
    t.values = t.block + GUARD;
    for (size_t i = 0; i < count + 2 * GUARD; i++) {
        t.block[i] = i < GUARD || i >= count + GUARD ? GUARD_VALUE : value;
    }
    return t;
}

static tensor new_random(size_t count, uint64_t seed) {
    tensor t = new_tensor(count, 0);
    stk_rng rng = stk_rng_make(seed, STK_RNG_TEST, 0, count);
    for (size_t i = 0; i < count; i++) {
        t.values[i] = (float)stk_rng_range(&rng, -1, 1);
    }
    return t;
}

static void free_tensor(tensor *t) {
    for (size_t i = 0; i < GUARD; i++) {
        CHECK(t->block[i] == GUARD_VALUE);
        CHECK(t->values[t->count + i] == GUARD_VALUE);
    }
    stk_mem_free(t->block);
}

static void open_fixture(fixture *f, const geometry *g, const cpu_gemm *gemm, stk_pool *pool) {
    *f = (fixture){.node = {.op = STK_OP_CONV,
                            .input_count = 1,
                            .output = 1,
                            .param_count = g->bias ? 2 : 1,
                            .kernel = g->kernel,
                            .stride = g->stride,
                            .pad = g->before}};
    stk_shape in = {g->height, g->width, g->in};
    stk_shape out = {(g->height + g->before + g->after - g->kernel) / g->stride + 1,
                     (g->width + g->before + g->after - g->kernel) / g->stride + 1, g->out};
    f->values[0].shape = in;
    f->values[1].shape = out;
    f->graph = (stk_graph){.nodes = &f->node, .values = f->values, .value_count = 2};
    size_t pixels = g->batch * (size_t)out.height * (size_t)out.width;
    size_t weights = (size_t)(g->kernel * g->kernel * g->in * g->out);
    stk_piece piece = {.live = true, .training = true};
    stk_piece_needs needs = stk_cpu_conv_needs(gemm, &(cpu_ask){.graph = &f->graph,
                                                                .piece = &piece,
                                                                .node = &f->node,
                                                                .batch = g->batch,
                                                                .threads = stk_pool_threads(pool)});
    f->x = new_random(g->batch * stk_shape_count(in), 1);
    f->y = new_tensor(pixels * (size_t)g->out, NAN);
    f->dy = new_random(pixels * (size_t)g->out, 2);
    f->dx = g->accumulate ? new_random(f->x.count, 3) : new_tensor(f->x.count, NAN);
    f->weight = new_random(weights, 4);
    f->bias = new_random((size_t)g->out, 5);
    f->weight_grad = new_random(weights, 6);
    f->bias_grad = new_random((size_t)g->out, 7);
    f->workspace = new_tensor(needs.workspace_bytes / sizeof(float), NAN);
    f->stats = new_tensor(stk_cpu_conv_blocks(pixels) * 2 * (size_t)g->out, NAN);
    f->call = (cpu_call){.pool = pool,
                         .graph = &f->graph,
                         .node = &f->node,
                         .batch = g->batch,
                         .train = true,
                         .in = in,
                         .out = out,
                         .x = {f->x.values},
                         .y = f->y.values,
                         .dy = f->dy.values,
                         .dx = {f->dx.values},
                         .accumulate = {g->accumulate},
                         .param = {f->weight.values, f->bias.values},
                         .param_grad = {f->weight_grad.values, f->bias_grad.values},
                         .workspace = f->workspace.values};
}

static void run_all(fixture *f, const cpu_gemm *gemm) {
    stk_cpu_conv_forward(gemm, &f->call, f->stats.values);
    stk_cpu_conv_data_gradient(gemm, &f->call);
    stk_cpu_conv_weight_gradient(gemm, &f->call);
}

static void close_fixture(fixture *f) {
    tensor *all[] = {&f->x,    &f->y,           &f->dy,        &f->dx,        &f->weight,
                     &f->bias, &f->weight_grad, &f->bias_grad, &f->workspace, &f->stats};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        free_tensor(all[i]);
    }
}

/* ---- the loops ---- */

/* Sums in float64, each with the sum of its terms' sizes, which rounding errors go by. */
typedef struct sums {
    double *value;
    double *size;
    size_t count;
} sums;

static sums new_sums(const tensor *like, bool from_it) {
    sums s = {stk_mem_new(like->count, sizeof(double)), stk_mem_new(like->count, sizeof(double)),
              like->count};
    for (size_t i = 0; from_it && i < s.count; i++) {
        s.value[i] = (double)like->values[i];
        s.size[i] = fabs(s.value[i]);
    }
    return s;
}

static void add(sums *s, size_t at, double term) {
    s->value[at] += term;
    s->size[at] += fabs(term);
}

static void compare(const char *what, const char *kernels, const geometry *g, const tensor *got,
                    sums *expected) {
    for (size_t i = 0; i < got->count; i++) {
        double error = fabs((double)got->values[i] - expected->value[i]);
        if (!(error <= 2e-6 * expected->size[i] + 1e-9)) {
            CHECK_FAIL("%s, %s: element %zu is %.9g, expected %.9g; batch %zu, %dx%d, %d to %d "
                       "channels, kernel %d, stride %d, padding %d and %d",
                       kernels, what, i, (double)got->values[i], expected->value[i], g->batch,
                       g->height, g->width, g->in, g->out, g->kernel, g->stride, g->before,
                       g->after);
            break;
        }
    }
    stk_mem_free(expected->value);
    stk_mem_free(expected->size);
}

typedef struct expectation {
    sums y, dx, weight, bias;
} expectation;

static expectation expect(const fixture *f, const geometry *g) {
    expectation e = {new_sums(&f->y, false), new_sums(&f->dx, g->accumulate),
                     new_sums(&f->weight_grad, true), new_sums(&f->bias_grad, true)};
    stk_shape out = f->call.out;
    size_t pixel = 0;
    for (size_t n = 0; n < g->batch; n++) {
        for (int oy = 0; oy < out.height; oy++) {
            for (int ox = 0; ox < out.width; ox++, pixel++) {
                for (int o = 0; o < g->out; o++) {
                    size_t at = pixel * (size_t)g->out + (size_t)o;
                    double dy = (double)f->dy.values[at];
                    if (g->bias) {
                        add(&e.y, at, (double)f->bias.values[o]);
                        add(&e.bias, (size_t)o, dy);
                    }
                    for (int k = 0; k < g->kernel * g->kernel; k++) {
                        int iy = oy * g->stride - g->before + k / g->kernel;
                        int ix = ox * g->stride - g->before + k % g->kernel;
                        if (iy < 0 || iy >= g->height || ix < 0 || ix >= g->width) {
                            continue;
                        }
                        size_t x =
                            ((n * (size_t)g->height + (size_t)iy) * (size_t)g->width + (size_t)ix) *
                            (size_t)g->in;
                        size_t w = (size_t)(o * g->kernel * g->kernel + k) * (size_t)g->in;
                        for (int c = 0; c < g->in; c++, x++, w++) {
                            add(&e.y, at, (double)f->x.values[x] * (double)f->weight.values[w]);
                            add(&e.dx, x, dy * (double)f->weight.values[w]);
                            add(&e.weight, w, dy * (double)f->x.values[x]);
                        }
                    }
                }
            }
        }
    }
    return e;
}

/* One mean and one variance out of all blocks, in their order. */
static void merge_stats(const float *stats, size_t pixels, size_t channels, float *mean,
                        float *variance) {
    size_t blocks = stk_cpu_conv_blocks(pixels);
    for (size_t c = 0; c < channels; c++) {
        double middle = 0;
        double squares = 0;
        for (size_t b = 0; b < blocks; b++) {
            double before = (double)stk_cpu_conv_block_start(pixels, b);
            double after = (double)stk_cpu_conv_block_start(pixels, b + 1);
            double away = (double)stats[2 * b * channels + c] - middle;
            middle += away * (after - before) / after;
            squares += (double)stats[(2 * b + 1) * channels + c] +
                       away * away * before * (after - before) / after;
        }
        mean[c] = (float)middle;
        variance[c] = squares > 0 ? (float)(squares / (double)pixels) : 0;
    }
}

static void check_stats(const fixture *f, const geometry *g) {
    size_t channels = (size_t)g->out;
    size_t pixels = f->y.count / channels;
    float *mean = stk_mem_new(2 * channels, sizeof *mean);
    merge_stats(f->stats.values, pixels, channels, mean, mean + channels);
    for (size_t c = 0; c < channels; c++) {
        double sum = 0;
        double squares = 0;
        for (size_t i = 0; i < pixels; i++) {
            sum += (double)f->y.values[i * channels + c];
        }
        for (size_t i = 0; i < pixels; i++) {
            double away = (double)f->y.values[i * channels + c] - sum / (double)pixels;
            squares += away * away;
        }
        double variance = squares / (double)pixels;
        CHECK_NEAR(mean[c], sum / (double)pixels, 1e-5 * sqrt(variance) + 1e-6);
        CHECK_NEAR(mean[channels + c], variance, 1e-5 * variance + 1e-9);
    }
    stk_mem_free(mean);
}

static void check_geometry(const geometry *g, const cpu_gemm *gemm, stk_pool *pool) {
    fixture f;
    open_fixture(&f, g, gemm, pool);
    expectation e = expect(&f, g);
    run_all(&f, gemm);
    compare("y", gemm->name, g, &f.y, &e.y);
    compare("dx", gemm->name, g, &f.dx, &e.dx);
    compare("weight gradient", gemm->name, g, &f.weight_grad, &e.weight);
    compare("bias gradient", gemm->name, g, &f.bias_grad, &e.bias);
    check_stats(&f, g);
    close_fixture(&f);
}

/* With every table of the list that this processor can run. */
static void check_everywhere(const geometry *g) {
    stk_error err;
    stk_pool *pool;
    REQUIRE_OK(stk_pool_new(&pool, 2, &err), &err);
    for (size_t i = 0; stk_cpu_gemm_list[i] != NULL; i++) {
        if (stk_cpu_gemm_list[i]->is_here()) {
            check_geometry(g, stk_cpu_gemm_list[i], pool);
        }
    }
    stk_pool_free(pool);
}

/* ---- tests ---- */

static void kernels_strides_and_paddings(void) {
    static const int channels[] = {1, 3, 5, 16, 24, 40, 64, 67};
    static const int kernels[] = {1, 3, 5, 7};
    stk_rng rng = stk_rng_make(11, STK_RNG_TEST, 0, 0);
    for (int k = 0; k < 4; k++) {
        for (int stride = 1; stride <= 3; stride++) {
            for (int pads = 0; pads < 16; pads++) {
                geometry g = {.kernel = kernels[k],
                              .stride = stride,
                              .before = pads / 4,
                              .after = pads % 4,
                              .bias = stk_rng_below(&rng, 2) == 0,
                              .accumulate = stk_rng_below(&rng, 2) == 0};
                g.batch = 1 + (size_t)stk_rng_below(&rng, 2);
                g.in = channels[stk_rng_below(&rng, g.kernel > 3 ? 5 : 8)];
                g.out = channels[stk_rng_below(&rng, g.kernel > 3 ? 5 : 8)];
                int least = g.kernel - g.before - g.after;
                g.height = (least > 1 ? least : 1) + (int)stk_rng_below(&rng, 7);
                g.width = (least > 1 ? least : 1) + (int)stk_rng_below(&rng, 7);
                check_everywhere(&g);
            }
        }
    }
}

static void depths_of_several_passes(void) {
    check_everywhere(&(geometry){.batch = 2,
                                 .height = 5,
                                 .width = 6,
                                 .in = 67,
                                 .out = 135,
                                 .kernel = 3,
                                 .stride = 1,
                                 .before = 1,
                                 .after = 1});
    check_everywhere(&(geometry){.batch = 1,
                                 .height = 3,
                                 .width = 2,
                                 .in = 300,
                                 .out = 260,
                                 .kernel = 1,
                                 .stride = 1,
                                 .accumulate = true});
}

static void pixels_of_several_parts(void) {
    check_everywhere(&(geometry){.batch = 3,
                                 .height = 31,
                                 .width = 29,
                                 .in = 7,
                                 .out = 9,
                                 .kernel = 3,
                                 .stride = 1,
                                 .before = 1,
                                 .after = 1,
                                 .bias = true});
    check_everywhere(&(geometry){.batch = 2,
                                 .height = 40,
                                 .width = 41,
                                 .in = 3,
                                 .out = 20,
                                 .kernel = 7,
                                 .stride = 2,
                                 .before = 2,
                                 .after = 3});
}

static void strides_larger_than_kernels(void) {
    for (int size = 1; size < 9; size++) {
        for (int accumulate = 0; accumulate < 2; accumulate++) {
            check_everywhere(&(geometry){.batch = 2,
                                         .height = size,
                                         .width = 9 - size,
                                         .in = 6,
                                         .out = 5,
                                         .kernel = 1,
                                         .stride = 4,
                                         .accumulate = accumulate == 1});
        }
    }
}

/* Everything that a convolution computes, on so many threads. */
static void copy_results(const geometry *g, const cpu_gemm *gemm, int threads, float *out) {
    stk_error err;
    stk_pool *pool;
    REQUIRE_OK(stk_pool_new(&pool, threads, &err), &err);
    fixture f;
    open_fixture(&f, g, gemm, pool);
    run_all(&f, gemm);
    const tensor *results[] = {&f.y, &f.dx, &f.weight_grad, &f.bias_grad, &f.stats};
    for (size_t i = 0; i < 5; i++) {
        memcpy(out, results[i]->values, results[i]->count * sizeof *out);
        out += results[i]->count;
    }
    close_fixture(&f);
    stk_pool_free(pool);
}

static void same_bits_on_any_number_of_threads(void) {
    static const geometry cases[] = {
        {.batch = 5,
         .height = 23,
         .width = 21,
         .in = 40,
         .out = 72,
         .kernel = 3,
         .stride = 2,
         .before = 1,
         .after = 1,
         .bias = true,
         .accumulate = true},
        {.batch = 2, .height = 7, .width = 7, .in = 200, .out = 300, .kernel = 1, .stride = 1},
    };
    enum { MOST = 400000 };
    float *results[3];
    for (size_t i = 0; i < 3; i++) {
        results[i] = stk_mem_new(MOST, sizeof(float));
        REQUIRE(results[i] != NULL);
    }
    for (size_t c = 0; c < sizeof cases / sizeof *cases; c++) {
        for (size_t k = 0; stk_cpu_gemm_list[k] != NULL; k++) {
            if (stk_cpu_gemm_list[k]->is_here()) {
                for (int i = 0; i < 3; i++) {
                    copy_results(&cases[c], stk_cpu_gemm_list[k], i + 1, results[i]);
                }
                CHECK(memcmp(results[0], results[1], MOST * sizeof(float)) == 0);
                CHECK(memcmp(results[0], results[2], MOST * sizeof(float)) == 0);
            }
        }
    }
    for (size_t i = 0; i < 3; i++) {
        stk_mem_free(results[i]);
    }
}

static void moments_of_large_means(void) {
    enum { ROWS = 200, COLS = 70 };
    float *values = stk_mem_new((size_t)ROWS * COLS, sizeof *values);
    float *rows[ROWS];
    for (size_t i = 0; i < ROWS; i++) {
        rows[i] = values + i * COLS;
        for (size_t j = 0; j < COLS; j++) {
            rows[i][j] = 10000 + (float)(i % 2); /* variance 1/4 about a mean of 10000.5 */
        }
    }
    for (size_t k = 0; stk_cpu_gemm_list[k] != NULL; k++) {
        if (stk_cpu_gemm_list[k]->is_here()) {
            float mean[COLS] = {0};
            float squares[COLS] = {0};
            stk_cpu_gemm_list[k]->moments(rows, ROWS, 2, COLS, mean, squares);
            CHECK(mean[1] == 0);
            for (size_t j = 2; j < COLS; j++) {
                CHECK_NEAR(mean[j], 10000.5, 1e-3);
                CHECK_NEAR(squares[j], ROWS / 4, 1e-3);
            }
        }
    }
    stk_mem_free(values);
}

static const check_test tests[] = {
    TEST(kernels_strides_and_paddings),
    TEST(depths_of_several_passes),
    TEST(pixels_of_several_parts),
    TEST(strides_larger_than_kernels),
    TEST(same_bits_on_any_number_of_threads),
    TEST(moments_of_large_means),
};

CHECK_MAIN(tests)
