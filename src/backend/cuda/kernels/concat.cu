/*
 * concat.cu - features given beside the pictures, and the channels of two values side by side. A
 * row is a sample; a thread has one element. All of it is small.
 */

#ifdef K_features
/*
 * From float32 (batch, channels) at constants->features to y, T (batch, channels). Defines: TRAIN,
 * 1: mixed with the partner as targets are. blockIdx.y is the sample.
 */
KERNEL features(const cuda_step_constants *constants, T *y, int channels) {
    u32 c = blockIdx.x * blockDim.x + threadIdx.x;
    const float *x = (const float *)constants->features;
    float keep = TRAIN && constants->mix_kind != 0 ? constants->mix_keep : 1;
    if (c < (u32)channels) {
        float own = x[(u64)blockIdx.y * channels + c];
        float other = x[(u64)(gridDim.y - 1 - blockIdx.y) * channels + c];
        float v = keep >= 1 ? own : keep <= 0 ? other : keep * own + (1 - keep) * other;
        y[(u64)blockIdx.y * channels + c] = down(v);
    }
}
#endif

#ifdef K_concat
/* y (batch, first + second) = a (batch, first) beside b (batch, second). blockIdx.y is the sample.
 */
KERNEL concat(const T *a, const T *b, T *y, int first, int second) {
    u32 c = blockIdx.x * blockDim.x + threadIdx.x;
    u64 row = blockIdx.y;
    if (c < (u32)(first + second)) {
        y[row * (first + second) + c] =
            c < (u32)first ? a[row * first + c] : b[row * second + c - first];
    }
}
#endif

#ifdef K_concat_back
/* The reverse, for gradients: da or db may be NULL, where that gradient is not wanted. add_a and
 * add_b: it is added to what is there. */
KERNEL concat_back(const T *dy, T *da, int add_a, T *db, int add_b, int first, int second) {
    u32 c = blockIdx.x * blockDim.x + threadIdx.x;
    u64 row = blockIdx.y;
    if (c < (u32)(first + second)) {
        T g = dy[row * (first + second) + c];
        T *to = c < (u32)first ? da : db;
        u64 at = c < (u32)first ? row * first + c : row * second + c - first;
        int add = c < (u32)first ? add_a : add_b;
        if (to != 0) {
            to[at] = add ? down(up(to[at]) + up(g)) : g;
        }
    }
}
#endif
