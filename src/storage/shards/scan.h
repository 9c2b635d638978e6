/*
 * scan.h - inside storage: finds the members of one tar by reading its headers.
 *
 * Near tars are read by hops from header to header. Far tars are read from front to back in large
 * parts, several at a time, because a request takes longer than the bytes between two headers.
 */
#ifndef STK_STORAGE_SHARDS_SCAN_H
#define STK_STORAGE_SHARDS_SCAN_H

#include <stdatomic.h>

#include "storage/tar/shard_index.h"
#include "storage/storage.h"
#include "storage/tar/tar_read.h"

/* Size of one read of a far tar. */
#define STK_SCAN_PART_BYTES ((size_t)4 * 1024 * 1024)

/*
 * Adds the tar and its members, with their paths in the tar, to the index. Leaves out hidden
 * members, whose path has a part that begins with a dot. Reads `at_a_time` parts of a far tar in
 * parallel. Keeps texts while *text_left, shared by all tars, is not used up.
 */
STK_CHECKED stk_status stk_shard_scan(stk_store *store, const char *object, int at_a_time,
                                      atomic_size_t *text_left, stk_shard_index *index,
                                      stk_tar_counts *counts, stk_error *err);

#endif
