/* ends.c - launches of kernels/ends.cu: input and conversions. */
#include "backend/cuda/emit/emit.h"
#include "backend/cuda/program/grid.h"

#define THREADS 256

static const char file[] = "ends";

/* Whether pictures have the kernels for three channels, which have their norms as arguments. */
static bool is_rgb(const stk_graph *graph) {
    return graph->channels == 3;
}

/* The arguments of all kernels that read pictures. */
static void describe_pictures(cuda_launch *l, const stk_graph *graph, bool train, cuda_ref y) {
    const float *mean = graph->mean;
    const float *std = graph->std;
    cuda_ref constants = cuda_fixed_at(CUDA_FIXED_CONSTANTS, 0);
    CUDA_DEFINES(l, {"SIZE", graph->img_size}, {"TRAIN", train});
    if (is_rgb(graph)) {
        CUDA_ARGS(l, constants, y, cuda_float(mean[0]), cuda_float(mean[1]), cuda_float(mean[2]),
                  cuda_float(std[0]), cuda_float(std[1]), cuda_float(std[2]));
    } else {
        stk_cuda_define(l, "CHANNELS", graph->channels);
        CUDA_ARGS(l, constants, cuda_fixed_at(CUDA_FIXED_NORMS, 0), y);
    }
}

size_t stk_cuda_input_norms(const stk_graph *graph, float *norms) {
    if (is_rgb(graph)) {
        return 0;
    }
    for (int c = 0; c < graph->channels && norms != NULL; c++) {
        norms[c] = 1 / (255.0f * graph->std[c]);
        norms[graph->channels + c] = graph->mean[c] / graph->std[c];
    }
    return 2 * (size_t)graph->channels;
}

void stk_cuda_input(cuda_program *p, const stk_graph *graph, int batch, bool train, cuda_ref y) {
    size_t pixels = (size_t)graph->img_size * (size_t)graph->img_size;
    int padded = cuda_input_channels(graph->channels);
    bool rgb = is_rgb(graph);
    /* With three channels a thread has four pixels, otherwise 8 channels of one, or all 4. */
    size_t threads = rgb ? cuda_ceil(pixels, 4) : pixels * cuda_ceil((size_t)padded, 8);
    cuda_launch *l =
        stk_cuda_launch(p, file, rgb ? "input" : "input_any", (unsigned)cuda_ceil(threads, THREADS),
                        (unsigned)batch, THREADS, 0);
    if (!rgb) {
        stk_cuda_define(l, "PADDED", padded);
    }
    describe_pictures(l, graph, train, y);
}

void stk_cuda_input_blocks(cuda_program *p, const stk_graph *graph, int batch, bool train,
                           const cuda_stem *stem, cuda_ref y) {
    size_t blocks = cuda_ceil((size_t)stem->side * (size_t)stem->side, THREADS);
    cuda_launch *l = stk_cuda_launch(p, file, is_rgb(graph) ? "input_blocks" : "input_any_blocks",
                                     (unsigned)blocks, (unsigned)batch, THREADS, 0);
    CUDA_DEFINES(l, {"SIDE", stem->side}, {"BEFORE", stem->before});
    describe_pictures(l, graph, train, y);
}

/* One filter per row of blocks, one thread per number of the filter over blocks. */
static void stem_filter(cuda_program *p, const char *name, int filters, const cuda_stem *stem,
                        cuda_ref from, cuda_ref to) {
    size_t numbers = (size_t)stem->taps * (size_t)stem->taps * CUDA_BLOCK_CHANNELS;
    cuda_launch *l = stk_cuda_launch(p, file, name, (unsigned)cuda_ceil(numbers, THREADS),
                                     (unsigned)filters, THREADS, 0);
    CUDA_DEFINES(l, {"TAPS", stem->taps}, {"LEAD", stem->lead}, {"SIDE", stem->kernel},
                 {"CHANNELS", stem->channels});
    CUDA_ARGS(l, from, to);
}

void stk_cuda_block_filter(cuda_program *p, int filters, const cuda_stem *stem, cuda_ref w,
                           cuda_ref blocked) {
    stem_filter(p, "block_filter", filters, stem, w, blocked);
}

void stk_cuda_unblock_filter(cuda_program *p, int filters, const cuda_stem *stem, cuda_ref blocked,
                             cuda_ref w) {
    stem_filter(p, "unblock_filter", filters, stem, blocked, w);
}

/* From or to (count, channels) with padding, one thread per element that is written. */
static void filter(cuda_program *p, const char *name, int count, int channels, int written,
                   cuda_ref from, cuda_ref to) {
    size_t blocks = cuda_ceil((size_t)count * (size_t)written, THREADS);
    cuda_launch *l = stk_cuda_launch(p, file, name, (unsigned)blocks, 1, THREADS, 0);
    CUDA_DEFINES(l, {"CHANNELS", channels}, {"PADDED", cuda_input_channels(channels)});
    CUDA_ARGS(l, from, to, cuda_int(count));
}

void stk_cuda_pad_filter(cuda_program *p, int filters, int taps, int channels, cuda_ref w,
                         cuda_ref padded) {
    filter(p, "pad_filter", filters * taps, channels, cuda_input_channels(channels), w, padded);
}

void stk_cuda_drop_padding(cuda_program *p, int filters, int taps, int channels, cuda_ref padded,
                           cuda_ref w) {
    filter(p, "unpad_filter", filters * taps, channels, channels, padded, w);
}

void stk_cuda_to_float(cuda_program *p, size_t count, cuda_ref x, cuda_ref y) {
    cuda_launch *l =
        stk_cuda_launch(p, file, "to_float", cuda_blocks(p, count, THREADS * 8, 8), 1, THREADS, 0);
    CUDA_ARGS(l, x, y, cuda_long(count));
}

void stk_cuda_noise(cuda_program *p, size_t count, cuda_ref y) {
    cuda_launch *l =
        stk_cuda_launch(p, file, "noise", cuda_blocks(p, count, THREADS * 8, 8), 1, THREADS, 0);
    CUDA_ARGS(l, y, cuda_long(count));
}
