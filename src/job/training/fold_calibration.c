/*
 * fold_calibration.c - the calibrations of the models of a run.
 *
 * The checkpoint of a model is the one home of its calibration: whoever predicts reads it there, so
 * that `train`, a resumed `train` and `predict` take the same numbers.
 */
#include "job/training/job.h"

#include <math.h>
#include <stdio.h>

#include "base/str.h"
#include "job/training/folds.h"
#include "weights/checkpoint.h"

/* The most cut points that a line names. */
#define MOST_NAMED 8

/* A log loss that is less by so much shows in the three digits of a line. */
#define LEAST_TOLD 0.001

/* In the order of stk_label_rule_kind. */
static const struct {
    const char *what;  /* before its numbers */
    const char *brief; /* beside a figure */
} rule_words[STK_LABEL_RULE_KINDS] = {
    {"", ""},
    {"labels by weights of rare classes", "rare classes weighted"},
    {"labels by cut points", "with cut points"},
    {"labels from probability", "with thresholds"},
    {"probabilities are written as 0, and as 1 from", "probabilities made 0 and 1"},
    {"strangers are ranked at the score", "strangers ranked by a score"},
};

stk_status stk_job_read_calibration(const char *path, stk_calibration *calibration, int *img_size,
                                    stk_error *err) {
    stk_checkpoint_info info;
    stk_calibration_free(calibration);
    stk_status status = stk_checkpoint_info_read(path, &info, err);
    if (status == STK_OK) {
        *calibration = info.calibration;
        *img_size = info.img_size;
        info.calibration = (stk_calibration){0};
        stk_checkpoint_info_free(&info);
    }
    return status;
}

/* What a calibration changes in the metric of its epoch, which has the rule already and, if it is
 * the log loss, no temperature. */
static double gain_of(const stk_job *job, const stk_calibration *c) {
    double gain = c->means > 0                                     ? c->means_gain
                  : job->recipe.train.metric == STK_METRIC_LOGLOSS ? c->loss - c->plain_loss
                                                                   : 0;
    return isfinite(gain) ? gain : 0;
}

void stk_job_add_validated(stk_job *job, const stk_calibration *calibration) {
    stk_calibration_mean_add(&job->out.validated, calibration, 1);
    job->out.gain += gain_of(job, calibration);
}

stk_pooling stk_job_pool(const stk_job *job) {
    const stk_calibration_mean *mean = &job->out.validated;
    stk_pooling asked = (stk_pooling)job->recipe.train.pool;
    return asked == STK_POOL_AUTO && mean->weight > 0 ? mean->pool : asked;
}

double stk_job_held_out(const stk_job *job, double best_metric) {
    double models = job->out.validated.weight;
    return best_metric + (models > 0 ? job->out.gain / models : 0);
}

void stk_job_describe_calibration(stk_job *job, char *text, size_t size) {
    double temperature = stk_calibration_mean_temperature(&job->out.validated);
    const stk_label_rule *rule = stk_calibration_mean_rule(&job->out.validated);
    text[0] = '\0';
    if (job->recipe.train.metric == STK_METRIC_LOGLOSS && isfinite(temperature) &&
        temperature != 1) {
        snprintf(text, size, ", at temperature %.2f", temperature);
    } else if (rule->kind != STK_LABEL_LIKELIEST) {
        snprintf(text, size, ", %s", rule_words[rule->kind].brief);
    }
}

/* " of fold 2"; "" without folds. */
static const char *name_of_fold(const stk_job *job, char *text, size_t size) {
    text[0] = '\0';
    if (job->recipe.folds > 1) {
        snprintf(text, size, " of fold %d", job->tally.fold + 1);
    }
    return text;
}

static void put_numbers(const stk_label_rule *rule, stk_str *what) {
    bool sets = rule->kind == STK_LABEL_THRESHOLDS;
    bool named = rule->kind != STK_LABEL_WEIGHTS && rule->count <= MOST_NAMED;
    double least = INFINITY;
    double most = -INFINITY;
    for (int i = sets; i < rule->count; i++) {
        least = fmin(least, rule->numbers[i]);
        most = fmax(most, rule->numbers[i]);
    }
    if (sets) {
        stk_str_appendf(what, least < most ? " %.4g to %.4g" : " %.4g", least, most);
        stk_str_append(what, rule->numbers[0] > 0.5 ? ", or none" : ", at least one");
    }
    for (int i = 0; named && !sets && i < rule->count; i++) {
        stk_str_appendf(what, "%s %.4g", i > 0 ? "," : "", rule->numbers[i]);
    }
}

/* Emits how labels are chosen, by the validated models so far. */
static void emit_rule(stk_job *job) {
    const stk_calibration_mean *mean = &job->out.validated;
    const stk_label_rule *rule = stk_calibration_mean_rule(&job->out.validated);
    stk_str what = {0};
    char count[32];
    char why[160];
    if (rule->kind == STK_LABEL_LIKELIEST) {
        return;
    }
    stk_str_append(&what, rule_words[rule->kind].what);
    put_numbers(rule, &what);
    snprintf(why, sizeof why, "%s %.4g instead of %.4g on %s held-out %s",
             stk_options_get(job->options, "metric"), mean->score / mean->pictures,
             mean->plain_score / mean->pictures,
             stk_format_count(count, sizeof count, (uint64_t)mean->pictures),
             job->dataset->train_has_rows ? "rows" : "pictures");
    stk_events_decision(&job->events, stk_str_text(&what), why);
    stk_str_free(&what);
}

/* Emits how the rows of the test set will be pooled, where the validation has rows, too. */
static void emit_pool(const stk_job *job, const stk_calibration *c) {
    char count[32];
    char why[160];
    if (c->rows == 0 || job->out.validated.weight > 1) { /* models after the first follow it */
        return;
    }
    snprintf(why, sizeof why, "%s %.4g averaged and %.4g with the largest on %s held-out rows",
             stk_options_get(job->options, "metric"), c->pool_scores[STK_POOL_MEAN],
             c->pool_scores[STK_POOL_MAX], stk_format_count(count, sizeof count, c->rows));
    stk_events_decision(&job->events,
                        c->pool == STK_POOL_MAX ? "of a row's pictures the largest value counts"
                                                : "the values of a row's pictures are averaged",
                        why);
}

void stk_job_emit_calibration(stk_job *job, const stk_calibration *c) {
    char what[96];
    char fold[32];
    char count[32];
    char why[128];
    if (c->plain_loss - c->loss >= LEAST_TOLD) {
        snprintf(what, sizeof what, "probabilities%s at temperature %.2f",
                 name_of_fold(job, fold, sizeof fold), c->temperature);
        snprintf(why, sizeof why, "log loss %.3f instead of %.3f on %s held-out pictures", c->loss,
                 c->plain_loss, stk_format_count(count, sizeof count, c->pictures));
        stk_events_decision(&job->events, what, why);
    }
    emit_pool(job, c);
    emit_rule(job);
}
