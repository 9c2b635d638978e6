/* test_base_checksum.c - every change shows, on every machine in the same way. */
#include "check.h"

#include <stdint.h>

#include "base/files/file.h"
#include "base/mem.h"
#include "base/numbers/checksum.h"
#include "base/numbers/rng.h"

#define MOST 300 /* several stripes of 64 bytes and every rest */

static void fill(uint8_t *bytes, size_t size, uint64_t index) {
    stk_rng rng = stk_rng_make(7, STK_RNG_TEST, 0, index);
    for (size_t i = 0; i < size; i++) {
        bytes[i] = (uint8_t)stk_rng_u64(&rng);
    }
}

static int compare(const void *a, const void *b) {
    uint64_t x = *(const uint64_t *)a;
    uint64_t y = *(const uint64_t *)b;
    return (x > y) - (x < y);
}

/* How many of the sums are equal to another one. */
static size_t repeated(uint64_t *sums, size_t count) {
    size_t found = 0;
    qsort(sums, count, sizeof *sums, compare);
    for (size_t i = 1; i < count; i++) {
        found += sums[i] == sums[i - 1];
    }
    return found;
}

/* Checksums lie on disks: a value that changes would make every cache and index look damaged. */
static void values_never_change(void) {
    uint8_t bytes[1000];
    for (size_t i = 0; i < sizeof bytes; i++) {
        bytes[i] = (uint8_t)(i * 7 + 3);
    }
    CHECK(stk_checksum(NULL, 0) == 0xF05EEC574894EA97ull);
    CHECK(stk_checksum("a", 1) == 0x7392976641579140ull);
    CHECK(stk_checksum(bytes, 64) == 0x66B86E5441346D32ull);
    CHECK(stk_checksum(bytes, 1000) == 0x8033244922637B28ull);
    CHECK(stk_checksum_seeded(bytes, 1000, 1) == 0xDF60F8566152CFD0ull);
    CHECK(stk_checksum_seeded(bytes, 1000, 0) == stk_checksum(bytes, 1000));
}

/* For every size, the original and all its neighbours at one bit have different checksums. */
static void single_bits_show(void) {
    static uint64_t sums[MOST * 8 + 1];
    uint8_t bytes[MOST];
    double changed = 0; /* bits of the checksum */
    double flips = 0;
    for (size_t size = 0; size <= MOST; size++) {
        fill(bytes, size, size);
        uint64_t original = stk_checksum(bytes, size);
        sums[0] = original;
        for (size_t bit = 0; bit < size * 8; bit++) {
            bytes[bit / 8] ^= (uint8_t)(1u << bit % 8);
            sums[bit + 1] = stk_checksum(bytes, size);
            bytes[bit / 8] ^= (uint8_t)(1u << bit % 8);
            changed += __builtin_popcountll(sums[bit + 1] ^ original);
            flips++;
        }
        REQUIRE(repeated(sums, size * 8 + 1) == 0);
        CHECK(stk_checksum(bytes, size) == original);
    }
    CHECK_NEAR(changed / flips, 32.0, 0.1);
}

/* Pictures have long runs of equal bytes: the same with zeros, and with two bits at a time. */
static void pairs_of_bits_show_in_zeros(void) {
    const size_t bits = 160 * 8; /* two stripes and a half */
    uint8_t bytes[160] = {0};
    uint64_t *sums = stk_mem_new(bits * bits / 2 + 1, sizeof *sums);
    size_t count = 0;
    REQUIRE(sums != NULL);
    sums[count++] = stk_checksum(bytes, sizeof bytes);
    for (size_t a = 0; a < bits; a++) {
        bytes[a / 8] ^= (uint8_t)(1u << a % 8);
        for (size_t b = a + 1; b < bits; b++) {
            bytes[b / 8] ^= (uint8_t)(1u << b % 8);
            sums[count++] = stk_checksum(bytes, sizeof bytes);
            bytes[b / 8] ^= (uint8_t)(1u << b % 8);
        }
        bytes[a / 8] ^= (uint8_t)(1u << a % 8);
    }
    CHECK_INT(repeated(sums, count), 0);
    stk_mem_free(sums);
}

static void lengths_show(void) {
    static uint8_t zeros[4097];
    static uint64_t sums[4098];
    for (size_t size = 0; size <= 4097; size++) {
        sums[size] = stk_checksum(zeros, size);
    }
    CHECK_INT(repeated(sums, 4098), 0);
}

static void alignment_does_not_matter(void) {
    uint8_t bytes[MOST];
    uint8_t moved[MOST + 16];
    fill(bytes, sizeof bytes, 1);
    for (size_t size = 0; size <= MOST; size++) {
        uint64_t sum = stk_checksum(bytes, size);
        for (size_t shift = 0; shift < 16; shift++) {
            memset(moved, 0xA5, sizeof moved);
            if (size > 0) {
                memcpy(moved + shift, bytes, size);
            }
            REQUIRE(stk_checksum(moved + shift, size) == sum);
        }
    }
}

/* Blocks that a disk or a program puts into each other's place. */
static void order_shows(void) {
    uint8_t bytes[256];
    static const size_t units[] = {1, 8, 16, 64, 128};
    fill(bytes, sizeof bytes, 2);
    uint64_t original = stk_checksum(bytes, sizeof bytes);
    for (size_t u = 0; u < sizeof units / sizeof *units; u++) {
        for (size_t at = 0; at + 2 * units[u] <= sizeof bytes; at += units[u]) {
            uint8_t swapped[256];
            memcpy(swapped, bytes, sizeof bytes);
            memcpy(swapped + at, bytes + at + units[u], units[u]);
            memcpy(swapped + at + units[u], bytes + at, units[u]);
            CHECK(memcmp(swapped, bytes, sizeof bytes) == 0 ||
                  stk_checksum(swapped, sizeof swapped) != original);
        }
    }
}

static void seeds_have_nothing_in_common(void) {
    static uint64_t sums[2000];
    uint8_t bytes[MOST];
    double changed = 0;
    fill(bytes, sizeof bytes, 3);
    for (uint64_t seed = 0; seed < 2000; seed++) {
        sums[seed] = stk_checksum_seeded(bytes, sizeof bytes, seed);
        changed += __builtin_popcountll(sums[seed] ^ sums[0]);
    }
    CHECK_NEAR(changed / 1999, 32.0, 0.5);
    CHECK_INT(repeated(sums, 2000), 0);
}

/* The vectors of RFC 3720, B.4, and the one that every list of CRCs has. */
static void crc32c_is_castagnolis(void) {
    uint8_t bytes[32] = {0};
    CHECK(stk_crc32c(NULL, 0) == 0);
    CHECK(stk_crc32c("123456789", 9) == 0xE3069283u);
    CHECK(stk_crc32c(bytes, sizeof bytes) == 0x8A9136AAu);
    memset(bytes, 0xFF, sizeof bytes);
    CHECK(stk_crc32c(bytes, sizeof bytes) == 0x62A8AB43u);
    for (size_t i = 0; i < sizeof bytes; i++) {
        bytes[i] = (uint8_t)i;
    }
    CHECK(stk_crc32c(bytes, sizeof bytes) == 0x46DD794Eu);
}

static void write_bytes(const char *path, const uint8_t *bytes, size_t size) {
    stk_error err = {0};
    REQUIRE_OK(stk_file_write(path, bytes, size, &err), &err);
}

static void files_have_one_too(void) {
    enum { PIECE = 1 << 20, SIZE = PIECE + 5 };
    static uint8_t bytes[SIZE];
    char path[300];
    uint64_t sum = 1;
    stk_error err = {0};
    snprintf(path, sizeof path, "%s/file", check_folder());
    fill(bytes, SIZE, 1);
    write_bytes(path, bytes, 0);
    REQUIRE_OK(stk_checksum_file(path, &sum, &err), &err);
    CHECK(sum == 0);
    write_bytes(path, bytes, PIECE);
    REQUIRE_OK(stk_checksum_file(path, &sum, &err), &err);
    CHECK(sum == stk_checksum(bytes, PIECE));
    write_bytes(path, bytes, SIZE);
    REQUIRE_OK(stk_checksum_file(path, &sum, &err), &err);
    CHECK(sum == stk_checksum_seeded(bytes + PIECE, 5, stk_checksum(bytes, PIECE)));
    CHECK_INT(stk_checksum_file("/nonexistent/file", &sum, &err), STK_ERR_STORAGE);
}

static const check_test tests[] = {
    TEST(files_have_one_too),    TEST(values_never_change),
    TEST(single_bits_show),      TEST(pairs_of_bits_show_in_zeros),
    TEST(lengths_show),          TEST(alignment_does_not_matter),
    TEST(order_shows),           TEST(seeds_have_nothing_in_common),
    TEST(crc32c_is_castagnolis),
};

CHECK_MAIN(tests)
