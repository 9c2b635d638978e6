/* test_metrics_tasks.c - the table of metrics, and figures of tasks with other answers than one
 * class. */
#include "check.h"

#include "base/mem.h"
#include "base/str.h"
#include "metrics/metrics.h"

#define SAMPLES 40

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

/* ---- the table ---- */

static void names_are_those_of_the_option(void) {
    stk_str names = {0};
    for (int m = 0; m <= STK_METRIC_COUNT; m++) {
        const stk_metric_info *info = stk_metric_info_of((stk_metric)m);
        stk_str_appendf(&names, "%s%s", m > 0 ? " " : "", info->name);
        CHECK(info->description != NULL);
        CHECK(m == STK_METRIC_AUTO || info->tasks != 0);
    }
    CHECK_STR(stk_str_text(&names), STK_METRIC_NAMES);
    stk_str_free(&names);
}

static void tasks_are_found_by_name(void) {
    for (int task = STK_TASK_AUTO; task <= STK_TASK_RANKING; task++) {
        CHECK_INT(stk_task_named(stk_task_name((stk_task)task)), task);
    }
    CHECK_INT(stk_task_named(NULL), STK_TASK_AUTO);
    CHECK_INT(stk_task_named("Binary"), STK_TASK_AUTO);
}

static void defaults_rate_their_tasks(void) {
    for (int task = STK_TASK_AUTO; task <= STK_TASK_RANKING; task++) {
        for (int kind = 0; kind < STK_ANSWER_KINDS; kind++) {
            stk_metric metric = stk_metric_default((stk_task)task, (stk_answer_kind)kind);
            CHECK(metric != STK_METRIC_AUTO && stk_metric_rates(metric, (stk_task)task));
        }
        CHECK(stk_metric_rates(STK_METRIC_AUTO, (stk_task)task));
    }
    static const struct {
        stk_task task;
        stk_answer_kind answer;
        stk_metric metric;
    } cases[] = {
        {STK_TASK_AUTO, STK_ANSWER_LABEL, STK_METRIC_ACC1},
        {STK_TASK_SINGLE, STK_ANSWER_LABEL, STK_METRIC_ACC1},
        {STK_TASK_SINGLE, STK_ANSWER_PROBABILITIES, STK_METRIC_LOGLOSS},
        {STK_TASK_BINARY, STK_ANSWER_LABEL, STK_METRIC_ACC1},
        {STK_TASK_BINARY, STK_ANSWER_POSITIVE, STK_METRIC_AUC},
        {STK_TASK_BINARY, STK_ANSWER_PROBABILITIES, STK_METRIC_LOGLOSS},
        {STK_TASK_MULTILABEL, STK_ANSWER_SCORES, STK_METRIC_AUC_MACRO},
        {STK_TASK_MULTILABEL, STK_ANSWER_LIST, STK_METRIC_MICRO_F1},
        {STK_TASK_RANKING, STK_ANSWER_RANKED, STK_METRIC_MAPK},
    };
    for (size_t i = 0; i < STK_COUNT(cases); i++) {
        CHECK_INT(stk_metric_default(cases[i].task, cases[i].answer), cases[i].metric);
    }
}

static void others_are_refused(void) {
    stk_error err = {0};
    CHECK_INT(stk_metric_check(STK_METRIC_RMSE, STK_TASK_SINGLE, &err), STK_ERR_USAGE);
    CHECK(strstr(err.message, "--metric rmse") != NULL);
    CHECK(strstr(err.message, "acc1, acc5, error, logloss") != NULL);
    CHECK(strstr(err.message, "mae") == NULL);
    CHECK_INT(stk_metric_check(STK_METRIC_RMSE, STK_TASK_REGRESSION, NULL), STK_OK);
    CHECK_INT(stk_metric_check(STK_METRIC_AUTO, STK_TASK_SINGLE, NULL), STK_OK);
    CHECK_INT(stk_metric_check(STK_METRIC_ACC1, STK_TASK_REGRESSION, NULL), STK_ERR_USAGE);
    CHECK_INT(stk_metric_check(STK_METRIC_PF1, STK_TASK_MULTILABEL, NULL), STK_ERR_USAGE);
    stk_mem_fail_after(0);
    CHECK_INT(stk_metric_check(STK_METRIC_PF1, STK_TASK_MULTILABEL, NULL), STK_ERR_USAGE);
    stk_mem_fail_after(-1);
}

static void less_is_better_for_losses(void) {
    for (int m = 0; m < STK_METRIC_COUNT; m++) {
        bool loss = m == STK_METRIC_ERROR || m == STK_METRIC_LOGLOSS || m == STK_METRIC_RMSE ||
                    m == STK_METRIC_MAE;
        CHECK_INT(stk_metric_is_loss((stk_metric)m), loss);
    }
    CHECK_STR(stk_metric_column("error"), "error");
    CHECK(stk_metric_column("acc5") == NULL && stk_metric_column("logloss") == NULL);
    CHECK(stk_metric_column(NULL) == NULL && stk_metric_column("<b>") == NULL);
    CHECK(stk_metric_column("auto") == NULL);
    CHECK_INT(stk_metric_named("error"), STK_METRIC_ERROR);
    CHECK_INT(stk_metric_named("<b>"), STK_METRIC_AUTO);
    CHECK_INT(stk_metric_named(NULL), STK_METRIC_AUTO);
}

/* ---- against scikit-learn and formulas: see tests/golden/make_metrics.py ---- */

static float logit_of(int i, int c) {
    return (float)((7 * i + 5 * c * (i % 3) + c * c) % 9) / 2 - 2;
}

static void fill_two(stk_metrics *m) {
    for (int i = 0; i < SAMPLES; i++) {
        stk_metrics_add(m, (float[]){logit_of(i, 0), logit_of(i, 1)}, (3 * i + i / 5) % 6 % 2);
    }
}

static void two_classes(void) {
    stk_metrics m = collector(STK_TASK_BINARY, 2, SAMPLES, STK_METRIC_WEIGHTED_AUC);
    fill_two(&m);
    CHECK_NEAR(stk_metrics_value(&m, STK_METRIC_AUC), 0.576822916667, 1e-11);
    CHECK_NEAR(stk_metrics_value(&m, STK_METRIC_AUC_MACRO), 0.576822916667, 1e-11);
    CHECK_NEAR(stk_metrics_value(&m, STK_METRIC_WEIGHTED_AUC), 0.655121528, 1e-8);
    CHECK_NEAR(stk_metrics_value(&m, STK_METRIC_PF1), 0.495925170969, 1e-7);
    stk_metrics_free(&m);
}

/* Probabilities of 0 and 1 make it the F1 score of the positive class. */
static void decided_probabilities(void) {
    stk_metrics m = collector(STK_TASK_BINARY, 2, SAMPLES, STK_METRIC_PF1);
    for (int i = 0; i < SAMPLES; i++) {
        float logits[] = {logit_of(i, 0), logit_of(i, 1)};
        stk_metrics_add(&m, logits, (3 * i + i / 5) % 6 % 2);
        stk_metrics_decide_probability(&m, logits[1] >= logits[0]);
    }
    CHECK_NEAR(stk_metrics_value(&m, STK_METRIC_PF1), 0.558139534884, 1e-9);
    stk_metrics_reset(&m);
    stk_metrics_add(&m, (float[]){0, 1}, 0); /* no positives */
    CHECK_NEAR(stk_metrics_value(&m, STK_METRIC_PF1), 0, 0);
    stk_metrics_reset(&m);
    stk_metrics_add(&m, (float[]){0, NAN}, 1);
    CHECK(isnan(stk_metrics_value(&m, STK_METRIC_PF1)));
    stk_metrics_free(&m);
}

static void weighted_auc_of_plain_orders(void) {
    stk_scored right[] = {{0, false}, {1, false}, {2, true}, {3, true}};
    stk_scored wrong[] = {{0, true}, {1, true}, {2, false}, {3, false}};
    stk_scored level[] = {{1, true}, {1, false}};
    /* Half of the positives above all negatives: the area below 1/2 of the rates. */
    stk_scored half[] = {{0, true}, {1, false}, {2, true}};
    CHECK_NEAR(stk_metrics_weighted_auc(right, 4), 1, 1e-12);
    CHECK_NEAR(stk_metrics_weighted_auc(wrong, 4), 0, 1e-12);
    /* Along the diagonal: the integral of t and of min(t, 0.4). */
    CHECK_NEAR(stk_metrics_weighted_auc(level, 2), (0.5 + 0.08 + 0.24) / 1.4, 1e-12);
    CHECK_NEAR(stk_metrics_weighted_auc(half, 3), (0.5 + 0.4) / 1.4, 1e-12);
    CHECK(isnan(stk_metrics_weighted_auc(right, 0)));
    CHECK(isnan(stk_metrics_weighted_auc(&right[2], 2)));
}

/* Few positives are counted in another way than many. */
static void both_ways_to_an_auc_agree(void) {
    enum { ROWS = 60 };
    for (size_t positives = 1; positives < ROWS; positives++) {
        stk_scored rows[ROWS];
        double pairs = 0;
        for (size_t i = 0; i < ROWS; i++) {
            rows[i] = (stk_scored){(float)(i * 7 % 11), i < positives};
        }
        for (size_t a = 0; a < positives; a++) {
            for (size_t b = positives; b < ROWS; b++) {
                pairs += rows[a].score > rows[b].score   ? 1
                         : rows[a].score < rows[b].score ? 0
                                                         : 0.5;
            }
        }
        double expected = pairs / ((double)positives * (double)(ROWS - positives));
        CHECK_NEAR(stk_metrics_auc(rows, ROWS), expected, 1e-12);
    }
}

static void fill_labels(stk_metrics *m) {
    for (int i = 0; i < SAMPLES; i++) {
        float logits[4];
        float targets[4];
        for (int c = 0; c < 4; c++) {
            logits[c] = logit_of(i, c);
            targets[c] = (3 * i + 2 * c + i * c * c) % 5 < 2;
        }
        stk_metrics_add_targets(m, logits, targets);
    }
}

static void several_labels(void) {
    stk_metrics m = collector(STK_TASK_MULTILABEL, 4, SAMPLES, STK_METRIC_AUC_MACRO);
    fill_labels(&m);
    CHECK_NEAR(stk_metrics_value(&m, STK_METRIC_LOGLOSS), 0.874464784712, 1e-7);
    CHECK_NEAR(stk_metrics_loss(&m), 0.874464784712, 1e-7);
    CHECK_NEAR(stk_metrics_value(&m, STK_METRIC_MICRO_F1), 0.387596899225, 1e-11);
    CHECK_NEAR(stk_metrics_value(&m, STK_METRIC_MACRO_F1), 0.386117769992, 1e-11);
    CHECK_NEAR(stk_metrics_value(&m, STK_METRIC_SAMPLES_F1), 0.295833333333, 1e-11);
    CHECK_NEAR(stk_metrics_value(&m, STK_METRIC_ACC1), 10, 1e-9);
    CHECK_NEAR(stk_metrics_value(&m, STK_METRIC_ERROR), 100 - 10, 1e-9);
    CHECK_NEAR(stk_metrics_value(&m, STK_METRIC_AUC_MACRO), 0.499348958333, 1e-11);
    CHECK_NEAR(stk_metrics_value(&m, STK_METRIC_AUC), 0.499348958333, 1e-11);
    CHECK(isnan(stk_metrics_value(&m, STK_METRIC_QWK)));
    stk_metrics_free(&m);
}

/* What is not known counts nowhere. */
static void unknown_targets_are_left_out(void) {
    stk_metrics m = collector(STK_TASK_MULTILABEL, 3, 4, STK_METRIC_AUC);
    CHECK_NEAR(stk_metrics_add_targets(&m, (float[]){0, 9, 0}, (float[]){1, NAN, 0}), log(2),
               1e-12);
    CHECK_NEAR(stk_metrics_add_targets(&m, (float[]){-1, 9, 9}, (float[]){0, NAN, NAN}),
               log(1 + exp(-1)), 1e-7);
    CHECK_NEAR(stk_metrics_value(&m, STK_METRIC_AUC), 1, 1e-12); /* of the first column */
    CHECK_NEAR(stk_metrics_value(&m, STK_METRIC_ACC1), 50, 1e-12);
    CHECK_NEAR(stk_metrics_value(&m, STK_METRIC_MICRO_F1), 0, 0); /* 0 is not above 0 */
    CHECK_NEAR(stk_metrics_add_targets(&m, (float[]){1, 1, 1}, (float[]){NAN, NAN, NAN}), 0, 0);
    CHECK(isnan(stk_metrics_add_targets(&m, (float[]){NAN, 1, 1}, (float[]){1, 0, 0})));
    CHECK(isnan(stk_metrics_value(&m, STK_METRIC_LOGLOSS)));
    stk_metrics_free(&m);
}

static void chosen_labels_count(void) {
    stk_metrics m = collector(STK_TASK_MULTILABEL, 2, 4, STK_METRIC_SAMPLES_F1);
    static const bool both[] = {true, true};
    stk_metrics_add_chosen(&m, (float[]){-1, -2}, (float[]){1, 0}, both);
    CHECK_NEAR(stk_metrics_value(&m, STK_METRIC_SAMPLES_F1), 2.0 / 3, 1e-12);
    CHECK_NEAR(stk_metrics_value(&m, STK_METRIC_MACRO_F1), 0.5, 1e-12);
    stk_metrics_reset(&m);
    stk_metrics_add_targets(&m, (float[]){-1, -2}, (float[]){0, 0}); /* nothing, rightly */
    CHECK_NEAR(stk_metrics_value(&m, STK_METRIC_SAMPLES_F1), 0, 0);
    CHECK_NEAR(stk_metrics_value(&m, STK_METRIC_ACC1), 100, 0);
    stk_metrics_free(&m);
}

static void numbers(void) {
    stk_metrics m = collector(STK_TASK_REGRESSION, 4, SAMPLES, STK_METRIC_RMSE);
    for (int i = 0; i < SAMPLES; i++) {
        float outputs[4];
        float targets[4];
        for (int c = 0; c < 4; c++) {
            outputs[c] = logit_of(i, c);
            targets[c] = logit_of(i, (c + 3) % 4);
        }
        stk_metrics_add_targets(&m, outputs, targets);
    }
    CHECK_NEAR(stk_metrics_value(&m, STK_METRIC_RMSE), 1.74299400576, 1e-11);
    CHECK_NEAR(stk_metrics_value(&m, STK_METRIC_MAE), 1.45, 1e-11);
    CHECK_NEAR(stk_metrics_value(&m, STK_METRIC_R2), -0.904098503194, 1e-11);
    CHECK(isnan(stk_metrics_value(&m, STK_METRIC_ACC1)));
    CHECK(isnan(stk_metrics_value(&m, STK_METRIC_LOGLOSS)));
    stk_metrics_free(&m);
}

static void odd_numbers(void) {
    stk_metrics m = collector(STK_TASK_REGRESSION, 1, 8, STK_METRIC_R2);
    CHECK(isnan(stk_metrics_value(&m, STK_METRIC_RMSE)));
    CHECK_NEAR(stk_metrics_add_targets(&m, (float[]){3}, (float[]){NAN}), 0, 0);
    CHECK(isnan(stk_metrics_value(&m, STK_METRIC_RMSE)));
    stk_metrics_add_targets(&m, (float[]){5}, (float[]){5});
    CHECK(isnan(stk_metrics_value(&m, STK_METRIC_R2))); /* one value has no variance */
    stk_metrics_add_targets(&m, (float[]){5}, (float[]){5});
    CHECK_NEAR(stk_metrics_value(&m, STK_METRIC_R2), 1, 0);
    stk_metrics_add_targets(&m, (float[]){6}, (float[]){5});
    CHECK_NEAR(stk_metrics_value(&m, STK_METRIC_R2), 0, 0); /* as scikit-learn says */
    CHECK_NEAR(stk_metrics_value(&m, STK_METRIC_RMSE), sqrt(1.0 / 3), 1e-12);
    stk_metrics_add_targets(&m, (float[]){NAN}, (float[]){5});
    CHECK(isnan(stk_metrics_value(&m, STK_METRIC_RMSE)));
    CHECK(isnan(stk_metrics_value(&m, STK_METRIC_R2)));
    stk_metrics_reset(&m);
    for (int i = 0; i < 4; i++) { /* far from 0 sums of squares would have lost all digits */
        stk_metrics_add_targets(&m, (float[]){1e7F + (float)i}, (float[]){1e7F + (float)(i ^ 1)});
    }
    CHECK_NEAR(stk_metrics_value(&m, STK_METRIC_R2), 1 - 4 / 5.0, 1e-9);
    stk_metrics_free(&m);
}

static void ranked_lists(void) {
    static const float row[] = {6, 5, 4, 3, 2, 1};
    const stk_metrics_config three = {
        .task = STK_TASK_RANKING, .outputs = 6, .capacity = 8, .metric = STK_METRIC_MAPK, .k = 3};
    stk_error err = {0};
    stk_metrics m;
    REQUIRE_OK(stk_metrics_open(&m, &three, &err), &err);
    stk_metrics_add(&m, row, 0);
    stk_metrics_add(&m, row, 2);
    stk_metrics_add(&m, row, 3); /* the fourth of three */
    CHECK_NEAR(stk_metrics_value(&m, STK_METRIC_MAPK), (1 + 1.0 / 3) / 3, 1e-12);
    stk_metrics_decide_place(&m, 2);
    CHECK_NEAR(stk_metrics_value(&m, STK_METRIC_MAPK), (1 + 1.0 / 3 + 0.5) / 3, 1e-12);
    stk_metrics_decide_place(&m, 0);
    CHECK_NEAR(stk_metrics_value(&m, STK_METRIC_MAPK), (1 + 1.0 / 3) / 3, 1e-12);
    stk_metrics_decide_class(&m, 3);
    CHECK_NEAR(stk_metrics_value(&m, STK_METRIC_MICRO_F1), 2.0 / 3, 1e-12);
    CHECK_NEAR(stk_metrics_value(&m, STK_METRIC_ACC1), 100.0 / 3, 1e-12); /* of the outputs */
    stk_metrics_free(&m);
}

/* With very many classes a part of the rows is kept, and macro F1 needs no pass per class. */
static void very_many_classes(void) {
    enum { CLASSES = 65000 };
    stk_metrics m = collector(STK_TASK_SINGLE, CLASSES, 100000, STK_METRIC_AUC);
    CHECK(m.every > 20 && m.every < 30);
    stk_metrics_free(&m);
    m = collector(STK_TASK_SINGLE, CLASSES, 100000, STK_METRIC_MACRO_F1);
    CHECK(m.logits == NULL);
    float *row = stk_mem_new(CLASSES, sizeof *row);
    REQUIRE(row != NULL);
    for (int i = 0; i < 20; i++) {
        row[7 * i] = 9;
        stk_metrics_add(&m, row, 7 * i + i % 2);
        row[7 * i] = 0;
    }
    CHECK_NEAR(stk_metrics_value(&m, STK_METRIC_MACRO_F1), 10.0 / 30, 1e-12);
    CHECK_INT(stk_metrics_kept(&m), 0);
    stk_mem_free(row);
    stk_metrics_free(&m);
}

/* The AUC of every second sample. */
static void kept_samples_are_rated(void) {
    stk_metrics all = collector(STK_TASK_MULTILABEL, 1, 40, STK_METRIC_MICRO_F1);
    stk_metrics some = collector(STK_TASK_MULTILABEL, 1, 20, STK_METRIC_AUC);
    stk_error err = {0};
    REQUIRE_OK(stk_metrics_keep_logits(&all, &err), &err);
    all.every = 2;
    for (int i = 0; i < 40; i++) {
        float output[] = {logit_of(i, 1)};
        float target[] = {(float)(i / 3 % 2)};
        stk_metrics_add_targets(&all, output, target);
        if (i % 2 == 0) {
            stk_metrics_add_targets(&some, output, target);
        }
    }
    CHECK_INT(stk_metrics_kept(&all), 20);
    CHECK_NEAR(stk_metrics_value(&all, STK_METRIC_AUC), stk_metrics_value(&some, STK_METRIC_AUC),
               1e-12);
    stk_metrics_free(&all);
    stk_metrics_free(&some);
}

static const check_test tests[] = {
    TEST(names_are_those_of_the_option),
    TEST(tasks_are_found_by_name),
    TEST(defaults_rate_their_tasks),
    TEST(others_are_refused),
    TEST(less_is_better_for_losses),
    TEST(two_classes),
    TEST(decided_probabilities),
    TEST(weighted_auc_of_plain_orders),
    TEST(both_ways_to_an_auc_agree),
    TEST(several_labels),
    TEST(unknown_targets_are_left_out),
    TEST(chosen_labels_count),
    TEST(numbers),
    TEST(odd_numbers),
    TEST(ranked_lists),
    TEST(very_many_classes),
    TEST(kept_samples_are_rated),
};

CHECK_MAIN(tests)
