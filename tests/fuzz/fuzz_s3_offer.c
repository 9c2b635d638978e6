/*
 * fuzz_s3_offer.c - credentials that a service or a program offers as JSON: all of them or none,
 * and an error shows nothing of the text.
 */
#include "fuzz.h"

#include <string.h>

#include "base/str.h"
#include "storage/s3/credentials.h"

static const fuzz_seed seeds[] = {
    FUZZ_SEED("{\"AccessKeyId\": \"ASIAX\", \"SecretAccessKey\": \"s/e+c=\", \"Token\": \"t\", "
              "\"Expiration\": \"2026-11-15T12:34:56Z\"}"),
    FUZZ_SEED(
        "{\"Version\": 1, \"AccessKeyId\": \"A\", \"SecretAccessKey\": \"B\", \"SessionToken\": "
        "null, \"Expiration\": \"2026-11-15T12:34:56.789+01:00\"}"),
    FUZZ_SEED("{\"Code\": \"AssumeRoleUnauthorizedAccess\", \"Message\": \"no\"}"),
    FUZZ_SEED("2028-02-29T23:59:60-12:30"),
};
FUZZ_PLAN(seeds)

#ifdef STK_HAVE_S3
static void check_time(const uint8_t *data, size_t size) {
    char text[64];
    int64_t unix_s = 0;
    size_t length = size < sizeof text - 1 ? size : sizeof text - 1;
    if (length > 0) {
        memcpy(text, data, length);
    }
    text[length] = '\0';
    if (stk_s3_parse_time(text, &unix_s)) {
        FUZZ_REQUIRE(unix_s > -(int64_t)400000000000 && unix_s < (int64_t)400000000000);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    static const char *const token_names[] = {"Token", "SessionToken"};
    check_time(data, size);
    for (int i = 0; i < 2; i++) {
        stk_s3_credentials found = {0};
        stk_error err = {0};
        stk_status status = stk_s3_credentials_parse((const char *)data, size, token_names[i],
                                                     "a service", &found, &err);
        FUZZ_REQUIRE((found.key_id == NULL) == (found.secret == NULL));
        if (status == STK_OK) {
            FUZZ_REQUIRE(found.key_id != NULL && found.key_id[0] != '\0' &&
                         found.secret[0] != '\0');
            FUZZ_REQUIRE(strpbrk(found.key_id, "\r\n") == NULL);
            FUZZ_REQUIRE(found.token == NULL || strpbrk(found.token, "\r\n") == NULL);
        } else {
            FUZZ_REQUIRE(found.key_id == NULL && found.token == NULL && err.message[0] != '\0');
        }
        stk_s3_credentials_free(&found);
    }
    return 0;
}
#else
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    (void)data;
    (void)size;
    return 0;
}
#endif
