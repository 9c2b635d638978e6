/*
 * members.h - look-ups in the tar shards of an opened location: from a path to the bytes in a tar.
 * shards/find_members.h finds the members, shard_index.h stores them, shards/shards.h opens all.
 * The look-up serves other archives in the same way; archives/archives.h opens them.
 *
 * A stk_shards is built when a store is opened (shards/shards.h) and does not change afterwards,
 * unless members are added before anybody reads. Threads: any.
 */
#ifndef STK_STORAGE_TAR_MEMBERS_H
#define STK_STORAGE_TAR_MEMBERS_H

#include "storage/tar/shard_index.h"
#include "storage/tree.h"

/* Value in the tree of an object that is no member: a table beside the tars. */
#define STK_NO_MEMBER UINT64_MAX

typedef struct stk_shards stk_shards;

/* A member as a range of bytes of a tar or another archive. */
typedef struct stk_extent {
    const char *object; /* the tar's path below the location */
    uint64_t offset;
    uint64_t length;
    bool has_checksum;
    bool unpacked;     /* the object lies in the folder of unpacked archives */
    bool zipped;       /* the range is the span of a zip's member (zip/zip_member.h) */
    uint64_t checksum; /* stk_checksum() of the bytes, if the index has one */
    uint64_t size;     /* bytes of the member: `length`, unless it is zipped */
    uint32_t crc32;    /* of the member, if it is zipped */
    uint16_t method;   /* how it is packed, if it is zipped */
} stk_extent;

/*
 * Makes the lookup. `tree` has the members and the objects beside the tars; the value of each is
 * the number of its member in `index`, or STK_NO_MEMBER. Takes the tree over, also when it fails;
 * copies what it needs of the index.
 */
STK_CHECKED stk_status stk_shards_new(stk_shards **shards, stk_tree *tree,
                                      const stk_shard_index *index, stk_error *err);

/*
 * Adds the members of an index to a look-up that nobody uses meanwhile. Their paths are those in
 * the index. After a failure the look-up can only be closed.
 */
STK_CHECKED stk_status stk_shards_extend(stk_shards *shards, const stk_shard_index *index,
                                         const char *version, stk_error *err);
void stk_shards_close(stk_shards *shards);

/* The tree of members and of the other objects of the location (tables). */
const stk_tree *stk_shards_tree(const stk_shards *shards);

/* False: the path is no member but an object of the location. */
bool stk_shards_find(const stk_shards *shards, const char *path, stk_extent *extent);

/* The contents of a small text member (.cls, .txt, .json), or NULL. */
const char *stk_shards_text(const stk_shards *shards, const char *path);

#endif
