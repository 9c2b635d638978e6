/*
 * list.c - lists a bucket, folder by folder where that is faster.
 *
 * A folder is first listed flat, with everything below it. When that takes more than one page and
 * the first page shows that the folders inside are large, the folder is listed again by level (with
 * a delimiter), and each folder inside is listed by itself. With 32 requests in flight, folders of
 * more than a 32nd of a page are faster side by side than one after another. Small
 * folders, of which there may be hundreds of thousands, are not worth a request each.
 */
#ifdef STK_HAVE_S3

#include "storage/s3/list.h"

#include <pthread.h>
#include <string.h>

#include "base/clock.h"
#include "base/error.h"
#include "base/mem.h"
#include "base/str.h"
#include "base/text/text_blocks.h"
#include "base/threads/thread.h"
#include "storage/fetch.h"
#include "storage/s3/xml.h"
#include "storage/storage.h"

/* How often the lister looks whether it should stop; when it warns of a silent store. */
#define POLL_NS 50000000
#define WARN_NS 2000000000

/* Time-out for a host that has never answered: its name may be wrong. */
#define NO_HOST_S 20.0

#define MAX_IN_FLIGHT 32 /* requests */
#define DEPTH_MAX 3      /* folders deeper than this are listed flat */
#define FOLDERS_MAX 4096 /* a folder with more folders than this is listed flat */

/* A page has a thousand keys of up to 1,024 bytes; encoding makes at most three of each byte. */
#define PAGE_BYTES ((size_t)16 * 1024 * 1024)

/* How many pages of a folder may be unreadable before the listing fails. */
#define UNREADABLE_MAX 3

/* One folder to list. */
typedef struct folder_listing {
    char *prefix;      /* owned */
    int depth;         /* folders below the location */
    bool by_level;     /* list only the folder itself, not everything below it */
    stk_str token;     /* continuation token of the next page; "": the first page */
    stk_texts folders; /* the folders inside, as whole prefixes; found by level */
    bool first_page;   /* the next page is the first */
    size_t seen;       /* how many folders the first page shows */
    stk_str seen_last; /* the last folder that the page shows */
    int failures;      /* attempts that failed since the last good page */
    int unreadable;    /* pages that could not be understood */
    int64_t retry_ns;  /* not before this time; INT64_MAX: the folder is complete */
    struct folder_listing *next;
} folder_listing;

typedef struct page_request {
    stk_s3_request request; /* first: a transfer leads to it */
    struct s3_lister *lister;
    folder_listing *folder;    /* owned while the request is in flight; NULL: free */
    struct page_request *next; /* in the list of ended requests */
} page_request;

/* The lister's thread owns everything but `ended`, which engines fill. */
typedef struct s3_lister {
    const stk_s3_listing *listing;
    stk_tree *tree;          /* NULL: only folders are wanted */
    bool one_level;          /* list one folder, and not those that it has */
    folder_listing *folders; /* not in flight */
    page_request pages[MAX_IN_FLIGHT];
    size_t in_flight;
    int64_t begun_ns;
    int64_t good_ns;     /* time of the last good page, or begun_ns */
    bool good;           /* a good page has come */
    bool answered;       /* the host has sent a response of any kind */
    bool warned;         /* the warning about a silent store was sent */
    uint64_t bytes;      /* of memory for the names found */
    stk_rng rng;         /* for pauses */
    folder_listing *now; /* whose page is being parsed */
    pthread_mutex_t lock;
    pthread_cond_t some_ended;
    page_request *ended; /* list; lock */
} s3_lister;

/* ---- folders ---- */

static void free_folder(folder_listing *t) {
    if (t == NULL) {
        return;
    }
    stk_texts_free(&t->folders);
    stk_str_free(&t->token);
    stk_str_free(&t->seen_last);
    stk_mem_free(t->prefix);
    stk_mem_free(t);
}

/* Adds a folder by its prefix, which it takes. False without memory. */
static bool add_folder(s3_lister *l, char *prefix, int depth, bool by_level) {
    folder_listing *t = prefix != NULL ? stk_mem_new(1, sizeof *t) : NULL;
    if (t == NULL) {
        stk_mem_free(prefix);
        return false;
    }
    t->prefix = prefix;
    t->depth = depth;
    t->by_level = by_level;
    t->first_page = true;
    t->next = l->folders;
    l->folders = t;
    return true;
}

/* ---- pages ---- */

/* Counts the memory of one more name; false when that is more than the listing may take. */
static bool count_name(s3_lister *l, size_t bytes) {
    l->bytes += bytes;
    return l->listing->max_bytes == 0 || l->bytes <= l->listing->max_bytes;
}

static stk_status fail_too_many(const s3_lister *l, stk_error *err) {
    char size[32];
    return STK_FAIL(err, STK_ERR_DATA,
                    "cannot list %s: the names of its objects take more than %s of memory; name a "
                    "folder further down",
                    l->listing->location,
                    stk_format_bytes(size, sizeof size, l->listing->max_bytes));
}

static bool take_object(void *user, const char *key, size_t length, uint64_t size,
                        const char *etag) {
    s3_lister *l = user;
    folder_listing *t = l->now;
    const char *prefix = l->listing->prefix;
    size_t head = strlen(prefix);
    if (!count_name(l, length + strlen(etag) + sizeof(stk_tree_object))) {
        return false;
    }
    if (l->tree == NULL || length <= head || memcmp(key, prefix, head) != 0) {
        return true;
    }
    if (t->first_page && !t->by_level) {
        size_t from = strlen(t->prefix);
        const char *slash = length > from ? memchr(key + from, '/', length - from) : NULL;
        size_t folder = slash != NULL ? (size_t)(slash - key) : 0;
        if (folder > 0 &&
            (t->seen_last.length != folder || memcmp(t->seen_last.text, key, folder) != 0)) {
            stk_str_clear(&t->seen_last);
            stk_str_append_bytes(&t->seen_last, key, folder);
            t->seen++;
        }
    }
    /* A tree cuts "./" off, and the key could not be made from the path again. */
    if (length - head >= 2 && key[head] == '.' && key[head + 1] == '/') {
        return true;
    }
    return stk_tree_add(l->tree, key + head, length - head, size, etag, 0, NULL) == STK_OK;
}

static bool take_folder(void *user, const char *prefix, size_t length) {
    s3_lister *l = user;
    return count_name(l, length + sizeof(folder_listing)) &&
           stk_texts_take(&l->now->folders, stk_mem_strndup(prefix, length));
}

/* The last page of a folder was read: adds the folders inside it to the list. Takes the folder. */
static bool end_folder(s3_lister *l, folder_listing *t) {
    bool good = true;
    if (l->one_level) {
        t->next = l->folders; /* the caller reads the names in t->folders */
        t->retry_ns = INT64_MAX;
        l->folders = t;
        return true;
    }
    for (size_t i = 0; i < t->folders.count && good; i++) {
        good = add_folder(l, t->folders.items[i], t->depth + 1, false);
        t->folders.items[i] = NULL;
    }
    free_folder(t);
    return good;
}

/* Decides after a page that was not the last: the next page, or the folder again by level. */
static void choose_next(s3_lister *l, folder_listing *t, stk_str *token) {
    /* No folder on the page: a folder of pictures, unless it is the location itself. */
    bool few = t->seen < MAX_IN_FLIGHT && (t->seen > 0 || t->depth == 0);
    bool split = t->first_page && !t->by_level && t->depth < DEPTH_MAX && few;
    bool too_many = t->by_level && t->folders.count > FOLDERS_MAX && !l->one_level;
    if (split || too_many) {
        t->by_level = split;
        t->first_page = false;
        stk_texts_free(&t->folders);
        stk_str_clear(&t->token);
        return;
    }
    t->first_page = false;
    stk_str swap = t->token;
    t->token = *token;
    *token = swap;
}

/* Parses a page and goes on with its folder, which it takes. */
static stk_status take_page(s3_lister *l, page_request *p, stk_error *err) {
    folder_listing *t = p->folder;
    const stk_bytes *body = &p->request.transfer.body;
    stk_s3_page page = {.object = take_object, .folder = take_folder, .user = l};
    stk_error why = {0};
    p->folder = NULL;
    l->now = t;
    t->seen = 0;
    stk_str_clear(&t->seen_last);
    stk_status status = stk_s3_page_parse(body->data, body->size, &page, &why);
    if (status == STK_OK && page.truncated &&
        stk_str_equal(stk_str_text(&page.token), stk_str_text(&t->token))) {
        status = STK_FAIL(&why, STK_ERR_STORAGE, "a page that is to be followed by itself");
    }
    if (status == STK_OK) {
        l->good_ns = stk_clock_ns();
        l->good = true;
        l->answered = true;
        t->failures = 0;
        if (!page.truncated) {
            status = end_folder(l, t) ? STK_OK : STK_FAIL_MEMORY(err, l->listing->location);
            stk_str_free(&page.token);
            return status;
        }
        choose_next(l, t, &page.token);
    } else if (status == STK_ERR_STORAGE && ++t->unreadable < UNREADABLE_MAX) {
        status = STK_OK; /* once more */
    }
    stk_str_free(&page.token);
    t->next = l->folders;
    l->folders = t;
    if (status == STK_ERR_MEMORY) {
        return count_name(l, 0) ? STK_FAIL_MEMORY(err, l->listing->location)
                                : fail_too_many(l, err);
    }
    return status == STK_OK ? STK_OK
                            : STK_FAIL(err, status,
                                       "cannot list %s: the store answered with %s; does "
                                       "AWS_ENDPOINT_URL name a store like S3?",
                                       l->listing->location, why.message);
}

/* ---- requests ---- */

/* On the engine's thread: leaves the request to the lister's. */
static void page_done(stk_http_transfer *transfer) {
    page_request *p = (page_request *)(void *)transfer;
    s3_lister *l = p->lister;
    pthread_mutex_lock(&l->lock);
    p->next = l->ended;
    l->ended = p;
    pthread_cond_signal(&l->some_ended);
    pthread_mutex_unlock(&l->lock);
}

static bool send_page(s3_lister *l, page_request *p, folder_listing *t) {
    stk_s3_request *request = &p->request;
    size_t count = 0;
    request->query[count++] = (stk_s3_pair){"list-type", "2"};
    request->query[count++] = (stk_s3_pair){"encoding-type", "url"};
    request->query[count++] = (stk_s3_pair){"prefix", t->prefix};
    if (t->by_level) {
        request->query[count++] = (stk_s3_pair){"delimiter", "/"};
    }
    if (t->token.length > 0) {
        request->query[count++] = (stk_s3_pair){"continuation-token", t->token.text};
    }
    request->query_count = count;
    p->lister = l;
    request->transfer.max_bytes = PAGE_BYTES;
    request->transfer.timeout_s = l->listing->timeout_s;
    request->transfer.done = page_done;
    p->folder = t;
    if (!stk_s3_client_send(l->listing->client, request)) {
        p->folder = NULL;
        return false;
    }
    l->in_flight++;
    return true;
}

/* Takes a folder that may be asked for now out of the list; NULL: none. */
static folder_listing *take_ready(s3_lister *l, int64_t now_ns) {
    for (folder_listing **at = &l->folders; *at != NULL; at = &(*at)->next) {
        if ((*at)->retry_ns <= now_ns) {
            folder_listing *t = *at;
            *at = t->next;
            return t;
        }
    }
    return NULL;
}

static stk_status send_ready(s3_lister *l, stk_error *err) {
    for (size_t i = 0; i < MAX_IN_FLIGHT; i++) {
        page_request *p = &l->pages[i];
        if (p->folder != NULL) {
            continue;
        }
        folder_listing *t = take_ready(l, stk_clock_ns());
        if (t == NULL) {
            break;
        }
        if (!send_page(l, p, t)) {
            t->next = l->folders;
            l->folders = t;
            return STK_FAIL_MEMORY(err, l->listing->location);
        }
    }
    return STK_OK;
}

/* How long the store may go without a good page before the listing fails, in seconds. */
static double silence_limit_s(const s3_lister *l, int status) {
    double limit_s = 2 * l->listing->timeout_s;
    if (!l->answered && status == 0 && limit_s > NO_HOST_S) {
        return NO_HOST_S;
    }
    return l->good && l->listing->outage_s > limit_s ? l->listing->outage_s : limit_s;
}

/* A request failed: puts the folder back for later, or fails. */
static stk_status take_failure(s3_lister *l, page_request *p, const stk_fetch_result *why,
                               stk_error *err) {
    const stk_s3_request *request = &p->request;
    folder_listing *t = p->folder;
    int status = request->transfer.response.status;
    double limit_s = silence_limit_s(l, status);
    int64_t now_ns = stk_clock_ns();
    p->folder = NULL;
    t->next = l->folders;
    l->folders = t;
    l->answered = l->answered || status > 0;
    bool late = (double)(now_ns - l->good_ns) > limit_s * STK_NS_PER_S;
    bool unreadable =
        request->transfer.result == STK_HTTP_BAD_HEADERS && ++t->unreadable >= UNREADABLE_MAX;
    bool again = why->verdict == STK_FETCH_AGAIN || why->verdict == STK_FETCH_DAMAGED ||
                 why->verdict == STK_FETCH_NO_MEMORY;
    if (why->status == STK_ERR_MEMORY && (!again || late)) {
        return STK_FAIL_MEMORY(err, l->listing->location);
    }
    if (!again || late || unreadable) {
        return STK_FAIL(err, why->status, "cannot list %s: %s", l->listing->location, why->cause);
    }
    if (!l->warned && now_ns - l->begun_ns > WARN_NS) {
        l->warned = true;
        stk_events_warning(l->listing->events, "cannot list %s: %s; trying again for up to %.0f s",
                           l->listing->location, why->cause, limit_s);
    }
    double pause_s = why->wait_s;
    if (request->recovery == STK_S3_RECOVERY_NONE) { /* else the client has recovered */
        pause_s = stk_backoff_s(&l->rng, ++t->failures, why->wait_s);
    }
    t->retry_ns = now_ns + (int64_t)(pause_s * STK_NS_PER_S);
    return STK_OK;
}

/* Waits until requests have ended or a folder may be asked for again. Returns the ended requests.
 */
static page_request *wait_for_some(s3_lister *l) {
    int64_t until_ns = INT64_MAX;
    for (const folder_listing *t = l->folders; t != NULL && l->in_flight < MAX_IN_FLIGHT;
         t = t->next) {
        until_ns = t->retry_ns < until_ns ? t->retry_ns : until_ns;
    }
    int64_t poll_ns = stk_clock_ns() + POLL_NS; /* to see a request to stop */
    until_ns = until_ns < poll_ns ? until_ns : poll_ns;
    pthread_mutex_lock(&l->lock);
    if (l->ended == NULL) {
        (void)stk_cond_wait_until(&l->some_ended, &l->lock, until_ns);
    }
    page_request *ended = l->ended;
    l->ended = NULL;
    pthread_mutex_unlock(&l->lock);
    return ended;
}

/* Whether a folder is left that is not complete. */
static bool has_work(const s3_lister *l) {
    for (const folder_listing *t = l->folders; t != NULL; t = t->next) {
        if (t->retry_ns != INT64_MAX) {
            return true;
        }
    }
    return l->in_flight > 0;
}

/* Fails if the listing is to end early; not in its first moments. */
static stk_status check_end(const s3_lister *l, stk_error *err) {
    const stk_s3_listing *listing = l->listing;
    if (stk_clock_since_s(l->begun_ns) < STK_STORAGE_STOP_S) {
        return STK_OK;
    }
    if (stk_stop_asked(listing->stop) != STK_STOP_NONE) {
        return STK_FAIL(err, STK_ERR_STOPPED, "stopped while %s was listed", listing->location);
    }
    if (listing->deadline_ns > 0 && stk_clock_ns() > listing->deadline_ns) {
        return STK_FAIL(err, STK_ERR_STORAGE, "the time budget ended while %s was listed",
                        listing->location);
    }
    return STK_OK;
}

/* Takes a request that has ended. */
static stk_status take_ended(s3_lister *l, page_request *p, stk_error *err) {
    stk_fetch_result result = {0};
    stk_s3_client_finish(&p->request, &result);
    return result.verdict == STK_FETCH_OK ? take_page(l, p, err) : take_failure(l, p, &result, err);
}

static stk_status work(s3_lister *l, stk_error *err) {
    stk_status status = STK_OK;
    while (status == STK_OK && has_work(l)) {
        status = check_end(l, err);
        STK_THEN(status, send_ready(l, err));
        page_request *next = NULL;
        for (page_request *p = status == STK_OK ? wait_for_some(l) : NULL; p != NULL; p = next) {
            next = p->next;
            l->in_flight--;
            if (status == STK_OK) {
                status = take_ended(l, p, err);
            } else { /* another request has failed for good */
                free_folder(p->folder);
                p->folder = NULL;
            }
        }
    }
    return status;
}

/* Cancels what is in flight, waits for its end and frees everything. */
static void close_lister(s3_lister *l) {
    for (size_t i = 0; i < MAX_IN_FLIGHT; i++) {
        if (l->pages[i].folder != NULL) {
            stk_s3_client_cancel(&l->pages[i].request);
        }
    }
    while (l->in_flight > 0) {
        pthread_mutex_lock(&l->lock);
        while (l->ended == NULL) {
            pthread_cond_wait(&l->some_ended, &l->lock);
        }
        for (const page_request *p = l->ended; p != NULL; p = p->next) {
            l->in_flight--;
        }
        l->ended = NULL;
        pthread_mutex_unlock(&l->lock);
    }
    for (size_t i = 0; i < MAX_IN_FLIGHT; i++) {
        free_folder(l->pages[i].folder);
        stk_s3_request_free(&l->pages[i].request);
    }
    while (l->folders != NULL) {
        folder_listing *t = l->folders;
        l->folders = t->next;
        free_folder(t);
    }
    pthread_cond_destroy(&l->some_ended);
    pthread_mutex_destroy(&l->lock);
    stk_mem_free(l);
}

static s3_lister *open_lister(const stk_s3_listing *listing, stk_tree *tree) {
    s3_lister *l = stk_mem_new(1, sizeof *l);
    if (l != NULL) {
        stk_cond_init(&l->some_ended);
        pthread_mutex_init(&l->lock, NULL);
        l->listing = listing;
        l->tree = tree;
        l->begun_ns = stk_clock_ns();
        l->good_ns = l->begun_ns;
        l->rng = stk_rng_make((uint64_t)l->good_ns, STK_RNG_PAUSE, 0, 0);
    }
    return l;
}

/* ---- nothing there ---- */

/* How many bytes of a prefix that ends with a slash stand before its last folder. */
static size_t parent_length(const char *prefix, size_t length) {
    size_t at = length > 0 ? length - 1 : 0;
    while (at > 0 && prefix[at - 1] != '/') {
        at--;
    }
    return at;
}

/* Fills in the names of the folders in a folder, which it owns, and cuts their slashes off. */
static size_t folder_names(const folder_listing *t, const char **names) {
    size_t head = strlen(t->prefix);
    for (size_t i = 0; i < t->folders.count; i++) {
        size_t length = strlen(t->folders.items[i]);
        t->folders.items[i][length > 0 ? length - 1 : 0] = '\0';
        names[i] = t->folders.items[i] + (head < length ? head : length);
    }
    return t->folders.count;
}

/* Fails with what exists instead: the folders that were found in the level above. */
static stk_status fail_near(const stk_s3_listing *listing, const folder_listing *t,
                            const char *missing, stk_error *err) {
    const char **names = stk_mem_new(t->folders.count, sizeof *names);
    if (names == NULL) {
        return STK_FAIL_MEMORY(err, listing->location);
    }
    size_t count = folder_names(t, names);
    const char *near = stk_str_nearest(missing, names, count);
    stk_status status;
    if (near != NULL) {
        status = STK_FAIL(err, STK_ERR_DATA, "no objects below %s; did you mean s3://%s/%s%s?",
                          listing->location, listing->bucket, t->prefix, near);
    } else {
        stk_str some = {0};
        for (size_t i = 0; i < count && i < 5; i++) {
            stk_str_appendf(&some, "%s%s", i > 0 ? ", " : "", names[i]);
        }
        status = STK_FAIL(err, STK_ERR_DATA, "no objects below %s; s3://%s/%s has the folders %s%s",
                          listing->location, listing->bucket, t->prefix, stk_str_text(&some),
                          count > 5 ? " and others" : "");
        stk_str_free(&some);
    }
    stk_mem_free(names);
    return status;
}

/* Nothing is below the prefix: looks at the levels above until one has folders, and fails. */
static stk_status fail_empty(const stk_s3_listing *listing, stk_error *err) {
    const char *prefix = listing->prefix;
    size_t length = strlen(prefix);
    stk_status status = STK_OK;
    while (length > 0 && status == STK_OK) {
        size_t head = parent_length(prefix, length);
        char *missing = stk_mem_strndup(prefix + head, length - head - 1);
        s3_lister *l = open_lister(listing, NULL);
        if (l != NULL) {
            l->one_level = true;
            if (missing != NULL && add_folder(l, stk_mem_strndup(prefix, head), 0, true) &&
                work(l, NULL) == STK_OK && l->folders != NULL && l->folders->folders.count > 0) {
                status = fail_near(listing, l->folders, missing, err);
            }
            close_lister(l);
        }
        stk_mem_free(missing);
        length = head;
    }
    return status != STK_OK ? status
                            : STK_FAIL(err, STK_ERR_DATA,
                                       "no objects below %s: bucket %s is there, but has none%s",
                                       listing->location, listing->bucket,
                                       prefix[0] != '\0' ? " with this prefix" : "");
}

stk_status stk_s3_list(const stk_s3_listing *listing, stk_tree *tree, stk_error *err) {
    s3_lister *l = open_lister(listing, tree);
    if (l == NULL) {
        return STK_FAIL_MEMORY(err, listing->location);
    }
    stk_status status = add_folder(l, stk_mem_strdup(listing->prefix), 0, false)
                            ? work(l, err)
                            : STK_FAIL_MEMORY(err, listing->location);
    close_lister(l);
    STK_THEN(status, stk_tree_finish(tree, err));
    return status == STK_OK && tree->count == 0 ? fail_empty(listing, err) : status;
}

#endif
