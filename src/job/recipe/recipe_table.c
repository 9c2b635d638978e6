/*
 * recipe_table.c - the table of recipes, and the rates and batches that go with it.
 *
 * The numbers were measured on Caltech-101 and PlantDoc with held-out parts of their training
 * pictures; docs/recipes.md has the figures.
 */
#include "job/recipe/recipe_table.h"

#include <math.h>
#include <stddef.h>

#include "base/mem.h"

/* Rates from random weights, for LR_BATCH images an update. */
#define LR_BATCH 256.0
#define SCRATCH_SGD 0.5
#define SCRATCH_ADAMW 8e-3

/* Rates from pretrained weights whose norms keep their statistics, for KEPT_BATCH images an update.
 * SGD's is proportional to them. AdamW's for the head falls with the updates of the training, from
 * the most to that of the other layers. */
#define KEPT_BATCH 64.0
#define KEPT_SGD 6e-3
#define KEPT_ADAMW 3e-4
#define KEPT_HEAD_UPDATES 0.09 /* divided by the updates */
#define KEPT_HEAD_MOST 3e-3

/* Rates from other pretrained weights for at most FEW_UPDATES updates, and the lowest for many.
 * SGD's is for TUNE_BATCH images an update and proportional to them. */
#define FEW_UPDATES 60.0
#define TUNE_BATCH 64.0
#define TUNE_SGD 0.1
#define TUNE_SGD_LEAST 0.015
#define TUNE_ADAMW 2e-3
#define TUNE_ADAMW_LEAST 3e-4

/* Batches from pretrained weights: MIDDLE_BATCH images leave at least FEW_UPDATES updates, and
 * MOST_BATCH images WANTED_UPDATES. From MANY_IMAGES on larger batches leave updates enough. */
#define WANTED_UPDATES 500.0
#define LEAST_BATCH 16
#define MIDDLE_BATCH 32
#define MOST_BATCH 64
#define MANY_IMAGES 256000.0

/* A head has learned something after so many updates. Trainings of so many epochs and updates need
 * no frozen epoch; of shorter ones it has at most a part. */
#define FREEZE_UPDATES 15.0
#define FREEZE_MOST_EPOCHS 18.0
#define FREEZE_MOST_UPDATES 1000.0
#define FREEZE_MOST_PART 0.5

/* Averaged weights need many updates: an average over a few is close to the first weights. */
#define LONG_PICTURES 32000.0

/* "plain" first; then the rows of each start, with rising least_epochs. */
static const stk_recipe_row rows[] = {
    {.name = "plain",
     .least_epochs = -1,
     .optimizer = STK_SGD,
     .crop_scale = 0.7,
     .sgd_decay = 5e-4,
     .adam_decay = 0.05},
    {.name = "touch",
     .pretrained = true,
     .least_epochs = 0,
     .optimizer = STK_ADAMW,
     .crop_scale = 0.6,
     .freezes = true,
     .keeps_stats = true,
     .label_smoothing = 0.1,
     .sgd_decay = 5e-4,
     .adam_decay = 0.05},
    {.name = "finetune",
     .pretrained = true,
     .least_epochs = 8,
     .optimizer = STK_ADAMW,
     .crop_scale = 0.35,
     .freezes = true,
     .keeps_stats = true,
     .label_smoothing = 0.1,
     .sgd_decay = 5e-4,
     .adam_decay = 0.05},
    {.name = "finetune-long",
     .pretrained = true,
     .least_epochs = 20,
     .least_pictures = LONG_PICTURES,
     .optimizer = STK_ADAMW,
     .crop_scale = 0.35,
     .keeps_stats = true,
     .label_smoothing = 0.1,
     .ema = 0.998,
     .sgd_decay = 5e-4,
     .adam_decay = 0.05},
    {.name = "scratch",
     .least_epochs = 0,
     .optimizer = STK_SGD,
     .crop_scale = 0.7,
     .sgd_decay = 5e-4,
     .adam_decay = 0.05},
    {.name = "scratch-long",
     .least_epochs = 40,
     .optimizer = STK_SGD,
     .crop_scale = 0.7,
     .mixup = 0.2,
     .sgd_decay = 1e-3,
     .adam_decay = 0.05},
};

const stk_recipe_row *stk_recipe_row_choose(int choice, bool pretrained, double epochs,
                                            double pictures) {
    const stk_recipe_row *row = NULL;
    for (size_t i = 0; choice == 0 && i < STK_COUNT(rows); i++) {
        if (rows[i].least_epochs >= 0 && rows[i].pretrained == pretrained &&
            (row == NULL ||
             (epochs >= rows[i].least_epochs && pictures >= rows[i].least_pictures))) {
            row = &rows[i];
        }
    }
    return choice == 0 ? row : &rows[choice - 1];
}

/* AdamW's steps do not grow with the gradients: only batches above the usual take more. */
static double adamw_batch_factor(double images, double usual) {
    return sqrt(fmax(images / usual, 1));
}

double stk_recipe_rate(const stk_rate_facts *f) {
    bool sgd = f->optimizer == STK_SGD;
    if (f->kept_stats) {
        return sgd ? KEPT_SGD * f->images / KEPT_BATCH
                   : KEPT_ADAMW * adamw_batch_factor(f->images, KEPT_BATCH);
    }
    if (!f->pretrained) {
        return (sgd ? SCRATCH_SGD : SCRATCH_ADAMW) * f->images / LR_BATCH;
    }
    double fall = sqrt(fmin(FEW_UPDATES / fmax(f->updates, 1), 1));
    if (sgd) {
        return fmax(TUNE_SGD * fall, TUNE_SGD_LEAST) * f->images / TUNE_BATCH;
    }
    return fmax(TUNE_ADAMW * fall, TUNE_ADAMW_LEAST) * adamw_batch_factor(f->images, TUNE_BATCH);
}

double stk_recipe_head_rate(const stk_rate_facts *f) {
    if (!f->kept_stats || f->optimizer == STK_SGD) {
        return stk_recipe_rate(f);
    }
    double rate = fmax(KEPT_HEAD_UPDATES / fmax(f->updates, 1), KEPT_ADAMW);
    return fmin(rate, KEPT_HEAD_MOST) * adamw_batch_factor(f->images, KEPT_BATCH);
}

int stk_recipe_freeze_epochs(const stk_recipe_row *row, double epochs, double epoch_updates) {
    bool is_long = epochs >= FREEZE_MOST_EPOCHS && epochs * epoch_updates >= FREEZE_MOST_UPDATES;
    if (!row->freezes || is_long) {
        return 0;
    }
    double wanted = ceil(FREEZE_UPDATES / fmax(epoch_updates, 1));
    return (int)fmin(wanted, fmax(round(FREEZE_MOST_PART * epochs), 1));
}

stk_batch_bounds stk_recipe_batch_bounds(bool pretrained, double images) {
    if (!pretrained || images >= MANY_IMAGES) {
        return (stk_batch_bounds){0};
    }
    size_t batch = images < FEW_UPDATES * MIDDLE_BATCH    ? LEAST_BATCH
                   : images < WANTED_UPDATES * MOST_BATCH ? MIDDLE_BATCH
                                                          : MOST_BATCH;
    return (stk_batch_bounds){.least = batch, .most = batch};
}
