/*
 * find_members.h - inside storage: finds out where all members of a location's shards are.
 *
 * The sources are, in this order: the index that `stoker stage` wrote, what an earlier run has
 * remembered, and the headers of the tars. Threads: it starts some of its own and waits for them.
 */
#ifndef STK_STORAGE_SHARDS_FIND_MEMBERS_H
#define STK_STORAGE_SHARDS_FIND_MEMBERS_H

#include "storage/tar/shard_index.h"
#include "storage/shards/shard_names.h"

typedef struct stk_shard_members {
    stk_shard_index index;
    size_t
        staged; /* members of the staged index; they come first and are shown by their own paths */
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
