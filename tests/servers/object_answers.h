/*
 * object_answers.h - what the test server answers to a request.
 *
 * A request is first sorted (os_target_find), then its faults are drawn, and when their delay has
 * passed the answer is made (os_answer_make).
 */
#ifndef OBJECT_ANSWERS_H
#define OBJECT_ANSWERS_H

#include <stdbool.h>

#include "object_credentials.h"
#include "object_faults.h"
#include "object_http.h"
#include "object_stats.h"
#include "object_store.h"

typedef enum os_target_kind {
    OS_TARGET_CONTROL,
    OS_TARGET_STATS,
    OS_TARGET_CREDENTIALS,
    OS_TARGET_LIST,
    OS_TARGET_BUCKET, /* HEAD of a bucket */
    OS_TARGET_OBJECT,
    OS_TARGET_NO_BUCKET,
    OS_TARGET_NO_METHOD,
} os_target_kind;

typedef struct os_target {
    os_target_kind kind;
    os_bucket *bucket;
    const char *key; /* of an object, or the path; points into the request */
    bool is_head;
} os_target;

/* All that the server knows; the loop drives it. */
typedef struct os_server {
    os_store store;
    os_credentials credentials;
    os_faults faults;
    os_stats stats;
    bool require_auth;
    const char *access_key;    /* requests must be signed with this key; NULL: with any */
    const char *session_token; /* and must bring this token; NULL: no matter */
    int page;                  /* keys of a page at most */
} os_server;

/* Nanoseconds of a clock that never jumps. */
int64_t os_now_ns(void);

void os_target_find(os_server *server, const os_request *request, os_target *target);

/* Draws the faults of a request and counts it. /_control and /_stats have none. */
void os_target_plan(os_server *server, const os_request *request, const os_target *target,
                    os_plan *plan);

/* Makes the answer, with the faults of the plan in it. */
void os_answer_make(os_server *server, const os_request *request, const os_target *target,
                    const os_plan *plan, os_answer *answer);

/* An error in S3's form, with the status that belongs to its code; `key` may be NULL. */
void os_answer_error(os_answer *answer, const os_request *request, const char *code,
                     const char *key);

#endif
