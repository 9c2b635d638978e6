/*
 * s3.c - the source for `s3://bucket/prefix`: objects of S3, or of a store with the same interface.
 *
 * A location is listed when it is opened, unless the listing of an earlier run is there. An object
 * is one GET. The bytes that arrive must have the length that the response announced and, where the
 * ETag is an MD5, that MD5.
 *
 * In this file an attempt passes through four structs: the reader's stk_fetch (fetch.h), and one
 * block with an s3_read, in it a stk_s3_request (request.h), and in that the stk_http_transfer that
 * libcurl works on. Two callbacks lead back to the reader: the transfer's `done` (transfer_done()
 * here, on the engine's thread) and the fetch's `done`.
 */
#include "storage/source.h"

#ifdef STK_HAVE_S3

#include <ctype.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>
#include <time.h>

#include "base/numbers/checksum.h"
#include "base/numbers/digest.h"
#include "base/error.h"
#include "base/hide.h"
#include "base/machine.h"
#include "base/mem.h"
#include "base/str.h"
#include "storage/s3/client.h"
#include "storage/s3/list.h"
#include "storage/s3/manifest.h"

/* The names of a location's objects take no more than this part of the memory. */
#define LIST_SHARE 4

/* How many objects whose MD5 was not their ETag are remembered. */
#define MISMATCHES 64

/* An object whose bytes did not fit its ETag. */
typedef struct md5_mismatch {
    uint64_t object; /* checksum of key and ETag */
    uint8_t md5[STK_MD5_BYTES];
} md5_mismatch;

/* A request that serves a fetch. */
typedef struct s3_read {
    stk_s3_request request; /* first: a transfer leads to it */
    struct s3_location *location;
    stk_fetch *fetch;
    const stk_tree_object *listed; /* the object in the listing; NULL: it was not listed */
    struct s3_read *next;          /* in the list of free ones */
} s3_read;

typedef struct s3_location {
    char *root;           /* owned: "s3://bucket/prefix" */
    char *bucket;         /* owned */
    char *prefix;         /* owned; ends with a slash, or "" */
    size_t prefix_length; /* bytes */
    stk_s3_client *client;
    stk_tree tree; /* all objects; constant once opened */
    pthread_mutex_t lock;
    s3_read *free_reads;                 /* to be used again; lock */
    atomic_bool no_md5;                  /* this store's ETags look like MD5s but are not */
    atomic_size_t changed;               /* objects that are not as they were listed */
    size_t changed_reported;             /* how many of them notice() has reported; lock */
    bool some_md5;                       /* at least one ETag was the MD5; lock */
    uint8_t *changed_marks;              /* owned; one bit per object of the tree, or NULL; lock */
    md5_mismatch mismatches[MISMATCHES]; /* a ring; lock */
    size_t mismatch_count;               /* ever entered; lock */
} s3_location;

/* ---- checking the bytes that arrived ---- */

/* Whether the same object came with the same bytes and ETag before; remembers it. Under the lock.
 */
static bool seen_before(s3_location *p, const stk_s3_request *r, const uint8_t md5[STK_MD5_BYTES]) {
    const char *etag = r->transfer.response.etag;
    uint64_t object =
        stk_checksum_seeded(etag, strlen(etag), stk_checksum(r->key.text, r->key.length));
    size_t count = p->mismatch_count < MISMATCHES ? p->mismatch_count : MISMATCHES;
    for (size_t i = 0; i < count; i++) {
        if (p->mismatches[i].object == object &&
            memcmp(p->mismatches[i].md5, md5, STK_MD5_BYTES) == 0) {
            return true;
        }
    }
    md5_mismatch *mismatch = &p->mismatches[p->mismatch_count++ % MISMATCHES];
    mismatch->object = object;
    memcpy(mismatch->md5, md5, STK_MD5_BYTES);
    return false;
}

/*
 * False: the bytes were damaged on the way. If the same wrong bytes come twice, the ETag is not an
 * MD5; and if no ETag of the store was one so far, MD5s are not computed any more.
 */
static bool check_md5(s3_location *p, stk_s3_request *r) {
    uint8_t md5[STK_MD5_BYTES];
    char text[STK_MD5_TEXT];
    stk_md5_end(&r->transfer.md5, md5);
    stk_hex(md5, sizeof md5, text);
    bool fits = strcasecmp(text, r->transfer.response.etag) == 0;
    pthread_mutex_lock(&p->lock);
    p->some_md5 = p->some_md5 || fits;
    bool no_md5 = !fits && seen_before(p, r, md5);
    if (no_md5 && !p->some_md5) {
        atomic_store(&p->no_md5, true);
    }
    pthread_mutex_unlock(&p->lock);
    return fits || no_md5;
}

/* Counts objects that are not as they were listed, each once. */
static void note_change(s3_location *p, const stk_tree_object *object) {
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

static void fail_damaged(const s3_read *read, const char *what, uint64_t wanted) {
    (void)stk_fetch_fail(&read->fetch->result, STK_FETCH_DAMAGED, STK_ERR_STORAGE,
                         "%s (%zu bytes came of %llu)", what, read->request.transfer.body.size,
                         (unsigned long long)wanted);
}

/*
 * Whether the object was replaced since it was listed. Offsets of parts were learnt from the listed
 * object; in another one they mean other bytes, and only its ETag and its length show that.
 */
static bool is_replaced(const s3_read *read) {
    const stk_http_response *response = &read->request.transfer.response;
    const stk_tree_object *listed = read->listed;
    return stk_http_response_is_changed(response, listed->version) ||
           (response->range_total > 0 && response->range_total != listed->size) ||
           (response->status == 416 && read->request.offset < listed->size);
}

/* Checks a part: the bytes that were asked for, or those up to the object's end. */
static void check_part(s3_read *read) {
    stk_s3_request *r = &read->request;
    const stk_http_response *response = &r->transfer.response;
    stk_bytes *body = &r->transfer.body;
    if (read->listed != NULL && is_replaced(read)) {
        note_change(read->location, read->listed);
        (void)stk_fetch_fail(&read->fetch->result, STK_FETCH_NEVER, STK_ERR_STORAGE,
                             "it was replaced since the bucket was listed; --refresh lists again");
        return;
    }
    if (response->status == 416) { /* past the end */
        body->size = 0;
        return;
    }
    if (response->status == 200) { /* the whole object, from a store that does not serve parts */
        size_t from = r->offset < body->size ? (size_t)r->offset : body->size;
        size_t left = body->size - from;
        body->size = left < r->length ? left : (size_t)r->length;
        if (body->size > 0) { /* an empty body may have no block */
            memmove(body->data, body->data + from, body->size);
        }
        return;
    }
    if (!response->has_range || response->range_first != r->offset) {
        fail_damaged(read, "another part came than was asked for", r->length);
        return;
    }
    uint64_t total = response->range_total;
    uint64_t left = total > r->offset ? total - r->offset : r->length;
    uint64_t wanted = left < r->length ? left : r->length;
    bool exact = total > 0;
    if (body->size > wanted || (exact && body->size != wanted)) {
        fail_damaged(read, "the part has the wrong length", wanted);
    }
}

static void check_whole(s3_read *read) {
    s3_location *p = read->location;
    const stk_http_transfer *transfer = &read->request.transfer;
    const stk_http_response *response = &transfer->response;
    const stk_tree_object *listed = read->listed;
    size_t size = transfer->body.size;
    if (response->status != 200) {
        fail_damaged(read, "a part came instead of all of it", listed != NULL ? listed->size : 0);
        return;
    }
    if (response->has_length && response->length != size) {
        fail_damaged(read, "it has the wrong length", response->length);
        return;
    }
    if (listed != NULL && stk_http_response_is_changed(response, listed->version)) {
        note_change(p, listed);
    } else if (listed != NULL && listed->version[0] != '\0' && response->etag[0] != '\0' &&
               listed->size != size) {
        fail_damaged(read, "it has another length than was listed", listed->size);
        return;
    }
    if (transfer->hashed && !atomic_load(&p->no_md5) && !check_md5(p, &read->request)) {
        fail_damaged(read, "its MD5 is not its ETag: it was damaged on the way", size);
    }
}

/* ---- attempts ---- */

/* A read from the list of free ones, or a new one; NULL without memory. */
static s3_read *take_read(s3_location *p) {
    pthread_mutex_lock(&p->lock);
    s3_read *read = p->free_reads;
    if (read != NULL) {
        p->free_reads = read->next;
    }
    pthread_mutex_unlock(&p->lock);
    return read != NULL ? read : stk_mem_new(1, sizeof *read);
}

static void give_read(s3_location *p, s3_read *read) {
    pthread_mutex_lock(&p->lock);
    read->next = p->free_reads;
    p->free_reads = read;
    pthread_mutex_unlock(&p->lock);
}

/* Moves the block of bytes from a transfer to its fetch. */
static void hand_back(stk_http_transfer *transfer, stk_fetch *fetch) {
    fetch->bytes = transfer->body;
    memset(&transfer->body, 0, sizeof transfer->body);
}

/* Puts a NUL after the bytes, as after files; an empty object gets a block, too. */
static bool end_with_nul(stk_bytes *bytes) {
    bool good = stk_bytes_reserve(bytes, bytes->size + 1);
    if (good) {
        bytes->data[bytes->size] = '\0';
    }
    return good;
}

/* The transfer has ended: classify, check, and call the fetch's `done`. On the engine's thread. */
static void transfer_done(stk_http_transfer *transfer) {
    s3_read *read = (s3_read *)(void *)transfer;
    s3_location *p = read->location;
    stk_fetch *fetch = read->fetch;
    stk_fetch_result *result = &fetch->result;
    pthread_mutex_lock(&p->lock);
    fetch->serving = NULL; /* from here on it cannot be cancelled */
    pthread_mutex_unlock(&p->lock);
    stk_s3_client_finish(&read->request, result);
    if (result->verdict == STK_FETCH_OK) {
        if (read->request.length > 0) {
            check_part(read);
        } else {
            check_whole(read);
        }
    }
    if (result->verdict != STK_FETCH_OK) {
        transfer->body.size = 0;
    } else if (!end_with_nul(&transfer->body)) {
        (void)stk_fetch_fail(result, STK_FETCH_NO_MEMORY, STK_ERR_MEMORY, "out of memory");
    }
    hand_back(transfer, fetch);
    give_read(p, read);
    fetch->done(fetch);
}

/* The bytes that a fetch is expected to bring, one NUL included; 0: unknown. */
static uint64_t expected_bytes(const stk_fetch *fetch, const stk_tree_object *listed) {
    uint64_t left = UINT64_MAX;
    if (listed != NULL) {
        left = fetch->offset < listed->size ? listed->size - fetch->offset : 0;
    }
    uint64_t bytes = fetch->length > 0 && fetch->length < left ? fetch->length : left;
    return bytes < STK_STORAGE_MAX_BYTES ? bytes + 1 : listed != NULL ? STK_STORAGE_MAX_BYTES : 0;
}

static bool begin(void *location, stk_fetch *fetch) {
    s3_location *p = location;
    s3_read *read = take_read(p);
    if (read == NULL) {
        return false;
    }
    read->location = p;
    read->fetch = fetch;
    read->listed = stk_tree_find(&p->tree, fetch->path);
    stk_s3_request *r = &read->request;
    r->offset = fetch->offset;
    r->length = fetch->length;
    stk_str_clear(&r->key); /* a copy: the fetch's path may be gone when the request ends */
    stk_str_append_bytes(&r->key, p->prefix, p->prefix_length);
    stk_str_append(&r->key, fetch->path);
    stk_http_transfer *transfer = &r->transfer;
    transfer->max_bytes = STK_STORAGE_MAX_BYTES;
    transfer->expected_bytes = (size_t)expected_bytes(fetch, read->listed);
    transfer->known_etag = read->listed != NULL ? read->listed->version : NULL;
    transfer->known_bytes = read->listed != NULL ? read->listed->size : 0;
    transfer->hash_body = fetch->length == 0 && !atomic_load(&p->no_md5);
    transfer->timeout_s = 0; /* the reader watches the clock */
    transfer->started_ns = &fetch->started_ns;
    transfer->heard_ns = &fetch->heard_ns;
    transfer->done = transfer_done;
    transfer->body = fetch->bytes;
    memset(&fetch->bytes, 0, sizeof fetch->bytes);
    fetch->serving = r; /* nobody cancels before this returns */
    if (!stk_str_ok(&r->key) || !stk_s3_client_send(p->client, r)) {
        fetch->serving = NULL;
        hand_back(transfer, fetch);
        stk_str_free(&r->key);
        give_read(p, read);
        return false;
    }
    return true;
}

static void cancel(void *location, stk_fetch *fetch) {
    s3_location *p = location;
    pthread_mutex_lock(&p->lock);
    stk_s3_request *r = fetch->serving;
    if (r != NULL) {
        stk_s3_client_cancel(r);
    }
    pthread_mutex_unlock(&p->lock);
}

/* ---- opening ---- */

static bool matches(const char *root) {
    return strncasecmp(root, "s3://", 5) == 0;
}

/* Splits "s3://bucket/prefix/" into its parts; slashes at the end do not count. */
static stk_status split_root(s3_location *p, const char *root, stk_error *err) {
    const char *bucket = root + 5;
    size_t length = strcspn(bucket, "/");
    bool plain = length > 0;
    for (size_t i = 0; i < length; i++) {
        plain = plain && (isalnum((unsigned char)bucket[i]) || strchr(".-_", bucket[i]) != NULL);
    }
    if (memchr(bucket, ':', length) != NULL || memchr(bucket, '@', length) != NULL) {
        return STK_FAIL(err, STK_ERR_USAGE, /* the root may contain a secret: it is not shown */
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

static void report_listing(const s3_location *p, const stk_s3_manifest *manifest,
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

static void report_region(const s3_location *p, const stk_s3_manifest *manifest,
                          const stk_events *events) {
    char what[64];
    char why[200];
    const char *configured = stk_s3_client_configured_region(p->client);
    if (!stk_str_equal(manifest->region, configured)) {
        snprintf(what, sizeof what, "region %s", manifest->region);
        snprintf(why, sizeof why, "the bucket is there, not in %s; AWS_REGION=%s saves asking",
                 configured, manifest->region);
        stk_events_decision(events, what, why);
    }
}

/* Lists the location and stores the listing; that it cannot be stored is only a warning. */
static stk_status list(s3_location *p, const stk_storage_options *options,
                       stk_s3_manifest *manifest, const char *path, const stk_events *events,
                       stk_error *err) {
    stk_error why = {0};
    stk_s3_listing listing = {.client = p->client,
                              .bucket = p->bucket,
                              .prefix = p->prefix,
                              .location = p->root,
                              .timeout_s = options->read_timeout_s,
                              .outage_s = options->outage_s,
                              .max_bytes = stk_machine_memory() / LIST_SHARE,
                              .stop = options->stop,
                              .deadline_ns = options->deadline_ns,
                              .events = events};
    stk_status status = stk_s3_list(&listing, &p->tree, err);
    if (status != STK_OK) {
        return status;
    }
    manifest->time_s = (int64_t)time(NULL);
    stk_s3_client_region(p->client, manifest->region);
    report_region(p, manifest, events);
    if (path != NULL && stk_s3_manifest_save(path, manifest, &p->tree, &why) != STK_OK) {
        stk_events_warning(events,
                           "the next run lists %s again, since its listing cannot be stored: %s",
                           p->root, why.message);
    }
    return STK_OK;
}

/* Loads the listing of an earlier run, or lists the location. */
static stk_status find_objects(s3_location *p, const stk_storage_options *options,
                               const char *manifest_folder, const stk_events *events,
                               stk_error *err) {
    stk_s3_manifest manifest = {.location = p->root, .endpoint = stk_s3_client_endpoint(p->client)};
    char *path = manifest_folder != NULL ? stk_s3_manifest_path(manifest_folder, &manifest) : NULL;
    stk_status status = STK_OK;
    if (path != NULL && !options->refresh && stk_s3_manifest_load(path, &manifest, &p->tree)) {
        stk_s3_client_set_region(p->client, manifest.region);
        report_listing(p, &manifest, events);
    } else {
        status = list(p, options, &manifest, path, events, err);
    }
    stk_mem_free(path);
    return status;
}

static void close_location(void *location) {
    s3_location *p = location;
    stk_s3_client_close(p->client);
    while (p->free_reads != NULL) {
        s3_read *read = p->free_reads;
        p->free_reads = read->next;
        stk_s3_request_free(&read->request);
        stk_mem_free(read);
    }
    stk_tree_free(&p->tree);
    pthread_mutex_destroy(&p->lock);
    stk_mem_free(p->changed_marks);
    stk_mem_free(p->root);
    stk_mem_free(p->bucket);
    stk_mem_free(p->prefix);
    stk_mem_free(p);
}

static stk_status open_location(void **out, const char *root, const stk_storage_options *options,
                                const char *manifest_folder, const stk_events *events,
                                stk_error *err) {
    s3_location *p = stk_mem_new(1, sizeof *p);
    if (p == NULL) {
        return STK_FAIL_MEMORY(err, root);
    }
    pthread_mutex_init(&p->lock, NULL);
    stk_status status = split_root(p, root, err);
    if (status == STK_OK) {
        stk_s3_client_config config = {.bucket = p->bucket,
                                       .anonymous = options->anonymous,
                                       .timeout_s = options->read_timeout_s};
        status = stk_s3_client_open(&p->client, &config, err);
    }
    STK_THEN(status, find_objects(p, options, manifest_folder, events, err));
    if (status != STK_OK) {
        close_location(p);
        return status;
    }
    *out = p;
    return STK_OK;
}

static const stk_tree *tree(const void *location) {
    const s3_location *p = location;
    return &p->tree;
}

static bool notice(void *location, char *buf, size_t size) {
    s3_location *p = location;
    size_t changed = atomic_load(&p->changed);
    pthread_mutex_lock(&p->lock);
    bool more = changed > p->changed_reported;
    p->changed_reported = changed;
    pthread_mutex_unlock(&p->lock);
    if (more) {
        char number[48];
        snprintf(buf, size,
                 "%s object%s of %s %s changed since the bucket was listed; --refresh lists again",
                 stk_format_count(number, sizeof number, changed), changed == 1 ? "" : "s", p->root,
                 changed == 1 ? "has" : "have");
    }
    return more;
}

static void bound(void *location, uint64_t bytes) {
    const s3_location *p = location;
    stk_s3_client_limit_memory(p->client, bytes);
}

static int threads(const void *location) {
    const s3_location *p = location;
    return stk_s3_client_threads(p->client);
}

const stk_storage_source stk_storage_s3 = {
    .name = "s3",
    .remote = true,
    .matches = matches,
    .open = open_location,
    .close = close_location,
    .tree = tree,
    .begin = begin,
    .cancel = cancel,
    .notice = notice,
    .bound = bound,
    .threads = threads,
};

#endif
