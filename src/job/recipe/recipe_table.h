/*
 * recipe_table.h - named recipes: how a training augments, regularises and moves the weights.
 *
 * A recipe is a row of numbers that fit together. Which row fits depends on where training starts
 * (pretrained weights or random ones) and on how many epochs a model gets: a short training learns
 * most from large crops and plain targets, a long one needs more variety or it learns the pictures
 * by heart. docs/recipes.md has the table with the measurements behind it. A value that the user
 * gives always wins over the row.
 */
#ifndef STK_JOB_RECIPE_RECIPE_TABLE_H
#define STK_JOB_RECIPE_RECIPE_TABLE_H

#include <stdbool.h>
#include <stddef.h>

#include "engine/backend.h"

/* Values of --recipe: "auto", then the rows in the order of the table. */
#define STK_RECIPE_CHOICES "auto plain touch finetune finetune-long scratch scratch-long"

typedef struct stk_recipe_row {
    const char *name;
    bool pretrained;  /* for trainings that start from pretrained weights */
    int least_epochs; /* of a model, for which "auto" takes the row; -1: "auto" never takes it */
    double least_pictures; /* that a model sees in all, for the same */
    stk_optimizer optimizer;
    double crop_scale; /* least share of a picture that a training crop shows */
    bool freezes;      /* the head learns alone at first: stk_recipe_freeze_epochs() */
    bool keeps_stats;  /* norms keep the statistics of the first weights: --norm-stats kept */
    double label_smoothing;
    double mixup;
    double ema;        /* decay of averaged weights; 0: none */
    double sgd_decay;  /* weight decay of SGD */
    double adam_decay; /* weight decay of AdamW: it is multiplied with a much lower rate */
} stk_recipe_row;

/* The row for a value of --recipe; `choice` 0 is "auto": the row that fits the start, the number of
 * epochs of a model, and the number of pictures that it sees in all of them. */
const stk_recipe_row *stk_recipe_row_choose(int choice, bool pretrained, double epochs,
                                            double pictures);

/* What the default learning rate depends on. */
typedef struct stk_rate_facts {
    stk_optimizer optimizer;
    bool pretrained;
    double images;   /* of an update */
    double updates;  /* of the whole training of a model */
    bool kept_stats; /* norms keep the statistics of the pretrained weights */
} stk_rate_facts;

/*
 * The default of the highest learning rate. Norms that keep their statistics hold no layer's
 * numbers in place, so that the rate must be low. From other pretrained weights it falls with the
 * square root of the number of updates: few updates have to move the weights far in each, many must
 * not move them away from what they know.
 */
double stk_recipe_rate(const stk_rate_facts *facts);

/* That of the head, which knows nothing at first. */
double stk_recipe_head_rate(const stk_rate_facts *facts);

/*
 * Epochs, of so many with so many updates each, in which only the head learns. A head of zeros
 * pulls the backbone nowhere useful before it has learned something, and a frozen epoch takes a
 * third of the time. In a long training that is soon made up for.
 */
int stk_recipe_freeze_epochs(const stk_recipe_row *row, double epochs, double epoch_updates);

/* Bounds of the images of an update that Stoker chooses; 0: no bound. */
typedef struct stk_batch_bounds {
    size_t least; /* fewer make norms noisy and bring nothing */
    size_t most;  /* more leave the training too few updates */
} stk_batch_bounds;

/* `images` is the number of pictures that a model will see in all. From scratch there are no
 * bounds beyond those that every batch has (budget/batch_choice.h). */
stk_batch_bounds stk_recipe_batch_bounds(bool pretrained, double images);

#endif
