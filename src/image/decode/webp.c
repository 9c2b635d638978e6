/*
 * webp.c - WebP to pixels with libwebp, where the build has it.
 *
 * libwebp crops from even columns and rows on, and invents the neighbours that colours need at the
 * edges of a crop. So a little more than the wanted part is decoded on each side.
 */
#include "image/decode/decoders.h"

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

/* Rows and columns beside a part that affect its pixels. */
#define SPARE 2

/* Pictures up to this many pixels are decoded in one call, about a tenth of a second; larger ones
 * in calls of PIECE_BYTES bytes each. */
#define MOST_AT_ONCE ((int64_t)4 << 20)
#define PIECE_BYTES ((size_t)32 << 10)

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

/* EXIF and XMP are chunks of the RIFF container; chunks are padded to even. */
static int read_orientation(const uint8_t *bytes, size_t size) {
    stk_image_tags tags = {0};
    size_t offset = RIFF_HEADER;
    while (offset + CHUNK_HEADER <= size) {
        const uint8_t *chunk = bytes + offset;
        size_t length = (size_t)chunk[4] | (size_t)chunk[5] << 8 | (size_t)chunk[6] << 16 |
                        (size_t)chunk[7] << 24;
        size_t room = size - offset - CHUNK_HEADER;
        if (length > room) {
            break;
        }
        if (tags.exif == NULL && memcmp(chunk, "EXIF", 4) == 0) {
            tags.exif = chunk + CHUNK_HEADER;
            tags.exif_size = length;
        } else if (tags.xmp == NULL && memcmp(chunk, "XMP ", 4) == 0) {
            tags.xmp = chunk + CHUNK_HEADER;
            tags.xmp_size = length;
        }
        offset += CHUNK_HEADER + length + (length & 1);
    }
    return stk_image_orientation(&tags);
}

/* Passes the rows of the part to the receiver; `top` is the row of the pixels at which it begins.
 */
static stk_status give_rows(const stk_image_receiver *to, const stk_image_part *part,
                            const uint8_t *pixels, int width, bool alpha, int top,
                            stk_image_watch *watch, stk_error *err) {
    size_t row_bytes = (size_t)width * (alpha ? 4 : 3);
    for (int y = 0; y < part->height; y++) {
        if (stk_image_halted(watch)) {
            return stk_image_refuse_halted(watch, "WebP", err);
        }
        const uint8_t *row = pixels + (size_t)(top + y) * row_bytes;
        uint8_t *out = to->room(to->user, 1);
        if (alpha) {
            stk_image_over_white(row, (size_t)width, out);
        } else {
            memcpy(out, row, row_bytes);
        }
        to->take(to->user, 1);
    }
    return STK_OK;
}

/*
 * Decodes small pictures in one call. Passes larger ones to libwebp piece by piece, from the same
 * memory, so that decoding can end between two pieces.
 */
static VP8StatusCode decode_pixels(WebPDecoderConfig *config, const uint8_t *bytes, size_t size,
                                   stk_image_watch *watch) {
    if ((int64_t)config->input.width * config->input.height <= MOST_AT_ONCE) {
        return WebPDecode(bytes, size, config);
    }
    WebPIDecoder *decoder = WebPIDecode(NULL, 0, config);
    VP8StatusCode code = decoder != NULL ? VP8_STATUS_SUSPENDED : VP8_STATUS_OUT_OF_MEMORY;
    for (size_t shown = 0; code == VP8_STATUS_SUSPENDED && shown < size;) {
        if (stk_image_halted(watch)) {
            code = VP8_STATUS_USER_ABORT;
            break;
        }
        shown = size - shown > PIECE_BYTES ? shown + PIECE_BYTES : size;
        code = WebPIUpdate(decoder, bytes, shown);
    }
    WebPIDelete(decoder);
    return code;
}

/* Along one axis: extends the range to an even start and by the spare pixels that exist. */
static int widen(int start, int *length, int pixels) {
    int from = (start > SPARE ? start - SPARE : 0) & ~1;
    int to = start + *length + SPARE;
    *length = (to < pixels ? to : pixels) - from;
    return from;
}

static stk_status read_part(WebPDecoderConfig *config, const uint8_t *bytes, size_t size,
                            const stk_image_part *part, const stk_image_receiver *receiver,
                            stk_image_watch *watch, stk_error *err) {
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
    VP8StatusCode code = decode_pixels(config, bytes, size, watch);
    WebPFreeDecBuffer(&config->output);
    if (code == VP8_STATUS_OK) {
        status = give_rows(receiver, part, pixels, width, alpha, part->y - top, watch, err);
    } else {
        status = code == VP8_STATUS_USER_ABORT ? stk_image_refuse_halted(watch, "WebP", err)
                                               : fail(code, err);
    }
    stk_mem_free(pixels);
    return status;
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
    stk_image_watch watch = stk_image_watch_start(receiver);
    stk_image_info info = {.width = config.input.width,
                           .height = config.input.height,
                           .orientation = read_orientation(bytes, size),
                           .whole_bytes =
                               (uint64_t)config.input.width * (uint64_t)config.input.height * 4};
    stk_status status = stk_image_check_size(info.width, info.height, err);
    if (status == STK_OK && stk_image_halted(&watch)) {
        status = stk_image_refuse_halted(&watch, "WebP", err);
    }
    STK_THEN(status, receiver->begin(receiver->user, &info, &part, err));
    return status == STK_OK ? read_part(&config, bytes, size, &part, receiver, &watch, err)
                            : status;
}

#endif

const stk_image_decoder stk_image_webp = {
    .name = "WebP",
    .extension = "webp",
    .recognises = recognises,
    .library = "libwebp (STK_WEBP)",
#ifdef STK_HAVE_WEBP
    .decode = decode,
#endif
};
