/* ballot.c - averaging what models say of the test rows, and the file that comes of it. */
#include <string.h>

#include "base/error.h"
#include "base/mem.h"
#include "job/job_state.h"
#include "predict/submission.h"

stk_status stk_ballot_open(stk_ballot *ballot, const stk_dataset *dataset, stk_error *err) {
    memset(ballot, 0, sizeof *ballot);
    ballot->rows = dataset->test.count;
    ballot->classes = (size_t)dataset->class_count;
    ballot->sum = stk_mem_new(ballot->rows, ballot->classes * sizeof *ballot->sum);
    ballot->probs = stk_mem_new(ballot->rows, ballot->classes * sizeof *ballot->probs);
    ballot->votes = stk_mem_new(ballot->rows, sizeof *ballot->votes);
    ballot->priors = stk_mem_new(ballot->classes, sizeof *ballot->priors);
    if (ballot->sum == NULL || ballot->probs == NULL || ballot->votes == NULL ||
        ballot->priors == NULL) {
        stk_ballot_free(ballot);
        return STK_FAIL_MEMORY(err, "predictions");
    }
    stk_dataset_priors(dataset, ballot->priors);
    return STK_OK;
}

void stk_ballot_free(stk_ballot *ballot) {
    stk_mem_free(ballot->sum);
    stk_mem_free(ballot->probs);
    stk_mem_free(ballot->votes);
    stk_mem_free(ballot->priors);
    memset(ballot, 0, sizeof *ballot);
}

void stk_ballot_add(stk_ballot *ballot, const double *probs, const bool *have) {
    for (size_t r = 0; r < ballot->rows; r++) {
        if (have[r]) {
            ballot->votes[r]++;
            for (size_t c = 0; c < ballot->classes; c++) {
                ballot->sum[r * ballot->classes + c] += probs[r * ballot->classes + c];
            }
        }
    }
    ballot->models++;
}

/* The average of the votes; a row that nobody could predict gets the priors. */
static void count_votes(stk_ballot *ballot) {
    for (size_t r = 0; r < ballot->rows; r++) {
        for (size_t c = 0; c < ballot->classes; c++) {
            size_t i = r * ballot->classes + c;
            ballot->probs[i] =
                ballot->votes[r] > 0 ? ballot->sum[i] / ballot->votes[r] : ballot->priors[c];
        }
    }
}

stk_status stk_job_submit(stk_job *job, const char *status, stk_error *err) {
    count_votes(&job->ballot);
    stk_status written =
        stk_submission_write(job->submission, job->dataset, job->dataset->classes,
                             job->dataset->class_count, job->ballot.probs, err);
    if (written != STK_OK) {
        return written;
    }
    job->submitted = true;
    stk_event_submission event = {.path = job->submission,
                                  .status = status,
                                  .rows = (int64_t)job->ballot.rows,
                                  .models = job->ballot.models};
    stk_events_submission(&job->events, &event);
    return STK_OK;
}
