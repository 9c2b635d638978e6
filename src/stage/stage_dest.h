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

#endif
