/*
 * recipe_sizes.h - the part of the recipe that says how pictures come to the size that the network
 * sees: scaled, or as windows of their own pixels; and which sizes training, validation and the
 * first half of a training have. Threads: the job's.
 */
#ifndef STK_JOB_RECIPE_RECIPE_SIZES_H
#define STK_JOB_RECIPE_RECIPE_SIZES_H

#include "job/recipe/recipe.h"

/* Before step 2: whether pictures are scaled. `versions`: the classes are versions of the same
 * pictures that look alike (version_look.h). */
STK_CHECKED stk_status stk_recipe_choose_resize(stk_recipe *recipe, stk_options *options,
                                                bool versions, stk_error *err);

/* After it, where they are not: the short side that most of them have at least. `timed`: the
 * windows become smaller later, where there is little time (stk_training_facts.windows). */
void stk_recipe_take_side(stk_recipe *recipe, int side, bool timed);

/* The size of pictures with a model, before time decides on it. */
int stk_recipe_size_for(const stk_recipe *recipe, const stk_options *options,
                        const stk_model *model);

/* The size in validation and prediction, once that of training is known. */
STK_CHECKED stk_status stk_recipe_choose_eval_size(stk_recipe *recipe, stk_options *options,
                                                   stk_error *err);

/* The sizes of the first half; `size` is what was chosen where nothing was given. */
STK_CHECKED stk_status stk_recipe_take_early_size(stk_recipe *recipe, stk_options *options,
                                                  int size, stk_error *err);

#endif
