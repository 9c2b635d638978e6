/*
 * archives.c - finds the archives of a location, looks at all of them and then lists them, several
 * at a time, and shows their members.
 */
#include "storage/archives/archives.h"

#include <stdio.h>
#include <string.h>

#include "base/error.h"
#include "base/mem.h"
#include "base/str.h"
#include "base/threads/pool.h"
#include "storage/archives/mounts.h"
#include "storage/reading/store_state.h"
#include "storage/shards/shard_names.h"

/* Archives that are listed or unpacked at the same time. */
#define AT_A_TIME 4

typedef struct archive_search {
    stk_store *store;
    const stk_archive_folders *folders;
    const stk_events *events;
    stk_archive *items; /* owned */
    size_t count;
    stk_mounts mounts;
} archive_search;

bool stk_archives_instead_of_shards(const stk_dir_list *top) {
    bool squeezed = false;
    bool others = false;
    for (size_t i = 0; i < top->count; i++) {
        const char *name = top->entries[i].name;
        bool tar = !top->entries[i].is_dir && stk_shards_is_tar_name(name);
        if ((tar && stk_str_ends_with_nocase(name, ".tar")) ||
            stk_str_equal(name, STK_SHARD_INDEX_NAME) || stk_str_equal(name, STK_STAGING_NAME)) {
            return false;
        }
        squeezed = squeezed || tar;
        others = others || (!tar && !top->entries[i].is_dir);
    }
    return squeezed && others;
}

/* Whether a BSON file is the beginning of another one at the top; tells the events. */
static bool is_beginning(const archive_search *a, const stk_dir_list *top, const char *name) {
    size_t whole = 0;
    if (!stk_archive_is_bson(name, &whole) || whole == 0) {
        return false;
    }
    for (size_t i = 0; i < top->count; i++) {
        const char *other = top->entries[i].name;
        if (stk_archive_is_bson(other, NULL) && strlen(other) == whole + strlen(".bson") &&
            strncmp(other, name, whole) == 0) {
            char what[300];
            char why[300];
            snprintf(what, sizeof what, "%.250s is not used", name);
            snprintf(why, sizeof why, "it is the beginning of %.250s, by its name", other);
            stk_events_decision(a->events, what, why);
            return true;
        }
    }
    return false;
}

/* Whether an entry is an archive, by its name; tars are none where they are shards. */
static bool is_candidate(const archive_search *a, const stk_dir_entry *entry) {
    return !entry->is_dir && stk_archive_stem(entry->name) > 0 &&
           (a->store->shards == NULL || !stk_shards_is_tar_name(entry->name));
}

static stk_status find_candidates(archive_search *a, const stk_dir_list *top, stk_error *err) {
    size_t candidates = 0;
    stk_status status = STK_OK;
    for (size_t i = 0; i < top->count; i++) {
        candidates += is_candidate(a, &top->entries[i]);
    }
    if (candidates == 0) {
        return STK_OK;
    }
    a->items = stk_mem_new(candidates, sizeof *a->items);
    status = a->items != NULL
                 ? stk_mounts_begin(&a->mounts, a->store, top, candidates, a->events, err)
                 : STK_FAIL_MEMORY(err, "the list of archives");
    for (size_t i = 0; status == STK_OK && i < top->count; i++) {
        stk_archive *archive = &a->items[a->count];
        const char *name = top->entries[i].name;
        bool wants = false;
        if (!is_candidate(a, &top->entries[i]) || is_beginning(a, top, name)) {
            continue;
        }
        archive->name = stk_mem_strdup(name);
        archive->stem = stk_mem_strndup(name, stk_archive_stem(name));
        status = archive->name != NULL && archive->stem != NULL
                     ? stk_mounts_wants(&a->mounts, name, archive->stem, &wants, err)
                     : STK_FAIL_MEMORY(err, "the list of archives");
        if (wants) {
            a->count++;
        } else {
            stk_archive_free(archive);
        }
    }
    return status;
}

static void look_at(void *context, size_t task, int thread) {
    archive_search *a = context;
    stk_archive *archive = &a->items[task];
    (void)thread;
    (void)(stk_archive_look(a->store, a->folders, archive, &archive->error) == STK_OK);
}

static void list_one(void *context, size_t task, int thread) {
    archive_search *a = context;
    stk_archive *archive = &a->items[task];
    (void)thread;
    if (!archive->listed && archive->error.status == STK_OK) {
        (void)(stk_archive_list(a->store, a->folders, archive, &archive->error) == STK_OK);
    }
}

/* Runs one step for all archives. Only an archive that is no good by itself does not end opening.
 */
static stk_status run(archive_search *a, stk_pool_task *task, stk_error *err) {
    stk_pool *pool = NULL;
    int threads = a->count < AT_A_TIME ? (int)a->count : AT_A_TIME;
    stk_status status = stk_pool_new(&pool, threads, err);
    if (status == STK_OK) {
        stk_pool_run(pool, a->count, task, a);
    }
    stk_pool_free(pool);
    for (size_t i = 0; status == STK_OK && i < a->count; i++) {
        const stk_error *error = &a->items[i].error;
        if (error->status != STK_OK && error->status != STK_ERR_DATA) {
            status = stk_error_pass(error, err);
        }
    }
    return status;
}

/* Tells the user why opening takes long, this once. */
static void tell_making(const archive_search *a) {
    for (size_t i = 0; i < a->count; i++) {
        const stk_archive *archive = &a->items[i];
        char what[400];
        char bytes[32];
        bool packed = archive->kind == STK_ARCHIVE_PACKED;
        if (!packed && archive->kind != STK_ARCHIVE_BSON) {
            continue;
        }
        if (!archive->listed && archive->error.status == STK_OK) {
            snprintf(what, sizeof what, "%s %.250s once: %s", packed ? "unpacking" : "reading",
                     archive->name, stk_format_bytes(bytes, sizeof bytes, archive->size));
            stk_events_decision(a->events, what,
                                packed ? "its members cannot be read one by one; what it holds is "
                                         "kept for later runs"
                                       : "nothing else says where its pictures are; the positions "
                                         "are kept for later runs");
        }
    }
}

static void tell_left_out(const archive_search *a, const stk_archive *archive) {
    unsigned long long links = archive->links;
    unsigned long long outside = archive->outside;
    unsigned long long encrypted = archive->encrypted;
    if (archive->error.status != STK_OK) {
        stk_events_warning(a->events, "%s is not used: %s", archive->name, archive->error.message);
    } else if (links + outside > 0) {
        stk_events_warning(
            a->events, "left out %llu member%s of %s that %s no file inside of it (links: %llu)",
            links + outside, links + outside == 1 ? "" : "s", archive->name,
            links + outside == 1 ? "is" : "are", links);
    }
    if (encrypted > 0) {
        stk_events_warning(
            a->events, "left out %llu member%s of %s that need%s a password; unpack it by hand",
            encrypted, encrypted == 1 ? "" : "s", archive->name, encrypted == 1 ? "s" : "");
    }
}

/* Whether some members lie in the folder of unpacked archives. */
static bool has_unpacked(const stk_shard_index *index) {
    bool has = false;
    for (size_t i = 0; i < index->shard_count; i++) {
        has = has || index->shards[i].unpacked;
    }
    return has;
}

/* Shows the members of all archives that are good. */
static stk_status mount_all(archive_search *a, stk_error *err) {
    stk_store *store = a->store;
    stk_status status = STK_OK;
    bool unpacked = false;
    for (size_t i = 0; status == STK_OK && i < a->count; i++) {
        stk_archive *archive = &a->items[i];
        tell_left_out(a, archive);
        if (!archive->listed || archive->error.status != STK_OK) {
            continue;
        }
        bool in_folder = has_unpacked(&archive->found);
        status = stk_mounts_add(&a->mounts, archive, err);
        unpacked = unpacked || (archive->used && in_folder);
        if (status == STK_OK && archive->used &&
            !stk_texts_take(&store->mounted, stk_mem_strdup(archive->name))) {
            status = STK_FAIL_MEMORY(err, "the list of archives");
        }
    }
    STK_THEN(status, stk_tree_finish(&a->mounts.tree, err));
    if (status == STK_OK && unpacked) {
        status = stk_storage_local.open(&store->unpacked, a->folders->unpacked, &store->options,
                                        NULL, a->events, err);
    }
    if (status == STK_OK && store->mounted.count > 0) {
        status = stk_shards_new(&store->mounts, &a->mounts.tree, &a->mounts.index, err);
    }
    return status;
}

stk_status stk_archives_open(stk_store *store, const stk_dir_list *top,
                             const stk_archive_folders *folders, const stk_events *events,
                             stk_error *err) {
    archive_search a = {.store = store, .folders = folders, .events = events};
    stk_status status = find_candidates(&a, top, err);
    if (status == STK_OK && a.count > 0) {
        status = run(&a, look_at, err);
        if (status == STK_OK) {
            tell_making(&a);
            status = run(&a, list_one, err);
        }
        STK_THEN(status, mount_all(&a, err));
    }
    for (size_t i = 0; i < a.count; i++) {
        stk_archive_free(&a.items[i]);
    }
    stk_mounts_free(&a.mounts);
    stk_mem_free(a.items);
    return status;
}
