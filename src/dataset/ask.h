/*
 * ask.h - only for this room: finds out what a data set asks for.
 *
 * ask_columns.c finds the columns that are labels: those that the sample submission has too, or
 * those that only the training table has. ask_whole.c writes 3.0 as 3. ask_task.c decides on the
 * task and on what is written, from the labels, the cells of the sample submission and the metric
 * that the description names.
 * --label-column and --task override them. Threads: one.
 */
#ifndef STK_DATASET_ASK_H
#define STK_DATASET_ASK_H

#include "dataset/column_profile.h"
#include "dataset/description.h"
#include "dataset/listing.h"

/* The tables; everything is borrowed. */
typedef struct stk_ask_tables {
    const stk_csv *train;
    const char *where;     /* the training table's path, for errors */
    const char *file;      /* its name below the location, for lines */
    size_t id;             /* its column that names the pictures */
    size_t part;           /* its column that divides the samples; SIZE_MAX: none */
    size_t split;          /* its column that names the set of each row; SIZE_MAX: none */
    const stk_csv *test;   /* the table of test rows; NULL: there is none */
    const stk_csv *sample; /* the sample submission; NULL: there is none */
    size_t sample_id;      /* its id column */
    size_t sample_kept;    /* its column without a name; SIZE_MAX: none */
} stk_ask_tables;

/* Whether a column of the sample takes an answer. */
static inline bool stk_ask_is_answer(const stk_ask_tables *tables, size_t column) {
    return column != tables->sample_id && column != tables->sample_kept;
}

typedef struct stk_ask {
    size_t *labels; /* owned: columns of the training table */
    size_t count;   /* of them */
    stk_task task;
    stk_answer answer;    /* its classes are not numbered yet: see the two names */
    bool one_hot;         /* each column is a class, and one of them is 1 in each row */
    bool values;          /* the sample's columns are called like the classes of the one column */
    const char *positive; /* the positive class, of the table's texts; NULL: not known */
    const char *stranger; /* the class of strangers; NULL: none */
    char reason[300];     /* for people */
    stk_metric metric;    /* of the options or the description, if it can rate the task */
    bool metric_given;    /* by the options */
    char phrase[64];      /* the description's words for it, or for one that cannot rate the task;
                             "--metric auc" where the options name it */
} stk_ask;                /* starts zeroed */

/* Finds the label columns. STK_ERR_USAGE or STK_ERR_DATA when there is none, or several could be
 * it. */
STK_CHECKED stk_status stk_ask_columns(stk_ask *ask, const stk_listing *listing,
                                       const stk_ask_tables *tables, stk_error *err);

/*
 * Writes the labels 3.0 of a column of whole numbers as 3: programs that join tables, or meet an
 * empty cell, save whole numbers so. Labels stay where some cell is no such number, or where the
 * sample submission has them with ".0", too. `train` is the table that `tables` has. Returns
 * whether it changed.
 */
bool stk_ask_whole_labels(const stk_ask *ask, stk_csv *train, const stk_ask_tables *tables);

/* Writes 3.0 as 3 in a column of another table, where the labels of the training table are all
 * whole numbers without ".0". */
void stk_ask_whole_like(const stk_csv *train, size_t label, stk_csv *other, size_t column);

/* Whether a text is a whole number, alone or with ".0" behind it. */
bool stk_is_whole_number(const char *text, const char *behind);

/* Decides on task and answer; `ask` has its columns. A metric that the options name counts instead
 * of the hints', unless the folder alone leads to it: then nothing changes. */
STK_CHECKED stk_status stk_ask_task(stk_ask *ask, const stk_listing *listing,
                                    const stk_ask_tables *tables, const stk_hints *hints,
                                    stk_error *err);

/* The same where no table has labels: classes come from folders or names. `classes` are theirs. */
STK_CHECKED stk_status stk_ask_classes(stk_ask *ask, const stk_listing *listing,
                                       const stk_csv *sample, size_t sample_id,
                                       const char *const *classes, size_t count,
                                       const stk_hints *hints, stk_error *err);

void stk_ask_free(stk_ask *ask);

#endif
