/*
 * data_folders.h - folders that lie in a place of data and are no data.
 *
 * Two kinds: what unpacking and file systems leave behind, which nobody needs to hear of, and what
 * Stoker itself wrote there: runs and staged copies. Those hold pictures too (plots), so whoever
 * lists data lists it with stk_data_list() and tells in one line what was skipped. A folder of
 * Stoker's is known by a file in it, a run from its lock on; a folder called `runs` is one in any
 * case. The place itself is never skipped.
 *
 * Threads: one at a time for each stk_skipped_folders.
 */
#ifndef STK_STORAGE_DATA_FOLDERS_H
#define STK_STORAGE_DATA_FOLDERS_H

#include "base/map.h"
#include "storage/storage.h"

/* Where runs are written to when nobody says another folder. */
#define STK_RUNS_FOLDER "runs"

typedef struct stk_skipped_folders {
    char **paths; /* owned, as are the texts: below the place, each once */
    size_t count;
    size_t capacity;
    stk_map seen;
} stk_skipped_folders; /* starts zeroed */

/* Folders that unpacking and file systems leave behind. */
bool stk_folder_is_junk(const char *name);

/*
 * stk_store_list without the folders that are known by their names. *own is set, and the list
 * empty, when the folder itself is one of Stoker's. What is Stoker's is added to `skipped`, unless
 * that is NULL.
 */
STK_CHECKED stk_status stk_data_list(stk_store *store, const char *folder,
                                     stk_skipped_folders *skipped, stk_dir_list *list, bool *own,
                                     stk_error *err);

/* Whether a folder is one of Stoker's, where it may be a long way to list it. */
STK_CHECKED stk_status stk_data_is_own(stk_store *store, const char *folder, bool *own,
                                       stk_error *err);

/* Adds a folder of Stoker's. */
STK_CHECKED stk_status stk_skipped_folders_add(stk_skipped_folders *skipped, const char *path,
                                               stk_error *err);

/* One warning about all of them; none when there are none. */
void stk_skipped_folders_report(const stk_skipped_folders *skipped, const char *root,
                                const stk_events *events);

/* The same at the end of a sentence that says what is wrong with the data. */
void stk_skipped_folders_explain(const stk_skipped_folders *skipped, stk_error *err);

void stk_skipped_folders_free(stk_skipped_folders *skipped);

#endif
