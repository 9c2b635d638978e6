/* fitting.c - a rehearsal, then arithmetic, then the network that was chosen. */
#include "job/training/fitting.h"

#include <math.h>
#include <stdio.h>

#include "base/error.h"
#include "base/str.h"
#include "budget/inference.h"
#include "budget/prediction_choice.h"
#include "job/training/folds.h"
#include "job/training/rehearsal.h"
#include "predict/predict.h"

/* Shares of the time that is left: for a rehearsal, and for one whose steps are slow. */
#define REHEARSAL_SHARE 0.015
#define MOST_REHEARSAL_SHARE 0.05
#define REHEARSAL_MOST_S 2.0
#define REHEARSAL_STEPS 8
#define REHEARSAL_LEAST_STEPS 2
#define REHEARSAL_MOST_STEPS 100
#define REHEARSAL_HALT_SHARE 0.25 /* whatever was timed by then */

/* Share of the time that is left for training, once predictions are paid for: the rest is for
 * validations, files and what the rehearsal did not see. */
#define TRAINING_SHARE 0.85

/* A GPU compiles the network for validation in about this part of what training took. */
#define VALIDATION_COMPILE 0.4

/* Share of the time that compiling for one more size, or for the head alone, may take. */
#define MORE_COMPILE_SHARE 0.05

/* A GPU may have nothing on disk for another size, and compile for so many seconds. They must be
 * worth it: larger pictures need so much time. */
#define GROW_LEAST_S 45.0

/* Steps that wait for pictures for more than this share of their time are bound by them. */
#define WAITS 0.1

/* A model that gets fewer epochs is hardly trained: from pretrained weights, and from scratch. */
#define HOPELESS_TUNE 1.0
#define HOPELESS_SCRATCH 4.0
#define FAIR_PART 3.0 /* times as many are a fair number */

/* A rehearsal that finds no time or no memory measures nothing: training copes with either. */
static stk_status rehearse_first_fold(stk_job *job, double left_s, stk_rehearsal *rehearsal,
                                      stk_error *err) {
    stk_split split;
    stk_rehearsal_length length = {.enough_s = fmin(REHEARSAL_SHARE * left_s, REHEARSAL_MOST_S),
                                   .enough_steps = REHEARSAL_STEPS,
                                   .most_s =
                                       fmin(MOST_REHEARSAL_SHARE * left_s, 2 * REHEARSAL_MOST_S),
                                   .least_steps = REHEARSAL_LEAST_STEPS,
                                   .most_steps = REHEARSAL_MOST_STEPS,
                                   .halt_s = REHEARSAL_HALT_SHARE * left_s};
    stk_error why = {0};
    stk_status status = stk_fold_split(job->dataset, &job->recipe, 0, &split, NULL, err);
    if (status != STK_OK) {
        return status;
    }
    status = stk_job_rehearse(job, &split, &length, rehearsal, &why);
    stk_split_free(&split);
    if (status == STK_ERR_STOPPED || status == STK_ERR_MEMORY) {
        rehearsal->step_s = NAN;
        return STK_OK;
    }
    return status == STK_OK ? STK_OK : STK_FAIL(err, status, "%s", why.message);
}

/* Share of a training picture's time that predicting a picture takes. */
static double inference_part(const stk_job *job, const stk_training_facts *facts) {
    return facts->loader_s > 0 ? 1 : STK_INFERENCE_PART * stk_recipe_eval_pixels(&job->recipe);
}

/* What is known after a rehearsal; left_s are the seconds that are left now. */
static stk_training_facts facts_after(const stk_job *job, const stk_rehearsal *rehearsal,
                                      double left_s) {
    stk_training_facts facts = stk_recipe_training_facts(&job->recipe, job->options, job->dataset);
    facts.picture_s = rehearsal->step_s / (double)rehearsal->batch;
    facts.loader_s = rehearsal->wait_fraction > WAITS ? facts.picture_s : 0;
    facts.predict_s = inference_part(job, &facts) * facts.picture_s *
                      (double)job->dataset->test.count * job->recipe.views;
    facts.left_s = fmax(TRAINING_SHARE * left_s, 0);
    facts.source_px = rehearsal->source_px;
    return facts;
}

/*
 * Gives up folds for which there is no time before any is trained, and chooses again for those that
 * remain; *models becomes their number, refits that were asked for included.
 */
static void choose_folds(const stk_job *job, double budget_s, stk_training_facts *facts,
                         stk_training_choice *choice, int *models) {
    int refits = choice->refits;
    *models = facts->folds + refits;
    if (facts->folds < 2 || isnan(facts->picture_s)) {
        return;
    }
    double val = (double)facts->pictures / facts->folds;
    double epoch = (double)facts->pictures - val + inference_part(job, facts) * val;
    stk_fold_facts folds = {.elapsed_s = stk_run_clock_elapsed(&job->clock),
                            .budget_s = budget_s,
                            .folds_wanted = *models,
                            .between = true,
                            .epoch_s = choice->picture_s * epoch,
                            .predict_s = choice->predict_s};
    stk_fold_choice fewer = stk_budget_choose_folds(&folds);
    if (fewer.folds >= *models) {
        return;
    }
    *models = fewer.folds;
    stk_time_plan_emit_folds(&job->recipe, &fewer, true, &job->events);
    facts->refits = *models > facts->folds ? *models - facts->folds : 0;
    facts->folds = *models - facts->refits;
    facts->may_hold_less = facts->may_grow = facts->may_begin_small = false; /* still folds */
    *choice = stk_training_choose(facts);
    choice->refits = refits;
}

/*
 * Chooses the views where the number was left to Stoker: `choice` was made for one view. With two
 * of them there is less time for training, and the choice is made again. If the pictures would have
 * to be smaller for it, there is one view.
 */
static stk_status choose_views(stk_job *job, double budget_s, stk_training_facts *facts,
                               stk_training_choice *choice, stk_error *err) {
    const stk_view_options *given = stk_options_values(job->options, &stk_view_option_table);
    if (!stk_is_auto_int(given->tta)) {
        return STK_OK;
    }
    size_t predicted = stk_recipe_predicted(&job->recipe, choice->refits);
    double view_s = inference_part(job, facts) * choice->picture_s * (double)predicted;
    int views = stk_views_choose(job->recipe.augment.flip, view_s, budget_s);
    stk_training_facts more = *facts;
    more.predict_s *= views;
    stk_training_choice other = stk_training_choose(&more);
    if (other.img_size == choice->img_size) {
        *facts = more;
        *choice = other;
    } else {
        views = 1;
    }
    return stk_recipe_take_views(&job->recipe, job->options, views, err);
}

/* Takes the best model for which there is time; the facts become its own. */
static stk_status choose_model(stk_job *job, const stk_rehearsal *rehearsal,
                               stk_training_facts *facts, stk_error *err) {
    stk_model_search *models = &job->models;
    bool on_cpu = stk_opened_device_is_cpu(&job->network.opened);
    size_t measured = models->chosen;
    if (!stk_model_search_is_open(models)) {
        return STK_OK;
    }
    double waits = rehearsal->wait_fraction > 0 ? rehearsal->wait_fraction : 0; /* may be NaN */
    double compute_s = facts->picture_s * (1 - fmin(waits, 1));
    stk_model_choice choice =
        stk_model_choose(models->offers, models->count, on_cpu, measured, compute_s, facts);
    models->chosen = choice.index;
    *facts = stk_model_estimate(&models->offers[choice.index], &models->offers[measured], on_cpu,
                                compute_s, facts);
    stk_model_search_emit(models, &choice, on_cpu, &job->events);
    return choice.index != measured ? stk_recipe_take_model(&job->recipe, job->options,
                                                            &models->candidates[choice.index], err)
                                    : STK_OK;
}

/* Builds the network that was chosen. Of several models the weights are found now. `may_compile`:
 * there is time to compile for the head alone. */
static stk_status build_chosen(stk_job *job, const stk_training_choice *choice, bool may_compile,
                               size_t *train, size_t *val, stk_error *err) {
    stk_status status = stk_recipe_take_choice(&job->recipe, job->options, choice, err);
    STK_THEN(status, stk_job_plan_network(job, train, val, err));
    if (status == STK_OK && stk_model_search_is_open(&job->models)) {
        status = stk_network_find_pretrained(&job->network, &job->recipe, job->options,
                                             job->dataset->class_count, "", &job->events, err);
    }
    job->recipe.may_freeze = job->network.head_anew && may_compile;
    return status == STK_OK ? stk_recipe_choose_freeze(&job->recipe, job->options, *train, err)
                            : status;
}

typedef struct time_text {
    char text[96];
} time_text;

/* `is_least`: steps may take longer. */
static time_text time_for(double epochs, bool is_least) {
    time_text result;
    if (epochs > 0) {
        snprintf(result.text, sizeof result.text, "there is time for %s%s",
                 is_least ? "at most " : "", stk_format_amount(epochs, 2, "epoch").text);
    } else {
        snprintf(result.text, sizeof result.text, "predicting alone takes the time");
    }
    return result;
}

static void emit_size(const stk_job *job, const stk_training_facts *facts,
                      const stk_training_choice *choice, bool is_least) {
    char what[96];
    char why[240];
    if (choice->img_size != facts->img_size) {
        snprintf(what, sizeof what, "img-size %d instead of %d", choice->img_size, facts->img_size);
        if (choice->img_size < facts->img_size) {
            snprintf(why, sizeof why, "at %d px %s, at %d px %s", facts->img_size,
                     time_for(choice->epochs_full, is_least).text, choice->img_size,
                     time_for(choice->epochs, is_least).text);
        } else {
            snprintf(why, sizeof why,
                     "there is time for %.0f epochs at %d px, and the pictures have the detail",
                     choice->epochs_full, facts->img_size);
        }
        stk_events_decision(&job->events, what, why);
    }
    if (choice->early_size > 0) {
        snprintf(what, sizeof what, "pictures of %d px in the first half of the time",
                 choice->early_size);
        snprintf(why, sizeof why, "from scratch many steps count first: about %s instead of %.2g",
                 stk_format_amount(choice->epochs, 2, "epoch").text, choice->epochs_full);
        stk_events_decision(&job->events, what, why);
    }
}

/* "1 validated model and 2 refits of about 24 epochs". */
static void emit_models(const stk_job *job, const stk_training_facts *facts,
                        const stk_training_choice *choice, size_t train) {
    char refits[64] = "";
    char what[128];
    char why[200];
    if (facts->folds + choice->refits < 2 || isnan(facts->picture_s)) {
        return;
    }
    if (choice->refits > 0) {
        snprintf(refits, sizeof refits, " and %d refit%s on all pictures", choice->refits,
                 choice->refits == 1 ? "" : "s");
    }
    snprintf(what, sizeof what, "%d %s%s, about %.0f epochs each", facts->folds,
             facts->folds > 1 ? "folds" : "validated model", refits, choice->epochs);
    snprintf(why, sizeof why, "one model alone would get %.0f epochs over all %zu pictures",
             facts->left_s / (choice->picture_s * (double)facts->pictures), facts->pictures);
    stk_events_decision(&job->events, what, why);
    /* Observers count models from the first step on. */
    int models = facts->folds + choice->refits;
    stk_event_plan plan = {.epochs = (int)fmax(floor(choice->epochs), 1),
                           .steps_per_epoch = (int64_t)(train / job->recipe.batch),
                           .seconds_per_epoch = facts->left_s / (models * choice->epochs),
                           .total_s = facts->left_s / models,
                           .left_s = stk_run_clock_left(&job->clock),
                           .reserve_s = NAN,
                           .folds = facts->folds,
                           .refits = choice->refits};
    stk_events_plan(&job->events, &plan);
}

static void emit_val_part(const stk_job *job, const stk_training_facts *facts,
                          const stk_training_choice *choice) {
    char what[64];
    if (choice->val_part < facts->val_part) {
        snprintf(what, sizeof what, "%.0f %% of the pictures validate", 100 * choice->val_part);
        stk_events_decision(&job->events, what, "the model that is validated does not see them");
    }
}

/* `is_least`: steps may take longer. */
static void warn_hopeless(const stk_job *job, const stk_training_facts *facts,
                          const stk_training_choice *choice, bool is_least) {
    double least = facts->pretrained ? HOPELESS_TUNE : HOPELESS_SCRATCH;
    double wanted = FAIR_PART * least;
    char faster[64] = "";
    char over[64] = "";
    if (choice->epochs >= least) {
        return;
    }
    if (isnan(facts->picture_s)) {
        stk_events_warning(&job->events,
                           "the budget is short: it was nearly over before a step was timed");
        return;
    }
    if (stk_options_source(job->options, "model") != STK_FROM_DEFAULT) {
        snprintf(faster, sizeof faster, " a faster --model than %s,", job->recipe.model->name);
    }
    double pictures = (double)facts->pictures * (1 - choice->val_part);
    if (choice->epochs > 0) {
        snprintf(over, sizeof over, " over %s",
                 stk_format_amount(round(pictures), 3, "picture").text);
    }
    double models_s = facts->folds * (wanted * pictures * choice->picture_s + choice->predict_s);
    double need_s = stk_run_clock_elapsed(&job->clock) + models_s / TRAINING_SHARE;
    stk_events_warning(&job->events,
                       "the budget is short: at %d px %s%s; for %.0f epochs give a --budget of %s "
                       "%s,%s or --per-class for fewer pictures",
                       choice->img_size, time_for(choice->epochs, is_least).text, over, wanted,
                       is_least ? "more than" : "about", stk_format_span(need_s).text, faster);
}

stk_status stk_job_fit(stk_job *job, double left_s, size_t *train, size_t *val, stk_error *err) {
    stk_rehearsal rehearsal;
    if (!stk_job_is_to_fit(job)) {
        return STK_OK;
    }
    double begun_s = stk_run_clock_elapsed(&job->clock);
    double budget_s = begun_s + left_s;
    stk_status status = rehearse_first_fold(job, left_s, &rehearsal, err);
    if (status != STK_OK) {
        return status;
    }
    left_s -= stk_run_clock_elapsed(&job->clock) - begun_s;
    bool on_cpu = stk_opened_device_is_cpu(&job->network.opened);
    double compile_s = on_cpu ? 0 : fmax(rehearsal.setup_s - begun_s, 0);
    left_s -= VALIDATION_COMPILE * compile_s;
    stk_training_facts facts = facts_after(job, &rehearsal, left_s);
    bool may_compile = (1 + VALIDATION_COMPILE) * compile_s < MORE_COMPILE_SHARE * left_s;
    facts.may_begin_small = facts.may_begin_small && may_compile;
    facts.may_grow = facts.may_grow && (on_cpu || left_s >= GROW_LEAST_S);
    const stk_model *rehearsed = job->recipe.model;
    status = choose_model(job, &rehearsal, &facts, err);
    stk_training_choice choice = stk_training_choose(&facts);
    int models;
    STK_THEN(status, choose_views(job, budget_s, &facts, &choice, err));
    choose_folds(job, budget_s, &facts, &choice, &models);
    bool same = job->recipe.model == rehearsed && job->recipe.img_size == choice.img_size;
    job->recipe.batch_rehearsed = same ? rehearsal.batch : 0;
    STK_THEN(status, build_chosen(job, &choice, may_compile, train, val, err));
    if (status != STK_OK) {
        return status;
    }
    job->time = stk_time_plan_begin(&job->recipe);
    job->time.folds = models;
    job->time.epoch_s = choice.picture_s * (double)*train;
    emit_size(job, &facts, &choice, rehearsal.is_least);
    if (models == stk_recipe_models(&job->recipe)) {
        emit_models(job, &facts, &choice, *train);
    }
    emit_val_part(job, &facts, &choice);
    warn_hopeless(job, &facts, &choice, rehearsal.is_least);
    return STK_OK;
}
