/*
 * find_members.h - inside storage: finds all members of a location's shards.
 *
 * The sources are, in this order: the index that `stoker stage` wrote, the members that an earlier
 * run stored, and the headers of the tars. Threads: it starts some of its own and waits for them.
 */
#ifndef STK_STORAGE_SHARDS_FIND_MEMBERS_H
#define STK_STORAGE_SHARDS_FIND_MEMBERS_H

#include "storage/tar/shard_index.h"
#include "storage/shards/shard_names.h"

typedef struct stk_shard_members {
    stk_shard_index index;
    size_t staged; /* number of members from the staged index; they come first, and their paths are
                      shown unchanged */
    char **versions; /* owned: for each shard a text that changes whenever the shard does; NULL:
                        unused */
} stk_shard_members; /* starts zeroed */

void stk_shard_members_free(stk_shard_members *found);

/* See stk_shards_open(); `files` was listed before. */
STK_CHECKED stk_status stk_shard_members_find(stk_store *store, const stk_shard_files *files,
                                              const char *only, const char *kept, bool refresh,
                                              const stk_events *events, stk_shard_members *found,
                                              stk_error *err);

#endif
