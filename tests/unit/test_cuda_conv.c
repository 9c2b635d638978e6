/*
 * test_cuda_conv.c - convolutions of the CUDA backend against sums in plain C: every kind and type,
 * what follows them, odd sizes, our own kernels, and what is kept on disk.
 */
#include "cuda_play.h"

#include "backend/cuda/convolution/convolutions.h"
#include "backend/cuda/convolution/candidates.h"
#include "base/files/file.h"

/* ---- a device with all libraries ---- */

typedef struct bench {
    play_device play;
    cuda_libraries libraries;
    cuda_kernels *kernels;
    cuda_store *store; /* NULL: nothing is kept */
    cuda_convs *convs;
    cuda_convs_config config;
    cuda_pointer workspace;
} bench;

static bool good(stk_status status, const stk_error *err) {
    if (status != STK_OK) {
        CHECK_FAIL("%s", err->message);
    }
    return status == STK_OK;
}

static void bench_close(bench *b) {
    stk_cuda_convs_close(b->convs);
    stk_cuda_kernels_close(b->kernels);
    stk_cuda_store_close(b->store);
    if (b->workspace != 0) {
        (void)b->play.driver->memory_free(b->workspace);
    }
    stk_cuda_libraries_close(&b->libraries);
    play_close(&b->play);
}

static bool never(void *user, double next_s) {
    (void)next_s;
    return *(const bool *)user;
}

/* false: skipped or failed. `folder` NULL: nothing is kept. */
static bool bench_open(bench *b, const char *folder, bool deterministic, bool *halt) {
    stk_error err = {0};
    memset(b, 0, sizeof *b);
    if (!play_open(&b->play)) {
        return false;
    }
    if (b->play.emulated) {
        (void)setenv("STOKER_CUDA_LIBS", play_emulated_folder(), 1);
    }
    if (stk_cuda_libraries_open(&b->libraries, &err) != STK_OK) {
        static char reason[sizeof err.message];
        memcpy(reason, err.message, sizeof reason);
        check_skip_reason = reason;
        play_close(&b->play);
        return false;
    }
    bool done = folder == NULL ||
                good(stk_cuda_store_open(&b->store, folder, "machine of a test", &err), &err);
    cuda_kernels_config kernels = {.driver = b->play.driver,
                                   .nvrtc = &b->libraries.nvrtc,
                                   .store = b->store,
                                   .major = b->play.major,
                                   .minor = b->play.minor,
                                   .threads = 2};
    done = done && good(stk_cuda_kernels_open(&b->kernels, &kernels, &err), &err);
    b->config = (cuda_convs_config){.driver = b->play.driver,
                                    .libraries = &b->libraries,
                                    .kernels = b->kernels,
                                    .store = b->store,
                                    .stream = b->play.stream,
                                    .context = b->play.context,
                                    .threads = 2,
                                    .multiprocessors = b->play.multiprocessors,
                                    .major = b->play.major,
                                    .deterministic = deterministic,
                                    .halted = halt != NULL ? never : NULL,
                                    .user = halt};
    done = done && good(stk_cuda_convs_open(&b->convs, &b->config, &err), &err) &&
           PLAY_GOOD(&b->play, memory_take(&b->workspace, CUDA_WORKSPACE_BYTES));
    if (!done) {
        bench_close(b);
    }
    return done;
}

/* ---- one convolution with its numbers ---- */

typedef struct field {
    float *values;
    size_t count;
    cuda_type type;
    cuda_pointer place;
} field;

typedef struct trial {
    cuda_conv_shape shape;
    field x, w, y, bias, added, in_norm;
    float *wanted;
    field *out; /* which of them is written */
    cuda_conv_call call;
} trial;

static bool send(bench *b, const field *f) {
    size_t bytes = f->count * cuda_type_bytes(f->type);
    void *packed = stk_mem_new(bytes, 1);
    play_pack(f->type, f->values, packed, f->count);
    bool done = PLAY_GOOD(&b->play, copy_in(f->place, packed, bytes, b->play.stream)) &&
                PLAY_GOOD(&b->play, stream_wait(b->play.stream));
    stk_mem_free(packed);
    return done;
}

static void fetch_into(bench *b, const field *f, float *values) {
    size_t bytes = f->count * cuda_type_bytes(f->type);
    void *packed = stk_mem_new(bytes, 1);
    CHECK(PLAY_GOOD(&b->play, copy_out(packed, f->place, bytes, b->play.stream)) &&
          PLAY_GOOD(&b->play, stream_wait(b->play.stream)));
    play_unpack(f->type, packed, values, f->count);
    stk_mem_free(packed);
}

static void field_new(bench *b, field *f, cuda_type type, size_t count, uint64_t seed) {
    *f = (field){.count = count, .type = type};
    f->values = play_random_new(type, count, -1, 1, seed);
    CHECK(PLAY_GOOD(&b->play, memory_take(&f->place, count * cuda_type_bytes(type))));
    CHECK(send(b, f));
}

static double act_of(stk_op act, double v) {
    return act == STK_OP_RELU      ? fmax(v, 0)
           : act == STK_OP_RELU6   ? fmin(fmax(v, 0), 6)
           : act == STK_OP_SILU    ? v / (1 + exp(-v))
           : act == STK_OP_SIGMOID ? 1 / (1 + exp(-v))
                                   : v;
}

/* What the convolution reads of x: the number itself, or its norm's ReLU. */
static double read_x(const trial *t, size_t at) {
    size_t channels = (size_t)t->shape.channels;
    const float *vectors = t->in_norm.values;
    double v = (double)t->x.values[at];
    return !t->shape.in_norm ? v
                             : fmax(0, (double)vectors[at % channels] * v +
                                           (double)vectors[channels + at % channels]);
}

/* What every product of an x, a w and a y belongs to; sums go where the kind wants them. */
static void sum_up(trial *t) {
    const cuda_conv_shape *s = &t->shape;
    double *sums = stk_mem_new(t->out->count, sizeof *sums);
    for (int n = 0; n < s->batch; n++) {
        for (int at = 0; at < s->out_height * s->out_width * s->filters; at++) {
            int k = at % s->filters, q = at / s->filters % s->out_width;
            int p = at / s->filters / s->out_width;
            size_t y = (size_t)n * (size_t)(s->out_height * s->out_width * s->filters) + (size_t)at;
            for (int tap = 0; tap < s->kernel * s->kernel; tap++) {
                int row = p * s->stride - s->pad + tap / s->kernel;
                int column = q * s->stride - s->pad + tap % s->kernel;
                if (row < 0 || row >= s->height || column < 0 || column >= s->width) {
                    continue;
                }
                for (int c = 0; c < s->channels; c++) {
                    size_t x =
                        (size_t)(((n * s->height + row) * s->width + column) * s->channels + c);
                    size_t w = (size_t)((k * s->kernel * s->kernel + tap) * s->channels + c);
                    double xv = read_x(t, x), wv = (double)t->w.values[w];
                    double yv = (double)t->y.values[y];
                    if (s->kind == CUDA_CONV_FORWARD) {
                        sums[y] += xv * wv;
                    } else if (s->kind == CUDA_CONV_DATA) {
                        sums[x] += yv * wv;
                    } else {
                        sums[w] += yv * xv;
                    }
                }
            }
        }
    }
    for (size_t i = 0; i < t->out->count; i++) {
        double v = sums[i] + (s->accumulate ? (double)t->x.values[i] : 0);
        v += s->added ? (double)t->added.values[i] : 0;
        v += s->bias ? (double)t->bias.values[i % (size_t)s->filters] : 0;
        t->wanted[i] = (float)act_of(s->act, v);
    }
    stk_mem_free(sums);
}

static void trial_new(bench *b, trial *t, const cuda_conv_shape *shape) {
    const cuda_conv_shape *s = &t->shape;
    memset(t, 0, sizeof *t);
    t->shape = *shape;
    size_t pixels = (size_t)s->batch * (size_t)s->height * (size_t)s->width;
    size_t outs = (size_t)s->batch * (size_t)s->out_height * (size_t)s->out_width;
    size_t taps = (size_t)s->kernel * (size_t)s->kernel;
    field_new(b, &t->x, s->type, pixels * (size_t)s->channels, 1);
    field_new(b, &t->w, s->type, (size_t)s->filters * taps * (size_t)s->channels, 2);
    field_new(b, &t->y, s->type, outs * (size_t)s->filters, 3);
    field_new(b, &t->bias, CUDA_TYPE_F32, (size_t)s->filters, 4);
    field_new(b, &t->added, s->type, t->y.count, 5);
    field_new(b, &t->in_norm, s->type, 2 * (size_t)s->channels, 6);
    t->out = s->kind == CUDA_CONV_FORWARD ? &t->y : s->kind == CUDA_CONV_DATA ? &t->x : &t->w;
    t->wanted = stk_mem_new(t->out->count, sizeof *t->wanted);
    sum_up(t);
    t->call = (cuda_conv_call){.shape = &t->shape,
                               .x = t->x.place,
                               .w = t->w.place,
                               .y = t->y.place,
                               .bias = s->bias ? t->bias.place : 0,
                               .added = s->added ? t->added.place : 0,
                               .in_norm = s->in_norm ? t->in_norm.place : 0,
                               .workspace = b->workspace};
}

static void trial_free(bench *b, trial *t) {
    field *fields[] = {&t->x, &t->w, &t->y, &t->bias, &t->added, &t->in_norm};
    for (size_t i = 0; i < sizeof fields / sizeof fields[0]; i++) {
        (void)b->play.driver->memory_free(fields[i]->place);
        stk_mem_free(fields[i]->values);
    }
    stk_mem_free(t->wanted);
}

/* What is written becomes NaNs, unless it is added to. */
static void spoil(bench *b, trial *t) {
    if (t->shape.accumulate) {
        CHECK(send(b, t->out));
    } else {
        CHECK(PLAY_GOOD(&b->play,
                        fill(t->out->place, 0xFF, t->out->count * cuda_type_bytes(t->out->type),
                             b->play.stream)));
    }
}

static double room_of(const cuda_conv_shape *s) {
    return s->type == CUDA_TYPE_BF16  ? 8e-3
           : s->type == CUDA_TYPE_F16 ? 1e-3
           : s->strict                ? 2e-6
                                      : 1e-3;
}

static void name_trial(const trial *t, char *name, size_t room) {
    const cuda_conv_shape *s = &t->shape;
    snprintf(name, room,
             "kind %d type %d strict %d, %d x %d x %d x %d, %d filters of %d, stride %d, pad %d, "
             "accumulate %d, bias %d, added %d, act %d",
             s->kind, s->type, s->strict, s->batch, s->height, s->width, s->channels, s->filters,
             s->kernel, s->stride, s->pad, s->accumulate, s->bias, s->added, s->act);
}

static void compare(bench *b, trial *t) {
    char name[240];
    float *got = stk_mem_new(t->out->count, sizeof *got);
    name_trial(t, name, sizeof name);
    fetch_into(b, t->out, got);
    play_check_norm(name, got, t->wanted, t->out->count, room_of(&t->shape));
    stk_mem_free(got);
}

/* Makes, runs and compares one. */
static void check_one(bench *b, const cuda_conv_shape *shape) {
    trial t;
    stk_error err = {0};
    trial_new(b, &t, shape);
    if (good(stk_cuda_convs_make(b->convs, &t.call, 1, NULL, NULL, &err), &err)) {
        spoil(b, &t);
        CHECK(good(stk_cuda_convs_run(b->convs, &t.call, &err), &err));
        compare(b, &t);
    }
    trial_free(b, &t);
}

/* ---- shapes ---- */

/* batch, height, width, channels, out_height, out_width, filters, kernel, stride, pad */
static const int sizes[][10] = {
    {2, 8, 8, 16, 8, 8, 24, 3, 1, 1}, /* the usual */
    {3, 7, 5, 8, 4, 3, 16, 3, 2, 1},  /* stride, odd sizes */
    {2, 9, 9, 8, 5, 5, 16, 1, 2, 0},  /* a shortcut */
    {2, 8, 8, 8, 4, 4, 8, 1, 2, 0},   /* whose last row is not read */
    {2, 6, 7, 16, 6, 7, 40, 1, 1, 0}, /* a product */
    {5, 1, 1, 24, 1, 1, 10, 1, 1, 0}, /* a linear layer */
    {2, 12, 12, 4, 6, 6, 8, 7, 2, 3}, /* the stem of ResNet */
    {2, 10, 10, 4, 5, 5, 8, 3, 2, 0}, /* padded below and right only */
    {1, 5, 6, 5, 3, 3, 7, 3, 2, 1},   /* odd channels */
    {1, 8, 8, 3, 4, 4, 5, 5, 2, 1},   /* more padding behind than before */
    {2, 1, 1, 16, 1, 1, 8, 3, 1, 1},  /* one pixel */
};

enum { SIZES = sizeof sizes / sizeof sizes[0] };

static cuda_conv_shape shape_of(int which, cuda_conv_kind kind, cuda_type type) {
    const int *v = sizes[which];
    return (cuda_conv_shape){.kind = kind,
                             .type = type,
                             .strict = type == CUDA_TYPE_F32,
                             .batch = v[0],
                             .height = v[1],
                             .width = v[2],
                             .channels = v[3],
                             .out_height = v[4],
                             .out_width = v[5],
                             .filters = v[6],
                             .kernel = v[7],
                             .stride = v[8],
                             .pad = v[9],
                             .act = STK_OP_COUNT};
}

static void every_kind_type_and_size(void) {
    bench b;
    if (!bench_open(&b, NULL, false, NULL)) {
        return;
    }
    for (int i = 0; i < SIZES * 9; i++) {
        cuda_conv_shape shape = shape_of(i / 9, (cuda_conv_kind)(i % 3), (cuda_type)(i / 3 % 3));
        check_one(&b, &shape);
        if (shape.kind == CUDA_CONV_DATA) {
            shape.accumulate = true;
            check_one(&b, &shape);
        }
    }
    cuda_conv_shape tf32 = shape_of(0, CUDA_CONV_FORWARD, CUDA_TYPE_F32);
    tf32.strict = false;
    check_one(&b, &tf32);
    int timed = 0, loaded = 0;
    stk_cuda_convs_counts(b.convs, &timed, &loaded);
    CHECK(timed > SIZES * 9);
    CHECK_INT(loaded, 0);
    bench_close(&b);
}

static void what_follows_a_convolution(void) {
    static const stk_op acts[] = {STK_OP_COUNT, STK_OP_RELU, STK_OP_RELU6, STK_OP_SILU,
                                  STK_OP_SIGMOID};
    static const int which[] = {0, 4, 8};
    bench b;
    if (!bench_open(&b, NULL, false, NULL)) {
        return;
    }
    for (int i = 0; i < 5 * 4 * 3; i++) { /* each activation with all that may stand before it */
        cuda_conv_shape shape =
            shape_of(which[(i + i / 3) % 3], CUDA_CONV_FORWARD, (cuda_type)(i % 3));
        shape.act = acts[i / 3 % 5];
        shape.bias = i / 15 % 2 == 1;
        shape.added = i / 30 == 1;
        check_one(&b, &shape);
    }
    bench_close(&b);
}

static void runs_in_a_captured_graph(void) {
    bench b;
    if (!bench_open(&b, NULL, false, NULL)) {
        return;
    }
    const cuda_driver *driver = b.play.driver;
    for (int i = 0; i < 3; i++) {
        cuda_conv_shape shape = shape_of(i == 0 ? 4 : 0, (cuda_conv_kind)i, CUDA_TYPE_F16);
        cuda_graph graph = NULL;
        cuda_graph_exec exec = NULL;
        trial t;
        stk_error err = {0};
        shape.bias = i == CUDA_CONV_FORWARD;
        shape.act = i == CUDA_CONV_FORWARD ? STK_OP_SILU : STK_OP_COUNT;
        trial_new(&b, &t, &shape);
        CHECK(good(stk_cuda_convs_make(b.convs, &t.call, 1, NULL, NULL, &err), &err));
        CHECK_INT(driver->capture_begin(b.play.stream, CUDA_CAPTURE_THREAD_LOCAL), 0);
        CHECK(good(stk_cuda_convs_run(b.convs, &t.call, &err), &err));
        CHECK_INT(driver->capture_end(b.play.stream, &graph), 0);
        CHECK_INT(driver->graph_make(&exec, graph, 0), 0);
        for (int again = 0; again < 2; again++) {
            spoil(&b, &t);
            CHECK_INT(driver->graph_launch(exec, b.play.stream), 0);
            compare(&b, &t);
        }
        (void)driver->graph_exec_free(exec);
        (void)driver->graph_free(graph);
        trial_free(&b, &t);
    }
    bench_close(&b);
}

/* ---- statistics ---- */

/* The sums of what was written, and of its squares, as far as float32 goes. */
static void check_sums(bench *b, trial *t) {
    size_t filters = (size_t)t->shape.filters;
    double *wanted = stk_mem_new(2 * filters, sizeof *wanted);
    float *as_floats = stk_mem_new(2 * filters, sizeof *as_floats);
    float *got = stk_mem_new(2 * filters, sizeof *got);
    field sums = {.count = 2 * filters, .type = CUDA_TYPE_F32, .place = t->call.stats};
    for (size_t i = 0; i < t->y.count; i++) {
        wanted[i % filters] += (double)t->wanted[i];
        wanted[filters + i % filters] += (double)t->wanted[i] * (double)t->wanted[i];
    }
    for (size_t i = 0; i < 2 * filters; i++) {
        as_floats[i] = (float)wanted[i];
    }
    fetch_into(b, &sums, got);
    double room = 2 * room_of(&t->shape); /* they may be of what was rounded */
    play_check_norm("sums", got, as_floats, filters, room);
    play_check_norm("squares", got + filters, as_floats + filters, filters, room);
    stk_mem_free(wanted);
    stk_mem_free(as_floats);
    stk_mem_free(got);
}

static void statistics_of_what_is_written(void) {
    static const int which[] = {0, 1, 2, 4};
    bench b;
    if (!bench_open(&b, NULL, false, NULL)) {
        return;
    }
    for (int i = 0; i < 8; i++) {
        cuda_conv_shape shape = shape_of(which[i % 4], CUDA_CONV_FORWARD, CUDA_TYPE_F16);
        size_t bytes = 2 * (size_t)shape.filters * sizeof(float);
        stk_error err = {0};
        trial t;
        shape.stats = true;
        shape.in_norm = i >= 4;
        trial_new(&b, &t, &shape);
        CHECK(PLAY_GOOD(&b.play, memory_take(&t.call.stats, bytes)));
        CHECK(!stk_cuda_convs_has(b.convs, &shape));
        CHECK(good(stk_cuda_convs_make(b.convs, &t.call, 1, NULL, NULL, &err), &err));
        CHECK(stk_cuda_convs_has(b.convs, &shape));
        spoil(&b, &t);
        CHECK(PLAY_GOOD(&b.play, fill(t.call.stats, 0xFF, bytes, b.play.stream)));
        CHECK(good(stk_cuda_convs_run(b.convs, &t.call, &err), &err));
        compare(&b, &t);
        check_sums(&b, &t);
        (void)b.play.driver->memory_free(t.call.stats);
        trial_free(&b, &t);
    }
    bench_close(&b);
}

static void gradients_of_filters_behind_a_norm(void) {
    static const int which[] = {0, 1, 2, 4};
    bench b;
    if (!bench_open(&b, NULL, false, NULL)) {
        return;
    }
    for (int i = 0; i < 4; i++) {
        cuda_conv_shape shape = shape_of(which[i], CUDA_CONV_WEIGHT, CUDA_TYPE_F16);
        shape.in_norm = true;
        check_one(&b, &shape);
        CHECK(stk_cuda_convs_has(b.convs, &shape));
    }
    bench_close(&b);
}

/* Other types, and channels that are not in eights: no error, but no plan either. */
static void where_no_library_does_more(void) {
    static const cuda_type types[] = {CUDA_TYPE_F32, CUDA_TYPE_BF16, CUDA_TYPE_F16};
    bench b;
    if (!bench_open(&b, NULL, false, NULL)) {
        return;
    }
    for (int v = 0; v < 9; v++) {
        int i = v % 3;
        cuda_conv_kind kind = v < 6 ? CUDA_CONV_FORWARD : CUDA_CONV_WEIGHT;
        cuda_conv_shape shape = shape_of(i == 2 ? 5 : 0, kind, types[i]);
        stk_error err = {0};
        trial t;
        shape.stats = v < 6;
        shape.in_norm = v >= 3;
        trial_new(&b, &t, &shape);
        t.call.stats = b.workspace;
        for (int again = 0; again < 2; again++) {
            CHECK(good(stk_cuda_convs_make(b.convs, &t.call, 1, NULL, NULL, &err), &err));
            CHECK(!stk_cuda_convs_has(b.convs, &shape));
        }
        CHECK_INT(stk_cuda_convs_run(b.convs, &t.call, &err), STK_ERR_DEVICE);
        CHECK_CONTAINS(err.message, "no plan was made");
        trial_free(&b, &t);
    }
    bench_close(&b);
}

/* ---- our own kernels ---- */

static void own_kernels_need_no_library(void) {
    bench b;
    if (!bench_open(&b, NULL, false, NULL)) {
        return;
    }
    for (int i = 0; i < SIZES * 9; i++) {
        cuda_conv_shape shape = shape_of(i / 9, (cuda_conv_kind)(i % 3), (cuda_type)(i / 3 % 3));
        if (!play_takes((size_t)(i / 9 + i % 3), shape.type)) {
            continue;
        }
        const cuda_candidate candidate = {.kind = CUDA_CANDIDATE_OWN};
        const cuda_candidate_makers makers = {.config = &b.config};
        stk_error err = {0};
        cuda_own own;
        trial t;
        shape.accumulate = shape.kind == CUDA_CONV_DATA && i % 2 == 1;
        shape.bias = shape.kind == CUDA_CONV_FORWARD && i % 2 == 1;
        shape.added = shape.kind == CUDA_CONV_FORWARD && i % 4 > 1;
        shape.act = shape.kind == CUDA_CONV_FORWARD ? STK_OP_SILU : STK_OP_COUNT;
        shape.in_norm = shape.kind != CUDA_CONV_DATA && i / 9 % 2 == 1;
        trial_new(&b, &t, &shape);
        stk_cuda_own_begin(&own, &shape, b.play.multiprocessors);
        stk_cuda_own_want(&own, CUDA_OWN_WHOLE, &shape);
        const cuda_program *program = &own.program;
        CHECK(good(stk_cuda_kernels_make(b.kernels, &program, 1, &err), &err));
        spoil(&b, &t);
        CHECK(good(stk_cuda_candidate_run(&makers, &candidate, &own, &t.call, &err), &err));
        compare(&b, &t);
        stk_cuda_own_free(&own);
        trial_free(&b, &t);
    }
    bench_close(&b);
}

/*
 * A first layer over blocks of pixels: tiles that are whole, and parts of one; with statistics when
 * it is forward.
 */
static void check_blocks(bench *b, const cuda_conv_shape *shape) {
    const cuda_candidate candidate = {.kind = CUDA_CANDIDATE_BLOCKS};
    const cuda_candidate_makers makers = {.config = &b->config};
    size_t stats_bytes = 2 * (size_t)shape->filters * sizeof(float);
    stk_error err = {0};
    cuda_own own;
    trial t;
    CHECK(stk_cuda_own_has_blocks(shape, 8));
    CHECK(!stk_cuda_own_has_blocks(shape, 7));
    trial_new(b, &t, shape);
    CHECK(PLAY_GOOD(&b->play, memory_take(&t.call.stats, stats_bytes)));
    stk_cuda_own_begin(&own, shape, b->play.multiprocessors);
    stk_cuda_own_want(&own, CUDA_OWN_BLOCKS, shape);
    stk_cuda_own_want(&own, CUDA_OWN_BLOCKS_SUM, shape);
    const cuda_program *program = &own.program;
    CHECK(good(stk_cuda_kernels_make(b->kernels, &program, 1, &err), &err));
    for (int again = 0; again < 2; again++) {
        spoil(b, &t);
        CHECK(PLAY_GOOD(&b->play, fill(b->workspace, 0xFF, CUDA_WORKSPACE_BYTES, b->play.stream)));
        CHECK(PLAY_GOOD(&b->play, fill(t.call.stats, 0xFF, stats_bytes, b->play.stream)));
        CHECK(good(stk_cuda_candidate_run(&makers, &candidate, &own, &t.call, &err), &err));
        compare(b, &t);
        if (shape->stats) {
            check_sums(b, &t);
        }
    }
    (void)b->play.driver->memory_free(t.call.stats);
    stk_cuda_own_free(&own);
    trial_free(b, &t);
}

static void blocks_of_pixels(void) {
    /* batch, out_height, out_width, filters, taps */
    static const int layers[][5] = {
        {1, 16, 16, 64, 4}, {2, 17, 20, 16, 4}, {1, 5, 3, 48, 2},
        {3, 33, 16, 32, 3}, {2, 1, 1, 64, 1},
    };
    bench b;
    if (!bench_open(&b, NULL, false, NULL)) {
        return;
    }
    for (int i = 0; i < 20; i++) {
        const int *v = layers[i / 4];
        if (!check_is_full() && i / 4 % 2 != i / 2 % 2) {
            continue;
        }
        cuda_conv_shape shape = {.kind = i % 2 == 0 ? CUDA_CONV_FORWARD : CUDA_CONV_WEIGHT,
                                 .type = i / 2 % 2 == 0 ? CUDA_TYPE_F16 : CUDA_TYPE_BF16,
                                 .batch = v[0],
                                 .height = v[1] + v[4] - 1,
                                 .width = v[2] + v[4] - 1,
                                 .channels = 16,
                                 .out_height = v[1],
                                 .out_width = v[2],
                                 .filters = v[3],
                                 .kernel = v[4],
                                 .stride = 1,
                                 .act = STK_OP_COUNT};
        check_blocks(&b, &shape);
        shape.stats = shape.kind == CUDA_CONV_FORWARD;
        if (shape.stats) {
            check_blocks(&b, &shape);
        }
    }
    bench_close(&b);
}

/*
 * Rows of 1 by 1: tiles that are whole, and parts of one; filters of whole warps, and of parts of
 * one; what comes before and behind.
 */
static void check_rows(bench *b, const cuda_conv_shape *shape) {
    const cuda_candidate candidate = {.kind = CUDA_CANDIDATE_ROWS};
    const cuda_candidate_makers makers = {.config = &b->config};
    size_t filters = (size_t)shape->filters;
    stk_error err = {0};
    cuda_own own;
    trial t;
    trial_new(b, &t, shape);
    field stats = {.count = 2 * filters, .type = CUDA_TYPE_F32};
    float *first = stk_mem_new(t.y.count + stats.count, sizeof *first);
    float *second = stk_mem_new(t.y.count + stats.count, sizeof *second);
    CHECK(PLAY_GOOD(&b->play, memory_take(&stats.place, stats.count * sizeof(float))));
    t.call.stats = stats.place;
    stk_cuda_own_begin(&own, shape, b->play.multiprocessors);
    stk_cuda_own_want(&own, CUDA_OWN_ROWS, shape);
    stk_cuda_own_want(&own, CUDA_OWN_BLOCKS_SUM, shape);
    const cuda_program *program = &own.program;
    CHECK(good(stk_cuda_kernels_make(b->kernels, &program, 1, &err), &err));
    for (int again = 0; again < 2; again++) {
        float *got = again == 0 ? first : second;
        spoil(b, &t);
        CHECK(PLAY_GOOD(&b->play, fill(b->workspace, 0xFF, (size_t)1 << 20, b->play.stream)));
        CHECK(PLAY_GOOD(&b->play,
                        fill(stats.place, 0xFF, stats.count * sizeof(float), b->play.stream)));
        CHECK(good(stk_cuda_candidate_run(&makers, &candidate, &own, &t.call, &err), &err));
        compare(b, &t);
        fetch_into(b, &t.y, got);
        fetch_into(b, &stats, got + t.y.count);
        if (shape->stats) {
            check_sums(b, &t);
        }
    }
    CHECK(memcmp(first, second, (t.y.count + stats.count) * sizeof *first) == 0);
    stk_mem_free(first);
    stk_mem_free(second);
    (void)b->play.driver->memory_free(stats.place);
    stk_cuda_own_free(&own);
    trial_free(b, &t);
}

static cuda_conv_shape shape_of_rows(int rows, int channels, int filters, cuda_type type) {
    return (cuda_conv_shape){.kind = CUDA_CONV_FORWARD,
                             .type = type,
                             .batch = 1,
                             .height = 1,
                             .width = rows,
                             .channels = channels,
                             .out_height = 1,
                             .out_width = rows,
                             .filters = filters,
                             .kernel = 1,
                             .stride = 1,
                             .act = STK_OP_COUNT};
}

static void rows_of_pixels(void) {
    static const int layers[][3] = {
        /* rows, channels, filters */
        {1700, 64, 64}, {130, 64, 256}, {1100, 24, 144}, {67, 128, 512}, {600, 256, 64},
        {77, 256, 128}, {5, 232, 56},   {2100, 40, 8},   {300, 256, 8},  {333, 144, 272},
    };
    bench b;
    if (!bench_open(&b, NULL, false, NULL)) {
        return;
    }
    for (int i = 0; i < (int)(sizeof layers / sizeof layers[0]); i++) {
        const int *v = layers[i];
        cuda_conv_shape shape =
            shape_of_rows(v[0], v[1], v[2], i % 3 == 2 ? CUDA_TYPE_BF16 : CUDA_TYPE_F16);
        if (i % 4 == 0) {
            check_rows(&b, &shape);
        }
        shape.stats = true;
        shape.in_norm = i % 4 == 3;
        check_rows(&b, &shape);
        shape.in_norm = !shape.in_norm;
        if (check_is_full() || i % 2 == 0) {
            check_rows(&b, &shape);
        }
    }
    bench_close(&b);
}

/* A ReLU in front of a convolution does not hide that something has gone wrong before it. */
static void what_is_no_number_stays_none(void) {
    static const struct {
        cuda_candidate_kind kind;
        cuda_own_part part;
    } candidates[] = {{CUDA_CANDIDATE_ROWS, CUDA_OWN_ROWS}, {CUDA_CANDIDATE_OWN, CUDA_OWN_WHOLE}};
    enum { ROWS = 40, CHANNELS = 24, FILTERS = 8 };
    cuda_conv_shape shape = shape_of_rows(ROWS, CHANNELS, FILTERS, CUDA_TYPE_F16);
    float got[ROWS * FILTERS];
    bench b;
    if (!bench_open(&b, NULL, false, NULL)) {
        return;
    }
    const cuda_candidate_makers makers = {.config = &b.config};
    shape.in_norm = true;
    for (int i = 0; i < 2; i++) {
        const cuda_candidate candidate = {.kind = candidates[i].kind};
        stk_error err = {0};
        cuda_own own;
        trial t;
        trial_new(&b, &t, &shape);
        t.x.values[CHANNELS + 5] = NAN;
        CHECK(send(&b, &t.x));
        stk_cuda_own_begin(&own, &shape, b.play.multiprocessors);
        stk_cuda_own_want(&own, candidates[i].part, &shape);
        const cuda_program *program = &own.program;
        CHECK(good(stk_cuda_kernels_make(b.kernels, &program, 1, &err), &err));
        CHECK(good(stk_cuda_candidate_run(&makers, &candidate, &own, &t.call, &err), &err));
        fetch_into(&b, &t.y, got);
        for (int k = 0; k < ROWS * FILTERS; k++) {
            CHECK_INT(isnan(got[k]) != 0, k / FILTERS == 1);
        }
        stk_cuda_own_free(&own);
        trial_free(&b, &t);
    }
    bench_close(&b);
}

static void rows_are_for_few_shapes(void) {
    const cuda_conv_shape can = shape_of_rows(4096, 64, 256, CUDA_TYPE_BF16);
    cuda_conv_shape others[] = {can, can, can, can, can, can, can, can, can, can};
    others[0].type = CUDA_TYPE_F32;
    others[1].kind = CUDA_CONV_DATA;
    others[2].kind = CUDA_CONV_WEIGHT;
    others[3].channels = 16; /* a block's */
    others[4].channels = 60;
    others[5].filters = 1032;
    others[6].width = others[6].out_width = 4095;
    others[7].width = 8191;
    others[7].stride = 2;
    others[8].bias = true;
    others[9].channels = 264;
    others[9].filters = 64;
    CHECK(stk_cuda_own_has_rows(&can, 8));
    CHECK(!stk_cuda_own_has_rows(&can, 7));
    for (size_t i = 0; i < sizeof others / sizeof *others; i++) {
        CHECK(!stk_cuda_own_has_rows(&others[i], 9));
    }
}

static void blocks_are_for_few_shapes(void) {
    const cuda_conv_shape can = {.kind = CUDA_CONV_FORWARD,
                                 .type = CUDA_TYPE_F16,
                                 .batch = 1,
                                 .height = 8,
                                 .width = 8,
                                 .channels = 16,
                                 .out_height = 5,
                                 .out_width = 5,
                                 .filters = 32,
                                 .kernel = 4,
                                 .stride = 1,
                                 .act = STK_OP_COUNT};
    cuda_conv_shape others[] = {can, can, can, can, can, can, can};
    others[0].type = CUDA_TYPE_F32;
    others[1].kind = CUDA_CONV_DATA;
    others[2].channels = 32;
    others[3].filters = 40;
    others[4].filters = 128;
    others[5].pad = 1;
    others[6].act = STK_OP_RELU;
    CHECK(stk_cuda_own_has_blocks(&can, 9));
    for (size_t i = 0; i < sizeof others / sizeof *others; i++) {
        CHECK(!stk_cuda_own_has_blocks(&others[i], 9));
    }
}

/* ---- what is kept, and when nothing is timed ---- */

/* All kinds once, some with something behind. */
static int kept_shapes(cuda_conv_shape *shapes) {
    for (int i = 0; i < 6; i++) {
        shapes[i] = shape_of(i / 3 * 4, (cuda_conv_kind)(i % 3), CUDA_TYPE_F16);
        shapes[i].bias = shapes[i].kind == CUDA_CONV_FORWARD;
    }
    return 6;
}

/* Opens, makes all at once, compares; says what was timed and loaded. */
static bool one_life(const char *folder, bool deterministic, int *timed, int *loaded) {
    bench b;
    cuda_conv_shape shapes[6];
    cuda_conv_call calls[6];
    trial trials[6];
    stk_error err = {0};
    int count = kept_shapes(shapes);
    if (!bench_open(&b, folder, deterministic, NULL)) {
        return false;
    }
    for (int i = 0; i < count; i++) {
        trial_new(&b, &trials[i], &shapes[i]);
        calls[i] = trials[i].call;
    }
    CHECK(good(stk_cuda_convs_make(b.convs, calls, count, NULL, NULL, &err), &err));
    stk_cuda_convs_counts(b.convs, timed, loaded);
    /* The second time nothing is new. */
    CHECK(good(stk_cuda_convs_make(b.convs, calls, count, NULL, NULL, &err), &err));
    for (int i = 0; i < count; i++) {
        trial *t = &trials[i];
        CHECK(send(&b, &t->x) && send(&b, &t->w) && send(&b, &t->y));
        spoil(&b, t);
        CHECK(good(stk_cuda_convs_run(b.convs, &t->call, &err), &err));
        compare(&b, t);
        trial_free(&b, t);
    }
    int timed_now = 0, loaded_now = 0;
    stk_cuda_convs_counts(b.convs, &timed_now, &loaded_now);
    CHECK(timed_now == *timed && loaded_now == *loaded);
    bench_close(&b);
    return true;
}

static void the_next_start_times_nothing(void) {
    const char *folder = check_folder();
    int timed = 0, loaded = 0;
    if (one_life(folder, false, &timed, &loaded)) {
        CHECK(timed > 6);
        CHECK_INT(loaded, 0);
        CHECK(one_life(folder, false, &timed, &loaded));
        CHECK_INT(timed, 0);
        CHECK_INT(loaded, 6);
        CHECK(one_life(folder, true, &timed, &loaded)); /* another choice: not these */
        CHECK_INT(timed, 0);
        CHECK_INT(loaded, 0);
    }
}

static void what_is_damaged_is_made_anew(void) {
    bench b;
    if (!bench_open(&b, NULL, false, NULL)) {
        return;
    }
    static const char *const bad[] = {"", "d", "dnonsense", "f{}", "p1234", "x", "o"};
    cuda_conv_shape shape = shape_of(4, CUDA_CONV_FORWARD, CUDA_TYPE_F16);
    stk_error err = {0};
    cuda_candidate_makers makers = {.config = &b.config};
    CHECK(good(stk_cuda_dnn_open(&makers.dnn, b.libraries.handles[CUDA_LIBRARY_CUDNN],
                                 b.play.stream, NULL, &err),
               &err));
    CHECK(good(stk_cuda_lt_open(&makers.lt, b.libraries.handles[CUDA_LIBRARY_CUBLASLT],
                                b.play.stream, &err),
               &err));
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        cuda_candidate candidate;
        if (stk_cuda_candidate_read(&makers, &shape, bad[i], strlen(bad[i]), &candidate)) {
            CHECK_FAIL("\"%s\" is taken for a plan", bad[i]);
        }
    }
    stk_cuda_lt_close(makers.lt);
    stk_cuda_dnn_close(makers.dnn);
    bench_close(&b);
}

static void deterministic_gives_the_same_bits(void) {
    bench b;
    if (!bench_open(&b, NULL, true, NULL)) {
        return;
    }
    for (int i = 0; i < 9; i++) {
        cuda_conv_shape shape = shape_of(0, (cuda_conv_kind)(i % 3), (cuda_type)(i / 3));
        stk_error err = {0};
        trial t;
        trial_new(&b, &t, &shape);
        float *first = stk_mem_new(t.out->count, sizeof *first);
        float *second = stk_mem_new(t.out->count, sizeof *second);
        CHECK(good(stk_cuda_convs_make(b.convs, &t.call, 1, NULL, NULL, &err), &err));
        for (int again = 0; again < 4; again++) {
            spoil(&b, &t);
            CHECK(good(stk_cuda_convs_run(b.convs, &t.call, &err), &err));
            fetch_into(&b, t.out, again == 0 ? first : second);
            CHECK(again == 0 || memcmp(first, second, t.out->count * sizeof *first) == 0);
        }
        compare(&b, &t);
        stk_mem_free(first);
        stk_mem_free(second);
        trial_free(&b, &t);
    }
    int timed = 0, loaded = 0;
    stk_cuda_convs_counts(b.convs, &timed, &loaded);
    CHECK_INT(timed, 0);
    bench_close(&b);
}

/* An engine that is fastest, that the library offers first, and twice, and that is wrong. */
static void a_wrong_plan_is_not_taken(void) {
    bench b;
    for (int deterministic = 0; deterministic < 2; deterministic++) {
        (void)setenv("STK_EMU_WRONG", "1", 1);
        if (!bench_open(&b, NULL, deterministic, NULL)) {
            break;
        }
        for (int i = 0; i < SIZES * 3; i++) {
            cuda_conv_shape shape = shape_of(i / 3, CUDA_CONV_WEIGHT, (cuda_type)(i % 3));
            check_one(&b, &shape);
            shape.strict = false;
            check_one(&b, &shape);
        }
        bench_close(&b);
    }
    (void)unsetenv("STK_EMU_WRONG");
}

static void mistakes_are_told(void) {
    bool halt = true;
    bench b;
    if (!bench_open(&b, NULL, false, &halt)) {
        return;
    }
    cuda_conv_shape shape = shape_of(0, CUDA_CONV_FORWARD, CUDA_TYPE_F16);
    stk_error err = {0};
    trial t;
    trial_new(&b, &t, &shape);
    CHECK_INT(stk_cuda_convs_run(b.convs, &t.call, &err), STK_ERR_DEVICE);
    CHECK_CONTAINS(err.message, "convolution of 2 x 8 x 8 x 16 to 8 x 8 x 24, 3 x 3");
    CHECK_CONTAINS(err.message, "float16");
    memset(&err, 0, sizeof err);
    CHECK_INT(stk_cuda_convs_make(b.convs, &t.call, 1, NULL, NULL, &err), STK_ERR_STOPPED);
    memset(&err, 0, sizeof err);
    CHECK_INT(stk_cuda_convs_run(b.convs, &t.call, &err), STK_ERR_DEVICE);
    halt = false;
    memset(&err, 0, sizeof err);
    CHECK(good(stk_cuda_convs_make(b.convs, &t.call, 1, NULL, NULL, &err), &err));
    spoil(&b, &t);
    CHECK(good(stk_cuda_convs_run(b.convs, &t.call, &err), &err));
    compare(&b, &t);
    trial_free(&b, &t);
    bench_close(&b);
}

/* Whatever request fails, the answer is that or a plan, and the next attempt is as good as ever. */
static void without_memory_it_says_so(void) {
    bench b;
    if (!bench_open(&b, NULL, false, NULL)) {
        return;
    }
    cuda_conv_shape shape = shape_of(4, CUDA_CONV_FORWARD, CUDA_TYPE_F16);
    stk_error err = {0};
    trial t;
    shape.bias = true;
    trial_new(&b, &t, &shape);
    int failed = 0;
    for (int request = 0; request < 40; request++) {
        memset(&err, 0, sizeof err);
        stk_mem_fail_after(request);
        stk_status status = stk_cuda_convs_make(b.convs, &t.call, 1, NULL, NULL, &err);
        stk_mem_fail_after(-1);
        failed += status == STK_ERR_MEMORY;
        CHECK(status == STK_ERR_MEMORY || status == STK_OK);
    }
    CHECK(failed > 5);
    memset(&err, 0, sizeof err);
    CHECK(good(stk_cuda_convs_make(b.convs, &t.call, 1, NULL, NULL, &err), &err));
    CHECK(send(&b, &t.x) && send(&b, &t.w));
    spoil(&b, &t);
    CHECK(good(stk_cuda_convs_run(b.convs, &t.call, &err), &err));
    compare(&b, &t);
    trial_free(&b, &t);
    bench_close(&b);
}

static const check_test tests[] = {
    TEST(every_kind_type_and_size),
    TEST(what_follows_a_convolution),
    TEST(statistics_of_what_is_written),
    TEST(gradients_of_filters_behind_a_norm),
    TEST(where_no_library_does_more),
    TEST(runs_in_a_captured_graph),
    TEST(own_kernels_need_no_library),
    TEST(blocks_of_pixels),
    TEST(blocks_are_for_few_shapes),
    TEST(rows_of_pixels),
    TEST(rows_are_for_few_shapes),
    TEST(what_is_no_number_stays_none),
    TEST(the_next_start_times_nothing),
    TEST(what_is_damaged_is_made_anew),
    TEST(deterministic_gives_the_same_bits),
    TEST(a_wrong_plan_is_not_taken),
    TEST(mistakes_are_told),
    TEST(without_memory_it_says_so),
};

CHECK_MAIN(tests)
