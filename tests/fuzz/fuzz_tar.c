/*
 * fuzz_tar.c - what the reader of tars tells lies inside the tar, has a path that leads nowhere
 * else, and is the same however the tar is cut into pieces.
 */
#include "fuzz.h"

#include <stdbool.h>
#include <string.h>

#include "base/error.h"
#include "base/str.h"
#include "storage/tar/tar_read.h"

#define SEEDS 4
#define SEED_BLOCKS 12

static char seed_bytes[SEEDS][SEED_BLOCKS * STK_TAR_BLOCK];
static fuzz_seed seeds[SEEDS];

/* Sets the checksum of a header, so that an edit of it gets past the first check. */
static void set_sum(uint8_t *header) {
    unsigned sum = 0;
    memset(header + 148, ' ', 8);
    for (int i = 0; i < STK_TAR_BLOCK; i++) {
        sum += header[i];
    }
    for (int i = 5; i >= 0; i--) {
        header[148 + i] = (uint8_t)('0' + (sum & 7));
        sum >>= 3;
    }
    header[154] = '\0';
}

/* Appends a header and its bytes to a seed. */
static void add(size_t seed, const char *name, char kind, const char *size, const char *magic,
                const char *body) {
    uint8_t *header = (uint8_t *)seed_bytes[seed] + seeds[seed].size;
    memcpy(header, name, strlen(name));
    memcpy(header + 124, size, strlen(size));
    header[156] = (uint8_t)kind;
    memcpy(header + 257, magic, strlen(magic));
    set_sum(header);
    memcpy(header + STK_TAR_BLOCK, body, strlen(body));
    seeds[seed].size +=
        STK_TAR_BLOCK + (strlen(body) + STK_TAR_BLOCK - 1) / STK_TAR_BLOCK * STK_TAR_BLOCK;
}

fuzz_plan fuzz_prepare(void) {
    for (size_t i = 0; i < SEEDS; i++) {
        seeds[i] = (fuzz_seed){.bytes = seed_bytes[i]};
    }
    add(0, "a/", '5', "0", "ustar", "");
    add(0, "./a/1.jpg", '0', "00000000005", "ustar", "12345");
    add(0, "a/1.cls", '0', "00000000001", "ustar", "7");
    seeds[0].size += 2 * STK_TAR_BLOCK;
    add(1, "././@LongLink", 'L', "00000000014", "ustar  ", "a/long.name");
    add(1, "a/long", '\0', "00000000003", "ustar  ", "123");
    add(1, "././@LongLink", 'K', "00000000003", "ustar  ", "a/b");
    add(1, "link", '2', "0", "ustar  ", "");
    add(2, "global", 'g', "00000000015", "ustar", "13 comment=x\n");
    add(2, "pax", 'x', "00000000033", "ustar", "17 path=a/\xc3\xa9.cls\n10 size=02\n");
    add(2, "short", '0', "00000000000", "ustar", "42");
    add(3, "old", '\0', "        3 ", "", "abc");
    add(3, "big", '0', "\x80", "ustar", "");
    add(3, "hole", 'S', "00000000001", "ustar  ", "x");
    return (fuzz_plan){
        .seeds = seeds, .count = SEEDS, .prefixed = SEEDS, .mutations = 15000, .large = 10};
}

static bool is_text(const char *path) {
    return stk_str_ends_with_nocase(path, ".cls");
}

static void check_member(const stk_tar_member *member) {
    const char *path = member->path;
    FUZZ_REQUIRE(path[0] != '\0' && path[0] != '/' && strstr(path, "//") == NULL);
    for (const char *part = path; *part != '\0'; part += strspn(part, "/")) {
        size_t length = strcspn(part, "/");
        FUZZ_REQUIRE(length > 0 && !(length == 1 && part[0] == '.') &&
                     !(length == 2 && memcmp(part, "..", 2) == 0));
        part += length;
        FUZZ_REQUIRE(part[0] != '/' || part[1] != '\0');
    }
    FUZZ_REQUIRE(member->offset % STK_TAR_BLOCK == 0 && member->offset > 0);
    FUZZ_REQUIRE((member->text != NULL) == (is_text(path) && member->size <= STK_TAR_TEXT_BYTES));
}

/* Reads the tar in pieces and writes down what is told. */
static stk_status read_tar(const uint8_t *data, size_t size, size_t piece, bool hop, stk_str *out) {
    stk_tar_reader *reader = NULL;
    stk_error err = {0};
    stk_status status = stk_tar_reader_open(&reader, "x.tar", is_text, &err);
    uint64_t end = 0;
    for (size_t offset = 0; status == STK_OK && offset < size;) {
        size_t length = size - offset < piece ? size - offset : piece;
        stk_tar_found found = STK_TAR_MEMBER;
        while (status == STK_OK && found == STK_TAR_MEMBER) {
            stk_tar_member member;
            status =
                stk_tar_reader_next(reader, offset, data + offset, length, &found, &member, &err);
            if (status == STK_OK && found == STK_TAR_MEMBER) {
                check_member(&member);
                stk_str_appendf(out, "%s %llu %llu\n", member.path,
                                (unsigned long long)member.offset, (unsigned long long)member.size);
                stk_str_append_bytes(out, member.text, member.text != NULL ? member.size : 0);
                FUZZ_REQUIRE(member.offset >= end);
                end = member.offset + member.size;
            }
        }
        uint64_t at = stk_tar_reader_at(reader);
        FUZZ_REQUIRE(status != STK_OK || at >= offset + length);
        offset = !hop ? offset + length : at < size ? (size_t)at : size;
    }
    status = status == STK_OK ? stk_tar_reader_finish(reader, size, &err) : status;
    FUZZ_REQUIRE(status == STK_OK || (status == STK_ERR_DATA && strstr(err.message, "x.tar")));
    FUZZ_REQUIRE(status != STK_OK || end <= size);
    stk_tar_reader_close(reader);
    FUZZ_REQUIRE(stk_str_ok(out));
    return status;
}

static void try_tar(const uint8_t *data, size_t size) {
    static const size_t pieces[] = {3, 512, 1000};
    stk_str whole = {0};
    stk_status status = read_tar(data, size, size, false, &whole);
    for (size_t i = 0; i < 2 * sizeof pieces / sizeof *pieces; i++) {
        stk_str part = {0};
        stk_status again = read_tar(data, size, pieces[i / 2], i % 2 == 1, &part);
        FUZZ_REQUIRE(again == status);
        FUZZ_REQUIRE(strcmp(stk_str_text(&part), stk_str_text(&whole)) == 0);
        stk_str_free(&part);
    }
    stk_str_free(&whole);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    try_tar(data, size);
    uint8_t *summed = malloc(size > 0 ? size : 1);
    FUZZ_REQUIRE(summed != NULL);
    if (size > 0) {
        memcpy(summed, data, size);
    }
    for (size_t i = 0; i + STK_TAR_BLOCK <= size; i += STK_TAR_BLOCK) {
        set_sum(summed + i);
    }
    try_tar(summed, size);
    free(summed);
    return 0;
}
