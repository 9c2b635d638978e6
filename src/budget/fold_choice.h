/*
 * fold_choice.h - how many folds are trained, and for how long, when not all of what was asked for
 * fits into the budget. Pure arithmetic, as all of this room.
 *
 * What is given up is weighed in points of accuracy that are expected to be lost. An ensemble of n
 * models loses ENSEMBLE_POINTS / n against an infinite one, since only what its members do not have
 * in common averages out; every halving of the epochs loses EPOCH_POINTS. So five folds become
 * three soon, and one only when three would have to be trained for less than half as long.
 */
#ifndef STK_BUDGET_FOLD_CHOICE_H
#define STK_BUDGET_FOLD_CHOICE_H

#include <stdbool.h>

/* Where nobody said how many epochs, these are not few. */
#define STK_BUDGET_FAIR_EPOCHS 10

typedef struct stk_fold_facts {
    double elapsed_s;  /* since the start of the process */
    double budget_s;   /* NaN: none */
    int folds_wanted;  /* at least 1 */
    int folds_begun;   /* with the running one */
    int epochs_done;   /* of the running one; 0 between folds */
    int epochs_wanted; /* of each; 0: as many as fit, and STK_BUDGET_FAIR_EPOCHS are compared with
                        */
    bool between;      /* no fold is running: all that were begun are done */
    double epoch_s;    /* of one epoch with its validation; NaN: not measured yet */
    double predict_s;  /* for predicting the test set with one model; NaN: not known */
} stk_fold_facts;

typedef struct stk_fold_choice {
    int folds;       /* to train in all, those that were begun included */
    int epochs;      /* of each fold that there is time for; at most all_epochs */
    int all_epochs;  /* the epochs that were wanted, or those that are compared */
    double wanted_s; /* from now on, for all of what was wanted; NaN when not known */
    double left_s;   /* from now on, for training and for all predictions but the last */
} stk_fold_choice;

/*
 * All of what was wanted when it fits into 80 % of the budget, or as much less as the reserve for
 * prediction needs; otherwise what loses least. Folds go 5, 3, 1, below the wanted number, and
 * never below what was begun; between folds one more follows while there is time for a quarter
 * of its epochs.
 */
stk_fold_choice stk_budget_choose_folds(const stk_fold_facts *facts);

#endif
