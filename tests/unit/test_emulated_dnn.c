/*
 * test_emulated_dnn.c - the look-alike of cuDNN against plain loops, and that it refuses what the
 * library refuses: other tests believe it.
 */
#include "emulated/dnn_numbers.h"
#include "emulated_libs.h"

/* Engines, in the order of the heuristic's answer; see emulated/dnn_emulated.h. */
enum { HUGE_ENGINE, TENSOR_ENGINE, CARELESS_ENGINE, PLAIN_ENGINE, STEADY_ENGINE, ENGINES };

/* What numbers of a tensor are in memory. */
static cuda_type stored(int type) {
    return type == DNN_FLOAT ? CUDA_TYPE_F32 : type == DNN_HALF ? CUDA_TYPE_F16 : CUDA_TYPE_BF16;
}

static emulated e;
static cuda_dnn_functions api;
static cuda_dnn_handle handle;

static bool begin(void) {
    if (!emulated_open(&e, "libcudnn.so.9")) {
        return false;
    }
#define X(name, symbol, parameters) emulated_find(&e, symbol, &api.name);
    CUDA_DNN_FUNCTIONS(X)
#undef X
    emulated_find(&e, "cudnnGetErrorString", &api.error_string);
    CHECK_INT(api.create(&handle), DNN_GOOD);
    CHECK_INT(api.set_stream(handle, e.stream), DNN_GOOD);
    return true;
}

static void end(void) {
    CHECK_INT(api.destroy(handle), DNN_GOOD);
    emulated_close(&e);
}

/* Descriptors that are dropped together. */
static cuda_dnn_descriptor owned[64];
static int owned_count;

static cuda_dnn_descriptor make(int kind) {
    cuda_dnn_descriptor d = NULL;
    CHECK_INT(api.describe(kind, &d), DNN_GOOD);
    owned[owned_count++] = d;
    return d;
}

static void drop_all(void) {
    while (owned_count > 0) {
        CHECK_INT(api.drop(owned[--owned_count]), DNN_GOOD);
    }
}

static void set(cuda_dnn_descriptor d, int name, int type, int64_t count, const void *values) {
    CHECK_INT(api.set(d, name, type, count, values), DNN_GOOD);
}

static void set_one(cuda_dnn_descriptor d, int name, cuda_dnn_descriptor value) {
    set(d, name, DNN_TYPE_DESCRIPTOR, 1, &value);
}

static void set_float(cuda_dnn_descriptor d, int name, float value) {
    set(d, name, DNN_TYPE_FLOAT, 1, &value);
}

/* (n, c, h, w) with channels innermost; a negative number: virtual. */
static cuda_dnn_descriptor tensor(int64_t id, int type, int n, int c, int h, int w) {
    cuda_dnn_descriptor d = make(DNN_TENSOR);
    int64_t dims[4] = {n, c, h, w};
    int64_t strides[4] = {(int64_t)h * w * c, 1, (int64_t)w * c, c};
    int64_t alignment = 16;
    bool is_virtual = id < 0;
    set(d, DNN_TENSOR_DATA_TYPE, DNN_TYPE_DATA_TYPE, 1, &type);
    set(d, DNN_TENSOR_DIMENSIONS, DNN_TYPE_INT64, 4, dims);
    set(d, DNN_TENSOR_STRIDES, DNN_TYPE_INT64, 4, strides);
    set(d, DNN_TENSOR_ID, DNN_TYPE_INT64, 1, &id);
    set(d, DNN_TENSOR_ALIGNMENT, DNN_TYPE_INT64, 1, &alignment);
    set(d, DNN_TENSOR_VIRTUAL, DNN_TYPE_BOOLEAN, 1, &is_virtual);
    CHECK_INT(api.finish(d), DNN_GOOD);
    return d;
}

typedef struct geometry {
    int n, c, h, w; /* of x */
    int k, r, s;    /* of w */
    int stride, dilation;
    int top, left, bottom, right; /* padding */
} geometry;

static int out_side(int side, int before, int behind, int taps, const geometry *g) {
    return (side + before + behind - g->dilation * (taps - 1) - 1) / g->stride + 1;
}

static int out_h(const geometry *g) {
    return out_side(g->h, g->top, g->bottom, g->r, g);
}

static int out_w(const geometry *g) {
    return out_side(g->w, g->left, g->right, g->s, g);
}

static cuda_dnn_descriptor convolution(const geometry *g) {
    cuda_dnn_descriptor d = make(DNN_CONVOLUTION);
    int precision = DNN_FLOAT, mode = DNN_CROSS_CORRELATION;
    int64_t two = 2, strides[2] = {g->stride, g->stride}, dilations[2] = {g->dilation, g->dilation};
    int64_t before[2] = {g->top, g->left}, behind[2] = {g->bottom, g->right};
    set(d, DNN_CONVOLUTION_PRECISION, DNN_TYPE_DATA_TYPE, 1, &precision);
    set(d, DNN_CONVOLUTION_MODE, DNN_TYPE_CONVOLUTION_MODE, 1, &mode);
    set(d, DNN_CONVOLUTION_DIMENSIONS, DNN_TYPE_INT64, 1, &two);
    set(d, DNN_CONVOLUTION_DILATIONS, DNN_TYPE_INT64, 2, dilations);
    set(d, DNN_CONVOLUTION_STRIDES, DNN_TYPE_INT64, 2, strides);
    set(d, DNN_CONVOLUTION_PRE_PADDINGS, DNN_TYPE_INT64, 2, before);
    set(d, DNN_CONVOLUTION_POST_PADDINGS, DNN_TYPE_INT64, 2, behind);
    CHECK_INT(api.finish(d), DNN_GOOD);
    return d;
}

static const int conv_names[3][6] = {
    {DNN_FORWARD_CONVOLUTION, DNN_FORWARD_X, DNN_FORWARD_W, DNN_FORWARD_Y, DNN_FORWARD_ALPHA,
     DNN_FORWARD_BETA},
    {DNN_DATA_CONVOLUTION, DNN_DATA_DX, DNN_DATA_W, DNN_DATA_DY, DNN_DATA_ALPHA, DNN_DATA_BETA},
    {DNN_FILTER_CONVOLUTION, DNN_FILTER_X, DNN_FILTER_DW, DNN_FILTER_DY, DNN_FILTER_ALPHA,
     DNN_FILTER_BETA}};

/* Numbers of the three operations: 0 forward, 1 data, 2 filter. */
static cuda_dnn_descriptor conv_op(int which, const geometry *g, cuda_dnn_descriptor x,
                                   cuda_dnn_descriptor w, cuda_dnn_descriptor y, float alpha,
                                   float beta) {
    static const int kinds[3] = {DNN_OP_FORWARD, DNN_OP_DATA, DNN_OP_FILTER};
    const int *names = conv_names[which];
    cuda_dnn_descriptor d = make(kinds[which]);
    set_one(d, names[0], convolution(g));
    set_one(d, names[1], x);
    set_one(d, names[2], w);
    set_one(d, names[3], y);
    set_float(d, names[4], alpha);
    set_float(d, names[5], beta);
    CHECK_INT(api.finish(d), DNN_GOOD);
    return d;
}

static cuda_dnn_descriptor pointwise_op(int mode, cuda_dnn_descriptor x, cuda_dnn_descriptor b,
                                        cuda_dnn_descriptor y, double upper) {
    cuda_dnn_descriptor what = make(DNN_POINTWISE);
    int precision = DNN_FLOAT;
    bool backward = mode == DNN_RELU_BACKWARD;
    set(what, DNN_POINTWISE_MODE, DNN_TYPE_POINTWISE_MODE, 1, &mode);
    set(what, DNN_POINTWISE_PRECISION, DNN_TYPE_DATA_TYPE, 1, &precision);
    if (upper > 0) {
        set(what, DNN_POINTWISE_UPPER_CLIP, DNN_TYPE_DOUBLE, 1, &upper);
    }
    CHECK_INT(api.finish(what), DNN_GOOD);
    cuda_dnn_descriptor d = make(DNN_OP_POINTWISE);
    set_one(d, DNN_OP_POINTWISE_WHAT, what);
    set_one(d, DNN_OP_POINTWISE_X, x);
    if (b != NULL) {
        set_one(d, backward ? DNN_OP_POINTWISE_DY : DNN_OP_POINTWISE_B, b);
    }
    set_one(d, backward ? DNN_OP_POINTWISE_DX : DNN_OP_POINTWISE_Y, y);
    CHECK_INT(api.finish(d), DNN_GOOD);
    return d;
}

static cuda_dnn_descriptor graph_of(const cuda_dnn_descriptor *ops, int count) {
    cuda_dnn_descriptor d = make(DNN_GRAPH);
    set(d, DNN_GRAPH_HANDLE, DNN_TYPE_HANDLE, 1, &handle);
    set(d, DNN_GRAPH_OPS, DNN_TYPE_DESCRIPTOR, count, ops);
    CHECK_INT(api.finish(d), DNN_GOOD);
    return d;
}

static cuda_dnn_descriptor plan_of(cuda_dnn_descriptor graph, int64_t number) {
    cuda_dnn_descriptor engine = make(DNN_ENGINE);
    set_one(engine, DNN_ENGINE_GRAPH, graph);
    set(engine, DNN_ENGINE_NUMBER, DNN_TYPE_INT64, 1, &number);
    CHECK_INT(api.finish(engine), DNN_GOOD);
    cuda_dnn_descriptor config = make(DNN_CONFIG);
    set_one(config, DNN_CONFIG_ENGINE, engine);
    CHECK_INT(api.finish(config), DNN_GOOD);
    cuda_dnn_descriptor plan = make(DNN_PLAN);
    set(plan, DNN_PLAN_HANDLE, DNN_TYPE_HANDLE, 1, &handle);
    set_one(plan, DNN_PLAN_CONFIG, config);
    CHECK_INT(api.finish(plan), DNN_GOOD);
    return plan;
}

static cuda_dnn_descriptor pack_of(const int64_t *ids, const cuda_pointer *pointers, int count,
                                   cuda_pointer workspace) {
    cuda_dnn_descriptor d = make(DNN_PACK);
    set(d, DNN_PACK_IDS, DNN_TYPE_INT64, count, ids);
    set(d, DNN_PACK_POINTERS, DNN_TYPE_POINTER, count, pointers);
    set(d, DNN_PACK_WORKSPACE, DNN_TYPE_POINTER, 1, &workspace);
    CHECK_INT(api.finish(d), DNN_GOOD);
    return d;
}

/* Runs operations with pointers for tensors 1, 2, ... on an engine. */
static void run(const cuda_dnn_descriptor *ops, int op_count, const cuda_pointer *pointers,
                int count, int64_t engine) {
    int64_t ids[8] = {1, 2, 3, 4, 5, 6, 7, 8};
    cuda_pointer workspace = 0;
    CHECK_INT(e.driver.memory_take(&workspace, 1024), CUDA_GOOD);
    cuda_dnn_descriptor plan = plan_of(graph_of(ops, op_count), engine);
    CHECK_INT(api.execute(handle, plan, pack_of(ids, pointers, count, workspace)), DNN_GOOD);
    CHECK_INT(e.driver.stream_wait(e.stream), CUDA_GOOD);
    CHECK_INT(e.driver.memory_free(workspace), CUDA_GOOD);
}

/* ---- against plain loops ---- */

enum { X, W, Y };

typedef struct arrays {
    float *values[3]; /* x (n,h,w,c), w (k,r,s,c), y (n,oh,ow,k) */
    size_t counts[3];
} arrays;

static arrays arrays_new(const geometry *g) {
    arrays a = {.counts = {(size_t)(g->n * g->h * g->w * g->c), (size_t)(g->k * g->r * g->s * g->c),
                           (size_t)(g->n * out_h(g) * out_w(g) * g->k)}};
    for (int i = 0; i < 3; i++) {
        a.values[i] = malloc(a.counts[i] * sizeof(float));
        for (size_t k = 0; k < a.counts[i]; k++) {
            a.values[i][k] = emulated_number((unsigned)(k + 1000003u * (unsigned)i));
        }
    }
    return a;
}

static void arrays_free(arrays *a) {
    for (int i = 0; i < 3; i++) {
        free(a->values[i]);
    }
}

/* The sum that stands at one place of array `made`, over all triples of places that belong. */
static void reference(const geometry *g, const arrays *a, int made, double *sums) {
    int oh = out_h(g), ow = out_w(g);
    memset(sums, 0, a->counts[made] * sizeof *sums);
    for (int n = 0; n < g->n; n++)
        for (int p = 0; p < oh; p++)
            for (int q = 0; q < ow; q++)
                for (int r = 0; r < g->r; r++)
                    for (int s = 0; s < g->s; s++) {
                        int h = p * g->stride + r * g->dilation - g->top;
                        int w = q * g->stride + s * g->dilation - g->left;
                        if (h < 0 || h >= g->h || w < 0 || w >= g->w) {
                            continue;
                        }
                        for (int k = 0; k < g->k; k++)
                            for (int c = 0; c < g->c; c++) {
                                size_t at[3] = {(size_t)(((n * g->h + h) * g->w + w) * g->c + c),
                                                (size_t)(((k * g->r + r) * g->s + s) * g->c + c),
                                                (size_t)(((n * oh + p) * ow + q) * g->k + k)};
                                double product = 1;
                                for (int i = 0; i < 3; i++) {
                                    product *= i == made ? 1 : a->values[i][at[i]];
                                }
                                sums[at[made]] += product;
                            }
                    }
}

static void check_array(const char *what, int type, const float *actual, const double *expected,
                        size_t count) {
    double tolerance = type == DNN_FLOAT ? 1e-6 : type == DNN_HALF ? 1.0 / 2048 : 1.0 / 256;
    for (size_t i = 0; i < count; i++) {
        if (!(fabs(actual[i] - expected[i]) <= tolerance * (1e-3 + fabs(expected[i])) + 1e-6)) {
            CHECK_FAIL("%s, type %d: number %zu is %.9g, expected %.9g", what, type, i, actual[i],
                       expected[i]);
            return;
        }
    }
}

static void check_conv(int which, int type, const geometry *g, float alpha, float beta,
                       int64_t engine) {
    static const int made_by[3] = {Y, X, W};
    int made = made_by[which];
    arrays a = arrays_new(g);
    cuda_pointer pointers[3];
    for (int i = 0; i < 3; i++) {
        pointers[i] = emulated_put(&e, stored(type), a.values[i], a.counts[i]);
    }
    double *sums = malloc(a.counts[made] * sizeof *sums);
    float *result = malloc(a.counts[made] * sizeof *result);
    reference(g, &a, made, sums);
    for (size_t i = 0; i < a.counts[made]; i++) {
        sums[i] = alpha * sums[i] + beta * a.values[made][i];
    }
    cuda_dnn_descriptor op = conv_op(which, g, tensor(1, type, g->n, g->c, g->h, g->w),
                                     tensor(2, type, g->k, g->c, g->r, g->s),
                                     tensor(3, type, g->n, g->k, out_h(g), out_w(g)), alpha, beta);
    run(&op, 1, pointers, 3, engine);
    emulated_get(&e, stored(type), pointers[made], result, a.counts[made]);
    check_array(which == 0   ? "forward"
                : which == 1 ? "data"
                             : "filter",
                type, result, sums, a.counts[made]);
    for (int i = 0; i < 3; i++) {
        CHECK_INT(e.driver.memory_free(pointers[i]), CUDA_GOOD);
    }
    free(sums);
    free(result);
    arrays_free(&a);
    drop_all();
}

static const geometry geometries[] = {
    {2, 3, 7, 5, 4, 3, 3, 1, 1, 1, 1, 1, 1},  /* odd sides */
    {1, 8, 8, 8, 16, 1, 1, 1, 1, 0, 0, 0, 0}, /* a product of matrices */
    {3, 5, 8, 6, 7, 3, 3, 2, 1, 0, 0, 1, 1},  /* padded below and right only */
    {1, 2, 9, 9, 3, 3, 2, 2, 2, 2, 1, 2, 0},  /* dilated, uneven */
    {2, 4, 1, 1, 10, 1, 1, 1, 1, 0, 0, 0, 0}, /* a linear layer */
};

static void convolutions(void) {
    static const int types[] = {DNN_FLOAT, DNN_HALF, DNN_BFLOAT16};
    if (!begin()) {
        return;
    }
    for (size_t i = 0; i < sizeof geometries / sizeof geometries[0]; i++) {
        for (int t = 0; t < 3; t++) {
            for (int which = 0; which < 3; which++) {
                check_conv(which, types[t], &geometries[i], 1, 0, PLAIN_ENGINE);
                check_conv(which, types[t], &geometries[i], 0.5f, 1, CARELESS_ENGINE);
            }
        }
    }
    end();
}

static void fused_chains(void) {
    const geometry *g = &geometries[0];
    size_t count = (size_t)(g->n * out_h(g) * out_w(g) * g->k);
    if (!begin()) {
        return;
    }
    for (int mode = 0; mode < 3; mode++) {
        static const int acts[] = {DNN_RELU, DNN_SWISH, DNN_SIGMOID};
        arrays a = arrays_new(g);
        float bias[4] = {0.5f, -0.25f, 1, 0};
        float *result = malloc(count * sizeof *result);
        double *sums = malloc(count * sizeof *sums);
        reference(g, &a, Y, sums);
        for (size_t i = 0; i < count; i++) {
            double z = sums[i] + a.values[Y][i] + bias[i % 4];
            double sigmoid = 1 / (1 + exp(-z));
            sums[i] = mode == 0 ? fmin(fmax(z, 0), 1.5) : mode == 1 ? z * sigmoid : sigmoid;
        }
        float zeros[1024] = {0};
        cuda_pointer pointers[5] = {
            emulated_put(&e, stored(DNN_FLOAT), a.values[X], a.counts[X]),
            emulated_put(&e, stored(DNN_FLOAT), a.values[W], a.counts[W]),
            emulated_put(&e, stored(DNN_FLOAT), zeros, count),
            emulated_put(&e, stored(DNN_FLOAT), bias, 4),
            emulated_put(&e, stored(DNN_FLOAT), a.values[Y], count),
        };
        int k = g->k, oh = out_h(g), ow = out_w(g);
        cuda_dnn_descriptor conv = tensor(-1, DNN_FLOAT, g->n, k, oh, ow);
        cuda_dnn_descriptor with_bias = tensor(-2, DNN_FLOAT, g->n, k, oh, ow);
        cuda_dnn_descriptor with_added = tensor(-3, DNN_FLOAT, g->n, k, oh, ow);
        /* Not in the order in which they run. */
        cuda_dnn_descriptor ops[4] = {
            pointwise_op(acts[mode], with_added, NULL, tensor(3, DNN_FLOAT, g->n, k, oh, ow),
                         mode == 0 ? 1.5 : 0),
            pointwise_op(DNN_ADD, conv, tensor(4, DNN_FLOAT, 1, k, 1, 1), with_bias, 0),
            conv_op(0, g, tensor(1, DNN_FLOAT, g->n, g->c, g->h, g->w),
                    tensor(2, DNN_FLOAT, k, g->c, g->r, g->s), conv, 1, 0),
            pointwise_op(DNN_ADD, with_bias, tensor(5, DNN_FLOAT, g->n, k, oh, ow), with_added, 0),
        };
        run(ops, 4, pointers, 5, PLAIN_ENGINE);
        emulated_get(&e, stored(DNN_FLOAT), pointers[2], result, count);
        check_array("chain", DNN_FLOAT, result, sums, count);
        for (int i = 0; i < 5; i++) {
            CHECK_INT(e.driver.memory_free(pointers[i]), CUDA_GOOD);
        }
        free(result);
        free(sums);
        arrays_free(&a);
        drop_all();
    }
    end();
}

/* Sums and squares of x * b, and the gradient of a clipped ReLU. */
static void statistics(void) {
    enum { PIXELS = 6, CHANNELS = 3, COUNT = PIXELS * CHANNELS };
    float x[COUNT], dy[COUNT], b[CHANNELS] = {2, -1, 0.5f}, result[COUNT];
    double sums[2][CHANNELS] = {{0}}, gradient[COUNT];
    if (!begin()) {
        return;
    }
    for (int i = 0; i < COUNT; i++) {
        x[i] = emulated_number((unsigned)i);
        dy[i] = emulated_number((unsigned)i + 77);
        sums[0][i % CHANNELS] += (double)x[i] * b[i % CHANNELS];
        sums[1][i % CHANNELS] += pow((double)x[i] * b[i % CHANNELS], 2);
        gradient[i] = x[i] > 0 && x[i] < 0.5 ? dy[i] : 0;
    }
    cuda_pointer pointers[6] = {emulated_put(&e, stored(DNN_FLOAT), x, COUNT),
                                emulated_put(&e, stored(DNN_FLOAT), b, CHANNELS),
                                emulated_put(&e, stored(DNN_FLOAT), x, CHANNELS),
                                emulated_put(&e, stored(DNN_FLOAT), x, CHANNELS),
                                emulated_put(&e, stored(DNN_FLOAT), dy, COUNT),
                                emulated_put(&e, stored(DNN_FLOAT), x, COUNT)};
    cuda_dnn_descriptor in = tensor(1, DNN_FLOAT, 2, CHANNELS, 3, 1);
    cuda_dnn_descriptor product = tensor(-1, DNN_FLOAT, 2, CHANNELS, 3, 1);
    cuda_dnn_descriptor stats = make(DNN_OP_STATS);
    int mode = 0, precision = DNN_FLOAT;
    set(stats, DNN_STATS_MODE, DNN_TYPE_STATS_MODE, 1, &mode);
    set(stats, DNN_STATS_PRECISION, DNN_TYPE_DATA_TYPE, 1, &precision);
    set_one(stats, DNN_STATS_X, product);
    set_one(stats, DNN_STATS_SUM, tensor(3, DNN_FLOAT, 1, CHANNELS, 1, 1));
    set_one(stats, DNN_STATS_SQUARES, tensor(4, DNN_FLOAT, 1, CHANNELS, 1, 1));
    CHECK_INT(api.finish(stats), DNN_GOOD);
    cuda_dnn_descriptor ops[3] = {
        pointwise_op(DNN_MUL, in, tensor(2, DNN_FLOAT, 1, CHANNELS, 1, 1), product, 0), stats,
        pointwise_op(DNN_RELU_BACKWARD, in, tensor(5, DNN_FLOAT, 2, CHANNELS, 3, 1),
                     tensor(6, DNN_FLOAT, 2, CHANNELS, 3, 1), 0.5)};
    run(ops, 3, pointers, 6, PLAIN_ENGINE);
    emulated_get(&e, stored(DNN_FLOAT), pointers[2], result, CHANNELS);
    check_array("sum", DNN_FLOAT, result, sums[0], CHANNELS);
    emulated_get(&e, stored(DNN_FLOAT), pointers[3], result, CHANNELS);
    check_array("squares", DNN_FLOAT, result, sums[1], CHANNELS);
    emulated_get(&e, stored(DNN_FLOAT), pointers[5], result, COUNT);
    check_array("gradient", DNN_FLOAT, result, gradient, COUNT);
    for (int i = 0; i < 6; i++) {
        CHECK_INT(e.driver.memory_free(pointers[i]), CUDA_GOOD);
    }
    drop_all();
    end();
}

/* ---- engines and plans ---- */

static cuda_dnn_descriptor simple_graph(int type) {
    const geometry *g = &geometries[1];
    cuda_dnn_descriptor op = conv_op(0, g, tensor(1, type, g->n, g->c, g->h, g->w),
                                     tensor(2, type, g->k, g->c, g->r, g->s),
                                     tensor(3, type, g->n, g->k, out_h(g), out_w(g)), 1, 0);
    return graph_of(&op, 1);
}

static void engines_tell_what_they_are(void) {
    if (!begin()) {
        return;
    }
    cuda_dnn_descriptor heuristic = make(DNN_HEURISTIC);
    int mode = DNN_HEURISTIC_A;
    int64_t found = 0, count = 0, bytes = 0, number = 0;
    set(heuristic, DNN_HEURISTIC_MODE, DNN_TYPE_HEURISTIC_MODE, 1, &mode);
    set_one(heuristic, DNN_HEURISTIC_GRAPH, simple_graph(DNN_HALF));
    CHECK_INT(api.finish(heuristic), DNN_GOOD);
    CHECK_INT(api.get(heuristic, DNN_HEURISTIC_RESULTS, DNN_TYPE_DESCRIPTOR, 0, &found, NULL),
              DNN_GOOD);
    CHECK_INT(found, ENGINES);
    cuda_dnn_descriptor configs[ENGINES], engine = make(DNN_ENGINE), knobs[ENGINES];
    for (int i = 0; i < ENGINES; i++) {
        configs[i] = make(DNN_CONFIG);
        knobs[i] = make(DNN_KNOB_INFO);
    }
    CHECK_INT(
        api.get(heuristic, DNN_HEURISTIC_RESULTS, DNN_TYPE_DESCRIPTOR, ENGINES, &found, configs),
        DNN_GOOD);
    for (int i = 0; i < ENGINES; i++) {
        static const int64_t workspaces[ENGINES] = {1 << 30, 0, 0, 1024, 0};
        int notes[4] = {-1};
        CHECK_INT(api.get(configs[i], DNN_CONFIG_ENGINE, DNN_TYPE_DESCRIPTOR, 1, &count, &engine),
                  DNN_GOOD);
        CHECK_INT(api.get(engine, DNN_ENGINE_NUMBER, DNN_TYPE_INT64, 1, &count, &number), DNN_GOOD);
        CHECK_INT(number, i);
        CHECK_INT(api.get(configs[i], DNN_CONFIG_WORKSPACE, DNN_TYPE_INT64, 1, &count, &bytes),
                  DNN_GOOD);
        CHECK_INT(bytes, workspaces[i]);
        CHECK_INT(
            api.get(engine, DNN_ENGINE_NUMERICAL_NOTES, DNN_TYPE_NUMERICAL_NOTE, 4, &count, notes),
            DNN_GOOD);
        CHECK_INT(count, i == TENSOR_ENGINE || i == CARELESS_ENGINE);
        CHECK_INT(notes[0], i == TENSOR_ENGINE     ? DNN_NOTE_TENSOR_CORE
                            : i == CARELESS_ENGINE ? DNN_NOTE_NONDETERMINISTIC
                                                   : -1);
        CHECK_INT(api.get(engine, DNN_ENGINE_KNOBS, DNN_TYPE_DESCRIPTOR, 4, &count, knobs),
                  DNN_GOOD);
        CHECK_INT(count, 2);
        CHECK_INT(api.get(knobs[1], DNN_KNOB_INFO_MOST, DNN_TYPE_INT64, 1, &count, &number),
                  DNN_GOOD);
        CHECK_INT(number, 4);
    }
    drop_all();
    end();
}

/* A plan outlives what it was made from, as text too; damaged text is refused. */
static void plans_as_text(void) {
    if (!begin()) {
        return;
    }
    cuda_dnn_descriptor plan = plan_of(simple_graph(DNN_FLOAT), PLAIN_ENGINE);
    int64_t count = 0, bytes = 0;
    CHECK_INT(api.get(plan, DNN_PLAN_JSON, DNN_TYPE_CHAR, 0, &count, NULL), DNN_GOOD);
    char *text = malloc((size_t)count);
    CHECK_INT(api.get(plan, DNN_PLAN_JSON, DNN_TYPE_CHAR, count, &count, text), DNN_GOOD);
    drop_all();
    for (int damaged = 0; damaged < 2; damaged++) {
        text[count / 2] = damaged ? (text[count / 2] == '0' ? '1' : '0') : text[count / 2];
        cuda_dnn_descriptor again = make(DNN_PLAN);
        set(again, DNN_PLAN_HANDLE, DNN_TYPE_HANDLE, 1, &handle);
        set(again, DNN_PLAN_JSON, DNN_TYPE_CHAR, count, text);
        CHECK_INT(api.finish(again), damaged ? DNN_BAD_PARAM : DNN_GOOD);
        if (!damaged) {
            int64_t got = 0;
            CHECK_INT(api.get(again, DNN_PLAN_WORKSPACE, DNN_TYPE_INT64, 1, &got, &bytes),
                      DNN_GOOD);
            CHECK_INT(bytes, 1024);
        }
    }
    free(text);
    drop_all();
    end();
}

/* A captured plan runs when the graph is launched, with what the tensors hold then. */
static void captured_plans(void) {
    const geometry *g = &geometries[1];
    if (!begin()) {
        return;
    }
    arrays a = arrays_new(g);
    float *result = malloc(a.counts[Y] * sizeof *result);
    double *sums = malloc(a.counts[Y] * sizeof *sums);
    int64_t ids[3] = {1, 2, 3};
    cuda_graph graph = NULL;
    cuda_graph_exec exec = NULL;
    cuda_pointer pointers[3];
    for (int i = 0; i < 3; i++) {
        pointers[i] = emulated_put(&e, stored(DNN_HALF), a.values[i], a.counts[i]);
    }
    cuda_dnn_descriptor plan = plan_of(simple_graph(DNN_HALF), TENSOR_ENGINE);
    CHECK_INT(e.driver.capture_begin(e.stream, CUDA_CAPTURE_THREAD_LOCAL), CUDA_GOOD);
    CHECK_INT(api.execute(handle, plan, pack_of(ids, pointers, 3, 0)), DNN_GOOD);
    CHECK_INT(e.driver.capture_end(e.stream, &graph), CUDA_GOOD);
    CHECK_INT(e.driver.graph_make(&exec, graph, 0), CUDA_GOOD);
    CHECK_INT(e.driver.graph_free(graph), CUDA_GOOD);
    drop_all();
    emulated_get(&e, stored(DNN_HALF), pointers[Y], result, a.counts[Y]);
    for (size_t i = 0; i < a.counts[Y]; i++) {
        CHECK(result[i] == a.values[Y][i]);
    }
    CHECK_INT(e.driver.graph_launch(exec, e.stream), CUDA_GOOD);
    emulated_get(&e, stored(DNN_HALF), pointers[Y], result, a.counts[Y]);
    reference(g, &a, Y, sums);
    check_array("captured", DNN_HALF, result, sums, a.counts[Y]);
    CHECK_INT(e.driver.graph_exec_free(exec), CUDA_GOOD);
    for (int i = 0; i < 3; i++) {
        CHECK_INT(e.driver.memory_free(pointers[i]), CUDA_GOOD);
    }
    end();
    free(result);
    free(sums);
    arrays_free(&a);
}

/* TF32 keeps ten bits of a float32: the engine with tensor cores shows it, the plain one not. */
static void tensor_cores_round(void) {
    float x[4] = {1 + 0x1p-12f, 0, 0, 0}, w[4] = {1, 0, 0, 0}, y[4], zero[4] = {0};
    geometry g = {1, 1, 1, 4, 1, 1, 1, 1, 1, 0, 0, 0, 0};
    if (!begin()) {
        return;
    }
    for (int64_t engine = TENSOR_ENGINE; engine <= PLAIN_ENGINE; engine += 2) {
        cuda_pointer pointers[3] = {emulated_put(&e, stored(DNN_FLOAT), x, 4),
                                    emulated_put(&e, stored(DNN_FLOAT), w, 4),
                                    emulated_put(&e, stored(DNN_FLOAT), zero, 4)};
        cuda_dnn_descriptor op =
            conv_op(0, &g, tensor(1, DNN_FLOAT, 1, 1, 1, 4), tensor(2, DNN_FLOAT, 1, 1, 1, 1),
                    tensor(3, DNN_FLOAT, 1, 1, 1, 4), 1, 0);
        run(&op, 1, pointers, 3, engine);
        emulated_get(&e, stored(DNN_FLOAT), pointers[2], y, 4);
        CHECK(y[0] == (engine == TENSOR_ENGINE ? 1 : x[0]));
        for (int i = 0; i < 3; i++) {
            CHECK_INT(e.driver.memory_free(pointers[i]), CUDA_GOOD);
        }
        drop_all();
    }
    end();
}

/* ---- what is refused ---- */

static void wrong_descriptors(void) {
    if (!begin()) {
        return;
    }
    cuda_dnn_descriptor d = NULL;
    CHECK_INT(api.describe(999, &d), DNN_NOT_SUPPORTED);
    d = make(DNN_TENSOR);
    int64_t four[4] = {1, 1, 1, 1}, alignment = 16, uneven = 12, id = 1;
    int type = DNN_FLOAT;
    CHECK_INT(api.set(d, DNN_CONVOLUTION_MODE, DNN_TYPE_CONVOLUTION_MODE, 1, &type), DNN_BAD_PARAM);
    CHECK_INT(api.set(d, DNN_TENSOR_ID, DNN_TYPE_FLOAT, 1, &id), DNN_ATTRIBUTE_TYPE);
    CHECK_INT(api.set(d, DNN_TENSOR_ID, DNN_TYPE_INT64, 2, four), DNN_BAD_PARAM);
    set(d, DNN_TENSOR_ID, DNN_TYPE_INT64, 1, &id);
    set(d, DNN_TENSOR_DATA_TYPE, DNN_TYPE_DATA_TYPE, 1, &type);
    set(d, DNN_TENSOR_DIMENSIONS, DNN_TYPE_INT64, 4, four);
    set(d, DNN_TENSOR_ALIGNMENT, DNN_TYPE_INT64, 1, &uneven);
    CHECK_INT(api.finish(d), DNN_BAD_PARAM); /* no strides */
    set(d, DNN_TENSOR_STRIDES, DNN_TYPE_INT64, 4, four);
    CHECK_INT(api.finish(d), DNN_BAD_PARAM); /* aligned to 12 bytes */
    set(d, DNN_TENSOR_ALIGNMENT, DNN_TYPE_INT64, 1, &alignment);
    cuda_dnn_descriptor op = make(DNN_OP_FORWARD);
    CHECK_INT(api.set(op, DNN_FORWARD_X, DNN_TYPE_DESCRIPTOR, 1, &d), DNN_NOT_FINALIZED);
    CHECK_INT(api.get(d, DNN_TENSOR_ID, DNN_TYPE_INT64, 1, &id, &id), DNN_NOT_FINALIZED);
    CHECK_INT(api.finish(d), DNN_GOOD);
    CHECK_INT(api.set(d, DNN_TENSOR_ID, DNN_TYPE_INT64, 1, &id), DNN_NOT_INITIALIZED);
    CHECK(api.error_string(DNN_BAD_PARAM) != NULL);
    drop_all();
    end();
}

static void wrong_graphs(void) {
    const geometry *g = &geometries[1];
    if (!begin()) {
        return;
    }
    cuda_dnn_descriptor x = tensor(1, DNN_HALF, g->n, g->c, g->h, g->w);
    cuda_dnn_descriptor w = tensor(2, DNN_HALF, g->k, g->c, g->r, g->s);
    cuda_dnn_descriptor op = make(DNN_OP_FORWARD);
    set_one(op, DNN_FORWARD_CONVOLUTION, convolution(g));
    set_one(op, DNN_FORWARD_X, x);
    set_one(op, DNN_FORWARD_W, w);
    set_one(op, DNN_FORWARD_Y, tensor(3, DNN_HALF, g->n, g->k, out_h(g) + 1, out_w(g)));
    set_float(op, DNN_FORWARD_ALPHA, 1);
    set_float(op, DNN_FORWARD_BETA, 0);
    CHECK_INT(api.finish(op), DNN_SHAPE_MISMATCH);
    cuda_dnn_descriptor filter = make(DNN_OP_FILTER); /* float weights from half numbers */
    set_one(filter, DNN_FILTER_CONVOLUTION, convolution(g));
    set_one(filter, DNN_FILTER_X, x);
    set_one(filter, DNN_FILTER_DW, tensor(2, DNN_FLOAT, g->k, g->c, g->r, g->s));
    set_one(filter, DNN_FILTER_DY, tensor(3, DNN_HALF, g->n, g->k, out_h(g), out_w(g)));
    set_float(filter, DNN_FILTER_ALPHA, 1);
    set_float(filter, DNN_FILTER_BETA, 0);
    CHECK_INT(api.finish(filter), DNN_NOT_SUPPORTED_DATA_TYPE);
    /* A virtual tensor that nobody makes; two tensors with one number. */
    for (int twice = 0; twice < 2; twice++) {
        cuda_dnn_descriptor one =
            pointwise_op(DNN_RELU, tensor(twice ? 3 : -1, DNN_HALF, 1, 4, 2, 2), NULL,
                         tensor(twice ? 3 : 4, DNN_HALF, 1, 4, 2, 2), 6);
        cuda_dnn_descriptor two = pointwise_op(DNN_RELU, tensor(4, DNN_HALF, 1, 4, 2, 2), NULL,
                                               tensor(4, DNN_FLOAT, 1, 4, 2, 2), 6);
        cuda_dnn_descriptor graph = make(DNN_GRAPH);
        set(graph, DNN_GRAPH_HANDLE, DNN_TYPE_HANDLE, 1, &handle);
        set(graph, DNN_GRAPH_OPS, DNN_TYPE_DESCRIPTOR, 1, twice ? &two : &one);
        CHECK_INT(api.finish(graph), twice ? DNN_DUPLICATED_ENTRIES : DNN_BAD_PARAM);
    }
    cuda_dnn_descriptor engine = make(DNN_ENGINE);
    int64_t number = ENGINES;
    set_one(engine, DNN_ENGINE_GRAPH, simple_graph(DNN_HALF));
    set(engine, DNN_ENGINE_NUMBER, DNN_TYPE_INT64, 1, &number);
    CHECK_INT(api.finish(engine), DNN_NOT_SUPPORTED);
    drop_all();
    end();
}

static void wrong_runs(void) {
    const geometry *g = &geometries[1];
    if (!begin()) {
        return;
    }
    arrays a = arrays_new(g);
    int64_t ids[3] = {1, 2, 3}, others[3] = {1, 2, 4};
    cuda_pointer pointers[3], shifted[3];
    for (int i = 0; i < 3; i++) {
        pointers[i] = emulated_put(&e, stored(DNN_HALF), a.values[i], a.counts[i]);
        shifted[i] = pointers[i];
    }
    shifted[1] += 2;
    cuda_dnn_descriptor graph = simple_graph(DNN_HALF);
    cuda_dnn_descriptor plan = plan_of(graph, TENSOR_ENGINE);
    CHECK_INT(api.execute(handle, plan, pack_of(others, pointers, 3, 0)), DNN_NULL_POINTER);
    CHECK_INT(api.execute(handle, plan, pack_of(ids, shifted, 3, 0)), DNN_MISALIGNED_POINTER);
    CHECK_INT(api.execute(handle, plan, plan), DNN_BAD_PARAM);
    CHECK_INT(api.execute(handle, make(DNN_PLAN), pack_of(ids, pointers, 3, 0)), DNN_NOT_FINALIZED);
    CHECK_INT(api.execute(handle, plan_of(graph, PLAIN_ENGINE), pack_of(ids, pointers, 3, 0)),
              DNN_NULL_POINTER); /* no workspace */
    for (int i = 0; i < 3; i++) {
        CHECK_INT(e.driver.memory_free(pointers[i]), CUDA_GOOD);
    }
    drop_all();
    end();
    arrays_free(&a);
}

static const check_test tests[] = {
    TEST(convolutions),       TEST(fused_chains),
    TEST(statistics),         TEST(engines_tell_what_they_are),
    TEST(plans_as_text),      TEST(captured_plans),
    TEST(tensor_cores_round), TEST(wrong_descriptors),
    TEST(wrong_graphs),       TEST(wrong_runs),
};

CHECK_MAIN(tests)
