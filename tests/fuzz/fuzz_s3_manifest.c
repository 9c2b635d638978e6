/*
 * fuzz_s3_manifest.c - a manifest is read or refused, however damaged. The checksum would hide all
 * else, so that every input is also tried with the right one.
 */
#include "fuzz.h"

#include <string.h>

#ifdef STK_HAVE_S3

#include "base/mem.h"
#include "base/numbers/digest.h"
#include "base/str.h"
#include "storage/s3/manifest.h"

static const fuzz_seed seeds[] = {
    FUZZ_SEED("stoker-listing 1 1794650580 2 us-east-1 aws s3://b/p\n"
              "5 0123456789abcdef train/a%20b.jpg\n12 - train/c.jpg\n"),
    FUZZ_SEED("stoker-listing 1 0 0 - aws s3://b/p\n"),
    FUZZ_SEED("stoker-listing 1 1 1 r aws s3://b/p\n99999999999999999999 %2D %C3%BC%0A\n"),
};
FUZZ_PLAN(seeds)

static void try_it(const void *data, size_t size) {
    stk_tree tree = {0};
    stk_s3_manifest manifest = {.location = "s3://b/p", .endpoint = "aws"};
    char *copy = stk_mem_raw(size + 1, 1);
    FUZZ_REQUIRE(copy != NULL);
    memcpy(copy, data, size);
    if (stk_s3_manifest_parse(copy, size, &manifest, &tree)) {
        for (size_t i = 0; i < tree.count; i++) {
            FUZZ_REQUIRE(tree.objects[i].path[0] != '\0');
            FUZZ_REQUIRE(stk_tree_find(&tree, tree.objects[i].path) == &tree.objects[i]);
        }
    } else {
        FUZZ_REQUIRE(tree.count == 0 && tree.objects == NULL);
    }
    stk_tree_free(&tree);
    stk_mem_free(copy);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    uint8_t digest[STK_MD5_BYTES];
    char sum[STK_MD5_TEXT];
    stk_str text = {0};
    try_it(data, size);
    stk_md5_of(data, size, digest);
    stk_hex(digest, sizeof digest, sum);
    for (int count = 0; count < 3; count++) {
        stk_str_clear(&text);
        stk_str_append_bytes(&text, data, size);
        stk_str_appendf(&text, "end %d %s\n", count, sum);
        FUZZ_REQUIRE(stk_str_ok(&text));
        try_it(text.text, text.length);
    }
    stk_str_free(&text);
    return 0;
}

#else

static const fuzz_seed seeds[] = {FUZZ_SEED("built without S3")};
FUZZ_PLAN(seeds)

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    return data == NULL && size > 0;
}

#endif
