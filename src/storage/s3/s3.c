/*
 * s3.c - objects of a bucket of S3, or of a store that speaks like it.
 *
 * A place is `s3://bucket/prefix`. It is listed when it is opened, or the listing of an earlier run
 * is taken. An object is one GET; what arrives must have the length that was promised and, where
 * the ETag is an MD5, that MD5.
 */
#include "storage/source.h"

#ifdef STK_HAVE_S3

#include <ctype.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>
#include <time.h>

#include "base/clock.h"
#include "base/error.h"
#include "base/hide.h"
#include "base/machine.h"
#include "base/mem.h"
#include "base/numbers/checksum.h"
#include "base/numbers/digest.h"
#include "base/str.h"
#include "storage/s3/client.h"
#include "storage/s3/list.h"
#include "storage/s3/manifest.h"

/* The names of a place's objects take no more than this part of the memory. */
#define LIST_SHARE 4

/* Objects whose bytes did not fit their ETag are remembered until they come again. */
#define SUSPECTS 64

typedef struct suspect {
    uint64_t object; /* checksum of key and ETag */
    uint8_t md5[STK_MD5_BYTES];
} suspect;

typedef struct get {
    stk_s3_call call; /* first */
    struct place *place;
    stk_fetch *fetch; /* the fetch's `task` leads back; place's lock, but for who ends requests */
    stk_str key;      /* prefix and path: the fetch's own path may be gone when this ends */
    stk_bytes bytes;
    const stk_tree_object *listed; /* the object in the place's tree, or NULL */
    bool summed;                   /* the MD5 counts */
    stk_md5 md5;
    struct get *next; /* among the free ones; place's lock */
} get;

typedef struct place {
    char *root;   /* owned: "s3://bucket/prefix" */
    char *bucket; /* owned */
    char *prefix; /* owned; with a slash at its end, or "" */
    size_t prefix_length;
    stk_s3_client *client;
    stk_tree tree;
    pthread_mutex_t lock;
    get *free_gets;             /* lock */
    atomic_bool no_md5;         /* ETags of this store look like MD5s and are none */
    atomic_size_t changed;      /* objects that are not as listed */
    size_t changed_told;        /* of these; lock */
    bool some_md5;              /* an ETag was the MD5; lock */
    uint8_t *changed_marks;     /* owned; a bit per object of the tree; NULL: none yet; lock */
    suspect suspects[SUSPECTS]; /* lock */
    size_t suspect_count;       /* ever; lock */
} place;

/* ---- what arrived ---- */

/* An ETag that could be an MD5, in either spelling. */
static bool looks_like_md5(const char *etag) {
    size_t length = 0;
    while (isxdigit((unsigned char)etag[length])) {
        length++;
    }
    return length == (size_t)2 * STK_MD5_BYTES && etag[length] == '\0';
}

static void receive(stk_s3_call *call, const uint8_t *piece, size_t size) {
    get *g = (get *)(void *)call;
    const stk_http_head *answer = &call->http.answer;
    atomic_store(&g->fetch->heard_ns, stk_clock_ns());
    if (call->bytes->size == size) { /* the first piece */
        g->summed = call->length == 0 && answer->status == 200 && !answer->sealed &&
                    looks_like_md5(answer->etag) && !atomic_load(&g->place->no_md5);
        stk_md5_begin(&g->md5);
    }
    if (g->summed) {
        stk_md5_add(&g->md5, piece, size);
    }
}

/* Under the lock: whether the same object came with the same bytes and the same ETag before. */
static bool seen_before(place *p, const get *g, const uint8_t md5[STK_MD5_BYTES]) {
    const char *key = stk_str_text(&g->key);
    const char *etag = g->call.http.answer.etag;
    uint64_t object = stk_checksum_seeded(etag, strlen(etag), stk_checksum(key, strlen(key)));
    size_t count = p->suspect_count < SUSPECTS ? p->suspect_count : SUSPECTS;
    for (size_t i = 0; i < count; i++) {
        if (p->suspects[i].object == object &&
            memcmp(p->suspects[i].md5, md5, STK_MD5_BYTES) == 0) {
            return true;
        }
    }
    suspect *s = &p->suspects[p->suspect_count++ % SUSPECTS];
    s->object = object;
    memcpy(s->md5, md5, STK_MD5_BYTES);
    return false;
}

/* False: the bytes are not those that were stored. */
static bool check_md5(place *p, get *g) {
    uint8_t md5[STK_MD5_BYTES];
    char text[STK_MD5_TEXT];
    stk_md5_end(&g->md5, md5);
    stk_hex(md5, sizeof md5, text);
    bool fits = strcasecmp(text, g->call.http.answer.etag) == 0;
    pthread_mutex_lock(&p->lock);
    p->some_md5 = p->some_md5 || fits;
    /* Twice the same bytes are no accident: these ETags are something else. */
    bool other = !fits && seen_before(p, g, md5);
    if (other && !p->some_md5) {
        atomic_store(&p->no_md5, true);
    }
    pthread_mutex_unlock(&p->lock);
    return fits || other;
}

/* Counts objects that are not what was listed, each once. */
static void note_change(place *p, const stk_tree_object *object) {
    size_t index = (size_t)(object - p->tree.objects);
    pthread_mutex_lock(&p->lock);
    if (p->changed_marks == NULL) {
        p->changed_marks = stk_mem_new(p->tree.count / 8 + 1, 1);
    }
    uint8_t bit = (uint8_t)(1U << (index % 8));
    if (p->changed_marks != NULL && (p->changed_marks[index / 8] & bit) == 0) {
        p->changed_marks[index / 8] |= bit;
        atomic_fetch_add(&p->changed, 1);
    }
    pthread_mutex_unlock(&p->lock);
}

static stk_fetch_verdict fail_damaged(const get *g, stk_error *err, const char *what,
                                      uint64_t wanted) {
    (void)STK_FAIL(err, STK_ERR_STORAGE, "cannot read s3://%s/%s: %s (%zu bytes came of %llu)",
                   g->place->bucket, stk_str_text(&g->key), what, g->bytes.size,
                   (unsigned long long)wanted);
    return STK_FETCH_DAMAGED;
}

/* Whether an answer says that the object is another one than was listed. */
static bool is_other(const stk_tree_object *listed, const stk_http_head *answer) {
    return listed->version[0] != '\0' && answer->etag[0] != '\0' &&
           strncmp(listed->version, answer->etag, sizeof answer->etag - 1) != 0;
}

/*
 * Where the parts of an object are was learnt from what was listed: of another one they would be
 * other bytes, which nothing but its ETag and its length tells.
 */
static bool is_replaced(const get *g, const stk_tree_object *listed) {
    const stk_http_head *answer = &g->call.http.answer;
    return is_other(listed, answer) ||
           (answer->range_total > 0 && answer->range_total != listed->size) ||
           (answer->status == 416 && g->call.offset < listed->size);
}

/* A part: the bytes that were asked for, or those up to the end. */
static stk_fetch_verdict check_part(get *g, stk_error *err) {
    const stk_http_head *answer = &g->call.http.answer;
    const stk_tree_object *listed = g->listed;
    stk_bytes *bytes = &g->bytes;
    uint64_t offset = g->call.offset;
    uint64_t length = g->call.length;
    if (listed != NULL && is_replaced(g, listed)) {
        note_change(g->place, listed);
        (void)STK_FAIL(err, STK_ERR_STORAGE,
                       "cannot read parts of s3://%s/%s: it was replaced since the bucket was "
                       "listed; --refresh lists again",
                       g->place->bucket, stk_str_text(&g->key));
        return STK_FETCH_NEVER;
    }
    if (answer->status == 416) { /* behind the end */
        bytes->size = 0;
        return STK_FETCH_OK;
    }
    if (answer->status == 200) { /* all of it, from a store that has no parts */
        size_t from = offset < bytes->size ? (size_t)offset : bytes->size;
        size_t left = bytes->size - from;
        bytes->size = left < length ? left : (size_t)length;
        if (bytes->size > 0) { /* without a body there may be no block */
            memmove(bytes->data, bytes->data + from, bytes->size);
        }
        return STK_FETCH_OK;
    }
    if (!answer->has_range || answer->range_first != offset) {
        return fail_damaged(g, err, "another part came than was asked for", length);
    }
    uint64_t total = answer->range_total;
    uint64_t wanted = total > offset && total - offset < length ? total - offset : length;
    bool exact = total > 0;
    if (bytes->size > wanted || (exact && bytes->size != wanted)) {
        return fail_damaged(g, err, "the part has the wrong length", wanted);
    }
    return STK_FETCH_OK;
}

static stk_fetch_verdict check_whole(get *g, stk_error *err) {
    place *p = g->place;
    const stk_http_head *answer = &g->call.http.answer;
    const stk_tree_object *listed = g->listed;
    if (answer->status != 200) {
        return fail_damaged(g, err, "a part came instead of all of it",
                            listed != NULL ? listed->size : 0);
    }
    if (answer->has_length && answer->length != g->bytes.size) {
        return fail_damaged(g, err, "it has the wrong length", answer->length);
    }
    if (listed != NULL && is_other(listed, answer)) {
        note_change(p, listed);
    } else if (listed != NULL && listed->version[0] != '\0' && answer->etag[0] != '\0' &&
               listed->size != g->bytes.size) {
        return fail_damaged(g, err, "it has another length than was listed", listed->size);
    }
    if (g->summed && !check_md5(p, g)) {
        return fail_damaged(g, err, "its MD5 is not its ETag: it was damaged on the way",
                            g->bytes.size);
    }
    return STK_FETCH_OK;
}

static void release(get *g) {
    pthread_mutex_lock(&g->place->lock);
    g->next = g->place->free_gets;
    g->place->free_gets = g;
    pthread_mutex_unlock(&g->place->lock);
}

/* As files are read; and what is empty has a block too. */
static bool end_with_nul(stk_bytes *bytes) {
    bool good = stk_bytes_reserve(bytes, bytes->size + 1);
    if (good) {
        bytes->data[bytes->size] = '\0';
    }
    return good;
}

static void got(stk_s3_call *call) {
    get *g = (get *)(void *)call;
    pthread_mutex_lock(&g->place->lock);
    stk_fetch *fetch = g->fetch;
    fetch->task = NULL; /* it cannot be cancelled any more */
    g->fetch = NULL;
    pthread_mutex_unlock(&g->place->lock);
    fetch->verdict = call->judgement.verdict;
    fetch->wait_s = call->judgement.wait_s;
    if (fetch->verdict == STK_FETCH_OK) {
        fetch->verdict =
            call->length > 0 ? check_part(g, &fetch->error) : check_whole(g, &fetch->error);
    } else if (fetch->verdict != STK_FETCH_CANCELLED) {
        fetch->error = call->judgement.error;
    }
    if (fetch->verdict != STK_FETCH_OK) {
        g->bytes.size = 0;
    } else if (!end_with_nul(&g->bytes)) {
        fetch->verdict = STK_FETCH_AGAIN;
        (void)STK_FAIL_MEMORY(&fetch->error, stk_str_text(&g->key));
    }
    fetch->bytes = g->bytes;
    memset(&g->bytes, 0, sizeof g->bytes);
    release(g);
    fetch->done(fetch);
}

/* ---- attempts ---- */

static get *take_get(place *p) {
    pthread_mutex_lock(&p->lock);
    get *g = p->free_gets;
    if (g != NULL) {
        p->free_gets = g->next;
    }
    pthread_mutex_unlock(&p->lock);
    if (g == NULL) {
        g = stk_mem_new(1, sizeof *g);
    }
    if (g != NULL) {
        g->place = p;
    }
    return g;
}

/*
 * How many bytes the answer may have: of a part those that were asked for, of an object those that
 * were listed. An object that was replaced since has as many as its answer says.
 */
static size_t limit(const stk_s3_call *call) {
    const stk_http_head *answer = &call->http.answer;
    const get *g = (const get *)(const void *)call;
    uint64_t most = STK_STORAGE_MAX_BYTES;
    uint64_t bytes = most;
    if (call->length > 0 && answer->status == 206) {
        bytes = call->length;
    } else if (g->listed != NULL) {
        bool told = is_other(g->listed, answer) && answer->has_length;
        bytes = told ? answer->length : g->listed->size;
    }
    return (size_t)(bytes < most ? bytes : most);
}

/* The bytes that a fetch is expected to bring; 0: nobody knows. */
static uint64_t expected_bytes(const stk_fetch *fetch, const stk_tree_object *listed) {
    uint64_t left = UINT64_MAX;
    if (listed != NULL) {
        left = fetch->offset < listed->size ? listed->size - fetch->offset : 0;
    }
    uint64_t bytes = fetch->length > 0 && fetch->length < left ? fetch->length : left;
    return bytes < STK_STORAGE_MAX_BYTES ? bytes + 1 : listed != NULL ? STK_STORAGE_MAX_BYTES : 0;
}

static bool begin(void *place_of_source, stk_fetch *fetch) {
    place *p = place_of_source;
    get *g = take_get(p);
    if (g == NULL) {
        return false;
    }
    stk_str_clear(&g->key);
    stk_str_append_bytes(&g->key, p->prefix, p->prefix_length);
    stk_str_append(&g->key, fetch->path);
    g->fetch = fetch;
    g->bytes = fetch->bytes;
    g->summed = false;
    memset(&fetch->bytes, 0, sizeof fetch->bytes);
    stk_s3_call *call = &g->call;
    call->key = stk_str_text(&g->key);
    call->query_count = 0;
    call->offset = fetch->offset;
    call->length = fetch->length;
    g->listed = stk_tree_find(&p->tree, fetch->path);
    call->max_bytes = STK_STORAGE_MAX_BYTES;
    call->limit = limit;
    call->expected_bytes = expected_bytes(fetch, g->listed);
    call->listed = g->listed != NULL ? &g->listed->size : NULL;
    call->timeout_s = 0; /* the reader looks at the clock */
    call->bytes = &g->bytes;
    call->started_ns = &fetch->started_ns;
    call->received = receive;
    call->done = got;
    fetch->task = g; /* nobody cancels before this returns */
    if (!stk_str_ok(&g->key) || !stk_s3_client_send(p->client, call)) {
        fetch->task = NULL;
        fetch->bytes = g->bytes;
        memset(&g->bytes, 0, sizeof g->bytes);
        stk_str_free(&g->key);
        release(g);
        return false;
    }
    return true;
}

static void cancel(void *place_of_source, stk_fetch *fetch) {
    place *p = place_of_source;
    pthread_mutex_lock(&p->lock);
    get *g = fetch->task;
    if (g != NULL) {
        stk_s3_client_cancel(&g->call);
    }
    pthread_mutex_unlock(&p->lock);
}

/* ---- opening ---- */

static bool matches(const char *root) {
    return strncasecmp(root, "s3://", 5) == 0;
}

/* "s3://bucket/prefix/" to its parts; slashes at the end do not matter. */
static stk_status split_root(place *p, const char *root, stk_error *err) {
    const char *bucket = root + 5;
    size_t length = strcspn(bucket, "/");
    bool plain = length > 0;
    for (size_t i = 0; i < length; i++) {
        plain = plain && (isalnum((unsigned char)bucket[i]) || strchr(".-_", bucket[i]) != NULL);
    }
    if (memchr(bucket, ':', length) != NULL || memchr(bucket, '@', length) != NULL) {
        return STK_FAIL(err, STK_ERR_USAGE, /* which may hold a secret: it is not shown */
                        "cannot open s3://" STK_HIDDEN
                        ": an address names a bucket alone; write it as s3://bucket/prefix, and "
                        "give keys as AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY or in a profile, "
                        "another store as AWS_ENDPOINT_URL");
    }
    if (!plain) {
        return STK_FAIL(err, STK_ERR_USAGE,
                        "cannot open %s: there is no bucket's name in it; write it as "
                        "s3://bucket/prefix",
                        root);
    }
    const char *prefix = bucket + length + strspn(bucket + length, "/");
    size_t prefix_length = strlen(prefix);
    while (prefix_length > 0 && prefix[prefix_length - 1] == '/') {
        prefix_length--;
    }
    p->bucket = stk_mem_strndup(bucket, length);
    p->prefix = prefix_length > 0 ? stk_str_format("%.*s/", (int)prefix_length, prefix)
                                  : stk_mem_strdup("");
    p->root = p->bucket != NULL ? stk_str_format(prefix_length > 0 ? "s3://%s/%.*s" : "s3://%s",
                                                 p->bucket, (int)prefix_length, prefix)
                                : NULL;
    if (p->bucket == NULL || p->prefix == NULL || p->root == NULL) {
        return STK_FAIL_MEMORY(err, root);
    }
    p->prefix_length = strlen(p->prefix);
    return STK_OK;
}

static void tell_listing(const place *p, const stk_s3_manifest *manifest,
                         const stk_events *events) {
    char what[512];
    char number[48];
    char when[32] = "";
    time_t seconds = (time_t)manifest->time_s;
    struct tm local;
    if (localtime_r(&seconds, &local) != NULL) {
        strftime(when, sizeof when, " from %Y-%m-%d %H:%M", &local);
    }
    snprintf(what, sizeof what, "listing of %.300s%s, %s objects", p->root, when,
             stk_format_count(number, sizeof number, p->tree.count));
    stk_events_decision(events, what, "--refresh lists again");
}

static void tell_region(const place *p, const stk_s3_manifest *manifest, const stk_events *events) {
    char what[64];
    char why[200];
    const char *told = stk_s3_client_told_region(p->client);
    if (!stk_str_equal(manifest->region, told)) {
        snprintf(what, sizeof what, "region %s", manifest->region);
        snprintf(why, sizeof why, "the bucket is there, not in %s; AWS_REGION=%s saves asking",
                 told, manifest->region);
        stk_events_decision(events, what, why);
    }
}

/* Lists, and keeps the listing; that it cannot be kept stops nobody. */
static stk_status list(place *p, const stk_storage_options *options, stk_s3_manifest *manifest,
                       const char *path, const stk_events *events, stk_error *err) {
    stk_error why = {0};
    stk_s3_listing listing = {.client = p->client,
                              .bucket = p->bucket,
                              .prefix = p->prefix,
                              .place = p->root,
                              .timeout_s = options->read_timeout_s,
                              .outage_s = options->outage_s,
                              .most_bytes = stk_machine_memory() / LIST_SHARE,
                              .stop = options->stop,
                              .deadline_ns = options->deadline_ns,
                              .events = events};
    stk_status status = stk_s3_list(&listing, &p->tree, err);
    if (status != STK_OK) {
        return status;
    }
    manifest->time_s = (int64_t)time(NULL);
    stk_s3_client_region(p->client, manifest->region);
    tell_region(p, manifest, events);
    if (path != NULL && stk_s3_manifest_save(path, manifest, &p->tree, &why) != STK_OK) {
        stk_events_warning(events,
                           "the next run lists %s again, since its listing cannot be kept: %s",
                           p->root, why.message);
    }
    return STK_OK;
}

/* Takes the listing of an earlier run, or makes one. */
static stk_status find_objects(place *p, const stk_storage_options *options, const char *kept,
                               const stk_events *events, stk_error *err) {
    stk_s3_manifest manifest = {.place = p->root, .endpoint = stk_s3_client_endpoint(p->client)};
    char *path = kept != NULL ? stk_s3_manifest_path(kept, &manifest) : NULL;
    stk_status status = STK_OK;
    if (path != NULL && !options->refresh && stk_s3_manifest_load(path, &manifest, &p->tree)) {
        stk_s3_client_set_region(p->client, manifest.region);
        tell_listing(p, &manifest, events);
    } else {
        status = list(p, options, &manifest, path, events, err);
    }
    stk_mem_free(path);
    return status;
}

static void close_place(void *place_of_source) {
    place *p = place_of_source;
    stk_s3_client_close(p->client);
    while (p->free_gets != NULL) {
        get *g = p->free_gets;
        p->free_gets = g->next;
        stk_s3_call_free(&g->call);
        stk_str_free(&g->key);
        stk_mem_free(g);
    }
    stk_tree_free(&p->tree);
    pthread_mutex_destroy(&p->lock);
    stk_mem_free(p->changed_marks);
    stk_mem_free(p->root);
    stk_mem_free(p->bucket);
    stk_mem_free(p->prefix);
    stk_mem_free(p);
}

static stk_status open_place(void **out, const char *root, const stk_storage_options *options,
                             stk_io_threads *io_threads, const char *kept, const stk_events *events,
                             stk_error *err) {
    (void)io_threads; /* nothing here blocks */
    place *p = stk_mem_new(1, sizeof *p);
    if (p == NULL) {
        return STK_FAIL_MEMORY(err, root);
    }
    pthread_mutex_init(&p->lock, NULL);
    stk_status status = split_root(p, root, err);
    if (status == STK_OK) {
        stk_s3_client_config config = {.bucket = p->bucket,
                                       .place = p->root,
                                       .anonymous = options->anonymous,
                                       .timeout_s = options->read_timeout_s};
        status = stk_s3_client_open(&p->client, &config, err);
    }
    status = status == STK_OK ? find_objects(p, options, kept, events, err) : status;
    if (status != STK_OK) {
        close_place(p);
        return status;
    }
    *out = p;
    return STK_OK;
}

static const stk_tree *tree(const void *place_of_source) {
    const place *p = place_of_source;
    return &p->tree;
}

static bool notice(void *place_of_source, char *buf, size_t size) {
    place *p = place_of_source;
    size_t changed = atomic_load(&p->changed);
    pthread_mutex_lock(&p->lock);
    bool more = changed > p->changed_told;
    p->changed_told = changed;
    pthread_mutex_unlock(&p->lock);
    if (more) {
        char number[48];
        snprintf(buf, size,
                 "%s object%s of %s %s newer than the remembered listing; --refresh "
                 "lists again",
                 stk_format_count(number, sizeof number, changed), changed == 1 ? "" : "s", p->root,
                 changed == 1 ? "is" : "are");
    }
    return more;
}

static void bound(void *place_of_source, uint64_t bytes) {
    const place *p = place_of_source;
    stk_s3_client_bound(p->client, bytes);
}

static int threads(const void *place_of_source) {
    const place *p = place_of_source;
    return stk_s3_client_threads(p->client);
}

const stk_storage_source stk_storage_s3 = {
    .name = "s3",
    .remote = true,
    .matches = matches,
    .open = open_place,
    .close = close_place,
    .tree = tree,
    .begin = begin,
    .cancel = cancel,
    .notice = notice,
    .bound = bound,
    .threads = threads,
};

#endif
