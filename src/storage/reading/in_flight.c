/*
 * in_flight.c - where the bytes of a read come from, what becomes of its attempts, and how it ends.
 *
 * proceed() chooses between cache and source. fail() decides whether a read is tried again or given
 * up, by the arithmetic of read_policy.h and outage.h.
 */
#include "storage/reading/in_flight.h"

#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/error.h"
#include "base/mem.h"
#include "base/str.h"
#include "storage/reading/member_check.h"

/* The probe's object is replaced at most once in this time. */
#define KNOWN_NS 1000000000

/* After so many reads in a row without an answer from its disk, the cache is not asked any more. */
#define CACHE_LOST_AFTER 4

void stk_reader_wake(stk_reader *r) {
    r->stirred = true;
    pthread_cond_signal(&r->wake);
}

/* ---- attempts ---- */

static void unlink_read(stk_reader *r, stk_active_read *active) {
    *(active->prev != NULL ? &active->prev->next : &r->first) = active->next;
    if (active->next != NULL) {
        active->next->prev = active->prev;
    }
}

/* Drops one hold. */
static void let_go(stk_reader *r, stk_read_attempt *a) {
    if (--a->holders == 0) {
        stk_bytes_free(&a->fetch.bytes);
        a->next = r->spare;
        r->spare = a;
    }
}

static void read_cache(void *cache, stk_io_task *task) {
    stk_cache_key key = {.high = task->extra[0], .low = task->extra[1]};
    bool found = stk_cache_read(cache, key, &task->bytes);
    task->result.verdict = found ? STK_FETCH_OK : STK_FETCH_NEVER;
}

static void attempt_done(stk_fetch *fetch);

/* What the location is asked for: of a member of a shard, the shard. */
static const char *object_of(const stk_active_read *active) {
    return active->is_part ? active->extent.object : active->read->path;
}

/* Where the object of a read lies: the location, or the folder of unpacked archives. */
static const stk_storage_source *source_of(const stk_store *store, const stk_active_read *active,
                                           void **location) {
    bool unpacked = active->is_part && active->extent.unpacked;
    *location = unpacked ? store->unpacked : store->location;
    return unpacked ? &stk_storage_local : store->source;
}

/* An attempt of a read, not begun; NULL without memory. */
static stk_read_attempt *make_attempt(stk_reader *r, stk_active_read *active, stk_attempt_kind at) {
    stk_read_attempt *a = r->spare;
    if (a != NULL) {
        r->spare = a->next;
    } else {
        a = stk_mem_new(1, sizeof *a);
    }
    if (a == NULL) {
        return NULL;
    }
    bool is_part = active->is_part && at == ATTEMPT_SOURCE;
    stk_fetch *fetch = &a->fetch;
    fetch->kind = at == ATTEMPT_VERSION ? STK_FETCH_VERSION : active->read->kind;
    fetch->path = object_of(active);
    fetch->offset = is_part ? active->extent.offset : 0;
    fetch->length = is_part ? active->extent.length : 0;
    fetch->result.wait_s = 0;
    atomic_store(&fetch->started_ns, 0);
    atomic_store(&fetch->heard_ns, 0);
    fetch->done = attempt_done;
    fetch->serving = NULL;
    a->reader = r;
    a->active = active;
    a->kind = at;
    a->source = source_of(r->store, active, &a->location);
    a->begun_ns = stk_clock_ns();
    a->holders = 1;
    return a;
}

/* Begins one more attempt; false without memory. */
static bool begin_attempt(stk_reader *r, stk_active_read *active, stk_attempt_kind at) {
    stk_store *store = r->store;
    int which = active->attempts[0] == NULL ? 0 : 1;
    stk_read_attempt *a = make_attempt(r, active, at);
    if (a == NULL) {
        return false;
    }
    if (active->attempts[1 - which] == NULL) { /* the attempt reads into the caller's block */
        a->fetch.bytes = active->read->bytes;
        memset(&active->read->bytes, 0, sizeof active->read->bytes);
    }
    active->attempts[which] = a;
    r->attempts++;
    uint64_t key[2] = {active->key.high, active->key.low};
    bool begun = at == ATTEMPT_CACHE ? stk_io_threads_begin(store->cache_io_threads, &a->fetch,
                                                            read_cache, store->cache, key)
                                     : a->source->begin(a->location, &a->fetch);
    if (!begun) {
        active->attempts[which] = NULL;
        r->attempts--;
        let_go(r, a);
    }
    return begun;
}

/* Detaches an attempt from its read and puts it among those that are to be cancelled. */
static void detach(stk_reader *r, stk_active_read *active, int which) {
    stk_read_attempt *a = active->attempts[which];
    if (a != NULL) {
        active->attempts[which] = NULL;
        a->active = NULL;
        a->holders++;
        a->next = r->unwanted;
        r->unwanted = a;
    }
}

void stk_reader_cancel_unwanted(stk_reader *r) {
    while (r->unwanted != NULL) {
        stk_read_attempt *a = r->unwanted;
        r->unwanted = a->next;
        pthread_mutex_unlock(&r->lock);
        if (a->kind == ATTEMPT_CACHE) {
            stk_io_threads_cancel(r->store->cache_io_threads, &a->fetch);
        } else {
            a->source->cancel(a->location, &a->fetch);
        }
        pthread_mutex_lock(&r->lock);
        let_go(r, a);
    }
}

/* ---- ends ---- */

void stk_active_read_remove(stk_reader *r, stk_active_read *active) {
    int64_t from_ns = active->counted_from_ns;
    active->read->ns = from_ns > 0 ? stk_clock_ns() - from_ns : 0;
    detach(r, active, 0);
    detach(r, active, 1);
    unlink_read(r, active);
}

/* Writes the error of a read about the object itself, not about an attempt. */
static void explain(const stk_reader *r, const stk_active_read *active, stk_status status,
                    const char *cause) {
    stk_fetch_result why;
    (void)stk_fetch_fail(&why, STK_FETCH_NEVER, status, "%s", cause);
    stk_fetch_explain(&why, r->store->root, active->read->path, &active->read->error);
}

void stk_active_read_report(stk_reader *r, stk_active_read *active) {
    stk_read *read = active->read;
    bool fresh = active->is_new && active->has_key && read->error.status == STK_OK;
    read->keep = fresh && r->store->caches_decoded;
    read->key = active->key;
    if (fresh && !r->store->caches_decoded) {
        stk_cache_put(r->store->cache, active->key, read->bytes.data, read->bytes.size);
    }
    stk_mem_free(active);
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

/* Says that nothing can be had from the location any more; all reads end with it. */
static void lose_location(stk_reader *r, const stk_error *why) {
    if (r->lost.status == STK_OK) {
        r->lost = *why;
        stk_store_lose(r->store, why);
        stk_reader_wake(r);
    }
}

static void lose_after_failures(stk_reader *r, const stk_error *last) {
    stk_error why = {0};
    (void)STK_FAIL(&why, STK_ERR_STORAGE,
                   "nothing can be read from %s any more: %d reads in a row failed after every "
                   "retry; the last one: %.500s",
                   r->store->root, r->policy.given_up, last->message);
    lose_location(r, &why);
}

/*
 * Whether this is an ordinary read: the bytes of an object or a member of a shard, for a caller
 * outside of src/storage. The probe is none.
 */
static bool is_plain(const stk_reader *r, const stk_active_read *active) {
    return active->read->kind == STK_FETCH_BYTES && !active->read->bypasses_shards &&
           active->read != &r->probe;
}

/*
 * A read is over without bytes and has its error. `undecided`: the verdict of its last attempt was
 * AGAIN (no response, or one such as 503), which says nothing about the object. True when the read
 * has left the list; a read whose failure is deferred stays in it.
 */
static bool give_up(stk_reader *r, stk_active_read *active, bool undecided, int64_t now) {
    if (undecided && is_plain(r, active)) {
        stk_quarantine_add(&r->store->quarantine, active->read->path, active->read->error.message,
                           now, r->policy.timeout_ns);
    }
    /* stk_read_policy_count_given_up() counts the failure, so it comes last in the condition. */
    if (undecided && r->lost.status == STK_OK && active->read != &r->probe &&
        !stk_outage_is_waited_out(&r->store->outage) &&
        stk_read_policy_count_given_up(&r->policy, active->first_failed_ns)) {
        active->deferred_ns = now;
        if (stk_read_policy_is_lost(&r->policy)) {
            lose_after_failures(r, &active->read->error);
        }
        stk_reader_wake(r);
        return false;
    }
    if (r->lost.status != STK_OK) {
        stk_active_read_end_lost(r, active);
    } else {
        stk_active_read_remove(r, active);
    }
    return true;
}

/* The location has answered something to a read, if only that there is no such object. */
static void note_answer(stk_reader *r, const stk_active_read *active, int64_t now) {
    stk_read_policy_note_answer(&r->policy, now);
    stk_outage_answered(&r->store->outage, now, active->failures == 0);
}

static void note_start(stk_active_read *active, int64_t started_ns) {
    active->counted_from_ns = active->counted_from_ns == 0 ? started_ns : active->counted_from_ns;
}

/*
 * Notes a failure, and whether it counts against the object. An object is not blamed when no read
 * of the location got an answer meanwhile, nor, for up to --outage, while over a quarter of first
 * attempts fail.
 */
static void assign_blame(stk_reader *r, stk_active_read *active, const stk_fetch_result *why,
                         int64_t started_ns, int64_t now) {
    static const char no_answer[] = STK_FETCH_NO_ANSWER;
    stk_outage *outage = &r->store->outage;
    bool undecided = why->verdict == STK_FETCH_AGAIN;
    bool excused = false;
    if (undecided) {
        const char *cause = why->cause;
        cause += strncmp(cause, no_answer, sizeof no_answer - 1) == 0 ? sizeof no_answer - 1 : 0;
        int64_t since_ns = active->last_failed_ns > 0 ? active->last_failed_ns : started_ns;
        excused = stk_outage_missed(outage, since_ns, now, active->failures == 0, cause);
    }
    if (undecided && !excused && stk_outage_is_ill(outage)) {
        excused = now - active->begun_ns < outage->most_ns;
    }
    active->hasten = excused;
    active->blamed += !excused;
    active->counted_from_ns = excused ? 0 : active->counted_from_ns;
}

/*
 * An attempt has failed: decides whether another one follows or the read ends. started_ns is when
 * the attempt's turn came; 0: it never came. True when the read is over.
 */
static bool fail(stk_reader *r, stk_active_read *active, const stk_fetch_result *why,
                 int64_t started_ns) {
    int64_t now = stk_clock_ns();
    bool damaged = why->verdict == STK_FETCH_DAMAGED;
    bool never = why->verdict == STK_FETCH_NEVER;
    started_ns = started_ns > 0 ? started_ns : active->begun_ns;
    note_start(active, started_ns);
    stk_fetch_explain(why, r->store->base,
                      active->extent.unpacked ? active->read->path : object_of(active),
                      &active->read->error);
    active->read->refused = never && why->status != STK_ERR_MEMORY;
    if (never || damaged) {
        note_answer(r, active, now);
    }
    assign_blame(r, active, why, started_ns, now);
    active->first_failed_ns = active->failures++ == 0 ? now : active->first_failed_ns;
    active->last_failed_ns = now;
    active->damaged += damaged;
    if (why->verdict == STK_FETCH_LOST) {
        lose_location(r, &active->read->error);
    }
    if (never || r->lost.status != STK_OK) {
        return give_up(r, active, false, now);
    }
    if (active->attempts[0] != NULL || active->attempts[1] != NULL) {
        return false; /* the other attempt may bring the bytes */
    }
    int64_t next =
        damaged ? now : now + stk_read_policy_backoff_ns(&r->policy, active->failures, why->wait_s);
    if (active->counted_from_ns > 0 &&
        stk_read_policy_gives_up(&r->policy, active->blamed, active->damaged,
                                 active->counted_from_ns, next)) {
        return give_up(r, active, why->verdict == STK_FETCH_AGAIN, now);
    }
    atomic_fetch_add(&r->store->retries, 1);
    if (damaged) {
        stk_active_read_continue(r, active, NULL);
    } else {
        active->retry_ns = next;
    }
    return false;
}

/*
 * Begins the first attempt, or the next one after an answer. With a cache the order is: the
 * object's version, unless a tree knows it; the cache; the source. False without memory.
 */
static bool proceed(stk_reader *r, stk_active_read *active, const char *version) {
    stk_store *store = r->store;
    if (store->cache == NULL || atomic_load(&store->cache_waits) || !is_plain(r, active) ||
        atomic_load_explicit(&store->cache_silent, memory_order_relaxed) >= CACHE_LOST_AFTER) {
        return begin_attempt(r, active, ATTEMPT_SOURCE);
    }
    if (!active->has_key) {
        active->has_key = stk_store_key(store, active->read->path, version, &active->key);
        if (!active->has_key) {
            return begin_attempt(r, active, ATTEMPT_VERSION);
        }
        if (stk_cache_has(store->cache, active->key)) {
            return begin_attempt(r, active, ATTEMPT_CACHE);
        }
    }
    active->is_new = true;
    return begin_attempt(r, active, ATTEMPT_SOURCE);
}

/* Bytes of a part, packed or not, whichever are more; 0: not known, since it is no part. */
static uint64_t size_of(const stk_active_read *active) {
    const stk_extent *extent = &active->extent;
    return !active->is_part                                  ? 0
           : extent->zipped && extent->size > extent->length ? extent->size
                                                             : extent->length;
}

void stk_active_read_continue(stk_reader *r, stk_active_read *active, const char *version) {
    active->retry_ns = 0;
    if (active->is_part && active->extent.length == 0) { /* an empty part needs no attempt */
        active->read->bytes.size = 0;
        active->ended = true;
    } else if (size_of(active) > STK_STORAGE_MAX_BYTES) { /* the limit of whole objects */
        char cause[64];
        snprintf(cause, sizeof cause, "it has %llu bytes, which is too many",
                 (unsigned long long)size_of(active));
        explain(r, active, STK_ERR_DATA, cause);
        active->ended = true;
    } else if (!proceed(r, active, version)) {
        active->read->error.status = STK_OK;
        (void)STK_FAIL_MEMORY(&active->read->error, active->read->path);
        active->ended = true;
    }
    if (active->ended) {
        stk_reader_wake(r);
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

/* Remembers an object that can be read, for the probe. Without memory the previous one stays. */
static void remember(stk_reader *r, const stk_active_read *active, int64_t now) {
    if (active->read->kind == STK_FETCH_BYTES && !active->read->bypasses_shards &&
        now - r->known_ns > KNOWN_NS) {
        char *copy = stk_mem_strdup(active->read->path);
        if (copy != NULL) {
            stk_mem_free(r->known);
            r->known = copy;
            r->known_ns = now;
        }
    }
}

/* An attempt has come back to its read. True when the read is over. */
static bool receive(stk_reader *r, stk_active_read *active, stk_read_attempt *a) {
    stk_fetch *fetch = &a->fetch;
    int64_t now = stk_clock_ns();
    int64_t started = atomic_load(&fetch->started_ns);
    active->attempts[active->attempts[0] == a ? 0 : 1] = NULL;
    a->active = NULL;
    if (a->kind == ATTEMPT_CACHE && atomic_load(&r->store->cache_silent) > 0) {
        atomic_store(&r->store->cache_silent, 0);
    }
    if (a->kind == ATTEMPT_CACHE && fetch->result.verdict != STK_FETCH_OK) {
        stk_active_read_continue(r, active, NULL); /* the cache does not have it after all */
        return false;
    }
    if (fetch->result.verdict == STK_FETCH_CANCELLED) { /* by the source itself */
        (void)stk_fetch_fail(&fetch->result, STK_FETCH_CANCELLED, STK_ERR_STORAGE,
                             "it ended without a reason");
    }
    if (fetch->result.verdict != STK_FETCH_OK) {
        return fail(r, active, &fetch->result, started);
    }
    if (a->kind == ATTEMPT_VERSION) {
        note_answer(r, active, now);
        stk_active_read_continue(r, active, version_of(fetch));
        return false;
    }
    note_start(active, started > 0 ? started : a->begun_ns);
    if (a->kind == ATTEMPT_SOURCE) { /* what a cache brings says nothing about the location */
        stk_read_policy_note_success(&r->policy, now, now - (started > 0 ? started : a->begun_ns));
        note_answer(r, active, now);
        remember(r, active, now);
    }
    active->is_new = active->is_new && a->kind == ATTEMPT_SOURCE;
    active->read->error.status = STK_OK;
    stk_bytes_free(&active->read->bytes);
    active->read->bytes = fetch->bytes;
    memset(&fetch->bytes, 0, sizeof fetch->bytes);
    stk_active_read_remove(r, active);
    return true;
}

/* Checks the bytes of a shard's member. Under the lock, which is released during the check. */
static void check_member(stk_reader *r, stk_read_attempt *a) {
    const stk_active_read *active = a->active;
    stk_fetch *fetch = &a->fetch;
    if (active == NULL || fetch->result.verdict != STK_FETCH_OK || a->kind != ATTEMPT_SOURCE ||
        !active->is_part || active->read->bypasses_shards) {
        return;
    }
    stk_extent extent = active->extent;
    stk_bytes bytes = fetch->bytes;
    pthread_mutex_unlock(&r->lock);
    stk_member_check check = stk_member_check_bytes(&extent, &bytes);
    pthread_mutex_lock(&r->lock);
    fetch->bytes = bytes;
    if (a->active != NULL && check.why != NULL) { /* the read may be over by now */
        stk_member_blame(&extent, &check, a->active->read->path, &fetch->result);
    }
}

/* The callback of the sources; they call it on any of their threads. */
static void attempt_done(stk_fetch *fetch) {
    stk_read_attempt *a = (stk_read_attempt *)(void *)fetch;
    stk_reader *r = a->reader;
    pthread_mutex_lock(&r->lock);
    check_member(r, a);
    stk_active_read *active = a->active;
    bool over = active != NULL && receive(r, active, a);
    let_go(r, a);
    stk_reader_cancel_unwanted(r);
    if (over) {
        pthread_mutex_unlock(&r->lock);
        stk_active_read_report(r, active);
        pthread_mutex_lock(&r->lock);
    }
    if (--r->attempts == 0 && r->quit) {
        pthread_cond_signal(&r->calm);
    }
    pthread_mutex_unlock(&r->lock);
}

/* ---- calls of the reader ---- */

/* Finds out where the bytes of a read are. */
static void locate(const stk_store *store, stk_active_read *active) {
    const stk_read *read = active->read;
    stk_extent *extent = &active->extent;
    if (read->bypasses_shards) {
        active->is_part = read->length > 0;
        *extent =
            (stk_extent){.object = read->path, .offset = read->offset, .length = read->length};
        if (active->is_part) {
            stk_store_place_part(store, extent);
        }
    } else if (read->kind == STK_FETCH_BYTES) {
        active->is_part = stk_store_find_member(store, read->path, extent);
    }
}

stk_active_read *stk_active_read_new(const stk_reader *r, stk_read *read) {
    stk_active_read *active = stk_mem_new(1, sizeof *active);
    if (active != NULL) {
        read->error.status = STK_OK;
        read->lost = false;
        read->refused = false;
        active->read = read;
        active->begun_ns = stk_clock_ns();
        locate(r->store, active);
    }
    return active;
}

void stk_active_read_start(stk_reader *r, stk_active_read *active) {
    active->generation = r->generation;
    active->next = r->first;
    if (r->first != NULL) {
        r->first->prev = active;
    }
    r->first = active;
    active->ended =
        is_plain(r, active) && stk_quarantine_has(&r->store->quarantine, active->read->path,
                                                  active->begun_ns, &active->read->error);
    if (r->lost.status == STK_OK && !active->ended) {
        stk_active_read_continue(r, active, NULL);
    } else {
        stk_reader_wake(r);
    }
}

void stk_active_read_hedge(stk_reader *r, stk_active_read *active) {
    active->hedged = true;
    if (begin_attempt(r, active, ATTEMPT_SOURCE)) {
        atomic_fetch_add(&r->store->hedges, 1);
    }
}

bool stk_active_read_time_out(stk_reader *r, stk_active_read *active, int which) {
    const stk_read_attempt *a = active->attempts[which];
    bool cached = a->kind == ATTEMPT_CACHE;
    int64_t started = atomic_load(&a->fetch.started_ns);
    detach(r, active, which);
    atomic_fetch_add(&r->store->timeouts, 1);
    if (cached) {
        atomic_fetch_add(&r->store->cache_silent, 1);
        stk_active_read_continue(r, active, NULL);
        return false;
    }
    stk_fetch_result silence = {0};
    (void)stk_fetch_fail(&silence, STK_FETCH_AGAIN, STK_ERR_STORAGE, "no answer within %.3g s",
                         (double)r->policy.timeout_ns / STK_NS_PER_S);
    return fail(r, active, &silence, started);
}

void stk_active_read_end_lost(stk_reader *r, stk_active_read *active) {
    active->read->error = r->lost;
    active->read->lost = true;
    stk_active_read_remove(r, active);
}

void stk_active_read_end_stopped(stk_reader *r, stk_active_read *active) {
    explain(r, active, STK_ERR_STOPPED, "it was stopped");
    stk_active_read_remove(r, active);
}

void stk_reader_lose_after_outage(stk_reader *r) {
    stk_outage *outage = &r->store->outage;
    stk_error why = {0};
    pthread_mutex_lock(&outage->lock);
    (void)STK_FAIL(&why, STK_ERR_STORAGE,
                   "nothing can be read from %s any more: no answer for %s, as long as --outage "
                   "allows (%s)",
                   r->store->root, stk_format_span((double)outage->most_ns / STK_NS_PER_S).text,
                   outage->why);
    pthread_mutex_unlock(&outage->lock);
    lose_location(r, &why);
}
