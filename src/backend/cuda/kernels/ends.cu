/*
 * ends.cu - where a network begins: pictures become its input. Also conversions and random numbers.
 *
 * Pictures of three channels have kernels of their own, input and input_blocks; input_any and
 * input_any_blocks take any number of channels.
 *
 * Defines (-D) of these four:
 *   SIZE      width and height of a picture
 *   TRAIN     1: samples are mixed as the step constants say (mixup, CutMix)
 *   SIDE      blocks: in a row, and rows of them
 *   BEFORE    blocks: pixels of padding above and left of the picture
 *   CHANNELS  any: of pictures; with blocks up to 4
 *   PADDED    input_any: channels of y, 4 or a multiple of 8; those past CHANNELS are zeros
 * Defines of pad_filter and unpad_filter: CHANNELS and PADDED, as above.
 * Defines of block_filter and unblock_filter:
 *   CHANNELS of pictures, up to 4
 *   SIDE     width and height of the filter over pixels
 *   TAPS     width and height of the filter over blocks
 *   LEAD     zero taps before the first tap of the filter over pixels: 0 or 1
 */

#ifdef K_input
#define PIXELS (SIZE * SIZE)
#define TOGETHER 4 /* pixels of a thread: 12 bytes, 3 words */

#include "pixel_words.cuh"

/* Loads the bytes of `pixels` pixels, at most TOGETHER; zeros for the rest. */
DEVICE void take_pixels(const u8 *p, int pixels, u8 *bytes /* 3 * TOGETHER */) {
    if (PIXELS % TOGETHER == 0 && (u64)p % 4 == 0) {
        words_to_bytes(p, bytes);
    } else {
        UNROLL for (int k = 0; k < 3 * TOGETHER; k++) {
            bytes[k] = 0;
            if (k < 3 * pixels) {
                bytes[k] = p[k];
            }
        }
    }
}

#endif

#if defined(K_input) || defined(K_input_any)
/* Stores a pixel of 4 channels. p is aligned to 4 elements. */
DEVICE void store_pixel(T *p, const float *v) {
#if TYPE == 0
    float4 a;
    a.x = v[0], a.y = v[1], a.z = v[2], a.w = v[3];
    *(float4 *)p = a;
#else
    uint2 a;
    a.x = down2(v[0], v[1]);
    a.y = down2(v[2], v[3]);
    *(uint2 *)p = a;
#endif
}
#endif

#ifdef K_input
/*
 * From the pictures, uint8 (batch, SIZE, SIZE, 3) at constants->images, to y, T (batch, SIZE, SIZE,
 * 4):
 *
 *     v = (byte / 255 - mean) / std, and 0 in the fourth channel
 *
 * With TRAIN, sample i is mixed with sample batch - 1 - i: mixup takes keep * own + (1 - keep) *
 * other, CutMix takes the other's pixels within the rectangle. blockIdx.y is the sample; a thread
 * has TOGETHER pixels.
 */
KERNEL input(const cuda_step_constants *constants, T *y, float mean0, float mean1, float mean2, float std0,
             float std1, float std2) {
    u32 from = (blockIdx.x * blockDim.x + threadIdx.x) * TOGETHER;
    if (from >= PIXELS) {
        return;
    }
    int here = PIXELS - from < TOGETHER ? PIXELS - from : TOGETHER;
    const u8 *images = (const u8 *)constants->images;
    float scale[3], shift[3];
    scale[0] = 1 / (255.0f * std0), scale[1] = 1 / (255.0f * std1), scale[2] = 1 / (255.0f * std2);
    shift[0] = mean0 / std0, shift[1] = mean1 / std1, shift[2] = mean2 / std2;
    int kind = TRAIN ? constants->mix_kind : 0;
    float keep = constants->mix_keep;
    u8 own[3 * TOGETHER], other[3 * TOGETHER];
    float out[4 * TOGETHER];
    take_pixels(images + ((u64)blockIdx.y * PIXELS + from) * 3, here, own);
    if (kind != 0) {
        u64 partner = gridDim.y - 1 - blockIdx.y;
        take_pixels(images + (partner * PIXELS + from) * 3, here, other);
    }
    UNROLL for (int i = 0; i < TOGETHER; i++) {
        int row = (from + i) / SIZE, column = (from + i) % SIZE;
        int cut = row >= constants->mix_top && row < constants->mix_bottom && column >= constants->mix_left &&
                  column < constants->mix_right;
        UNROLL for (int c = 0; c < 3; c++) {
            float v = (float)own[3 * i + c] * scale[c] - shift[c];
            if (kind != 0) {
                float w = (float)other[3 * i + c] * scale[c] - shift[c];
                v = kind == 1 ? keep * v + (1 - keep) * w : cut ? w : v;
            }
            out[4 * i + c] = v;
        }
        out[4 * i + 3] = 0;
    }
    T *to = y + ((u64)blockIdx.y * PIXELS + from) * 4;
    if (PIXELS % TOGETHER == 0) {
        UNROLL for (int h = 0; h < 2; h++) {
            lanes pair;
            UNROLL for (int i = 0; i < LANES; i++) {
                pair.v[i] = out[h * LANES + i];
            }
            store(to + h * LANES, pair);
        }
        return;
    }
    UNROLL for (int i = 0; i < TOGETHER; i++) {
        if (i < here) {
            store_pixel(to + 4 * i, out + 4 * i);
        }
    }
}
#endif

#ifdef K_input_blocks
/*
 * As `input`, but y is T (batch, SIDE, SIDE, 16): blocks of 2 by 2 pixels with 4 channels each. The
 * first block begins BEFORE pixels above and left of the picture; pixels outside the picture are
 * zeros. blockIdx.y is the sample; a thread writes one block.
 */
KERNEL input_blocks(const cuda_step_constants *constants, T *y, float mean0, float mean1, float mean2,
                    float std0, float std1, float std2) {
    u32 block = blockIdx.x * blockDim.x + threadIdx.x;
    if (block >= SIDE * SIDE) {
        return;
    }
    const u8 *own = (const u8 *)constants->images + (u64)blockIdx.y * SIZE * SIZE * 3;
    const u8 *other =
        (const u8 *)constants->images + (u64)(gridDim.y - 1 - blockIdx.y) * SIZE * SIZE * 3;
    float scale[3], shift[3];
    scale[0] = 1 / (255.0f * std0), scale[1] = 1 / (255.0f * std1), scale[2] = 1 / (255.0f * std2);
    shift[0] = mean0 / std0, shift[1] = mean1 / std1, shift[2] = mean2 / std2;
    int kind = TRAIN ? constants->mix_kind : 0;
    float keep = constants->mix_keep;
    UNROLL for (int down_one = 0; down_one < 2; down_one++) {
        lanes pair; /* two pixels of a row */
        UNROLL for (int i = 0; i < 2; i++) {
            int row = (int)(block / SIDE) * 2 + down_one - BEFORE;
            int column = (int)(block % SIDE) * 2 + i - BEFORE;
            int inside = row >= 0 && row < SIZE && column >= 0 && column < SIZE;
            int cut = row >= constants->mix_top && row < constants->mix_bottom &&
                      column >= constants->mix_left && column < constants->mix_right;
            UNROLL for (int c = 0; c < 3; c++) {
                float v = 0;
                if (inside) {
                    int at = (row * SIZE + column) * 3 + c;
                    v = (float)own[at] * scale[c] - shift[c];
                    if (kind != 0) {
                        float w = (float)other[at] * scale[c] - shift[c];
                        v = kind == 1 ? keep * v + (1 - keep) * w : cut ? w : v;
                    }
                }
                pair.v[4 * i + c] = v;
            }
            pair.v[4 * i + 3] = 0;
        }
        store(y + ((u64)blockIdx.y * (SIDE * SIDE) + block) * 16 + down_one * LANES, pair);
    }
}
#endif

#if defined(K_input_any) || defined(K_input_any_blocks)
/*
 * Channel c of a pixel of sample blockIdx.y, normalised and mixed as in `input`. `norms` is float32
 * (2, CHANNELS): scale and shift of each channel.
 */
DEVICE float picture_number(const cuda_step_constants *constants, const float *norms, int row,
                            int column, int c) {
    const u8 *images = (const u8 *)constants->images;
    u64 picture = (u64)SIZE * SIZE * CHANNELS;
    u64 at = ((u64)row * SIZE + column) * CHANNELS + c;
    float v = (float)images[blockIdx.y * picture + at] * norms[c] - norms[CHANNELS + c];
    int kind = TRAIN ? constants->mix_kind : 0;
    if (kind != 0) {
        u64 partner = gridDim.y - 1 - blockIdx.y;
        float w = (float)images[partner * picture + at] * norms[c] - norms[CHANNELS + c];
        int cut = row >= constants->mix_top && row < constants->mix_bottom &&
                  column >= constants->mix_left && column < constants->mix_right;
        v = kind == 1 ? constants->mix_keep * v + (1 - constants->mix_keep) * w : cut ? w : v;
    }
    return v;
}
#endif

#ifdef K_input_any
/*
 * As `input`, from pictures uint8 (batch, SIZE, SIZE, CHANNELS) to y, T (batch, SIZE, SIZE, PADDED).
 * A thread writes 8 channels of a pixel, or all 4.
 */
KERNEL input_any(const cuda_step_constants *constants, const float *norms, T *y) {
    u32 wide = PADDED < LANES ? PADDED : LANES;
    u32 groups = PADDED / wide; /* of a pixel */
    u32 index = blockIdx.x * blockDim.x + threadIdx.x;
    u32 pixel = index / groups;
    int first = (int)(index % groups * wide);
    if (pixel >= SIZE * SIZE) {
        return;
    }
    lanes group;
    UNROLL for (int i = 0; i < LANES; i++) {
        int there = (u32)i < wide && first + i < CHANNELS;
        group.v[i] = there ? picture_number(constants, norms, (int)(pixel / SIZE),
                                            (int)(pixel % SIZE), first + i)
                           : 0;
    }
    T *to = y + ((u64)blockIdx.y * (SIZE * SIZE) + pixel) * PADDED + first;
    if (wide == LANES) {
        store(to, group);
    } else {
        store_pixel(to, group.v);
    }
}
#endif

#ifdef K_input_any_blocks
/* As input_blocks, for pictures of up to 4 channels. */
KERNEL input_any_blocks(const cuda_step_constants *constants, const float *norms, T *y) {
    u32 block = blockIdx.x * blockDim.x + threadIdx.x;
    if (block >= SIDE * SIDE) {
        return;
    }
    UNROLL for (int down_one = 0; down_one < 2; down_one++) {
        lanes pair; /* two pixels of a row */
        UNROLL for (int i = 0; i < LANES; i++) {
            int row = (int)(block / SIDE) * 2 + down_one - BEFORE;
            int column = (int)(block % SIDE) * 2 + i / 4 - BEFORE;
            int inside = row >= 0 && row < SIZE && column >= 0 && column < SIZE;
            pair.v[i] = inside && i % 4 < CHANNELS
                            ? picture_number(constants, norms, row, column, i % 4)
                            : 0;
        }
        store(y + ((u64)blockIdx.y * (SIDE * SIDE) + block) * 16 + down_one * LANES, pair);
    }
}
#endif

#if defined(K_block_filter) || defined(K_unblock_filter)
/*
 * From an index in a filter over blocks, (TAPS, TAPS, 16), to the index in the filter over pixels,
 * (SIDE, SIDE, CHANNELS); -1: the filter over pixels has no such element, so it is zero.
 */
DEVICE int unblocked(int at) {
    int pixel = at % 16 / 4, channel = at % 4;
    int row = at / 16 / TAPS * 2 + pixel / 2 - LEAD;
    int column = at / 16 % TAPS * 2 + pixel % 2 - LEAD;
    int inside = channel < CHANNELS && row >= 0 && row < SIDE && column >= 0 && column < SIDE;
    return inside ? (row * SIDE + column) * CHANNELS + channel : -1;
}
#endif

#ifdef K_block_filter
/*
 * From filters over pixels, w (filters, SIDE, SIDE, CHANNELS), to filters over blocks, (filters,
 * TAPS, TAPS, 16). blockIdx.y is the filter; a thread writes one element.
 */
KERNEL block_filter(const T *w, T *blocked) {
    int at = blockIdx.x * blockDim.x + threadIdx.x;
    if (at < TAPS * TAPS * 16) {
        int from = unblocked(at);
        blocked[blockIdx.y * (TAPS * TAPS * 16) + at] =
            from >= 0 ? w[blockIdx.y * (SIDE * SIDE * CHANNELS) + from] : down(0);
    }
}
#endif

#ifdef K_unblock_filter
/* The reverse of block_filter, for gradients: a thread reads one element of `blocked`. */
KERNEL unblock_filter(const T *blocked, T *w) {
    int at = blockIdx.x * blockDim.x + threadIdx.x;
    int to = at < TAPS * TAPS * 16 ? unblocked(at) : -1;
    if (to >= 0) {
        w[blockIdx.y * (SIDE * SIDE * CHANNELS) + to] = blocked[blockIdx.y * (TAPS * TAPS * 16) + at];
    }
}
#endif

#ifdef K_pad_filter
/* From w (count, CHANNELS) to padded (count, PADDED), with zeros; a thread writes one element. */
KERNEL pad_filter(const T *w, T *padded, int count) {
    int at = blockIdx.x * blockDim.x + threadIdx.x;
    if (at < PADDED * count) {
        padded[at] =
            at % PADDED < CHANNELS ? w[at / PADDED * CHANNELS + at % PADDED] : down(0);
    }
}
#endif

#ifdef K_unpad_filter
/* From padded (count, PADDED) to w (count, CHANNELS); a thread writes one element. */
KERNEL unpad_filter(const T *padded, T *w, int count) {
    int at = blockIdx.x * blockDim.x + threadIdx.x;
    if (at < CHANNELS * count) {
        w[at] = padded[at / CHANNELS * PADDED + at % CHANNELS];
    }
}
#endif

#ifdef K_to_float
/* y = x as float32, `count` elements. A thread converts LANES elements at a time. */
KERNEL to_float(const T *x, float *y, long long count) {
    u64 vectors = (u64)count / LANES;
    u64 step = (u64)gridDim.x * blockDim.x;
    u64 thread = (u64)blockIdx.x * blockDim.x + threadIdx.x;
    for (u64 at = thread; at < vectors; at += step) {
        store_floats(y + at * LANES, load(x + at * LANES));
    }
    if (thread < count % LANES) {
        y[vectors * LANES + thread] = up(x[vectors * LANES + thread]);
    }
}
#endif

#ifdef K_noise
/*
 * Fills y with random numbers in [-1, 1). Plans and variants are timed on them: on zeros they would
 * be faster than on real data.
 */
KERNEL noise(T *y, long long count) {
    u64 step = (u64)gridDim.x * blockDim.x;
    for (u64 at = (u64)blockIdx.x * blockDim.x + threadIdx.x; at < (u64)count; at += step) {
        y[at] = down((float)(mix_bits(at) >> 40) * 0x1.0p-23f - 1);
    }
}
#endif
