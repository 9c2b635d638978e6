/*
 * name_lists.h - only for this room: lists of picture names that divide the rows of a table.
 * Threads: one.
 */
#ifndef STK_DATASET_NAME_LISTS_H
#define STK_DATASET_NAME_LISTS_H

#include "dataset/label_table.h"

/* Where text files at the top list the names of test pictures, one a line, gives the table a column
 * more that says which set each row is of. `id` is its column of ids. Rows keep their order; their
 * lines are those of a table without line breaks in cells. */
STK_CHECKED stk_status stk_name_lists_add(stk_label_table *table, const stk_listing *listing,
                                          size_t id, stk_error *err);

#endif
