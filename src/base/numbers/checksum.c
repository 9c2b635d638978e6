/*
 * checksum.c - four lanes of 64 x 64 -> 128 bit products.
 *
 * A lane takes 16 bytes with one multiplication: one word is joined with what the lane holds, the
 * other with a constant, and the two halves of the product are folded into 64 bits, so that each
 * bit of either word reaches all bits of the lane. A product waits some cycles for the one before
 * it in its lane; four lanes, 64 bytes at a time, keep the multiplier busy meanwhile. Words are
 * read as little-endian, so that the value does not depend on the machine.
 *
 * CRC-32C takes half a byte at a time: its table fits into this file, and its inputs are small.
 */
#include "base/numbers/checksum.h"

#include <string.h>

#include "base/error.h"
#include "base/files/file.h"
#include "base/mem.h"

/* Bytes of a file that are read at a time; the checksum depends on it. */
#define PIECE_BYTES ((size_t)1 << 20)

#define LANES 4
#define LANE_BYTES 16
#define STRIPE_BYTES ((size_t)LANES * LANE_BYTES)

/* Numbers without pattern: the fractions of the square roots of 2, 3, 5 and 7, made odd. */
static const uint64_t lane_keys[LANES] = {0x6A09E667F3BCC909ull, 0xBB67AE8584CAA73Bull,
                                          0x3C6EF372FE94F82Bull, 0xA54FF53A5F1D36F1ull};

static uint64_t load(const uint8_t *bytes) {
    uint64_t word;
    memcpy(&word, bytes, sizeof word);
#if __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__
    word = __builtin_bswap64(word);
#endif
    return word;
}

/* The finalizer of splitmix64: one to one, and each bit of z changes half of the result's. */
static uint64_t mix(uint64_t z) {
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9ull;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EBull;
    return z ^ (z >> 31);
}

static uint64_t take(uint64_t lane, const uint8_t *bytes, uint64_t key) {
    unsigned __int128 product =
        (unsigned __int128)(load(bytes) ^ lane) * (load(bytes + sizeof(uint64_t)) ^ key);
    return (uint64_t)product ^ (uint64_t)(product >> 64);
}

uint64_t stk_checksum_seeded(const void *data, size_t size, uint64_t seed) {
    const uint8_t *p = data;
    size_t left = size;
    uint64_t lanes[LANES];
    for (int i = 0; i < LANES; i++) {
        lanes[i] = mix(seed + lane_keys[i]);
    }
    for (; left >= STRIPE_BYTES; left -= STRIPE_BYTES, p += STRIPE_BYTES) {
        for (int i = 0; i < LANES; i++) {
            lanes[i] = take(lanes[i], p + i * LANE_BYTES, lane_keys[i]);
        }
    }
    if (left > 0) {
        /* Zeros past the end are told from zeros of the data by the size, which is mixed in. */
        uint8_t rest[STRIPE_BYTES] = {0};
        memcpy(rest, p, left);
        for (int i = 0; i < LANES; i++) {
            lanes[i] = take(lanes[i], rest + i * LANE_BYTES, lane_keys[i]);
        }
    }
    uint64_t sum = mix(seed ^ (uint64_t)size);
    for (int i = 0; i < LANES; i++) {
        sum = mix(sum ^ lanes[i]) + lane_keys[i];
    }
    return mix(sum);
}

uint64_t stk_checksum(const void *data, size_t size) {
    return stk_checksum_seeded(data, size, 0);
}

/* What four bits at the low end become: the reflected polynomial is 0x82F63B78. */
static const uint32_t crc_table[16] = {
    0x00000000u, 0x105EC76Fu, 0x20BD8EDEu, 0x30E349B1u, 0x417B1DBCu, 0x5125DAD3u,
    0x61C69362u, 0x7198540Du, 0x82F63B78u, 0x92A8FC17u, 0xA24BB5A6u, 0xB21572C9u,
    0xC38D26C4u, 0xD3D3E1ABu, 0xE330A81Au, 0xF36E6F75u,
};

stk_status stk_checksum_file(const char *path, uint64_t *sum, stk_error *err) {
    stk_file_reader *file = NULL;
    char *piece = stk_mem_raw(PIECE_BYTES, 1);
    stk_status status =
        piece != NULL ? stk_file_open(&file, path, err) : STK_FAIL_MEMORY(err, path);
    uint64_t size = status == STK_OK ? stk_file_size(file) : 0;
    *sum = 0;
    for (uint64_t at = 0; at < size && status == STK_OK; at += PIECE_BYTES) {
        size_t part = size - at < PIECE_BYTES ? (size_t)(size - at) : PIECE_BYTES;
        status = stk_file_read_at(file, at, piece, part, err);
        *sum = status == STK_OK ? stk_checksum_seeded(piece, part, *sum) : *sum;
    }
    stk_file_close(file);
    stk_mem_free(piece);
    return status;
}

uint32_t stk_crc32c(const void *data, size_t size) {
    const uint8_t *bytes = data;
    uint32_t crc = ~UINT32_C(0);
    for (size_t i = 0; i < size; i++) {
        crc ^= bytes[i];
        crc = (crc >> 4) ^ crc_table[crc & 15];
        crc = (crc >> 4) ^ crc_table[crc & 15];
    }
    return ~crc;
}
