/*
 * ask.h - only for this room: finds out what a data set asks for.
 *
 * ask_unfit.c refuses what Stoker does not learn. ask_columns.c finds the columns that are labels:
 * those that the sample submission has too, the one in which its cells occur (ask_by_cells.c), or
 * those that only the training table has. ask_plain.c and ask_whole.c give cells a plain form.
 * ask_task.c decides on the task and on what is written, from the labels, the cells of the sample
 * submission and the metric that the description names.
 * --label-column and --task override them. Threads: one.
 */
#ifndef STK_DATASET_ASK_H
#define STK_DATASET_ASK_H

#include "dataset/column_profile.h"
#include "dataset/description.h"
#include "dataset/label_cells.h"
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

/* The only column of the sample that takes an answer; SIZE_MAX: there are several, or none. */
static inline size_t stk_ask_only_answer(const stk_ask_tables *tables) {
    size_t found = SIZE_MAX;
    size_t count = 0;
    for (size_t c = 0; tables->sample != NULL && c < tables->sample->columns; c++) {
        if (stk_ask_is_answer(tables, c)) {
            found = c;
            count++;
        }
    }
    return count == 1 ? found : SIZE_MAX;
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
    char divider;         /* MULTILABEL: between two labels of a cell of the table */
    stk_cell_form form;   /* of the only label column's cells, before they got their plain form */
    char reason[400];     /* for people */
    stk_metric metric;    /* of the options or the description, if it can rate the task */
    bool metric_given;    /* by the options */
    char phrase[64];      /* the description's words for it, or for one that cannot rate the task;
                             "--metric auc" where the options name it */
} stk_ask;                /* starts zeroed */

/* Finds the label columns. STK_ERR_USAGE or STK_ERR_DATA when there is none, or several could be
 * it. */
STK_CHECKED stk_status stk_ask_columns(stk_ask *ask, const stk_listing *listing,
                                       const stk_ask_tables *tables, stk_error *err);

/* The column in which the cells of the sample's only answer column occur, where that tells it;
 * SIZE_MAX: it does not. */
STK_CHECKED stk_status stk_ask_column_by_cells(const stk_ask_tables *tables, size_t *column,
                                               stk_error *err);

/* Refuses a data set that asks for boxes, masks, matches or pairs of pictures, unless
 * --label-column names what to learn. Before columns are found. */
STK_CHECKED stk_status stk_ask_refuse(const stk_listing *listing, const stk_ask_tables *tables,
                                      const stk_hints *hints, stk_error *err);

/* Refuses a label column with such cells, unless --task takes them otherwise. */
STK_CHECKED stk_status stk_ask_refuse_cells(const stk_ask *ask, const stk_listing *listing,
                                            const stk_ask_tables *tables, const stk_hints *hints,
                                            stk_error *err);

/* Gives the cells of label columns their plain form; ask->form is how they were. `train` is the
 * table that `tables` has. */
void stk_ask_plain_cells(stk_ask *ask, const stk_listing *listing, stk_csv *train,
                         const stk_ask_tables *tables);

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

/* The positive one of two classes: --positive, or what tells it. `answer` is the sample's column;
 * NULL: it has none. *guessed: nothing tells it. */
const char *stk_ask_positive(const stk_dataset_options *options, const stk_hints *hints,
                             const char *answer, const char *first, const char *second,
                             bool *guessed);

/* The same where no table has labels: classes come from folders or names. `classes` are theirs. */
STK_CHECKED stk_status stk_ask_classes(stk_ask *ask, const stk_listing *listing,
                                       const stk_csv *sample, size_t sample_id,
                                       const char *const *classes, size_t count,
                                       const stk_hints *hints, stk_error *err);

void stk_ask_free(stk_ask *ask);

#endif
