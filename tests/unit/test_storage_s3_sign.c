/*
 * test_storage_s3_sign.c - signatures against Amazon's published examples for S3 and, for odd keys
 * and queries, against those that botocore 1.44 computes.
 */
#include "check.h"

#include <stdint.h>

#include "base/mem.h"
#include "storage/s3/sign.h"

/* 2013-05-24T00:00:00Z, the time of Amazon's examples, and 2026-11-15T12:34:56Z. */
#define EXAMPLE_TIME 1369353600
#define OTHER_TIME 1794746096
#define LAST_TIME 253402300799 /* 9999-12-31T23:59:59Z */

#define COUNT(array) (sizeof(array) / sizeof *(array))

static char example_id[] = "AKIAIOSFODNN7EXAMPLE";
static char example_secret[] = "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY";
static char other_id[] = "AKIDEXAMPLE";
static char other_secret[] = "wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY";
static char token[] = "FQoGZXIvYXdzEXAMPLE//token+==";

static const stk_s3_credentials example = {.key_id = example_id, .secret = example_secret};
static const stk_s3_credentials other = {.key_id = other_id, .secret = other_secret};
static const stk_s3_credentials temporary = {
    .key_id = other_id, .secret = other_secret, .token = token};
static const stk_s3_credentials nobody = {0};

/* The value of a header among those to send, or NULL. */
static const char *header(const stk_s3_signed *sent, const char *name) {
    size_t length = strlen(name);
    for (size_t i = 0; i < sent->header_count; i++) {
        if (strncmp(sent->headers[i], name, length) == 0 && sent->headers[i][length] == ':') {
            return sent->headers[i] + length + 2;
        }
    }
    return NULL;
}

/* Signs a request and compares what names it and its signature. */
static void check_signature(const stk_s3_unsigned *request, const stk_s3_credentials *credentials,
                            const char *region, int64_t now_s, const char *authorization) {
    stk_s3_signed sent = {0};
    stk_error err = {0};
    REQUIRE_OK(stk_s3_sign(request, credentials, region, now_s, &sent, &err), &err);
    CHECK_STR(header(&sent, "Authorization"), authorization);
    CHECK_STR(header(&sent, "x-amz-content-sha256"),
              "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
    CHECK(header(&sent, "host") == NULL);
    stk_s3_signed_free(&sent);
    CHECK(sent.query == NULL && sent.header_count == 0);
}

#define EXAMPLE_SCOPE \
    "AWS4-HMAC-SHA256 Credential=AKIAIOSFODNN7EXAMPLE/20130524/us-east-1/s3/aws4_request, "
#define OTHER_SCOPE \
    "AWS4-HMAC-SHA256 Credential=AKIDEXAMPLE/20261115/eu-central-1/s3/aws4_request, "

static void amazon_get_object(void) {
    const stk_s3_pair headers[] = {{"Range", "bytes=0-9"}};
    const stk_s3_unsigned request = {.method = "GET",
                                     .host = "examplebucket.s3.amazonaws.com",
                                     .path = "/test.txt",
                                     .headers = headers,
                                     .header_count = COUNT(headers)};
    check_signature(&request, &example, "us-east-1", EXAMPLE_TIME,
                    EXAMPLE_SCOPE
                    "SignedHeaders=host;range;x-amz-content-sha256;x-amz-date, Signature="
                    "f0e8bdb87c964420e857bd35b5d6ed310bd44f0170aba48dd91039c6036bdb41");
}

static void amazon_get_bucket_lifecycle(void) {
    const stk_s3_pair query[] = {{"lifecycle", ""}};
    const stk_s3_unsigned request = {.method = "GET",
                                     .host = "examplebucket.s3.amazonaws.com",
                                     .path = "/",
                                     .query = query,
                                     .query_count = COUNT(query)};
    check_signature(&request, &example, "us-east-1", EXAMPLE_TIME,
                    EXAMPLE_SCOPE
                    "SignedHeaders=host;x-amz-content-sha256;x-amz-date, Signature="
                    "fea454ca298b7da1c68078a5d1bdbfbbe0d65c699e0f91ac7a200a0136783543");
}

static void amazon_list_objects(void) {
    const stk_s3_pair query[] = {{"prefix", "J"}, {"max-keys", "2"}};
    const stk_s3_unsigned request = {.method = "GET",
                                     .host = "examplebucket.s3.amazonaws.com",
                                     .path = "/",
                                     .query = query,
                                     .query_count = COUNT(query)};
    check_signature(&request, &example, "us-east-1", EXAMPLE_TIME,
                    EXAMPLE_SCOPE
                    "SignedHeaders=host;x-amz-content-sha256;x-amz-date, Signature="
                    "34b48302e7b5fa45bde8084f4b7868a86f0a534bc59db6670ed5711ef69dc6f7");
}

static void an_odd_key(void) {
    char *path = stk_s3_encode_path("/bucket/a b+c%d=e&f//g/\xc3\xbc~*().jpg");
    REQUIRE(path != NULL);
    const stk_s3_unsigned request = {.method = "GET", .host = "127.0.0.1:9000", .path = path};
    check_signature(&request, &other, "eu-central-1", OTHER_TIME,
                    OTHER_SCOPE "SignedHeaders=host;x-amz-content-sha256;x-amz-date, Signature="
                                "cdc27af30c980cf9132b268639c2d7dd85bba775b3762cc2006641ba235db89d");
    stk_mem_free(path);
}

/* Dots in a key are part of it, a token is signed, and blanks in a header's value are one. */
static void dots_a_token_and_blanks(void) {
    const stk_s3_pair headers[] = {{"If-Match", "  \"abc \t def\"   "}};
    const stk_s3_unsigned request = {.method = "HEAD",
                                     .host = "bucket.s3.eu-central-1.amazonaws.com",
                                     .path = "/x/../y/./z",
                                     .headers = headers,
                                     .header_count = COUNT(headers)};
    check_signature(&request, &temporary, "eu-central-1", OTHER_TIME,
                    OTHER_SCOPE "SignedHeaders=host;if-match;x-amz-content-sha256;x-amz-date;"
                                "x-amz-security-token, Signature="
                                "9dd6ac2d235c6e24b2209d812f394b834d514f6b9c6f9ba767379ed9c2ca94a5");
    stk_s3_signed sent = {0};
    stk_error err = {0};
    REQUIRE_OK(stk_s3_sign(&request, &temporary, "eu-central-1", OTHER_TIME, &sent, &err), &err);
    CHECK_INT(sent.header_count, 5);
    CHECK_STR(header(&sent, "x-amz-security-token"), token);
    CHECK_STR(header(&sent, "x-amz-date"), "20261115T123456Z");
    CHECK_STR(header(&sent, "If-Match"), "  \"abc \t def\"   ");
    stk_s3_signed_free(&sent);
}

static void a_long_query(void) {
    const stk_s3_pair query[] = {
        {"prefix", "a b/\xc3\xbc+%=&"},
        {"list-type", "2"},
        {"continuation-token", "1ueGcxLPRx1Tr/XYExHnhbYLgveDs2J/wm36Hy4vbOwM="},
        {"encoding-type", "url"},
        {"start-after", ""},
        {"a-b", "1"},
        {"a", "2"},
        {"a", "1"}};
    const stk_s3_unsigned request = {.method = "GET",
                                     .host = "127.0.0.1:9000",
                                     .path = "/bucket",
                                     .query = query,
                                     .query_count = COUNT(query)};
    check_signature(&request, &other, "eu-central-1", OTHER_TIME,
                    OTHER_SCOPE "SignedHeaders=host;x-amz-content-sha256;x-amz-date, Signature="
                                "1bb73a5c7a004b660c3fd272510eb95f4bd249b6e7b002404e7c57315fe492d1");
    stk_s3_signed sent = {0};
    stk_error err = {0};
    REQUIRE_OK(stk_s3_sign(&request, &other, "eu-central-1", OTHER_TIME, &sent, &err), &err);
    CHECK_STR(sent.query,
              "a=1&a=2&a-b=1&continuation-token=1ueGcxLPRx1Tr%2FXYExHnhbYLgveDs2J%2Fwm36Hy4vbOwM%3D"
              "&encoding-type=url&list-type=2&prefix=a%20b%2F%C3%BC%2B%25%3D%26&start-after=");
    stk_s3_signed_free(&sent);
}

static void paths_are_encoded_byte_by_byte(void) {
    static const struct {
        const char *path;
        const char *encoded;
    } known[] = {
        {"", ""},
        {"/", "/"},
        {"AZaz09-._~/", "AZaz09-._~/"},
        {"a b", "a%20b"},
        {"a+b", "a%2Bb"},
        {"100%", "100%25"},
        {"100%25", "100%2525"},
        {"a=1&b=2", "a%3D1%26b%3D2"},
        {"a//b///", "a//b///"},
        {"a/../b/./c", "a/../b/./c"},
        {"\xe2\x98\x83/\xff\x80", "%E2%98%83/%FF%80"},
        {"\x01\t\n\x7f", "%01%09%0A%7F"},
        {"!*'();:@,?#[]\\\"<>^`{|}$",
         "%21%2A%27%28%29%3B%3A%40%2C%3F%23%5B%5D%5C%22%3C%3E%5E%60%7B%7C%7D%24"},
    };
    for (size_t i = 0; i < COUNT(known); i++) {
        char *encoded = stk_s3_encode_path(known[i].path);
        CHECK_STR(encoded, known[i].encoded);
        stk_mem_free(encoded);
    }
}

static void nobody_signs_nothing(void) {
    const stk_s3_pair query[] = {{"list-type", "2"}, {"delimiter", "/"}};
    const stk_s3_pair headers[] = {{"If-Match", "\"x\""}, {"X-Empty", ""}};
    const stk_s3_unsigned request = {.method = "GET",
                                     .host = "h",
                                     .path = "/",
                                     .query = query,
                                     .query_count = COUNT(query),
                                     .headers = headers,
                                     .header_count = COUNT(headers)};
    stk_s3_signed sent = {0};
    stk_error err = {0};
    REQUIRE_OK(stk_s3_sign(&request, &nobody, "us-east-1", OTHER_TIME, &sent, &err), &err);
    CHECK_STR(sent.query, "delimiter=%2F&list-type=2");
    CHECK_INT(sent.header_count, 2);
    CHECK_STR(sent.headers[0], "If-Match: \"x\"");
    CHECK_STR(sent.headers[1], "X-Empty;");
    stk_s3_signed_free(&sent);
}

/* A secret that is wrong by one letter, another time, host, region or method: another signature. */
static void everything_counts(void) {
    static char near_secret[] = "wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEy";
    const stk_s3_credentials near = {.key_id = other_id, .secret = near_secret};
    const stk_s3_unsigned base = {.method = "GET", .host = "h", .path = "/a"};
    const stk_s3_unsigned requests[] = {base,
                                        {.method = "HEAD", .host = "h", .path = "/a"},
                                        {.method = "GET", .host = "h:1", .path = "/a"},
                                        {.method = "GET", .host = "h", .path = "/A"}};
    char seen[8][65];
    size_t count = 0;
    for (size_t i = 0; i < 7; i++) {
        stk_s3_signed sent = {0};
        stk_error err = {0};
        REQUIRE_OK(stk_s3_sign(i < COUNT(requests) ? &requests[i] : &base, i == 4 ? &near : &other,
                               i == 5 ? "eu-west-1" : "us-east-1", OTHER_TIME + (i == 6), &sent,
                               &err),
                   &err);
        const char *signature = strstr(header(&sent, "Authorization"), "Signature=");
        REQUIRE(signature != NULL && strlen(signature) == 10 + 64);
        for (size_t j = 0; j < count; j++) {
            CHECK(strcmp(seen[j], signature + 10) != 0);
        }
        snprintf(seen[count++], sizeof seen[0], "%s", signature + 10);
        stk_s3_signed_free(&sent);
    }
}

static void lines_cannot_be_smuggled_in(void) {
    static char broken_id[] = "ID\r\nX-Evil: 1";
    static char broken_token[] = "secret-token\n";
    const stk_s3_credentials bad[] = {
        {.key_id = broken_id, .secret = other_secret},
        {.key_id = other_id, .secret = other_secret, .token = broken_token}};
    const stk_s3_pair headers[] = {{"If-Match", "x\nX-Evil: 1"}};
    const stk_s3_pair named[] = {{"If-Match: y\r\nX-Evil", "1"}};
    const stk_s3_unsigned plain = {.method = "GET", .host = "h", .path = "/"};
    const stk_s3_unsigned values = {
        .method = "GET", .host = "h", .path = "/", .headers = headers, .header_count = 1};
    const stk_s3_unsigned names = {
        .method = "GET", .host = "h", .path = "/", .headers = named, .header_count = 1};
    const stk_s3_unsigned *requests[] = {&plain, &plain, &values, &names};
    for (size_t i = 0; i < COUNT(requests); i++) {
        stk_s3_signed sent = {0};
        stk_error err = {0};
        CHECK_INT(stk_s3_sign(requests[i], i < 2 ? &bad[i] : &other, "us-east-1", OTHER_TIME, &sent,
                              &err),
                  STK_ERR_USAGE);
        CHECK_CONTAINS(err.message, "line break");
        CHECK(strstr(err.message, "secret-token") == NULL && strstr(err.message, "Evil") == NULL);
        CHECK(sent.query == NULL && sent.header_count == 0);
    }
}

static void limits(void) {
    stk_s3_pair headers[STK_S3_HEADERS_MAX];
    char names[STK_S3_HEADERS_MAX][8];
    for (size_t i = 0; i < STK_S3_HEADERS_MAX; i++) {
        snprintf(names[i], sizeof names[i], "x-%zu", i);
        headers[i] = (stk_s3_pair){names[i], "v"};
    }
    stk_s3_unsigned request = {
        .method = "GET", .host = "h", .path = "/", .headers = headers, .header_count = 12};
    stk_s3_signed sent = {0};
    stk_error err = {0};
    REQUIRE_OK(stk_s3_sign(&request, &temporary, "us-east-1", OTHER_TIME, &sent, &err), &err);
    CHECK_INT(sent.header_count, STK_S3_HEADERS_MAX);
    stk_s3_signed_free(&sent);
    request.header_count = 13;
    CHECK_INT(stk_s3_sign(&request, &temporary, "us-east-1", OTHER_TIME, &sent, &err),
              STK_ERR_USAGE);
    request.header_count = 0;
    const int64_t wrong[] = {-1, INT64_MIN, INT64_MAX, LAST_TIME + 1};
    for (size_t i = 0; i < COUNT(wrong); i++) {
        stk_error again = {0};
        CHECK_INT(stk_s3_sign(&request, &other, "us-east-1", wrong[i], &sent, &again),
                  STK_ERR_USAGE);
        CHECK_CONTAINS(again.message, "the clock");
    }
    stk_error fine = {0};
    REQUIRE_OK(stk_s3_sign(&request, &other, "us-east-1", LAST_TIME, &sent, &fine), &fine);
    CHECK_STR(header(&sent, "x-amz-date"), "99991231T235959Z");
    stk_s3_signed_free(&sent);
}

static void lack_of_memory(void) {
    const stk_s3_pair query[] = {{"list-type", "2"}, {"prefix", "a/b"}};
    const stk_s3_unsigned request = {
        .method = "GET", .host = "h", .path = "/", .query = query, .query_count = COUNT(query)};
    stk_s3_signed sent = {0};
    stk_status status = STK_ERR_MEMORY;
    int64_t failures = 0;
    for (; status != STK_OK && failures < 1000; failures++) {
        stk_error err = {0};
        stk_mem_fail_after(failures);
        status = stk_s3_sign(&request, &temporary, "us-east-1", OTHER_TIME, &sent, &err);
        stk_mem_fail_after(-1);
        CHECK(status == STK_OK || status == STK_ERR_MEMORY);
        CHECK(status == STK_OK || (sent.query == NULL && sent.header_count == 0));
    }
    CHECK_INT(status, STK_OK);
    CHECK(failures > 10);
    stk_s3_signed_free(&sent);
}

static const check_test tests[] = {
    TEST(amazon_get_object),
    TEST(amazon_get_bucket_lifecycle),
    TEST(amazon_list_objects),
    TEST(an_odd_key),
    TEST(dots_a_token_and_blanks),
    TEST(a_long_query),
    TEST(paths_are_encoded_byte_by_byte),
    TEST(nobody_signs_nothing),
    TEST(everything_counts),
    TEST(lines_cannot_be_smuggled_in),
    TEST(limits),
    TEST(lack_of_memory),
};
CHECK_MAIN(tests)
