/*
 * data_folders.h - which folders of a location are no data.
 *
 * There are two kinds: what unpacking and file systems leave behind, which is skipped silently, and
 * what Stoker wrote there: run folders and staged copies. The latter hold pictures too (plots), so
 * code that lists data uses stk_data_list() and reports in one line what was skipped. A folder of
 * Stoker's is recognised by a file in it, a run folder from its lock on; a folder called `runs` is
 * always one. The location itself is never skipped.
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
    char **paths; /* owned, as are the texts: below the location, each once */
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

/* Whether Stoker wrote the folder, without listing it where that is expensive. */
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
