/*
 * fuzz_shard_index.c - what the reader of indexes accepts is whole: numbers that fit, texts that
 * end, all inside the file.
 *
 * A checksum stands at the end, at which all damage ends; so each input is tried once more with the
 * checksum put right.
 */
#include "fuzz.h"

#include <string.h>

#include "base/error.h"
#include "base/mem.h"
#include "base/numbers/checksum.h"
#include "storage/tar/shard_index.h"

#define HEAD "STOKERIX\1\0\0\0\0\0\0\0"
#define MEMBER_NUMBERS "\0\2\0\0\0\0\0\0\5\0\0\0\0\0\0\0\1\2\3\4\5\6\7\x8"

/* Without their checksums, which are added. */
static const fuzz_seed seeds[] = {
    FUZZ_SEED(HEAD "\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0"),
    FUZZ_SEED(HEAD "\3\0\0\0"
                   "1.2\0"
                   "\1\0\0\0"
                   "\0\x20\0\0\0\0\0\0"
                   "\5\0\0\0"
                   "a.tar\0"
                   "\2\0\0\0\0\0\0\0" MEMBER_NUMBERS "\0\0\0\0"
                   "\1\0\0\0"
                   "\5\0\0\0"
                   "1.jpg\0" MEMBER_NUMBERS "\0\0\0\0"
                   "\2\0\0\0"
                   "\5\0\0\0"
                   "1.cls\0"
                   "\1\0\0\0"
                   "7\0"),
};
FUZZ_PLAN(seeds)

static void check_index(const stk_shard_index *index, size_t size) {
    FUZZ_REQUIRE(index->origin != NULL && strlen(index->origin) < size);
    for (size_t i = 0; i < index->shard_count; i++) {
        FUZZ_REQUIRE(strlen(index->shards[i].name) < size);
    }
    for (size_t i = 0; i < index->member_count; i++) {
        const stk_index_member *m = &index->members[i];
        FUZZ_REQUIRE(m->shard < index->shard_count && m->path[0] != '\0');
        FUZZ_REQUIRE(strlen(m->path) < size && (m->text == NULL || strlen(m->text) < size));
        FUZZ_REQUIRE(m->size <= INT64_MAX && m->offset <= INT64_MAX - m->size);
    }
}

/* Has `size` bytes loaded from a block of their own. */
static void try_index(const void *data, size_t size) {
    stk_shard_index index;
    stk_bytes bytes = {.data = stk_mem_raw(size, 1), .size = size, .capacity = size};
    stk_error err = {0};
    FUZZ_REQUIRE(bytes.data != NULL);
    memcpy(bytes.data, data, size);
    if (stk_shard_index_load(&index, "input", &bytes, &err) == STK_OK) {
        check_index(&index, size);
        stk_shard_index_free(&index);
    } else {
        FUZZ_REQUIRE(err.status == STK_ERR_DATA && strstr(err.message, "input") != NULL);
    }
    FUZZ_REQUIRE(bytes.data == NULL && index.members == NULL && index.shards == NULL);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    uint8_t *summed = malloc(size + 8);
    FUZZ_REQUIRE(summed != NULL);
    if (size > 0) {
        try_index(data, size);
        memcpy(summed, data, size);
    }
    uint64_t sum = size > 0 ? stk_checksum_seeded(summed, size, 0) : 0; /* one piece */
    for (size_t i = 0; i < 8; i++) {
        summed[size + i] = (uint8_t)(sum >> (8 * i));
    }
    try_index(summed, size + 8);
    free(summed);
    return 0;
}
