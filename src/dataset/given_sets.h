/*
 * given_sets.h - only for this room: rows that the folder sets apart from training.
 *
 * A column of the table of labels may name the set of each row (train, val, test), or a table of
 * validation rows lies beside it. Rows that validate follow those that train in one joined table,
 * so that labels, targets and features are read of both in the same way. Threads: one.
 */
#ifndef STK_DATASET_GIVEN_SETS_H
#define STK_DATASET_GIVEN_SETS_H

#include "dataset/ask.h"
#include "dataset/label_table.h"

typedef struct stk_given_sets {
    size_t column;            /* of the training table, names the sets; SIZE_MAX: none does */
    stk_label_table val;      /* owned: rows that validate; file NULL: there are none */
    stk_label_table test;     /* owned: rows of the column that are to be predicted */
    stk_row_pictures *places; /* owned: of the rows that validate, in val.match.view */
} stk_given_sets;             /* starts zeroed */

/* Takes the rows that validate, and those of the test set, out of the training table if a column of
 * it says which these are. `id` is its column of ids. */
STK_CHECKED stk_status stk_given_sets_divide(stk_given_sets *given, stk_listing *listing,
                                             const stk_survey *survey, stk_label_table *train,
                                             size_t id, stk_error *err);

/* Finds a table of rows that validate, unless a column has given some. */
STK_CHECKED stk_status stk_given_sets_find(stk_given_sets *given, stk_listing *listing,
                                           const stk_survey *survey, const char *id_name,
                                           stk_error *err);

/*
 * Makes `all` of the training rows and, behind them, of those that validate: they have labels, and
 * pictures that are not in `trained` (paths of training pictures). Says how many there are, and
 * what is left out. Without rows that validate, `all` is a copy of nothing: its buffer is NULL.
 */
STK_CHECKED stk_status stk_given_sets_join(stk_given_sets *given, const stk_listing *listing,
                                           const stk_csv *train, size_t id, const stk_ask *ask,
                                           const stk_map *trained, stk_csv *all, stk_error *err);
void stk_given_sets_free(stk_given_sets *given);

#endif
