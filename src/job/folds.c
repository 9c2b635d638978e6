/*
 * folds.c - given folds, how many there is time for, the prior that a fold has to beat, the score
 * of what is out of fold.
 */
#include "job/folds.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/error.h"
#include "base/mem.h"
#include "base/str.h"
#include "budget/fold_choice.h"

/* As many as option folds may ask for. */
#define MOST_FOLDS 100

stk_status stk_job_settle_folds(stk_job *job, stk_error *err) {
    const stk_dataset *dataset = job->dataset;
    int given = dataset->part_count;
    char text[16];
    char why[160];
    if (dataset->division != STK_DIVIDE_FOLDS || job->folds == given) {
        return STK_OK;
    }
    if (stk_options_source(job->options, "folds") != STK_FROM_DEFAULT) {
        return STK_FAIL(err, STK_ERR_USAGE,
                        "--folds %d: column %s of %s gives %d folds; leave --folds out", job->folds,
                        dataset->part_column, dataset->root, given);
    }
    if (given > MOST_FOLDS) {
        return STK_FAIL(err, STK_ERR_USAGE,
                        "--fold-column %s: it has %d different values in %s, which is too many for "
                        "folds (at most %d); if they are groups, pass --group-column and --folds",
                        dataset->part_column, given, dataset->root, MOST_FOLDS);
    }
    snprintf(text, sizeof text, "%d", given);
    snprintf(why, sizeof why, "as many as column %.80s has", dataset->part_column);
    job->folds = given;
    job->folds_now = given;
    return stk_options_resolve(job->options, "folds", text, why, err);
}

stk_status stk_job_split(const stk_job *job, int fold, stk_split *split,
                         const stk_sample **val_samples, stk_error *err) {
    const stk_dataset *d = job->dataset;
    bool given = job->folds <= 1 && d->val.count > 0;
    stk_status status = stk_dataset_split(d, job->dataset_options->val_fraction, job->folds, fold,
                                          (uint64_t)job->job_options->seed, split, err);
    if (status == STK_OK && given) {
        stk_mem_free(split->val);
        split->val = NULL;
        split->val_count = d->val.count;
    }
    if (val_samples != NULL) {
        *val_samples = given ? d->val.items : d->train.items;
    }
    return status;
}

char *stk_job_fold_file(const stk_job *job, const char *name) {
    char path[80];
    if (job->folds > 1) {
        snprintf(path, sizeof path, "weights/fold%d/%s", job->fold, name);
    } else {
        snprintf(path, sizeof path, "weights/%s", name);
    }
    return stk_run_folder_file(&job->folder, path);
}

void stk_job_plan_folds(stk_job *job, int epochs_done) {
    bool between = epochs_done < 0;
    if (stk_run_clock_stopping(&job->clock)) {
        return; /* what there would be time for is not begun */
    }
    stk_fold_facts facts = {.elapsed_s = stk_run_clock_elapsed(&job->clock),
                            .budget_s = job->clock.budget_s,
                            .folds_wanted = job->folds,
                            .folds_begun = job->fold + (between ? 0 : 1),
                            .epochs_done = between ? 0 : epochs_done,
                            .epochs_wanted = job->choice.epochs_wanted,
                            .between = between,
                            .epoch_s = job->epoch_s,
                            .predict_s = job->predict_s};
    stk_fold_choice choice = stk_budget_choose_folds(&facts);
    /* In the middle of a fold its time is not given to another one that may fit or not. */
    int folds = between || choice.folds < job->folds_now ? choice.folds : job->folds_now;
    if (folds == job->folds_now) {
        return;
    }
    char what[64];
    char why[160];
    snprintf(what, sizeof what, "%d of %d folds", folds, job->folds);
    if (folds < job->folds_now) {
        snprintf(why, sizeof why,
                 "%d folds of %d epochs need %s more and there are %s; with %d epoch%s each this "
                 "loses the least accuracy",
                 job->folds, choice.all_epochs, stk_format_span(choice.wanted_s).text,
                 stk_format_span(choice.left_s).text, choice.epochs, choice.epochs == 1 ? "" : "s");
    } else {
        snprintf(why, sizeof why, "%s are left over: time for %d epoch%s of each that follows",
                 stk_format_span(choice.left_s).text, choice.epochs, choice.epochs == 1 ? "" : "s");
    }
    job->folds_now = folds;
    stk_events_decision(&job->events, what, why);
}

stk_status stk_prior_score_make(const stk_dataset *dataset, const stk_split *split,
                                const stk_sample *val_samples, stk_prior_score *score,
                                stk_error *err) {
    size_t classes = (size_t)dataset->class_count;
    size_t *counts = stk_mem_new(classes, sizeof *counts);
    if (counts == NULL) {
        return STK_FAIL_MEMORY(err, "the class priors");
    }
    for (size_t i = 0; i < split->train_count; i++) {
        counts[dataset->train.items[split->train[i]].label]++;
    }
    size_t most = 0;
    for (size_t c = 1; c < classes; c++) {
        most = counts[c] > counts[most] ? c : most;
    }
    double loss = 0;
    size_t right = 0;
    for (size_t i = 0; i < split->val_count; i++) {
        size_t label = (size_t)val_samples[split->val != NULL ? split->val[i] : i].label;
        loss -= log(((double)counts[label] + 1) / (double)(split->train_count + classes));
        right += label == most;
    }
    *score = (stk_prior_score){.loss = loss / (double)split->val_count,
                               .acc1 = 100.0 * (double)right / (double)split->val_count};
    stk_mem_free(counts);
    return STK_OK;
}

bool stk_prior_is_beaten(const stk_prior_score *prior, stk_metric metric, double val_loss,
                         double val_acc1) {
    return val_loss < prior->loss || (metric != STK_METRIC_LOGLOSS && val_acc1 > prior->acc1);
}

stk_status stk_job_fold_counts(const stk_job *job, const stk_split *split,
                               const stk_sample *val_samples, const stk_event_epoch *best,
                               bool *counts, stk_error *err) {
    stk_prior_score prior;
    char what[64];
    char why[200];
    stk_status status = stk_prior_score_make(job->dataset, split, val_samples, &prior, err);
    *counts = status == STK_OK && stk_prior_is_beaten(&prior, (stk_metric)job->choice.train.metric,
                                                      best->val_loss, best->val_acc1);
    if (status != STK_OK || *counts) {
        return status;
    }
    if (job->folds > 1) {
        snprintf(what, sizeof what, "fold %d of %d does not vote", job->fold + 1, job->folds);
    } else {
        snprintf(what, sizeof what, "class priors instead of the model");
    }
    snprintf(why, sizeof why,
             "it was cut short, and its best validation, loss %.4g and accuracy %.1f %%, does not "
             "beat class priors, %.4g and %.1f %%",
             best->val_loss, best->val_acc1, prior.loss, prior.acc1);
    stk_events_decision(&job->events, what, why);
    return STK_OK;
}

static void tell_oof(const stk_job *job, size_t rows) {
    const stk_summary *s = &job->summary;
    stk_metric metric = (stk_metric)job->choice.train.metric;
    char what[96];
    char other[64] = "";
    char why[160];
    char a[32];
    char b[32];
    if (metric != STK_METRIC_ACC1) {
        snprintf(other, sizeof other, ", %s %.4g", stk_options_get(job->options, "metric"),
                 s->oof_metric);
    }
    snprintf(what, sizeof what, "out-of-fold accuracy %.1f %%%s", s->oof_acc1, other);
    snprintf(why, sizeof why, "%s of %s training images, %d of %d folds",
             stk_format_count(a, sizeof a, rows),
             stk_format_count(b, sizeof b, job->dataset->train.count), job->folds_done, job->folds);
    stk_events_decision(&job->events, what, why);
}

stk_status stk_job_score_oof(stk_job *job, bool tell, stk_error *err) {
    stk_metrics metrics;
    stk_metric metric = (stk_metric)job->choice.train.metric;
    stk_status status = stk_metrics_open(&metrics, job->dataset->class_count,
                                         job->dataset->train.count, metric, err);
    status = status == STK_OK ? stk_oof_score(&job->oof, &metrics, err) : status;
    if (status != STK_OK) {
        stk_metrics_free(&metrics);
        return status;
    }
    job->summary.oof_acc1 = stk_metrics_value(&metrics, STK_METRIC_ACC1);
    job->summary.oof_metric = stk_metrics_value(&metrics, metric);
    if (tell && metrics.count > 0) {
        tell_oof(job, metrics.count);
    }
    stk_metrics_free(&metrics);
    return STK_OK;
}
