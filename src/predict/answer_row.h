/*
 * answer_row.h - only for this room: one row of a submission, from what models say of its pictures.
 *
 * A row may have several pictures: their values are pooled, without those that no model could
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
    double *pooled; /* owned: (classes) of one of its pictures */
    bool *chosen;   /* owned: (classes) */
    int *best;      /* owned: (how->most) */
    bool sound;     /* the values are what the task can have */
    double sum;     /* of the probabilities that are written */
    int columns;    /* of classes */
    double unseen;  /* the share of each column whose class has no training picture */
    double left;    /* the share of all other columns together */
} stk_answer_row;

/*
 * `answers` and `how` are set. `classes` are those of the file's columns, or NULL; `unseen` columns
 * more are of classes without training pictures.
 */
STK_CHECKED stk_status stk_answer_row_open(stk_answer_row *row, const int *classes, int columns,
                                           int unseen, stk_error *err);

/* What add-one smoothing gives each of `unseen` columns beside `columns` of classes that `pictures`
 * show; 0 where that number is not known, and where columns do not exclude each other. */
double stk_answer_unseen(stk_answer_kind kind, size_t pictures, int columns, int unseen);
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
