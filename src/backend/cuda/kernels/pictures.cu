/*
 * pictures.cu - from the planes of a JPEG to the square that a network sees. The launches are those
 * of decode/picture_kernels.c; blockIdx.y is the picture. All arithmetic is that of the CPU, on integers: of
 * libjpeg's upsampling and conversion of colours, and of image/resample.
 *
 * Defines of picture_square: DOWN_SHIFT and ACROSS_SHIFT are those of image/resample/kernels.h.
 */

#if defined(K_picture_rgb) || defined(K_picture_square)
DEVICE u8 level(int x) {
    return (u8)(x < 0 ? 0 : x > 255 ? 255 : x);
}
#endif

#ifdef K_picture_rgb
/* stk_jpeg_planes */
#define GREY 1
#define HALF_WIDTH 3
#define HALF_BOTH 4

/* libjpeg copies colours of such narrow planes instead of blending them. */
#define NARROW 2

/* A colour between those of a row of half the width: three parts of the nearer one. */
DEVICE int blend_across(const u8 *row, int x, int width) {
    int near = x / 2;
    int far = near + (x % 2 == 0 ? -1 : 1);
    if (width <= NARROW || far < 0 || far >= width) {
        return row[near];
    }
    return (3 * row[near] + row[far] + (x % 2 == 0 ? 1 : 2)) >> 2;
}

/* The same between two such rows: the nearer one counts three times. */
DEVICE int blend_both(const u8 *plane, int pitch, int x, int y, int width, int height) {
    int near_y = y / 2;
    int far_y = near_y + (y % 2 == 0 ? -1 : 1);
    int near = x / 2;
    int far = near + (x % 2 == 0 ? -1 : 1);
    const u8 *row = plane + (u64)near_y * pitch;
    if (width <= NARROW) {
        return row[near];
    }
    far_y = far_y < 0 ? 0 : far_y >= height ? height - 1 : far_y;
    far = far < 0 || far >= width ? near : far;
    const u8 *other = plane + (u64)far_y * pitch;
    int here = 3 * row[near] + other[near];
    int there = 3 * row[far] + other[far];
    return (3 * here + there + (x % 2 == 0 ? 8 : 7)) >> 4;
}

DEVICE int colour_at(const cuda_picture *p, int plane, int x, int y) {
    const u8 *colours = (const u8 *)p->planes[plane];
    int pitch = p->pitch[plane];
    if (p->kind == HALF_BOTH) {
        return blend_both(colours, pitch, x, y, p->colour_width, p->colour_height);
    }
    const u8 *row = colours + (u64)y * pitch;
    return p->kind == HALF_WIDTH ? blend_across(row, x, p->colour_width) : row[x];
}

/* Pixels of a thread: 12 bytes, 3 words. */
#define TOGETHER 4

#include "pixel_words.cuh"

DEVICE void put_pixel(const cuda_picture *p, int x, int y, u8 *to) {
    int light = ((const u8 *)p->planes[0] + (u64)y * p->pitch[0])[x];
    int red = light, green = light, blue = light;
    if (p->kind != GREY) {
        /* 1.402, 0.344136, 0.714136 and 1.772, times 65536 and rounded */
        int cb = colour_at(p, 1, x, y) - 128;
        int cr = colour_at(p, 2, x, y) - 128;
        red = light + ((91881 * cr + 32768) >> 16);
        green = light + ((-22554 * cb - 46802 * cr + 32768) >> 16);
        blue = light + ((116130 * cb + 32768) >> 16);
    }
    to[0] = level(red);
    to[1] = level(green);
    to[2] = level(blue);
}

/* The part of each picture that is needed, in RGB. A block makes rows. Behind the last pixel of a
 * row a thread repeats the last one of the picture. */
KERNEL picture_rgb(const cuda_picture *pictures) {
    const cuda_picture *p = pictures + blockIdx.y;
    for (int row = blockIdx.x; row < p->rows; row += gridDim.x) {
        u8 *to = (u8 *)p->rgb + (u64)row * p->rgb_pitch;
        for (int at = threadIdx.x; TOGETHER * at < p->columns; at += blockDim.x) {
            u8 bytes[3 * TOGETHER];
            UNROLL for (int k = 0; k < TOGETHER; k++) {
                int x = min(p->left + TOGETHER * at + k, p->width - 1);
                put_pixel(p, x, p->top + row, bytes + 3 * k);
            }
            bytes_to_words(bytes, to + 3 * TOGETHER * at);
        }
    }
}
#endif

#ifdef K_picture_square
/* The row of the square lies in shared memory behind `middle`. */
DEVICE u8 *shared_row(short *middle, int columns) {
    return (u8 *)(middle + (3 * columns + 3) / 4 * 4);
}

/* Weighs the rows that output row y needs: four values of a row in each thread. */
DEVICE void weigh_down(const cuda_picture *p, int y, short *middle) {
    const short *weights = (const short *)p->weights_y + (u64)y * p->taps_y;
    int first = ((const int *)p->first_y)[y];
    int taps = min(p->used_y, p->rows - first); /* rows that are not there weigh nothing */
    const u8 *rows = (const u8 *)p->rgb + (u64)first * p->rgb_pitch;
    for (int at = 4 * threadIdx.x; at < 3 * p->columns; at += 4 * blockDim.x) {
        int sums[4];
        UNROLL for (int i = 0; i < 4; i++) {
            sums[i] = 1 << (DOWN_SHIFT - 1);
        }
        for (int k = 0; k < taps; k++) {
            u32 word = *(const u32 *)(rows + (u64)k * p->rgb_pitch + at);
            int weight = weights[k];
            UNROLL for (int i = 0; i < 4; i++) {
                sums[i] += (int)(word >> (8 * i) & 255) * weight;
            }
        }
        UNROLL for (int i = 0; i < 4; i++) {
            middle[at + i] = (short)(sums[i] >> DOWN_SHIFT);
        }
    }
}

/* Weighs the columns that each pixel of the output row needs. */
DEVICE void weigh_across(const cuda_picture *p, const short *middle, u8 *row) {
    for (int at = threadIdx.x; at < 3 * p->size; at += blockDim.x) {
        int pixel = at / 3;
        const short *weights = (const short *)p->weights_x + (u64)pixel * p->taps_x;
        int first = ((const int *)p->first_x)[pixel];
        int taps = min(p->used_x, p->columns - first);
        int sum = 1 << (ACROSS_SHIFT - 1);
        for (int k = 0; k < taps; k++) {
            sum += middle[3 * (first + k) + at % 3] * weights[k];
        }
        row[at] = level(sum >> ACROSS_SHIFT);
    }
}

/* Writes a row to its place in the square: four bytes at a time where they lie in one word. */
DEVICE void put_row(const cuda_picture *p, int y, const u8 *row) {
    int bytes = 3 * p->size;
    u8 *square = (u8 *)(p->change_count > 0 ? p->square : p->out);
    int line = p->mirror_y ? p->size - 1 - y : y;
    if (p->swapped) {
        for (int at = threadIdx.x; at < bytes; at += blockDim.x) {
            square[3 * ((u64)(at / 3) * p->size + line) + at % 3] = row[at];
        }
        return;
    }
    u8 *to = square + (u64)line * bytes;
    int words = bytes % 4 == 0 && (u64)square % 4 == 0 ? bytes / 4 : 0;
    for (int at = threadIdx.x; at < words; at += blockDim.x) {
        ((u32 *)to)[at] = ((const u32 *)row)[at];
    }
    for (int at = 4 * words + threadIdx.x; at < bytes; at += blockDim.x) {
        to[at] = row[at];
    }
}

/* A block makes row blockIdx.x of a square. */
KERNEL picture_square(const cuda_picture *pictures) {
    SHARED(short, middle);
    const cuda_picture *p = pictures + blockIdx.y;
    int y = blockIdx.x;
    if (y >= p->size) {
        return;
    }
    u8 *row = shared_row(middle, p->columns);
    weigh_down(p, y, middle);
    __syncthreads();
    weigh_across(p, middle, row);
    __syncthreads();
    put_row(p, y, row);
}
#endif
