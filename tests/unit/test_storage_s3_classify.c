/* test_storage_s3_classify.c - response headers, and what responses mean: verdicts and sentences.
 */
#include "check.h"

#ifdef STK_HAVE_S3

#include "base/error.h"
#include "storage/http/response.h"
#include "storage/s3/classify.h"

#define COUNT(array) (sizeof(array) / sizeof *(array))

static char key_id[] = "AKIAHUSHHUSH";
static char secret[] = "sssHUSHsecret";
static char token[] = "tttHUSHtoken";
static char source[] = "profile 'lab' in ~/.aws/credentials";

static char bucket[] = "pics";

static const stk_s3_access some_access = {
    .bucket = bucket,
    .credentials = {.key_id = key_id, .secret = secret, .token = token, .source = source}};

#define KEY "train/cat/1.jpg"

static void head_lines(stk_http_response *head, const char *text) {
    while (*text != '\0') {
        size_t length = strcspn(text, "\n");
        length += text[length] != '\0';
        stk_http_response_line(head, text, length);
        text += length;
    }
}

static void heads(void) {
    stk_http_response head = {0};
    head_lines(&head, "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 206 Partial Content\r\n"
                      "content-length:  99 \r\nContent-Range: bytes 100-198/1234\r\n"
                      "ETAG: W/\"abc-2\"\r\nDate: Sun, 06 Nov 1994 08:49:37 GMT\r\n"
                      "Retry-After: 7\r\nx-amz-bucket-region: eu-west-1\r\n"
                      "X-Amz-Server-Side-Encryption: AES256\r\nx-etag: no\r\n\r\n");
    CHECK_INT(head.status, 206);
    CHECK(head.has_length && head.has_range && !head.user_encrypted);
    CHECK_INT(head.length, 99);
    CHECK_INT(head.range_first, 100);
    CHECK_INT(head.range_total, 1234);
    CHECK_STR(head.etag, "abc-2");
    CHECK_INT(stk_http_response_date_s(&head), 784111777);
    CHECK_NEAR(head.retry_after_s, 7, 0);
    CHECK_STR(head.region, "eu-west-1");
    head_lines(&head, "HTTP/1.0 200 OK\nContent-Length: 12x\nContent-Range: bytes */9\nETag:\n"
                      "Retry-After: soon\nDate: yesterday\n"
                      "x-amz-server-side-encryption: aws:kms:dsse\n");
    CHECK_INT(head.status, 200);
    CHECK(!head.has_length && !head.has_range && head.user_encrypted);
    CHECK_STR(head.etag, "");
    CHECK_STR(head.region, "");
    CHECK_NEAR(head.retry_after_s, 0, 0);
    CHECK_INT(stk_http_response_date_s(&head), 0);
    head_lines(&head, "HTTP/1.1 503 x\nDate: Sun, 06 Nov 1994 08:49:37 GMT\n"
                      "Retry-After: Sun, 06 Nov 1994 08:49:47 GMT\n"
                      "Content-Length: 99999999999999999999999\n"
                      "x-amz-server-side-encryption-customer-algorithm: AES256\n");
    CHECK_NEAR(head.retry_after_s, 10, 0);
    CHECK(!head.has_length && head.user_encrypted);
    head_lines(&head, "HTTP/1.1\nETag: \"");
    CHECK_INT(head.status, 0);
}

/* What a request came to. */
typedef struct classified {
    stk_fetch_verdict verdict;
    stk_s3_recovery recovery;
    double wait_s;
    stk_error error; /* as the reader writes it */
} classified;

/* Classifies an ended request as the engine leaves it; key "": a page of the listing. */
static void classify(const stk_s3_access *with, const char *key, stk_http_result result, int status,
                     const char *body, classified *out) {
    stk_s3_request request = {.region = "us-east-1"};
    stk_http_transfer *transfer = &request.transfer;
    stk_str_append(&request.key, key);
    transfer->body = (stk_bytes){.data = (uint8_t *)(uintptr_t)body, .size = strlen(body)};
    transfer->result = result;
    transfer->max_bytes = 1000000;
    transfer->response.status = status;
    transfer->response.retry_after_s = 100;
    snprintf(transfer->reason, sizeof transfer->reason, "Connection refused");
    snprintf(transfer->response.date, sizeof transfer->response.date,
             "Sun, 06 Nov 1994 08:49:37 GMT");
    memset(out, 0, sizeof *out);
    stk_fetch_result outcome = {0};
    stk_s3_classify(&request, with, &outcome);
    out->verdict = outcome.verdict;
    out->recovery = request.recovery;
    out->wait_s = outcome.wait_s;
    if (out->verdict != STK_FETCH_OK && out->verdict != STK_FETCH_CANCELLED) {
        stk_fetch_explain(&outcome, "s3://pics", key, &out->error);
    }
    CHECK(strstr(out->error.message, "HUSH") == NULL);
    stk_str_free(&request.key);
}

#define ERROR(code) "<Error><Code>" code "</Code><Message>Some words</Message></Error>"

static void answers_to_a_read(void) {
    static const struct {
        int status;
        const char *body;
        stk_fetch_verdict verdict;
        stk_s3_recovery recovery;
        const char *words[3];
    } cases[] = {
        {200, "bytes", STK_FETCH_OK, STK_S3_RECOVERY_NONE, {""}},
        {206, "bytes", STK_FETCH_OK, STK_S3_RECOVERY_NONE, {""}},
        {416, ERROR("InvalidRange"), STK_FETCH_OK, STK_S3_RECOVERY_NONE, {""}},
        {500, ERROR("InternalError"), STK_FETCH_AGAIN, STK_S3_RECOVERY_NONE, {"500 InternalError"}},
        {503, ERROR("SlowDown"), STK_FETCH_AGAIN, STK_S3_RECOVERY_NONE, {"SlowDown", "Some words"}},
        {503, "<html>", STK_FETCH_AGAIN, STK_S3_RECOVERY_NONE, {"(503)"}},
        {502, "", STK_FETCH_AGAIN, STK_S3_RECOVERY_NONE, {"(502)"}},
        {504, "", STK_FETCH_AGAIN, STK_S3_RECOVERY_NONE, {"(504)"}},
        {429, "", STK_FETCH_AGAIN, STK_S3_RECOVERY_NONE, {"(429)"}},
        {408, "", STK_FETCH_AGAIN, STK_S3_RECOVERY_NONE, {"(408)"}},
        {400, ERROR("RequestTimeout"), STK_FETCH_AGAIN, STK_S3_RECOVERY_NONE, {"RequestTimeout"}},
        {404,
         ERROR("NoSuchKey"),
         STK_FETCH_NEVER,
         STK_S3_RECOVERY_NONE,
         {"no object train/cat/1.jpg in bucket pics (404)", "--refresh"}},
        {404, "", STK_FETCH_NEVER, STK_S3_RECOVERY_NONE, {"train/cat/1.jpg", "--refresh"}},
        {404, ERROR("NoSuchBucket"), STK_FETCH_LOST, STK_S3_RECOVERY_NONE, {"no bucket pics"}},
        {403,
         ERROR("AccessDenied"),
         STK_FETCH_NEVER,
         STK_S3_RECOVERY_NONE,
         {"s3://pics/train/cat/1.jpg", "profile 'lab' in ~/.aws/credentials", "s3:GetObject"}},
        {403, "", STK_FETCH_NEVER, STK_S3_RECOVERY_NONE, {"denied (403)"}},
        {403, ERROR("InvalidObjectState"), STK_FETCH_NEVER, STK_S3_RECOVERY_NONE, {"archived"}},
        {403, ERROR("InvalidAccessKeyId"), STK_FETCH_LOST, STK_S3_RECOVERY_NONE, {"profile 'lab'"}},
        {403,
         ERROR("SignatureDoesNotMatch"),
         STK_FETCH_LOST,
         STK_S3_RECOVERY_NONE,
         {"secret key does not belong", "profile 'lab'"}},
        {400, ERROR("InvalidToken"), STK_FETCH_LOST, STK_S3_RECOVERY_NONE, {"session token"}},
        {400, ERROR("ExpiredToken"), STK_FETCH_LOST, STK_S3_RECOVERY_CREDENTIALS, {"have expired"}},
        {403, ERROR("RequestTimeTooSkewed"), STK_FETCH_LOST, STK_S3_RECOVERY_CLOCK, {"clock"}},
        {301, ERROR("PermanentRedirect"), STK_FETCH_LOST, STK_S3_RECOVERY_NONE, {"AWS_REGION"}},
        {301,
         "<Error><Code>PermanentRedirect</Code><Region>eu-west-1</Region></Error>",
         STK_FETCH_LOST,
         STK_S3_RECOVERY_REGION,
         {"in region eu-west-1, not in us-east-1", "AWS_REGION=eu-west-1"}},
        {400,
         "<Error><Code>AuthorizationHeaderMalformed</Code><Region>us-east-1</Region></Error>",
         STK_FETCH_LOST,
         STK_S3_RECOVERY_NONE,
         {"names the region us-east-1, for which", "AWS_ENDPOINT_URL"}},
        {401, "", STK_FETCH_LOST, STK_S3_RECOVERY_NONE, {"(401)"}},
        {407, "", STK_FETCH_LOST, STK_S3_RECOVERY_NONE, {"proxy"}},
        {400,
         ERROR("InvalidRequest"),
         STK_FETCH_NEVER,
         STK_S3_RECOVERY_NONE,
         {"400 InvalidRequest: Some"}},
        {204, "", STK_FETCH_NEVER, STK_S3_RECOVERY_NONE, {"204"}},
    };
    for (size_t i = 0; i < COUNT(cases); i++) {
        classified j;
        classify(&some_access, KEY, STK_HTTP_ANSWERED, cases[i].status, cases[i].body, &j);
        if (j.verdict != cases[i].verdict || j.recovery != cases[i].recovery) {
            CHECK_FAIL("%d %s: verdict %d, recovery %d", cases[i].status, cases[i].body, j.verdict,
                       j.recovery);
        }
        for (size_t k = 0; k < 3 && cases[i].words[k] != NULL; k++) {
            CHECK_CONTAINS(j.error.message, cases[i].words[k]);
        }
        CHECK_NEAR(j.wait_s, j.verdict == STK_FETCH_AGAIN ? 100 : 0, 0); /* the reader cuts it */
        CHECK((j.error.status == STK_OK) == (j.verdict == STK_FETCH_OK));
    }
}

/* A listing has no object that could be at fault. */
static void answers_to_a_listing(void) {
    classified j;
    classify(&some_access, "", STK_HTTP_ANSWERED, 403, ERROR("AccessDenied"), &j);
    CHECK_INT(j.verdict, STK_FETCH_LOST);
    CHECK_CONTAINS(j.error.message, "s3:ListBucket");
    classify(&some_access, "", STK_HTTP_ANSWERED, 404, "", &j);
    CHECK_INT(j.verdict, STK_FETCH_LOST);
    classify(&some_access, "", STK_HTTP_ANSWERED, 404, ERROR("NoSuchBucket"), &j);
    CHECK_INT(j.error.status, STK_ERR_DATA);
    CHECK_CONTAINS(j.error.message, "Amazon S3 has no bucket pics");
    classify(&some_access, "", STK_HTTP_ANSWERED, 416, "", &j);
    CHECK_INT(j.verdict, STK_FETCH_LOST);
}

static void who_is_denied(void) {
    classified j;
    stk_s3_access unsigned_access = some_access;
    unsigned_access.credentials = (stk_s3_credentials){0};
    classify(&unsigned_access, KEY, STK_HTTP_ANSWERED, 403, ERROR("AccessDenied"), &j);
    CHECK_CONTAINS(j.error.message, "no credentials were found");
    CHECK_CONTAINS(j.error.message, "AWS_ACCESS_KEY_ID");
    unsigned_access.anonymous = true;
    classify(&unsigned_access, KEY, STK_HTTP_ANSWERED, 403, ERROR("AccessDenied"), &j);
    CHECK_CONTAINS(j.error.message, "as asked for");
}

static void requests_without_an_answer(void) {
    static const struct {
        stk_http_result result;
        stk_fetch_verdict verdict;
        const char *words;
    } cases[] = {
        {STK_HTTP_NO_RESPONSE, STK_FETCH_AGAIN, "no answer: Connection refused"},
        {STK_HTTP_TRUNCATED, STK_FETCH_DAMAGED, "after 4 bytes"},
        {STK_HTTP_TOO_LARGE, STK_FETCH_NEVER, "larger than 1.0 MB"},
        {STK_HTTP_BAD_CERTIFICATE, STK_FETCH_LOST, "AWS_CA_BUNDLE"},
        {STK_HTTP_BAD_SETTINGS, STK_FETCH_LOST, "Connection refused"},
        {STK_HTTP_OVER_MEMORY, STK_FETCH_NO_MEMORY, "beside the other reads"},
        {STK_HTTP_NO_MEMORY, STK_FETCH_NO_MEMORY, "out of memory"},
        {STK_HTTP_CANCELLED, STK_FETCH_CANCELLED, ""},
    };
    for (size_t i = 0; i < COUNT(cases); i++) {
        classified j;
        classify(&some_access, KEY, cases[i].result, 200, "four", &j);
        CHECK_INT(j.verdict, cases[i].verdict);
        CHECK_CONTAINS(j.error.message, cases[i].words);
    }
}

/* What a store repeats of a request must not come out. */
static void secrets_are_not_repeated(void) {
    static const char *const messages[] = {"AKIAHUSHHUSH is unknown", "not sssHUSHsecret",
                                           "see tttHUSHtoken", "Signature=HUSH is wrong"};
    static const char *const codes[] = {"AccessDenied", "InvalidRequest", "SlowDown"};
    for (size_t i = 0; i < COUNT(messages) * COUNT(codes); i++) {
        classified j;
        char body[200];
        snprintf(body, sizeof body, "<Error><Code>%s</Code><Message>%s</Message></Error>",
                 codes[i % COUNT(codes)], messages[i / COUNT(codes)]);
        classify(&some_access, KEY, STK_HTTP_ANSWERED, 403, body, &j); /* it looks for HUSH */
        CHECK(j.verdict != STK_FETCH_OK);
    }
}

static void long_keys_are_cut_in_words(void) {
    classified j;
    char key[1025];
    memset(key, 'k', sizeof key - 1);
    key[sizeof key - 1] = '\0';
    classify(&some_access, key, STK_HTTP_ANSWERED, 403, ERROR("AccessDenied"), &j);
    CHECK_CONTAINS(j.error.message, "denied (403)");
}

static const check_test tests[] = {
    TEST(heads),
    TEST(answers_to_a_read),
    TEST(answers_to_a_listing),
    TEST(who_is_denied),
    TEST(requests_without_an_answer),
    TEST(secrets_are_not_repeated),
    TEST(long_keys_are_cut_in_words),
};

#else

static void not_built(void) {
    CHECK_SKIP("built without S3");
}

static const check_test tests[] = {TEST(not_built)};

#endif

CHECK_MAIN(tests)
