/*
 * object_answers.c - see the header.
 */
#include "object_answers.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "object_list.h"

/* S3 takes signatures that are off by no more than this. */
#define MAX_SKEW_S (15 * 60)

int64_t os_now_ns(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

/* Sorts a request for a bucket: `rest` is the key, without a slash before it. */
static void find_in_bucket(const os_request *request, const char *rest, os_target *target) {
    bool is_get = strcmp(request->method, "GET") == 0;
    target->key = rest;
    if (!is_get && !target->is_head) {
        target->kind = OS_TARGET_NO_METHOD;
    } else if (rest[0] != '\0') {
        target->kind = OS_TARGET_OBJECT;
    } else {
        target->kind = is_get ? OS_TARGET_LIST : OS_TARGET_BUCKET;
    }
}

void os_target_find(os_server *server, const os_request *request, os_target *target) {
    const char *path = request->path;
    *target = (os_target){
        .kind = OS_TARGET_NO_BUCKET, .key = path, .is_head = strcmp(request->method, "HEAD") == 0};
    if (strcmp(path, "/_control") == 0) {
        target->kind = OS_TARGET_CONTROL;
        return;
    }
    if (strcmp(path, "/_stats") == 0) {
        target->kind = OS_TARGET_STATS;
        return;
    }
    if (server->credentials.is_on && os_credentials_owns(path)) {
        target->kind = OS_TARGET_CREDENTIALS;
        return;
    }
    /* The bucket may be the first part of the host's name: http://bucket.localhost:1234/key */
    const char *host = os_header(request, "host");
    size_t label = host != NULL ? strcspn(host, ".") : 0;
    if (label > 0 && host[label] == '.' &&
        (target->bucket = os_store_bucket(&server->store, host, label)) != NULL) {
        find_in_bucket(request, path + 1, target);
        return;
    }
    size_t size = strcspn(path + 1, "/");
    target->bucket = os_store_bucket(&server->store, path + 1, size);
    if (target->bucket != NULL) {
        find_in_bucket(request, path + 1 + size + (path[1 + size] == '/'), target);
    }
}

static void count_request(os_stats *stats, const os_target *target) {
    stats->requests++;
    stats->lists += target->kind == OS_TARGET_LIST;
    stats->credentials += target->kind == OS_TARGET_CREDENTIALS;
    if (target->kind == OS_TARGET_OBJECT) {
        stats->heads += target->is_head;
        stats->gets += !target->is_head;
    }
}

void os_target_plan(os_server *server, const os_request *request, const os_target *target,
                    os_plan *plan) {
    *plan = (os_plan){0};
    if (target->kind == OS_TARGET_CONTROL || target->kind == OS_TARGET_STATS) {
        return;
    }
    count_request(&server->stats, target);
    char *prefix = target->kind == OS_TARGET_LIST ? os_query_value(request->query, "prefix") : NULL;
    os_faults_plan(&server->faults, prefix != NULL ? prefix : target->key, !target->is_head,
                   os_now_ns(), plan);
    free(prefix);
    server->stats.delays += plan->delay_ns > 0;
    server->stats.tails += plan->is_tail;
}

void os_answer_error(os_answer *answer, const os_request *request, const char *code,
                     const char *key) {
    static const struct {
        const char *code;
        int status;
        const char *message;
    } all[] = {
        {"AccessDenied", 403, "Access Denied"},
        {"AuthorizationHeaderMalformed", 400, "The authorization header is malformed."},
        {"ExpiredToken", 400, "The provided token has expired."},
        {"GatewayTimeout", 504, "The gateway timed out."},
        {"BadGateway", 502, "The gateway got no answer."},
        {"InternalError", 500, "We encountered an internal error. Please try again."},
        {"InvalidAccessKeyId", 403, "The access key id does not exist in our records."},
        {"InvalidArgument", 400, "Invalid Argument"},
        {"InvalidRange", 416, "The requested range is not satisfiable"},
        {"InvalidToken", 400, "The provided token is malformed or otherwise invalid."},
        {"InvalidURI", 400, "Couldn't parse the specified URI."},
        {"MethodNotAllowed", 405, "The specified method is not allowed against this resource."},
        {"MissingSecurityHeader", 400, "Your request was missing a required header."},
        {"NoSuchBucket", 404, "The specified bucket does not exist"},
        {"NoSuchKey", 404, "The specified key does not exist."},
        {"PermanentRedirect", 301, "The bucket must be addressed using another endpoint."},
        {"PreconditionFailed", 412, "At least one of the pre-conditions did not hold"},
        {"RequestTimeTooSkewed", 403, "The time of the request and of the server differ too much."},
        {"SignatureDoesNotMatch", 403, "The signature we calculated does not match."},
        {"SlowDown", 503, "Please reduce your request rate."},
        {"TooManyRequests", 429, "Please reduce your request rate."},
    };
    int status = 403;
    const char *message = code;
    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++) {
        if (strcmp(all[i].code, code) == 0) {
            status = all[i].status;
            message = all[i].message;
        }
    }
    answer->body.size = 0;
    os_text_addf(&answer->body,
                 "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<Error><Code>%s</Code>"
                 "<Message>%s</Message>",
                 code, message);
    if (key != NULL) {
        os_text_addf(&answer->body, "<Key>");
        os_text_add_xml(&answer->body, key);
        os_text_addf(&answer->body, "</Key>");
    }
    os_text_addf(&answer->body, "<RequestId>0</RequestId></Error>");
    os_answer_text(answer, request, status, "application/xml");
}

/* Seconds from 1970 of a date spelled 20130524T000000Z, or -1. */
static int64_t read_amz_date(const char *text) {
    struct tm parts = {0};
    const char *end = strptime(text, "%Y%m%dT%H%M%SZ", &parts);
    return end != NULL && *end == '\0' ? (int64_t)timegm(&parts) : -1;
}

/* The error that a request's signature earns when it is looked at without being checked, or NULL.
 */
static const char *find_auth_error(const os_server *server, const os_request *request) {
    const char *signature = os_header(request, "authorization");
    const char *date = os_header(request, "x-amz-date");
    if (signature == NULL || strncmp(signature, "AWS4-HMAC-SHA256", 16) != 0 || date == NULL) {
        return "AccessDenied";
    }
    double off = (double)(read_amz_date(date) - time(NULL)) - server->faults.now.skew_s;
    if (off < -MAX_SKEW_S || off > MAX_SKEW_S) {
        return "RequestTimeTooSkewed";
    }
    if (os_header(request, "x-amz-content-sha256") == NULL) {
        return "MissingSecurityHeader";
    }
    if (server->access_key != NULL) {
        const char *key = strstr(signature, "Credential=");
        size_t size = strlen(server->access_key);
        if (key == NULL || strncmp(key + 11, server->access_key, size) != 0 ||
            key[11 + size] != '/') {
            return "InvalidAccessKeyId";
        }
    }
    if (server->session_token != NULL) {
        const char *token = os_header(request, "x-amz-security-token");
        return token != NULL && strcmp(token, server->session_token) == 0 ? NULL : "InvalidToken";
    }
    return NULL;
}

/* A Range header against a size: -1 when no byte of the object is in it, 0 when the whole object is
 * to be sent, as S3 does for headers that it does not understand, and 1 for a part. */
static int read_range(const char *text, uint64_t size, uint64_t *first, uint64_t *last) {
    *first = 0;
    *last = size - 1;
    if (text == NULL || strncasecmp(text, "bytes=", 6) != 0) {
        return 0;
    }
    text += 6;
    const char *dash = strchr(text, '-');
    bool has_first = dash != NULL && dash > text;
    bool has_last = dash != NULL && dash[1] != '\0';
    if ((!has_first && !has_last) || strspn(text, "0123456789-") != strlen(text) ||
        strchr(dash + 1, '-') != NULL) {
        return 0;
    }
    uint64_t from = has_first ? strtoull(text, NULL, 10) : 0;
    uint64_t to = has_last ? strtoull(dash + 1, NULL, 10) : UINT64_MAX;
    if (!has_first) { /* the last bytes, so many */
        from = to < size ? size - to : 0;
        if (to == 0 || size == 0) {
            return -1;
        }
        to = size - 1;
    } else if (to < from) {
        return 0;
    }
    if (from >= size) {
        return -1;
    }
    *first = from;
    *last = to < size ? to : size - 1;
    return 1;
}

static void answer_object(os_server *server, const os_request *request, const os_target *target,
                          const os_plan *plan, os_answer *answer) {
    os_object object;
    if (!os_store_find(&server->store, target->bucket, target->key, !target->is_head, &object)) {
        os_answer_error(answer, request, "NoSuchKey", target->key);
        return;
    }
    answer->fd = object.fd;
    const char *match = os_header(request, "if-match");
    size_t skipped = match != NULL && match[0] == '"';
    if (match != NULL && strncmp(match + skipped, object.etag, strlen(object.etag)) != 0) {
        os_answer_error(answer, request, "PreconditionFailed", target->key);
        return;
    }
    uint64_t first, last;
    int part = read_range(os_header(request, "range"), object.size, &first, &last);
    if (part < 0) {
        os_answer_error(answer, request, "InvalidRange", target->key);
        return;
    }
    uint64_t length = object.size > 0 ? last - first + 1 : 0;
    if (plan->fault == OS_FAULT_TRUNCATE && length > 1 && !target->is_head) {
        length = 1 + (uint64_t)(plan->where * (double)(length - 1));
        answer->fault = os_fault_name(OS_FAULT_TRUNCATE);
    }
    char date[40];
    os_http_date(object.modified, date);
    os_head_start(answer, request, part > 0 ? 206 : 200);
    os_text_addf(&answer->head, "ETag: \"%s\"\r\nLast-Modified: %s\r\nAccept-Ranges: bytes\r\n",
                 object.etag, date);
    if (part > 0) {
        os_text_addf(&answer->head, "Content-Range: bytes %llu-%llu/%llu\r\n",
                     (unsigned long long)first, (unsigned long long)(first + length - 1),
                     (unsigned long long)object.size);
    }
    os_head_end(answer, request, "binary/octet-stream", length);
    answer->offset = first;
    if (plan->fault == OS_FAULT_CORRUPT && answer->length > 0) {
        answer->flip_at = (uint64_t)(plan->where * (double)answer->length);
        answer->flip_mask = plan->mask;
        answer->fault = os_fault_name(OS_FAULT_CORRUPT);
    }
}

static void answer_control(os_server *server, const os_request *request, os_answer *answer) {
    os_text settings = {0};
    os_text_add(&settings, request->body, request->body_size);
    if (strcmp(request->method, "POST") != 0) {
        os_text_addf(&answer->body, "settings come as POST\n");
        os_answer_text(answer, request, 405, "text/plain");
    } else if (!os_faults_set(&server->faults, settings.bytes, os_now_ns(), &answer->body)) {
        os_text_addf(&answer->body, "\n");
        os_answer_text(answer, request, 400, "text/plain");
    } else {
        os_answer_text(answer, request, 200, "text/plain");
        if (server->faults.now.clear_stats > 0) {
            server->faults.now.clear_stats = 0;
            os_stats_clear(&server->stats);
        }
    }
    os_text_free(&settings);
}

static const char *code_of_status(int status) {
    switch (status) {
    case 429:
        return "TooManyRequests";
    case 502:
        return "BadGateway";
    case 503:
        return "SlowDown";
    case 504:
        return "GatewayTimeout";
    default:
        return "InternalError";
    }
}

/* Makes an answer that is only an error, by the plan or because of the request; false: none is due.
 */
static bool answer_refusal(os_server *server, const os_request *request, const os_target *target,
                           const os_plan *plan, os_answer *answer) {
    const char *code = NULL;
    if (plan->fault == OS_FAULT_FAIL) {
        code = code_of_status(plan->status);
    } else if (plan->fault == OS_FAULT_DENY) {
        code = server->faults.now.deny_code;
    } else if (plan->fault == OS_FAULT_MISSING) {
        code = "NoSuchKey";
    }
    if (code != NULL) {
        answer->fault = os_fault_name(plan->fault);
    } else if (target->kind == OS_TARGET_CREDENTIALS) {
        return false;
    } else if (server->require_auth) {
        code = find_auth_error(server, request);
    }
    if (code == NULL && target->kind == OS_TARGET_NO_BUCKET) {
        code = "NoSuchBucket";
    } else if (code == NULL && target->kind == OS_TARGET_NO_METHOD) {
        code = "MethodNotAllowed";
    }
    if (code != NULL) {
        os_answer_error(answer, request, code,
                        target->kind == OS_TARGET_OBJECT ? target->key : NULL);
    }
    return code != NULL;
}

/* Breaks off a finished answer as the plan says. */
static void break_off(const os_plan *plan, os_answer *answer) {
    switch (plan->fault) {
    case OS_FAULT_DROP:
        answer->end = plan->reset ? OS_END_RESET : OS_END_CLOSE;
        break;
    case OS_FAULT_STALL:
        answer->end = OS_END_SILENT;
        break;
    case OS_FAULT_CLOSE:
        answer->end = OS_END_CLOSE;
        answer->fault = os_fault_name(plan->fault);
        return;
    default:
        return;
    }
    answer->fault = os_fault_name(plan->fault);
    answer->stop_at = answer->length / 2;
    if (answer->length == 0) {
        answer->head.size = 0; /* there is no body to break off within */
    }
}

/* Bytes that an answer without an end is made of. */
#define ENDLESS_BYTES 65536

/* A head or a body that goes on until the client goes away. */
static void answer_endless(const os_request *request, const os_plan *plan, os_answer *answer) {
    static const char line[] = "X-Another: line\r\n";
    os_head_start(answer, request, plan->endless_status);
    if (plan->fault == OS_FAULT_ENDLESS && plan->told > 0) {
        os_text_addf(&answer->head, "Content-Length: %llu\r\n", (unsigned long long)plan->told);
    }
    if (plan->fault == OS_FAULT_ENDLESS) {
        os_text_addf(&answer->head, "Connection: close\r\n\r\n");
    } else if (!plan->many_lines) {
        os_text_addf(&answer->head, "X-Long: ");
    }
    while (answer->body.size < ENDLESS_BYTES) {
        bool lines = plan->fault == OS_FAULT_HEAD && plan->many_lines;
        os_text_addf(&answer->body, "%s", lines ? line : "endless-");
    }
    answer->endless = true;
    answer->length = plan->told;
    answer->stop_at = UINT64_MAX;
    answer->end = OS_END_CLOSE;
    answer->fault = os_fault_name(plan->fault);
}

static void answer_well(os_server *server, const os_request *request, const os_target *target,
                        const os_plan *plan, os_answer *answer) {
    switch (target->kind) {
    case OS_TARGET_CREDENTIALS:
        os_answer_credentials(&server->credentials, request, answer);
        break;
    case OS_TARGET_LIST:
        os_answer_list(server, request, target->bucket, answer);
        break;
    case OS_TARGET_BUCKET:
        os_answer_text(answer, request, 200, "application/xml");
        break;
    default:
        answer_object(server, request, target, plan, answer);
    }
}

void os_answer_make(os_server *server, const os_request *request, const os_target *target,
                    const os_plan *plan, os_answer *answer) {
    if (target->kind == OS_TARGET_CONTROL) {
        answer_control(server, request, answer);
        return;
    }
    if (target->kind == OS_TARGET_STATS) {
        os_stats_write(&server->stats, &answer->body);
        os_answer_text(answer, request, 200, "application/json");
        return;
    }
    if (plan->fault == OS_FAULT_REFUSE || plan->fault == OS_FAULT_HANG) {
        answer->end = plan->fault == OS_FAULT_HANG ? OS_END_SILENT : OS_END_RESET;
        answer->fault = os_fault_name(plan->fault);
    } else if (plan->fault == OS_FAULT_ENDLESS || plan->fault == OS_FAULT_HEAD) {
        answer_endless(request, plan, answer);
    } else if (plan->fault == OS_FAULT_EMPTY) {
        os_answer_text(answer, request, 200, "application/xml");
        answer->fault = os_fault_name(plan->fault);
    } else if (!answer_refusal(server, request, target, plan, answer)) {
        answer_well(server, request, target, plan, answer);
        break_off(plan, answer);
    }
    if (answer->fault != NULL) {
        server->stats.faults[plan->fault]++;
    }
    if (answer->status > 0) {
        server->stats.status[answer->status]++;
    }
}
