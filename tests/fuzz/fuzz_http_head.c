/*
 * fuzz_http_head.c - the head of an answer of S3, line by line, and what is made of it together
 * with the body behind the empty line: a verdict, and where it is not a good one a sentence without
 * secrets.
 */
#include "fuzz.h"

#include <string.h>

#include "base/mem.h"
#include "storage/http/response.h"
#include "storage/s3/classify.h"

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
#define SECRET "hunter2hunter2"

static bool is_terminated(const char *text, size_t room) {
    return memchr(text, '\0', room) != NULL;
}

/* Where the body begins. */
static size_t read_head(const uint8_t *data, size_t size, stk_http_head *head) {
    size_t at = 0;
    while (at < size) {
        const uint8_t *stop = memchr(data + at, '\n', size - at);
        size_t length = stop != NULL ? (size_t)(stop - data) + 1 - at : size - at;
        stk_http_head_line(head, (const char *)data + at, length);
        at += length;
        if (length == 1 || (length == 2 && data[at - 2] == '\r')) {
            break;
        }
    }
    return at;
}

static void check_head(const stk_http_head *head) {
    FUZZ_REQUIRE(is_terminated(head->date, sizeof head->date));
    FUZZ_REQUIRE(is_terminated(head->etag, sizeof head->etag));
    FUZZ_REQUIRE(is_terminated(head->region, sizeof head->region));
    FUZZ_REQUIRE(head->status >= 0 && head->status <= 999);
    FUZZ_REQUIRE(head->retry_after_s >= 0);
    FUZZ_REQUIRE(stk_http_head_date_s(head) >= 0);
    FUZZ_REQUIRE(strpbrk(head->region, "\r\n") == NULL && strpbrk(head->etag, "\r\n") == NULL);
}

/* Whether the server itself has said it: libFuzzer reads it off the comparisons. */
static bool says(const uint8_t *data, size_t size, const char *secret) {
    return memmem(data, size, secret, strlen(secret)) != NULL;
}

static stk_s3_judgement judge(const stk_http_head *head, const uint8_t *body, size_t size) {
    char id[] = "AKIDVERYSECRET";
    char secret[] = SECRET;
    char source[] = "the environment";
    const stk_s3_credentials credentials = {.key_id = id, .secret = secret, .source = source};
    const stk_s3_question question = {.bucket = "bucket",
                                      .key = size % 2 == 0 ? "a/b.jpg" : NULL,
                                      .place = "s3://bucket/a",
                                      .region = "us-east-1",
                                      .credentials = &credentials};
    uint8_t *copy = stk_mem_raw(size, 1);
    FUZZ_REQUIRE(copy != NULL);
    if (size > 0) {
        memcpy(copy, body, size);
    }
    stk_bytes bytes = {.data = copy, .size = size};
    stk_http_request request = {.end = STK_HTTP_ANSWERED, .answer = *head, .bytes = &bytes};
    stk_s3_judgement judgement = {0};
    stk_s3_judge(&request, &question, &judgement);
    FUZZ_REQUIRE(judgement.verdict == STK_FETCH_OK || judgement.error.message[0] != '\0');
    FUZZ_REQUIRE(judgement.wait_s >= 0);
    FUZZ_REQUIRE(is_terminated(judgement.region, sizeof judgement.region));
    FUZZ_REQUIRE(judgement.cure != STK_S3_CURE_REGION || judgement.region[0] != '\0');
    stk_mem_free(copy);
    return judgement;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    stk_http_head head = {0};
    size_t body = read_head(data, size, &head);
    check_head(&head);
    stk_s3_judgement judgement = judge(&head, data + body, size - body);
    FUZZ_REQUIRE(says(data, size, SECRET) || strstr(judgement.error.message, SECRET) == NULL);
    return 0;
}
#else
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    (void)data;
    (void)size;
    return 0;
}
#endif
