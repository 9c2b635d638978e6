/*
 * members.h - the members of all tar shards of a location: from a path to the bytes in a tar.
 *
 * A stk_shards is built once, when a store is opened (shards/shards.h), and only read afterwards,
 * so that all threads may use it.
 */
#ifndef STK_STORAGE_TAR_MEMBERS_H
#define STK_STORAGE_TAR_MEMBERS_H

#include "storage/tar/shard_index.h"
#include "storage/tree.h"

/* The value of an object in the tree that is no member: a table beside the tars. */
#define STK_NO_MEMBER UINT64_MAX

typedef struct stk_shards stk_shards;

/* A member as a part of a tar. */
typedef struct stk_extent {
    const char *object; /* the tar's path below the location */
    uint64_t offset;
    uint64_t length;
    bool has_checksum;
    uint64_t checksum; /* stk_checksum of the bytes, when the index has one */
} stk_extent;

/*
 * Makes the lookup. `tree` shows the members and what stands beside the tars; the value of each
 * object is the number of its member in `index`, or STK_NO_MEMBER. Takes the tree, also when it
 * fails; copies what it needs of the index.
 */
STK_CHECKED stk_status stk_shards_new(stk_shards **shards, stk_tree *tree,
                                      const stk_shard_index *index, stk_error *err);
void stk_shards_close(stk_shards *shards);

/* The members, and what else stands in the location (tables). */
const stk_tree *stk_shards_tree(const stk_shards *shards);

/* False: the path is no member but an object of the location. */
bool stk_shards_find(const stk_shards *shards, const char *path, stk_extent *extent);

/* What a small text member (.cls, .txt, .json) holds, or NULL. */
const char *stk_shards_text(const stk_shards *shards, const char *path);

#endif
