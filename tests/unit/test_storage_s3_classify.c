/* test_storage_s3_classify.c - heads of answers, and what answers mean in verdicts and words. */
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

static const stk_s3_credentials some = {
    .key_id = key_id, .secret = secret, .token = token, .source = source};
static const stk_s3_credentials none = {0};

static const stk_s3_question reading = {.bucket = "pics",
                                        .key = "train/cat/1.jpg",
                                        .place = "s3://pics/train",
                                        .region = "us-east-1",
                                        .credentials = &some};

static void head_lines(stk_http_head *head, const char *text) {
    while (*text != '\0') {
        size_t length = strcspn(text, "\n");
        length += text[length] != '\0';
        stk_http_head_line(head, text, length);
        text += length;
    }
}

static void heads(void) {
    stk_http_head head = {0};
    head_lines(&head, "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 206 Partial Content\r\n"
                      "content-length:  99 \r\nContent-Range: bytes 100-198/1234\r\n"
                      "ETAG: W/\"abc-2\"\r\nDate: Sun, 06 Nov 1994 08:49:37 GMT\r\n"
                      "Retry-After: 7\r\nx-amz-bucket-region: eu-west-1\r\n"
                      "X-Amz-Server-Side-Encryption: AES256\r\nx-etag: no\r\n\r\n");
    CHECK_INT(head.status, 206);
    CHECK(head.has_length && head.has_range && !head.sealed);
    CHECK_INT(head.length, 99);
    CHECK_INT(head.range_first, 100);
    CHECK_INT(head.range_total, 1234);
    CHECK_STR(head.etag, "abc-2");
    CHECK_INT(stk_http_head_date_s(&head), 784111777);
    CHECK_NEAR(head.retry_after_s, 7, 0);
    CHECK_STR(head.region, "eu-west-1");
    head_lines(&head, "HTTP/1.0 200 OK\nContent-Length: 12x\nContent-Range: bytes */9\nETag:\n"
                      "Retry-After: soon\nDate: yesterday\n"
                      "x-amz-server-side-encryption: aws:kms:dsse\n");
    CHECK_INT(head.status, 200);
    CHECK(!head.has_length && !head.has_range && head.sealed);
    CHECK_STR(head.etag, "");
    CHECK_STR(head.region, "");
    CHECK_NEAR(head.retry_after_s, 0, 0);
    CHECK_INT(stk_http_head_date_s(&head), 0);
    head_lines(&head, "HTTP/1.1 503 x\nDate: Sun, 06 Nov 1994 08:49:37 GMT\n"
                      "Retry-After: Sun, 06 Nov 1994 08:49:47 GMT\n"
                      "Content-Length: 99999999999999999999999\n"
                      "x-amz-server-side-encryption-customer-algorithm: AES256\n");
    CHECK_NEAR(head.retry_after_s, 10, 0);
    CHECK(!head.has_length && head.sealed);
    head_lines(&head, "HTTP/1.1\nETag: \"");
    CHECK_INT(head.status, 0);
}

/* An ended request as the engine leaves it. */
static void judge(const stk_s3_question *question, stk_http_end end, int status, const char *body,
                  stk_s3_judgement *judgement) {
    stk_bytes bytes = {.data = (uint8_t *)(uintptr_t)body, .size = strlen(body)};
    stk_http_request request = {.bytes = &bytes, .end = end, .max_bytes = 1000000};
    request.answer.status = status;
    request.answer.retry_after_s = 100;
    snprintf(request.reason, sizeof request.reason, "Connection refused");
    snprintf(request.answer.date, sizeof request.answer.date, "Sun, 06 Nov 1994 08:49:37 GMT");
    stk_s3_judge(&request, question, judgement);
    CHECK(strstr(judgement->error.message, "HUSH") == NULL);
}

#define ERROR(code) "<Error><Code>" code "</Code><Message>Some words</Message></Error>"

static void answers_to_a_read(void) {
    static const struct {
        int status;
        const char *body;
        stk_fetch_verdict verdict;
        stk_s3_cure cure;
        const char *words[3];
    } cases[] = {
        {200, "bytes", STK_FETCH_OK, STK_S3_CURE_NONE, {""}},
        {206, "bytes", STK_FETCH_OK, STK_S3_CURE_NONE, {""}},
        {416, ERROR("InvalidRange"), STK_FETCH_OK, STK_S3_CURE_NONE, {""}},
        {500, ERROR("InternalError"), STK_FETCH_AGAIN, STK_S3_CURE_NONE, {"500 InternalError"}},
        {503, ERROR("SlowDown"), STK_FETCH_AGAIN, STK_S3_CURE_NONE, {"SlowDown", "Some words"}},
        {503, "<html>", STK_FETCH_AGAIN, STK_S3_CURE_NONE, {"(503)"}},
        {502, "", STK_FETCH_AGAIN, STK_S3_CURE_NONE, {"(502)"}},
        {504, "", STK_FETCH_AGAIN, STK_S3_CURE_NONE, {"(504)"}},
        {429, "", STK_FETCH_AGAIN, STK_S3_CURE_NONE, {"(429)"}},
        {408, "", STK_FETCH_AGAIN, STK_S3_CURE_NONE, {"(408)"}},
        {400, ERROR("RequestTimeout"), STK_FETCH_AGAIN, STK_S3_CURE_NONE, {"RequestTimeout"}},
        {404,
         ERROR("NoSuchKey"),
         STK_FETCH_NEVER,
         STK_S3_CURE_NONE,
         {"no object train/cat/1.jpg in bucket pics (404)", "--refresh"}},
        {404, "", STK_FETCH_NEVER, STK_S3_CURE_NONE, {"train/cat/1.jpg", "--refresh"}},
        {404, ERROR("NoSuchBucket"), STK_FETCH_LOST, STK_S3_CURE_NONE, {"no bucket pics"}},
        {403,
         ERROR("AccessDenied"),
         STK_FETCH_NEVER,
         STK_S3_CURE_NONE,
         {"s3://pics/train/cat/1.jpg", "profile 'lab' in ~/.aws/credentials", "s3:GetObject"}},
        {403, "", STK_FETCH_NEVER, STK_S3_CURE_NONE, {"denied (403)"}},
        {403, ERROR("InvalidObjectState"), STK_FETCH_NEVER, STK_S3_CURE_NONE, {"archived"}},
        {403, ERROR("InvalidAccessKeyId"), STK_FETCH_LOST, STK_S3_CURE_NONE, {"profile 'lab'"}},
        {403,
         ERROR("SignatureDoesNotMatch"),
         STK_FETCH_LOST,
         STK_S3_CURE_NONE,
         {"secret key does not belong", "profile 'lab'"}},
        {400, ERROR("InvalidToken"), STK_FETCH_LOST, STK_S3_CURE_NONE, {"session token"}},
        {400, ERROR("ExpiredToken"), STK_FETCH_LOST, STK_S3_CURE_CREDENTIALS, {"have expired"}},
        {403, ERROR("RequestTimeTooSkewed"), STK_FETCH_LOST, STK_S3_CURE_CLOCK, {"clock"}},
        {301, ERROR("PermanentRedirect"), STK_FETCH_LOST, STK_S3_CURE_NONE, {"AWS_REGION"}},
        {301,
         "<Error><Code>PermanentRedirect</Code><Region>eu-west-1</Region></Error>",
         STK_FETCH_LOST,
         STK_S3_CURE_REGION,
         {"in region eu-west-1, not in us-east-1", "AWS_REGION=eu-west-1"}},
        {400,
         "<Error><Code>AuthorizationHeaderMalformed</Code><Region>us-east-1</Region></Error>",
         STK_FETCH_LOST,
         STK_S3_CURE_NONE,
         {"names the region us-east-1, for which", "AWS_ENDPOINT_URL"}},
        {401, "", STK_FETCH_LOST, STK_S3_CURE_NONE, {"(401)"}},
        {407, "", STK_FETCH_LOST, STK_S3_CURE_NONE, {"proxy"}},
        {400,
         ERROR("InvalidRequest"),
         STK_FETCH_NEVER,
         STK_S3_CURE_NONE,
         {"400 InvalidRequest: Some"}},
        {204, "", STK_FETCH_NEVER, STK_S3_CURE_NONE, {"204"}},
    };
    for (size_t i = 0; i < COUNT(cases); i++) {
        stk_s3_judgement j;
        judge(&reading, STK_HTTP_ANSWERED, cases[i].status, cases[i].body, &j);
        if (j.verdict != cases[i].verdict || j.cure != cases[i].cure) {
            CHECK_FAIL("%d %s: verdict %d, cure %d", cases[i].status, cases[i].body, j.verdict,
                       j.cure);
        }
        for (size_t k = 0; k < 3 && cases[i].words[k] != NULL; k++) {
            CHECK_CONTAINS(j.error.message, cases[i].words[k]);
        }
        CHECK(j.wait_s <= 30);
        CHECK((j.wait_s > 0) == (j.verdict == STK_FETCH_AGAIN));
        CHECK((j.error.status == STK_OK) == (j.verdict == STK_FETCH_OK));
    }
}

/* A listing has no object that could be at fault. */
static void answers_to_a_listing(void) {
    stk_s3_judgement j;
    stk_s3_question listing = reading;
    listing.key = NULL;
    judge(&listing, STK_HTTP_ANSWERED, 403, ERROR("AccessDenied"), &j);
    CHECK_INT(j.verdict, STK_FETCH_LOST);
    CHECK_CONTAINS(j.error.message, "cannot list s3://pics/train");
    CHECK_CONTAINS(j.error.message, "s3:ListBucket");
    judge(&listing, STK_HTTP_ANSWERED, 404, "", &j);
    CHECK_INT(j.verdict, STK_FETCH_LOST);
    judge(&listing, STK_HTTP_ANSWERED, 404, ERROR("NoSuchBucket"), &j);
    CHECK_INT(j.error.status, STK_ERR_DATA);
    CHECK_CONTAINS(j.error.message, "Amazon S3 has no bucket pics");
    judge(&listing, STK_HTTP_ANSWERED, 416, "", &j);
    CHECK_INT(j.verdict, STK_FETCH_LOST);
}

static void who_is_denied(void) {
    stk_s3_judgement j;
    stk_s3_question question = reading;
    question.credentials = &none;
    judge(&question, STK_HTTP_ANSWERED, 403, ERROR("AccessDenied"), &j);
    CHECK_CONTAINS(j.error.message, "no credentials were found");
    CHECK_CONTAINS(j.error.message, "AWS_ACCESS_KEY_ID");
    question.anonymous = true;
    judge(&question, STK_HTTP_ANSWERED, 403, ERROR("AccessDenied"), &j);
    CHECK_CONTAINS(j.error.message, "as asked for");
}

static void requests_without_an_answer(void) {
    static const struct {
        stk_http_end end;
        stk_fetch_verdict verdict;
        const char *words;
    } cases[] = {
        {STK_HTTP_NO_ANSWER, STK_FETCH_AGAIN, "no answer: Connection refused"},
        {STK_HTTP_CUT_OFF, STK_FETCH_DAMAGED, "after 4 bytes"},
        {STK_HTTP_TOO_LARGE, STK_FETCH_NEVER, "larger than 1.0 MB"},
        {STK_HTTP_UNTRUSTED, STK_FETCH_LOST, "AWS_CA_BUNDLE"},
        {STK_HTTP_IMPOSSIBLE, STK_FETCH_LOST, "Connection refused"},
        {STK_HTTP_NO_MEMORY, STK_FETCH_AGAIN, "out of memory"},
        {STK_HTTP_CANCELLED, STK_FETCH_CANCELLED, ""},
    };
    for (size_t i = 0; i < COUNT(cases); i++) {
        stk_s3_judgement j;
        judge(&reading, cases[i].end, 200, "four", &j);
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
        stk_s3_judgement j;
        char body[200];
        snprintf(body, sizeof body, "<Error><Code>%s</Code><Message>%s</Message></Error>",
                 codes[i % COUNT(codes)], messages[i / COUNT(codes)]);
        judge(&reading, STK_HTTP_ANSWERED, 403, body, &j); /* it looks for HUSH */
        CHECK(j.verdict != STK_FETCH_OK);
    }
}

static void long_keys_are_cut_in_words(void) {
    stk_s3_judgement j;
    char key[1025];
    memset(key, 'k', sizeof key - 1);
    key[sizeof key - 1] = '\0';
    stk_s3_question question = reading;
    question.key = key;
    judge(&question, STK_HTTP_ANSWERED, 403, ERROR("AccessDenied"), &j);
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
