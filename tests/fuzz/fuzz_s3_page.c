/* fuzz_s3_page.c - whatever a store answers is a page, an error of S3's, or refused. */
#include "fuzz.h"

#include <string.h>

#ifdef STK_HAVE_S3

#include "base/error.h"
#include "storage/s3/xml.h"

static const fuzz_seed seeds[] = {
    FUZZ_SEED("<?xml version=\"1.0\"?><ListBucketResult><EncodingType>url</EncodingType>"
              "<IsTruncated>true</IsTruncated><NextContinuationToken>a/b=</NextContinuationToken>"
              "<Contents><Key>a%20b+c%zz</Key><ETag>&quot;x&quot;</ETag><Size>12</Size></Contents>"
              "<CommonPrefixes><Prefix>p/</Prefix></CommonPrefixes></ListBucketResult>"),
    FUZZ_SEED("<Error><Code>SlowDown</Code><Message>Reduce &lt;it&gt;</Message>"
              "<Region>eu-west-1</Region></Error>"),
    FUZZ_SEED("<!DOCTYPE a [<!ENTITY b \"cc\">]><ListBucketResult>&b;</ListBucketResult>"),
};
FUZZ_PLAN(seeds)

static bool take_object(void *user, const char *key, size_t length, uint64_t size,
                        const char *etag) {
    (void)user;
    (void)size;
    FUZZ_REQUIRE(key[length] == '\0' && strlen(etag) < 20000);
    return true;
}

static bool take_folder(void *user, const char *prefix, size_t length) {
    (void)user;
    FUZZ_REQUIRE(prefix[length] == '\0');
    return true;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    stk_s3_page page = {.object = take_object, .folder = take_folder};
    stk_s3_error_body complaint;
    stk_error err = {0};
    stk_status status = stk_s3_page_parse(data, size, &page, &err);
    FUZZ_REQUIRE(status == STK_OK || (status == STK_ERR_STORAGE && err.message[0] != '\0'));
    FUZZ_REQUIRE(status != STK_OK || !page.truncated || page.token.length > 0);
    stk_str_free(&page.token);
    stk_s3_error_body_parse(data, size, &complaint);
    for (const char *c = complaint.message; *c != '\0'; c++) {
        FUZZ_REQUIRE((unsigned char)*c >= 0x20 && *c != 0x7f);
    }
    return 0;
}

#else

static const fuzz_seed seeds[] = {FUZZ_SEED("built without S3")};
FUZZ_PLAN(seeds)

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    return data == NULL && size > 0;
}

#endif
