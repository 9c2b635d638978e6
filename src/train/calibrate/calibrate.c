/*
 * calibrate.c - which pictures a calibration is fitted to, and which judge it.
 *
 * The files beside this one fit; here the held-out pictures are divided into parts, each of which
 * is judged by fits to the others.
 */
#include "train/calibrate/calibrate.h"

#include <math.h>
#include <string.h>

#include "base/error.h"
#include "base/mem.h"
#include "metrics/probabilities.h"
#include "train/calibrate/fitting.h"
#include "weights/label_sets.h"

/* A scale of more steps is not cut: that would take seconds. */
#define MOST_GRADES 32

/* The logits of the grid: from LEAST_LOGIT in such steps. */
#define LEAST_LOGIT (-4.0)
#define LOGIT_STEP 0.25

/* ---- memory ---- */

static bool of_labels(const stk_fitting *f) {
    return f->task == STK_TASK_MULTILABEL;
}

static bool open_rows(stk_held_rows *rows, size_t count, bool labels) {
    rows->logits = stk_mem_raw(count, sizeof *rows->logits);
    rows->answers = labels ? stk_mem_raw(count, sizeof *rows->answers) : NULL;
    rows->labels = labels ? NULL : stk_mem_raw(count, sizeof *rows->labels);
    return rows->logits != NULL && (labels ? rows->answers != NULL : rows->labels != NULL);
}

static void free_rows(stk_held_rows *rows) {
    stk_mem_free(rows->logits);
    stk_mem_free(rows->answers);
    stk_mem_free(rows->labels);
}

static void close_fitting(stk_fitting *f) {
    free_rows(&f->all);
    free_rows(&f->some);
    stk_mem_free(f->probs);
    stk_mem_free(f->expected);
    stk_mem_free(f->predicted);
    stk_mem_free(f->tally);
    stk_mem_free(f->moved);
    stk_mem_free(f->chosen);
    stk_mem_free(f->targets);
    stk_mem_free(f->each.numbers);
    stk_set_tally_free(&f->sets);
    stk_metrics_free(&f->plain);
    stk_metrics_free(&f->judged);
    stk_metrics_free(&f->judged_each);
    stk_metrics_free(&f->part_plain);
    stk_metrics_free(&f->part_judged);
}

static bool is_finite_row(const float *row, int outputs) {
    bool finite = true;
    for (int c = 0; c < outputs; c++) {
        finite = finite && isfinite(row[c]);
    }
    return finite;
}

/* Takes the rows that were kept; of more than enough every k-th. */
static void take_rows(stk_fitting *f, const stk_metrics *m) {
    size_t kept = stk_metrics_kept(m);
    size_t most = stk_metrics_enough(m->outputs);
    size_t step = kept > most ? (kept + most - 1) / most : 1;
    for (size_t i = 0; i < kept; i += step) {
        const float *row = m->logits + i * (size_t)m->outputs;
        size_t at = f->all.count;
        if (!is_finite_row(row, m->outputs)) {
            continue;
        }
        f->all.logits[at] = row;
        if (of_labels(f)) {
            f->all.answers[at] = m->answers + i * (size_t)m->outputs;
        } else {
            f->all.labels[at] = m->labels[i * m->every];
        }
        f->all.count++;
    }
}

static bool can_be_ruled(const stk_fitting *f) {
    stk_metric metric = f->config.metric;
    bool short_scale = metric != STK_METRIC_QWK || f->outputs <= MOST_GRADES;
    bool strangers = f->config.stranger >= 0 && f->config.stranger < f->outputs;
    bool two = f->outputs == 2;
    return stk_metric_has_rule(metric, f->task) && short_scale &&
           (metric != STK_METRIC_MAPK || strangers) && (metric != STK_METRIC_PF1 || two);
}

/* Scratch for rules, and collectors for the judged pictures. */
static stk_status open_rules(stk_fitting *f, size_t room, stk_error *err) {
    size_t outputs = (size_t)f->outputs;
    const stk_metrics_config config = {.task = f->task,
                                       .outputs = f->outputs,
                                       .capacity = room,
                                       .metric = f->config.metric,
                                       .k = f->k};
    f->probs = stk_mem_raw(room, outputs * sizeof *f->probs);
    f->expected = stk_mem_raw(room, sizeof *f->expected);
    f->predicted = stk_mem_raw(room, sizeof *f->predicted);
    f->tally = stk_mem_raw(outputs, 2 * sizeof *f->tally);
    f->moved = stk_mem_raw(outputs, sizeof *f->moved);
    f->chosen = stk_mem_raw(outputs, sizeof *f->chosen);
    f->targets = stk_mem_raw(outputs, sizeof *f->targets);
    f->each.numbers = stk_mem_new(outputs + 1, sizeof *f->each.numbers);
    bool good = f->probs != NULL && f->expected != NULL && f->predicted != NULL &&
                f->tally != NULL && f->moved != NULL && f->chosen != NULL && f->targets != NULL &&
                f->each.numbers != NULL;
    stk_status status = good ? STK_OK : STK_FAIL_MEMORY(err, "the calibration of a model");
    STK_THEN(status, stk_set_tally_open(&f->sets, f->outputs, err));
    STK_THEN(status, stk_metrics_open(&f->plain, &config, err));
    STK_THEN(status, stk_metrics_open(&f->judged, &config, err));
    STK_THEN(status, stk_metrics_open(&f->judged_each, &config, err));
    if (f->parts != NULL) {
        STK_THEN(status, stk_metrics_open(&f->part_plain, &config, err));
        STK_THEN(status, stk_metrics_open(&f->part_judged, &config, err));
    }
    return status;
}

/* Freed with close_fitting(), also after a failure. */
static stk_status open_fitting(stk_fitting *f, const stk_metrics *m,
                               const stk_calibrate_config *config, stk_judged_part *parts,
                               stk_error *err) {
    size_t kept = m->count / m->every + 1;
    size_t most = stk_metrics_enough(m->outputs);
    size_t room = kept < most ? kept : most;
    *f = (stk_fitting){
        .config = *config, .task = m->task, .outputs = m->outputs, .k = m->k, .parts = parts};
    f->ruled = can_be_ruled(f);
    for (int i = 0; i < STK_FIT_GRID; i++) {
        f->grid[i] = stk_calibration_round(1 / (1 + exp(-(LEAST_LOGIT + i * LOGIT_STEP))));
    }
    if (!open_rows(&f->all, room, of_labels(f)) || !open_rows(&f->some, room, of_labels(f))) {
        return STK_FAIL_MEMORY(err, "the calibration of a model");
    }
    take_rows(f, m);
    return f->ruled ? open_rules(f, room, err) : STK_OK;
}

/* Puts the rows of a part, or all others, into f->some. */
static void pick(stk_fitting *f, size_t part, bool others) {
    f->some.count = 0;
    for (size_t i = 0; i < f->all.count; i++) {
        size_t at = f->some.count;
        if ((i % STK_JUDGED_PARTS == part) == others) {
            continue;
        }
        f->some.logits[at] = f->all.logits[i];
        if (of_labels(f)) {
            f->some.answers[at] = f->all.answers[i];
        } else {
            f->some.labels[at] = f->all.labels[i];
        }
        f->some.count++;
    }
}

/* ---- rules ---- */

/* Probabilities of f->some. */
static void fill_probs(stk_fitting *f, double temperature) {
    for (size_t i = 0; i < f->some.count; i++) {
        double *row = f->probs + i * (size_t)f->outputs;
        (of_labels(f) ? stk_sigmoids : stk_softmax)(f->some.logits[i], f->outputs, temperature,
                                                    row);
    }
}

/* Fits the rule of the metric to f->some at a temperature. `rule` has room for its numbers. */
static void fit_rule(stk_fitting *f, double temperature, stk_label_rule *rule) {
    fill_probs(f, temperature);
    if (of_labels(f)) {
        stk_fit_thresholds(f, rule);
    } else if (stk_metrics_is_tallied(f->config.metric)) {
        stk_fit_weights(f, rule);
    } else if (f->config.metric == STK_METRIC_QWK) {
        stk_fit_cuts(f, rule);
    } else if (f->config.metric == STK_METRIC_PF1) {
        stk_fit_step(f, rule);
    } else {
        stk_fit_stranger(f, rule);
    }
}

/* ---- judging ---- */

/* Adds a row of f->some with the answer of a rule. */
static void judge_row(stk_fitting *f, size_t i, const stk_label_rule *rule, stk_metrics *judged) {
    const double *probs = f->probs + i * (size_t)f->outputs;
    if (of_labels(f)) {
        for (int l = 0; l < f->outputs; l++) {
            int8_t answer = f->some.answers[i][l];
            f->targets[l] = answer == STK_TARGET_UNKNOWN ? NAN : (float)answer;
        }
        (void)stk_labels_choose_set(rule, probs, f->outputs, f->config.exclusive, f->chosen);
        (void)stk_metrics_add_chosen(judged, f->some.logits[i], f->targets, f->chosen);
    } else {
        (void)stk_metrics_add(judged, f->some.logits[i], f->some.labels[i]);
        stk_calibrate_decide(judged, rule, probs, f->config.stranger);
    }
}

/* Adds f->some, which `rule` has not seen, at a temperature that has not seen it either. */
static void judge_some(stk_fitting *f, double temperature, const stk_label_rule *rule) {
    static const stk_label_rule none = {STK_LABEL_LIKELIEST, 0, NULL};
    fill_probs(f, temperature);
    for (size_t i = 0; i < f->some.count; i++) {
        if (f->parts != NULL) {
            judge_row(f, i, &none, &f->part_plain);
            judge_row(f, i, rule, &f->part_judged);
        }
        judge_row(f, i, &none, &f->plain);
        judge_row(f, i, rule, &f->judged);
        if (of_labels(f)) {
            judge_row(f, i, &f->each, &f->judged_each);
        }
    }
}

static double temperature_of(const stk_fitting *f) {
    return f->config.tempered ? 1 : stk_fit_temperature(f);
}

/* Fits to all parts but one, and judges that one; *judged has the sum of its losses. Returns that
 * sum at temperature 1. */
static double judge_part(stk_fitting *f, size_t part, stk_label_rule *rule,
                         stk_judged_part *judged) {
    double slope, bend;
    pick(f, part, true);
    double temperature = temperature_of(f);
    if (f->ruled && f->some.count > 0) {
        fit_rule(f, temperature, rule);
    }
    pick(f, part, false);
    *judged = (stk_judged_part){.count = f->some.count,
                                .loss = stk_fit_loss_at(f, temperature, &slope, &bend),
                                .plain_score = NAN,
                                .score = NAN};
    double plain_loss = stk_fit_loss_at(f, 1, &slope, &bend);
    if (f->ruled) {
        stk_metrics_reset(&f->part_plain);
        stk_metrics_reset(&f->part_judged);
        judge_some(f, temperature, rule);
        judged->plain_score = stk_metrics_value(&f->part_plain, f->config.metric);
        judged->score = stk_metrics_value(&f->part_judged, f->config.metric);
    }
    return plain_loss;
}

/* Own thresholds have to gain this part of the noise over the common one. */
#define LEAST_GAIN 0.1

/* Fills in the rule and its scores, once all parts have been judged and f->some are all. */
static void take_rule(stk_fitting *f, stk_calibration *c) {
    stk_metric metric = f->config.metric;
    double each = of_labels(f) ? stk_metrics_value(&f->judged_each, metric) : NAN;
    c->plain_score = stk_metrics_value(&f->plain, metric);
    c->score = stk_metrics_value(&f->judged, metric);
    fit_rule(f, c->temperature, &c->rule);
    if (each > c->score + LEAST_GAIN / sqrt((double)f->all.count)) {
        memcpy(c->rule.numbers, f->each.numbers, (size_t)c->rule.count * sizeof(double));
        c->score = each;
    }
}

/* Fills in the calibration; its rule has room for its numbers where one is fitted. */
static void fit(stk_fitting *f, stk_calibration *c) {
    double n = (double)f->all.count * (of_labels(f) ? f->outputs : 1);
    stk_judged_part parts[STK_JUDGED_PARTS];
    double plain_losses[STK_JUDGED_PARTS];
    double plain_loss = 0;
    double loss = 0;
    for (size_t part = 0; part < STK_JUDGED_PARTS; part++) {
        plain_losses[part] = judge_part(f, part, &c->rule, &parts[part]);
        plain_loss += plain_losses[part];
        loss += parts[part].loss;
    }
    for (size_t part = 0; f->parts != NULL && part < STK_JUDGED_PARTS; part++) {
        f->parts[part] = parts[part];
        f->parts[part].loss =
            (loss < plain_loss ? parts[part].loss : plain_losses[part]) / (double)parts[part].count;
    }
    pick(f, STK_JUDGED_PARTS, true);
    c->temperature = loss < plain_loss ? temperature_of(f) : 1;
    c->pictures = f->all.count;
    c->plain_loss = plain_loss / n;
    c->loss = fmin(loss, plain_loss) / n;
    c->plain_score = c->score = NAN;
    if (f->ruled) {
        take_rule(f, c);
    }
}

/* Numbers of a rule, of any kind, for so many outputs. */
static stk_status open_rule(stk_label_rule *rule, int outputs, stk_error *err) {
    rule->numbers = stk_mem_new((size_t)outputs + 1, sizeof *rule->numbers);
    return rule->numbers != NULL ? STK_OK : STK_FAIL_MEMORY(err, "the calibration of a model");
}

stk_status stk_calibrate_parts(const stk_metrics *metrics, const stk_calibrate_config *config,
                               stk_calibration *calibration, stk_judged_part *parts,
                               stk_error *err) {
    stk_fitting f;
    *calibration = (stk_calibration){0};
    if (parts != NULL) {
        memset(parts, 0, STK_JUDGED_PARTS * sizeof *parts);
    }
    if (metrics->logits == NULL) {
        return STK_OK;
    }
    stk_status status = open_fitting(&f, metrics, config, parts, err);
    bool something = status == STK_OK && f.all.count > 0 && (f.outputs > 1 || of_labels(&f));
    if (something && f.ruled) {
        status = open_rule(&calibration->rule, f.outputs, err);
    }
    if (something && status == STK_OK) {
        fit(&f, calibration);
    }
    close_fitting(&f);
    return status;
}

stk_status stk_calibrate(const stk_metrics *metrics, const stk_calibrate_config *config,
                         stk_calibration *calibration, stk_error *err) {
    return stk_calibrate_parts(metrics, config, calibration, NULL, err);
}
