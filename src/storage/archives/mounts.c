/* mounts.c - chooses the folders that members of archives are shown in. */
#include "storage/archives/mounts.h"

#include <stdio.h>
#include <string.h>

#include "base/error.h"
#include "base/mem.h"
#include "base/str.h"
#include "storage/data_folders.h"

/* More files than these at the top of an archive are no few tables. */
#define FEW_TABLES 16

/* What has a name at the top. */
enum { IS_FILE, IS_FOLDER, FROM_ARCHIVE };

void stk_mounts_free(stk_mounts *mounts) {
    stk_map_free(&mounts->there);
    stk_text_blocks_free(&mounts->texts);
    stk_shard_index_free(&mounts->index);
    stk_tree_free(&mounts->tree);
}

/* Whether an entry at the top is data, beside which an archive is one of several things. */
static bool is_data(const stk_dir_entry *entry) {
    const char *name = entry->name;
    return entry->is_dir
               ? !stk_folder_is_junk(name) && !stk_str_equal(name, STK_RUNS_FOLDER)
               : stk_picture_extension(name) != NULL || stk_str_ends_with_nocase(name, ".csv") ||
                     stk_str_ends_with_nocase(name, ".json");
}

stk_status stk_mounts_begin(stk_mounts *mounts, stk_store *store, const stk_dir_list *top,
                            size_t archives, const stk_events *events, stk_error *err) {
    mounts->store = store;
    mounts->top = top;
    mounts->events = events;
    mounts->alone = archives == 1;
    for (size_t i = 0; i < top->count; i++) {
        const stk_dir_entry *entry = &top->entries[i];
        bool added;
        mounts->alone = mounts->alone && !is_data(entry);
        if (!stk_map_add(&mounts->there, entry->name, entry->is_dir ? IS_FOLDER : IS_FILE,
                         &added)) {
            return STK_FAIL_MEMORY(err, "the list of archives");
        }
    }
    return STK_OK;
}

/* ---- what is there already ---- */

/* Whether a folder of the location has anything in it, or a file has bytes. */
static stk_status has_contents(const stk_mounts *m, const char *name, bool is_dir, bool *has,
                               stk_error *err) {
    if (!is_dir) {
        char version[STK_STORE_VERSION_BYTES];
        uint64_t size = 0;
        stk_status status = stk_store_measure(m->store, name, version, sizeof version, &size, err);
        *has = size > 0;
        return status;
    }
    stk_dir_list list;
    stk_status status = stk_store_list(m->store, name, &list, err);
    *has = list.count > 0;
    stk_dir_list_free(&list);
    return status;
}

static void tell_unused(const stk_mounts *m, const char *archive, const char *why) {
    char what[300];
    snprintf(what, sizeof what, "%.250s is not used", archive);
    stk_events_decision(m->events, what, why);
}

/* Whether a name is taken; tells the events, if the archive is not used because of that. */
static stk_status is_taken(const stk_mounts *m, const char *archive, const char *name, bool *taken,
                           stk_error *err) {
    size_t who = IS_FILE;
    stk_status status = STK_OK;
    *taken = stk_map_find(&m->there, name, &who) && !stk_str_equal(archive, name);
    if (*taken && who != FROM_ARCHIVE) {
        status = has_contents(m, name, who == IS_FOLDER, taken, err);
    }
    if (status == STK_OK && *taken) {
        char why[300];
        snprintf(why, sizeof why,
                 who == FROM_ARCHIVE ? "%.200s comes from another archive"
                 : who == IS_FOLDER  ? "the folder %.200s has its files"
                                     : "the file %.200s is there",
                 name);
        tell_unused(m, archive, why);
    }
    return status;
}

stk_status stk_mounts_wants(stk_mounts *mounts, const char *name, const char *stem, bool *wants,
                            stk_error *err) {
    bool taken = false;
    stk_status status = is_taken(mounts, name, stem, &taken, err);
    *wants = !taken;
    return status;
}

/* ---- the names at the top of an archive ---- */

/* What stands at the top of an archive, or in the one folder at its top. */
typedef struct tops {
    stk_texts names;
    stk_map seen; /* the value is true for folders */
    size_t folders;
    size_t tables; /* files whose names are those of tables */
    bool parts;    /* one is a folder train, test or val, and another thing is beside it */
} tops;

static void free_tops(tops *t) {
    stk_map_free(&t->seen);
    stk_texts_free(&t->names);
}

static stk_status add_top(tops *t, const char *path, stk_error *err) {
    size_t length = strcspn(path, "/");
    char *name = stk_mem_strndup(path, length);
    bool added = false;
    if (name != NULL && stk_map_find(&t->seen, name, NULL)) {
        stk_mem_free(name);
        return STK_OK;
    }
    if (!stk_texts_take(&t->names, name) ||
        !stk_map_add(&t->seen, t->names.items[t->names.count - 1], path[length] == '/', &added)) {
        return STK_FAIL_MEMORY(err, "the list of archives");
    }
    return STK_OK;
}

/* Finds the names that come after `cut` bytes of each path. */
static stk_status find_tops(tops *t, const stk_shard_index *index, size_t cut, stk_error *err) {
    stk_status status = STK_OK;
    for (size_t i = 0; status == STK_OK && i < index->member_count; i++) {
        const char *path = index->members[i].path + cut;
        size_t last = t->names.count;
        size_t length = last > 0 ? strlen(t->names.items[last - 1]) : 0;
        /* Members of a folder mostly follow each other. */
        if (last == 0 || strncmp(path, t->names.items[last - 1], length) != 0 ||
            path[length] != '/') {
            status = add_top(t, path, err);
        }
    }
    for (size_t i = 0; i < t->names.count; i++) {
        const char *name = t->names.items[i];
        size_t is_dir = 0;
        (void)stk_map_find(&t->seen, name, &is_dir);
        t->folders += is_dir;
        t->tables += is_dir == 0 && stk_archive_is_table(name);
        t->parts = t->parts || (is_dir != 0 && t->names.count > 1 && stk_archive_is_part(name));
    }
    return status;
}

/* Whether everything at the top of the archive, or in its one folder, is at the top already. */
static bool is_all_there(const stk_mounts *m, const tops *t) {
    for (size_t i = 0; i < t->names.count; i++) {
        if (!stk_map_find(&m->there, t->names.items[i], NULL)) {
            return false;
        }
    }
    return t->names.count > 0;
}

/* ---- the mount of one archive ---- */

/* How the paths of an archive's members are shown. */
typedef struct mount {
    size_t cut;         /* bytes at the start of every path that are left out */
    const char *prefix; /* the folder that what is left is shown in; NULL: at the top */
} mount;

/* Takes out what file managers of Macs add. */
static void drop_junk(stk_shard_index *index) {
    static const char junk[] = "__MACOSX/";
    size_t kept = 0;
    for (size_t i = 0; i < index->member_count; i++) {
        if (strncmp(index->members[i].path, junk, sizeof junk - 1) != 0) {
            index->members[kept++] = index->members[i];
        }
    }
    index->member_count = kept;
}

/*
 * Chooses the folder of the stem, unless the archive's own folders and files belong to the top: one
 * folder of that name, tables, the parts of a data set, or all of a data set.
 */
static mount choose(const stk_mounts *m, const stk_archive *archive, const tops *t) {
    size_t is_dir = 0;
    if (archive->found.member_count == 1) {
        const char *path = archive->found.members[0].path;
        const char *name = stk_path_base(path);
        if (stk_str_equal(name, archive->stem)) { /* in whatever folders */
            return (mount){.cut = (size_t)(name - path)};
        }
    }
    bool has_stem = stk_map_find(&t->seen, archive->stem, &is_dir);
    bool single = t->names.count == 1;
    bool few = t->folders + t->tables == t->names.count && t->tables <= FEW_TABLES;
    bool named = has_stem && (single || (few && t->folders == is_dir));
    bool part = stk_archive_is_part(archive->stem);
    if (single && t->folders == 1 && m->alone && !part &&
        !stk_archive_is_part(t->names.items[0])) { /* around the whole data set */
        return (mount){.cut = strlen(t->names.items[0]) + 1};
    }
    bool whole = m->alone && (!single || !part);
    bool at_top = named || (few && t->folders == 0) || (t->parts && !part) || whole;
    return (mount){.prefix = at_top ? NULL : archive->stem};
}

/* Whether any name that the mount would bring is taken. */
static stk_status check_names(const stk_mounts *m, const stk_archive *archive, const mount *chosen,
                              const tops *t, bool *taken, stk_error *err) {
    tops inner = {0};
    stk_status status = STK_OK;
    *taken = false;
    if (chosen->prefix != NULL) {
        return is_taken(m, archive->name, chosen->prefix, taken, err);
    }
    if (chosen->cut > 0) {
        status = find_tops(&inner, &archive->found, chosen->cut, err);
        t = &inner;
    }
    for (size_t i = 0; status == STK_OK && !*taken && i < t->names.count; i++) {
        status = is_taken(m, archive->name, t->names.items[i], taken, err);
    }
    free_tops(&inner);
    return status;
}

/* Notes a name that an archive has brought, so that no other archive brings it. */
static stk_status keep_name(stk_mounts *m, const char *shown, stk_error *err) {
    size_t length = strcspn(shown, "/");
    const char *copy = NULL;
    bool added = false;
    char name[256];
    if (length >= sizeof name) {
        return STK_OK; /* no file system has such names, so no other archive will have it, too */
    }
    memcpy(name, shown, length);
    name[length] = '\0';
    if (stk_map_find(&m->there, name, NULL)) {
        return STK_OK;
    }
    copy = stk_text_blocks_keep(&m->texts, name, length);
    return copy != NULL && stk_map_add(&m->there, copy, FROM_ARCHIVE, &added)
               ? STK_OK
               : STK_FAIL_MEMORY(err, "the list of archives");
}

/* Adds all members to the tree and moves them into the one index. */
static stk_status show(stk_mounts *m, stk_archive *archive, const mount *chosen, stk_error *err) {
    size_t first = m->index.member_count;
    stk_str shown = {0};
    stk_status status = STK_OK;
    for (size_t i = 0; status == STK_OK && i < archive->found.member_count; i++) {
        const stk_index_member *member = &archive->found.members[i];
        stk_str_clear(&shown);
        stk_str_append(&shown, chosen->prefix != NULL ? chosen->prefix : "");
        stk_str_append(&shown, chosen->prefix != NULL ? "/" : "");
        stk_str_append(&shown, member->path + chosen->cut);
        status = stk_str_ok(&shown) ? keep_name(m, stk_str_text(&shown), err)
                                    : STK_FAIL_MEMORY(err, archive->name);
        STK_THEN(status, stk_tree_add(&m->tree, stk_str_text(&shown), shown.length, member->size,
                                      archive->version, first + i, err));
    }
    stk_str_free(&shown);
    STK_THEN(status, stk_shard_index_merge(&m->index, &archive->found, err));
    archive->used = status == STK_OK;
    return status;
}

/* Whether all is there already, unpacked under other names than the archive's. */
static stk_status is_unpacked(const stk_mounts *m, const stk_archive *archive, const tops *t,
                              bool *unpacked, stk_error *err) {
    tops inner = {0};
    stk_status status = STK_OK;
    size_t is_dir = 0;
    *unpacked = is_all_there(m, t);
    if (!*unpacked && t->names.count == 1 && stk_map_find(&t->seen, t->names.items[0], &is_dir) &&
        is_dir != 0) {
        status = find_tops(&inner, &archive->found, strlen(t->names.items[0]) + 1, err);
        *unpacked = status == STK_OK && is_all_there(m, &inner);
    }
    free_tops(&inner);
    return status;
}

stk_status stk_mounts_add(stk_mounts *mounts, stk_archive *archive, stk_error *err) {
    tops t = {0};
    bool unused = false;
    drop_junk(&archive->found);
    stk_status status = find_tops(&t, &archive->found, 0, err);
    if (status == STK_OK && t.names.count > 0) {
        status = is_unpacked(mounts, archive, &t, &unused, err);
        if (status == STK_OK && unused) {
            tell_unused(mounts, archive->name, "all that it holds is there already");
        }
        mount chosen = choose(mounts, archive, &t);
        if (status == STK_OK && !unused) {
            status = check_names(mounts, archive, &chosen, &t, &unused, err);
        }
        if (status == STK_OK && !unused) {
            status = show(mounts, archive, &chosen, err);
        }
    }
    free_tops(&t);
    return status;
}
