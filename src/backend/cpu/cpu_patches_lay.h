/*
 * cpu_patches_lay.h - laying out patches, compiled by each of the files cpu_gemm_*.c through
 * cpu_gemm_tile.h, so that runs are copied with wide registers.
 */
#include "backend/cpu/cpu_patches.h"

typedef float quad __attribute__((vector_size(16), aligned(4), may_alias));

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

/* At the edge of a picture: floats from .. to-1 of a run, those in low .. high-1 being in it. */
static GEMM_TARGET void lay_edge(const float *run, size_t low, size_t high, size_t from, size_t to,
                                 float *out) {
    size_t begin = low < from ? from : LEAST(low, to);
    size_t end = high < begin ? begin : LEAST(high, to);
    memset(out, 0, (begin - from) * sizeof *out);
    copy_run(out + (begin - from), run + begin, end - begin);
    memset(out + (end - from), 0, (to - end) * sizeof *out);
}

/* Floats from .. to-1 of the patch at a place; `line` is the window's row that `from` lies in. */
INLINE void lay_patch(const cpu_patches *p, const cpu_place *at, size_t line, size_t from,
                      size_t to, float *out) {
    ptrdiff_t channels = p->image.channels;
    ptrdiff_t line_floats = p->image.width * channels;
    ptrdiff_t left = (ptrdiff_t)(p->left + at->col * p->stride) * channels;
    size_t run = (size_t)(p->width * channels);
    size_t low = left < 0 ? (size_t)-left : 0;
    size_t high = left >= line_floats ? 0 : (size_t)(line_floats - left);
    bool whole = low == 0 && high >= run;
    int y = p->top + at->row * p->stride + (int)line;
    for (size_t k = line * run; k < to; k += run, y++) {
        size_t begin = k < from ? from - k : 0;
        size_t end = LEAST(to - k, run);
        const float *pixels = at->picture + y * line_floats + left;
        float *line_out = out + (k + begin - from);
        if (y < 0 || y >= p->image.height) {
            memset(line_out, 0, (end - begin) * sizeof *out);
        } else if (whole) {
            copy_run(line_out, pixels + begin, end - begin);
        } else {
            lay_edge(pixels, low, high, begin, end, line_out);
        }
    }
}

static GEMM_TARGET void lay_out(const cpu_patches *patches, size_t first, size_t count, size_t from,
                                size_t to, float *out) {
    cpu_place at = cpu_place_of(patches, first);
    size_t line = from / ((size_t)patches->width * (size_t)patches->image.channels);
    for (size_t i = 0; i < count; i++, out += CPU_GEMM_PITCH) {
        lay_patch(patches, &at, line, from, to, out);
        cpu_place_next(patches, &at);
    }
}
