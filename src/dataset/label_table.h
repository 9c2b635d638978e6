/*
 * label_table.h - only for this room: finds the table of labels and the table of test rows.
 *
 * Names of tables say little, so a table counts when its rows lead to pictures. Tables with a usual
 * name come first, then those whose name or folder says that they belong to the training set, then
 * any other. Tables of what is drawn into pictures, of attributes or of examples lose: they lead to
 * no pictures, to fewer, or to one picture several times. Threads: one.
 */
#ifndef STK_DATASET_LABEL_TABLE_H
#define STK_DATASET_LABEL_TABLE_H

#include "dataset/survey.h"

typedef struct stk_label_table {
    const char *file;         /* its name below the location; NULL: none was found */
    bool usual;               /* it has a usual name */
    stk_csv csv;              /* owned */
    stk_json_table_info info; /* owned: what a JSON file holds besides */
    stk_match match;          /* owned: its pictures; with a usual name perhaps without a hit */
} stk_label_table;            /* starts zeroed */

/* Finds and reads the table of the training set. */
STK_CHECKED stk_status stk_label_table_find(stk_label_table *table, stk_listing *listing,
                                            const stk_survey *survey, stk_error *err);

/*
 * Finds and reads the table of test rows, and in *key its column of ids: the one that has the ids
 * of the sample submission (NULL: there is none), or the one called `id_name`. table->match may be
 * without a hit.
 */
STK_CHECKED stk_status stk_label_table_find_test(stk_label_table *table, stk_listing *listing,
                                                 const stk_survey *survey, const stk_csv *sample,
                                                 size_t sample_id, const char *id_name, size_t *key,
                                                 stk_error *err);

/* Finds and reads a table of validation rows whose column `id_name` names pictures. Where none of
 * them names one, table->match has no hit. */
STK_CHECKED stk_status stk_label_table_find_val(stk_label_table *table, stk_listing *listing,
                                                const stk_survey *survey, const char *id_name,
                                                stk_error *err);

/* Finds the pictures of table->csv by its column of ids: in the folders of the set or, where that
 * finds more, in those of the training set. */
STK_CHECKED stk_status stk_label_table_match(stk_label_table *table, stk_listing *listing,
                                             const stk_survey *survey, stk_set_kind set, size_t id,
                                             stk_error *err);
void stk_label_table_free(stk_label_table *table);

/* Whether enough of the rows that were tried name a picture. */
bool stk_match_fits(const stk_match *match);

#endif
