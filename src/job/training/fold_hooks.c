/*
 * fold_hooks.c - what training calls while a fold runs: how far it goes, when a validation ends,
 * checkpoints, saved states.
 */
#include <math.h>
#include <string.h>

#include "base/clock.h"
#include "base/error.h"
#include "base/files/file.h"
#include "budget/prediction_choice.h"
#include "job/training/folds.h"
#include "job/training/fold_run.h"
#include "weights/checkpoint.h"

/* Share of the time left before the first validation that an estimate for predicting may take: a
 * busy machine makes estimates too long. */
#define FIRST_PREDICTION 0.4

static stk_train_orders give_orders(void *user, const stk_train_standing *standing) {
    stk_running_fold *fold = user;
    stk_state_saver_poll(&fold->job->saver);
    fold->left_s = stk_run_clock_before_writing(&fold->job->clock);
    stk_train_orders orders = stk_fold_pace_step(&fold->pace, standing);
    if (!standing->over) { /* otherwise no step follows that could be watched or tuned */
        stk_training_monitor_step(fold->job->monitor, standing, &orders);
    }
    return orders;
}

/* After a request to stop nothing is computed with a network that is still being compiled. */
static void compiling(void *user, bool begins) {
    stk_running_fold *fold = user;
    double now_s = stk_run_clock_elapsed(&fold->job->clock);
    fold->job->clock.halt_on_stop = begins;
    if (begins) {
        fold->compile_start_s = now_s;
    } else {
        stk_fold_pace_leave_out(&fold->pace, now_s - fold->compile_start_s);
    }
}

/* Seconds to keep for saving the best weights, which waits for the running write of a state. */
static double save_seconds(const stk_job *job) {
    return stk_state_saver_wait_s(&job->saver) +
           STK_MARGIN_SAFETY * stk_state_saver_best_s(&job->saver);
}

/*
 * A validation ends early when only the time for saving its weights and predicting with the best
 * weights is left. That time is estimated from the running validation or, until its speed is known
 * and where it is short beside the prediction, taken from the plan, without the care that the plan
 * has taken on top: what was trained would be lost for it. One view is enough, since views are
 * given up before training is. Before the first best epoch, ending the validation would lose the
 * only model: then the estimate is limited to a share of the time left, and measured times count
 * without a safety factor.
 */
static bool validation_must_end(void *user, size_t seen, double seconds) {
    stk_running_fold *fold = user;
    stk_job *job = fold->job;
    double view_s = job->time.predict_s > 0 ? job->time.predict_s / job->time.views : 0;
    if (seen == 0) {
        fold->watch = (stk_inference_watch){.images = fold->split.val_count,
                                            .test_images = job->out.ensemble.rows};
    }
    double picture_s = stk_inference_look(&fold->watch, seen, seconds);
    bool measured = !isnan(picture_s) && job->out.ensemble.rows > 0;
    if (measured) {
        double begin_s =
            fold->watch.first_s +
            stk_state_saver_best_s(&job->saver); /* reading the weights takes about as long */
        view_s = begin_s + picture_s * (double)job->out.ensemble.rows;
    }
    if (fold->result.has_best && measured) {
        return stk_run_clock_must_halt(&job->clock, view_s + save_seconds(job));
    }
    double next_s = fold->result.has_best ? view_s + save_seconds(job)
                                          : fmin(view_s, FIRST_PREDICTION * fold->left_s) +
                                                stk_state_saver_likely_wait_s(&job->saver) +
                                                stk_state_saver_best_s(&job->saver);
    return stk_run_clock_must_write(&job->clock) ||
           stk_run_clock_before_writing(&job->clock) < next_s;
}

/* How a model pools the pictures of a row, which fits to single pictures do not say. */
static stk_pooling pool_of(const stk_job *job, const stk_calibration *calibration) {
    stk_pooling decided = stk_job_pool(job);
    return decided != STK_POOL_AUTO ? decided : calibration->pool;
}

/* Saves the weights in the state. `calibration` is theirs, and takes the pool that is decided;
 * NULL: none was fitted to them. */
static stk_status save(const stk_running_fold *fold, const char *path, const stk_event_epoch *epoch,
                       stk_calibration *calibration, stk_error *err) {
    const stk_job *job = fold->job;
    const stk_model *model = job->recipe.model;
    stk_checkpoint_info info = {.model = (char *)(uintptr_t)model->name,
                                .classes = (char **)(uintptr_t)job->dataset->classes,
                                .class_count = job->dataset->class_count,
                                .img_size = fold->result.small ? job->recipe.early_eval_size
                                                               : job->recipe.eval_size,
                                .crop_fraction = job->recipe.eval_crop,
                                .native = job->recipe.native,
                                .interpolation = model->interpolation,
                                .acc1 = epoch->val_acc1,
                                .epoch = epoch->epoch,
                                .columns = job->dataset->features.code,
                                .outputs = job->outputs,
                                .window = job->recipe.window,
                                .averaged = job->network.state_config.ema};
    if (calibration != NULL) {
        calibration->pool = pool_of(job, calibration);
        info.calibration = *calibration;
    }
    memcpy(info.mean, job->network.graph->mean, sizeof info.mean);
    memcpy(info.std, job->network.graph->std, sizeof info.std);
    return stk_checkpoint_save(path, job->network.opened.backend, job->network.state,
                               job->network.graph, &info, err);
}

stk_status stk_fold_save_weights(const stk_running_fold *fold, stk_calibration *calibration,
                                 stk_error *err) {
    const stk_train_result *r = &fold->result;
    stk_state_saver *saver = &fold->job->saver;
    const char *path = stk_fold_weights(fold);
    stk_state_saver_wait(saver);
    int64_t start = stk_clock_ns();
    stk_state_saver_protect_best(saver, path);
    stk_status status = save(fold, path, &r->best, calibration, err);
    if (status == STK_OK) {
        stk_state_saver_best_saved(saver, path, stk_clock_since_s(start));
    }
    return status;
}

/* Saves the last weights. If they are also the best weights, the file of the best gets a second
 * name. */
static stk_status save_last(const stk_running_fold *fold, const stk_event_epoch *epoch, bool best,
                            stk_error *err) {
    return best ? stk_file_alias(fold->best_path, fold->last_path, err)
                : save(fold, fold->last_path, epoch, NULL, err);
}

static bool is_device_error(const stk_error *why) {
    return why->status == STK_ERR_DEVICE || why->status == STK_ERR_MEMORY;
}

/*
 * When the best weights cannot be written, training ends, and the run predicts with the weights in
 * memory and reports the error after that. Last weights that cannot be written are only reported.
 * After an error of the device, nothing is left to predict with; when memory ran out, training
 * continues with smaller batches.
 */
static stk_status checkpoint(void *user, const stk_event_epoch *epoch, bool best, stk_error *err) {
    stk_running_fold *fold = user;
    stk_job *job = fold->job;
    stk_error why = {0};
    stk_state_saver_wait(&job->saver);
    int64_t start = stk_clock_ns();
    if (best) {
        stk_state_saver_protect_best(&job->saver, fold->best_path);
    }
    if (best && save(fold, fold->best_path, epoch, &fold->calibration, &why) == STK_OK) {
        stk_state_saver_best_saved(&job->saver, fold->best_path, stk_clock_since_s(start));
        stk_events_checkpoint(&job->events, fold->best_path, true);
    } else if (is_device_error(&why)) {
        return STK_FAIL(err, why.status, "%s", why.message);
    } else if (best) {
        job->tally.weights_lost = true;
        stk_events_warning(&job->events, "training ends: %s", why.message);
    }
    if (best && fold->split.val_count > 0) {
        stk_val_table_take_best(&job->out.val);
        stk_job_write_validation(job, false);
    }
    /* Nothing in a run reads the last weights: they are left out first when time is short. */
    bool in_time = !stk_run_clock_must_halt(&job->clock, save_seconds(job));
    if (in_time && !job->tally.weights_lost && save_last(fold, epoch, best, &why) != STK_OK) {
        if (is_device_error(&why)) {
            return STK_FAIL(err, why.status, "%s", why.message);
        }
        stk_events_warning(&job->events, "the last weights are not saved: %s", why.message);
    }
    if (why.status != STK_OK) {
        (void)STK_FAIL(&job->out.late_error, why.status, "%s", why.message);
    }
    return STK_OK;
}

void stk_fold_save_position(const stk_running_fold *fold, const stk_train_position *position) {
    stk_job *job = fold->job;
    stk_run_totals totals = {.fold = job->tally.fold,
                             .folds_done = job->tally.folds_done,
                             .epochs_before = job->tally.epochs_done,
                             .best_acc1 = job->tally.best_acc1,
                             .best_metric = job->tally.best_metric,
                             .cut = job->tally.cut,
                             .used_s = job->resume.used_s + stk_run_clock_elapsed(&job->clock),
                             .seed = (int64_t)job->recipe.seed};
    stk_state_saver_save(&job->saver, &totals, position);
}

static void save_state(void *user, const stk_train_position *position) {
    const stk_running_fold *fold = user;
    if (!fold->job->tally.weights_lost) { /* it would refer to best weights that are not saved */
        stk_fold_save_position(fold, position);
    }
}

/* How far a position is, in epochs: independent of the batch. */
static double reached(const stk_train_position *at) {
    return at->epoch +
           (double)at->step / (double)(at->steps_per_epoch > 0 ? at->steps_per_epoch : 1);
}

stk_status stk_fold_load_state(const stk_running_fold *fold, bool between_epochs,
                               stk_train_position *position, bool *found, stk_error *err) {
    stk_job *job = fold->job;
    stk_state_wanted wanted = {.fold = job->tally.fold,
                               .best_path = fold->best_path,
                               .between_epochs = between_epochs,
                               .batch = job->recipe.batch,
                               .accumulate = job->recipe.train.accumulate};
    stk_status status = stk_fold_count_steps(job->dataset, &job->recipe, wanted.fold, wanted.batch,
                                             &wanted.steps_per_epoch, err);
    return status == STK_OK ? stk_state_saver_load(&job->saver, &wanted, position, found, err)
                            : status;
}

stk_status stk_fold_load_replanned(const stk_running_fold *fold, bool between_epochs,
                                   stk_train_position *position, bool *found, stk_error *err) {
    const stk_job *job = fold->job;
    stk_status status = stk_fold_load_state(fold, between_epochs, position, found, err);
    /* A state of an earlier process knows only the plan of that process. */
    if (status == STK_OK && *found && fold->resumed &&
        reached(position) <= reached(&job->resume.state.position)) {
        position->schedule = stk_resume_schedule(&job->resume, position, job->recipe.epochs_wanted,
                                                 job->clock.budget_s);
    }
    return status;
}

static stk_status load_state(void *user, stk_train_position *position, bool *there,
                             stk_error *err) {
    return stk_fold_load_replanned(user, true, position, there, err);
}

/* Seconds that predicting the test set now may take; 0: it would be too dear, or of no use. */
static double early_seconds(const stk_running_fold *fold, const stk_train_standing *standing) {
    stk_job *job = fold->job;
    double rows = (double)job->out.ensemble.rows;
    double val_s = standing->val_s / (double)fold->split.val_count;
    /* The test pictures are read for the first time. fmax ignores NaN. */
    double picture_s = fmax(val_s, fold->pace.unread_s);
    double plan_s = (double)(job->time.total_steps - standing->steps_done) * standing->step_s;
    double left_s = stk_run_clock_left(&job->clock) - job->time.plan.reserve_s;
    stk_early_facts facts = {.budget_s = job->clock.budget_s,
                             .elapsed_s = stk_run_clock_elapsed(&job->clock),
                             .predict_s = isnan(picture_s) ? job->time.predict_s / job->time.views
                                                           : picture_s * rows,
                             .until_s = fmin(plan_s, left_s)};
    /* out.models counts those of the process that a resumed run goes on from, too. */
    bool first = job->out.ensemble.rows > 0 && job->out.ensemble.models == 0 &&
                 job->out.models == 0 && !job->out.early_tried;
    bool ends = job->tally.weights_lost || stk_run_clock_stopping(&job->clock);
    return first && !ends ? stk_early_prediction_s(&facts) : 0;
}

/* Whether the best weights so far are as far as known better than class priors, which are in the
 * submission. */
static bool beats_prior(stk_running_fold *fold) {
    const stk_train_result *r = &fold->result;
    const stk_job *job = fold->job;
    stk_model_score model = stk_model_score_of(&job->recipe, r, r->best.val_loss, r->best.val_acc1);
    stk_error ignored = {0};
    if (fold->split.val_count == 0) { /* nothing tells; of a refit not even the end may be used */
        return !stk_recipe_is_refit(&job->recipe, job->tally.fold);
    }
    stk_metric metric = (stk_metric)job->recipe.train.metric;
    return stk_fold_prior(fold, &ignored) == STK_OK &&
           stk_prior_is_beaten(&fold->prior, metric, &model);
}

/*
 * Predicts the test set once with the best weights so far, if that is cheap and there is much still
 * to be trained. If the machine becomes slow, or the process is killed, a model has predicted all
 * the same.
 */
static void improved(void *user, const stk_train_standing *standing, stk_exec *exec) {
    stk_running_fold *fold = user;
    stk_job *job = fold->job;
    double start_s = stk_run_clock_elapsed(&job->clock);
    double most_s = early_seconds(fold, standing);
    if (most_s <= 0 || !beats_prior(fold)) {
        return;
    }
    stk_recipe usual = job->recipe;
    if (fold->result.best_small) {
        job->recipe = stk_recipe_with_early_sizes(&usual);
    }
    stk_job_predict_early(job, exec, &fold->calibration, fold->result.best.epoch, most_s);
    job->recipe = usual;
    stk_fold_pace_leave_out(&fold->pace, stk_run_clock_elapsed(&job->clock) - start_s);
}

stk_train_hooks stk_fold_hooks(stk_running_fold *fold) {
    return (stk_train_hooks){.user = fold,
                             .pace = give_orders,
                             .checkpoint = checkpoint,
                             .compiling = compiling,
                             .validation_must_end = validation_must_end,
                             .save_state = save_state,
                             .load_state = load_state,
                             .save_every_s = fold->job->job_options->save_every_s,
                             .improved = improved};
}
