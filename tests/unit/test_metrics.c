/* test_metrics.c - accuracy, log loss, F1, AUC and kappa against values worked out by hand. */
#include "check.h"

#include "base/mem.h"
#include "metrics/metrics.h"
#include "metrics/probabilities.h"

static stk_metrics collector(stk_task task, int outputs, size_t capacity, stk_metric metric) {
    const stk_metrics_config config = {
        .task = task, .outputs = outputs, .capacity = capacity, .metric = metric};
    stk_error err = {0};
    stk_metrics metrics;
    if (stk_metrics_open(&metrics, &config, &err) != STK_OK) {
        CHECK_FAIL("%s", err.message);
        exit(1);
    }
    return metrics;
}

static stk_metrics metrics_of(int classes, size_t capacity) {
    return collector(STK_TASK_SINGLE, classes, capacity, STK_METRIC_AUC);
}

static stk_metrics f1_of(int classes, size_t capacity) {
    return collector(STK_TASK_SINGLE, classes, capacity, STK_METRIC_MACRO_F1);
}

/* A row that says `said` clearly. */
static void add_clear(stk_metrics *metrics, int label, int said) {
    float logits[8] = {0};
    logits[said] = 5;
    stk_metrics_add(metrics, logits, label);
}

static void metrics_accuracy(void) {
    static const float row[] = {3, 2, 1, 0, -1, -2};
    stk_metrics metrics = metrics_of(6, 16);
    stk_metrics_add(&metrics, row, 0);
    CHECK_NEAR(stk_metrics_value(&metrics, STK_METRIC_ACC1), 100, 0);
    stk_metrics_add(&metrics, row, 4); /* the fifth */
    stk_metrics_add(&metrics, row, 5); /* the sixth */
    stk_metrics_add(&metrics, row, 1);
    CHECK_NEAR(stk_metrics_value(&metrics, STK_METRIC_ACC1), 25, 1e-12);
    CHECK_NEAR(stk_metrics_value(&metrics, STK_METRIC_ACC5), 75, 1e-12);
    stk_metrics_reset(&metrics);
    CHECK(isnan(stk_metrics_value(&metrics, STK_METRIC_ACC5)));
    static const float level[6] = {0};
    stk_metrics_add(&metrics, level, 0); /* a tie is not knowing */
    CHECK_NEAR(stk_metrics_value(&metrics, STK_METRIC_ACC1), 0, 0);
    CHECK_NEAR(stk_metrics_value(&metrics, STK_METRIC_ACC5), 0, 0);
    stk_metrics_free(&metrics);
}

static void metrics_fewer_classes_than_five(void) {
    stk_metrics metrics = metrics_of(3, 4);
    add_clear(&metrics, 0, 2);
    add_clear(&metrics, 1, 2);
    CHECK_NEAR(stk_metrics_value(&metrics, STK_METRIC_ACC5), 100, 0);
    stk_metrics_free(&metrics);
}

static void metrics_logloss(void) {
    stk_metrics metrics = metrics_of(2, 8);
    static const float quarter[] = {0, 1.0986122886681098f}; /* probabilities 1/4 and 3/4 */
    static const float far[] = {1000, 0};
    stk_metrics_add(&metrics, quarter, 1);
    CHECK_NEAR(stk_metrics_value(&metrics, STK_METRIC_LOGLOSS), log(4.0 / 3), 1e-7);
    stk_metrics_add(&metrics, quarter, 0);
    CHECK_NEAR(stk_metrics_value(&metrics, STK_METRIC_LOGLOSS), (log(4.0 / 3) + log(4)) / 2, 1e-7);
    stk_metrics_reset(&metrics);
    stk_metrics_add(&metrics, far, 1);
    CHECK_NEAR(stk_metrics_loss(&metrics), 1000, 1e-9);
    CHECK_NEAR(stk_metrics_value(&metrics, STK_METRIC_LOGLOSS), -log(1e-15), 1e-9); /* clipped */
    CHECK(stk_metric_is_loss(STK_METRIC_LOGLOSS) && !stk_metric_is_loss(STK_METRIC_AUC));
    stk_metrics_free(&metrics);
}

static void metrics_macro_f1(void) {
    static const int labels[] = {0, 0, 1, 1, 2};
    static const int said[] = {0, 1, 1, 1, 0};
    stk_metrics metrics = f1_of(4, 8); /* class 3 never occurs and does not count */
    for (size_t i = 0; i < 5; i++) {
        add_clear(&metrics, labels[i], said[i]);
    }
    CHECK_NEAR(stk_metrics_value(&metrics, STK_METRIC_MACRO_F1), (0.5 + 0.8 + 0) / 3, 1e-12);
    add_clear(&metrics, 0, 3); /* now it does */
    CHECK_NEAR(stk_metrics_value(&metrics, STK_METRIC_MACRO_F1), (0.4 + 0.8 + 0 + 0) / 4, 1e-12);
    stk_metrics_free(&metrics);
}

static void add_probs(stk_metrics *metrics, int label, double a, double b, double c) {
    const float logits[] = {(float)log(a), (float)log(b), (float)log(c)};
    stk_metrics_add(metrics, logits, label);
}

static void metrics_auc(void) {
    static const int labels[] = {0, 0, 1, 1};
    static const float scores[] = {0.1f, 0.4f, 0.35f, 0.8f};
    stk_metrics metrics = metrics_of(2, 8);
    for (size_t i = 0; i < 4; i++) {
        const float logits[] = {0, scores[i]};
        stk_metrics_add(&metrics, logits, labels[i]);
    }
    CHECK_NEAR(stk_metrics_value(&metrics, STK_METRIC_AUC), 0.75, 1e-12);
    stk_metrics_reset(&metrics);
    for (size_t i = 0; i < 4; i++) { /* all alike: half */
        const float logits[] = {0, 1};
        stk_metrics_add(&metrics, logits, labels[i]);
    }
    CHECK_NEAR(stk_metrics_value(&metrics, STK_METRIC_AUC), 0.5, 1e-12);
    stk_metrics_reset(&metrics);
    for (size_t i = 0; i < 4; i++) { /* a tie between classes: 1 + 1 + 1 + 0.5 of 4 pairs */
        const float logits[] = {0, i == 1 ? 0.35f : scores[i]};
        stk_metrics_add(&metrics, logits, labels[i]);
    }
    CHECK_NEAR(stk_metrics_value(&metrics, STK_METRIC_AUC), 0.875, 1e-12);
    stk_metrics_reset(&metrics);
    add_clear(&metrics, 1, 1);
    CHECK(isnan(stk_metrics_value(&metrics, STK_METRIC_AUC))); /* one class: no pairs */
    stk_metrics_free(&metrics);

    metrics = metrics_of(3, 8);
    add_probs(&metrics, 0, 0.6, 0.3, 0.1);
    add_probs(&metrics, 1, 0.2, 0.5, 0.3);
    add_probs(&metrics, 2, 0.5, 0.1, 0.4);
    add_probs(&metrics, 0, 0.3, 0.4, 0.3);
    CHECK_NEAR(stk_metrics_value(&metrics, STK_METRIC_AUC), (0.75 + 1 + 1) / 3, 1e-12);
    stk_metrics_free(&metrics);
}

static void metrics_kappa(void) {
    stk_metrics metrics = metrics_of(4, 8);
    for (int i = 0; i < 4; i++) {
        add_clear(&metrics, i, i);
    }
    CHECK_NEAR(stk_metrics_value(&metrics, STK_METRIC_QWK), 1, 1e-12);
    stk_metrics_reset(&metrics);
    for (int i = 0; i < 4; i++) {
        add_clear(&metrics, i, 3 - i);
    }
    CHECK_NEAR(stk_metrics_value(&metrics, STK_METRIC_QWK), -1, 1e-12);
    stk_metrics_reset(&metrics);
    static const int labels[] = {0, 0, 1, 2};
    static const int said[] = {0, 1, 1, 1};
    for (int i = 0; i < 4; i++) {
        add_clear(&metrics, labels[i], said[i]);
    }
    CHECK_NEAR(stk_metrics_value(&metrics, STK_METRIC_QWK), 1 - 0.5 / 0.875, 1e-12);
    stk_metrics_reset(&metrics);
    add_clear(&metrics, 2, 2);
    CHECK_NEAR(stk_metrics_value(&metrics, STK_METRIC_QWK), 1, 1e-12);
    stk_metrics_free(&metrics);
}

/* ---- against scikit-learn: see tests/golden/make_metrics.py ---- */

#define SAMPLES 40

static void fill_rows(stk_metrics *metrics, int classes, float tilt) {
    for (int i = 0; i < SAMPLES; i++) {
        float logits[8];
        for (int c = 0; c < classes; c++) {
            logits[c] = (float)((7 * i + 5 * c * (i % 3) + c * c) % 9) / 2 - 2 + tilt * (float)c;
        }
        stk_metrics_add(metrics, logits, (3 * i + i / 5) % 6);
    }
}

static void as_scikit_learn(void) {
    static const struct {
        int classes; /* labels are 0 to 5: the seventh class is never right */
        double logloss, macro_f1, micro_f1, auc, qwk, mapk, acc1, acc5, balanced_acc, mcc;
    } cases[] = {
        {6, 2.36640603138, 0.115295815296, 0.15, 0.504335336285, -0.039741219963, 0.290833333333,
         17.5, 80, 0.12962962963, -0.042372768647},
        {7, 2.5662164157, 0.0916099773243, 0.125, 0.505046911238, -0.044, 0.253333333333, 15, 67.5,
         0.111111111111, -0.0442411532095},
    };
    for (size_t k = 0; k < 2; k++) {
        stk_metrics metrics = metrics_of(cases[k].classes, SAMPLES);
        stk_metrics f1 = f1_of(cases[k].classes, SAMPLES);
        fill_rows(&metrics, cases[k].classes, 0);
        CHECK_NEAR(stk_metrics_value(&metrics, STK_METRIC_LOGLOSS), cases[k].logloss, 1e-9);
        fill_rows(&f1, cases[k].classes, 0);
        CHECK_NEAR(stk_metrics_value(&f1, STK_METRIC_MACRO_F1), cases[k].macro_f1, 1e-11);
        CHECK_NEAR(stk_metrics_value(&f1, STK_METRIC_MICRO_F1), cases[k].micro_f1, 1e-11);
        CHECK_NEAR(stk_metrics_value(&f1, STK_METRIC_BALANCED_ACC), cases[k].balanced_acc, 1e-11);
        CHECK_NEAR(stk_metrics_value(&f1, STK_METRIC_MCC), cases[k].mcc, 1e-11);
        stk_metrics_free(&f1);
        CHECK_NEAR(stk_metrics_value(&metrics, STK_METRIC_AUC), cases[k].auc, 1e-11);
        CHECK_NEAR(stk_metrics_value(&metrics, STK_METRIC_QWK), cases[k].qwk, 1e-11);
        CHECK_NEAR(stk_metrics_value(&metrics, STK_METRIC_MAPK), cases[k].mapk, 1e-11);
        stk_metrics_reset(&metrics);
        fill_rows(&metrics, cases[k].classes, 1e-3f); /* without ties, which we do not count */
        CHECK_NEAR(stk_metrics_value(&metrics, STK_METRIC_ACC1), cases[k].acc1, 1e-9);
        CHECK_NEAR(stk_metrics_value(&metrics, STK_METRIC_ACC5), cases[k].acc5, 1e-9);
        stk_metrics_free(&metrics);
    }
    stk_metrics metrics = metrics_of(2, SAMPLES);
    stk_metrics mcc = collector(STK_TASK_BINARY, 2, SAMPLES, STK_METRIC_MCC);
    for (int i = 0; i < SAMPLES; i++) {
        float logits[2];
        for (int c = 0; c < 2; c++) {
            logits[c] = (float)((7 * i + 5 * c * (i % 3) + c * c) % 9) / 2 - 2;
        }
        stk_metrics_add(&metrics, logits, (3 * i + i / 5) % 6 % 2);
        stk_metrics_add(&mcc, logits, (3 * i + i / 5) % 6 % 2);
    }
    CHECK_NEAR(stk_metrics_value(&metrics, STK_METRIC_AUC), 0.576822916667, 1e-11);
    CHECK(isnan(stk_metrics_value(&metrics, STK_METRIC_MCC))); /* without a tally */
    CHECK_NEAR(stk_metrics_value(&mcc, STK_METRIC_MCC), 0.130744090092, 1e-11);
    stk_metrics_free(&metrics);
    stk_metrics_free(&mcc);
}

/* Classes that no label names do not count in a mean of recalls; without two answers, and without
 * two classes, nothing is correlated. */
static void balanced_accuracy_and_matthews(void) {
    stk_metrics metrics = collector(STK_TASK_SINGLE, 4, 8, STK_METRIC_BALANCED_ACC);
    add_clear(&metrics, 0, 0);
    add_clear(&metrics, 0, 0);
    add_clear(&metrics, 0, 3);
    add_clear(&metrics, 1, 2);
    CHECK_NEAR(stk_metrics_value(&metrics, STK_METRIC_BALANCED_ACC), 1.0 / 3, 1e-12);
    stk_metrics_reset(&metrics);
    for (int i = 0; i < 3; i++) {
        add_clear(&metrics, i, 1);
    }
    CHECK_NEAR(stk_metrics_value(&metrics, STK_METRIC_BALANCED_ACC), 1.0 / 3, 1e-12);
    CHECK_NEAR(stk_metrics_value(&metrics, STK_METRIC_MCC), 0, 0);
    stk_metrics_reset(&metrics);
    add_clear(&metrics, 2, 2);
    CHECK_NEAR(stk_metrics_value(&metrics, STK_METRIC_MCC), 0, 0);
    add_clear(&metrics, 1, 1);
    CHECK_NEAR(stk_metrics_value(&metrics, STK_METRIC_MCC), 1, 1e-12);
    stk_metrics_reset(&metrics);
    add_clear(&metrics, 2, 1);
    add_clear(&metrics, 1, 2);
    CHECK_NEAR(stk_metrics_value(&metrics, STK_METRIC_MCC), -1, 1e-12);
    stk_metrics_free(&metrics);
}

/* A validation set of one class, which scikit-learn has no AUC for either. */
static void metrics_of_one_class(void) {
    stk_metrics metrics = metrics_of(3, 4);
    stk_metrics f1 = f1_of(3, 4);
    for (int i = 0; i < 3; i++) {
        add_clear(&metrics, 1, i == 0 ? 2 : 1);
        add_clear(&f1, 1, i == 0 ? 2 : 1);
    }
    CHECK(isnan(stk_metrics_value(&metrics, STK_METRIC_AUC)));
    CHECK_NEAR(stk_metrics_value(&f1, STK_METRIC_MACRO_F1), 0.4, 1e-12); /* (0.8 + 0) / 2 */
    stk_metrics_free(&f1);
    CHECK_NEAR(stk_metrics_value(&metrics, STK_METRIC_QWK), 0, 1e-12);
    stk_metrics_free(&metrics);
}

static void nothing_and_no_numbers(void) {
    stk_metrics metrics = f1_of(3, 4);
    stk_metrics areas = metrics_of(3, 4);
    for (int m = 0; m < STK_METRIC_COUNT; m++) {
        CHECK(isnan(stk_metrics_value(&metrics, (stk_metric)m)));
    }
    CHECK(isnan(stk_metrics_loss(&metrics)));
    static const float broken[] = {NAN, NAN, NAN};
    static const float partly[] = {0, NAN, 1};
    for (int i = 0; i < 3; i++) {
        stk_metrics_add(&metrics, i < 2 ? broken : partly, i);
        stk_metrics_add(&areas, i < 2 ? broken : partly, i);
    }
    CHECK_NEAR(stk_metrics_value(&metrics, STK_METRIC_ACC1), 0, 0);
    CHECK_NEAR(stk_metrics_value(&metrics, STK_METRIC_ERROR), 100, 0);
    CHECK(isnan(stk_metrics_value(&metrics, STK_METRIC_LOGLOSS)));
    CHECK(isnan(stk_metrics_loss(&metrics)));
    CHECK(isnan(stk_metrics_value(&areas, STK_METRIC_AUC)));
    CHECK(isfinite(stk_metrics_value(&metrics, STK_METRIC_MACRO_F1)));
    CHECK(isfinite(stk_metrics_value(&metrics, STK_METRIC_QWK)));
    CHECK(isnan(stk_metrics_value(&metrics, STK_METRIC_RMSE))); /* rates no classes */
    stk_metrics_free(&metrics);
    stk_metrics_free(&areas);
}

static void metrics_without_memory(void) {
    static const stk_metrics_config cases[] = {
        {.task = STK_TASK_SINGLE, .outputs = 3, .capacity = 10, .metric = STK_METRIC_AUC},
        {.task = STK_TASK_SINGLE, .outputs = 3, .capacity = 10, .metric = STK_METRIC_MACRO_F1},
        {.task = STK_TASK_MULTILABEL, .outputs = 3, .capacity = 10, .metric = STK_METRIC_AUC},
        {.task = STK_TASK_REGRESSION, .outputs = 3, .capacity = 10, .metric = STK_METRIC_RMSE},
    };
    for (size_t k = 0; k < STK_COUNT(cases); k++) {
        stk_status status = STK_ERR_MEMORY;
        int64_t n = 0;
        for (; status != STK_OK && n < 20; n++) {
            stk_error err = {0};
            stk_metrics metrics;
            stk_mem_fail_after(n);
            status = stk_metrics_open(&metrics, &cases[k], &err);
            stk_mem_fail_after(-1);
            CHECK(status == STK_OK || status == STK_ERR_MEMORY);
            stk_metrics_free(&metrics); /* harmless after a failure */
        }
        CHECK(n > 1 && n < 20);
    }
}

static void softmax(void) {
    static const float logits[] = {1000, 1000, -1000, 1000};
    double probs[4];
    stk_softmax(logits, 4, 1, probs);
    CHECK_NEAR(probs[0], 1.0 / 3, 1e-12);
    CHECK_NEAR(probs[2], 0, 1e-12);
    CHECK_NEAR(probs[0] + probs[1] + probs[2] + probs[3], 1, 1e-12);
    stk_softmax((const float[]){2, 0}, 2, 2, probs);
    CHECK_NEAR(probs[0], exp(1) / (exp(1) + 1), 1e-12);
}

static const check_test tests[] = {
    TEST(metrics_accuracy),
    TEST(metrics_fewer_classes_than_five),
    TEST(metrics_logloss),
    TEST(metrics_macro_f1),
    TEST(metrics_auc),
    TEST(balanced_accuracy_and_matthews),
    TEST(metrics_kappa),
    TEST(as_scikit_learn),
    TEST(metrics_of_one_class),
    TEST(nothing_and_no_numbers),
    TEST(metrics_without_memory),
    TEST(softmax),
};

CHECK_MAIN(tests)
