/*
 * own_kernels.c - grids and arguments of kernels/conv_tail.cu, conv_plain.cu, conv_blocks.cu,
 * conv_rows.cu and conv_check.cu.
 */
#include "backend/cuda/convolution/own_kernels.h"

#include "backend/cuda/convolution/cudnn.h"
#include "backend/cuda/program/grid.h"

/* What buffer numbers of these programs mean. */
enum {
    PLACE_X,
    PLACE_W,
    PLACE_Y,
    PLACE_BIAS,
    PLACE_ADDED,
    PLACE_DOWN,
    PLACE_SUMS,
    PLACE_IN_NORM,
    PLACE_STATS,
    PLACES
};

enum { THREADS = 256, BLOCKS_PER_PROCESSOR = 8, SUMS_PER_PROCESSOR = 4 };

bool stk_cuda_own_has_tail(const cuda_conv_shape *shape) {
    return shape->kind == CUDA_CONV_FORWARD &&
           (shape->bias || shape->added || shape->act != STK_OP_COUNT);
}

void stk_cuda_own_begin(cuda_own *own, const cuda_conv_shape *shape, int multiprocessors) {
    stk_cuda_program_begin(&own->program, shape->type, shape->strict, multiprocessors);
    for (int i = 0; i < CUDA_OWN_PARTS; i++) {
        own->ops[i] = -1;
    }
}

void stk_cuda_own_free(cuda_own *own) {
    stk_cuda_program_free(&own->program);
}

static cuda_ref at(int place) {
    return (cuda_ref){place, 0};
}

static void define_tail(cuda_launch *launch, const cuda_conv_shape *shape) {
    CUDA_DEFINES(launch, {"ACT", stk_cuda_act_code(shape->act)}, {"BIAS", shape->bias},
                 {"ADDED", shape->added});
}

static void add_tail(cuda_program *p, const cuda_conv_shape *shape) {
    int wide = cuda_wide(shape->filters);
    size_t groups = (size_t)shape->batch * (size_t)shape->out_height * (size_t)shape->out_width *
                    (size_t)(shape->filters / wide);
    cuda_launch *launch =
        stk_cuda_launch(p, "conv_tail", "bias_act",
                        cuda_blocks(p, groups, 4 * THREADS, BLOCKS_PER_PROCESSOR), 1, THREADS, 0);
    CUDA_DEFINES(launch, {"C", shape->filters}, {"WIDE", wide});
    define_tail(launch, shape);
    CUDA_ARGS(launch, at(PLACE_Y), at(PLACE_BIAS), at(PLACE_ADDED), cuda_long(groups));
}

static void add_down(cuda_program *p, const cuda_conv_shape *shape) {
    unsigned blocks = (unsigned)cuda_ceil((size_t)shape->filters, THREADS);
    cuda_launch *launch = stk_cuda_launch(p, "conv_tail", "bias_down", blocks, 1, THREADS, 0);
    CUDA_ARGS(launch, at(PLACE_BIAS), at(PLACE_DOWN), cuda_int(shape->filters));
}

/* Scale and shift, where the input is the norm of a stored tensor. */
static void add_in_norm(cuda_launch *launch, const cuda_conv_shape *shape) {
    stk_cuda_define(launch, "IN_NORM", shape->in_norm);
    stk_cuda_arg(launch, at(PLACE_IN_NORM));
}

static void add_sizes(cuda_launch *launch, const cuda_conv_shape *shape) {
    CUDA_ARGS(launch, cuda_int(shape->batch), cuda_int(shape->height), cuda_int(shape->width),
              cuda_int(shape->channels), cuda_int(shape->out_height), cuda_int(shape->out_width),
              cuda_int(shape->filters), cuda_int(shape->kernel), cuda_int(shape->stride),
              cuda_int(shape->pad));
}

static void add_weight(cuda_program *p, const cuda_conv_shape *shape) {
    size_t blocks = (size_t)shape->filters * (size_t)shape->kernel * (size_t)shape->kernel *
                    cuda_ceil((size_t)shape->channels, 32);
    cuda_launch *launch = stk_cuda_launch(p, "conv_plain", "conv_weight", (unsigned)blocks, 1,
                                          THREADS, THREADS * sizeof(float));
    CUDA_ARGS(launch, at(PLACE_X), at(PLACE_W), at(PLACE_Y));
    add_in_norm(launch, shape);
    add_sizes(launch, shape);
}

static void add_whole(cuda_program *p, const cuda_conv_shape *shape) {
    bool forward = shape->kind == CUDA_CONV_FORWARD;
    if (shape->kind == CUDA_CONV_WEIGHT) {
        add_weight(p, shape);
        return;
    }
    size_t pixels = forward ? (size_t)shape->out_height * (size_t)shape->out_width
                            : (size_t)shape->height * (size_t)shape->width;
    size_t count =
        (size_t)shape->batch * pixels * (size_t)(forward ? shape->filters : shape->channels);
    cuda_launch *launch =
        stk_cuda_launch(p, "conv_plain", forward ? "conv_forward" : "conv_data",
                        cuda_blocks(p, count, THREADS, BLOCKS_PER_PROCESSOR), 1, THREADS, 0);
    CUDA_ARGS(launch, at(PLACE_X), at(PLACE_W), at(PLACE_Y));
    if (forward) {
        define_tail(launch, shape);
        CUDA_ARGS(launch, at(PLACE_BIAS), at(PLACE_ADDED));
        add_in_norm(launch, shape);
    } else {
        stk_cuda_define(launch, "ACCUMULATE", shape->accumulate);
    }
    add_sizes(launch, shape);
}

/* ---- kernels/conv_blocks.cu ---- */

/* As in the kernels. */
enum {
    BLOCK_THREADS = 128,
    BLOCK_SIDE = 16,
    BLOCK_CHANNELS = 16,
    BLOCK_MOST_FILTERS = 64,
    BLOCK_MOST_TAPS = 4
};

/* The least compute capability whose warps multiply matrices of 16 by 16. */
#define BLOCK_LEAST_MAJOR 8

bool stk_cuda_own_has_blocks(const cuda_conv_shape *s, int major) {
    return major >= BLOCK_LEAST_MAJOR && s->type != CUDA_TYPE_F32 && s->kind != CUDA_CONV_DATA &&
           !stk_cuda_own_has_tail(s) && !s->in_norm && s->channels == BLOCK_CHANNELS &&
           s->stride == 1 && s->pad == 0 && s->kernel <= BLOCK_MOST_TAPS &&
           s->height == s->out_height + s->kernel - 1 && s->width == s->out_width + s->kernel - 1 &&
           s->filters % 16 == 0 && s->filters <= BLOCK_MOST_FILTERS;
}

bool stk_cuda_own_sums_blocks(const cuda_conv_shape *s) {
    return s->kind == CUDA_CONV_WEIGHT || s->stats;
}

/* Two blocks a multiprocessor, as many tiles for each as possible. */
static unsigned blocks_grid(const cuda_program *p, const cuda_conv_shape *s) {
    size_t tiles = (size_t)s->batch * cuda_ceil((size_t)s->out_height, BLOCK_SIDE) *
                   cuda_ceil((size_t)s->out_width, BLOCK_SIDE);
    size_t most = 2 * (size_t)p->multiprocessors;
    return (unsigned)(tiles < most ? tiles : most);
}

/* Bytes of shared memory: what the kernels say they keep there. */
static unsigned blocks_shared(const cuda_conv_shape *s) {
    int reach = BLOCK_SIDE + s->kernel - 1;
    int tile = reach * reach * 32;
    int line = s->filters * 2 + 16;
    int filters = s->filters * (s->kernel * s->kernel * 32 + 16);
    return (unsigned)(s->kind == CUDA_CONV_WEIGHT ? 2 * (tile + BLOCK_SIDE * BLOCK_SIDE * line)
                                                  : 2 * tile + filters + 4 * 16 * line);
}

static void add_blocks(cuda_program *p, const cuda_conv_shape *s) {
    bool forward = s->kind == CUDA_CONV_FORWARD;
    cuda_launch *launch =
        stk_cuda_launch(p, "conv_blocks", forward ? "blocks_forward" : "blocks_weight",
                        blocks_grid(p, s), 1, BLOCK_THREADS, blocks_shared(s));
    CUDA_DEFINES(launch, {"FILTERS", s->filters}, {"TAPS", s->kernel}, {"STATS", s->stats});
    stk_cuda_arg(launch, at(PLACE_X));
    if (forward) {
        stk_cuda_arg(launch, at(PLACE_W));
    }
    CUDA_ARGS(launch, at(PLACE_Y), at(PLACE_SUMS), cuda_int(s->batch), cuda_int(s->height),
              cuda_int(s->width), cuda_int(s->out_height), cuda_int(s->out_width));
}

/* ---- kernels/conv_rows.cu ---- */

/*
 * Weights stay in registers, half as many as there are channels: the fewer warps there are, the
 * more channels there may be. With more than ROWS_MOST_CHANNELS libraries are faster.
 */
enum {
    ROWS_WARP = 32,          /* filters of a warp */
    ROWS_FEW_CHANNELS = 128, /* up to here a multiprocessor has 16 warps, beyond 8 */
    ROWS_MOST_CHANNELS = 256,
    ROWS_MOST_WEIGHTS = 65536,
    ROWS_MOST_BLOCKS = 2,       /* of a multiprocessor: three were slower */
    ROWS_TILE_BYTES = 16 << 10, /* wanted size of a tile of x */
    ROWS_MOST_BYTES = 32 << 10, /* largest size of it, without the gaps between rows */
    ROWS_TILE_MOST = 128,
    ROWS_SHARED = 96 << 10, /* bytes of a block, which all these GPUs have */
    ROWS_FEWEST = 4096      /* with fewer rows the launch takes most of the time */
};

typedef struct rows_grid {
    int across, tall, blocks, rows, stages;
    unsigned grid[2];
    unsigned shared_bytes;
} rows_grid;

bool stk_cuda_own_has_rows(const cuda_conv_shape *s, int major) {
    int64_t rows = (int64_t)s->batch * s->height * s->width;
    return major >= BLOCK_LEAST_MAJOR && s->type != CUDA_TYPE_F32 && s->kind == CUDA_CONV_FORWARD &&
           !stk_cuda_own_has_tail(s) && s->kernel == 1 && s->stride == 1 && s->pad == 0 &&
           s->height == s->out_height && s->width == s->out_width && rows >= ROWS_FEWEST &&
           rows < INT32_MAX && s->channels > BLOCK_CHANNELS && s->channels <= ROWS_MOST_CHANNELS &&
           s->channels % 8 == 0 && s->filters % 8 == 0 &&
           s->filters <= ROWS_MOST_WEIGHTS / s->channels;
}

static rows_grid grid_of_rows(const cuda_program *p, const cuda_conv_shape *s) {
    rows_grid g;
    int warps = s->channels <= ROWS_FEW_CHANNELS ? 16 : 8; /* of a multiprocessor */
    int wanted = (int)cuda_ceil((size_t)s->filters, ROWS_WARP);
    g.grid[1] = (unsigned)cuda_ceil((size_t)wanted, (size_t)warps);
    g.across = (int)cuda_ceil((size_t)wanted, g.grid[1]);
    g.tall = g.across < 8 ? 8 / g.across : 1;
    while (g.tall > 1 && 32 * g.tall * s->channels > ROWS_MOST_BYTES) {
        g.tall /= 2;
    }
    g.rows = 16 * g.tall;
    while (4 * g.rows * s->channels <= ROWS_TILE_BYTES && 2 * g.rows <= ROWS_TILE_MOST) {
        g.rows *= 2;
    }
    size_t pieces = 2 * cuda_ceil((size_t)s->channels, 16);
    size_t apart = pieces % 8 == 0 ? pieces : pieces | 1; /* as APART of tiles.cuh */
    size_t stage = (size_t)g.rows * apart * 16;
    g.blocks = warps / (g.across * g.tall);
    g.blocks = g.blocks < ROWS_MOST_BLOCKS ? g.blocks : ROWS_MOST_BLOCKS;
    int places = g.blocks > 1 ? 3 : 4; /* two blocks hide more of each other's waits */
    int fit = (int)(ROWS_SHARED / stage);
    g.stages = fit < places ? fit : places;
    size_t tiles_bytes = (size_t)g.stages * stage;
    size_t sums_bytes = 2 * (size_t)(g.tall * g.across * ROWS_WARP) * sizeof(float);
    g.shared_bytes = (unsigned)(tiles_bytes > sums_bytes ? tiles_bytes : sums_bytes);
    size_t tiles =
        cuda_ceil((size_t)s->batch * (size_t)s->height * (size_t)s->width, (size_t)g.rows);
    size_t most = (size_t)p->multiprocessors * (size_t)g.blocks / g.grid[1];
    g.grid[0] = (unsigned)(tiles < most ? tiles : most > 0 ? most : 1);
    return g;
}

static void add_rows(cuda_program *p, const cuda_conv_shape *s) {
    rows_grid g = grid_of_rows(p, s);
    cuda_launch *launch = stk_cuda_launch(p, "conv_rows", "conv_rows", g.grid[0], g.grid[1],
                                          (unsigned)(32 * g.across * g.tall), g.shared_bytes);
    CUDA_DEFINES(launch, {"K", s->channels}, {"N", s->filters}, {"ACROSS", g.across},
                 {"TALL", g.tall}, {"ROWS", g.rows}, {"STAGES", g.stages}, {"BLOCKS", g.blocks},
                 {"STATS", s->stats}, {"IN_NORM", s->in_norm});
    CUDA_ARGS(launch, at(PLACE_X), at(PLACE_W), at(PLACE_IN_NORM), at(PLACE_Y), at(PLACE_SUMS),
              cuda_int(s->batch * s->height * s->width));
}

/* Adds up the partial results of the blocks of either kernel. */
static void add_blocks_sum(cuda_program *p, const cuda_conv_shape *s) {
    bool weight = s->kind == CUDA_CONV_WEIGHT;
    int count = s->filters * (weight ? s->kernel * s->kernel * BLOCK_CHANNELS : 2);
    unsigned blocks =
        s->channels == BLOCK_CHANNELS ? blocks_grid(p, s) : grid_of_rows(p, s).grid[0];
    enum { SUM_COLUMNS = 16, SUM_REDUCERS = 16, SUM_THREADS = SUM_COLUMNS * SUM_REDUCERS };
    cuda_launch *launch = stk_cuda_launch(p, "conv_blocks", "blocks_sum",
                                          (unsigned)cuda_ceil((size_t)count, SUM_COLUMNS), 1,
                                          SUM_THREADS, SUM_THREADS * (unsigned)sizeof(float));
    CUDA_DEFINES(launch, {"WEIGHT", weight}, {"REDUCERS", SUM_REDUCERS});
    CUDA_ARGS(launch, at(PLACE_SUMS), at(weight ? PLACE_W : PLACE_STATS), cuda_int((int32_t)blocks),
              cuda_int(count));
}

static cuda_pointer find_place(const void *context, cuda_ref ref) {
    const cuda_conv_call *call = context;
    const cuda_pointer places[PLACES] = {call->x,         call->w,       call->y,
                                         call->bias,      call->added,   cuda_dnn_bias(call),
                                         call->workspace, call->in_norm, call->stats};
    return places[ref.buffer];
}

static int place_written(const cuda_conv_shape *shape) {
    return shape->kind == CUDA_CONV_FORWARD ? PLACE_Y
           : shape->kind == CUDA_CONV_DATA  ? PLACE_X
                                            : PLACE_W;
}

size_t stk_cuda_own_written(const cuda_conv_call *call, cuda_pointer *place) {
    const cuda_conv_shape *s = call->shape;
    size_t pixels = (size_t)s->batch * (size_t)s->height * (size_t)s->width;
    size_t outs = (size_t)s->batch * (size_t)s->out_height * (size_t)s->out_width;
    size_t taps = (size_t)s->kernel * (size_t)s->kernel * (size_t)s->filters;
    *place = find_place(call, (cuda_ref){place_written(s), 0});
    return s->kind == CUDA_CONV_FORWARD ? outs * (size_t)s->filters
           : s->kind == CUDA_CONV_DATA  ? pixels * (size_t)s->channels
                                        : taps * (size_t)s->channels;
}

static void add_sums(cuda_program *p, const cuda_conv_shape *shape) {
    const cuda_conv_call call = {.shape = shape};
    cuda_pointer place;
    size_t count = stk_cuda_own_written(&call, &place);
    unsigned blocks = cuda_blocks(p, count / 8, 2 * (size_t)THREADS, SUMS_PER_PROCESSOR);
    blocks = blocks < CUDA_OWN_MOST_SUMS ? blocks : CUDA_OWN_MOST_SUMS;
    cuda_launch *launch = stk_cuda_launch(p, "conv_check", "check_sums", blocks, 1, THREADS,
                                          THREADS * CUDA_OWN_SUM_COUNT * sizeof(float));
    stk_cuda_define(launch, "WIDE", CUDA_OWN_SUM_COUNT);
    CUDA_ARGS(launch, at(place_written(shape)), at(PLACE_SUMS), cuda_long(count));
}

void stk_cuda_own_want(cuda_own *own, cuda_own_part part, const cuda_conv_shape *shape) {
    static void (*const add[CUDA_OWN_PARTS])(cuda_program *, const cuda_conv_shape *) = {
        [CUDA_OWN_TAIL] = add_tail,
        [CUDA_OWN_DOWN] = add_down,
        [CUDA_OWN_WHOLE] = add_whole,
        [CUDA_OWN_SUMS] = add_sums,
        [CUDA_OWN_BLOCKS] = add_blocks,
        [CUDA_OWN_ROWS] = add_rows,
        [CUDA_OWN_BLOCKS_SUM] = add_blocks_sum};
    if (own->ops[part] < 0) {
        own->ops[part] = own->program.op_count;
        add[part](&own->program, shape);
    }
}

stk_status stk_cuda_own_run(const cuda_own *own, cuda_own_part part,
                            const cuda_convs_config *config, const cuda_conv_call *call,
                            stk_error *err) {
    return stk_cuda_kernels_launch(config->kernels, &own->program.ops[own->ops[part]].launch,
                                   own->program.type, config->stream, find_place, call, err);
}
