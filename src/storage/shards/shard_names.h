/*
 * shard_names.h - inside storage: which objects of a place are shards, by their names.
 */
#ifndef STK_STORAGE_SHARDS_SHARD_NAMES_H
#define STK_STORAGE_SHARDS_SHARD_NAMES_H

#include "storage/storage.h"

/* Paths below the place; all owned. */
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

void stk_shard_files_free(stk_shard_files *place);

/*
 * The tars at the top of the place and in folders that are called like a split. With `only` this
 * one, which must be there, and nothing else.
 */
STK_CHECKED stk_status stk_shard_files_list(stk_store *store, const char *only,
                                            stk_shard_files *place, stk_error *err);

/* Whether a name, of so many bytes, is one of a part of a data set: train, val, test and the like.
 */
bool stk_shard_is_split(const char *name, size_t length);

/*
 * "train", "val" or "test", as the folder or else a word in the name of a shard says
 * (val/000.tar, imagenet-validation-000.tar); NULL: neither says any.
 */
const char *stk_shard_split(const char *object);

#endif
