/*
 * shards.h - opens the tar shards of a location. tar/members.h has the look-ups.
 *
 * A location with tar files is shown as the tree of their members. A member is read as a range of
 * its tar, in any order. The positions come from the index that `stoker stage` wrote, or else from
 * the tars' headers, which are read once and then stored for later runs.
 *
 * Members are shown under their paths in the tar, with two exceptions. A folder that all members
 * share is left out (people tar a folder). If the shards' names tell more than one split
 * (train-000.tar and val-000.tar), the members of each split are shown in a folder train, val or
 * test. An index of `stoker stage` already has the paths to show.
 */
#ifndef STK_STORAGE_SHARDS_SHARDS_H
#define STK_STORAGE_SHARDS_SHARDS_H

#include "storage/storage.h"
#include "storage/tar/members.h"

/*
 * Finds the members of all tars of a location (`only` NULL) or of one of its objects. `kept` is a
 * folder for data stored between runs, or NULL; `refresh` reads the tars again.
 */
STK_CHECKED stk_status stk_shards_open(stk_shards **shards, stk_store *store, const char *only,
                                       const char *kept, bool refresh, const stk_events *events,
                                       stk_error *err);

#endif
