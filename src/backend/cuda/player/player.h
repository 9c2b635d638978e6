/*
 * player.h - inside the CUDA backend: a program bound to device memory, run and timed.
 *
 * A player knows where a program's buffers lie and what its operations run on. It launches single
 * operations, captures ranges of them as CUDA graphs and replays these. It owns nothing but its own
 * captured graph; the caller's thread has the device's context current. One thread at a time.
 */
#ifndef STK_BACKEND_CUDA_PLAYER_PLAYER_H
#define STK_BACKEND_CUDA_PLAYER_PLAYER_H

#include "backend/cuda/convolution/convolutions.h"
#include "backend/cuda/program/kernels.h"

typedef struct cuda_player {
    const cuda_driver *driver;   /* borrowed */
    cuda_stream stream;          /* borrowed: everything runs on it, in order */
    cuda_kernels *kernels;       /* borrowed: functions of the program's launches */
    cuda_convs *convs;           /* borrowed: plans of its convolutions */
    const cuda_program *program; /* borrowed, laid out */
    cuda_pointer arena;          /* at least program->arena_bytes */
    const cuda_pointer *fixed;   /* borrowed: CUDA_FIXED_COUNT addresses */
    cuda_graph_exec graph;       /* owned: the whole program; NULL before the second run */
    int runs;                    /* calls of stk_cuda_player_run() so far */
} cuda_player;

/* Consecutive operations of a program. */
typedef struct cuda_range {
    int first, count;
} cuda_range;

/* Writes noise where a convolution reads, before its plans are compared: tuning/autotune.c has one
 * for its trials. */
typedef struct cuda_noise_writer {
    stk_status (*write_noise_for)(const void *user, int op, stk_error *err);
    const void *user; /* borrowed; the first argument of write_noise_for() */
} cuda_noise_writer;

/*
 * Finds an execution plan for every convolution of the program, by running candidates with the
 * player's pointers: what these convolutions write is overwritten. `writer` is called before each;
 * NULL: the memory holds noise already.
 */
STK_CHECKED stk_status stk_cuda_player_prepare(const cuda_player *player,
                                               const cuda_noise_writer *writer, stk_error *err);

/*
 * Runs the whole program. The first run launches each operation, since libraries load code at first
 * use, which a capture forbids; the second captures a graph; later ones replay it.
 */
STK_CHECKED stk_status stk_cuda_player_run(cuda_player *player, stk_error *err);
void stk_cuda_player_close(cuda_player *player);

/* Launches one operation, or the operations of a range in order. */
STK_CHECKED stk_status stk_cuda_player_launch(const cuda_player *player, int op, stk_error *err);
STK_CHECKED stk_status stk_cuda_player_range(const cuda_player *player, cuda_range ops,
                                             stk_error *err);

/* Captures a range, repeated `times`, as a graph that the caller frees. The range must have run
 * before. */
STK_CHECKED stk_status stk_cuda_player_capture(const cuda_player *player, cuda_range ops, int times,
                                               cuda_graph_exec *graph, stk_error *err);

#define CUDA_MOST_TIMED 4

/*
 * timing.c: which of up to CUDA_MOST_TIMED ranges of a prepared program takes the least time. The
 * first one wins unless another is faster by more than one per cent.
 */
STK_CHECKED stk_status stk_cuda_player_fastest(const cuda_player *player, const cuda_range *ranges,
                                               int count, int *fastest, stk_error *err);

#endif
