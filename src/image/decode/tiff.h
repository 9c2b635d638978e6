/*
 * tiff.h - only for this room: what the two readers of TIFF share. tiff.c reads plain files by
 * itself, which is fast and needs no library; tiff_library.c has libtiff for all others.
 */
#ifndef STK_IMAGE_DECODE_TIFF_H
#define STK_IMAGE_DECODE_TIFF_H

#include "image/decode/samples.h"

/* The numbers of TIFF's tags. */
typedef enum stk_tiff_tag {
    STK_TIFF_WIDTH = 256,
    STK_TIFF_HEIGHT = 257,
    STK_TIFF_BITS = 258,
    STK_TIFF_COMPRESSION = 259,
    STK_TIFF_PHOTOMETRIC = 262,
    STK_TIFF_FILL_ORDER = 266,
    STK_TIFF_OFFSETS = 273,
    STK_TIFF_ORIENTATION = 274,
    STK_TIFF_CHANNELS = 277,
    STK_TIFF_ROWS = 278,
    STK_TIFF_LENGTHS = 279,
    STK_TIFF_PLANES = 284,
    STK_TIFF_EXTRA = 338,
    STK_TIFF_FORMAT = 339
} stk_tiff_tag;

/* What the tags say about pixels. */
typedef struct stk_tiff_kind {
    unsigned photometric; /* 0: small values are white; 1: black; 2: RGB; others are not plain */
    unsigned bits;        /* of each value */
    unsigned format;      /* 1: whole numbers, 2: with sign, 3: floats */
    unsigned channels;
    unsigned extras;      /* channels beyond grey or RGB that the file names */
    unsigned extra;       /* what the first of them is: 1 and 2 are alpha */
    unsigned orientation; /* EXIF's */
} stk_tiff_kind;

/* Fills in type, channels, alpha and orientation; false: these pixels are not plain numbers. */
bool stk_tiff_describe(const stk_tiff_kind *kind, const stk_image_receiver *receiver,
                       stk_samples *samples);

/* Decodes with libtiff; in a build without it fails with a sentence that says so. */
STK_CHECKED stk_status stk_tiff_with_library(const uint8_t *bytes, size_t size,
                                             const stk_image_receiver *receiver,
                                             stk_image_watch *watch, stk_error *err);

#endif
