/*
 * shard_record.h - what is known of a finished shard, so that a staging that was interrupted goes
 * on where it ended.
 *
 * The record of a shard is a hidden file beside it, written after the shard: the checksum of the
 * staging list, the shard's part of the index, and the pictures that are left out. A shard without
 * a record that fits is made again. Threads: one at a time for each folder.
 */
#ifndef STK_STAGE_SHARD_RECORD_H
#define STK_STAGE_SHARD_RECORD_H

#include "stage/staging_list.h"
#include "storage/tar/shard_index.h"

/* A picture that is not in a shard, and why. */
typedef struct stk_stage_bad {
    size_t picture; /* number in the list */
    char *reason;   /* owned */
} stk_stage_bad;

typedef struct stk_stage_bad_list {
    stk_stage_bad *items;
    size_t count;
    size_t capacity;
} stk_stage_bad_list;

STK_CHECKED stk_status stk_stage_bad_add(stk_stage_bad_list *list, size_t picture,
                                         const char *reason, stk_error *err);
void stk_stage_bad_cut(stk_stage_bad_list *list, size_t count); /* keeps the first ones */
void stk_stage_bad_free(stk_stage_bad_list *list);

/* Says that a shard, which is in its place, is finished. The bad ones are those of this shard. */
STK_CHECKED stk_status stk_stage_record_save(const char *folder, const stk_staging_list *list,
                                             const stk_stage_shard *shard, stk_shard_index *index,
                                             const stk_stage_bad *bad, size_t bad_count,
                                             stk_error *err);

/*
 * Reads a record again: the shard's part of the index, and its bad pictures, which are added to the
 * list. *finished is false, and the index empty, when the shard is not there as the record says.
 */
STK_CHECKED stk_status stk_stage_record_load(const char *folder, const stk_staging_list *list,
                                             const stk_stage_shard *shard, stk_shard_index *index,
                                             stk_stage_bad_list *bad, bool *finished,
                                             stk_error *err);

/* A shard is to be made again: its record goes first. */
STK_CHECKED stk_status stk_stage_record_drop(const char *folder, const stk_stage_shard *shard,
                                             stk_error *err);

#endif
