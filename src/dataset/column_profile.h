/*
 * column_profile.h - only for this room: what the cells of a column hold.
 *
 * Competitions name columns in every way, so columns are told apart by their contents. A profile
 * counts the different texts of a column and how many of its cells are numbers. Threads: any.
 */
#ifndef STK_DATASET_COLUMN_PROFILE_H
#define STK_DATASET_COLUMN_PROFILE_H

#include "base/map.h"
#include "base/text/csv.h"

/* One of the different texts of a column. */
typedef struct stk_column_text {
    const char *text; /* the table's */
    size_t rows;      /* how many have it */
} stk_column_text;

typedef struct stk_column_profile {
    stk_column_text *texts; /* owned: in the order in which they first occur; not the empty one */
    size_t count;
    size_t capacity;
    stk_map places; /* from text to index in `texts` */
    size_t rows;    /* of the table */
    size_t filled;  /* cells that are not empty */
    size_t numbers; /* cells that are finite numbers */
    bool fractions; /* some number is not whole */
    double least;   /* of the numbers */
    double most;
    const char *least_text; /* the table's */
    const char *most_text;
} stk_column_profile; /* starts zeroed */

STK_CHECKED stk_status stk_column_profile_make(stk_column_profile *profile, const stk_csv *csv,
                                               size_t column, stk_error *err);
void stk_column_profile_free(stk_column_profile *profile);

/* Whether every filled cell is a number, and at least one is filled. */
bool stk_column_is_numeric(const stk_column_profile *profile);

/* Whether the column holds 0 and 1 in every row, and not the same everywhere. */
bool stk_column_is_flags(const stk_column_profile *profile);

/* Digits, a sign, a point, an exponent: "nan" and "0x1f" are names. */
bool stk_cell_number(const char *text, double *value);

#endif
