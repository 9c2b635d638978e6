/*
 * conv_tail.cu - bias, addition and activation after a library's convolution, in inference.
 *
 * Defines (-D) of bias_act:
 *   C       channels of y
 *   WIDE    channels that a thread handles at a time: 8, or 1 where C is no multiple of 8
 *   BIAS    1: bias (C) is added
 *   ADDED   1: a tensor of the size of y is added
 *   ACT     activation, an ACT_ number of prelude.cuh
 */

#ifdef K_bias_act
/*
 * y = act(y + bias + added), in place; y (pixels, C) is `groups` groups of WIDE channels. A thread
 * has AT_ONCE groups in flight.
 */
#define AT_ONCE 4
KERNEL bias_act(T *y, const float *bias, const T *added, long long groups) {
    long long step = (long long)gridDim.x * blockDim.x;
    long long first = (long long)blockIdx.x * blockDim.x + threadIdx.x;
    for (long long at = first; at < groups; at += AT_ONCE * step) {
        some_packed x[AT_ONCE];
        some_packed more[AT_ONCE];
        UNROLL
        for (int i = 0; i < AT_ONCE; i++) {
            if (at + i * step < groups) {
                x[i] = some_fetch(y + (at + i * step) * WIDE);
                if (ADDED) {
                    more[i] = some_fetch(added + (at + i * step) * WIDE);
                }
            }
        }
        UNROLL
        for (int i = 0; i < AT_ONCE; i++) {
            long long group = at + i * step;
            if (group < groups) {
                some v = some_unpack(x[i]);
                if (ADDED) {
                    some a = some_unpack(more[i]);
                    UNROLL
                    for (int k = 0; k < WIDE; k++) {
                        v.v[k] += a.v[k];
                    }
                }
                if (BIAS) {
                    some b = some_floats(bias + group % (C / WIDE) * WIDE);
                    UNROLL
                    for (int k = 0; k < WIDE; k++) {
                        v.v[k] += b.v[k];
                    }
                }
                UNROLL
                for (int k = 0; k < WIDE; k++) {
                    v.v[k] = activate(ACT, v.v[k]);
                }
                some_store(y + group * WIDE, v);
            }
        }
    }
}
#endif

#ifdef K_bias_down
/* Converts the bias to T: the fused convolutions of cuDNN read it in the type of activations. */
KERNEL bias_down(const float *bias, T *out, int count) {
    int i = (int)(blockIdx.x * blockDim.x + threadIdx.x);
    if (i < count) {
        out[i] = down(bias[i]);
    }
}
#endif
