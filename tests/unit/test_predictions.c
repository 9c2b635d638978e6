/*
 * test_predictions.c - rows of very many classes: what is kept of them, what answers are made of
 * it, and how much memory it takes.
 */
#include "check.h"
#include "full_rows.h"

#include <math.h>

#include "base/files/file.h"
#include "base/mem.h"
#include "base/numbers/rng.h"
#include "predict/submission.h"

enum { CLASSES = 1000, KEPT = 64 };

static const stk_answer label = {.kind = STK_ANSWER_LABEL};

static void much_is_kept_where_it_fits_or_is_written(void) {
    static const stk_answer each = {.kind = STK_ANSWER_PROBABILITIES};
    static const stk_answer ranked = {.kind = STK_ANSWER_RANKED, .most = 5};
    static const stk_answer long_list = {.kind = STK_ANSWER_RANKED, .most = 100};
    CHECK_INT(stk_predictions_kept(&label, 0, 65000), 0);
    CHECK_INT(stk_predictions_kept(&label, 500, 65000), 0);
    CHECK_INT(stk_predictions_kept(&label, STK_PREDICTIONS_FULL / 1024, 1024), 0);
    CHECK_INT(stk_predictions_kept(&label, STK_PREDICTIONS_FULL / 1024 + 1, 1024), 64);
    CHECK_INT(stk_predictions_kept(&label, 2500000, 65000), 64);
    CHECK_INT(stk_predictions_kept(&label, (size_t)1 << 40, 100), 0); /* few classes */
    CHECK_INT(stk_predictions_kept(&ranked, 243020, 65000), 64);
    CHECK_INT(stk_predictions_kept(&long_list, 243020, 65000), 200);
    CHECK_INT(stk_predictions_kept(&each, 243020, 65000), 0); /* they are all written */
}

/* Probabilities that fall quickly, in a random order of classes. */
static void fill(double *row, uint64_t seed) {
    stk_rng rng = stk_rng_make(seed, STK_RNG_TEST, 0, 0);
    double sum = 0;
    for (int c = 0; c < CLASSES; c++) {
        row[c] = exp(-stk_rng_range(&rng, 0, 60));
        sum += row[c];
    }
    for (int c = 0; c < CLASSES; c++) {
        row[c] /= sum;
    }
}

static int count_above(const double *row, double least) {
    int above = 0;
    for (int c = 0; c < CLASSES; c++) {
        above += row[c] > least;
    }
    return above;
}

static void the_largest_come_back(void) {
    static double row[CLASSES], scratch[CLASSES];
    stk_predictions p;
    stk_error err = {0};
    REQUIRE_OK(stk_predictions_open(&p, 3, CLASSES, KEPT, &err), &err);
    for (size_t r = 0; r < 3; r++) {
        fill(row, r);
        stk_predictions_set(&p, r, row, -1);
    }
    for (size_t r = 0; r < 3; r++) {
        fill(row, r);
        const double *back = stk_predictions_row(&p, r, scratch);
        double sum = 0;
        int same = 0;
        for (int c = 0; c < CLASSES; c++) {
            bool large = count_above(row, row[c]) < KEPT;
            sum += back[c];
            same += large && fabs(back[c] - row[c]) <= 1e-7 * row[c];
        }
        CHECK_INT(same, KEPT);
        CHECK_NEAR(sum, 1, 1e-6);
    }
    stk_predictions_free(&p);
}

static void the_class_of_a_sample_is_kept(void) {
    static double row[CLASSES], scratch[CLASSES];
    stk_predictions p;
    stk_error err = {0};
    int least = 0;
    int best = 0;
    fill(row, 9);
    for (int c = 1; c < CLASSES; c++) {
        least = row[c] < row[least] ? c : least;
        best = row[c] > row[best] ? c : best;
    }
    REQUIRE_OK(stk_predictions_open(&p, 2, CLASSES, KEPT, &err), &err);
    stk_predictions_set(&p, 0, row, least);
    const double *back = stk_predictions_row(&p, 0, scratch);
    CHECK_NEAR(back[least] / row[least], 1, 1e-6);
    CHECK_NEAR(back[best] / row[best], 1, 1e-6);
    stk_predictions_set(&p, 1, row, best); /* it is one of the largest anyway */
    CHECK_INT(count_above(stk_predictions_row(&p, 1, scratch), p.values[2 * (KEPT + 1) - 1]), KEPT);
    stk_predictions_copy(&p, 1, &p, 0);
    back = stk_predictions_row(&p, 1, scratch);
    CHECK_NEAR(back[least] / row[least], 1, 1e-6);
    stk_predictions_free(&p);
}

static void all_come_back_exactly_in_full(void) {
    static double row[CLASSES];
    stk_predictions p;
    stk_error err = {0};
    fill(row, 5);
    REQUIRE_OK(stk_predictions_open(&p, 2, CLASSES, 0, &err), &err);
    stk_predictions_set(&p, 1, row, 3);
    CHECK(memcmp(stk_predictions_row(&p, 1, NULL), row, sizeof row) == 0);
    stk_predictions_free(&p);
}

static void models_are_averaged(void) {
    static double a[CLASSES], b[CLASSES], mean[CLASSES];
    stk_predictions p;
    stk_ensemble ensemble;
    stk_error err = {0};
    static const stk_calibration none;
    fill(a, 1);
    fill(b, 2);
    REQUIRE_OK(stk_ensemble_open(&ensemble, 1, CLASSES, KEPT, &err), &err);
    REQUIRE_OK(stk_predictions_open(&p, 1, CLASSES, KEPT, &err), &err);
    stk_ensemble_row(&ensemble, 0, mean);
    CHECK_NEAR(mean[7], 1.0 / CLASSES, 1e-12); /* the priors */
    stk_predictions_set(&p, 0, a, -1);
    stk_ensemble_add(&ensemble, &p, (const bool[]){true}, &none, 1);
    stk_predictions_set(&p, 0, b, -1);
    stk_ensemble_add(&ensemble, &p, (const bool[]){true}, &none, 3);
    stk_ensemble_row(&ensemble, 0, mean);
    double sum = 0;
    int best = 0;
    int best_mean = 0;
    for (int c = 0; c < CLASSES; c++) {
        double full = (a[c] + 3 * b[c]) / 4;
        sum += mean[c];
        best = full > (a[best] + 3 * b[best]) / 4 ? c : best;
        best_mean = mean[c] > mean[best_mean] ? c : best_mean;
    }
    CHECK_NEAR(sum, 1, 1e-6);
    CHECK_INT(best_mean, best);
    CHECK_NEAR(mean[best], (a[best] + 3 * b[best]) / 4, 1e-3);
    stk_predictions_free(&p);
    stk_ensemble_free(&ensemble);
}

/* Without a sample a file of 65,000 columns would be of no use. */
static void the_file_has_no_column_for_each_class(void) {
    static double row[CLASSES];
    static char names[CLASSES][8];
    static const char *classes[CLASSES];
    stk_sample sample = {.path = "a.jpg", .id = "a", .label = -1, .record = -1};
    stk_row rows[] = {{.id = "a", .first = 0, .count = 1}};
    stk_dataset d = {.task = STK_TASK_SINGLE,
                     .answer = label,
                     .template_kept = -1,
                     .id_name = "id",
                     .label_name = "label",
                     .test = {.items = &sample, .count = 1},
                     .rows = rows,
                     .row_count = 1};
    stk_error err = {0};
    for (int kept = 0; kept <= KEPT; kept += KEPT) {
        stk_ensemble ensemble;
        char path[300];
        char *data = NULL;
        size_t size;
        REQUIRE_OK(stk_ensemble_open(&ensemble, 1, CLASSES, (size_t)kept, &err), &err);
        for (int c = 0; c < CLASSES; c++) {
            snprintf(names[c], sizeof names[c], "c%d", c);
            classes[c] = names[c];
            row[c] = c == 77 ? 0.5 : 0.5 / (CLASSES - 1);
        }
        stk_predictions_set(&ensemble.sum, 0, row, -1);
        ensemble.weights[0] = 1;
        stk_answers answers = {.classes = classes,
                               .class_count = CLASSES,
                               .task = STK_TASK_SINGLE,
                               .ensemble = &ensemble};
        snprintf(path, sizeof path, "%s/submission.csv", check_folder());
        REQUIRE_OK(stk_submission_write_how(path, NULL, &d, &answers, &err), &err);
        REQUIRE_OK(stk_file_read(path, 0, &data, &size, &err), &err);
        if (kept > 0) {
            CHECK_STR(data, "id,label\na,c77\n");
        } else {
            CHECK(strstr(data, "id,label,c0,c1,") == data && strstr(data, "\na,c77,0.000") != NULL);
        }
        stk_mem_free(data);
        stk_ensemble_free(&ensemble);
    }
}

static void no_memory_is_told(void) {
    for (int kept = 0; kept <= KEPT; kept += KEPT) {
        for (int64_t n = 0; n < (kept > 0 ? 2 : 1); n++) {
            stk_predictions p;
            stk_error err = {0};
            stk_mem_fail_after(n);
            CHECK_INT(stk_predictions_open(&p, 10, CLASSES, (size_t)kept, &err), STK_ERR_MEMORY);
            stk_mem_fail_after(-1);
            CHECK(p.all == NULL && p.places == NULL && p.values == NULL);
        }
    }
}

static const check_test tests[] = {
    TEST(much_is_kept_where_it_fits_or_is_written),
    TEST(the_largest_come_back),
    TEST(the_class_of_a_sample_is_kept),
    TEST(all_come_back_exactly_in_full),
    TEST(models_are_averaged),
    TEST(the_file_has_no_column_for_each_class),
    TEST(no_memory_is_told),
};

CHECK_MAIN(tests)
