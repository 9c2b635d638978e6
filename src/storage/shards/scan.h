/*
 * scan.h - inside storage: finds the members of one tar by reading its headers.
 *
 * Near tars are read by hops from header to header, far ones from front to back in large parts,
 * several at a time, since there a request takes longer than the bytes between two headers.
 */
#ifndef STK_STORAGE_SHARDS_SCAN_H
#define STK_STORAGE_SHARDS_SCAN_H

#include <stdatomic.h>

#include "storage/tar/shard_index.h"
#include "storage/storage.h"
#include "storage/tar/tar_read.h"

/* What is read of a far tar at once. */
#define STK_SCAN_PART_BYTES ((size_t)4 * 1024 * 1024)

/*
 * Adds the tar and its members, with paths as the tar has them, to the index; hidden members (a
 * part of the path begins with a dot) are left out. `at_a_time` parts of a far tar are read
 * together. Texts are kept as long as there are bytes left for them, in all tars together.
 */
STK_CHECKED stk_status stk_shard_scan(stk_store *store, const char *object, int at_a_time,
                                      atomic_size_t *text_left, stk_shard_index *index,
                                      stk_tar_counts *counts, stk_error *err);

#endif
