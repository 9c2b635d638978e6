/* task_lines.h - says what is learned, what is written and why, before anything is trained. */
#ifndef STK_JOB_RECIPE_TASK_LINES_H
#define STK_JOB_RECIPE_TASK_LINES_H

#include "dataset/dataset.h"
#include "events/events.h"
#include "job/recipe/recipe.h"

/* "several labels (6), written as a list": what the rows of a submission take. */
const char *stk_task_describe_answer(const stk_dataset *dataset, char *text, size_t size);

/* Emits the task, the metric, and what else the tables gave. */
void stk_task_emit(const stk_dataset *dataset, const stk_recipe *recipe, const stk_events *events);

#endif
