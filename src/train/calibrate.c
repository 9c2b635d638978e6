/*
 * calibrate.c - Newton's method for the temperature, plain searches for the label rule.
 *
 * Macro F1: rare classes are named too seldom when the likeliest class is. The rule has one number,
 * a power g: class c is chosen by its probability times (share of the commonest class / its own
 * share)^g. Kappa: the expected step of the scale is cut into classes. The cut points begin at the
 * halves, where they round, and move while that helps.
 */
#include "train/calibrate.h"

#include <math.h>
#include <string.h>

#include "base/error.h"
#include "base/mem.h"
#include "metrics/probabilities.h"

/* The pictures are divided into so many parts; each is judged by a fit to the others. */
#define PARTS 4

/* 8 (ln T)^2 is added to the sum of the losses: a few pictures that are all right, or one that is
 * quite wrong, do not give extreme temperatures. */
#define PULL 8.0

#define NEWTON_STEPS 12
#define NEWTON_NEAR 1e-4

/* Powers 0, 0.1 and so on up to 1. */
#define POWERS 10

/* Distances by which a cut point is moved, up and down. */
#define CUT_STEP 0.05
#define CUT_REACH 4 /* the greatest is CUT_STEP times 2^(CUT_REACH - 1) */
#define CUT_SWEEPS 4

/* A scale of more steps is not cut: that would take seconds. */
#define MOST_GRADES 32

/* A score of n pictures has a noise of about 1 / sqrt(n). A number of a rule that moves by 1 pays
 * such a part of it. */
#define TOLL 0.1

/* Some of the held-out pictures. */
typedef struct held_rows {
    size_t count;
    const float **logits; /* (count), owned: each (classes), borrowed */
    int *labels;          /* (count), owned */
} held_rows;

typedef struct fitting {
    stk_metric metric;
    int classes;
    held_rows all;
    held_rows some;      /* those that are fitted to, or judged */
    double *probs;       /* (some.count, classes), owned: at the fitted temperature */
    double *expected;    /* (some.count), owned: the expected step of a scale */
    int *predicted;      /* (some.count), owned: scratch */
    int *judged;         /* (all.count), owned: classes by rules that had not seen the picture */
    int *judged_labels;  /* (all.count), owned: in the same order */
    size_t judged_count; /* in both */
    size_t *tally;       /* (classes, 2), owned: scratch of the score */
    double *moved;       /* (classes), owned: scratch for numbers of a rule */
} fitting;

static bool open_rows(held_rows *rows, size_t count) {
    rows->logits = stk_mem_raw(count, sizeof *rows->logits);
    rows->labels = stk_mem_raw(count, sizeof *rows->labels);
    return rows->logits != NULL && rows->labels != NULL;
}

static void free_rows(held_rows *rows) {
    stk_mem_free(rows->logits);
    stk_mem_free(rows->labels);
}

static void close_fitting(fitting *f) {
    free_rows(&f->all);
    free_rows(&f->some);
    stk_mem_free(f->probs);
    stk_mem_free(f->expected);
    stk_mem_free(f->predicted);
    stk_mem_free(f->judged);
    stk_mem_free(f->judged_labels);
    stk_mem_free(f->tally);
    stk_mem_free(f->moved);
}

static bool is_finite_row(const float *row, int classes) {
    bool finite = true;
    for (int c = 0; c < classes; c++) {
        finite = finite && isfinite(row[c]);
    }
    return finite;
}

/* Takes the rows that were kept; of more than enough every k-th. */
static void take_rows(fitting *f, const stk_metrics *m) {
    size_t kept = m->logits != NULL ? (m->count + m->every - 1) / m->every : 0;
    size_t most = stk_metrics_enough(m->outputs);
    size_t step = kept > most ? (kept + most - 1) / most : 1;
    for (size_t i = 0; i < kept; i += step) {
        const float *row = m->logits + i * (size_t)m->outputs;
        if (is_finite_row(row, m->outputs)) {
            f->all.logits[f->all.count] = row;
            f->all.labels[f->all.count++] = m->labels[i * m->every];
        }
    }
}

/* Freed with close_fitting(), also after a failure. */
static stk_status open_fitting(fitting *f, const stk_metrics *m, stk_metric metric,
                               stk_error *err) {
    size_t kept = m->count / m->every + 1;
    size_t most = stk_metrics_enough(m->outputs);
    size_t room = kept < most ? kept : most;
    size_t classes = (size_t)m->outputs;
    *f = (fitting){.metric = metric, .classes = m->outputs};
    bool good = open_rows(&f->all, room) && open_rows(&f->some, room);
    f->probs = stk_mem_raw(room, classes * sizeof *f->probs);
    f->expected = stk_mem_raw(room, sizeof *f->expected);
    f->predicted = stk_mem_raw(room, sizeof *f->predicted);
    f->judged = stk_mem_raw(room, sizeof *f->judged);
    f->judged_labels = stk_mem_raw(room, sizeof *f->judged_labels);
    f->tally = stk_mem_raw(classes, 2 * sizeof *f->tally);
    f->moved = stk_mem_raw(classes, sizeof *f->moved);
    good = good && f->probs != NULL && f->expected != NULL && f->predicted != NULL &&
           f->judged != NULL && f->judged_labels != NULL && f->moved != NULL &&
           f->tally != NULL;
    if (good) {
        take_rows(f, m);
    }
    return good ? STK_OK : STK_FAIL_MEMORY(err, "the calibration of a model");
}

/* Puts the rows of a part, or all others, into f->some. */
static void pick(fitting *f, size_t part, bool others) {
    f->some.count = 0;
    for (size_t i = 0; i < f->all.count; i++) {
        if ((i % PARTS == part) != others) {
            f->some.logits[f->some.count] = f->all.logits[i];
            f->some.labels[f->some.count++] = f->all.labels[i];
        }
    }
}

/* ---- temperature ---- */

/* The loss of one row of scaled logits, with its first and second derivative by the scale. */
static double row_loss(const float *row, int classes, int label, double scale, double *slope,
                       double *bend) {
    int best = 0;
    double sum =
        1; /* of exp(scale z), z the distance from the best; the best's own to begin with */
    double first = 0;
    double second = 0;
    for (int c = 1; c < classes; c++) {
        best = row[c] > row[best] ? c : best;
    }
    for (int c = 0; c < classes; c++) {
        double z = (double)row[c] - row[best];
        double p = c != best ? exp(scale * z) : 0;
        sum += p;
        first += p * z;
        second += p * z * z;
    }
    first /= sum;
    double own = (double)row[label] - row[best];
    *slope += first - own;
    *bend += second / sum - first * first;
    return log(sum) - scale * own;
}

/* The sum of the losses at a temperature, with its derivatives by 1 / temperature. */
static double loss_at(const held_rows *rows, int classes, double temperature, double *slope,
                      double *bend) {
    double loss = 0;
    *slope = *bend = 0;
    for (size_t i = 0; i < rows->count; i++) {
        loss += row_loss(rows->logits[i], classes, rows->labels[i], 1 / temperature, slope, bend);
    }
    return loss;
}

/*
 * The temperature with the least loss, found in u = ln T: with b = 1 / T the first derivative is
 * -b L'(b), the second b L'(b) + b^2 L''(b). The sign of the first keeps the answer in brackets; a
 * step out of them halves them.
 */
static double fit_temperature(const held_rows *rows, int classes) {
    double low = log(STK_LEAST_TEMPERATURE);
    double high = log(STK_MOST_TEMPERATURE);
    double u = 0;
    double step = 1;
    for (int i = 0; i < NEWTON_STEPS && fabs(step) > NEWTON_NEAR; i++) {
        double slope, bend;
        double b = exp(-u);
        (void)loss_at(rows, classes, exp(u), &slope, &bend);
        double first = -b * slope + 2 * PULL * u;
        double second = b * slope + b * b * bend + 2 * PULL;
        low = first < 0 ? u : low;
        high = first < 0 ? high : u;
        double next = u - first / second;
        next = second > 0 && next >= low && next <= high ? next : (low + high) / 2;
        step = next - u;
        u = next;
    }
    return stk_calibration_round(exp(u));
}

/* ---- label rules ---- */

static bool has_rule(const fitting *f) {
    return stk_metric_has_rule(f->metric, STK_TASK_SINGLE) &&
           (f->metric != STK_METRIC_QWK || f->classes <= MOST_GRADES);
}

/* Probabilities and expected steps of f->some. */
static void fill_probs(fitting *f, double temperature) {
    for (size_t i = 0; i < f->some.count; i++) {
        double *row = f->probs + i * (size_t)f->classes;
        stk_softmax(f->some.logits[i], f->classes, temperature, row);
        f->expected[i] = 0;
        for (int c = 0; c < f->classes; c++) {
            f->expected[i] += c * row[c];
        }
    }
}

static double score_of_some(const fitting *f) {
    return stk_metrics_of_labels(f->metric, f->classes, f->some.labels, f->predicted,
                                 f->some.count, f->tally);
}

/* Chooses the classes of f->some by a rule. */
static void choose_some(fitting *f, const stk_label_rule *rule) {
    for (size_t i = 0; i < f->some.count; i++) {
        f->predicted[i] = stk_label_choose(rule, f->probs + i * (size_t)f->classes, f->classes);
    }
}

/* What moving the numbers of a rule by 1 in all costs. */
static double toll_of(const fitting *f) {
    return TOLL / sqrt((double)f->some.count);
}

/* The weights of a power. A class without a picture counts as if it had one. */
static void fill_weights(const fitting *f, double power, double *weights) {
    double most = 1;
    memset(weights, 0, (size_t)f->classes * sizeof *weights);
    for (size_t i = 0; i < f->some.count; i++) {
        double *count = &weights[f->some.labels[i]];
        *count += 1;
        most = fmax(most, *count);
    }
    for (int c = 0; c < f->classes; c++) {
        weights[c] = stk_calibration_round(pow(most / fmax(weights[c], 1), power));
    }
}

static void fit_weights(fitting *f, stk_label_rule *rule) {
    double best = -INFINITY;
    int best_power = 0;
    rule->count = f->classes;
    for (int i = 0; i <= POWERS; i++) {
        double power = (double)i / POWERS;
        fill_weights(f, power, rule->numbers);
        choose_some(f, rule);
        double score = score_of_some(f) - toll_of(f) * power;
        best_power = score > best ? i : best_power;
        best = fmax(best, score);
    }
    fill_weights(f, (double)best_power / POWERS, rule->numbers);
}

/* The score of f->some with these cut points, less what their distance from the halves costs. */
static double score_cuts(fitting *f, const double *cuts, int count) {
    double moved = 0;
    for (int i = 0; i < count; i++) {
        moved += fabs(cuts[i] - (i + 0.5));
    }
    for (size_t i = 0; i < f->some.count; i++) {
        f->predicted[i] = stk_label_cut(cuts, count, f->expected[i]);
    }
    return score_of_some(f) - toll_of(f) * moved;
}

/* Moves one cut point to where the score is best, between its neighbours; true if it moved. */
static bool move_cut(fitting *f, double *cuts, int count, int at, double *best) {
    double from = cuts[at];
    double to = from;
    memcpy(f->moved, cuts, (size_t)count * sizeof *cuts);
    for (int i = -CUT_REACH; i <= CUT_REACH; i++) {
        double step = i == 0 ? 0 : ldexp(i < 0 ? -CUT_STEP : CUT_STEP, (i < 0 ? -i : i) - 1);
        f->moved[at] = stk_calibration_round(from + step);
        bool rising = (at == 0 || f->moved[at] > cuts[at - 1]) &&
                      (at + 1 == count || f->moved[at] < cuts[at + 1]);
        double score = rising && i != 0 ? score_cuts(f, f->moved, count) : *best;
        to = score > *best ? f->moved[at] : to;
        *best = fmax(*best, score);
    }
    cuts[at] = to;
    return to != from;
}

static void fit_cuts(fitting *f, stk_label_rule *rule) {
    bool moved = true;
    rule->count = f->classes - 1;
    for (int i = 0; i < rule->count; i++) {
        rule->numbers[i] = i + 0.5;
    }
    double best = score_cuts(f, rule->numbers, rule->count);
    for (int sweep = 0; sweep < CUT_SWEEPS && moved; sweep++) {
        moved = false;
        for (int at = 0; at < rule->count; at++) {
            moved = move_cut(f, rule->numbers, rule->count, at, &best) || moved;
        }
    }
}

/* Fits the rule of the metric to f->some at a temperature. `rule` has room for its numbers. */
static void fit_rule(fitting *f, double temperature, stk_label_rule *rule) {
    fill_probs(f, temperature);
    if (f->metric == STK_METRIC_MACRO_F1) {
        rule->kind = STK_LABEL_WEIGHTS;
        fit_weights(f, rule);
    } else {
        rule->kind = STK_LABEL_CUTS;
        fit_cuts(f, rule);
    }
}

/* ---- both, judged by pictures that they were not fitted to ---- */

/* Takes the classes of f->some, in the order of the parts. */
static void take_judged(fitting *f) {
    for (size_t i = 0; i < f->some.count; i++) {
        f->judged[f->judged_count] = f->predicted[i];
        f->judged_labels[f->judged_count++] = f->some.labels[i];
    }
}

/* The metric of the likeliest classes; `probs` of f->some, which are all, may be of any
 * temperature. */
static double plain_score(fitting *f) {
    static const stk_label_rule likeliest = {STK_LABEL_LIKELIEST, 0, NULL};
    choose_some(f, &likeliest);
    return score_of_some(f);
}

/* Fits to all parts but one, and judges that one. Adds up the losses of the part. */
static void judge_part(fitting *f, size_t part, stk_label_rule *rule, double *plain_loss,
                       double *loss) {
    double slope, bend;
    pick(f, part, true);
    double temperature = fit_temperature(&f->some, f->classes);
    if (has_rule(f)) {
        fit_rule(f, temperature, rule);
    }
    pick(f, part, false);
    *plain_loss += loss_at(&f->some, f->classes, 1, &slope, &bend);
    *loss += loss_at(&f->some, f->classes, temperature, &slope, &bend);
    if (has_rule(f)) {
        fill_probs(f, temperature);
        choose_some(f, rule);
        take_judged(f);
    }
}

/* Fills in the calibration; its rule has room for its numbers. */
static void fit(fitting *f, stk_calibration *c) {
    double n = (double)f->all.count;
    double plain_loss = 0;
    double loss = 0;
    for (size_t part = 0; part < PARTS; part++) {
        judge_part(f, part, &c->rule, &plain_loss, &loss);
    }
    pick(f, PARTS, true);
    c->temperature = loss < plain_loss ? fit_temperature(&f->some, f->classes) : 1;
    c->pictures = f->all.count;
    c->plain_loss = plain_loss / n;
    c->loss = fmin(loss, plain_loss) / n;
    c->plain_score = c->score = NAN;
    if (has_rule(f)) {
        c->score = stk_metrics_of_labels(f->metric, f->classes, f->judged_labels, f->judged,
                                         f->judged_count, f->tally);
        fit_rule(f, c->temperature, &c->rule);
        c->plain_score = plain_score(f);
    } else {
        stk_mem_free(c->rule.numbers);
        c->rule.numbers = NULL;
    }
}

stk_status stk_calibrate(const stk_metrics *metrics, stk_metric metric,
                         stk_calibration *calibration, stk_error *err) {
    fitting f;
    *calibration = (stk_calibration){0};
    stk_status status = open_fitting(&f, metrics, metric, err);
    if (status != STK_OK || f.all.count == 0 || f.classes < 2) {
        close_fitting(&f);
        return status;
    }
    calibration->rule.numbers = stk_mem_new((size_t)f.classes, sizeof(double));
    if (calibration->rule.numbers != NULL) {
        fit(&f, calibration);
    } else {
        status = STK_FAIL_MEMORY(err, "the calibration of a model");
    }
    close_fitting(&f);
    return status;
}
