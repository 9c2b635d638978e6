/*
 * changes.cu - the random changes of pictures: what src/image/augment does to them, byte for byte.
 *
 * A block of THREADS changes one picture, from `square` to `out`; emit/changes.c launches a block
 * for each picture, whatever its size. Changes of colour work in place.
 * Others read one of `square` and `spare` and write the other one; both lie on boundaries of words.
 * `out` may lie anywhere.
 *
 * All arithmetic is on integers, in the order of ops.c and warp.c. These files cut intermediate
 * results to 16 bits, which hold them: so whole ints give the same.
 *
 * A colour that depends on one value of a pixel alone is looked up in a table that the block makes
 * first. Three of these changes ask how often each value occurs. Lanes of a warp then count in
 * several copies, since neighbouring pixels tend to be equal.
 */

#ifdef K_picture_changes
#define THREADS 512 /* this and COPIES are as in emit/changes.c */
#define COPIES 8
#define LEVELS 256
#define TOGETHER 4 /* pixels of a thread: 12 bytes, 3 words */
#define PIXELS ((u32)size * size) /* `size` is the side of the square */
#define UNITS ((PIXELS + TOGETHER - 1) / TOGETHER)

#define PLACE_BITS 16 /* of a map's positions: bits of fraction */
#define WEIGHT_BITS 8 /* that blending uses of them */
#define HALF_WEIGHT (1 << (PLACE_BITS - WEIGHT_BITS - 1))
#define FILL ((u32)(CUDA_FILL_RED | CUDA_FILL_GREEN << 8 | CUDA_FILL_BLUE << 16))

#define BLEND_BITS 5
#define HUE_BITS 4

#include "pixel_words.cuh"

/* ---- four pixels ---- */

/* Loads a unit of pixels. Of the last unit, bytes beyond the picture are zeros. */
DEVICE void take_unit(int size, const u8 *pixels, u32 unit, u8 *bytes /* 3 * TOGETHER */) {
    const u8 *from = pixels + 3 * TOGETHER * unit;
    if (unit < PIXELS / TOGETHER) {
        words_to_bytes(from, bytes);
    } else {
        UNROLL for (int k = 0; k < 3 * TOGETHER; k++) {
            bytes[k] = 0;
            if (k < 3 * (int)(PIXELS % TOGETHER)) {
                bytes[k] = from[k];
            }
        }
    }
}

DEVICE void put_unit(int size, const u8 *bytes /* 3 * TOGETHER */, u8 *pixels, u32 unit) {
    u8 *to = pixels + 3 * TOGETHER * unit;
    if (unit < PIXELS / TOGETHER) {
        bytes_to_words(bytes, to);
    } else {
        UNROLL for (int k = 0; k < 3 * TOGETHER; k++) {
            if (k < 3 * (int)(PIXELS % TOGETHER)) {
                to[k] = bytes[k];
            }
        }
    }
}

/* ---- colours: ops.c ---- */

DEVICE int blend(int value, int other, int factor) {
    int product = ((value - other) * 128 * factor) >> 16;
    return min(max((other * (1 << BLEND_BITS) + product) >> BLEND_BITS, 0), LEVELS - 1);
}

DEVICE void saturate(u8 *pixel, int factor) {
    int grey = (pixel[0] * CUDA_GREY_RED >> 8) + (pixel[1] * CUDA_GREY_GREEN >> 8) +
               (pixel[2] * CUDA_GREY_BLUE >> 8);
    grey = (grey + 129) >> 8;
    UNROLL for (int c = 0; c < 3; c++) {
        pixel[c] = (u8)blend(pixel[c], grey, factor);
    }
}

/* One value of a pixel: turn_hue() of ops.c, where the terms are explained. */
DEVICE int turned(int own, int next, int last, int turn) {
    int lowest = min(own, min(next, last));
    int highest = max(own, max(next, last));
    int spread = highest - lowest;
    int turns = (spread * 128 * turn) >> 16;
    int sides = next - last;
    int rest = spread - max(sides, -sides);
    int place = 2 * spread + lowest - own + (own == highest ? -rest : rest);
    int angle = place * (1 << HUE_BITS) + (sides < 0 ? -turns : turns);
    int away = max(angle, -angle);
    spread *= 1 << HUE_BITS;
    away = min(away, 6 * spread - away);
    int above = min(max(2 * spread - away, 0), spread);
    return lowest + ((above + (1 << (HUE_BITS - 1))) >> HUE_BITS);
}

DEVICE void turn_hue(u8 *pixel, int turn) {
    int red = pixel[0];
    int green = pixel[1];
    int blue = pixel[2];
    pixel[0] = (u8)turned(red, green, blue, turn);
    pixel[1] = (u8)turned(green, blue, red, turn);
    pixel[2] = (u8)turned(blue, red, green, turn);
}

/* ---- colours that depend on one value alone ---- */

/* Counts the values of each channel: totals is (3, LEVELS), copies (3, LEVELS, COPIES). */
DEVICE void count_values(int size, const u8 *pixels, u32 *copies, u32 *totals) {
    for (u32 i = threadIdx.x; i < 3 * LEVELS * COPIES; i += THREADS) {
        copies[i] = 0;
    }
    __syncthreads();
    for (u32 unit = threadIdx.x; unit < UNITS; unit += THREADS) {
        u8 bytes[3 * TOGETHER];
        take_unit(size, pixels, unit, bytes);
        UNROLL for (int k = 0; k < 3 * TOGETHER; k++) {
            if (unit * TOGETHER + k / 3 < PIXELS) {
                atomicAdd(&copies[(k % 3 * LEVELS + bytes[k]) * COPIES + threadIdx.x % COPIES], 1u);
            }
        }
    }
    __syncthreads();
    for (u32 i = threadIdx.x; i < 3 * LEVELS; i += THREADS) {
        u32 total = 0;
        UNROLL for (int k = 0; k < COPIES; k++) {
            total += copies[i * COPIES + k];
        }
        totals[i] = total;
    }
    __syncthreads();
}

/* The mean of all pixels in grey, rounded. Every warp computes it for itself. */
DEVICE int mean_grey(int size, const u32 *totals) {
    u64 sum = 0;
    for (u32 i = threadIdx.x % 32; i < 3 * LEVELS; i += 32) {
        u32 weight = i < LEVELS       ? CUDA_GREY_RED
                     : i < 2 * LEVELS ? CUDA_GREY_GREEN
                                      : CUDA_GREY_BLUE;
        sum += (u64)(weight * (i % LEVELS)) * totals[i];
    }
    for (int apart = 16; apart > 0; apart /= 2) {
        sum += __shfl_xor_sync(0xFFFFFFFFu, sum, apart);
    }
    u64 one = (u64)PIXELS * 65536;
    return (int)((sum + one / 2) / one);
}

DEVICE int stretched(const u32 *totals /* of the channel */, int value) {
    int low = 0;
    int high = LEVELS - 1;
    while (totals[low] == 0) {
        low++;
    }
    while (totals[high] == 0) {
        high--;
    }
    bool inside = high > low && value >= low && value <= high;
    return inside ? 255 * (value - low) / (high - low) : value;
}

DEVICE int equalized(int size, const u32 *totals /* of the channel */, int value) {
    int highest = LEVELS - 1;
    while (totals[highest] == 0) {
        highest--;
    }
    u32 step = (PIXELS - totals[highest]) / 255;
    u32 below = step / 2;
    if (step == 0) {
        return value;
    }
    for (int v = 0; v < value; v++) {
        below += totals[v];
    }
    return (int)min(below / step, 255u);
}

/* What becomes of a value. */
DEVICE int level_of(int size, int kind, int amount, int mean, const u32 *totals, int value) {
    switch (kind) {
    case CUDA_CHANGE_BRIGHTNESS:
        return blend(value, 0, amount);
    case CUDA_CHANGE_CONTRAST:
        return blend(value, mean, amount);
    case CUDA_CHANGE_POSTERIZE:
        return value & 0xFF << amount;
    case CUDA_CHANGE_SOLARIZE:
        return value >= amount ? 255 - value : value;
    case CUDA_CHANGE_AUTOCONTRAST:
        return stretched(totals, value);
    default:
        return equalized(size, totals, value);
    }
}

/* Makes the table (3, LEVELS). */
DEVICE void make_table(int size, int kind, int amount, const u8 *pixels, u32 *copies, u32 *totals,
                       u8 *table) {
    int mean = 0;
    if (kind == CUDA_CHANGE_CONTRAST || kind == CUDA_CHANGE_AUTOCONTRAST ||
        kind == CUDA_CHANGE_EQUALIZE) {
        count_values(size, pixels, copies, totals);
        mean = mean_grey(size, totals);
    }
    for (u32 i = threadIdx.x; i < 3 * LEVELS; i += THREADS) {
        const u32 *own = totals + i / LEVELS * LEVELS;
        table[i] = (u8)level_of(size, kind, amount, mean, own, (int)(i % LEVELS));
    }
    __syncthreads();
}

DEVICE void change_colours(int size, int kind, int amount, const u8 *table, u8 *pixels) {
    for (u32 unit = threadIdx.x; unit < UNITS; unit += THREADS) {
        u8 bytes[3 * TOGETHER];
        take_unit(size, pixels, unit, bytes);
        if (kind == CUDA_CHANGE_SATURATION) {
            UNROLL for (int k = 0; k < TOGETHER; k++) {
                saturate(bytes + 3 * k, amount);
            }
        } else if (kind == CUDA_CHANGE_HUE) {
            UNROLL for (int k = 0; k < TOGETHER; k++) {
                turn_hue(bytes + 3 * k, amount);
            }
        } else {
            UNROLL for (int k = 0; k < 3 * TOGETHER; k++) {
                bytes[k] = table[k % 3 * LEVELS + bytes[k]];
            }
        }
        put_unit(size, bytes, pixels, unit);
    }
}

/* ---- places: warp.c, and sharpness of ops.c ---- */

/* A pixel, red in the lowest byte; the fill colour outside of the picture. */
DEVICE u32 pixel_at(int size, const u8 *pixels, int x, int y) {
    if (x < 0 || x >= size || y < 0 || y >= size) {
        return FILL;
    }
    const u8 *from = pixels + 3 * ((u32)y * size + (u32)x);
    return from[0] | (u32)from[1] << 8 | (u32)from[2] << 16;
}

DEVICE int value_of(u32 pixel, int channel) {
    return (int)(pixel >> (8 * channel) & 255);
}

/* The pixel that the map takes to (x, y). */
DEVICE u32 mapped(int size, const cuda_change *map, const u8 *from, int x, int y) {
    long long across =
        (long long)map->amount * x + (long long)map->x * y + map->width + HALF_WEIGHT;
    long long down = (long long)map->y * x + (long long)map->amount * y + map->height + HALF_WEIGHT;
    int column = (int)(across >> PLACE_BITS);
    int row = (int)(down >> PLACE_BITS);
    int right = (int)(across >> (PLACE_BITS - WEIGHT_BITS) & 255);
    int lower = (int)(down >> (PLACE_BITS - WEIGHT_BITS) & 255);
    u32 upper_left = pixel_at(size, from, column, row);
    u32 upper_right = pixel_at(size, from, column + 1, row);
    u32 lower_left = pixel_at(size, from, column, row + 1);
    u32 lower_right = pixel_at(size, from, column + 1, row + 1);
    u32 pixel = 0;
    UNROLL for (int c = 0; c < 3; c++) {
        int left =
            (value_of(upper_left, c) * (256 - lower) + value_of(lower_left, c) * lower) >> 1;
        int other =
            (value_of(upper_right, c) * (256 - lower) + value_of(lower_right, c) * lower) >> 1;
        int difference = ((other - left) * (right * 128)) >> 16;
        pixel |= (u32)(((left >> 1) + difference + 32) >> 6) << (8 * c);
    }
    return pixel;
}

/* The mean of 3x3 pixels is their sum times 5042/65536, which is 1/13. */
DEVICE u32 sharpened(int size, const u8 *from, int x, int y, int factor) {
    u32 middle = pixel_at(size, from, x, y);
    if (x < 1 || x >= size - 1 || y < 1 || y >= size - 1) {
        return middle;
    }
    int sums[3];
    UNROLL for (int c = 0; c < 3; c++) {
        sums[c] = 4 * value_of(middle, c) + 6;
    }
    UNROLL for (int k = 0; k < 9; k++) {
        u32 near = pixel_at(size, from, x + k % 3 - 1, y + k / 3 - 1);
        UNROLL for (int c = 0; c < 3; c++) {
            sums[c] += value_of(near, c);
        }
    }
    u32 pixel = 0;
    UNROLL for (int c = 0; c < 3; c++) {
        pixel |= (u32)blend(value_of(middle, c), sums[c] * 5042 >> 16, factor) << (8 * c);
    }
    return pixel;
}

/* What comes to (x, y). A shift may be of any length. */
DEVICE u32 moved(int size, const cuda_change *change, const u8 *from, int x, int y) {
    int amount = change->amount;
    int shift = min(max(amount, -size), size);
    switch (change->kind) {
    case CUDA_CHANGE_TRANSLATE_X:
        return pixel_at(size, from, x - shift, y);
    case CUDA_CHANGE_TRANSLATE_Y:
        return pixel_at(size, from, x, y - shift);
    case CUDA_CHANGE_SHARPNESS:
        return sharpened(size, from, x, y, amount);
    case CUDA_CHANGE_ERASE:
        return x >= change->x && x < change->x + change->width && y >= change->y &&
                       y < change->y + change->height
                   ? FILL
                   : pixel_at(size, from, x, y);
    default:
        return mapped(size, change, from, x, y);
    }
}

DEVICE void change_places(int size, const cuda_change *change, const u8 *from, u8 *to) {
    for (u32 at = threadIdx.x; at < PIXELS; at += THREADS) {
        u32 pixel = moved(size, change, from, (int)(at % size), (int)(at / size));
        UNROLL for (int c = 0; c < 3; c++) {
            to[3 * at + c] = (u8)value_of(pixel, c);
        }
    }
}

/* ---- the picture ---- */

/* Whole words of `out`, however it lies. */
DEVICE void hand_over(int size, const u8 *from, u8 *out) {
    u32 bytes = 3 * PIXELS;
    u32 head = min((u32)((0 - (u64)out) & 3), bytes);
    u32 words = (bytes - head) / 4;
    u32 tail = head + 4 * words;
    for (u32 i = threadIdx.x; i < words; i += THREADS) {
        const u8 *four = from + head + 4 * i;
        ((u32 *)(out + head))[i] =
            head == 0 ? *(const u32 *)four
                      : four[0] | (u32)four[1] << 8 | (u32)four[2] << 16 | (u32)four[3] << 24;
    }
    if (threadIdx.x < head) {
        out[threadIdx.x] = from[threadIdx.x];
    }
    if (threadIdx.x < bytes - tail) {
        out[tail + threadIdx.x] = from[tail + threadIdx.x];
    }
}

KERNEL __launch_bounds__(THREADS) picture_changes(const cuda_picture *pictures) {
    SHARED(u32, copies);
    u32 *totals = copies + 3 * LEVELS * COPIES;
    u8 *table = (u8 *)(totals + 3 * LEVELS);
    const cuda_picture *picture = pictures + blockIdx.x;
    int size = picture->size;
    u8 *from = (u8 *)picture->square;
    u8 *to = (u8 *)picture->spare;
    for (int i = 0; i < picture->change_count; i++) {
        cuda_change change = picture->changes[i];
        switch (change.kind) {
        case CUDA_CHANGE_IDENTITY:
            continue;
        case CUDA_CHANGE_BRIGHTNESS:
        case CUDA_CHANGE_CONTRAST:
        case CUDA_CHANGE_POSTERIZE:
        case CUDA_CHANGE_SOLARIZE:
        case CUDA_CHANGE_AUTOCONTRAST:
        case CUDA_CHANGE_EQUALIZE:
            make_table(size, change.kind, change.amount, from, copies, totals, table);
            change_colours(size, change.kind, change.amount, table, from);
            break;
        case CUDA_CHANGE_SATURATION:
        case CUDA_CHANGE_HUE:
            change_colours(size, change.kind, change.amount, table, from);
            break;
        default: {
            change_places(size, &change, from, to);
            u8 *other = from;
            from = to;
            to = other;
        }
        }
        __syncthreads();
    }
    if (picture->change_count > 0) {
        hand_over(size, from, (u8 *)picture->out);
    }
}
#endif
