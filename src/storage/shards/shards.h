/*
 * shards.h - tar shards: which member of which tar an object is.
 *
 * A place with tar files is shown as the tree of their members, and a member is read as a part of
 * its tar: any one at any time. Where the members are is known from the index that `stoker stage`
 * wrote, or else from reading the tars' headers once, which is then remembered.
 *
 * Members are shown as their tars have them, but for two things: a folder that all of them are in
 * is left out (people tar a folder), and where the names of the shards tell more than one split
 * (train-000.tar and val-000.tar), each split's members are shown in a folder train, val or test.
 * An index of `stoker stage` says itself how members are shown.
 */
#ifndef STK_STORAGE_SHARDS_SHARDS_H
#define STK_STORAGE_SHARDS_SHARDS_H

#include "storage/data_folders.h"
#include "storage/storage.h"
#include "storage/tree.h"

typedef struct stk_shards stk_shards;

/* A member as a part of a tar. */
typedef struct stk_extent {
    const char *object; /* the tar's path below the place */
    uint64_t offset;
    uint64_t length;
    bool has_checksum;
    uint64_t checksum; /* stk_checksum of the bytes, when the index has one */
} stk_extent;

/* Whether a file's name is a tar's; compressed ones count, though opening them only says so. */
bool stk_shards_is_tar_name(const char *name);

/*
 * Whether a place that has these entries at its top is one of shards: tars at the top or in folders
 * called train, val or test, and neither pictures nor other folders beside them. Folders that are
 * no data do not count; what Stoker wrote is added to `skipped`.
 */
STK_CHECKED stk_status stk_shards_wanted(stk_store *store, const stk_dir_list *top,
                                         stk_skipped_folders *skipped, bool *wanted,
                                         stk_error *err);

/*
 * Finds the members of all tars of a place (`only` NULL) or of one of its objects. `kept` is a
 * folder for what should be remembered between runs, or NULL; `refresh` reads the tars again.
 */
STK_CHECKED stk_status stk_shards_open(stk_shards **shards, stk_store *store, const char *only,
                                       const char *kept, bool refresh, const stk_events *events,
                                       stk_error *err);
void stk_shards_close(stk_shards *shards);

/* The members, and what else stands in the place (tables). */
const stk_tree *stk_shards_tree(const stk_shards *shards);

/* False: the path is no member but an object of the place. */
bool stk_shards_find(const stk_shards *shards, const char *path, stk_extent *extent);

/* What a small text member (.cls, .txt, .json) holds, or NULL. */
const char *stk_shards_text(const stk_shards *shards, const char *path);

#endif
