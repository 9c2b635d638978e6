/*
 * state_save.c - keeping what --resume goes on from, and going back to it.
 *
 * The best weights are a file of their own, which is replaced before the state is. Until the state
 * follows, the file that it speaks of is kept beside it under another name, so that state and best
 * weights belong together whenever the process ends.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/error.h"
#include "base/file.h"
#include "base/mem.h"
#include "job/job_state.h"
#include "weights/checkpoint.h"

/* With less than this many times of what it took before, the time is for the predictions. */
#define SAVE_MARGIN 2.0

void stk_job_keep_best(stk_job *job, const char *best_path) {
    if (!stk_path_is_file(best_path) || stk_path_is_file(job->kept_best)) {
        return; /* nothing to keep, or what the state speaks of is kept already */
    }
    if (link(best_path, job->kept_best) != 0) {
        /* Not every file system has links. */
        char *data = NULL;
        size_t size = 0;
        if (stk_file_read(best_path, 0, &data, &size, NULL) == STK_OK &&
            stk_file_write(job->kept_best, data, size, NULL) != STK_OK) {
            stk_events_warning(&job->events,
                               "%s cannot be kept: after a resume the best weights may be those of "
                               "an epoch that was cut short",
                               best_path);
        }
        stk_mem_free(data);
    }
}

void stk_job_save_state(stk_job *job, const stk_train_position *position) {
    stk_run_state *run = &job->run_state;
    stk_error why = {0};
    if (stk_clockwork_left(&job->clock) < SAVE_MARGIN * job->state_write_s ||
        stk_clockwork_must_write(&job->clock)) {
        return;
    }
    run->fold = job->fold;
    run->position = *position;
    run->folds_done = job->folds_done;
    run->epochs_before = job->summary.epochs_done;
    run->best_acc1 = job->summary.best_acc1;
    run->best_metric = job->summary.best_metric;
    run->cut = job->cut;
    run->used_s = job->resume.used_s + stk_clockwork_elapsed(&job->clock);
    run->seed = job->job_options->seed;
    int64_t start = stk_clock_ns();
    if (stk_run_state_write(job->state_path, run, job->choice.backend, job->state, job->graph,
                            &why) == STK_OK) {
        job->state_write_s = stk_clock_since_s(start);
        unlink(job->kept_best); /* the state speaks of the best weights that are in place */
        return;
    }
    if (!job->state_lost) {
        job->state_lost = true;
        stk_events_warning(&job->events, "a resume would go on from an earlier epoch: %s",
                           why.message);
    }
    (void)STK_FAIL(&job->write_error, why.status, "%s", why.message);
}

/* Puts the best weights back that a state speaks of. */
static stk_status restore_best(const stk_job *job, const char *best_path,
                               const stk_train_position *position, stk_error *err) {
    stk_checkpoint_info info;
    if (!stk_path_is_file(job->kept_best)) {
        return STK_OK;
    }
    bool meant = false;
    if (position->has_best && stk_checkpoint_info_read(job->kept_best, &info, NULL) == STK_OK) {
        meant = info.epoch == position->best.epoch;
        stk_checkpoint_info_free(&info);
    }
    if (!meant) { /* the process ended between the state and taking this away */
        unlink(job->kept_best);
        return STK_OK;
    }
    if (rename(job->kept_best, best_path) != 0) {
        return STK_FAIL(err, STK_ERR_STORAGE, "cannot put %s back to %s: %s", job->kept_best,
                        best_path, strerror(errno));
    }
    return STK_OK;
}

stk_status stk_job_load_state(stk_job *job, const char *best_path, stk_train_position *position,
                              bool *there, stk_error *err) {
    stk_run_state run;
    *there = stk_path_is_file(job->state_path);
    if (!*there) {
        return STK_OK;
    }
    stk_status status = stk_run_state_read(job->state_path, &run, err);
    if (status != STK_OK) {
        return status;
    }
    *there = run.fold == job->fold; /* the first of a fold may not have found room on the disk */
    *position = run.position;
    if (*there) {
        status = stk_run_state_load(job->state_path, &run, job->choice.backend, job->state,
                                    job->graph, err);
    }
    if (status == STK_OK && *there) {
        status = restore_best(job, best_path, position, err);
    }
    stk_run_state_free(&run);
    return status;
}
