/* test_supervise_timetable.c - when a command is stopped: arithmetic from the end backwards. */
#include "check.h"

#include "supervise/decide/timetable.h"

static stk_slice slice(const char *text) {
    stk_slice read = {0};
    stk_error err = {0};
    CHECK(stk_slice_read(&read, "reserve", text, &err) == STK_OK);
    return read;
}

static stk_timetable make(double budget_s, const char *reserve, const char *stop_at, double grace_s,
                          bool predicts) {
    stk_timetable table;
    stk_error err = {0};
    stk_timetable_facts facts = {.budget_s = budget_s,
                                 .reserve = slice(reserve),
                                 .stop_at = slice(stop_at),
                                 .grace_s = grace_s,
                                 .predicts = predicts};
    CHECK(stk_timetable_make(&table, &facts, &err) == STK_OK);
    return table;
}

static void slices(void) {
    stk_error err = {0};
    stk_slice read;
    CHECK(!slice(NULL).given);
    CHECK(slice("15%").is_share);
    CHECK_NEAR(slice("15%").value, 0.15, 1e-12);
    CHECK_NEAR(slice("0.5%").value, 0.005, 1e-12);
    CHECK_NEAR(slice("90s").value, 90, 1e-12);
    CHECK_NEAR(slice("2m").value, 120, 1e-12);
    CHECK(!slice("0").is_share);
    static const char *const wrong[] = {"101%", "-1%", "%", "a%", "fifteen", "", "-3"};
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        CHECK(stk_slice_read(&read, "reserve", wrong[i], &err) == STK_ERR_USAGE);
        CHECK_CONTAINS(err.message, "--reserve");
    }
}

/* 30 minutes: 4.5 for the prediction, 10 s of grace, 2 s for the last files. */
static void usual(void) {
    stk_timetable t = make(1800, NULL, NULL, NAN, true);
    CHECK_NEAR(t.reserve_s, 270, 1e-9);
    CHECK_NEAR(t.kill_s, 1530, 1e-9);
    CHECK_NEAR(t.stop_s, 1520, 1e-9);
    CHECK_NEAR(t.predict_kill_s, 1798, 1e-9);
    CHECK_NEAR(t.predict_stop_s, 1796, 1e-9);
}

static void usual_grace_is_a_tenth_at_most(void) {
    stk_timetable t = make(20, NULL, NULL, NAN, true);
    CHECK_NEAR(t.grace_s, 2, 1e-9);
    CHECK_NEAR(t.stop_s, 20 - 3 - 2, 1e-9);
}

/* Whoever asks for a grace gets it: the request to stop comes that much earlier. */
static void grace_that_was_asked_for_is_kept(void) {
    stk_timetable t = make(20, NULL, NULL, 1, true);
    CHECK_NEAR(t.grace_s, 1, 1e-9);
    t = make(60, NULL, NULL, 20, true);
    CHECK_NEAR(t.grace_s, 20, 1e-9);
    CHECK_NEAR(t.kill_s, 51, 1e-9);
    CHECK_NEAR(t.stop_s, 31, 1e-9);
    t = make(60, NULL, NULL, 20, false);
    CHECK_NEAR(t.kill_s - t.stop_s, 20, 1e-9);
    t = make(60, NULL, "50%", 20, true);
    CHECK_NEAR(t.stop_s, 30, 1e-9);
    CHECK_NEAR(t.kill_s, 50, 1e-9);
    t = make(60, NULL, NULL, 0, true);
    CHECK_NEAR(t.stop_s, t.kill_s, 1e-9);
}

/* What cannot be kept is refused, with figures, and never cut. */
static void grace_that_does_not_fit_is_refused(void) {
    stk_timetable t;
    stk_error err = {0};
    stk_timetable_facts facts = {.budget_s = 20, .grace_s = 60, .predicts = true};
    CHECK(stk_timetable_make(&t, &facts, &err) == STK_ERR_USAGE);
    CHECK_CONTAINS(err.message, "60 s");
    CHECK_CONTAINS(err.message, "20 s");
    CHECK_CONTAINS(err.message, "--stop-grace");
    err = (stk_error){0};
    facts = (stk_timetable_facts){
        .budget_s = 100, .stop_at = slice("95%"), .grace_s = 10, .predicts = true};
    CHECK(stk_timetable_make(&t, &facts, &err) == STK_ERR_USAGE);
    CHECK_CONTAINS(err.message, "--stop-at");
    CHECK_CONTAINS(err.message, "--stop-grace");
    CHECK_CONTAINS(err.message, "10 s");
}

/* Nothing is kept for a prediction that nobody asked for, but the last files are written. */
static void without_prediction(void) {
    stk_timetable t = make(100, NULL, NULL, NAN, false);
    CHECK_NEAR(t.reserve_s, 2, 1e-9);
    CHECK_NEAR(t.kill_s, 98, 1e-9);
    CHECK_NEAR(t.stop_s, 88, 1e-9);
    t = make(100, "30%", NULL, NAN, false);
    CHECK_NEAR(t.kill_s, 70, 1e-9);
}

static void a_point_can_be_given(void) {
    stk_timetable t = make(100, NULL, "70%", NAN, true);
    CHECK_NEAR(t.stop_s, 70, 1e-9);
    CHECK_NEAR(t.kill_s, 80, 1e-9);
    CHECK_NEAR(t.reserve_s, 20, 1e-9);
    t = make(100, NULL, "30s", 5, true);
    CHECK_NEAR(t.stop_s, 30, 1e-9);
    CHECK_NEAR(t.kill_s, 35, 1e-9);
    t = make(100, NULL, "95%", NAN,
             true); /* the usual grace: until the prediction would have to end at most */
    CHECK_NEAR(t.stop_s, 95, 1e-9);
    CHECK(t.kill_s <= t.predict_stop_s);
}

static void what_does_not_fit_is_said(void) {
    stk_timetable t;
    stk_error err = {0};
    stk_timetable_facts facts = {
        .budget_s = 100, .reserve = slice("95%"), .grace_s = NAN, .predicts = true};
    CHECK(stk_timetable_make(&t, &facts, &err) == STK_ERR_USAGE);
    CHECK_CONTAINS(err.message, "larger --budget");
    err = (stk_error){0};
    facts = (stk_timetable_facts){.budget_s = 100, .stop_at = slice("100%"), .grace_s = NAN};
    CHECK(stk_timetable_make(&t, &facts, &err) == STK_ERR_USAGE);
    CHECK_CONTAINS(err.message, "--stop-at");
    err = (stk_error){0};
    facts = (stk_timetable_facts){.budget_s = NAN, .stop_at = slice("70%"), .grace_s = NAN};
    CHECK(stk_timetable_make(&t, &facts, &err) == STK_ERR_USAGE);
    CHECK_CONTAINS(err.message, "--stop-at needs a --budget");
    err = (stk_error){0};
    facts = (stk_timetable_facts){.budget_s = NAN, .reserve = slice("15%"), .grace_s = NAN};
    CHECK(stk_timetable_make(&t, &facts, &err) == STK_ERR_USAGE);
    CHECK_CONTAINS(err.message, "--reserve needs a --budget");
}

static void no_budget_no_end(void) {
    stk_timetable t = make(NAN, NULL, NULL, NAN, true);
    CHECK(isinf(t.stop_s) && isinf(t.kill_s) && isinf(t.predict_stop_s) && isinf(t.predict_kill_s));
    CHECK_NEAR(t.grace_s, 10, 1e-9);
}

/* Ctrl-C: training stops now, the prediction has what it had. SIGTERM: all ends in nine seconds. */
static void hurrying(void) {
    stk_timetable t = make(1800, NULL, NULL, NAN, true);
    stk_timetable_hurry(&t, 100, INFINITY, true);
    CHECK_NEAR(t.stop_s, 100, 1e-9);
    CHECK_NEAR(t.kill_s, 110, 1e-9);
    CHECK_NEAR(t.predict_kill_s, 1798, 1e-9);
    t = make(NAN, NULL, NULL, NAN, true);
    stk_timetable_hurry(&t, 100, 9, true);
    CHECK_NEAR(t.stop_s, 100, 1e-9);
    CHECK(t.kill_s < 104 && t.kill_s > 102);
    CHECK(t.predict_stop_s < t.predict_kill_s && t.predict_kill_s < 109);
    t = make(NAN, NULL, NULL, NAN, false);
    stk_timetable_hurry(&t, 100, 9, false);
    CHECK(t.kill_s > 108 && t.kill_s < 109);
}

/* Whatever the budget is, each moment comes behind the one before, and all lie within it. */
static void order_holds(void) {
    for (double budget_s = 1; budget_s < 1e6; budget_s *= 1.3) {
        for (int predicts = 0; predicts < 2; predicts++) {
            stk_timetable t = make(budget_s, NULL, NULL, NAN, predicts);
            CHECK(t.stop_s > 0 && t.stop_s < t.kill_s && t.kill_s <= t.predict_kill_s);
            CHECK(t.predict_stop_s < t.predict_kill_s && t.predict_kill_s < budget_s);
        }
    }
}

static const check_test tests[] = {
    TEST(slices),
    TEST(usual),
    TEST(usual_grace_is_a_tenth_at_most),
    TEST(grace_that_was_asked_for_is_kept),
    TEST(grace_that_does_not_fit_is_refused),
    TEST(without_prediction),
    TEST(a_point_can_be_given),
    TEST(what_does_not_fit_is_said),
    TEST(no_budget_no_end),
    TEST(hurrying),
    TEST(order_holds),
};

CHECK_MAIN(tests)
