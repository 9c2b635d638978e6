/*
 * layer_back.c - launches of kernels/layer_back.cu: rows of a tile, and tiles in flight.
 *
 * With larger tiles weights are read from shared memory less often and threads wait for each other
 * less. With fewer warps each computes more of dW and loads less for it. So where there are many
 * weights a multiprocessor has one block with all registers and shared memory; otherwise two, one
 * of which computes while the other waits.
 */
#include "backend/cuda/emit/emit.h"
#include "backend/cuda/program/grid.h"

#define FILE_NAME "layer_back"
#define PIECE 16                 /* bytes, as in layer_back.cu */
#define MOST_WEIGHTS 20480       /* their gradient stays in registers */
#define MOST_WEIGHTS_OF_TWO 8192 /* where there are two blocks */
#define MOST_COLUMNS 512         /* channels: a thread has 8 of them */
#define THREADS 256
#define WARPS (THREADS / 32)
#define MOST_STAGES 3
#define SUM_THREADS 256
#define SUM_QUADS 16 /* of a block, four sums each */

typedef struct layer_grid {
    int rows; /* of a tile */
    int stages;
    int blocks; /* of a multiprocessor */
    int tall;   /* a warp computes 16 * tall rows of dx */
    int high;   /* warps that divide the output's channels among them */
    unsigned grid;
    size_t shared_bytes;
} layer_grid;

/* Pieces from one row in shared memory to the next, as APART of tiles.cuh. */
static size_t apart(int channels) {
    size_t pieces = cuda_ceil((size_t)channels, 16) * 2;
    return pieces % 8 == 0 ? pieces : pieces | 1;
}

static bool has_mask(const cuda_layer_back *layer) {
    bool steps = layer->tail.act == STK_OP_RELU || layer->tail.act == STK_OP_RELU6;
    return steps && cuda_is_something(layer->mask);
}

/* Bytes of a tile in shared memory. */
static size_t stage_bytes(const cuda_layer_back *layer, int rows) {
    size_t n = (size_t)rows * apart(layer->plane.channels);
    size_t k = (size_t)rows * apart(layer->channels);
    bool own = layer->accumulate || cuda_ceil((size_t)layer->channels, 16) >
                                        cuda_ceil((size_t)layer->plane.channels, 16);
    size_t bits = (size_t)rows * (size_t)layer->plane.channels;
    return (2 * n + (own ? 2 : 1) * k + (has_mask(layer) ? cuda_ceil(bits, 128) : 0)) * PIECE;
}

/* How the gradient of the weights is cut: the fewest products of a warp, then the fewest loads. */
static int high_of(const cuda_layer_back *layer) {
    int best = 1;
    int best_cost = 0;
    for (int high = 1; high <= WARPS; high *= 2) {
        int m = (int)cuda_ceil(cuda_ceil((size_t)layer->plane.channels, 16), (size_t)high);
        int p = (int)cuda_ceil(cuda_ceil((size_t)layer->channels, 16), (size_t)(WARPS / high));
        int cost = 16 * m * p + m + p;
        if (best_cost == 0 || cost < best_cost) {
            best = high;
            best_cost = cost;
        }
    }
    return best;
}

static size_t weights_of(const cuda_layer_back *layer) {
    return (size_t)layer->plane.channels * (size_t)layer->channels;
}

static layer_grid shape_of(const cuda_program *p, const cuda_layer_back *layer) {
    size_t filters = cuda_ceil((size_t)layer->plane.channels, 16) * 16;
    size_t weights = filters * apart(layer->channels) * PIECE;
    layer_grid s = {.rows = 64, .stages = 2, .blocks = 1, .tall = 1, .high = high_of(layer)};
    size_t most = CUDA_MOST_SHARED;
    if (weights_of(layer) <= MOST_WEIGHTS_OF_TWO &&
        weights + 2 * stage_bytes(layer, 32) <= CUDA_HALF_SHARED) {
        s.rows = 32;
        s.blocks = 2;
        most = CUDA_HALF_SHARED;
    }
    while (s.rows > 16 && weights + 2 * stage_bytes(layer, s.rows) > most) {
        s.rows /= 2;
    }
    while (s.stages < MOST_STAGES &&
           weights + (size_t)(s.stages + 1) * stage_bytes(layer, s.rows) <= most) {
        s.stages++;
    }
    if (s.rows == 64 && layer->channels > layer->plane.channels) { /* weights are read less often */
        s.tall = 2;
    }
    s.shared_bytes = weights + (size_t)s.stages * stage_bytes(layer, s.rows);
    s.grid = cuda_blocks(p, cuda_rows(layer->plane), (size_t)s.rows, s.blocks);
    return s;
}

static bool possible(const cuda_program *p, const cuda_layer_back *layer) {
    bool from_x = layer->tail.act != STK_OP_COUNT && !has_mask(layer);
    return cuda_has_most_shared(p) && p->type != CUDA_TYPE_F32 && layer->plane.channels % 8 == 0 &&
           layer->channels % 8 == 0 && layer->plane.channels <= MOST_COLUMNS &&
           layer->channels <= MOST_COLUMNS && weights_of(layer) <= MOST_WEIGHTS &&
           !(from_x && layer->tail.drop_rate > 0) &&
           shape_of(p, layer).shared_bytes <= CUDA_MOST_SHARED;
}

size_t stk_cuda_layer_back_scratch(const cuda_program *p, const cuda_layer_back *layer) {
    return possible(p, layer) ? shape_of(p, layer).grid * weights_of(layer) * sizeof(float) : 0;
}

static void define(cuda_launch *launch, const cuda_layer_back *layer, layer_grid s) {
    CUDA_DEFINES(launch, {"N", layer->plane.channels}, {"K", layer->channels}, {"ROWS", s.rows},
                 {"STAGES", s.stages}, {"THREADS", THREADS}, {"BLOCKS", s.blocks}, {"HIGH", s.high},
                 {"DX_TALL", s.tall}, {"ACT", stk_cuda_act_code(layer->tail.act)},
                 {"DROP", layer->tail.drop_rate > 0}, {"MASK", has_mask(layer)},
                 {"ADDED_DX", cuda_is_something(layer->added_dx)},
                 {"ACCUMULATE", layer->accumulate}, {"IN_NORM", layer->in_norm != NULL},
                 {"IN_ACT", layer->in_norm != NULL ? stk_cuda_act_code(layer->in_act) : 0});
}

void stk_cuda_layer_back(cuda_program *p, const cuda_layer_back *layer) {
    layer_grid s = shape_of(p, layer);
    size_t count = weights_of(layer);
    cuda_launch *launch =
        stk_cuda_launch(p, FILE_NAME, "layer_back", s.grid, 1, THREADS, (unsigned)s.shared_bytes);
    define(launch, layer, s);
    CUDA_ARGS(launch, layer->g, layer->x, layer->norm->coefs, layer->norm->back,
              has_mask(layer) ? layer->mask : cuda_nothing(), layer->added_dx, layer->input,
              layer->in_norm != NULL ? layer->in_norm->coefs : cuda_nothing(), layer->weight,
              layer->dx, layer->partial, cuda_fixed_at(CUDA_FIXED_CONSTANTS, 0),
              cuda_int((int32_t)cuda_rows(layer->plane)), cuda_int(layer->plane.pixels),
              cuda_float(layer->tail.drop_rate), cuda_int(layer->tail.drop_node));
    launch = stk_cuda_launch(p, FILE_NAME, "layer_back_sum",
                             (unsigned)cuda_ceil(count, (size_t)4 * SUM_QUADS), 1, SUM_THREADS,
                             SUM_THREADS * PIECE);
    CUDA_DEFINES(launch, {"COUNT", (long)count}, {"QUADS", SUM_QUADS},
                 {"REDUCERS", SUM_THREADS / SUM_QUADS});
    CUDA_ARGS(launch, layer->partial, layer->weight_grad, cuda_int((int)s.grid));
}
