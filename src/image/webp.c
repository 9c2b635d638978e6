/* webp.c - WebP to pixels with libwebp, where the build has it. */
#include "image/decoders.h"

#include <string.h>

static bool recognises(const uint8_t *bytes, size_t size) {
    return size >= 16 && memcmp(bytes, "RIFF", 4) == 0 && memcmp(bytes + 8, "WEBP", 4) == 0;
}

#ifdef STK_HAVE_WEBP

#include <webp/decode.h>

#include "base/error.h"
#include "base/mem.h"

#define RIFF_HEADER 12
#define CHUNK_HEADER 8

static stk_status fail(VP8StatusCode code, stk_error *err) {
    switch (code) {
    case VP8_STATUS_OUT_OF_MEMORY:
        return STK_FAIL_MEMORY(err, "decoding a WebP");
    case VP8_STATUS_NOT_ENOUGH_DATA:
    case VP8_STATUS_SUSPENDED:
        return STK_FAIL(err, STK_ERR_DATA, "the WebP cannot be decoded: the file was cut off");
    case VP8_STATUS_UNSUPPORTED_FEATURE:
        return STK_FAIL(err, STK_ERR_DATA,
                        "the WebP cannot be decoded: it uses a feature that libwebp lacks");
    default:
        return STK_FAIL(err, STK_ERR_DATA, "the WebP cannot be decoded: its data is damaged");
    }
}

/* The orientation stands in the EXIF chunk of the RIFF container; chunks are padded to even. */
static int read_orientation(const uint8_t *bytes, size_t size) {
    size_t place = RIFF_HEADER;
    while (place + CHUNK_HEADER <= size) {
        const uint8_t *chunk = bytes + place;
        size_t length = (size_t)chunk[4] | (size_t)chunk[5] << 8 | (size_t)chunk[6] << 16 |
                        (size_t)chunk[7] << 24;
        size_t room = size - place - CHUNK_HEADER;
        if (length > room) {
            break;
        }
        if (memcmp(chunk, "EXIF", 4) == 0) {
            const uint8_t *tiff = chunk + CHUNK_HEADER;
            size_t prefix = length > 6 && memcmp(tiff, "Exif\0\0", 6) == 0 ? 6 : 0;
            return stk_image_orientation(tiff + prefix, length - prefix);
        }
        place += CHUNK_HEADER + length + (length & 1);
    }
    return 1;
}

static stk_status read_pixels(WebPDecoderConfig *config, const uint8_t *bytes, size_t size,
                              const stk_image *image, stk_error *err) {
    size_t count = (size_t)image->width * (size_t)image->height;
    bool alpha = config->input.has_alpha != 0;
    uint8_t *rgba = NULL;
    if (alpha) {
        rgba = stk_mem_raw(count, 4);
        if (rgba == NULL) {
            return STK_FAIL_MEMORY(err, "decoding a WebP");
        }
    }
    config->output.colorspace = alpha ? MODE_RGBA : MODE_RGB;
    config->output.is_external_memory = 1;
    config->output.u.RGBA.rgba = alpha ? rgba : image->pixels;
    config->output.u.RGBA.stride = image->width * (alpha ? 4 : 3);
    config->output.u.RGBA.size = count * (alpha ? 4 : 3);
    VP8StatusCode code = WebPDecode(bytes, size, config);
    WebPFreeDecBuffer(&config->output);
    if (code == VP8_STATUS_OK && alpha) {
        stk_image_over_white(rgba, count, image->pixels);
    }
    stk_mem_free(rgba);
    return code == VP8_STATUS_OK ? STK_OK : fail(code, err);
}

static stk_status decode(const uint8_t *bytes, size_t size, stk_image *image, stk_error *err) {
    WebPDecoderConfig config;
    if (!WebPInitDecoderConfig(&config)) {
        return STK_FAIL(err, STK_ERR_INTERNAL,
                        "libwebp is another version than the one that Stoker was built with");
    }
    VP8StatusCode code = WebPGetFeatures(bytes, size, &config.input);
    if (code != VP8_STATUS_OK) {
        return fail(code, err);
    }
    if (config.input.has_animation) {
        return STK_FAIL(err, STK_ERR_DATA,
                        "it is an animated WebP; Stoker reads single pictures: convert it");
    }
    stk_status status = stk_image_new(image, config.input.width, config.input.height, err);
    if (status == STK_OK) {
        status = read_pixels(&config, bytes, size, image, err);
    }
    if (status == STK_OK) {
        status = stk_image_orient(image, read_orientation(bytes, size), err);
    }
    if (status != STK_OK) {
        stk_image_free(image);
    }
    return status;
}

#endif

const stk_image_decoder stk_image_webp = {
    .name = "WebP",
    .recognises = recognises,
#ifdef STK_HAVE_WEBP
    .decode = decode,
#endif
};
