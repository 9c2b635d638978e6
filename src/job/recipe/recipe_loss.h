/*
 * recipe_loss.h - which loss a network learns with: --loss and --positive-weight, and what "auto"
 * means for a task and its metric.
 */
#ifndef STK_JOB_RECIPE_RECIPE_LOSS_H
#define STK_JOB_RECIPE_RECIPE_LOSS_H

#include "job/recipe/recipe.h"

/* The choice that is used; CE where the task is not known yet. */
stk_loss_choice stk_recipe_loss_choice(const stk_recipe *recipe);

/* Its numbers. Weights of positives are those of the recipe. */
stk_loss stk_recipe_loss(const stk_recipe *recipe);

/* STK_ERR_USAGE where --loss or --positive-weight does not go with the task; otherwise writes the
 * loss to the options where it was left to Stoker. */
STK_CHECKED stk_status stk_recipe_take_loss(const stk_recipe *recipe, stk_options *options,
                                            stk_error *err);

/* What positives of each label count for, by --positive-weight; NULL: as much as negatives. Freed
 * by the caller with stk_mem_free(). */
STK_CHECKED stk_status stk_recipe_weigh_positives(const stk_recipe *recipe,
                                                  const stk_targets *targets, float **weights,
                                                  stk_error *err);

#endif
