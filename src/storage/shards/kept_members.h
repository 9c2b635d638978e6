/*
 * kept_members.h - inside storage: where the members of tars and archives are, stored between runs.
 *
 * One file for each object, by the name of the location and of the object; it holds the members of
 * one version of the object. A file that is missing, damaged or of another version is no error.
 * Threads: any, for different objects.
 */
#ifndef STK_STORAGE_SHARDS_KEPT_MEMBERS_H
#define STK_STORAGE_SHARDS_KEPT_MEMBERS_H

#include "storage/reading/store_state.h"
#include "storage/tar/shard_index.h"

/* Loads the stored members of this version of an object from a folder, which may be NULL; false:
 * there are none. */
bool stk_kept_members_load(const stk_store *store, const char *folder, const char *object,
                           const char *version, stk_shard_index *index);

/* Stores the members. A failure does not matter: they are looked for again next time. */
void stk_kept_members_save(const stk_store *store, const char *folder, const char *object,
                           const char *version, stk_shard_index *index);

/* Whether loading the members of a tar is quicker than reading its headers again. */
bool stk_kept_members_is_worth_it(const stk_store *store, const stk_shard_index *index);

#endif
