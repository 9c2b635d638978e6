/* recipe.h - what is left to Stoker becomes numbers, from the data set and the machine. */
#ifndef STK_JOB_RECIPE_H
#define STK_JOB_RECIPE_H

#include "backend/opened_device.h"
#include "budget/batch_choice.h"
#include "engine/backend.h"
#include "events/events.h"
#include "loader/loader.h"
#include "models/models.h"
#include "options/options.h"
#include "train/train.h"

typedef struct stk_recipe {
    const stk_model *model;
    int img_size;
    double dropout;
    double drop_path;
    size_t batch;
    char batch_why[320];     /* worth a line of its own; "": it is not */
    double lr;               /* NaN: to be found by a test */
    stk_train_options train; /* those of the options with their autos resolved, but lr and batch */
    int epochs_wanted;       /* 0: as many as the budget allows */
    int threads;
    stk_loader_sizing loader;
    stk_augment_options augment;
    stk_opened_device opened; /* owned */
    stk_str line;             /* all of it, for people; owned */
} stk_recipe;

/* The model, and where it is computed: the device is opened; `device` is who may halt its work. */
STK_CHECKED stk_status stk_recipe_begin(stk_recipe *choice, stk_options *options,
                                        const stk_device_config *device, stk_error *err);

/* What the batch depends on, but for the memory. `train_count`: images that one fold trains on. */
stk_batch_facts stk_recipe_batch_facts(const stk_recipe *choice, const stk_options *options,
                                       size_t train_count);

/*
 * Resolves every other auto of the options of `train` and says so in them; the facts are those that
 * the batch was chosen by. May be called again with another batch. `open`: that is to be expected,
 * so that the options do not say yet what the batch decides.
 */
STK_CHECKED stk_status stk_recipe_complete(stk_recipe *choice, stk_options *options,
                                           const stk_batch_facts *facts,
                                           const stk_batch_choice *batch, bool open,
                                           stk_error *err);

/* The learning rate that is taken where none was given. */
double stk_recipe_default_lr(const stk_train_options *train, bool pretrained, size_t batch,
                             size_t train_count);

/* Whether training starts from weights that were trained before. */
bool stk_recipe_is_pretrained(const stk_options *options);

/* Closes the device: what was made from it is gone before. */
void stk_recipe_free(stk_recipe *choice);

/* Tells the batch, where there is a word to say about it. */
void stk_recipe_emit_batch(const stk_recipe *choice, const stk_events *events);

/* Tells the choices that need a reason of their own. */
void stk_recipe_emit(const stk_recipe *choice, const stk_options *options, const stk_events *events,
                     size_t train_count);

#endif
