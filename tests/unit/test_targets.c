/* test_targets.c - labels and numbers of records: rows, means, what stands alone. */
#include "check.h"

#include <math.h>

#include "base/error.h"
#include "base/mem.h"
#include "dataset/targets.h"

static stk_error error;

/* Records of `outputs` labels; record i has label k where has(i, k). */
static stk_targets make(int outputs, int count, bool (*has)(int record, int label)) {
    stk_targets t;
    stk_error_clear(&error);
    CHECK_INT(stk_targets_open_labels(&t, outputs, (size_t)count, &error), STK_OK);
    for (int i = 0; i < count; i++) {
        for (int k = 0; k < outputs; k++) {
            if (has(i, k)) {
                CHECK_INT(stk_targets_add_label(&t, k, &error), STK_OK);
                CHECK_INT(stk_targets_add_label(&t, k, &error), STK_OK); /* twice means once */
            }
        }
        stk_targets_end_record(&t);
    }
    CHECK_INT(stk_targets_finish(&t, &error), STK_OK);
    return t;
}

enum { HEALTHY, SCAB, RUST, ONCE, NEVER, LEAF_LABELS };

static bool of_a_leaf(int i, int label) {
    switch (label) {
    case HEALTHY:
        return i % 4 == 0;
    case SCAB:
        return i % 4 == 1 || i % 4 == 2;
    case RUST:
        return i % 4 == 2 || (i % 4 == 3 && i > 3);
    case ONCE:
        return i == 3;
    default:
        return false;
    }
}

static bool the_first(int i, int label) {
    return label == (i % 5 == 0);
}

static bool the_only(int i, int label) {
    (void)i;
    return label == 0;
}

static void labels_that_stand_alone_are_found(void) {
    stk_targets t = make(LEAF_LABELS, 100, of_a_leaf);
    CHECK(t.exclusive[HEALTHY]);
    CHECK(!t.exclusive[SCAB] && !t.exclusive[RUST]);
    CHECK(!t.exclusive[ONCE]); /* seen once, which is chance */
    CHECK(!t.exclusive[NEVER]);
    double means[LEAF_LABELS];
    stk_targets_means(&t, means);
    CHECK_NEAR(means[HEALTHY], 0.25, 1e-12);
    CHECK_NEAR(means[SCAB], 0.5, 1e-12);
    float row[LEAF_LABELS];
    stk_targets_row(&t, 2, row);
    CHECK(row[HEALTHY] == 0 && row[SCAB] == 1 && row[RUST] == 1);
    stk_targets_free(&t);
    /* Where no picture has two labels, each stands alone; with few pictures nobody knows. */
    t = make(2, 25, the_first);
    CHECK(t.exclusive[0] && t.exclusive[1]);
    stk_targets_free(&t);
    t = make(2, 3, the_first);
    CHECK(!t.exclusive[0] && !t.exclusive[1]);
    stk_targets_free(&t);
    t = make(1, 40, the_only);
    CHECK(!t.exclusive[0]);
    stk_targets_free(&t);
}

static void numbers_are_learned_in_their_own_unit(void) {
    stk_targets t;
    float row[2];
    REQUIRE(stk_targets_open_numbers(&t, 2, 3, &error) == STK_OK);
    t.numbers[0] = 10;
    t.numbers[1] = 7;
    t.numbers[2] = 20;
    t.numbers[4] = 30; /* the second number is known once */
    REQUIRE(stk_targets_finish(&t, &error) == STK_OK);
    CHECK(t.least[0] == 10 && t.most[0] == 30);
    CHECK_NEAR(t.mean[0], 20, 1e-12);
    CHECK_NEAR(t.scale[0], sqrt(200.0 / 3), 1e-9);
    CHECK(t.scale[1] == 1); /* all are equal */
    stk_targets_learned(&t, 2, row);
    CHECK_NEAR(row[0], 10 / sqrt(200.0 / 3), 1e-6);
    CHECK(isnan(row[1]));
    stk_targets_learned(&t, 3, row); /* beyond the last */
    CHECK(isnan(row[0]) && isnan(row[1]));
    t.shares = true; /* for a sigmoid */
    stk_targets_learned(&t, 0, row);
    CHECK_NEAR(row[0], 0, 0);
    stk_targets_learned(&t, 2, row);
    CHECK_NEAR(row[0], 1, 0);
    CHECK_NEAR(stk_targets_learned_number(&t, 0, 15), 0.25, 1e-12);
    stk_targets_learned(&t, 0, row);
    CHECK_NEAR(row[1], 0, 0); /* a range without width */
    CHECK(t.least[0] == 10 && t.most[0] == 30);
    stk_targets_free(&t);
}

static void memory_runs_out(void) {
    stk_status status = STK_ERR_MEMORY;
    for (int n = 0; n < 20 && status != STK_OK; n++) {
        stk_targets t;
        stk_mem_fail_after(n);
        status = stk_targets_open_labels(&t, 3, 2, NULL);
        if (status == STK_OK) {
            status = stk_targets_add_label(&t, 1, NULL);
            stk_targets_end_record(&t);
            stk_targets_end_record(&t);
            status = status == STK_OK ? stk_targets_finish(&t, NULL) : status;
            stk_targets_free(&t);
        }
        stk_mem_fail_after(-1);
        CHECK(status == STK_OK || status == STK_ERR_MEMORY);
    }
    CHECK_INT(status, STK_OK);
}

static const check_test tests[] = {
    TEST(labels_that_stand_alone_are_found),
    TEST(numbers_are_learned_in_their_own_unit),
    TEST(memory_runs_out),
};

CHECK_MAIN(tests)
