/* shard_names.c - finds the shards of a location by the names of its objects. */
#include "storage/shards/shard_names.h"

#include <ctype.h>
#include <string.h>
#include <strings.h>

#include "base/error.h"
#include "base/mem.h"
#include "base/str.h"
#include "storage/tar/shard_index.h"

/* Names of splits, and the folder that each is shown as. */
static const struct {
    const char *name;
    const char *split;
} splits[] = {
    {"val", "val"}, {"valid", "val"}, {"validation", "val"}, {"train", "train"}, {"test", "test"}};

#define SPLITS (sizeof splits / sizeof *splits)

static const char *split_of_word(const char *word, size_t length) {
    for (size_t i = 0; i < SPLITS; i++) {
        if (strlen(splits[i].name) == length && strncasecmp(word, splits[i].name, length) == 0) {
            return splits[i].split;
        }
    }
    return NULL;
}

/* Whether a name is a picture's: a location with loose pictures does not consist of shards. */
static bool is_picture(const char *name) {
    return stk_picture_extension(name) != NULL;
}

bool stk_shards_is_tar_name(const char *name) {
    static const char *const tails[] = {".tar",     ".tar.gz", ".tgz",    ".tar.zst", ".tzst",
                                        ".tar.bz2", ".tbz2",   ".tar.xz", ".txz"};
    for (size_t i = 0; i < sizeof tails / sizeof *tails; i++) {
        if (stk_str_ends_with_nocase(name, tails[i])) {
            return true;
        }
    }
    return false;
}

bool stk_shard_is_split(const char *name, size_t length) {
    return split_of_word(name, length) != NULL;
}

const char *stk_shard_split(const char *object) {
    const char *base = stk_path_base(object);
    const char *found = NULL;
    if (base > object) {
        found = split_of_word(object, strcspn(object, "/"));
    }
    if (found != NULL) {
        return found;
    }
    /* The last word that is a split counts: words before it are the name of the data set. */
    for (const char *word = base; *word != '\0';) {
        size_t length = 0;
        while (isalnum((unsigned char)word[length])) {
            length++;
        }
        const char *split = length > 0 ? split_of_word(word, length) : NULL;
        found = split != NULL ? split : found;
        word += length > 0 ? length : 1;
    }
    return found;
}

/* Whether a folder named like a split holds tars, and neither pictures nor folders. */
static stk_status holds_tars(stk_store *store, const char *folder, bool *holds, stk_error *err) {
    stk_dir_list list;
    stk_status status = stk_store_list(store, folder, &list, err);
    bool others = false;
    *holds = false;
    for (size_t i = 0; status == STK_OK && i < list.count; i++) {
        const stk_dir_entry *entry = &list.entries[i];
        *holds = *holds || (!entry->is_dir && stk_shards_is_tar_name(entry->name));
        others = others || entry->is_dir || is_picture(entry->name);
    }
    *holds = *holds && !others;
    stk_dir_list_free(&list);
    return status;
}

/* Whether a folder that is no split shows that the location does not consist of shards. */
static stk_status is_in_the_way(stk_store *store, const char *name, stk_skipped_folders *skipped,
                                bool *is, stk_error *err) {
    bool junk = stk_folder_is_junk(name);
    bool by_stoker = stk_str_equal(name, STK_RUNS_FOLDER);
    stk_status status =
        by_stoker || junk ? STK_OK : stk_data_is_by_stoker(store, name, &by_stoker, err);
    *is = !by_stoker && !junk;
    return status == STK_OK && by_stoker ? stk_skipped_folders_add(skipped, name, err) : status;
}

/* Looks at the top of the location; *other: it has more than shards, splits and tables. */
static stk_status look_at_top(stk_store *store, const stk_dir_list *top,
                              stk_skipped_folders *skipped, bool *shards, bool *tables, bool *other,
                              stk_error *err) {
    stk_status status = STK_OK;
    *shards = *tables = *other = false;
    for (size_t i = 0; status == STK_OK && !*other && i < top->count; i++) {
        const stk_dir_entry *entry = &top->entries[i];
        if (!entry->is_dir) {
            *other = is_picture(entry->name);
            *shards = *shards || stk_shards_is_tar_name(entry->name) ||
                      stk_str_equal(entry->name, STK_STAGING_NAME);
            *tables = *tables || stk_str_ends_with_nocase(entry->name, ".csv");
        } else if (!stk_shard_is_split(entry->name, strlen(entry->name))) {
            status = is_in_the_way(store, entry->name, skipped, other, err);
        }
    }
    return status;
}

stk_status stk_shards_wanted(stk_store *store, const stk_dir_list *top,
                             stk_skipped_folders *skipped, bool *wanted, stk_error *err) {
    bool shards;
    bool tables;
    bool other;
    *wanted = false;
    stk_status status = look_at_top(store, top, skipped, &shards, &tables, &other, err);
    if (status != STK_OK || other) {
        return status;
    }
    *wanted = shards;
    /* Folders beside a table hold the files that it names, perhaps a million: do not list them. */
    if (!shards && tables) {
        return STK_OK;
    }
    /* Small folders first: a single one without tars decides. */
    for (size_t s = 0; s < SPLITS; s++) {
        for (size_t i = 0; i < top->count; i++) {
            const stk_dir_entry *entry = &top->entries[i];
            if (entry->is_dir && stk_str_equal_nocase(entry->name, splits[s].name)) {
                status = holds_tars(store, entry->name, wanted, err);
                if (status != STK_OK || !*wanted) {
                    return status;
                }
            }
        }
    }
    return STK_OK;
}

/* Adds "folder/name" to the list. */
static stk_status keep(stk_texts *list, const char *folder, const char *name, stk_error *err) {
    char *path = folder[0] != '\0' ? stk_path_join(folder, name) : stk_mem_strdup(name);
    return stk_texts_take(list, path) ? STK_OK : STK_FAIL_MEMORY(err, "the list of shards");
}

void stk_shard_files_free(stk_shard_files *files) {
    stk_texts_free(&files->tars);
    stk_texts_free(&files->others);
}

static stk_status take_folder(stk_store *store, const char *folder, stk_shard_files *files,
                              stk_error *err) {
    stk_dir_list list;
    stk_status status = stk_store_list(store, folder, &list, err);
    bool at_top = folder[0] == '\0';
    for (size_t i = 0; status == STK_OK && i < list.count; i++) {
        const stk_dir_entry *entry = &list.entries[i];
        if (entry->is_dir) {
            if (at_top && stk_shard_is_split(entry->name, strlen(entry->name))) {
                status = take_folder(store, entry->name, files, err);
            }
        } else if (stk_shards_is_tar_name(entry->name)) {
            status = keep(&files->tars, folder, entry->name, err);
        } else if (at_top && stk_str_equal(entry->name, STK_SHARD_INDEX_NAME)) {
            files->has_index = true;
        } else if (at_top && stk_str_equal(entry->name, STK_STAGING_NAME)) {
            files->is_staging = true;
        } else {
            status = keep(&files->others, folder, entry->name, err);
        }
    }
    stk_dir_list_free(&list);
    return status;
}

/* Looks for one tar, which must exist, and for the index of `stoker stage`. */
static stk_status take_one(stk_store *store, const char *name, stk_shard_files *files,
                           stk_error *err) {
    stk_dir_list list;
    bool found = false;
    stk_status status = stk_store_list(store, "", &list, err);
    for (size_t i = 0; status == STK_OK && i < list.count; i++) {
        const stk_dir_entry *entry = &list.entries[i];
        found = found || (!entry->is_dir && stk_str_equal(entry->name, name));
        files->has_index = files->has_index ||
                           (!entry->is_dir && stk_str_equal(entry->name, STK_SHARD_INDEX_NAME));
    }
    stk_dir_list_free(&list);
    if (status == STK_OK && !found) {
        status = STK_FAIL(err, STK_ERR_DATA, "no such file: %s", stk_store_root(store));
    }
    return status == STK_OK ? keep(&files->tars, "", name, err) : status;
}

stk_status stk_shard_files_list(stk_store *store, const char *only, stk_shard_files *files,
                                stk_error *err) {
    return only != NULL ? take_one(store, only, files, err) : take_folder(store, "", files, err);
}
