/*
 * smaller_batch.c - smaller batches where memory has run out.
 *
 * What did not fit is halved: the batches of training, with twice as many for an update, or those
 * of inference. The batch that training has come to is part of every position that is saved, so
 * that a resume begins with it. Where nothing can be halved any more the run ends with what it has.
 */
#include <stdio.h>

#include "base/error.h"
#include "base/machine.h"
#include "budget/halving.h"
#include "job/job_state.h"

/* Before the first change the batch is what was asked for, or chosen. */
static void set_batch(stk_job *job, size_t batch, int64_t accumulate) {
    stk_recipe *choice = &job->choice;
    if (job->batch_asked == 0) {
        job->batch_asked = choice->batch;
        job->accumulate_asked = choice->train.accumulate;
    }
    choice->batch = batch;
    choice->train.accumulate = accumulate;
    choice->loader = stk_loader_sizing_make(job->loader_options, batch, choice->img_size,
                                            stk_machine_cores(), stk_machine_memory());
}

void stk_job_take_batch(stk_job *job) {
    const stk_train_position *before = &job->resume.state.position;
    if (before->batch > 0) {
        set_batch(job, (size_t)before->batch, before->accumulate);
    }
}

void stk_job_tell_batch(const stk_job *job) {
    char what[96];
    char why[64];
    if (job->choice.batch >= job->batch_asked) {
        return;
    }
    snprintf(what, sizeof what, "batch %zu x %lld", job->choice.batch,
             (long long)job->choice.train.accumulate);
    snprintf(why, sizeof why, "there was no memory for %zu", job->batch_asked);
    stk_events_decision(&job->events, what, why);
}

/* Twice as many for an update: it has as many pictures as before. */
static bool shrink_training(stk_job *job, char *what, size_t room) {
    size_t batch = job->choice.batch;
    int64_t accumulate = job->choice.train.accumulate;
    bool first = job->batch_asked == 0;
    int64_t images =
        first ? (int64_t)batch * accumulate : (int64_t)job->batch_asked * job->accumulate_asked;
    if (!stk_batch_halve(&batch, &accumulate, images)) {
        return false;
    }
    snprintf(what, room, "batch %zu x %lld instead of %zu x %lld", batch, (long long)accumulate,
             job->choice.batch, (long long)job->choice.train.accumulate);
    set_batch(job, batch, accumulate);
    return true;
}

static bool shrink_validation(stk_job *job, char *what, size_t room) {
    size_t half = job->infer_batch / 2;
    if (half < 1) {
        return false;
    }
    snprintf(what, room, "validation in batches of %zu instead of %zu", half, job->infer_batch);
    job->infer_batch = half;
    return true;
}

bool stk_job_shrink(stk_job *job, bool validating, char *what, size_t room) {
    return validating ? shrink_validation(job, what, room) || shrink_training(job, what, room)
                      : shrink_training(job, what, room) || shrink_validation(job, what, room);
}

void stk_job_starve(stk_job *job, const stk_error *why, const char *what) {
    char cause[512]; /* the remedy has room behind it */
    stk_error_cause(why, cause, sizeof cause);
    job->starved = true;
    job->cut = true;
    job->summary.stop_reason = "error";
    (void)STK_FAIL(&job->late_error, STK_ERR_MEMORY,
                   "%s; %s: end what else uses the memory, or use a smaller --img-size or --model",
                   cause, what);
}

void stk_job_starve_at(stk_job *job, size_t batch, const stk_error *why) {
    char what[64];
    snprintf(what, sizeof what, "nothing smaller than batch %zu can be tried", batch);
    stk_job_starve(job, why, what);
}
