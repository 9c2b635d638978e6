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

static void judged_without_memory(void) {
    stk_error err = {0};
    stk_sample_results results;
    stk_mem_fail_after(0);
    CHECK(stk_sample_results_open(&results, 10, STK_TASK_SINGLE, 3, &err) == STK_ERR_MEMORY);
    stk_mem_fail_after(-1);
    stk_sample_results_free(&results);
}

static const check_test tests[] = {
    TEST(judged_class_and_probability),    TEST(judged_ties),           TEST(judged_far_apart),
    TEST(judged_agrees_with_the_accuracy), TEST(judged_without_memory),
};

CHECK_MAIN(tests)
