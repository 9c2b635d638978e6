/* decode.c - finds the decoder that knows the bytes; pictures in memory. */
#include "image/image.h"

#include <string.h>

#include "base/error.h"
#include "base/mem.h"
#include "image/decoders.h"

/* In the order in which they are asked: the most common format first. */
static const stk_image_decoder *const decoders[] = {
    &stk_image_jpeg,
    &stk_image_png,
    &stk_image_webp,
};

/* Formats that people have but Stoker does not read, so that the reason can name them. */
static const struct {
    const char *name;
    size_t offset; /* of the magic in the file */
    const char *magic;
} foreign[] = {
    {"a GIF", 0, "GIF8"},      {"a BMP", 0, "BM"},         {"a TIFF", 0, "II*"},
    {"a TIFF", 0, "MM"},       {"an AVIF", 4, "ftypavif"}, {"a HEIC", 4, "ftypheic"},
    {"a HEIC", 4, "ftypmif1"}, {"a HEIC", 4, "ftypheix"},
};

static stk_status refuse(const uint8_t *bytes, size_t size, stk_error *err) {
    for (size_t i = 0; i < sizeof foreign / sizeof *foreign; i++) {
        size_t length = strlen(foreign[i].magic);
        if (size >= foreign[i].offset + length &&
            memcmp(bytes + foreign[i].offset, foreign[i].magic, length) == 0) {
            return STK_FAIL(err, STK_ERR_DATA,
                            "it is %s picture; Stoker reads JPEG, PNG and WebP: convert it",
                            foreign[i].name);
        }
    }
    return STK_FAIL(err, STK_ERR_DATA, "it is not a JPEG, PNG or WebP picture");
}

stk_status stk_image_decode(const uint8_t *bytes, size_t size, stk_image *image, stk_error *err) {
    memset(image, 0, sizeof *image);
    if (size == 0) {
        return STK_FAIL(err, STK_ERR_DATA, "the file is empty");
    }
    for (size_t i = 0; i < sizeof decoders / sizeof *decoders; i++) {
        const stk_image_decoder *decoder = decoders[i];
        if (!decoder->recognises(bytes, size)) {
            continue;
        }
        if (decoder->decode == NULL) {
            return STK_FAIL(err, STK_ERR_DATA,
                            "it is a %s picture and this build of Stoker has no %s: install its "
                            "library and build again, or convert the picture",
                            decoder->name, decoder->name);
        }
        return decoder->decode(bytes, size, image, err);
    }
    return refuse(bytes, size, err);
}

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
