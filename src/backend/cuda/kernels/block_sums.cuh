/*
 * block_sums.cuh - adds up the sums that blocks left, a quad at a time, always in the same order.
 *
 * Several threads, HANDS, share a quad of sums: each adds up those of every HANDS-th block, and
 * what they have is then added up in their order.
 *
 * Whoever includes it has defined HANDS; AHEAD, how many quads a thread has under way; BLOCK_QUADS,
 * how many a block left, in the type that places are computed in; and IN_DOUBLE, 1 where it is
 * summed in float64.
 */
#if IN_DOUBLE
typedef struct four {
    double x, y, z, w;
} four;
#else
typedef float4 four;
#endif

/* The share of a hand in the quad that the first block left at `from`; zeros when not `wanted`. */
DEVICE four add_share(const float4 *from, int hand, int blocks, int wanted) {
    four sum;
    sum.x = sum.y = sum.z = sum.w = 0;
    for (int k = hand; wanted && k < blocks; k += AHEAD * HANDS) {
        float4 taken[AHEAD];
        UNROLL
        for (int i = 0; i < AHEAD; i++) {
            int block = k + i * HANDS;
            taken[i] = from[(block < blocks ? block : k) * BLOCK_QUADS];
        }
        UNROLL
        for (int i = 0; i < AHEAD; i++) {
            if (k + i * HANDS < blocks) {
                sum.x += taken[i].x;
                sum.y += taken[i].y;
                sum.z += taken[i].z;
                sum.w += taken[i].w;
            }
        }
    }
    return sum;
}
