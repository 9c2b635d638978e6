/* recipe_lines.h - a recipe in words: the lines and events that say what was chosen, and why. */
#ifndef STK_JOB_RECIPE_RECIPE_LINES_H
#define STK_JOB_RECIPE_RECIPE_LINES_H

#include "backend/opened_decoder.h"
#include "base/str.h"
#include "events/events.h"
#include "job/recipe/recipe.h"

/* Appends all choices as one line for people: "model convnet_s (auto), img-size 64 (auto)". */
void stk_recipe_describe(const stk_options *options, stk_str *line);

/* Emits the row of the table of recipes that was taken, and why; and the sampling, where the
 * classes of the data set decided on it. */
void stk_recipe_emit_row(const stk_recipe *recipe, const stk_options *options,
                         const stk_events *events);

/* Emits the batch with its reason; nothing where `why` is "". */
void stk_recipe_emit_batch(const stk_recipe *recipe, const char *why, const stk_events *events);

/* Emits the decisions that need a reason of their own; `batch_why` as for stk_recipe_emit_batch. */
void stk_recipe_emit(const stk_recipe *recipe, const stk_options *options,
                     const stk_opened_device *device, const stk_opened_decoder *decoder,
                     const char *batch_why, size_t train_count, const stk_events *events);

/* Emits a decision when a resumed run uses a smaller batch than it was begun with. */
void stk_recipe_emit_resumed_batch(const stk_recipe *recipe, const stk_events *events);

#endif
