/*
 * conv_check.cu - the fingerprint of a convolution's result: 8 sums by which two candidates are
 * compared.
 *
 * Defines (-D): WIDE: number of sums, 8.
 */

#ifdef K_check_sums
/* Adds v * v to the first sum, and v or -v to the other seven: bit k - 1 is the sign in sum k. */
DEVICE some with_signs(some sums, float v, u32 bits) {
    sums.v[0] += v * v;
    UNROLL
    for (int k = 1; k < WIDE; k++) {
        sums.v[k] += __uint_as_float(__float_as_uint(v) ^ (bits << (32 - k) & 0x80000000u));
    }
    return sums;
}

/*
 * Each block writes its sums over x to a row of out, (gridDim.x, 8). The signs depend on the index
 * of an element alone: a hash of 64 bits serves 8 elements. Each thread takes every (gridDim.x *
 * blockDim.x)-th group of LANES elements, two groups at a time. x is on a 16-byte boundary.
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
