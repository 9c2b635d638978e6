/* fitting.c - a rehearsal, then arithmetic, then the network that was chosen. fitting_lines.c says
 * what was chosen. */
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
#define REHEARSAL_SHARE 0.008
#define MOST_REHEARSAL_SHARE 0.05
#define REHEARSAL_MOST_S 2.0
#define REHEARSAL_STEPS 5
#define REHEARSAL_LEAST_STEPS 2
#define REHEARSAL_MOST_STEPS 100
#define REHEARSAL_HALT_SHARE 0.25 /* on a CPU; a GPU's steps are never so slow */

/* A GPU compiles the network for validation in about this part of what training took. */
#define VALIDATION_COMPILE 0.4

/* Share of the time that compiling for one more size, or for the head alone, may take. */
#define MORE_COMPILE_SHARE 0.05

/* A GPU may have nothing on disk for another size, and compile for so many seconds. They must be
 * worth it: larger pictures need so much time. */
#define GROW_LEAST_S 45.0

/* Folds are given up where steps of this part of the measured time would not be enough either. */
#define SURE_PART 0.8

/* Steps that wait for pictures for more than this share of their time are bound by them. */
#define WAITS 0.1

/* A rehearsal that finds no time or no memory measures nothing: training copes with either. */
static stk_status rehearse_first_fold(stk_job *job, double left_s, stk_rehearsal *rehearsal,
                                      stk_error *err) {
    stk_split split;
    bool on_cpu = stk_opened_device_is_cpu(&job->network.opened);
    stk_rehearsal_length length = {.enough_s = fmin(REHEARSAL_SHARE * left_s, REHEARSAL_MOST_S),
                                   .enough_steps = REHEARSAL_STEPS,
                                   .most_s =
                                       fmin(MOST_REHEARSAL_SHARE * left_s, 2 * REHEARSAL_MOST_S),
                                   .least_steps = REHEARSAL_LEAST_STEPS,
                                   .most_steps = REHEARSAL_MOST_STEPS,
                                   .halt_s = on_cpu ? REHEARSAL_HALT_SHARE * left_s : INFINITY};
    stk_error why = {0};
    *rehearsal = (stk_rehearsal){.step_s = NAN, .source_px = NAN, .out_of_time = true};
    if (left_s <= 0) {
        return STK_OK;
    }
    stk_status status = stk_fold_split(job->dataset, &job->recipe, 0, &split, NULL, err);
    if (status != STK_OK) {
        return status;
    }
    status = stk_job_rehearse(job, &split, &length, rehearsal, &why);
    stk_split_free(&split);
    if (status == STK_ERR_STOPPED || status == STK_ERR_MEMORY) {
        rehearsal->step_s = NAN;
        rehearsal->out_of_time = status == STK_ERR_STOPPED && !stk_run_clock_stopping(&job->clock);
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
    facts.left_s = fmax(STK_FIT_TRAINING_SHARE * left_s, 0);
    facts.source_px = rehearsal->source_px;
    return facts;
}

/*
 * Gives up folds for which there is clearly no time before any is trained, and chooses again for
 * those that remain: a few steps are not measured well. Refits that were asked for stay asked for.
 */
static void choose_folds(const stk_job *job, double budget_s, stk_fit *fit) {
    stk_training_facts *facts = &fit->facts;
    stk_training_choice *choice = &fit->choice;
    int refits = choice->refits;
    fit->models = facts->folds + refits;
    if (facts->folds < 2 || isnan(facts->picture_s)) {
        return;
    }
    double val = (double)facts->pictures / facts->folds;
    double epoch = (double)facts->pictures - val + inference_part(job, facts) * val;
    stk_fold_facts folds = {.elapsed_s = stk_run_clock_elapsed(&job->clock),
                            .budget_s = budget_s,
                            .folds_wanted = fit->models,
                            .between = true,
                            .epoch_s = SURE_PART * choice->picture_s * epoch,
                            .predict_s = choice->predict_s};
    fit->fewer = stk_budget_choose_folds(&folds);
    if (fit->fewer.folds >= fit->models) {
        return;
    }
    fit->models = fit->fewer.folds;
    facts->refits = fit->models > facts->folds ? fit->models - facts->folds : 0;
    facts->folds = fit->models - facts->refits;
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
static stk_status choose_model(stk_job *job, stk_fit *fit, stk_error *err) {
    stk_training_facts *facts = &fit->facts;
    double waits = fit->rehearsal.wait_fraction > 0 ? fit->rehearsal.wait_fraction : 0; /* or NaN */
    stk_model_search *models = &job->models;
    bool on_cpu = stk_opened_device_is_cpu(&job->network.opened);
    size_t measured = models->chosen;
    if (!stk_model_search_is_open(models)) {
        return STK_OK;
    }
    double compute_s = facts->picture_s * (1 - fmin(waits, 1));
    fit->model =
        stk_model_choose(models->offers, models->count, on_cpu, measured, compute_s, facts);
    size_t chosen = models->chosen = fit->model.index;
    *facts = stk_model_estimate(&models->offers[chosen], &models->offers[measured], on_cpu,
                                compute_s, facts);
    return chosen != measured
               ? stk_recipe_take_model(&job->recipe, job->options, &models->candidates[chosen], err)
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

stk_status stk_job_fit(stk_job *job, double left_s, stk_fit *fit, size_t *train, size_t *val,
                       stk_error *err) {
    stk_rehearsal *rehearsal = &fit->rehearsal;
    *fit = (stk_fit){.done = stk_job_is_to_fit(job)};
    if (!fit->done) {
        return STK_OK;
    }
    double begun_s = stk_run_clock_elapsed(&job->clock);
    double budget_s = begun_s + left_s;
    stk_status status = rehearse_first_fold(job, left_s, rehearsal, err);
    if (status != STK_OK) {
        return status;
    }
    left_s -= stk_run_clock_elapsed(&job->clock) - begun_s;
    bool on_cpu = stk_opened_device_is_cpu(&job->network.opened);
    double compile_s = on_cpu ? 0 : fmax(rehearsal->setup_s - begun_s, 0);
    left_s -= VALIDATION_COMPILE * compile_s;
    fit->facts = facts_after(job, rehearsal, left_s);
    bool timed = on_cpu || !isnan(rehearsal->step_s); /* how long compiling takes is known */
    bool may_compile = timed && (1 + VALIDATION_COMPILE) * compile_s < MORE_COMPILE_SHARE * left_s;
    fit->facts.may_begin_small = fit->facts.may_begin_small && may_compile;
    fit->facts.may_grow = fit->facts.may_grow && (on_cpu || left_s >= GROW_LEAST_S);
    const stk_model *rehearsed = job->recipe.model;
    status = choose_model(job, fit, err);
    fit->choice = stk_training_choose(&fit->facts);
    STK_THEN(status, choose_views(job, budget_s, &fit->facts, &fit->choice, err));
    choose_folds(job, budget_s, fit);
    if (rehearsal->out_of_time && isnan(fit->facts.picture_s)) {
        fit->choice.epochs = 0;
    }
    bool same = job->recipe.model == rehearsed && job->recipe.img_size == fit->choice.img_size;
    job->recipe.batch_rehearsed = same ? rehearsal->batch : 0;
    STK_THEN(status, build_chosen(job, &fit->choice, may_compile, train, val, err));
    if (status == STK_OK) {
        job->time = stk_time_plan_begin(&job->recipe);
        job->time.folds = fit->models;
        job->time.epoch_s = fit->choice.picture_s * (double)*train;
        fit->train = *train;
    }
    return status;
}
