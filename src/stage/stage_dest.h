/*
 * stage_dest.h - the folder that a staging fills: whose it is, what is finished in it, and what has
 * to go.
 *
 * staging.json stands there from the first to the last moment and says which list is being
 * carried out. A shard is finished when its record (a hidden file beside it, written after the
 * shard) says so: of which list, how long, with which members and which bad pictures. The index of
 * the shards is written last; what stands beside it then is whole.
 */
#ifndef STK_STAGE_STAGE_DEST_H
#define STK_STAGE_STAGE_DEST_H

#include "stage/staging_list.h"
#include "storage/tar/shard_index.h"

typedef struct stk_stage_dest {
    char *path;  /* owned */
    int lock_fd; /* -1: not locked */
} stk_stage_dest;

typedef enum stk_dest_state {
    STK_DEST_OPEN,    /* to be filled: new, or begun with this list */
    STK_DEST_FINISHED /* everything is there */
} stk_dest_state;

/* Makes the folder and locks it. Closed also after a failure. */
STK_CHECKED stk_status stk_stage_dest_open(stk_stage_dest *dest, const char *path, stk_error *err);
void stk_stage_dest_close(stk_stage_dest *dest);

/*
 * Finds out what the folder holds. One that is another staging's is refused unless `overwrite` is
 * set; one that is nobody's must be empty. Then staging.json, whose text is given, is written and
 * what belongs to another list or was cut off is removed.
 */
STK_CHECKED stk_status stk_stage_dest_begin(stk_stage_dest *dest, const stk_staging_list *list,
                                            const char *staging_json, bool overwrite,
                                            stk_dest_state *state, stk_error *err);

/* Everything is written: removes the records and staging.json. */
STK_CHECKED stk_status stk_stage_dest_end(stk_stage_dest *dest, stk_error *err);

/* The path of a file in the folder; NULL without memory; stk_mem_free. */
char *stk_stage_dest_file(const stk_stage_dest *dest, const char *name);

/* "train-000000.tar" into buf; returns buf. */
#define STK_STAGE_NAME_SIZE 40
const char *stk_stage_shard_name(const stk_stage_shard *shard, char buf[STK_STAGE_NAME_SIZE]);

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
STK_CHECKED stk_status stk_stage_record_save(const stk_stage_dest *dest,
                                             const stk_staging_list *list,
                                             const stk_stage_shard *shard, stk_shard_index *index,
                                             const stk_stage_bad *bad, size_t bad_count,
                                             stk_error *err);

/*
 * Reads a record again: the shard's part of the index, and its bad pictures, which are added to the
 * list. *finished is false, and the index empty, when the shard is not there as the record says.
 */
STK_CHECKED stk_status stk_stage_record_load(const stk_stage_dest *dest,
                                             const stk_staging_list *list,
                                             const stk_stage_shard *shard, stk_shard_index *index,
                                             stk_stage_bad_list *bad, bool *finished,
                                             stk_error *err);

/* A shard is to be made again: its record goes first. */
STK_CHECKED stk_status stk_stage_record_drop(const stk_stage_dest *dest,
                                             const stk_stage_shard *shard, stk_error *err);

#endif
