/*
 * state_saver.c - keeping what --resume goes on from, and going back to it.
 *
 * The best weights are a file of their own, which is replaced before the state is, and so is the
 * table of what they said of the validation pictures. Until the state follows, the files that it
 * speaks of are kept beside it under other names, so that all three belong together whenever the
 * process ends. The table is kept first and put back or let go so that kept weights without a kept
 * table mean that there was none.
 *
 * The disk takes its time for a state, and training does not wait for it: the tensors are copied,
 * and a thread writes the copy and then removes what was kept for the state before, which takes a
 * disk its time as well. Until that is settled the state before counts, and nothing that either of
 * them speaks of is replaced.
 */
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/error.h"
#include "base/files/disk.h"
#include "base/files/file.h"
#include "base/machine.h"
#include "base/mem.h"
#include "job/folds.h"
#include "job/job_state.h"
#include "weights/checkpoint.h"

/* Bytes per second that a slow disk takes: what is reckoned with before the first time. */
#define SLOW_WRITE 200e6

/* What saving may take, of the time that is left, before anything is learnt. */
#define START_SHARE 0.1

/* Of the budget: what saving that was measured once is thought to take at most. */
#define ONCE_SHARE 0.05

/* How often somebody who waits for a state looks whether to, and how long one who has to stop does.
 */
#define LOOK_NS 20000000
#define STOP_S 5.0

/* A copy may take one part of so many of the memory; a larger state is written at once. */
#define COPY_SHARE 8

void stk_job_keep_best(stk_job *job, const char *best_path) {
    if (!stk_path_is_file(best_path) || stk_path_is_file(job->kept_best)) {
        return; /* nothing to keep, or what the state speaks of is kept already */
    }
    if (stk_file_alias(job->val.path, job->val.kept, NULL) != STK_OK) {
        (void)stk_disk_remove(
            job->val.kept); /* going back takes the rows of this fold out of the table */
    }
    if (stk_file_alias(best_path, job->kept_best, NULL) != STK_OK) {
        (void)stk_disk_remove(job->val.kept);
        stk_events_warning(&job->events,
                           "%s cannot be kept: after a resume the best weights may be those of an "
                           "epoch that was cut short",
                           best_path);
    }
}

/* Before a moment within an epoch takes its place. */
static void keep_epoch(stk_job *job) {
    if (job->between_epochs) {
        if (stk_file_alias(job->state_path, job->epoch_path, NULL) != STK_OK) {
            stk_events_warning(&job->events, "%s cannot be kept: there is no going back",
                               job->state_path);
        }
        job->between_epochs = false;
    }
}

static void let_kept_go(const stk_job *job) {
    (void)stk_disk_remove(job->val.kept);
    (void)stk_disk_remove(job->kept_best);
}

static uint64_t state_bytes(const stk_job *job) {
    return job->choice.opened.backend->state_bytes(job->graph, &job->state_config);
}

/* Seconds that saving will take, by the last time or by how much it is. */
static double write_seconds(const stk_job *job) {
    return job->state_write_s.count > 0 ? stk_typical_value(&job->state_write_s)
                                        : (double)state_bytes(job) / SLOW_WRITE;
}

/* When time is short it is for the predictions, and before the first step it is for steps. */
static bool has_time(stk_job *job, const stk_train_position *position) {
    double seconds = write_seconds(job);
    double all_s = stk_job_settle_seconds(job) + STK_MARGIN_SAFETY * seconds;
    return !stk_run_clock_must_halt(&job->clock, all_s) &&
           (position->steps_done > 0 ||
            seconds <= START_SHARE * stk_run_clock_before_writing(&job->clock));
}

/* Of what is on its way: so many times what it takes, or has taken by now, less what has passed. */
static double rest_seconds(const stk_job *job, double times) {
    if (!stk_write_behind_is_pending(&job->behind) || stk_write_behind_is_done(&job->behind)) {
        return 0;
    }
    double age_s = stk_write_behind_age(&job->behind);
    return times * fmax(write_seconds(job), age_s) - age_s;
}

double stk_job_settle_seconds(const stk_job *job) {
    return rest_seconds(job, STK_MARGIN_SAFETY);
}

double stk_job_state_rest_seconds(const stk_job *job) {
    return rest_seconds(job, 1);
}

/* 0: never measured. What was measured once may have been held up: it does not end a training. */
static double usual(const stk_job *job, const stk_typical *seconds) {
    double once_s = seconds->count < 2 ? ONCE_SHARE * job->clock.budget_s : NAN;
    return seconds->count > 0 ? fmin(stk_typical_value(seconds), once_s) : 0;
}

/*
 * The state has them too and takes no less: weights that took longer were held up. Before either
 * was written it is known how much they are.
 */
double stk_job_best_seconds(const stk_job *job) {
    double state_s = usual(job, &job->state_write_s);
    double best_s = usual(job, &job->checkpoint_s);
    if (state_s <= 0 && best_s <= 0 && job->graph != NULL) {
        return (double)(job->graph->param_elements * sizeof(float)) / SLOW_WRITE;
    }
    return best_s > 0 && state_s > 0 ? fmin(best_s, state_s) : fmax(best_s, state_s);
}

double stk_job_save_seconds(const stk_job *job) {
    return stk_job_best_seconds(job) + usual(job, &job->state_copy_s) +
           usual(job, &job->state_wait_s);
}

static void tell_unsaved(stk_job *job, const stk_error *why) {
    if (!job->state_lost) {
        job->state_lost = true;
        stk_events_warning(&job->events, "a resume would go on from an earlier epoch: %s",
                           why->message);
    }
    /* Who wants the run to end now does not wait for its last state: that is no fault. */
    if (stk_stop_asked(job->clock.stop) != STK_STOP_NOW) {
        (void)STK_FAIL(&job->late_error, why->status, "%s", why->message);
    }
}

/*
 * Waits for the state that is on its way; false: its disk hangs, as far as can be told. Predictions
 * do not wait for it, nor does who has asked to stop.
 */
static bool wait_for_state(stk_job *job) {
    double predict_s = STK_MARGIN_SAFETY * job->clock.predict_s;
    int64_t stop_ns = 0;
    while (!stk_write_behind_wait(&job->behind, stk_clock_ns() + LOOK_NS)) {
        if (stk_run_clock_stopping(&job->clock) && stop_ns == 0) {
            stop_ns = stk_clock_ns();
        }
        bool stopped = stop_ns != 0 && stk_clock_since_s(stop_ns) >= STOP_S;
        if (stopped || stk_run_clock_must_halt(&job->clock, predict_s) ||
            stk_write_behind_age(&job->behind) >= STK_DISK_MOVE_S) {
            return false;
        }
    }
    return true;
}

void stk_job_settle_state(stk_job *job) {
    stk_error why = {0};
    if (!stk_write_behind_is_pending(&job->behind)) {
        return;
    }
    int64_t start = stk_clock_ns();
    stk_status status = wait_for_state(job) ? stk_write_behind_finish(&job->behind, &why)
                                            : stk_write_behind_give_up(&job->behind, &why);
    stk_typical_note(&job->state_wait_s, stk_clock_since_s(start));
    if (status != STK_OK) {
        tell_unsaved(job, &why);
        return;
    }
    stk_typical_note(&job->state_write_s, stk_write_behind_seconds(&job->behind));
    job->state_saved = true;
    job->saved = job->saving;
    job->between_epochs = job->between_epochs || job->saving.step == 0;
}

void stk_job_look_at_state(stk_job *job) {
    if (stk_write_behind_is_done(&job->behind)) {
        stk_job_settle_state(job);
    }
}

/* The state that is on its way speaks of the best weights that are in place, too. */
static void remove_kept(stk_job *job) {
    stk_write_behind_remove(&job->behind, job->val.kept);
    stk_write_behind_remove(&job->behind, job->kept_best);
    if (job->saving.step == 0) {
        stk_write_behind_remove(&job->behind, job->epoch_path);
    }
}

/* Of a file that another thread writes; 0: no limit. */
static double behind_patience(stk_job *job) {
    double sync_s = stk_run_clock_sync_limit(&job->clock, 0);
    return isfinite(sync_s) ? sync_s : 0;
}

/* What the pictures are that were read so far. */
static void keep_pictures(stk_job *job) {
    stk_error why = {0};
    job->pictures.behind.sync_s = behind_patience(job);
    if (!job->unkept_told && stk_seen_pictures_save(&job->pictures, &why) != STK_OK) {
        job->unkept_told = true;
        stk_events_warning(&job->events,
                           "after a resume pictures that were replaced would not be noticed: %s",
                           why.message);
    }
}

bool stk_job_copies_state(const stk_job *job) {
    return state_bytes(job) <= stk_machine_memory() / COPY_SHARE;
}

static stk_status copy_state(stk_job *job, stk_error *err) {
    stk_file_writer *writer = NULL;
    job->behind.sync_s = behind_patience(job);
    stk_status status = stk_write_behind_begin(&job->behind, &writer, job->state_path,
                                               stk_job_copies_state(job), err);
    if (status == STK_OK) {
        status = stk_saved_state_write(writer, &job->run_state, job->choice.opened.backend,
                                       job->state, job->graph, err);
    }
    if (status == STK_OK) {
        remove_kept(job);
        stk_write_behind_start(&job->behind);
    }
    return status;
}

void stk_job_save_state(stk_job *job, const stk_train_position *position) {
    stk_saved_state *run = &job->run_state;
    stk_error why = {0};
    if (!has_time(job, position)) {
        return;
    }
    stk_job_settle_state(job);
    run->fold = job->fold;
    run->position = *position;
    run->folds_done = job->folds_done;
    run->epochs_before = job->summary.epochs_done;
    run->best_acc1 = job->summary.best_acc1;
    run->best_metric = job->summary.best_metric;
    run->cut = job->cut;
    run->used_s = job->resume.used_s + stk_run_clock_elapsed(&job->clock);
    run->seed = job->job_options->seed;
    if (position->step > 0) {
        keep_epoch(job);
    }
    int64_t start = stk_clock_ns();
    job->saving = *position;
    if (copy_state(job, &why) != STK_OK) {
        tell_unsaved(job, &why);
    }
    stk_typical_note(&job->state_copy_s, stk_clock_since_s(start));
    stk_job_look_at_state(job);
    keep_pictures(job);
}

/* The batches of an epoch of a fold; see drop_last of the loader. */
static stk_status count_steps(const stk_job *job, int fold, size_t batch, int64_t *steps,
                              stk_error *err) {
    stk_split split;
    stk_status status = stk_job_split(job, fold, &split, NULL, err);
    if (status == STK_OK) {
        size_t batches = split.train_count / batch;
        *steps = batches > 0 ? (int64_t)batches : 1;
        stk_split_free(&split);
    }
    return status;
}

stk_status stk_job_check_resume(const stk_job *job, stk_error *err) {
    const stk_resume *resume = &job->resume;
    int64_t saved = resume->state.position.batch;
    size_t batch = saved > 0 ? (size_t)saved : job->choice.batch;
    int64_t steps = 0;
    stk_status status = count_steps(job, resume->state.fold, batch, &steps, err);
    if (status == STK_OK) {
        status = stk_resume_check_steps(resume, job->job_options->seed, steps, err);
    }
    return status == STK_OK
               ? stk_saved_state_fits(resume->path, &resume->state, job->choice.opened.backend,
                                      job->state, job->graph, err)
               : status;
}

static stk_status put_back(const char *kept, const char *path, stk_error *err) {
    return stk_disk_rename(kept, path) == 0
               ? STK_OK
               : STK_FAIL(err, STK_ERR_STORAGE, "cannot put %s back to %s: %s", kept, path,
                          stk_disk_reason(errno));
}

/* The table of the best weights that are in place again. */
static stk_status restore_validation(stk_job *job, stk_error *err) {
    job->val.owed = false;
    return stk_path_is_file(job->val.kept) ? put_back(job->val.kept, job->val.path, err)
                                           : stk_val_table_drop(&job->val, err);
}

static bool is_of_epoch(const char *path, int epoch, stk_error *why) {
    stk_checkpoint_info info;
    if (stk_checkpoint_info_read(path, &info, why) != STK_OK) {
        return false;
    }
    int found = info.epoch;
    stk_checkpoint_info_free(&info);
    if (found != epoch) {
        (void)STK_FAIL(why, STK_ERR_DATA, "%s is of epoch %d", path, found);
    }
    return found == epoch;
}

/*
 * Puts the best weights back that a state speaks of, and their table. Where those that it speaks of
 * are in place the process ended between the state and taking away what was kept for the one
 * before, which may be of another fold and yet of the same epoch.
 */
static stk_status restore_best(stk_job *job, const char *best_path,
                               const stk_train_position *position, stk_error *err) {
    int epoch = position->best.epoch;
    if (!stk_path_is_file(job->kept_best)) { /* a table without them was to be put back last */
        return stk_path_is_file(job->val.kept) ? restore_validation(job, err) : STK_OK;
    }
    if (!position->has_best || is_of_epoch(best_path, epoch, NULL) ||
        !is_of_epoch(job->kept_best, epoch, NULL)) {
        let_kept_go(job);
        return STK_OK;
    }
    stk_status status = put_back(job->kept_best, best_path, err);
    return status == STK_OK ? restore_validation(job, err) : status;
}

/* Whether the best weights are those that the state speaks of. */
static bool is_best(const char *path, const stk_saved_state *run, stk_error *why) {
    if (!is_of_epoch(path, run->position.best.epoch, why)) {
        return false;
    }
    bool same = run->best_sum == 0 || stk_saved_state_sum(path) == run->best_sum;
    if (!same) {
        (void)STK_FAIL(why, STK_ERR_DATA, "%s is damaged or was replaced", path);
    }
    return same;
}

/*
 * A position without its best weights would keep every later epoch from being saved that is worse
 * than they were, and leave nothing to deliver.
 */
static void forget_lost_best(stk_job *job, const char *best_path, const stk_saved_state *run,
                             stk_train_position *position) {
    stk_error why = {0};
    if (position->has_best && !is_best(best_path, run, &why)) {
        stk_events_warning(&job->events,
                           "the best weights so far, of epoch %d, are lost, and the next epoch "
                           "counts as the best: %s",
                           position->best.epoch, why.message);
        position->has_best = false;
        position->since_best = 0;
        position->best = (stk_event_epoch){0};
        position->best_metric = NAN;
    }
}

/* What was saved with larger batches is the same place with those of now. */
static stk_status rebatch(const stk_job *job, stk_train_position *position, stk_error *err) {
    int64_t steps = 0;
    stk_status status = count_steps(job, job->fold, job->choice.batch, &steps, err);
    if (status == STK_OK) {
        stk_train_position_rebatch(position, (int64_t)job->choice.batch,
                                   job->choice.train.accumulate, steps);
    }
    return status;
}

stk_status stk_job_load_state(stk_job *job, const char *best_path, bool between_epochs,
                              stk_train_position *position, bool *there, stk_error *err) {
    stk_saved_state run;
    const char *path = job->state_path;
    stk_job_settle_state(job);
    *there = stk_path_is_file(path);
    if (!*there) {
        return STK_OK;
    }
    stk_error why = {0};
    stk_status status = stk_saved_state_read(path, &run, &why);
    bool damaged = status == STK_ERR_DATA && stk_path_is_file(job->epoch_path);
    bool within = status == STK_OK && between_epochs && run.position.step > 0;
    if (within) {
        stk_saved_state_free(&run);
    }
    if (within || damaged) {
        path = job->epoch_path;
        *there = stk_path_is_file(path);
        status = *there ? stk_saved_state_read(path, &run, err) : STK_OK;
    } else if (status != STK_OK) {
        return STK_FAIL(err, status, "%s", why.message);
    }
    if (status != STK_OK || !*there) {
        return status;
    }
    *there = run.fold == job->fold; /* the first of a fold may not have found room on the disk */
    *position = run.position;
    if (*there) {
        job->between_epochs = path == job->state_path && run.position.step == 0;
        status = stk_saved_state_load(path, &run, job->choice.opened.backend, job->state,
                                      job->graph, err);
    }
    if (status == STK_OK && *there) {
        status = restore_best(job, best_path, position, err);
    }
    if (status == STK_OK && *there) {
        forget_lost_best(job, best_path, &run, position);
        job->run_state.best_sum = run.best_sum;
        status = position->has_best ? STK_OK : stk_val_table_drop(&job->val, err);
    }
    if (status == STK_OK && *there) {
        status = rebatch(job, position, err);
    }
    stk_saved_state_free(&run);
    return status;
}

void stk_job_tell_kept(const stk_job *job, stk_error *err) {
    const stk_train_position *at = &job->saved;
    size_t end = strlen(err->message);
    char where[96];
    bool device = err->status == STK_ERR_DEVICE || err->status == STK_ERR_MEMORY;
    if (!device || !job->state_saved) {
        return;
    }
    if (at->step > 0) {
        snprintf(where, sizeof where, "what was learnt up to step %lld of epoch %d is kept",
                 (long long)at->step, at->epoch + 1);
    } else if (at->epoch > 0) {
        snprintf(where, sizeof where, "what was learnt up to epoch %d is kept", at->epoch);
    } else {
        snprintf(where, sizeof where, "%s",
                 job->folds_done > 0 ? "the folds that are done are kept"
                                     : "no epoch was done yet");
    }
    bool begun = at->step > 0 || at->epoch > 0 || job->folds_done > 0;
    snprintf(err->message + end, sizeof err->message - end, "; %s: `stoker train --resume %s` %s",
             where, job->folder.path, begun ? "goes on from there" : "begins again");
}
