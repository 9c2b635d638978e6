/* test_deliver.c - what the summary says of every way in which a run can end. */
#include "check.h"

#include <stoker/job.h>

#include "base/clock.h"
#include "base/mem.h"
#include "job/training/job.h"

#define EARLY (-2) /* the submission has early predictions of epoch 7 */

/* A run of so many folds with ten test rows, as it stands when all work is done. */
typedef struct ending {
    const char *what;
    stk_status came_to; /* of the folds */
    int folds, folds_done;
    bool cut, unpredicted;
    int models;            /* whose votes the submission has; -1: it does not exist, or EARLY */
    const char *fold_said; /* stop reason of the last fold; NULL: none was begun, or it was left */
    bool asked_to_stop;
    const char *status, *stop_reason;
} ending;

static const ending endings[] = {
    {"all epochs", STK_OK, 1, 1, false, false, 1, "epochs", false, "complete", "epochs"},
    {"patience", STK_OK, 1, 1, false, false, 1, "patience", false, "complete", "patience"},
    {"a budget filled with epochs", STK_OK, 1, 1, false, false, 1, "budget", false, "complete",
     "budget"},
    {"a budget that cuts epochs", STK_OK, 1, 1, true, false, 1, "budget", false, "partial",
     "budget"},
    {"a budget that cuts folds", STK_OK, 5, 3, true, false, 3, NULL, false, "partial", "budget"},
    {"a signal in training", STK_OK, 1, 1, true, false, 1, "signal", true, "partial", "signal"},
    {"a signal between folds", STK_OK, 5, 2, true, false, 2, NULL, true, "partial", "signal"},
    {"a signal after everything", STK_OK, 1, 1, false, false, 1, "epochs", true, "complete",
     "epochs"},
    {"a signal while predicting", STK_OK, 1, 1, true, true, 1, "epochs", true, "partial", "signal"},
    {"no time for all rows", STK_OK, 1, 1, true, true, 1, "epochs", false, "partial", "budget"},
    {"no time for all views", STK_OK, 1, 1, true, true, 1, "patience", false, "partial", "budget"},
    {"no time for any row", STK_OK, 1, 1, true, true, 0, "budget", false, "prior", "budget"},
    {"no test image could be read", STK_OK, 1, 1, true, false, 0, "epochs", false, "prior",
     "epochs"},
    {"nothing was trained", STK_OK, 1, 0, true, false, 0, NULL, false, "prior", "budget"},
    {"nothing was trained, a signal", STK_OK, 1, 0, true, false, 0, "signal", true, "prior",
     "signal"},
    {"diverged behind a good epoch", STK_OK, 1, 1, true, false, 1, "error", false, "partial",
     "error"},
    {"diverged, and no time for rows", STK_OK, 1, 1, true, true, 1, "error", false, "partial",
     "error"},
    {"diverged at once", STK_OK, 1, 0, true, false, 0, "error", false, "prior", "error"},
    {"an error", STK_ERR_DEVICE, 1, 0, false, false, 0, NULL, false, "failed", "error"},
    {"an error in the second fold", STK_ERR_STORAGE, 2, 1, false, false, 1, "epochs", false,
     "failed", "error"},
    {"nothing to deliver", STK_OK, 1, 0, true, false, -1, NULL, false, "failed", "budget"},
    {"no time for any row, but early", STK_OK, 1, 1, true, true, EARLY, "budget", false, "partial",
     "budget"},
    {"nothing is cut, but early", STK_OK, 1, 1, false, false, EARLY, "epochs", false, "partial",
     "epochs"},
    {"below priors in the end, but early", STK_OK, 1, 0, true, false, EARLY, "budget", false,
     "partial", "budget"},
    {"an error, but early", STK_ERR_DEVICE, 1, 0, false, false, EARLY, NULL, false, "failed",
     "error"},
};

static void every_ending_is_told_truthfully(void) {
    stk_options *options = NULL;
    stk_error err = {0};
    REQUIRE_OK(stk_options_for_train(&options, &err), &err);
    for (size_t i = 0; i < sizeof endings / sizeof *endings; i++) {
        const ending *e = &endings[i];
        bool early = e->models == EARLY;
        bool submitted = early || e->models >= 0;
        stk_stop stop = {0};
        stk_job job = {.options = options,
                       .recipe = {.folds = e->folds},
                       .tally = {.folds_done = e->folds_done, .cut = e->cut},
                       .out = {.unpredicted = e->unpredicted,
                               .models = early           ? 1
                                         : e->models > 0 ? e->models
                                                         : 0,
                               .early_epoch = early ? 7 : 0,
                               .submitted = submitted},
                       .time = {.total_steps = 100, .plan = {.reserve_s = 7}}};
        job.clock = (stk_run_clock){
            .start_ns = stk_clock_ns() - INT64_C(40000000000), .budget_s = 50, .stop = &stop};
        job.out.ensemble.rows = submitted ? 10 : 0;
        job.out.ensemble.models = early ? 0 : job.out.models;
        job.tally.stop_reason = e->fold_said;
        if (e->asked_to_stop) {
            stk_stop_request(&stop, STK_STOP_SOON, 10);
        }
        stk_job_finish_summary(&job, e->came_to);
        if (strcmp(job.out.summary.status, e->status) != 0 ||
            strcmp(job.out.summary.stop_reason, e->stop_reason) != 0) {
            CHECK_FAIL("%s: %s by %s, expected %s by %s", e->what, job.out.summary.status,
                       job.out.summary.stop_reason, e->status, e->stop_reason);
        }
        CHECK_INT(job.out.summary.folds_done, e->folds_done);
        CHECK_INT(job.out.summary.folds_planned, e->folds);
        CHECK_NEAR(job.out.summary.budget_s, 50, 1e-9);
        CHECK_NEAR(job.out.summary.reserve_s, 7, 1e-9);
        CHECK(job.out.summary.used_s >= 40 && job.out.summary.used_s < 400);
        CHECK((job.out.summary.submission != NULL) == submitted);
    }
    stk_options_free(options);
}

/* What earlier processes used and were allowed counts; before any plan the reserve is 15 %. */
static void times_of_a_resumed_run(void) {
    stk_options *options = NULL;
    stk_error err = {0};
    REQUIRE_OK(stk_options_for_train(&options, &err), &err);
    stk_job job = {.options = options, .recipe = {.folds = 1}, .time = {.total_steps = -1}};
    job.clock = (stk_run_clock){.start_ns = stk_clock_ns(), .budget_s = 100};
    job.resume.used_s = 30;
    stk_job_finish_summary(&job, STK_OK);
    CHECK_NEAR(job.out.summary.budget_s, 130, 1e-9);
    CHECK_NEAR(job.out.summary.reserve_s, 15, 1e-9);
    CHECK(job.out.summary.used_s >= 30 && job.out.summary.used_s < 300);
    job.clock.budget_s = NAN;
    stk_job_finish_summary(&job, STK_OK);
    CHECK(isnan(job.out.summary.budget_s) && isnan(job.out.summary.reserve_s));
    stk_options_free(options);
}

/* The submission of earlier processes has the votes of their folds, unless nothing can be read. */
static void votes_of_a_resumed_run(void) {
    stk_options *options = NULL;
    stk_error err = {0};
    REQUIRE_OK(stk_options_for_train(&options, &err), &err);
    stk_job job = {.options = options,
                   .recipe = {.folds = 2},
                   .tally = {.folds_done = 2, .cut = true},
                   .out = {.submitted = true}};
    job.clock = (stk_run_clock){.start_ns = stk_clock_ns(), .budget_s = NAN};
    job.out.ensemble.rows = 10;
    job.resume.state.folds_done = 1;
    stk_job_finish_summary(&job, STK_OK);
    CHECK_STR(job.out.summary.status, "partial");
    job.out.unread = true;
    stk_job_finish_summary(&job, STK_OK);
    CHECK_STR(job.out.summary.status, "prior");
    job.out.models = 1;
    stk_job_finish_summary(&job, STK_OK);
    CHECK_STR(job.out.summary.status, "partial");
    stk_options_free(options);
}

/* What made the rows says how, early predictions of weights that never came to their end, too. */
static void the_pool_is_that_of_the_rows(void) {
    stk_options *options = NULL;
    stk_error err = {0};
    bool have[] = {true, true};
    stk_dataset dataset = {.row_count = 1, .test = {.count = 2}, .task = STK_TASK_SINGLE};
    REQUIRE_OK(stk_options_for_train(&options, &err), &err);
    stk_job job = {.options = options, .recipe = {.folds = 1}, .dataset = &dataset};
    job.clock = (stk_run_clock){.start_ns = stk_clock_ns(), .budget_s = NAN};
    job.recipe.train.pool = STK_POOL_AUTO;
    stk_job_finish_summary(&job, STK_OK);
    CHECK_STR(job.out.summary.pool, "mean"); /* class priors */
    job.out.early_epoch = 3;
    job.out.ensemble.early_have = have;
    job.out.ensemble.early_calibration.pool = STK_POOL_MAX;
    stk_job_finish_summary(&job, STK_OK);
    CHECK_STR(job.out.summary.pool, "max");
    job.out.ensemble.models = 1;
    stk_job_finish_summary(&job, STK_OK);
    CHECK_STR(job.out.summary.pool, "mean");
    stk_options_free(options);
}

/* Where the training pictures have rows, rows were rated. */
static void what_was_held_out_is_counted(void) {
    static const struct {
        bool rows;
        size_t scored;
        const char *from;
    } cases[] = {{true, 100, "validation of 100 rows"},
                 {true, 0, "validation"}, /* an earlier process knew */
                 {false, 1, "validation of 1 picture"}};
    stk_options *options = NULL;
    stk_error err = {0};
    REQUIRE_OK(stk_options_for_train(&options, &err), &err);
    for (size_t i = 0; i < STK_COUNT(cases); i++) {
        stk_dataset dataset = {.task = STK_TASK_SINGLE, .train_has_rows = cases[i].rows};
        stk_job job = {.options = options,
                       .recipe = {.folds = 1},
                       .dataset = &dataset,
                       .tally = {.folds_done = 1, .best_metric = 0.5, .stop_reason = "epochs"},
                       .out = {.val_scored = cases[i].scored}};
        job.clock = (stk_run_clock){.start_ns = stk_clock_ns(), .budget_s = NAN};
        stk_job_finish_summary(&job, STK_OK);
        CHECK_STR(job.out.summary.held_out_from, cases[i].from);
        CHECK_NEAR(job.out.summary.held_out, 0.5, 0);
    }
    stk_options_free(options);
}

/* Of folds of which only some took class means: what means gain, and what temperatures gain. */
static void gains_of_all_models_count(void) {
    stk_error err = {0};
    stk_calibration tempered = {.temperature = 2, .plain_loss = 0.9, .loss = 0.7};
    stk_calibration joined = {
        .temperature = 2, .plain_loss = 0.9, .loss = 0.6, .means = 1, .means_gain = -0.4};
    stk_job job = {.recipe = {.folds = 3}};
    job.recipe.train.metric = STK_METRIC_LOGLOSS;
    CHECK_NEAR(stk_job_held_out(&job, 1), 1, 0);
    REQUIRE_OK(stk_calibration_mean_open(&job.out.validated, 2, &err), &err);
    stk_job_add_validated(&job, &tempered);
    stk_job_add_validated(&job, &joined);
    stk_job_add_validated(&job, &(stk_calibration){0});
    CHECK_NEAR(stk_job_held_out(&job, 1), 1 - (0.2 + 0.4) / 3, 1e-12);
    stk_calibration_mean_free(&job.out.validated);
    job.out.gain = 0;
    job.recipe.train.metric = STK_METRIC_MAPK; /* no temperature changes it */
    joined.means_gain = 0.25;
    REQUIRE_OK(stk_calibration_mean_open(&job.out.validated, 2, &err), &err);
    stk_job_add_validated(&job, &tempered);
    stk_job_add_validated(&job, &joined);
    CHECK_NEAR(stk_job_held_out(&job, 0.5), 0.5 + 0.25 / 2, 1e-12);
    stk_calibration_mean_free(&job.out.validated);
}

static void keep_warning(void *user, const char *text) {
    snprintf(user, 128, "%s", text);
}

/* A fold is named by its number from 1, and only where there are several. */
static void a_validation_table_without_time_is_told(void) {
    char told[128] = "";
    stk_observer observer = {.user = told, .warning = keep_warning};
    stk_job job = {.recipe = {.folds = 3}, .tally = {.fold = 1}};
    job.events = (stk_events){.observers = {&observer}, .count = 1};
    job.clock = (stk_run_clock){.start_ns = stk_clock_ns(), .budget_s = 0};
    job.out.val.owed = true;
    stk_job_write_validation(&job, false);
    CHECK_STR(told, "");
    stk_job_write_validation(&job, true);
    CHECK_STR(told, "there was no time to write validation.csv with the best epoch of fold 2");
    job.recipe.folds = 1;
    job.tally.fold = 0;
    job.out.val.owed = true;
    stk_job_write_validation(&job, true);
    CHECK_STR(told, "there was no time to write validation.csv with the best epoch");
}

static const check_test tests[] = {
    TEST(every_ending_is_told_truthfully),
    TEST(times_of_a_resumed_run),
    TEST(votes_of_a_resumed_run),
    TEST(the_pool_is_that_of_the_rows),
    TEST(what_was_held_out_is_counted),
    TEST(gains_of_all_models_count),
    TEST(a_validation_table_without_time_is_told),
};

CHECK_MAIN(tests)
