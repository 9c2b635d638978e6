/*
 * join_back.c - launches of kernels/join_back.cu: rows of a tile, and tiles in flight.
 *
 * Weights lie in registers. Where there are few, a multiprocessor holds two blocks, one of which
 * computes while the warps of the other wait for each other; otherwise one. Two tiles of 32 rows in
 * flight keep memory busy; a block uses what it has room for. These numbers were measured.
 */
#include "backend/cuda/emit/emit.h"
#include "backend/cuda/program/grid.h"

#define FILE_NAME "join_back"
#define PIECE 16         /* bytes, as in join_back.cu */
#define MOST_FILTERS 256 /* whose weights fit into registers */
#define TILE_ROWS 32
#define MOST_STAGES 5
#define FINALISE_THREADS 256
#define FINALISE_QUADS 8 /* of a block, four channels each */
#define FINALISE_REDUCERS (FINALISE_THREADS / FINALISE_QUADS)

typedef struct join_back_grid {
    int columns; /* of a block, and its threads */
    int blocks;  /* of a multiprocessor */
    int stages;
    unsigned grid[2];
    size_t shared_bytes;
} join_back_grid;

static bool has_other(const cuda_join_back *join) {
    return join->other_norm != NULL;
}

/* Sums of a channel. */
static size_t sums_of(const cuda_join_back *join) {
    return has_other(join) ? 3 : 2;
}

/* Bytes of a tile in shared memory. */
static size_t stage_bytes(const cuda_join_back *join, int columns) {
    size_t pieces = (size_t)join->filters / 8;
    size_t apart = pieces % 8 == 0 ? pieces : pieces | 1; /* as APART of tiles.cuh */
    return (TILE_ROWS * apart + sums_of(join) * (size_t)(TILE_ROWS / 8) * (size_t)columns +
            TILE_ROWS * (size_t)columns / 128) *
           PIECE;
}

static join_back_grid shape_of(const cuda_program *p, const cuda_join_back *join) {
    join_back_grid s = {.columns = join->plane.channels % 256 == 0 ? 256 : 128, .blocks = 1};
    size_t most = MOST_STAGES;
    if (join->filters <= 64) {
        s.blocks = 2;
        most = 2;
    } else if (join->filters <= 128 && join->plane.channels % 512 == 0 && !has_other(join)) {
        s.columns = 512;
        most = 2;
    }
    size_t stage = stage_bytes(join, s.columns);
    size_t fit = (s.blocks == 2 ? CUDA_HALF_SHARED : CUDA_MOST_SHARED) / stage;
    s.stages = (int)(fit < most ? fit : most);
    s.shared_bytes = (size_t)s.stages * stage;
    s.grid[1] = (unsigned)(join->plane.channels / s.columns);
    size_t share = (size_t)p->multiprocessors * (size_t)s.blocks / s.grid[1];
    size_t tiles = cuda_ceil(cuda_rows(join->plane), TILE_ROWS);
    s.grid[0] = (unsigned)(tiles < share ? tiles : share > 0 ? share : 1);
    return s;
}

size_t stk_cuda_join_back_scratch(const cuda_program *p, const cuda_join_back *join) {
    bool possible = cuda_has_most_shared(p) && p->type != CUDA_TYPE_F32 &&
                    join->plane.channels % 128 == 0 && join->filters % 16 == 0 &&
                    join->filters <= MOST_FILTERS;
    size_t columns = sums_of(join) * (size_t)join->plane.channels;
    return possible ? columns * shape_of(p, join).grid[0] * sizeof(float) : 0;
}

void stk_cuda_join_back(cuda_program *p, const cuda_join_back *join) {
    join_back_grid s = shape_of(p, join);
    cuda_launch *launch = stk_cuda_launch(p, FILE_NAME, "join_back", s.grid[0], s.grid[1],
                                          (unsigned)s.columns, (unsigned)s.shared_bytes);
    CUDA_DEFINES(launch, {"N", join->filters}, {"K", join->plane.channels}, {"COLUMNS", s.columns},
                 {"ROWS", TILE_ROWS}, {"STAGES", s.stages}, {"BLOCKS", s.blocks},
                 {"OTHER", has_other(join)});
    CUDA_ARGS(launch, join->dy, join->weight, join->old, join->mask, join->x, join->norm->coefs,
              has_other(join) ? join->other_x : cuda_nothing(),
              has_other(join) ? join->other_norm->coefs : cuda_nothing(), join->dz, join->partial,
              cuda_int((int32_t)cuda_rows(join->plane)));
}

/* Arguments that describe a norm; NULL: none. */
static void tell_norm(cuda_launch *launch, const cuda_norm *norm) {
    CUDA_ARGS(launch, norm != NULL ? norm->weight : cuda_nothing(),
              norm != NULL ? norm->coefs : cuda_nothing(),
              norm != NULL ? norm->weight_grad : cuda_nothing(),
              norm != NULL ? norm->bias_grad : cuda_nothing(),
              norm != NULL ? norm->back : cuda_nothing());
}

void stk_cuda_join_back_finalise(cuda_program *p, const cuda_join_back *join) {
    join_back_grid s = shape_of(p, join);
    size_t room = FINALISE_REDUCERS * sums_of(join) * 4 * FINALISE_QUADS * sizeof(double);
    cuda_launch *launch = stk_cuda_launch(p, FILE_NAME, "join_back_finalise",
                                          (unsigned)join->plane.channels / (4 * FINALISE_QUADS), 1,
                                          FINALISE_THREADS, (unsigned)room);
    CUDA_DEFINES(launch, {"K", join->plane.channels}, {"QUADS", FINALISE_QUADS},
                 {"REDUCERS", FINALISE_REDUCERS}, {"OTHER", has_other(join)});
    stk_cuda_define_stats(p, launch);
    stk_cuda_arg(launch, join->partial);
    tell_norm(launch, join->norm);
    tell_norm(launch, join->other_norm);
    CUDA_ARGS(launch, cuda_int((int)s.grid[0]), cuda_int((int32_t)cuda_rows(join->plane)));
}
