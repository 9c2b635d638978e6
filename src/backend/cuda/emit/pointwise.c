/* pointwise.c - launches of kernels/pointwise.cu: activations, additions and other single nodes. */
#include "backend/cuda/emit/emit.h"
#include "backend/cuda/program/grid.h"

#define THREADS 256
#define PER_PROCESSOR 8 /* blocks that a multiprocessor can hold */

static const char file[] = "pointwise";

/* A launch over `count` elements, of which a thread takes `vectors` times 8 in a round. */
static cuda_launch *flat(cuda_program *p, const char *name, size_t count, size_t vectors) {
    unsigned blocks = cuda_blocks(p, count, THREADS * vectors * 8, PER_PROCESSOR);
    return stk_cuda_launch(p, file, name, blocks, 1, THREADS, 0);
}

/* A launch over `vectors` of each sample. */
static cuda_launch *per_sample(cuda_program *p, const char *name, size_t vectors, int batch) {
    unsigned blocks = cuda_blocks(p, vectors, THREADS, PER_PROCESSOR);
    return stk_cuda_launch(p, file, name, blocks, (unsigned)batch, THREADS, 0);
}

void stk_cuda_act(cuda_program *p, stk_op act, size_t count, cuda_ref x, cuda_ref y) {
    cuda_launch *l = flat(p, "act", count, 4);
    stk_cuda_define(l, "ACT", stk_cuda_act_code(act));
    CUDA_ARGS(l, x, y, cuda_long(count));
}

void stk_cuda_act_back(cuda_program *p, stk_op act, size_t count, cuda_ref x, cuda_ref y,
                       cuda_ref dy, cuda_ref dx, bool accumulate) {
    cuda_launch *l = flat(p, "act_back", count, 2);
    CUDA_DEFINES(l, {"ACT", stk_cuda_act_code(act)}, {"ACCUMULATE", accumulate});
    CUDA_ARGS(l, act == STK_OP_SILU ? x : y, dy, dx, cuda_long(count));
}

void stk_cuda_add(cuda_program *p, size_t count, cuda_ref a, cuda_ref b, cuda_ref y) {
    cuda_launch *l = flat(p, "add", count, 4);
    CUDA_ARGS(l, a, b, y, cuda_long(count));
}

void stk_cuda_pass(cuda_program *p, size_t count, cuda_ref dy, cuda_ref dx, bool accumulate) {
    if (accumulate) {
        stk_cuda_add(p, count, dx, dy, dx);
    } else {
        stk_cuda_act(p, STK_OP_COUNT, count, dy, dx);
    }
}

void stk_cuda_bias(cuda_program *p, cuda_plane plane, cuda_ref x, cuda_ref bias, cuda_ref y) {
    size_t wide = (size_t)cuda_wide(plane.channels);
    size_t vectors = cuda_rows(plane) * (size_t)plane.channels / wide;
    unsigned blocks = cuda_blocks(p, vectors, THREADS, PER_PROCESSOR);
    cuda_launch *l = stk_cuda_launch(p, file, "bias", blocks, 1, THREADS, 0);
    CUDA_DEFINES(l, {"C", plane.channels}, {"WIDE", (long)wide});
    CUDA_ARGS(l, x, bias, y, cuda_long(cuda_rows(plane)));
}

void stk_cuda_bias_back(cuda_program *p, cuda_plane plane, cuda_ref dy, cuda_ref bias_grad) {
    cuda_tiles t = cuda_tiles_of(plane.channels);
    size_t rows = THREADS / (size_t)t.tile;
    unsigned blocks = cuda_blocks(p, cuda_rows(plane), rows * 8, 2);
    cuda_ref partial = stk_cuda_buffer(p, blocks * (size_t)plane.channels * sizeof(float));
    cuda_ref counters = stk_cuda_counters(p, t.count);
    cuda_launch *l = stk_cuda_launch(p, file, "bias_back", blocks, (unsigned)t.count, THREADS,
                                     (unsigned)(THREADS * t.wide) * sizeof(float));
    CUDA_DEFINES(l, {"C", plane.channels}, {"WIDE", t.wide}, {"TILE", t.tile});
    CUDA_ARGS(l, dy, partial, bias_grad, counters, cuda_long(cuda_rows(plane)));
}

void stk_cuda_scale(cuda_program *p, cuda_plane plane, cuda_ref x, cuda_ref gate, cuda_ref y) {
    int wide = cuda_wide(plane.channels);
    int vectors = plane.pixels * (plane.channels / wide);
    cuda_launch *l = per_sample(p, "scale", (size_t)vectors, plane.batch);
    CUDA_DEFINES(l, {"C", plane.channels}, {"WIDE", wide});
    CUDA_ARGS(l, x, gate, y, cuda_int(vectors));
}

void stk_cuda_scale_back(cuda_program *p, cuda_plane plane, cuda_ref x, cuda_ref gate, cuda_ref dy,
                         cuda_ref dx, bool accumulate_x, cuda_ref dgate, bool accumulate_gate) {
    cuda_tiles t = cuda_tiles_of(plane.channels);
    cuda_launch *l =
        stk_cuda_launch(p, file, "scale_back", (unsigned)t.count, (unsigned)plane.batch, THREADS,
                        (unsigned)(THREADS * t.wide) * sizeof(float));
    CUDA_DEFINES(l, {"C", plane.channels}, {"WIDE", t.wide}, {"TILE", t.tile});
    CUDA_ARGS(l, x, gate, dy, dx, cuda_int(accumulate_x), dgate, cuda_int(accumulate_gate),
              cuda_int(plane.pixels));
}

void stk_cuda_drop(cuda_program *p, cuda_plane plane, const stk_node *node, int number, cuda_ref x,
                   cuda_ref y, bool accumulate) {
    bool path = node->op == STK_OP_DROP_PATH;
    size_t sample = (size_t)plane.pixels * (size_t)plane.channels;
    size_t count = path ? sample : sample * (size_t)plane.batch;
    size_t wide = path && sample % 8 != 0 ? 1 : 8;
    cuda_launch *l = per_sample(p, "drop", cuda_ceil(count, wide), path ? plane.batch : 1);
    CUDA_DEFINES(l, {"PATH", path}, {"WIDE", (long)wide}, {"ACCUMULATE", accumulate});
    CUDA_ARGS(l, x, y, cuda_fixed_at(CUDA_FIXED_CONSTANTS, 0), cuda_long(count),
              cuda_float(node->rate), cuda_int(number));
}

/* Both directions of a shortcut, `over` being the shape of what is written. */
static cuda_launch *shortcut(cuda_program *p, const char *name, int batch, stk_shape in,
                             stk_shape out, stk_shape over, int stride) {
    int before = (out.channels - in.channels) / 2;
    bool wide = in.channels % 8 == 0 && out.channels % 8 == 0 && before % 8 == 0;
    cuda_launch *l = per_sample(p, name, stk_shape_count(over) / (wide ? 8 : 1), batch);
    CUDA_DEFINES(l, {"C", in.channels}, {"OUT_C", out.channels}, {"BEFORE", before},
                 {"STRIDE", stride}, {"WIDE", wide ? 8 : 1});
    return l;
}

static void shapes(cuda_launch *l, stk_shape in, stk_shape out) {
    CUDA_ARGS(l, cuda_int(in.height), cuda_int(in.width), cuda_int(out.height),
              cuda_int(out.width));
}

void stk_cuda_shortcut(cuda_program *p, int batch, stk_shape in, stk_shape out, int stride,
                       cuda_ref x, cuda_ref y) {
    cuda_launch *l = shortcut(p, "shortcut", batch, in, out, out, stride);
    CUDA_ARGS(l, x, y);
    shapes(l, in, out);
}

void stk_cuda_shortcut_back(cuda_program *p, int batch, stk_shape in, stk_shape out, int stride,
                            cuda_ref dy, cuda_ref dx, bool accumulate) {
    cuda_launch *l = shortcut(p, "shortcut_back", batch, in, out, in, stride);
    stk_cuda_define(l, "ACCUMULATE", accumulate);
    CUDA_ARGS(l, dy, dx);
    shapes(l, in, out);
}
