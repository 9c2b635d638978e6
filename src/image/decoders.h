/*
 * decoders.h - what the files of this room share: the decoders of this build, one file each, and
 * the two steps that more than one of them needs. Not for other rooms.
 */
#ifndef STK_IMAGE_DECODERS_H
#define STK_IMAGE_DECODERS_H

#include "image/image.h"

extern const stk_image_decoder stk_image_jpeg;
extern const stk_image_decoder stk_image_png;
extern const stk_image_decoder stk_image_webp;

/*
 * Fails with STK_ERR_DATA when a picture of this size is refused. Decoders ask before they or
 * their library take memory for the pixels.
 */
STK_CHECKED stk_status stk_image_check_size(int64_t width, int64_t height, stk_error *err);

/* EXIF's orientation, 1 to 8, out of a TIFF header and what follows; 1 where it is not told. */
int stk_image_orientation(const uint8_t *tiff, size_t size);

/* Turns and mirrors the picture so that it stands upright; 1 leaves it alone. */
STK_CHECKED stk_status stk_image_orient(stk_image *image, int orientation, stk_error *err);

/* Lays pixels with alpha, (count, 4), over white: (count, 3). */
void stk_image_over_white(const uint8_t *rgba, size_t count, uint8_t *rgb);

#endif
