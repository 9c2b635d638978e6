/*
 * shard_names.h - inside storage: which objects of a location are tar shards, by their names, and
 * which split (train, val, test) each belongs to. Threads: any, it keeps no state.
 */
#ifndef STK_STORAGE_SHARDS_SHARD_NAMES_H
#define STK_STORAGE_SHARDS_SHARD_NAMES_H

#include "storage/data_folders.h"
#include "storage/storage.h"

/* Paths below the location; all owned. */
typedef struct stk_path_list {
    char **paths;
    size_t count;
    size_t capacity;
} stk_path_list;

typedef struct stk_shard_files {
    stk_path_list tars;   /* sorted by folder and name */
    stk_path_list others; /* tables and texts beside them */
    bool has_index;       /* of `stoker stage` */
    bool is_staging;      /* `stoker stage` has begun to write there */
} stk_shard_files;        /* starts zeroed */

void stk_shard_files_free(stk_shard_files *files);

/*
 * The tars at the top of the location and in folders that are called like a split. With `only` this
 * one, which must be there, and nothing else.
 */
STK_CHECKED stk_status stk_shard_files_list(stk_store *store, const char *only,
                                            stk_shard_files *files, stk_error *err);

/* Whether a name, of so many bytes, is one of a part of a data set: train, val, test and the like.
 */
bool stk_shard_is_split(const char *name, size_t length);

/*
 * "train", "val" or "test", as the folder or else a word in the name of a shard says
 * (val/000.tar, imagenet-validation-000.tar); NULL: neither says any.
 */
const char *stk_shard_split(const char *object);

/* Whether a file's name is a tar's; compressed ones count, though opening them only says so. */
bool stk_shards_is_tar_name(const char *name);

/*
 * Whether a location that has these entries at its top is one of shards: tars at the top or in
 * folders called train, val or test, and neither pictures nor other folders beside them. Folders
 * that are no data do not count; what Stoker wrote is added to `skipped`.
 */
STK_CHECKED stk_status stk_shards_wanted(stk_store *store, const stk_dir_list *top,
                                         stk_skipped_folders *skipped, bool *wanted,
                                         stk_error *err);

#endif
