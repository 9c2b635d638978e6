/*
 * mounts.h - inside storage: where the members of archives are shown.
 *
 * A mount decides for one archive after the other, by the paths of its members and by what is there
 * already. Its rules are those of docs/storage.md. Threads: one at a time.
 */
#ifndef STK_STORAGE_ARCHIVES_MOUNTS_H
#define STK_STORAGE_ARCHIVES_MOUNTS_H

#include "base/map.h"
#include "events/events.h"
#include "storage/archives/archive.h"
#include "storage/tree.h"

typedef struct stk_mounts {
    stk_store *store;
    const stk_events *events;
    const stk_dir_list *top; /* borrowed: what stands at the top of the location */
    bool alone;              /* there is one archive, and no other data */
    stk_map there;           /* names at the top that are taken; the values are of mounts.c */
    stk_text_blocks texts;   /* names in `there` that members have brought */
    stk_shard_index index;   /* the members of all archives that are shown */
    stk_tree tree;           /* their paths as shown; the values are their numbers in `index` */
} stk_mounts;                /* starts zeroed */

/* Notes what is at the top. `archives`: how many archives there are. */
STK_CHECKED stk_status stk_mounts_begin(stk_mounts *mounts, stk_store *store,
                                        const stk_dir_list *top, size_t archives,
                                        const stk_events *events, stk_error *err);

/*
 * Whether an archive is to be looked at: not where the folder or file that it was made of is there
 * and not empty. Tells the events why not.
 */
STK_CHECKED stk_status stk_mounts_wants(stk_mounts *mounts, const char *name, const char *stem,
                                        bool *wants, stk_error *err);

/* Shows the members of an archive that was listed; archive->used tells whether. Takes its `found`.
 */
STK_CHECKED stk_status stk_mounts_add(stk_mounts *mounts, stk_archive *archive, stk_error *err);

void stk_mounts_free(stk_mounts *mounts);

#endif
