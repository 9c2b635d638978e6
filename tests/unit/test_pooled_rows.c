/* test_pooled_rows.c - rows of several pictures: how they are pooled, and which way is chosen. */
#include "check.h"

#include <math.h>

#include "base/error.h"
#include "base/mem.h"
#include "base/numbers/rng.h"
#include "train/calibrate/pooled_rows.h"

#define ROWS 200
#define PICTURES 3

static stk_error error;

static void pools_values(void) {
    double row[3];
    static const double a[] = {0.7, 0.2, 0.1};
    static const double b[] = {0.1, 0.3, 0.6};
    for (int p = 0; p < STK_POOL_WAYS; p++) {
        stk_pooling_add((stk_pooling)p, a, 3, 0, row);
        stk_pooling_end((stk_pooling)p, STK_TASK_SINGLE, 3, 1, row);
        CHECK_NEAR(row[0], 0.7, 0); /* a row of one picture stays as it is */
    }
    stk_pooling_add(STK_POOL_MEAN, a, 3, 0, row);
    stk_pooling_add(STK_POOL_MEAN, b, 3, 1, row);
    stk_pooling_end(STK_POOL_MEAN, STK_TASK_SINGLE, 3, 2, row);
    CHECK_NEAR(row[0], 0.4, 1e-12);
    stk_pooling_add(STK_POOL_MAX, a, 3, 0, row);
    stk_pooling_add(STK_POOL_MAX, b, 3, 1, row);
    stk_pooling_end(STK_POOL_MAX, STK_TASK_SINGLE, 3, 2, row);
    CHECK_NEAR(row[0], 0.7 / 1.6, 1e-12); /* classes sum to 1 again */
    CHECK_NEAR(row[0] + row[1] + row[2], 1, 1e-12);
    stk_pooling_add(STK_POOL_MAX, a, 3, 0, row);
    stk_pooling_add(STK_POOL_MAX, b, 3, 1, row);
    stk_pooling_end(STK_POOL_MAX, STK_TASK_MULTILABEL, 3, 2, row);
    CHECK_NEAR(row[2], 0.6, 0); /* labels stand for themselves */
    static const double zero[] = {0, 0, 0};
    stk_pooling_add(STK_POOL_MAX, zero, 3, 0, row);
    stk_pooling_add(STK_POOL_MAX, zero, 3, 1, row);
    stk_pooling_end(STK_POOL_MAX, STK_TASK_SINGLE, 3, 2, row);
    CHECK_NEAR(row[0], 0, 0);
    CHECK_STR(stk_pooling_name(STK_POOL_MAX), "max");
}

/* Rows of three pictures, numbered from 1; `numbers` has one for each picture. */
static stk_pooled_rows open_rows(stk_task task, int outputs, stk_metric metric, stk_pooling pool,
                                 int64_t *numbers, size_t rows) {
    stk_pooled_rows r = {0};
    for (size_t i = 0; i < rows * PICTURES; i++) {
        numbers[i] = (int64_t)(i / PICTURES) + 1;
    }
    const stk_metrics_config rated = {
        .task = task, .outputs = outputs, .capacity = rows * PICTURES, .metric = metric};
    stk_error_clear(&error);
    if (stk_pooled_rows_open(&r, &rated, numbers, pool, &error) != STK_OK) {
        CHECK_FAIL("%s", error.message);
        exit(1);
    }
    return r;
}

/* A model of two classes whose pictures differ by chance. Either one picture of a row that is ill
 * shows it, and the pictures of a row are alike otherwise (`one_shows`); or all show it a little.
 */
static void fill(stk_pooled_rows *r, size_t rows, bool one_shows) {
    stk_rng rng = stk_rng_make(7, (stk_rng_purpose)0, 0, 0);
    for (size_t row = 0; row < rows; row++) {
        bool ill = row % 4 == 0;
        double of_row = stk_rng_uniform(&rng) - 0.5;
        for (size_t i = 0; i < PICTURES; i++) {
            double of_picture = stk_rng_normal(&rng);
            double shown = one_shows ? (i == row / 4 % PICTURES ? 6 : 0) : 1;
            double chance = one_shows ? 4 * of_row : 1.5 * of_picture;
            float logits[2] = {0, (float)((ill ? shown : 0) - (one_shows ? 2 : 0) + chance)};
            stk_pooled_rows_add(r, (int64_t)row + 1, logits, ill, NULL);
        }
    }
}

static stk_calibration fit(stk_pooled_rows *r, stk_metric metric) {
    const stk_calibrate_config config = {.metric = metric, .stranger = -1};
    stk_calibration c = {.temperature = 1};
    if (stk_pooled_rows_fit(r, &config, &c, &error) != STK_OK) {
        CHECK_FAIL("%s", error.message);
        exit(1);
    }
    return c;
}

static void chooses_what_validates_better(void) {
    static int64_t numbers[ROWS * PICTURES];
    for (int one = 0; one < 2; one++) {
        stk_pooled_rows r =
            open_rows(STK_TASK_BINARY, 2, STK_METRIC_AUC, STK_POOL_AUTO, numbers, ROWS);
        fill(&r, ROWS, one == 1);
        double value = stk_pooled_rows_value(&r);
        stk_calibration c = fit(&r, STK_METRIC_AUC);
        CHECK_INT(c.pool, one == 1 ? STK_POOL_MAX : STK_POOL_MEAN);
        CHECK_INT(c.rows, ROWS);
        CHECK_NEAR(value, c.pool_scores[c.pool], 1e-6);
        CHECK((c.pool_scores[STK_POOL_MAX] > c.pool_scores[STK_POOL_MEAN]) == (one == 1));
        stk_calibration_free(&c);
        stk_pooled_rows_free(&r);
    }
}

/* What is asked for is not chosen; a rule is fitted to the rows as they are pooled. */
static void fits_rules_to_rows(void) {
    static int64_t numbers[ROWS * PICTURES];
    double step[STK_POOL_WAYS];
    for (int p = 0; p < STK_POOL_WAYS; p++) {
        stk_pooled_rows r =
            open_rows(STK_TASK_BINARY, 2, STK_METRIC_PF1, (stk_pooling)p, numbers, ROWS);
        fill(&r, ROWS, true);
        stk_calibration c = fit(&r, STK_METRIC_PF1);
        CHECK_INT(c.pool, p);
        REQUIRE(c.rule.kind == STK_LABEL_STEP && c.rule.count == 1);
        step[p] = c.rule.numbers[0];
        CHECK(p == STK_POOL_MEAN || c.score > c.plain_score);
        stk_calibration_free(&c);
        stk_pooled_rows_free(&r);
    }
    CHECK(step[STK_POOL_MAX] > step[STK_POOL_MEAN]);
}

static void few_rows_and_ties_are_averaged(void) {
    static int64_t numbers[ROWS * PICTURES];
    stk_pooled_rows r = open_rows(STK_TASK_BINARY, 2, STK_METRIC_AUC, STK_POOL_AUTO, numbers, 19);
    fill(&r, 19, true);
    stk_calibration c = fit(&r, STK_METRIC_AUC);
    CHECK_INT(c.pool, STK_POOL_MEAN);
    stk_calibration_free(&c);
    stk_pooled_rows_free(&r);
    r = open_rows(STK_TASK_BINARY, 2, STK_METRIC_ACC1, STK_POOL_AUTO, numbers, ROWS);
    static const float sure[2][2] = {{5, 0}, {0, 5}};
    for (size_t i = 0; i < ROWS * PICTURES; i++) {
        stk_pooled_rows_add(&r, numbers[i], sure[numbers[i] % 2], (int)(numbers[i] % 2), NULL);
    }
    CHECK_NEAR(stk_pooled_rows_value(&r), 100, 0);
    c = fit(&r, STK_METRIC_ACC1);
    CHECK_INT(c.pool, STK_POOL_MEAN);
    stk_calibration_free(&c);
    stk_pooled_rows_free(&r);
}

/* The pictures of a row come in any order; a row of two answers has none. */
static void leaves_out_rows_of_two_answers(void) {
    static int64_t numbers[3 * PICTURES];
    static const float first[] = {2, 0};
    static const float second[] = {0, 2};
    stk_pooled_rows r = open_rows(STK_TASK_SINGLE, 2, STK_METRIC_ACC1, STK_POOL_MEAN, numbers, 3);
    CHECK(isnan(stk_pooled_rows_value(&r)));
    stk_pooled_rows_add(&r, 1, first, 0, NULL);
    stk_pooled_rows_add(&r, 2, first, 0, NULL);
    stk_pooled_rows_add(&r, -5, second, 0, NULL); /* a row alone */
    stk_pooled_rows_add(&r, 1, second, 1, NULL);
    CHECK_NEAR(stk_pooled_rows_value(&r), 50, 0);
    CHECK_INT(r.pooled[0].count, 2);
    stk_pooled_rows_reset(&r);
    stk_pooled_rows_add(&r, 1, first, 0, NULL);
    stk_pooled_rows_add(&r, 1, second, 1, NULL);
    CHECK(isnan(stk_pooled_rows_value(&r)));
    stk_calibration c = fit(&r, STK_METRIC_ACC1);
    CHECK_INT(c.rows, 0);
    stk_pooled_rows_free(&r);
}

static void labels_and_numbers(void) {
    static int64_t numbers[ROWS * PICTURES];
    static const float seen[] = {3, -3};
    static const float unseen[] = {-1, -3};
    static const float set[] = {1, 0};
    stk_pooled_rows r =
        open_rows(STK_TASK_MULTILABEL, 2, STK_METRIC_MICRO_F1, STK_POOL_AUTO, numbers, ROWS);
    for (size_t i = 0; i < ROWS * PICTURES; i++) {
        stk_pooled_rows_add(&r, numbers[i], i % PICTURES == 1 ? seen : unseen, 0, set);
    }
    CHECK_NEAR(stk_pooled_rows_value(&r), 1, 1e-9); /* of the means none is above one half */
    stk_pooled_rows_free(&r);
    r = open_rows(STK_TASK_REGRESSION, 1, STK_METRIC_MAE, STK_POOL_AUTO, numbers, ROWS);
    static const float five = 5;
    for (size_t i = 0; i < ROWS * PICTURES; i++) {
        float said = (float)(i % PICTURES) * 2.5F; /* the largest is right, the mean is not */
        stk_pooled_rows_add(&r, numbers[i], &said, 0, &five);
    }
    CHECK_NEAR(stk_pooled_rows_value(&r), 2.5, 1e-6);
    stk_calibration c = fit(&r, STK_METRIC_MAE);
    CHECK_INT(c.pool, STK_POOL_MEAN);
    stk_calibration_free(&c);
    stk_pooled_rows_free(&r);
}

static void without_memory(void) {
    static int64_t numbers[ROWS * PICTURES];
    const stk_metrics_config rated = {
        .task = STK_TASK_MULTILABEL, .outputs = 2, .capacity = 4, .metric = STK_METRIC_MICRO_F1};
    stk_status status = STK_ERR_MEMORY;
    int fails = 0;
    for (; status == STK_ERR_MEMORY && fails < 100; fails++) {
        stk_pooled_rows r;
        stk_mem_fail_after(fails);
        status = stk_pooled_rows_open(&r, &rated, numbers, STK_POOL_AUTO, NULL);
        stk_mem_fail_after(-1);
        if (status == STK_OK) {
            stk_pooled_rows_free(&r);
        }
    }
    CHECK_INT(status, STK_OK);
    CHECK(fails > 5);
}

static const check_test tests[] = {
    TEST(pools_values),
    TEST(chooses_what_validates_better),
    TEST(fits_rules_to_rows),
    TEST(few_rows_and_ties_are_averaged),
    TEST(leaves_out_rows_of_two_answers),
    TEST(labels_and_numbers),
    TEST(without_memory),
};

CHECK_MAIN(tests)
