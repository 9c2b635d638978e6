/*
 * reader.c - the policy of reading at work: patience.h has its numbers, flights.h its terms.
 *
 * One thread, the watch, looks at all flights some times a second: what is too slow gets a second
 * attempt or is given up, what failed is tried again when its pause is over.
 *
 * Locks: the reader's is taken within those of its users, and the store's and the sources' within
 * the reader's. Sources are called without it where they may call back, and so are users.
 */
#include "storage/reading/reader.h"

#include <pthread.h>
#include <string.h>

#include "base/clock.h"
#include "base/error.h"
#include "base/mem.h"
#include "base/threads/thread.h"
#include "storage/reading/in_flight.h"

#define NS_PER_S 1000000000
#define TICK_NS 25000000

/* An attempt that has waited for its turn so long, while none came back, gets one more thread. */
#define HURRY_NS 50000000

/* After an outage reads are made again as if they had failed so often. */
#define SOON_FAILURES 3

/* How often a place that is silent is asked for what it had before. */
#define PROBE_NS 1000000000

/* What the watch found on its way through the flights. */
typedef struct findings {
    int64_t now_ns;
    bool starving;    /* an attempt waits long for its turn */
    bool silent;      /* a read has failed, and nothing has come since */
    bool only_doubts; /* there is no other read left to wait for */
} findings;

/* ---- the watch ---- */

/* Another reader of the store may have found out. */
static void look_for_loss(stk_reader *r) {
    if (r->lost.status == STK_OK) {
        (void)stk_store_is_lost(r->store, &r->lost);
    }
}

/* What other readers of the store have got, and how long nobody has. */
static void look_at_outage(stk_reader *r, int64_t now) {
    stk_outage *outage = &r->store->outage;
    int64_t answer_ns = atomic_load(&outage->answer_ns);
    if (answer_ns > r->patience.answer_ns) {
        stk_patience_answered(&r->patience, answer_ns);
    }
    if (r->lost.status == STK_OK && stk_outage_is_too_long(outage, now)) {
        stk_flights_lose_silent(r);
    }
}

/* Looks at one attempt of a flight. True when the flight is over. */
static bool look_at_attempt(stk_reader *r, flight *f, int which, findings *seen) {
    const attempt *a = f->attempts[which];
    int64_t now = seen->now_ns;
    int64_t started = atomic_load(&a->fetch.started_ns);
    if (started == 0) {
        seen->starving = seen->starving || now - a->begun_ns > HURRY_NS;
        return stk_patience_is_stuck(&r->patience, now, a->begun_ns) &&
               stk_flights_expire(r, f, which);
    }
    if (stk_patience_has_expired(&r->patience, now, started, atomic_load(&a->fetch.heard_ns))) {
        return stk_flights_expire(r, f, which);
    }
    if (!f->hedged && a->stage == STAGE_SOURCE && f->question.kind == STK_FETCH_BYTES &&
        stk_patience_hedge(&r->patience, now - started)) {
        stk_flights_hedge(r, f);
    }
    return false;
}

/* The place answers again: a flight that pauses need not do so for long; they differ, as pauses do.
 */
static void hasten(stk_reader *r, flight *f, int64_t now) {
    int64_t soon_ns = now + stk_patience_pause_ns(&r->patience, SOON_FAILURES, 0);
    f->retry_ns = soon_ns < f->retry_ns ? soon_ns : f->retry_ns;
    f->excused = false;
}

/* Looks at one flight. True when it is over. */
static bool look_after(stk_reader *r, flight *f, findings *seen) {
    if (f->ended) {
        stk_flights_land(r, f);
        return true;
    }
    if (f->generation < r->cancel_before || r->quit) {
        stk_flights_end_stopped(r, f);
        return true;
    }
    if (r->lost.status != STK_OK) {
        stk_flights_end_lost(r, f);
        return true;
    }
    if (f->doubt_ns > 0) {
        bool answered = r->patience.answer_ns > f->doubt_ns;
        if (answered) {
            stk_flights_land(r, f);
        }
        return answered;
    }
    if (f->retry_ns > 0 && f->excused && r->patience.answer_ns > f->missed_ns) {
        hasten(r, f, seen->now_ns);
    }
    if (f->retry_ns > 0 && seen->now_ns >= f->retry_ns) {
        stk_flights_go_on(r, f, NULL);
    }
    for (int i = 0; i < 2; i++) {
        if (f->attempts[i] != NULL && look_at_attempt(r, f, i, seen)) {
            return true;
        }
    }
    return false;
}

/* A flight that stays in the air. */
static void note_flight(const stk_reader *r, const flight *f, findings *seen) {
    if (f->read != &r->probe) {
        seen->only_doubts = seen->only_doubts && f->doubt_ns > 0;
        int64_t since_ns = stk_outage_counts(&r->store->outage) ? f->missed_ns : f->failed_ns;
        seen->silent = seen->silent || (f->failures > 0 && r->patience.answer_ns <= since_ns);
    }
}

/*
 * Asks the place for what it had before, once in a time-out at most; where outages are waited out
 * once in a second, since only its answers tell a bad object from one.
 */
static void probe(stk_reader *r, int64_t now) {
    int64_t pause_ns = r->patience.timeout_ns;
    if (stk_outage_counts(&r->store->outage) && pause_ns > PROBE_NS) {
        pause_ns = PROBE_NS;
    }
    if (r->known == NULL || r->probe_path != NULL || now - r->probe_ns < pause_ns) {
        return;
    }
    char *path = stk_mem_strdup(r->known);
    r->probe.path = path;
    flight *f = path != NULL
                    ? stk_flights_make(r, &r->probe, &(stk_question){.kind = STK_FETCH_BYTES})
                    : NULL;
    if (f == NULL) {
        stk_mem_free(path);
        return;
    }
    r->probe_path = path;
    r->probe_ns = now;
    f->hedged = true; /* second attempts are for those who need their bytes */
    stk_flights_launch(r, f);
}

static flight *add_to(flight *list, flight *f) {
    f->next = list;
    return f;
}

/* Takes all flights that are over into a list. */
static flight *inspect(stk_reader *r) {
    flight *over = NULL;
    findings seen = {.now_ns = stk_clock_ns(), .only_doubts = true};
    stk_patience_measure(&r->patience);
    look_for_loss(r);
    look_at_outage(r, seen.now_ns);
    for (flight *f = r->first, *next = NULL; f != NULL; f = next) {
        next = f->next;
        if (look_after(r, f, &seen)) {
            over = add_to(over, f);
        } else {
            note_flight(r, f, &seen);
        }
    }
    for (flight *f = r->first, *next = NULL; f != NULL && seen.only_doubts; f = next) {
        next = f->next;
        if (f->doubt_ns > 0 && r->lost.status == STK_OK) {
            stk_flights_land(r, f);
            over = add_to(over, f);
        }
    }
    if (seen.silent) {
        probe(r, seen.now_ns);
    }
    if (seen.starving && seen.now_ns - r->patience.answer_ns > HURRY_NS) {
        stk_reader_hurry(r);
    }
    return over;
}

static void sleep_a_tick(stk_reader *r) {
    if (r->quit || r->stirred) {
        return;
    }
    if (r->first == NULL) {
        r->idle = true;
        pthread_cond_wait(&r->wake, &r->lock);
        r->idle = false;
    } else {
        int64_t end = stk_clock_ns() + TICK_NS;
        struct timespec at = {.tv_sec = end / NS_PER_S, .tv_nsec = end % NS_PER_S};
        pthread_cond_timedwait(&r->wake, &r->lock, &at);
    }
}

static void *watch(void *argument) {
    stk_reader *r = argument;
    pthread_mutex_lock(&r->lock);
    while (!r->quit || r->first != NULL) {
        r->stirred = false;
        flight *over = inspect(r);
        stk_flights_cancel_unwanted(r);
        while (over != NULL) {
            flight *f = over;
            over = f->next;
            pthread_mutex_unlock(&r->lock);
            stk_flights_tell(r, f);
            pthread_mutex_lock(&r->lock);
        }
        sleep_a_tick(r);
    }
    pthread_mutex_unlock(&r->lock);
    return NULL;
}

/* ---- the reader's users ---- */

static void free_reader(stk_reader *r) {
    while (r->spare != NULL) {
        attempt *a = r->spare;
        r->spare = a->next;
        stk_mem_free(a);
    }
    pthread_cond_destroy(&r->calm);
    pthread_cond_destroy(&r->wake);
    pthread_mutex_destroy(&r->lock);
    stk_mem_free(r->known);
    stk_mem_free(r);
}

stk_status stk_reader_open(stk_reader **out, const stk_reader_config *config, stk_error *err) {
    stk_reader *r = stk_mem_new(1, sizeof *r);
    if (r == NULL) {
        return STK_FAIL_MEMORY(err, "reading");
    }
    pthread_condattr_t attributes;
    pthread_condattr_init(&attributes);
    pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
    pthread_mutex_init(&r->lock, NULL);
    pthread_cond_init(&r->wake, &attributes);
    pthread_cond_init(&r->calm, NULL);
    pthread_condattr_destroy(&attributes);
    r->config = *config;
    r->store = config->store;
    stk_patience_begin(&r->patience, r->store->options.read_timeout_s,
                       (uint64_t)stk_clock_ns() ^ (uint64_t)(uintptr_t)r);
    const stk_thread_config watching = {.what = "watches over reads"};
    stk_status status = stk_thread_start(&r->watch, &watching, watch, r, err);
    if (status != STK_OK) {
        free_reader(r);
        return status;
    }
    *out = r;
    return STK_OK;
}

void stk_reader_close(stk_reader *r) {
    if (r == NULL) {
        return;
    }
    pthread_mutex_lock(&r->lock);
    r->quit = true;
    stk_flights_stir(r);
    pthread_mutex_unlock(&r->lock);
    pthread_join(r->watch, NULL);
    pthread_mutex_lock(&r->lock);
    while (r->attempts > 0) {
        pthread_cond_wait(&r->calm, &r->lock);
    }
    pthread_mutex_unlock(&r->lock);
    free_reader(r);
}

bool stk_reader_ask(stk_reader *r, stk_read *read, const stk_question *question) {
    flight *f = stk_flights_make(r, read, question);
    if (f == NULL) {
        return false;
    }
    pthread_mutex_lock(&r->lock);
    stk_patience_add(&r->patience);
    look_for_loss(r);
    stk_flights_launch(r, f);
    if (r->idle) {
        r->idle = false;
        pthread_cond_signal(&r->wake);
    }
    pthread_mutex_unlock(&r->lock);
    return true;
}

bool stk_reader_submit(stk_reader *r, stk_read *read) {
    return stk_reader_ask(r, read, &(stk_question){.kind = STK_FETCH_BYTES});
}

void stk_reader_hurry(stk_reader *r) {
    stk_hands_hurry(r->store->hands);
    if (r->store->cache_hands != NULL) {
        stk_hands_hurry(r->store->cache_hands);
    }
}

void stk_reader_cancel(stk_reader *r) {
    pthread_mutex_lock(&r->lock);
    r->cancel_before = ++r->generation;
    stk_flights_stir(r);
    pthread_mutex_unlock(&r->lock);
}
