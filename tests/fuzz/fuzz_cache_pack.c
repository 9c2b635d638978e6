/*
 * fuzz_cache_pack.c - a pack of the cache on disk: whatever its two files hold, entries that can be
 * read lie within the data. The input is the index behind its head, with right checksums and, in a
 * second try, as it is.
 */
#include "fuzz_folder.h"

#include "base/numbers/checksum.h"
#include "storage/cache/pack.h"

#define DATA_BYTES 256 /* behind the head */
#define PACK_ID 7
#define CHECK_AT 56

/* Two entries: the first 16 bytes, and the rest. */
static const fuzz_seed seeds[] = {
    FUZZ_SEED(
        "highkey1lowkey_1\x40\0\0\0\0\0\0\0\x10\0\0\0\0\0\0\0checksum\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0"
        "\0checksum"
        "highkey2lowkey_2\x50\0\0\0\0\0\0\0\xF0\0\0\0\x01\0\0\0checksum\0\0\0\0\0\0\0\0\0\0\0\0\0\0"
        "\0\0checksum"),
    FUZZ_SEED("highkey1lowkey_1\xFF\xFF\xFF\xFF\xFF\xFF\xFF\xFF\xFF\xFF\xFF\xFF\xFF\xFF\xFF\xFF"
              "checksum"),
};
FUZZ_PLAN_FILES(seeds)

static void put_number(uint8_t *bytes, int count, uint64_t value) {
    for (int i = 0; i < count; i++) {
        bytes[i] = (uint8_t)(value >> 8 * i);
    }
}

static void put_head(uint8_t *bytes, char kind) {
    memset(bytes, 0, STK_PACK_HEAD_BYTES);
    memcpy(bytes, "STKPACK", 7);
    bytes[7] = (uint8_t)kind;
    put_number(bytes + 8, 4, 1);
    put_number(bytes + 12, 4, STK_PACK_HEAD_BYTES);
    put_number(bytes + 16, 8, PACK_ID);
    put_number(bytes + CHECK_AT, 8, stk_checksum(bytes, CHECK_AT));
}

static void check_entries(stk_pack *pack, int folder) {
    static stk_cache_entry entries[STK_PACK_BATCH];
    int index = stk_pack_open_index(pack, folder);
    FUZZ_REQUIRE(index >= 0);
    size_t count = 0;
    bool more = true;
    for (int batches = 0; more; batches++) {
        FUZZ_REQUIRE(batches < 1000);
        more = stk_pack_read_entries(pack, index, entries, &count);
        FUZZ_REQUIRE(count <= STK_PACK_BATCH);
        for (size_t i = 0; i < count; i++) {
            FUZZ_REQUIRE(entries[i].gone ||
                         (entries[i].at >= STK_PACK_HEAD_BYTES &&
                          entries[i].at <= STK_PACK_HEAD_BYTES + DATA_BYTES &&
                          entries[i].length <= STK_PACK_HEAD_BYTES + DATA_BYTES - entries[i].at));
        }
    }
    close(index);
}

static void try_index(uint8_t *index, size_t size) {
    uint8_t data[STK_PACK_HEAD_BYTES + DATA_BYTES] = {0};
    stk_pack pack;
    put_head(data, 'D');
    put_head(index, 'I');
    fuzz_put("pack-0000.data", (fuzz_seed){(const char *)data, sizeof data});
    fuzz_put("pack-0000.index", (fuzz_seed){(const char *)index, STK_PACK_HEAD_BYTES + size});
    int folder = open(fuzz_folder(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    FUZZ_REQUIRE(folder >= 0);
    stk_pack_clear(&pack, 0);
    FUZZ_REQUIRE(stk_pack_open(&pack, folder));
    check_entries(&pack, folder);
    stk_pack_close(&pack);
    close(folder);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    uint8_t *index = malloc(STK_PACK_HEAD_BYTES + size);
    FUZZ_REQUIRE(index != NULL);
    if (size > 0) {
        memcpy(index + STK_PACK_HEAD_BYTES, data, size);
    }
    try_index(index, size);
    for (size_t at = STK_PACK_HEAD_BYTES; at + STK_PACK_ENTRY_BYTES <= STK_PACK_HEAD_BYTES + size;
         at += STK_PACK_ENTRY_BYTES) {
        put_number(index + at + CHECK_AT, 8, stk_checksum_seeded(index + at, CHECK_AT, PACK_ID));
    }
    try_index(index, size);
    free(index);
    return 0;
}
