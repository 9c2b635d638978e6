/*
 * digest.c - SHA-256, HMAC and MD5 in plain C.
 *
 * MD5 runs over every picture that comes from far away. Its 64 steps each wait for the one before,
 * so its speed is the length of that chain: the functions of each round are written so that only
 * the newest value is on it, and loops have constant bounds so that compilers unroll them.
 */
#include "base/numbers/digest.h"

#include <string.h>

#define BLOCK 64
#define LENGTH_AT 56 /* where the length in bits stands in the last block */

static inline uint32_t turn_left(uint32_t x, int bits) {
    return x << bits | x >> (32 - bits);
}

static inline uint32_t turn_right(uint32_t x, int bits) {
    return x >> bits | x << (32 - bits);
}

static inline uint32_t read_big(const uint8_t *p) {
    return (uint32_t)p[0] << 24 | (uint32_t)p[1] << 16 | (uint32_t)p[2] << 8 | p[3];
}

static inline uint32_t read_little(const uint8_t *p) {
    return (uint32_t)p[3] << 24 | (uint32_t)p[2] << 16 | (uint32_t)p[1] << 8 | p[0];
}

/* The first 32 bits of the fractions of the cube roots of the first 64 primes. */
static const uint32_t sha256_steps[64] = {
    0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b, 0x59f111f1, 0x923f82a4, 0xab1c5ed5,
    0xd807aa98, 0x12835b01, 0x243185be, 0x550c7dc3, 0x72be5d74, 0x80deb1fe, 0x9bdc06a7, 0xc19bf174,
    0xe49b69c1, 0xefbe4786, 0x0fc19dc6, 0x240ca1cc, 0x2de92c6f, 0x4a7484aa, 0x5cb0a9dc, 0x76f988da,
    0x983e5152, 0xa831c66d, 0xb00327c8, 0xbf597fc7, 0xc6e00bf3, 0xd5a79147, 0x06ca6351, 0x14292967,
    0x27b70a85, 0x2e1b2138, 0x4d2c6dfc, 0x53380d13, 0x650a7354, 0x766a0abb, 0x81c2c92e, 0x92722c85,
    0xa2bfe8a1, 0xa81a664b, 0xc24b8b70, 0xc76c51a3, 0xd192e819, 0xd6990624, 0xf40e3585, 0x106aa070,
    0x19a4c116, 0x1e376c08, 0x2748774c, 0x34b0bcb5, 0x391c0cb3, 0x4ed8aa4a, 0x5b9cca4f, 0x682e6ff3,
    0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208, 0x90befffa, 0xa4506ceb, 0xbef9a3f7, 0xc67178f2,
};

static void sha256_blocks(uint32_t state[8], const uint8_t *data, size_t blocks) {
    uint32_t w[64]; /* the message schedule */
    for (; blocks > 0; blocks--, data += BLOCK) {
        for (int i = 0; i < 16; i++) {
            w[i] = read_big(data + 4 * i);
        }
        for (int i = 16; i < 64; i++) {
            uint32_t s0 = turn_right(w[i - 15], 7) ^ turn_right(w[i - 15], 18) ^ w[i - 15] >> 3;
            uint32_t s1 = turn_right(w[i - 2], 17) ^ turn_right(w[i - 2], 19) ^ w[i - 2] >> 10;
            w[i] = w[i - 16] + s0 + w[i - 7] + s1;
        }
        uint32_t a = state[0], b = state[1], c = state[2], d = state[3];
        uint32_t e = state[4], f = state[5], g = state[6], h = state[7];
        for (int i = 0; i < 64; i++) {
            uint32_t s1 = turn_right(e, 6) ^ turn_right(e, 11) ^ turn_right(e, 25);
            uint32_t t1 = h + s1 + (g ^ (e & (f ^ g))) + sha256_steps[i] + w[i];
            uint32_t s0 = turn_right(a, 2) ^ turn_right(a, 13) ^ turn_right(a, 22);
            uint32_t t2 = s0 + ((a & b) | (c & (a | b)));
            h = g;
            g = f;
            f = e;
            e = d + t1;
            d = c;
            c = b;
            b = a;
            a = t1 + t2;
        }
        state[0] += a;
        state[1] += b;
        state[2] += c;
        state[3] += d;
        state[4] += e;
        state[5] += f;
        state[6] += g;
        state[7] += h;
    }
    explicit_bzero(w, sizeof w); /* keys pass through here */
}

void stk_sha256_begin(stk_sha256 *hash) {
    /* The first 32 bits of the fractions of the square roots of the first 8 primes. */
    static const uint32_t start[8] = {0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a,
                                      0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19};
    memcpy(hash->state, start, sizeof start);
    hash->bytes = 0;
}

/* Adds a piece to either hash: fills up the waiting block, hashes whole blocks, keeps the rest. */
typedef void blocks_function(uint32_t *state, const uint8_t *data, size_t blocks);

static void add_piece(blocks_function *use, uint32_t *state, uint64_t *bytes, uint8_t *block,
                      const void *data, size_t size) {
    const uint8_t *from = data;
    size_t waiting = (size_t)(*bytes % BLOCK);
    *bytes += size;
    if (waiting > 0) {
        size_t room = BLOCK - waiting;
        size_t part = size < room ? size : room;
        if (part > 0) {
            memcpy(block + waiting, from, part);
        }
        if (part < room) {
            return;
        }
        use(state, block, 1);
        from += part;
        size -= part;
    }
    if (size >= BLOCK) {
        use(state, from, size / BLOCK);
        from += size / BLOCK * BLOCK;
        size %= BLOCK;
    }
    if (size > 0) {
        memcpy(block, from, size);
    }
}

/* Appends a 1 bit and zeros up to the place of the length, which the caller writes. */
static void add_padding(blocks_function *use, uint32_t *state, uint64_t bytes, uint8_t *block) {
    size_t waiting = (size_t)(bytes % BLOCK);
    block[waiting++] = 0x80;
    if (waiting > LENGTH_AT) {
        memset(block + waiting, 0, BLOCK - waiting);
        use(state, block, 1);
        waiting = 0;
    }
    memset(block + waiting, 0, LENGTH_AT - waiting);
}

void stk_sha256_add(stk_sha256 *hash, const void *data, size_t size) {
    add_piece(sha256_blocks, hash->state, &hash->bytes, hash->block, data, size);
}

void stk_sha256_end(stk_sha256 *hash, uint8_t digest[STK_SHA256_BYTES]) {
    uint64_t bits = hash->bytes * 8;
    add_padding(sha256_blocks, hash->state, hash->bytes, hash->block);
    for (int i = 0; i < 8; i++) {
        hash->block[LENGTH_AT + i] = (uint8_t)(bits >> (56 - 8 * i));
    }
    sha256_blocks(hash->state, hash->block, 1);
    for (int i = 0; i < STK_SHA256_BYTES; i++) {
        digest[i] = (uint8_t)(hash->state[i / 4] >> (24 - 8 * (i % 4)));
    }
    explicit_bzero(hash, sizeof *hash);
}

void stk_sha256_of(const void *data, size_t size, uint8_t digest[STK_SHA256_BYTES]) {
    stk_sha256 hash;
    stk_sha256_begin(&hash);
    stk_sha256_add(&hash, data, size);
    stk_sha256_end(&hash, digest);
}

/* H((key ^ 0x5c..) | H((key ^ 0x36..) | data)), the key filled up to a block or hashed first. */
void stk_hmac_sha256(const void *key, size_t key_size, const void *data, size_t size,
                     uint8_t digest[STK_SHA256_BYTES]) {
    uint8_t pad[BLOCK] = {0};
    uint8_t inner[STK_SHA256_BYTES];
    stk_sha256 hash;
    if (key_size > BLOCK) {
        stk_sha256_of(key, key_size, pad);
    } else if (key_size > 0) {
        memcpy(pad, key, key_size);
    }
    for (size_t i = 0; i < BLOCK; i++) {
        pad[i] ^= 0x36;
    }
    stk_sha256_begin(&hash);
    stk_sha256_add(&hash, pad, BLOCK);
    stk_sha256_add(&hash, data, size);
    stk_sha256_end(&hash, inner);
    for (size_t i = 0; i < BLOCK; i++) {
        pad[i] ^= 0x36 ^ 0x5c;
    }
    stk_sha256_begin(&hash);
    stk_sha256_add(&hash, pad, BLOCK);
    stk_sha256_add(&hash, inner, sizeof inner);
    stk_sha256_end(&hash, digest);
    explicit_bzero(pad, sizeof pad);
    explicit_bzero(inner, sizeof inner);
}

/* floor(2^32 |sin(i + 1)|), i in radians. */
static const uint32_t md5_steps[64] = {
    0xd76aa478, 0xe8c7b756, 0x242070db, 0xc1bdceee, 0xf57c0faf, 0x4787c62a, 0xa8304613, 0xfd469501,
    0x698098d8, 0x8b44f7af, 0xffff5bb1, 0x895cd7be, 0x6b901122, 0xfd987193, 0xa679438e, 0x49b40821,
    0xf61e2562, 0xc040b340, 0x265e5a51, 0xe9b6c7aa, 0xd62f105d, 0x02441453, 0xd8a1e681, 0xe7d3fbc8,
    0x21e1cde6, 0xc33707d6, 0xf4d50d87, 0x455a14ed, 0xa9e3e905, 0xfcefa3f8, 0x676f02d9, 0x8d2a4c8a,
    0xfffa3942, 0x8771f681, 0x6d9d6122, 0xfde5380c, 0xa4beea44, 0x4bdecfa9, 0xf6bb4b60, 0xbebfbc70,
    0x289b7ec6, 0xeaa127fa, 0xd4ef3085, 0x04881d05, 0xd9d4d039, 0xe6db99e5, 0x1fa27cf8, 0xc4ac5665,
    0xf4292244, 0x432aff97, 0xab9423a7, 0xfc93a039, 0x655b59c3, 0x8f0ccc92, 0xffeff47d, 0x85845dd1,
    0x6fa87e4f, 0xfe2ce6e0, 0xa3014314, 0x4e0811a1, 0xf7537e82, 0xbd3af235, 0x2ad7d2bb, 0xeb86d391,
};

/*
 * One step: a becomes b + turn(a + f + word + step). In F and G the two terms have no bit in
 * common, so that they can be added one after the other, and the one without b is done before b is
 * known.
 */
#define STEP_F(a, b, c, d, i, bits)                                  \
    (a) += md5_steps[i] + w[(i) % 16] + ((d) ^ ((b) & ((c) ^ (d)))); \
    (a) = turn_left((a), (bits)) + (b)
#define STEP_G(a, b, c, d, i, bits)                                           \
    (a) += md5_steps[i] + w[(5 * (i) + 1) % 16] + (~(d) & (c)) + ((d) & (b)); \
    (a) = turn_left((a), (bits)) + (b)
#define STEP_H(a, b, c, d, i, bits)                                    \
    (a) += md5_steps[i] + w[(3 * (i) + 5) % 16] + (((c) ^ (d)) ^ (b)); \
    (a) = turn_left((a), (bits)) + (b)
#define STEP_I(a, b, c, d, i, bits)                               \
    (a) += md5_steps[i] + w[7 * (i) % 16] + ((c) ^ ((b) | ~(d))); \
    (a) = turn_left((a), (bits)) + (b)

#define FOUR(STEP, i, s0, s1, s2, s3) \
    STEP(a, b, c, d, (i), s0);        \
    STEP(d, a, b, c, (i) + 1, s1);    \
    STEP(c, d, a, b, (i) + 2, s2);    \
    STEP(b, c, d, a, (i) + 3, s3)

#define SIXTEEN(STEP, i, s0, s1, s2, s3) \
    FOUR(STEP, (i), s0, s1, s2, s3);     \
    FOUR(STEP, (i) + 4, s0, s1, s2, s3); \
    FOUR(STEP, (i) + 8, s0, s1, s2, s3); \
    FOUR(STEP, (i) + 12, s0, s1, s2, s3)

static void md5_blocks(uint32_t state[4], const uint8_t *data, size_t blocks) {
    uint32_t a = state[0], b = state[1], c = state[2], d = state[3];
    for (; blocks > 0; blocks--, data += BLOCK) {
        uint32_t w[16];
        uint32_t a0 = a, b0 = b, c0 = c, d0 = d;
        for (int i = 0; i < 16; i++) {
            w[i] = read_little(data + 4 * i);
        }
        SIXTEEN(STEP_F, 0, 7, 12, 17, 22);
        SIXTEEN(STEP_G, 16, 5, 9, 14, 20);
        SIXTEEN(STEP_H, 32, 4, 11, 16, 23);
        SIXTEEN(STEP_I, 48, 6, 10, 15, 21);
        a += a0;
        b += b0;
        c += c0;
        d += d0;
    }
    state[0] = a;
    state[1] = b;
    state[2] = c;
    state[3] = d;
}

void stk_md5_begin(stk_md5 *hash) {
    static const uint32_t start[4] = {0x67452301, 0xefcdab89, 0x98badcfe, 0x10325476};
    memcpy(hash->state, start, sizeof start);
    hash->bytes = 0;
}

void stk_md5_add(stk_md5 *hash, const void *data, size_t size) {
    add_piece(md5_blocks, hash->state, &hash->bytes, hash->block, data, size);
}

void stk_md5_end(stk_md5 *hash, uint8_t digest[STK_MD5_BYTES]) {
    uint64_t bits = hash->bytes * 8;
    add_padding(md5_blocks, hash->state, hash->bytes, hash->block);
    for (int i = 0; i < 8; i++) {
        hash->block[LENGTH_AT + i] = (uint8_t)(bits >> (8 * i));
    }
    md5_blocks(hash->state, hash->block, 1);
    for (int i = 0; i < STK_MD5_BYTES; i++) {
        digest[i] = (uint8_t)(hash->state[i / 4] >> (8 * (i % 4)));
    }
}

void stk_md5_of(const void *data, size_t size, uint8_t digest[STK_MD5_BYTES]) {
    stk_md5 hash;
    stk_md5_begin(&hash);
    stk_md5_add(&hash, data, size);
    stk_md5_end(&hash, digest);
}

const char *stk_hex(const uint8_t *bytes, size_t size, char *text) {
    static const char digits[] = "0123456789abcdef";
    for (size_t i = 0; i < size; i++) {
        text[2 * i] = digits[bytes[i] >> 4];
        text[2 * i + 1] = digits[bytes[i] & 15];
    }
    text[2 * size] = '\0';
    return text;
}
