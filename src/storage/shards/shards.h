/*
 * shards.h - tar shards: which member of which tar an object is.
 *
 * A location with tar files is shown as the tree of their members, and a member is read as a part
 * of its tar: any one at any time. Where the members are is known from the index that `stoker
 * stage` wrote, or else from reading the tars' headers once, which is then remembered.
 *
 * Members are shown as their tars have them, but for two things: a folder that all of them are in
 * is left out (people tar a folder), and where the names of the shards tell more than one split
 * (train-000.tar and val-000.tar), each split's members are shown in a folder train, val or test.
 * An index of `stoker stage` says itself how members are shown.
 */
#ifndef STK_STORAGE_SHARDS_SHARDS_H
#define STK_STORAGE_SHARDS_SHARDS_H

#include "storage/storage.h"
#include "storage/tar/members.h"

/*
 * Finds the members of all tars of a location (`only` NULL) or of one of its objects. `kept` is a
 * folder for what should be remembered between runs, or NULL; `refresh` reads the tars again.
 */
STK_CHECKED stk_status stk_shards_open(stk_shards **shards, stk_store *store, const char *only,
                                       const char *kept, bool refresh, const stk_events *events,
                                       stk_error *err);

#endif
