/* test_deadline.c - moments by the clock on the wall, in zones with and without summer time. */
#include "check.h"

#include <stdlib.h>
#include <time.h>

#include "budget/deadline.h"

#define NS_PER_S 1000000000

/* 2026-11-16 13:20:30 UTC, a Monday. */
#define NOW_S INT64_C(1794835230)

static void zone(const char *name) {
    setenv("TZ", name, 1);
    tzset();
}

static void moments(void) {
    static const struct {
        const char *text;
        double left_s;
        int days;
        const char *moment;
    } cases[] = {
        {"13:21", 30, 0, "2026-11-16 13:21:00"},
        {"13:20:31", 1, 0, "2026-11-16 13:20:31"},
        {"14:30", 4170, 0, "2026-11-16 14:30:00"},
        {"23:59:59", 38369, 0, "2026-11-16 23:59:59"},
        {"10:20:29", 75599, 1, "2026-11-17 10:20:29"}, /* over three hours ago: tomorrow's */
        {"0:00", 38370, 1, "2026-11-17 00:00:00"},
        {"9:05", 71070, 1, "2026-11-17 09:05:00"},
        {"2026-11-16T14:30", 4170, 0, "2026-11-16 14:30:00"},
        {"2026-11-16 14:30:10", 4180, 0, "2026-11-16 14:30:10"},
        {"2026-12-01t00:00", 38370 + 14 * 86400, 15, "2026-12-01 00:00:00"},
        {"2028-02-29T13:20:30", 470.0 * 86400, 470, "2028-02-29 13:20:30"},
    };
    zone("UTC0");
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        stk_deadline deadline;
        stk_error err = {0};
        REQUIRE_OK(stk_deadline_read(&deadline, cases[i].text, NOW_S * NS_PER_S, &err), &err);
        CHECK_NEAR(deadline.left_s, cases[i].left_s, 1e-6);
        CHECK_INT(deadline.days_ahead, cases[i].days);
        CHECK_STR(deadline.moment, cases[i].moment);
    }
}

static void parts_of_a_second_count(void) {
    stk_deadline deadline;
    stk_error err = {0};
    zone("UTC0");
    int64_t now = NOW_S * NS_PER_S + 750000000;
    REQUIRE_OK(stk_deadline_read(&deadline, "13:20:31", now, &err), &err);
    CHECK_NEAR(deadline.left_s, 0.25, 1e-6);
    REQUIRE_OK(stk_deadline_read(&deadline, "10:20:29", now, &err), &err);
    CHECK_NEAR(deadline.left_s, 75598.25, 1e-5);
}

static void what_is_no_time(void) {
    static const char *const texts[] = {"",
                                        "14",
                                        "14:",
                                        "14:3",
                                        "14:300",
                                        "24:00",
                                        "14:60",
                                        "14:30:60",
                                        "14:30:",
                                        "14:30:1",
                                        ":30",
                                        " 14:30",
                                        "14:30 ",
                                        "14:30pm",
                                        "-1:30",
                                        "noon",
                                        "11m",
                                        "2026-11-16",
                                        "2026-11-16T",
                                        "2026-13-01T10:00",
                                        "2026-1-1T1:00",
                                        "2026-02-30T10:00",
                                        "2027-02-29T10:00",
                                        "26-11-16T14:30",
                                        "2026-11-16T14:30Z",
                                        "2026-11-16T14:30:00.5",
                                        "1969-12-31T23:59"};
    zone("UTC0");
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        stk_deadline deadline;
        stk_error err = {0};
        if (stk_deadline_read(&deadline, texts[i], NOW_S * NS_PER_S, &err) != STK_ERR_USAGE ||
            strstr(err.message, "is no time") == NULL) {
            CHECK_FAIL("'%s' was taken, or: %s", texts[i], err.message);
        }
    }
}

static void a_date_that_is_past_is_refused(void) {
    stk_deadline deadline;
    stk_error err = {0};
    zone("UTC0");
    CHECK_INT(stk_deadline_read(&deadline, "2026-11-16T13:20:30", NOW_S * NS_PER_S, &err),
              STK_ERR_USAGE);
    CHECK_STR(err.message, "--deadline 2026-11-16T13:20:30 is past: it is 2026-11-16 13:20:30");
    CHECK_INT(stk_deadline_read(&deadline, "2025-11-16T14:30", NOW_S * NS_PER_S, NULL),
              STK_ERR_USAGE);
}

/* A script that is late gets no day more, whatever the clock was when it should have been done. */
static void a_time_that_is_just_past_is_refused(void) {
    static const struct {
        int64_t now_s;
        const char *text, *says;
    } cases[] = {
        {NOW_S, "13:20:30",
         "it is 2026-11-16 13:20:30; if the next is meant give its date, "
         "2026-11-17T13:20:30"}, /* this very second is past, too */
        {NOW_S, "13:20", "give its date, 2026-11-17T13:20"},
        {NOW_S, "10:20:30", "give its date, 2026-11-17T10:20:30"}, /* three hours to the second */
        {NOW_S + 38970, "23:50",
         "it is 2026-11-17 00:10:00; if the next is meant give its date, "
         "2026-11-17T23:50"}, /* yesterday's */
        {NOW_S + 38970, "00:00", "give its date, 2026-11-18T00:00"},
    };
    zone("UTC0");
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        stk_deadline deadline;
        stk_error err = {0};
        stk_status status =
            stk_deadline_read(&deadline, cases[i].text, cases[i].now_s * NS_PER_S, &err);
        CHECK_INT(status, STK_ERR_USAGE);
        CHECK(strstr(err.message, "is past") != NULL);
        CHECK(strstr(err.message, cases[i].says) != NULL);
        /* What it says is taken. */
        const char *date = strstr(err.message, "its date, ");
        REQUIRE(date != NULL);
        char remedy[64];
        snprintf(remedy, sizeof remedy, "%s", date + strlen("its date, "));
        CHECK_INT(stk_deadline_read(&deadline, remedy, cases[i].now_s * NS_PER_S, NULL), STK_OK);
    }
    stk_deadline deadline;
    stk_error err = {0};
    /* Half an hour past midnight, asked for a minute before it. */
    REQUIRE_OK(stk_deadline_read(&deadline, "00:30", (NOW_S + 38310) * NS_PER_S, &err), &err);
    CHECK_NEAR(deadline.left_s, 31 * 60, 1e-6);
    CHECK_INT(deadline.days_ahead, 1);
}

/* Rules without a data base: summer time from the last Sunday of March to that of October. */
static void hours_that_are_put_in_or_left_out(void) {
    stk_deadline deadline;
    stk_error err = {0};
    zone("CET-1CEST,M3.5.0,M10.5.0/3");
    /* 2026-03-28 20:00 CET: the night has 23 hours. */
    int64_t now = INT64_C(1774724400) * NS_PER_S;
    REQUIRE_OK(stk_deadline_read(&deadline, "16:00", now, &err), &err);
    CHECK_NEAR(deadline.left_s, 19 * 3600, 1e-6);
    CHECK_INT(deadline.days_ahead, 1);
    CHECK_STR(deadline.moment, "2026-03-29 16:00:00");
    /* 2026-10-24 20:00 CEST: this one has 25. */
    now = INT64_C(1792864800) * NS_PER_S;
    REQUIRE_OK(stk_deadline_read(&deadline, "2026-10-25T20:00", now, &err), &err);
    CHECK_NEAR(deadline.left_s, 25 * 3600, 1e-6);
    CHECK_INT(deadline.days_ahead, 1);
    zone("UTC0");
}

static void the_zone_is_the_local_one(void) {
    stk_deadline deadline;
    stk_error err = {0};
    zone("XXX5"); /* five hours behind: 08:20:30 */
    REQUIRE_OK(stk_deadline_read(&deadline, "08:21", NOW_S * NS_PER_S, &err), &err);
    CHECK_NEAR(deadline.left_s, 30, 1e-6);
    CHECK_STR(deadline.moment, "2026-11-16 08:21:00");
    zone("UTC0");
}

static const check_test tests[] = {
    TEST(moments),
    TEST(parts_of_a_second_count),
    TEST(what_is_no_time),
    TEST(a_date_that_is_past_is_refused),
    TEST(a_time_that_is_just_past_is_refused),
    TEST(hours_that_are_put_in_or_left_out),
    TEST(the_zone_is_the_local_one),
};

CHECK_MAIN(tests)
