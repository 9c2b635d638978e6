/*
 * resample.h - a part of a picture to another size, antialiased, while its rows arrive.
 *
 * stk_resampler_begin() is told the part and the size; it then knows which rows and columns are
 * needed. Rows are written, from top to bottom, where stk_resampler_room() says, and
 * stk_resampler_take() scales what has become possible while those rows are still in the cache: no
 * picture is ever held as a whole. One resampler serves many pictures, one after the other, and
 * keeps its memory. Threads: one at a time. Not for other rooms.
 */
#ifndef STK_IMAGE_RESAMPLE_H
#define STK_IMAGE_RESAMPLE_H

#include "image/image.h"
#include "image/resample_kernels.h"

/* As many rows as this may be asked for at a time. */
#define STK_RESAMPLE_ROWS 16

/* Which pixels make output pixel i along one axis, and how much each counts. */
typedef struct stk_resample_axis {
    int *first;       /* owned: the first pixel, counted from `from` */
    int *count;       /* owned: how many count; 1 .. taps */
    int16_t *weights; /* owned: (size, taps); behind count[i] come zeros */
    size_t room;      /* bytes of weights */
    int sizes;        /* for how many output pixels first and count have room */
    int taps;         /* even */
    int used;         /* the largest count, made even */
    int from, to;     /* the pixels that count for any output pixel: from .. to-1 */
} stk_resample_axis;

typedef struct stk_resampler {
    const stk_resample_kernels *kernels;
    stk_resample_axis across;
    stk_resample_axis down;
    int size;        /* px, of an output row */
    int size_down;   /* output rows */
    bool mirror_y;   /* rows go to the output from the bottom up */
    uint8_t *out;    /* borrowed: (size_down, size, 3) */
    uint8_t *window; /* owned: rows that arrived and are still needed */
    size_t window_bytes;
    size_t stride;        /* bytes of a row in the window */
    int column;           /* picture column that the window's rows begin with */
    int first_row;        /* that the window begins with, counted from down.from */
    int rows;             /* in the window */
    int most_rows;        /* that fit */
    int next;             /* output row to make next */
    int16_t *middle;      /* owned: two rows that were weighed down the columns */
    size_t middle_values; /* of one of them, slack included */
    size_t middle_room;   /* bytes of middle */
    int waiting;          /* middle rows that wait for a second one: 0 or 1 */
} stk_resampler;

/* What is to be made of a picture of width x height px. */
typedef struct stk_resample_job {
    int width, height; /* of the picture, px */
    stk_crop crop;     /* what lies outside of the picture is left out */
    int size;          /* px, of an output row */
    int size_down;     /* output rows; 0: a square */
    bool mirror_x;     /* left and right are exchanged */
    bool mirror_y;     /* top and bottom are exchanged */
    stk_interpolation filter;
} stk_resample_job;

/* Afterwards across.from .. across.to-1 and down.from .. down.to-1 are the pixels needed. */
STK_CHECKED stk_status stk_resampler_begin(stk_resampler *r, const stk_resample_job *job,
                                           uint8_t *out, stk_error *err);

/* Bytes that the window will need for rows of this width. */
size_t stk_resampler_window_bytes(const stk_resampler *r, int width);

/* The rows that come are `width` px wide and begin with picture column `column`. */
STK_CHECKED stk_status stk_resampler_rows(stk_resampler *r, int column, int width, stk_error *err);

/* Where the next `count` rows go, one behind the other; the first is picture row down.from. */
uint8_t *stk_resampler_room(stk_resampler *r, int count);
void stk_resampler_take(stk_resampler *r, int count);

void stk_resampler_free(stk_resampler *r);

#endif
