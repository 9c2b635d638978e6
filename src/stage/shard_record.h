/*
 * shard_record.h - records of finished shards, from which an interrupted staging continues.
 *
 * The record of a shard is a hidden file beside it, written after the shard: the checksum of the
 * staging list, the shard's part of the index, and the bad pictures. A shard without a matching
 * record is made again. Threads: one at a time for each folder.
 */
#ifndef STK_STAGE_SHARD_RECORD_H
#define STK_STAGE_SHARD_RECORD_H

#include "stage/staging_list.h"
#include "storage/tar/shard_index.h"

/* A picture that was left out of a shard, and why. */
typedef struct stk_stage_bad {
    size_t picture; /* index in the list's pictures */
    char *reason;   /* owned */
} stk_stage_bad;

typedef struct stk_stage_bad_list {
    stk_stage_bad *items;
    size_t count;
    size_t capacity;
} stk_stage_bad_list;

STK_CHECKED stk_status stk_stage_bad_add(stk_stage_bad_list *list, size_t picture,
                                         const char *reason, stk_error *err);
void stk_stage_bad_cut(stk_stage_bad_list *list, size_t count); /* keeps the first `count` */
void stk_stage_bad_free(stk_stage_bad_list *list);

/* Writes the record of a shard whose tar is complete. `bad` are the bad pictures of this shard. */
STK_CHECKED stk_status stk_stage_record_save(const char *folder, const stk_staging_list *list,
                                             const stk_stage_shard *shard, stk_shard_index *index,
                                             const stk_stage_bad *bad, size_t bad_count,
                                             stk_error *err);

/*
 * Reads a record: the shard's part of the index, and its bad pictures, which are added to the list.
 * *finished is false, and the index empty, if the shard does not match its record.
 */
STK_CHECKED stk_status stk_stage_record_load(const char *folder, const stk_staging_list *list,
                                             const stk_stage_shard *shard, stk_shard_index *index,
                                             stk_stage_bad_list *bad, bool *finished,
                                             stk_error *err);

/* Removes the record of a shard that will be made again. */
STK_CHECKED stk_status stk_stage_record_drop(const char *folder, const stk_stage_shard *shard,
                                             stk_error *err);

#endif
