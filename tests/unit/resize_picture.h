/*
 * resize_picture.h - scales a part of a picture that is held as a whole, with the resampler: what a
 * decoder's rows are compared with.
 */
#ifndef STK_TESTS_RESIZE_PICTURE_H
#define STK_TESTS_RESIZE_PICTURE_H

#include <string.h>

#include "image/resample/resample.h"

/*
 * Scales the part to out (size, size, 3), antialiased, with integer weights. Pixels outside the
 * part do not count. `flip` mirrors the result.
 */
static inline stk_status resize_picture(const stk_image *image, stk_crop crop, int size,
                                        stk_interpolation filter, bool flip, uint8_t *out,
                                        stk_error *err) {
    stk_resampler resampler = {0};
    stk_resample_task task = {.width = image->width,
                              .height = image->height,
                              .crop = crop,
                              .size = size,
                              .mirror_x = flip,
                              .filter = filter};
    stk_status status = stk_resampler_begin(&resampler, &task, out, err);
    if (status == STK_OK) {
        status = stk_resampler_rows(&resampler, 0, image->width, err);
    }
    size_t row_bytes = 3 * (size_t)image->width;
    for (int y = resampler.down.from; status == STK_OK && y < resampler.down.to; y++) {
        memcpy(stk_resampler_room(&resampler, 1), image->pixels + (size_t)y * row_bytes, row_bytes);
        stk_resampler_take(&resampler, 1);
    }
    stk_resampler_free(&resampler);
    return status;
}

#endif
