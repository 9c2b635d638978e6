/*
 * classify.c - one function per kind of failure, and a table that finds it by the error code.
 *
 * The error code in the body decides; where there is none, the HTTP status does. Stores other than
 * Amazon's use the same codes.
 */
#ifdef STK_HAVE_S3

#include "storage/s3/classify.h"

#include <stdio.h>
#include <string.h>

#include "base/str.h"
#include "storage/s3/xml.h"

/* A failed request while it is classified. */
typedef struct s3_failure {
    const stk_s3_access *access;
    stk_s3_request *request;
    const char *key; /* NULL: a page of the listing was asked for */
    int status;      /* of the response */
    stk_s3_error_body body;
    stk_fetch_result *result;
} s3_failure;

typedef void classify_failure(s3_failure *f);

static const char *store_name(const s3_failure *f) {
    return f->access->endpoint != NULL ? f->access->endpoint : "Amazon S3";
}

/* "with the credentials from X", or why there are none. */
static const char *signed_with(const s3_failure *f, char *buf, size_t size) {
    const stk_s3_credentials *credentials = &f->access->credentials;
    if (credentials->key_id != NULL) {
        snprintf(buf, size, "with the credentials from %s", credentials->source);
    } else if (f->access->anonymous) {
        snprintf(buf, size, "without a signature, as asked for");
    } else {
        snprintf(buf, size, "without a signature, since no credentials were found");
    }
    return buf;
}

static bool is_signed(const s3_failure *f) {
    return f->access->credentials.key_id != NULL;
}

/* Whether a text contains the beginning of a secret; the text may be cut off in the middle. */
static bool has_secret(const char *text, const char *secret) {
    char start[9];
    if (secret == NULL || secret[0] == '\0') {
        return false;
    }
    snprintf(start, sizeof start, "%.8s", secret);
    return strstr(text, start) != NULL;
}

/* ": " and the store's own message, or "" where there is none or it repeats a secret. */
static const char *store_message(const s3_failure *f, char *buf, size_t size) {
    const stk_s3_credentials *c = &f->access->credentials;
    const char *message = f->body.message;
    bool leaks = has_secret(message, c->key_id) || has_secret(message, c->secret) ||
                 has_secret(message, c->token) || strstr(message, "ignature=") != NULL;
    snprintf(buf, size, "%s%s", message[0] != '\0' && !leaks ? ": " : "", leaks ? "" : message);
    return buf;
}

/* Writes the outcome; the cause is a format and its values. */
#define FAIL(f, verdict, ...) \
    (void)stk_fetch_fail((f)->result, (verdict), STK_ERR_STORAGE, __VA_ARGS__)

/* What stands between a status and the error code, which may be missing. */
static const char *space(const s3_failure *f) {
    return f->body.code[0] != '\0' ? " " : "";
}

static void busy(s3_failure *f) {
    char words[300];
    FAIL(f, STK_FETCH_AGAIN, "the store does not serve it now (%d%s%s)%s", f->status, space(f),
         f->body.code, store_message(f, words, sizeof words));
    f->result->wait_s = f->request->transfer.response.retry_after_s;
}

static void no_key(s3_failure *f) {
    if (f->key == NULL) {
        FAIL(f, STK_FETCH_LOST, "the store does not know it (404)");
        return;
    }
    FAIL(f, STK_FETCH_NEVER,
         "no object %.350s in bucket %s (404): it was deleted since the bucket was listed; "
         "--refresh lists again",
         f->key, f->access->bucket);
    f->result->is_sentence = true;
}

static void no_bucket(s3_failure *f) {
    FAIL(f, STK_FETCH_LOST, "%s has no bucket %s; check its name%s", store_name(f),
         f->access->bucket,
         f->access->endpoint == NULL ? ", and AWS_ENDPOINT_URL if it is in another store"
                                     : " and AWS_ENDPOINT_URL");
    f->result->status = STK_ERR_DATA;
}

static void denied(s3_failure *f) {
    char with[256];
    char words[300];
    const char *remedy = is_signed(f) ? (f->key != NULL ? "they need s3:GetObject for it"
                                                        : "they need s3:ListBucket for the bucket")
                         : f->access->anonymous
                             ? "it is not public, so that requests must be signed"
                             : "set AWS_PROFILE, or AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY";
    FAIL(f, f->key != NULL ? STK_FETCH_NEVER : STK_FETCH_LOST,
         "access was denied (%d) %.160s%.200s; %s", f->status, signed_with(f, with, sizeof with),
         store_message(f, words, sizeof words), remedy);
}

/* The store, or a proxy (407), wants credentials that were not sent. */
static void unauthorised(s3_failure *f) {
    char with[256];
    FAIL(f, STK_FETCH_LOST, "the %s requires authentication (%d); the request was sent %s",
         f->status == 407 ? "proxy" : "store", f->status, signed_with(f, with, sizeof with));
}

static void bad_key_id(s3_failure *f) {
    const char *source = f->access->credentials.source;
    FAIL(f, STK_FETCH_LOST,
         "%.100s does not know the access key id from %.100s; check it, and AWS_ENDPOINT_URL if "
         "it belongs to another store",
         store_name(f), source != NULL ? source : "nowhere");
}

static void bad_secret(s3_failure *f) {
    char with[256];
    FAIL(f, STK_FETCH_LOST,
         "the signature that was made %s is wrong: the secret key does not belong to the access "
         "key id",
         signed_with(f, with, sizeof with));
}

static void bad_token(s3_failure *f) {
    char with[256];
    FAIL(f, STK_FETCH_LOST, "the session token that was sent %s is not valid; get new credentials",
         signed_with(f, with, sizeof with));
}

static void expired(s3_failure *f) {
    char with[256];
    FAIL(f, STK_FETCH_LOST, "it was asked %s, and they have expired; get new ones",
         signed_with(f, with, sizeof with));
    f->request->recovery = STK_S3_RECOVERY_CREDENTIALS;
}

static void wrong_region(s3_failure *f) {
    const char *region = f->request->transfer.response.region[0] != '\0'
                             ? f->request->transfer.response.region
                             : f->body.region;
    if (region[0] == '\0') {
        FAIL(f, STK_FETCH_LOST,
             "the bucket is not in region %s (%d), and the answer does not say where it is; set "
             "AWS_REGION",
             f->request->region, f->status);
    } else if (stk_str_equal(region, f->request->region)) {
        FAIL(f, STK_FETCH_LOST,
             "the store sends requests elsewhere (%d%s%s) and names the region %s, for which they "
             "were signed; check AWS_ENDPOINT_URL and "
             "the bucket's name",
             f->status, space(f), f->body.code, region);
    } else {
        FAIL(f, STK_FETCH_LOST, "the bucket is in region %s, not in %s; set AWS_REGION=%s", region,
             f->request->region, region);
        f->request->recovery = STK_S3_RECOVERY_REGION;
        snprintf(f->request->right_region, sizeof f->request->right_region, "%s", region);
    }
}

static void wrong_time(s3_failure *f) {
    FAIL(f, STK_FETCH_LOST,
         "this machine's clock is more than 15 minutes off the store's, which takes no signatures "
         "from another time; set the clock");
    if (f->request->transfer.response.date[0] != '\0') {
        f->request->recovery = STK_S3_RECOVERY_CLOCK;
    }
}

static void archived(s3_failure *f) {
    FAIL(f, STK_FETCH_NEVER,
         "it is archived and cannot be read before somebody has it restored (403 "
         "InvalidObjectState)");
}

static void other(s3_failure *f) {
    char words[300];
    FAIL(f, f->key != NULL ? STK_FETCH_NEVER : STK_FETCH_LOST, "the store answered %d%s%s%s",
         f->status, space(f), f->body.code, store_message(f, words, sizeof words));
}

static const struct {
    const char *code;
    classify_failure *classify;
} codes[] = {
    {"NoSuchKey", no_key},
    {"NoSuchBucket", no_bucket},
    {"AccessDenied", denied},
    {"AllAccessDisabled", denied},
    {"InvalidAccessKeyId", bad_key_id},
    {"InvalidClientTokenId", bad_key_id},
    {"SignatureDoesNotMatch", bad_secret},
    {"InvalidToken", bad_token},
    {"ExpiredToken", expired},
    {"TokenRefreshRequired", expired},
    {"RequestTimeTooSkewed", wrong_time},
    {"RequestExpired", wrong_time},
    {"PermanentRedirect", wrong_region},
    {"TemporaryRedirect", wrong_region},
    {"Redirect", wrong_region},
    {"AuthorizationHeaderMalformed", wrong_region},
    {"IllegalLocationConstraintException", wrong_region},
    {"InvalidObjectState", archived},
    {"SlowDown", busy},
    {"SlowDownRead", busy},
    {"InternalError", busy},
    {"ServiceUnavailable", busy},
    {"RequestTimeout", busy},
    {"Throttling", busy},
    {"ThrottlingException", busy},
    {"RequestLimitExceeded", busy},
    {"TooManyRequests", busy},
};

static classify_failure *find_class(const s3_failure *f) {
    for (size_t i = 0; i < sizeof codes / sizeof *codes; i++) {
        if (stk_str_equal(f->body.code, codes[i].code)) {
            return codes[i].classify;
        }
    }
    switch (f->status) {
    case 301:
    case 302:
    case 307:
    case 308:
        return wrong_region;
    case 401:
    case 407:
        return unauthorised;
    case 403:
        return denied;
    case 404:
        return f->body.code[0] == '\0' ? no_key : other;
    case 408:
    case 425:
    case 429:
        return busy;
    default:
        return f->status >= 500 ? busy : other;
    }
}

/* The body has more bytes than it may have: for an object, more than were listed. */
static void too_large(s3_failure *f) {
    const stk_http_transfer *transfer = &f->request->transfer;
    size_t most = transfer->limit_bytes > 0 ? transfer->limit_bytes : transfer->max_bytes;
    char size[32];
    char came[64] = "more bytes came";
    if (transfer->response.has_length) {
        snprintf(came, sizeof came, "%llu bytes were to come",
                 (unsigned long long)transfer->response.length);
    }
    if (transfer->known_etag == NULL || transfer->known_bytes > most) {
        FAIL(f, STK_FETCH_NEVER, "it is larger than %s: %s",
             stk_format_bytes(size, sizeof size, most), came);
    } else {
        FAIL(f, STK_FETCH_NEVER,
             "%s where %llu were listed; the object was replaced since (--refresh lists again), or "
             "the store sends something else",
             came, (unsigned long long)transfer->known_bytes);
    }
}

/* There is no response, or none that can be used. */
static void classify_result(s3_failure *f) {
    const stk_http_transfer *transfer = &f->request->transfer;
    const char *reason = transfer->reason;
    switch (transfer->result) {
    case STK_HTTP_TRUNCATED:
        FAIL(f, STK_FETCH_DAMAGED, "the connection ended too early, after %zu bytes (%s)",
             transfer->body.size, reason);
        break;
    case STK_HTTP_TOO_LARGE:
        too_large(f);
        break;
    case STK_HTTP_OVER_MEMORY:
        FAIL(f, STK_FETCH_NO_MEMORY,
             "there is no memory for it beside the other reads; in training, raise "
             "--loader-memory");
        break;
    case STK_HTTP_BAD_HEADERS:
        FAIL(f, STK_FETCH_DAMAGED,
             "the head of the answer has more than %zu bytes; does AWS_ENDPOINT_URL name a store "
             "like S3?",
             STK_HTTP_HEADER_BYTES_MAX);
        break;
    case STK_HTTP_NO_RESPONSE:
        FAIL(f, STK_FETCH_AGAIN, STK_FETCH_NO_ANSWER "%s", reason);
        break;
    case STK_HTTP_BAD_CERTIFICATE:
        FAIL(f, STK_FETCH_LOST,
             "the store's certificate is not trusted (%s); AWS_CA_BUNDLE names a file of others "
             "to trust",
             reason);
        break;
    case STK_HTTP_NO_MEMORY:
        (void)stk_fetch_fail(f->result, STK_FETCH_NO_MEMORY, STK_ERR_MEMORY, "out of memory");
        break;
    case STK_HTTP_CANCELLED:
        f->result->verdict = STK_FETCH_CANCELLED;
        break;
    case STK_HTTP_BAD_SETTINGS:
    case STK_HTTP_ANSWERED:
        FAIL(f, STK_FETCH_LOST, "%s", reason);
        break;
    }
}

void stk_s3_classify(stk_s3_request *request, const stk_s3_access *access,
                     stk_fetch_result *result) {
    const stk_http_transfer *transfer = &request->transfer;
    s3_failure f = {.access = access,
                    .request = request,
                    .key = request->key.length > 0 ? request->key.text : NULL,
                    .status = transfer->response.status,
                    .result = result};
    request->recovery = STK_S3_RECOVERY_NONE;
    request->right_region[0] = '\0';
    result->wait_s = 0;
    if (transfer->result != STK_HTTP_ANSWERED) {
        classify_result(&f);
    } else if (f.status == 200 || f.status == 206 || (f.status == 416 && f.key != NULL)) {
        result->verdict = STK_FETCH_OK;
    } else {
        if (f.status / 100 != 2) {
            stk_s3_error_body_parse(transfer->body.data, transfer->body.size, &f.body);
        }
        find_class (&f)(&f);
    }
}

#endif
