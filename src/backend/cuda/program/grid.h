/*
 * grid.h - inside the CUDA backend: grids of kernels whose blocks loop over their work, and the
 * shared memory that a block may have.
 */
#ifndef STK_BACKEND_CUDA_PROGRAM_GRID_H
#define STK_BACKEND_CUDA_PROGRAM_GRID_H

#include "backend/cuda/program/program.h"

/* Channels that a thread takes at a time: 8 where the number of channels allows it. */
static inline int cuda_wide(int channels) {
    return channels % 8 == 0 ? 8 : 1;
}

static inline size_t cuda_ceil(size_t value, size_t step) {
    return (value + step - 1) / step;
}

/* Blocks for `items`, of which one block takes `per_block` in a round: at least one, and at most
 * `per_processor` for each multiprocessor. */
static inline unsigned cuda_blocks(const cuda_program *p, size_t items, size_t per_block,
                                   int per_processor) {
    size_t blocks = cuda_ceil(items, per_block);
    size_t most = (size_t)p->multiprocessors * (size_t)per_processor;
    blocks = blocks < most ? blocks : most;
    return blocks > 0 ? (unsigned)blocks : 1;
}

/* The most shared memory of a block on Hopper and Blackwell (compute capability 9 and 10): with one
 * block on a multiprocessor, and with two. */
#define CUDA_MOST_SHARED ((size_t)227 << 10)
#define CUDA_HALF_SHARED ((size_t)113 << 10)

/* Whether a block may have CUDA_MOST_SHARED bytes. The kernels of join.c, join_back.c and
 * layer_back.c need such a device, for its shared memory and its matrix instructions. */
static inline bool cuda_has_most_shared(const cuda_program *p) {
    enum { HOPPER = 9, BLACKWELL = 10 };
    return p->major == HOPPER || p->major == BLACKWELL;
}

/*
 * Bytes of shared memory that a block may have on every device of the program's major compute
 * capability. Devices of one major differ: this is the least. CUDA_MOST_SHARED while the capability
 * is not known.
 */
static inline size_t cuda_block_shared(const cuda_program *p) {
    enum { VOLTA = 7, AMPERE = 8 };
    if (p->major == 0 || cuda_has_most_shared(p)) {
        return CUDA_MOST_SHARED;
    }
    return (size_t)(p->major >= AMPERE ? 99 : p->major == VOLTA ? 64 : 48) << 10;
}

/* How channels are cut into tiles, one for a block: `tile` vectors of `wide` channels. */
typedef struct cuda_tiles {
    int wide;
    int tile; /* a power of two up to 32 */
    int count;
} cuda_tiles;

static inline cuda_tiles cuda_tiles_of(int channels) {
    cuda_tiles t = {.wide = cuda_wide(channels), .tile = 32};
    int vectors = channels / t.wide;
    while (t.tile > vectors) {
        t.tile /= 2;
    }
    t.count = (vectors + t.tile - 1) / t.tile;
    return t;
}

#endif
