/* fold_run.c - one fold of a run: weights, pace, checkpoints, predictions. */
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
#include "job/training_monitor.h"
#include "job/folds.h"
#include "job/pace.h"
#include "weights/checkpoint.h"

typedef struct fold_run {
    stk_job *job;
    stk_split split;
    const stk_sample *val_samples; /* what split.val refers to */
    char *best_path;               /* owned */
    char *last_path;               /* owned */
    char *unfit_path;              /* owned: where best weights go that do not beat class priors */
    bool unfit;                    /* they do not, and have gone there */
    double left_s;                 /* before writing, when the last step was planned */
    stk_fold_pace pace;            /* how far it goes */
    stk_inference_watch watch;     /* of the running validation */
    bool resumed;                  /* an earlier process began it */
    bool begun;                    /* it was begun before, here or by an earlier process */
    stk_train_position position;   /* where training goes on then */
    stk_train_result result;
} fold_run;

/* Of the time that is left before the first validation: what is kept for predicting. A busy machine
 * stretches it. */
#define FIRST_PREDICTION 0.4

static stk_train_pace pace(void *user, const stk_train_progress *progress) {
    fold_run *fold = user;
    stk_job_look_at_state(fold->job);
    fold->left_s = stk_run_clock_before_writing(&fold->job->clock);
    stk_train_pace pace = stk_job_pace(&fold->pace, progress);
    if (!progress->over) { /* no step follows that they could look at, or change */
        stk_training_monitor_step(fold->job, progress, &pace);
    }
    return pace;
}

/* A request to stop need not wait for a network that nothing is computed with any more. */
static void compiling(void *user, bool begins) {
    fold_run *fold = user;
    fold->job->clock.halt_on_stop = begins;
}

/* Seconds to be kept for saving the best weights, which waits for the state to be settled. */
static double save_seconds(const stk_job *job) {
    return stk_job_settle_seconds(job) + STK_MARGIN_SAFETY * stk_job_best_seconds(job);
}

/*
 * A validation ends when only the time for saving its weights and predicting with the best so far
 * is left: by its own pace, or until that is known by what was planned. One view is enough for
 * that: others are given up before what was trained is. While there is nothing to predict with,
 * ending it loses the only model: an estimate of that time does not take more than a part of all,
 * and times count as they were measured, without a safety on top.
 */
static bool validation_must_end(void *user, size_t seen, double seconds) {
    fold_run *fold = user;
    stk_job *job = fold->job;
    double view_s = job->predict_s > 0 ? job->predict_s / job->views : 0;
    if (seen == 0) {
        fold->watch = (stk_inference_watch){.images = fold->split.val_count,
                                            .test_images = job->ensemble.rows};
    }
    double picture_s = stk_inference_look(&fold->watch, seen, seconds);
    if (!isnan(picture_s) && job->ensemble.rows > 0) {
        double begin_s = fold->watch.first_s + stk_job_best_seconds(job); /* and read the weights */
        view_s = begin_s + picture_s * (double)job->ensemble.rows;
    }
    if (!fold->result.has_best) {
        view_s = fmin(view_s, FIRST_PREDICTION * fold->left_s);
        double left_s = stk_run_clock_before_writing(&job->clock);
        return stk_run_clock_must_write(&job->clock) ||
               left_s < view_s + stk_job_state_rest_seconds(job) + stk_job_best_seconds(job);
    }
    return stk_run_clock_must_halt(&job->clock, view_s + save_seconds(job));
}

static stk_status save(const stk_job *job, const char *path, const stk_event_epoch *epoch,
                       stk_error *err) {
    const stk_model *model = job->choice.model;
    stk_checkpoint_info info = {.model = (char *)(uintptr_t)model->name,
                                .classes = (char **)(uintptr_t)job->dataset->classes,
                                .class_count = job->dataset->class_count,
                                .img_size = job->choice.img_size,
                                .crop_fraction = model->crop_fraction,
                                .interpolation = model->interpolation,
                                .acc1 = epoch->val_acc1,
                                .epoch = epoch->epoch,
                                .averaged = job->state_config.ema};
    memcpy(info.mean, job->graph->mean, sizeof info.mean);
    memcpy(info.std, job->graph->std, sizeof info.std);
    return stk_checkpoint_save(path, job->choice.opened.backend, job->state, job->graph, &info,
                               err);
}

/* The last weights: where they are the best ones, too, that file gets a second name. */
static stk_status save_last(const fold_run *fold, const stk_event_epoch *epoch, bool best,
                            stk_error *err) {
    return best ? stk_file_alias(fold->best_path, fold->last_path, err)
                : save(fold->job, fold->last_path, epoch, err);
}

static bool is_of_device(const stk_error *why) {
    return why->status == STK_ERR_DEVICE || why->status == STK_ERR_MEMORY;
}

/*
 * Best weights that cannot be saved end the training, but they are still there to predict with: the
 * run delivers and then tells the error. Last weights that cannot are told in the same way. When
 * the device is the reason, nothing is there any more; when memory is, there may be some with
 * smaller batches.
 */
static stk_status checkpoint(void *user, const stk_event_epoch *epoch, bool best, stk_error *err) {
    fold_run *fold = user;
    stk_job *job = fold->job;
    stk_error why = {0};
    stk_job_settle_state(job);
    int64_t start = stk_clock_ns();
    if (best) {
        stk_job_keep_best(job, fold->best_path);
    }
    if (best && save(job, fold->best_path, epoch, &why) == STK_OK) {
        job->run_state.best_sum = stk_saved_state_sum(fold->best_path);
        stk_typical_note(&job->checkpoint_s, stk_clock_since_s(start));
        stk_events_checkpoint(&job->events, fold->best_path, true);
    } else if (is_of_device(&why)) {
        return STK_FAIL(err, why.status, "%s", why.message);
    } else if (best) {
        job->weights_lost = true;
        stk_events_warning(&job->events, "training ends: %s", why.message);
    }
    if (best && fold->split.val_count > 0) {
        stk_val_table_take_best(&job->val);
        stk_job_write_validation(job, false);
    }
    /* Nothing reads the last weights: they come last when time is short. */
    bool in_time = !stk_run_clock_must_halt(&job->clock, save_seconds(job));
    if (in_time && !job->weights_lost && save_last(fold, epoch, best, &why) != STK_OK) {
        if (is_of_device(&why)) {
            return STK_FAIL(err, why.status, "%s", why.message);
        }
        stk_events_warning(&job->events, "the last weights are not saved: %s", why.message);
    }
    if (why.status != STK_OK) {
        (void)STK_FAIL(&job->late_error, why.status, "%s", why.message);
    }
    return STK_OK;
}

static void save_state(void *user, const stk_train_position *position) {
    const fold_run *fold = user;
    if (!fold->job->weights_lost) { /* it would speak of best weights that are not there */
        stk_job_save_state(fold->job, position);
    }
}

/* In epochs, whatever the batch. */
static double reached(const stk_train_position *at) {
    return at->epoch +
           (double)at->step / (double)(at->steps_per_epoch > 0 ? at->steps_per_epoch : 1);
}

static stk_status load(const fold_run *fold, bool between_epochs, stk_train_position *position,
                       bool *there, stk_error *err) {
    const stk_job *job = fold->job;
    stk_status status =
        stk_job_load_state(fold->job, fold->best_path, between_epochs, position, there, err);
    /* What an earlier process saved knows its own plan only. */
    if (status == STK_OK && *there && fold->resumed &&
        reached(position) <= reached(&job->resume.state.position)) {
        position->schedule = stk_resume_schedule(&job->resume, position, job->choice.epochs_wanted,
                                                 job->clock.budget_s);
    }
    return status;
}

static stk_status load_state(void *user, stk_train_position *position, bool *there,
                             stk_error *err) {
    return load(user, true, position, there, err);
}

/* The weights to begin with, or those that an earlier process has come to. */
static stk_status first_weights(fold_run *fold, stk_error *err) {
    stk_job *job = fold->job;
    if (!job->resume.on || job->resume.taken_up) {
        return stk_job_first_weights(job, err);
    }
    bool there = false;
    if (!stk_path_is_file(fold->best_path)) {
        (void)stk_disk_rename(fold->unfit_path, fold->best_path); /* more may come of them now */
    }
    stk_status status =
        stk_job_load_state(job, fold->best_path, false, &fold->position, &there, err);
    double schedule = fold->position.schedule;
    fold->position.schedule = stk_resume_schedule(&job->resume, &fold->position,
                                                  job->choice.epochs_wanted, job->clock.budget_s);
    if (status == STK_OK && fold->position.schedule < schedule) {
        char what[96];
        snprintf(what, sizeof what, "learning rate as after %.0f %% of the training",
                 100 * fold->position.schedule);
        stk_events_decision(&job->events, what, "there is more to train than was planned");
    }
    if (status == STK_OK && fold->position.has_best) {
        stk_events_checkpoint(&job->events, fold->best_path, true); /* it is in place */
    }
    fold->resumed = true;
    fold->begun = true;
    job->resume.taken_up = true;
    return status;
}

static stk_loader_config training_data(const fold_run *fold) {
    stk_job *job = fold->job;
    stk_loader_config data = stk_job_loader(job, true);
    data.samples = job->dataset->train.items;
    data.indices = fold->split.train;
    data.count = fold->split.train_count;
    data.fingerprints = stk_seen_pictures_of(&job->pictures.train);
    /* A small validation set does not make a few bad pictures many. */
    data.stop_after_bad =
        stk_loader_bad_limit(job->loader_options, data.count + fold->split.val_count);
    return data;
}

static stk_status train(fold_run *fold, stk_error *err) {
    stk_job *job = fold->job;
    stk_train_config config = {.backend = job->choice.opened.backend,
                               .state = job->state,
                               .graph = job->graph,
                               .options = &job->choice.train,
                               .lr = job->choice.lr,
                               .precision = job->choice.opened.precision,
                               .plain = !job->job_options->compile,
                               .train = training_data(fold),
                               .val = stk_job_loader(job, false),
                               .seed = (uint64_t)job->job_options->seed + (uint64_t)job->fold,
                               .fold = job->fold,
                               .events = &job->events,
                               .sample_results = &job->val.now,
                               .hooks = {.user = fold,
                                         .pace = pace,
                                         .checkpoint = checkpoint,
                                         .compiling = compiling,
                                         .validation_must_end = validation_must_end,
                                         .save_state = save_state,
                                         .load_state = load_state,
                                         .save_every_s = job->job_options->save_every_s},
                               .resume = fold->begun ? &fold->position : NULL};
    config.val.samples = fold->val_samples;
    config.val.indices = fold->split.val;
    config.val.count = fold->split.val_count;
    config.val.fingerprints = stk_seen_pictures_of(
        fold->val_samples == job->dataset->val.items ? &job->pictures.val : &job->pictures.train);
    config.val.shuffle = true; /* when there is no time for all, some of each class are seen */
    config.val.stop_after_bad = config.train.stop_after_bad;
    config.val.patience_ns = config.train.patience_ns;
    return stk_train_fold(&config, &fold->result, err);
}

/* The test set first: it is what was asked for, and time may be short. */
static stk_status predict(fold_run *fold, stk_error *err) {
    stk_job *job = fold->job;
    bool test = job->ensemble.rows > 0;
    bool oof = job->folds > 1;
    job->clock.predict_s = 0; /* from here on all of the time is for it */
    if (!fold->result.has_best || fold->unfit || (!test && !oof) ||
        stk_run_clock_must_write(&job->clock)) {
        return STK_OK;
    }
    stk_status status = STK_OK;
    if (!job->weights_lost) {
        status = stk_checkpoint_load(fold->best_path, job->choice.opened.backend, job->state,
                                     job->graph, err);
    }
    if (status == STK_OK && test) {
        status = stk_job_predict_test(job, err);
    }
    oof = oof && !stk_run_clock_must_write(&job->clock);
    return status == STK_OK && oof ? stk_job_predict_oof(job, &fold->split, fold->val_samples, err)
                                   : status;
}

/* The time decided how much was trained. */
static bool ended_by_budget(const fold_run *fold) {
    const stk_job *job = fold->job;
    const stk_train_result *r = &fold->result;
    return !isnan(job->clock.budget_s) && !r->ran_out_of_patience &&
           (job->plan.cut || r->halted ||
            (job->choice.epochs_wanted == 0 && r->epochs_done < STK_BUDGET_MOST_EPOCHS));
}

static bool had_trouble(const fold_run *fold) {
    return fold->result.diverged || fold->job->weights_lost || fold->job->starved;
}

/*
 * A fold that was cut short and does not beat class priors would make the others' predictions
 * worse, or a submission that has the priors: it is not done. Its weights are kept where nobody
 * takes them for a model that votes. Without folds or a test set they are all there is.
 */
static stk_status judge_fold(fold_run *fold, stk_error *err) {
    stk_job *job = fold->job;
    const stk_event_epoch *best = &fold->result.best;
    bool among_others = job->folds > 1;
    bool cut = job->told_stop || ended_by_budget(fold) || (among_others && had_trouble(fold));
    bool replaces = among_others || job->ensemble.rows > 0;
    bool counts = true;
    if (!replaces || !fold->result.has_best || !cut || fold->split.val_count == 0) {
        return STK_OK;
    }
    stk_status status =
        stk_job_fold_counts(job, &fold->split, fold->val_samples, best, &counts, err);
    if (status == STK_OK && !counts) {
        fold->unfit = true;
        job->unfit++;
        stk_job_settle_state(job);
        (void)stk_disk_rename(fold->best_path, fold->unfit_path);
    }
    return status;
}

/* What was done, also where it came to nothing. */
static void add_work(const fold_run *fold) {
    stk_job *job = fold->job;
    const stk_train_result *r = &fold->result;
    stk_margin_note(&job->clock.margin, STK_MARGIN_CLOSING, r->closing_s);
    job->images += r->images;
    job->workers = r->workers > 0 ? r->workers : job->workers;
    job->slots = r->slots > 0 ? r->slots : job->slots;
    job->train_s += r->train_s;
    job->wait_s += r->wait_s;
}

/* What was reached counts also where an error ended it; the fold is then not done. */
static void add_to_summary(fold_run *fold, bool failed) {
    stk_job *job = fold->job;
    stk_summary *s = &job->summary;
    const stk_train_result *r = &fold->result;
    s->epochs_done += r->epochs_done;
    if (r->has_best && !fold->unfit) {
        /* Over folds the mean of the best: what a reader of one number expects. */
        double n = job->folds_done;
        s->best_acc1 = n > 0 ? (s->best_acc1 * n + r->best.val_acc1) / (n + 1) : r->best.val_acc1;
        s->best_metric = n > 0 ? (s->best_metric * n + r->best_metric) / (n + 1) : r->best_metric;
        bool saved = !job->weights_lost || stk_path_is_file(fold->best_path);
        job->folds_done += failed || !saved ? 0 : 1;
    }
    bool stopped = stk_run_clock_stopping(&job->clock);
    bool trouble = had_trouble(fold);
    job->trouble = job->trouble || trouble;
    s->stop_reason = stopped                  ? "signal"
                     : job->trouble           ? "error"
                     : r->ran_out_of_patience ? "patience"
                     : ended_by_budget(fold)  ? "budget"
                                              : "epochs";
    bool short_of_plan = job->plan.cut && !r->ran_out_of_patience;
    job->cut = job->cut || stopped || r->halted || trouble || short_of_plan;
    if (r->diverged) {
        stk_events_warning(&job->events, "training stopped: %s; a lower --lr than %.3g would help",
                           r->trouble, job->choice.lr * r->lr_scale);
    }
}

/* A step that only the end of the budget could end: nothing else says so. */
static void tell_halted(const fold_run *fold) {
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

/* The next start has to make everything again: that is worth a word, and no more. */
static void tell_unkept(stk_job *job) {
    const stk_opened_device *opened = &job->choice.opened;
    stk_device_counts counts = {0};
    if (job->told_unkept || opened->backend->counts == NULL) {
        return;
    }
    opened->backend->counts(opened->device, &counts);
    if (counts.unkept != NULL) {
        stk_events_warning(&job->events, "the next start compiles and times all of it again: %s",
                           counts.unkept);
        job->told_unkept = true;
    }
}

static stk_status make_paths(fold_run *fold, stk_error *err) {
    const stk_job *job = fold->job;
    char *dir = stk_job_fold_file(job, "");
    fold->best_path = stk_job_fold_file(job, "best.safetensors");
    fold->last_path = stk_job_fold_file(job, "last.safetensors");
    fold->unfit_path = stk_job_fold_file(job, "below_prior.safetensors");
    bool there = dir != NULL && fold->best_path != NULL && fold->last_path != NULL &&
                 fold->unfit_path != NULL;
    stk_status status = there ? stk_dir_make(dir, err) : STK_FAIL_MEMORY(err, "a path");
    stk_mem_free(dir);
    return status;
}

static void close_fold(fold_run *fold) {
    stk_split_free(&fold->split);
    stk_mem_free(fold->best_path);
    stk_mem_free(fold->last_path);
    stk_mem_free(fold->unfit_path);
}

/* What there is to go on from is saved first: however the test ends, a resume makes it again. */
static stk_status find_lr(const fold_run *fold, stk_error *err) {
    stk_job *job = fold->job;
    stk_loader_config data = training_data(fold);
    if (!fold->begun) {
        stk_train_position start = {.batch = (int64_t)job->choice.batch,
                                    .accumulate = job->choice.train.accumulate,
                                    .lr_scale = 1,
                                    .best_metric = NAN,
                                    .watch = stk_loss_watch_new(job->graph->classes)};
        stk_job_save_state(job, &start);
    }
    return stk_job_find_lr(job, &data, err);
}

/* Rows of the folds before that cannot be read are worth a word, and no more. */
static stk_status begin_validation(const fold_run *fold, stk_error *err) {
    stk_job *job = fold->job;
    stk_error why = {0};
    stk_status status =
        stk_val_table_begin(&job->val, job->fold, fold->val_samples, fold->split.val_count, err);
    if (status == STK_OK && stk_val_table_take_earlier(&job->val, &why) != STK_OK) {
        stk_events_warning(&job->events, "validation.csv begins anew with fold %d: %s", job->fold,
                           why.message);
    }
    return status;
}

/* *ready is false where there was no time to draw the first weights. */
static stk_status begin(fold_run *fold, bool *ready, stk_error *err) {
    stk_error why = {0};
    stk_status status = first_weights(fold, &why);
    *ready = status != STK_ERR_STOPPED;
    return status == STK_OK || !*ready ? STK_OK : STK_FAIL(err, status, "%s", why.message);
}

/* The learning rate, where it is to be found, and the training. */
static stk_status try_to_train(fold_run *fold, stk_error *err) {
    stk_job *job = fold->job;
    stk_job_pace_anew(&fold->pace);
    fold->result = (stk_train_result){.best_metric = NAN};
    stk_status status = stk_is_auto_double(job->choice.lr) ? find_lr(fold, err) : STK_OK;
    if (status != STK_OK || stk_is_auto_double(job->choice.lr)) {
        return status; /* or asked to stop meanwhile: a resume looks for the rate again */
    }
    status = train(fold, err);
    tell_halted(fold);
    stk_training_monitor_end_fold(job);
    add_work(fold);
    return status;
}

/* What was saved last, or the beginning, for which there may be no time: *ready as for begin(). It
 * is saved again for the batch of now. */
static stk_status go_back(fold_run *fold, const char *what, const stk_error *cause, bool *ready,
                          stk_error *err) {
    stk_job *job = fold->job;
    char told[192];
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
        stk_job_save_state(job, at);
    }
    if (fold->begun && (at->epoch > 0 || at->step > 0)) {
        snprintf(told, sizeof told, "%s, from step %lld of epoch %d", what, (long long)at->step + 1,
                 at->epoch + 1);
    } else {
        snprintf(told, sizeof told, "%s, from the start", what);
    }
    stk_error_cause(cause, why, sizeof why);
    stk_events_decision(&job->events, told, why);
    return STK_OK;
}

/* Trains, with smaller batches when memory runs out. */
static stk_status train_in_memory(fold_run *fold, stk_error *err) {
    stk_job *job = fold->job;
    stk_status status = STK_ERR_MEMORY;
    while (status == STK_ERR_MEMORY) {
        stk_error why = {0};
        char what[128];
        bool ready;
        status = try_to_train(fold, &why);
        if (status == STK_ERR_MEMORY &&
            !stk_job_shrink(job, fold->result.validating, what, sizeof what)) {
            stk_job_starve_at(job, job->choice.batch, &why);
            return STK_OK;
        }
        if (status == STK_ERR_MEMORY) {
            stk_job_settle_state(job);
            stk_write_behind_free(&job->behind); /* the copy's memory may be what is missing */
            stk_error lost = {0};
            stk_status back = go_back(fold, what, &why, &ready, &lost);
            if (back == STK_ERR_MEMORY) {
                stk_job_starve(job, &lost, "what was saved last cannot be gone back to");
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

/* What was trained stays where there is no memory to predict with it. */
static stk_status predict_in_memory(fold_run *fold, stk_error *err) {
    stk_error why = {0};
    stk_status status = predict(fold, &why);
    if (status == STK_ERR_MEMORY) {
        stk_job_starve_at(fold->job, 1, &why);
        return STK_OK;
    }
    return status == STK_OK ? STK_OK : STK_FAIL(err, status, "%s", why.message);
}

stk_status stk_job_fold(stk_job *job, stk_error *err) {
    fold_run fold = {.job = job};
    stk_job_pace_open(&fold.pace, job);
    stk_status status = stk_job_split(job, job->fold, &fold.split, &fold.val_samples, err);
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
        tell_unkept(job);
    }
    if (status == STK_OK && (!ready || stk_is_auto_double(job->choice.lr))) {
        job->cut = true; /* asked to stop meanwhile: a resume begins it again */
        job->summary.stop_reason = job->starved ? job->summary.stop_reason : NULL;
        close_fold(&fold);
        return STK_OK;
    }
    if (ready) {
        status = status == STK_OK ? judge_fold(&fold, err) : status;
        add_to_summary(&fold, status != STK_OK);
    }
    if (status == STK_OK) {
        status = predict_in_memory(&fold, err);
    }
    stk_job_settle_state(job);
    stk_job_write_validation(job, true);
    close_fold(&fold);
    return status;
}
