/* s3_place.h - the S3 source used directly: attempts that a test waits for, and what it tells. */
#ifndef STK_TESTS_S3_PLACE_H
#define STK_TESTS_S3_PLACE_H

#include "aws_home.h"

#include <pthread.h>

#include "base/error.h"
#include "storage/source.h"

/* Attempts that a test has begun. */
typedef struct s3_inbox {
    pthread_mutex_t lock;
    pthread_cond_t more;
    int count; /* that have ended */
} s3_inbox;

static s3_inbox s3_ended = {PTHREAD_MUTEX_INITIALIZER, PTHREAD_COND_INITIALIZER, 0};

static inline void s3_done(stk_fetch *fetch) {
    (void)fetch;
    pthread_mutex_lock(&s3_ended.lock);
    s3_ended.count++;
    pthread_cond_broadcast(&s3_ended.more);
    pthread_mutex_unlock(&s3_ended.lock);
}

/* Waits until so many attempts have ended since the last time, and counts anew. */
static inline void s3_wait(int count) {
    pthread_mutex_lock(&s3_ended.lock);
    while (s3_ended.count < count) {
        pthread_cond_wait(&s3_ended.more, &s3_ended.lock);
    }
    s3_ended.count -= count;
    pthread_mutex_unlock(&s3_ended.lock);
}

static inline void s3_begin(void *place, stk_fetch *fetch, const char *path) {
    fetch->kind = STK_FETCH_BYTES;
    fetch->path = path;
    fetch->done = s3_done;
    if (!stk_storage_s3.begin(place, fetch)) {
        printf("no memory\n");
        exit(1);
    }
}

/* One attempt, from begin to done. */
static inline stk_fetch_verdict s3_fetch(void *place, stk_fetch *fetch, const char *path) {
    s3_begin(place, fetch, path);
    s3_wait(1);
    CHECK(fetch->serving == NULL);
    return fetch->result.verdict;
}

/* What was told while a place was opened. */
typedef struct s3_told {
    char decisions[4][512]; /* "what: why" */
    int decision_count;
    char warnings[4][512];
    int warning_count;
} s3_told;

static inline void s3_on_decision(void *user, const stk_event_decision *event) {
    s3_told *told = user;
    if (told->decision_count < 4) {
        snprintf(told->decisions[told->decision_count++], sizeof told->decisions[0], "%s: %s",
                 event->what, event->why);
    }
}

static inline void s3_on_warning(void *user, const char *message) {
    s3_told *told = user;
    if (told->warning_count < 4) {
        snprintf(told->warnings[told->warning_count++], sizeof told->warnings[0], "%s", message);
    }
}

typedef struct s3_opening {
    const char *kept;
    bool refresh;
    bool anonymous;
    double timeout_s; /* 0: 20 s */
} s3_opening;

static inline stk_status s3_open(void **place, const char *root, s3_opening opening, s3_told *told,
                                 stk_error *err) {
    stk_storage_options options = {.refresh = opening.refresh,
                                   .anonymous = opening.anonymous,
                                   .read_timeout_s =
                                       opening.timeout_s > 0 ? opening.timeout_s : 20};
    stk_observer observer = {.user = told, .decision = s3_on_decision, .warning = s3_on_warning};
    stk_events events = {0};
    if (told != NULL) {
        memset(told, 0, sizeof *told);
        stk_events_add(&events, &observer);
    }
    return stk_storage_s3.open(place, root, &options, opening.kept, &events, err);
}

/* An environment with nothing but keys and an endpoint on this machine. */
static inline void s3_environment(int port) {
    char url[64];
    snprintf(url, sizeof url, "http://127.0.0.1:%d", port);
    (void)aws_fresh_home();
    setenv("AWS_ENDPOINT_URL", url, 1);
    setenv("AWS_ACCESS_KEY_ID", "AKIATESTTEST", 1);
    setenv("AWS_SECRET_ACCESS_KEY", "testSecretHush", 1);
    setenv("AWS_EC2_METADATA_DISABLED", "true", 1);
    setenv("no_proxy", "127.0.0.1", 1);
}

#endif
