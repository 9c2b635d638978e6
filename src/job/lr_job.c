/*
 * lr_job.c - `stoker lr`: the learning-rate test as a verb of its own.
 */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/error.h"
#include "base/mem.h"
#include "base/public_struct.h"
#include "job/training/job.h"
#include "job/training/lr_test.h"

static int steps_of(const stk_job *job) {
    const stk_lr_options *options = stk_options_values(job->options, &stk_lr_option_table);
    return (int)options->steps;
}

/* Tests with the pictures that the first fold would train on. */
static stk_status test_first_fold(stk_job *job, size_t train, stk_lr_curve *curve, stk_error *err) {
    stk_split split;
    stk_status status = stk_job_begin_first_fold(job, train, &split, NULL, err);
    if (status != STK_OK) {
        return status;
    }
    stk_loader_config data =
        stk_job_loader_config(job, true, job->dataset->train.items, split.train, split.train_count);
    stk_lr_test test = stk_job_lr_test(job);
    data.stop_after_bad = stk_loader_bad_limit(job->loader_options, data.count);
    status =
        stk_network_first_weights(&job->network, &job->recipe, job->tally.fold, &job->clock, err);
    STK_THEN(status, stk_lr_test_run(&test, &data, steps_of(job), INFINITY, curve, err));
    stk_split_free(&split);
    return status;
}

static void hand_over(const stk_job *job, const stk_lr_curve *curve, stk_found_lr *found) {
    snprintf(found->run_dir, sizeof found->run_dir, "%s", job->out.folder.path);
    char *plot = stk_run_folder_file(&job->out.folder, stk_lr_test_plot_name());
    snprintf(found->plot, sizeof found->plot, "%s", plot != NULL ? plot : "");
    stk_mem_free(plot);
    found->lr = curve->suggestion;
    found->batch = (int64_t)job->recipe.batch;
    found->accumulate = job->recipe.train.accumulate;
    found->exploded = curve->exploded;
    found->seconds = curve->seconds;
    found->count = curve->count;
    memcpy(found->points, curve->points, (size_t)curve->count * sizeof *curve->points);
}

static stk_status run_test(stk_job *job, const stk_observer *observer, void *result,
                           stk_error *err) {
    stk_found_lr *found = result;
    stk_lr_curve curve = {.suggestion = NAN};
    size_t train = 0;
    size_t val = 0;
    job->clock.budget_s = NAN; /* --budget is the training's; --deadline holds for the test, too */
    stk_status status = stk_job_take_deadline(job, observer, err);
    STK_THEN(status, stk_job_prepare(job, observer, &train, &val, err));
    STK_THEN(status, stk_job_claim_folder(&job->out.folder, job->job_options, job->verb, err));
    STK_THEN(status, stk_job_write_args(&job->out.folder, job->options, err));
    if (status == STK_OK) {
        stk_job_emit_start(job, train, val);
        status = test_first_fold(job, train, &curve, err);
    }
    if (status == STK_OK) {
        hand_over(job, &curve, found);
        if (curve.halted && !stk_run_clock_stopping(&job->clock)) {
            status = STK_FAIL(err, STK_ERR_USAGE,
                              "the --deadline came after %d of %d steps of the test; give a later "
                              "one, or fewer --steps",
                              curve.count, steps_of(job));
        } else if (curve.halted) {
            status = STK_FAIL(err, STK_ERR_STOPPED, "stopped before a learning rate was found");
        } else if (isnan(curve.suggestion)) {
            status = STK_FAIL(err, STK_ERR_DATA,
                              "the loss fell at no rate from %g to %g, so that none can be "
                              "suggested; the curve is in %s; try a larger --batch or more --steps",
                              STK_LR_FROM, STK_LR_TO, found->plot);
        }
    }
    stk_lr_curve_free(&curve);
    return status;
}

stk_status stk_find_lr(stk_options *options, const stk_run *run, stk_found_lr *found,
                       stk_error *err) {
    stk_status status = STK_PUBLIC_BEGIN(stk_found_lr, found, run, err);
    if (status != STK_OK) {
        return status;
    }
    /* A training to which the rate is given has usual norms. */
    const stk_train_options *train = stk_options_values(options, &stk_train_option_table);
    if (train->norm_stats == STK_NORM_STATS_AUTO) {
        status = stk_options_set(options, "norm-stats", "batch", err);
    }
    found->lr = NAN;
    return status != STK_OK ? status
                            : stk_job_look_at_first("lr", options, run, run_test, found, err);
}
