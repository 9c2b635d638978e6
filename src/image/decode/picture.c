/* picture.c - memory, size limits and alpha: shared by all decoders. */
#include "image/image.h"

#include <string.h>

#include "base/error.h"
#include "base/mem.h"
#include "image/decode/decoders.h"

stk_status stk_image_check_size(int64_t width, int64_t height, stk_error *err) {
    if (width < 1 || height < 1) {
        return STK_FAIL(err, STK_ERR_DATA, "the picture has no pixels (%lld x %lld)",
                        (long long)width, (long long)height);
    }
    if (width > INT32_MAX || height > INT32_MAX || width > STK_IMAGE_MAX_PIXELS / height) {
        return STK_FAIL(err, STK_ERR_DATA,
                        "the picture says that it has %lld x %lld pixels; more than %lld million "
                        "are not read: scale it down",
                        (long long)width, (long long)height,
                        (long long)(STK_IMAGE_MAX_PIXELS / (1024 * 1024)));
    }
    return STK_OK;
}

stk_status stk_image_new(stk_image *image, int width, int height, stk_error *err) {
    memset(image, 0, sizeof *image);
    stk_status status = stk_image_check_size(width, height, err);
    if (status != STK_OK) {
        return status;
    }
    uint8_t *pixels = stk_mem_raw((size_t)width * (size_t)height, 3);
    if (pixels == NULL) {
        return STK_FAIL(err, STK_ERR_MEMORY,
                        "out of memory for a picture of %d x %d pixels; free some memory and run "
                        "again",
                        width, height);
    }
    *image = (stk_image){.width = width, .height = height, .pixels = pixels};
    return STK_OK;
}

void stk_image_free(stk_image *image) {
    stk_mem_free(image->pixels);
    memset(image, 0, sizeof *image);
}

void stk_image_over_white(const uint8_t *rgba, size_t count, uint8_t *rgb) {
    for (size_t i = 0; i < count; i++) {
        unsigned alpha = rgba[4 * i + 3];
        for (size_t c = 0; c < 3; c++) {
            unsigned mixed = rgba[4 * i + c] * alpha + 255 * (255 - alpha);
            rgb[3 * i + c] = (uint8_t)((mixed + 127) / 255);
        }
    }
}

void stk_image_to_grey(const uint8_t *rgb, size_t count, uint8_t *grey) {
    for (size_t i = 0; i < count; i++) {
        const uint8_t *at = rgb + 3 * i;
        grey[i] = (uint8_t)((19595u * at[0] + 38470u * at[1] + 7471u * at[2] + 32768) >> 16);
    }
}
