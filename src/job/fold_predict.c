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

stk_status stk_job_predict_test(stk_job *job, stk_error *err) {
    double *probs = NULL;
    bool *have = NULL;
    stk_predicted predicted = {0};
    stk_status status = stk_job_predict_with_best(job, "test", job->dataset->test.items, NULL,
                                                  job->ballot.rows, &probs, &have, &predicted, err);
    size_t rows = 0;
    for (size_t i = 0; status == STK_OK && i < job->ballot.rows; i++) {
        rows += have[i];
    }
    bool done = predicted.done && predicted.views == job->view_options->tta;
    bool news = status == STK_OK && (predicted.done || rows > 0); /* else the file has it all */
    job->cut = job->cut || !done;
    job->unpredicted = job->unpredicted || (status == STK_OK && !done);
    if (news) {
        stk_ballot_add(&job->ballot, probs, have, 1);
    }
    if (status == STK_OK && !done) {
        tell_unpredicted(job, rows, predicted.views);
    }
    if (news) {
        bool whole = !job->cut && job->folds_done == job->folds;
        status = stk_job_submit(job, whole ? "complete" : "partial", err);
    }
    stk_mem_free(probs);
    stk_mem_free(have);
    return status;
}
