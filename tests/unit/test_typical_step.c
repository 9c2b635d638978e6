/* test_typical_step.c - what a step takes, a validation, or anything that was measured a few times.
 */
#include "check.h"

#include <math.h>

#include "base/numbers/typical.h"
#include "train/times.h"
#include "train/typical_step.h"

static void the_middle_one_of_the_last_counts(void) {
    static const double values[] = {5, 3, 9, 100, 4, 4};
    static const double typical[] = {5, 3, 5, 9, 9, 4}; /* of one, of two, of the last three */
    stk_typical t = {0};
    CHECK(isnan(stk_typical_value(&t)));
    for (int i = 0; i < 6; i++) {
        stk_typical_note(&t, values[i]);
        CHECK_NEAR(stk_typical_value(&t), typical[i], 0);
    }
    stk_typical seven = {.room = 7};
    for (int i = 0; i < 20; i++) {
        stk_typical_note(&seven, i);
        CHECK_NEAR(stk_typical_value(&seven), i < 7 ? i / 2 : i - 3, 0);
    }
}

/* So many steps of this length, each a third of it waiting; what a step takes then. */
static double after(stk_typical_step *pace, int steps, double seconds) {
    for (int i = 0; i < steps; i++) {
        stk_typical_step_wait(pace, seconds / 3);
        stk_typical_step_add(pace, seconds);
    }
    return stk_typical_step_s(pace);
}

static void the_first_step_warms_up(void) {
    stk_typical_step pace = {0};
    CHECK(isnan(after(&pace, 0, 0)));
    CHECK(isnan(after(&pace, 1, 9)));
    CHECK(isnan(stk_typical_step_wait_s(&pace)));
    CHECK_NEAR(after(&pace, 1, 0.1), 0.1, 1e-12); /* before a group is full */
    CHECK_NEAR(stk_typical_step_wait_s(&pace), 0.1 / 3, 1e-12);
    CHECK_NEAR(after(&pace, 20, 0.1), 0.1, 1e-12);
    CHECK_NEAR(stk_typical_step_wait_s(&pace), 0.1 / 3, 1e-12);
    CHECK_INT(pace.timed, 22);
}

/* Whatever a step takes, and wherever the stall falls, the pace hardly moves. */
static void a_stall_is_no_pace(void) {
    static const double steps[] = {0.0005, 0.01, 0.09, 0.7};
    for (size_t i = 0; i < sizeof steps / sizeof *steps; i++) {
        for (int before = 2; before < 60; before++) {
            stk_typical_step pace = {0};
            double few = 0.6 / steps[i] + 4; /* two groups and more */
            after(&pace, before, steps[i]);
            after(&pace, 1, 2);
            CHECK_NEAR(after(&pace, (int)few, steps[i]), steps[i], 1e-9 + 0.01 * steps[i]);
            after(&pace, 1, 8);
            CHECK_NEAR(after(&pace, (int)few, steps[i]), steps[i], 1e-9 + 0.01 * steps[i]);
        }
    }
}

/* Slow first steps are forgotten, and a slowdown that lasts is believed, within few groups. */
static void what_lasts_is_believed(void) {
    stk_typical_step pace = {0};
    after(&pace, 2, 2);
    CHECK_NEAR(after(&pace, 3, 0.1), 0.1, 1e-9);
    after(&pace, 60, 0.1);
    CHECK_NEAR(after(&pace, 3, 0.5), 0.1, 1e-9);
    CHECK_NEAR(after(&pace, 2, 0.5), 0.5, 1e-9);
    CHECK_NEAR(after(&pace, 12, 0.1), 0.1, 1e-9);
}

/* Run for 20 ms and stopped for 80, in turns: most of the steps of 5 ms look as ever. */
static void throttling_is_seen_in_short_steps(void) {
    stk_typical_step pace = {0};
    after(&pace, 400, 0.005);
    for (int i = 0; i < 20; i++) {
        after(&pace, 3, 0.005);
        after(&pace, 1, 0.085);
    }
    CHECK_NEAR(stk_typical_step_s(&pace), 0.025, 0.008);
}

static void the_slowest_batch_counts_as_the_others(void) {
    stk_batch_times times = {.last_ns = 1000000000};
    CHECK_NEAR(stk_batch_times_even(&times, 3), 3, 0); /* none came */
    stk_batch_times_note(&times, 16, 3000000000);
    CHECK_NEAR(stk_batch_times_even(&times, 2.5), 2.5, 0); /* nothing to compare it with */
    stk_batch_times_note(&times, 16, 3100000000);
    stk_batch_times_note(&times, 8, 3150000000);
    CHECK_NEAR(stk_batch_times_even(&times, 2.15), 0.25, 1e-9);
    times = (stk_batch_times){0};
    for (int i = 1; i <= 8; i++) {
        stk_batch_times_note(&times, 10, i * 100000000);
    }
    CHECK_NEAR(stk_batch_times_even(&times, 0.8), 0.8, 1e-9);
}

static const check_test tests[] = {
    TEST(the_middle_one_of_the_last_counts),
    TEST(the_first_step_warms_up),
    TEST(a_stall_is_no_pace),
    TEST(what_lasts_is_believed),
    TEST(throttling_is_seen_in_short_steps),
    TEST(the_slowest_batch_counts_as_the_others),
};

CHECK_MAIN(tests)
