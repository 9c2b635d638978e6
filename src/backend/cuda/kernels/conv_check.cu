/* conv_check.cu - fingerprint of a convolution's result: sums by which two candidates are compared. */

#ifdef K_check_sums
/* A sum of squares, and sums with signs that seven bits give. */
DEVICE some with_signs(some sums, float v, u32 bits) {
    sums.v[0] += v * v;
    UNROLL
    for (int k = 1; k < WIDE; k++) {
        sums.v[k] += __uint_as_float(__float_as_uint(v) ^ (bits << (32 - k) & 0x80000000u));
    }
    return sums;
}

/*
 * out (gridDim.x, 8): what the blocks' shares of x came to. Signs are a hash of the place alone, 64
 * bits for 8 numbers. x is on a 16-byte boundary.
 */
KERNEL check_sums(const T *x, float *out, long long count) {
    SHARED(float, room);
    long long step = (long long)gridDim.x * blockDim.x;
    long long first = (long long)blockIdx.x * blockDim.x + threadIdx.x;
    long long groups = count / LANES;
    some sums;
    UNROLL
    for (int k = 0; k < WIDE; k++) {
        sums.v[k] = 0;
    }
    for (long long at = first; at < groups; at += 2 * step) {
        int two = at + step < groups;
        packed a = fetch(x + at * LANES);
        packed b = two ? fetch(x + (at + step) * LANES) : a;
        for (int half = 0; half < 1 + two; half++) {
            u64 bits = mix_bits((u64)(at + half * step) + GOLDEN);
            lanes v = unpack(half ? b : a);
            UNROLL
            for (int k = 0; k < LANES; k++) {
                sums = with_signs(sums, v.v[k], (u32)(bits >> (8 * k)) & 0xFF);
            }
        }
    }
    if (first < count - groups * LANES) {
        u64 bits = mix_bits((u64)groups + GOLDEN);
        sums = with_signs(sums, up(x[groups * LANES + first]), (u32)(bits >> (8 * first)) & 0xFF);
    }
    sums = some_total(sums, room, 1);
    if (threadIdx.x == 0) {
        store_floats(out + (long long)blockIdx.x * WIDE, sums);
    }
}
#endif
