/* fold_choice.c - weighs folds against epochs. */
#include "budget/fold_choice.h"

#include <math.h>
#include <stddef.h>

#include "budget/budget.h"

#define ENSEMBLE_POINTS 1.5
#define EPOCH_POINTS 1.0

/* Share of the wanted epochs: a fold that would get less is not begun. */
#define LEAST_PART 0.25

/* Share kept for the unforeseen, beside the reserve. */
#define SLACK_SHARE 0.05

static int yardstick(const stk_fold_facts *f) {
    return f->epochs_wanted > 0 ? f->epochs_wanted
           : f->epochs_fair > 0 ? f->epochs_fair
                                : STK_BUDGET_FAIR_EPOCHS;
}

static int folds_to_come(const stk_fold_facts *f, int folds) {
    return folds - f->folds_begun;
}

/* Seconds beside training: beginning the folds to come, and predicting with all models except the
 * last, which the reserve is for. */
static double around_s(const stk_fold_facts *f, int folds) {
    int models = folds_to_come(f, folds) - (f->between ? 1 : 0);
    double predictions_s = isnan(f->predict_s) || models <= 0 ? 0 : models * f->predict_s;
    return predictions_s + folds_to_come(f, folds) * f->setup_s;
}

static double training_s(const stk_fold_facts *f, int folds, int epochs) {
    int running = f->between || epochs < f->epochs_done ? 0 : epochs - f->epochs_done;
    return ((double)folds_to_come(f, folds) * epochs + running) * f->epoch_s;
}

/* Folds that have training left, the running one included. */
static int folds_to_train(const stk_fold_facts *f, int folds) {
    return folds_to_come(f, folds) + (f->between ? 0 : 1);
}

/* The most epochs of each fold that fit, at most the wanted; below 1: none fits. */
static double epochs_that_fit(const stk_fold_facts *f, int folds, double left_s) {
    int training = folds_to_train(f, folds);
    double all = (left_s - around_s(f, folds)) / f->epoch_s;
    double epochs = training > 0 ? (all + f->epochs_done) / training : yardstick(f);
    if (epochs < f->epochs_done && folds_to_come(f, folds) > 0) {
        epochs = all / folds_to_come(f, folds); /* the running fold has had its share */
    }
    return fmin(epochs, yardstick(f));
}

/* Accuracy lost against everything that was wanted; folds that are done count as fully trained. */
static double points_lost(const stk_fold_facts *f, int folds, double epochs) {
    double part = (double)folds_to_train(f, folds) / folds;
    return ENSEMBLE_POINTS / folds + EPOCH_POINTS * part * log2(yardstick(f) / epochs);
}

/* Uses spare time for one more fold, if the fold gets enough epochs. */
static stk_fold_choice another_fold(const stk_fold_facts *f, stk_fold_choice choice) {
    int more = f->folds_begun + 1;
    bool over = f->between && f->folds_begun > 0 && choice.folds == f->folds_begun;
    double epochs = over ? floor(epochs_that_fit(f, more, choice.left_s)) : 0;
    if (over && more <= f->folds_wanted && epochs >= LEAST_PART * yardstick(f) && epochs >= 1) {
        choice.folds = more;
        choice.epochs = (int)epochs;
    }
    return choice;
}

stk_fold_choice stk_budget_choose_folds(const stk_fold_facts *f) {
    int wanted = yardstick(f);
    stk_fold_choice choice = {
        .folds = f->folds_wanted, .epochs = wanted, .all_epochs = wanted, .left_s = NAN};
    choice.wanted_s = training_s(f, f->folds_wanted, wanted) + around_s(f, f->folds_wanted);
    if (isnan(f->budget_s)) {
        return choice;
    }
    double kept =
        stk_budget_reserve_by(f->budget_s, f->predict_s, f->timed) + SLACK_SHARE * f->budget_s;
    choice.left_s = f->budget_s - f->elapsed_s - kept;
    if (isnan(f->epoch_s) || choice.wanted_s <= choice.left_s) {
        return choice;
    }
    int least = f->folds_begun > 0 ? f->folds_begun : 1;
    const int candidates[] = {f->folds_wanted, 5, 3, least};
    double best = INFINITY;
    choice.folds = least;
    choice.epochs = 1;
    for (size_t i = 0; i < sizeof candidates / sizeof candidates[0]; i++) {
        double epochs = floor(epochs_that_fit(f, candidates[i], choice.left_s));
        if (candidates[i] >= least && candidates[i] <= f->folds_wanted && epochs >= 1 &&
            points_lost(f, candidates[i], epochs) < best) {
            best = points_lost(f, candidates[i], epochs);
            choice.folds = candidates[i];
            choice.epochs = (int)epochs;
        }
    }
    return another_fold(f, choice);
}
