/* recipe_rates.h - the learning rates of a recipe, for all layers and for the head. */
#ifndef STK_JOB_RECIPE_RECIPE_RATES_H
#define STK_JOB_RECIPE_RECIPE_RATES_H

#include "job/recipe/recipe.h"

/* The learning rate that is used where none was given. */
double stk_recipe_default_lr(const stk_recipe *recipe, size_t train_count);

/*
 * Chooses both rates, and writes what was not given to the options. `scale` multiplies a rate that
 * was given: it was meant for another batch. `to_be_measured`: the batch may still change, and
 * default rates are not written yet.
 */
STK_CHECKED stk_status stk_recipe_choose_rates(stk_recipe *recipe, stk_options *options,
                                               double scale, size_t train_count,
                                               bool to_be_measured, stk_error *err);

#endif
