/* renew.c - a detached thread, and the struct that it shares with the client. */
#include "storage/s3/renew.h"

#ifdef STK_HAVE_S3

#include <pthread.h>

#include "base/clock.h"
#include "base/error.h"
#include "base/mem.h"
#include "base/threads/thread.h"
#include "storage/s3/providers.h"

/* Least time between two renewals: a provider would give the same answer again. */
#define URGENT_PAUSE_S 5.0
#define EASY_PAUSE_S 60.0

struct stk_s3_renewal {
    pthread_mutex_t lock;
    stk_s3_renewed *renewed; /* NULL: closed; lock */
    void *user;              /* the argument of `renewed` */
    bool running;            /* the thread runs; it frees this struct if it is closed then; lock */
    bool has_ended;          /* a renewal has ended; lock */
    int64_t ended_ns;        /* when the last one did; lock */
};

static void destroy(stk_s3_renewal *r) {
    pthread_mutex_destroy(&r->lock);
    stk_mem_free(r);
}

static void *find_again(void *argument) {
    stk_s3_renewal *r = argument;
    stk_s3_settings settings = {0};
    stk_s3_credentials found = {0};
    stk_error ignored = {0}; /* the old credentials stay in use until the store refuses them */
    bool good = stk_s3_settings_load(&settings, &ignored) == STK_OK &&
                stk_s3_credentials_find(&settings, &found, &ignored) == STK_OK;
    pthread_mutex_lock(&r->lock);
    if (good && r->renewed != NULL) {
        r->renewed(r->user, &found);
    }
    r->running = false;
    r->has_ended = true;
    r->ended_ns = stk_clock_ns();
    bool closed = r->renewed == NULL;
    pthread_mutex_unlock(&r->lock);
    if (closed) {
        destroy(r);
    }
    stk_s3_credentials_free(&found);
    stk_s3_settings_free(&settings);
    return NULL;
}

stk_status stk_s3_renewal_open(stk_s3_renewal **renewal, stk_s3_renewed *renewed, void *user,
                               stk_error *err) {
    stk_s3_renewal *r = stk_mem_new(1, sizeof *r);
    if (r == NULL) {
        return STK_FAIL_MEMORY(err, "credentials");
    }
    pthread_mutex_init(&r->lock, NULL);
    r->renewed = renewed;
    r->user = user;
    *renewal = r;
    return STK_OK;
}

void stk_s3_renewal_close(stk_s3_renewal *r) {
    if (r == NULL) {
        return;
    }
    pthread_mutex_lock(&r->lock);
    r->renewed = NULL;
    bool running = r->running;
    pthread_mutex_unlock(&r->lock);
    if (!running) {
        destroy(r);
    }
}

bool stk_s3_renewal_begin(stk_s3_renewal *r, bool urgent) {
    pthread_mutex_lock(&r->lock);
    double pause_s = urgent ? URGENT_PAUSE_S : EASY_PAUSE_S;
    if (!r->running && !(r->has_ended && stk_clock_since_s(r->ended_ns) < pause_s)) {
        const stk_thread_config config = {.what = "renews credentials", .detached = true};
        r->running = stk_thread_start(NULL, &config, find_again, r, NULL) == STK_OK;
    }
    bool running = r->running;
    pthread_mutex_unlock(&r->lock);
    return running;
}

#endif
