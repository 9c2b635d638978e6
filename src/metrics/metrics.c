/* metrics.c - collecting what figures are computed from. */
#include "metrics/metrics.h"

#include <math.h>
#include <string.h>

#include "base/error.h"
#include "base/mem.h"

/* Samples, and numbers of all their outputs, that a calibration is made from at most. */
#define MOST_KEPT 20000
#define MOST_KEPT_NUMBERS 1000000

/* Rows of outputs take so much at most. */
#define MOST_BYTES ((size_t)1 << 30)

/* ---- memory ---- */

static bool has_classes(const stk_metrics *m) {
    return m->task != STK_TASK_MULTILABEL && m->task != STK_TASK_REGRESSION;
}

/* Keeps the rows of so many samples, evenly chosen. */
static stk_status keep_rows(stk_metrics *m, size_t most, stk_error *err) {
    size_t outputs = (size_t)m->outputs;
    m->every = m->capacity > most ? (m->capacity + most - 1) / most : 1;
    size_t kept = (m->capacity + m->every - 1) / m->every;
    m->logits = stk_mem_raw(kept, outputs * sizeof *m->logits);
    bool labels = m->task == STK_TASK_MULTILABEL;
    m->answers = labels ? stk_mem_raw(kept, outputs * sizeof *m->answers) : NULL;
    return m->logits != NULL && (!labels || m->answers != NULL)
               ? STK_OK
               : STK_FAIL_MEMORY(err, "validation");
}

static bool open_classes(stk_metrics *m) {
    m->labels = stk_mem_raw(m->capacity, sizeof *m->labels);
    m->predicted = stk_mem_raw(m->capacity, sizeof *m->predicted);
    bool tallied = stk_metrics_is_tallied(m->metric);
    m->tally = tallied ? stk_mem_raw((size_t)m->outputs, 2 * sizeof *m->tally) : NULL;
    return m->labels != NULL && m->predicted != NULL && (!tallied || m->tally != NULL);
}

static bool open_labels(stk_metrics *m) {
    m->last_set = stk_mem_raw((size_t)m->outputs, sizeof *m->last_set);
    m->chosen = stk_mem_raw((size_t)m->outputs, sizeof *m->chosen);
    return stk_set_tally_open(&m->sets, m->outputs, NULL) == STK_OK && m->last_set != NULL &&
           m->chosen != NULL;
}

static bool open_numbers(stk_metrics *m) {
    m->targets = stk_mem_new((size_t)m->outputs, sizeof *m->targets);
    return m->targets != NULL;
}

stk_status stk_metrics_open(stk_metrics *m, const stk_metrics_config *config, stk_error *err) {
    *m = (stk_metrics){.task = config->task == STK_TASK_AUTO ? STK_TASK_SINGLE : config->task,
                       .metric = config->metric,
                       .outputs = config->outputs,
                       .k = config->k > 0 ? config->k : STK_METRICS_USUAL_K,
                       .capacity = config->capacity,
                       .every = 1};
    bool good = has_classes(m)                   ? open_classes(m)
                : m->task == STK_TASK_REGRESSION ? open_numbers(m)
                                                 : open_labels(m);
    stk_status status = good ? STK_OK : STK_FAIL_MEMORY(err, "validation");
    if (status == STK_OK && stk_metric_info_of(m->metric)->needs_outputs) {
        size_t most = MOST_BYTES / sizeof(float) / (size_t)m->outputs;
        status = keep_rows(m, most > 0 ? most : 1, err);
    }
    if (status != STK_OK) {
        stk_metrics_free(m);
    }
    return status;
}

size_t stk_metrics_enough(int outputs) {
    size_t most = MOST_KEPT_NUMBERS / (size_t)outputs;
    return most < 1 ? 1 : most < MOST_KEPT ? most : MOST_KEPT;
}

stk_status stk_metrics_keep_logits(stk_metrics *m, stk_error *err) {
    bool kept = m->logits != NULL || m->task == STK_TASK_REGRESSION;
    return kept ? STK_OK : keep_rows(m, stk_metrics_enough(m->outputs), err);
}

void stk_metrics_free(stk_metrics *m) {
    stk_mem_free(m->labels);
    stk_mem_free(m->predicted);
    stk_mem_free(m->tally);
    stk_set_tally_free(&m->sets);
    stk_mem_free(m->last_set);
    stk_mem_free(m->chosen);
    stk_mem_free(m->targets);
    stk_mem_free(m->logits);
    stk_mem_free(m->answers);
    memset(m, 0, sizeof *m);
}

size_t stk_metrics_kept(const stk_metrics *m) {
    return m->logits != NULL ? (m->count + m->every - 1) / m->every : 0;
}

void stk_metrics_reset(stk_metrics *m) {
    m->count = m->correct1 = m->correct5 = 0;
    m->loss_sum = m->clipped_sum = m->precision_sum = 0;
    m->pf1 = (stk_pf1_sums){0};
    stk_set_tally_reset(&m->sets);
    if (m->targets != NULL) {
        memset(m->targets, 0, (size_t)m->outputs * sizeof *m->targets);
    }
}

/* ---- one sample ---- */

/* Where the row of the next sample is kept; NULL: it is not. */
static float *next_row(const stk_metrics *m) {
    return m->logits != NULL && m->count % m->every == 0
               ? m->logits + m->count / m->every * (size_t)m->outputs
               : NULL;
}

/* Adds a mean precision and a probability of the positive class; `sign` -1 takes them back. */
static void count_last(stk_metrics *m, double sign) {
    m->precision_sum += sign * m->last_precision;
    if (m->outputs == 2) {
        bool positive = m->last_label == 1;
        *(positive ? &m->pf1.hits : &m->pf1.misses) += sign * m->last_probability;
    }
}

double stk_metrics_add(stk_metrics *m, const float *outputs, int label) {
    int above = 0; /* classes that are thought likelier; ties count against the label */
    int best = 0;
    double sum = 1; /* of exp(output - best), the best's own to begin with */
    for (int c = 0; c < m->outputs; c++) {
        above += c != label && !(outputs[c] < outputs[label]);
        best = outputs[c] > outputs[best] ? c : best;
    }
    for (int c = 0; c < m->outputs; c++) {
        sum += c != best ? exp((double)outputs[c] - outputs[best]) : 0;
    }
    double loss = log(sum) + outputs[best] - outputs[label];
    double log_sum = log(sum) + outputs[best];
    float *row = next_row(m);
    for (int c = 0; row != NULL && c < m->outputs; c++) {
        row[c] = (float)(outputs[c] - log_sum); /* comparable between samples */
    }
    m->loss_sum += loss;
    m->clipped_sum += stk_metrics_clipped(loss);
    m->correct1 += above < 1;
    m->correct5 += above < 5;
    m->last_label = label;
    m->last_precision = stk_metrics_average_precision(above + 1, m->k);
    m->last_probability = m->outputs == 2 ? exp(outputs[1] - log_sum) : 0;
    m->pf1.positives += label == 1;
    count_last(m, 1);
    m->labels[m->count] = label;
    m->predicted[m->count] = best;
    m->count++;
    return loss;
}

void stk_metrics_decide_class(stk_metrics *m, int predicted) {
    m->predicted[m->count - 1] = predicted;
}

void stk_metrics_decide_place(stk_metrics *m, int place) {
    count_last(m, -1);
    m->last_precision = stk_metrics_average_precision(place, m->k);
    count_last(m, 1);
}

void stk_metrics_decide_probability(stk_metrics *m, double probability) {
    count_last(m, -1);
    m->last_probability = probability;
    count_last(m, 1);
}

static double add_numbers(stk_metrics *m, const float *outputs, const float *targets) {
    double loss = 0;
    int known = 0;
    for (int c = 0; c < m->outputs; c++) {
        double error = (double)outputs[c] - targets[c];
        if (!isnan(targets[c])) {
            stk_target_sums_add(&m->targets[c], outputs[c], targets[c]);
            loss += error * error;
            known++;
        }
    }
    return known > 0 ? loss / known : 0;
}

/* Keeps the row, and counts m->last_set and m->chosen. */
static double add_labels(stk_metrics *m, const float *outputs) {
    double loss = 0;
    double clipped = 0;
    int known = 0;
    size_t exact = m->sets.exact;
    float *row = next_row(m);
    for (int c = 0; c < m->outputs; c++) {
        if (m->last_set[c] != STK_TARGET_UNKNOWN) {
            double one = stk_metrics_binary_loss(outputs[c], m->last_set[c] == 1);
            loss += one;
            clipped += stk_metrics_clipped(one);
            known++;
        }
    }
    if (row != NULL) {
        size_t at = m->count / m->every * (size_t)m->outputs;
        memcpy(row, outputs, (size_t)m->outputs * sizeof *row);
        memcpy(m->answers + at, m->last_set, (size_t)m->outputs);
    }
    stk_set_tally_add(&m->sets, m->last_set, m->chosen);
    m->correct1 += m->sets.exact - exact;
    m->clipped_sum += known > 0 ? clipped / known : 0;
    return known > 0 ? loss / known : 0;
}

double stk_metrics_add_chosen(stk_metrics *m, const float *outputs, const float *targets,
                              const bool *chosen) {
    double loss;
    if (m->task == STK_TASK_REGRESSION) {
        loss = add_numbers(m, outputs, targets);
    } else {
        for (int c = 0; c < m->outputs; c++) {
            m->last_set[c] = (int8_t)(isnan(targets[c]) ? STK_TARGET_UNKNOWN : targets[c] > 0.5F);
            m->chosen[c] = chosen != NULL ? chosen[c] : outputs[c] > 0;
        }
        loss = add_labels(m, outputs);
    }
    m->loss_sum += loss;
    m->count++;
    return loss;
}

double stk_metrics_add_targets(stk_metrics *m, const float *outputs, const float *targets) {
    return stk_metrics_add_chosen(m, outputs, targets, NULL);
}

/* ---- values ---- */

static bool is_positive(const stk_metrics *m, size_t kept, int c) {
    size_t outputs = (size_t)m->outputs;
    return m->answers != NULL ? m->answers[kept * outputs + (size_t)c] == 1
                              : m->labels[kept * m->every] == c;
}

/* Puts the known values of a column into rows; returns their number. */
static size_t take_column(const stk_metrics *m, int c, stk_scored *rows) {
    size_t kept = stk_metrics_kept(m);
    size_t outputs = (size_t)m->outputs;
    size_t count = 0;
    for (size_t i = 0; i < kept; i++) {
        size_t at = i * outputs + (size_t)c;
        if (m->answers == NULL || m->answers[at] != STK_TARGET_UNKNOWN) {
            rows[count++] = (stk_scored){m->logits[at], is_positive(m, i, c)};
        }
    }
    return count;
}

/* Which columns have a positive: with very many classes most have none. */
static bool *find_columns(const stk_metrics *m) {
    size_t kept = stk_metrics_kept(m);
    bool *found = stk_mem_new((size_t)m->outputs, sizeof *found);
    for (size_t i = 0; found != NULL && i < kept; i++) {
        for (int c = 0; m->answers != NULL && c < m->outputs; c++) {
            found[c] = found[c] || is_positive(m, i, c);
        }
        if (m->answers == NULL) {
            found[m->labels[i * m->every]] = true;
        }
    }
    return found;
}

/* The mean over the columns from `first` on that have both kinds of samples. */
static double mean_auc(const stk_metrics *m, int first, double (*area)(stk_scored *, size_t)) {
    size_t kept = stk_metrics_kept(m);
    stk_scored *rows = stk_mem_raw(kept > 0 ? kept : 1, sizeof *rows);
    bool *found = find_columns(m);
    double sum = 0;
    int present = 0;
    for (int c = first; kept > 0 && rows != NULL && found != NULL && c < m->outputs; c++) {
        double one = found[c] ? area(rows, take_column(m, c, rows)) : NAN;
        sum += isnan(one) ? 0 : one;
        present += !isnan(one);
    }
    stk_mem_free(rows);
    stk_mem_free(found);
    return present > 0 ? sum / present : NAN;
}

static double share_of(const stk_metrics *m, size_t part) {
    return 100.0 * (double)part / (double)m->count;
}

/* Of tasks that answer with one class. */
static double value_of_classes(const stk_metrics *m, stk_metric metric) {
    switch (metric) {
    case STK_METRIC_ACC1:
        return share_of(m, m->correct1);
    case STK_METRIC_ACC5:
        return share_of(m, m->correct5);
    case STK_METRIC_ERROR:
        return 100 - share_of(m, m->correct1);
    case STK_METRIC_MAPK:
        return m->precision_sum / (double)m->count;
    case STK_METRIC_PF1:
        return m->outputs == 2 ? stk_metrics_pf1(&m->pf1) : NAN;
    case STK_METRIC_MACRO_F1:
    case STK_METRIC_BALANCED_ACC:
    case STK_METRIC_MCC:
        return m->tally == NULL ? NAN
                                : stk_metrics_of_labels(metric, m->outputs, m->labels, m->predicted,
                                                        m->count, m->tally);
    default:
        return stk_metrics_of_labels(metric, m->outputs, m->labels, m->predicted, m->count, NULL);
    }
}

double stk_metrics_value(const stk_metrics *m, stk_metric metric) {
    /* Of two classes one column says all. */
    int first = has_classes(m) && m->outputs == 2 ? 1 : 0;
    if (m->count == 0) {
        return NAN;
    }
    switch (metric) {
    case STK_METRIC_LOGLOSS:
        return m->task == STK_TASK_REGRESSION ? NAN : m->clipped_sum / (double)m->count;
    case STK_METRIC_AUC:
    case STK_METRIC_AUC_MACRO:
        return mean_auc(m, first, stk_metrics_auc);
    case STK_METRIC_WEIGHTED_AUC:
        return mean_auc(m, first, stk_metrics_weighted_auc);
    default:
        return m->task == STK_TASK_REGRESSION
                   ? stk_target_sums_value(m->targets, m->outputs, metric)
               : m->task == STK_TASK_MULTILABEL ? stk_set_tally_value(&m->sets, metric)
                                                : value_of_classes(m, metric);
    }
}

double stk_metrics_loss(const stk_metrics *m) {
    return m->count > 0 ? m->loss_sum / (double)m->count : NAN;
}
