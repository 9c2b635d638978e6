/*
 * bson.h - inside storage: a BSON file of products as an archive of their pictures and their table.
 *
 * Such a file is read from front to back once. Its pictures become members that are ranges of it,
 * STEM/ID/K.jpg. Its other fields become a CSV file in the folder of unpacked archives, which is
 * the member STEM.bson.csv. Both are stored for later runs. Threads: any, for different archives.
 */
#ifndef STK_STORAGE_ARCHIVES_BSON_H
#define STK_STORAGE_ARCHIVES_BSON_H

#include "storage/archives/archive.h"

/* Whether an earlier run has read this version of the file; its members are `listed` then. */
bool stk_archive_recall_bson(stk_store *store, const stk_archive_folders *folders,
                             stk_archive *archive);

/* Reads the file. Damage, and documents without an _id of their own, are STK_ERR_DATA. */
STK_CHECKED stk_status stk_archive_list_bson(stk_store *store, const stk_archive_folders *folders,
                                             stk_archive *archive, stk_error *err);

#endif
