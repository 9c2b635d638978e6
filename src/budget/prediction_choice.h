/*
 * prediction_choice.h - how many views and models there is time to predict with, and whether to
 * predict once before training ends.
 *
 * Every model predicts all rows, in one or more views of each picture (--tta). When time is short,
 * views are given up first, since a view adds less than a model, and then models. Pure arithmetic.
 */
#ifndef STK_BUDGET_PREDICTION_CHOICE_H
#define STK_BUDGET_PREDICTION_CHOICE_H

#include <stdbool.h>
#include <stdint.h>

typedef struct stk_prediction_facts {
    double left_s;    /* seconds until only writing is left; INFINITY: no deadline */
    int64_t rows;     /* pictures to predict */
    double picture_s; /* seconds per picture in one view; NaN: not measured */
    double model_s;   /* seconds to load and compile one model; NaN: not measured */
    int models;       /* models that have not begun */
    int views;        /* views of each picture that are wanted, at least 1 */
    int views_done;   /* views that the running model has finished; 0: no model is running */
} stk_prediction_facts;

typedef struct stk_prediction_choice {
    int views;  /* of the running model and each after it, at least 1 */
    int models; /* models not begun yet that can predict every row in time */
} stk_prediction_choice;

/* Before anything was measured the choice is everything that is wanted. */
stk_prediction_choice stk_prediction_choose(const stk_prediction_facts *facts);

/*
 * Views where their number is left to Stoker: the picture and its mirror image if training mirrors
 * pictures and a view of all predictions of the run takes at most 5 % of `all`, else the picture
 * alone. Both are seconds, or anything else that both are counted in; `all` is what the run has for
 * everything. 1 if one of them is NaN.
 */
int stk_views_choose(bool mirrors, double view, double all);

typedef struct stk_view_facts {
    double budget_s; /* NaN: none */
    double view_s;   /* seconds in which one model predicts the test set in one view; NaN: not
                        measured */
    double all_s;    /* seconds of one view of all predictions of the run; NaN: not measured */
    int views;       /* that are wanted, at least 1 */
    int least_views; /* that were asked for: those beyond are kept only while they cost as little
                        as stk_views_choose() demands */
} stk_view_facts;

/*
 * Views of each test picture that a training keeps time for: as many as are wanted while their
 * reserve is at most 15 % of the budget, since every view takes time from training; at least one.
 * All of them without a budget, and one before anything was measured.
 */
int stk_views_in_reserve(const stk_view_facts *facts);

/* What is known when a training has new best weights. A time that is not known is NaN. */
typedef struct stk_early_facts {
    double budget_s; /* NaN: none */
    double elapsed_s;
    double predict_s; /* to predict the test set in one view with these weights */
    double until_s;   /* until training ends as planned, and the model predicts anyway */
} stk_early_facts;

/*
 * Seconds that an early prediction with these weights may take; 0: none is made. It is for a
 * machine that becomes so slow, or a run that is ended so suddenly, that no later prediction comes
 * in time.
 */
double stk_early_prediction_s(const stk_early_facts *facts);

#endif
