/* test_calibration.c - temperatures and label rules: fitted, written, read and averaged. */
#include "check.h"

#include "base/mem.h"
#include "base/numbers/rng.h"
#include "train/calibrate/calibrate.h"

#define MOST_CLASSES 10

static stk_rng numbers(uint64_t seed) {
    return stk_rng_make(seed, (stk_rng_purpose)0, 0, 0);
}

static stk_metrics keeping(int classes, size_t capacity, stk_metric metric) {
    stk_error err = {0};
    stk_metrics metrics;
    const stk_metrics_config config = {
        .task = STK_TASK_SINGLE, .outputs = classes, .capacity = capacity, .metric = metric};
    if (stk_metrics_open(&metrics, &config, &err) != STK_OK ||
        stk_metrics_keep_logits(&metrics, &err) != STK_OK) {
        CHECK_FAIL("%s", err.message);
        exit(1);
    }
    return metrics;
}

static stk_calibration fit(const stk_metrics *metrics, stk_metric metric) {
    stk_error err = {0};
    const stk_calibrate_config config = {.metric = metric, .stranger = -1};
    stk_calibration calibration;
    if (stk_calibrate(metrics, &config, &calibration, &err) != STK_OK) {
        CHECK_FAIL("%s", err.message);
        exit(1);
    }
    return calibration;
}

/* ---- temperature ---- */

/* Adds rows of random logits whose labels are drawn at a temperature. */
static void add_drawn(stk_metrics *metrics, size_t count, int classes, double temperature,
                      uint64_t seed) {
    stk_rng rng = numbers(seed);
    for (size_t i = 0; i < count; i++) {
        float logits[MOST_CLASSES];
        double weight[MOST_CLASSES];
        double sum = 0;
        for (int c = 0; c < classes; c++) {
            logits[c] = (float)(2 * stk_rng_normal(&rng));
            weight[c] = exp(logits[c] / temperature);
            sum += weight[c];
        }
        double drawn = sum * stk_rng_uniform(&rng);
        int label = 0;
        while (label + 1 < classes && drawn >= weight[label]) {
            drawn -= weight[label++];
        }
        stk_metrics_add(metrics, logits, label);
    }
}

static void temperature_is_found_again(void) {
    static const double cases[] = {0.4, 0.7, 1.5, 3};
    for (size_t i = 0; i < STK_COUNT(cases); i++) {
        stk_metrics metrics = keeping(5, 3000, STK_METRIC_LOGLOSS);
        add_drawn(&metrics, 3000, 5, cases[i], 10 + i);
        stk_calibration c = fit(&metrics, STK_METRIC_LOGLOSS);
        CHECK_NEAR(log(c.temperature), log(cases[i]), 0.08);
        CHECK(c.loss < c.plain_loss);
        CHECK_INT(c.pictures, 3000);
        CHECK_NEAR(c.plain_loss, stk_metrics_value(&metrics, STK_METRIC_LOGLOSS), 1e-5);
        CHECK(c.rule.numbers == NULL && isnan(c.score));
        CHECK_NEAR(stk_calibration_round(c.temperature), c.temperature, 0);
        stk_calibration_free(&c);
        stk_metrics_free(&metrics);
    }
}

static void right_temperatures_stay(void) {
    stk_metrics metrics = keeping(5, 3000, STK_METRIC_ACC1);
    add_drawn(&metrics, 3000, 5, 1, 3);
    stk_calibration c = fit(&metrics, STK_METRIC_ACC1);
    CHECK_NEAR(c.temperature, 1, 0.06);
    CHECK(c.loss <= c.plain_loss);
    stk_calibration_free(&c);
    stk_metrics_free(&metrics);
}

/* Far outside of the bounds: labels that are all right, or have nothing to do with the logits. */
static void temperature_has_bounds(void) {
    static const float sure[] = {3, 0};
    stk_metrics metrics = keeping(2, 4000, STK_METRIC_LOGLOSS);
    for (int i = 0; i < 4000; i++) {
        stk_metrics_add(&metrics, sure, 0);
    }
    stk_calibration c = fit(&metrics, STK_METRIC_LOGLOSS);
    CHECK(c.temperature >= STK_LEAST_TEMPERATURE && c.temperature < 0.6);
    stk_calibration_free(&c);
    stk_metrics_reset(&metrics);
    for (int i = 0; i < 4000; i++) {
        stk_metrics_add(&metrics, sure, i % 8 < 4);
    }
    c = fit(&metrics, STK_METRIC_LOGLOSS);
    CHECK(c.temperature <= STK_MOST_TEMPERATURE && c.temperature > 3.5);
    stk_calibration_free(&c);
    stk_metrics_free(&metrics);
}

static void few_pictures_change_little(void) {
    static const float sure[] = {2, 0, 0};
    stk_metrics metrics = keeping(3, 8, STK_METRIC_LOGLOSS);
    for (int i = 0; i < 6; i++) {
        stk_metrics_add(&metrics, sure, 0);
    }
    stk_calibration c = fit(&metrics, STK_METRIC_LOGLOSS);
    CHECK(c.temperature > 0.8 && c.temperature < 1);
    stk_calibration_free(&c);
    stk_metrics_add(&metrics, sure, 1);
    c = fit(&metrics, STK_METRIC_LOGLOSS);
    CHECK(c.temperature > 0.8 && c.temperature < 1.25);
    stk_calibration_free(&c);
    stk_metrics_free(&metrics);
}

static void numbers_that_are_not_finite_do_not_count(void) {
    static const float bad[][2] = {{NAN, 0}, {0, NAN}, {INFINITY, 0}, {0, -INFINITY}};
    stk_metrics clean = keeping(2, 900, STK_METRIC_LOGLOSS);
    stk_metrics mixed = keeping(2, 900, STK_METRIC_LOGLOSS);
    add_drawn(&clean, 800, 2, 0.5, 1);
    add_drawn(&mixed, 800, 2, 0.5, 1);
    for (size_t i = 0; i < 4 * STK_COUNT(bad); i++) {
        stk_metrics_add(&mixed, bad[i % STK_COUNT(bad)], (int)(i % 2));
    }
    stk_calibration a = fit(&clean, STK_METRIC_LOGLOSS);
    stk_calibration b = fit(&mixed, STK_METRIC_LOGLOSS);
    CHECK_NEAR(a.temperature, b.temperature, 0);
    CHECK_INT(b.pictures, 800);
    stk_calibration_free(&a);
    stk_calibration_free(&b);
    stk_metrics_reset(&mixed);
    stk_metrics_add(&mixed, bad[0], 0);
    b = fit(&mixed, STK_METRIC_LOGLOSS);
    CHECK_NEAR(b.temperature, 0, 0);
    CHECK_NEAR(stk_calibration_temperature(&b), 1, 0);
    stk_calibration_free(&b);
    stk_metrics_free(&clean);
    stk_metrics_free(&mixed);
}

/* Nothing was validated, nothing was kept, or there is one class. */
static void nothing_to_fit_is_none(void) {
    stk_error err = {0};
    stk_metrics metrics = keeping(3, 4, STK_METRIC_QWK);
    stk_calibration c = fit(&metrics, STK_METRIC_QWK);
    CHECK_NEAR(c.temperature, 0, 0);
    CHECK(c.rule.numbers == NULL);
    stk_metrics_free(&metrics);
    metrics = keeping(1, 4, STK_METRIC_QWK);
    stk_metrics_add(&metrics, (const float[]){2}, 0);
    c = fit(&metrics, STK_METRIC_QWK);
    CHECK_NEAR(c.temperature, 0, 0);
    stk_metrics_free(&metrics);
    const stk_metrics_config two = {.outputs = 2, .capacity = 4, .metric = STK_METRIC_LOGLOSS};
    REQUIRE_OK(stk_metrics_open(&metrics, &two, &err), &err);
    stk_metrics_add(&metrics, (const float[]){2, 1}, 0);
    c = fit(&metrics, STK_METRIC_LOGLOSS);
    CHECK_NEAR(c.temperature, 0, 0);
    stk_metrics_free(&metrics);
}

/* Of many pictures a part is kept, and gives the same temperature. For AUC all are kept. */
static void part_of_many_is_enough(void) {
    enum { MANY = 50000 };
    stk_metrics part = keeping(2, MANY, STK_METRIC_LOGLOSS);
    stk_metrics all = keeping(2, MANY, STK_METRIC_AUC);
    add_drawn(&part, MANY, 2, 0.5, 5);
    add_drawn(&all, MANY, 2, 0.5, 5);
    CHECK(part.every > 1);
    CHECK_INT(all.every, 1);
    stk_calibration a = fit(&part, STK_METRIC_LOGLOSS);
    stk_calibration b = fit(&all, STK_METRIC_AUC);
    CHECK(a.pictures >= 10000 && a.pictures <= stk_metrics_enough(2));
    CHECK_NEAR(a.temperature, 0.5, 0.03);
    CHECK_INT(b.pictures, a.pictures);
    CHECK_NEAR(a.temperature, b.temperature, 0);
    stk_calibration_free(&a);
    stk_calibration_free(&b);
    stk_metrics_free(&part);
    stk_metrics_free(&all);
}

/* ---- label rules ---- */

/* How labels are chosen when this is the only model. */
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

/* The metric when the rule names the classes of what was kept. */
static double score_with(const stk_metrics *metrics, stk_metric metric, const stk_calibration *c) {
    int predicted[5000];
    size_t tally[2 * MOST_CLASSES];
    for (size_t i = 0; i < metrics->count; i++) {
        double probs[MOST_CLASSES];
        for (int k = 0; k < metrics->outputs; k++) {
            probs[k] = exp(metrics->logits[i * (size_t)metrics->outputs + (size_t)k]);
        }
        predicted[i] = stk_label_choose(&c->rule, probs, metrics->outputs);
    }
    return stk_metrics_of_labels(metric, metrics->outputs, metrics->labels, predicted,
                                 metrics->count, tally);
}

/* Two classes that overlap, the second with a share. The logits are as right as they can be. */
static void add_rare(stk_metrics *metrics, size_t count, double share, uint64_t seed) {
    stk_rng rng = numbers(seed);
    for (size_t i = 0; i < count; i++) {
        int label = stk_rng_uniform(&rng) < share;
        double x = 1.5 * label + stk_rng_normal(&rng);
        double odds = (x * x - (x - 1.5) * (x - 1.5)) / 2 + log(share / (1 - share));
        stk_metrics_add(metrics, (const float[]){0, (float)odds}, label);
    }
}

static void rare_classes_get_weight(void) {
    static const struct {
        stk_metric metric;
        double least, most; /* weight of the rare class */
        double gain;
    } cases[] = {{STK_METRIC_MACRO_F1, 1.2, 10, 0.01},
                 {STK_METRIC_BALANCED_ACC, 4, 10, 0.1}, /* at best the ratio of the classes */
                 {STK_METRIC_MCC, 1.2, 10, 0.01}};
    for (size_t i = 0; i < STK_COUNT(cases); i++) {
        stk_metric metric = cases[i].metric;
        stk_metrics seen = keeping(2, 2000, metric);
        stk_metrics fresh = keeping(2, 4000, metric);
        add_rare(&seen, 2000, 0.1, 1);
        add_rare(&fresh, 4000, 0.1, 2);
        stk_calibration c = fit(&seen, metric);
        CHECK_INT(used(&c, 2), STK_LABEL_WEIGHTS);
        REQUIRE(c.rule.count == 2);
        CHECK_NEAR(c.rule.numbers[0], 1, 0);
        CHECK(c.rule.numbers[1] > cases[i].least && c.rule.numbers[1] < cases[i].most);
        CHECK(c.score > c.plain_score);
        CHECK_NEAR(c.plain_score, stk_metrics_value(&seen, metric), 1e-12);
        CHECK(score_with(&fresh, metric, &c) > stk_metrics_value(&fresh, metric) + cases[i].gain);
        stk_calibration_free(&c);
        stk_metrics_free(&seen);
        stk_metrics_free(&fresh);
    }
}

static void equal_classes_get_none(void) {
    for (uint64_t seed = 0; seed < 5; seed++) {
        stk_metrics metrics = keeping(2, 400, STK_METRIC_MACRO_F1);
        add_rare(&metrics, 400, 0.5, seed);
        stk_calibration c = fit(&metrics, STK_METRIC_MACRO_F1);
        CHECK_INT(used(&c, 2), STK_LABEL_LIKELIEST);
        stk_calibration_free(&c);
        stk_metrics_free(&metrics);
    }
}

/* A third class that never occurs changes nothing for the two others. */
static void absent_class_is_harmless(void) {
    stk_metrics two = keeping(2, 2000, STK_METRIC_MACRO_F1);
    stk_metrics three = keeping(3, 2000, STK_METRIC_MACRO_F1);
    add_rare(&two, 2000, 0.1, 1);
    for (size_t i = 0; i < two.count; i++) {
        const float *row = two.logits + 2 * i;
        stk_metrics_add(&three, (const float[]){row[0], row[1], -30}, two.labels[i]);
    }
    stk_calibration a = fit(&two, STK_METRIC_MACRO_F1);
    stk_calibration b = fit(&three, STK_METRIC_MACRO_F1);
    REQUIRE(a.rule.count == 2 && b.rule.count == 3);
    CHECK_NEAR(a.rule.numbers[1], b.rule.numbers[1], 0);
    CHECK(isfinite(b.rule.numbers[2]));
    CHECK_NEAR(a.score, b.score, 1e-9);
    stk_calibration_free(&a);
    stk_calibration_free(&b);
    stk_metrics_free(&two);
    stk_metrics_free(&three);
}

/* Five grades. The model sees each with some noise, and too high by `shift`. */
static void add_grades(stk_metrics *metrics, size_t count, double shift, uint64_t seed) {
    stk_rng rng = numbers(seed);
    for (size_t i = 0; i < count; i++) {
        int label = (int)stk_rng_below(&rng, 5);
        double seen = label + shift + 0.4 * stk_rng_normal(&rng);
        float logits[5];
        for (int c = 0; c < 5; c++) {
            logits[c] = (float)(-2 * (c - seen) * (c - seen));
        }
        stk_metrics_add(metrics, logits, label);
    }
}

static void shifted_grades_are_cut_elsewhere(void) {
    stk_metrics seen = keeping(5, 1000, STK_METRIC_QWK);
    stk_metrics fresh = keeping(5, 4000, STK_METRIC_QWK);
    add_grades(&seen, 1000, 0.45, 1);
    add_grades(&fresh, 4000, 0.45, 2);
    stk_calibration c = fit(&seen, STK_METRIC_QWK);
    CHECK_INT(used(&c, 5), STK_LABEL_CUTS);
    REQUIRE(c.rule.count == 4);
    for (int i = 0; i < 4; i++) {
        CHECK(i == 0 || c.rule.numbers[i] > c.rule.numbers[i - 1]);
    }
    CHECK_NEAR(c.rule.numbers[1], 1.95, 0.2);
    CHECK(score_with(&fresh, STK_METRIC_QWK, &c) >
          stk_metrics_value(&fresh, STK_METRIC_QWK) + 0.02);
    stk_calibration_free(&c);
    stk_metrics_free(&seen);
    stk_metrics_free(&fresh);
}

/* A scale of very many steps has no cut points. */
static void long_scales_are_not_cut(void) {
    stk_metrics metrics = keeping(100, 50, STK_METRIC_QWK);
    for (int i = 0; i < 50; i++) {
        float logits[100] = {0};
        logits[i] = 3;
        stk_metrics_add(&metrics, logits, i + 1);
    }
    stk_calibration c = fit(&metrics, STK_METRIC_QWK);
    CHECK(c.temperature > 0 && c.rule.numbers == NULL && isnan(c.score));
    stk_calibration_free(&c);
    stk_metrics_free(&metrics);
}

static void good_grades_stay(void) {
    for (uint64_t seed = 0; seed < 5; seed++) {
        stk_metrics metrics = keeping(5, 200, STK_METRIC_QWK);
        add_grades(&metrics, 200, 0, seed);
        stk_calibration c = fit(&metrics, STK_METRIC_QWK);
        CHECK_INT(used(&c, 5), STK_LABEL_LIKELIEST);
        stk_calibration_free(&c);
        stk_metrics_free(&metrics);
    }
}

static void labels_are_chosen_by_rules(void) {
    stk_label_rule none = {0};
    stk_label_rule weights = {STK_LABEL_WEIGHTS, 3, (double[]){1, 1, 4}};
    stk_label_rule cuts = {STK_LABEL_CUTS, 2, (double[]){0.2, 1.9}};
    static const double probs[] = {0.5, 0.3, 0.2};
    CHECK_INT(stk_label_choose(&none, probs, 3), 0);
    CHECK_INT(stk_label_choose(&weights, probs, 3), 2);
    CHECK_INT(stk_label_choose(&cuts, probs, 3), 1);
    CHECK_INT(stk_label_choose(&cuts, (const double[]){1, 0, 0}, 3), 0);
    CHECK_INT(stk_label_choose(&cuts, (const double[]){0, 0, 1}, 3), 2);
    /* Rules for other classes are none. */
    CHECK_INT(stk_label_choose(&weights, (const double[]){0.4, 0.6}, 2), 1);
    CHECK_INT(stk_label_choose(&cuts, (const double[]){0.1, 0.1, 0.1, 0.7}, 4), 3);
}

/* ---- text ---- */

static void text_is_read_as_written(void) {
    stk_error err = {0};
    stk_str text = {0};
    stk_calibration read;
    stk_calibration c = {.temperature = 0.7123,
                         .rule = {STK_LABEL_CUTS, 2, (double[]){0.45, 1.6499}},
                         .pictures = 580,
                         .plain_loss = 0.5,
                         .loss = 0.4,
                         .plain_score = 0.1,
                         .score = 0.2};
    stk_calibration_append(&c, &text);
    REQUIRE_OK(stk_calibration_read(stk_str_text(&text), 3, &read, &err), &err);
    CHECK_NEAR(read.temperature, c.temperature, 0);
    CHECK_INT(read.rule.kind, STK_LABEL_CUTS);
    REQUIRE(read.rule.count == 2);
    CHECK(memcmp(read.rule.numbers, c.rule.numbers, 2 * sizeof(double)) == 0);
    CHECK_INT(read.pictures, 580);
    CHECK_NEAR(read.plain_loss + read.loss + read.plain_score + read.score, 1.2, 1e-12);
    stk_calibration_free(&read);
    REQUIRE_OK(stk_calibration_read(stk_str_text(&text), 4, &read, &err), &err);
    CHECK_NEAR(read.temperature, 0, 0); /* of a model with other classes */
    stk_str_clear(&text);
    stk_calibration_append(&(stk_calibration){0}, &text);
    CHECK_STR(stk_str_text(&text), "");
    stk_str_free(&text);
}

static void damaged_text_is_none(void) {
    static const char *const texts[] = {
        NULL,
        "",
        "0.7",
        "[]",
        "{}",
        "{\"temperature\": 0.7}",
        "{\"temperature\": 0, \"rule\": \"likeliest\", \"numbers\": []}",
        "{\"temperature\": -1, \"rule\": \"likeliest\", \"numbers\": []}",
        "{\"temperature\": 99, \"rule\": \"likeliest\", \"numbers\": []}",
        "{\"temperature\": null, \"rule\": \"likeliest\", \"numbers\": []}",
        "{\"temperature\": \"1\", \"rule\": \"likeliest\", \"numbers\": []}",
        "{\"temperature\": 1, \"rule\": \"likeliest\", \"numbers\": [1]}",
        "{\"temperature\": 1, \"rule\": \"best\", \"numbers\": []}",
        "{\"temperature\": 1, \"rule\": \"weights\", \"numbers\": [1]}",
        "{\"temperature\": 1, \"rule\": \"weights\", \"numbers\": [1, 0]}",
        "{\"temperature\": 1, \"rule\": \"weights\", \"numbers\": [1, 1e999]}",
        "{\"temperature\": 1, \"rule\": \"weights\", \"numbers\": [1, null]}",
        "{\"temperature\": 1, \"rule\": \"cuts\", \"numbers\": {}}",
        "{\"temperature\": 1, \"rule\": \"cuts\", \"numbers\": [\"0.5\"]}",
    };
    for (size_t i = 0; i < STK_COUNT(texts); i++) {
        stk_error err = {0};
        stk_calibration c;
        REQUIRE_OK(stk_calibration_read(texts[i], 2, &c, &err), &err);
        if (c.temperature != 0 || c.rule.numbers != NULL) {
            CHECK_FAIL("text %zu was taken", i);
        }
        stk_calibration_free(&c);
    }
    stk_error err = {0};
    stk_calibration c;
    REQUIRE_OK(stk_calibration_read("{\"temperature\": 1, \"rule\": \"cuts\", \"numbers\": [2, 1]}",
                                    3, &c, &err),
               &err);
    CHECK_NEAR(c.temperature, 0, 0); /* cut points that fall */
}

/* ---- the mean ---- */

static void means_are_taken_over_models(void) {
    stk_error err = {0};
    stk_calibration_mean mean;
    stk_calibration taken;
    stk_calibration half = {.temperature = 0.5, .rule = {STK_LABEL_WEIGHTS, 2, (double[]){1, 4}}};
    stk_calibration two = {.temperature = 2, .rule = {STK_LABEL_WEIGHTS, 2, (double[]){1, 9}}};
    stk_calibration cuts = {.temperature = 1, .rule = {STK_LABEL_CUTS, 1, (double[]){0.3}}};
    REQUIRE_OK(stk_calibration_mean_open(&mean, 2, &err), &err);
    CHECK(isnan(stk_calibration_mean_temperature(&mean)));
    REQUIRE_OK(stk_calibration_mean_take(&mean, &taken, &err), &err);
    CHECK_NEAR(taken.temperature, 0, 0);
    stk_calibration_mean_add(&mean, &half, 1);
    stk_calibration_mean_add(&mean, &two, 1);
    CHECK_NEAR(stk_calibration_mean_temperature(&mean), 1, 0);
    CHECK_NEAR(stk_calibration_mean_rule(&mean)->numbers[1], 6, 0);
    stk_calibration_mean_add(&mean, &cuts, 1); /* of another kind: left out */
    REQUIRE_OK(stk_calibration_mean_take(&mean, &taken, &err), &err);
    CHECK_INT(taken.rule.kind, STK_LABEL_WEIGHTS);
    CHECK_NEAR(taken.rule.numbers[1], 6, 0);
    CHECK_INT(taken.pictures, 0);
    stk_calibration_free(&taken);
    stk_calibration_mean_add(&mean, &(stk_calibration){0}, 1); /* now half of them have none */
    CHECK_INT(stk_calibration_mean_rule(&mean)->kind, STK_LABEL_LIKELIEST);
    stk_calibration_mean_free(&mean);
    REQUIRE_OK(stk_calibration_mean_open(&mean, 2, &err), &err);
    stk_calibration_mean_add(&mean, &half, 3);
    stk_calibration_mean_add(&mean, &(stk_calibration){0}, 1);
    CHECK_NEAR(stk_calibration_mean_temperature(&mean), 0.5946, 0); /* 0.5 to the power of 3/4 */
    stk_calibration_mean_free(&mean);
}

/* Each of four models gains too little to be believed; all of them together do not. */
static void many_small_gains_count(void) {
    stk_error err = {0};
    stk_calibration_mean mean;
    stk_calibration c = {.temperature = 1,
                         .rule = {STK_LABEL_CUTS, 1, (double[]){0.3}},
                         .pictures = 100,
                         .plain_score = 0.5,
                         .score = 0.515};
    REQUIRE_OK(stk_calibration_mean_open(&mean, 2, &err), &err);
    for (int models = 1; models <= 4; models++) {
        stk_calibration_mean_add(&mean, &c, 1);
        CHECK_INT(stk_calibration_mean_rule(&mean)->kind,
                  models < 2 ? STK_LABEL_LIKELIEST : STK_LABEL_CUTS);
    }
    c.score = 0.4; /* and one that loses as much as they gain */
    stk_calibration_mean_add(&mean, &c, 1);
    CHECK_INT(stk_calibration_mean_rule(&mean)->kind, STK_LABEL_LIKELIEST);
    stk_calibration_mean_free(&mean);
}

/* What is enough for 400 pictures is too little for their 100 rows, for epochs and for answers. */
static void gains_are_of_what_was_rated(void) {
    stk_error err = {0};
    stk_calibration c = {.temperature = 1,
                         .rule = {STK_LABEL_CUTS, 1, (double[]){0.3}},
                         .pictures = 400,
                         .plain_score = 0.5,
                         .score = 0.515};
    for (int rows = 0; rows <= 100; rows += 100) {
        stk_calibration_mean mean;
        c.rows = (size_t)rows;
        CHECK(stk_calibration_is_ruled(&c) == (rows == 0));
        REQUIRE_OK(stk_calibration_mean_open(&mean, 2, &err), &err);
        stk_calibration_mean_add(&mean, &c, 1);
        CHECK((stk_calibration_mean_rule(&mean)->kind == STK_LABEL_CUTS) == (rows == 0));
        stk_calibration_mean_free(&mean);
    }
}

/* ---- lack of memory ---- */

/* The parts add up to the whole: a loss exactly, and the metric on the average. */
static void parts_are_those_of_the_whole(void) {
    stk_error err = {0};
    stk_judged_part parts[STK_JUDGED_PARTS];
    const stk_calibrate_config config = {.metric = STK_METRIC_MACRO_F1, .stranger = -1};
    stk_metrics metrics = keeping(4, 1001, STK_METRIC_MACRO_F1);
    stk_calibration c;
    REQUIRE_OK(stk_calibrate_parts(&metrics, &config, &c, parts, &err), &err);
    CHECK_INT(parts[0].count, 0); /* nothing was added */
    add_drawn(&metrics, 1001, 4, 0.5, 77);
    REQUIRE_OK(stk_calibrate_parts(&metrics, &config, &c, parts, &err), &err);
    double loss = 0;
    double score = 0;
    for (size_t p = 0; p < STK_JUDGED_PARTS; p++) {
        CHECK_INT(parts[p].count, p == 0 ? 251 : 250);
        loss += parts[p].loss * (double)parts[p].count / 1001;
        score += parts[p].score / STK_JUDGED_PARTS;
        CHECK_NEAR(parts[p].plain_score, c.plain_score, 0.1);
    }
    CHECK(c.loss < c.plain_loss);
    CHECK_NEAR(loss, c.loss, 1e-12);
    CHECK_NEAR(score, c.score, 0.02);
    stk_calibration_free(&c);
    stk_metrics_free(&metrics);
}

static void calibration_without_memory(void) {
    stk_metrics metrics = keeping(2, 300, STK_METRIC_MACRO_F1);
    add_rare(&metrics, 300, 0.1, 1);
    stk_status status = STK_ERR_MEMORY;
    int64_t n = 0;
    for (; status != STK_OK && n < 100; n++) {
        stk_calibration c;
        const stk_calibrate_config config = {.metric = STK_METRIC_MACRO_F1, .stranger = -1};
        stk_mem_fail_after(n);
        status = stk_calibrate(&metrics, &config, &c, NULL);
        stk_mem_fail_after(-1);
        CHECK(status == STK_OK || status == STK_ERR_MEMORY);
        stk_calibration_free(&c);
    }
    CHECK(n > 5 && n < 100);
    stk_metrics_free(&metrics);
    static const char text[] = "{\"temperature\": 1, \"rule\": \"weights\", \"numbers\": [1, 2]}";
    status = STK_ERR_MEMORY;
    for (n = 0; status != STK_OK && n < 100; n++) {
        stk_calibration c;
        stk_mem_fail_after(n);
        status = stk_calibration_read(text, 2, &c, NULL);
        stk_mem_fail_after(-1);
        CHECK(status == STK_OK ? c.rule.count == 2 : status == STK_ERR_MEMORY);
        stk_calibration_free(&c);
    }
    CHECK(n > 1 && n < 100);
}

static const check_test tests[] = {
    TEST(temperature_is_found_again),
    TEST(right_temperatures_stay),
    TEST(temperature_has_bounds),
    TEST(few_pictures_change_little),
    TEST(numbers_that_are_not_finite_do_not_count),
    TEST(nothing_to_fit_is_none),
    TEST(part_of_many_is_enough),
    TEST(rare_classes_get_weight),
    TEST(equal_classes_get_none),
    TEST(absent_class_is_harmless),
    TEST(shifted_grades_are_cut_elsewhere),
    TEST(long_scales_are_not_cut),
    TEST(good_grades_stay),
    TEST(labels_are_chosen_by_rules),
    TEST(text_is_read_as_written),
    TEST(damaged_text_is_none),
    TEST(means_are_taken_over_models),
    TEST(many_small_gains_count),
    TEST(gains_are_of_what_was_rated),
    TEST(parts_are_those_of_the_whole),
    TEST(calibration_without_memory),
};

CHECK_MAIN(tests)
