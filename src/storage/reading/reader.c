/*
 * reader.c - the watch: a thread that looks at all reads in flight, 40 times a second.
 *
 * It gives up attempts that take too long, hedges slow ones, and begins the next attempt of a
 * failed read when its backoff is over. What follows from a failure is decided in in_flight.c.
 *
 * Locks: the reader's is taken within those of its users, and the store's and the sources' within
 * the reader's. So an attempt begins, and an S3 request is signed, under the locks of the loader
 * and the reader: tens of microseconds. Where a source or a user may call back, the reader calls it
 * without its lock.
 */
#include "storage/reading/reader.h"

#include <pthread.h>

#include "base/clock.h"
#include "base/error.h"
#include "base/mem.h"
#include "base/threads/thread.h"
#include "storage/reading/in_flight.h"

#define TICK_NS 25000000

/* When an attempt has waited for its turn this long, the source starts one more thread. */
#define HURRY_NS 50000000

/* After an outage, reads wait as long as after this many failures. */
#define SOON_FAILURES 3

/* How often the probe is read while the location is silent. */
#define PROBE_NS 1000000000

/* What the watch found on its way through the reads. */
typedef struct findings {
    int64_t now_ns;
    bool starving;     /* an attempt waits long for its turn */
    bool silent;       /* a read has failed, and no read has got an answer since */
    bool all_deferred; /* only reads are left whose failure is deferred */
} findings;

/* ---- the watch ---- */

/* Another reader of the store may have found that the location is lost. */
static void look_for_loss(stk_reader *r) {
    if (r->lost.status == STK_OK) {
        (void)stk_store_is_lost(r->store, &r->lost);
    }
}

/* Notes answers that other readers got; gives the location up when an outage lasts too long. */
static void look_at_outage(stk_reader *r, int64_t now) {
    stk_outage *outage = &r->store->outage;
    int64_t answer_ns = atomic_load(&outage->answer_ns);
    if (answer_ns > r->policy.answer_ns) {
        stk_read_policy_note_answer(&r->policy, answer_ns);
    }
    if (r->lost.status == STK_OK && stk_outage_is_too_long(outage, now)) {
        stk_reader_lose_after_outage(r);
    }
}

/* Looks at one attempt of a read. True when the read is over. */
static bool look_at_attempt(stk_reader *r, stk_active_read *active, int which, findings *seen) {
    const stk_read_attempt *a = active->attempts[which];
    int64_t now = seen->now_ns;
    int64_t started = atomic_load(&a->fetch.started_ns);
    if (started == 0) {
        seen->starving = seen->starving || now - a->begun_ns > HURRY_NS;
        return stk_read_policy_is_stuck(&r->policy, now, a->begun_ns) &&
               stk_active_read_time_out(r, active, which);
    }
    if (stk_read_policy_has_timed_out(&r->policy, now, started, atomic_load(&a->fetch.heard_ns))) {
        return stk_active_read_time_out(r, active, which);
    }
    if (!active->hedged && a->kind == ATTEMPT_SOURCE && active->read->kind == STK_FETCH_BYTES &&
        stk_read_policy_take_hedge(&r->policy, now - started)) {
        stk_active_read_hedge(r, active);
    }
    return false;
}

/* The location answers again: reads that wait need not wait long, with random spread. */
static void hasten(stk_reader *r, stk_active_read *active, int64_t now) {
    int64_t soon_ns = now + stk_read_policy_backoff_ns(&r->policy, SOON_FAILURES, 0);
    active->retry_ns = soon_ns < active->retry_ns ? soon_ns : active->retry_ns;
    active->hasten = false;
}

/* Looks at one read. True when it is over. */
static bool look_after(stk_reader *r, stk_active_read *active, findings *seen) {
    if (active->ended) {
        stk_active_read_remove(r, active);
        return true;
    }
    if (active->generation < r->cancel_before || r->quit) {
        stk_active_read_end_stopped(r, active);
        return true;
    }
    if (r->lost.status != STK_OK) {
        stk_active_read_end_lost(r, active);
        return true;
    }
    if (active->deferred_ns > 0) {
        bool answered = r->policy.answer_ns > active->deferred_ns;
        if (answered) {
            stk_active_read_remove(r, active);
        }
        return answered;
    }
    if (active->retry_ns > 0 && active->hasten && r->policy.answer_ns > active->last_failed_ns) {
        hasten(r, active, seen->now_ns);
    }
    if (active->retry_ns > 0 && seen->now_ns >= active->retry_ns) {
        stk_active_read_continue(r, active, NULL);
    }
    for (int i = 0; i < 2; i++) {
        if (active->attempts[i] != NULL && look_at_attempt(r, active, i, seen)) {
            return true;
        }
    }
    return false;
}

/* Notes a read that stays in flight. */
static void note_read(const stk_reader *r, const stk_active_read *active, findings *seen) {
    if (active->read != &r->probe) {
        seen->all_deferred = seen->all_deferred && active->deferred_ns > 0;
        int64_t since_ns = stk_outage_is_waited_out(&r->store->outage) ? active->last_failed_ns
                                                                       : active->first_failed_ns;
        seen->silent = seen->silent || (active->failures > 0 && r->policy.answer_ns <= since_ns);
    }
}

/*
 * Rereads an object that is known to exist, to tell a bad object from an outage: once per time-out
 * at most, and once a second where outages are waited out.
 */
static void probe(stk_reader *r, int64_t now) {
    int64_t pause_ns = r->policy.timeout_ns;
    if (stk_outage_is_waited_out(&r->store->outage) && pause_ns > PROBE_NS) {
        pause_ns = PROBE_NS;
    }
    if (r->known == NULL || r->probe_path != NULL || now - r->probe_ns < pause_ns) {
        return;
    }
    char *path = stk_mem_strdup(r->known);
    r->probe.path = path;
    stk_active_read *active = path != NULL ? stk_active_read_new(r, &r->probe) : NULL;
    if (active == NULL) {
        stk_mem_free(path);
        return;
    }
    r->probe_path = path;
    r->probe_ns = now;
    active->hedged = true; /* the probe gets no hedge: nobody needs its bytes */
    stk_active_read_start(r, active);
}

static stk_active_read *add_to(stk_active_read *list, stk_active_read *active) {
    active->next = list;
    return active;
}

/* Looks at all reads and returns a list of those that are over. */
static stk_active_read *inspect(stk_reader *r) {
    stk_active_read *over = NULL;
    findings seen = {.now_ns = stk_clock_ns(), .all_deferred = true};
    stk_read_policy_update_median(&r->policy);
    look_for_loss(r);
    look_at_outage(r, seen.now_ns);
    for (stk_active_read *active = r->first, *next = NULL; active != NULL; active = next) {
        next = active->next;
        if (look_after(r, active, &seen)) {
            over = add_to(over, active);
        } else {
            note_read(r, active, &seen);
        }
    }
    for (stk_active_read *active = r->first, *next = NULL; active != NULL && seen.all_deferred;
         active = next) {
        next = active->next;
        if (active->deferred_ns > 0 && r->lost.status == STK_OK) {
            stk_active_read_remove(r, active);
            over = add_to(over, active);
        }
    }
    if (seen.silent) {
        probe(r, seen.now_ns);
    }
    if (seen.starving && seen.now_ns - r->policy.answer_ns > HURRY_NS) {
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
        (void)stk_cond_wait_until(&r->wake, &r->lock, stk_clock_ns() + TICK_NS);
    }
}

static void *watch(void *argument) {
    stk_reader *r = argument;
    pthread_mutex_lock(&r->lock);
    while (!r->quit || r->first != NULL) {
        r->stirred = false;
        stk_active_read *over = inspect(r);
        stk_reader_cancel_unwanted(r);
        while (over != NULL) {
            stk_active_read *active = over;
            over = active->next;
            pthread_mutex_unlock(&r->lock);
            stk_active_read_report(r, active);
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
        stk_read_attempt *a = r->spare;
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
    pthread_mutex_init(&r->lock, NULL);
    stk_cond_init(&r->wake);
    pthread_cond_init(&r->calm, NULL);
    r->config = *config;
    r->store = config->store;
    stk_read_policy_init(&r->policy, r->store->options.read_timeout_s,
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
    stk_reader_wake(r);
    pthread_mutex_unlock(&r->lock);
    pthread_join(r->watch, NULL);
    pthread_mutex_lock(&r->lock);
    while (r->attempts > 0) {
        pthread_cond_wait(&r->calm, &r->lock);
    }
    pthread_mutex_unlock(&r->lock);
    free_reader(r);
}

bool stk_reader_submit(stk_reader *r, stk_read *read) {
    stk_active_read *active = stk_active_read_new(r, read);
    if (active == NULL) {
        return false;
    }
    pthread_mutex_lock(&r->lock);
    stk_read_policy_count_read(&r->policy);
    look_for_loss(r);
    stk_active_read_start(r, active);
    if (r->idle) {
        r->idle = false;
        pthread_cond_signal(&r->wake);
    }
    pthread_mutex_unlock(&r->lock);
    return true;
}

void stk_reader_hurry(stk_reader *r) {
    stk_store_hurry(r->store);
}

void stk_reader_cancel(stk_reader *r) {
    pthread_mutex_lock(&r->lock);
    r->cancel_before = ++r->generation;
    stk_reader_wake(r);
    pthread_mutex_unlock(&r->lock);
}
