/*
 * stage_dest.h - the folder that a staging fills: whose it is, which shards are finished, and what
 * must be removed.
 *
 * staging.json exists from the first moment to the last and says which list is being carried out. A
 * shard is finished if its record (shard_record.h) says so. The index of the shards is written
 * last: once it exists, the folder is complete.
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
    STK_DEST_FINISHED /* the staging is complete */
} stk_dest_state;

/* Makes the folder and locks it. Close it also after a failure. */
STK_CHECKED stk_status stk_stage_dest_open(stk_stage_dest *dest, const char *path, stk_error *err);
void stk_stage_dest_close(stk_stage_dest *dest);

/*
 * Finds out what the folder holds. A folder with another staging is refused unless `overwrite` is
 * set; any other folder must be empty. Then writes the text staging_json to staging.json, and
 * removes files of another list or of an interrupted write.
 */
STK_CHECKED stk_status stk_stage_dest_begin(stk_stage_dest *dest, const stk_staging_list *list,
                                            const char *staging_json, bool overwrite,
                                            stk_dest_state *state, stk_error *err);

/* Removes the records and staging.json of a complete staging. */
STK_CHECKED stk_status stk_stage_dest_end(stk_stage_dest *dest, stk_error *err);

/* Path of a file in the folder, freed with stk_mem_free(); NULL: no memory. */
char *stk_stage_dest_file(const stk_stage_dest *dest, const char *name);

#endif
