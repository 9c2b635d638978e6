/*
 * table_or_folders.h - only for this room: whether a table beside folders of pictures tells more
 * than the folders do. Threads: one.
 */
#ifndef STK_DATASET_TABLE_OR_FOLDERS_H
#define STK_DATASET_TABLE_OR_FOLDERS_H

#include "dataset/label_table.h"

/* Whether the labels of a table whose rows lead to pictures count, and not the folders in which the
 * training pictures lie. A line says so where they do. */
STK_CHECKED stk_status stk_table_beats_folders(const stk_label_table *table,
                                               const stk_listing *listing, bool *beats,
                                               stk_error *err);

#endif
