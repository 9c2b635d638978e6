/*
 * patches_lay.h - laying out patches, compiled by each of avx512.c, avx2.c, neon.c and plain.c
 * through tile.h, so that runs are copied with wide registers.
 */
#include "backend/cpu/gemm/patches.h"

/* Wide steps, the last of which may go over floats that were copied before. */
INLINE void copy_run(float *out, const float *from, size_t count) {
    size_t i = 0;
    if (count >= GEMM_LANES) {
        for (; i + GEMM_LANES < count; i += GEMM_LANES) {
            *(vec *)(out + i) = *(const vec *)(from + i);
        }
        i = count - GEMM_LANES;
        *(vec *)(out + i) = *(const vec *)(from + i);
    } else if (count >= 4) {
        for (; i + 4 < count; i += 4) {
            *(quad *)(out + i) = *(const quad *)(from + i);
        }
        i = count - 4;
        *(quad *)(out + i) = *(const quad *)(from + i);
    } else {
        for (; i < count; i++) {
            out[i] = from[i];
        }
    }
}

/* At the edge of a picture: floats from .. to-1 of a run that begins at `left` in a line. */
static GEMM_TARGET void lay_edge(const float *line, ptrdiff_t left, ptrdiff_t line_floats,
                                 size_t from, size_t to, float *out) {
    size_t low = left < 0 ? (size_t)-left : 0; /* what lies in the picture: low .. high-1 */
    size_t high = left >= line_floats ? 0 : (size_t)(line_floats - left);
    size_t begin = low < from ? from : LEAST(low, to);
    size_t end = high < begin ? begin : LEAST(high, to);
    memset(out, 0, (begin - from) * sizeof *out);
    if (end > begin) {
        copy_run(out + (begin - from), line + (left + (ptrdiff_t)begin), end - begin);
    }
    memset(out + (end - from), 0, (to - end) * sizeof *out);
}

/*
 * Lays out floats from .. to-1 of `count` patches of one row of the grid, the first of them at
 * column `col`. Patches of one row share the lines of the picture, so little work is left for each
 * patch.
 */
INLINE void lay_row(const cpu_patches p, const float *picture, int row, int col, size_t count,
                    size_t from, size_t to, float *out) {
    ptrdiff_t channels = p.image.channels;
    ptrdiff_t line_floats = p.image.width * channels;
    ptrdiff_t step = p.stride * channels;
    size_t run = (size_t)(p.width * channels);
    size_t line = from / run;
    int y = p.top + row * p.stride + (int)line;
    for (size_t k = line * run; k < to; k += run, y++) {
        size_t begin = k < from ? from - k : 0;
        size_t end = LEAST(to - k, run);
        float *line_out = out + (k + begin - from);
        bool outside = y < 0 || y >= p.image.height;
        ptrdiff_t left = (p.left + (ptrdiff_t)col * p.stride) * channels;
        const float *pixels = picture + (outside ? 0 : y * line_floats);
        for (size_t i = 0; i < count; i++, left += step, line_out += CPU_GEMM_PITCH) {
            if (outside) {
                memset(line_out, 0, (end - begin) * sizeof *out);
            } else if (left >= 0 && left + (ptrdiff_t)run <= line_floats) {
                copy_run(line_out, pixels + left + begin, end - begin);
            } else {
                lay_edge(pixels, left, line_floats, begin, end, line_out);
            }
        }
    }
}

static GEMM_TARGET void lay_out(const cpu_patches *patches, size_t first, size_t count, size_t from,
                                size_t to, float *out) {
    const cpu_patches p = *patches; /* nothing that is written can change it */
    cpu_place at = cpu_place_of(&p, first);
    while (count > 0) {
        size_t here = LEAST(count, (size_t)(p.cols - at.col));
        lay_row(p, at.picture, at.row, at.col, here, from, to, out);
        out += here * CPU_GEMM_PITCH;
        count -= here;
        at.col = p.cols - 1; /* the row is done */
        cpu_place_next(&p, &at);
    }
}
