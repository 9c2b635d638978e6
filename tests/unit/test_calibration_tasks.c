/* test_calibration_tasks.c - temperatures and rules for several labels, probabilities of a rare
 * class and ranked lists, on simulated models whose best rule is known. */
#include "check.h"

#include "base/mem.h"
#include "base/numbers/rng.h"
#include "metrics/probabilities.h"
#include "train/calibrate/calibrate.h"
#include "weights/label_sets.h"

#define LABELS 6

static stk_rng numbers(uint64_t seed) {
    return stk_rng_make(seed, (stk_rng_purpose)0, 0, 0);
}

static stk_metrics keeping(stk_task task, int outputs, size_t capacity, stk_metric metric) {
    const stk_metrics_config config = {
        .task = task, .outputs = outputs, .capacity = capacity, .metric = metric};
    stk_error err = {0};
    stk_metrics metrics;
    if (stk_metrics_open(&metrics, &config, &err) != STK_OK ||
        stk_metrics_keep_logits(&metrics, &err) != STK_OK) {
        CHECK_FAIL("%s", err.message);
        exit(1);
    }
    return metrics;
}

static stk_calibration fit_with(const stk_metrics *metrics, const stk_calibrate_config *config) {
    stk_error err = {0};
    stk_calibration calibration;
    if (stk_calibrate(metrics, config, &calibration, &err) != STK_OK) {
        CHECK_FAIL("%s", err.message);
        exit(1);
    }
    return calibration;
}

static stk_calibration fit(const stk_metrics *metrics, stk_metric metric) {
    const stk_calibrate_config config = {.metric = metric, .stranger = -1};
    return fit_with(metrics, &config);
}

/* The kind of rule that a run with this one model uses. */
static stk_label_rule_kind used(const stk_calibration *calibration, int classes) {
    stk_error err = {0};
    stk_calibration_mean mean;
    if (stk_calibration_mean_open(&mean, classes, &err) != STK_OK) {
        CHECK_FAIL("%s", err.message);
        exit(1);
    }
    stk_calibration_mean_add(&mean, calibration, 1);
    stk_label_rule_kind kind = stk_calibration_mean_rule(&mean)->kind;
    stk_calibration_mean_free(&mean);
    return kind;
}

/* ---- several labels ---- */

/* Labels that are independent. The model is right but for a shift of each label's logits. */
static void add_labels(stk_metrics *metrics, size_t count, double mean, double scale,
                       const double *shifts, uint64_t seed) {
    stk_rng rng = numbers(seed);
    for (size_t i = 0; i < count; i++) {
        float logits[LABELS];
        float targets[LABELS];
        for (int l = 0; l < LABELS; l++) {
            double z = mean + 1.5 * stk_rng_normal(&rng);
            targets[l] = stk_rng_uniform(&rng) < 1 / (1 + exp(-z));
            logits[l] = (float)(scale * z + (shifts != NULL ? shifts[l] : 0));
        }
        stk_metrics_add_targets(metrics, logits, targets);
    }
}

/* The metric of what was kept, with a rule. */
static double score_with(const stk_metrics *metrics, stk_metric metric, double temperature,
                         const stk_label_rule *rule, const bool *exclusive) {
    stk_error err = {0};
    stk_set_tally tally;
    if (stk_set_tally_open(&tally, metrics->outputs, &err) != STK_OK) {
        return NAN;
    }
    for (size_t i = 0; i < stk_metrics_kept(metrics); i++) {
        double probs[LABELS];
        bool chosen[LABELS];
        size_t at = i * (size_t)metrics->outputs;
        stk_sigmoids(metrics->logits + at, metrics->outputs, temperature, probs);
        (void)stk_labels_choose_set(rule, probs, metrics->outputs, exclusive, chosen);
        stk_set_tally_add(&tally, metrics->answers + at, chosen);
    }
    double value = stk_set_tally_value(&tally, metric);
    stk_set_tally_free(&tally);
    return value;
}

static void temperature_of_sigmoids(void) {
    static const double cases[] = {0.5, 1.6, 3};
    for (size_t i = 0; i < STK_COUNT(cases); i++) {
        stk_metrics m = keeping(STK_TASK_MULTILABEL, LABELS, 2000, STK_METRIC_LOGLOSS);
        add_labels(&m, 2000, 0, cases[i], NULL, 3 + i);
        stk_calibration c = fit(&m, STK_METRIC_LOGLOSS);
        CHECK_NEAR(log(c.temperature), log(cases[i]), 0.08);
        CHECK(c.loss < c.plain_loss);
        CHECK_NEAR(c.plain_loss, stk_metrics_loss(&m), 1e-5);
        CHECK(c.rule.numbers == NULL && isnan(c.score));
        stk_calibration_free(&c);
        stk_metrics_free(&m);
    }
}

/* For micro F1 the best threshold is half of the best score: with fewer hits than that, another
 * label costs more than it brings. */
static void common_threshold_is_half_the_score(void) {
    stk_metrics seen = keeping(STK_TASK_MULTILABEL, LABELS, 1500, STK_METRIC_MICRO_F1);
    stk_metrics fresh = keeping(STK_TASK_MULTILABEL, LABELS, 8000, STK_METRIC_MICRO_F1);
    add_labels(&seen, 1500, -2, 1, NULL, 1);
    add_labels(&fresh, 8000, -2, 1, NULL, 2);
    stk_calibration c = fit(&seen, STK_METRIC_MICRO_F1);
    CHECK_INT(used(&c, LABELS), STK_LABEL_THRESHOLDS);
    REQUIRE(c.rule.count == LABELS + 1);
    double score = score_with(&fresh, STK_METRIC_MICRO_F1, c.temperature, &c.rule, NULL);
    double plain = score_with(&fresh, STK_METRIC_MICRO_F1, 1, NULL, NULL);
    CHECK(score > plain + 0.03);
    CHECK_NEAR(score, c.score, 0.04);
    for (int l = 1; l <= LABELS; l++) {
        CHECK_NEAR(c.rule.numbers[l], score / 2, 0.1);
    }
    CHECK_NEAR(c.rule.numbers[0], 1, 0); /* most rows have no label */
    stk_calibration_free(&c);
    stk_metrics_free(&seen);
    stk_metrics_free(&fresh);
}

/* Labels whose logits are shifted each their way need thresholds of their own. */
static void own_thresholds_where_they_help(void) {
    static const double shifts[LABELS] = {2, -1.5, 0, 2, -1.5, 0};
    static const stk_metric metrics[] = {STK_METRIC_MACRO_F1, STK_METRIC_MICRO_F1,
                                         STK_METRIC_SAMPLES_F1};
    for (size_t i = 0; i < STK_COUNT(metrics); i++) {
        stk_metrics seen = keeping(STK_TASK_MULTILABEL, LABELS, 1500, metrics[i]);
        stk_metrics fresh = keeping(STK_TASK_MULTILABEL, LABELS, 8000, metrics[i]);
        add_labels(&seen, 1500, -1, 1, shifts, 5);
        add_labels(&fresh, 8000, -1, 1, shifts, 6);
        stk_calibration c = fit(&seen, metrics[i]);
        CHECK_INT(used(&c, LABELS), STK_LABEL_THRESHOLDS);
        REQUIRE(c.rule.count == LABELS + 1);
        CHECK(c.rule.numbers[1] > c.rule.numbers[3] + 0.1);
        CHECK(c.rule.numbers[2] < c.rule.numbers[3]);
        CHECK(score_with(&fresh, metrics[i], c.temperature, &c.rule, NULL) >
              score_with(&fresh, metrics[i], 1, NULL, NULL) + 0.03);
        stk_calibration_free(&c);
        stk_metrics_free(&seen);
        stk_metrics_free(&fresh);
    }
}

/* Every row has one label, which the model is never sure of: no row is left empty. */
static void rows_are_filled_where_none_is_empty(void) {
    stk_metrics m = keeping(STK_TASK_MULTILABEL, LABELS, 600, STK_METRIC_SAMPLES_F1);
    stk_rng rng = numbers(1);
    for (int i = 0; i < 600; i++) {
        float logits[LABELS];
        float targets[LABELS] = {0};
        int is = (int)stk_rng_below(&rng, LABELS);
        for (int l = 0; l < LABELS; l++) {
            logits[l] = (float)(-2.5 + (l == is ? 1 : 0) + 0.5 * stk_rng_normal(&rng));
        }
        targets[is] = 1;
        stk_metrics_add_targets(&m, logits, targets);
    }
    stk_calibration c = fit(&m, STK_METRIC_SAMPLES_F1);
    REQUIRE(c.rule.count == LABELS + 1);
    CHECK_NEAR(c.rule.numbers[0], 0, 0);
    stk_calibration_free(&c);
    stk_metrics_free(&m);
}

static void few_rows_change_little(void) {
    for (uint64_t seed = 0; seed < 5; seed++) {
        stk_metrics m = keeping(STK_TASK_MULTILABEL, LABELS, 8, STK_METRIC_MICRO_F1);
        add_labels(&m, 8, 0.5, 1, NULL, seed);
        stk_calibration c = fit(&m, STK_METRIC_MICRO_F1);
        CHECK(c.temperature > 0.5 && c.temperature < 2);
        for (int l = 1; l < c.rule.count; l++) {
            CHECK(c.rule.numbers[l] > 0.1 && c.rule.numbers[l] < 0.8);
        }
        stk_calibration_free(&c);
        stk_metrics_free(&m);
    }
}

/* One row, no positives, unknown targets, NaN, no labels at all: nothing breaks. */
static void odd_rows_of_labels(void) {
    stk_metrics m = keeping(STK_TASK_MULTILABEL, 2, 8, STK_METRIC_MACRO_F1);
    stk_calibration c = fit(&m, STK_METRIC_MACRO_F1);
    CHECK_NEAR(c.temperature, 0, 0); /* nothing to fit to */
    stk_metrics_add_targets(&m, (float[]){NAN, 0}, (float[]){1, 0});
    c = fit(&m, STK_METRIC_MACRO_F1);
    CHECK_NEAR(c.temperature, 0, 0);
    stk_metrics_add_targets(&m, (float[]){-1, -2}, (float[]){0, 0});
    c = fit(&m, STK_METRIC_MACRO_F1);
    CHECK(c.temperature > 0.5 && stk_label_rule_is_sound(&c.rule));
    stk_calibration_free(&c);
    stk_metrics_add_targets(&m, (float[]){1, -2}, (float[]){NAN, NAN});
    stk_metrics_add_targets(&m, (float[]){1, -2}, (float[]){NAN, 0});
    c = fit(&m, STK_METRIC_MACRO_F1);
    CHECK(isfinite(c.loss) && isfinite(c.plain_loss) && c.temperature > 0.5);
    CHECK_INT(c.pictures, 3);
    stk_calibration_free(&c);
    stk_metrics_free(&m);
}

/* ---- which labels are named together ---- */

static void sets_are_chosen_by_rules(void) {
    stk_label_rule filled = {STK_LABEL_THRESHOLDS, 4, (double[]){0, 0.2, 0.4, 0.6}};
    stk_label_rule empty = {STK_LABEL_THRESHOLDS, 4, (double[]){1, 0.2, 0.4, 0.6}};
    bool chosen[3];
    CHECK_INT(stk_labels_choose_set(&filled, (double[]){0.3, 0.3, 0.7}, 3, NULL, chosen), 2);
    CHECK(chosen[0] && !chosen[1] && chosen[2]);
    CHECK_INT(stk_labels_choose_set(&filled, (double[]){0.1, 0.3, 0.5}, 3, NULL, chosen), 1);
    CHECK(!chosen[0] && !chosen[1] && chosen[2]); /* the likeliest */
    CHECK_INT(stk_labels_choose_set(&empty, (double[]){0.1, 0.3, 0.5}, 3, NULL, chosen), 0);
    CHECK(!chosen[0] && !chosen[1] && !chosen[2]);
    /* Without a rule, or with one for other labels, one half. */
    CHECK_INT(stk_labels_choose_set(NULL, (double[]){0.5, 0.3, 0.49}, 3, NULL, chosen), 1);
    CHECK(chosen[0]);
    CHECK_INT(stk_labels_choose_set(&empty, (double[]){0.3, 0.2}, 2, NULL, chosen), 1);
    CHECK(chosen[0] && !chosen[1]);
    CHECK_INT(stk_labels_choose_set(NULL, NULL, 0, NULL, chosen), 0);
    CHECK_INT(stk_labels_choose_set(NULL, (double[]){NAN, NAN}, 2, NULL, chosen), 1);
}

static void labels_that_stand_alone_do(void) {
    static const bool first[3] = {true, false, false};
    static const bool two[3] = {true, true, false};
    bool chosen[3];
    CHECK_INT(stk_labels_choose_set(NULL, (double[]){0.9, 0.2, 0.1}, 3, first, chosen), 1);
    CHECK(chosen[0]);
    CHECK_INT(stk_labels_choose_set(NULL, (double[]){0.6, 0.9, 0.8}, 3, first, chosen), 2);
    CHECK(!chosen[0] && chosen[1] && chosen[2]);
    CHECK_INT(stk_labels_choose_set(NULL, (double[]){0.9, 0.55, 0.1}, 3, first, chosen), 1);
    CHECK(chosen[0] && !chosen[1]);
    CHECK_INT(stk_labels_choose_set(NULL, (double[]){0.4, 0.3, 0.1}, 3, first, chosen), 1);
    CHECK(chosen[0]); /* the likeliest of an empty row */
    CHECK_INT(stk_labels_choose_set(NULL, (double[]){0.7, 0.8, 0.1}, 3, two, chosen), 1);
    CHECK(!chosen[0] && chosen[1]);
}

/* ---- probabilistic F1 ---- */

/* One picture in `rare` is positive; its logit is higher by 2.5 on average. */
static void add_rare(stk_metrics *metrics, size_t count, double share, uint64_t seed) {
    stk_rng rng = numbers(seed);
    for (size_t i = 0; i < count; i++) {
        int label = stk_rng_uniform(&rng) < share;
        double x = stk_rng_normal(&rng) + (label ? 2.5 : 0);
        double z = 2.5 * x - 2.5 * 2.5 / 2 + log(share / (1 - share)); /* what x says */
        stk_metrics_add(metrics, (float[]){0, (float)z}, label);
    }
}

static void rare_probabilities_become_steps(void) {
    stk_metrics seen = keeping(STK_TASK_BINARY, 2, 3000, STK_METRIC_PF1);
    stk_metrics fresh = keeping(STK_TASK_BINARY, 2, 8000, STK_METRIC_PF1);
    add_rare(&seen, 3000, 0.05, 1);
    add_rare(&fresh, 8000, 0.05, 2);
    stk_calibration c = fit(&seen, STK_METRIC_PF1);
    CHECK_INT(used(&c, 2), STK_LABEL_STEP);
    REQUIRE(c.rule.count == 1);
    double plain = stk_metrics_value(&fresh, STK_METRIC_PF1);
    stk_pf1_sums sums = {0};
    for (size_t i = 0; i < fresh.count; i++) {
        double p = exp(fresh.logits[2 * i + 1]);
        stk_pf1_add(&sums, stk_label_step(&c.rule, p), fresh.labels[i] == 1);
    }
    double stepped = stk_metrics_pf1(&sums);
    CHECK(stepped > plain + 0.05);
    CHECK_NEAR(c.rule.numbers[0], stepped / 2, 0.12); /* as for every F1 score */
    CHECK_NEAR(c.plain_score, plain, 0.06);
    stk_calibration_free(&c);
    stk_metrics_free(&seen);
    stk_metrics_free(&fresh);
}

static void pf1_without_positives(void) {
    stk_metrics m = keeping(STK_TASK_BINARY, 2, 50, STK_METRIC_PF1);
    for (int i = 0; i < 50; i++) {
        stk_metrics_add(&m, (float[]){0, (float)(i % 7) - 4}, 0);
    }
    stk_calibration c = fit(&m, STK_METRIC_PF1);
    CHECK_INT(used(&c, 2), STK_LABEL_LIKELIEST);
    CHECK_NEAR(stk_label_step(&(stk_label_rule){0}, 0.3), 0.3, 0);
    CHECK(isnan(stk_label_step(&c.rule, NAN)));
    stk_calibration_free(&c);
    stk_metrics_free(&m);
}

/* ---- ranked lists ---- */

#define WHALES 8

/* Every third picture is of a stranger, class 0, of which the model says nothing: its probability
 * is lost. Otherwise the model knows the animal, more clearly than it believes to know strangers'.
 */
static void add_whales(stk_metrics *metrics, size_t count, uint64_t seed) {
    stk_rng rng = numbers(seed);
    for (size_t i = 0; i < count; i++) {
        float logits[WHALES];
        bool strange = i % 3 == 0;
        int label = strange ? 0 : 1 + (int)stk_rng_below(&rng, WHALES - 1);
        for (int c = 0; c < WHALES; c++) {
            logits[c] = (float)stk_rng_normal(&rng);
        }
        logits[0] = -6;
        logits[label] += strange ? 0 : 3;
        stk_metrics_add(metrics, logits, label);
    }
}

static void strangers_get_a_score(void) {
    stk_metrics seen = keeping(STK_TASK_RANKING, WHALES, 900, STK_METRIC_MAPK);
    stk_metrics fresh = keeping(STK_TASK_RANKING, WHALES, 900, STK_METRIC_MAPK);
    const stk_calibrate_config config = {.metric = STK_METRIC_MAPK, .stranger = 0};
    add_whales(&seen, 900, 1);
    add_whales(&fresh, 900, 2);
    stk_calibration c = fit_with(&seen, &config);
    CHECK_INT(used(&c, WHALES), STK_LABEL_STRANGER);
    REQUIRE(c.rule.count == 1);
    /* Known animals have a probability of about 0.7, the best guess for a stranger has 0.4. */
    CHECK(c.rule.numbers[0] > 0.2 && c.rule.numbers[0] < 0.8);
    double plain = stk_metrics_value(&fresh, STK_METRIC_MAPK);
    stk_metrics ruled = keeping(STK_TASK_RANKING, WHALES, 900, STK_METRIC_MAPK);
    for (size_t i = 0; i < fresh.count; i++) {
        double probs[WHALES];
        stk_softmax(fresh.logits + i * WHALES, WHALES, c.temperature, probs);
        stk_metrics_add(&ruled, fresh.logits + i * WHALES, fresh.labels[i]);
        stk_calibrate_decide(&ruled, &c.rule, probs, 0);
    }
    CHECK(stk_metrics_value(&ruled, STK_METRIC_MAPK) > plain + 0.15);
    stk_calibration_free(&c);
    c = fit(&seen, STK_METRIC_MAPK); /* nobody is a stranger */
    CHECK(c.rule.numbers == NULL && isnan(c.score) && c.temperature > 0);
    stk_calibration_free(&c);
    stk_metrics_free(&seen);
    stk_metrics_free(&fresh);
    stk_metrics_free(&ruled);
}

static void lists_are_ranked(void) {
    static const double probs[] = {0.05, 0.3, 0.3, 0.2, 0.15};
    stk_label_rule rule = {STK_LABEL_STRANGER, 1, (double[]){0.25}};
    int best[5];
    CHECK_INT(stk_rank_choose(NULL, probs, 5, 3, -1, best), 3);
    CHECK(best[0] == 1 && best[1] == 2 && best[2] == 3);
    CHECK_INT(stk_rank_choose(&rule, probs, 5, 5, 0, best), 5);
    CHECK(best[0] == 1 && best[1] == 2 && best[2] == 0 && best[3] == 3 && best[4] == 4);
    rule.numbers[0] = 0.3; /* equal scores: strangers come last */
    CHECK_INT(stk_rank_choose(&rule, probs, 5, 2, 0, best), 2);
    CHECK(best[0] == 1 && best[1] == 2);
    rule.numbers[0] = 1;
    CHECK_INT(stk_rank_choose(&rule, probs, 5, 1, 0, best), 1);
    CHECK(best[0] == 0);
    CHECK_INT(stk_rank_choose(&rule, probs, 5, 5, -1, best), 5);
    CHECK_INT(stk_rank_choose(&rule, probs, 5, 5, 99, best), 5);
    CHECK_INT(stk_rank_choose(&rule, probs, 2, 5, 0, best), 2);
    CHECK_INT(stk_rank_choose(&rule, probs, 5, 0, 0, best), 0);
    CHECK_INT(stk_rank_choose(NULL, (double[]){NAN, 0.1}, 2, 5, -1, best), 2);
    CHECK(best[0] == 1 && best[1] == 0);
}

/* ---- text, means, memory ---- */

static void new_rules_are_read_as_written(void) {
    const struct {
        stk_label_rule rule;
        int classes;
    } cases[] = {
        {{STK_LABEL_THRESHOLDS, 3, (double[]){1, 0.25, 0.5}}, 2},
        {{STK_LABEL_STEP, 1, (double[]){0.1234}}, 2},
        {{STK_LABEL_STRANGER, 1, (double[]){0.4}}, 7},
    };
    static const char *const damaged[] = {
        "{\"temperature\": 1, \"rule\": \"thresholds\", \"numbers\": [1, 0.5]}",
        "{\"temperature\": 1, \"rule\": \"thresholds\", \"numbers\": [1, 0.5, 1.5]}",
        "{\"temperature\": 1, \"rule\": \"step\", \"numbers\": []}",
        "{\"temperature\": 1, \"rule\": \"step\", \"numbers\": [-0.1]}",
        "{\"temperature\": 1, \"rule\": \"stranger\", \"numbers\": [null]}",
    };
    stk_error err = {0};
    stk_calibration read;
    for (size_t i = 0; i < STK_COUNT(cases); i++) {
        stk_calibration c = {.temperature = 1.5, .rule = cases[i].rule, .pictures = 3};
        stk_str text = {0};
        stk_calibration_append(&c, &text);
        REQUIRE_OK(stk_calibration_read(stk_str_text(&text), cases[i].classes, &read, &err), &err);
        CHECK_INT(read.rule.kind, cases[i].rule.kind);
        REQUIRE(read.rule.count == cases[i].rule.count);
        for (int n = 0; n < read.rule.count; n++) {
            CHECK_NEAR(read.rule.numbers[n], cases[i].rule.numbers[n], 0);
        }
        stk_calibration_free(&read);
        stk_str_free(&text);
    }
    for (size_t i = 0; i < STK_COUNT(damaged); i++) {
        REQUIRE_OK(stk_calibration_read(damaged[i], 2, &read, &err), &err);
        CHECK_NEAR(read.temperature, 0, 0);
    }
}

static void means_of_thresholds(void) {
    stk_error err = {0};
    stk_calibration_mean mean;
    stk_calibration taken;
    stk_calibration a = {.temperature = 1,
                         .rule = {STK_LABEL_THRESHOLDS, 3, (double[]){1, 0.2, 0.2}}};
    stk_calibration b = {.temperature = 1,
                         .rule = {STK_LABEL_THRESHOLDS, 3, (double[]){1, 0.4, 0.3}}};
    REQUIRE_OK(stk_calibration_mean_open(&mean, 2, &err), &err);
    stk_calibration_mean_add(&mean, &a, 1);
    stk_calibration_mean_add(&mean, &b, 1);
    REQUIRE_OK(stk_calibration_mean_take(&mean, &taken, &err), &err);
    REQUIRE(taken.rule.count == 3);
    CHECK_NEAR(taken.rule.numbers[0], 1, 0);
    CHECK_NEAR(taken.rule.numbers[1], 0.3, 1e-9);
    CHECK_NEAR(taken.rule.numbers[2], 0.25, 1e-9);
    stk_calibration_free(&taken);
    stk_calibration_mean_free(&mean);
}

static void fits_without_memory(void) {
    stk_metrics m = keeping(STK_TASK_MULTILABEL, LABELS, 100, STK_METRIC_MACRO_F1);
    const stk_calibrate_config config = {.metric = STK_METRIC_MACRO_F1, .stranger = -1};
    add_labels(&m, 100, -1, 1, NULL, 1);
    stk_status status = STK_ERR_MEMORY;
    int64_t n = 0;
    for (; status != STK_OK && n < 100; n++) {
        stk_calibration c;
        stk_mem_fail_after(n);
        status = stk_calibrate(&m, &config, &c, NULL);
        stk_mem_fail_after(-1);
        CHECK(status == STK_OK || status == STK_ERR_MEMORY);
        stk_calibration_free(&c);
    }
    CHECK(n > 15 && n < 100);
    stk_metrics_free(&m);
}

static const check_test tests[] = {
    TEST(temperature_of_sigmoids),
    TEST(common_threshold_is_half_the_score),
    TEST(own_thresholds_where_they_help),
    TEST(rows_are_filled_where_none_is_empty),
    TEST(few_rows_change_little),
    TEST(odd_rows_of_labels),
    TEST(sets_are_chosen_by_rules),
    TEST(labels_that_stand_alone_do),
    TEST(rare_probabilities_become_steps),
    TEST(pf1_without_positives),
    TEST(strangers_get_a_score),
    TEST(lists_are_ranked),
    TEST(new_rules_are_read_as_written),
    TEST(means_of_thresholds),
    TEST(fits_without_memory),
};

CHECK_MAIN(tests)
