/*
 * conv_plain.cu - convolutions for which no library has a plan: simple and slow.
 *
 *     y[n,p,q,k] = sum over r, s, c of  x[n, row, column, c] * w[k,r,s,c]
 *     where row = p * stride - pad + r and column = q * stride - pad + s
 *
 * x is (batch, height, width, channels), w (filters, size, size, channels), y (batch, out_height,
 * out_width, filters). Sums are float32. In the gradients an argument named x, w or y may hold the
 * gradient of that tensor.
 *
 * Defines (-D), 0 or 1 except ACT:
 *   IN_NORM      conv_forward, conv_weight: 1: the convolution reads relu(scale * x + shift)
 *   BIAS         conv_forward: 1: bias (filters) is added
 *   ADDED        conv_forward: 1: a tensor of the size of y is added
 *   ACT          conv_forward: activation of y, an ACT_ number of prelude.cuh
 *   ACCUMULATE   conv_data: 1: the gradient is added to x
 */

#define CONV_PARAMETERS                                                                         \
    int batch, int height, int width, int channels, int out_height, int out_width, int filters, \
        int size, int stride, int pad

#ifdef IN_NORM
/*
 * The input of the convolution: x, or with IN_NORM relu(scale * x + shift), rounded to T. in_norm
 * is (2, channels).
 */
DEVICE float read_input(T x, const T *in_norm /* scale, shift */, int c, int channels) {
#if IN_NORM
    float y = fmaf(up(in_norm[c]), up(x), up(in_norm[channels + c]));
    return up(down(activate(ACT_RELU, y)));
#else
    (void)in_norm;
    (void)c;
    (void)channels;
    return up(x);
#endif
}
#endif

#ifdef K_conv_forward
/* y = act(conv(x, w) + bias + added). A thread computes one element of y at a time. */
KERNEL conv_forward(const T *x, const T *w, T *y, const float *bias, const T *added,
                    const T *in_norm, CONV_PARAMETERS) {
    long long count = (long long)batch * out_height * out_width * filters;
    long long step = (long long)gridDim.x * blockDim.x;
    for (long long i = (long long)blockIdx.x * blockDim.x + threadIdx.x; i < count; i += step) {
        int k = (int)(i % filters);
        int q = (int)(i / filters % out_width);
        int p = (int)(i / filters / out_width % out_height);
        long long n = i / filters / out_width / out_height;
        float sum = 0;
        for (int r = 0; r < size; r++) {
            int row = p * stride - pad + r;
            for (int s = 0; s < size && row >= 0 && row < height; s++) {
                int column = q * stride - pad + s;
                if (column >= 0 && column < width) {
                    const T *from = x + ((n * height + row) * width + column) * channels;
                    const T *by = w + (((long long)k * size + r) * size + s) * channels;
                    for (int c = 0; c < channels; c++) {
                        sum += read_input(from[c], in_norm, c, channels) * up(by[c]);
                    }
                }
            }
        }
#if ADDED
        sum += up(added[i]);
#endif
#if BIAS
        sum += bias[k];
#endif
        y[i] = down(activate(ACT, sum));
    }
}
#endif

#ifdef K_conv_data
/*
 * Writes the gradient of x to x, or with ACCUMULATE adds it. y is the gradient of the output. A
 * thread computes one element of x at a time.
 */
KERNEL conv_data(T *x, const T *w, const T *y, CONV_PARAMETERS) {
    long long count = (long long)batch * height * width * channels;
    long long step = (long long)gridDim.x * blockDim.x;
    for (long long i = (long long)blockIdx.x * blockDim.x + threadIdx.x; i < count; i += step) {
        int c = (int)(i % channels);
        int column = (int)(i / channels % width);
        int row = (int)(i / channels / width % height);
        long long n = i / channels / width / height;
        float sum = 0;
        for (int r = 0; r < size; r++) {
            int p = (row + pad - r) / stride;
            int down_hit = row + pad - r >= 0 && p * stride == row + pad - r && p < out_height;
            for (int s = 0; s < size && down_hit; s++) {
                int q = (column + pad - s) / stride;
                if (column + pad - s >= 0 && q * stride == column + pad - s && q < out_width) {
                    const T *from = y + ((n * out_height + p) * out_width + q) * filters;
                    const T *by = w + ((long long)r * size + s) * channels + c;
                    for (int k = 0; k < filters; k++) {
                        sum += up(from[k]) * up(by[(long long)k * size * size * channels]);
                    }
                }
            }
        }
        x[i] = down(ACCUMULATE ? sum + up(x[i]) : sum);
    }
}
#endif

#ifdef K_conv_weight
/*
 * Writes the gradient of the filters to w. y is the gradient of the output. A block computes one
 * tap of one filter for 32 channels. Each of its ROWS warps sums over every ROWS-th output pixel, a
 * lane for a channel; the first warp adds up the sums of all warps.
 */
#define ROWS 8
KERNEL conv_weight(const T *x, T *w, const T *y, const T *in_norm, CONV_PARAMETERS) {
    SHARED(float, sums);
    int lane = (int)threadIdx.x % 32;
    int share = (int)threadIdx.x / 32;
    int tiles = (channels + 31) / 32;
    int c = (int)(blockIdx.x % (u32)tiles) * 32 + lane;
    int tap = (int)(blockIdx.x / (u32)tiles % (u32)(size * size));
    int k = (int)(blockIdx.x / (u32)tiles / (u32)(size * size));
    long long pixels = (long long)batch * out_height * out_width;
    float sum = 0;
    for (long long m = share; m < pixels && c < channels; m += ROWS) {
        int column = (int)(m % out_width) * stride - pad + tap % size;
        int row = (int)(m / out_width % out_height) * stride - pad + tap / size;
        if (row >= 0 && row < height && column >= 0 && column < width) {
            long long n = m / out_width / out_height;
            T from = x[((n * height + row) * width + column) * channels + c];
            sum += up(y[m * filters + k]) * read_input(from, in_norm, c, channels);
        }
    }
    sums[threadIdx.x] = sum;
    __syncthreads();
    if (share == 0 && c < channels) {
        for (int i = 1; i < ROWS; i++) {
            sum += sums[i * 32 + lane];
        }
        w[((long long)k * size * size + tap) * channels + c] = down(sum);
    }
}
#endif
