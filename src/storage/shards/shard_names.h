/*
 * shard_names.h - inside storage: which objects of a location are tar shards, by their names, and
 * which split (train, val, test) each belongs to. Threads: any, it keeps no state.
 */
#ifndef STK_STORAGE_SHARDS_SHARD_NAMES_H
#define STK_STORAGE_SHARDS_SHARD_NAMES_H

#include "storage/data_folders.h"
#include "storage/storage.h"

/* Paths below the location. */
typedef struct stk_shard_files {
    stk_texts tars;   /* sorted by folder and name */
    stk_texts others; /* tables and texts beside the tars */
    bool has_index;   /* there is an index of `stoker stage` */
    bool is_staging;  /* a `stoker stage` into the location has not finished */
} stk_shard_files;    /* starts zeroed */

void stk_shard_files_free(stk_shard_files *files);

/*
 * Lists the tars at the top of the location and in folders named like a split. With `only`, lists
 * this one tar, which must exist.
 */
STK_CHECKED stk_status stk_shard_files_list(stk_store *store, const char *only,
                                            stk_shard_files *files, stk_error *err);

/* Whether a name of `length` bytes is that of a split: train, val, test and the like. */
bool stk_shard_is_split(const char *name, size_t length);

/*
 * The split of a shard, "train", "val" or "test": by its folder, or else by a word of its name
 * (val/000.tar, imagenet-validation-000.tar); NULL: neither says it.
 */
const char *stk_shard_split(const char *object);

/* Whether a file name is a tar's; also a compressed tar's, which opening then refuses with a
 * reason. */
bool stk_shards_is_tar_name(const char *name);

/*
 * Whether a location with these entries at its top consists of shards: tars at the top or in
 * folders named train, val or test, and neither pictures nor other folders beside them. Folders
 * that hold no data do not count; those that Stoker wrote are added to `skipped`.
 */
STK_CHECKED stk_status stk_shards_wanted(stk_store *store, const stk_dir_list *top,
                                         stk_skipped_folders *skipped, bool *wanted,
                                         stk_error *err);

#endif
