/*
 * fuzz_bson.c - whatever bytes a BSON file holds: an error with a sentence, or pictures that lie in
 * the file and whose paths lead nowhere else.
 */
#include "fuzz.h"

#include <string.h>

#include "base/error.h"
#include "storage/tar/bson_scan.h"

static const fuzz_seed seeds[] = {
    FUZZ_SEED("A\x00\x00\x00\x10_id\x00*\x00\x00\x00\x10"
              "category_id\x00\x07\x00\x00\x00\x04imgs\x00\x1C\x00\x00\x00\x03"
              "0\x00\x14\x00\x00\x00\x05picture\x00\x01\x00\x00\x00\x00P\x00\x00\x00"),
    FUZZ_SEED(
        "\x0E\x00\x00\x00\x10_id\x00\x01\x00\x00\x00\x00\x18\x00\x00\x00\x02_id\x00\x02\x00\x00\x00"
        "a\x00\x05x\x00\x00\x00\x00\x00\x00\x00"),
    FUZZ_SEED("(\x00\x00\x00\x07_id\x00"
              "abcdefghijkl\x0Br\x00"
              "a\x00"
              "b\x00\x01"
              "d\x00\x00\x00\x00\x00\x00\x00\xF0?\x00"),
    FUZZ_SEED(
        "2\x00\x00\x00\x12_id\x00\x01\x00\x00\x00\x00\x00\x00\x80\x04l\x00\x0D\x00\x00\x00\x05"
        "0\x00\x00\x00\x00\x00\x00\x00\x03"
        "d\x00\x05\x00\x00\x00\x00\x0D"
        "c\x00\x01\x00\x00\x00\x00\x00"),
};
FUZZ_PLAN(seeds)

static void check_members(const stk_bson_scan *scan) {
    stk_shard_index index = {0};
    stk_error err = {0};
    if (stk_bson_index(scan, "input", "f", &index, &err) == STK_OK) {
        FUZZ_REQUIRE(index.member_count == scan->picture_count);
        for (size_t i = 0; i < index.member_count; i++) {
            const char *path = index.members[i].path;
            FUZZ_REQUIRE(strncmp(path, "f/", 2) == 0 && strstr(path, "/.") == NULL);
            FUZZ_REQUIRE(strchr(path + 2, '/') == strrchr(path, '/'));
        }
    } else {
        FUZZ_REQUIRE(err.status == STK_ERR_DATA && err.message[0] != '\0');
    }
    stk_shard_index_free(&index);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    stk_bytes block = {.data = (uint8_t *)(uintptr_t)data, .size = size};
    stk_range_source source = stk_range_of_block("input", &block);
    stk_bson_scan scan;
    stk_error err = {0};
    if (stk_bson_read(&source, NULL, &scan, &err) != STK_OK) {
        FUZZ_REQUIRE(err.status == STK_ERR_DATA && strstr(err.message, "input") != NULL);
        FUZZ_REQUIRE(scan.csv.buffer == NULL && scan.pictures == NULL);
        return 0;
    }
    FUZZ_REQUIRE(scan.is_whole && scan.bytes == size && scan.csv.rows > 0);
    for (size_t i = 0; i < scan.picture_count; i++) {
        const stk_bson_picture *picture = &scan.pictures[i];
        FUZZ_REQUIRE(picture->row < scan.csv.rows && picture->bytes < size);
        FUZZ_REQUIRE(picture->offset < size - picture->bytes);
        FUZZ_REQUIRE(i == 0 || picture->offset >= scan.pictures[i - 1].offset);
    }
    check_members(&scan);
    stk_bson_scan_free(&scan);
    return 0;
}
