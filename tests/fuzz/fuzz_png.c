/*
 * fuzz_png.c - any bytes are a picture or a reason, and the whole square is filled: PNG.
 *
 * Chunks have checksums, at which most damage ends; so each input is tried once more with the
 * checksums put right.
 */
#include "fuzz_image.h"

#define SIGNATURE 8
#define CHUNK 12 /* bytes of a chunk around its data: length, name, checksum */

fuzz_plan fuzz_prepare(void) {
    return fuzz_plan_pictures(FILE_PNG, &stk_image_png, 2000);
}

static uint32_t checksum(const uint8_t *bytes, size_t size) {
    uint32_t sum = 0xFFFFFFFFu;
    for (size_t i = 0; i < size; i++) {
        sum ^= bytes[i];
        for (int bit = 0; bit < 8; bit++) {
            sum = sum >> 1 ^ (sum & 1 ? 0xEDB88320u : 0);
        }
    }
    return ~sum;
}

static void put_right(uint8_t *bytes, size_t size) {
    size_t at = SIGNATURE;
    while (at + CHUNK <= size) {
        uint8_t *chunk = bytes + at;
        size_t length = (size_t)chunk[0] << 24 | (size_t)chunk[1] << 16 | (size_t)chunk[2] << 8 |
                        (size_t)chunk[3];
        if (length > size - at - CHUNK) {
            break;
        }
        uint32_t sum = checksum(chunk + 4, 4 + length);
        for (size_t i = 0; i < 4; i++) {
            chunk[8 + length + i] = (uint8_t)(sum >> (24 - 8 * i));
        }
        at += CHUNK + length;
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    fuzz_picture(data, size);
    if (size > 0) {
        uint8_t *repaired = malloc(size);
        FUZZ_REQUIRE(repaired != NULL);
        memcpy(repaired, data, size);
        put_right(repaired, size);
        fuzz_picture(repaired, size);
        free(repaired);
    }
    return 0;
}
