/* prediction_choice.c - gives up views first, then models. */
#include "budget/prediction_choice.h"

#include <math.h>

#include "budget/budget.h"

/* Later passes may be somewhat slower than the one that was measured. */
#define MARGIN 1.1

/* Share of the budget that views may take, with what is kept beyond the need. */
#define VIEWS_SHARE 0.15

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

int stk_views_in_reserve(double budget_s, double predict_s, int views) {
    if (isnan(budget_s)) {
        return views;
    }
    double most_s = fmax(VIEWS_SHARE * budget_s, stk_budget_reserve(budget_s, 0));
    int fit = 1;
    while (fit < views && stk_budget_reserve(budget_s, (fit + 1) * predict_s) <= most_s) {
        fit++;
    }
    return isnan(predict_s) ? 1 : fit;
}
