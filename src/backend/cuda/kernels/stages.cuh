/*
 * stages.cuh - a pipeline of tiles: a block computes every gridDim.x-th tile of ROWS rows,
 * beginning with the tiles of the last rows. It starts the copies of a tile to shared memory
 * several turns before it computes the tile.
 *
 * The file that includes this one defines ROWS; STAGE, the distance in uint4 between two tiles in
 * shared memory; the type `places`, the tensors to copy from; and begin_tile(), which starts the
 * copies of one tile.
 */

/*
 * Starts the copies of the block's first `ahead` tiles; `ahead` is a compile-time constant. Each
 * turn commits one group of copies. The group is empty where the block has no tile left, so that
 * copy_wait() can count groups.
 */
DEVICE void begin_turns(uint4 *stages, places p, u32 ahead, u32 tiles, u32 rows) {
    UNROLL
    for (u32 k = 0; k < ahead; k++) {
        u32 tile = blockIdx.x + k * gridDim.x;
        if (tile < tiles) {
            begin_tile(stages + k * STAGE, p, (tiles - 1 - tile) * ROWS, rows);
        }
        copy_group();
    }
}
