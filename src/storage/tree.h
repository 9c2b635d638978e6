/*
 * tree.h - a flat list of objects, shown as folders.
 *
 * Sources without folders (S3, tar shards) have names with slashes. A tree is filled once, then
 * sorted by stk_tree_finish() and read by many threads. About 40 bytes per object and its name.
 */
#ifndef STK_STORAGE_TREE_H
#define STK_STORAGE_TREE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <stoker/status.h>

#include "base/files/file.h"
#include "base/text/text_blocks.h"

typedef struct stk_tree_object {
    const char *path;    /* owned by the tree; below the location, without a slash in front */
    const char *version; /* owned by the tree: what changes when the object does (ETag); "" */
    uint64_t size;       /* bytes */
    uint64_t value;      /* the filler's: an offset in a shard, say */
} stk_tree_object;

typedef struct stk_tree {
    stk_tree_object *objects; /* sorted by the bytes of the path after stk_tree_finish */
    size_t count;
    size_t capacity;
    stk_text_blocks texts;    /* paths and versions */
    const char *last_version; /* the latest text of a version: the objects of a shard share one */
} stk_tree;                   /* starts zeroed */

/*
 * Adds an object. Names that are no file's are passed over: empty names, names that end with a
 * slash (consoles make them for empty folders), names with a `.` or `..` between slashes, and names
 * of more than 256 parts. "./" in front is cut off.
 */
STK_CHECKED stk_status stk_tree_add(stk_tree *tree, const char *path, size_t length, uint64_t size,
                                    const char *version, uint64_t value, stk_error *err);

/* Sorts; of two objects with one name the one that was added last stays. */
STK_CHECKED stk_status stk_tree_finish(stk_tree *tree, stk_error *err);

void stk_tree_free(stk_tree *tree);

/* The object with a path, or NULL. */
const stk_tree_object *stk_tree_find(const stk_tree *tree, const char *path);

/* Whether a path is that of an object or of a folder with objects below it. */
bool stk_tree_has(const stk_tree *tree, const char *path);

/* The entries of a folder, as stk_dir_read lists them; a missing folder is empty. */
STK_CHECKED stk_status stk_tree_list(const stk_tree *tree, const char *folder, stk_dir_list *list,
                                     stk_error *err);

#endif
