/*
 * test_cuda_norm.c - kernels/norm.cu and norm_back.cu on a GPU, real or emulated, against batch
 * norm in float64: every variant of what follows a norm, each type, channel counts that are
 * multiples of 8 and others.
 */
#include "backend/cuda/emit/emit.h"
#include "base/mem.h"
#include "cuda_play.h"
#include "engine/drop.h"

#define EPSILON 1e-3f
#define SEED 7777
#define STEP 12
#define DROP_NODE 5

/* What is computed in one go: statistics, forward and both passes backward. */
typedef struct norm_case {
    cuda_type type;
    cuda_plane plane;
    int multiprocessors;
    stk_op act;
    float drop;
    bool mask;
    int added;     /* 0, 1 a value, 2 the norm of one */
    int dx_place;  /* 0 its own, 1 on g, 2 not wanted */
    int added_dx;  /* 0 none, 1 its own, 2 on g, 3 added to what is there */
    bool again;    /* the output once more */
    bool forget;   /* backward is not told what was added */
    double centre; /* of x */
} norm_case;

/* One norm's numbers: what goes in and comes out, and what is expected. */
typedef struct numbers {
    float *x, *weight, *bias, *running_mean, *running_var;
    float *coefs, *back, *weight_grad, *bias_grad, *dx;
    double *mean, *invstd;
    double *want_weight, *want_bias, *want_dx;
    float *new_mean, *new_var;
} numbers;

typedef struct played {
    norm_case c;
    size_t rows, channels, count, mask_bytes;
    numbers norm, other;
    float *g, *y, *again, *old;
    unsigned char *mask, *want_mask;
    double *before, *want_y;
    float *factor; /* per sample */
} played;

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

/* ---- numbers ---- */

static float *floats(size_t count) {
    return stk_mem_new(count, sizeof(float));
}

static double *doubles(size_t count) {
    return stk_mem_new(count, sizeof(double));
}

static void fill_numbers(const played *k, numbers *n, uint64_t seed) {
    cuda_type f32 = CUDA_TYPE_F32;
    double centre = k->c.centre;
    n->x = play_random_new(k->c.type, k->count, centre - 2, centre + 2, seed);
    n->weight = play_random_new(f32, k->channels, 0.5, 3, seed + 1);
    n->bias = play_random_new(f32, k->channels, -1, 2, seed + 2);
    n->running_mean = play_random_new(f32, k->channels, -1, 1, seed + 3);
    n->running_var = play_random_new(f32, k->channels, 0.5, 2, seed + 4);
    n->coefs = floats(4 * k->channels);
    n->back = floats(3 * k->channels);
    n->weight_grad = floats(k->channels);
    n->bias_grad = floats(k->channels);
    n->dx = floats(k->count);
    n->mean = doubles(k->channels);
    n->invstd = doubles(k->channels);
    n->want_weight = doubles(k->channels);
    n->want_bias = doubles(k->channels);
    n->want_dx = doubles(k->count);
    n->new_mean = floats(k->channels);
    n->new_var = floats(k->channels);
    memcpy(n->new_mean, n->running_mean, k->channels * sizeof(float));
    memcpy(n->new_var, n->running_var, k->channels * sizeof(float));
}

static void free_numbers(numbers *n) {
    void *all[] = {n->x,        n->weight, n->bias,    n->running_mean, n->running_var,
                   n->coefs,    n->back,   n->dx,      n->weight_grad,  n->bias_grad,
                   n->mean,     n->invstd, n->want_dx, n->want_weight,  n->want_bias,
                   n->new_mean, n->new_var};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        stk_mem_free(all[i]);
    }
}

static void fill_case(played *k, const norm_case *c) {
    memset(k, 0, sizeof *k);
    k->c = *c;
    k->rows = (size_t)c->plane.batch * (size_t)c->plane.pixels;
    k->channels = (size_t)c->plane.channels;
    k->count = k->rows * k->channels;
    k->mask_bytes = k->rows * ((k->channels + 7) / 8);
    fill_numbers(k, &k->norm, 1);
    fill_numbers(k, &k->other, 11);
    k->g = play_random_new(c->type, k->count, -1, 1.5, 21);
    k->old = play_random_new(c->type, k->count, -1, 1, 22);
    k->y = floats(k->count);
    k->again = floats(k->count);
    k->mask = stk_mem_new(1, k->mask_bytes);
    k->want_mask = stk_mem_new(1, k->mask_bytes);
    k->before = doubles(k->count);
    k->want_y = doubles(k->count);
    k->factor = floats((size_t)c->plane.batch);
    for (int i = 0; i < c->plane.batch; i++) {
        k->factor[i] =
            c->drop > 0 ? stk_drop_factor(c->drop, SEED, STEP, DROP_NODE, (uint64_t)i) : 1;
    }
}

static void free_case(played *k) {
    free_numbers(&k->norm);
    free_numbers(&k->other);
    stk_mem_free(k->g);
    stk_mem_free(k->old);
    stk_mem_free(k->y);
    stk_mem_free(k->again);
    stk_mem_free(k->mask);
    stk_mem_free(k->want_mask);
    stk_mem_free(k->before);
    stk_mem_free(k->want_y);
    stk_mem_free(k->factor);
}

/* ---- what is expected ---- */

static void expect_statistics(const played *k, numbers *n) {
    double rows = (double)k->rows;
    for (size_t c = 0; c < k->channels; c++) {
        double sum = 0;
        double squares = 0;
        for (size_t r = 0; r < k->rows; r++) {
            sum += n->x[r * k->channels + c];
        }
        n->mean[c] = sum / rows;
        for (size_t r = 0; r < k->rows; r++) {
            double d = n->x[r * k->channels + c] - n->mean[c];
            squares += d * d;
        }
        /* As they are kept: the backward pass knows no better mean than a float32. */
        n->mean[c] = (float)n->mean[c];
        n->invstd[c] = (float)(1 / sqrt(squares / rows + (double)EPSILON));
        n->new_mean[c] += (float)(0.1 * (n->mean[c] - n->running_mean[c]));
        n->new_var[c] += (float)(0.1 * (squares / (rows > 1 ? rows - 1 : 1) - n->running_var[c]));
    }
}

static double normalised(const numbers *n, size_t i, size_t c) {
    return (n->x[i] - n->mean[c]) * n->invstd[c];
}

static void expect_forward(played *k) {
    size_t groups = (k->channels + 7) / 8;
    memset(k->want_mask, 0, k->mask_bytes);
    for (size_t i = 0; i < k->count; i++) {
        size_t c = i % k->channels;
        size_t row = i / k->channels;
        const numbers *n = &k->norm;
        const numbers *o = &k->other;
        double factor = k->factor[row / (size_t)k->c.plane.pixels];
        double v = factor * (n->weight[c] * normalised(n, i, c) + n->bias[c]);
        v += k->c.added == 1   ? o->x[i]
             : k->c.added == 2 ? o->weight[c] * normalised(o, i, c) + o->bias[c]
                               : 0;
        k->before[i] = v;
        k->want_y[i] = act_of(k->c.act, v);
        if (slope_of(k->c.act, v) != 0) {
            k->want_mask[row * groups + c / 8] |= (unsigned char)(1 << c % 8);
        }
    }
}

/* dx of one norm, from dn, which want_dx holds; what it makes of dx without one stays. */
static void expect_norm_back(const played *k, numbers *n) {
    double rows = (double)k->rows;
    for (size_t i = 0; i < k->count; i++) {
        size_t c = i % k->channels;
        n->want_bias[c] += n->want_dx[i];
        n->want_weight[c] += n->want_dx[i] * normalised(n, i, c);
    }
    for (size_t i = 0; i < k->count; i++) {
        size_t c = i % k->channels;
        double rest = n->want_bias[c] / rows + normalised(n, i, c) * n->want_weight[c] / rows;
        n->want_dx[i] = n->weight[c] * n->invstd[c] * (n->want_dx[i] - rest);
    }
}

static void expect_backward(played *k) {
    for (size_t i = 0; i < k->count; i++) {
        double sg = slope_of(k->c.act, k->before[i]) * k->g[i];
        double factor = k->factor[i / k->channels / (size_t)k->c.plane.pixels];
        k->norm.want_dx[i] = factor * sg;
        k->other.want_dx[i] = sg + (k->c.added_dx == 3 ? k->old[i] : 0);
    }
    expect_norm_back(k, &k->norm);
    if (k->c.added == 2) {
        expect_norm_back(k, &k->other);
    }
}

/* ---- running it ---- */

/* Bytes that a vector per channel takes in fixed memory. */
static size_t pitch(const played *k) {
    return (k->channels * sizeof(float) + CUDA_ALIGN - 1) / CUDA_ALIGN * CUDA_ALIGN;
}

static cuda_norm place_norm(cuda_program *p, const played *k, size_t number) {
    size_t at = pitch(k);
    size_t value = number * 4 * at;
    size_t fresh = number * 2 * at;
    return (cuda_norm){.weight = cuda_fixed_at(CUDA_FIXED_VALUES, value),
                       .bias = cuda_fixed_at(CUDA_FIXED_VALUES, value + at),
                       .running_mean = cuda_fixed_at(CUDA_FIXED_VALUES, value + 2 * at),
                       .running_var = cuda_fixed_at(CUDA_FIXED_VALUES, value + 3 * at),
                       .weight_grad = cuda_fixed_at(CUDA_FIXED_FRESH, fresh),
                       .bias_grad = cuda_fixed_at(CUDA_FIXED_FRESH, fresh + at),
                       .epsilon = EPSILON,
                       .coefs = stk_cuda_buffer(p, 4 * k->channels * sizeof(float)),
                       .back = stk_cuda_buffer(p, 3 * k->channels * sizeof(float))};
}

/* What a norm reads and writes; `backward`: its gradients too. */
static int norm_data(play_data *data, const played *k, const cuda_norm *norm, numbers *n,
                     bool backward) {
    size_t count = k->channels;
    int used = 0;
    data[used++] = play_in(norm->weight, PLAY_FLOAT, count, n->weight);
    data[used++] = play_in(norm->bias, PLAY_FLOAT, count, n->bias);
    data[used++] = play_both(norm->running_mean, PLAY_FLOAT, count, n->running_mean);
    data[used++] = play_both(norm->running_var, PLAY_FLOAT, count, n->running_var);
    data[used++] = play_out(norm->coefs, PLAY_FLOAT, 4 * count, n->coefs);
    if (backward) {
        data[used++] = play_out(norm->back, PLAY_FLOAT, 3 * count, n->back);
        data[used++] = play_out(norm->weight_grad, PLAY_FLOAT, count, n->weight_grad);
        data[used++] = play_out(norm->bias_grad, PLAY_FLOAT, count, n->bias_grad);
    }
    return used;
}

/* Where everything of a case lies. */
typedef struct places {
    cuda_norm norm, other;
    cuda_added added;
    cuda_ref x, y, g, again, mask, dx;
} places;

static places lay_places(cuda_program *p, const played *k) {
    const norm_case *c = &k->c;
    size_t bytes = k->count * cuda_type_bytes(c->type);
    cuda_ref none = cuda_nothing();
    places at = {.norm = place_norm(p, k, 0), .other = place_norm(p, k, 1)};
    at.x = stk_cuda_buffer(p, bytes);
    at.y = stk_cuda_buffer(p, bytes);
    at.g = stk_cuda_buffer(p, bytes);
    at.again = c->again ? stk_cuda_buffer(p, bytes) : none;
    at.mask = c->mask ? stk_cuda_buffer(p, k->mask_bytes) : none;
    at.dx = c->dx_place == 0 ? stk_cuda_buffer(p, bytes) : c->dx_place == 1 ? at.g : none;
    at.added = (cuda_added){.x = none, .dx = none, .accumulate = c->added_dx == 3};
    if (c->added > 0) {
        at.added.x = stk_cuda_buffer(p, bytes);
        at.added.dx = c->added_dx == 0 ? none : c->added_dx == 2 ? at.g : stk_cuda_buffer(p, bytes);
    }
    return at;
}

/* What goes in and comes out; returns how many. */
static int case_data(play_data *data, played *k, const places *at,
                     const cuda_step_constants *constants) {
    const norm_case *c = &k->c;
    float *on_g = c->dx_place == 1 ? k->norm.dx : c->added_dx == 2 ? k->other.dx : NULL;
    int used = norm_data(data, k, &at->norm, &k->norm, true);
    data[used++] =
        play_in(cuda_fixed_at(CUDA_FIXED_CONSTANTS, 0), PLAY_BYTES, sizeof *constants, constants);
    data[used++] = play_in(at->x, PLAY_T, k->count, k->norm.x);
    data[used++] = play_out(at->y, PLAY_T, k->count, k->y);
    data[used++] = (play_data){at->g, PLAY_T, k->count, k->g, on_g};
    if (c->dx_place == 0) {
        data[used++] = play_out(at->dx, PLAY_T, k->count, k->norm.dx);
    }
    if (c->again) {
        data[used++] = play_out(at->again, PLAY_T, k->count, k->again);
    }
    if (c->mask) {
        data[used++] = play_out(at->mask, PLAY_BYTES, k->mask_bytes, k->mask);
    }
    if (c->added > 0) {
        data[used++] = play_in(at->added.x, PLAY_T, k->count, k->other.x);
    }
    if (c->added_dx == 1 || c->added_dx == 3) {
        const float *old = c->added_dx == 3 ? k->old : NULL;
        data[used++] = (play_data){at->added.dx, PLAY_T, k->count, old, k->other.dx};
    }
    if (c->added == 2) {
        used += norm_data(data + used, k, &at->other, &k->other, true);
    }
    return used;
}

static bool run_case(play_device *play, played *k) {
    const norm_case *c = &k->c;
    cuda_program p;
    stk_cuda_program_begin(&p, c->type, false, c->multiprocessors);
    places at = lay_places(&p, k);
    at.added.norm = c->added == 2 ? &at.other : NULL;
    cuda_tail tail = {.act = c->act, .drop_node = DROP_NODE, .drop_rate = c->drop};
    cuda_step_constants constants = {.seed = SEED, .step = STEP};
    play_data data[40];
    int used = case_data(data, k, &at, &constants);
    stk_cuda_norm_stats(&p, c->plane, at.x, &at.norm, cuda_nothing());
    if (c->added == 2) {
        stk_cuda_norm_stats(&p, c->plane, at.added.x, &at.other, cuda_nothing());
    }
    stk_cuda_norm_apply(&p, c->plane, at.x, &at.norm, &tail, &at.added, at.y, at.mask);
    if (c->forget) {
        at.added.x = cuda_nothing();
    }
    const cuda_norm_back back = {.plane = c->plane,
                                 .g = at.g,
                                 .x = at.x,
                                 .norm = &at.norm,
                                 .tail = tail,
                                 .added = at.added,
                                 .mask = at.mask,
                                 .dx = at.dx};
    stk_cuda_norm_reduce(&p, &back, at.again, cuda_nothing());
    stk_cuda_norm_backward(&p, &back);
    bool good = play_run(play, &p, data, used);
    stk_cuda_program_free(&p);
    return good;
}

/* ---- comparing ---- */

/* |got - wanted| / |wanted| as vectors, where `size` is added to the length of wanted. */
static void near_all(const norm_case *c, const char *what, const float *got, const double *wanted,
                     size_t count, double size, double most) {
    double apart = 0;
    double length = size * size;
    for (size_t i = 0; i < count; i++) {
        double d = got[i] - wanted[i];
        apart += d * d;
        length += wanted[i] * wanted[i];
    }
    double relative = sqrt(apart / length);
    if (!(relative <= most)) {
        CHECK_FAIL("type %d, %d x %d x %d, act %d, drop %g, mask %d, added %d, places %d %d: %s is "
                   "off by %.3g of its size, at most %.3g allowed",
                   (int)c->type, c->plane.batch, c->plane.pixels, c->plane.channels, (int)c->act,
                   (double)c->drop, c->mask, c->added, c->dx_place, c->added_dx, what, relative,
                   most);
    }
}

static void check_statistics(const played *k, const numbers *n) {
    size_t count = k->channels;
    double size = sqrt((double)count); /* a mean may be near 0: a deviation is about 1 */
    double *wanted = doubles(4 * count);
    double *moved = doubles(2 * count);
    for (size_t c = 0; c < count; c++) {
        double scale = n->weight[c] * n->invstd[c];
        wanted[c] = n->mean[c];
        wanted[count + c] = n->invstd[c];
        wanted[2 * count + c] = scale;
        wanted[3 * count + c] = n->bias[c] - n->mean[c] * scale;
        moved[c] = n->new_mean[c];
        moved[count + c] = n->new_var[c];
    }
    static const char *const names[] = {"mean", "1 / deviation", "scale", "shift"};
    for (size_t i = 0; i < 4; i++) {
        near_all(&k->c, names[i], n->coefs + i * count, wanted + i * count, count, size, 1e-6);
    }
    near_all(&k->c, "running mean", n->running_mean, moved, count, size, 1e-6);
    near_all(&k->c, "running variance", n->running_var, moved + count, count, size, 1e-6);
    stk_mem_free(wanted);
    stk_mem_free(moved);
}

/* How long the gradient is before what a norm takes away from it, which may be nearly all. */
static double whole_length(const played *k, const numbers *n) {
    double length = 0;
    for (size_t i = 0; i < k->count; i++) {
        size_t c = i % k->channels;
        double v = n->weight[c] * n->invstd[c] * k->g[i];
        length += v * v;
    }
    return sqrt(length);
}

/*
 * Where the mean is large beside the deviation, scale * x + shift has so many digits less; backward
 * reads it where an activation's slope comes from it.
 */
static double digits_lost(const norm_case *c) {
    return c->centre > 1 && c->act != STK_OP_COUNT ? 20 : 1;
}

static void check_norm_back(const played *k, const numbers *n, bool with_dx, double most) {
    double rows = sqrt((double)k->rows * (double)k->channels);
    double loss = digits_lost(&k->c);
    near_all(&k->c, "gradient of the weight", n->weight_grad, n->want_weight, k->channels, rows,
             loss * 1e-6);
    near_all(&k->c, "gradient of the bias", n->bias_grad, n->want_bias, k->channels, rows,
             loss * 1e-6);
    if (with_dx) {
        near_all(&k->c, "dx", n->dx, n->want_dx, k->count, whole_length(k, n), loss * most);
    }
}

static void check_case(play_device *play, const norm_case *c) {
    static const double most[] = {1e-5, 1e-3, 8e-3};
    played k;
    fill_case(&k, c);
    expect_statistics(&k, &k.norm);
    expect_statistics(&k, &k.other);
    expect_forward(&k);
    expect_backward(&k);
    if (run_case(play, &k)) {
        check_statistics(&k, &k.norm);
        near_all(c, "y", k.y, k.want_y, k.count, 1e-3, (c->centre > 1 ? 10 : 1) * most[c->type]);
        check_norm_back(&k, &k.norm, c->dx_place != 2, most[c->type]);
        if (c->mask && memcmp(k.mask, k.want_mask, k.mask_bytes) != 0) {
            CHECK_FAIL("type %d, %d channels: the mask is wrong", (int)c->type, c->plane.channels);
        }
        if (c->again && memcmp(k.again, k.y, k.count * sizeof *k.y) != 0) {
            CHECK_FAIL("type %d, %d channels: the output once more is another", (int)c->type,
                       c->plane.channels);
        }
        if (c->added == 2) {
            check_statistics(&k, &k.other);
            check_norm_back(&k, &k.other, c->added_dx > 0, most[c->type]);
        } else if (c->added == 1 && c->added_dx > 0) {
            near_all(c, "gradient of what is added", k.other.dx, k.other.want_dx, k.count, 0,
                     most[c->type]);
        }
    }
    free_case(&k);
}

/* ---- tests ---- */

/* Each way in which a chain can end, as far as backward tells them apart. */
static const norm_case ways[] = {
    {.act = STK_OP_COUNT},
    {.act = STK_OP_RELU, .dx_place = 1},
    {.act = STK_OP_RELU, .mask = true},
    {.act = STK_OP_RELU6, .mask = true, .again = true},
    {.act = STK_OP_RELU6, .dx_place = 1, .again = true},
    {.act = STK_OP_SILU, .dx_place = 1},
    {.act = STK_OP_SILU, .again = true, .drop = 0.4f},
    {.act = STK_OP_COUNT, .added = 1, .drop = 0.5f, .added_dx = 3, .forget = true, .dx_place = 1},
    {.act = STK_OP_COUNT, .added = 1, .drop = 0.5f, .added_dx = 2},
    {.act = STK_OP_RELU, .mask = true, .added = 1, .added_dx = 2, .forget = true},
    {.act = STK_OP_RELU, .mask = true, .added = 1, .added_dx = 1, .dx_place = 1},
    {.act = STK_OP_RELU, .added = 1, .added_dx = 3},
    {.act = STK_OP_RELU, .mask = true, .added = 1, .added_dx = 1, .dx_place = 2, .forget = true},
    {.act = STK_OP_RELU, .mask = true, .added = 2, .added_dx = 1, .dx_place = 1},
    {.act = STK_OP_RELU, .mask = true, .added = 2, .added_dx = 2},
    {.act = STK_OP_RELU, .mask = true, .added = 2, .added_dx = 1, .drop = 0.3f},
    {.act = STK_OP_SILU, .added = 2, .added_dx = 1, .drop = 0.3f, .dx_place = 1},
    {.act = STK_OP_SILU, .added = 1, .added_dx = 1},
    {.act = STK_OP_RELU6, .added = 2, .added_dx = 0},
    {.act = STK_OP_COUNT, .added = 2, .added_dx = 2, .dx_place = 2},
};

#define WAYS (sizeof ways / sizeof *ways)

static norm_case way(size_t number, cuda_type type, int batch, int pixels, int channels) {
    norm_case c = ways[number % WAYS];
    c.type = type;
    c.plane = (cuda_plane){batch, pixels, channels};
    c.multiprocessors = 5;
    return c;
}

static void every_way(void) {
    play_device play;
    if (!play_open(&play)) {
        return;
    }
    for (size_t i = 0; i < WAYS; i++) {
        norm_case c = way(i, CUDA_TYPE_F16, 7, 11, 24);
        check_case(&play, &c);
    }
    play_close(&play);
}

static void every_way_of_odd_channels(void) {
    play_device play;
    if (!play_open(&play)) {
        return;
    }
    for (size_t i = 0; i < WAYS; i += check_is_full() ? 1 : 3) {
        norm_case c = way(i, CUDA_TYPE_F32, 5, 9, 11);
        check_case(&play, &c);
    }
    play_close(&play);
}

/* Types and channel counts, each with another way. */
static void types_and_channels(void) {
    static const int channels[] = {1, 3, 8, 64, 104, 336, 2048};
    play_device play;
    if (!play_open(&play)) {
        return;
    }
    size_t next = 1;
    for (size_t i = 0; i < sizeof channels / sizeof *channels; i++) {
        for (int type = 0; type < 3; type++) {
            norm_case c = way(next, (cuda_type)type, 3, channels[i] > 1000 ? 9 : 49, channels[i]);
            if (play_takes(i, c.type)) {
                check_case(&play, &c);
            }
            next += 7;
        }
    }
    play_close(&play);
}

/* Rows from one to more than all blocks take in a round, on few processors and many. */
static void row_counts(void) {
    static const int rows[][3] = {{1, 1, 64},   {1, 2, 64},   {2, 1, 8},     {1, 257, 256},
                                  {3, 700, 64}, {1, 5000, 8}, {2, 150, 1024}};
    play_device play;
    if (!play_open(&play)) {
        return;
    }
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        for (size_t many = 0; many < 2; many++) {
            if (many != i % 2 && !check_is_full()) {
                continue;
            }
            norm_case c = way(many ? 9 : 5, CUDA_TYPE_F16, rows[i][0], rows[i][1], rows[i][2]);
            c.multiprocessors = many ? 132 : 1;
            check_case(&play, &c);
        }
    }
    play_close(&play);
}

/* A mean of 1000 and a deviation of 1: sums of squares alone would lose every digit. */
static void large_mean(void) {
    play_device play;
    if (!play_open(&play)) {
        return;
    }
    norm_case c = way(0, CUDA_TYPE_F32, 6, 100, 64);
    c.centre = 1000;
    check_case(&play, &c);
    c = way(5, CUDA_TYPE_F32, 6, 100, 13);
    c.centre = 1000;
    check_case(&play, &c);
    play_close(&play);
}

/* y lies on x: the same numbers as where it has a place of its own. */
static void in_place(void) {
    play_device play;
    if (!play_open(&play)) {
        return;
    }
    for (int channels = 24; channels >= 13; channels -= 11) {
        norm_case c = way(9, CUDA_TYPE_F16, 3, 50, channels);
        played k;
        fill_case(&k, &c);
        cuda_program p;
        stk_cuda_program_begin(&p, c.type, false, 3);
        size_t bytes = k.count * cuda_type_bytes(c.type);
        cuda_norm norm = place_norm(&p, &k, 0);
        cuda_ref x = stk_cuda_buffer(&p, bytes);
        cuda_ref y = stk_cuda_buffer(&p, bytes);
        cuda_ref rest = stk_cuda_buffer(&p, bytes);
        cuda_ref mask = stk_cuda_buffer(&p, k.mask_bytes);
        cuda_tail tail = {.act = STK_OP_RELU};
        cuda_added added = {.x = rest, .dx = cuda_nothing()};
        cuda_step_constants constants = {0};
        play_data data[12];
        int used = norm_data(data, &k, &norm, &k.norm, false);
        float *placed = floats(k.count);
        data[used++] = (play_data){x, PLAY_T, k.count, k.norm.x, placed};
        data[used++] = play_out(y, PLAY_T, k.count, k.y);
        data[used++] = play_in(rest, PLAY_T, k.count, k.other.x);
        data[used++] = play_in(cuda_fixed_at(CUDA_FIXED_CONSTANTS, 0), PLAY_BYTES, sizeof constants,
                               &constants);
        stk_cuda_norm_stats(&p, c.plane, x, &norm, cuda_nothing());
        stk_cuda_norm_apply(&p, c.plane, x, &norm, &tail, &added, y, mask);
        stk_cuda_norm_apply(&p, c.plane, x, &norm, &tail, &added, x, cuda_nothing());
        if (play_run(&play, &p, data, used)) {
            CHECK(memcmp(placed, k.y, k.count * sizeof *placed) == 0);
        }
        stk_mem_free(placed);
        stk_cuda_program_free(&p);
        free_case(&k);
    }
    play_close(&play);
}

/* Coefficients from the running statistics. */
static void running_statistics(void) {
    play_device play;
    if (!play_open(&play)) {
        return;
    }
    norm_case c = way(0, CUDA_TYPE_BF16, 1, 1, 131);
    played k;
    fill_case(&k, &c);
    cuda_program p;
    stk_cuda_program_begin(&p, c.type, false, 3);
    cuda_norm norm = place_norm(&p, &k, 0);
    play_data data[12];
    int used = norm_data(data, &k, &norm, &k.norm, false);
    stk_cuda_norm_running(&p, 131, &norm);
    if (play_run(&play, &p, data, used)) {
        for (size_t i = 0; i < 131; i++) {
            const numbers *n = &k.norm;
            double invstd = 1 / sqrt(n->new_var[i] + (double)EPSILON);
            double scale = n->weight[i] * invstd;
            CHECK(n->coefs[i] == n->new_mean[i]);
            CHECK(fabs(n->coefs[131 + i] / invstd - 1) < 1e-7);
            CHECK(fabs(n->coefs[262 + i] / scale - 1) < 1e-7);
            CHECK(fabs(n->coefs[393 + i] - (n->bias[i] - n->new_mean[i] * scale)) < 1e-6);
        }
        CHECK(memcmp(k.norm.new_mean, k.norm.running_mean, 131 * sizeof(float)) == 0);
        CHECK(memcmp(k.norm.new_var, k.norm.running_var, 131 * sizeof(float)) == 0);
    }
    stk_cuda_program_free(&p);
    free_case(&k);
    play_close(&play);
}

static const check_test tests[] = {
    TEST(every_way),          TEST(every_way_of_odd_channels),
    TEST(types_and_channels), TEST(row_counts),
    TEST(large_mean),         TEST(in_place),
    TEST(running_statistics),
};

CHECK_MAIN(tests)
