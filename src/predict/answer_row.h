/*
 * answer_row.h - only for this room: one row of a submission, from what models say of its pictures.
 *
 * A row may have several pictures: their values are averaged, without those that no model could
 * read. Threads: one.
 */
#ifndef STK_PREDICT_ANSWER_ROW_H
#define STK_PREDICT_ANSWER_ROW_H

#include "base/str.h"
#include "predict/submission.h"

typedef struct stk_answer_row {
    const stk_answers *answers; /* borrowed */
    const stk_answer *how;      /* borrowed */
    bool *written;  /* owned: (classes), the classes that have a column; NULL: all count */
    double *values; /* owned: (classes) of the present row */
    double *pooled; /* owned: (classes), scratch */
    bool *chosen;   /* owned: (classes) */
    int *best;      /* owned: (how->most) */
    bool sound;     /* the values are what the task can have */
    double sum;     /* of the probabilities that are written */
    int columns;    /* of classes */
} stk_answer_row;

/* `answers` and `how` are set. `classes` are those of the file's columns, or NULL. */
STK_CHECKED stk_status stk_answer_row_open(stk_answer_row *row, const int *classes, int columns,
                                           stk_error *err);
void stk_answer_row_close(stk_answer_row *row);

/* Takes the row whose pictures are `count` from `first` on. */
void stk_answer_row_take(stk_answer_row *row, size_t first, size_t count);

/* Appends the whole answer: a label, a list, a probability, a number. */
void stk_answer_append(stk_str *out, const stk_answer_row *row);

/* Appends what the column of a class takes; a class below 0 is none of the model's. */
void stk_answer_append_class(stk_str *out, const stk_answer_row *row, int class_index);

/* Appends the probability of a class, or a number. */
void stk_answer_append_number(stk_str *out, const stk_answer_row *row, int class_index);

#endif
