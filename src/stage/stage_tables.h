/* stage_tables.h - the text files beside the shards. */
#ifndef STK_STAGE_STAGE_TABLES_H
#define STK_STAGE_STAGE_TABLES_H

#include "base/str.h"
#include "stage/shard_record.h"
#include "stage/stage_dest.h"

/*
 * Writes the description of a staging: source and flags for staging.json; with the figures of
 * `staged`, for stage.json. It does not depend on when or in how many runs it was made.
 */
void stk_stage_about(stk_str *out, const stk_staging_list *list, const stk_stage_request *request,
                     const stk_staged *staged);

/* Reads the figures of an existing stage.json. */
STK_CHECKED stk_status stk_stage_read_about(const stk_stage_dest *dest, stk_staged *staged,
                                            stk_error *err);

/*
 * Writes all tables but the index, stage.json last. `members` has the name of each picture's member
 * in its shard, NULL for a bad picture.
 */
STK_CHECKED stk_status stk_stage_write_tables(const stk_stage_dest *dest,
                                              const stk_staging_list *list,
                                              const stk_stage_request *request,
                                              const char *const *members,
                                              const stk_stage_bad_list *bad,
                                              const stk_staged *staged, stk_error *err);

#endif
