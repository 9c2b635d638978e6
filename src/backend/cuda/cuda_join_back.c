/*
 * cuda_join_back.c - launches of kernels/join_back.cu: how large tiles are, and how many wait.
 *
 * Two blocks for each multiprocessor share its memory and its registers; while one waits for the
 * other warps of its block, the other one computes. Small tiles, many of which are under way, are
 * better than large ones, few of which are.
 */
#include "backend/cuda/cuda_emit.h"
#include "backend/cuda/cuda_grid.h"

#define FILE_NAME "join_back"
#define PIECE 16         /* bytes, as in join_back.cu */
#define BLOCKS 2         /* of a multiprocessor: each has CUDA_HALF_SHARED */
#define MOST_FILTERS 128 /* whose weights fit into registers */
#define TILE_ROWS 16
#define MOST_STAGES 6
#define SETTLE_THREADS 256
#define SETTLE_QUADS 8 /* of a block, four channels each */
#define SETTLE_HANDS (SETTLE_THREADS / SETTLE_QUADS)

typedef struct shape {
    int columns; /* of a block, and its threads */
    int stages;
    unsigned grid[2];
    size_t shared_bytes;
} shape;

static size_t rows_of(const cuda_join_back *join) {
    return (size_t)join->plane.batch * (size_t)join->plane.pixels;
}

static shape shape_of(const cuda_program *p, const cuda_join_back *join) {
    size_t pieces = (size_t)join->filters / 8;
    shape s = {.columns = join->plane.channels % 256 == 0 ? 256 : 128};
    size_t apart = pieces % 8 == 0 ? pieces : pieces | 1; /* as APART of prelude.cuh */
    size_t stage = (TILE_ROWS * apart + 2 * (size_t)(TILE_ROWS / 8) * (size_t)s.columns +
                    TILE_ROWS * (size_t)s.columns / 128) *
                   PIECE;
    size_t fit = CUDA_HALF_SHARED / stage;
    s.stages = (int)(fit < MOST_STAGES ? fit : MOST_STAGES);
    s.shared_bytes = (size_t)s.stages * stage;
    s.grid[1] = (unsigned)(join->plane.channels / s.columns);
    size_t most = (size_t)p->multiprocessors * BLOCKS / s.grid[1];
    size_t tiles = cuda_ceil(rows_of(join), TILE_ROWS);
    s.grid[0] = (unsigned)(tiles < most ? tiles : most > 0 ? most : 1);
    return s;
}

size_t stk_cuda_join_back_scratch(const cuda_program *p, const cuda_join_back *join) {
    bool possible = cuda_has_most_shared(p) && p->type != CUDA_TYPE_F32 &&
                    join->plane.channels % 128 == 0 && join->filters % 16 == 0 &&
                    join->filters <= MOST_FILTERS;
    return possible ? 2 * (size_t)join->plane.channels * shape_of(p, join).grid[0] * sizeof(float)
                    : 0;
}

void stk_cuda_join_back(cuda_program *p, const cuda_join_back *join) {
    shape s = shape_of(p, join);
    cuda_launch *launch = stk_cuda_launch(p, FILE_NAME, "join_back", s.grid[0], s.grid[1],
                                          (unsigned)s.columns, (unsigned)s.shared_bytes);
    stk_cuda_define(launch, "N", join->filters);
    stk_cuda_define(launch, "K", join->plane.channels);
    stk_cuda_define(launch, "COLUMNS", s.columns);
    stk_cuda_define(launch, "ROWS", TILE_ROWS);
    stk_cuda_define(launch, "STAGES", s.stages);
    stk_cuda_define(launch, "BLOCKS", BLOCKS);
    stk_cuda_arg(launch, join->dy);
    stk_cuda_arg(launch, join->weight);
    stk_cuda_arg(launch, join->old);
    stk_cuda_arg(launch, join->mask);
    stk_cuda_arg(launch, join->x);
    stk_cuda_arg(launch, join->norm->coefs);
    stk_cuda_arg(launch, join->dz);
    stk_cuda_arg(launch, join->partial);
    stk_cuda_arg_int(launch, (int32_t)rows_of(join));
}

void stk_cuda_join_back_settle(cuda_program *p, const cuda_join_back *join) {
    shape s = shape_of(p, join);
    cuda_launch *launch = stk_cuda_launch(
        p, FILE_NAME, "join_back_settle", (unsigned)join->plane.channels / (4 * SETTLE_QUADS), 1,
        SETTLE_THREADS, SETTLE_HANDS * 2 * 4 * SETTLE_QUADS * (unsigned)sizeof(double));
    stk_cuda_define(launch, "K", join->plane.channels);
    stk_cuda_define(launch, "QUADS", SETTLE_QUADS);
    stk_cuda_define(launch, "HANDS", SETTLE_HANDS);
    stk_cuda_arg(launch, join->partial);
    stk_cuda_arg(launch, join->norm->weight);
    stk_cuda_arg(launch, join->norm->coefs);
    stk_cuda_arg(launch, join->norm->weight_grad);
    stk_cuda_arg(launch, join->norm->bias_grad);
    stk_cuda_arg(launch, join->norm->back);
    stk_cuda_arg_int(launch, (int)s.grid[0]);
    stk_cuda_arg_int(launch, (int32_t)rows_of(join));
}
