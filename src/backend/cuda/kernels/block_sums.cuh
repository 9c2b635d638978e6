/*
 * block_sums.cuh - adds up the sums that blocks left, a quad at a time, always in the same order.
 *
 * REDUCERS threads share a quad of sums. Each adds up the sums of every REDUCERS-th block; then one
 * thread adds up the results of all reducers in their order.
 *
 * The file that includes this one has defined REDUCERS; AHEAD, how many quads a thread has in flight;
 * BLOCK_QUADS, how many a block left, in the type of indices; and IN_DOUBLE, 1 for sums in float64.
 */
#if IN_DOUBLE
typedef struct four {
    double x, y, z, w;
} four;
#else
typedef float4 four;
#endif

/* The sum of one reducer; the first block left its quad at `from`. Zeros when not `wanted`. */
DEVICE four add_share(const float4 *from, int reducer, int blocks, int wanted) {
    four sum;
    sum.x = sum.y = sum.z = sum.w = 0;
    for (int k = reducer; wanted && k < blocks; k += AHEAD * REDUCERS) {
        float4 taken[AHEAD];
        UNROLL
        for (int i = 0; i < AHEAD; i++) {
            int block = k + i * REDUCERS;
            taken[i] = from[(block < blocks ? block : k) * BLOCK_QUADS];
        }
        UNROLL
        for (int i = 0; i < AHEAD; i++) {
            if (k + i * REDUCERS < blocks) {
                sum.x += taken[i].x;
                sum.y += taken[i].y;
                sum.z += taken[i].z;
                sum.w += taken[i].w;
            }
        }
    }
    return sum;
}
