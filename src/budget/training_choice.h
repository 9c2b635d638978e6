/*
 * training_choice.h - what the time for training is spent on: the size of the pictures, and how
 * many models are trained. Pure arithmetic.
 *
 * Time is counted in epochs over all labelled pictures. One model is validated, with few pictures:
 * it never sees them. While every model gets enough epochs, further models that are trained on
 * everything pay (refits): they see the pictures that the first one was validated with, and an
 * average of models is better than one. With time for several models at the usual size larger
 * pictures pay first, where the stored pictures have the detail. Folds are never chosen: at the
 * same cost models that see all pictures are as good. A short training from scratch begins with
 * small pictures: it needs many steps before detail counts. docs/recipes.md has the measurements.
 */
#ifndef STK_BUDGET_TRAINING_CHOICE_H
#define STK_BUDGET_TRAINING_CHOICE_H

#include <stdbool.h>
#include <stddef.h>

typedef struct stk_training_facts {
    double left_s;      /* seconds for training; NaN: there is no budget */
    double picture_s;   /* seconds that a training picture takes at `img_size`; NaN: not measured */
    double loader_s;    /* part of picture_s that does not depend on the size of the pictures: 0
                           where training does not wait for them */
    double predict_s;   /* seconds that a model takes to predict the test set at `img_size` */
    size_t pictures;    /* labelled pictures, those that validate included */
    double val_part;    /* share of them that is set apart to validate; 0: none is */
    bool may_hold_less; /* a smaller share may be chosen */
    bool pretrained;    /* training starts from pretrained weights */
    int img_size;       /* of the model, in pixels */
    bool may_shrink;    /* smaller pictures may be chosen */
    bool windows;       /* smaller pictures are not scaled: they show less of what is stored */
    bool may_grow;      /* larger pictures may be chosen */
    double source_px;   /* typical side of a stored picture, in pixels; NaN: not known */
    bool may_begin_small; /* smaller pictures may be chosen for the first half */
    int epochs;           /* of each model, as asked for; 0: as many as fit */
    int folds;            /* as asked for; 1: one model */
    int refits;           /* as asked for; -1: to be chosen */
} stk_training_facts;

typedef struct stk_training_choice {
    int img_size;       /* px */
    int early_size;     /* px, in the first half of the time; 0: the same */
    double val_part;    /* share of the pictures that validates, without folds */
    int refits;         /* further models, trained on all pictures */
    double epochs;      /* that fit, of each model and over its own pictures; at least 0 */
    double epochs_full; /* epochs of a single model that would fit at facts.img_size */
    double picture_s;   /* seconds of a training picture at the chosen size; NaN: not known */
    double predict_s; /* seconds that a model takes to predict the test set there; NaN: not known */
} stk_training_choice;

stk_training_choice stk_training_choose(const stk_training_facts *facts);

#endif
