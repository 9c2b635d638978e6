/* prediction_choice.c - gives up views first, then models; limits an early prediction. */
#include "budget/prediction_choice.h"

#include <math.h>
#include <stdbool.h>

#include "budget/budget.h"

/* Later passes may be somewhat slower than the one that was measured. */
#define MARGIN 1.1

/* Share of the budget that views may take, with what is kept beyond the need. */
#define VIEWS_SHARE 0.15

/* Share of what a run has that the mirror image may take where nobody asked for it. It gains about
 * a point of accuracy (docs/recipes.md), and a training that is so little shorter loses less. */
#define MIRROR_SHARE 0.05
#define MIRRORED_VIEWS 2

/* Early prediction, in shares of the budget. */
#define EARLY_FROM 0.4 /* elapsed: the first of two epochs ends a little later */
#define EARLY_LEFT 0.1 /* least that is still trained: otherwise the model soon predicts anyway */
#define EARLY_EXPECTED 0.03 /* most that it may be expected to take */
#define EARLY_MOST 0.05     /* and most that it may take */

stk_prediction_choice stk_prediction_choose(const stk_prediction_facts *f) {
    stk_prediction_choice choice = {.views = f->views, .models = f->models};
    double pass_s = MARGIN * (double)f->rows * f->picture_s;
    double model_s = isnan(f->model_s) ? 0 : MARGIN * f->model_s;
    if (isnan(pass_s)) {
        return choice;
    }
    int least = f->views_done > 1 ? f->views_done : 1;
    for (choice.views = f->views > least ? f->views : least; choice.views > least; choice.views--) {
        int running = f->views_done > 0 ? choice.views - f->views_done : 0; /* passes */
        if (running * pass_s + f->models * (model_s + choice.views * pass_s) <= f->left_s) {
            break;
        }
    }
    double each_s = model_s + choice.views * pass_s;
    double fit = each_s > 0 ? floor(f->left_s / each_s) : f->models;
    choice.models = (int)fmax(fmin(fit, f->models), 0);
    return choice;
}

int stk_views_choose(bool mirrors, double view, double all) {
    return mirrors && view <= MIRROR_SHARE * all ? MIRRORED_VIEWS : 1;
}

int stk_views_in_reserve(const stk_view_facts *f) {
    if (isnan(f->budget_s)) {
        return f->views;
    }
    double most_s = fmax(VIEWS_SHARE * f->budget_s, stk_budget_reserve(f->budget_s, 0));
    int cheap = stk_views_choose(true, f->all_s, f->budget_s);
    int most = f->least_views > cheap ? f->least_views : cheap;
    most = f->views < most ? f->views : most;
    int fit = 1;
    while (fit < most && stk_budget_reserve(f->budget_s, (fit + 1) * f->view_s) <= most_s) {
        fit++;
    }
    return isnan(f->view_s) ? 1 : fit;
}

double stk_early_prediction_s(const stk_early_facts *f) {
    /* A comparison with NaN is false: what is not known prevents it. */
    bool early = f->elapsed_s >= EARLY_FROM * f->budget_s && f->until_s >= EARLY_LEFT * f->budget_s;
    return early && f->predict_s <= EARLY_EXPECTED * f->budget_s ? EARLY_MOST * f->budget_s : 0;
}
