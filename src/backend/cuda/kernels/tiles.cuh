/*
 * tiles.cuh - for kernels that multiply matrices: tiles of rows are copied to shared memory while
 * threads compute, and products are those of a whole warp.
 */
#ifdef __CUDACC_RTC__

DEVICE u32 shared_address(const void *p) {
    u32 y;
    asm("{\n\t.reg .u64 t;\n\tcvta.to.shared.u64 t, %1;\n\tcvt.u32.u64 %0, t;\n\t}"
        : "=r"(y)
        : "l"(p));
    return y;
}

/*
 * Begins to copy 16 bytes from global to shared memory, both on such a boundary; after the first
 * `bytes` of them zeros are written and nothing is read.
 */
DEVICE void copy_begin(void *to, const void *from, int bytes) {
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;"
                 :
                 : "r"(shared_address(to)), "l"(from), "r"(bytes)
                 : "memory");
}

/* All copies that this thread began since the last one of these are a group. */
DEVICE void copy_group(void) {
    asm volatile("cp.async.commit_group;" : : : "memory");
}

/* Waits for this thread's copies, save those of the last `groups`, a number in the text. */
#define copy_wait(groups) asm volatile("cp.async.wait_group %0;" : : "n"(groups) : "memory")

/*
 * Four matrices of 8 by 8 numbers of 2 bytes: lane l tells where row l % 8 of matrix l / 8 is, and
 * gets of each matrix the numbers 2 * (l % 4) and the next one of row l / 4.
 */
DEVICE void matrices(u32 to[4], const void *row) {
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
                 : "=r"(to[0]), "=r"(to[1]), "=r"(to[2]), "=r"(to[3])
                 : "r"(shared_address(row))
                 : "memory");
}

/* The same of the matrices turned: column l / 4, rows 2 * (l % 4) and the next one. */
DEVICE void matrices_turned(u32 to[4], const void *row) {
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];"
                 : "=r"(to[0]), "=r"(to[1]), "=r"(to[2]), "=r"(to[3])
                 : "r"(shared_address(row))
                 : "memory");
}

/*
 * c (16, 8) += a (16, 16) b (16, 8), T times T to float32. Lane l has of a: row l / 4, columns 2 *
 * (l % 4) and the next; then row l / 4 + 8; then both rows, columns 8 further; of b: rows 2 * (l %
 * 4) and the next, column l / 4; then rows 8 further; of c: row l / 4, columns 2 * (l % 4) and the
 * next; then row l / 4 + 8.
 */
#if TYPE == 1
#define PRODUCT_TYPES "f16.f16"
#elif TYPE == 2
#define PRODUCT_TYPES "bf16.bf16"
#endif
#ifdef PRODUCT_TYPES
DEVICE void add_product(float c[4], const u32 a[4], const u32 b[2]) {
    asm volatile("mma.sync.aligned.m16n8k16.row.col.f32." PRODUCT_TYPES
                 ".f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
                 : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
                 : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
}
#endif
#endif

/* ---- rows in shared memory, for products of matrices ---- */

#define CEIL(a, b) (((a) + (b)-1) / (b))

/*
 * A row is pieces of 16 bytes. Eight of them at the same column of eight rows are read at once, so
 * they must lie in different banks: where the number of pieces of a row is a multiple of 8 they are
 * exchanged by the row's last three bits, otherwise rows are an odd number of pieces APART. AT: where
 * a piece of a row is.
 */
#define APART(pieces) ((pieces) % 8 == 0 ? (pieces) : (pieces) | 1)
#define AT(row, piece, pieces) \
    ((row) * APART(pieces) + ((pieces) % 8 == 0 ? (piece) ^ ((row)&7) : (piece)))

/*
 * Begins to copy `high` of `rows` rows, of `channels` each, from row `first` on; zeros where there
 * are none. Called by all of a block's threads, with numbers in the text from `channels` to
 * `threads`.
 */
DEVICE void copy_rows(uint4 *to, const T *from, int channels, int pieces, int high, int threads,
                      u32 first, u32 rows) {
    UNROLL
    for (int k = 0; k < CEIL(high * channels / LANES, threads); k++) {
        int i = k * threads + (int)threadIdx.x;
        int r = i / (channels / LANES);
        int c = i % (channels / LANES);
        u32 row = first + (u32)r;
        int wanted = row < rows;
        if (high * channels / LANES % threads == 0 || r < high) {
            copy_begin(to + AT(r, c, pieces),
                       from + (u64)(wanted ? row : 0) * (u32)channels + (u32)c * LANES,
                       wanted ? 16 : 0);
        }
    }
}
