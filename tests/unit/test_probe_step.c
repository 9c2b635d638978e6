/* test_probe_step.c - the arithmetic of `bench step`. */
#include "check.h"

#include "probe/step_probe.h"

static void knee_is_the_smallest_that_is_nearly_best(void) {
    stk_step_figures f[] = {{.batch = 256, .images_per_second = 9900},
                            {.batch = 32, .images_per_second = 6000},
                            {.batch = 512, .images_per_second = 10000},
                            {.batch = 128, .images_per_second = 9701},
                            {.batch = 64, .images_per_second = 9690}};
    CHECK_INT(stk_step_knee(f, 5), 128);
    CHECK_INT(stk_step_knee(f, 2), 256);
    CHECK_INT(stk_step_knee(f + 1, 1), 32);
    CHECK_INT(stk_step_knee(f, 0), 0);
    f[4].images_per_second = 9700;
    CHECK_INT(stk_step_knee(f, 5), 64);
}

static const check_test tests[] = {
    TEST(knee_is_the_smallest_that_is_nearly_best),
};

CHECK_MAIN(tests)
