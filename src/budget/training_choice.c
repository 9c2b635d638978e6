/* training_choice.c - size of pictures and number of models from the epochs that fit. */
#include "budget/training_choice.h"

#include <math.h>

#include "budget/budget.h"

/* A second model pays where both get so many epochs, and a further one where all do. More than
 * FEW_REFITS gain little: they take the time of fine-tuning that would only overfit. */
#define TUNE_MODEL_EPOCHS 15.0
#define TUNE_MANY_EPOCHS 60.0
#define SCRATCH_SECOND_EPOCHS 60.0
#define SCRATCH_FURTHER_EPOCHS 100.0
#define FEW_REFITS 5
#define MOST_REFITS 11

/* One model is validated with this share of the pictures, if it is as many. */
#define SMALL_VAL_PART 0.1
#define SMALL_VAL_LEAST 30.0

/* From so many epochs at the usual size on, pictures become larger: two models get enough of them.
 * Stored pictures that are smaller than the usual size have no more detail to show. */
#define GROW_EPOCHS 90.0
#define GROW_PART (9.0 / 7.0)

/*
 * Pictures become smaller, by SIZE_STEP pixels at a time, while a training would see fewer than
 * these epochs or pictures, whichever is less; from scratch it also needs a least number of
 * pictures, however few there are. Up to SMALL_SIZE pixels detail is lost quickly: then a part of
 * these is enough to stay. Smaller than the least size they never become by themselves.
 */
#define SIZE_STEP 32
#define LEAST_GAIN 1.05 /* in speed: less is not worth the detail */
#define SMALL_SIZE 128
#define TUNE_LEAST_SIZE 96
#define SCRATCH_LEAST_SIZE 64
#define TUNE_WANTED_EPOCHS 4.0
#define TUNE_WANTED_PICTURES 15000.0
#define SCRATCH_WANTED_EPOCHS 10.0
#define SCRATCH_WANTED_PICTURES 100000.0
#define SCRATCH_LEAST_PICTURES 30000.0
#define SMALL_PART (1.0 / 3) /* of all of these, at SMALL_SIZE and below */

/* Windows of native pixels become smaller only where there is time for fewer epochs or pictures
 * than these, and not below this size: what is hidden in a whole picture is hard to learn from a
 * part of it, and four times as many epochs do not make up for that. */
#define WINDOW_LEAST_SIZE 128
#define WINDOW_WANTED_EPOCHS 2.0
#define WINDOW_WANTED_PICTURES 3000.0

/* A training from scratch that has time for so many epochs and pictures begins with pictures of
 * half the size, unless they are hardly faster or too small. With less time the second half would
 * be too short to get used to the other size, and worse than none. */
#define EARLY_LEAST_EPOCHS 3.0
#define EARLY_LEAST_PICTURES 20000.0
#define EARLY_MOST_EPOCHS 30.0
#define EARLY_UNIT 16
#define EARLY_LEAST_SIZE 64
#define EARLY_LEAST_GAIN 2.0
#define EARLY_MOST_PREDICTION 0.2 /* share of the time: with more the second half has none left */

/* Seconds of a training picture at another size: computing follows the number of pixels. */
static double picture_s_at(const stk_training_facts *f, int size) {
    double scale = (double)size / f->img_size;
    return fmax((f->picture_s - f->loader_s) * scale * scale, 0) + f->loader_s;
}

/* Seconds that a model takes to predict the test set at another size. */
static double predict_s_at(const stk_training_facts *f, int size) {
    return f->predict_s * picture_s_at(f, size) / f->picture_s;
}

/* Epochs over all pictures that fit at this size, beside the predictions of so many models. */
static double epochs_at(const stk_training_facts *f, int size, int models) {
    double all_s = picture_s_at(f, size) * (double)f->pictures;
    return fmax(f->left_s - models * predict_s_at(f, size), 0) / all_s;
}

/* The size for the first half; 0: none is worth it. */
static int early_size_of(const stk_training_facts *f, int size) {
    int early = size / 2 / EARLY_UNIT * EARLY_UNIT;
    bool faster = picture_s_at(f, early) * EARLY_LEAST_GAIN < picture_s_at(f, size);
    double epochs = epochs_at(f, size, 1);
    bool wanted = f->may_begin_small && !f->pretrained && f->epochs == 0 &&
                  epochs >= EARLY_LEAST_EPOCHS && epochs < EARLY_MOST_EPOCHS &&
                  epochs * (double)f->pictures >= EARLY_LEAST_PICTURES &&
                  !(f->predict_s > EARLY_MOST_PREDICTION * f->left_s);
    return wanted && faster && early >= EARLY_LEAST_SIZE ? early : 0;
}

/* Times as many epochs as the same time gives without small pictures in its first half. */
static double early_gain(const stk_training_facts *f, int size) {
    int early = early_size_of(f, size);
    return early > 0 ? (1 + picture_s_at(f, size) / picture_s_at(f, early)) / 2 : 1;
}

static bool is_enough(const stk_training_facts *f, int size, double epochs) {
    double part = size <= SMALL_SIZE ? SMALL_PART : 1;
    double wanted = f->pretrained ? TUNE_WANTED_EPOCHS : SCRATCH_WANTED_EPOCHS;
    double pictures = f->pretrained ? TUNE_WANTED_PICTURES : SCRATCH_WANTED_PICTURES;
    double least = f->pretrained || f->epochs > 0 ? 0 : SCRATCH_LEAST_PICTURES;
    double seen = epochs * (double)f->pictures;
    if (f->windows) {
        return epochs >= WINDOW_WANTED_EPOCHS || seen >= WINDOW_WANTED_PICTURES;
    }
    wanted = f->epochs > 0 ? fmin(wanted, f->epochs) : wanted;
    return (epochs >= part * wanted && seen >= part * least) || seen >= part * pictures;
}

static int choose_size(const stk_training_facts *f) {
    int least = f->windows      ? WINDOW_LEAST_SIZE
                : f->pretrained ? TUNE_LEAST_SIZE
                                : SCRATCH_LEAST_SIZE;
    int size = f->img_size;
    while (f->may_shrink && !is_enough(f, size, early_gain(f, size) * epochs_at(f, size, 1))) {
        int smaller = (size - SIZE_STEP / 2) / SIZE_STEP * SIZE_STEP; /* 224 after 260, not 256 */
        bool helps = picture_s_at(f, smaller) * LEAST_GAIN < picture_s_at(f, size);
        if (smaller < least || !helps) {
            break;
        }
        size = smaller;
    }
    return size;
}

/* The size once it need not become smaller. */
static int grow(const stk_training_facts *f, int size) {
    int larger = (int)(GROW_PART * size) / SIZE_STEP * SIZE_STEP;
    bool wanted = f->may_grow && f->pretrained && f->epochs == 0 && f->folds == 1 &&
                  size == f->img_size && f->source_px >= size; /* false for NaN */
    return wanted && epochs_at(f, size, 1) >= GROW_EPOCHS ? larger : size;
}

/* The epochs that every model must get for so many refits. */
static double least_epochs(const stk_training_facts *f, int refits) {
    if (f->epochs > 0) {
        return f->epochs;
    }
    if (f->pretrained) {
        return refits > FEW_REFITS ? TUNE_MANY_EPOCHS : TUNE_MODEL_EPOCHS;
    }
    return refits > 1 ? SCRATCH_FURTHER_EPOCHS : SCRATCH_SECOND_EPOCHS;
}

/* Refits beside the first model while each one gets enough epochs. */
static int choose_refits(const stk_training_facts *f, const stk_training_choice *c) {
    int most = f->pretrained && f->epochs == 0 ? MOST_REFITS : FEW_REFITS;
    int refits = 0;
    bool fits = true;
    while (fits && refits < most) {
        double models = refits + 2 - c->val_part; /* in epochs over all pictures */
        fits = epochs_at(f, c->img_size, refits + 2) >= least_epochs(f, refits + 1) * models;
        refits += fits;
    }
    return refits;
}

static double choose_val_part(const stk_training_facts *f) {
    bool enough = SMALL_VAL_PART * (double)f->pictures >= SMALL_VAL_LEAST;
    return f->may_hold_less && f->folds == 1 && enough ? fmin(f->val_part, SMALL_VAL_PART)
                                                       : f->val_part;
}

stk_training_choice stk_training_choose(const stk_training_facts *f) {
    stk_training_choice c = {.img_size = f->img_size,
                             .val_part = f->val_part,
                             .epochs = f->epochs > 0 ? f->epochs : STK_BUDGET_DEFAULT_EPOCHS,
                             .picture_s = NAN,
                             .predict_s = NAN};
    if (isnan(f->left_s)) { /* fine-tuning is short: a second model on everything is worth it */
        c.refits = f->refits >= 0 ? f->refits : f->pretrained && f->folds == 1 && f->val_part > 0;
        c.epochs_full = c.epochs;
        return c;
    }
    if (isnan(f->picture_s)) {
        c.refits = f->refits >= 0 ? f->refits : 0;
        return c;
    }
    c.epochs_full = epochs_at(f, f->img_size, 1);
    c.img_size = grow(f, choose_size(f));
    c.picture_s = picture_s_at(f, c.img_size);
    c.predict_s = predict_s_at(f, c.img_size);
    c.val_part = choose_val_part(f);
    bool may_refit = f->folds == 1 && f->val_part > 0;
    c.refits = f->refits >= 0 ? f->refits : may_refit ? choose_refits(f, &c) : 0;
    double models = f->folds * (1 - c.val_part) + c.refits; /* in epochs over all pictures */
    double epochs = epochs_at(f, c.img_size, f->folds + c.refits) / models;
    if (f->folds + c.refits == 1) {
        c.early_size = early_size_of(f, c.img_size);
        epochs *= early_gain(f, c.img_size);
    }
    c.epochs = f->epochs > 0 ? fmin(f->epochs, epochs) : fmin(epochs, STK_BUDGET_MOST_EPOCHS);
    return c;
}
