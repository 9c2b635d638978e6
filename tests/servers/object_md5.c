/*
 * object_md5.c - see the header. Names and formulas are those of RFC 1321, section 3.4.
 */
#include "object_md5.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

/* T[i] is the whole part of 2^32 times |sin(i + 1)|; made at the first start. */
static uint32_t sines[64];

void os_md5_start(os_md5 *md5) {
    if (sines[0] == 0) {
        for (int i = 0; i < 64; i++) {
            sines[i] = (uint32_t)(4294967296.0 * fabs(sin(i + 1.0)));
        }
    }
    *md5 = (os_md5){.state = {0x67452301, 0xEFCDAB89, 0x98BADCFE, 0x10325476}};
}

static uint32_t turn(uint32_t x, int bits) {
    return x << bits | x >> (32 - bits);
}

/* One operation: the four words change places by the order of the arguments. */
#define STEP(mixed, a, b, word, bits, i) (a) = (b) + turn((a) + (mixed) + (word) + sines[i], bits)

#define F(x, y, z) (((x) & (y)) | (~(x) & (z)))
#define G(x, y, z) (((x) & (z)) | ((y) & ~(z)))
#define H(x, y, z) ((x) ^ (y) ^ (z))
#define I(x, y, z) ((y) ^ ((x) | ~(z)))

static void add_block(uint32_t state[4], const unsigned char *block) {
    uint32_t x[16];
    for (int i = 0; i < 16; i++) {
        const unsigned char *b = block + 4 * i;
        x[i] = b[0] | (uint32_t)b[1] << 8 | (uint32_t)b[2] << 16 | (uint32_t)b[3] << 24;
    }
    uint32_t a = state[0], b = state[1], c = state[2], d = state[3];
    for (int i = 0; i < 16; i += 4) {
        STEP(F(b, c, d), a, b, x[i], 7, i);
        STEP(F(a, b, c), d, a, x[i + 1], 12, i + 1);
        STEP(F(d, a, b), c, d, x[i + 2], 17, i + 2);
        STEP(F(c, d, a), b, c, x[i + 3], 22, i + 3);
    }
    for (int i = 16; i < 32; i += 4) {
        STEP(G(b, c, d), a, b, x[(5 * i + 1) % 16], 5, i);
        STEP(G(a, b, c), d, a, x[(5 * i + 6) % 16], 9, i + 1);
        STEP(G(d, a, b), c, d, x[(5 * i + 11) % 16], 14, i + 2);
        STEP(G(c, d, a), b, c, x[(5 * i + 16) % 16], 20, i + 3);
    }
    for (int i = 32; i < 48; i += 4) {
        STEP(H(b, c, d), a, b, x[(3 * i + 5) % 16], 4, i);
        STEP(H(a, b, c), d, a, x[(3 * i + 8) % 16], 11, i + 1);
        STEP(H(d, a, b), c, d, x[(3 * i + 11) % 16], 16, i + 2);
        STEP(H(c, d, a), b, c, x[(3 * i + 14) % 16], 23, i + 3);
    }
    for (int i = 48; i < 64; i += 4) {
        STEP(I(b, c, d), a, b, x[7 * i % 16], 6, i);
        STEP(I(a, b, c), d, a, x[(7 * i + 7) % 16], 10, i + 1);
        STEP(I(d, a, b), c, d, x[(7 * i + 14) % 16], 15, i + 2);
        STEP(I(c, d, a), b, c, x[(7 * i + 21) % 16], 21, i + 3);
    }
    state[0] += a;
    state[1] += b;
    state[2] += c;
    state[3] += d;
}

void os_md5_add(os_md5 *md5, const void *bytes, size_t size) {
    const unsigned char *from = bytes;
    size_t waiting = (size_t)(md5->size % 64);
    md5->size += size;
    if (waiting > 0) {
        size_t taken = size < 64 - waiting ? size : 64 - waiting;
        memcpy(md5->waiting + waiting, from, taken);
        from += taken;
        size -= taken;
        if (waiting + taken < 64) {
            return;
        }
        add_block(md5->state, md5->waiting);
    }
    for (; size >= 64; from += 64, size -= 64) {
        add_block(md5->state, from);
    }
    if (size > 0) {
        memcpy(md5->waiting, from, size);
    }
}

void os_md5_end(os_md5 *md5, char hex[33]) {
    static const unsigned char padding[64] = {0x80};
    uint64_t bits = 8 * md5->size;
    size_t waiting = (size_t)(md5->size % 64);
    os_md5_add(md5, padding, (waiting < 56 ? 56 : 120) - waiting);
    unsigned char length[8];
    for (int i = 0; i < 8; i++) {
        length[i] = (unsigned char)(bits >> 8 * i);
    }
    os_md5_add(md5, length, sizeof length);
    for (int i = 0; i < 16; i++) {
        snprintf(hex + 2 * (size_t)i, 3, "%02x", (md5->state[i / 4] >> 8 * (i % 4)) & 0xFF);
    }
}
