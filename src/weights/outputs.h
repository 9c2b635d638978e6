/*
 * outputs.h - what the numbers of a network's last layer mean.
 *
 * They become probabilities of classes, which sum to 1, probabilities of labels, which do not, or
 * numbers in the unit of the targets, within the range that training has seen. A checkpoint keeps
 * this in its metadata as one JSON object, with what the competition takes: a folder of pictures
 * alone does not tell that. Threads: read-only once made.
 */
#ifndef STK_WEIGHTS_OUTPUTS_H
#define STK_WEIGHTS_OUTPUTS_H

#include "base/str.h"
#include "dataset/dataset.h"

/* The unit of one number. */
typedef struct stk_output_unit {
    double mean;  /* of the training targets */
    double scale; /* their deviation */
    double least;
    double most;
} stk_output_unit;

typedef struct stk_outputs {
    stk_task task; /* STK_TASK_AUTO means single */
    int count;
    stk_output_unit *units; /* (count), owned; NULL: the task has no numbers */
    bool shares;            /* numbers are shares of their range, which sigmoids give */
    bool steps;             /* the head says a place on a scale; false in older files */
    bool *exclusive;        /* (count), owned: labels that stand alone; NULL: none does */
    size_t pictures;        /* training pictures; 0 in older files: not known */
    bool has_answer;        /* false in older files */
    stk_answer answer;      /* what a row of the submission took */
    bool metric_given;      /* --metric decided on task and answer */
    stk_metric metric;      /* where it did */
} stk_outputs;              /* starts zeroed */

/* Those of a network that was trained on this data set. */
STK_CHECKED stk_status stk_outputs_of(const stk_dataset *dataset, stk_outputs *outputs,
                                      stk_error *err);
void stk_outputs_free(stk_outputs *outputs);

/* Probabilities at a temperature above 0, by which the logits are divided, or numbers. */
void stk_outputs_values(const stk_outputs *outputs, const float *logits, double temperature,
                        double *values /* (count) */);

/* Targets as they were learned, back in their unit. */
void stk_outputs_restore(const stk_outputs *outputs, const float *learned,
                         float *values /* (count) */);

/* Appends the JSON object. */
void stk_outputs_append(const stk_outputs *outputs, stk_str *out);

/* Reads it, for `count` outputs; NULL, as in older files, means a single class. A text that does
 * not fit is STK_ERR_DATA. */
STK_CHECKED stk_status stk_outputs_read(const char *text, int count, stk_outputs *outputs,
                                        stk_error *err);

#endif
