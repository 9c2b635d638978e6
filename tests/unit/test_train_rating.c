/* test_train_rating.c - epochs of several labels, rated with thresholds that are fitted to their
 * validation, on a scripted backend. */
#include "check.h"
#include "train_fold.h"

/* Each picture has two of PICTURE_CLASSES labels: its own class and the next one. */
static bool has_label(int picture, int label) {
    int own = picture % PICTURE_CLASSES;
    return label == own || label == (own + 1) % PICTURE_CLASSES;
}

/* In validation n (from 0) labels that hold have this logit, and others this one. Of the first
 * `confused` pictures it is the other way round. */
static const struct {
    float held;
    float other;
    int confused;
} answers[] = {{1, -1, 2}, {-0.5f, -3, 0}, {1, -1, 2}};

static stk_status infer(stk_exec *exec, const uint8_t *images, const float *features, size_t count,
                        float *logits, stk_error *err) {
    (void)exec;
    (void)images;
    (void)features;
    (void)err;
    int n = script.infers++ % (int)STK_COUNT(answers);
    for (int i = 0; i < (int)count; i++) {
        for (int l = 0; l < PICTURE_CLASSES; l++) {
            bool high = has_label(i, l) == (i >= answers[n].confused);
            logits[i * PICTURE_CLASSES + l] = high ? answers[n].held : answers[n].other;
        }
    }
    return STK_OK;
}

typedef struct rated_fold {
    fold f;
    stk_targets targets;
    stk_outputs outputs;
    stk_calibration calibration;
} rated_fold;

static void open_rated(rated_fold *r) {
    stk_error err = {0};
    memset(r, 0, sizeof *r);
    open_fold(&r->f, plain_graph(), 1, true);
    must(stk_targets_open_labels(&r->targets, PICTURE_CLASSES, TRAIN + VAL, &err), &err);
    for (int i = 0; i < TRAIN + VAL; i++) {
        r->f.pictures.samples[i].record = i;
        for (int l = 0; l < PICTURE_CLASSES; l++) {
            must(has_label(i, l) ? stk_targets_add_label(&r->targets, l, &err) : STK_OK, &err);
        }
        stk_targets_end_record(&r->targets);
    }
    must(stk_targets_finish(&r->targets, &err), &err);
    r->f.graph->loss.kind = STK_LOSS_SIGMOID;
    r->outputs = (stk_outputs){.task = STK_TASK_MULTILABEL, .count = PICTURE_CLASSES};
    r->f.scripted.infer = infer;
    r->f.options.metric = STK_METRIC_MICRO_F1;
    r->f.options.calibrate = true;
    r->f.config.outputs = &r->outputs;
    r->f.config.calibration = &r->calibration;
    r->f.config.stranger = -1;
    r->f.config.train_data.targets = r->f.config.val_data.targets = &r->targets;
}

static void close_rated(rated_fold *r) {
    close_fold(&r->f);
    stk_targets_free(&r->targets);
    stk_calibration_free(&r->calibration);
}

/* The second validation tells the labels apart, but says of none that it holds. */
static void the_best_epoch_is_that_of_the_best_answers(void) {
    rated_fold r;
    open_rated(&r);
    CHECK_INT(run_fold(&r.f), STK_OK);
    CHECK_INT(r.f.result.best.epoch, 2);
    CHECK_NEAR(r.f.result.best_metric, 1, 1e-12);
    CHECK_NEAR(r.f.epoch[1].val_metric, 1, 1e-12); /* which is told */
    CHECK_NEAR(r.f.epoch[1].val_acc1, 0, 1e-12);   /* accuracy is that of the outputs */
    CHECK(r.f.epoch[0].val_metric < 0.8);
    CHECK_INT(r.calibration.rule.kind, STK_LABEL_THRESHOLDS);
    CHECK_NEAR(r.calibration.score, 1, 1e-12);
    for (int i = 1; i < r.calibration.rule.count; i++) {
        CHECK(r.calibration.rule.numbers[i] < 0.5);
    }
    close_rated(&r);
}

/* Where no thresholds help, a row without a label above one half gets its likeliest, and counts. */
static void without_a_rule_no_row_is_empty(void) {
    rated_fold r;
    open_rated(&r);
    r.f.total = 2;
    CHECK_INT(run_fold(&r.f), STK_OK);
    CHECK_NEAR(r.f.epoch[0].val_metric, 12.0 / 16, 1e-12);
    CHECK_NEAR(r.f.epoch[0].val_metric, r.calibration.plain_score, 1e-12);
    close_rated(&r);
}

static void plain_outputs_rate_without_a_calibration(void) {
    rated_fold r;
    open_rated(&r);
    r.f.options.calibrate = false;
    CHECK_INT(run_fold(&r.f), STK_OK);
    CHECK_INT(r.f.result.best.epoch, 3);
    CHECK_NEAR(r.f.epoch[1].val_metric, 0, 1e-12);
    CHECK_INT(r.calibration.rule.count, 0);
    close_rated(&r);
}

/* A run that goes on compares with the score that the best epoch had. */
static void a_resumed_run_keeps_the_better_epoch(void) {
    rated_fold r;
    open_rated(&r);
    const stk_train_position before = {.epoch = 1,
                                       .steps_per_epoch = 2,
                                       .batch = 8,
                                       .accumulate = 1,
                                       .steps_done = 2,
                                       .lr_scale = 1,
                                       .epochs_done = 1,
                                       .has_best = true,
                                       .best = {.epoch = 1, .val_loss = 0.3},
                                       .best_metric = 0.95,
                                       .top_metric = 0.95,
                                       .top_epoch = 1,
                                       .watch = stk_loss_watch_new(PICTURE_CLASSES)};
    r.f.config.resume = &before;
    CHECK_INT(run_fold(&r.f), STK_OK);
    CHECK_INT(r.f.epochs, 2);
    CHECK(!r.f.epoch[0].best && r.f.epoch[1].best);
    CHECK_NEAR(r.f.result.best_metric, 1, 1e-12);
    close_rated(&r);
}

static bool after_two_validations(void *user) {
    (void)user;
    return script.infers >= 2;
}

/* Plain answers say nothing beside those of fitted thresholds: the loss decides. */
static void without_time_for_a_fit_the_loss_decides(void) {
    rated_fold r;
    open_rated(&r);
    r.f.config.val_data.halt = (stk_halt){after_two_validations, NULL};
    r.f.options.schedule = STK_SCHEDULE_COSINE;
    r.f.total = 4;
    CHECK_INT(run_fold(&r.f), STK_OK);
    CHECK(r.f.epoch[1].val_loss < r.f.epoch[0].val_loss);
    CHECK_NEAR(r.f.epoch[1].val_metric, 0, 1e-12);
    CHECK_INT(r.f.result.best.epoch, 2);
    CHECK(r.calibration.pictures > 0); /* the one that was fitted before */
    close_rated(&r);
}

/* Pictures of one class are one row: as many rows as classes are rated. */
static void what_was_rated_is_counted(void) {
    for (int rows = 0; rows < 2; rows++) {
        rated_fold r;
        open_rated(&r);
        for (int i = 0; i < TRAIN + VAL; i++) {
            r.f.pictures.samples[i].row = i % PICTURE_CLASSES + 1;
        }
        r.f.config.by_rows = rows == 1;
        CHECK_INT(run_fold(&r.f), STK_OK);
        CHECK_INT(r.f.result.best_scored, rows == 1 ? PICTURE_CLASSES : VAL);
        close_rated(&r);
    }
}

static const check_test tests[] = {
    TEST(the_best_epoch_is_that_of_the_best_answers), TEST(without_a_rule_no_row_is_empty),
    TEST(plain_outputs_rate_without_a_calibration),   TEST(a_resumed_run_keeps_the_better_epoch),
    TEST(without_time_for_a_fit_the_loss_decides),    TEST(what_was_rated_is_counted),
};

CHECK_MAIN(tests)
