/*
 * find_members.c - finds the members of all shards of a location, from the fastest source.
 *
 * First all tars are checked in parallel: a tar may be in the index of `stoker stage`, or an
 * earlier run may have stored its members. The headers of the other tars are then read, some tars
 * at a time.
 */
#include "storage/shards/find_members.h"

#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

#include "base/error.h"
#include "base/map.h"
#include "base/mem.h"
#include "base/str.h"
#include "base/threads/pool.h"
#include "storage/reading/store_state.h"
#include "storage/shards/kept_members.h"

/* Parts that are read in parallel: of several tars, or of one. */
#define AT_A_TIME 8

/* Limit of member texts in memory; further texts are read when they are needed. */
#define MOST_TEXT_BYTES ((size_t)256 * 1024 * 1024)

/* One tar of the search. */
typedef struct tar_task {
    const char *object;                    /* the tar's path; owned by `files` */
    char version[STK_STORE_VERSION_BYTES]; /* changes whenever the tar does */
    const stk_index_shard *known;          /* its entry in the index of `stoker stage`, or NULL */
    bool done;                             /* `found` holds its members */
    stk_shard_index found;
    stk_tar_counts skipped;
    stk_error error;
} tar_task;

typedef struct member_search {
    stk_store *store;
    const char *only;
    const char *kept; /* folder for stored members, or NULL */
    bool refresh;
    const stk_events *events;
    const stk_shard_files *files;
    stk_shard_index staged; /* the index of `stoker stage` */
    tar_task *tasks;        /* owned; one for each tar */
    size_t *todo;           /* owned: indexes of tasks whose headers must be read */
    size_t todo_count;
    int at_a_time; /* parts of one tar read in parallel */
    atomic_size_t text_left;
    atomic_bool failed; /* a task failed: the others need not begin */
} member_search;

/* ---- members stored by an earlier run ---- */

static bool recall(const member_search *o, const char *object, const char *version,
                   stk_shard_index *index) {
    return !o->refresh && stk_kept_members_load(o->store, o->kept, object, version, index);
}

/* ---- the index of `stoker stage` ---- */

/* Reads an object that may be larger than the limit for pictures. */
static stk_status read_large(stk_store *store, const char *object, stk_bytes *all, stk_error *err) {
    stk_bytes part = {0};
    stk_status status = STK_OK;
    uint64_t size = stk_store_size(store, object);
    do {
        uint64_t want = STK_SCAN_PART_BYTES;
        if (size > 0 && size - all->size < want) {
            want = size - all->size;
        }
        part.size = 0;
        if (want > 0) {
            status = stk_store_read_part(store, object, all->size, want, &part, err);
        }
        if (status == STK_OK && all->capacity < all->size + part.size &&
            !stk_bytes_reserve(all, size > 0 ? (size_t)size : 2 * (all->size + part.size))) {
            status = STK_FAIL_MEMORY(err, object);
        }
        if (status == STK_OK && part.size > 0) {
            memcpy(all->data + all->size, part.data, part.size);
            all->size += part.size;
        }
    } while (status == STK_OK && part.size == STK_SCAN_PART_BYTES);
    stk_bytes_free(&part);
    return status;
}

static stk_status load_staged(member_search *o, stk_error *err) {
    char version[STK_STORE_VERSION_BYTES];
    stk_bytes bytes = {0};
    stk_error why = {0};
    bool far = stk_store_is_remote(o->store);
    if (!o->files->has_index) {
        return STK_OK;
    }
    stk_status status =
        stk_store_version(o->store, STK_SHARD_INDEX_NAME, version, sizeof version, err);
    if (status != STK_OK || (far && recall(o, STK_SHARD_INDEX_NAME, version, &o->staged))) {
        return status;
    }
    char *name = stk_path_join(o->store->base, STK_SHARD_INDEX_NAME);
    status = name != NULL ? read_large(o->store, STK_SHARD_INDEX_NAME, &bytes, err)
                          : STK_FAIL_MEMORY(err, STK_SHARD_INDEX_NAME);
    if (status == STK_OK) {
        status = stk_shard_index_load(&o->staged, name, &bytes, &why);
        if (status != STK_OK) {
            status = STK_FAIL(err, status,
                              "%s; run the same `stoker stage` again to have it written, or remove "
                              "it to have the tars read as they are",
                              why.message);
        }
    }
    if (status == STK_OK && far) {
        stk_kept_members_save(o->store, o->kept, STK_SHARD_INDEX_NAME, version, &o->staged);
    }
    stk_bytes_free(&bytes);
    stk_mem_free(name);
    return status;
}

/* Finds the entry of each tar in the index of `stoker stage`. */
static stk_status match_staged(member_search *o, stk_error *err) {
    stk_map by_name = {0};
    stk_status status = STK_OK;
    bool added;
    for (size_t i = 0; status == STK_OK && i < o->files->tars.count; i++) {
        if (!stk_map_add(&by_name, o->tasks[i].object, i, &added)) {
            status = STK_FAIL_MEMORY(err, "the list of shards");
        }
    }
    for (size_t i = 0; status == STK_OK && i < o->staged.shard_count; i++) {
        size_t number;
        const stk_index_shard *shard = &o->staged.shards[i];
        if (stk_map_find(&by_name, shard->name, &number)) {
            o->tasks[number].known = shard;
        } else if (o->only == NULL) {
            status = STK_FAIL(err, STK_ERR_DATA,
                              "the shard %s, which %s names, is not in %s; run the same `stoker "
                              "stage` again to have it written",
                              shard->name, STK_SHARD_INDEX_NAME, o->store->base);
        }
    }
    stk_map_free(&by_name);
    return status;
}

/* ---- checking and reading tars ---- */

/* Compares a tar's size with the index. Where the store does not know the size, reads its last
 * byte. */
static stk_status check_size(const member_search *o, const tar_task *t, stk_error *err) {
    stk_bytes bytes = {0};
    uint64_t size = stk_store_size(o->store, t->object);
    uint64_t wanted = t->known->size;
    stk_status status = STK_OK;
    if (wanted == 0) {
        return STK_OK;
    }
    if (size == 0) {
        status = stk_store_read_part(o->store, t->object, wanted - 1, 2, &bytes, err);
        size = wanted - 1 + bytes.size;
    }
    if (status == STK_OK && size != wanted) {
        status = STK_FAIL(err, STK_ERR_DATA,
                          "the shard %s in %s is not the one that was staged: it has %s than %llu "
                          "bytes; run the same `stoker stage` again to have it written",
                          t->object, o->store->base, size < wanted ? "fewer" : "more",
                          (unsigned long long)wanted);
    }
    stk_bytes_free(&bytes);
    return status;
}

/* Notes that a task failed; its error stays in the task until all have ended. */
static void end_task(member_search *o, stk_status status) {
    if (status != STK_OK) {
        atomic_store(&o->failed, true);
    }
}

static void look_at(void *context, size_t task, int thread) {
    member_search *o = context;
    tar_task *t = &o->tasks[task];
    (void)thread;
    if (atomic_load(&o->failed)) {
        return;
    }
    stk_status status =
        stk_store_version(o->store, t->object, t->version, sizeof t->version, &t->error);
    if (status == STK_OK && t->known != NULL) {
        status = check_size(o, t, &t->error);
    } else if (status == STK_OK) {
        t->done = recall(o, t->object, t->version, &t->found);
    }
    end_task(o, status);
}

static void read_headers(void *context, size_t task, int thread) {
    member_search *o = context;
    tar_task *t = &o->tasks[o->todo[task]];
    (void)thread;
    if (atomic_load(&o->failed)) {
        return;
    }
    stk_status status = stk_shard_scan(o->store, t->object, o->at_a_time, &o->text_left, &t->found,
                                       &t->skipped, &t->error);
    if (status == STK_OK) {
        t->done = true;
        if (stk_kept_members_is_worth_it(o->store, &t->found)) {
            stk_kept_members_save(o->store, o->kept, t->object, t->version, &t->found);
        }
    }
    end_task(o, status);
}

/* Runs one step of all tasks, some in parallel; returns the first task's error if any failed. */
static stk_status run_tasks(member_search *o, size_t tasks, stk_pool_task *task, stk_error *err) {
    stk_pool *pool = NULL;
    int threads = tasks < AT_A_TIME ? (int)tasks : AT_A_TIME;
    if (tasks == 0) {
        return STK_OK;
    }
    stk_status status = stk_pool_new(&pool, threads, err);
    if (status == STK_OK) {
        stk_pool_run(pool, tasks, task, o);
    }
    stk_pool_free(pool);
    for (size_t i = 0; status == STK_OK && i < o->files->tars.count; i++) {
        if (o->tasks[i].error.status != STK_OK) {
            status = STK_FAIL(err, o->tasks[i].error.status, "%s", o->tasks[i].error.message);
        }
    }
    return status;
}

/* Tells the user why opening takes long: far tars are read completely. */
static void tell_reading(const member_search *o) {
    char what[120];
    char bytes[32];
    uint64_t sum = 0;
    for (size_t i = 0; i < o->todo_count; i++) {
        sum += stk_store_size(o->store, o->tasks[o->todo[i]].object);
    }
    if (o->todo_count > 0 && stk_store_is_remote(o->store)) {
        snprintf(what, sizeof what, "reading through %zu tar%s, %s", o->todo_count,
                 o->todo_count == 1 ? "" : "s", stk_format_bytes(bytes, sizeof bytes, sum));
        stk_events_decision(o->events, what,
                            o->kept != NULL
                                ? "there is no index beside them; it is stored for the next run"
                                : "there is no index beside them");
    }
}

static void tell_skipped(const member_search *o) {
    unsigned long long links = 0;
    unsigned long long unknown = 0;
    for (size_t i = 0; i < o->files->tars.count; i++) {
        links += o->tasks[i].skipped.links;
        unknown += o->tasks[i].skipped.unknown;
    }
    if (links + unknown > 0) {
        stk_events_warning(o->events,
                           "passed over %llu member%s of the tars in %s that %s no file (links: "
                           "%llu)",
                           links + unknown, links + unknown == 1 ? "" : "s", o->store->root,
                           links + unknown == 1 ? "is" : "are", links);
    }
}

static stk_status run_all(member_search *o, stk_error *err) {
    size_t count = o->files->tars.count;
    o->tasks = stk_mem_new(count, sizeof *o->tasks);
    o->todo = stk_mem_new(count, sizeof *o->todo);
    if (o->tasks == NULL || o->todo == NULL) {
        return STK_FAIL_MEMORY(err, "the list of shards");
    }
    for (size_t i = 0; i < count; i++) {
        o->tasks[i].object = o->files->tars.items[i];
    }
    stk_status status = match_staged(o, err);
    STK_THEN(status, run_tasks(o, count, look_at, err));
    if (status != STK_OK) {
        return status;
    }
    for (size_t i = 0; i < count; i++) {
        if (o->tasks[i].known == NULL && !o->tasks[i].done) {
            o->todo[o->todo_count++] = i;
        }
    }
    tell_reading(o);
    size_t todo = o->todo_count;
    o->at_a_time = todo > 0 && todo < AT_A_TIME ? AT_A_TIME / (int)todo : 1;
    status = run_tasks(o, o->todo_count, read_headers, err);
    if (status == STK_OK) {
        tell_skipped(o);
    }
    return status;
}

/* ---- the result ---- */

/* If only one tar is wanted, removes the members of the others. */
static void leave_others_out(member_search *o) {
    stk_shard_index *staged = &o->staged;
    size_t kept = 0;
    for (size_t i = 0; i < staged->member_count; i++) {
        const char *shard = staged->shards[staged->members[i].shard].name;
        if (stk_str_equal(shard, o->only)) {
            staged->members[kept++] = staged->members[i];
        }
    }
    staged->member_count = kept;
}

static stk_status keep_versions(const member_search *o, stk_shard_members *found, stk_error *err) {
    stk_map numbers = {0};
    stk_status status = STK_OK;
    bool added;
    found->versions = stk_mem_new(found->index.shard_count, sizeof *found->versions);
    if (found->versions == NULL) {
        return STK_FAIL_MEMORY(err, "the list of shards");
    }
    for (size_t i = 0; status == STK_OK && i < found->index.shard_count; i++) {
        if (!stk_map_add(&numbers, found->index.shards[i].name, i, &added)) {
            status = STK_FAIL_MEMORY(err, "the list of shards");
        }
    }
    for (size_t i = 0; status == STK_OK && i < o->files->tars.count; i++) {
        size_t number;
        if (stk_map_find(&numbers, o->tasks[i].object, &number) &&
            (found->versions[number] = stk_mem_strdup(o->tasks[i].version)) == NULL) {
            status = STK_FAIL_MEMORY(err, "the list of shards");
        }
    }
    stk_map_free(&numbers);
    return status;
}

static stk_status put_together(member_search *o, stk_shard_members *found, stk_error *err) {
    stk_status status = STK_OK;
    if (o->only != NULL) {
        leave_others_out(o);
    }
    found->index = o->staged;
    memset(&o->staged, 0, sizeof o->staged);
    found->staged = found->index.member_count;
    for (size_t i = 0; status == STK_OK && i < o->files->tars.count; i++) {
        status = stk_shard_index_merge(&found->index, &o->tasks[i].found, err);
    }
    return status == STK_OK ? keep_versions(o, found, err) : status;
}

void stk_shard_members_free(stk_shard_members *found) {
    for (size_t i = 0; found->versions != NULL && i < found->index.shard_count; i++) {
        stk_mem_free(found->versions[i]);
    }
    stk_mem_free(found->versions);
    found->versions = NULL;
    stk_shard_index_free(&found->index);
}

stk_status stk_shard_members_find(stk_store *store, const stk_shard_files *files, const char *only,
                                  const char *kept, bool refresh, const stk_events *events,
                                  stk_shard_members *found, stk_error *err) {
    member_search o = {.store = store,
                       .files = files,
                       .only = only,
                       .kept = kept,
                       .refresh = refresh,
                       .events = events};
    atomic_init(&o.text_left, MOST_TEXT_BYTES);
    stk_status status = load_staged(&o, err);
    STK_THEN(status, run_all(&o, err));
    STK_THEN(status, put_together(&o, found, err));
    for (size_t i = 0; o.tasks != NULL && i < files->tars.count; i++) {
        stk_shard_index_free(&o.tasks[i].found);
    }
    stk_shard_index_free(&o.staged);
    stk_mem_free(o.tasks);
    stk_mem_free(o.todo);
    return status;
}
