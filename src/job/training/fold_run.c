/*
 * fold_run.c - one fold of a run: weights, pace, checkpoints, predictions.
 *
 * The hooks of stk_train_fold() come first, then the steps of a fold in their order:
 * stk_job_run_fold() at the end calls them.
 */
#include "job/training/fold_run.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/error.h"
#include "base/files/disk.h"
#include "base/files/file.h"
#include "base/mem.h"
#include "base/str.h"
#include "budget/inference.h"
#include "job/steering/pace.h"
#include "job/training/deliver.h"
#include "job/training/fold_predict.h"
#include "job/training/folds.h"
#include "job/training/lr_test.h"
#include "job/training/prior.h"
#include "weights/checkpoint.h"

typedef struct fold_run {
    stk_job *job;
    stk_split split;               /* owned */
    const stk_sample *val_samples; /* split.val has indices of these */
    char *best_path;               /* owned: best.safetensors */
    char *last_path;               /* owned: last.safetensors */
    char *below_prior_path;        /* owned: for best weights that do not beat class priors */
    bool below_prior;              /* the best weights do not, and were moved there */
    double left_s;                 /* seconds before writing, when the last step was planned */
    stk_fold_pace pace;            /* how far the fold goes */
    stk_inference_watch watch;     /* times of the running validation */
    bool resumed;                  /* an earlier process began the fold */
    bool begun;                    /* it was begun before, by this process or an earlier one */
    stk_train_position position;   /* where training continues, if `begun` */
    stk_train_result result;
} fold_run;

/* Share of the time left before the first validation that an estimate for predicting may take: a
 * busy machine makes estimates too long. */
#define FIRST_PREDICTION 0.4

static stk_train_orders give_orders(void *user, const stk_train_standing *standing) {
    fold_run *fold = user;
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
    fold_run *fold = user;
    fold->job->clock.halt_on_stop = begins;
}

/* Seconds to keep for saving the best weights, which waits for the running write of a state. */
static double save_seconds(const stk_job *job) {
    return stk_state_saver_wait_s(&job->saver) +
           STK_MARGIN_SAFETY * stk_state_saver_best_s(&job->saver);
}

/*
 * A validation ends early when only the time for saving its weights and predicting with the best
 * ones is left. That time is taken from the running validation, or from the plan before it shows
 * its speed; one view is enough, since views are given up before training is. Before the first best
 * epoch, ending the validation would lose the only model: then the estimate is limited to a share
 * of the time left, and measured times count without a safety factor.
 */
static bool validation_must_end(void *user, size_t seen, double seconds) {
    fold_run *fold = user;
    stk_job *job = fold->job;
    double view_s = job->time.predict_s > 0 ? job->time.predict_s / job->time.views : 0;
    if (seen == 0) {
        fold->watch = (stk_inference_watch){.images = fold->split.val_count,
                                            .test_images = job->out.ensemble.rows};
    }
    double picture_s = stk_inference_look(&fold->watch, seen, seconds);
    if (!isnan(picture_s) && job->out.ensemble.rows > 0) {
        double begin_s =
            fold->watch.first_s +
            stk_state_saver_best_s(&job->saver); /* reading the weights takes about as long */
        view_s = begin_s + picture_s * (double)job->out.ensemble.rows;
    }
    if (!fold->result.has_best) {
        view_s = fmin(view_s, FIRST_PREDICTION * fold->left_s);
        double left_s = stk_run_clock_before_writing(&job->clock);
        return stk_run_clock_must_write(&job->clock) ||
               left_s < view_s + stk_state_saver_likely_wait_s(&job->saver) +
                            stk_state_saver_best_s(&job->saver);
    }
    return stk_run_clock_must_halt(&job->clock, view_s + save_seconds(job));
}

static stk_status save(const stk_job *job, const char *path, const stk_event_epoch *epoch,
                       stk_error *err) {
    const stk_model *model = job->recipe.model;
    stk_checkpoint_info info = {.model = (char *)(uintptr_t)model->name,
                                .classes = (char **)(uintptr_t)job->dataset->classes,
                                .class_count = job->dataset->class_count,
                                .img_size = job->recipe.img_size,
                                .crop_fraction = model->crop_fraction,
                                .interpolation = model->interpolation,
                                .acc1 = epoch->val_acc1,
                                .epoch = epoch->epoch,
                                .averaged = job->network.state_config.ema};
    memcpy(info.mean, job->network.graph->mean, sizeof info.mean);
    memcpy(info.std, job->network.graph->std, sizeof info.std);
    return stk_checkpoint_save(path, job->network.opened.backend, job->network.state,
                               job->network.graph, &info, err);
}

/* Saves the last weights. When they are also the best ones, that file gets a second name. */
static stk_status save_last(const fold_run *fold, const stk_event_epoch *epoch, bool best,
                            stk_error *err) {
    return best ? stk_file_alias(fold->best_path, fold->last_path, err)
                : save(fold->job, fold->last_path, epoch, err);
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
    fold_run *fold = user;
    stk_job *job = fold->job;
    stk_error why = {0};
    stk_state_saver_wait(&job->saver);
    int64_t start = stk_clock_ns();
    if (best) {
        stk_state_saver_protect_best(&job->saver, fold->best_path);
    }
    if (best && save(job, fold->best_path, epoch, &why) == STK_OK) {
        stk_state_saver_best_saved(&job->saver, fold->best_path, stk_clock_since_s(start));
        stk_events_checkpoint(&job->events, fold->best_path, true);
    } else if (is_device_error(&why)) {
        return STK_FAIL(err, why.status, "%s", why.message);
    } else if (best) {
        job->progress.weights_lost = true;
        stk_events_warning(&job->events, "training ends: %s", why.message);
    }
    if (best && fold->split.val_count > 0) {
        stk_val_table_take_best(&job->out.val);
        stk_job_write_validation(job, false);
    }
    /* Nothing in a run reads the last weights: they are left out first when time is short. */
    bool in_time = !stk_run_clock_must_halt(&job->clock, save_seconds(job));
    if (in_time && !job->progress.weights_lost && save_last(fold, epoch, best, &why) != STK_OK) {
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

static void save_position(const fold_run *fold, const stk_train_position *position) {
    stk_job *job = fold->job;
    stk_run_totals totals = {.fold = job->progress.fold,
                             .folds_done = job->progress.folds_done,
                             .epochs_before = job->progress.epochs_done,
                             .best_acc1 = job->progress.best_acc1,
                             .best_metric = job->progress.best_metric,
                             .cut = job->progress.cut,
                             .used_s = job->resume.used_s + stk_run_clock_elapsed(&job->clock),
                             .seed = (int64_t)job->recipe.seed};
    stk_state_saver_save(&job->saver, &totals, position);
}

static void save_state(void *user, const stk_train_position *position) {
    const fold_run *fold = user;
    if (!fold->job->progress.weights_lost) { /* it would refer to best weights that are not saved */
        save_position(fold, position);
    }
}

/* How far a position is, in epochs, whatever the batch. */
static double reached(const stk_train_position *at) {
    return at->epoch +
           (double)at->step / (double)(at->steps_per_epoch > 0 ? at->steps_per_epoch : 1);
}

/* Loads a saved state of this fold for the batch of the recipe. */
static stk_status load_saved(const fold_run *fold, bool between_epochs,
                             stk_train_position *position, bool *found, stk_error *err) {
    stk_job *job = fold->job;
    stk_state_wanted wanted = {.fold = job->progress.fold,
                               .best_path = fold->best_path,
                               .between_epochs = between_epochs,
                               .batch = job->recipe.batch,
                               .accumulate = job->recipe.train.accumulate};
    stk_status status = stk_fold_count_steps(job->dataset, &job->recipe, wanted.fold, wanted.batch,
                                             &wanted.steps_per_epoch, err);
    return status == STK_OK ? stk_state_saver_load(&job->saver, &wanted, position, found, err)
                            : status;
}

static stk_status load(const fold_run *fold, bool between_epochs, stk_train_position *position,
                       bool *there, stk_error *err) {
    const stk_job *job = fold->job;
    stk_status status = load_saved(fold, between_epochs, position, there, err);
    /* A state of an earlier process knows only the plan of that process. */
    if (status == STK_OK && *there && fold->resumed &&
        reached(position) <= reached(&job->resume.state.position)) {
        position->schedule = stk_resume_schedule(&job->resume, position, job->recipe.epochs_wanted,
                                                 job->clock.budget_s);
    }
    return status;
}

static stk_status load_state(void *user, stk_train_position *position, bool *there,
                             stk_error *err) {
    return load(user, true, position, there, err);
}

/* Sets the weights to begin with, or loads the state of an earlier process. */
static stk_status first_weights(fold_run *fold, stk_error *err) {
    stk_job *job = fold->job;
    if (!job->resume.on || job->resume.taken_up) {
        return stk_network_first_weights(&job->network, &job->recipe, job->progress.fold,
                                         &job->clock, err);
    }
    bool there = false;
    if (!stk_path_is_file(fold->best_path)) {
        (void)stk_disk_rename(fold->below_prior_path,
                              fold->best_path); /* the resumed run may make them good enough */
    }
    stk_status status = load_saved(fold, false, &fold->position, &there, err);
    double schedule = fold->position.schedule;
    fold->position.schedule = stk_resume_schedule(&job->resume, &fold->position,
                                                  job->recipe.epochs_wanted, job->clock.budget_s);
    if (status == STK_OK && fold->position.schedule < schedule) {
        char what[96];
        snprintf(what, sizeof what, "learning rate as after %.0f %% of the training",
                 100 * fold->position.schedule);
        stk_events_decision(&job->events, what, "there is more to train than was planned");
    }
    if (status == STK_OK && fold->position.has_best) {
        stk_events_checkpoint(&job->events, fold->best_path,
                              true); /* it lies in its place already */
    }
    fold->resumed = true;
    fold->begun = true;
    job->resume.taken_up = true;
    return status;
}

static stk_loader_config training_data(const fold_run *fold) {
    stk_job *job = fold->job;
    stk_loader_config data = stk_job_loader_config(job, true, job->dataset->train.items,
                                                   fold->split.train, fold->split.train_count);
    data.fingerprints = stk_seen_pictures_of(&job->saver.pictures.train);
    /* Counted over both sets: a few bad pictures are many in a small validation set. */
    data.stop_after_bad =
        stk_loader_bad_limit(job->loader_options, data.count + fold->split.val_count);
    return data;
}

static stk_status train(fold_run *fold, stk_error *err) {
    stk_job *job = fold->job;
    stk_train_config config = {
        .backend = job->network.opened.backend,
        .state = job->network.state,
        .graph = job->network.graph,
        .options = &job->recipe.train,
        .lr = job->recipe.lr,
        .train_compile = stk_network_compile_config(&job->network, &job->recipe, true),
        .val_compile = stk_network_compile_config(&job->network, &job->recipe, false),
        .train = training_data(fold),
        .val = stk_job_loader_config(job, false, fold->val_samples, fold->split.val,
                                     fold->split.val_count),
        .seed = job->recipe.seed + (uint64_t)job->progress.fold,
        .fold = job->progress.fold,
        .events = &job->events,
        .sample_results = &job->out.val.now,
        .hooks = {.user = fold,
                  .pace = give_orders,
                  .checkpoint = checkpoint,
                  .compiling = compiling,
                  .validation_must_end = validation_must_end,
                  .save_state = save_state,
                  .load_state = load_state,
                  .save_every_s = job->job_options->save_every_s},
        .resume = fold->begun ? &fold->position : NULL};
    config.val.fingerprints = stk_seen_pictures_of(fold->val_samples == job->dataset->val.items
                                                       ? &job->saver.pictures.val
                                                       : &job->saver.pictures.train);
    /* A validation that ends early has then seen some of each class. */
    config.val.order.shuffle = true;
    config.val.stop_after_bad = config.train.stop_after_bad;
    return stk_train_fold(&config, &fold->result, err);
}

/* Predicts with the best weights. The test set comes first: it is what was asked for. */
static stk_status predict(fold_run *fold, stk_error *err) {
    stk_job *job = fold->job;
    bool test = job->out.ensemble.rows > 0;
    bool oof = job->recipe.folds > 1;
    job->clock.predict_s = 0; /* from here on all time is for predicting */
    if (!fold->result.has_best || fold->below_prior || (!test && !oof) ||
        stk_run_clock_must_write(&job->clock)) {
        return STK_OK;
    }
    stk_status status = STK_OK;
    if (!job->progress.weights_lost) {
        status = stk_checkpoint_load(fold->best_path, job->network.opened.backend,
                                     job->network.state, job->network.graph, err);
    }
    if (status == STK_OK && test) {
        bool whole = false;
        status = stk_job_predict_test(job, &whole, err);
        job->progress.cut = job->progress.cut || !whole;
    }
    oof = oof && !stk_run_clock_must_write(&job->clock);
    return status == STK_OK && oof ? stk_job_predict_oof(job, &fold->split, fold->val_samples, err)
                                   : status;
}

/* Whether the budget decided how much was trained. */
static bool ended_by_budget(const fold_run *fold) {
    const stk_job *job = fold->job;
    const stk_train_result *r = &fold->result;
    return !isnan(job->clock.budget_s) && !r->ran_out_of_patience &&
           (job->time.plan.cut || r->halted ||
            (job->recipe.epochs_wanted == 0 && r->epochs_done < STK_BUDGET_MOST_EPOCHS));
}

static bool had_trouble(const fold_run *fold) {
    return fold->result.diverged || fold->job->progress.weights_lost ||
           fold->job->progress.out_of_memory;
}

/* Emits that a fold is left out of the ensemble, or its model out of the submission. */
static void emit_below_prior(const fold_run *fold, const stk_prior_score *prior) {
    const stk_job *job = fold->job;
    const stk_event_epoch *best = &fold->result.best;
    char what[64] = "class priors instead of the model";
    char why[200];
    if (job->recipe.folds > 1) {
        snprintf(what, sizeof what, "fold %d of %d is not in the ensemble", job->progress.fold + 1,
                 job->recipe.folds);
    }
    snprintf(why, sizeof why,
             "it was cut short, and its best validation, loss %.4g and accuracy %.1f %%, does not "
             "beat class priors, %.4g and %.1f %%",
             best->val_loss, best->val_acc1, prior->loss, prior->acc1);
    stk_events_decision(&job->events, what, why);
}

/*
 * Leaves a fold out of the ensemble that was cut short and does not beat class priors: it would
 * make the predictions worse. Its weights go to below_prior.safetensors, where predict does not
 * look. Without folds and without a test set the weights stay: nothing else could be delivered.
 */
static stk_status check_prior(fold_run *fold, stk_error *err) {
    stk_job *job = fold->job;
    const stk_event_epoch *best = &fold->result.best;
    stk_metric metric = (stk_metric)job->recipe.train.metric;
    stk_prior_score prior;
    bool among_others = job->recipe.folds > 1;
    bool cut =
        job->time.stop_emitted || ended_by_budget(fold) || (among_others && had_trouble(fold));
    bool replaces = among_others || job->out.ensemble.rows > 0;
    if (!replaces || !fold->result.has_best || !cut || fold->split.val_count == 0) {
        return STK_OK;
    }
    stk_status status =
        stk_prior_score_make(job->dataset, &fold->split, fold->val_samples, &prior, err);
    if (status == STK_OK && !stk_prior_is_beaten(&prior, metric, best->val_loss, best->val_acc1)) {
        emit_below_prior(fold, &prior);
        fold->below_prior = true;
        job->progress.folds_below_prior++;
        stk_state_saver_wait(&job->saver);
        (void)stk_disk_rename(fold->best_path, fold->below_prior_path);
    }
    return status;
}

/* Adds up the work of a fold, successful or not. */
static void add_work(const fold_run *fold) {
    stk_job *job = fold->job;
    const stk_train_result *r = &fold->result;
    stk_margin_note(&job->clock.margin, STK_MARGIN_CLOSING, r->closing_s);
    job->progress.images += r->images;
    job->progress.workers = r->workers > 0 ? r->workers : job->progress.workers;
    job->progress.slots = r->slots > 0 ? r->slots : job->progress.slots;
    job->progress.train_s += r->train_s;
    job->progress.wait_s += r->wait_s;
}

/* Adds the result of a fold. After an error it counts, but the fold is not done. */
static void add_result(fold_run *fold, bool failed) {
    stk_job *job = fold->job;
    stk_run_progress *progress = &job->progress;
    const stk_train_result *r = &fold->result;
    progress->epochs_done += r->epochs_done;
    if (r->has_best && !fold->below_prior) {
        /* With folds it is the mean of their best epochs. */
        double n = progress->folds_done;
        progress->best_acc1 =
            n > 0 ? (progress->best_acc1 * n + r->best.val_acc1) / (n + 1) : r->best.val_acc1;
        progress->best_metric =
            n > 0 ? (progress->best_metric * n + r->best_metric) / (n + 1) : r->best_metric;
        bool saved = !progress->weights_lost || stk_path_is_file(fold->best_path);
        progress->folds_done += failed || !saved ? 0 : 1;
    }
    bool stopped = stk_run_clock_stopping(&job->clock);
    bool trouble = had_trouble(fold);
    progress->trouble = progress->trouble || trouble;
    progress->stop_reason = stopped                  ? "signal"
                            : progress->trouble      ? "error"
                            : r->ran_out_of_patience ? "patience"
                            : ended_by_budget(fold)  ? "budget"
                                                     : "epochs";
    bool short_of_plan = job->time.plan.cut && !r->ran_out_of_patience;
    progress->cut = progress->cut || stopped || r->halted || trouble || short_of_plan;
    if (r->diverged) {
        stk_events_warning(&job->events, "training stopped: %s; a lower --lr than %.3g would help",
                           r->trouble, job->recipe.lr * r->lr_scale);
    }
}

/* Emits that the end of the budget halted a step: nothing else would say so. */
static void emit_halted(const fold_run *fold) {
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

/* Warns, once, that the device cannot keep its compiled kernels for the next start. */
static void warn_not_cached(stk_job *job) {
    const stk_opened_device *opened = &job->network.opened;
    stk_device_counts counts = {0};
    if (job->progress.cache_warned || opened->backend->counts == NULL) {
        return;
    }
    opened->backend->counts(opened->device, &counts);
    if (counts.unkept != NULL) {
        stk_events_warning(&job->events, "the next start compiles and times all of it again: %s",
                           counts.unkept);
        job->progress.cache_warned = true;
    }
}

static char *path_of(const stk_job *job, const char *name) {
    return stk_fold_file(&job->out.folder, &job->recipe, job->progress.fold, name);
}

static stk_status make_paths(fold_run *fold, stk_error *err) {
    char *dir = path_of(fold->job, "");
    fold->best_path = path_of(fold->job, "best.safetensors");
    fold->last_path = path_of(fold->job, "last.safetensors");
    fold->below_prior_path = path_of(fold->job, "below_prior.safetensors");
    bool there = dir != NULL && fold->best_path != NULL && fold->last_path != NULL &&
                 fold->below_prior_path != NULL;
    stk_status status = there ? stk_dir_make(dir, err) : STK_FAIL_MEMORY(err, "a path");
    stk_mem_free(dir);
    return status;
}

static void close_fold(fold_run *fold) {
    stk_split_free(&fold->split);
    stk_mem_free(fold->best_path);
    stk_mem_free(fold->last_path);
    stk_mem_free(fold->below_prior_path);
}

/* Finds the learning rate. A state is saved first, so that a resume repeats a test that was cut. */
static stk_status find_lr(const fold_run *fold, stk_error *err) {
    stk_job *job = fold->job;
    stk_loader_config data = training_data(fold);
    if (!fold->begun) {
        stk_train_position start = {.batch = (int64_t)job->recipe.batch,
                                    .accumulate = job->recipe.train.accumulate,
                                    .lr_scale = 1,
                                    .best_metric = NAN,
                                    .watch = stk_loss_watch_new(job->network.graph->classes)};
        save_position(fold, &start);
    }
    stk_lr_test test = {.network = &job->network,
                        .recipe = &job->recipe,
                        .options = job->options,
                        .clock = &job->clock,
                        .events = &job->events,
                        .folder = &job->out.folder};
    double lr = STK_AUTO_DOUBLE;
    stk_status status = stk_lr_test_find(&test, &data, &lr, err);
    if (status != STK_OK || stk_is_auto_double(lr)) {
        return status;
    }
    job->recipe = stk_recipe_with_lr(&job->recipe, lr);
    return stk_job_write_args(&job->out.folder, job->options, err);
}

/* Begins the rows of this fold in validation.csv; unreadable rows of earlier folds are dropped with
 * a warning. */
static stk_status begin_validation(const fold_run *fold, stk_error *err) {
    stk_job *job = fold->job;
    stk_error why = {0};
    stk_status status = stk_val_table_begin(&job->out.val, job->progress.fold, fold->val_samples,
                                            fold->split.val_count, err);
    if (status == STK_OK && stk_val_table_take_earlier(&job->out.val, &why) != STK_OK) {
        stk_events_warning(&job->events, "validation.csv begins anew with fold %d: %s",
                           job->progress.fold, why.message);
    }
    return status;
}

/* Sets the first weights; *ready is false when there was no time for it. */
static stk_status begin(fold_run *fold, bool *ready, stk_error *err) {
    stk_error why = {0};
    stk_status status = first_weights(fold, &why);
    *ready = status != STK_ERR_STOPPED;
    return status == STK_OK || !*ready ? STK_OK : STK_FAIL(err, status, "%s", why.message);
}

/* Finds the learning rate if needed, and trains. */
static stk_status try_to_train(fold_run *fold, stk_error *err) {
    stk_job *job = fold->job;
    stk_fold_pace_reset(&fold->pace);
    fold->result = (stk_train_result){.best_metric = NAN};
    stk_status status = stk_is_auto_double(job->recipe.lr) ? find_lr(fold, err) : STK_OK;
    if (status != STK_OK || stk_is_auto_double(job->recipe.lr)) {
        return status; /* failed, or stopped before a rate was found: a resume repeats the test */
    }
    status = train(fold, err);
    emit_halted(fold);
    stk_training_monitor_end_fold(job->monitor);
    int workers = stk_training_monitor_workers(job->monitor);
    if (workers > 0) { /* for predictions and later folds */
        job->recipe = stk_recipe_with_workers(&job->recipe, workers);
    }
    add_work(fold);
    return status;
}

/* Goes back to the last saved state, or to the beginning (*ready as for begin()), and saves it
 * again with the batch of the new recipe. */
static stk_status restart_smaller(fold_run *fold, const char *what, const stk_error *cause,
                                  bool *ready, stk_error *err) {
    stk_job *job = fold->job;
    char event[192];
    char why[sizeof cause->message];
    stk_status status = load(fold, false, &fold->position, &fold->begun, err);
    *ready = true;
    if (status == STK_OK && !fold->begun) {
        status = begin(fold, ready, err);
    }
    if (status != STK_OK || !*ready) {
        return status;
    }
    const stk_train_position *at = &fold->position;
    if (fold->begun) {
        save_position(fold, at);
    }
    if (fold->begun && (at->epoch > 0 || at->step > 0)) {
        snprintf(event, sizeof event, "%s, from step %lld of epoch %d", what,
                 (long long)at->step + 1, at->epoch + 1);
    } else {
        snprintf(event, sizeof event, "%s, from the start", what);
    }
    stk_error_cause(cause, why, sizeof why);
    stk_events_decision(&job->events, event, why);
    return STK_OK;
}

/* Training cannot go on without memory: the run delivers what it has, and then reports the error.
 */
static void end_without_memory(stk_job *job, const stk_error *why, const char *what) {
    char cause[512]; /* leaves room for the remedy */
    stk_error_cause(why, cause, sizeof cause);
    job->progress.out_of_memory = true;
    job->progress.cut = true;
    job->progress.stop_reason = "error";
    (void)STK_FAIL(&job->out.late_error, STK_ERR_MEMORY,
                   "%s; %s: end what else uses the memory, or use a smaller --img-size or --model",
                   cause, what);
}

static void end_without_memory_at(stk_job *job, size_t batch, const stk_error *why) {
    char what[64];
    snprintf(what, sizeof what, "nothing smaller than batch %zu can be tried", batch);
    end_without_memory(job, why, what);
}

/* Trains, with smaller batches whenever memory runs out. */
static stk_status train_in_memory(fold_run *fold, stk_error *err) {
    stk_job *job = fold->job;
    stk_status status = STK_ERR_MEMORY;
    while (status == STK_ERR_MEMORY) {
        stk_error why = {0};
        char what[128];
        bool ready;
        status = try_to_train(fold, &why);
        if (status == STK_ERR_MEMORY) {
            job->recipe = stk_recipe_shrink(&job->recipe, job->loader_options,
                                            fold->result.validating, what, sizeof what);
            if (what[0] == '\0') {
                end_without_memory_at(job, job->recipe.batch, &why);
                return STK_OK;
            }
            stk_state_saver_wait(&job->saver);
            stk_write_behind_free(&job->saver.writer); /* frees the memory of the copy */
            stk_error lost = {0};
            stk_status back = restart_smaller(fold, what, &why, &ready, &lost);
            if (back == STK_ERR_MEMORY) {
                end_without_memory(job, &lost, "what was saved last cannot be gone back to");
                return STK_OK;
            }
            if (back != STK_OK || !ready) {
                fold->result.halted = true;
                return back == STK_OK ? STK_OK : STK_FAIL(err, back, "%s", lost.message);
            }
        } else if (status != STK_OK) {
            (void)STK_FAIL(err, status, "%s", why.message);
        }
    }
    return status;
}

/* Predicts; without memory for it, the trained weights are still delivered. */
static stk_status predict_in_memory(fold_run *fold, stk_error *err) {
    stk_error why = {0};
    stk_status status = predict(fold, &why);
    if (status == STK_ERR_MEMORY) {
        end_without_memory_at(fold->job, 1, &why);
        return STK_OK;
    }
    return status == STK_OK ? STK_OK : STK_FAIL(err, status, "%s", why.message);
}

stk_status stk_job_run_fold(stk_job *job, stk_error *err) {
    fold_run fold = {.job = job,
                     .pace = {.recipe = &job->recipe,
                              .clock = &job->clock,
                              .events = &job->events,
                              .time = &job->time,
                              .progress = &job->progress,
                              .saver = &job->saver,
                              .test_images = job->out.ensemble.rows}};
    stk_fold_pace_begin(&fold.pace);
    stk_status status = stk_fold_split(job->dataset, &job->recipe, job->progress.fold, &fold.split,
                                       &fold.val_samples, err);
    fold.pace.val_images = fold.split.val_count;
    if (status == STK_OK) {
        status = make_paths(&fold, err);
    }
    if (status == STK_OK) {
        status = begin_validation(&fold, err);
    }
    bool ready = true;
    if (status == STK_OK) {
        status = begin(&fold, &ready, err);
    }
    ready = ready && status == STK_OK;
    if (ready) {
        status = train_in_memory(&fold, err);
        warn_not_cached(job);
    }
    if (status == STK_OK && (!ready || stk_is_auto_double(job->recipe.lr))) {
        job->progress.cut = true; /* stopped meanwhile: a resume begins this fold again */
        job->progress.stop_reason = job->progress.out_of_memory ? job->progress.stop_reason : NULL;
        close_fold(&fold);
        return STK_OK;
    }
    if (ready) {
        status = status == STK_OK ? check_prior(&fold, err) : status;
        add_result(&fold, status != STK_OK);
    }
    if (status == STK_OK) {
        status = predict_in_memory(&fold, err);
    }
    stk_state_saver_wait(&job->saver);
    stk_job_write_validation(job, true);
    close_fold(&fold);
    return status;
}
