/*
 * norm.c - launches of kernels/norm.cu and norm_back.cu: threads, and bytes in flight, by case.
 *
 * The registers that a thread needs limit how many threads a multiprocessor holds. The bytes that
 * these threads have in flight must cover the latency of memory: some 32 KiB for each
 * multiprocessor of an H200, better twice that. A pass that reads more tensors, or has more
 * coefficients per channel, has fewer threads (effort_of()). Passes that sum have two large blocks
 * for each multiprocessor, so that few partial sums are left to add; other passes have small
 * blocks.
 */
#include "backend/cuda/emit/emit.h"
#include "backend/cuda/program/grid.h"

#define FORWARD "norm" /* files of kernels */
#define BACKWARD "norm_back"
#define LANES 8        /* channels of a thread, as in prelude.cuh */
#define WIDEST_SUMS 32 /* groups of a tile whose sums are taken: rows of a block stay 8 or more */
#define BLOCK 256      /* threads of a block that only reads and writes, about */

/* How much a pass reads at a time. */
typedef struct effort {
    int threads; /* that a multiprocessor should hold */
    int depth;   /* rows that a thread has in flight */
} effort;

/* How a launch divides rows and channels among its blocks. */
typedef struct norm_grid {
    int groups;
    int tile;    /* groups that a block is wide */
    int tiles;   /* of a row */
    int threads; /* of a block */
    int blocks;  /* that a multiprocessor should hold */
    int depth;
    unsigned grid; /* blocks of a tile */
} norm_grid;

/*
 * What a pass that reads `tensors` tensors at once has in flight; `heavy`: its coefficients need
 * many registers. With these numbers no register spills: a thread has 64, 80 or 128.
 */
static effort effort_of(const cuda_program *p, int channels, int tensors, bool heavy) {
    effort e = {1024, 4};
    if (heavy || tensors > 2) {
        e = (effort){512, heavy && tensors > 2 ? 2 : 4};
    } else if (tensors == 2) {
        e = (effort){768, 3};
    }
    if (p->type == CUDA_TYPE_F32) { /* a number takes twice the registers */
        e.depth /= 2;
    }
    if (channels % LANES != 0) {
        e.depth = 1;
    }
    return e;
}

static int ceil_div(int value, int by) {
    return (value + by - 1) / by;
}

/*
 * How many groups of channels a tile of a pass that sums has. Wide tiles read more memory in a row.
 * But the last block of a tile adds up the sums of all blocks of that tile in tile * tile / groups
 * steps, because wide tiles are few and have many blocks each. Ten steps, about a microsecond, are
 * allowed. A tile that divides `groups` is preferred, above all one that is a multiple of 8, so
 * that tiles are whole lines of the cache.
 */
static int sums_tile(int groups) {
    int most = 1;
    while (most < WIDEST_SUMS && most < groups && (most + 1) * (most + 1) <= 10 * groups) {
        most++;
    }
    int best = 0;
    int best_even = 0;
    for (int tile = most; 2 * tile >= most; tile--) {
        int even = tile % 8 == 0 ? 8 : tile % 4 == 0 ? 4 : tile % 2 == 0 ? 2 : 1;
        if (groups % tile == 0 && even > best_even) {
            best = tile;
            best_even = even;
        }
    }
    return best > 0 ? best : ceil_div(groups, ceil_div(groups, most));
}

/* How many groups a tile has that leaves the fewest threads of a block without work; whole rows if
 * these leave few. */
static int rows_tile(int groups) {
    int best = 1;
    int best_used = 0;
    int from = ceil_div(groups, BLOCK);
    for (int tiles = from; tiles < from + 8; tiles++) {
        int tile = ceil_div(groups, tiles);
        int used = tile * (BLOCK / tile) * 100 / BLOCK * groups / (tile * ceil_div(groups, tile));
        if (used > best_used) {
            best = tile;
            best_used = used;
        }
        if (used >= 85) {
            break;
        }
    }
    return best;
}

static norm_grid shape_of(const cuda_program *p, cuda_plane plane, int tile, int threads,
                          effort e) {
    norm_grid s = {.groups = ceil_div(plane.channels, LANES), .tile = tile, .depth = e.depth};
    int high = threads / tile;
    s.tiles = ceil_div(s.groups, tile);
    s.threads = high * tile;
    s.blocks = e.threads / threads;
    int most = p->multiprocessors * s.blocks / s.tiles;
    size_t wanted = cuda_ceil(cuda_rows(plane), (size_t)high * (size_t)e.depth);
    size_t limit = most > 1 ? (size_t)most : 1;
    s.grid = (unsigned)(wanted < limit ? wanted : limit);
    return s;
}

static norm_grid shape_of_sums(const cuda_program *p, cuda_plane plane, effort e) {
    int tile = sums_tile(ceil_div(plane.channels, LANES));
    return shape_of(p, plane, tile, e.threads / 2, e);
}

static norm_grid shape_of_rows(const cuda_program *p, cuda_plane plane, effort e) {
    return shape_of(p, plane, rows_tile(ceil_div(plane.channels, LANES)), BLOCK, e);
}

static cuda_launch *launch_with(cuda_program *p, const char *file, const char *name,
                                cuda_plane plane, norm_grid s, unsigned shared_bytes) {
    cuda_launch *launch = stk_cuda_launch(p, file, name, s.grid, (unsigned)s.tiles,
                                          (unsigned)s.threads, shared_bytes);
    stk_cuda_define(launch, "C", plane.channels);
    stk_cuda_define(launch, "WHOLE", plane.channels % LANES == 0);
    stk_cuda_define(launch, "TILE", s.tile);
    stk_cuda_define(launch, "THREADS", s.threads);
    stk_cuda_define(launch, "DEPTH", s.depth);
    stk_cuda_define(launch, "BLOCKS", s.blocks);
    return launch;
}

/* Columns of a tile: its channels, `sums` times. */
static size_t columns_of(norm_grid s, int sums) {
    return (size_t)sums * LANES * (size_t)s.tile;
}

/* Bytes of the sums that the blocks of a launch leave for the last block. */
static size_t partial_bytes(norm_grid s, int sums) {
    return columns_of(s, sums) * s.grid * (size_t)s.tiles * sizeof(float);
}

static cuda_launch *launch_sums(cuda_program *p, const char *file, const char *name,
                                cuda_plane plane, norm_grid s, int sums) {
    size_t columns = columns_of(s, sums);
    size_t shared =
        (size_t)s.threads * LANES * sizeof(float) + columns * sizeof(double) + sizeof(double);
    cuda_launch *launch = launch_with(p, file, name, plane, s, (unsigned)shared);
    stk_cuda_define(launch, "SUMS", sums);
    return launch;
}

static cuda_launch *launch_rows(cuda_program *p, const char *file, const char *name,
                                cuda_plane plane, effort e) {
    return launch_with(p, file, name, plane, shape_of_rows(p, plane, e), 0);
}

/* ---- what the passes have in common ---- */

/* What follows the norm in its chain. */
typedef struct norm_chain {
    int act; /* ACT_ of prelude.cuh */
    bool drop;
    bool mask;
    bool from_x;     /* backward derives the slope from the activation's input */
    int added;       /* 0: nothing, 1: a value, 2: the norm of a value */
    bool read_added; /* backward reads the added value again */
} norm_chain;

static norm_chain chain_of(const cuda_tail *tail, const cuda_added *added, cuda_ref mask) {
    norm_chain c = {.act = stk_cuda_act_code(tail->act), .drop = tail->drop_rate > 0};
    bool steps = tail->act == STK_OP_RELU || tail->act == STK_OP_RELU6;
    c.mask = steps && cuda_is_something(mask);
    c.from_x = c.act != 0 && !c.mask;
    if (added != NULL && cuda_is_something(added->x)) {
        c.added = added->norm != NULL ? 2 : 1;
    }
    c.read_added = c.added == 2 || (c.added == 1 && c.from_x);
    return c;
}

static void define_chain(cuda_launch *launch, const norm_chain *c) {
    stk_cuda_define(launch, "ACT", c->act);
    stk_cuda_define(launch, "FROM_X", c->from_x);
    stk_cuda_define(launch, "DROP", c->drop);
    stk_cuda_define(launch, "MASK", c->mask);
    stk_cuda_define(launch, "ADDED", c->added);
}

/* The last arguments of every pass. */
static void tell_rows(cuda_launch *launch, cuda_plane plane, const cuda_tail *tail) {
    CUDA_ARGS(launch, cuda_fixed_at(CUDA_FIXED_CONSTANTS, 0), cuda_int((int32_t)cuda_rows(plane)),
              cuda_int(plane.pixels), cuda_float(tail->drop_rate), cuda_int(tail->drop_node));
}

static cuda_ref when(bool so, cuda_ref ref) {
    return so ? ref : cuda_nothing();
}

static size_t most_of(size_t a, size_t b) {
    return a > b ? a : b;
}

/* ---- forward ---- */

static norm_grid shape_of_stats(const cuda_program *p, cuda_plane plane) {
    return shape_of_sums(p, plane, effort_of(p, plane.channels, 1, false));
}

size_t stk_cuda_norm_scratch(const cuda_program *p, cuda_plane plane) {
    return most_of(partial_bytes(shape_of_stats(p, plane), 2),
                   2 * (size_t)plane.channels * sizeof(float));
}

/* The parameters of a norm, and the coefficients that a kernel makes of them. */
static void arg_norm(cuda_launch *launch, const cuda_norm *norm) {
    CUDA_ARGS(launch, norm->weight, norm->bias, norm->running_mean, norm->running_var, norm->coefs);
}

void stk_cuda_norm_stats(cuda_program *p, cuda_plane plane, cuda_ref x, const cuda_norm *norm,
                         cuda_ref scratch) {
    norm_grid s = shape_of_stats(p, plane);
    cuda_ref partial =
        cuda_is_something(scratch) ? scratch : stk_cuda_buffer(p, stk_cuda_norm_scratch(p, plane));
    cuda_launch *launch = launch_sums(p, FORWARD, "norm_stats", plane, s, 2);
    stk_cuda_define_stats(p, launch);
    stk_cuda_arg(launch, x);
    arg_norm(launch, norm);
    CUDA_ARGS(launch, cuda_int(norm->narrow), partial, stk_cuda_counters(p, s.tiles),
              cuda_int((int32_t)cuda_rows(plane)), cuda_float(norm->epsilon));
}

/* A kernel with one thread for each channel. */
static cuda_launch *launch_channels(cuda_program *p, const char *kernel, int channels) {
    unsigned threads = 128;
    return stk_cuda_launch(p, FORWARD, kernel, (unsigned)cuda_ceil((size_t)channels, threads), 1,
                           threads, 0);
}

void stk_cuda_norm_finalise(cuda_program *p, cuda_plane plane, const cuda_norm *norm,
                            cuda_ref sums) {
    cuda_launch *launch = launch_channels(p, "norm_finalise", plane.channels);
    stk_cuda_define_stats(p, launch);
    stk_cuda_arg(launch, sums);
    arg_norm(launch, norm);
    CUDA_ARGS(launch, cuda_int(norm->narrow), cuda_int(plane.channels),
              cuda_int((int32_t)cuda_rows(plane)), cuda_float(norm->epsilon));
}

void stk_cuda_norm_running(cuda_program *p, int channels, const cuda_norm *norm) {
    cuda_launch *launch = launch_channels(p, "norm_running", channels);
    arg_norm(launch, norm);
    CUDA_ARGS(launch, cuda_int(channels), cuda_float(norm->epsilon));
}

void stk_cuda_norm_apply(cuda_program *p, cuda_plane plane, cuda_ref x, const cuda_norm *norm,
                         const cuda_tail *tail, const cuda_added *added, cuda_ref y,
                         cuda_ref mask) {
    norm_chain c = chain_of(tail, added, mask);
    effort e = effort_of(p, plane.channels, c.added != 0 ? 2 : 1, false);
    cuda_launch *launch = launch_rows(p, FORWARD, "norm_apply", plane, e);
    define_chain(launch, &c);
    CUDA_ARGS(launch, x, norm->coefs, c.added != 0 ? added->x : cuda_nothing(),
              c.added == 2 ? added->norm->coefs : cuda_nothing(), y, when(c.mask, mask));
    tell_rows(launch, plane, tail);
}

/* ---- backward ---- */

/* The grid of the first pass; *sums becomes the number of sums per channel. */
static norm_grid shape_of_reduce(const cuda_program *p, const cuda_norm_back *back, bool again,
                                 int *sums) {
    norm_chain c = chain_of(&back->tail, &back->added, back->mask);
    bool heavy = c.added == 2 && (c.from_x || c.drop);
    *sums = c.added != 2 ? 2 : c.drop ? 4 : 3;
    return shape_of_sums(p, back->plane,
                         effort_of(p, back->plane.channels, c.read_added ? 3 : 2, heavy || again));
}

size_t stk_cuda_norm_reduce_scratch(const cuda_program *p, const cuda_norm_back *back, bool again) {
    int sums = 0;
    norm_grid s = shape_of_reduce(p, back, again, &sums);
    return partial_bytes(s, sums);
}

void stk_cuda_norm_reduce(cuda_program *p, const cuda_norm_back *back, cuda_ref again,
                          cuda_ref scratch) {
    static const cuda_norm none = {.weight = {CUDA_NO_BUFFER, 0},
                                   .weight_grad = {CUDA_NO_BUFFER, 0},
                                   .bias_grad = {CUDA_NO_BUFFER, 0},
                                   .coefs = {CUDA_NO_BUFFER, 0},
                                   .back = {CUDA_NO_BUFFER, 0}};
    cuda_plane plane = back->plane;
    const cuda_norm *norm = back->norm;
    norm_chain c = chain_of(&back->tail, &back->added, back->mask);
    const cuda_norm *other = c.added == 2 ? back->added.norm : &none;
    int sums = 0;
    norm_grid s = shape_of_reduce(p, back, cuda_is_something(again), &sums);
    cuda_ref partial =
        cuda_is_something(scratch) ? scratch : stk_cuda_buffer(p, partial_bytes(s, sums));
    cuda_launch *launch = launch_sums(p, BACKWARD, "norm_reduce", plane, s, sums);
    define_chain(launch, &c);
    stk_cuda_define(launch, "AGAIN", cuda_is_something(again));
    stk_cuda_define_stats(p, launch);
    CUDA_ARGS(launch, back->g, back->x, norm->weight, norm->coefs,
              c.read_added ? back->added.x : cuda_nothing(), other->weight, other->coefs,
              when(c.mask, back->mask), again, norm->weight_grad, norm->bias_grad, norm->back,
              other->weight_grad, other->bias_grad, other->back, partial,
              stk_cuda_counters(p, s.tiles));
    tell_rows(launch, plane, &back->tail);
}

void stk_cuda_norm_backward(cuda_program *p, const cuda_norm_back *back) {
    cuda_plane plane = back->plane;
    const cuda_norm *norm = back->norm;
    norm_chain c = chain_of(&back->tail, &back->added, back->mask);
    bool with_dx = cuda_is_something(back->dx);
    bool with_added = cuda_is_something(back->added.dx);
    if (!with_dx && !with_added) {
        return;
    }
    if (c.added == 0 && with_added) { /* backward need not read the added value */
        c.added = 1;
    }
    bool both = with_added && c.added == 2;
    bool accumulate = with_added && back->added.accumulate;
    effort e = effort_of(p, plane.channels, 2 + (c.read_added || accumulate), both && c.from_x);
    cuda_launch *launch = launch_rows(p, BACKWARD, "norm_backward", plane, e);
    define_chain(launch, &c);
    CUDA_DEFINES(launch, {"DX", with_dx}, {"ADDED_DX", accumulate ? 2 : with_added});
    CUDA_ARGS(launch, back->g, back->x, norm->coefs, norm->back,
              c.read_added ? back->added.x : cuda_nothing(),
              c.added == 2 ? back->added.norm->coefs : cuda_nothing(),
              c.added == 2 ? back->added.norm->back : cuda_nothing(), when(c.mask, back->mask),
              back->dx, with_added ? back->added.dx : cuda_nothing());
    tell_rows(launch, plane, &back->tail);
}
