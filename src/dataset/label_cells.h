/*
 * label_cells.h - only for this room: how the cells of a label column are written, and their plain
 * form.
 *
 * Programs write lists of labels with brackets and quotes, numbers with decimal commas, and words
 * such as "nan" where a number is missing. Threads: any.
 */
#ifndef STK_DATASET_LABEL_CELLS_H
#define STK_DATASET_LABEL_CELLS_H

#include <stdbool.h>
#include <stddef.h>

#include "base/text/csv.h"
#include "metrics/task.h"

/* How the cells were written before they got their plain form. */
typedef struct stk_cell_form {
    char bracket;     /* that opens a list; '\0': lists have none */
    char quote;       /* around each label; '\0': none */
    char divider;     /* between the labels of a list that had brackets */
    bool commas;      /* numbers had decimal commas */
    size_t missing;   /* cells that said that a number is missing; they are empty now */
    char example[64]; /* a list, as it was written */
} stk_cell_form;      /* starts zeroed */

/* Whether a text means that there is nothing: "nan", "N/A", "unknown", "?" and the like. */
bool stk_cell_is_missing(const char *text);

/* The bracket that a list begins with, if the text ends with its partner; else '\0'. */
char stk_cell_bracket(const char *text);

/* The next item of a list with brackets, without quotes; *at starts behind the bracket. NULL: there
 * is none. *quote becomes the quotes around it, if it has any. */
const char *stk_cell_item(const char **at, size_t *length, char *quote);

/*
 * Notes in *form how the cells of a column are written, as far as this task takes them (AUTO: any).
 * `sample` has cells of the submission in column `answer`; NULL: there are none.
 */
void stk_cell_form_find(stk_cell_form *form, const stk_csv *csv, size_t column, stk_task task,
                        const stk_csv *sample, size_t answer);

/* Gives the cells of a column their plain form. */
void stk_cell_form_apply(const stk_cell_form *form, stk_csv *csv, size_t column);

#endif
