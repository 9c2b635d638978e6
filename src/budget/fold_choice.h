/*
 * fold_choice.h - how many folds are trained, and for how many epochs, when not everything fits
 * into the budget. Pure arithmetic.
 *
 * Folds and epochs are compared by the accuracy that giving them up is expected to cost. An
 * ensemble of n models loses ENSEMBLE_POINTS / n points against an infinite one, since only the
 * errors that its members do not share average out. Every halving of the epochs loses EPOCH_POINTS.
 * So five folds soon become three, and three become one only when they would have less than half of
 * the epochs.
 */
#ifndef STK_BUDGET_FOLD_CHOICE_H
#define STK_BUDGET_FOLD_CHOICE_H

#include <stdbool.h>

/* Epochs to compare with when none were asked for. */
#define STK_BUDGET_FAIR_EPOCHS 10

typedef struct stk_fold_facts {
    double elapsed_s;  /* since the start of the process */
    double budget_s;   /* NaN: none */
    int folds_wanted;  /* at least 1 */
    int folds_begun;   /* including the running one */
    int epochs_done;   /* of the running fold; 0 between folds */
    int epochs_wanted; /* of each fold; 0: as many as fit, compared with STK_BUDGET_FAIR_EPOCHS */
    int epochs_fair;  /* without epochs_wanted: epochs to compare with; 0: STK_BUDGET_FAIR_EPOCHS */
    bool between;     /* no fold is running */
    double epoch_s;   /* seconds of an epoch with its validation; NaN: not measured yet */
    double setup_s;   /* seconds from the beginning of a fold to its first step; 0: not known */
    double predict_s; /* seconds to predict the test set with one model; NaN: not known */
    bool timed;       /* predict_s was measured; false: it is an estimate from training steps */
} stk_fold_facts;

typedef struct stk_fold_choice {
    int folds;       /* to train in all, including those that were begun */
    int epochs;      /* of each remaining fold; at most all_epochs */
    int all_epochs;  /* epochs_wanted, or STK_BUDGET_FAIR_EPOCHS */
    double wanted_s; /* seconds from now on for everything that was wanted; NaN: not known */
    double left_s;   /* seconds left for training and all predictions but the last */
} stk_fold_choice;

/*
 * Chooses everything that was wanted when it fits into 95 % of the budget less the reserve, and
 * otherwise what loses the least accuracy. The number of folds falls from the wanted one to 5, 3,
 * 1, never below those that were begun. Between folds one more fold begins while there is time for
 * a quarter of its epochs.
 */
stk_fold_choice stk_budget_choose_folds(const stk_fold_facts *facts);

#endif
