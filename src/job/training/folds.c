/*
 * folds.c - the splits of a run, its weight files, and the class priors that a fold has to beat.
 */
#include "job/training/folds.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/error.h"
#include "base/mem.h"
#include "base/str.h"

/* The most folds that --folds accepts. */
#define MOST_FOLDS 100

stk_status stk_job_take_given_folds(stk_job *job, stk_error *err) {
    const stk_dataset *dataset = job->dataset;
    int given = dataset->part_count;
    char text[16];
    char why[160];
    if (dataset->division != STK_DIVIDE_FOLDS || job->recipe.folds == given) {
        return STK_OK;
    }
    if (stk_options_source(job->options, "folds") != STK_FROM_DEFAULT) {
        return STK_FAIL(err, STK_ERR_USAGE,
                        "--folds %d: column %s of %s gives %d folds; leave --folds out",
                        job->recipe.folds, dataset->part_column, dataset->root, given);
    }
    if (given > MOST_FOLDS) {
        return STK_FAIL(err, STK_ERR_USAGE,
                        "--fold-column %s: it has %d different values in %s, which is too many for "
                        "folds (at most %d); if they are groups, pass --group-column and --folds",
                        dataset->part_column, given, dataset->root, MOST_FOLDS);
    }
    snprintf(text, sizeof text, "%d", given);
    snprintf(why, sizeof why, "as many as column %.80s has", dataset->part_column);
    job->recipe = stk_recipe_with_folds(&job->recipe, given);
    job->time.folds = given;
    return stk_options_resolve(job->options, "folds", text, why, err);
}

stk_status stk_job_split(const stk_job *job, int fold, stk_split *split,
                         const stk_sample **val_samples, stk_error *err) {
    const stk_dataset *d = job->dataset;
    bool given = job->recipe.folds <= 1 && d->val.count > 0;
    stk_status status = stk_dataset_split(d, job->dataset_options->val_fraction, job->recipe.folds,
                                          fold, job->recipe.seed, split, err);
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

stk_status stk_job_count_steps(const stk_job *job, int fold, size_t batch, int64_t *steps,
                               stk_error *err) {
    stk_split split;
    stk_status status = stk_job_split(job, fold, &split, NULL, err);
    if (status == STK_OK) {
        size_t batches = split.train_count / batch; /* the loader drops the last, smaller batch */
        *steps = batches > 0 ? (int64_t)batches : 1;
        stk_split_free(&split);
    }
    return status;
}

char *stk_job_fold_file(const stk_job *job, const char *name) {
    char path[80];
    if (job->recipe.folds > 1) {
        snprintf(path, sizeof path, "weights/fold%d/%s", job->progress.fold, name);
    } else {
        snprintf(path, sizeof path, "weights/%s", name);
    }
    return stk_run_folder_file(&job->out.folder, path);
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
    *counts = status == STK_OK && stk_prior_is_beaten(&prior, (stk_metric)job->recipe.train.metric,
                                                      best->val_loss, best->val_acc1);
    if (status != STK_OK || *counts) {
        return status;
    }
    if (job->recipe.folds > 1) {
        snprintf(what, sizeof what, "fold %d of %d is not in the ensemble", job->progress.fold + 1,
                 job->recipe.folds);
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

static void emit_oof(const stk_job *job, size_t rows) {
    const stk_summary *s = &job->out.summary;
    stk_metric metric = (stk_metric)job->recipe.train.metric;
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
             stk_format_count(b, sizeof b, job->dataset->train.count), job->progress.folds_done,
             job->recipe.folds);
    stk_events_decision(&job->events, what, why);
}

stk_status stk_job_score_oof(stk_job *job, bool emit, stk_error *err) {
    stk_metrics metrics;
    stk_metric metric = (stk_metric)job->recipe.train.metric;
    stk_status status = stk_metrics_open(&metrics, job->dataset->class_count,
                                         job->dataset->train.count, metric, err);
    status = status == STK_OK ? stk_oof_score(&job->out.oof, &metrics, err) : status;
    if (status != STK_OK) {
        stk_metrics_free(&metrics);
        return status;
    }
    job->out.summary.oof_acc1 = stk_metrics_value(&metrics, STK_METRIC_ACC1);
    job->out.summary.oof_metric = stk_metrics_value(&metrics, metric);
    if (emit && metrics.count > 0) {
        emit_oof(job, metrics.count);
    }
    stk_metrics_free(&metrics);
    return STK_OK;
}
