/*
 * stages.cuh - tiles by turns: a block takes every gridDim.x-th tile of ROWS rows, the last of the
 * rows first, and begins to copy each some turns ahead.
 *
 * Whoever includes it has defined ROWS; STAGE, how far the places of two tiles are apart; the type
 * places, what is copied from; and begin_tile(), which begins to copy a tile.
 */

/* Begins the tiles of the block's first turns, as many as `ahead`, a number in the text; each is a
 * group of copies, also where there is none left. */
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
