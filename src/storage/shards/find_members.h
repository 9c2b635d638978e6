/*
 * find_members.h - inside storage: finds all members of a location's shards.
 *
 * The sources are, in this order: the index that `stoker stage` wrote, the members that an earlier
 * run stored, and the headers of the tars. Threads: it starts some of its own and waits for them.
 */
#ifndef STK_STORAGE_SHARDS_FIND_MEMBERS_H
#define STK_STORAGE_SHARDS_FIND_MEMBERS_H

#include <stdatomic.h>

#include "storage/shards/shard_names.h"
#include "storage/tar/shard_index.h"
#include "storage/tar/tar_read.h"

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

/* ---- scan.c: the members of one tar, from its headers ---- */

/* Size of one read of a far tar. */
#define STK_SCAN_PART_BYTES ((size_t)4 * 1024 * 1024)

/*
 * Adds the tar and its members, with their paths in the tar, to the index. Leaves out hidden
 * members, whose path has a part that begins with a dot. Reads `at_a_time` parts of a far tar in
 * parallel. Keeps texts while *text_left, shared by all tars, is not used up.
 *
 * Near tars are read by hops from header to header. Far tars are read from front to back in large
 * parts, several at a time, because a request takes longer than the bytes between two headers.
 */
STK_CHECKED stk_status stk_shard_scan(stk_store *store, const char *object, int at_a_time,
                                      atomic_size_t *text_left, stk_shard_index *index,
                                      stk_tar_counts *counts, stk_error *err);

#endif
