/*
 * pretrained_model.h - which model weights belong to, and which models have weights here.
 *
 * For runs that name no model. Threads: any; nothing is kept.
 */
#ifndef STK_WEIGHTS_PRETRAINED_MODEL_H
#define STK_WEIGHTS_PRETRAINED_MODEL_H

#include "models/models.h"
#include "weights/pretrained.h"

/*
 * Finds the model of a file that stk_pretrained_find() found. A model that the file's metadata, its
 * name or its folder names is taken if the weights fit it; otherwise the first model that they fit.
 * *why becomes a text for people, which is never freed. STK_ERR_DATA: the file is damaged, or fits
 * no model.
 */
STK_CHECKED stk_status stk_pretrained_model(const stk_pretrained_file *file,
                                            const stk_model **model, const char **why,
                                            stk_error *err);

/*
 * Lists the models whose weights are on this machine, in the order of the tables; at most `room` of
 * them, *count becomes their number. Weights that need a row of their own (other means) count for
 * that row. `places` gets the folders that were searched, for people.
 */
STK_CHECKED stk_status stk_pretrained_models(const stk_model **models, size_t room, size_t *count,
                                             stk_str *places, stk_error *err);

#endif
