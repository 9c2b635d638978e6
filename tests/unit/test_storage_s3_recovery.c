/*
 * test_storage_s3_recovery.c - what the S3 source learns from answers: the region, the clock, and
 * that ETags need not be MD5s.
 */
#include "check.h"

#ifdef STK_HAVE_S3

#include "s3_place.h"
#include "small_server.h"

#include "base/numbers/digest.h"

#define PAGE                                                                                    \
    "<ListBucketResult><IsTruncated>false</IsTruncated>"                                        \
    "<Contents><Key>a.jpg</Key><ETag>\"11111111111111111111111111111111\"</ETag><Size>5</Size>" \
    "</Contents><Contents><Key>b.jpg</Key><Size>5</Size></Contents></ListBucketResult>"
#define LIST "GET /bucket?"
#define END_OF_RULES \
    { NULL, 0, NULL, 0 }

static small_server server;

/* Opens a place on a server of some rules. */
static bool open_place(const small_rule *rules, void **place, s3_told *told) {
    stk_error err = {0};
    small_server_start(&server, rules);
    s3_environment(server.port);
    setenv("AWS_REGION", "us-east-1", 1);
    stk_status status = s3_open(place, "s3://bucket", (s3_opening){0}, told, &err);
    if (status != STK_OK) {
        CHECK_FAIL("%s", err.message);
        small_server_stop(&server);
    }
    return status == STK_OK;
}

static void close_place(void *place, stk_fetch *fetch) {
    stk_bytes_free(&fetch->bytes);
    stk_storage_s3.close(place);
    small_server_stop(&server);
}

#define MOVED                                                                       \
    "HTTP/1.1 301 Moved\r\nx-amz-bucket-region: eu-west-1\r\nContent-Length: 0\r\n" \
    "Location: http://127.0.0.1:1/\r\nConnection: close\r\n\r\n"

static void the_region_is_learned(void) {
    static const small_rule rules[] = {{LIST, 301, MOVED, 1},
                                       {LIST, 200, PAGE, 0},
                                       {"GET /bucket/a.jpg ", 301, MOVED, 0},
                                       END_OF_RULES};
    void *place = NULL;
    s3_told told;
    stk_fetch fetch = {0};
    if (!open_place(rules, &place, &told)) {
        return;
    }
    REQUIRE(told.decision_count == 1);
    CHECK_CONTAINS(told.decisions[0], "region eu-west-1: the bucket is there, not in us-east-1");
    /* A store that sends on and on is not followed. */
    CHECK_INT(s3_fetch(place, &fetch, "a.jpg"), STK_FETCH_LOST);
    CHECK_CONTAINS(fetch.result.cause, "eu-west-1");
    close_place(place, &fetch);
    CHECK_INT(server.count, 3);
    CHECK_CONTAINS(server.requests[0], "/us-east-1/s3/aws4_request");
    CHECK_CONTAINS(server.requests[1], "/eu-west-1/s3/aws4_request");
    CHECK_CONTAINS(server.requests[2], "/eu-west-1/s3/aws4_request");
}

/* The region that a complaint names, met when an object is read. */
static void the_region_is_learned_late(void) {
    static const small_rule rules[] = {
        {LIST, 200, PAGE, 0},
        {"GET /bucket/b.jpg ", 400,
         "<Error><Code>AuthorizationHeaderMalformed</Code><Region>ap-south-1</Region></Error>", 1},
        {"GET /bucket/b.jpg ", 200, "bytes", 0},
        END_OF_RULES};
    void *place = NULL;
    stk_fetch fetch = {0};
    if (!open_place(rules, &place, NULL)) {
        return;
    }
    CHECK_INT(s3_fetch(place, &fetch, "b.jpg"), STK_FETCH_AGAIN);
    CHECK_INT(s3_fetch(place, &fetch, "b.jpg"), STK_FETCH_OK);
    close_place(place, &fetch);
    CHECK_CONTAINS(server.requests[2], "/ap-south-1/s3/aws4_request");
}

#define SKEWED                                                                                \
    "HTTP/1.1 403 Forbidden\r\nDate: Tue, 01 Jan 2030 12:00:00 GMT\r\nContent-Length: 47\r\n" \
    "Connection: close\r\n\r\n<Error><Code>RequestTimeTooSkewed</Code></Error>"

static void the_clock_is_learned_once(void) {
    static const small_rule rules[] = {{LIST, 403, SKEWED, 1},
                                       {LIST, 200, PAGE, 0},
                                       {"GET /bucket/b.jpg ", 403, SKEWED, 0},
                                       END_OF_RULES};
    void *place = NULL;
    stk_fetch fetch = {0};
    if (!open_place(rules, &place, NULL)) {
        return;
    }
    CHECK_INT(s3_fetch(place, &fetch, "b.jpg"), STK_FETCH_LOST);
    CHECK_CONTAINS(fetch.result.cause, "this machine's clock");
    close_place(place, &fetch);
    CHECK(strstr(server.requests[0], "20300101T12") == NULL);
    CHECK_CONTAINS(server.requests[1], "20300101T12");
}

/* An answer with an ETag, which may be the MD5 of "bytes" or of something else. */
static void answer_with_etag(char *out, size_t size, const char *etag, const char *more,
                             const char *body) {
    snprintf(out, size,
             "HTTP/1.1 200 OK\r\nETag: \"%s\"\r\n%sContent-Length: %zu\r\n"
             "Connection: close\r\n\r\n%s",
             etag, more, strlen(body), body);
}

static void etags_that_are_no_md5s(void) {
    char wrong[300];
    char right[300];
    char md5[STK_MD5_TEXT];
    uint8_t digest[STK_MD5_BYTES];
    stk_md5_of("bytes", 5, digest);
    stk_hex(digest, sizeof digest, md5);
    for (int i = 0; i < 32; i++) { /* either spelling will do */
        md5[i] = (char)(md5[i] >= 'a' ? md5[i] - 'a' + 'A' : md5[i]);
    }
    answer_with_etag(wrong, sizeof wrong, "22222222222222222222222222222222", "", "bytes");
    answer_with_etag(right, sizeof right, md5, "", "bytes");
    const small_rule never[] = {
        {LIST, 200, PAGE, 0}, {"GET /bucket/", 200, wrong, 0}, END_OF_RULES};
    const small_rule mixed[] = {{LIST, 200, PAGE, 0},
                                {"GET /bucket/good.jpg ", 200, right, 0},
                                {"GET /bucket/", 200, wrong, 0},
                                END_OF_RULES};
    void *place = NULL;
    stk_fetch fetch = {0};
    if (open_place(never, &place, NULL)) {
        CHECK_INT(s3_fetch(place, &fetch, "x.jpg"), STK_FETCH_DAMAGED);
        CHECK_INT(s3_fetch(place, &fetch, "y.jpg"), STK_FETCH_DAMAGED); /* another object */
        CHECK_INT(s3_fetch(place, &fetch, "x.jpg"), STK_FETCH_OK);
        CHECK_INT(fetch.bytes.size, 5);
        CHECK_INT(s3_fetch(place, &fetch, "z.jpg"), STK_FETCH_OK); /* they are not looked at */
        close_place(place, &fetch);
    }
    if (open_place(mixed, &place, NULL)) {
        CHECK_INT(s3_fetch(place, &fetch, "good.jpg"), STK_FETCH_OK);
        CHECK_INT(s3_fetch(place, &fetch, "x.jpg"), STK_FETCH_DAMAGED);
        CHECK_INT(s3_fetch(place, &fetch, "x.jpg"), STK_FETCH_OK);
        CHECK_INT(s3_fetch(place, &fetch, "z.jpg"), STK_FETCH_DAMAGED); /* others are MD5s */
        close_place(place, &fetch);
    }
}

static void damage_that_differs_is_damage(void) {
    char first[300];
    char second[300];
    answer_with_etag(first, sizeof first, "22222222222222222222222222222222", "", "bytes");
    answer_with_etag(second, sizeof second, "22222222222222222222222222222222", "", "bytez");
    const small_rule rules[] = {{LIST, 200, PAGE, 0},
                                {"GET /bucket/", 200, first, 1},
                                {"GET /bucket/", 200, second, 0},
                                END_OF_RULES};
    void *place = NULL;
    stk_fetch fetch = {0};
    if (open_place(rules, &place, NULL)) {
        CHECK_INT(s3_fetch(place, &fetch, "x.jpg"), STK_FETCH_DAMAGED);
        CHECK_INT(s3_fetch(place, &fetch, "x.jpg"), STK_FETCH_DAMAGED);
        CHECK_INT(s3_fetch(place, &fetch, "x.jpg"), STK_FETCH_OK);
        close_place(place, &fetch);
    }
}

static void etags_that_say_so_are_not_checked(void) {
    static const struct {
        const char *etag;
        const char *more;
    } cases[] = {
        {"22222222222222222222222222222222-3", ""},
        {"22222222222222222222222222222222", "x-amz-server-side-encryption: aws:kms\r\n"},
        {"22222222222222222222222222222222",
         "x-amz-server-side-encryption-customer-algorithm: AES256\r\n"},
        {"hello", ""},
        {"", ""},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char text[400];
        answer_with_etag(text, sizeof text, cases[i].etag, cases[i].more, "bytes");
        const small_rule rules[] = {
            {LIST, 200, PAGE, 0}, {"GET /bucket/", 200, text, 0}, END_OF_RULES};
        void *place = NULL;
        stk_fetch fetch = {0};
        if (open_place(rules, &place, NULL)) {
            CHECK_INT(s3_fetch(place, &fetch, "b.jpg"), STK_FETCH_OK);
            close_place(place, &fetch);
        }
    }
}

static void lengths(void) {
    static const small_rule rules[] = {
        {LIST, 200, PAGE, 0},
        /* The ETag is the listed one, the length is not. */
        {"GET /bucket/a.jpg ", 200,
         "HTTP/1.1 200 OK\r\nETag: \"11111111111111111111111111111111\"\r\nContent-Length: 4\r\n"
         "Connection: close\r\n\r\nbyte",
         0},
        {"GET /bucket/short ", 200,
         "HTTP/1.1 200 OK\r\nContent-Length: 10\r\nConnection: close\r\n\r\nbyte", 0},
        {"GET /bucket/other-part ", 206,
         "HTTP/1.1 206 Part\r\nContent-Range: bytes 7-10/100\r\nContent-Length: 4\r\n"
         "Connection: close\r\n\r\nbyte",
         0},
        {"GET /bucket/less ", 206,
         "HTTP/1.1 206 Part\r\nContent-Range: bytes 2-5/100\r\nContent-Length: 4\r\n"
         "Connection: close\r\n\r\nbyte",
         0},
        {"GET /bucket/unasked ", 206,
         "HTTP/1.1 206 Part\r\nContent-Range: bytes 0-3/100\r\nContent-Length: 4\r\n"
         "Connection: close\r\n\r\nbyte",
         0},
        {"GET /bucket/no-parts ", 200, "0123456789", 0},
        {"GET /bucket/huge ", 200,
         "HTTP/1.1 200 OK\r\nContent-Length: 999999999999\r\nConnection: close\r\n\r\nbyte", 0},
        {"GET /bucket/chunks ", 200,
         "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nConnection: close\r\n\r\n"
         "3\r\nabc\r\n2\r\nde\r\n0\r\n\r\n",
         0},
        END_OF_RULES};
    void *place = NULL;
    stk_fetch fetch = {0};
    stk_fetch part = {.offset = 2, .length = 5};
    if (!open_place(rules, &place, NULL)) {
        return;
    }
    CHECK_INT(s3_fetch(place, &fetch, "a.jpg"), STK_FETCH_DAMAGED);
    CHECK_CONTAINS(fetch.result.cause, "another length than was listed (4 bytes came of 5)");
    CHECK_INT(s3_fetch(place, &fetch, "short"), STK_FETCH_DAMAGED);
    CHECK_INT(s3_fetch(place, &part, "other-part"), STK_FETCH_DAMAGED);
    CHECK_INT(s3_fetch(place, &part, "less"), STK_FETCH_DAMAGED);
    CHECK_INT(s3_fetch(place, &fetch, "unasked"), STK_FETCH_DAMAGED);
    CHECK_INT(s3_fetch(place, &part, "no-parts"), STK_FETCH_OK);
    CHECK(part.bytes.size == 5 && memcmp(part.bytes.data, "23456", 5) == 0);
    CHECK_INT(s3_fetch(place, &fetch, "huge"), STK_FETCH_NEVER);
    CHECK_CONTAINS(fetch.result.cause, "larger than");
    CHECK_INT(s3_fetch(place, &fetch, "chunks"), STK_FETCH_OK);
    CHECK(fetch.bytes.size == 5 && memcmp(fetch.bytes.data, "abcde", 5) == 0);
    stk_bytes_free(&part.bytes);
    close_place(place, &fetch);
}

/* A page that cannot be understood is asked for again, some times. */
static void strange_pages(void) {
    static const small_rule rules[] = {{LIST, 200, "<html>Log in</html>", 0}, END_OF_RULES};
    stk_error err = {0};
    void *place = NULL;
    small_server_start(&server, rules);
    s3_environment(server.port);
    CHECK_INT(s3_open(&place, "s3://bucket", (s3_opening){0}, NULL, &err), STK_ERR_STORAGE);
    CHECK_CONTAINS(err.message, "no listing of S3's");
    CHECK_CONTAINS(err.message, "AWS_ENDPOINT_URL");
    small_server_stop(&server);
    CHECK_INT(server.count, 3);
}

static const check_test tests[] = {
    TEST(the_region_is_learned),
    TEST(the_region_is_learned_late),
    TEST(the_clock_is_learned_once),
    TEST(etags_that_are_no_md5s),
    TEST(damage_that_differs_is_damage),
    TEST(etags_that_say_so_are_not_checked),
    TEST(lengths),
    TEST(strange_pages),
};

#else

static void not_built(void) {
    CHECK_SKIP("built without S3");
}

static const check_test tests[] = {TEST(not_built)};

#endif

CHECK_MAIN(tests)
