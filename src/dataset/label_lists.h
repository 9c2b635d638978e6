/*
 * label_lists.h - only for this room: whether the cells of a column hold several labels each.
 *
 * "scab rust" may be two labels or one name. Labels that occur alone as well as together, and lists
 * of numbers, are several labels for certain; names that merely have several words are not.
 * Threads: any.
 */
#ifndef STK_DATASET_LABEL_LISTS_H
#define STK_DATASET_LABEL_LISTS_H

#include "dataset/column_profile.h"

typedef struct stk_label_lists {
    size_t listed;       /* different texts that are lists of labels for certain */
    size_t rows;         /* rows with such a text */
    bool doubtful;       /* the cells may be lists */
    const char *example; /* borrowed from the table: a list, or what may be one; NULL: none */
    bool blanks;         /* most texts have several words with blanks between */
    const char *blanks_example; /* borrowed: one of them */
    char divider;               /* between the labels of a list; a blank where there are none */
} stk_label_lists;

STK_CHECKED stk_status stk_label_lists_find(stk_label_lists *lists,
                                            const stk_column_profile *profile, stk_error *err);

/* The next label of a cell without outer blanks, and its length; NULL at the end. *at starts at the
 * cell. */
const char *stk_label_list_next(const char **at, char divider, size_t *length);

/* How many labels a cell has. */
size_t stk_label_list_count(const char *cell, char divider);

#endif
