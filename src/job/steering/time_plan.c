/* time_plan.c - how many folds there is time for. */
#include "job/steering/time_plan.h"

#include <math.h>
#include <stdio.h>

#include "base/str.h"

#define FAIR_PART 0.8

/* Epochs that refits which Stoker chose were chosen for, less what a measurement may be off by; 0:
 * nothing was chosen. */
static int fair_epochs(const stk_recipe *recipe) {
    return stk_recipe_has_chosen(recipe) ? (int)fmax(FAIR_PART * recipe->epochs_expected, 1) : 0;
}

/* With --epochs the validated models come first: refits that nobody asked for take no time from
 * them, and each begins only if all its epochs fit. */
static bool refits_are_spare(const stk_recipe *recipe) {
    return recipe->epochs_wanted > 0 && stk_recipe_has_chosen(recipe);
}

stk_time_plan stk_time_plan_begin(const stk_recipe *recipe) {
    return (stk_time_plan){.total_steps = -1,
                           .folds =
                               refits_are_spare(recipe) ? recipe->folds : stk_recipe_models(recipe),
                           .views = recipe->views,
                           .epoch_s = NAN,
                           .predict_s = NAN};
}

void stk_time_plan_folds(stk_time_plan *time, const stk_recipe *recipe, stk_run_clock *clock,
                         const stk_events *events, int fold, int epochs_done) {
    bool between = epochs_done < 0;
    bool spare = refits_are_spare(recipe);
    int models = stk_recipe_models(recipe);
    int begun = fold + (between ? 0 : 1);
    if (stk_run_clock_stopping(clock)) {
        return; /* no further fold begins after a request to stop */
    }
    if (isnan(clock->budget_s)) {
        time->folds = models;
        return;
    }
    int first = begun > recipe->folds ? begun : recipe->folds; /* a refit that runs stays */
    stk_fold_facts facts = {.elapsed_s = stk_run_clock_elapsed(clock),
                            .budget_s = clock->budget_s,
                            .folds_wanted = spare && !between ? first : models,
                            .folds_begun = begun,
                            .epochs_done = between ? 0 : epochs_done,
                            .epochs_wanted = recipe->epochs_wanted,
                            .epochs_fair = fair_epochs(recipe),
                            .between = between,
                            .epoch_s = time->epoch_s,
                            .setup_s = time->setup_s,
                            .predict_s = time->predict_s,
                            .timed = time->timed};
    stk_fold_choice choice = stk_budget_choose_folds(&facts);
    /* Within a fold the number only falls: its time is not given to a fold that may not fit. */
    if (between && spare && stk_recipe_is_refit(recipe, fold) &&
        choice.epochs < recipe->epochs_wanted) {
        choice.folds = fold;
    }
    int folds = between || choice.folds < time->folds ? choice.folds : time->folds;
    if (folds != time->folds) {
        stk_time_plan_emit_folds(recipe, &choice, folds < time->folds, events);
    }
    time->folds = folds;
}

void stk_time_plan_emit_folds(const stk_recipe *recipe, const stk_fold_choice *choice, bool fewer,
                              const stk_events *events) {
    char what[64];
    char why[160];
    int models = stk_recipe_models(recipe);
    const char *word = recipe->refits > 0 ? "models" : "folds";
    snprintf(what, sizeof what, "%d of %d %s", choice->folds, models, word);
    if (fewer) {
        snprintf(why, sizeof why,
                 "%d %s of %d epochs need %s more and there are %s; with %d epoch%s each this "
                 "loses the least accuracy",
                 models, word, choice->all_epochs, stk_format_span(choice->wanted_s).text,
                 stk_format_span(choice->left_s).text, choice->epochs,
                 choice->epochs == 1 ? "" : "s");
    } else {
        snprintf(why, sizeof why, "%s are left over: time for %d epoch%s of each that follows",
                 stk_format_span(choice->left_s).text, choice->epochs,
                 choice->epochs == 1 ? "" : "s");
    }
    stk_events_decision(events, what, why);
}

void stk_time_plan_only(stk_time_plan *time, const stk_events *events, int fold) {
    char what[64];
    char why[160];
    if (time->folds <= fold + 1) {
        return;
    }
    snprintf(what, sizeof what, "%d model%s instead of %d", fold + 1, fold > 0 ? "s" : "",
             time->folds);
    snprintf(why, sizeof why, "beginning one takes %s, which is more than its share of the time",
             stk_format_span(time->setup_s).text);
    time->folds = fold + 1;
    stk_events_decision(events, what, why);
}
