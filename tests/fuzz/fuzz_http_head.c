/*
 * fuzz_http_head.c - the head of an answer of S3, line by line, and what is made of it together
 * with the body behind the empty line: a verdict, and where it is not a good one a sentence without
 * secrets.
 */
#include "fuzz.h"

#include <string.h>

static const fuzz_seed seeds[] = {
    FUZZ_SEED("HTTP/1.1 206 Partial Content\r\nContent-Length: 100\r\nContent-Range: bytes "
              "100-199/1234\r\nETag: \"0123456789abcdef0123456789abcdef-3\"\r\n\r\nbody"),
    FUZZ_SEED("HTTP/2 200\r\nx-amz-bucket-region: eu-west-1\r\nDate: Sun, 15 Nov 2026 12:34:56 "
              "GMT\r\nx-amz-server-side-encryption: aws:kms\r\netag: W/\"x\"\r\n\r\n"),
    FUZZ_SEED(
        "HTTP/1.0 503 Slow Down\nRetry-After: 7\n\n<Error><Code>SlowDown</Code><Message>Please "
        "reduce your request rate.</Message></Error>"),
    FUZZ_SEED(
        "HTTP/1.1 301 Moved\r\nx-amz-bucket-region: us-west-2\r\n\r\n<?xml version=\"1.0\"?><Error>"
        "<Code>PermanentRedirect</Code><Region>us-west-2</Region><Endpoint>b.s3</Endpoint></"
        "Error>"),
    FUZZ_SEED(
        "HTTP/1.1 403 Forbidden\r\nRetry-After: Sun, 15 Nov 2026 12:34:56 GMT\r\n\r\n<Error><Code>"
        "RequestTimeTooSkewed</Code><ServerTime>2026-11-15T12:34:56Z</ServerTime></Error>"),
    FUZZ_SEED("HTTP/1.1 416 Range\r\nContent-Range: bytes */18446744073709551615\r\n\r\n"),
};
FUZZ_PLAN(seeds)

#ifdef STK_HAVE_S3

#include "base/mem.h"
#include "storage/http/response.h"
#include "storage/s3/classify.h"

#define SECRET "hunter2hunter2"

static bool is_terminated(const char *text, size_t room) {
    return memchr(text, '\0', room) != NULL;
}

/* Where the body begins. */
static size_t read_head(const uint8_t *data, size_t size, stk_http_response *head) {
    size_t at = 0;
    while (at < size) {
        const uint8_t *stop = memchr(data + at, '\n', size - at);
        size_t length = stop != NULL ? (size_t)(stop - data) + 1 - at : size - at;
        stk_http_response_line(head, (const char *)data + at, length);
        at += length;
        if (length == 1 || (length == 2 && data[at - 2] == '\r')) {
            break;
        }
    }
    return at;
}

static void check_head(const stk_http_response *head) {
    FUZZ_REQUIRE(is_terminated(head->date, sizeof head->date));
    FUZZ_REQUIRE(is_terminated(head->etag, sizeof head->etag));
    FUZZ_REQUIRE(is_terminated(head->region, sizeof head->region));
    FUZZ_REQUIRE(head->status >= 0 && head->status <= 999);
    FUZZ_REQUIRE(head->retry_after_s >= 0);
    FUZZ_REQUIRE(stk_http_response_date_s(head) >= 0);
    FUZZ_REQUIRE(strpbrk(head->region, "\r\n") == NULL && strpbrk(head->etag, "\r\n") == NULL);
}

/* Whether the server itself has said it: libFuzzer reads it off the comparisons. */
static bool says(const uint8_t *data, size_t size, const char *secret) {
    return memmem(data, size, secret, strlen(secret)) != NULL;
}

/* Classifies a response with this body. */
static void classify(const stk_http_response *response, const uint8_t *body, size_t size,
                     stk_fetch_result *result) {
    char id[] = "AKIDVERYSECRET";
    char secret[] = SECRET;
    char source[] = "the environment";
    char bucket[] = "bucket";
    const stk_s3_access access = {
        .bucket = bucket, .credentials = {.key_id = id, .secret = secret, .source = source}};
    stk_s3_request request = {.region = "us-east-1"};
    stk_str_append(&request.key, size % 2 == 0 ? "a/b.jpg" : "");
    uint8_t *copy = stk_mem_raw(size, 1);
    FUZZ_REQUIRE(copy != NULL && stk_str_ok(&request.key));
    if (size > 0) {
        memcpy(copy, body, size);
    }
    request.transfer.result = STK_HTTP_ANSWERED;
    request.transfer.response = *response;
    request.transfer.body = (stk_bytes){.data = copy, .size = size};
    stk_s3_classify(&request, &access, result);
    FUZZ_REQUIRE(result->verdict == STK_FETCH_OK || result->cause[0] != '\0');
    FUZZ_REQUIRE(is_terminated(result->cause, sizeof result->cause));
    FUZZ_REQUIRE(result->wait_s >= 0);
    FUZZ_REQUIRE(is_terminated(request.right_region, sizeof request.right_region));
    FUZZ_REQUIRE(request.recovery != STK_S3_RECOVERY_REGION || request.right_region[0] != '\0');
    stk_str_free(&request.key);
    stk_mem_free(copy);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    stk_http_response head = {0};
    size_t body = read_head(data, size, &head);
    check_head(&head);
    stk_fetch_result result = {0};
    classify(&head, data + body, size - body, &result);
    FUZZ_REQUIRE(says(data, size, SECRET) || strstr(result.cause, SECRET) == NULL);
    return 0;
}
#else
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    (void)data;
    (void)size;
    return 0;
}
#endif
