/*
 * fold_result.c - what a fold came to: its work, whether it counts, how it ended.
 */
#include <math.h>
#include <stdio.h>

#include "base/files/disk.h"
#include "base/files/file.h"
#include "base/str.h"
#include "job/training/folds.h"
#include "job/training/fold_run.h"
#include "weights/checkpoint.h"

/* Share of the epochs that a refit was planned for, or of those that the validated models got where
 * these are fewer: with fewer it is no finished model. */
#define LEAST_REFIT_PART 0.5

/* Whether the budget decided how much was trained. */
static bool ended_by_budget(const stk_running_fold *fold) {
    const stk_job *job = fold->job;
    const stk_train_result *r = &fold->result;
    return !isnan(job->clock.budget_s) && !r->ran_out_of_patience &&
           (job->time.plan.cut || r->halted ||
            (job->recipe.epochs_wanted == 0 && r->epochs_done < STK_BUDGET_MOST_EPOCHS));
}

static bool had_trouble(const stk_running_fold *fold) {
    return fold->result.diverged || fold->job->tally.weights_lost || fold->job->tally.out_of_memory;
}

/* Emits that a fold is left out of the ensemble, or its model out of the submission. */
static void emit_below_prior(const stk_running_fold *fold) {
    const stk_job *job = fold->job;
    const stk_prior_score *prior = &fold->prior;
    const stk_train_result *r = &fold->result;
    char what[64] = "class priors instead of the model";
    char why[256];
    char metric[64] = "";
    bool cut = job->time.stop_emitted || job->time.plan.cut || r->halted || had_trouble(fold);
    if (job->out.early_epoch > 0) {
        snprintf(what, sizeof what, "the predictions of epoch %d instead of the model's",
                 job->out.early_epoch);
    }
    if (job->recipe.folds > 1) {
        snprintf(what, sizeof what, "fold %d of %d is not in the ensemble", job->tally.fold + 1,
                 job->recipe.folds);
    }
    if (!isnan(prior->metric)) {
        snprintf(metric, sizeof metric, " (%s %.4g, that of the priors is %.4g)",
                 stk_metric_info_of((stk_metric)job->recipe.train.metric)->name, r->best.val_metric,
                 prior->metric);
    }
    snprintf(why, sizeof why,
             "%s, and its best validation, loss %.4g and accuracy %.1f %%, does not beat class "
             "priors, %.4g and %.1f %%%s",
             cut ? "it was cut short" : "the budget ended it", r->rated_loss, r->rated_acc1,
             prior->loss, prior->acc1, metric);
    stk_events_decision(&job->events, what, why);
}

void stk_fold_emit_halted(const stk_running_fold *fold) {
    stk_job *job = fold->job;
    double left_s = job->clock.budget_s - stk_run_clock_elapsed(&job->clock);
    char why[128];
    if (!fold->result.halted || isnan(left_s) || stk_run_clock_stopping(&job->clock)) {
        return;
    }
    snprintf(why, sizeof why, "of the budget %s are left, and the last files may take %s",
             stk_format_span(fmax(left_s, 0)).text,
             stk_format_span(stk_run_clock_needed(&job->clock, STK_MARGIN_SUBMISSION)).text);
    stk_events_decision(&job->events, "training was halted in the middle of a step", why);
}

void stk_fold_add_work(const stk_running_fold *fold) {
    stk_job *job = fold->job;
    const stk_train_result *r = &fold->result;
    stk_margin_note(&job->clock.margin, STK_MARGIN_CLOSING, r->closing_s);
    job->tally.images += r->images;
    job->tally.workers = r->workers > 0 ? r->workers : job->tally.workers;
    job->tally.slots = r->slots > 0 ? r->slots : job->tally.slots;
    job->tally.train_s += r->train_s;
    job->tally.wait_s += r->wait_s;
}

stk_status stk_fold_prior(stk_running_fold *fold, stk_error *err) {
    const stk_job *job = fold->job;
    if (fold->prior_scored) {
        return STK_OK;
    }
    stk_status status =
        stk_prior_score_make(job->dataset, &job->recipe.loss, (stk_metric)job->recipe.train.metric,
                             &fold->split, fold->val_samples, &fold->prior, err);
    fold->prior_scored = status == STK_OK;
    return status;
}

stk_status stk_fold_check_prior(stk_running_fold *fold, stk_error *err) {
    stk_job *job = fold->job;
    const stk_train_result *r = &fold->result;
    stk_metric metric = (stk_metric)job->recipe.train.metric;
    bool among_others = job->recipe.folds > 1;
    bool cut =
        job->time.stop_emitted || ended_by_budget(fold) || (among_others && had_trouble(fold));
    bool replaces = among_others || job->out.ensemble.rows > 0;
    if (!replaces || !fold->result.has_best || !cut || fold->split.val_count == 0) {
        return STK_OK;
    }
    stk_status status = stk_fold_prior(fold, err);
    stk_model_score model = stk_model_score_of(&job->recipe, r, r->rated_loss, r->rated_acc1);
    if (status == STK_OK && !stk_prior_is_beaten(&fold->prior, metric, &model)) {
        emit_below_prior(fold);
        fold->below_prior = true;
        job->tally.folds_below_prior++;
        stk_state_saver_wait(&job->saver);
        (void)stk_disk_rename(fold->best_path, fold->other_path);
    }
    return status;
}

static bool is_refit(const stk_running_fold *fold) {
    return stk_recipe_is_refit(&fold->job->recipe, fold->job->tally.fold);
}

const char *stk_fold_weights(const stk_running_fold *fold) {
    return is_refit(fold) ? fold->other_path : fold->best_path;
}

stk_status stk_fold_load_weights(const stk_running_fold *fold, stk_error *err) {
    const stk_job_network *network = &fold->job->network;
    const stk_backend *backend = network->opened.backend;
    stk_status status =
        stk_checkpoint_load(stk_fold_weights(fold), backend, network->state, network->graph, err);
    return status == STK_OK && network->state_config.ema
               ? stk_train_reset_state(backend, network->state, network->graph, err)
               : status;
}

void stk_fold_check_refit(stk_running_fold *fold, bool failed) {
    stk_job *job = fold->job;
    const stk_train_result *r = &fold->result;
    char what[64];
    if (!is_refit(fold) || !r->has_best) {
        return;
    }
    double planned = job->recipe.epochs_expected;
    if (job->tally.epochs_validated > 0) {
        planned = fmin(planned, job->tally.epochs_validated);
    }
    bool short_of_plan = r->epochs_done < LEAST_REFIT_PART * planned;
    bool stopped = stk_run_clock_stopping(&job->clock);
    stk_state_saver_wait(&job->saver);
    fold->unfinished = failed || stopped || r->halted || had_trouble(fold) || short_of_plan ||
                       stk_disk_rename(fold->best_path, fold->other_path) != 0;
    if (fold->unfinished) {
        snprintf(what, sizeof what, "refit %d of %d is not used",
                 job->tally.fold - job->recipe.folds + 1, job->recipe.refits);
        stk_events_decision(&job->events, what, "it was not finished, and nothing validates it");
    }
}

void stk_fold_take_calibration(stk_running_fold *fold) {
    stk_job *job = fold->job;
    stk_error why = {0};
    int img_size = 0;
    if (!fold->result.has_best || fold->below_prior || fold->unfinished ||
        stk_run_clock_must_write(&job->clock)) {
        return;
    }
    /* Weights that are lost predict from memory, and were fitted last. */
    if (!job->tally.weights_lost &&
        stk_job_read_calibration(stk_fold_weights(fold), &fold->calibration, &img_size, &why) !=
            STK_OK) {
        stk_events_warning(&job->events, "probabilities are not calibrated: %s", why.message);
        return;
    }
    if (fold->split.val_count > 0) {
        if (fold->calibration.rows > 0) { /* as an earlier process counted them, too */
            job->out.val_scored = fold->calibration.rows;
        }
        stk_job_add_validated(job, &fold->calibration);
        stk_job_emit_calibration(job, &fold->calibration);
    }
}

void stk_fold_add_result(stk_running_fold *fold, bool failed) {
    stk_job *job = fold->job;
    stk_fold_tally *tally = &job->tally;
    const stk_train_result *r = &fold->result;
    tally->epochs_done += r->epochs_done;
    if (r->has_best && !fold->below_prior && !fold->unfinished) {
        /* With several folds, the mean over their best epochs. A refit has no figures. */
        double n = tally->folds_done;
        bool judged = fold->split.val_count > 0;
        if (judged) {
            tally->best_acc1 =
                n > 0 ? (tally->best_acc1 * n + r->best.val_acc1) / (n + 1) : r->best.val_acc1;
            tally->best_metric =
                n > 0 ? (tally->best_metric * n + r->best_metric) / (n + 1) : r->best_metric;
            tally->epochs_validated = r->epochs_done;
            job->out.val_scored = r->best_scored > 0 ? r->best_scored : job->out.val_scored;
        }
        bool saved = !tally->weights_lost || stk_path_is_file(stk_fold_weights(fold));
        tally->folds_done += failed || !saved ? 0 : 1;
    }
    bool stopped = stk_run_clock_stopping(&job->clock);
    bool trouble = had_trouble(fold);
    tally->trouble = tally->trouble || trouble;
    tally->stop_reason = stopped                  ? "signal"
                         : tally->trouble         ? "error"
                         : r->ran_out_of_patience ? "patience"
                         : ended_by_budget(fold)  ? "budget"
                                                  : "epochs";
    bool short_of_plan = job->time.plan.cut && !r->ran_out_of_patience;
    tally->cut = tally->cut || stopped || r->halted || trouble || short_of_plan;
    if (r->diverged) {
        stk_events_warning(&job->events, "training stopped: %s; a lower --lr than %.3g would help",
                           r->trouble, job->recipe.lr * r->lr_scale);
    }
}
