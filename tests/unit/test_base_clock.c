/* test_base_clock.c - time goes forward and the process began before now. */
#include "check.h"

#include <math.h>
#include <stdint.h>
#include <time.h>

#include "base/clock.h"
#include "base/threads/process.h"

static void time_goes_forward(void) {
    int64_t before = stk_clock_ns();
    for (int i = 0; i < 10000; i++) {
        int64_t now = stk_clock_ns();
        REQUIRE(now >= before);
        before = now;
    }
    int64_t start = stk_clock_ns();
    usleep(20000);
    double waited = stk_clock_since_s(start);
    CHECK(waited >= 0.019 && waited < 10);
}

static void the_process_began_before_now(void) {
    int64_t first = stk_process_own_start_ns();
    int64_t now = stk_clock_ns();
    CHECK(first <= now);
    CHECK((double)(now - first) * 1e-9 < 60);
    usleep(30000);
    int64_t second = stk_process_own_start_ns();
    /* The kernel counts the start in ticks of 10 ms; a sandbox that shows none gives now. */
    CHECK_NEAR((double)(second - first) * 1e-9, 0, 0.2);
}

static void a_thread_runs_or_waits(void) {
    int64_t ran = 0;
    int64_t waited = 0;
    if (!stk_clock_thread_ns(&ran, &waited)) {
        CHECK_INT(ran, 0);
        CHECK_SKIP("this kernel does not tell");
    }
    int64_t start = stk_clock_ns();
    while (stk_clock_since_s(start) < 0.05) {
    }
    int64_t ran_later = 0;
    int64_t waited_later = 0;
    REQUIRE(stk_clock_thread_ns(&ran_later, &waited_later));
    double both = (double)(ran_later - ran + waited_later - waited) * 1e-9;
    CHECK(ran_later > ran && waited_later >= waited);
    CHECK(both > 0.03 && both < 60); /* it never slept */
}

static void a_moment_is_bounded(void) {
    int64_t now = stk_clock_ns();
    CHECK_NEAR((double)(stk_clock_in(5) - now) * 1e-9, 5, 4);
    CHECK_NEAR((double)(stk_clock_in(-5) - now) * 1e-9, 0, 4);
    CHECK_NEAR((double)(stk_clock_in(NAN) - now) * 1e-9, 0, 4);
    CHECK_NEAR((double)(stk_clock_in(INFINITY) - now) * 1e-9, 1e6, 60);
}

static const check_test tests[] = {
    TEST(time_goes_forward),
    TEST(a_moment_is_bounded),
    TEST(the_process_began_before_now),
    TEST(a_thread_runs_or_waits),
};

CHECK_MAIN(tests)
