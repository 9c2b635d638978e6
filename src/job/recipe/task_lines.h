/* task_lines.h - says what is learned, what is written and why, before anything is trained. */
#ifndef STK_JOB_RECIPE_TASK_LINES_H
#define STK_JOB_RECIPE_TASK_LINES_H

#include "dataset/dataset.h"
#include "events/events.h"
#include "job/recipe/recipe.h"

/* "several labels (6), written as a list": what the rows of a submission take. */
const char *stk_task_describe_answer(const stk_dataset *dataset, char *text, size_t size);

/* What the submission of a data set will look like. */
typedef struct stk_submission_look {
    int64_t rows;     /* 0: none is written, and nothing below counts */
    int columns;      /* of the file */
    char header[300]; /* for people: stk_submission_describe() */
} stk_submission_look;

STK_CHECKED stk_status stk_task_look_at_submission(const stk_dataset *dataset,
                                                   stk_submission_look *look, stk_error *err);

/* Emits the task, the metric and why it rates, the form of the submission, and what else the tables
 * gave. */
STK_CHECKED stk_status stk_task_emit(const stk_dataset *dataset, const stk_recipe *recipe,
                                     const stk_events *events, stk_error *err);

#endif
