/* test_margin.c - what must be left at the end, from what the end took before. */
#include "check.h"

#include <math.h>

#include "budget/margin.h"

static void nothing_measured(void) {
    stk_margin margin = {0};
    CHECK_NEAR(stk_margin_took(&margin, STK_MARGIN_SUBMISSION), 0, 1e-12);
    CHECK_NEAR(stk_margin_needed(&margin, STK_MARGIN_SUBMISSION, NAN), 0.2, 1e-12);
    CHECK_NEAR(stk_margin_needed(&margin, STK_MARGIN_SUBMISSION, 1), 0.2, 1e-12);
    CHECK_NEAR(stk_margin_needed(&margin, STK_MARGIN_SUBMISSION, 50), 0.9, 1e-12);
    CHECK_NEAR(stk_margin_needed(&margin, STK_MARGIN_SUBMISSION, 15), 0.3, 1e-12);
    CHECK_NEAR(stk_margin_needed(&margin, STK_MARGIN_SUBMISSION, 60), 0.9, 1e-12);
    CHECK_NEAR(stk_margin_needed(&margin, STK_MARGIN_SUBMISSION, 100), 1.5, 1e-12);
    CHECK_NEAR(stk_margin_needed(&margin, STK_MARGIN_SUBMISSION, 3600), 2, 1e-12);
}

static void the_longer_of_the_last_two(void) {
    stk_margin margin = {0};
    stk_margin_note(&margin, STK_MARGIN_SUBMISSION, 0.5);
    CHECK_NEAR(stk_margin_took(&margin, STK_MARGIN_SUBMISSION), 0.5, 1e-12);
    stk_margin_note(&margin, STK_MARGIN_SUBMISSION, 0.3);
    CHECK_NEAR(stk_margin_took(&margin, STK_MARGIN_SUBMISSION), 0.5, 1e-12);
    stk_margin_note(&margin, STK_MARGIN_SUBMISSION, 0.1); /* the first is forgotten */
    CHECK_NEAR(stk_margin_took(&margin, STK_MARGIN_SUBMISSION), 0.3, 1e-12);
    stk_margin_note(&margin, STK_MARGIN_SUBMISSION, 2);
    CHECK_NEAR(stk_margin_took(&margin, STK_MARGIN_SUBMISSION), 2, 1e-12);
    stk_margin_note(&margin, STK_MARGIN_SUBMISSION, -1); /* no work gives time back */
    stk_margin_note(&margin, STK_MARGIN_SUBMISSION, -1);
    CHECK_NEAR(stk_margin_took(&margin, STK_MARGIN_SUBMISSION), 0, 1e-12);
}

static void what_is_done_is_not_waited_for(void) {
    stk_margin margin = {0};
    stk_margin_note(&margin, STK_MARGIN_SUBMISSION, 1);
    stk_margin_note(&margin, STK_MARGIN_CLOSING, 0.125);
    CHECK_NEAR(stk_margin_took(&margin, STK_MARGIN_SUBMISSION), 1.125, 1e-12);
    CHECK_NEAR(stk_margin_took(&margin, STK_MARGIN_CLOSING), 0.125, 1e-12);
    CHECK_NEAR(stk_margin_needed(&margin, STK_MARGIN_SUBMISSION, 4), 2.25 + 0.2, 1e-12);
    CHECK_NEAR(stk_margin_needed(&margin, STK_MARGIN_CLOSING, 4), 0.25 + 0.2, 1e-12);
}

static void a_busy_machine_needs_longer(void) {
    stk_margin margin = {.busy = 1};
    CHECK_NEAR(stk_margin_needed(&margin, STK_MARGIN_CLOSING, 1), 0.2, 1e-12);
    margin.busy = 3;
    CHECK_NEAR(stk_margin_needed(&margin, STK_MARGIN_CLOSING, 1), 0.6, 1e-12);
    CHECK_NEAR(stk_margin_needed(&margin, STK_MARGIN_CLOSING, 50), 0.9, 1e-12);
    margin.busy = 100; /* that will not last */
    CHECK_NEAR(stk_margin_needed(&margin, STK_MARGIN_CLOSING, 1), 1, 1e-12);
    /* What was measured was measured on that machine. */
    stk_margin_note(&margin, STK_MARGIN_CLOSING, 1);
    CHECK_NEAR(stk_margin_needed(&margin, STK_MARGIN_CLOSING, 50), 3, 1e-12);
}

static void the_end_of_a_process_can_be_known_to_take_longer(void) {
    stk_margin margin = {.busy = 1, .end_s = 0.5};
    CHECK_NEAR(stk_margin_needed(&margin, STK_MARGIN_CLOSING, 5), 0.5, 1e-12);
    CHECK_NEAR(stk_margin_needed(&margin, STK_MARGIN_CLOSING, NAN), 0.5, 1e-12);
    CHECK_NEAR(stk_margin_needed(&margin, STK_MARGIN_CLOSING, 50), 0.9,
               1e-12); /* its share is more */
    margin.end_s = 9;
    CHECK_NEAR(stk_margin_needed(&margin, STK_MARGIN_CLOSING, 5), 2, 1e-12);
}

static void times_scatter_on_a_busy_machine(void) {
    stk_margin margin = {0};
    CHECK_NEAR(stk_margin_stretch(&margin, 0.5), 0.5, 1e-12);
    margin.busy = 1.5;
    CHECK_NEAR(stk_margin_stretch(&margin, 0.5), 0.75, 1e-12);
    margin.busy = 9;
    CHECK_NEAR(stk_margin_stretch(&margin, 0.5), 1, 1e-12);
    CHECK_NEAR(stk_margin_stretch(&margin, 0), 0, 1e-12);
}

static const check_test tests[] = {
    TEST(nothing_measured),
    TEST(the_longer_of_the_last_two),
    TEST(a_busy_machine_needs_longer),
    TEST(the_end_of_a_process_can_be_known_to_take_longer),
    TEST(times_scatter_on_a_busy_machine),
    TEST(what_is_done_is_not_waited_for),
};

CHECK_MAIN(tests)
