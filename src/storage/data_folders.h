/*
 * data_folders.h - which folders of a location are no data, and which names are those of pictures.
 *
 * There are two kinds of folders without data. Folders that unpacking and file systems leave behind
 * are skipped silently. Folders that Stoker wrote, run folders and staged copies, hold pictures too
 * (plots), so code that lists data uses stk_data_list() and reports the skipped folders in one
 * line. A file in it marks a folder as Stoker's (a run folder has its lock from the start), and so
 * does the name `runs`. The location itself is never skipped.
 *
 * Threads: one at a time for each stk_skipped_folders.
 */
#ifndef STK_STORAGE_DATA_FOLDERS_H
#define STK_STORAGE_DATA_FOLDERS_H

#include "base/map.h"
#include "base/text/text_blocks.h"
#include "storage/storage.h"

/* The extensions of pictures, as help and messages name them. */
#define STK_PICTURE_EXTENSIONS "jpg, jpeg, png, webp, tif, tiff, bmp, gif, npy, dcm, dicom or dic"

/* The folder that runs are written to by default. */
#define STK_RUNS_FOLDER "runs"

typedef struct stk_skipped_folders {
    stk_texts paths; /* below the location, each once */
    stk_map seen;
} stk_skipped_folders; /* starts zeroed */

/*
 * The extension of a picture in small letters, one of STK_PICTURE_EXTENSIONS with its dot; NULL:
 * the name is no picture's. The name, or a path, may have it in any case.
 */
const char *stk_picture_extension(const char *name);

/* Folders that unpacking and file systems leave behind. */
bool stk_folder_is_junk(const char *name);

/*
 * stk_store_list without junk and without folders called `runs`. If Stoker wrote `folder` itself,
 * *by_stoker is set and the list is empty. Folders of Stoker's are added to `skipped`, unless that
 * is NULL.
 */
STK_CHECKED stk_status stk_data_list(stk_store *store, const char *folder,
                                     stk_skipped_folders *skipped, stk_dir_list *list,
                                     bool *by_stoker, stk_error *err);

/* Whether Stoker wrote the folder. Asks for the files that mark it and does not list it. */
STK_CHECKED stk_status stk_data_is_by_stoker(stk_store *store, const char *folder, bool *by_stoker,
                                             stk_error *err);

/* Adds a folder of Stoker's. */
STK_CHECKED stk_status stk_skipped_folders_add(stk_skipped_folders *skipped, const char *path,
                                               stk_error *err);

/* Emits one warning about all skipped folders; none if nothing was skipped. */
void stk_skipped_folders_report(const stk_skipped_folders *skipped, const char *root,
                                const stk_events *events);

/* Appends the same to the sentence of an error about the data. */
void stk_skipped_folders_explain(const stk_skipped_folders *skipped, stk_error *err);

void stk_skipped_folders_free(stk_skipped_folders *skipped);

#endif
