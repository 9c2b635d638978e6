/* classify.c - statuses and codes of S3, and of other stores that speak like it, to verdicts. */
#include "storage/s3/classify.h"

#ifdef STK_HAVE_S3

#include <stdio.h>
#include <string.h>

#include "base/error.h"
#include "base/str.h"

/* A store may ask for patience, but not for ever. */
#define WAIT_MAX_S 30.0

typedef struct judging {
    const stk_s3_question *question;
    const stk_http_request *request;
    stk_s3_complaint complaint;
    stk_s3_judgement *out;
    char what[700]; /* "cannot read s3://bucket/key" */
} judging;

typedef void judge(judging *j);

static const char *store_name(const judging *j) {
    return j->question->endpoint != NULL ? j->question->endpoint : "Amazon S3";
}

/* "the credentials from X", or why there are none. */
static const char *who(const judging *j, char *buf, size_t size) {
    const stk_s3_credentials *credentials = j->question->credentials;
    if (credentials->key_id != NULL) {
        snprintf(buf, size, "with the credentials from %s", credentials->source);
    } else if (j->question->anonymous) {
        snprintf(buf, size, "without a signature, as asked for");
    } else {
        snprintf(buf, size, "without a signature, since no credentials were found");
    }
    return buf;
}

static bool is_signed(const judging *j) {
    return j->question->credentials->key_id != NULL;
}

/* Whether words have a secret in them, of which the beginning is enough: they may be cut. */
static bool has_secret(const char *words, const char *secret) {
    char start[9];
    if (secret == NULL || secret[0] == '\0') {
        return false;
    }
    snprintf(start, sizeof start, "%.8s", secret);
    return strstr(words, start) != NULL;
}

/* The store's own words, where they are harmless, or "". */
static const char *said(const judging *j, char *buf, size_t size) {
    const stk_s3_credentials *c = j->question->credentials;
    const char *message = j->complaint.message;
    bool tells = has_secret(message, c->key_id) || has_secret(message, c->secret) ||
                 has_secret(message, c->token) || strstr(message, "ignature=") != NULL;
    snprintf(buf, size, "%s%s", message[0] != '\0' && !tells ? ": " : "", tells ? "" : message);
    return buf;
}

static void give(judging *j, stk_fetch_verdict verdict, const char *cause) {
    stk_error_clear(&j->out->error);
    j->out->verdict = verdict;
    (void)STK_FAIL(&j->out->error, STK_ERR_STORAGE, "%s: %s", j->what, cause);
}

static void busy(judging *j) {
    char words[256];
    char cause[400];
    snprintf(cause, sizeof cause, "the store does not serve it now (%d%s%s)%s",
             j->request->answer.status, j->complaint.code[0] != '\0' ? " " : "", j->complaint.code,
             said(j, words, sizeof words));
    give(j, STK_FETCH_AGAIN, cause);
    double wait_s = j->request->answer.retry_after_s;
    j->out->wait_s = wait_s < WAIT_MAX_S ? wait_s : WAIT_MAX_S;
}

static void no_key(judging *j) {
    const stk_s3_question *q = j->question;
    if (q->key == NULL) {
        give(j, STK_FETCH_LOST, "the store does not know it (404)");
        return;
    }
    stk_error_clear(&j->out->error);
    j->out->verdict = STK_FETCH_NEVER;
    (void)STK_FAIL(
        &j->out->error, STK_ERR_STORAGE,
        "no object %.700s in bucket %s (404): it was deleted since the bucket was listed; "
        "--refresh lists again",
        q->key, q->bucket);
}

static void no_bucket(judging *j) {
    const stk_s3_question *q = j->question;
    stk_error_clear(&j->out->error);
    j->out->verdict = STK_FETCH_LOST;
    (void)STK_FAIL(&j->out->error, STK_ERR_DATA, "%s: %s has no bucket %s; check its name%s",
                   j->what, store_name(j), q->bucket,
                   q->endpoint == NULL ? ", and AWS_ENDPOINT_URL if it is in another store"
                                       : " and AWS_ENDPOINT_URL");
}

static void denied(judging *j) {
    char with[256];
    char words[300];
    char cause[800];
    const stk_s3_question *q = j->question;
    const char *remedy = is_signed(j) ? (q->key != NULL ? "they need s3:GetObject for it"
                                                        : "they need s3:ListBucket for the bucket")
                         : q->anonymous
                             ? "it is not public, so that requests must be signed"
                             : "set AWS_PROFILE, or AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY";
    snprintf(cause, sizeof cause, "access was denied (%d) %s%s; %s", j->request->answer.status,
             who(j, with, sizeof with), said(j, words, sizeof words), remedy);
    give(j, q->key != NULL ? STK_FETCH_NEVER : STK_FETCH_LOST, cause);
}

/* Somebody who is asked for a name and gives none, or a proxy that wants one. */
static void unauthorised(judging *j) {
    char with[256];
    char cause[400];
    snprintf(cause, sizeof cause, "the %s asks who is asking (%d); it was asked %s",
             j->request->answer.status == 407 ? "proxy" : "store", j->request->answer.status,
             who(j, with, sizeof with));
    give(j, STK_FETCH_LOST, cause);
}

static void bad_key_id(judging *j) {
    char cause[400];
    const char *source = j->question->credentials->source;
    snprintf(
        cause, sizeof cause,
        "%.100s does not know the access key id from %.100s; check it, and AWS_ENDPOINT_URL if "
        "it belongs to another store",
        store_name(j), source != NULL ? source : "nowhere");
    give(j, STK_FETCH_LOST, cause);
}

static void bad_secret(judging *j) {
    char with[256];
    char cause[400];
    snprintf(
        cause, sizeof cause,
        "the signature that was made %s is wrong: the secret key does not belong to the access "
        "key id",
        who(j, with, sizeof with));
    give(j, STK_FETCH_LOST, cause);
}

static void bad_token(judging *j) {
    char with[256];
    char cause[400];
    snprintf(cause, sizeof cause,
             "the session token that was sent %s is not valid; get new credentials",
             who(j, with, sizeof with));
    give(j, STK_FETCH_LOST, cause);
}

static void expired(judging *j) {
    char with[256];
    char cause[400];
    snprintf(cause, sizeof cause, "it was asked %s, and they have expired; get new ones",
             who(j, with, sizeof with));
    give(j, STK_FETCH_LOST, cause);
    j->out->cure = STK_S3_CURE_CREDENTIALS;
}

static void wrong_region(judging *j) {
    char cause[400];
    const char *region =
        j->request->answer.region[0] != '\0' ? j->request->answer.region : j->complaint.region;
    if (region[0] == '\0') {
        snprintf(
            cause, sizeof cause,
            "the bucket is not in region %s (%d), and the answer does not say where it is; set "
            "AWS_REGION",
            j->question->region, j->request->answer.status);
        give(j, STK_FETCH_LOST, cause);
        return;
    }
    if (stk_str_equal(region, j->question->region)) {
        snprintf(cause, sizeof cause,
                 "the store sends requests elsewhere (%d%s%s) and names the region %s, for which "
                 "they were signed; check AWS_ENDPOINT_URL and the bucket's name",
                 j->request->answer.status, j->complaint.code[0] != '\0' ? " " : "",
                 j->complaint.code, region);
        give(j, STK_FETCH_LOST, cause);
        return;
    }
    snprintf(cause, sizeof cause, "the bucket is in region %s, not in %s; set AWS_REGION=%s",
             region, j->question->region, region);
    give(j, STK_FETCH_LOST, cause);
    j->out->cure = STK_S3_CURE_REGION;
    snprintf(j->out->region, sizeof j->out->region, "%s", region);
}

static void wrong_time(judging *j) {
    give(j, STK_FETCH_LOST,
         "this machine's clock is more than 15 minutes off the store's, which takes no signatures "
         "from another time; set the clock");
    if (j->request->answer.date[0] != '\0') {
        j->out->cure = STK_S3_CURE_CLOCK;
    }
}

static void archived(judging *j) {
    give(j, STK_FETCH_NEVER,
         "it is archived and cannot be read before somebody has it restored (403 "
         "InvalidObjectState)");
}

static void other(judging *j) {
    char words[300];
    char cause[500];
    snprintf(cause, sizeof cause, "the store answered %d%s%s%s", j->request->answer.status,
             j->complaint.code[0] != '\0' ? " " : "", j->complaint.code,
             said(j, words, sizeof words));
    give(j, j->question->key != NULL ? STK_FETCH_NEVER : STK_FETCH_LOST, cause);
}

/* What the code says counts; the status where there is none. */
static const struct {
    const char *code;
    judge *judge;
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

static judge *judge_of(const judging *j) {
    for (size_t i = 0; i < sizeof codes / sizeof *codes; i++) {
        if (stk_str_equal(j->complaint.code, codes[i].code)) {
            return codes[i].judge;
        }
    }
    int status = j->request->answer.status;
    switch (status) {
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
        return j->complaint.code[0] == '\0' ? no_key : other;
    case 408:
    case 425:
    case 429:
        return busy;
    default:
        return status >= 500 ? busy : other;
    }
}

/* The body has more bytes than it may have; an object has those that were listed. */
static void too_large(judging *j) {
    const stk_http_head *answer = &j->request->answer;
    const uint64_t *listed = j->question->listed;
    size_t most = j->request->limit_bytes > 0 ? j->request->limit_bytes : j->request->max_bytes;
    char cause[400];
    char size[32];
    char came[64] = "more bytes came";
    if (answer->has_length) {
        snprintf(came, sizeof came, "%llu bytes were to come", (unsigned long long)answer->length);
    }
    if (listed == NULL || *listed > most) {
        snprintf(cause, sizeof cause, "it is larger than %s: %s",
                 stk_format_bytes(size, sizeof size, most), came);
    } else {
        snprintf(cause, sizeof cause,
                 "%s where %llu were listed; the object was replaced since (--refresh lists "
                 "again), or the store sends something else",
                 came, (unsigned long long)*listed);
    }
    give(j, STK_FETCH_NEVER, cause);
}

/* No answer at all, or none that can be used. */
static void judge_end(judging *j) {
    const char *reason = j->request->reason;
    char cause[512];
    switch (j->request->end) {
    case STK_HTTP_CUT_OFF:
        snprintf(cause, sizeof cause, "the connection ended too early, after %zu bytes (%s)",
                 j->request->bytes->size, reason);
        give(j, STK_FETCH_DAMAGED, cause);
        break;
    case STK_HTTP_TOO_LARGE:
        too_large(j);
        break;
    case STK_HTTP_NO_ROOM:
        give(j, STK_FETCH_AGAIN,
             "there is no memory for it beside the other reads; raise --loader-memory");
        break;
    case STK_HTTP_BAD_HEAD:
        snprintf(cause, sizeof cause,
                 "the head of the answer has more than %zu bytes; does AWS_ENDPOINT_URL name a "
                 "store like S3?",
                 STK_HTTP_HEAD_MAX);
        give(j, STK_FETCH_DAMAGED, cause);
        break;
    case STK_HTTP_NO_ANSWER:
        snprintf(cause, sizeof cause, "no answer: %s", reason);
        give(j, STK_FETCH_AGAIN, cause);
        break;
    case STK_HTTP_UNTRUSTED:
        snprintf(
            cause, sizeof cause,
            "the store's certificate is not trusted (%s); AWS_CA_BUNDLE names a file of others "
            "to trust",
            reason);
        give(j, STK_FETCH_LOST, cause);
        break;
    case STK_HTTP_NO_MEMORY:
        j->out->verdict = STK_FETCH_AGAIN;
        (void)STK_FAIL_MEMORY(&j->out->error, j->what);
        break;
    case STK_HTTP_CANCELLED:
        j->out->verdict = STK_FETCH_CANCELLED;
        break;
    case STK_HTTP_IMPOSSIBLE:
    case STK_HTTP_ANSWERED:
        snprintf(cause, sizeof cause, "%s", reason);
        give(j, STK_FETCH_LOST, cause);
        break;
    }
}

void stk_s3_judge(const stk_http_request *request, const stk_s3_question *question,
                  stk_s3_judgement *judgement) {
    memset(judgement, 0, sizeof *judgement);
    int status = request->answer.status;
    if (request->end == STK_HTTP_ANSWERED &&
        (status == 200 || status == 206 || (status == 416 && question->key != NULL))) {
        judgement->verdict = STK_FETCH_OK;
        return;
    }
    judging j = {.question = question, .request = request, .out = judgement};
    if (question->key != NULL) {
        snprintf(j.what, sizeof j.what, "cannot read s3://%s/%s", question->bucket, question->key);
    } else {
        snprintf(j.what, sizeof j.what, "cannot list %s", question->place);
    }
    if (request->end != STK_HTTP_ANSWERED) {
        judge_end(&j);
        return;
    }
    if (status / 100 != 2) {
        stk_s3_complaint_parse(request->bytes->data, request->bytes->size, &j.complaint);
    }
    judge_of (&j)(&j);
}

#endif
