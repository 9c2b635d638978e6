/* Events as JSON lines, and the files of a run folder. */
#include "check.h"
#include "whole_files.h"

#include <fcntl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <signal.h>

#include "base/error.h"
#include "base/files/file.h"
#include "base/mem.h"
#include "base/text/csv.h"
#include "base/text/json.h"
#include "events/events.h"
#include "report/plots/canvas.h"
#include "report/plots/plots.h"
#include "report/observers/jsonl.h"
#include "report/observers/lines.h"
#include "report/runfiles.h"

static int64_t fake_ns;

static int64_t fake_clock(void) {
    return fake_ns;
}

static const char *const summary_keys[] = {
    "status",        "stop_reason",
    "best_acc1",     "metric",
    "best_metric",   "epochs_done",
    "folds_done",    "folds_planned",
    "oof_acc1",      "oof_metric",
    "held_out",      "held_out_from",
    "temperature",   "images_per_second",
    "wait_fraction", "budget_s",
    "used_s",        "reserve_s",
    "batch",         "workers",
    "prefetch",      "device",
    "precision",     "bad_images",
    "verdict",       "submission",
    "task",          "pool",
};

#define SUMMARY_KEYS (sizeof summary_keys / sizeof *summary_keys)

static const stk_event_start start_event = {
    .chosen = "batch 32 (auto)",
    .run_dir = "runs/demo",
    .data = "demo/data",
    .model = "convnet_s",
    .device = "cpu",
    .precision = "fp32",
    .start_ns = 1000000000,
    .img_size = 64,
    .batch = 32,
    .workers = 2,
    .prefetch = 2,
    .classes = 8,
    .folds = 1,
    .train_images = 480,
    .val_images = 120,
    .test_images = -1,
    .budget_s = NAN,
};

static const stk_event_epoch epoch_event = {
    .fold = 0,
    .epoch = 1,
    .epochs = 2,
    .train_loss = 1.23456789,
    .train_acc1 = 61.23456,
    .val_loss = 1.1,
    .val_acc1 = 64,
    .val_acc5 = NAN,
    .lr = 0.0001,
    .images_per_second = 812.345,
    .wait_fraction = 0.031239,
    .seconds = 12.3456,
    .best = true,
};

static const stk_summary empty_summary = {
    .status = "partial",
    .stop_reason = "signal",
    .best_acc1 = NAN,
    .best_metric = NAN,
    .epochs_done = 2,
    .folds_done = -1,
    .folds_planned = -1,
    .images_per_second = NAN,
    .wait_fraction = NAN,
    .budget_s = 60,
    .used_s = 12.34567,
    .reserve_s = NAN,
    .batch = -1,
    .workers = -1,
    .prefetch = -1,
    .bad_images = 0,
};

/* One of each event. */
static void tell_everything(const stk_events *events) {
    stk_event_plan plan = {.epochs = 2, .steps_per_epoch = 15, .seconds_per_epoch = 2.9};
    stk_event_step step = {.epoch = 1, .epochs = 2, .step = 1, .steps = 15, .loss = NAN};
    stk_event_submission submission = {
        .path = "s.csv", .status = "complete", .rows = 6, .models = 1};
    stk_events_start(events, &start_event);
    stk_events_plan(events, &plan);
    stk_events_decision(events, "batch 32", "the training set has 480 images");
    stk_events_step(events, &step);
    stk_events_epoch(events, &epoch_event);
    stk_events_checkpoint(events, "weights/best.safetensors", true);
    stk_events_bad_image(events, "a \"b\",\xff.jpg", "train", "it ends\nearly");
    stk_events_submission(events, &submission);
    stk_events_warning(events, "careful");
    stk_events_stop(events, &empty_summary);
}

static char *read_text(const char *folder, const char *name) {
    char *path = stk_path_join(folder, name);
    char *text = NULL;
    size_t size = 0;
    stk_error err = {0};
    if (stk_file_read(path, 0, &text, &size, &err) != STK_OK) {
        text = NULL;
    }
    stk_mem_free(path);
    return text;
}

/* The JSON value of line `number`, NULL when there is none. */
static stk_json *parse_line(const char *text, int number) {
    stk_error err = {0};
    stk_json *root = NULL;
    while (number-- > 0 && text != NULL) {
        text = strchr(text, '\n');
        text = text != NULL ? text + 1 : NULL;
    }
    const char *end = text != NULL ? strchr(text, '\n') : NULL;
    if (end == NULL) {
        return NULL;
    }
    if (stk_json_parse(text, (size_t)(end - text), &root, &err) != STK_OK) {
        CHECK_FAIL("%s in %.*s", err.message, (int)(end - text), text);
        return NULL;
    }
    return root;
}

static int count_lines(const char *text) {
    int lines = 0;
    for (const char *p = text; *p != '\0'; p++) {
        lines += *p == '\n';
    }
    return lines;
}

/* ---- lines ---- */

static void every_event_is_one_line(void) {
    static const char *const names[] = {"start",      "plan",      "decision",   "step",    "epoch",
                                        "checkpoint", "bad_image", "submission", "warning", "stop"};
    stk_error err = {0};
    const char *folder = check_folder();
    char *path = stk_path_join(folder, "out.jsonl");
    int fd = -1;
    stk_jsonl *jsonl = NULL;
    stk_events events = {0};
    REQUIRE_OK(stk_lines_open(path, &fd, &err), &err);
    stk_jsonl_config config = {.fd = fd, .name = path, .now_ns = fake_clock};
    REQUIRE_OK(stk_jsonl_new(&jsonl, &config, &err), &err);
    stk_events_add(&events, stk_jsonl_observer(jsonl));
    fake_ns = 3250000000;
    tell_everything(&events);
    CHECK_INT(stk_jsonl_error(jsonl, &err), STK_OK);
    stk_jsonl_free(jsonl);
    close(fd);
    char *text = read_text(folder, "out.jsonl");
    REQUIRE(text != NULL);
    CHECK_INT(count_lines(text), 10);
    for (int i = 0; i < 10; i++) {
        stk_json *line = parse_line(text, i);
        CHECK_STR(stk_json_string(stk_json_get(line, "event")), names[i]);
        CHECK_NEAR(stk_json_number(stk_json_get(line, "t"), -1), 2.25, 0);
        stk_json_free(line);
    }
    stk_mem_free(text);
    stk_mem_free(path);
}

/* A jsonl on a file; the text of all its lines comes from read_text(folder, "out"). */
static stk_jsonl *open_jsonl(const char *folder, int *fd) {
    stk_error err = {0};
    stk_jsonl *jsonl = NULL;
    char *path = stk_path_join(folder, "out");
    if (stk_lines_open(path, fd, &err) == STK_OK) {
        stk_jsonl_config config = {.fd = *fd, .name = path, .now_ns = fake_clock};
        if (stk_jsonl_new(&jsonl, &config, &err) != STK_OK) {
            jsonl = NULL;
        }
    }
    stk_mem_free(path);
    return jsonl;
}

static void values_keep_their_kinds(void) {
    int fd = -1;
    stk_events events = {0};
    const char *folder = check_folder();
    stk_jsonl *jsonl = open_jsonl(folder, &fd);
    REQUIRE(jsonl != NULL);
    stk_events_add(&events, stk_jsonl_observer(jsonl));
    tell_everything(&events);
    stk_jsonl_free(jsonl);
    close(fd);
    char *text = read_text(folder, "out");
    REQUIRE(text != NULL);
    stk_json *start = parse_line(text, 0);
    CHECK_STR(stk_json_string(stk_json_get(start, "chosen")), "batch 32 (auto)");
    CHECK_INT(stk_json_number(stk_json_get(start, "train_images"), 0), 480);
    CHECK(stk_json_get(start, "test_images") != NULL);
    CHECK_INT(stk_json_kind_of(stk_json_get(start, "test_images")), STK_JSON_NULL);
    CHECK(stk_json_get(start, "budget_s") != NULL);
    CHECK_INT(stk_json_kind_of(stk_json_get(start, "budget_s")), STK_JSON_NULL);
    stk_json_free(start);
    stk_json *step = parse_line(text, 3);
    CHECK(stk_json_get(step, "loss") != NULL);
    CHECK_INT(stk_json_kind_of(stk_json_get(step, "loss")), STK_JSON_NULL);
    stk_json_free(step);
    stk_json *epoch = parse_line(text, 4);
    CHECK_NEAR(stk_json_number(stk_json_get(epoch, "train_loss"), 0), 1.23457, 0);
    CHECK_NEAR(stk_json_number(stk_json_get(epoch, "seconds"), 0), 12.346, 0);
    CHECK(stk_json_bool(stk_json_get(epoch, "best"), false));
    CHECK_INT(stk_json_kind_of(stk_json_get(epoch, "val_acc5")), STK_JSON_NULL);
    stk_json_free(epoch);
    stk_json *bad = parse_line(text, 6);
    CHECK_STR(stk_json_string(stk_json_get(bad, "path")), "a \"b\",\xef\xbf\xbd.jpg");
    CHECK_STR(stk_json_string(stk_json_get(bad, "reason")), "it ends\nearly");
    stk_json_free(bad);
    stk_json *warning = parse_line(text, 8);
    CHECK_STR(stk_json_string(stk_json_get(warning, "text")), "careful");
    stk_json_free(warning);
    stk_json *stop = parse_line(text, 9);
    CHECK_INT(stk_json_count(stop), SUMMARY_KEYS + 2);
    for (size_t i = 0; i < SUMMARY_KEYS; i++) {
        CHECK(stk_json_get(stop, summary_keys[i]) != NULL);
    }
    stk_json_free(stop);
    stk_mem_free(text);
}

static void steps_come_twice_a_second(void) {
    int fd = -1;
    stk_events events = {0};
    stk_event_step step = {.epoch = 1, .steps = 5000};
    const char *folder = check_folder();
    stk_jsonl *jsonl = open_jsonl(folder, &fd);
    REQUIRE(jsonl != NULL);
    stk_events_add(&events, stk_jsonl_observer(jsonl));
    fake_ns = 0; /* a clock that starts at nought must not hide the first step */
    for (step.step = 1; step.step <= 5000; step.step++) {
        stk_events_step(&events, &step);
        fake_ns += 1000000;
    }
    /* The last of a command stands before its end, once. */
    stk_events_attempt(&events, &(stk_event_attempt){.ended = true});
    stk_events_attempt(&events, &(stk_event_attempt){.ended = true});
    stk_jsonl_free(jsonl);
    close(fd);
    char *text = read_text(folder, "out");
    REQUIRE(text != NULL);
    CHECK_INT(count_lines(text), 13);
    stk_json *last = parse_line(text, 10);
    CHECK_NEAR(stk_json_number(stk_json_get(last, "step"), NAN), 5000, 0);
    stk_json_free(last);
    stk_mem_free(text);
}

/* What every second tells once a second for the first hour becomes a tenth of it. */
static void days_of_a_run_are_told_less_often(void) {
    enum { HOURS = 24 };
    int fd = -1;
    stk_events events = {0};
    const char *folder = check_folder();
    stk_jsonl *jsonl = open_jsonl(folder, &fd);
    REQUIRE(jsonl != NULL);
    stk_events_add(&events, stk_jsonl_observer(jsonl));
    fake_ns = 0;
    stk_events_start(&events, &(stk_event_start){.model = "m"});
    stk_event_step step = {.epoch = 1, .steps = 5000};
    for (int second = 1; second <= HOURS * 3600; second++) {
        stk_event_sample sample = {.at_s = second, .cpu = 50};
        fake_ns = (int64_t)second * 1000000000;
        stk_events_step(&events, &step);
        stk_events_sample(&events, &sample);
        if (second == 3600) {
            char *hour = read_text(folder, "out");
            REQUIRE(hour != NULL);
            CHECK_INT(count_lines(hour), 1 + 2 * 3600);
            stk_mem_free(hour);
        }
    }
    stk_jsonl_free(jsonl);
    close(fd);
    char *text = read_text(folder, "out");
    REQUIRE(text != NULL);
    size_t lines = count_lines(text);
    CHECK(lines > 2 * HOURS * 360);
    CHECK(lines < 3 * HOURS * 3600 / 4);
    stk_mem_free(text);
}

static void a_full_disk_is_remembered(void) {
    stk_error err = {0};
    int fd = open("/dev/full", O_WRONLY | O_CLOEXEC);
    if (fd < 0) {
        CHECK_SKIP("there is no /dev/full here");
    }
    stk_jsonl *jsonl = NULL;
    stk_events events = {0};
    stk_jsonl_config config = {.fd = fd, .name = "the full disk"};
    REQUIRE_OK(stk_jsonl_new(&jsonl, &config, &err), &err);
    stk_events_add(&events, stk_jsonl_observer(jsonl));
    tell_everything(&events);
    CHECK_INT(stk_jsonl_error(jsonl, NULL), STK_ERR_STORAGE);
    CHECK_INT(stk_jsonl_error(jsonl, &err), STK_ERR_STORAGE);
    CHECK_CONTAINS(err.message, "cannot write the full disk: No space left");
    stk_jsonl_free(jsonl);
    close(fd);
}

/* A limit on the size of files makes a write stop midway, as a disk that fills up does. */
static void half_a_line_is_taken_back(void) {
    stk_error err = {0};
    struct rlimit old;
    int fd = -1;
    const char *folder = check_folder();
    char *path = stk_path_join(folder, "lines");
    REQUIRE_OK(stk_lines_open(path, &fd, &err), &err);
    stk_lines lines = {.fd = fd, .name = path};
    REQUIRE_OK(stk_lines_write(&lines, "first\n", 6, &err), &err);
    REQUIRE(getrlimit(RLIMIT_FSIZE, &old) == 0);
    struct rlimit small = {.rlim_cur = 10, .rlim_max = old.rlim_max};
    void (*handler)(int) = signal(SIGXFSZ, SIG_IGN);
    REQUIRE(setrlimit(RLIMIT_FSIZE, &small) == 0);
    stk_status status = stk_lines_write(&lines, "second\n", 7, &err);
    bool restored = setrlimit(RLIMIT_FSIZE, &old) == 0;
    signal(SIGXFSZ, handler);
    CHECK(restored);
    CHECK_INT(status, STK_ERR_STORAGE);
    stk_error_clear(&err);
    REQUIRE_OK(stk_lines_write(&lines, "third\n", 6, &err), &err);
    close(fd);
    char *text = read_text(folder, "lines");
    CHECK_STR(text, "first\nthird\n");
    stk_mem_free(text);
    stk_mem_free(path);
}

static void a_torn_line_is_ended(void) {
    int ends[2];
    char text[32] = "";
    stk_error err = {0};
    REQUIRE(pipe(ends) == 0);
    stk_lines lines = {.fd = ends[1], .name = "a pipe", .torn = true};
    REQUIRE_OK(stk_lines_write(&lines, "next\n", 5, &err), &err);
    CHECK(!lines.torn);
    CHECK_INT(read(ends[0], text, sizeof text - 1), 6);
    CHECK_STR(text, "\nnext\n");
    close(ends[0]);
    close(ends[1]);
}

/* ---- the run folder ---- */

static void a_run_folder_is_complete(void) {
    stk_error err = {0};
    stk_runfiles *files = NULL;
    stk_events events = {0};
    const char *folder = check_folder();
    REQUIRE_OK(stk_runfiles_new(&files, folder, &err), &err);
    char *text = read_text(folder, "bad_images.csv");
    CHECK_STR(text, "path,split,reason\n");
    stk_mem_free(text);
    stk_events_add(&events, stk_runfiles_observer(files));
    tell_everything(&events);
    check_whole(files);
    stk_runfiles_free(files);

    text = read_text(folder, "results.csv");
    CHECK_STR(text, "fold,epoch,train/loss,train/acc1,val/loss,val/acc1,val/acc5,lr,"
                    "images_per_second,wait_fraction,seconds\n"
                    "0,1,1.23457,61.235,1.1,64.000,,0.0001,812.3,0.0312,12.346\n");
    stk_mem_free(text);
    text = read_text(folder, "bad_images.csv");
    CHECK_STR(text, "path,split,reason\n\"a \"\"b\"\",\xff.jpg\",train,\"it ends\nearly\"\n");
    stk_mem_free(text);
    text = read_text(folder, "events.jsonl");
    CHECK_INT(text != NULL ? count_lines(text) : 0, 10);
    stk_mem_free(text);
    text = read_text(folder, "summary.json");
    stk_json *summary = NULL;
    REQUIRE(text != NULL);
    REQUIRE_OK(stk_json_parse(text, strlen(text), &summary, &err), &err);
    CHECK_INT(stk_json_count(summary), SUMMARY_KEYS);
    for (size_t i = 0; i < SUMMARY_KEYS; i++) {
        CHECK(stk_json_get(summary, summary_keys[i]) != NULL);
    }
    CHECK_STR(stk_json_string(stk_json_get(summary, "status")), "partial");
    CHECK_INT(stk_json_kind_of(stk_json_get(summary, "best_acc1")), STK_JSON_NULL);
    CHECK_INT(stk_json_kind_of(stk_json_get(summary, "verdict")), STK_JSON_NULL);
    CHECK_NEAR(stk_json_number(stk_json_get(summary, "used_s"), 0), 12.346, 0);
    stk_json_free(summary);
    stk_mem_free(text);
    text = read_text(folder, stk_canvas_has_png() ? "results.png" : "results.svg");
    CHECK(text != NULL);
    stk_mem_free(text);
}

/* Whether the run folder has something for TensorBoard. */
static bool has_event_file(const char *folder) {
    stk_dir_list list = {0};
    char *path = stk_path_join(folder, "tensorboard");
    bool found = path != NULL && stk_dir_read(path, &list, NULL) == STK_OK && list.count == 1 &&
                 strncmp(list.entries[0].name, "events.out.tfevents.", 20) == 0;
    stk_dir_list_free(&list);
    stk_mem_free(path);
    return found;
}

static void tensorboard_is_told_where_it_is_wanted(void) {
    static const stk_resume_point point = {.fold = 0, .steps_done = 15, .epoch = 1};
    for (int i = 0; i < 3; i++) {
        stk_error err = {0};
        stk_runfiles *files = NULL;
        stk_events events = {0};
        const char *folder = check_folder();
        REQUIRE_OK(stk_runfiles_new(&files, folder, &err), &err);
        if (i > 0) {
            REQUIRE_OK(stk_runfiles_add_tensorboard(files, i > 1 ? &point : NULL, &err), &err);
        }
        stk_events_add(&events, stk_runfiles_observer(files));
        tell_everything(&events);
        CHECK(has_event_file(folder) == (i > 0));
        check_whole(files);
        stk_runfiles_free(files);
    }
}

/* A file where its folder should be is an error like that of any other file. */
static void an_error_of_tensorboard_is_told(void) {
    stk_error err = {0};
    stk_runfiles *files = NULL;
    stk_events events = {0};
    const char *folder = check_folder();
    char *path = stk_path_join(folder, "tensorboard");
    REQUIRE_OK(stk_file_write(path, "", 0, &err), &err);
    REQUIRE_OK(stk_runfiles_new(&files, folder, &err), &err);
    REQUIRE_OK(stk_runfiles_add_tensorboard(files, NULL, &err), &err);
    stk_events_add(&events, stk_runfiles_observer(files));
    tell_everything(&events);
    stk_str lacking = {0};
    CHECK(stk_runfiles_lacking(files, &lacking));
    CHECK_CONTAINS(stk_str_text(&lacking),
                   "files of the run folder could not be written (TensorBoard's events): ");
    CHECK_CONTAINS(stk_str_text(&lacking), path);
    stk_str_free(&lacking);
    stk_runfiles_free(files);
    stk_mem_free(path);
}

static void folds_and_epochs_become_rows(void) {
    stk_error err = {0};
    stk_runfiles *files = NULL;
    stk_events events = {0};
    const char *folder = check_folder();
    REQUIRE_OK(stk_runfiles_new(&files, folder, &err), &err);
    stk_events_add(&events, stk_runfiles_observer(files));
    for (int i = 0; i < 6; i++) {
        stk_event_epoch epoch = epoch_event;
        epoch.fold = i / 3;
        epoch.epoch = i % 3 + 1;
        stk_events_epoch(&events, &epoch);
        char *text = read_text(folder, "results.csv"); /* rewritten after each epoch */
        REQUIRE(text != NULL);
        CHECK_INT(count_lines(text), i + 2);
        stk_mem_free(text);
    }
    stk_runfiles_free(files);
    stk_csv csv;
    char *path = stk_path_join(folder, "results.csv");
    REQUIRE_OK(stk_csv_read(path, &csv, &err), &err);
    CHECK_INT(csv.rows, 6);
    CHECK_STR(stk_csv_cell(&csv, 5, stk_csv_column(&csv, "fold")), "1");
    CHECK_STR(stk_csv_cell(&csv, 5, stk_csv_column(&csv, "epoch")), "3");
    CHECK_STR(stk_csv_cell(&csv, 5, stk_csv_column(&csv, "val/acc5")), "");
    stk_csv_free(&csv);
    stk_mem_free(path);
}

static void the_last_plot_can_be_left_out(void) {
    stk_error err = {0};
    stk_runfiles *files = NULL;
    stk_events events = {0};
    const char *folder = check_folder();
    const char *plot = stk_canvas_has_png() ? "results.png" : "results.svg";
    REQUIRE_OK(stk_runfiles_new(&files, folder, &err), &err);
    stk_events_add(&events, stk_runfiles_observer(files));
    CHECK_NEAR(stk_runfiles_draw_s(files), 0, 0);
    stk_events_epoch(&events, &epoch_event); /* the first epoch is drawn */
    CHECK(stk_runfiles_draw_s(files) > 0);
    char *path = stk_path_join(folder, plot);
    REQUIRE(path != NULL);
    for (int drawn = 0; drawn < 2; drawn++) {
        stk_events_epoch(&events, &epoch_event); /* the next ones are not, so soon */
        REQUIRE(unlink(path) == 0);
        stk_runfiles_finish(files, drawn > 0 ? INFINITY : -1, NULL);
        CHECK(stk_path_is_file(path) == (drawn > 0));
        stk_runfiles_finish(files, INFINITY, NULL);
    }
    REQUIRE(unlink(path) == 0);
    stk_runfiles_finish(files, INFINITY, NULL);
    CHECK(!stk_path_is_file(path)); /* nothing new was to be drawn */
    check_whole(files);
    stk_runfiles_free(files);
    stk_mem_free(path);
}

static void the_page_is_there_with_the_first_verdict(void) {
    stk_error err = {0};
    stk_runfiles *files = NULL;
    stk_events events = {0};
    const stk_event_verdict verdict = {.name = "fine", .text = "all is well", .fine = true};
    const char *folder = check_folder();
    REQUIRE_OK(stk_runfiles_new(&files, folder, &err), &err);
    stk_events_add(&events, stk_runfiles_observer(files));
    stk_events_verdict(&events, &verdict);
    char *page = read_text(folder, "report.html");
    CHECK_CONTAINS(page, "all is well");
    stk_mem_free(page);
    stk_runfiles_finish(files, -1, NULL); /* there is no time for another one */
    stk_events_stop(&events, &empty_summary);
    page = read_text(folder, "report.html");
    CHECK_CONTAINS(page, "no end was written");
    stk_mem_free(page);
    stk_runfiles_finish(files, INFINITY, NULL);
    stk_events_stop(&events, &empty_summary);
    page = read_text(folder, "report.html");
    CHECK_CONTAINS(page, "it was asked to stop");
    CHECK(strstr(page, "no end was written") == NULL);
    stk_mem_free(page);
    check_whole(files);
    stk_runfiles_free(files);
}

static void no_epoch_gives_no_plot(void) {
    stk_error err = {0};
    stk_runfiles *files = NULL;
    stk_events events = {0};
    const char *folder = check_folder();
    REQUIRE_OK(stk_runfiles_new(&files, folder, &err), &err);
    stk_events_add(&events, stk_runfiles_observer(files));
    stk_runfiles_finish(files, INFINITY, NULL);
    stk_events_stop(&events, &empty_summary);
    check_whole(files);
    stk_runfiles_free(files);
    char *text = read_text(folder, "results.csv");
    CHECK_INT(text != NULL ? count_lines(text) : 0, 1);
    stk_mem_free(text);
    CHECK(read_text(folder, "results.png") == NULL);
    CHECK(read_text(folder, "results.svg") == NULL);
}

/* Where no epoch is marked as the best, the one of the highest accuracy is, as on the page. */
static void the_plot_marks_the_best_epoch_of_the_history(void) {
    stk_error err = {0};
    stk_runfiles *files = NULL;
    stk_events events = {0};
    stk_event_epoch rows[3];
    const char *name = stk_canvas_has_png() ? "results.png" : "results.svg";
    const char *other = stk_canvas_has_png() ? "wanted.png" : "wanted.svg";
    const char *folder = check_folder();
    REQUIRE_OK(stk_runfiles_new(&files, folder, &err), &err);
    stk_events_add(&events, stk_runfiles_observer(files));
    stk_events_start(&events, &start_event);
    for (int i = 0; i < 3; i++) {
        rows[i] = epoch_event;
        rows[i].epoch = i + 1;
        rows[i].val_acc1 = i == 1 ? 80 : 70;
        rows[i].best = false;
        stk_events_epoch(&events, &rows[i]);
    }
    stk_runfiles_finish(files, INFINITY, NULL);
    stk_events_stop(&events, &empty_summary);
    stk_runfiles_free(files);
    stk_plot plot = {
        .title = "convnet_s on data", .rows = rows, .count = 3, .folds = 1, .best = &rows[1]};
    char *path = stk_path_join(folder, name);
    char *wanted_path = stk_path_join(folder, other);
    char *drawn = NULL;
    char *wanted = NULL;
    size_t drawn_size = 0;
    size_t wanted_size = 0;
    REQUIRE_OK(stk_plot_write(&plot, wanted_path, &err), &err);
    REQUIRE_OK(stk_file_read(path, 0, &drawn, &drawn_size, &err), &err);
    REQUIRE_OK(stk_file_read(wanted_path, 0, &wanted, &wanted_size, &err), &err);
    CHECK(drawn_size == wanted_size && memcmp(drawn, wanted, wanted_size) == 0);
    stk_mem_free(drawn);
    stk_mem_free(wanted);
    stk_mem_free(path);
    stk_mem_free(wanted_path);
}

static void events_are_continued(void) {
    const char *folder = check_folder();
    for (int i = 0; i < 2; i++) {
        stk_error err = {0};
        stk_runfiles *files = NULL;
        stk_events events = {0};
        REQUIRE_OK(stk_runfiles_new(&files, folder, &err), &err);
        stk_events_add(&events, stk_runfiles_observer(files));
        stk_events_warning(&events, "once");
        stk_events_bad_image(&events, "a.jpg", NULL, NULL);
        stk_runfiles_free(files);
    }
    char *text = read_text(folder, "events.jsonl");
    CHECK_INT(text != NULL ? count_lines(text) : 0, 4);
    stk_mem_free(text);
    text = read_text(folder, "bad_images.csv");
    CHECK_STR(text, "path,split,reason\na.jpg,,\n");
    stk_mem_free(text);
}

static void a_missing_folder_is_an_error(void) {
    stk_error err = {0};
    stk_runfiles *files = NULL;
    CHECK_INT(stk_runfiles_new(&files, "/nonexistent/run", &err), STK_ERR_STORAGE);
    CHECK_CONTAINS(err.message, "/nonexistent/run/results.csv");
    CHECK(files == NULL);
}

static void a_read_only_folder_is_an_error(void) {
    if (geteuid() == 0) {
        CHECK_SKIP("the superuser may write to read-only folders");
    }
    stk_error err = {0};
    stk_runfiles *files = NULL;
    const char *folder = check_folder();
    REQUIRE(chmod(folder, 0555) == 0);
    CHECK_INT(stk_runfiles_new(&files, folder, &err), STK_ERR_STORAGE);
    CHECK_CONTAINS(err.message, "Permission denied");
    chmod(folder, 0755);
}

/* The folder goes away and comes back: what could not be written is written again. */
static void an_error_is_told_and_writing_goes_on(void) {
    stk_error err = {0};
    stk_runfiles *files = NULL;
    stk_events events = {0};
    const char *parent = check_folder();
    char *folder = stk_path_join(parent, "run");
    char *moved = stk_path_join(parent, "moved");
    REQUIRE_OK(stk_dir_make(folder, &err), &err);
    REQUIRE_OK(stk_runfiles_new(&files, folder, &err), &err);
    stk_events_add(&events, stk_runfiles_observer(files));
    stk_events_start(&events, &start_event);
    check_whole(files);
    REQUIRE(rename(folder, moved) == 0);
    stk_events_epoch(&events, &epoch_event);
    stk_str lacking = {0};
    CHECK(stk_runfiles_lacking(files, &lacking));
    CHECK_CONTAINS(stk_str_text(&lacking), "files of the run folder could not be written (rows of "
                                           "results.csv, the plot, report.html): ");
    char *results = stk_path_join(folder, "results.csv");
    CHECK_CONTAINS(stk_str_text(&lacking), results); /* the first error */
    stk_mem_free(results);
    stk_str_free(&lacking);
    REQUIRE(rename(moved, folder) == 0);
    stk_runfiles_finish(files, INFINITY, NULL);
    stk_events_stop(&events, &empty_summary);
    char *text = read_text(folder, "results.csv");
    CHECK_INT(text != NULL ? count_lines(text) : 0, 2);
    stk_mem_free(text);
    text = read_text(folder, "summary.json");
    CHECK(text != NULL);
    stk_mem_free(text);
    check_whole(files); /* all of it could be written after all */
    stk_runfiles_free(files);
    stk_mem_free(folder);
    stk_mem_free(moved);
}

/* A file that could not be written may be written whole later, so one run that lacks nothing is not
 * the end. */
static void lack_of_memory_is_survived(void) {
    enum { ENOUGH = 3 };
    const char *folder = check_folder();
    int whole = 0; /* runs one after the other that lack nothing */
    for (int i = 0; i < 5000 && whole < ENOUGH; i += 1 + i / 8) {
        stk_error err = {0};
        stk_runfiles *files = NULL;
        stk_events events = {0};
        stk_str lacking = {0};
        stk_mem_fail_after(i);
        stk_status status = stk_runfiles_new(&files, folder, &err);
        if (status == STK_OK) {
            status = stk_runfiles_add_tensorboard(files, NULL, &err);
        }
        if (status == STK_OK) {
            stk_events_add(&events, stk_runfiles_observer(files));
            tell_everything(&events);
        }
        stk_mem_fail_after(-1);
        CHECK(status == STK_OK || status == STK_ERR_MEMORY);
        CHECK(status == STK_OK || strlen(err.message) > 0);
        bool lacks = status != STK_OK || stk_runfiles_lacking(files, &lacking);
        CHECK(status != STK_OK || !lacks || strstr(stk_str_text(&lacking), "memory") != NULL);
        whole = lacks ? 0 : whole + 1;
        stk_str_free(&lacking);
        stk_runfiles_free(files);
    }
    CHECK_INT(whole, ENOUGH);
}

static const check_test tests[] = {
    TEST(every_event_is_one_line),
    TEST(values_keep_their_kinds),
    TEST(steps_come_twice_a_second),
    TEST(days_of_a_run_are_told_less_often),
    TEST(a_full_disk_is_remembered),
    TEST(half_a_line_is_taken_back),
    TEST(a_torn_line_is_ended),
    TEST(a_run_folder_is_complete),
    TEST(folds_and_epochs_become_rows),
    TEST(the_page_is_there_with_the_first_verdict),
    TEST(tensorboard_is_told_where_it_is_wanted),
    TEST(an_error_of_tensorboard_is_told),
    TEST(no_epoch_gives_no_plot),
    TEST(the_last_plot_can_be_left_out),
    TEST(the_plot_marks_the_best_epoch_of_the_history),
    TEST(events_are_continued),
    TEST(a_missing_folder_is_an_error),
    TEST(a_read_only_folder_is_an_error),
    TEST(an_error_is_told_and_writing_goes_on),
    TEST(lack_of_memory_is_survived),
};

CHECK_MAIN(tests)
