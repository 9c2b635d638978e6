/* store.c - opening a place: its source, its shards, its cache; and reading one object of it. */
#include "storage/reading/store_state.h"

#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/error.h"
#include "base/files/disk.h"
#include "base/mem.h"
#include "base/str.h"

#define FIELD(name) offsetof(stk_storage_options, name)
#define DEFAULT_TIMEOUT "30"
#define DEFAULT_TIMEOUT_S 30.0
#define DEFAULT_OUTAGE "300"

static const stk_option options[] = {
    {.name = "cache",
     .may_change = true,
     .type = STK_OPTION_TEXT,
     .offset = FIELD(cache),
     .fallback = "auto",
     .may_be_auto = true,
     .metavar = "DIR|ram|decoded|off",
     .help =
         "where pictures are kept after the first read: a folder, memory, or decoded in memory; "
         "auto is a folder of the user's cache for data that is far away, and off for other "
         "data"},
    {.name = "cache-size",
     .may_change = true,
     .type = STK_OPTION_BYTES,
     .offset = FIELD(cache_size),
     .fallback = "auto",
     .may_be_auto = true,
     .metavar = "SIZE",
     .help = "most that the cache may hold; auto is half of what is free on its disk, or a quarter "
             "of the memory"},
    {.name = "refresh",
     .may_change = true,
     .type = STK_OPTION_BOOL,
     .offset = FIELD(refresh),
     .fallback = "false",
     .help = "list remote data again instead of taking the list of an earlier run"},
    {.name = "anonymous",
     .may_change = true,
     .aliases = "no_sign_request",
     .type = STK_OPTION_BOOL,
     .offset = FIELD(anonymous),
     .fallback = "false",
     .help = "read public buckets without credentials"},
    {.name = "read-timeout",
     .may_change = true,
     .type = STK_OPTION_DURATION,
     .offset = FIELD(read_timeout_s),
     .fallback = DEFAULT_TIMEOUT,
     .min = 0.1,
     .max = 86400,
     .metavar = "T",
     .help =
         "how long an attempt to read may be without a sign of life; then it is made again, and "
         "after that the picture counts as bad"},
    {.name = "outage",
     .may_change = true,
     .type = STK_OPTION_DURATION,
     .offset = FIELD(outage_s),
     .fallback = DEFAULT_OUTAGE,
     .min = 0,
     .max = 86400 * 7,
     .metavar = "T",
     .help = "how long training, prediction and staging wait for a place that answers nobody any "
             "more, before the run ends; 0: no longer than for a few reads"},
};

const stk_option_table stk_storage_option_table =
    STK_OPTION_TABLE("Storage", options, stk_storage_options);

stk_storage_options stk_storage_to_measure(const stk_options *given) {
    stk_storage_options values =
        *(const stk_storage_options *)stk_options_values(given, &stk_storage_option_table);
    if (stk_options_source(given, "outage") == STK_FROM_DEFAULT) {
        values.outage_s = 0;
    }
    return values;
}

/* Reads in flight of a place that uses threads. */
#define MOST_THREADS 256

/* How often somebody who waits looks whether to stop. */
#define LOOK_NS 50000000
#define NS_PER_S 1000000000

static const stk_storage_source *const sources[] = {
#ifdef STK_HAVE_S3
    &stk_storage_s3,
#endif
    &stk_storage_local,
};

/* ---- opening ---- */

static stk_status choose_source(stk_store *s, stk_error *err) {
    for (size_t i = 0; i < sizeof sources / sizeof *sources; i++) {
        if (sources[i]->matches(s->base)) {
            s->source = sources[i];
            return STK_OK;
        }
    }
#ifndef STK_HAVE_S3
    if (strncmp(s->root, "s3://", 5) == 0) {
        return STK_FAIL(err, STK_ERR_USAGE,
                        "cannot open %s: this build of Stoker has no S3 support; build it where "
                        "libcurl and expat are installed, or copy the data to a folder",
                        s->root);
    }
#endif
    return STK_FAIL(err, STK_ERR_USAGE,
                    "cannot open %s: data can lie in a folder of this machine or in "
                    "s3://bucket/prefix; copy it to one of them",
                    s->root);
}

/* The root as no other folder is called, without asking a mount that may not answer. */
static char *full_name(const char *root) {
    char here[PATH_MAX];
    bool relative = root != NULL && root[0] != '/' && strstr(root, "://") == NULL;
    return relative && getcwd(here, sizeof here) != NULL ? stk_path_join(here, root)
                                                         : stk_mem_strdup(root != NULL ? root : "");
}

/* Keeps the root, and what the source is opened on: of a tar the folder it is in. */
static stk_status keep_root(stk_store *s, const char *root, const char **only, stk_error *err) {
    size_t length = strlen(root);
    const char *scheme = strstr(root, "://");
    size_t least = scheme != NULL ? (size_t)(scheme - root) + 3 : 1;
    while (length > least && root[length - 1] == '/') {
        length--;
    }
    s->root = stk_mem_strndup(root, length);
    s->base = stk_mem_strndup(root, length);
    if (s->root == NULL || s->base == NULL) {
        return STK_FAIL_MEMORY(err, root);
    }
    *only = NULL;
    size_t head = (size_t)(stk_path_base(s->root) - s->root);
    bool is_tar = root[length] == '\0' && stk_shards_is_tar_name(s->root); /* "x.tar/" is none */
    if (is_tar && (scheme == NULL || head > least)) {
        *only = s->root + head;
        stk_mem_free(s->base);
        s->base =
            head > 1 ? stk_mem_strndup(root, head - 1) : stk_mem_strdup(head == 1 ? "/" : ".");
    }
    s->name = full_name(s->base);
    return s->base != NULL && s->name != NULL ? STK_OK : STK_FAIL_MEMORY(err, root);
}

/* The folder of what is kept between runs; NULL when there is nowhere to keep it. */
static char *kept_folder(const stk_storage_options *given) {
    const char *cache = given->cache;
    if (cache != NULL && !stk_str_equal(cache, "off") && !stk_str_equal(cache, "ram") &&
        !stk_str_equal(cache, "decoded")) {
        return stk_mem_strdup(cache);
    }
    return stk_path_user_cache();
}

/* Finds out whether the place is one of shards. */
static stk_status open_shards(stk_store *s, const char *only, const char *kept,
                              const stk_events *events, stk_error *err) {
    stk_dir_list top = {0};
    stk_skipped_folders skipped = {0};
    stk_status status = stk_store_list(s, "", &top, err);
    bool wanted = only != NULL;
    if (status == STK_OK && !wanted) {
        status = stk_shards_wanted(s, &top, &skipped, &wanted, err);
    }
    stk_dir_list_free(&top);
    if (status == STK_OK && wanted) { /* whoever lists the folder otherwise tells it */
        stk_skipped_folders_report(&skipped, s->root, events);
    }
    stk_skipped_folders_free(&skipped);
    if (status == STK_OK && wanted) {
        status = stk_shards_open(&s->shards, s, only, kept, s->options.refresh, events, err);
        s->tree = status == STK_OK ? stk_shards_tree(s->shards) : s->tree;
    }
    return status;
}

static stk_status open_all(stk_store *s, const char *root, const stk_events *events,
                           stk_error *err) {
    const char *only = NULL;
    char *kept = kept_folder(&s->options);
    char *lists = kept != NULL ? stk_path_join(kept, "lists") : NULL;
    stk_disk_root(kept, true);
    stk_status status = keep_root(s, root, &only, err);
    status = status == STK_OK ? choose_source(s, err) : status;
    status = status == STK_OK ? stk_io_threads_open(&s->io_threads, MOST_THREADS, err) : status;
    if (status == STK_OK) {
        status =
            s->source->open(&s->place, s->base, &s->options, s->io_threads, lists, events, err);
    }
    if (status == STK_OK) {
        s->tree = s->source->tree != NULL ? s->source->tree(s->place) : NULL;
        if (s->tree != NULL) { /* it has been listed, now or in an earlier run: it is there */
            stk_outage_answered(&s->outage, stk_clock_ns(), false);
        }
        status = stk_store_open_cache(s, kept, events, err);
    }
    status = status == STK_OK ? open_shards(s, only, lists, events, err) : status;
    stk_mem_free(kept);
    stk_mem_free(lists);
    return status;
}

/* A store of which nothing is open yet. */
static stk_store *new_store(const stk_storage_options *given) {
    static const stk_storage_options plain = {
        .cache = "off", .cache_size = STK_AUTO_BYTES, .read_timeout_s = DEFAULT_TIMEOUT_S};
    stk_store *s = stk_mem_new(1, sizeof *s);
    if (s != NULL) {
        s->options = given != NULL ? *given : plain;
        s->options.read_timeout_s =
            s->options.read_timeout_s > 0 ? s->options.read_timeout_s : DEFAULT_TIMEOUT_S;
        pthread_mutex_init(&s->lock, NULL);
        pthread_mutex_init(&s->lost_lock, NULL);
        s->begun_ns = stk_clock_ns();
        stk_backoff_open(&s->backoff);
        stk_outage_open(&s->outage, s->options.outage_s);
    }
    return s;
}

/* The end of opening, one way or the other. */
static stk_status hand_out(stk_store **out, stk_store *s, stk_status status) {
    s->options.cache = NULL; /* the caller's text */
    if (status == STK_OK) {
        *out = s;
    } else {
        stk_store_close(s);
    }
    return status;
}

stk_status stk_store_open(stk_store **out, const char *root, const stk_storage_options *given,
                          const stk_events *events, stk_error *err) {
    stk_store *s = new_store(given);
    return s != NULL ? hand_out(out, s, open_all(s, root, events, err))
                     : STK_FAIL_MEMORY(err, root);
}

stk_status stk_store_open_on(stk_store **out, const stk_storage_source *source, void *place,
                             const stk_storage_options *given, stk_error *err) {
    stk_store *s = new_store(given);
    if (s == NULL) {
        source->close(place);
        return STK_FAIL_MEMORY(err, source->name);
    }
    s->source = source;
    s->place = place;
    const char *only = NULL;
    stk_status status = keep_root(s, source->name, &only, err);
    return hand_out(
        out, s, status == STK_OK ? stk_io_threads_open(&s->io_threads, MOST_THREADS, err) : status);
}

/* What threads that are stuck may still use; they are the reason why this may come late. */
static void free_store(void *arg) {
    stk_store *s = arg;
    if (s->place != NULL) {
        s->source->close(s->place);
    }
    stk_shards_close(s->shards);
    stk_backoff_close(&s->backoff);
    stk_outage_close(&s->outage);
    pthread_mutex_destroy(&s->lost_lock);
    pthread_mutex_destroy(&s->lock);
    stk_mem_free(s->root);
    stk_mem_free(s->base);
    stk_mem_free(s->name);
    stk_mem_free(s);
}

void stk_store_close(stk_store *s) {
    if (s == NULL) {
        return;
    }
    stk_reader_close(s->reader);
    s->reader = NULL;
    stk_store_close_cache(s);
    if (s->io_threads != NULL) {
        stk_io_threads_close(s->io_threads, free_store, s);
    } else {
        free_store(s);
    }
}

uint64_t stk_store_cache_memory(const stk_store *s) {
    return s->cache_memory;
}

const char *stk_store_root(const stk_store *s) {
    return s->root;
}

bool stk_store_keeps_made(const stk_store *s) {
    return s->keeps_made;
}

void stk_store_keep(stk_store *s, const stk_read *read, const void *data, size_t size) {
    if (read->keep && s->cache != NULL) {
        stk_cache_put(s->cache, (stk_cache_key){.high = read->key[0], .low = read->key[1]}, data,
                      size);
    }
}

bool stk_store_has_shards(const stk_store *s) {
    return s->shards != NULL;
}

bool stk_store_is_remote(const stk_store *s) {
    return s->source->remote;
}

/* ---- single reads ---- */

/* Someone who waits for one read. */
typedef struct waiting {
    stk_read read; /* first, so that a read leads to it */
    pthread_mutex_t lock;
    pthread_cond_t done;
    bool over; /* lock */
} waiting;

static void single_done(void *user, stk_read *read) {
    (void)user;
    waiting *w = (waiting *)(void *)read;
    pthread_mutex_lock(&w->lock);
    w->over = true;
    pthread_cond_signal(&w->done);
    pthread_mutex_unlock(&w->lock);
}

static stk_status own_reader(stk_store *s, stk_reader **reader, stk_error *err) {
    stk_status status = STK_OK;
    pthread_mutex_lock(&s->lock);
    if (s->reader == NULL) {
        stk_reader_config config = {.store = s, .done = single_done};
        status = stk_reader_open(&s->reader, &config, err);
    }
    *reader = s->reader;
    pthread_mutex_unlock(&s->lock);
    return status;
}

/*
 * Whether an answer is not waited for any more: a stop was asked for, or the time is up and it does
 * not come. What takes a moment only is waited for: without it nothing can be delivered.
 */
static stk_status check_end(const stk_store *s, const char *path, int64_t start_ns,
                            stk_error *err) {
    const char *slash = path[0] != '\0' ? "/" : "";
    if (stk_stop_asked(s->options.stop) != STK_STOP_NONE &&
        stk_clock_since_s(s->begun_ns) > STK_STORAGE_STOP_S) {
        return STK_FAIL(err, STK_ERR_STOPPED, "stopped while %s%s%s was read", s->root, slash,
                        path);
    }
    if (s->options.deadline_ns > 0 && stk_clock_ns() > s->options.deadline_ns &&
        stk_clock_since_s(start_ns) > STK_STORAGE_STOP_S) {
        return STK_FAIL(err, STK_ERR_STORAGE, "the time budget ended while %s%s%s was read",
                        s->root, slash, path);
    }
    return STK_OK;
}

/* Waits for the answer, and tells whether it was waited for to the end. */
static stk_status wait_for(stk_store *s, stk_reader *reader, waiting *w, stk_error *err) {
    bool watched = s->options.stop != NULL || s->options.deadline_ns > 0 || stk_store_tells(s);
    int64_t start = stk_clock_ns();
    stk_status status = STK_OK;
    pthread_mutex_lock(&w->lock);
    while (!w->over) {
        if (!watched || status != STK_OK) {
            pthread_cond_wait(&w->done, &w->lock);
            continue;
        }
        int64_t end = stk_clock_ns() + LOOK_NS;
        struct timespec at = {.tv_sec = end / NS_PER_S, .tv_nsec = end % NS_PER_S};
        pthread_cond_timedwait(&w->done, &w->lock, &at);
        stk_store_tell_outage(s);
        status = w->over ? STK_OK : check_end(s, w->read.path, start, err);
        if (status != STK_OK) {
            stk_reader_cancel(reader);
        }
    }
    pthread_mutex_unlock(&w->lock);
    return status;
}

static stk_status ask(stk_store *s, const char *path, const stk_question *question,
                      stk_bytes *bytes, stk_error *err) {
    stk_reader *reader = NULL;
    stk_status status = check_end(s, path, stk_clock_ns(), err);
    status = status == STK_OK ? own_reader(s, &reader, err) : status;
    if (status != STK_OK) {
        return status;
    }
    waiting w = {.read = {.path = path, .bytes = *bytes}};
    memset(bytes, 0, sizeof *bytes);
    pthread_condattr_t attributes;
    pthread_condattr_init(&attributes);
    pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
    pthread_mutex_init(&w.lock, NULL);
    pthread_cond_init(&w.done, &attributes);
    pthread_condattr_destroy(&attributes);
    if (stk_reader_ask(reader, &w.read, question)) {
        status = wait_for(s, reader, &w, err);
    } else {
        status = STK_FAIL_MEMORY(err, path);
    }
    pthread_cond_destroy(&w.done);
    pthread_mutex_destroy(&w.lock);
    *bytes = w.read.bytes;
    return status != STK_OK || w.read.error.status == STK_OK
               ? status
               : STK_FAIL(err, w.read.error.status, "%s", w.read.error.message);
}

stk_status stk_store_read(stk_store *s, const char *path, stk_bytes *bytes, stk_error *err) {
    return ask(s, path, &(stk_question){.kind = STK_FETCH_BYTES}, bytes, err);
}

stk_status stk_store_read_part(stk_store *s, const char *object, uint64_t offset, uint64_t length,
                               stk_bytes *bytes, stk_error *err) {
    stk_question question = {
        .kind = STK_FETCH_BYTES, .whole_place = true, .offset = offset, .length = length};
    return ask(s, object, &question, bytes, err);
}

/* The list as sources write it. */
static bool unpack(const stk_bytes *bytes, stk_dir_list *list) {
    size_t capacity = 0;
    for (size_t at = 0; at < bytes->size;) {
        const char *name = (const char *)bytes->data + at + 1;
        size_t length = strlen(name);
        if (!stk_dir_list_add(list, &capacity, name, length, bytes->data[at] == 'd')) {
            return false;
        }
        at += length + 2;
    }
    return true;
}

stk_status stk_store_list(stk_store *s, const char *folder, stk_dir_list *list, stk_error *err) {
    memset(list, 0, sizeof *list);
    if (s->tree != NULL) {
        return stk_tree_list(s->tree, folder, list, err);
    }
    stk_bytes bytes = {0};
    stk_status status = ask(s, folder, &(stk_question){.kind = STK_FETCH_LIST}, &bytes, err);
    if (status == STK_OK && !unpack(&bytes, list)) {
        stk_dir_list_free(list);
        status = STK_FAIL_MEMORY(err, folder);
    }
    stk_bytes_free(&bytes);
    return status;
}

stk_status stk_store_identify(stk_store *s, const char *folder, stk_store_identity *identity,
                              stk_error *err) {
    memset(identity, 0, sizeof *identity);
    if (s->tree != NULL) {
        return STK_OK;
    }
    stk_bytes bytes = {0};
    stk_status status = ask(s, folder, &(stk_question){.kind = STK_FETCH_IDENTITY}, &bytes, err);
    if (status == STK_OK && bytes.size == sizeof *identity) {
        memcpy(identity, bytes.data, sizeof *identity);
    }
    stk_bytes_free(&bytes);
    return status;
}

stk_status stk_store_version(stk_store *s, const char *object, char *buf, size_t size,
                             stk_error *err) {
    const stk_tree *tree = s->source->tree != NULL ? s->source->tree(s->place) : NULL;
    if (tree != NULL) {
        const stk_tree_object *known = stk_tree_find(tree, object);
        if (known == NULL) {
            return STK_FAIL(err, STK_ERR_DATA, "%s has no object %s", s->base, object);
        }
        snprintf(buf, size, "%s.%" PRIu64, known->version, known->size);
        return STK_OK;
    }
    stk_bytes bytes = {0};
    stk_question question = {.kind = STK_FETCH_VERSION, .whole_place = true};
    stk_status status = ask(s, object, &question, &bytes, err);
    if (status == STK_OK) {
        snprintf(buf, size, "%.*s", (int)bytes.size, (const char *)bytes.data);
    }
    stk_bytes_free(&bytes);
    return status;
}

stk_status stk_store_has(stk_store *s, const char *path, bool *has, stk_error *err) {
    stk_bytes bytes = {0};
    stk_error why = {0};
    if (s->tree != NULL) {
        *has = stk_tree_find(s->tree, path) != NULL;
        return STK_OK;
    }
    stk_question question = {.kind = STK_FETCH_VERSION, .whole_place = true};
    stk_status status = ask(s, path, &question, &bytes, &why);
    stk_bytes_free(&bytes);
    *has = status == STK_OK;
    return status == STK_ERR_MEMORY || status == STK_ERR_STOPPED
               ? STK_FAIL(err, status, "%s", why.message)
               : STK_OK;
}

/* ---- what is known without reading ---- */

uint64_t stk_store_size(const stk_store *s, const char *path) {
    const stk_tree_object *object = s->tree != NULL ? stk_tree_find(s->tree, path) : NULL;
    return object != NULL ? object->size : 0;
}

const char *stk_store_text(const stk_store *s, const char *path) {
    return s->shards != NULL ? stk_shards_text(s->shards, path) : NULL;
}

/* A member is known by where it is in its tar, since that is known before how it is shown. */
static stk_cache_key member_key(const stk_store *s, const char *object, const char *version,
                                uint64_t offset, uint64_t size) {
    char where[64];
    snprintf(where, sizeof where, "%" PRIu64 "+%" PRIu64, offset, size);
    const char *const parts[] = {s->name, object, version, where};
    return stk_cache_key_make(parts, sizeof parts / sizeof *parts);
}

bool stk_store_key(const stk_store *s, const char *path, const char *version, stk_cache_key *key) {
    const stk_tree_object *object = s->tree != NULL ? stk_tree_find(s->tree, path) : NULL;
    if (object == NULL && version == NULL) {
        return false;
    }
    stk_extent extent;
    if (object != NULL && s->shards != NULL && stk_shards_find(s->shards, path, &extent)) {
        *key = member_key(s, extent.object, object->version, extent.offset, extent.length);
        return true;
    }
    char size[24] = "";
    if (object != NULL) {
        version = object->version;
        snprintf(size, sizeof size, "%" PRIu64, object->size);
    }
    const char *const parts[] = {s->name, path, version, size};
    *key = stk_cache_key_make(parts, sizeof parts / sizeof *parts);
    return true;
}

void stk_store_put_member(stk_store *s, const char *object, const char *version, uint64_t offset,
                          const void *data, size_t size) {
    if (s->cache != NULL && !s->keeps_made) {
        stk_cache_put(s->cache, member_key(s, object, version, offset, size), data, size);
    }
}

void stk_store_put_settle(stk_store *s) {
    if (s->cache != NULL) {
        stk_cache_flush(s->cache);
    }
}

void stk_store_stats(const stk_store *s, stk_store_counters *counters) {
    *counters = (stk_store_counters){.retries = atomic_load(&s->retries),
                                     .hedges = atomic_load(&s->hedges),
                                     .timeouts = atomic_load(&s->timeouts)};
    if (s->cache != NULL) {
        stk_cache_counters cache;
        stk_cache_stats(s->cache, &cache);
        counters->cache_hits = cache.hits;
        counters->cache_misses = cache.misses;
        counters->cache_bytes = cache.bytes;
    }
}

bool stk_store_take_notice(stk_store *s, char *buf, size_t size) {
    return (s->cache != NULL && stk_cache_take_notice(s->cache, buf, size)) ||
           (s->source->notice != NULL && s->source->notice(s->place, buf, size)) ||
           stk_outage_notice(&s->outage, s->root, stk_clock_ns(), buf, size);
}

void stk_store_bound(stk_store *s, uint64_t bytes) {
    if (s->source->bound != NULL) {
        s->source->bound(s->place, bytes);
    }
}

bool stk_store_tells(const stk_store *s) {
    return s->options.events != NULL && s->outage.most_ns > 0;
}

void stk_store_tell_outage(stk_store *s) {
    char text[600];
    if (stk_store_tells(s) &&
        stk_outage_notice(&s->outage, s->root, stk_clock_ns(), text, sizeof text)) {
        stk_events_warning(s->options.events, "%s", text);
    }
}

int stk_store_threads(const stk_store *s) {
    int cached = s->cache_io_threads != NULL ? stk_io_threads_count(s->cache_io_threads) : 0;
    return s->source->threads(s->place) + cached;
}

/* ---- a place that is gone ---- */

void stk_store_lose(stk_store *s, const stk_error *why) {
    pthread_mutex_lock(&s->lost_lock);
    if (!atomic_load(&s->is_lost)) {
        s->lost = *why;
        atomic_store(&s->is_lost, true);
    }
    pthread_mutex_unlock(&s->lost_lock);
}

bool stk_store_is_lost(stk_store *s, stk_error *why) {
    if (!atomic_load(&s->is_lost)) {
        return false;
    }
    pthread_mutex_lock(&s->lost_lock);
    *why = s->lost;
    pthread_mutex_unlock(&s->lost_lock);
    return true;
}
