/*
 * reader.c - reads under way, and the policy of reading at work (patience.h has its numbers).
 *
 * A read that is under way is a flight. It has at most two attempts at a time; an attempt belongs
 * to its source until done, so one that is not wanted any more is cut loose from its flight,
 * cancelled and dropped when it ends. One thread, the watch, looks at all flights some times a
 * second: what is too slow gets a second attempt or is given up, what failed is tried again when
 * its pause is over.
 *
 * A read that got no answer may be a bad object or the first sign of a place that is gone. While
 * that is open it is a doubt: its owner is told when the place answers others (the object was bad),
 * when there are too many doubts (the place is lost), or when no other read is left to wait for.
 *
 * Locks: the reader's is taken within those of its users, and the store's and the sources' within
 * the reader's. Sources are called without it where they may call back, and so are users.
 */
#include "storage/reader.h"

#include <pthread.h>
#include <stdio.h>
#include <string.h>

#include "base/checksum.h"
#include "base/clock.h"
#include "base/error.h"
#include "base/mem.h"
#include "storage/patience.h"
#include "storage/store.h"

#define NS_PER_S 1000000000
#define TICK_NS 25000000

/* An attempt that has waited for its turn so long, while none came back, gets one more thread. */
#define HURRY_NS 50000000

/* How an attempt gets its bytes. */
typedef enum stage { STAGE_SOURCE, STAGE_VERSION, STAGE_CACHE } stage;

typedef struct attempt {
    stk_fetch fetch;
    stk_reader *reader;
    struct flight *flight; /* NULL: cut loose; lock */
    stage stage;
    int64_t begun_ns;
    int holders;          /* the source, and whoever is about to cancel it; lock */
    struct attempt *next; /* among those to be cancelled, or the spare ones; lock */
} attempt;

/* A read that is under way. Everything is under the lock. */
typedef struct flight {
    stk_read *read; /* its error is that of the last attempt that failed */
    stk_question question;
    stk_extent extent; /* where it is */
    bool is_part;      /* the extent counts: a member of a shard, or a part of an object */
    stk_cache_key key; /* when has_key */
    bool has_key;
    bool is_new; /* the bytes come from the source and belong into the cache */
    attempt *attempts[2];
    int64_t begun_ns;
    int64_t first_ns; /* when the first attempt that ended really began; 0: none has */
    int64_t retry_ns; /* when to try again; 0: an attempt is under way */
    int64_t doubt_ns; /* since when it is a doubt; 0: it is none */
    bool ended;       /* the watch is to tell of it: nobody may be told from within submit */
    int failures;
    int damaged;
    uint64_t generation; /* which cancel it came after */
    struct flight *prev, *next;
} flight;

struct stk_reader {
    stk_reader_config config;
    stk_store *store;
    pthread_mutex_t lock;
    pthread_cond_t wake; /* the watch */
    pthread_cond_t calm; /* no attempt is left */
    pthread_t watch;
    bool started;
    bool quit;         /* lock, as all below */
    bool idle;         /* the watch sleeps until somebody wakes it */
    bool stirred;      /* the watch is to look at once */
    flight *first;     /* flights that are not finished, the latest first */
    size_t attempts;   /* that have not ended, with their callbacks */
    attempt *unwanted; /* to be cancelled */
    attempt *spare;    /* to be used again */
    uint64_t generation;
    uint64_t cancel_before; /* flights of earlier generations end */
    stk_patience patience;
    stk_error lost; /* what is said once the place is lost */
};

/* Under the lock: has the watch look now, also when it is just about to sleep. */
static void stir(stk_reader *r) {
    r->stirred = true;
    pthread_cond_signal(&r->wake);
}

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
static void let_go(stk_reader *r, attempt *a) {
    if (--a->holders == 0) {
        stk_bytes_free(&a->fetch.bytes);
        a->next = r->spare;
        r->spare = a;
    }
}

static int cached_work(void *cache, stk_job *job) {
    stk_cache_key key = {.high = job->extra[0], .low = job->extra[1]};
    return stk_cache_read(cache, key, &job->bytes) ? STK_FETCH_OK : STK_FETCH_NEVER;
}

static void attempt_done(stk_fetch *fetch);

/* An attempt of a flight, not begun; NULL without memory. Its error is big and left as it is. */
static attempt *make_attempt(stk_reader *r, flight *f, stage at) {
    attempt *a = r->spare;
    if (a != NULL) {
        r->spare = a->next;
    } else {
        a = stk_mem_new(1, sizeof *a);
    }
    if (a == NULL) {
        return NULL;
    }
    bool is_part = f->is_part && at == STAGE_SOURCE;
    stk_fetch *fetch = &a->fetch;
    fetch->kind = at == STAGE_VERSION ? STK_FETCH_VERSION : f->question.kind;
    fetch->path = f->is_part ? f->extent.object : f->read->path;
    fetch->offset = is_part ? f->extent.offset : 0;
    fetch->length = is_part ? f->extent.length : 0;
    fetch->error.status = STK_OK;
    fetch->wait_s = 0;
    atomic_store(&fetch->started_ns, 0);
    atomic_store(&fetch->heard_ns, 0);
    fetch->done = attempt_done;
    fetch->owner = a;
    fetch->job = NULL;
    a->reader = r;
    a->flight = f;
    a->stage = at;
    a->begun_ns = stk_clock_ns();
    a->holders = 1;
    return a;
}

/* Begins one more attempt; false without memory. */
static bool begin_attempt(stk_reader *r, flight *f, stage at) {
    stk_store *store = r->store;
    int place = f->attempts[0] == NULL ? 0 : 1;
    attempt *a = make_attempt(r, f, at);
    if (a == NULL) {
        return false;
    }
    if (f->attempts[1 - place] == NULL) { /* the block of the caller, used again */
        a->fetch.bytes = f->read->bytes;
        memset(&f->read->bytes, 0, sizeof f->read->bytes);
    }
    f->attempts[place] = a;
    r->attempts++;
    uint64_t key[2] = {f->key.high, f->key.low};
    bool begun = at == STAGE_CACHE ? stk_hands_begin(store->cache_hands, &a->fetch, cached_work,
                                                     store->cache, key)
                                   : store->source->begin(store->place, &a->fetch);
    if (!begun) {
        f->attempts[place] = NULL;
        r->attempts--;
        let_go(r, a);
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

/* Under the lock, which is released meanwhile: sources may call back. */
static void cancel_unwanted(stk_reader *r) {
    while (r->unwanted != NULL) {
        attempt *a = r->unwanted;
        r->unwanted = a->next;
        pthread_mutex_unlock(&r->lock);
        if (a->stage == STAGE_CACHE) {
            stk_hands_cancel(r->store->cache_hands, &a->fetch);
        } else {
            r->store->source->cancel(r->store->place, &a->fetch);
        }
        pthread_mutex_lock(&r->lock);
        let_go(r, a);
    }
}

/* ---- ends ---- */

/* Takes a flight out of the air; whoever called then tells of it without the lock. */
static void land(stk_reader *r, flight *f) {
    cut_loose(r, f, 0);
    cut_loose(r, f, 1);
    unlink_flight(r, f);
}

/* Sets an error, whatever it was before. */
static void blame(const stk_reader *r, const flight *f, stk_status status, const char *cause,
                  stk_error *err) {
    const char *path = f->read->path;
    err->status = STK_OK;
    (void)STK_FAIL(err, status, "cannot read %s%s%s: %s", r->store->root,
                   path[0] != '\0' ? "/" : "", path, cause);
}

/* Without the lock. The flight has landed. */
static void tell(stk_reader *r, flight *f) {
    stk_read *read = f->read;
    read->ns = stk_clock_ns() - f->begun_ns;
    if (f->is_new && f->has_key && read->error.status == STK_OK) {
        stk_cache_put(r->store->cache, f->key, read->bytes.data, read->bytes.size);
    }
    stk_mem_free(f);
    r->config.done(r->config.user, read);
}

/* Says that nothing can be had from the place any more; all flights end with it. */
static void lose_place(stk_reader *r, const stk_error *why) {
    if (r->lost.status == STK_OK) {
        r->lost = *why;
        stk_store_lose(r->store, why);
        stir(r);
    }
}

static void lose_silent_place(stk_reader *r, const stk_error *last) {
    stk_error why = {0};
    (void)STK_FAIL(&why, STK_ERR_STORAGE,
                   "nothing can be read from %s any more: %d reads in a row failed after every "
                   "retry; the last one: %.500s",
                   r->store->root, r->patience.given_up, last->message);
    lose_place(r, &why);
}

/*
 * A flight is over without bytes; its read has the error. True when it has landed; a doubt stays
 * in the air.
 */
static bool give_up(stk_reader *r, flight *f, bool silent) {
    int64_t now = stk_clock_ns();
    if (silent && r->lost.status == STK_OK &&
        stk_patience_doubt(&r->patience, f->first_ns > 0 ? f->first_ns : now)) {
        f->doubt_ns = now;
        if (stk_patience_is_lost(&r->patience)) {
            lose_silent_place(r, &f->read->error);
        }
        stir(r);
        return false;
    }
    if (r->lost.status != STK_OK) {
        f->read->error = r->lost;
        f->read->lost = true;
    }
    land(r, f);
    return true;
}

static void note_start(flight *f, int64_t started_ns) {
    f->first_ns = f->first_ns == 0 ? started_ns : f->first_ns;
}

static void go_on(stk_reader *r, flight *f, const char *version);

/* An attempt failed: another one later, or the end. True when the flight is over. */
static bool fail(stk_reader *r, flight *f, const stk_fetch *fetch) {
    int64_t now = stk_clock_ns();
    bool damaged = fetch->verdict == STK_FETCH_DAMAGED;
    f->failures++;
    f->damaged += damaged;
    f->read->error = fetch->error;
    if (fetch->error.status == STK_OK) {
        blame(r, f, STK_ERR_STORAGE, "it ended without a reason", &f->read->error);
    }
    if (fetch->verdict == STK_FETCH_NEVER || damaged) {
        stk_patience_answered(&r->patience, now);
    }
    if (fetch->verdict == STK_FETCH_LOST) {
        lose_place(r, &f->read->error);
    }
    if (fetch->verdict == STK_FETCH_NEVER || r->lost.status != STK_OK) {
        return give_up(r, f, false);
    }
    if (f->attempts[0] != NULL || f->attempts[1] != NULL) {
        return false; /* the other one may bring it */
    }
    int64_t next =
        damaged ? now : now + stk_patience_pause_ns(&r->patience, f->failures, fetch->wait_s);
    int64_t first = f->first_ns > 0 ? f->first_ns : f->begun_ns;
    if (stk_patience_is_over(&r->patience, f->failures, f->damaged, first, next)) {
        return give_up(r, f, !damaged);
    }
    atomic_fetch_add(&r->store->retries, 1);
    if (damaged) {
        go_on(r, f, NULL);
    } else {
        f->retry_ns = next;
    }
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

/* Goes on. Where that cannot be, or need not be, the watch tells of it at once. */
static void go_on(stk_reader *r, flight *f, const char *version) {
    f->retry_ns = 0;
    if (f->is_part && f->extent.length == 0) { /* a part of nothing is nobody's to fetch */
        f->read->bytes.size = 0;
        f->ended = true;
    } else if (!proceed(r, f, version)) {
        f->read->error.status = STK_OK;
        (void)STK_FAIL_MEMORY(&f->read->error, f->read->path);
        f->ended = true;
    }
    if (f->ended) {
        stir(r);
    }
}

/* The version that an attempt has brought. */
static const char *version_of(const stk_fetch *fetch) {
    if (fetch->bytes.size == 0) {
        return "";
    }
    fetch->bytes.data[fetch->bytes.size - 1] = '\0';
    return (const char *)fetch->bytes.data;
}

/* An attempt has come back to its flight. True when the flight is over. */
static bool receive(stk_reader *r, flight *f, attempt *a) {
    stk_fetch *fetch = &a->fetch;
    int64_t now = stk_clock_ns();
    int64_t started = atomic_load(&fetch->started_ns);
    f->attempts[f->attempts[0] == a ? 0 : 1] = NULL;
    a->flight = NULL;
    if (a->stage == STAGE_CACHE && fetch->verdict != STK_FETCH_OK) {
        go_on(r, f, NULL); /* not there after all */
        return false;
    }
    if (fetch->verdict != STK_FETCH_OK) {
        note_start(f, started);
        return fail(r, f, fetch);
    }
    if (a->stage == STAGE_VERSION) {
        go_on(r, f, version_of(fetch));
        return false;
    }
    if (a->stage == STAGE_SOURCE) { /* what a cache brings says nothing about the place */
        stk_patience_good(&r->patience, now, now - (started > 0 ? started : a->begun_ns));
    }
    f->is_new = f->is_new && a->stage == STAGE_SOURCE;
    f->read->error.status = STK_OK;
    stk_bytes_free(&f->read->bytes);
    f->read->bytes = fetch->bytes;
    memset(&fetch->bytes, 0, sizeof fetch->bytes);
    land(r, f);
    return true;
}

/* Under the lock, which is released meanwhile: looks whether a member came as it should. */
static void check_member(stk_reader *r, attempt *a) {
    const flight *f = a->flight;
    stk_fetch *fetch = &a->fetch;
    if (f == NULL || fetch->verdict != STK_FETCH_OK || a->stage != STAGE_SOURCE || !f->is_part ||
        f->question.whole_place) {
        return;
    }
    stk_extent extent = f->extent;
    pthread_mutex_unlock(&r->lock);
    bool intact = is_intact(&extent, &fetch->bytes);
    pthread_mutex_lock(&r->lock);
    if (a->flight != NULL && !intact) { /* it may be over by now */
        blame_shard(a->flight, fetch);
    }
}

/* The sources' callback: from any thread of theirs. */
static void attempt_done(stk_fetch *fetch) {
    attempt *a = fetch->owner;
    stk_reader *r = a->reader;
    pthread_mutex_lock(&r->lock);
    check_member(r, a);
    flight *f = a->flight;
    bool over = f != NULL && receive(r, f, a);
    let_go(r, a);
    cancel_unwanted(r);
    if (over) {
        pthread_mutex_unlock(&r->lock);
        tell(r, f);
        pthread_mutex_lock(&r->lock);
    }
    if (--r->attempts == 0 && r->quit) {
        pthread_cond_signal(&r->calm);
    }
    pthread_mutex_unlock(&r->lock);
}

/* ---- the watch ---- */

/* Another reader of the store may have found out. */
static void look_for_loss(stk_reader *r) {
    if (r->lost.status == STK_OK) {
        (void)stk_store_is_lost(r->store, &r->lost);
    }
}

/* An attempt that takes too long is given up. True when the flight is over. */
static bool expire(stk_reader *r, flight *f, int which) {
    const attempt *a = f->attempts[which];
    bool cached = a->stage == STAGE_CACHE;
    int64_t started = atomic_load(&a->fetch.started_ns);
    cut_loose(r, f, which);
    atomic_fetch_add(&r->store->timeouts, 1);
    if (cached) {
        go_on(r, f, NULL);
        return false;
    }
    stk_fetch silence = {.verdict = STK_FETCH_AGAIN};
    char cause[64];
    snprintf(cause, sizeof cause, "no answer within %.3g s",
             (double)r->patience.timeout_ns / NS_PER_S);
    blame(r, f, STK_ERR_STORAGE, cause, &silence.error);
    note_start(f, started);
    return fail(r, f, &silence);
}

/* Looks at one attempt of a flight. True when the flight is over. */
static bool look_at_attempt(stk_reader *r, flight *f, int which, int64_t now, bool *starving) {
    const attempt *a = f->attempts[which];
    int64_t started = atomic_load(&a->fetch.started_ns);
    int64_t heard = atomic_load(&a->fetch.heard_ns);
    if (started == 0) {
        *starving = *starving || now - a->begun_ns > HURRY_NS;
        return stk_patience_is_stuck(&r->patience, now, f->begun_ns) && expire(r, f, which);
    }
    if (stk_patience_has_expired(&r->patience, now, started, heard)) {
        return expire(r, f, which);
    }
    bool alone = f->attempts[1 - which] == NULL;
    if (alone && a->stage == STAGE_SOURCE && f->question.kind == STK_FETCH_BYTES &&
        stk_patience_hedge(&r->patience, now - started) && begin_attempt(r, f, STAGE_SOURCE)) {
        atomic_fetch_add(&r->store->hedges, 1);
    }
    return false;
}

/* Looks at one flight. True when it is over. */
static bool look_after(stk_reader *r, flight *f, int64_t now, bool *starving) {
    if (f->ended) {
        land(r, f);
        return true;
    }
    if (f->generation < r->cancel_before || r->quit) {
        blame(r, f, STK_ERR_STOPPED, "it was stopped", &f->read->error);
        land(r, f);
        return true;
    }
    if (r->lost.status != STK_OK) {
        return give_up(r, f, false);
    }
    if (f->doubt_ns > 0) {
        bool over = r->patience.answer_ns > f->doubt_ns;
        if (over) {
            land(r, f);
        }
        return over;
    }
    if (f->retry_ns > 0) {
        if (now >= f->retry_ns) {
            go_on(r, f, NULL);
        }
        return false;
    }
    for (int i = 0; i < 2; i++) {
        if (f->attempts[i] != NULL && look_at_attempt(r, f, i, now, starving)) {
            return true;
        }
    }
    return false;
}

static flight *add_to(flight *list, flight *f) {
    f->next = list;
    return f;
}

/* Takes all flights that are over into a list. */
static flight *inspect(stk_reader *r) {
    flight *over = NULL;
    int64_t now = stk_clock_ns();
    bool starving = false;
    bool only_doubts = true;
    stk_patience_measure(&r->patience);
    look_for_loss(r);
    for (flight *f = r->first; f != NULL;) {
        flight *next = f->next;
        if (look_after(r, f, now, &starving)) {
            over = add_to(over, f);
        } else {
            only_doubts = only_doubts && f->doubt_ns > 0;
        }
        f = next;
    }
    while (only_doubts && r->lost.status == STK_OK && r->first != NULL) {
        flight *f = r->first;
        land(r, f);
        over = add_to(over, f);
    }
    if (starving && now - r->patience.answer_ns > HURRY_NS) {
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
        cancel_unwanted(r);
        while (over != NULL) {
            flight *f = over;
            over = f->next;
            pthread_mutex_unlock(&r->lock);
            tell(r, f);
            pthread_mutex_lock(&r->lock);
        }
        sleep_a_tick(r);
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
    stk_patience_begin(&r->patience, r->store->options.read_timeout_s,
                       (uint64_t)stk_clock_ns() ^ (uint64_t)(uintptr_t)r);
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
    stir(r);
    pthread_mutex_unlock(&r->lock);
    if (r->started) {
        pthread_join(r->watch, NULL);
    }
    pthread_mutex_lock(&r->lock);
    while (r->attempts > 0) {
        pthread_cond_wait(&r->calm, &r->lock);
    }
    pthread_mutex_unlock(&r->lock);
    while (r->spare != NULL) {
        attempt *a = r->spare;
        r->spare = a->next;
        stk_mem_free(a);
    }
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
    read->error.status = STK_OK;
    read->lost = false;
    f->read = read;
    f->question = *question;
    f->begun_ns = stk_clock_ns();
    locate(r->store, f);
    pthread_mutex_lock(&r->lock);
    f->generation = r->generation;
    stk_patience_add(&r->patience);
    link_flight(r, f);
    if (r->lost.status == STK_OK) {
        go_on(r, f, NULL);
    } else {
        stir(r);
    }
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
    stir(r);
    pthread_mutex_unlock(&r->lock);
}
