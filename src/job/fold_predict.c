/* fold_predict.c - what the weights of a fold say of samples, in the views there is time for. */
#include "base/error.h"
#include "base/mem.h"
#include "budget/votes.h"
#include "job/job_state.h"

/* Whether there is time for one more view. */
static bool wants_view(void *user, const stk_predicted *so_far) {
    stk_job *job = user;
    stk_votes_facts facts = {.left_s = stk_clockwork_before_writing(&job->clock),
                             .rows = 1, /* all of them as one: pass_s is what they take */
                             .picture_s = so_far->pass_s,
                             .model_s = NAN,
                             .views = job->views,
                             .views_done = so_far->views};
    return stk_votes_plan(&facts).views > so_far->views;
}

stk_status stk_job_predict_with_best(stk_job *job, const char *split, const stk_sample *samples,
                                     const size_t *indices, size_t count, double **probs,
                                     bool **have, stk_predicted *predicted, stk_error *err) {
    stk_prediction prediction = {.backend = job->choice.opened.backend,
                                 .state = job->state,
                                 .graph = job->graph,
                                 .precision = job->choice.opened.precision,
                                 .data = stk_job_loader(job, false),
                                 .batch = job->infer_batch,
                                 .ema = job->weights_lost && job->state_config.ema,
                                 .split = split,
                                 .events = &job->events,
                                 .halt = {stk_clockwork_must_write, &job->clock},
                                 .views = job->views,
                                 .wants_view = wants_view,
                                 .user = job};
    prediction.data.samples = samples;
    prediction.data.indices = indices;
    prediction.data.count = count;
    *probs = stk_mem_new(count, (size_t)job->graph->classes * sizeof **probs);
    *have = stk_mem_new(count, sizeof **have);
    if (*probs == NULL || *have == NULL) {
        return STK_FAIL_MEMORY(err, "predictions");
    }
    stk_status status = stk_predict_samples(&prediction, *probs, *have, predicted, err);
    job->infer_batch = predicted->batch;
    return status;
}

/* Views that there was no time for, or rows, which keep what the ballot had before. */
static void tell_unpredicted(const stk_job *job, size_t rows, int views) {
    if (views > 0) {
        stk_events_warning(&job->events,
                           "there was time for %d of the %d views of each test image that --tta "
                           "asks for",
                           views, (int)job->view_options->tta);
        return;
    }
    stk_events_warning(
        &job->events, "there was time to predict %zu of %zu test images only; the others have %s",
        rows, job->ballot.rows,
        job->ballot.models > (rows > 0) ? "what the other models say" : "class priors");
}

/* Pictures that cannot be read are told one by one; that all are such is worth a line of its own.
 */
static void tell_unread(stk_job *job) {
    if (!job->unread) {
        stk_events_warning(
            &job->events, "none of the %zu test images could be read: %s", job->ballot.rows,
            job->ballot.models > 0 || job->resume.on ? "the submission stays as it is"
                                                     : "the submission has the class priors");
    }
    job->unread = true;
}

size_t stk_job_vote(stk_job *job, const stk_predicted *predicted, const double *probs,
                    const bool *have) {
    size_t rows = 0;
    for (size_t i = 0; i < job->ballot.rows; i++) {
        rows += have[i];
    }
    stk_ballot_add(&job->ballot, probs, have, 1);
    if (rows == 0 && predicted->views > 0) {
        tell_unread(job);
    }
    return rows;
}

stk_status stk_job_predict_test(stk_job *job, stk_error *err) {
    double *probs = NULL;
    bool *have = NULL;
    stk_predicted predicted = {0};
    stk_status status = stk_job_predict_with_best(job, "test", job->dataset->test.items, NULL,
                                                  job->ballot.rows, &probs, &have, &predicted, err);
    size_t rows = status == STK_OK ? stk_job_vote(job, &predicted, probs, have) : 0;
    bool done = predicted.done && predicted.views == job->view_options->tta;
    job->cut = job->cut || !done || rows == 0;
    job->unpredicted = job->unpredicted || (status == STK_OK && !done);
    if (status == STK_OK && !done) {
        tell_unpredicted(job, rows, predicted.views);
    }
    if (rows > 0) { /* else the file has it all */
        bool whole = !job->cut && job->folds_done == job->folds;
        status = stk_job_submit(job, whole ? "complete" : "partial", err);
    }
    stk_mem_free(probs);
    stk_mem_free(have);
    return status;
}
