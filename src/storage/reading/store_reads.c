/*
 * store_reads.c - single questions to a store, each of which the caller waits for: the bytes of one
 * object, a folder's list, an object's version.
 *
 * All of them go through one reader of the store's own, so that the read policy holds for them too.
 */
#include "storage/reading/store_state.h"

#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/error.h"
#include "base/mem.h"
#include "base/threads/thread.h"

/* How often a caller that waits looks at the stop request, the deadline and the outage. */
#define LOOK_NS 50000000

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
 * Fails when waiting must end: after a request to stop, or after the deadline. A store that was
 * just opened, and a read that has just begun, still have STK_STORAGE_STOP_S: without them nothing
 * could be delivered.
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

/* Waits for the answer; fails if the wait had to end without one. */
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
        (void)stk_cond_wait_until(&w->done, &w->lock, stk_clock_ns() + LOOK_NS);
        stk_store_tell_outage(s);
        status = w->over ? STK_OK : check_end(s, w->read.path, start, err);
        if (status != STK_OK) {
            stk_reader_cancel(reader);
        }
    }
    pthread_mutex_unlock(&w->lock);
    return status;
}

/* Submits a read and waits for its end. */
static stk_status ask(stk_store *s, stk_read *read, stk_error *err) {
    stk_reader *reader = NULL;
    stk_status status = check_end(s, read->path, stk_clock_ns(), err);
    STK_THEN(status, own_reader(s, &reader, err));
    if (status != STK_OK) {
        return status;
    }
    waiting w = {.read = *read};
    pthread_mutex_init(&w.lock, NULL);
    stk_cond_init(&w.done);
    if (stk_reader_submit(reader, &w.read)) {
        status = wait_for(s, reader, &w, err);
    } else {
        status = STK_FAIL_MEMORY(err, read->path);
    }
    pthread_cond_destroy(&w.done);
    pthread_mutex_destroy(&w.lock);
    *read = w.read;
    return status != STK_OK || read->error.status == STK_OK
               ? status
               : STK_FAIL(err, read->error.status, "%s", read->error.message);
}

stk_status stk_store_read(stk_store *s, const char *path, stk_bytes *bytes, stk_error *err) {
    stk_read read = {.path = path, .bytes = *bytes};
    stk_status status = ask(s, &read, err);
    *bytes = read.bytes;
    return status;
}

/* Leaves a part of the bytes. */
static void cut_out(stk_bytes *bytes, uint64_t offset, uint64_t length) {
    size_t start = offset < bytes->size ? (size_t)offset : bytes->size;
    size_t left = bytes->size - start;
    if (left > 0 && start > 0) {
        memmove(bytes->data, bytes->data + start, left);
    }
    bytes->size = length > 0 && length < left ? (size_t)length : left;
}

stk_status stk_store_read_part(stk_store *s, const char *object, uint64_t offset, uint64_t length,
                               stk_bytes *bytes, stk_error *err) {
    stk_extent member;
    bool whole = s->mounts != NULL && stk_shards_find(s->mounts, object, &member) &&
                 (member.zipped || length == 0);
    stk_read read = {.path = object,
                     .bypasses_shards = !whole,
                     .offset = offset,
                     .length = length,
                     .bytes = *bytes};
    stk_status status = ask(s, &read, err);
    *bytes = read.bytes;
    if (status == STK_OK && whole) {
        cut_out(bytes, offset, length);
    }
    return status;
}

/* Makes a list from the form that stk_fetch_kind describes. */
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

/* Whether a path lies in a folder, or is an object, that archives have brought. */
static bool is_mounted(const stk_store *s, const char *path) {
    char top[NAME_MAX + 1];
    size_t length = strcspn(path, "/");
    if (s->mounts == NULL || length == 0 || length >= sizeof top) {
        return false;
    }
    memcpy(top, path, length);
    top[length] = '\0';
    return stk_tree_has(stk_shards_tree(s->mounts), top);
}

/* What the location itself has in a folder. */
static stk_status list_own(stk_store *s, const char *folder, stk_dir_list *list, stk_error *err) {
    if (s->tree != NULL) {
        return stk_tree_list(s->tree, folder, list, err);
    }
    stk_read read = {.path = folder, .kind = STK_FETCH_LIST};
    stk_status status = ask(s, &read, err);
    if (status == STK_OK && !unpack(&read.bytes, list)) {
        stk_dir_list_free(list);
        status = STK_FAIL_MEMORY(err, folder);
    }
    stk_bytes_free(&read.bytes);
    return status;
}

/* Whether an entry at the top is not shown: an archive, or what its members take the place of. */
static bool is_replaced(const stk_store *s, const stk_dir_entry *entry) {
    for (size_t i = 0; !entry->is_dir && i < s->mounted.count; i++) {
        if (strcmp(s->mounted.items[i], entry->name) == 0) {
            return true;
        }
    }
    return is_mounted(s, entry->name);
}

/* Puts the members of archives in the place of the archives. */
static stk_status put_mounts(const stk_store *s, stk_dir_list *list, stk_error *err) {
    stk_dir_list added = {0};
    size_t capacity = 0;
    size_t kept = 0;
    stk_status status = stk_tree_list(stk_shards_tree(s->mounts), "", &added, err);
    for (size_t i = 0; i < list->count; i++) {
        if (is_replaced(s, &list->entries[i])) {
            stk_mem_free(list->entries[i].name);
        } else {
            list->entries[kept++] = list->entries[i];
        }
    }
    capacity = list->count; /* the list has room for as many as it had */
    list->count = kept;
    for (size_t i = 0; status == STK_OK && i < added.count; i++) {
        const stk_dir_entry *entry = &added.entries[i];
        if (!stk_dir_list_add(list, &capacity, entry->name, strlen(entry->name), entry->is_dir)) {
            status = STK_FAIL_MEMORY(err, "the list of a folder");
        }
    }
    stk_dir_list_free(&added);
    stk_dir_list_sort(list);
    return status;
}

stk_status stk_store_list(stk_store *s, const char *folder, stk_dir_list *list, stk_error *err) {
    memset(list, 0, sizeof *list);
    if (is_mounted(s, folder)) {
        return stk_tree_list(stk_shards_tree(s->mounts), folder, list, err);
    }
    stk_status status = list_own(s, folder, list, err);
    if (status == STK_OK && s->mounts != NULL && folder[strspn(folder, "/")] == '\0') {
        status = put_mounts(s, list, err);
    }
    if (status != STK_OK) {
        stk_dir_list_free(list);
    }
    return status;
}

stk_status stk_store_identify(stk_store *s, const char *folder, stk_store_identity *identity,
                              stk_error *err) {
    memset(identity, 0, sizeof *identity);
    if (s->tree != NULL || is_mounted(s, folder)) {
        return STK_OK;
    }
    stk_read read = {.path = folder, .kind = STK_FETCH_IDENTITY};
    stk_status status = ask(s, &read, err);
    if (status == STK_OK && read.bytes.size == sizeof *identity) {
        memcpy(identity, read.bytes.data, sizeof *identity);
    }
    stk_bytes_free(&read.bytes);
    return status;
}

stk_status stk_store_version(stk_store *s, const char *object, char *buf, size_t size,
                             stk_error *err) {
    const stk_tree *tree = s->source->tree != NULL ? s->source->tree(s->location) : NULL;
    const stk_tree_object *known =
        s->mounts != NULL ? stk_tree_find(stk_shards_tree(s->mounts), object) : NULL;
    if (tree != NULL || known != NULL) {
        known = known != NULL ? known : stk_tree_find(tree, object);
        if (known == NULL) {
            return STK_FAIL(err, STK_ERR_DATA, "%s has no object %s", s->base, object);
        }
        snprintf(buf, size, "%s.%" PRIu64, known->version, known->size);
        return STK_OK;
    }
    stk_read read = {.path = object, .kind = STK_FETCH_VERSION, .bypasses_shards = true};
    stk_status status = ask(s, &read, err);
    if (status == STK_OK) {
        snprintf(buf, size, "%.*s", (int)read.bytes.size, (const char *)read.bytes.data);
    }
    stk_bytes_free(&read.bytes);
    return status;
}

stk_status stk_store_measure(stk_store *s, const char *object, char *version, size_t room,
                             uint64_t *size, stk_error *err) {
    stk_status status = stk_store_version(s, object, version, room, err);
    const char *dot = status == STK_OK ? strrchr(version, '.') : NULL;
    char *end = NULL;
    *size = dot != NULL ? strtoull(dot + 1, &end, 10) : 0;
    if (status == STK_OK && (dot == NULL || end == dot + 1 || *end != '\0')) {
        status =
            STK_FAIL(err, STK_ERR_STORAGE, "cannot find out how long %s/%s is", s->base, object);
    }
    return status;
}

stk_status stk_store_has(stk_store *s, const char *path, bool *has, stk_error *err) {
    if (s->tree != NULL || is_mounted(s, path)) {
        *has = stk_store_known(s, path) != NULL;
        return STK_OK;
    }
    stk_read read = {.path = path, .kind = STK_FETCH_VERSION, .bypasses_shards = true};
    stk_error why = {0};
    stk_status status = ask(s, &read, &why);
    stk_bytes_free(&read.bytes);
    *has = status == STK_OK;
    return *has || read.refused ? STK_OK : STK_FAIL(err, status, "%s", why.message);
}
