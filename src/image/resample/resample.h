/*
 * resample.h - for this room, and axes for decoders on a device: scales a part of a picture,
 * antialiased, while its rows arrive.
 *
 * stk_resampler_begin() takes the part and the size and computes which rows and columns are needed.
 * The decoder writes rows, from top to bottom, to stk_resampler_room(). stk_resampler_take() then
 * makes the output rows whose input is complete, while that input is still in the processor's
 * cache. It never needs the whole picture. A resampler serves many pictures, one after another,
 * and keeps its memory. Threads: one at a time.
 */
#ifndef STK_IMAGE_RESAMPLE_RESAMPLE_H
#define STK_IMAGE_RESAMPLE_RESAMPLE_H

#include "image/image.h"
#include "image/resample/kernels.h"

/* Most rows of one stk_resampler_room() call. */
#define STK_RESAMPLE_ROWS 16

/* For each output pixel i along one axis: the input pixels and their weights. */
typedef struct stk_resample_axis {
    int *first;       /* owned: the first pixel, counted from `from` */
    int *count;       /* owned: number of input pixels, 1 .. taps */
    int16_t *weights; /* owned: (size, taps); zeros after count[i] */
    size_t room;      /* bytes of weights */
    int sizes;        /* output pixels that `first` and `count` have room for */
    int taps;         /* even */
    int used;         /* the largest count, made even */
    int from, to;     /* input pixels that any output pixel needs: from .. to-1 */
} stk_resample_axis;

typedef struct stk_resampler {
    const stk_resample_kernels *kernels;
    stk_resample_axis across;
    stk_resample_axis down;
    int channels;    /* values of a pixel */
    int size;        /* px, of an output row */
    int size_down;   /* output rows */
    bool mirror_y;   /* rows go to the output from the bottom up */
    uint8_t *out;    /* borrowed: (size_down, size, channels) */
    uint8_t *window; /* owned: input rows that are still needed */
    size_t window_bytes;
    size_t stride;        /* bytes of a row in the window */
    int column;           /* picture column that the window's rows begin with */
    int first_row;        /* first row of the window, counted from down.from */
    int rows;             /* in the window */
    int most_rows;        /* rows that the window has room for */
    int next;             /* output row to make next */
    int16_t *middle;      /* owned: two rows after the vertical pass */
    size_t middle_values; /* values of one of the rows, slack included */
    size_t middle_room;   /* bytes of middle */
    int waiting;          /* middle rows that wait for a second row: 0 or 1 */
} stk_resampler;

/* One scaling: which part of a picture becomes which size. */
typedef struct stk_resample_task {
    int width, height; /* of the picture, px */
    int channels;      /* 0: 3, which is fastest */
    stk_crop crop;     /* parts outside of the picture do not count */
    int size;          /* px, of an output row */
    int size_down;     /* output rows; 0: a square */
    bool mirror_x;     /* left and right are exchanged */
    bool mirror_y;     /* top and bottom are exchanged */
    stk_interpolation filter;
} stk_resample_task;

/* Begins a picture; columns across.from .. across.to-1, rows down.from .. down.to-1 are needed. */
STK_CHECKED stk_status stk_resampler_begin(stk_resampler *r, const stk_resample_task *task,
                                           uint8_t *out, stk_error *err);

/* Bytes of the window for rows of this width. */
size_t stk_resampler_window_bytes(const stk_resampler *r, int width);

/* Announces rows that are `width` px wide and begin at picture column `column`. */
STK_CHECKED stk_status stk_resampler_rows(stk_resampler *r, int column, int width, stk_error *err);

/* Memory for the next `count` rows, contiguous; the first of all is picture row down.from. */
uint8_t *stk_resampler_room(stk_resampler *r, int count);
void stk_resampler_take(stk_resampler *r, int count);

void stk_resampler_free(stk_resampler *r);

#endif
