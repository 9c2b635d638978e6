/*
 * tiles.cuh - for kernels that multiply matrices on tensor cores: asynchronous copies of rows from
 * global to shared memory, the layout of these rows, ldmatrix and mma.
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
 * Starts an asynchronous copy of 16 bytes from global to shared memory. Both addresses are
 * multiples of 16. Only the first `bytes` bytes are read; zeros are written for the others.
 */
DEVICE void copy_begin(void *to, const void *from, int bytes) {
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;"
                 :
                 : "r"(shared_address(to)), "l"(from), "r"(bytes)
                 : "memory");
}

/* Commits a group: all copies that this thread started after its previous copy_group(). */
DEVICE void copy_group(void) {
    asm volatile("cp.async.commit_group;" : : : "memory");
}

/* Waits for all copies of this thread but those of its newest `groups` groups, a compile-time
 * constant. */
#define copy_wait(groups) asm volatile("cp.async.wait_group %0;" : : "n"(groups) : "memory")

/*
 * Loads four matrices of 8x8 2-byte numbers from shared memory. In lane l, `row` is the address of
 * row l % 8 of matrix l / 8. to[m] gets two numbers of matrix m: row l / 4, columns 2 * (l % 4) and
 * 2 * (l % 4) + 1.
 */
DEVICE void matrices(u32 to[4], const void *row) {
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
                 : "=r"(to[0]), "=r"(to[1]), "=r"(to[2]), "=r"(to[3])
                 : "r"(shared_address(row))
                 : "memory");
}

/* As matrices(), transposed: to[m] gets rows 2 * (l % 4) and 2 * (l % 4) + 1 of column l / 4. */
DEVICE void matrices_turned(u32 to[4], const void *row) {
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];"
                 : "=r"(to[0]), "=r"(to[1]), "=r"(to[2]), "=r"(to[3])
                 : "r"(shared_address(row))
                 : "memory");
}

/*
 * c (16, 8) += a (16, 16) b (16, 8): a and b are T, c is float32. With r = l / 4 and k = 2 * (l %
 * 4), lane l holds
 *
 *     a[0] row r,     columns k, k + 1        a[2] row r,     columns k + 8, k + 9
 *     a[1] row r + 8, columns k, k + 1        a[3] row r + 8, columns k + 8, k + 9
 *     b[0] rows k, k + 1, column r            b[1] rows k + 8, k + 9, column r
 *     c[0], c[1] row r, columns k, k + 1      c[2], c[3] row r + 8, columns k, k + 1
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

/* ---- rows in shared memory, as ldmatrix reads them ---- */

#define CEIL(a, b) (((a) + (b)-1) / (b))

/*
 * A row consists of `pieces` pieces of 16 bytes. ldmatrix reads the same piece of eight rows at
 * once, so these eight must lie in different banks. If `pieces` is a multiple of 8, a row's pieces
 * are permuted: the index of a piece is XORed with the row's last three bits. Otherwise the
 * distance between rows is an odd number of pieces.
 *
 * APART: the distance from one row to the next, in pieces. AT: the index of a piece of a row.
 */
#define APART(pieces) ((pieces) % 8 == 0 ? (pieces) : (pieces) | 1)
#define AT(row, piece, pieces) \
    ((row) * APART(pieces) + ((pieces) % 8 == 0 ? (piece) ^ ((row)&7) : (piece)))

/*
 * Starts the copies of `high` rows of `from` (rows, channels), from row `first` on, to the layout
 * of AT with `pieces` pieces in a row. Rows from `rows` on become zeros. All `threads` threads of
 * the block call it. `channels`, `pieces`, `high` and `threads` are compile-time constants;
 * `channels` is a multiple of 8.
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
