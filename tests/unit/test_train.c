/* test_train.c - every turn that the loop of one fold can take, on a scripted backend. */
#include "check.h"
#include "train_fold.h"

#include <time.h>

#include "base/clock.h"

static void hooks_are_called_in_order(void) {
    fold f;
    open_fold(&f, plain_graph(), 1, true);
    script.wrong[0] = 4;
    script.wrong[1] = 2;
    script.wrong[2] = 5; /* worse than by chance */
    CHECK_INT(run_fold(&f), STK_OK);
    CHECK_STR(script.story, "psSpsSvEC"
                            "psSpsSvEC"
                            "psSpsSvEc"
                            "o");
    CHECK_INT(f.result.epochs_done, 3);
    CHECK(f.result.has_best && !f.result.diverged && !f.result.ran_out_of_patience);
    CHECK_INT(f.result.best.epoch, 2);
    CHECK_NEAR(f.result.best_metric, 75, 1e-9);
    CHECK_NEAR(f.result.images, 48, 0);
    CHECK_INT(f.epochs, 3);
    CHECK_INT(f.epoch[0].fold, 2);
    CHECK_INT(f.epoch[0].epoch, 1);
    CHECK_INT(f.epoch[2].epochs, 3);
    CHECK_NEAR(f.epoch[0].val_acc1, 50, 1e-9);
    CHECK_NEAR(f.epoch[0].val_acc5, 100, 1e-9);
    CHECK_NEAR(f.epoch[0].train_loss, 1, 1e-9);
    CHECK_NEAR(f.epoch[0].train_acc1, 50, 1e-9);
    CHECK(f.epoch[0].best && f.epoch[1].best && !f.epoch[2].best);
    CHECK(f.epoch[0].wait_fraction >= 0 && f.epoch[0].wait_fraction <= 1.0001);
    CHECK_INT(f.step.step, 2);
    CHECK_INT(f.step.steps, 2);
    CHECK_INT(f.step.epoch, 3);
    CHECK(!isnan(f.last_progress.step_s) && !isnan(f.last_progress.val_s));
    CHECK(f.last_progress.val_even_s > 0);
    close_fold(&f);
}

static void improved(void *user, const stk_train_standing *standing, stk_exec *exec) {
    static const struct timespec while_s = {.tv_nsec = 200000000};
    const fold *f = user;
    CHECK(exec != NULL && standing->val_s > 0);
    CHECK_INT(standing->steps_done, 2 * f->epochs);
    tell('I');
    nanosleep(&while_s, NULL);
}

/* It is called with the best weights, if training goes on; what it takes is no time of steps. */
static void best_weights_can_be_used_at_once(void) {
    fold f;
    open_fold(&f, plain_graph(), 1, true);
    script.wrong[0] = 4;
    script.wrong[1] = 7; /* worse */
    script.wrong[2] = 2;
    script.wrong[3] = 1;
    f.total = 8;
    f.config.hooks.improved = improved;
    CHECK_INT(run_fold(&f), STK_OK);
    CHECK_STR(script.story, "psSpsSvECI"
                            "psSpsSvEc"
                            "psSpsSvECI"
                            "psSpsSvEC" /* the last epoch */
                            "o");
    CHECK(f.result.times.validate_s >= 0.4);
    CHECK(f.last_progress.step_s < 0.2 && f.last_progress.val_s < 0.2);
    close_fold(&f);
    open_fold(&f, plain_graph(), 1, true);
    f.config.hooks.improved = improved;
    f.config.val_data.count = 0; /* nothing is compiled that could predict */
    CHECK_INT(run_fold(&f), STK_OK);
    CHECK(strchr(script.story, 'I') == NULL);
    close_fold(&f);
}

static void pace_ends_in_the_middle_of_an_epoch(void) {
    fold f;
    open_fold(&f, plain_graph(), 1, true);
    f.total = 3;
    CHECK_INT(run_fold(&f), STK_OK);
    CHECK_INT(script.step_count, 3);
    CHECK_INT(f.result.epochs_done, 2); /* the part counts and is validated */
    CHECK_INT(script.infers, 2);
    close_fold(&f);
}

/* Epochs have two steps. Behind two whole ones there is time for one and a half more. */
static void training_goes_on_where_there_is_time(void) {
    fold f;
    open_fold(&f, plain_graph(), 1, true);
    f.options.schedule = STK_SCHEDULE_LINEAR;
    f.total = 4;
    f.more = 7;
    CHECK_INT(run_fold(&f), STK_OK);
    CHECK_INT(script.step_count, 7);
    CHECK_INT(f.result.epochs_done, 4);
    CHECK_INT(f.epochs, 4);
    CHECK_INT(f.over_progress.epoch, 4);
    CHECK_INT(f.over_progress.step, 1);
    CHECK_INT(f.over_progress.validations, 4);
    /* The rate is that of a training of seven steps from there on. */
    CHECK_NEAR(script.steps[3].lr, 0.1 * (1 - 3 / 4.0), 1e-8);
    for (int i = 4; i < 7; i++) {
        CHECK_NEAR(script.steps[i].lr, 0.1 * (1 - i / 7.0), 1e-8);
    }
    close_fold(&f);
}

/* An epoch whose end was not planned is finished, and counts once. */
static void training_goes_on_within_an_epoch(void) {
    fold f;
    open_fold(&f, plain_graph(), 1, true);
    f.total = 3;
    f.more = 4;
    CHECK_INT(run_fold(&f), STK_OK);
    CHECK_INT(script.step_count, 4);
    CHECK_INT(script.infers, 3);
    CHECK_INT(f.result.epochs_done, 2);
    CHECK_INT(f.epochs, 3); /* it was told twice */
    CHECK_INT(f.epoch[1].epoch, 2);
    CHECK_INT(f.epoch[2].epoch, 2);
    CHECK(f.epoch[2].seconds > f.epoch[1].seconds);
    CHECK_NEAR(f.result.images, 32, 0);
    CHECK_INT(f.step.step, 2);
    CHECK_INT(f.over_progress.epoch, 3);
    close_fold(&f);
}

/* The second epoch is judged in its middle and at its end: for patience it is one. */
static void an_epoch_in_two_parts_counts_once_for_patience(void) {
    fold f;
    open_fold(&f, plain_graph(), 1, true);
    script.wrong[1] = script.wrong[2] = script.wrong[3] = 4;
    f.options.patience = 2;
    f.total = 3;
    f.more = 40;
    CHECK_INT(run_fold(&f), STK_OK);
    CHECK_INT(f.epochs, 4); /* the second was told twice */
    CHECK_INT(f.result.epochs_done, 3);
    CHECK(f.result.ran_out_of_patience);
    close_fold(&f);

    /* A part of an epoch is no reason to give up what is left of it. */
    open_fold(&f, plain_graph(), 1, true);
    script.wrong[1] = 4;
    script.wrong[3] = 4;
    f.options.patience = 1;
    f.total = 3;
    f.more = 6;
    CHECK_INT(run_fold(&f), STK_OK);
    CHECK_INT(f.result.epochs_done, 2);
    CHECK_INT(f.epochs, 3);
    CHECK(f.result.ran_out_of_patience); /* its end is not better than the first either */
    close_fold(&f);

    /* The best of an epoch may be in its middle. */
    open_fold(&f, plain_graph(), 1, true);
    script.wrong[0] = script.wrong[2] = 4;
    f.options.patience = 1;
    f.total = 3;
    f.more = 4;
    CHECK_INT(run_fold(&f), STK_OK);
    CHECK_INT(f.result.best.epoch, 2);
    CHECK(!f.result.ran_out_of_patience);
    close_fold(&f);
}

/* A hook that has time for more and then has not is not asked for ever. */
static void going_on_for_nothing_ends_it(void) {
    fold f;
    open_fold(&f, plain_graph(), 1, true);
    f.total = 3;
    f.more = 4;
    f.change_at = 3;
    f.changed = 3;
    CHECK_INT(run_fold(&f), STK_OK);
    CHECK_INT(script.step_count, 3);
    CHECK_INT(script.infers, 2); /* and nothing is validated again */
    CHECK_INT(f.result.epochs_done, 2);
    close_fold(&f);
}

static void nothing_is_measured_before_the_first_step(void) {
    fold f;
    open_fold(&f, plain_graph(), 1, true);
    f.stop_at = 0;
    CHECK_INT(run_fold(&f), STK_OK);
    CHECK(isnan(f.last_progress.step_s) && isnan(f.last_progress.wait_s));
    CHECK(isnan(f.last_progress.val_s) && isnan(f.last_progress.val_even_s));
    close_fold(&f);
}

static void stop_ends_at_once(void) {
    fold f;
    open_fold(&f, plain_graph(), 1, true);
    f.stop_at = 0;
    CHECK_INT(run_fold(&f), STK_OK);
    CHECK_STR(script.story, "p");
    CHECK_INT(f.result.epochs_done, 0);
    CHECK(!f.result.has_best && isnan(f.result.best_metric));
    close_fold(&f);

    open_fold(&f, plain_graph(), 1, true);
    f.stop_at = 3;
    f.total = 100;
    CHECK_INT(run_fold(&f), STK_OK);
    CHECK_INT(script.step_count, 3);
    CHECK_STR(script.story, "psSpsSvECpsSpvEC"); /* what was trained is validated and saved */
    close_fold(&f);
}

/* The first and the last epoch are validated, and the third after each; so is one that is stopped
 * in. */
static void epochs_are_passed_over(void) {
    fold f;
    open_fold(&f, plain_graph(), 1, true);
    f.validate_every = 3;
    f.total = 14;
    CHECK_INT(run_fold(&f), STK_OK);
    CHECK_STR(script.story, "psSpsSvEC"
                            "psSpsSpE"
                            "psSpsSpE"
                            "psSpsSvEC"
                            "psSpsSpE"
                            "psSpsSpE"
                            "psSpsSvEC"
                            "o");
    CHECK_INT(f.result.epochs_done, 7);
    CHECK_INT(f.result.best.epoch, 7);
    CHECK(isnan(f.epoch[1].val_loss) && isnan(f.epoch[1].val_acc1) && !f.epoch[1].best);
    CHECK_NEAR(f.epoch[1].train_loss, 1, 1e-9);
    CHECK(!isnan(f.epoch[3].val_loss));
    close_fold(&f);

    open_fold(&f, plain_graph(), 1, true);
    f.validate_every = 5;
    f.total = 100;
    f.stop_at = 7;
    CHECK_INT(run_fold(&f), STK_OK);
    CHECK_STR(script.story, "psSpsSvEC"
                            "psSpsSpE"
                            "psSpsSpE"
                            "psSpvEC");
    close_fold(&f);

    open_fold(&f, plain_graph(), 1, true);
    f.validate_every = 5;
    f.total = 100;
    f.stop_at = 6; /* the end of an epoch that would have been passed over */
    CHECK_INT(run_fold(&f), STK_OK);
    CHECK_STR(script.story, "psSpsSvEC"
                            "psSpsSpE"
                            "psSpsSpvEC"
                            "p");
    CHECK_INT(f.result.best.epoch, 3);
    close_fold(&f);
}

static int compiled[16];
static int compiled_count;

/* Notes the size of the pictures that a network is compiled for; negative: for validation. */
static stk_status note_compile(stk_exec **exec, stk_state *state, const stk_compile_config *config,
                               stk_error *err) {
    int size = config->graph != NULL ? config->graph->img_size : SIZE;
    if (compiled_count < 16) {
        compiled[compiled_count++] = config->train ? size : -size;
    }
    return stk_cpu_backend.compile(exec, state, config, err);
}

/* The first half of the schedule has small pictures; the first epoch with others is validated. */
static void small_pictures_come_first(void) {
    fold f;
    open_fold(&f, norm_graph(), 1, true);
    stk_graph *small = norm_graph_of(SIZE - 4);
    stk_graph *small_val = norm_graph_of(SIZE - 2);
    compiled_count = 0;
    f.scripted.compile = note_compile;
    f.config.small_graph = small;
    f.config.small_val_graph = small_val;
    f.validate_every = 4;
    f.total = 12;
    CHECK_INT(run_fold(&f), STK_OK);
    CHECK_INT(compiled_count, 4);
    static const int expected[] = {-(SIZE - 2), SIZE - 4, -SIZE, SIZE};
    for (int i = 0; i < compiled_count; i++) {
        CHECK_INT(compiled[i], expected[i]);
    }
    CHECK_STR(script.story, "psSpsSvEC"
                            "psSpsSpE"
                            "psSpsSpE"
                            "ppsSpsSvEC" /* the fourth is the first of the usual size */
                            "psSpsSpE"
                            "psSpsSvEC"
                            "o");
    CHECK_CONTAINS(f.decision, "pictures of 16 px: ");
    CHECK(!f.result.small && !f.result.best_small);
    close_fold(&f);
    open_fold(&f, norm_graph(), 1, true);
    f.config.small_graph = small;
    f.config.small_val_graph = small_val;
    f.total = 2; /* one epoch: it is over before anything could change */
    CHECK_INT(run_fold(&f), STK_OK);
    CHECK(f.result.small && f.result.best_small);
    close_fold(&f);
    stk_graph_free(small);
    stk_graph_free(small_val);
}

#define SLOW_STEP_S 0.005

static stk_status slow_step(stk_exec *exec, const stk_step_input *input, stk_step_output *output,
                            stk_error *err) {
    struct timespec pause = {.tv_nsec = (long)(SLOW_STEP_S * STK_NS_PER_S)};
    nanosleep(&pause, NULL);
    return scripted_step(exec, input, output, err);
}

static stk_train_standing asked[32];
static int asked_count;

static stk_train_orders note_standing(void *user, const stk_train_standing *standing) {
    if (asked_count < 32) {
        asked[asked_count++] = *standing;
    }
    return pace(user, standing);
}

/* While only the head learns, the plan is told what a step of all layers will take. */
static void frozen_steps_are_expected_to_become_slower(void) {
    fold f;
    open_fold(&f, plain_graph(), 1, true);
    asked_count = 0;
    f.scripted.step = slow_step;
    f.config.hooks.pace = note_standing;
    f.options.freeze_epochs = 2; /* of three, with two steps each */
    CHECK_INT(run_fold(&f), STK_OK);
    int frozen = 0;
    int thawed = 0;
    for (int i = 0; i < asked_count; i++) {
        const stk_train_standing *s = &asked[i];
        CHECK_INT(s->frozen_left, s->steps_done < 4 ? 4 - s->steps_done : 0);
        if (!isnan(s->step_s)) { /* no more than a third of it is the head's own */
            CHECK(s->step_s >= SLOW_STEP_S / STK_FROZEN_PART);
            CHECK(s->expected);
            frozen += s->frozen_left > 0;
            thawed += s->frozen_left == 0;
        }
    }
    CHECK(frozen > 0 && thawed > 0);
    close_fold(&f);
}

/* Without a validation set the same epochs are saved. */
static void epochs_are_not_saved(void) {
    fold f;
    open_fold(&f, plain_graph(), 1, true);
    f.config.val_data.count = 0;
    f.validate_every = 3;
    f.total = 10;
    CHECK_INT(run_fold(&f), STK_OK);
    CHECK_STR(script.story, "psSpsSEC"
                            "psSpsSpE"
                            "psSpsSpE"
                            "psSpsSEC"
                            "psSpsSEC"
                            "o");
    CHECK_INT(f.result.best.epoch, 5);
    close_fold(&f);
}

static void no_steps_at_all(void) {
    fold f;
    open_fold(&f, plain_graph(), 1, true);
    f.total = 0;
    CHECK_INT(run_fold(&f), STK_OK);
    CHECK_INT(script.step_count, 0);
    CHECK(!f.result.has_best);
    close_fold(&f);
}

static void patience_stops(void) {
    static const int wrong[] = {4, 2, 2, 3, 0, 0};
    fold f;
    open_fold(&f, plain_graph(), 1, true);
    memcpy(script.wrong, wrong, sizeof wrong);
    f.options.patience = 2;
    f.total = 100;
    CHECK_INT(run_fold(&f), STK_OK);
    CHECK(f.result.ran_out_of_patience);
    CHECK_INT(f.result.epochs_done, 4); /* the third is not better than the second: no more loss */
    CHECK_INT(f.result.best.epoch, 4);  /* it is as good within the noise of eight pictures */
    close_fold(&f);
}

/* Within the noise of the highest metric the latest epoch is the best; it does not drift away. */
static void the_latest_of_equals_is_best(void) {
    static const struct {
        stk_schedule schedule;
        int wrong[4];
        int best;
    } cases[] = {
        {STK_SCHEDULE_COSINE, {4, 3, 3, 3}, 4},   {STK_SCHEDULE_LINEAR, {3, 2, 3, 3}, 4},
        {STK_SCHEDULE_COSINE, {4, 0, 1, 1}, 2}, /* of eight right none is noise */
        {STK_SCHEDULE_COSINE, {1, 1, 2, 3}, 2}, /* 2 of 8 is more than the noise of 1 of 8 */
        {STK_SCHEDULE_COSINE, {4, 2, 3, 4}, 3}, /* and 4 is too far from the highest */
        {STK_SCHEDULE_CONSTANT, {4, 2, 3, 3}, 2}, {STK_SCHEDULE_CONSTANT, {4, 3, 3, 3}, 2},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        fold f;
        open_fold(&f, plain_graph(), 1, true);
        memcpy(script.wrong, cases[i].wrong, sizeof cases[i].wrong);
        f.options.schedule = cases[i].schedule;
        f.total = 8;
        CHECK_INT(run_fold(&f), STK_OK);
        if (f.result.best.epoch != cases[i].best) {
            CHECK_FAIL("case %zu: epoch %d is the best", i, f.result.best.epoch);
        }
        close_fold(&f);
    }
}

static void best_by_loss(void) {
    static const int wrong[] = {5, 1, 3};
    fold f;
    open_fold(&f, plain_graph(), 1, true);
    memcpy(script.wrong, wrong, sizeof wrong);
    f.options.metric = STK_METRIC_LOGLOSS;
    CHECK_INT(run_fold(&f), STK_OK);
    CHECK_INT(f.result.best.epoch, 2);
    CHECK_NEAR(f.result.best_metric, f.epoch[1].val_loss, 1e-12);
    close_fold(&f);
}

/* An AUC over one class does not exist: the loss picks. */
static void best_without_a_metric(void) {
    static const int wrong[] = {1, 0, 1};
    fold f;
    open_fold(&f, plain_graph(), 1, true);
    memcpy(script.wrong, wrong, sizeof wrong);
    f.options.metric = STK_METRIC_AUC;
    f.config.val_data.count = 1;
    CHECK_INT(run_fold(&f), STK_OK);
    CHECK(isnan(f.result.best_metric));
    CHECK_INT(f.result.best.epoch, 2);
    CHECK(f.epoch[0].best && f.epoch[1].best && !f.epoch[2].best);
    close_fold(&f);
}

static void without_validation_the_last_is_best(void) {
    fold f;
    open_fold(&f, plain_graph(), 1, true);
    f.config.val_data.count = 0;
    f.options.patience = 1;
    CHECK_INT(run_fold(&f), STK_OK);
    CHECK_INT(f.result.epochs_done, 3);
    CHECK_INT(f.result.best.epoch, 3);
    CHECK(isnan(f.result.best_metric) && isnan(f.epoch[0].val_loss) && isnan(f.epoch[0].val_acc1));
    CHECK_INT(script.infers, 0);
    close_fold(&f);
}

static void loss_that_is_no_number_ends_it(void) {
    fold f;
    open_fold(&f, plain_graph(), 1, true);
    script.broken_step = 5;
    f.total = 100;
    CHECK_INT(run_fold(&f), STK_OK);
    CHECK(f.result.diverged);
    CHECK_INT(script.step_count, 6);
    CHECK_INT(f.result.epochs_done, 2);
    CHECK_STR(script.story, "psSpsSvECpsSpsSvECpsSps");
    close_fold(&f);
}

/* The last step of an epoch may break the weights: only the validation shows it. */
static void validation_that_is_no_number_ends_it(void) {
    for (int validation = 0; validation < 2; validation++) {
        fold f;
        open_fold(&f, plain_graph(), 1, true);
        script.broken_infer = validation;
        f.total = 100;
        CHECK_INT(run_fold(&f), STK_OK);
        CHECK(f.result.diverged);
        CHECK_INT(f.result.epochs_done, validation);
        CHECK_INT(f.result.has_best, validation == 1);
        CHECK_STR(script.story, validation == 0 ? "psSpsSv" : "psSpsSvECpsSpsSv");
        close_fold(&f);
    }
}

static bool always(void *user) {
    (void)user;
    return true;
}

/* A quarter of its images is enough, unless it is too late for anything: the newer weights count
 * unless these speak against them. Before the first best weights any image is enough. */
static void halted_validation_counts(void) {
    static const struct {
        int infers;
        bool too_late;
        int wrong; /* of the first two images of the second validation; in the first one none */
        int epochs, best;
    } cases[] = {{4, false, 0, 1, 1}, {4, true, 0, 1, 1},  {5, false, 0, 2, 2}, {5, false, 1, 2, 2},
                 {5, false, 2, 2, 1}, {6, false, 0, 2, 2}, {6, false, 2, 2, 1}, {6, true, 0, 1, 1},
                 {7, false, 0, 2, 2}, {1, false, 0, 1, 1}};
    fold f;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        open_fold(&f, plain_graph(), 1, true);
        f.config.val_compile.batch = 2; /* four inferences */
        f.config.val_data.halt.asked = cases[i].too_late ? always : NULL;
        f.halt_after = true;
        f.halt_infers = cases[i].infers;
        f.total = cases[i].infers < 4 ? 2 : 4;
        script.wrong[4] = cases[i].wrong;
        CHECK_INT(run_fold(&f), STK_OK);
        CHECK_INT(script.infers, cases[i].infers);
        CHECK_INT(f.val_seen, 2 * (cases[i].infers % 4));
        CHECK_INT(f.result.epochs_done, cases[i].epochs);
        CHECK_INT(f.epochs, cases[i].epochs);
        CHECK_INT(f.result.best.epoch, cases[i].best);
        double lost = cases[i].best == 2 ? 100.0 * cases[i].wrong / (double)f.val_seen : 0;
        CHECK_NEAR(f.result.rated_acc1, f.epoch[0].val_acc1 - lost, 1e-9);
        CHECK_INT(f.decisions, !cases[i].too_late);
        if (cases[i].epochs == 1 && cases[i].infers == 4 && !cases[i].too_late) {
            CHECK_CONTAINS(f.decision, "epoch 2 is not used");
        }
        if (cases[i].epochs == 2) {
            char expected[64];
            snprintf(expected, sizeof expected, "validated with %d of 8 images",
                     2 * (cases[i].infers - 4));
            CHECK_CONTAINS(f.decision, expected);
            CHECK(isfinite(f.epoch[1].val_loss) && f.last_progress.val_s > 0);
        }
        close_fold(&f);
    }

    open_fold(&f, plain_graph(), 1, true);
    f.halt_after = true;
    f.halt_infers = 1; /* asked for when everything was evaluated already */
    f.total = 2;
    CHECK_INT(run_fold(&f), STK_OK);
    CHECK_INT(f.result.epochs_done, 1);
    CHECK(f.result.has_best);
    close_fold(&f);
}

static void errors_come_back(void) {
    fold f;
    open_fold(&f, plain_graph(), 1, true);
    script.fail_step = 3;
    CHECK_INT(run_fold(&f), STK_ERR_DEVICE);
    CHECK_INT(f.epochs, 1);
    CHECK(!f.result.validating);
    close_fold(&f);

    open_fold(&f, plain_graph(), 1, true);
    script.fail_infer = 1;
    CHECK_INT(run_fold(&f), STK_ERR_MEMORY);
    CHECK_INT(f.epochs, 1);
    CHECK(f.result.validating);
    close_fold(&f);

    open_fold(&f, plain_graph(), 1, true);
    f.fail_checkpoint = 2;
    CHECK_INT(run_fold(&f), STK_ERR_STORAGE);
    CHECK_INT(script.step_count, 4);
    close_fold(&f);

    open_fold(&f, plain_graph(), 1, true);
    stk_error err = {0};
    char *empty = stk_path_join(check_folder(), "empty");
    REQUIRE_OK(stk_dir_make(empty, &err), &err);
    REQUIRE_OK(stk_store_open(&f.config.train_data.store, empty, NULL, NULL, &err), &err);
    CHECK_INT(run_fold(&f), STK_ERR_DATA); /* none of the pictures can be read */
    CHECK_INT(f.bad_train, TRAIN);
    stk_store_close(f.config.train_data.store);
    stk_mem_free(empty);
    close_fold(&f);
}

static void bad_images_are_told_with_their_split(void) {
    fold f;
    open_fold(&f, plain_graph(), 1, true);
    stk_sample samples[TRAIN + VAL];
    memcpy(samples, f.pictures.samples, sizeof samples);
    samples[3].path = samples[TRAIN + 1].path = "text.jpg";
    f.config.train_data.samples = f.config.val_data.samples = samples;
    f.total = 2;
    CHECK_INT(run_fold(&f), STK_OK);
    CHECK_INT(f.bad_train, 1);
    CHECK_INT(f.bad_val, 1);
    CHECK_INT(f.result.has_best, true);
    close_fold(&f);
}

/* With no picture to validate on there is no figure, and the last weights are the best. */
static void all_validation_images_bad(void) {
    fold f;
    open_fold(&f, plain_graph(), 1, true);
    stk_sample samples[TRAIN + VAL];
    memcpy(samples, f.pictures.samples, sizeof samples);
    for (size_t i = TRAIN; i < TRAIN + VAL; i++) {
        samples[i].path = "text.jpg";
    }
    f.config.val_data.samples = samples;
    CHECK_INT(run_fold(&f), STK_OK);
    CHECK(!f.result.diverged && f.result.has_best);
    CHECK_INT(f.result.best.epoch, 3);
    close_fold(&f);
}

/* ---- schedule and accumulation inside the loop ---- */

static void check_schedule(const fold *f, int64_t steps) {
    double progress = 0;
    REQUIRE(script.step_count == steps && steps <= 256);
    for (int64_t i = 0; i < steps; i++) {
        int64_t total = f->change_at > 0 && i >= f->change_at ? f->changed : f->total;
        CHECK_NEAR(script.steps[i].lr,
                   0.1 * stk_schedule_factor((stk_schedule)f->options.schedule, f->options.warmup,
                                             progress),
                   1e-7);
        progress += (1 - progress) / (double)(total - i);
    }
    CHECK_NEAR(progress, 1, 1e-9);
}

static void schedule_reaches_its_end(void) {
    static const struct {
        int64_t total, change_at, changed;
    } cases[] = {{40, 0, 0}, {40, 10, 20}, {40, 10, 80}, {200, 5, 12}, {10, 9, 30}, {7, 0, 0}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        fold f;
        open_fold(&f, plain_graph(), 1, true);
        f.config.val_data.count = 0;
        f.options.warmup = 0.1;
        f.options.schedule = (int)i % 3; /* all but the constant one */
        f.total = cases[i].total;
        f.change_at = cases[i].change_at;
        f.changed = cases[i].changed;
        int64_t steps = f.change_at > 0 ? f.changed : f.total;
        CHECK_INT(run_fold(&f), STK_OK);
        check_schedule(&f, steps);
        CHECK(script.steps[steps - 1].lr < 0.1 * (i % 3 == STK_SCHEDULE_LINEAR ? 0.2 : 0.1));
        close_fold(&f);
    }
}

static void weights_move_every_so_many_batches(void) {
    fold f;
    open_fold(&f, plain_graph(), 1, true);
    f.config.train_compile.batch = 3; /* five batches an epoch; the sixteenth picture waits */
    f.options.accumulate = 2;
    f.total = 8;
    CHECK_INT(run_fold(&f), STK_OK);
    static const struct {
        bool keep, update;
        float scale;
    } expected[] = {
        {false, false, 0},  {true, true, 0.5f}, {false, false, 0},
        {true, true, 0.5f}, {false, true, 1}, /* an epoch does not end with half an update */
        {false, false, 0},  {true, true, 0.5f}, {false, true, 1}};
    REQUIRE(script.step_count == 8);
    for (size_t i = 0; i < 8; i++) {
        CHECK_INT(script.steps[i].keep, expected[i].keep);
        CHECK_INT(script.steps[i].update, expected[i].update);
        CHECK_NEAR(script.steps[i].scale, expected[i].scale, 0);
        CHECK_INT(script.steps[i].count, 3);
    }
    close_fold(&f);
}

/* What the options say arrives at every update. */
static void recipe_reaches_the_backend(void) {
    fold f;
    open_fold(&f, plain_graph(), 1, true);
    f.options.optimizer = STK_ADAMW;
    f.options.beta2 = 0.99;
    f.options.weight_decay = 0.25;
    f.options.clip_grad = 3;
    f.options.ema = 0.5;
    f.options.head_lr = 0.4;
    f.options.backbone_lr_scale = 0.25;
    f.options.schedule = STK_SCHEDULE_LINEAR;
    f.options.freeze_epochs = 1; /* two of the six steps */
    CHECK_INT(run_fold(&f), STK_OK);
    REQUIRE(script.step_count == 6);
    for (int i = 0; i < 6; i++) {
        const stk_update *how = &script.steps[i].how;
        double factor = 1 - i / 6.0;
        CHECK_INT(how->kind, STK_ADAMW);
        double rise = i < 2 ? 0 : (i - 1) / 30.0; /* the backbone begins slowly */
        CHECK_NEAR(how->lr, 0.1 * 0.25 * factor * rise, 1e-8);
        CHECK_NEAR(how->head_lr, 0.4 * factor, 1e-7);
        CHECK_NEAR(how->weight_decay, 0.25, 0);
        CHECK_NEAR(how->clip_norm, 3, 0);
        CHECK_NEAR(how->beta2, 0.99, 1e-7);
        CHECK_INT(how->head_updates, i + 1);
        CHECK_INT(how->updates, i < 2 ? 1 : i - 1);
        CHECK_NEAR(how->ema_decay, fmin(0.5, (1.0 + i) / (10.0 + i)), 1e-7);
    }
    CHECK_NEAR(f.step.lr, 0.1 * (1 - 5 / 6.0), 1e-9); /* people are told the rate they gave */
    close_fold(&f);

    open_fold(&f, plain_graph(), 1, true);
    f.options.nesterov = false;
    f.options.schedule = STK_SCHEDULE_CONSTANT;
    CHECK_INT(run_fold(&f), STK_OK);
    for (int i = 0; i < 6; i++) {
        CHECK_INT(script.steps[i].how.kind, STK_SGD);
        CHECK(!script.steps[i].how.nesterov);
        CHECK_NEAR(script.steps[i].how.lr, 0.1, 1e-8);
        CHECK_NEAR(script.steps[i].how.head_lr, 0.1, 1e-8);
    }
    close_fold(&f);
}

static void best_by_the_five_likeliest(void) {
    static const int wrong[] = {0, 4, 0};
    fold f;
    open_fold(&f, plain_graph(), 1, true);
    memcpy(script.wrong, wrong, sizeof wrong);
    f.options.metric = STK_METRIC_ACC5;
    CHECK_INT(run_fold(&f), STK_OK);
    CHECK_NEAR(f.result.best_metric, 100, 1e-9); /* of fewer than five classes all are likely */
    CHECK_INT(f.result.best.epoch, 3);           /* so that the latest is taken */
    close_fold(&f);
}

static void mixing_reaches_the_backend(void) {
    fold f;
    open_fold(&f, plain_graph(), 1, true);
    f.options.mixup = 0.5;
    CHECK_INT(run_fold(&f), STK_OK);
    for (int i = 0; i < script.step_count; i++) {
        CHECK_INT(script.steps[i].mix, STK_MIX_MIXUP);
    }
    close_fold(&f);
}

static const check_test tests[] = {
    TEST(an_epoch_in_two_parts_counts_once_for_patience),
    TEST(hooks_are_called_in_order),
    TEST(best_weights_can_be_used_at_once),
    TEST(pace_ends_in_the_middle_of_an_epoch),
    TEST(training_goes_on_where_there_is_time),
    TEST(training_goes_on_within_an_epoch),
    TEST(going_on_for_nothing_ends_it),
    TEST(nothing_is_measured_before_the_first_step),
    TEST(stop_ends_at_once),
    TEST(epochs_are_passed_over),
    TEST(epochs_are_not_saved),
    TEST(small_pictures_come_first),
    TEST(frozen_steps_are_expected_to_become_slower),
    TEST(no_steps_at_all),
    TEST(patience_stops),
    TEST(the_latest_of_equals_is_best),
    TEST(best_by_loss),
    TEST(best_without_a_metric),
    TEST(without_validation_the_last_is_best),
    TEST(loss_that_is_no_number_ends_it),
    TEST(validation_that_is_no_number_ends_it),
    TEST(halted_validation_counts),
    TEST(errors_come_back),
    TEST(bad_images_are_told_with_their_split),
    TEST(all_validation_images_bad),
    TEST(schedule_reaches_its_end),
    TEST(weights_move_every_so_many_batches),
    TEST(recipe_reaches_the_backend),
    TEST(best_by_the_five_likeliest),
    TEST(mixing_reaches_the_backend),
};

CHECK_MAIN(tests)
