/*
 * join.c - launches of kernels/join.cu: threads of a block, and rows of a tile.
 *
 * A warp holds the weights of its filters in registers: more filters need more warps. A
 * multiprocessor holds 512 threads with as many registers as these need.
 */
#include "backend/cuda/emit/emit.h"
#include "backend/cuda/program/grid.h"

#define FILE_NAME "join"
#define ALL_THREADS 512 /* of a multiprocessor */
#define MOST_WEIGHTS 64 /* registers of a thread that hold weights */
#define TILE_ROWS 16    /* at least */
#define STAGES 4
#define FINALISE_WIDTH 32   /* filters of a block */
#define FINALISE_REDUCERS 8 /* threads for each */

typedef struct join_grid {
    int threads; /* of a block; 0: the shape cannot be computed */
    int blocks;  /* of a multiprocessor */
    int rows;    /* of a tile */
    unsigned grid;
    size_t shared_bytes;
} join_grid;

/* Two blocks for each multiprocessor are better than one: while one waits, the other computes. */
static int threads_of(const cuda_program *p, const cuda_join *join) {
    int pieces = join->plane.channels / 8;
    for (int threads = ALL_THREADS / 2; threads <= ALL_THREADS; threads *= 2) {
        int warps = threads / 32;
        bool fits = join->plane.channels % 64 == 0 && threads % pieces == 0 &&
                    join->filters % (8 * warps) == 0 &&
                    join->plane.channels / 16 * (join->filters / (8 * warps)) * 2 <= MOST_WEIGHTS;
        if (fits && cuda_has_most_shared(p) && p->type != CUDA_TYPE_F32) {
            return threads;
        }
    }
    return 0;
}

static join_grid shape_of(const cuda_program *p, const cuda_join *join) {
    join_grid s = {.threads = threads_of(p, join)};
    if (s.threads == 0) {
        return s;
    }
    size_t row = (size_t)join->plane.channels * 2;
    int high = s.threads / (join->plane.channels / 8); /* rows that a block takes at a time */
    s.blocks = ALL_THREADS / s.threads;
    s.rows = high > TILE_ROWS ? high : TILE_ROWS;
    s.shared_bytes = (2 + 2 * STAGES) * (size_t)s.rows * row;
    size_t tiles = cuda_ceil(cuda_rows(join->plane), (size_t)s.rows);
    size_t most = (size_t)p->multiprocessors * (size_t)s.blocks;
    s.grid = (unsigned)(tiles < most ? tiles : most);
    return s;
}

size_t stk_cuda_join_scratch(const cuda_program *p, const cuda_join *join) {
    return 2 * (size_t)join->filters * shape_of(p, join).grid * sizeof(float);
}

void stk_cuda_join(cuda_program *p, const cuda_join *join) {
    join_grid s = shape_of(p, join);
    const cuda_norm *other = join->added->norm;
    cuda_launch *launch = stk_cuda_launch(p, FILE_NAME, "join", s.grid, 1, (unsigned)s.threads,
                                          (unsigned)s.shared_bytes);
    CUDA_DEFINES(launch, {"K", join->plane.channels}, {"N", join->filters}, {"THREADS", s.threads},
                 {"ROWS", s.rows}, {"STAGES", STAGES}, {"BLOCKS", s.blocks},
                 {"ADDED", other != NULL ? 2 : 1});
    CUDA_ARGS(launch, join->x, join->norm->coefs, join->added->x,
              other != NULL ? other->coefs : cuda_nothing(), join->weight, join->y, join->mask,
              join->z, join->partial, cuda_int((int32_t)cuda_rows(join->plane)));
}

void stk_cuda_join_finalise(cuda_program *p, const cuda_join *join) {
    const cuda_norm *next = join->next;
    cuda_launch *launch = stk_cuda_launch(
        p, FILE_NAME, "join_finalise", (unsigned)cuda_ceil((size_t)join->filters, FINALISE_WIDTH),
        1, FINALISE_WIDTH * FINALISE_REDUCERS,
        FINALISE_REDUCERS * 2 * FINALISE_WIDTH * (unsigned)sizeof(double));
    CUDA_DEFINES(launch, {"N", join->filters}, {"WIDTH", FINALISE_WIDTH},
                 {"REDUCERS", FINALISE_REDUCERS});
    stk_cuda_define_stats(p, launch);
    CUDA_ARGS(launch, join->partial, next->weight, next->bias, next->running_mean,
              next->running_var, next->coefs, cuda_int(next->narrow),
              cuda_int((int)shape_of(p, join).grid), cuda_int((int32_t)cuda_rows(join->plane)),
              cuda_float(next->epsilon));
}
