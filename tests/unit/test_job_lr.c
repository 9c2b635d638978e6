/* test_job_lr.c - the learning-rate test through the public interface, and before a training. */
#include "check.h"
#include "job_runs.h"

/* Options of a verb with small pictures; freed by the caller. */
static stk_options *options_of(stk_status (*make)(stk_options **, stk_error *), const char *out,
                               const char *lr) {
    static const char *const fixed[][2] = {
        {"img-size", "16"}, {"batch", "8"}, {"epochs", "2"}, {"workers", "1"}};
    stk_error err = {0};
    stk_options *options = NULL;
    must(make(&options, &err), &err);
    must(stk_options_set(options, "data", shared_data(), &err), &err);
    must(stk_options_set(options, "out", out, &err), &err);
    for (size_t i = 0; i < sizeof fixed / sizeof *fixed; i++) {
        must(stk_options_set(options, fixed[i][0], fixed[i][1], &err), &err);
    }
    if (lr != NULL) {
        must(stk_options_set(options, "lr", lr, &err), &err);
    }
    return options;
}

/* Nobody listens, and no options but the needed ones. */
static void found_by_itself_and_by_training(void) {
    static char dirs[3][300];
    static stk_found_lr found = {.size = sizeof found};
    stk_error err = {0};
    for (int i = 0; i < 3; i++) {
        snprintf(dirs[i], sizeof dirs[i], "%s/run%d", check_folder(), i);
    }
    stk_options *options = options_of(stk_options_for_lr, dirs[0], NULL);
    REQUIRE_OK(stk_find_lr(options, NULL, &found, &err), &err);
    stk_options_free(options);
    CHECK_STR(found.run_dir, dirs[0]);
    CHECK(found.lr > 1e-5 && found.lr < 1);
    CHECK_INT(found.batch, 8);
    CHECK_INT(found.accumulate, 1);
    CHECK(found.count > 20 && found.count <= 100);
    CHECK_NEAR(found.points[0].lr, 1e-7, 1e-12);
    CHECK(stk_path_is_file(found.plot));

    char text[32];
    snprintf(text, sizeof text, "%g", found.lr);
    options = options_of(stk_options_for_train, dirs[1], "auto");
    REQUIRE_OK(stk_train(options, NULL, NULL, &err), &err);
    CHECK_STR(stk_options_get(options, "lr"), text);
    stk_options_free(options);
    options = options_of(stk_options_for_train, dirs[2], text);
    REQUIRE_OK(stk_train(options, NULL, NULL, &err), &err);
    stk_options_free(options);
    CHECK(same_file(dirs[0], dirs[1], "lr.csv"));
    CHECK(same_file(dirs[1], dirs[2], "weights/best.safetensors"));
    CHECK(same_file(dirs[1], dirs[2], "submission.csv"));
}

/* Losses that only differ as batches do are no curve to read a rate from. */
static void nothing_learns(void) {
    static stk_found_lr found = {.size = sizeof found};
    char dir[300];
    stk_error err = {0};
    snprintf(dir, sizeof dir, "%s/run", check_folder());
    stk_options *options = options_of(stk_options_for_lr, dir, NULL);
    must(stk_options_set(options, "clip-grad", "1e-30", &err), &err);
    must(stk_options_set(options, "weight-decay", "0", &err), &err);
    CHECK_INT(stk_find_lr(options, NULL, &found, &err), STK_ERR_DATA);
    CHECK_CONTAINS(err.message, "the loss fell at no rate");
    CHECK(isnan(found.lr));
    CHECK_INT(found.count, 100); /* the curve is there to look at */
    stk_options_free(options);
}

static void stopped(void) {
    static stk_found_lr found = {.size = sizeof found};
    char dir[300];
    stk_error err = {0};
    stk_stop stop = {0};
    stk_run run = {.size = sizeof run, .stop = &stop};
    snprintf(dir, sizeof dir, "%s/run", check_folder());
    stk_options *options = options_of(stk_options_for_lr, dir, NULL);
    stk_stop_request(&stop, STK_STOP_SOON, 0);
    CHECK_INT(stk_find_lr(options, &run, &found, &err), STK_ERR_STOPPED);
    CHECK(isnan(found.lr));
    stk_options_free(options);
}

static const check_test tests[] = {
    TEST(found_by_itself_and_by_training),
    TEST(nothing_learns),
    TEST(stopped),
};

CHECK_MAIN(tests)
