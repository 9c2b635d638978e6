/*
 * reader.c - the policy of reading: when to try, to try again, to try twice, and to give up.
 *
 * A read that is under way is a flight. It has at most two attempts at a time; an attempt belongs
 * to its source until done, so one that is not wanted any more is cut loose from its flight,
 * cancelled and dropped when it ends. One thread, the watch, looks at all flights some times a
 * second: what is too slow gets a second attempt or is given up, what failed is tried again when
 * its pause is over. Sources are called without the lock where they may call back.
 */
#include "storage/reader.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "base/checksum.h"
#include "base/clock.h"
#include "base/error.h"
#include "base/mem.h"
#include "base/rng.h"
#include "storage/store.h"

#define NS_PER_S 1000000000
#define TICK_NS 25000000

/* Pauses between attempts: up to 0.1 s, then twice as long each time, at most 5 s. */
#define FIRST_PAUSE_S 0.1
#define MOST_PAUSE_S 5.0

/* A read is tried so often, and begun no more once it took this many time-outs. */
#define MOST_ATTEMPTS 12
#define MOST_DAMAGED 4
#define PATIENCE_TIMEOUTS 2

/* So many reads given up in a row, and the place is lost. */
#define LOST_AFTER 4

/*
 * A second attempt is made when the first has taken this many times the median of the latest reads,
 * and a quarter of a second: the tail of object stores is above a second where the median is ten
 * milliseconds. At most one read in twenty gets one, or a place that is slow as a whole would be
 * asked twice for everything.
 */
#define HEDGE_MEDIANS 8
#define HEDGE_LEAST_NS 250000000
#define HEDGE_SHARE 0.05
#define HEDGE_MOST_CREDIT 8.0
#define RECENT 64

/* How an attempt gets its bytes. */
typedef enum stage { STAGE_SOURCE, STAGE_VERSION, STAGE_CACHE } stage;

typedef struct attempt {
    stk_fetch fetch;
    stk_reader *reader;
    struct flight *flight; /* NULL: cut loose; lock */
    stage stage;
    int holders;          /* the source, and whoever is about to cancel it; lock */
    struct attempt *next; /* in the list of those to be cancelled; lock */
} attempt;

/* A read that is under way. Everything is under the lock. */
typedef struct flight {
    stk_read *read;
    stk_question question;
    stk_extent extent; /* where it is */
    bool is_part;      /* the extent counts: a member of a shard, or a part of an object */
    stk_cache_key key; /* when has_key */
    bool has_key;
    bool is_new; /* the bytes came from the source and belong into the cache */
    attempt *attempts[2];
    int64_t begun_ns;
    int64_t retry_ns; /* when to try again; 0: an attempt is under way */
    bool ended;       /* the watch is to tell of it: nobody may be told from within submit */
    int failures;
    int damaged;
    uint64_t generation; /* which cancel it came after */
    struct flight *prev, *next;
} flight;

struct stk_reader {
    stk_reader_config config;
    stk_store *store;
    int64_t timeout_ns;
    pthread_mutex_t lock;
    pthread_cond_t wake; /* the watch */
    pthread_cond_t calm; /* no attempt is left */
    pthread_t watch;
    bool started;
    bool quit;         /* lock, as all below */
    bool watching;     /* the watch sleeps with a time limit */
    flight *first;     /* flights that are not finished */
    size_t attempts;   /* that have not ended, with their callbacks */
    attempt *unwanted; /* to be cancelled */
    uint64_t generation;
    uint64_t cancel_before;    /* flights of earlier generations end */
    int64_t recent_ns[RECENT]; /* of the latest good reads */
    size_t recent;
    int64_t good_ns; /* when the latest of them came */
    int64_t slow_ns; /* what is far slower than its peers; 0: not known yet */
    double credit;   /* second attempts that may be made */
    int given_up;    /* reads in a row */
    stk_error lost;  /* what is said once the place is lost */
    stk_rng rng;
};

/* ---- attempts ---- */

static void link_flight(stk_reader *r, flight *f) {
    f->next = r->first;
    if (r->first != NULL) {
        r->first->prev = f;
    }
    r->first = f;
}

static void unlink_flight(stk_reader *r, flight *f) {
    *(f->prev != NULL ? &f->prev->next : &r->first) = f->next;
    if (f->next != NULL) {
        f->next->prev = f->prev;
    }
}

/* Drops one hold. */
static void let_go(attempt *a) {
    if (--a->holders == 0) {
        stk_bytes_free(&a->fetch.bytes);
        stk_mem_free(a);
    }
}

static int cached_work(void *place, stk_job *job) {
    stk_cache_key key = {.high = job->extra[0], .low = job->extra[1]};
    return stk_cache_read(place, key, &job->bytes) ? STK_FETCH_OK : STK_FETCH_NEVER;
}

static void attempt_done(stk_fetch *fetch);

/* Begins one more attempt; false without memory. */
static bool begin_attempt(stk_reader *r, flight *f, stage at) {
    int free_place = f->attempts[0] == NULL ? 0 : 1;
    attempt *a = stk_mem_new(1, sizeof *a);
    if (a == NULL) {
        return false;
    }
    a->reader = r;
    a->flight = f;
    a->stage = at;
    a->holders = 1;
    a->fetch = (stk_fetch){.kind = at == STAGE_VERSION ? STK_FETCH_VERSION : f->question.kind,
                           .path = f->is_part ? f->extent.object : f->read->path,
                           .done = attempt_done,
                           .owner = a};
    if (f->is_part && at == STAGE_SOURCE) {
        a->fetch.offset = f->extent.offset;
        a->fetch.length = f->extent.length;
    }
    if (f->attempts[1 - free_place] == NULL) { /* the block of the caller, used again */
        a->fetch.bytes = f->read->bytes;
        memset(&f->read->bytes, 0, sizeof f->read->bytes);
    }
    f->attempts[free_place] = a;
    r->attempts++;
    uint64_t extra[2] = {f->key.high, f->key.low};
    bool begun = at == STAGE_CACHE ? stk_hands_begin(r->store->hands, &a->fetch, cached_work,
                                                     r->store->cache, extra)
                                   : r->store->source->begin(r->store->place, &a->fetch);
    if (!begun) {
        f->attempts[free_place] = NULL;
        r->attempts--;
        let_go(a);
    }
    return begun;
}

/* Cuts an attempt loose and puts it among those that are to be cancelled. */
static void cut_loose(stk_reader *r, flight *f, int which) {
    attempt *a = f->attempts[which];
    if (a != NULL) {
        f->attempts[which] = NULL;
        a->flight = NULL;
        a->holders++;
        a->next = r->unwanted;
        r->unwanted = a;
    }
}

/* Takes and releases the lock: sources may call back. */
static void cancel_unwanted(stk_reader *r) {
    pthread_mutex_lock(&r->lock);
    while (r->unwanted != NULL) {
        attempt *a = r->unwanted;
        r->unwanted = a->next;
        pthread_mutex_unlock(&r->lock);
        if (a->stage == STAGE_CACHE) {
            stk_hands_cancel(r->store->hands, &a->fetch);
        } else {
            r->store->source->cancel(r->store->place, &a->fetch);
        }
        pthread_mutex_lock(&r->lock);
        let_go(a);
    }
    pthread_mutex_unlock(&r->lock);
}

/* ---- ends ---- */

/* Takes a flight out of the air; whoever called then tells of it without the lock. */
static void land(stk_reader *r, flight *f) {
    cut_loose(r, f, 0);
    cut_loose(r, f, 1);
    unlink_flight(r, f);
}

/* Without the lock. The flight has landed. */
static void tell(stk_reader *r, flight *f) {
    stk_read *read = f->read;
    read->ns = stk_clock_ns() - f->begun_ns;
    bool fresh = f->is_new && f->has_key && read->error.status == STK_OK;
    read->keep = fresh && r->store->keeps_made;
    read->key[0] = f->key.high;
    read->key[1] = f->key.low;
    if (fresh && !r->store->keeps_made) {
        stk_cache_put(r->store->cache, f->key, read->bytes.data, read->bytes.size);
    }
    stk_mem_free(f);
    r->config.done(r->config.user, read);
}

static void remember_time(stk_reader *r, int64_t ns) {
    r->recent_ns[r->recent++ % RECENT] = ns;
    r->good_ns = stk_clock_ns();
    r->given_up = 0;
}

/* Says that nothing can be had from the place any more; all flights end with it. */
static void lose_place(stk_reader *r, const stk_error *why) {
    if (r->lost.status == STK_OK) {
        r->lost = *why;
        pthread_cond_signal(&r->wake);
        pthread_mutex_lock(&r->store->lock);
        r->store->lost = *why;
        pthread_mutex_unlock(&r->store->lock);
        atomic_store(&r->store->is_lost, true);
    }
}

/* Another reader of the store may have found out. */
static void look_for_loss(stk_reader *r) {
    if (r->lost.status == STK_OK && atomic_load(&r->store->is_lost)) {
        pthread_mutex_lock(&r->store->lock);
        r->lost = r->store->lost;
        pthread_mutex_unlock(&r->store->lock);
    }
}

/* A flight that is over without bytes. */
static void give_up(stk_reader *r, flight *f, const stk_error *why, bool place_is_silent) {
    f->read->error = *why;
    if (place_is_silent && ++r->given_up >= LOST_AFTER) {
        stk_error all = {0};
        (void)STK_FAIL(&all, STK_ERR_STORAGE,
                       "nothing can be read from %s any more, the last %d reads failed after every "
                       "retry; the last one: %s",
                       r->store->root, r->given_up, why->message);
        lose_place(r, &all);
    }
    if (r->lost.status != STK_OK) {
        f->read->error = r->lost;
        f->read->lost = true;
    }
    land(r, f);
}

/* Half to all of a pause that doubles: who failed together must not come back together. */
static int64_t pause_ns(stk_reader *r, const flight *f, double asked_s) {
    double pause = FIRST_PAUSE_S;
    for (int i = 1; i < f->failures && pause < MOST_PAUSE_S; i++) {
        pause *= 2;
    }
    pause = pause < MOST_PAUSE_S ? pause : MOST_PAUSE_S;
    pause *= stk_rng_range(&r->rng, 0.5, 1.0);
    pause = pause > asked_s ? pause : asked_s;
    return (int64_t)(pause * NS_PER_S);
}

/* An attempt failed: another one later, or the end. True when the flight is over. */
static bool fail(stk_reader *r, flight *f, const stk_fetch *fetch) {
    int64_t now = stk_clock_ns();
    bool damaged = fetch->verdict == STK_FETCH_DAMAGED;
    f->failures++;
    f->damaged += damaged;
    if (fetch->verdict == STK_FETCH_LOST) {
        lose_place(r, &fetch->error);
    }
    if (fetch->verdict == STK_FETCH_NEVER || fetch->verdict == STK_FETCH_LOST ||
        r->lost.status != STK_OK) {
        give_up(r, f, &fetch->error, false);
        return true;
    }
    if (f->attempts[0] != NULL || f->attempts[1] != NULL) {
        return false; /* the other one may bring it */
    }
    int64_t pause = damaged ? 0 : pause_ns(r, f, fetch->wait_s);
    if (f->failures >= MOST_ATTEMPTS || f->damaged >= MOST_DAMAGED ||
        now + pause - f->begun_ns > PATIENCE_TIMEOUTS * r->timeout_ns) {
        give_up(r, f, &fetch->error, !damaged);
        return true;
    }
    f->retry_ns = now + pause + 1;
    atomic_fetch_add(&r->store->retries, 1);
    return false;
}

/* Whether what arrived is what the index says; without the lock, since it takes its time. */
static bool is_intact(const stk_extent *extent, const stk_bytes *bytes) {
    return bytes->size == extent->length &&
           (!extent->has_checksum || stk_checksum(bytes->data, bytes->size) == extent->checksum);
}

static void blame_shard(const flight *f, stk_fetch *fetch) {
    fetch->verdict = STK_FETCH_DAMAGED;
    (void)STK_FAIL(&fetch->error, STK_ERR_DATA,
                   "cannot read %s: its bytes in the shard %s are damaged (%zu of %llu came%s); "
                   "stage the data set again",
                   f->read->path, f->extent.object, fetch->bytes.size,
                   (unsigned long long)f->extent.length,
                   fetch->bytes.size == f->extent.length ? ", with another checksum" : "");
}

/* Where the bytes of a flight come from first, and next after an answer; false without memory. */
static bool proceed(stk_reader *r, flight *f, const char *version) {
    stk_store *store = r->store;
    if (store->cache == NULL || f->question.kind != STK_FETCH_BYTES || f->question.whole_place) {
        return begin_attempt(r, f, STAGE_SOURCE);
    }
    if (!f->has_key) {
        f->has_key = stk_store_key(store, f->read->path, version, &f->key);
        if (!f->has_key) {
            return begin_attempt(r, f, STAGE_VERSION);
        }
        if (stk_cache_has(store->cache, f->key)) {
            return begin_attempt(r, f, STAGE_CACHE);
        }
    }
    f->is_new = true;
    return begin_attempt(r, f, STAGE_SOURCE);
}

/* Goes on. Where that is not possible, or not needed, the watch tells of it at once. */
static void proceed_or_end(stk_reader *r, flight *f, const char *version) {
    f->retry_ns = 0;
    if (f->is_part && f->extent.length == 0) { /* a part of nothing is nobody's to fetch */
        f->read->bytes.size = 0;
        f->ended = true;
    } else if (!proceed(r, f, version)) {
        (void)STK_FAIL_MEMORY(&f->read->error, f->read->path);
        f->ended = true;
    }
    if (f->ended) {
        pthread_cond_signal(&r->wake);
    }
}

/* An attempt has come back to its flight. True when the flight is over. */
static bool receive(stk_reader *r, flight *f, attempt *a) {
    stk_fetch *fetch = &a->fetch;
    int which = f->attempts[0] == a ? 0 : 1;
    f->attempts[which] = NULL;
    a->flight = NULL;
    if (a->stage == STAGE_CACHE && fetch->verdict != STK_FETCH_OK) {
        proceed_or_end(r, f, NULL); /* not there after all */
        return false;
    }
    if (fetch->verdict != STK_FETCH_OK) {
        return fail(r, f, fetch);
    }
    if (a->stage == STAGE_VERSION) {
        fetch->bytes.data[fetch->bytes.size - 1] = '\0';
        proceed_or_end(r, f, (const char *)fetch->bytes.data);
        return false;
    }
    int64_t started = atomic_load(&fetch->started_ns);
    remember_time(r, stk_clock_ns() - (started > 0 ? started : f->begun_ns));
    stk_bytes_free(&f->read->bytes);
    f->read->bytes = fetch->bytes;
    memset(&fetch->bytes, 0, sizeof fetch->bytes);
    f->is_new = f->is_new && a->stage == STAGE_SOURCE;
    land(r, f);
    return true;
}

/* The sources' callback: from any thread of theirs. */
static void attempt_done(stk_fetch *fetch) {
    attempt *a = fetch->owner;
    stk_reader *r = a->reader;
    bool over = false;
    pthread_mutex_lock(&r->lock);
    flight *f = a->flight;
    if (f != NULL && fetch->verdict == STK_FETCH_OK && a->stage == STAGE_SOURCE && f->is_part &&
        !f->question.whole_place) {
        stk_extent extent = f->extent;
        pthread_mutex_unlock(&r->lock);
        bool intact = is_intact(&extent, &fetch->bytes);
        pthread_mutex_lock(&r->lock);
        f = a->flight; /* it may be over by now */
        if (f != NULL && !intact) {
            blame_shard(f, fetch);
        }
    }
    if (f != NULL) {
        over = receive(r, f, a);
    }
    let_go(a);
    pthread_mutex_unlock(&r->lock);
    cancel_unwanted(r);
    if (over) {
        tell(r, f);
    }
    pthread_mutex_lock(&r->lock);
    if (--r->attempts == 0) {
        pthread_cond_broadcast(&r->calm);
    }
    pthread_mutex_unlock(&r->lock);
}

/* ---- the watch ---- */

static int compare_times(const void *a, const void *b) {
    int64_t x = *(const int64_t *)a;
    int64_t y = *(const int64_t *)b;
    return (x > y) - (x < y);
}

static void measure_peers(stk_reader *r) {
    int64_t sorted[RECENT];
    size_t count = r->recent < RECENT ? r->recent : RECENT;
    if (count < RECENT / 8) {
        return;
    }
    memcpy(sorted, r->recent_ns, count * sizeof *sorted);
    qsort(sorted, count, sizeof *sorted, compare_times);
    int64_t slow = HEDGE_MEDIANS * sorted[count / 2];
    r->slow_ns = slow > HEDGE_LEAST_NS ? slow : HEDGE_LEAST_NS;
}

/* How long an attempt has been at work; waiting for its turn counts only when it is endless. */
static int64_t age_ns(const stk_reader *r, const flight *f, const attempt *a, int64_t now) {
    int64_t started = atomic_load(&a->fetch.started_ns);
    int64_t since = f->begun_ns > r->good_ns ? f->begun_ns : r->good_ns;
    bool endless = now - since > PATIENCE_TIMEOUTS * r->timeout_ns;
    return started > 0 ? now - started : endless ? r->timeout_ns : 0;
}

static void second_attempt(stk_reader *r, flight *f, int64_t age) {
    attempt *a = f->attempts[0] != NULL ? f->attempts[0] : f->attempts[1];
    bool alone = (f->attempts[0] == NULL) != (f->attempts[1] == NULL);
    if (alone && a->stage == STAGE_SOURCE && r->slow_ns > 0 && age > r->slow_ns && r->credit >= 1 &&
        begin_attempt(r, f, STAGE_SOURCE)) {
        r->credit -= 1;
        atomic_fetch_add(&r->store->hedges, 1);
    }
}

/* An attempt that takes too long is given up. True when the flight is over. */
static bool expire(stk_reader *r, flight *f, int which) {
    stk_fetch silence = {.verdict = STK_FETCH_AGAIN};
    (void)STK_FAIL(&silence.error, STK_ERR_STORAGE,
                   "cannot read %s: %s did not answer within %.3g s", f->read->path, r->store->root,
                   (double)r->timeout_ns / NS_PER_S);
    bool cached = f->attempts[which]->stage == STAGE_CACHE;
    cut_loose(r, f, which);
    atomic_fetch_add(&r->store->timeouts, 1);
    if (cached) {
        proceed_or_end(r, f, NULL);
        return false;
    }
    return fail(r, f, &silence);
}

/* Looks at one flight. True when it is over. */
static bool look_after(stk_reader *r, flight *f, int64_t now) {
    if (f->generation < r->cancel_before || r->quit) {
        (void)STK_FAIL(&f->read->error, STK_ERR_STOPPED, "reading %s was stopped", f->read->path);
        land(r, f);
        return true;
    }
    if (r->lost.status != STK_OK) {
        give_up(r, f, &r->lost, false);
        return true;
    }
    if (f->ended) {
        land(r, f);
        return true;
    }
    if (f->retry_ns > 0) {
        if (now >= f->retry_ns) {
            proceed_or_end(r, f, NULL);
        }
        return false;
    }
    for (int i = 0; i < 2; i++) {
        if (f->attempts[i] != NULL) {
            int64_t age = age_ns(r, f, f->attempts[i], now);
            if (age >= r->timeout_ns && expire(r, f, i)) {
                return true;
            }
            if (f->attempts[i] != NULL) {
                second_attempt(r, f, age);
            }
        }
    }
    return false;
}

/* Takes all flights that are over into a list. */
static flight *inspect(stk_reader *r) {
    flight *over = NULL;
    int64_t now = stk_clock_ns();
    measure_peers(r);
    look_for_loss(r);
    for (flight *f = r->first; f != NULL;) {
        flight *next = f->next;
        if (look_after(r, f, now)) {
            f->next = over;
            over = f;
        }
        f = next;
    }
    return over;
}

static void sleep_a_tick(stk_reader *r) {
    int64_t end = stk_clock_ns() + TICK_NS;
    struct timespec at = {.tv_sec = end / NS_PER_S, .tv_nsec = end % NS_PER_S};
    r->watching = r->first != NULL; /* otherwise the next read must wake it */
    if (r->watching) {
        pthread_cond_timedwait(&r->wake, &r->lock, &at);
    } else {
        pthread_cond_wait(&r->wake, &r->lock);
    }
    r->watching = true;
}

static void *watch(void *argument) {
    stk_reader *r = argument;
    pthread_mutex_lock(&r->lock);
    while (!r->quit || r->first != NULL) {
        flight *over = inspect(r);
        pthread_mutex_unlock(&r->lock);
        cancel_unwanted(r);
        while (over != NULL) {
            flight *f = over;
            over = f->next;
            tell(r, f);
        }
        pthread_mutex_lock(&r->lock);
        if (!r->quit) {
            sleep_a_tick(r);
        }
    }
    pthread_mutex_unlock(&r->lock);
    return NULL;
}

/* ---- the reader's users ---- */

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
    r->timeout_ns = (int64_t)(r->store->options.read_timeout_s * NS_PER_S);
    r->credit = 1;
    r->rng = stk_rng_make((uint64_t)stk_clock_ns(), STK_RNG_PAUSE, 0, (uint64_t)(uintptr_t)r);
    int failed = pthread_create(&r->watch, NULL, watch, r);
    if (failed != 0) {
        stk_reader_close(r);
        return STK_FAIL(err, STK_ERR_MEMORY, "cannot start a thread that reads: %s",
                        strerror(failed));
    }
    r->started = true;
    *out = r;
    return STK_OK;
}

void stk_reader_close(stk_reader *r) {
    if (r == NULL) {
        return;
    }
    pthread_mutex_lock(&r->lock);
    r->quit = true;
    pthread_cond_signal(&r->wake);
    pthread_mutex_unlock(&r->lock);
    if (r->started) {
        pthread_join(r->watch, NULL);
    }
    pthread_mutex_lock(&r->lock);
    while (r->attempts > 0) {
        pthread_cond_wait(&r->calm, &r->lock);
    }
    pthread_mutex_unlock(&r->lock);
    pthread_cond_destroy(&r->calm);
    pthread_cond_destroy(&r->wake);
    pthread_mutex_destroy(&r->lock);
    stk_mem_free(r);
}

/* Finds out where the bytes of a flight are. */
static void locate(const stk_store *store, flight *f) {
    const stk_question *q = &f->question;
    if (q->whole_place) {
        f->is_part = q->length > 0;
        f->extent = (stk_extent){.object = f->read->path, .offset = q->offset, .length = q->length};
    } else if (store->shards != NULL && q->kind == STK_FETCH_BYTES) {
        f->is_part = stk_shards_find(store->shards, f->read->path, &f->extent);
    }
}

bool stk_reader_ask(stk_reader *r, stk_read *read, const stk_question *question) {
    flight *f = stk_mem_new(1, sizeof *f);
    if (f == NULL) {
        return false;
    }
    stk_error_clear(&read->error);
    read->lost = false;
    f->read = read;
    f->question = *question;
    f->begun_ns = stk_clock_ns();
    locate(r->store, f);
    pthread_mutex_lock(&r->lock);
    f->generation = r->generation;
    r->credit =
        r->credit + HEDGE_SHARE < HEDGE_MOST_CREDIT ? r->credit + HEDGE_SHARE : HEDGE_MOST_CREDIT;
    link_flight(r, f);
    if (!r->watching) {
        r->watching = true;
        pthread_cond_signal(&r->wake);
    }
    if (r->lost.status == STK_OK) {
        proceed_or_end(r, f, NULL);
    }
    pthread_mutex_unlock(&r->lock);
    return true;
}

bool stk_reader_submit(stk_reader *r, stk_read *read) {
    return stk_reader_ask(r, read, &(stk_question){.kind = STK_FETCH_BYTES});
}

void stk_reader_hurry(stk_reader *r) {
    stk_hands_hurry(r->store->hands);
}

void stk_reader_cancel(stk_reader *r) {
    pthread_mutex_lock(&r->lock);
    r->cancel_before = ++r->generation;
    pthread_cond_signal(&r->wake);
    pthread_mutex_unlock(&r->lock);
}
