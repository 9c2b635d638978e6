/*
 * find_members.h - inside storage: finds out where all members of a files's shards are.
 */
#ifndef STK_STORAGE_SHARDS_FIND_MEMBERS_H
#define STK_STORAGE_SHARDS_FIND_MEMBERS_H

#include "storage/tar/shard_index.h"
#include "storage/shards/shard_names.h"

typedef struct stk_shard_members {
    stk_shard_index index;
    size_t staged; /* so many members, the first ones, are shown by the path that they have */
    char *
        *versions; /* owned: for each shard of the index what changes when it does; NULL: unused */
} stk_shard_members; /* starts zeroed */

void stk_shard_members_free(stk_shard_members *found);

/* As stk_shards_open(); `files` was listed before. */
STK_CHECKED stk_status stk_shard_members_find(stk_store *store, const stk_shard_files *files,
                                              const char *only, const char *kept, bool refresh,
                                              const stk_events *events, stk_shard_members *found,
                                              stk_error *err);

#endif
