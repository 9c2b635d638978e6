/* What a person sees: golden lines of the screen. */
#include "check.h"

#include "base/files/file.h"
#include "base/mem.h"
#include "base/str.h"
#include "events/events.h"
#include "report/observers/screen.h"

static int64_t fake_ns; /* the time that the screen is told */

static int64_t fake_clock(void) {
    return fake_ns;
}

static void pass_seconds(double seconds) {
    fake_ns += (int64_t)(seconds * 1e9);
}

/* A screen that draws into memory. */
typedef struct fixture {
    char *text;
    size_t size;
    size_t seen; /* bytes that a test has looked at */
    FILE *out;
    stk_screen *screen;
    stk_events events;
} fixture;

static void set_up(fixture *f, bool terminal, bool quiet, int columns) {
    stk_error err = {0};
    memset(f, 0, sizeof *f);
    fake_ns = 5000000000;
    f->out = open_memstream(&f->text, &f->size);
    stk_screen_config config = {.out = f->out,
                                .terminal = terminal,
                                .quiet = quiet,
                                .columns = columns,
                                .now_ns = fake_clock};
    if (f->out == NULL || stk_screen_new(&f->screen, &config, &err) != STK_OK) {
        CHECK_FAIL("no screen: %s", err.message);
        exit(1);
    }
    stk_events_add(&f->events, stk_screen_observer(f->screen));
}

static void tear_down(fixture *f) {
    stk_screen_free(f->screen);
    fclose(f->out);
    free(f->text);
}

/* What was shown since the last forget(). */
static const char *shown(fixture *f) {
    fflush(f->out);
    return f->text + f->seen;
}

static void forget(fixture *f) {
    fflush(f->out);
    f->seen = f->size;
}

#define CHECK_SHOWN(f, expected)         \
    do {                                 \
        CHECK_STR(shown(f), (expected)); \
        forget(f);                       \
    } while (0)

static const stk_event_start start_event = {
    .chosen = "convnet_s, 64 px, batch 32 (auto), cpu, fp32",
    .run_dir = "runs/demo",
    .data = "demo/data",
    .model = "convnet_s",
    .device = "cpu",
    .precision = "fp32",
    .start_ns = 5000000000,
    .img_size = 64,
    .batch = 32,
    .workers = 2,
    .prefetch = 2,
    .classes = 8,
    .folds = 1,
    .train_images = 480,
    .val_images = 120,
    .test_images = 612,
    .budget_s = 60,
};

static const stk_event_step step_event = {
    .fold = 0,
    .epoch = 3,
    .epochs = 10,
    .step = 33,
    .steps = 71,
    .loss = 1.2341,
    .acc1 = 61.23,
    .lr = 0.05,
    .steps_per_second = 6.3,
    .images_per_second = 812.2,
    .wait_fraction = 0.03,
    .left_s = 41.2,
};

static const stk_event_epoch epoch_event = {
    .fold = 0,
    .epoch = 3,
    .epochs = 10,
    .train_loss = 1.234,
    .train_acc1 = 61.2,
    .val_loss = 1.1,
    .val_acc1 = 64,
    .val_acc5 = 91,
    .lr = 0.05,
    .images_per_second = 812,
    .wait_fraction = 0.03,
    .seconds = 12.1,
    .best = true,
};

static const stk_summary summary_event = {
    .status = "complete",
    .stop_reason = "epochs",
    .best_acc1 = 92.13,
    .metric = "acc1",
    .best_metric = 92.13,
    .epochs_done = 14,
    .folds_done = 1,
    .folds_planned = 1,
    .images_per_second = 812,
    .wait_fraction = 0.03,
    .budget_s = 60,
    .used_s = 52.4,
    .reserve_s = 9,
    .batch = 32,
    .workers = 2,
    .prefetch = 2,
    .device = "cpu",
    .precision = "fp32",
    .bad_images = 0,
    .submission = "submission.csv",
};

#define STEP_LINE \
    "epoch 3/10  33/71 46%  loss 1.234  acc 61.2%  6.3 it/s  812 img/s  wait 3%  left 0:41"

static void start_names_choice_folder_and_data(void) {
    fixture f;
    set_up(&f, false, false, 0);
    stk_events_start(&f.events, &start_event);
    CHECK_SHOWN(&f, "convnet_s, 64 px, batch 32 (auto), cpu, fp32\n"
                    "run folder: runs/demo\n"
                    "data: demo/data, 480 training images, 120 validation, 612 test, 8 classes\n");
    tear_down(&f);
}

static void unknown_parts_of_the_start_are_left_out(void) {
    fixture f;
    set_up(&f, false, false, 0);
    stk_event_start nothing = {.train_images = -1,
                               .val_images = -1,
                               .test_images = -1,
                               .classes = -1,
                               .folds = -1,
                               .budget_s = NAN};
    stk_events_start(&f.events, &nothing);
    CHECK_SHOWN(&f, "");
    nothing.train_images = 1;
    stk_events_start(&f.events, &nothing);
    CHECK_SHOWN(&f, "data: 1 training image\n");
    tear_down(&f);
}

static void outputs_are_called_by_their_task(void) {
    static const struct {
        const char *task;
        int outputs;
        const char *line;
    } cases[] = {
        {"regression", 1, "data: 9 training images, 1 number\n"},
        {"regression", 3, "data: 9 training images, 3 numbers\n"},
        {"multilabel", 9, "data: 9 training images, 9 labels\n"},
        {"multilabel", 1, "data: 9 training images, 1 label\n"},
        {"binary", 2, "data: 9 training images, 2 classes\n"},
        {"unheard of", 1, "data: 9 training images, 1 class\n"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        fixture f;
        set_up(&f, false, false, 0);
        stk_event_start start = {
            .train_images = 9, .classes = cases[i].outputs, .folds = -1, .task = cases[i].task};
        stk_events_start(&f.events, &start);
        CHECK_SHOWN(&f, cases[i].line);
        tear_down(&f);
    }
}

static void terminal_redraws_and_ends_with_validation(void) {
    fixture f;
    set_up(&f, true, false, 120);
    stk_events_step(&f.events, &step_event);
    CHECK_SHOWN(&f, "\r" STEP_LINE "\x1b[K");
    stk_event_step last = step_event;
    last.step = 71;
    stk_events_step(&f.events, &last); /* too early to be drawn, but remembered */
    CHECK_SHOWN(&f, "");
    stk_events_epoch(&f.events, &epoch_event);
    CHECK_SHOWN(&f, "\r\x1b[K"
                    "epoch 3/10  71/71 100%  loss 1.234  acc 61.2%  val loss 1.100  val acc 64.0%  "
                    "best  6.3 it/s  812 img/s  wait 3%  0:12\n");
    tear_down(&f);
}

static void terminal_redraws_ten_times_a_second(void) {
    fixture f;
    set_up(&f, true, false, 120);
    int drawings = 0;
    for (int i = 0; i < 2000; i++) {
        stk_events_step(&f.events, &step_event);
        pass_seconds(0.001);
    }
    for (const char *p = strchr(shown(&f), '\r'); p != NULL; p = strchr(p + 1, '\r')) {
        drawings++;
    }
    CHECK_INT(drawings, 20);
    tear_down(&f);
}

static void terminal_cuts_to_its_width(void) {
    fixture f;
    set_up(&f, true, false, 40);
    stk_events_step(&f.events, &step_event);
    CHECK_SHOWN(&f, "\repoch 3/10  33/71 46%  loss 1.234  acc \x1b[K");
    tear_down(&f);
    set_up(&f, true, false, 0); /* memory has no width: 80 columns */
    stk_events_step(&f.events, &step_event);
    CHECK_INT(strlen(shown(&f)), 1 + 79 + 3);
    tear_down(&f);
}

static void messages_take_the_place_of_the_redrawn_line(void) {
    fixture f;
    set_up(&f, true, false, 120);
    stk_events_step(&f.events, &step_event);
    stk_events_warning(&f.events, "the disk is nearly full");
    stk_events_warning(&f.events, "again");
    CHECK_SHOWN(&f, "\r" STEP_LINE "\x1b[K"
                    "\r\x1b[Kwarning: the disk is nearly full\n"
                    "warning: again\n");
    pass_seconds(0.2);
    stk_events_step(&f.events, &step_event);
    CHECK_SHOWN(&f, "\r" STEP_LINE "\x1b[K");
    tear_down(&f);
}

static void free_ends_a_redrawn_line(void) {
    fixture f;
    set_up(&f, true, false, 120);
    stk_events_step(&f.events, &step_event);
    stk_screen_free(f.screen);
    f.screen = NULL;
    CHECK_SHOWN(&f, "\r" STEP_LINE "\x1b[K\n");
    tear_down(&f);
}

static void plain_lines_come_every_ten_seconds(void) {
    fixture f;
    set_up(&f, false, false, 0);
    stk_events_step(&f.events, &step_event);
    pass_seconds(9.9);
    stk_events_step(&f.events, &step_event);
    CHECK_SHOWN(&f, "");
    pass_seconds(0.2);
    stk_events_step(&f.events, &step_event);
    CHECK_SHOWN(&f, STEP_LINE "\n");
    pass_seconds(5);
    stk_events_step(&f.events, &step_event);
    CHECK_SHOWN(&f, "");
    pass_seconds(6);
    stk_event_step last = step_event;
    last.step = 71;
    stk_events_step(&f.events, &last); /* the epoch's own line says it in a moment */
    CHECK_SHOWN(&f, "");
    stk_events_epoch(&f.events, &epoch_event);
    CHECK_SHOWN(&f, "epoch 3/10  71/71 100%  loss 1.234  acc 61.2%  val loss 1.100  val acc 64.0%  "
                    "best  6.3 it/s  812 img/s  wait 3%  0:12\n");
    stk_event_step next = step_event;
    next.epoch = 4;
    stk_events_step(&f.events, &next); /* a new epoch starts a new wait */
    CHECK_SHOWN(&f, "");
    tear_down(&f);
}

static const stk_event_progress progress_event = {
    .what = "staging",
    .done = 1234,
    .total = 50000,
    .bytes = 123400000,
    .per_second = 812.2,
    .bytes_per_second = 80100000,
    .left_s = 61,
};

static void progress_of_other_work_is_drawn(void) {
    fixture f;
    set_up(&f, true, false, 120);
    stk_events_progress(&f.events, &progress_event);
    CHECK_SHOWN(&f, "\rstaging  1234/50000 2%  123 MB  812 img/s  80 MB/s  left 1:01\x1b[K");
    stk_events_progress(&f.events, &progress_event); /* too early */
    CHECK_SHOWN(&f, "");
    pass_seconds(0.2);
    stk_event_progress unknown = progress_event;
    unknown.per_second = unknown.bytes_per_second = unknown.left_s = NAN;
    stk_events_progress(&f.events, &unknown);
    CHECK_SHOWN(&f, "\rstaging  1234/50000 2%  123 MB\x1b[K");
    stk_events_decision(&f.events, "staged", "near");
    CHECK_SHOWN(&f, "\r\x1b[Kstaged: near\n");
    tear_down(&f);

    set_up(&f, false, false, 0);
    for (int i = 0; i < 25; i++) {
        stk_events_progress(&f.events, &progress_event);
        pass_seconds(1);
    }
    CHECK_SHOWN(&f, "staging  1234/50000 2%  123 MB  812 img/s  80 MB/s  left 1:01\n"
                    "staging  1234/50000 2%  123 MB  812 img/s  80 MB/s  left 1:01\n");
    tear_down(&f);

    set_up(&f, true, true, 0);
    stk_events_progress(&f.events, &progress_event);
    CHECK_SHOWN(&f, "");
    tear_down(&f);
}

static void folds_are_named(void) {
    fixture f;
    set_up(&f, true, false, 160);
    stk_event_start start = start_event;
    start.folds = 5;
    stk_events_start(&f.events, &start);
    forget(&f);
    stk_event_step step = step_event;
    step.fold = 1;
    stk_events_step(&f.events, &step);
    CHECK_SHOWN(&f, "\rfold 2/5  " STEP_LINE "\x1b[K");
    stk_event_epoch epoch = epoch_event;
    epoch.fold = 1;
    epoch.best = false;
    stk_events_epoch(&f.events, &epoch);
    CHECK_SHOWN(&f, "\r\x1b[K"
                    "fold 2/5  epoch 3/10  33/71 46%  loss 1.234  acc 61.2%  val loss 1.100  "
                    "val acc 64.0%  6.3 it/s  812 img/s  wait 3%  0:12\n");
    tear_down(&f);
}

static void another_metric_is_shown(void) {
    fixture f;
    set_up(&f, true, false, 200);
    stk_event_start start = start_event;
    stk_event_epoch epoch = epoch_event;
    start.metric = "qwk";
    epoch.val_metric = 0.81234;
    stk_events_start(&f.events, &start);
    forget(&f);
    stk_events_epoch(&f.events, &epoch);
    CHECK(strstr(shown(&f), "val acc 64.0%  qwk 0.8123  best") != NULL);
    forget(&f);
    epoch.val_metric = NAN;
    stk_events_epoch(&f.events, &epoch);
    CHECK(strstr(shown(&f), "qwk") == NULL);
    forget(&f);
    tear_down(&f);
}

static void unknown_numbers_are_left_out(void) {
    fixture f;
    set_up(&f, true, false, 120);
    stk_event_step step = {.epoch = 1,
                           .epochs = 0,
                           .step = 2,
                           .steps = 0,
                           .loss = NAN,
                           .acc1 = NAN,
                           .lr = NAN,
                           .steps_per_second = 0.25,
                           .images_per_second = NAN,
                           .wait_fraction = NAN,
                           .left_s = NAN};
    stk_events_step(&f.events, &step);
    CHECK_SHOWN(&f, "\repoch 1  0.25 it/s\x1b[K");
    stk_event_epoch epoch = {.epoch = 2,
                             .epochs = 3,
                             .train_loss = 2e9,
                             .train_acc1 = NAN,
                             .val_loss = INFINITY,
                             .val_acc1 = NAN,
                             .val_acc5 = NAN,
                             .lr = NAN,
                             .images_per_second = 45.25,
                             .wait_fraction = NAN,
                             .seconds = NAN};
    stk_events_epoch(&f.events, &epoch);
    CHECK_SHOWN(&f, "\r\x1b[Kepoch 2/3  loss 2e+09  45.2 img/s\n");
    tear_down(&f);
}

static void decisions_say_what_and_why(void) {
    fixture f;
    set_up(&f, false, false, 0);
    stk_events_decision(&f.events, "batch 32", "the training set has 480 images");
    stk_events_decision(&f.events, "no augmentation", NULL);
    CHECK_SHOWN(&f, "batch 32: the training set has 480 images\nno augmentation\n");
    tear_down(&f);
}

static void plans_are_told_when_they_change(void) {
    fixture f;
    set_up(&f, false, false, 0);
    stk_events_start(&f.events, &start_event);
    forget(&f);
    stk_event_plan plan = {.epochs = 14,
                           .steps_per_epoch = 15,
                           .seconds_per_epoch = NAN,
                           .total_s = NAN,
                           .left_s = 58,
                           .reserve_s = NAN};
    stk_events_plan(&f.events, &plan);
    CHECK_SHOWN(&f, "plan: 14 epochs of 15 steps; 58 s of 60 s left\n");
    plan.seconds_per_epoch = 2.9;
    plan.left_s = 46.2;
    plan.reserve_s = 9.1;
    stk_events_plan(&f.events, &plan);
    CHECK_SHOWN(&f, "plan: 14 epochs of 15 steps, 2.9 s each; 46 s of 60 s left, "
                    "9 s kept for prediction\n");
    plan.left_s = 43;
    stk_events_plan(&f.events, &plan); /* nothing new but the time */
    CHECK_SHOWN(&f, "");
    plan.epochs = 21;
    stk_events_plan(&f.events, &plan);
    CHECK_SHOWN(&f, "plan: 21 epochs of 15 steps, up to 2.9 s each; 43 s of 60 s left, "
                    "9 s kept for prediction\n");
    plan.epochs = 1;
    stk_events_plan(&f.events, &plan);
    CHECK_SHOWN(&f, "plan: 1 epoch of 15 steps, 2.9 s for a whole one; 43 s of 60 s left, "
                    "9 s kept for prediction\n");
    plan.epochs = 0;
    plan.seconds_per_epoch = 0.42;
    stk_events_plan(&f.events, &plan);
    CHECK_SHOWN(&f, "plan: a part of one epoch of 15 steps, 0.42 s for a whole one; "
                    "43 s of 60 s left, 9 s kept for prediction\n");
    tear_down(&f);
}

static void plans_without_a_budget(void) {
    fixture f;
    set_up(&f, false, false, 0);
    stk_event_plan plan = {.epochs = 3,
                           .steps_per_epoch = 1000,
                           .seconds_per_epoch = 300,
                           .total_s = 900,
                           .left_s = NAN,
                           .reserve_s = NAN};
    stk_events_plan(&f.events, &plan);
    CHECK_SHOWN(&f, "plan: 3 epochs of 1000 steps, 5:00 each; about 15:00 in all\n");
    tear_down(&f);
}

static void three_bad_images_are_named(void) {
    fixture f;
    set_up(&f, false, false, 0);
    for (int i = 0; i < 5; i++) {
        stk_events_bad_image(&f.events, "a.jpg", "train", "it ends early");
    }
    CHECK_SHOWN(&f, "warning: bad image a.jpg (train): it ends early\n"
                    "warning: bad image a.jpg (train): it ends early\n"
                    "warning: bad image a.jpg (train): it ends early\n");
    stk_summary summary = summary_event;
    summary.bad_images = -1; /* unknown to the summary: the screen has counted */
    stk_events_stop(&f.events, &summary);
    CHECK_CONTAINS(shown(&f), "  bad images  5, named in ./bad_images.csv\n");
    tear_down(&f);
}

static void file_names_cannot_command_the_terminal(void) {
    fixture f;
    set_up(&f, false, false, 0);
    stk_events_bad_image(&f.events, "a\x1b[2J\nb.jpg", "val", NULL);
    CHECK_SHOWN(&f, "warning: bad image a [2J b.jpg (val)\n");
    tear_down(&f);
}

static void submissions_tell_their_origin(void) {
    fixture f;
    set_up(&f, false, false, 0);
    stk_event_submission event = {
        .path = "runs/demo/submission.csv", .status = "prior", .rows = 612, .models = 0};
    stk_events_submission(&f.events, &event);
    event.models = 1;
    stk_events_submission(&f.events, &event);
    event.epoch = 7;
    stk_events_submission(&f.events, &event);
    event.epoch = 0;
    event.models = 5;
    event.rows = -1;
    stk_events_submission(&f.events, &event);
    CHECK_SHOWN(&f, "submission: runs/demo/submission.csv (612 rows, class priors)\n"
                    "submission: runs/demo/submission.csv (612 rows, from 1 model)\n"
                    "submission: runs/demo/submission.csv (612 rows, from the weights of epoch 7)\n"
                    "submission: runs/demo/submission.csv (from 5 models)\n");
    tear_down(&f);
}

/* Of early predictions the last row says so. Weights that came to nothing afterwards are gone. */
static void the_end_tells_of_early_predictions(void) {
    for (int done = 1; done >= 0; done--) {
        fixture f;
        set_up(&f, true, false, 120);
        stk_events_start(&f.events, &start_event);
        stk_events_checkpoint(&f.events, "runs/demo/weights/best.safetensors", true);
        stk_event_submission event = {.path = "runs/demo/submission.csv",
                                      .status = "partial",
                                      .rows = 612,
                                      .models = 1,
                                      .models_wanted = 1,
                                      .epoch = 7};
        stk_events_submission(&f.events, &event);
        forget(&f);
        stk_summary summary = summary_event;
        summary.status = "partial";
        summary.stop_reason = "budget";
        summary.folds_done = done;
        stk_events_stop(&f.events, &summary);
        CHECK(strstr(shown(&f), "done in part: ") != NULL);
        CHECK(strstr(shown(&f), "  submission  runs/demo/submission.csv, predicted early from the "
                                "weights of epoch 7\n") != NULL);
        CHECK_INT(strstr(shown(&f), "best.safetensors") != NULL, done);
        tear_down(&f);
    }
}

static void the_end_says_where_things_are(void) {
    fixture f;
    set_up(&f, true, false, 120);
    stk_events_start(&f.events, &start_event);
    stk_events_checkpoint(&f.events, "runs/demo/weights/best.safetensors", true);
    stk_events_checkpoint(&f.events, "runs/demo/weights/last.safetensors", false);
    forget(&f);
    stk_summary summary = summary_event;
    summary.bad_images = 4;
    stk_events_stop(&f.events, &summary);
    CHECK_SHOWN(&f, "\n"
                    "done: best validation accuracy 92.1%, 14 epochs; every planned epoch was "
                    "trained\n"
                    "  time        52 s of 60 s\n"
                    "  bad images  4, named in runs/demo/bad_images.csv\n"
                    "  run folder  runs/demo\n"
                    "  weights     runs/demo/weights/best.safetensors\n"
                    "  submission  runs/demo/submission.csv\n");
    tear_down(&f);
}

static void the_end_of_a_run_that_came_to_little(void) {
    fixture f;
    set_up(&f, false, false, 0);
    stk_summary summary = {.status = "failed",
                           .stop_reason = "error",
                           .best_acc1 = NAN,
                           .best_metric = NAN,
                           .epochs_done = -1,
                           .folds_done = -1,
                           .folds_planned = -1,
                           .oof_acc1 = NAN,
                           .oof_metric = NAN,
                           .held_out = NAN,
                           .temperature = NAN,
                           .used_s = NAN,
                           .budget_s = NAN,
                           .bad_images = -1};
    stk_events_stop(&f.events, &summary);
    CHECK_SHOWN(&f, "\nfailed: an error ended it\n");
    summary.status = "partial";
    summary.stop_reason = "budget";
    summary.metric = "macro_f1";
    summary.best_metric = 0.81234;
    summary.epochs_done = 1;
    summary.folds_done = 1;
    summary.folds_planned = 5;
    summary.used_s = 600;
    summary.verdict = "the loader is slow";
    stk_events_stop(&f.events, &summary);
    CHECK_SHOWN(&f, "\ndone in part: best macro_f1 0.8123, 1 epoch, 1 of 5 folds; the time budget "
                    "was used up\n"
                    "  time        10:00\n"
                    "  verdict     the loader is slow\n");
    forget(&f);
    summary.oof_acc1 = 81.25;
    summary.oof_metric = 0.80012;
    stk_events_stop(&f.events, &summary);
    CHECK_CONTAINS(shown(&f), "1 of 5 folds, out-of-fold accuracy 81.2%, out-of-fold macro_f1 "
                              "0.8001; the time budget");
    forget(&f);
    summary.held_out = 0.80012;
    summary.held_out_from = "out-of-fold predictions of 96 pictures";
    stk_events_stop(&f.events, &summary);
    CHECK_CONTAINS(shown(&f),
                   "\n  held out    macro_f1 0.8001, out-of-fold predictions of 96 pictures\n");
    forget(&f);
    summary.metric = "acc1";
    summary.held_out = 81.25;
    stk_events_stop(&f.events, &summary);
    CHECK_CONTAINS(shown(&f), "\n  held out    acc1 81.2%, out-of-fold");
    tear_down(&f);
}

static void the_plot_is_named_when_it_exists(void) {
    fixture f;
    stk_error err = {0};
    const char *folder = check_folder();
    char *plot = stk_path_join(folder, "results.png");
    REQUIRE_OK(stk_file_write(plot, "x", 1, &err), &err);
    set_up(&f, false, false, 0);
    stk_event_start start = start_event;
    start.run_dir = folder;
    start.folds = 2;
    stk_events_start(&f.events, &start);
    stk_events_stop(&f.events, &summary_event);
    char *row = stk_str_format("  plot        %s\n", plot);
    CHECK_CONTAINS(shown(&f), row);
    stk_mem_free(row);
    row = stk_str_format("  weights     %s/weights\n", folder);
    CHECK_CONTAINS(shown(&f), row);
    CHECK(strstr(shown(&f), "results.svg") == NULL);
    stk_mem_free(row);
    stk_mem_free(plot);
    tear_down(&f);
}

static void quiet_shows_only_warnings(void) {
    fixture f;
    set_up(&f, true, true, 120);
    stk_event_plan plan = {.epochs = 3, .left_s = NAN, .total_s = NAN};
    stk_event_submission submission = {.path = "s.csv", .rows = 1};
    stk_events_start(&f.events, &start_event);
    stk_events_plan(&f.events, &plan);
    stk_events_decision(&f.events, "batch 32", "because");
    stk_events_step(&f.events, &step_event);
    stk_events_epoch(&f.events, &epoch_event);
    stk_events_checkpoint(&f.events, "w", true);
    stk_events_submission(&f.events, &submission);
    stk_events_warning(&f.events, "careful with %d", 7);
    stk_summary summary = summary_event;
    summary.bad_images = 12;
    stk_events_stop(&f.events, &summary);
    CHECK_SHOWN(&f, "warning: careful with 7\n"
                    "warning: 12 bad images; runs/demo/bad_images.csv names them\n");
    tear_down(&f);
}

static void lack_of_memory_only_costs_lines(void) {
    for (int i = 0; i < 40; i++) {
        fixture f;
        set_up(&f, true, false, 120);
        stk_mem_fail_after(i);
        stk_events_start(&f.events, &start_event);
        stk_events_step(&f.events, &step_event);
        stk_events_epoch(&f.events, &epoch_event);
        stk_events_checkpoint(&f.events, "w", true);
        stk_events_stop(&f.events, &summary_event);
        stk_mem_fail_after(-1);
        forget(&f);
        stk_events_warning(&f.events, "memory is back");
        CHECK_CONTAINS(shown(&f), "warning: memory is back\n");
        tear_down(&f);
    }
    for (int i = 0; i < 3; i++) {
        stk_error err = {0};
        stk_screen *screen = NULL;
        stk_screen_config config = {.out = stdout};
        stk_mem_fail_after(i);
        CHECK_INT(stk_screen_new(&screen, &config, &err), STK_ERR_MEMORY);
        stk_mem_fail_after(-1);
    }
    stk_screen_free(NULL);
}

static void lack_of_memory_can_be_told(void) {
    fixture f;
    set_up(&f, false, false, 120);
    stk_mem_fail_after(0);
    stk_events_warning(&f.events, "there is %s", "no memory");
    stk_mem_fail_after(-1);
    CHECK_SHOWN(&f, "warning: there is no memory\n");
    tear_down(&f);
}

static const check_test tests[] = {
    TEST(start_names_choice_folder_and_data),
    TEST(unknown_parts_of_the_start_are_left_out),
    TEST(outputs_are_called_by_their_task),
    TEST(terminal_redraws_and_ends_with_validation),
    TEST(terminal_redraws_ten_times_a_second),
    TEST(terminal_cuts_to_its_width),
    TEST(messages_take_the_place_of_the_redrawn_line),
    TEST(free_ends_a_redrawn_line),
    TEST(plain_lines_come_every_ten_seconds),
    TEST(progress_of_other_work_is_drawn),
    TEST(folds_are_named),
    TEST(another_metric_is_shown),
    TEST(unknown_numbers_are_left_out),
    TEST(decisions_say_what_and_why),
    TEST(plans_are_told_when_they_change),
    TEST(plans_without_a_budget),
    TEST(three_bad_images_are_named),
    TEST(file_names_cannot_command_the_terminal),
    TEST(submissions_tell_their_origin),
    TEST(the_end_tells_of_early_predictions),
    TEST(the_end_says_where_things_are),
    TEST(the_end_of_a_run_that_came_to_little),
    TEST(the_plot_is_named_when_it_exists),
    TEST(quiet_shows_only_warnings),
    TEST(lack_of_memory_only_costs_lines),
    TEST(lack_of_memory_can_be_told),
};

CHECK_MAIN(tests)
