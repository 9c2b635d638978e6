/* in_flight.c - attempts, what becomes of them, and the ends of reads. */
#include "storage/reading/in_flight.h"

#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/error.h"
#include "base/mem.h"
#include "base/numbers/checksum.h"
#include "base/str.h"

#define NS_PER_S 1000000000

/* How old what the probe would read may become. */
#define KNOWN_NS 1000000000

/* A cache whose disk gave no answer so often in a row is not asked any more. */
#define CACHE_LOST_AFTER 4

void stk_flights_stir(stk_reader *r) {
    r->stirred = true;
    pthread_cond_signal(&r->wake);
}

/* ---- attempts ---- */

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

void stk_flights_cancel_unwanted(stk_reader *r) {
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

void stk_flights_land(stk_reader *r, flight *f) {
    f->read->ns = f->first_ns > 0 ? stk_clock_ns() - f->first_ns : 0;
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

void stk_flights_tell(stk_reader *r, flight *f) {
    stk_read *read = f->read;
    bool fresh = f->is_new && f->has_key && read->error.status == STK_OK;
    read->keep = fresh && r->store->keeps_made;
    read->key[0] = f->key.high;
    read->key[1] = f->key.low;
    if (fresh && !r->store->keeps_made) {
        stk_cache_put(r->store->cache, f->key, read->bytes.data, read->bytes.size);
    }
    stk_mem_free(f);
    if (read != &r->probe) {
        r->config.done(r->config.user, read);
    } else {
        pthread_mutex_lock(&r->lock);
        stk_bytes_free(&read->bytes);
        stk_mem_free(r->probe_path);
        r->probe_path = NULL;
        pthread_mutex_unlock(&r->lock);
    }
}

/* Says that nothing can be had from the place any more; all flights end with it. */
static void lose_place(stk_reader *r, const stk_error *why) {
    if (r->lost.status == STK_OK) {
        r->lost = *why;
        stk_store_lose(r->store, why);
        stk_flights_stir(r);
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

/* A read of an object, by somebody who wants it. */
static bool is_plain(const stk_reader *r, const flight *f) {
    return f->question.kind == STK_FETCH_BYTES && !f->question.whole_place && f->read != &r->probe;
}

/*
 * A flight is over without bytes; its read has the error. True when it has landed; a doubt stays
 * in the air.
 */
static bool give_up(stk_reader *r, flight *f, bool silent) {
    int64_t now = stk_clock_ns();
    if (silent && is_plain(r, f)) {
        stk_shunned_add(&r->store->shunned, f->read->path, f->read->error.message, now,
                        r->patience.timeout_ns);
    }
    if (silent && r->lost.status == STK_OK && f->read != &r->probe &&
        !stk_outage_counts(&r->store->outage) && stk_patience_doubt(&r->patience, f->failed_ns)) {
        f->doubt_ns = now;
        if (stk_patience_is_lost(&r->patience)) {
            lose_silent_place(r, &f->read->error);
        }
        stk_flights_stir(r);
        return false;
    }
    if (r->lost.status != STK_OK) {
        stk_flights_end_lost(r, f);
    } else {
        stk_flights_land(r, f);
    }
    return true;
}

/* The place has answered something to a flight, if only that there is no such object. */
static void note_answer(stk_reader *r, const flight *f, int64_t now) {
    stk_patience_answered(&r->patience, now);
    stk_outage_answered(&r->store->outage, now, f->failures == 0);
}

static void note_start(flight *f, int64_t started_ns) {
    f->first_ns = f->first_ns == 0 ? started_ns : f->first_ns;
}

/* Why an attempt failed, without the path that the sentence begins with. */
static const char *cause_of(const flight *f, const stk_error *error) {
    const char *path = strstr(error->message, f->read->path);
    const char *rest = path != NULL ? path + strlen(f->read->path) : "";
    rest = strncmp(rest, ": ", 2) == 0 ? rest + 2 : error->message;
    return strncmp(rest, "no answer: ", 11) == 0 ? rest + 11 : rest;
}

/*
 * Notes a failure, and whether it says anything about the object: not while the place is silent,
 * and neither for as long as an outage may last while it fails everybody now and then.
 */
static void assign_blame(stk_reader *r, flight *f, const stk_fetch *fetch, int64_t started_ns) {
    stk_outage *outage = &r->store->outage;
    int64_t since_ns = f->missed_ns > 0 ? f->missed_ns : started_ns;
    bool network = fetch->verdict == STK_FETCH_AGAIN && fetch->error.status != STK_ERR_MEMORY;
    int64_t now = stk_clock_ns();
    bool excused = network && stk_outage_missed(outage, since_ns, now, f->failures == 0,
                                                cause_of(f, &f->read->error));
    if (network && !excused && stk_outage_is_ill(outage)) {
        excused = now - f->begun_ns < outage->most_ns;
    }
    f->excused = excused;
    f->blamed += !excused;
    f->first_ns = excused ? 0 : f->first_ns;
}

/*
 * An attempt, which began at started_ns, failed: another one later, or the end. True when the
 * flight is over.
 */
static bool fail(stk_reader *r, flight *f, const stk_fetch *fetch, int64_t started_ns) {
    int64_t now = stk_clock_ns();
    bool damaged = fetch->verdict == STK_FETCH_DAMAGED;
    note_start(f, started_ns > 0 ? started_ns : f->begun_ns);
    f->read->error = fetch->error;
    if (fetch->error.status == STK_OK) {
        blame(r, f, STK_ERR_STORAGE, "it ended without a reason", &f->read->error);
    }
    if (fetch->verdict == STK_FETCH_NEVER || damaged) {
        note_answer(r, f, now);
    }
    assign_blame(r, f, fetch, started_ns > 0 ? started_ns : f->begun_ns);
    f->failed_ns = f->failures++ == 0 ? now : f->failed_ns;
    f->missed_ns = now;
    f->damaged += damaged;
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
    if (f->first_ns > 0 &&
        stk_patience_is_over(&r->patience, f->blamed, f->damaged, f->first_ns, next)) {
        return give_up(r, f, !damaged);
    }
    atomic_fetch_add(&r->store->retries, 1);
    if (damaged) {
        stk_flights_go_on(r, f, NULL);
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
    if (store->cache == NULL || atomic_load(&store->cache_waits) || !is_plain(r, f) ||
        atomic_load_explicit(&store->cache_silent, memory_order_relaxed) >= CACHE_LOST_AFTER) {
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

/* Where that cannot be, or need not be, the watch tells of it at once. */
void stk_flights_go_on(stk_reader *r, flight *f, const char *version) {
    f->retry_ns = 0;
    if (f->is_part && f->extent.length == 0) { /* a part of nothing is nobody's to fetch */
        f->read->bytes.size = 0;
        f->ended = true;
    } else if (f->is_part && f->extent.length > STK_STORAGE_MAX_BYTES) { /* as of whole objects */
        char cause[64];
        snprintf(cause, sizeof cause, "it has %llu bytes, which is too many",
                 (unsigned long long)f->extent.length);
        blame(r, f, STK_ERR_DATA, cause, &f->read->error);
        f->ended = true;
    } else if (!proceed(r, f, version)) {
        f->read->error.status = STK_OK;
        (void)STK_FAIL_MEMORY(&f->read->error, f->read->path);
        f->ended = true;
    }
    if (f->ended) {
        stk_flights_stir(r);
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

/* Remembers an object that can be read; without memory the one before is as good. */
static void remember(stk_reader *r, const flight *f, int64_t now) {
    if (f->question.kind == STK_FETCH_BYTES && !f->question.whole_place &&
        now - r->known_ns > KNOWN_NS) {
        char *copy = stk_mem_strdup(f->read->path);
        if (copy != NULL) {
            stk_mem_free(r->known);
            r->known = copy;
            r->known_ns = now;
        }
    }
}

/* An attempt has come back to its flight. True when the flight is over. */
static bool receive(stk_reader *r, flight *f, attempt *a) {
    stk_fetch *fetch = &a->fetch;
    int64_t now = stk_clock_ns();
    int64_t started = atomic_load(&fetch->started_ns);
    f->attempts[f->attempts[0] == a ? 0 : 1] = NULL;
    a->flight = NULL;
    if (a->stage == STAGE_CACHE && atomic_load(&r->store->cache_silent) > 0) {
        atomic_store(&r->store->cache_silent, 0);
    }
    if (a->stage == STAGE_CACHE && fetch->verdict != STK_FETCH_OK) {
        stk_flights_go_on(r, f, NULL); /* not there after all */
        return false;
    }
    if (fetch->verdict != STK_FETCH_OK) {
        return fail(r, f, fetch, started);
    }
    if (a->stage == STAGE_VERSION) {
        note_answer(r, f, now);
        stk_flights_go_on(r, f, version_of(fetch));
        return false;
    }
    note_start(f, started > 0 ? started : a->begun_ns);
    if (a->stage == STAGE_SOURCE) { /* what a cache brings says nothing about the place */
        stk_patience_good(&r->patience, now, now - (started > 0 ? started : a->begun_ns));
        note_answer(r, f, now);
        remember(r, f, now);
    }
    f->is_new = f->is_new && a->stage == STAGE_SOURCE;
    f->read->error.status = STK_OK;
    stk_bytes_free(&f->read->bytes);
    f->read->bytes = fetch->bytes;
    memset(&fetch->bytes, 0, sizeof fetch->bytes);
    stk_flights_land(r, f);
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
    stk_flights_cancel_unwanted(r);
    if (over) {
        pthread_mutex_unlock(&r->lock);
        stk_flights_tell(r, f);
        pthread_mutex_lock(&r->lock);
    }
    if (--r->attempts == 0 && r->quit) {
        pthread_cond_signal(&r->calm);
    }
    pthread_mutex_unlock(&r->lock);
}

/* ---- the watch's ---- */

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

flight *stk_flights_make(const stk_reader *r, stk_read *read, const stk_question *question) {
    flight *f = stk_mem_new(1, sizeof *f);
    if (f != NULL) {
        read->error.status = STK_OK;
        read->lost = false;
        f->read = read;
        f->question = *question;
        f->begun_ns = stk_clock_ns();
        locate(r->store, f);
    }
    return f;
}

void stk_flights_launch(stk_reader *r, flight *f) {
    f->generation = r->generation;
    f->next = r->first;
    if (r->first != NULL) {
        r->first->prev = f;
    }
    r->first = f;
    f->ended = is_plain(r, f) &&
               stk_shunned_has(&r->store->shunned, f->read->path, f->begun_ns, &f->read->error);
    if (r->lost.status == STK_OK && !f->ended) {
        stk_flights_go_on(r, f, NULL);
    } else {
        stk_flights_stir(r);
    }
}

void stk_flights_hedge(stk_reader *r, flight *f) {
    f->hedged = true;
    if (begin_attempt(r, f, STAGE_SOURCE)) {
        atomic_fetch_add(&r->store->hedges, 1);
    }
}

bool stk_flights_expire(stk_reader *r, flight *f, int which) {
    const attempt *a = f->attempts[which];
    bool cached = a->stage == STAGE_CACHE;
    int64_t started = atomic_load(&a->fetch.started_ns);
    cut_loose(r, f, which);
    atomic_fetch_add(&r->store->timeouts, 1);
    if (cached) {
        atomic_fetch_add(&r->store->cache_silent, 1);
        stk_flights_go_on(r, f, NULL);
        return false;
    }
    stk_fetch silence = {.verdict = STK_FETCH_AGAIN};
    char cause[64];
    snprintf(cause, sizeof cause, "no answer within %.3g s",
             (double)r->patience.timeout_ns / NS_PER_S);
    blame(r, f, STK_ERR_STORAGE, cause, &silence.error);
    return fail(r, f, &silence, started);
}

void stk_flights_end_lost(stk_reader *r, flight *f) {
    f->read->error = r->lost;
    f->read->lost = true;
    stk_flights_land(r, f);
}

void stk_flights_end_stopped(stk_reader *r, flight *f) {
    blame(r, f, STK_ERR_STOPPED, "it was stopped", &f->read->error);
    stk_flights_land(r, f);
}

void stk_flights_lose_silent(stk_reader *r) {
    stk_outage *outage = &r->store->outage;
    stk_error why = {0};
    pthread_mutex_lock(&outage->lock);
    (void)STK_FAIL(&why, STK_ERR_STORAGE,
                   "nothing can be read from %s any more: no answer for %s, as long as --outage "
                   "allows (%s)",
                   r->store->root, stk_format_span((double)outage->most_ns / NS_PER_S).text,
                   outage->why);
    pthread_mutex_unlock(&outage->lock);
    lose_place(r, &why);
}
