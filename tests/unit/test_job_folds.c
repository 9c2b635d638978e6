/* test_job_folds.c - the prior that a fold has to beat, and the score of what is out of fold. */
#include "check.h"
#include "full_rows.h"

#include <math.h>
#include <stdio.h>

#include "base/error.h"
#include "base/files/file.h"
#include "base/mem.h"
#include "job/saved/oof.h"
#include "job/training/folds.h"

#define N 16

static stk_sample samples[N];
static size_t train[N];
static size_t val[N];

/* Training labels, then validation labels, as digits. */
static stk_dataset make(const char *learnt, const char *judged, stk_split *split) {
    stk_dataset d = {.root = "made", .class_count = 3, .train = {.items = samples}};
    *split = (stk_split){.train = train, .val = val};
    for (const char *p = learnt; *p != '\0'; p++) {
        train[split->train_count++] = d.train.count;
        samples[d.train.count++] = (stk_sample){.path = "p", .id = "i", .label = *p - '0'};
    }
    for (const char *p = judged; *p != '\0'; p++) {
        val[split->val_count++] = d.train.count;
        samples[d.train.count++] = (stk_sample){.path = "p", .id = "i", .label = *p - '0'};
    }
    return d;
}

static const stk_loss softmax = {.kind = STK_LOSS_SOFTMAX};

static void priors_are_scored(void) {
    stk_split split;
    stk_prior_score score;
    stk_error err = {0};
    stk_dataset d = make("01110", "1102", &split);
    REQUIRE_OK(stk_prior_score_make(&d, &softmax, STK_METRIC_MACRO_F1, &split, d.train.items,
                                    &score, &err),
               &err);
    CHECK_NEAR(score.acc1, 50, 1e-12);
    CHECK_NEAR(score.train_acc1, 60, 1e-12);
    CHECK_INT(score.val_count, 4);
    /* Counted once more than they are: 3, 4 and 1 of 8; a class that was not there costs no end. */
    CHECK_NEAR(score.loss, -(2 * log(4.0 / 8) + log(3.0 / 8) + log(1.0 / 8)) / 4, 1e-12);
    /* Always class 1: two of four are right, F1 is 2/3 there, and 0 for the two others. */
    CHECK_NEAR(score.metric, 2.0 / 9, 1e-6);
    static const stk_sample given[] = {{.path = "v", .id = "v", .label = 0}};
    split.val = NULL; /* a validation set of its own */
    split.val_count = 1;
    REQUIRE_OK(stk_prior_score_make(&d, &softmax, STK_METRIC_MACRO_F1, &split, given, &score, &err),
               &err);
    CHECK_NEAR(score.acc1, 0, 1e-12);
    CHECK_NEAR(score.loss, -log(3.0 / 8), 1e-12);
    stk_mem_fail_after(0);
    CHECK_INT(stk_prior_score_make(&d, &softmax, STK_METRIC_MACRO_F1, &split, d.train.items, &score,
                                   NULL),
              STK_ERR_MEMORY);
    stk_mem_fail_after(-1);
    REQUIRE_OK(
        stk_prior_score_make(&d, &softmax, STK_METRIC_ERROR, &split, d.train.items, &score, &err),
        &err);
    CHECK(isnan(score.metric)); /* as good as the accuracy */
}

/* The metric is of rows, loss and accuracy are of pictures; a row of two answers has none. */
static void priors_of_rows_are_scored(void) {
    static const int64_t rows[] = {1, 1, 1, 2, 3, 3, 0};
    stk_split split;
    stk_prior_score score;
    stk_error err = {0};
    stk_dataset d = make("01110", "1110120", &split);
    for (size_t i = 0; i < split.val_count; i++) {
        samples[split.val[i]].row = rows[i];
    }
    for (int by_rows = 0; by_rows < 2; by_rows++) {
        d.train_has_rows = by_rows == 1;
        REQUIRE_OK(
            stk_prior_score_make(&d, &softmax, STK_METRIC_MICRO_F1, &split, samples, &score, &err),
            &err);
        CHECK_NEAR(score.acc1, 400.0 / 7, 1e-9);
        CHECK_INT(score.val_count, 7);
        CHECK_INT(score.scored, by_rows == 1 ? 3 : 7);
        CHECK_NEAR(score.metric, by_rows == 1 ? 1.0 / 3 : 4.0 / 7, 1e-9);
    }
}

/* Counts say what a collector says of the same shares everywhere. */
static void priors_score_as_a_collector_says(void) {
    static const struct {
        int classes;
        const char *learnt, *judged;
    } cases[] = {{3, "01110", "1102"}, {3, "0011", "2201"}, {3, "02", "11"},
                 {2, "0001", "0110"},  {2, "0001", "000"},  {2, "11", "111"},
                 {8, "0122", "34567"}, {8, "7", "01234567"}};
    for (size_t i = 0; i < STK_COUNT(cases); i++) {
        for (int m = 0; m < STK_METRIC_COUNT; m++) {
            stk_metric metric = (stk_metric)m;
            stk_metrics rated;
            stk_split split;
            stk_prior_score score;
            stk_error err = {0};
            stk_dataset d = make(cases[i].learnt, cases[i].judged, &split);
            d.class_count = cases[i].classes;
            d.task = d.class_count == 2 ? STK_TASK_BINARY : STK_TASK_SINGLE;
            d.answer.most = i % 2 == 0 ? 0 : 2;
            const stk_metrics_config config = {.task = d.task,
                                               .outputs = d.class_count,
                                               .capacity = N,
                                               .metric = metric,
                                               .k = d.answer.most};
            float shares[N] = {0};
            REQUIRE_OK(stk_metrics_open(&rated, &config, &err), &err);
            for (int c = 0; c < d.class_count; c++) {
                size_t count = 1;
                for (size_t t = 0; t < split.train_count; t++) {
                    count += samples[split.train[t]].label == c;
                }
                shares[c] = logf((float)count);
            }
            for (size_t v = 0; v < split.val_count; v++) {
                (void)stk_metrics_add(&rated, shares, samples[split.val[v]].label);
            }
            const stk_metric_info *info = stk_metric_info_of(metric);
            double expected =
                info->is_loss || info->percent ? NAN : stk_metrics_value(&rated, metric);
            REQUIRE_OK(stk_prior_score_make(&d, &softmax, metric, &split, samples, &score, &err),
                       &err);
            if (isnan(expected) != isnan(score.metric) || fabs(expected - score.metric) > 1e-6) {
                CHECK_FAIL("case %zu, %s: %g, expected %g", i, info->name, score.metric, expected);
            }
            stk_metrics_free(&rated);
        }
    }
}

/* The mean of 0, 1 and 5 is 2, their deviation the root of 14/3; 0 and 5 validate. */
static void means_are_scored_by_the_loss(void) {
    static const struct {
        stk_loss loss;
        bool shares;
        double score;
    } cases[] = {
        {{.kind = STK_LOSS_SQUARED}, false, (4 + 9) / (14.0 / 3) / 2 / 2},
        {{.kind = STK_LOSS_ABSOLUTE}, false, (2 + 3) / 2.160246899469287 / 2},
        {{.kind = STK_LOSS_SIGMOID}, true, (0.5108256237659907 + 0.916290731874155) / 2},
    };
    stk_split split;
    stk_error err = {0};
    stk_dataset d = make("000", "00", &split);
    d.task = STK_TASK_REGRESSION;
    REQUIRE_OK(stk_targets_open_numbers(&d.targets, 1, 3, &err), &err);
    d.targets.numbers[1] = 1;
    d.targets.numbers[2] = 5;
    d.targets.numbers[0] = 0;
    REQUIRE_OK(stk_targets_finish(&d.targets, &err), &err);
    samples[3].record = 0;
    samples[4].record = 2;
    for (size_t i = 0; i < STK_COUNT(cases); i++) {
        stk_prior_score score;
        d.targets.shares = cases[i].shares;
        REQUIRE_OK(stk_prior_score_make(&d, &cases[i].loss, STK_METRIC_RMSE, &split, d.train.items,
                                        &score, &err),
                   &err);
        CHECK_NEAR(score.loss, cases[i].score, 1e-6);
    }
    stk_targets_free(&d.targets);
}

static void who_beats_the_prior(void) {
    static const struct {
        stk_metric metric;
        double loss, acc1;
        bool beats;
    } cases[] = {
        {STK_METRIC_ACC1, 0.9, 60, true},     {STK_METRIC_ACC1, 0.9, 40, true},
        {STK_METRIC_ACC1, 1.5, 60, true},     {STK_METRIC_ACC1, 1.5, 50, false},
        {STK_METRIC_ACC1, 1.0, 50, false},    {STK_METRIC_LOGLOSS, 1.5, 60, false},
        {STK_METRIC_LOGLOSS, 0.9, 40, true},  {STK_METRIC_QWK, 1.5, 51, true},
        {STK_METRIC_ACC1, NAN, 50, false},    {STK_METRIC_ACC1, NAN, 60, true},
        {STK_METRIC_LOGLOSS, NAN, 60, false},
    };
    stk_prior_score prior = {
        .loss = 1, .acc1 = 50, .train_acc1 = 50, .val_count = 30, .metric = NAN};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        stk_model_score model = {cases[i].loss, cases[i].acc1, 90, NAN, 0};
        if (stk_prior_is_beaten(&prior, cases[i].metric, &model) != cases[i].beats) {
            CHECK_FAIL("case %zu", i);
        }
    }
    /* Of six validation pictures as many right, or fewer, tells nothing: training counts, too. */
    prior.val_count = 6;
    CHECK(stk_prior_is_beaten(&prior, STK_METRIC_ACC1, &(stk_model_score){1.5, 50, 90, NAN, 0}));
    CHECK(stk_prior_is_beaten(&prior, STK_METRIC_ACC1, &(stk_model_score){1.5, 33, 90, NAN, 0}));
    CHECK(!stk_prior_is_beaten(&prior, STK_METRIC_ACC1, &(stk_model_score){1.5, 50, 50, NAN, 0}));
    CHECK(!stk_prior_is_beaten(&prior, STK_METRIC_ACC1, &(stk_model_score){1.5, 0, 60, NAN, 0}));
    CHECK(
        !stk_prior_is_beaten(&prior, STK_METRIC_LOGLOSS, &(stk_model_score){1.5, 50, 90, NAN, 0}));
    /* They speak for a model, never against it; nor do they where they are not known. */
    CHECK(stk_prior_is_beaten(&prior, STK_METRIC_ACC1, &(stk_model_score){1.5, 67, 20, NAN, 0}));
    CHECK(stk_prior_is_beaten(&prior, STK_METRIC_ACC1, &(stk_model_score){1.5, 67, 0, NAN, 0}));
    CHECK(!stk_prior_is_beaten(&prior, STK_METRIC_ACC1, &(stk_model_score){1.5, 50, 0, NAN, 0}));
}

/* With 100 pictures the standard error is 0.05. */
static void a_metric_that_is_plainly_better_is_enough(void) {
    const stk_prior_score prior = {
        .loss = 1, .acc1 = 50, .train_acc1 = 50, .val_count = 100, .metric = 0.1, .scored = 100};
    const stk_prior_score unknown = {
        .loss = 1, .acc1 = 50, .train_acc1 = 50, .val_count = 100, .metric = NAN, .scored = 100};
    CHECK(stk_prior_is_beaten(&prior, STK_METRIC_MACRO_F1, &(stk_model_score){9, 40, 0, 0.16, 0}));
    CHECK(!stk_prior_is_beaten(&prior, STK_METRIC_MACRO_F1, &(stk_model_score){9, 40, 0, 0.14, 0}));
    CHECK(!stk_prior_is_beaten(&prior, STK_METRIC_MACRO_F1, &(stk_model_score){9, 40, 0, NAN, 0}));
    CHECK(
        !stk_prior_is_beaten(&unknown, STK_METRIC_MACRO_F1, &(stk_model_score){9, 40, 0, 0.9, 0}));
    /* 25 rows have twice that error. */
    CHECK(
        !stk_prior_is_beaten(&prior, STK_METRIC_MACRO_F1, &(stk_model_score){9, 40, 0, 0.16, 25}));
    CHECK(stk_prior_is_beaten(&prior, STK_METRIC_MACRO_F1, &(stk_model_score){9, 40, 0, 0.21, 25}));
}

/* stk_oof_add() from an array. */
static void add_fold(stk_oof *oof, int fold, const size_t *indices, size_t count,
                     const double *probs, const bool *have) {
    const stk_predictions rows = full_rows(probs, count, (size_t)oof->dataset->class_count);
    stk_oof_add(oof, fold, indices, count, &rows, have);
}

static void what_is_out_of_fold_is_scored(void) {
    static const stk_label_rule likeliest = {STK_LABEL_LIKELIEST, 0, NULL};
    stk_split split;
    stk_error err = {0};
    stk_dataset d = make("012", "01", &split);
    stk_oof oof = {0};
    size_t rows = 1;
    REQUIRE_OK(stk_oof_open(&oof, &d, &err), &err);
    REQUIRE_OK(stk_oof_score(&oof, STK_METRIC_LOGLOSS, &likeliest, STK_POOL_MEAN, &rows, &err),
               &err);
    CHECK(rows == 0 && isnan(oof.acc1));
    static const double probs[] = {0.5, 0.25, 0.25, 0, 1, 0};
    static const bool both[] = {true, true};
    add_fold(&oof, 0, (const size_t[]){3, 4}, 2, probs, both);
    add_fold(&oof, 1, (const size_t[]){0, 2}, 2, probs, (const bool[]){false, true});
    REQUIRE_OK(stk_oof_score(&oof, STK_METRIC_LOGLOSS, &likeliest, STK_POOL_MEAN, &rows, &err),
               &err);
    CHECK_INT(rows, 3);
    CHECK_NEAR(oof.acc1, 200.0 / 3, 1e-9);
    /* A class that was ruled out costs much, not infinitely much. */
    CHECK_NEAR(oof.metric, (log(2) + 15 * log(10)) / 3, 1e-4);
    /* Labels 0, 1 and 2 of three rows; the rule names the last class for the first row. */
    stk_label_rule last = {STK_LABEL_WEIGHTS, 3, (double[]){1, 1, 4}};
    REQUIRE_OK(stk_oof_score(&oof, STK_METRIC_MACRO_F1, &likeliest, STK_POOL_MEAN, &rows, &err),
               &err);
    double plain = oof.metric;
    REQUIRE_OK(stk_oof_score(&oof, STK_METRIC_MACRO_F1, &last, STK_POOL_MEAN, &rows, &err), &err);
    CHECK(oof.metric != plain);
    CHECK_NEAR(oof.acc1, 200.0 / 3, 1e-9);
    stk_mem_fail_after(0);
    CHECK_INT(stk_oof_score(&oof, STK_METRIC_LOGLOSS, &likeliest, STK_POOL_MEAN, &rows, NULL),
              STK_ERR_MEMORY);
    stk_mem_fail_after(-1);
    stk_oof_free(&oof);
}

/* Sets of labels are scored as they will be named, with the rule and with labels that stand alone.
 */
static void labels_out_of_fold_are_scored(void) {
    static const double probs[] = {0.9, 0.4, 0.1, 0.2, 0.3, 0.8};
    stk_error err = {0};
    stk_oof oof = {0};
    size_t rows = 0;
    stk_dataset d = {.task = STK_TASK_MULTILABEL,
                     .answer = {.kind = STK_ANSWER_LIST, .divider = ' '},
                     .classes = (const char *const[]){"a", "b", "c"},
                     .class_count = 3,
                     .train = {.items = samples, .count = 2}};
    samples[0] = (stk_sample){.path = "p", .id = "x", .record = 0};
    samples[1] = (stk_sample){.path = "p", .id = "y", .record = 1};
    REQUIRE_OK(stk_targets_open_labels(&d.targets, 3, 2, &err), &err);
    REQUIRE_OK(stk_targets_add_label(&d.targets, 0, &err), &err);
    REQUIRE_OK(stk_targets_add_label(&d.targets, 1, &err), &err);
    stk_targets_end_record(&d.targets);
    REQUIRE_OK(stk_targets_add_label(&d.targets, 2, &err), &err);
    stk_targets_end_record(&d.targets);
    REQUIRE_OK(stk_oof_open(&oof, &d, &err), &err);
    add_fold(&oof, 1, (const size_t[]){0, 1}, 2, probs, (const bool[]){true, true});
    static const stk_label_rule plain = {STK_LABEL_LIKELIEST, 0, NULL};
    REQUIRE_OK(stk_oof_score(&oof, STK_METRIC_MICRO_F1, &plain, STK_POOL_MEAN, &rows, &err), &err);
    CHECK_NEAR(oof.acc1, 50, 1e-9); /* the first row lacks a label */
    CHECK_NEAR(oof.metric, 0.8, 1e-9);
    stk_label_rule lower = {STK_LABEL_THRESHOLDS, 4, (double[]){0, 0.3, 0.3, 0.3}};
    d.targets.exclusive[2] = true; /* so that the second row has this label alone */
    REQUIRE_OK(stk_oof_score(&oof, STK_METRIC_MICRO_F1, &lower, STK_POOL_MEAN, &rows, &err), &err);
    CHECK_NEAR(oof.acc1, 100, 1e-9);
    CHECK_NEAR(oof.metric, 1, 1e-9);
    char path[400];
    snprintf(path, sizeof path, "%s/oof.csv", check_folder());
    stk_halt never = {0};
    char *text = NULL;
    size_t size = 0;
    REQUIRE_OK(stk_oof_write(&oof, path, never, &err), &err);
    REQUIRE_OK(stk_file_read(path, 0, &text, &size, &err), &err);
    CHECK_STR(text, "id,label,fold,a,b,c\nx,a b,1,0.9,0.4,0.1\ny,c,1,0.2,0.3,0.8\n");
    stk_mem_free(text);
    stk_oof_free(&oof);
    stk_targets_free(&d.targets);
}

static void numbers_out_of_fold_are_scored(void) {
    stk_error err = {0};
    stk_oof oof = {0};
    size_t rows = 0;
    stk_dataset d = {.task = STK_TASK_REGRESSION,
                     .classes = (const char *const[]){"age"},
                     .class_count = 1,
                     .train = {.items = samples, .count = 3}};
    REQUIRE_OK(stk_targets_open_numbers(&d.targets, 1, 3, &err), &err);
    for (int i = 0; i < 3; i++) {
        samples[i] = (stk_sample){.path = "p", .id = "x", .record = i};
    }
    d.targets.numbers[0] = 1;
    d.targets.numbers[1] = 2;
    REQUIRE_OK(stk_oof_open(&oof, &d, &err), &err);
    add_fold(&oof, 0, (const size_t[]){0, 1, 2}, 3, (const double[]){1, 5, 9},
             (const bool[]){true, true, true});
    static const stk_label_rule none = {STK_LABEL_LIKELIEST, 0, NULL};
    REQUIRE_OK(stk_oof_score(&oof, STK_METRIC_MAE, &none, STK_POOL_MEAN, &rows, &err), &err);
    CHECK_INT(rows, 3);
    CHECK(isnan(oof.acc1));
    CHECK_NEAR(oof.metric, 1.5, 1e-9); /* the number that is not known does not count */
    stk_oof_free(&oof);
    stk_targets_free(&d.targets);
}

/* The class of strangers has the score of the rule, and only two answers count. */
static void ranked_lists_out_of_fold_are_scored(void) {
    stk_split split;
    stk_error err = {0};
    stk_oof oof = {0};
    size_t rows = 0;
    stk_dataset d = make("02", "", &split);
    d.task = STK_TASK_RANKING;
    d.answer = (stk_answer){.kind = STK_ANSWER_RANKED, .most = 2, .stranger = 2};
    REQUIRE_OK(stk_oof_open(&oof, &d, &err), &err);
    static const double probs[] = {0.1, 0.2, 0.7, 0.5, 0.3, 0.2};
    add_fold(&oof, 0, (const size_t[]){0, 1}, 2, probs, (const bool[]){true, true});
    static const stk_label_rule plain = {STK_LABEL_LIKELIEST, 0, NULL};
    REQUIRE_OK(stk_oof_score(&oof, STK_METRIC_MAPK, &plain, STK_POOL_MEAN, &rows, &err), &err);
    CHECK_NEAR(oof.metric, 0, 1e-9); /* both are third */
    const stk_label_rule stranger = {STK_LABEL_STRANGER, 1, (double[]){0.4}};
    REQUIRE_OK(stk_oof_score(&oof, STK_METRIC_MAPK, &stranger, STK_POOL_MEAN, &rows, &err), &err);
    CHECK_NEAR(oof.metric, 0.25, 1e-9); /* the stranger of the second row is second */
    stk_oof_free(&oof);
}

static bool yes(void *user) {
    (void)user;
    return true;
}

static void out_of_fold_rows_are_not_written_late(void) {
    stk_split split;
    stk_error err = {0};
    stk_dataset d = make("012", "01", &split);
    d.classes = (const char *const[]){"a", "b", "c"};
    stk_oof oof = {0};
    REQUIRE_OK(stk_oof_open(&oof, &d, &err), &err);
    CHECK_NEAR(stk_oof_write_seconds(&oof, 0), 0, 0);
    static const double probs[] = {0.5, 0.25, 0.25, 0, 1, 0};
    add_fold(&oof, 0, (const size_t[]){3, 4}, 2, probs, (const bool[]){true, true});
    oof.number_s = 2;
    CHECK_NEAR(stk_oof_write_seconds(&oof, 1), 3 * 3 * 2, 1e-12);
    CHECK_INT(stk_oof_write(&oof, "oof_late.csv", (stk_halt){yes, NULL}, &err), STK_ERR_STOPPED);
    CHECK(!stk_path_is_file("oof_late.csv"));
    CHECK_NEAR(oof.number_s, 2, 0);
    err = (stk_error){0};
    REQUIRE_OK(stk_oof_write(&oof, "oof_late.csv", (stk_halt){0}, &err), &err);
    CHECK(stk_path_is_file("oof_late.csv"));
    CHECK(oof.number_s > 0 && oof.number_s < 2);
    remove("oof_late.csv");
    stk_oof_free(&oof);
}

/* Of very many classes the likeliest are kept, and each sample's own: scores are those of all. */
static void very_many_classes_are_scored(void) {
    enum { CLASSES = 40000, ROWS = 1000, JUDGED = 3 };
    static stk_sample many[ROWS];
    static const char *names[CLASSES];
    static double row[CLASSES];
    stk_error err = {0};
    stk_oof oof = {0};
    stk_predictions probs;
    size_t rows = 0;
    stk_dataset d = {.task = STK_TASK_SINGLE,
                     .answer = {.kind = STK_ANSWER_LABEL},
                     .classes = names,
                     .class_count = CLASSES,
                     .train = {.items = many, .count = ROWS}};
    REQUIRE_OK(stk_oof_open(&oof, &d, &err), &err);
    CHECK(oof.probs.kept > 0);
    REQUIRE_OK(stk_predictions_open(&probs, JUDGED, CLASSES, oof.probs.kept, &err), &err);
    double loss = 0;
    for (int i = 0; i < JUDGED; i++) {
        many[i].label = i == 0 ? 0 : CLASSES - i; /* first the likeliest, then unlikely ones */
        for (int c = 0; c < CLASSES; c++) {
            row[c] = pow(0.5, c / 10 + 1) / 10;
        }
        row[CLASSES - 1] = row[CLASSES - 2] = 1e-9;
        loss -= log(row[many[i].label]) / JUDGED;
        stk_predictions_set(&probs, (size_t)i, row, many[i].label);
    }
    stk_oof_add(&oof, 0, (const size_t[]){0, 1, 2}, JUDGED, &probs,
                (const bool[]){true, true, true});
    static const stk_label_rule plain = {STK_LABEL_LIKELIEST, 0, NULL};
    REQUIRE_OK(stk_oof_score(&oof, STK_METRIC_LOGLOSS, &plain, STK_POOL_MEAN, &rows, &err), &err);
    CHECK_INT(rows, JUDGED);
    CHECK_NEAR(oof.metric, loss, 1e-3);
    CHECK_NEAR(stk_oof_write_seconds(&oof, 100), 0, 0);
    REQUIRE_OK(stk_oof_write(&oof, "oof_many.csv", (stk_halt){0}, &err), &err);
    CHECK(!stk_path_is_file("oof_many.csv"));
    stk_predictions_free(&probs);
    stk_oof_free(&oof);
}

static const check_test tests[] = {
    TEST(priors_are_scored),
    TEST(priors_of_rows_are_scored),
    TEST(priors_score_as_a_collector_says),
    TEST(means_are_scored_by_the_loss),
    TEST(who_beats_the_prior),
    TEST(a_metric_that_is_plainly_better_is_enough),
    TEST(labels_out_of_fold_are_scored),
    TEST(numbers_out_of_fold_are_scored),
    TEST(ranked_lists_out_of_fold_are_scored),
    TEST(what_is_out_of_fold_is_scored),
    TEST(out_of_fold_rows_are_not_written_late),
    TEST(very_many_classes_are_scored),
};

CHECK_MAIN(tests)
