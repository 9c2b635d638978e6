/*
 * block_sums.cuh - adds up the partial sums that the blocks of an earlier pass wrote, four floats
 * (a quad) at a time, always in the same order.
 *
 * REDUCERS threads share a quad. Each adds up the quads of every REDUCERS-th block. The including
 * file then adds up the results of the REDUCERS threads, in the order of the reducers.
 *
 * The including file defines:
 *   REDUCERS      threads that share a quad
 *   AHEAD         loads that a thread has in flight
 *   BLOCK_QUADS   quads that a block wrote, so the distance between the quads of two blocks; its
 *                 type is the type of the indices
 *   IN_DOUBLE     1: sums are float64; 0: float32
 */
#if IN_DOUBLE
typedef struct four {
    double x, y, z, w;
} four;
#else
typedef float4 four;
#endif

/* The sum of one reducer. `from`: the quad of the first block. Zeros when not `wanted`. */
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
