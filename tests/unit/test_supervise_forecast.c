/* test_supervise_forecast.c - how long a training will take, and what is said of it. */
#include "check.h"

#include "supervise/decide/forecast.h"

static void hear(stk_command_progress *progress, double at_s, const char *line) {
    stk_progress_read_line(progress, line, strlen(line), at_s);
}

/* 30 epochs of 100 steps at 1.5 s, heard until `steps` of the first are done; 10 s pass before. */
static stk_command_progress bar_of(int steps) {
    stk_command_progress progress;
    stk_progress_begin(&progress, 100);
    for (int i = 0; i <= steps; i++) {
        char line[100];
        snprintf(line, sizeof line, "Epoch 1/30:  %d%%|##   | %d/100 [00:00<00:00, 1.50s/it]", i,
                 i);
        hear(&progress, 110 + 1.5 * i, line);
    }
    return progress;
}

static void too_little_is_no_estimate(void) {
    stk_forecast estimate;
    stk_command_progress progress;
    stk_progress_begin(&progress, 0);
    CHECK(!stk_forecast_make(&progress, 1, INFINITY, &estimate));
    CHECK(isnan(estimate.epoch_s) && isnan(estimate.total_s) && estimate.fitting == -1);
    hear(&progress, 1, "Epoch 1/30");
    CHECK(!stk_forecast_make(&progress, 100, INFINITY, &estimate));
    CHECK_INT(estimate.epochs, 30);
    progress = bar_of(1);
    CHECK(!stk_forecast_make(&progress, 112, INFINITY, &estimate));
    progress = bar_of(2);
    CHECK(stk_forecast_make(&progress, 113, INFINITY, &estimate));
    stk_progress_begin(&progress, 0);
    hear(&progress, 1, "step 100");
    hear(&progress, 3, "step 200");
    CHECK(!stk_forecast_make(&progress, 3, INFINITY, &estimate));
}

static void steps_tell_before_an_epoch_is_over(void) {
    stk_forecast estimate;
    stk_command_progress progress = bar_of(20);
    REQUIRE(stk_forecast_make(&progress, 140, INFINITY, &estimate));
    CHECK_NEAR(estimate.epoch_s, 150, 1e-9);
    CHECK_NEAR(estimate.left_s, 29.8 * 150, 1e-6);
    CHECK_NEAR(estimate.total_s, 10 + 30 * 150, 1e-6);
    CHECK_INT(estimate.epochs, 30);
    CHECK_INT(estimate.fitting, -1);
}

static void only_whole_epochs_fit(void) {
    stk_forecast estimate;
    stk_command_progress progress = bar_of(20);
    static const struct {
        double end_s;
        int fitting;
    } cases[] = {
        {50, 0},  {140, 0},   {259, 0},   {260, 1},   {409, 1},
        {410, 2}, {4600, 29}, {4609, 29}, {4611, -1},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        REQUIRE(stk_forecast_make(&progress, 140, cases[i].end_s, &estimate));
        if (estimate.fitting != cases[i].fitting) {
            CHECK_FAIL("until %g %d fit, expected %d", cases[i].end_s, estimate.fitting,
                       cases[i].fitting);
        }
    }
}

static void a_whole_epoch_tells_more_than_steps(void) {
    stk_forecast estimate;
    stk_command_progress progress = bar_of(100);
    hear(&progress, 290,
         "Epoch 2/30:   0%|     | 0/100 [00:00<?, ?it/s]"); /* it was validated, too */
    REQUIRE(stk_forecast_make(&progress, 290, INFINITY, &estimate));
    CHECK_NEAR(estimate.epoch_s, 180, 1e-9);
    CHECK_NEAR(estimate.total_s, 190 + 29 * 180, 1e-6);
}

static void epochs_alone_are_enough(void) {
    stk_forecast estimate;
    stk_command_progress progress;
    stk_progress_begin(&progress, 0);
    hear(&progress, 10, "epoch 1 of 4");
    hear(&progress, 70, "epoch 2 of 4");
    REQUIRE(stk_forecast_make(&progress, 100, 180, &estimate));
    CHECK_NEAR(estimate.epoch_s, 60, 1e-9);
    CHECK_NEAR(estimate.left_s, 150, 1e-9);
    CHECK_NEAR(estimate.total_s, 250, 1e-9);
    CHECK_INT(estimate.fitting, 2);
    REQUIRE(stk_forecast_make(&progress, 500, INFINITY, &estimate)); /* one that takes longer */
    CHECK_NEAR(estimate.left_s, 120, 1e-9);
}

static void an_epoch_told_late_is_over(void) {
    stk_forecast estimate;
    stk_command_progress progress;
    stk_progress_begin(&progress, 0);
    hear(&progress, 70, "Epoch 1/4 loss 0.5");
    REQUIRE(stk_forecast_make(&progress, 70, 200, &estimate));
    CHECK_NEAR(estimate.total_s, 280, 1e-9);
    CHECK_INT(estimate.fitting, 2);
    hear(&progress, 130, "Epoch 2/4 loss 0.4");
    REQUIRE(stk_forecast_make(&progress, 130, 200, &estimate));
    CHECK_NEAR(estimate.total_s, 250, 1e-9);
    CHECK_INT(estimate.fitting, 3);
}

static void one_bar_through_all(void) {
    stk_forecast estimate;
    stk_command_progress progress;
    stk_progress_begin(&progress, 0);
    hear(&progress, 10, "  0%|     | 0/1000 [00:00<?, ?it/s]");
    hear(&progress, 30, " 10%|#    | 100/1000 [00:20<03:00, 5.00it/s]");
    REQUIRE(stk_forecast_make(&progress, 30, 40, &estimate));
    CHECK(isnan(estimate.epoch_s));
    CHECK_NEAR(estimate.total_s, 210, 1e-9);
    CHECK_INT(estimate.epochs, -1);
    CHECK_INT(estimate.fitting, -1);
    hear(&progress, 30, "{'loss': 0.5, 'epoch': 0.5}");
    REQUIRE(stk_forecast_make(&progress, 30, 100, &estimate));
    CHECK_INT(estimate.epochs, 5);
    CHECK_NEAR(estimate.epoch_s, 40, 1e-9);
    CHECK_NEAR(estimate.total_s, 210, 1e-9);
    CHECK_INT(estimate.fitting, 2);
}

static void no_number_of_epochs_is_no_total(void) {
    stk_forecast estimate;
    stk_command_progress progress;
    stk_progress_begin(&progress, 0);
    hear(&progress, 10, "[epoch 1]");
    hear(&progress, 40, "[epoch 2]");
    REQUIRE(stk_forecast_make(&progress, 50, 60, &estimate));
    CHECK_NEAR(estimate.epoch_s, 30, 1e-9);
    CHECK(isnan(estimate.total_s) && isnan(estimate.left_s));
    CHECK_INT(estimate.fitting, -1);
}

static void it_is_said_in_one_line(void) {
    static const struct {
        stk_forecast estimate;
        double budget_s;
        const char *said;
    } cases[] = {
        {{150, 4500, 4400, 30, 3, 0},
         660,
         "30 epochs need 75 min, budget 11 min: stopping in epoch 4; consider --epochs 3"},
        {{150, 4500, 4400, 30, 0, 0},
         60,
         "30 epochs need 75 min, budget 60 s: stopping before the first epoch is over"},
        {{150, 4500, 4400, 30, 3, 0},
         NAN,
         "30 epochs need 75 min: stopping in epoch 4; consider --epochs 3"},
        {{16, 480, 400, 30, -1, 0}, 660, "30 epochs need 8 min of 11 min"},
        {{150, 4500, 4400, 30, -1, 0}, NAN, "30 epochs need about 75 min"},
        {{150, 450, 400, 1, -1, 0}, NAN, "1 epoch needs about 7.5 min"},
        {{NAN, 4500, 4400, -1, -1, 0}, NAN, "training needs about 75 min"},
        {{NAN, 4500, 4400, -1, -1, 0},
         660,
         "training needs 75 min, budget 11 min: stopping before its end"},
        {{20, 600, 500, 30, 24, 500},
         660,
         "30 epochs need 10 min, training has 8.3 min of 11 min: stopping in epoch 25; consider "
         "--epochs 24"},
        {{NAN, 600, 500, -1, -1, 500},
         660,
         "training needs 10 min, it has 8.3 min of 11 min: stopping before its end"},
        {{16, 480, 400, 30, -1, 500}, 660, "30 epochs need 8 min of 11 min"},
        {{150, NAN, NAN, -1, -1, 0}, 660, "an epoch takes about 2.5 min"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char text[200];
        stk_forecast_say(&cases[i].estimate, cases[i].budget_s, text, sizeof text);
        CHECK_STR(text, cases[i].said);
        char little[8];
        stk_forecast_say(&cases[i].estimate, cases[i].budget_s, little, sizeof little);
        CHECK_INT(strlen(little), 7);
    }
}

static const check_test tests[] = {
    TEST(too_little_is_no_estimate), TEST(steps_tell_before_an_epoch_is_over),
    TEST(only_whole_epochs_fit),     TEST(a_whole_epoch_tells_more_than_steps),
    TEST(epochs_alone_are_enough),   TEST(an_epoch_told_late_is_over),
    TEST(one_bar_through_all),       TEST(no_number_of_epochs_is_no_total),
    TEST(it_is_said_in_one_line),
};

CHECK_MAIN(tests)
