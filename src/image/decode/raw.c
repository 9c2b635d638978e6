/*
 * raw.c - plain pixels, the format of the cache of decoded pictures.
 *
 * A header of 16 bytes (magic number and size, little-endian), then the rows. No text and no other
 * format begins with the first byte of the magic number.
 */
#include "image/decode/decoders.h"

#include <string.h>

#include "base/error.h"

#define HEAD_BYTES 16
static const uint8_t magic[8] = {0xf5, 'S', 'T', 'K', 'R', 'A', 'W', '1'};

static void put_u32(uint8_t *to, uint32_t value) {
    for (int i = 0; i < 4; i++) {
        to[i] = (uint8_t)(value >> (8 * i));
    }
}

static uint32_t get_u32(const uint8_t *from) {
    return (uint32_t)from[0] | (uint32_t)from[1] << 8 | (uint32_t)from[2] << 16 |
           (uint32_t)from[3] << 24;
}

static bool recognises(const uint8_t *bytes, size_t size) {
    return size >= sizeof magic && memcmp(bytes, magic, sizeof magic) == 0;
}

static stk_status decode(const uint8_t *bytes, size_t size, const stk_image_receiver *receiver,
                         stk_error *err) {
    if (size < HEAD_BYTES) {
        return STK_FAIL(err, STK_ERR_DATA, "its head ends early");
    }
    int64_t width = get_u32(bytes + 8);
    int64_t height = get_u32(bytes + 12);
    stk_status status = stk_image_check_size(width, height, err);
    if (status == STK_OK && size != HEAD_BYTES + 3 * (uint64_t)width * (uint64_t)height) {
        status = STK_FAIL(err, STK_ERR_DATA, "it has another number of pixels than it says");
    }
    stk_image_info info = {.width = (int)width, .height = (int)height, .orientation = 1};
    stk_image_part part = {.divisor = 1};
    STK_THEN(status, receiver->begin(receiver->user, &info, &part, err));
    STK_THEN(status, receiver->rows(receiver->user, part.x, part.width, err));
    stk_image_watch watch = stk_image_watch_start(receiver);
    for (int y = 0; status == STK_OK && y < part.height; y++) {
        if (stk_image_halted(&watch)) {
            return stk_image_refuse_halted(&watch, "picture", err);
        }
        const uint8_t *row =
            bytes + HEAD_BYTES + 3 * ((size_t)(part.y + y) * (size_t)width + (size_t)part.x);
        memcpy(receiver->room(receiver->user, 1), row, 3 * (size_t)part.width);
        receiver->take(receiver->user, 1);
    }
    return status;
}

bool stk_image_is_raw(const uint8_t *bytes, size_t size) {
    return recognises(bytes, size);
}

stk_status stk_image_encode_raw(const stk_image *image, stk_bytes *bytes, stk_error *err) {
    size_t pixels = 3 * (size_t)image->width * (size_t)image->height;
    if (!stk_bytes_reserve(bytes, HEAD_BYTES + pixels)) {
        return STK_FAIL_MEMORY(err, "a decoded picture");
    }
    memcpy(bytes->data, magic, sizeof magic);
    put_u32(bytes->data + 8, (uint32_t)image->width);
    put_u32(bytes->data + 12, (uint32_t)image->height);
    memcpy(bytes->data + HEAD_BYTES, image->pixels, pixels);
    bytes->size = HEAD_BYTES + pixels;
    return STK_OK;
}

const stk_image_decoder stk_image_raw = {
    .name = "raw",
    .recognises = recognises,
    .decode = decode,
};
