/*
 * emu_link.h - what an emulated kernel and the emulated driver know of each other.
 *
 * Plain C without includes: it stands in front of every kernel. Each compiled kernel file has one
 * variable `emu_link`, which the driver finds by its name and fills in; and for each kernel NAME an
 * emu_kernel called emu_kernel_NAME.
 */
#ifndef STK_TESTS_EMU_LINK_H
#define STK_TESTS_EMU_LINK_H

typedef struct emu_uint3 {
    unsigned x, y, z;
} emu_uint3;

/* What the lanes of a warp can meet for. */
typedef enum emu_meeting {
    EMU_MEET_SYNC,
    EMU_MEET_SHUFFLE,
    EMU_MEET_XOR,
    EMU_MEET_DOWN,
    EMU_MEET_UP,
    EMU_MEET_VOTE,
    EMU_MEET_MATRIX
} emu_meeting;

#define EMU_WARP 32

typedef struct emu_link_table {
    const emu_uint3 *thread; /* of the thread that runs */
    emu_uint3 block, block_dim, grid_dim;
    void *shared; /* dynamic shared memory */
    /* Waits for all threads of the block. `line` is told when they do not come together. */
    void (*barrier)(int line);
    /*
     * Waits for the warp; *all are the values that its lanes gave, until this lane meets again.
     * Returns the lane. Lanes that the block does not have gave ~0.
     */
    int (*meet)(emu_meeting meeting, unsigned mask, unsigned long long value,
                const unsigned long long **all, int line);
} emu_link_table;

/* One kernel: how to call it, and what its parameters are. */
typedef struct emu_kernel {
    void (*call)(void **arguments);
    int count;
    const char *kinds; /* per parameter: p pointer, i int, l long, f float, ? another */
    const unsigned *sizes;
} emu_kernel;

#endif
