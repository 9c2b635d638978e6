/*
 * targets.h - what pictures of several labels, or with numbers, are trained to say.
 *
 * A record is a row of the labels' table; stk_sample.record leads to it. Several labels are kept as
 * lists, since of thousands of labels a picture has a few; numbers as they are. stk_targets_row()
 * gives the numbers that a loss takes. Read-only once the data set is open; any thread may read.
 */
#ifndef STK_DATASET_TARGETS_H
#define STK_DATASET_TARGETS_H

#include <stdbool.h>
#include <stddef.h>

#include <stoker/status.h>

typedef struct stk_targets {
    int outputs;    /* labels, or numbers of each record; 0: there are no targets */
    size_t count;   /* records */
    bool is_labels; /* several labels; otherwise numbers */
    /* Labels: those of record r are labels[starts[r]] up to labels[starts[r + 1]]. Owned. */
    size_t *starts;
    int *labels;
    size_t label_count;
    size_t label_capacity;
    /* Labels: whether one never occurs beside another, and not by chance. Owned. */
    bool *exclusive;
    /* Numbers: (count, outputs), NaN where a cell is empty. Owned. */
    float *numbers;
    /* Numbers, of each output; owned arrays. */
    double *least;
    double *most;
    double *mean;
    double *scale; /* the standard deviation; 1 where all numbers are equal */
    bool shares;   /* numbers are learned as shares of their range, from 0 to 1 */
} stk_targets;     /* starts zeroed */

/* Makes room for the numbers of `count` records, all NaN. */
STK_CHECKED stk_status stk_targets_open_numbers(stk_targets *targets, int outputs, size_t count,
                                                stk_error *err);

/* Begins lists of labels; each record adds its labels and then ends. */
STK_CHECKED stk_status stk_targets_open_labels(stk_targets *targets, int outputs, size_t count,
                                               stk_error *err);
STK_CHECKED stk_status stk_targets_add_label(stk_targets *targets, int label, stk_error *err);
void stk_targets_end_record(stk_targets *targets);

/* Works out what follows from all records: ranges and means, or which labels stand alone. */
STK_CHECKED stk_status stk_targets_finish(stk_targets *targets, stk_error *err);
void stk_targets_free(stk_targets *targets);

/* Labels as 0 and 1, or the numbers as they are, into row (outputs). */
void stk_targets_row(const stk_targets *targets, size_t record, float *row);

/* A number of output k as a network learns it: with mean 0 and deviation 1, or as a share. */
double stk_targets_learned_number(const stk_targets *targets, int k, double number);

/* The same of a whole row; labels are learned as they are. NaN for a record beyond the last. */
void stk_targets_learned(const stk_targets *targets, size_t record, float *row);

/* Whether two records have the same labels, or the same numbers; an empty cell is like any. */
bool stk_targets_agree(const stk_targets *targets, size_t a, size_t b);

/* Labels: the share of the records that have each of them; numbers: their means. */
void stk_targets_means(const stk_targets *targets, double *means /* (outputs) */);

#endif
