/*
 * list.c - listing, folder by folder where that is faster.
 *
 * A folder is listed flat, with everything below it. When that takes more than one page and the
 * first page shows that its folders are large, the folder is listed again by itself (with a
 * delimiter) and each folder in it becomes a task of its own: with 32 requests at a time, folders
 * of more than a 32nd of a page are faster each on their own than one after another. Small folders,
 * of which there may be hundreds of thousands, are not worth a request each.
 */
#include "storage/s3/list.h"

#ifdef STK_HAVE_S3

#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "base/clock.h"
#include "base/error.h"
#include "base/mem.h"
#include "base/numbers/rng.h"
#include "base/str.h"
#include "storage/storage.h"

#define NS_PER_S 1000000000

/* How often it is looked whether to end, and after how long people are told of a silent store. */
#define LOOK_NS 50000000
#define PATIENCE_NS 2000000000

/* A host that nothing has ever come from is given up sooner: its name may be wrong. */
#define NOBODY_S 20.0

#define AT_ONCE 32
#define DEPTH_MAX 3
#define FOLDERS_MAX 4096

/* A page has a thousand keys of at most 1,024 bytes, each of which may be written with three. */
#define PAGE_BYTES ((size_t)16 * 1024 * 1024)

#define FIRST_PAUSE_S 0.2
#define MOST_PAUSE_S 5.0

/* An answer that cannot be understood is asked for again, but not for ever. */
#define STRANGE_MAX 3

typedef struct task {
    char *prefix;   /* owned */
    int depth;      /* below the place */
    bool by_level;  /* only what stands right in it */
    stk_str token;  /* of the page that comes next; "" */
    char **folders; /* owned: what stands in it, whole prefixes */
    size_t folder_count;
    size_t folder_capacity;
    bool first_page;
    size_t spanned; /* folders that the first page saw */
    stk_str latest; /* the latest of them */
    int failures;
    int strange;
    int64_t retry_ns;
    struct task *next;
} task;

struct lister;

typedef struct request {
    stk_s3_call call; /* first */
    struct lister *lister;
    stk_bytes bytes;
    task *task;           /* NULL: free */
    struct request *next; /* among the ended; lock */
} request;

typedef struct lister {
    const stk_s3_listing *listing;
    stk_tree *tree; /* NULL: only folders are asked for */
    bool no_deeper; /* folders that are found stay in the first task */
    task *tasks;    /* not under way */
    request requests[AT_ONCE];
    size_t under_way;
    int64_t good_ns; /* when something good came last */
    bool good;       /* something good has come */
    int64_t begun_ns;
    uint64_t bytes; /* that the names take which were found */
    bool answered;  /* the host has, whatever it was */
    bool warned;
    stk_rng rng;
    task *now; /* whose page is read */
    pthread_mutex_t lock;
    pthread_cond_t some;
    request *ended; /* lock */
} lister;

/* ---- tasks ---- */

static void free_task(task *t) {
    if (t == NULL) {
        return;
    }
    for (size_t i = 0; i < t->folder_count; i++) {
        stk_mem_free(t->folders[i]);
    }
    stk_mem_free(t->folders);
    stk_str_free(&t->token);
    stk_str_free(&t->latest);
    stk_mem_free(t->prefix);
    stk_mem_free(t);
}

/* Adds a task for a prefix, which it takes. False without memory. */
static bool add_task(lister *l, char *prefix, int depth, bool by_level) {
    task *t = prefix != NULL ? stk_mem_new(1, sizeof *t) : NULL;
    if (t == NULL) {
        stk_mem_free(prefix);
        return false;
    }
    t->prefix = prefix;
    t->depth = depth;
    t->by_level = by_level;
    t->first_page = true;
    t->next = l->tasks;
    l->tasks = t;
    return true;
}

static void drop_folders(task *t) {
    for (size_t i = 0; i < t->folder_count; i++) {
        stk_mem_free(t->folders[i]);
    }
    t->folder_count = 0;
}

/* ---- pages ---- */

/* A server decides how much there is: whether one more name may be kept, and counts it. */
static bool has_room(lister *l, size_t bytes) {
    l->bytes += bytes;
    return l->listing->most_bytes == 0 || l->bytes <= l->listing->most_bytes;
}

static stk_status fail_too_many(const lister *l, stk_error *err) {
    char size[32];
    return STK_FAIL(err, STK_ERR_DATA,
                    "cannot list %s: the names of its objects take more than %s of memory; name a "
                    "folder further down",
                    l->listing->place, stk_format_bytes(size, sizeof size, l->listing->most_bytes));
}

static bool take_object(void *user, const char *key, size_t length, uint64_t size,
                        const char *etag) {
    lister *l = user;
    task *t = l->now;
    const char *prefix = l->listing->prefix;
    size_t head = strlen(prefix);
    if (!has_room(l, length + strlen(etag) + sizeof(stk_tree_object))) {
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
            (t->latest.length != folder || memcmp(t->latest.text, key, folder) != 0)) {
            stk_str_clear(&t->latest);
            stk_str_append_bytes(&t->latest, key, folder);
            t->spanned++;
        }
    }
    /* Names that a tree would take for others are no files of ours: their keys could not be made.
     */
    if (length - head >= 2 && key[head] == '.' && key[head + 1] == '/') {
        return true;
    }
    return stk_tree_add(l->tree, key + head, length - head, size, etag, 0, NULL) == STK_OK;
}

static bool take_folder(void *user, const char *prefix, size_t length) {
    lister *l = user;
    task *t = l->now;
    if (!has_room(l, length + sizeof(task))) {
        return false;
    }
    char *copy = stk_mem_strndup(prefix, length);
    char **grown =
        stk_mem_grow(t->folders, &t->folder_capacity, t->folder_count + 1, sizeof *t->folders);
    if (grown != NULL) {
        t->folders = grown;
    }
    if (copy == NULL || grown == NULL) {
        stk_mem_free(copy);
        return false;
    }
    t->folders[t->folder_count++] = copy;
    return true;
}

/* The task was read to its end: what it found becomes tasks. Takes it. */
static bool end_task(lister *l, task *t) {
    bool good = true;
    if (l->no_deeper) {
        t->next = l->tasks; /* for whoever asked */
        t->retry_ns = INT64_MAX;
        l->tasks = t;
        return true;
    }
    for (size_t i = 0; i < t->folder_count && good; i++) {
        good = add_task(l, t->folders[i], t->depth + 1, false);
        t->folders[i] = NULL;
    }
    free_task(t);
    return good;
}

/* Decides how to go on after a page that was not the last. */
static void choose_way(lister *l, task *t, stk_str *token) {
    /* A page without any folder is one of a folder of pictures, but for the place itself. */
    bool few = t->spanned < AT_ONCE && (t->spanned > 0 || t->depth == 0);
    bool split = t->first_page && !t->by_level && t->depth < DEPTH_MAX && few;
    bool too_many = t->by_level && t->folder_count > FOLDERS_MAX && !l->no_deeper;
    if (split || too_many) {
        t->by_level = split;
        t->first_page = false;
        drop_folders(t);
        stk_str_clear(&t->token);
        return;
    }
    t->first_page = false;
    stk_str swap = t->token;
    t->token = *token;
    *token = swap;
}

/* Reads a page and goes on with its task, which it takes. */
static stk_status take_page(lister *l, request *r, stk_error *err) {
    task *t = r->task;
    stk_s3_page page = {.object = take_object, .folder = take_folder, .user = l};
    stk_error why = {0};
    r->task = NULL;
    l->now = t;
    t->spanned = 0;
    stk_str_clear(&t->latest);
    stk_status status = stk_s3_page_parse(r->bytes.data, r->bytes.size, &page, &why);
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
            status = end_task(l, t) ? STK_OK : STK_FAIL_MEMORY(err, l->listing->place);
            stk_str_free(&page.token);
            return status;
        }
        choose_way(l, t, &page.token);
    } else if (status == STK_ERR_STORAGE && ++t->strange < STRANGE_MAX) {
        status = STK_OK; /* once more */
    }
    stk_str_free(&page.token);
    t->next = l->tasks;
    l->tasks = t;
    if (status == STK_ERR_MEMORY) {
        return has_room(l, 0) ? STK_FAIL_MEMORY(err, l->listing->place) : fail_too_many(l, err);
    }
    return status == STK_OK ? STK_OK
                            : STK_FAIL(err, status,
                                       "cannot list %s: the store answered with %s; does "
                                       "AWS_ENDPOINT_URL name a store like S3?",
                                       l->listing->place, why.message);
}

/* ---- requests ---- */

static void request_done(stk_s3_call *call) {
    request *r = (request *)(void *)call;
    lister *l = r->lister;
    pthread_mutex_lock(&l->lock);
    r->next = l->ended;
    l->ended = r;
    pthread_cond_signal(&l->some);
    pthread_mutex_unlock(&l->lock);
}

static bool send(lister *l, request *r, task *t) {
    stk_s3_call *call = &r->call;
    size_t count = 0;
    call->query[count++] = (stk_s3_pair){"list-type", "2"};
    call->query[count++] = (stk_s3_pair){"encoding-type", "url"};
    call->query[count++] = (stk_s3_pair){"prefix", t->prefix};
    if (t->by_level) {
        call->query[count++] = (stk_s3_pair){"delimiter", "/"};
    }
    if (t->token.length > 0) {
        call->query[count++] = (stk_s3_pair){"continuation-token", t->token.text};
    }
    call->query_count = count;
    call->max_bytes = PAGE_BYTES;
    call->timeout_s = l->listing->timeout_s;
    call->bytes = &r->bytes;
    call->done = request_done;
    r->lister = l;
    r->task = t;
    if (!stk_s3_client_send(l->listing->client, call)) {
        r->task = NULL;
        return false;
    }
    l->under_way++;
    return true;
}

/* The task that may be begun now, taken out of the list, or NULL. */
static task *take_ready(lister *l, int64_t now_ns) {
    for (task **at = &l->tasks; *at != NULL; at = &(*at)->next) {
        if ((*at)->retry_ns <= now_ns) {
            task *t = *at;
            *at = t->next;
            return t;
        }
    }
    return NULL;
}

static stk_status send_ready(lister *l, stk_error *err) {
    for (size_t i = 0; i < AT_ONCE; i++) {
        request *r = &l->requests[i];
        if (r->task != NULL) {
            continue;
        }
        task *t = take_ready(l, stk_clock_ns());
        if (t == NULL) {
            break;
        }
        if (!send(l, r, t)) {
            t->next = l->tasks;
            l->tasks = t;
            return STK_FAIL_MEMORY(err, l->listing->place);
        }
    }
    return STK_OK;
}

/* The attempt failed: again later, or the end. */
static stk_status take_failure(lister *l, request *r, stk_error *err) {
    task *t = r->task;
    const stk_s3_judgement *judgement = &r->call.judgement;
    r->task = NULL;
    t->next = l->tasks;
    l->tasks = t;
    int64_t now_ns = stk_clock_ns();
    double limit_s = 2 * l->listing->timeout_s;
    if (!l->answered && r->call.http.answer.status == 0 && limit_s > NOBODY_S) {
        limit_s = NOBODY_S;
    } else if (l->good && l->listing->outage_s > limit_s) {
        limit_s = l->listing->outage_s;
    }
    l->answered = l->answered || r->call.http.answer.status > 0;
    bool late = (double)(now_ns - l->good_ns) > limit_s * NS_PER_S;
    bool strange = r->call.http.end == STK_HTTP_BAD_HEAD && ++t->strange >= STRANGE_MAX;
    bool again = judgement->verdict == STK_FETCH_AGAIN || judgement->verdict == STK_FETCH_DAMAGED;
    if (!again || late || strange) {
        return STK_FAIL(err, judgement->error.status, "%s", judgement->error.message);
    }
    if (!l->warned && now_ns - l->begun_ns > PATIENCE_NS) {
        l->warned = true;
        stk_events_warning(l->listing->events, "%s; trying again for up to %.0f s",
                           judgement->error.message, limit_s);
    }
    double pause_s = FIRST_PAUSE_S;
    for (int i = 0; i < t->failures && pause_s < MOST_PAUSE_S; i++) {
        pause_s *= 2;
    }
    pause_s = pause_s < MOST_PAUSE_S ? pause_s : MOST_PAUSE_S;
    pause_s *= stk_rng_range(&l->rng, 0.5, 1.0);
    if (judgement->cure != STK_S3_CURE_NONE) { /* something was put right */
        pause_s = 0;
    } else {
        t->failures++;
    }
    pause_s = pause_s > judgement->wait_s ? pause_s : judgement->wait_s;
    t->retry_ns = now_ns + (int64_t)(pause_s * NS_PER_S);
    return STK_OK;
}

/* Waits until a request has ended or a task may be tried again; takes all that have ended. */
static request *wait_for_some(lister *l) {
    int64_t until_ns = INT64_MAX;
    for (const task *t = l->tasks; t != NULL && l->under_way < AT_ONCE; t = t->next) {
        until_ns = t->retry_ns < until_ns ? t->retry_ns : until_ns;
    }
    int64_t look_ns = stk_clock_ns() + LOOK_NS; /* whether it should end meanwhile */
    until_ns = until_ns < look_ns ? until_ns : look_ns;
    struct timespec at = {.tv_sec = until_ns / NS_PER_S, .tv_nsec = until_ns % NS_PER_S};
    pthread_mutex_lock(&l->lock);
    if (l->ended == NULL) {
        pthread_cond_timedwait(&l->some, &l->lock, &at);
    }
    request *ended = l->ended;
    l->ended = NULL;
    pthread_mutex_unlock(&l->lock);
    return ended;
}

/* Whether a task is left that somebody is to work on. */
static bool has_work(const lister *l) {
    for (const task *t = l->tasks; t != NULL; t = t->next) {
        if (t->retry_ns != INT64_MAX) {
            return true;
        }
    }
    return l->under_way > 0;
}

/* Whether somebody wants it to end; what takes a moment only goes on. */
static stk_status check_end(const lister *l, stk_error *err) {
    const stk_s3_listing *listing = l->listing;
    if (stk_clock_since_s(l->begun_ns) < STK_STORAGE_STOP_S) {
        return STK_OK;
    }
    if (stk_stop_asked(listing->stop) != STK_STOP_NONE) {
        return STK_FAIL(err, STK_ERR_STOPPED, "stopped while %s was listed", listing->place);
    }
    if (listing->deadline_ns > 0 && stk_clock_ns() > listing->deadline_ns) {
        return STK_FAIL(err, STK_ERR_STORAGE, "the time budget ended while %s was listed",
                        listing->place);
    }
    return STK_OK;
}

static stk_status work(lister *l, stk_error *err) {
    stk_status status = STK_OK;
    while (status == STK_OK && has_work(l)) {
        status = check_end(l, err);
        status = status == STK_OK ? send_ready(l, err) : status;
        request *next = NULL;
        for (request *r = status == STK_OK ? wait_for_some(l) : NULL; r != NULL; r = next) {
            next = r->next;
            l->under_way--;
            if (status != STK_OK) { /* one before it has failed for good */
                free_task(r->task);
                r->task = NULL;
            } else if (r->call.judgement.verdict == STK_FETCH_OK) {
                status = take_page(l, r, err);
            } else {
                status = take_failure(l, r, err);
            }
        }
    }
    return status;
}

/* Ends what is under way and frees all. */
static void close_lister(lister *l) {
    for (size_t i = 0; i < AT_ONCE; i++) {
        if (l->requests[i].task != NULL) {
            stk_s3_client_cancel(&l->requests[i].call);
        }
    }
    while (l->under_way > 0) {
        pthread_mutex_lock(&l->lock);
        while (l->ended == NULL) {
            pthread_cond_wait(&l->some, &l->lock);
        }
        for (request *r = l->ended; r != NULL; r = r->next) {
            l->under_way--;
        }
        l->ended = NULL;
        pthread_mutex_unlock(&l->lock);
    }
    for (size_t i = 0; i < AT_ONCE; i++) {
        free_task(l->requests[i].task);
        stk_s3_call_free(&l->requests[i].call);
        stk_bytes_free(&l->requests[i].bytes);
    }
    while (l->tasks != NULL) {
        task *t = l->tasks;
        l->tasks = t->next;
        free_task(t);
    }
    pthread_cond_destroy(&l->some);
    pthread_mutex_destroy(&l->lock);
    stk_mem_free(l);
}

static lister *open_lister(const stk_s3_listing *listing, stk_tree *tree) {
    lister *l = stk_mem_new(1, sizeof *l);
    if (l != NULL) {
        pthread_condattr_t attributes;
        pthread_condattr_init(&attributes);
        pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
        pthread_cond_init(&l->some, &attributes);
        pthread_condattr_destroy(&attributes);
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

/* The last part of a prefix that ends with a slash, without it; the length of what is before it. */
static size_t head_of(const char *prefix, size_t length) {
    size_t at = length > 0 ? length - 1 : 0;
    while (at > 0 && prefix[at - 1] != '/') {
        at--;
    }
    return at;
}

/* The names of the folders of one task, to be freed as the task is; the slashes are cut off. */
static size_t folder_names(const task *t, const char **names) {
    size_t head = strlen(t->prefix);
    for (size_t i = 0; i < t->folder_count; i++) {
        size_t length = strlen(t->folders[i]);
        t->folders[i][length > 0 ? length - 1 : 0] = '\0';
        names[i] = t->folders[i] + (head < length ? head : length);
    }
    return t->folder_count;
}

/* Says what is there instead, from the folders of a level above. */
static stk_status fail_near(const stk_s3_listing *listing, const task *t, const char *missing,
                            stk_error *err) {
    const char **names = stk_mem_new(t->folder_count, sizeof *names);
    if (names == NULL) {
        return STK_FAIL_MEMORY(err, listing->place);
    }
    size_t count = folder_names(t, names);
    const char *near = stk_str_nearest(missing, names, count);
    stk_status status;
    if (near != NULL) {
        status = STK_FAIL(err, STK_ERR_DATA, "no objects below %s; did you mean s3://%s/%s%s?",
                          listing->place, listing->bucket, t->prefix, near);
    } else {
        stk_str some = {0};
        for (size_t i = 0; i < count && i < 5; i++) {
            stk_str_appendf(&some, "%s%s", i > 0 ? ", " : "", names[i]);
        }
        status = STK_FAIL(err, STK_ERR_DATA, "no objects below %s; s3://%s/%s has the folders %s%s",
                          listing->place, listing->bucket, t->prefix, stk_str_text(&some),
                          count > 5 ? " and others" : "");
        stk_str_free(&some);
    }
    stk_mem_free(names);
    return status;
}

/* Looks at the levels above until there is something. */
static stk_status fail_empty(const stk_s3_listing *listing, stk_error *err) {
    const char *prefix = listing->prefix;
    size_t length = strlen(prefix);
    stk_status status = STK_OK;
    while (length > 0 && status == STK_OK) {
        size_t head = head_of(prefix, length);
        char *missing = stk_mem_strndup(prefix + head, length - head - 1);
        lister *l = open_lister(listing, NULL);
        if (l != NULL) {
            l->no_deeper = true;
            if (missing != NULL && add_task(l, stk_mem_strndup(prefix, head), 0, true) &&
                work(l, NULL) == STK_OK && l->tasks != NULL && l->tasks->folder_count > 0) {
                status = fail_near(listing, l->tasks, missing, err);
            }
            close_lister(l);
        }
        stk_mem_free(missing);
        length = head;
    }
    return status != STK_OK
               ? status
               : STK_FAIL(err, STK_ERR_DATA,
                          "no objects below %s: bucket %s is there, but has none%s", listing->place,
                          listing->bucket, prefix[0] != '\0' ? " with this prefix" : "");
}

stk_status stk_s3_list(const stk_s3_listing *listing, stk_tree *tree, stk_error *err) {
    lister *l = open_lister(listing, tree);
    if (l == NULL) {
        return STK_FAIL_MEMORY(err, listing->place);
    }
    stk_status status = add_task(l, stk_mem_strdup(listing->prefix), 0, false)
                            ? work(l, err)
                            : STK_FAIL_MEMORY(err, listing->place);
    close_lister(l);
    if (status == STK_OK) {
        status = stk_tree_finish(tree, err);
    }
    return status == STK_OK && tree->count == 0 ? fail_empty(listing, err) : status;
}

#endif
