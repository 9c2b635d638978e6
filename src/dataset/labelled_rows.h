/*
 * labelled_rows.h - only for this room: the rows of the table of labels, with their pictures.
 *
 * Rows and pictures without a partner are an error with counts and examples: a label that is lost
 * in silence costs accuracy. Few of them are left out with a warning, and so are a few rows without
 * a label, and rows that stand twice. Threads: one.
 */
#ifndef STK_DATASET_LABELLED_ROWS_H
#define STK_DATASET_LABELLED_ROWS_H

#include "dataset/ask.h"
#include "dataset/survey.h"

typedef struct stk_labelled_rows {
    const char *file;         /* the table's name below the location, for lines */
    char *where;              /* owned: its path, for errors */
    char *pictures_folder;    /* owned: the path of the pictures, for errors */
    const stk_csv *csv;       /* rows that train and, perhaps, rows that validate behind them */
    size_t count;             /* rows that train */
    size_t id;                /* column of ids */
    size_t part;              /* column that divides the samples; SIZE_MAX: none */
    const stk_match *match;   /* of rows that train */
    stk_pictures *pictures;   /* of rows that train */
    stk_row_pictures *places; /* owned: of all rows of `csv` */
    size_t found;             /* rows that train and have a picture */
} stk_labelled_rows;          /* starts zeroed */

/* Finds the pictures of all rows of the table, whose texts and columns are there. */
STK_CHECKED stk_status stk_labelled_rows_match(stk_labelled_rows *rows, const stk_listing *listing,
                                               stk_match *match, stk_error *err);

const char *stk_labelled_rows_id(const stk_labelled_rows *rows, size_t row);

/*
 * Leaves out rows that repeat one before, and a few without a label, with a warning each. A row
 * repeats another if it has its id and the same cells in the columns of alike[column]: labels, and
 * what decides where a picture belongs. Other rows with one id are refused. Where rows are left
 * out, `kept` is made of the others, and the rows are those of it; otherwise its buffer is NULL.
 */
STK_CHECKED stk_status stk_labelled_rows_clean(stk_labelled_rows *rows, const stk_listing *listing,
                                               const stk_ask *ask, const bool *alike, stk_csv *kept,
                                               stk_error *err);

/* A row needs an id, a cell that divides it where there is such a column, and a label where rows
 * without any mean nothing. */
STK_CHECKED stk_status stk_labelled_rows_check_cells(const stk_labelled_rows *rows,
                                                     const stk_ask *ask, stk_error *err);

/* Refuses two ids that mean one picture; marks the pictures used. */
STK_CHECKED stk_status stk_labelled_rows_check_pictures(stk_labelled_rows *rows, stk_error *err);

/* Refuses rows without a picture, unless they are left out. */
STK_CHECKED stk_status stk_labelled_rows_check_missing(const stk_labelled_rows *rows,
                                                       const stk_listing *listing, stk_error *err);

/* Refuses pictures that are not used, unless they are left out. */
STK_CHECKED stk_status stk_labelled_rows_check_unlabelled(const stk_labelled_rows *rows,
                                                          const stk_listing *listing,
                                                          stk_error *err);
void stk_labelled_rows_free(stk_labelled_rows *rows);

/* Says more in the error of `status` where no column could be told to be the label: that many ids
 * have several rows, or that a sample submission could be named. Returns the status. */
STK_CHECKED stk_status stk_labelled_rows_explain(const stk_labelled_rows *rows,
                                                 const stk_listing *listing, bool has_sample,
                                                 stk_status status, stk_error *err);

#endif
