/* test_sample_results.c - what a validation predicted for each sample, against values worked out by
 * hand. */
#include "check.h"

#include "base/mem.h"
#include "train/sample_results.h"
#include "metrics/metrics.h"

static stk_sample_results results_of(size_t capacity) {
    stk_error err = {0};
    stk_sample_results results;
    if (stk_sample_results_open(&results, capacity, STK_TASK_SINGLE, 3, &err) != STK_OK) {
        CHECK_FAIL("%s", err.message);
        exit(1);
    }
    return results;
}

static void judged_class_and_probability(void) {
    static const float row[] = {1, 3, 2};
    stk_sample_results results = results_of(4);
    double sum = exp(1) + exp(2) + exp(3);
    stk_sample_results_add(&results, 7, row, 3, 1, log(sum) - 3);
    stk_sample_results_add(&results, 5, row, 3, 0, log(sum) - 1);
    CHECK(results.count == 2);
    CHECK(results.items[0].sample == 7 && results.items[0].predicted == 1);
    CHECK_NEAR(results.items[0].probability, exp(3) / sum, 1e-6);
    CHECK(results.items[1].sample == 5 && results.items[1].predicted == 1);
    CHECK_NEAR(results.items[1].probability, exp(1) / sum, 1e-6);
    stk_sample_results_sort(&results);
    CHECK(results.items[0].sample == 5 && results.items[1].sample == 7);
    stk_sample_results_reset(&results);
    CHECK(results.count == 0);
    stk_sample_results_sort(&results);
    stk_sample_results_free(&results);
    CHECK(results.items == NULL);
}

/* As the accuracy counts it: whoever names two classes has not named the right one. */
static void judged_ties(void) {
    static const float level[4] = {0};
    static const float two[4] = {1, 2, 2, 0};
    stk_sample_results results = results_of(8);
    for (int label = 0; label < 4; label++) {
        stk_sample_results_add(&results, 0, level, 4, label, log(4));
        CHECK(results.items[label].predicted == (label == 0 ? 1 : 0));
        CHECK_NEAR(results.items[label].probability, 0.25, 1e-7);
    }
    for (int label = 0; label < 4; label++) {
        stk_sample_results_add(&results, 0, two, 4, label, 1);
        CHECK(results.items[4 + label].predicted == (label == 1 ? 2 : 1));
    }
    stk_sample_results_free(&results);
}

static void judged_far_apart(void) {
    static const float far[3] = {-2000, 2000, 0};
    stk_sample_results results = results_of(3);
    stk_sample_results_add(&results, 0, far, 3, 0, 4000);
    stk_sample_results_add(&results, 1, far, 3, 1, -1e-16);
    CHECK(results.items[0].predicted == 1);
    CHECK_NEAR(results.items[0].probability, 0, 0);
    CHECK(results.items[1].predicted == 1);
    CHECK_NEAR(results.items[1].probability, 1, 0);
    stk_sample_results_add(&results, 2, far, 3, 1, NAN);
    CHECK_NEAR(results.items[2].probability, 0, 0);
    stk_sample_results_free(&results);
}

/* With few different values, so that many rows have ties. */
static void judged_agrees_with_the_accuracy(void) {
    enum { CLASSES = 7, ROWS = 500 };
    stk_error err = {0};
    stk_metrics metrics;
    stk_sample_results results = results_of(ROWS);
    unsigned state = 1;
    int labels[ROWS];
    size_t right = 0;
    const stk_metrics_config config = {
        .outputs = CLASSES, .capacity = ROWS, .metric = STK_METRIC_ACC1};
    REQUIRE(stk_metrics_open(&metrics, &config, &err) == STK_OK);
    for (size_t i = 0; i < ROWS; i++) {
        float row[CLASSES];
        for (int c = 0; c < CLASSES; c++) {
            state = state * 1664525 + 1013904223;
            row[c] = (float)(state >> 16 & 3);
        }
        labels[i] = (int)(i % CLASSES);
        double loss = stk_metrics_add(&metrics, row, labels[i]);
        stk_sample_results_add(&results, i, row, CLASSES, labels[i], loss);
        double sum = 0;
        for (int c = 0; c < CLASSES; c++) {
            sum += exp((double)row[c] - row[labels[i]]);
        }
        CHECK_NEAR(results.items[i].probability, 1 / sum, 1e-6);
    }
    for (size_t i = 0; i < ROWS; i++) {
        right += results.items[i].predicted == labels[i];
    }
    CHECK(right > 0 && right < ROWS);
    CHECK_NEAR(stk_metrics_value(&metrics, STK_METRIC_ACC1), 100.0 * (double)right / ROWS, 1e-9);
    stk_metrics_free(&metrics);
    stk_sample_results_free(&results);
}

static void judged_labels(void) {
    stk_error err = {0};
    stk_sample_results results;
    static const float logits[] = {2, -1, 1, -3};
    static const float targets[] = {1, 1, 0, 0};
    static const float quiet[] = {-1, -1, -1, -1};
    static const float nothing[] = {0, NAN, 0, 0};
    REQUIRE_OK(stk_sample_results_open(&results, 2, STK_TASK_MULTILABEL, 4, &err), &err);
    stk_sample_results_add_labels(&results, 3, logits, targets, 4);
    stk_sample_results_add_labels(&results, 1, quiet, nothing, 4);
    stk_sample_results_sort(&results);
    CHECK(results.items[0].sample == 1 && results.items[0].predicted == 0);
    CHECK_NEAR(results.items[0].probability, 1 / (1 + exp(-1)), 1e-6); /* of what is absent */
    const stk_sample_result *one = &results.items[1];
    const int *labels = stk_sample_results_labels(&results, one);
    CHECK(one->predicted == 2 && labels[0] == 0 && labels[1] == 2);
    /* The last label is neither true nor predicted. */
    double right = 1 / (1 + exp(-2)) + 1 / (1 + exp(1)) + 1 / (1 + exp(1));
    CHECK_NEAR(one->probability, right / 3, 1e-6);
    stk_sample_results_free(&results);
}

/* Of very many labels the likeliest are stored, in their order. */
static void judged_very_many_labels(void) {
    enum { LABELS = 3 * STK_RESULT_MOST_LABELS };
    stk_error err = {0};
    stk_sample_results results;
    float logits[LABELS];
    float targets[LABELS] = {0};
    for (int l = 0; l < LABELS; l++) {
        logits[l] = l % 3 == 1 ? 5 : 1 + 1.0F / (float)(l + 1);
    }
    REQUIRE_OK(stk_sample_results_open(&results, 1, STK_TASK_MULTILABEL, LABELS, &err), &err);
    stk_sample_results_add_labels(&results, 0, logits, targets, LABELS);
    const int *labels = stk_sample_results_labels(&results, &results.items[0]);
    CHECK_INT(results.items[0].predicted, STK_RESULT_MOST_LABELS);
    for (int i = 0; i < STK_RESULT_MOST_LABELS; i++) {
        CHECK_INT(labels[i], 3 * i + 1);
    }
    stk_sample_results_free(&results);
}

static void judged_numbers(void) {
    stk_error err = {0};
    stk_sample_results results;
    REQUIRE_OK(stk_sample_results_open(&results, 2, STK_TASK_REGRESSION, 2, &err), &err);
    stk_sample_results_add_numbers(&results, 1, (const float[]){1, 2});
    stk_sample_results_add_numbers(&results, 0, (const float[]){3, 4});
    stk_sample_results_sort(&results);
    CHECK_NEAR(stk_sample_results_numbers(&results, &results.items[0])[1], 4, 0);
    CHECK_NEAR(stk_sample_results_numbers(&results, &results.items[1])[0], 1, 0);
    CHECK(isnan(results.items[0].probability));
    stk_sample_results_free(&results);
}

static void judged_without_memory(void) {
    stk_error err = {0};
    stk_sample_results results;
    stk_mem_fail_after(0);
    CHECK(stk_sample_results_open(&results, 10, STK_TASK_SINGLE, 3, &err) == STK_ERR_MEMORY);
    stk_mem_fail_after(1);
    CHECK(stk_sample_results_open(&results, 10, STK_TASK_MULTILABEL, 3, &err) == STK_ERR_MEMORY);
    stk_mem_fail_after(1);
    CHECK(stk_sample_results_open(&results, 10, STK_TASK_REGRESSION, 3, &err) == STK_ERR_MEMORY);
    stk_mem_fail_after(-1);
    stk_sample_results_free(&results);
}

static const check_test tests[] = {
    TEST(judged_class_and_probability),
    TEST(judged_ties),
    TEST(judged_far_apart),
    TEST(judged_agrees_with_the_accuracy),
    TEST(judged_labels),
    TEST(judged_very_many_labels),
    TEST(judged_numbers),
    TEST(judged_without_memory),
};

CHECK_MAIN(tests)
