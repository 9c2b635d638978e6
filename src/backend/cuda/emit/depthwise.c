/*
 * depthwise.c - launches of depthwise convolutions: how an image is cut into slabs, boxes and
 * tiles. kernels/depthwise_tiles.cuh says what these words mean.
 *
 * Each cut is judged by an estimate of the instructions that all its threads issue: borders of
 * windows and waste past the image's edge count against the registers of large tiles. Only the
 * shape and the kind of device matter, so that the memory need is known without a device.
 */
#include "backend/cuda/emit/emit.h"
#include "backend/cuda/program/grid.h"

#define WARP 32
#define TEAM 16             /* as in the kernel */
#define HEAD_BYTES 16       /* as in the kernel */
#define MOST_THREADS 256    /* of a block */
#define MOST_TILE 8         /* rows or columns */
#define SHARED_BYTES 225280 /* of a multiprocessor, for all blocks on it */

/* What one launch computes. */
typedef struct depthwise_task {
    const cuda_depthwise *conv;
    bool back;
    bool dx;           /* backward: computes dx besides the gradient of the filters */
    bool add;          /* adds to dx */
    bool activated;    /* forward: norm and activation are applied as the window is loaded */
    int height, width; /* of the image that is cut: the output, or in backward dx */
    int entries;       /* sums per channel that a worker writes */
    size_t element;    /* bytes of T */
    size_t most_bytes; /* of a block's shared memory */
} depthwise_task;

/* One way to cut the image. */
typedef struct cut {
    int slab;
    int rows, columns;   /* of a tile */
    int down, across;    /* tiles of a box */
    int samples;         /* of a box */
    int threads, blocks; /* of a block; on a multiprocessor */
    int gap;             /* numbers between rows of the window */
    bool down_first;     /* how tiles are numbered */
    size_t shared_bytes;
    double cost;
} cut;

static int round_up(int value, int step) {
    return (value + step - 1) / step * step;
}

static int floor_div(int a, int b) {
    return a >= 0 ? a / b : -((-a + b - 1) / b);
}

/* Rows of the window of n rows: REACH in the kernel. */
static int reach(const depthwise_task *t, int n) {
    const cuda_depthwise *conv = t->conv;
    if (!t->back) {
        return conv->stride * (n - 1) + conv->kernel;
    }
    int first = -floor_div(conv->kernel - 1 - conv->pad, conv->stride);
    return floor_div(n - 1 + conv->pad, conv->stride) - first + 1;
}

/* How far the window moves when the tile moves by n rows: STEP in the kernel. */
static int step_of(const depthwise_task *t, int n) {
    return t->back ? n / t->conv->stride : n * t->conv->stride;
}

static int boxes_of(const depthwise_task *t, const cut *k) {
    size_t high = cuda_ceil((size_t)t->height, (size_t)k->rows * (size_t)k->down);
    size_t wide = cuda_ceil((size_t)t->width, (size_t)k->columns * (size_t)k->across);
    size_t deep = cuda_ceil((size_t)t->conv->batch, (size_t)k->samples);
    return (int)(high * wide * deep);
}

static int slabs_of(const depthwise_task *t, const cut *k) {
    return (int)cuda_ceil((size_t)t->conv->channels, (size_t)k->slab);
}

/* Registers of a thread, roughly: as the compiler used them for a number of cuts. */
static int registers_of(const depthwise_task *t, const cut *k) {
    int taps = t->conv->kernel * t->conv->kernel;
    int tile = k->rows * k->columns;
    int row = 2 * reach(t, k->columns) + 2 * t->conv->kernel;
    int scale = t->element == 4 ? 2 : 1;
    if (!t->back) {
        return 20 + row + 3 * tile / 2 + 5 * taps / 4;
    }
    int held = t->conv->in_norm != NULL ? scale * tile : 0;
    return 44 + row + 2 * tile + (t->dx ? held : 0) + 2 * taps;
}

/*
 * Warps of a multiprocessor that have so many registers each: there are four equal parts, in which
 * registers are given out.
 */
static int warps_with(int registers) {
    static const int steps[][2] = {{80, 24}, {96, 20}, {128, 16}, {168, 12}};
    for (size_t i = 0; i < sizeof steps / sizeof *steps; i++) {
        if (registers <= steps[i][0]) {
            return steps[i][1];
        }
    }
    return 8;
}

static size_t shared_of(const depthwise_task *t, const cut *k) {
    size_t slab = (size_t)k->slab;
    size_t taps = (size_t)t->conv->kernel * (size_t)t->conv->kernel;
    size_t row = (size_t)reach(t, k->columns * k->across) * slab + (size_t)k->gap;
    size_t window = (size_t)(k->samples * reach(t, k->rows * k->down)) * row * t->element;
    if (!t->back || t->dx) {
        window += taps * slab * sizeof(float);
    }
    size_t tiles = (size_t)k->samples * (size_t)k->down * (size_t)k->across;
    size_t sums = tiles * (size_t)t->entries * slab * sizeof(float);
    return HEAD_BYTES + (window > sums ? window : sums);
}

/* How often the worst access of any warp to the window has to be repeated. */
static int conflicts_of(const depthwise_task *t, const cut *k) {
    int pairs = k->slab / 2;
    int row = reach(t, k->columns * k->across) * pairs + k->gap / 2;
    int worst = 1;
    for (int from = 0; from < k->threads; from += WARP) {
        int used[WARP] = {0};
        for (int lane = from; lane < from + WARP; lane++) {
            int number = lane / pairs % (k->down * k->across);
            int sample = lane / pairs / (k->down * k->across);
            int y = (k->down_first ? number % k->down : number / k->across) * k->rows;
            int x = (k->down_first ? number / k->down : number % k->across) * k->columns;
            int line = sample * reach(t, k->rows * k->down) + step_of(t, y);
            int bank = (line * row + step_of(t, x) * pairs + lane % pairs) % WARP;
            used[bank]++;
            worst = used[bank] > worst ? used[bank] : worst;
        }
    }
    return worst;
}

/* The order of tiles and the gap that keep lanes off each other's banks; no gap if all is well. */
static void avoid_conflicts(const depthwise_task *t, cut *k) {
    int least = 0;
    cut best = *k;
    for (int i = 0; i < 16; i++) {
        cut other = *k;
        other.down_first = i % 2 == 1;
        other.gap = i / 2 * 8;
        int conflicts = conflicts_of(t, &other);
        if (i == 0 || (conflicts < least && shared_of(t, &other) <= t->most_bytes)) {
            least = conflicts;
            best = other;
        }
    }
    *k = best;
    k->shared_bytes = shared_of(t, k);
}

/*
 * Instructions of all threads, roughly: loading a window (16 bytes take the time of 90
 * instructions), computing a tile, and the fixed cost of a box.
 */
static double cost_of(const depthwise_task *t, const cut *k) {
    const cuda_depthwise *conv = t->conv;
    int tile = k->rows * k->columns;
    double taps = (double)(conv->kernel * conv->kernel);
    double window = (double)k->samples * reach(t, k->rows * k->down) *
                    reach(t, k->columns * k->across) * (k->slab / 8.0);
    double passes = t->back ? (t->dx ? 2.0 : 1.0) / (conv->stride * conv->stride) : 1;
    double pixel = t->back ? (conv->in_norm != NULL ? 40 : 10) : 12;
    double seen = (double)reach(t, k->rows) * reach(t, k->columns);
    double sweeps = t->dx ? 2 : 1;
    double per_tile = 2 * tile * taps * passes + 3 * seen * sweeps + pixel * tile;
    double box =
        window * (t->activated ? 190 : 115) + k->threads * per_tile + (k->threads + 64) * 200;
    double cost = box * boxes_of(t, k) * slabs_of(t, k);
    int warps = k->threads * k->blocks / WARP;
    cost *= 1 + 0.3 / k->blocks; /* one block computes while another one waits for memory */
    return warps < 16 ? cost * (1 + 0.04 * (16 - warps)) : cost;
}

/* Chooses threads and blocks for a cut with given tiles; false: the cut is not possible. */
static bool fit_blocks(const depthwise_task *t, cut *k) {
    int tiles = k->down * k->across * k->samples;
    k->threads = round_up(k->slab / 2 * tiles, WARP);
    k->shared_bytes = shared_of(t, k);
    int registers = registers_of(t, k);
    int room = warps_with(registers) * WARP / k->threads;
    int fit = (int)(SHARED_BYTES / (k->shared_bytes + 1024));
    k->blocks = fit < room ? fit : room;
    if (k->blocks < 1 || k->shared_bytes > t->most_bytes) {
        return false;
    }
    k->cost = cost_of(t, k) * (registers > 255 ? 1 + (registers - 255) / 20.0 : 1);
    return true;
}

/* Tries all boxes of tiles of one size. */
static void try_boxes(const depthwise_task *t, cut k, cut *best) {
    int high = (int)cuda_ceil((size_t)t->height, (size_t)k.rows);
    int wide = (int)cuda_ceil((size_t)t->width, (size_t)k.columns);
    int most = MOST_THREADS / (k.slab / 2);
    for (k.down = 1; k.down <= high && k.down <= most; k.down++) {
        for (k.across = 1; k.across <= wide && k.down * k.across <= most; k.across++) {
            bool whole = k.down == high && k.across == wide;
            for (k.samples = 1; k.samples <= (whole ? 8 : 1); k.samples *= 2) {
                cut other = k;
                if (fit_blocks(t, &other) && (best->slab == 0 || other.cost < best->cost)) {
                    *best = other;
                }
            }
        }
    }
}

static cut choose(const depthwise_task *t) {
    static const int slabs[] = {64, 48, 32, 24, 16, 8};
    const cuda_depthwise *conv = t->conv;
    int step = t->back ? conv->stride : 1;
    bool even = conv->channels % 8 == 0;
    cut best = {0};
    for (int i = 0; i < 6; i++) {
        bool fits = even ? conv->channels % slabs[i] == 0 : slabs[i] <= 32;
        if (!fits || (best.slab != 0 && slabs[i] < 32)) {
            continue;
        }
        for (int rows = step; rows < MOST_TILE + step; rows += step) {
            for (int columns = step; columns < MOST_TILE + step; columns += step) {
                cut k = {.slab = slabs[i], .rows = rows, .columns = columns};
                try_boxes(t, k, &best);
            }
        }
    }
    avoid_conflicts(t, &best);
    return best;
}

/* How many blocks share the boxes of a slab: all have the same number of them, if possible. */
static unsigned workers_of(const cuda_program *p, const depthwise_task *t, const cut *k) {
    int boxes = boxes_of(t, k);
    int most = p->multiprocessors * k->blocks / slabs_of(t, k);
    most = most < 1 ? 1 : most > boxes ? boxes : most;
    int rounds = (boxes + most - 1) / most;
    return (unsigned)((boxes + rounds - 1) / rounds);
}

static void define_cut(cuda_launch *launch, const depthwise_task *t, const cut *k) {
    const cuda_depthwise *conv = t->conv;
    CUDA_DEFINES(
        launch, {"C", conv->channels}, {"EVEN", conv->channels % 8 == 0}, {"KS", conv->kernel},
        {"ST", conv->stride}, {"PD", conv->pad}, {"IH", conv->height}, {"IW", conv->width},
        {"OH", conv->out_height}, {"OW", conv->out_width}, {"IN_NORM", conv->in_norm != NULL},
        {"ACT", conv->in_norm != NULL ? stk_cuda_act_code(conv->in_act) : 0}, {"SL", k->slab},
        {"TR", k->rows}, {"TC", k->columns}, {"NY", k->down}, {"NX", k->across}, {"NN", k->samples},
        {"GAP", k->gap}, {"DOWN", k->down_first}, {"THREADS", k->threads}, {"BLOCKS", k->blocks});
}

/*
 * Cuts the image and launches a kernel on it. Where the task has sums, *slots has room for those of
 * each worker, and *counters tell which worker came last; otherwise both are nothing.
 */
static cuda_launch *launch_task(cuda_program *p, const char *file, const char *kernel,
                                const depthwise_task *t, cuda_ref *slots, cuda_ref *counters) {
    cut k = choose(t);
    unsigned workers = workers_of(p, t, &k);
    int slabs = slabs_of(t, &k);
    *slots = *counters = cuda_nothing();
    if (t->entries > 0) {
        unsigned teams = (workers + TEAM - 1) / TEAM;
        size_t count = (size_t)slabs * (workers + teams);
        *slots = stk_cuda_buffer(p, count * (size_t)(t->entries * k.slab) * sizeof(float));
        *counters = stk_cuda_counters(p, slabs * (int)(teams + 1));
    }
    cuda_launch *l = stk_cuda_launch(p, file, kernel, (unsigned)slabs, workers, (unsigned)k.threads,
                                     (unsigned)k.shared_bytes);
    define_cut(l, t, &k);
    return l;
}

void stk_cuda_depthwise(cuda_program *p, const cuda_depthwise *conv, cuda_ref y,
                        const cuda_norm *norm) {
    static const cuda_norm none = {.weight = {CUDA_NO_BUFFER, 0},
                                   .bias = {CUDA_NO_BUFFER, 0},
                                   .running_mean = {CUDA_NO_BUFFER, 0},
                                   .running_var = {CUDA_NO_BUFFER, 0},
                                   .coefs = {CUDA_NO_BUFFER, 0}};
    depthwise_task t = {.conv = conv,
                        .activated = conv->in_norm != NULL,
                        .height = conv->out_height,
                        .width = conv->out_width,
                        .entries = norm != NULL ? 3 : 0,
                        .element = cuda_type_bytes(p->type),
                        .most_bytes = cuda_block_shared(p)};
    cuda_ref slots, counters;
    cuda_launch *l = launch_task(p, "depthwise", "depthwise_forward", &t, &slots, &counters);
    stk_cuda_define(l, "STATS", norm != NULL);
    if (norm != NULL) {
        stk_cuda_define_stats(p, l);
    }
    const cuda_norm *n = norm != NULL ? norm : &none;
    CUDA_ARGS(l, conv->x, conv->in_norm != NULL ? conv->in_norm->coefs : cuda_nothing(),
              conv->weight, y, cuda_int(conv->batch), n->weight, n->bias, n->running_mean,
              n->running_var, cuda_float(n->epsilon), n->coefs, slots, counters);
}

static void emit_back(cuda_program *p, const cuda_depthwise *conv, cuda_ref dy, cuda_ref dx,
                      bool add) {
    const cuda_norm *norm = conv->in_norm;
    bool wanted = cuda_is_something(dx);
    bool sums = norm != NULL && wanted;
    int taps = conv->kernel * conv->kernel;
    depthwise_task t = {.conv = conv,
                        .back = true,
                        .dx = wanted,
                        .add = add,
                        .height = conv->height,
                        .width = conv->width,
                        .entries = taps + (sums ? 2 : 0),
                        .element = cuda_type_bytes(p->type),
                        .most_bytes = cuda_block_shared(p)};
    cuda_ref slots, counters;
    cuda_launch *l = launch_task(p, "depthwise_back", "depthwise_back", &t, &slots, &counters);
    CUDA_DEFINES(l, {"DX", t.dx}, {"ADD", t.add});
    if (sums) {
        stk_cuda_define_stats(p, l);
    }
    CUDA_ARGS(l, dy, conv->x, norm != NULL ? norm->coefs : cuda_nothing(),
              wanted ? conv->weight : cuda_nothing(), dx, conv->weight_grad, cuda_int(conv->batch),
              sums ? norm->weight : cuda_nothing(), sums ? norm->weight_grad : cuda_nothing(),
              sums ? norm->bias_grad : cuda_nothing(), sums ? norm->back : cuda_nothing(), slots,
              counters);
}

void stk_cuda_depthwise_weight(cuda_program *p, const cuda_depthwise *conv, cuda_ref dy) {
    emit_back(p, conv, dy, cuda_nothing(), false);
}

void stk_cuda_depthwise_back(cuda_program *p, const cuda_depthwise *conv, cuda_ref dy, cuda_ref dx,
                             bool accumulate) {
    emit_back(p, conv, dy, dx, accumulate);
}
