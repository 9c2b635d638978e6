/*
 * true_answer.h - answers as cells of the run's tables: a class, labels one after another, numbers.
 *
 * Labels are divided as in the submission, where it lists them in one column, otherwise by '|';
 * numbers by a blank. Threads: safe, nothing is stored.
 */
#ifndef STK_JOB_SAVED_TRUE_ANSWER_H
#define STK_JOB_SAVED_TRUE_ANSWER_H

#include "base/str.h"
#include "dataset/dataset.h"

/* Appends what the sample's picture shows, as a cell of a CSV file; nothing where that is not
 * known. */
void stk_true_answer_append(stk_str *out, const stk_dataset *dataset, const stk_sample *sample);

/* The same for an answer of a model. */
void stk_labels_append(stk_str *out, const stk_dataset *dataset, const int *labels, size_t count);
void stk_numbers_append(stk_str *out, const float *numbers, size_t count);

#endif
