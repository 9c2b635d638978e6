/*
 * webp.c - WebP to pixels with libwebp, where the build has it.
 *
 * libwebp crops from even columns and rows on, and at the edges of a crop it makes up the
 * neighbours that colour needs: a little more than the part is decoded on each side.
 */
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

/* Rows and columns beside a part that make its own pixels right. */
#define SPARE 2

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

/* Gives the receiver the rows of the part, which begins at row `top` of the pixels. */
static void give_rows(const stk_image_receiver *to, const stk_image_part *part,
                      const uint8_t *pixels, int width, bool alpha, int top) {
    size_t row_bytes = (size_t)width * (alpha ? 4 : 3);
    for (int y = 0; y < part->height; y++) {
        const uint8_t *row = pixels + (size_t)(top + y) * row_bytes;
        uint8_t *out = to->room(to->user, 1);
        if (alpha) {
            stk_image_over_white(row, (size_t)width, out);
        } else {
            memcpy(out, row, row_bytes);
        }
        to->take(to->user, 1);
    }
}

/* Along one axis: from an even pixel on, with the spare ones that there are. */
static int widen(int start, int *length, int pixels) {
    int from = (start > SPARE ? start - SPARE : 0) & ~1;
    int to = start + *length + SPARE;
    *length = (to < pixels ? to : pixels) - from;
    return from;
}

static stk_status read_part(WebPDecoderConfig *config, const uint8_t *bytes, size_t size,
                            const stk_image_part *part, const stk_image_receiver *receiver,
                            stk_error *err) {
    int width = part->width;
    int height = part->height;
    int left = widen(part->x, &width, config->input.width);
    int top = widen(part->y, &height, config->input.height);
    bool alpha = config->input.has_alpha != 0;
    size_t row_bytes = (size_t)width * (alpha ? 4 : 3);
    stk_status status = receiver->rows(receiver->user, left, width, err);
    if (status != STK_OK) {
        return status;
    }
    uint8_t *pixels = stk_mem_raw((size_t)height, row_bytes);
    if (pixels == NULL) {
        return STK_FAIL_MEMORY(err, "decoding a WebP");
    }
    config->options.use_cropping = 1;
    config->options.crop_left = left;
    config->options.crop_top = top;
    config->options.crop_width = width;
    config->options.crop_height = height;
    config->output.colorspace = alpha ? MODE_RGBA : MODE_RGB;
    config->output.is_external_memory = 1;
    config->output.u.RGBA.rgba = pixels;
    config->output.u.RGBA.stride = (int)row_bytes;
    config->output.u.RGBA.size = (size_t)height * row_bytes;
    VP8StatusCode code = WebPDecode(bytes, size, config);
    WebPFreeDecBuffer(&config->output);
    if (code == VP8_STATUS_OK) {
        give_rows(receiver, part, pixels, width, alpha, part->y - top);
    }
    stk_mem_free(pixels);
    return code == VP8_STATUS_OK ? STK_OK : fail(code, err);
}

static stk_status decode(const uint8_t *bytes, size_t size, const stk_image_receiver *receiver,
                         stk_error *err) {
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
    stk_image_part part;
    stk_image_info info = {.width = config.input.width,
                           .height = config.input.height,
                           .orientation = read_orientation(bytes, size),
                           .whole_bytes =
                               (uint64_t)config.input.width * (uint64_t)config.input.height * 4};
    stk_status status = stk_image_check_size(info.width, info.height, err);
    if (status == STK_OK) {
        status = receiver->begin(receiver->user, &info, &part, err);
    }
    return status == STK_OK ? read_part(&config, bytes, size, &part, receiver, err) : status;
}

#endif

const stk_image_decoder stk_image_webp = {
    .name = "WebP",
    .extension = "webp",
    .recognises = recognises,
#ifdef STK_HAVE_WEBP
    .decode = decode,
#endif
};
