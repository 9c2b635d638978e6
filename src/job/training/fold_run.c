/*
 * fold_run.c - the steps of a fold in their order: first weights, learning rate, training,
 * predictions. stk_job_run_fold() at the end calls them.
 */
#include "job/training/fold_run.h"

#include <math.h>
#include <stdio.h>

#include "base/error.h"
#include "base/files/disk.h"
#include "base/files/file.h"
#include "base/mem.h"
#include "job/training/folds.h"
#include "job/training/lr_test.h"

/* Sets the weights to begin with. In the fold that a resumed run continues, the first call loads
 * the saved state; a later call is for a fold that begins again. */
static stk_status first_weights(stk_running_fold *fold, stk_error *err) {
    stk_job *job = fold->job;
    bool saved = job->resume.on && job->tally.fold == job->resume.state.fold;
    if (!saved || fold->resumed) {
        return stk_network_first_weights(&job->network, &job->recipe, job->tally.fold, &job->clock,
                                         err);
    }
    bool there = false;
    if (!stk_path_is_file(fold->best_path)) {
        (void)stk_disk_rename(fold->other_path,
                              fold->best_path); /* the resumed run may make them good enough */
    }
    stk_status status = stk_fold_load_state(fold, false, &fold->position, &there, err);
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
    return status;
}

static stk_loader_config training_data(const stk_running_fold *fold) {
    stk_job *job = fold->job;
    stk_loader_config data = stk_job_loader_config(job, true, job->dataset->train.items,
                                                   fold->split.train, fold->split.train_count);
    data.fingerprints = stk_seen_pictures_of(&job->saver.pictures.train);
    /* Bad pictures count over both sets: a few are many in a small validation set. */
    data.stop_after_bad =
        stk_loader_bad_limit(job->loader_options, data.count + fold->split.val_count);
    return data;
}

static stk_status train(stk_running_fold *fold, stk_error *err) {
    stk_job *job = fold->job;
    stk_train_config config = {
        .backend = job->network.opened.backend,
        .state = job->network.state,
        .graph = job->network.graph,
        .options = &job->recipe.train,
        .lr = job->recipe.lr,
        .train_compile = stk_network_compile_config(&job->network, &job->recipe, true),
        .val_compile = stk_network_compile_config(&job->network, &job->recipe, false),
        .small_graph = job->network.early_graph,
        .small_val_graph = job->network.early_eval_graph,
        .train_data = training_data(fold),
        .val_data = stk_job_loader_config(job, false, fold->val_samples, fold->split.val,
                                          fold->split.val_count),
        .seed = job->recipe.seed + (uint64_t)job->tally.fold,
        .fold = job->tally.fold,
        .events = &job->events,
        .sample_results = &job->out.val.now,
        .calibration = &fold->calibration,
        .outputs = &job->outputs,
        .ranked = job->dataset->answer.most,
        .stranger =
            job->dataset->answer.kind == STK_ANSWER_RANKED ? job->dataset->answer.stranger : -1,
        .exclusive = job->dataset->targets.exclusive,
        .by_rows = job->dataset->train_has_rows,
        .pool = stk_job_pool(job),
        .hooks = stk_fold_hooks(fold),
        .resume = fold->begun ? &fold->position : NULL,
        .execs = &job->network.execs,
        .predicts = job->out.ensemble.rows > 0};
    config.val_data.fingerprints = stk_seen_pictures_of(fold->val_samples == job->dataset->val.items
                                                            ? &job->saver.pictures.val
                                                            : &job->saver.pictures.train);
    /* Shuffled, so that a validation that ends early has seen some of each class. */
    config.val_data.order.shuffle = true;
    config.val_data.stop_after_bad = config.train_data.stop_after_bad;
    return stk_train_fold(&config, &fold->result, err);
}

/* Predicts with the best weights. The test set comes first, because the user asked for it. */
static stk_status predict(stk_running_fold *fold, stk_error *err) {
    stk_job *job = fold->job;
    bool test = job->out.ensemble.rows > 0;
    bool oof = job->recipe.folds > 1 && fold->split.val_count > 0;
    job->clock.predict_s = 0; /* from here on all time is for predicting */
    if (!fold->result.has_best || fold->below_prior || fold->unfinished || (!test && !oof)) {
        return STK_OK;
    }
    if (stk_run_clock_must_write(&job->clock)) {
        if (test) {
            stk_job_miss_test(job);
            job->tally.cut = true;
        }
        return STK_OK;
    }
    stk_status status = STK_OK;
    stk_recipe usual = job->recipe;
    if (fold->result.best_small) { /* the weights know no other pictures */
        job->recipe = stk_recipe_with_early_sizes(&usual);
    }
    if (!job->tally.weights_lost) {
        status = stk_fold_load_weights(fold, err);
    }
    if (status == STK_OK && test) {
        bool whole = false;
        status = stk_job_predict_test(job, &fold->calibration, &whole, err);
        job->tally.cut = job->tally.cut || !whole;
    }
    oof = oof && !stk_run_clock_must_write(&job->clock);
    if (status == STK_OK && oof) {
        status = stk_job_predict_oof(job, &fold->calibration, &fold->split, fold->val_samples, err);
    }
    job->recipe = stk_recipe_with_sizes_of(&job->recipe, &usual);
    return status;
}

/* Warns, once, that the device cannot keep its compiled kernels for the next start. */
static void warn_not_cached(stk_job *job) {
    const stk_opened_device *opened = &job->network.opened;
    stk_device_counts counts = {0};
    if (job->tally.cache_warned || opened->backend->counts == NULL) {
        return;
    }
    opened->backend->counts(opened->device, &counts);
    if (counts.unkept != NULL) {
        stk_events_warning(&job->events, "the next start compiles and times all of it again: %s",
                           counts.unkept);
        job->tally.cache_warned = true;
    }
}

static char *path_of(const stk_job *job, const char *name) {
    return stk_fold_file(&job->out.folder, &job->recipe, job->tally.fold, name);
}

static stk_status make_paths(stk_running_fold *fold, stk_error *err) {
    char *dir = path_of(fold->job, "");
    bool refit = stk_recipe_is_refit(&fold->job->recipe, fold->job->tally.fold);
    fold->best_path = path_of(fold->job, refit ? "unfinished.safetensors" : "best.safetensors");
    fold->last_path = path_of(fold->job, "last.safetensors");
    fold->other_path = path_of(fold->job, refit ? "best.safetensors" : "below_prior.safetensors");
    bool there = dir != NULL && fold->best_path != NULL && fold->last_path != NULL &&
                 fold->other_path != NULL;
    stk_status status = there ? stk_dir_make(dir, err) : STK_FAIL_MEMORY(err, "a path");
    stk_mem_free(dir);
    return status;
}

static void close_fold(stk_running_fold *fold) {
    stk_split_free(&fold->split);
    stk_mem_free(fold->best_path);
    stk_mem_free(fold->last_path);
    stk_mem_free(fold->other_path);
    stk_calibration_free(&fold->calibration);
}

/* Finds the learning rate. A state is saved first, so that a resume repeats a test that was cut. */
static stk_status find_lr(stk_running_fold *fold, stk_error *err) {
    stk_job *job = fold->job;
    double start_s = stk_run_clock_elapsed(&job->clock);
    stk_loader_config data = training_data(fold);
    if (!fold->begun) {
        stk_train_position start = {.batch = (int64_t)job->recipe.batch,
                                    .accumulate = job->recipe.train.accumulate,
                                    .lr_scale = 1,
                                    .small = job->network.early_graph != NULL,
                                    .best_metric = NAN,
                                    .watch = stk_loss_watch_new(job->network.graph->classes)};
        stk_fold_save_position(fold, &start);
    }
    stk_lr_test test = stk_job_lr_test(job);
    double lr = STK_AUTO_DOUBLE;
    stk_status status = stk_lr_test_find(&test, &data, &lr, err);
    stk_fold_pace_leave_out(&fold->pace, stk_run_clock_elapsed(&job->clock) - start_s);
    if (status != STK_OK || stk_is_auto_double(lr)) {
        return status;
    }
    job->recipe = stk_recipe_with_lr(&job->recipe, lr);
    return stk_job_write_args(&job->out.folder, job->options, err);
}

/* Begins the rows of this fold in validation.csv; unreadable rows of earlier folds are dropped with
 * a warning. */
static stk_status begin_validation(const stk_running_fold *fold, stk_error *err) {
    stk_job *job = fold->job;
    stk_error why = {0};
    stk_status status = stk_val_table_begin(&job->out.val, job->dataset, job->tally.fold,
                                            fold->val_samples, fold->split.val_count, err);
    if (status == STK_OK && stk_val_table_take_earlier(&job->out.val, &why) != STK_OK) {
        stk_events_warning(&job->events, "validation.csv begins anew with fold %d: %s",
                           job->tally.fold + 1, why.message);
    }
    return status;
}

/* Sets the first weights; *ready is false when there was no time for it. */
static stk_status begin(stk_running_fold *fold, bool *ready, stk_error *err) {
    stk_error why = {0};
    stk_status status = first_weights(fold, &why);
    *ready = status != STK_ERR_STOPPED;
    return status == STK_OK || !*ready ? STK_OK : STK_FAIL(err, status, "%s", why.message);
}

/* Finds the learning rate if needed, and trains. */
static stk_status try_to_train(stk_running_fold *fold, stk_error *err) {
    stk_job *job = fold->job;
    stk_fold_pace_reset(&fold->pace);
    fold->result = (stk_train_result){.best_metric = NAN};
    stk_status status = stk_is_auto_double(job->recipe.lr) ? find_lr(fold, err) : STK_OK;
    if (status != STK_OK || stk_is_auto_double(job->recipe.lr)) {
        return status; /* failed, or stopped before a rate was found: a resume repeats the test */
    }
    status = train(fold, err);
    stk_fold_emit_halted(fold);
    stk_training_monitor_end_fold(job->monitor);
    int workers = stk_training_monitor_workers(job->monitor);
    if (workers > 0) { /* for predictions and later folds */
        job->recipe = stk_recipe_with_workers(&job->recipe, workers);
    }
    stk_fold_add_work(fold);
    return status;
}

/* Goes back to the last saved state, or to the beginning (*ready as for begin()), and saves it
 * again with the batch of the new recipe. */
static stk_status restart_smaller(stk_running_fold *fold, const char *what, const stk_error *cause,
                                  bool *ready, stk_error *err) {
    stk_job *job = fold->job;
    char event[192];
    char why[sizeof cause->message];
    stk_status status = stk_fold_load_replanned(fold, false, &fold->position, &fold->begun, err);
    *ready = true;
    if (status == STK_OK && !fold->begun) {
        status = begin(fold, ready, err);
    }
    if (status != STK_OK || !*ready) {
        return status;
    }
    const stk_train_position *at = &fold->position;
    if (fold->begun) {
        stk_fold_save_position(fold, at);
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
    job->tally.out_of_memory = true;
    job->tally.cut = true;
    job->tally.stop_reason = "error";
    (void)STK_FAIL(&job->out.late_error, STK_ERR_MEMORY,
                   "%s; %s: end what else uses the memory, or use a smaller --img-size or --model",
                   cause, what);
}

static void end_without_memory_at(stk_job *job, size_t batch, const stk_error *why) {
    char what[64];
    snprintf(what, sizeof what, "nothing smaller than batch %zu can be tried", batch);
    end_without_memory(job, why, what);
}

/* Needs less memory from now on: without the networks that are kept, or else with smaller batches.
 * `what` becomes that in words; "": there is nothing to give up. */
static void need_less_memory(const stk_running_fold *fold, char *what, size_t room) {
    stk_job *job = fold->job;
    if (job->network.execs.count > 0) {
        stk_exec_cache_clear(&job->network.execs);
        snprintf(what, room, "batch %zu x %lld again, without networks kept for later",
                 job->recipe.batch, (long long)job->recipe.train.accumulate);
    } else {
        job->recipe = stk_recipe_shrink(&job->recipe, job->loader_options, fold->result.validating,
                                        what, room);
    }
}

/* Trains, with less memory whenever it runs out. */
static stk_status train_in_memory(stk_running_fold *fold, stk_error *err) {
    stk_job *job = fold->job;
    stk_status status = STK_ERR_MEMORY;
    while (status == STK_ERR_MEMORY) {
        stk_error why = {0};
        char what[128];
        bool ready;
        status = try_to_train(fold, &why);
        if (status == STK_ERR_MEMORY) {
            need_less_memory(fold, what, sizeof what);
            if (what[0] == '\0') {
                end_without_memory_at(job, job->recipe.batch, &why);
                return STK_OK;
            }
            stk_state_saver_free_copy(&job->saver);
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

/* Predicts. If there is no memory to predict, the trained weights are still delivered. */
static stk_status predict_in_memory(stk_running_fold *fold, stk_error *err) {
    stk_error why = {0};
    stk_status status = predict(fold, &why);
    if (status == STK_ERR_MEMORY) {
        end_without_memory_at(fold->job, 1, &why);
        return STK_OK;
    }
    return status == STK_OK ? STK_OK : STK_FAIL(err, status, "%s", why.message);
}

/* Gives the weights of the first fold a second name, that of a run without folds, for programs that
 * want one model. Its absence is no failure: every model has its own file. */
static void name_single_model(const stk_running_fold *fold) {
    const stk_job *job = fold->job;
    char *path = stk_run_folder_file(&job->out.folder, "weights/best.safetensors");
    stk_error ignored = {0};
    if (path != NULL && job->recipe.folds > 1 && job->tally.folds_done == 1 &&
        stk_path_is_file(fold->best_path)) {
        (void)!stk_file_alias(fold->best_path, path, &ignored);
    }
    stk_mem_free(path);
}

stk_status stk_job_run_fold(stk_job *job, stk_error *err) {
    stk_running_fold fold = {.job = job,
                             .pace = {.recipe = &job->recipe,
                                      .clock = &job->clock,
                                      .events = &job->events,
                                      .time = &job->time,
                                      .tally = &job->tally,
                                      .saver = &job->saver,
                                      .test_images = job->out.ensemble.rows}};
    stk_fold_pace_begin(&fold.pace);
    stk_status status = stk_fold_split(job->dataset, &job->recipe, job->tally.fold, &fold.split,
                                       &fold.val_samples, err);
    fold.pace.val_images = fold.split.val_count;
    if (fold.split.val_count > 0) {
        job->out.val_scored = job->dataset->train_has_rows ? 0 : fold.split.val_count;
    }
    STK_THEN(status, make_paths(&fold, err));
    STK_THEN(status, begin_validation(&fold, err));
    if (status == STK_OK && stk_recipe_is_refit(&job->recipe, job->tally.fold)) {
        status = stk_calibration_mean_take(&job->out.validated, &fold.calibration, err);
        fold.means_wanted = stk_calibration_mean_means(&job->out.validated);
    }
    fold.pace.means_images = stk_fold_means_images(&fold);
    bool ready = true;
    STK_THEN(status, begin(&fold, &ready, err));
    ready = ready && status == STK_OK;
    if (ready) {
        status = train_in_memory(&fold, err);
        warn_not_cached(job);
    }
    if (status == STK_OK && (!ready || stk_is_auto_double(job->recipe.lr))) {
        job->tally.cut = true; /* stopped meanwhile: a resume begins this fold again */
        job->tally.stop_reason = job->tally.out_of_memory ? job->tally.stop_reason : NULL;
        close_fold(&fold);
        return STK_OK;
    }
    if (ready) {
        STK_THEN(status, stk_fold_check_prior(&fold, err));
        stk_fold_check_refit(&fold, status != STK_OK);
        if (status == STK_OK) {
            stk_fold_join_means(&fold);
        }
        stk_fold_add_result(&fold, status != STK_OK);
        name_single_model(&fold);
    }
    if (status == STK_OK) {
        stk_fold_take_calibration(&fold);
    }
    STK_THEN(status, predict_in_memory(&fold, err));
    stk_state_saver_wait(&job->saver);
    stk_job_write_validation(job, true);
    close_fold(&fold);
    return status;
}
