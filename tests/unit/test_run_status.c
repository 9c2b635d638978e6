/* test_run_status.c - what the files of a run say to somebody outside, whatever state they are in.
 */
#include "check.h"
#include "small_pictures.h"
#include "told_lines.h"

#include <fcntl.h>
#include <sys/stat.h>

#include "base/numbers/rng.h"
#include "base/text/json.h"
#include "report/state/run_read.h"
#include "report/text/event_json.h"
#include "report/status/run_status.h"

static char run[256];

static void make_run(const char *events) {
    snprintf(run, sizeof run, "%s", check_folder());
    if (events != NULL) {
        write_text(run, "events.jsonl", events);
    }
}

static const char *in_run(const char *name) {
    static char path[600];
    snprintf(path, sizeof path, "%s/%s", run, name);
    return path;
}

static void add_text(const char *name, const char *text) {
    FILE *file = fopen(in_run(name), "a");
    if (file == NULL || fputs(text, file) < 0 || fclose(file) != 0) {
        perror("events");
        exit(1);
    }
}

/* The wall clock of all of these tests, and when events.jsonl was written last. */
#define NOW_S 2000000000
static void written_before(int seconds) {
    struct timespec times[2] = {{.tv_sec = NOW_S - seconds}, {.tv_sec = NOW_S - seconds}};
    CHECK(utimensat(AT_FDCWD, in_run("events.jsonl"), times, 0) == 0);
}

static stk_status look(stk_run_status *status, stk_error *err) {
    return stk_run_status_read(status, INT64_C(1000000000) * NOW_S, err);
}

static stk_run_status look_at(bool running) {
    stk_error err = {0};
    stk_run_status status;
    must(stk_run_status_open(&status, run, true, &err), &err);
    status.running = running;
    status.pid = 123;
    status.since_ns = 0;
    must(look(&status, &err), &err);
    return status;
}

static char *lines_of(const stk_run_status *status) {
    stk_str text = {0};
    stk_run_status_lines(status, &text);
    return stk_str_take(&text);
}

static void a_run_that_goes_on(void) {
    make_run(START_LINE SUBMISSION_LINE(0.2) STEP_LINE(4.0, 1, 2.5) EPOCH_LINE(5.0, 2, 64.5, true)
                 EPOCH_LINE(6.0, 3, 60.0, false) SAMPLE_LINE(7.0) VERDICT_LINE(7.5, "input-bound")
                     STEP_LINE(8.0, 40, 1.25));
    write_text(run, "results.csv", "fold,epoch\n0,1\n0,2\n0,3\n");
    write_text(run, "args.json", "{\"metric\": \"acc1\"}");
    write_text(run, "submission.csv", "id,label\n");
    written_before(2);
    stk_run_status status = look_at(true);
    stk_summary summary = stk_run_status_summary(&status);
    CHECK_STR(stk_run_status_state(&status), "running");
    CHECK(summary.status == NULL && summary.stop_reason == NULL);
    CHECK_NEAR(summary.best_acc1, 64.5, 0);
    CHECK_NEAR(summary.best_metric, 64.5, 0);
    CHECK_INT(summary.epochs_done, 3);
    CHECK_NEAR(summary.used_s, 10, 1e-6); /* the last event's and the silence since */
    CHECK_NEAR(summary.budget_s, 660, 0);
    CHECK_STR(summary.verdict, "decode-bound");
    CHECK_STR(stk_run_status_verdict(&status), "input-bound");
    CHECK_STR(summary.submission, "submission.csv");
    CHECK_NEAR(stk_run_view_step(&status.view)->loss, 1.25, 0);
    CHECK_INT(stk_run_view_step(&status.view)->step, 40);
    CHECK_INT(status.losses.count, 2);
    char *text = lines_of(&status);
    CHECK_CONTAINS(text, "running, process 123, since 1970-01-01T00:00:00Z\n");
    CHECK_CONTAINS(text, "epoch 3/10, step 40/100, loss 1.25, accuracy 61.5%\n");
    CHECK_CONTAINS(text, "validation accuracy 64.5%, 3 epochs done\n");
    CHECK_CONTAINS(text, "2900 images/s, waiting for data 46%\n");
    CHECK_CONTAINS(text, "0:10 of 11:00, 10:50 left; about 3:20 of training to go\n");
    CHECK_CONTAINS(text, "GPU 54%, SM 38%, GPU memory 18 GB of 24 GB, CPU 97%\n");
    CHECK_CONTAINS(text, "  verdict     input-bound\n");
    CHECK_CONTAINS(text, "submission.csv (prior)\n");
    stk_mem_free(text);
    stk_run_status_close(&status);
}

/* Without an end and without a process somebody has killed it. */
static void a_run_that_was_killed(void) {
    make_run(START_LINE STEP_LINE(4.0, 1, 2.5));
    written_before(100);
    stk_run_status status = look_at(false);
    CHECK_STR(stk_run_status_state(&status), "killed");
    CHECK_NEAR(stk_run_status_used_s(&status), 4.0, 0);
    char *text = lines_of(&status);
    CHECK_CONTAINS(text, "was killed before its first step; begin a new run\n");
    stk_mem_free(text);
    must(stk_dir_make(in_run("state"), NULL), &(stk_error){0});
    write_text(run, "state/train.safetensors", "x");
    must(look(&status, NULL), &(stk_error){0});
    text = lines_of(&status);
    CHECK_CONTAINS(text, "can be resumed with: stoker train --resume /");
    stk_mem_free(text);
    stk_run_status_close(&status);
}

static void a_run_that_ended(void) {
    make_run(START_LINE STEP_LINE(4.0, 1, 2.5) STOP_LINE(9.0));
    stk_run_status status = look_at(false); /* killed between its last event and its summary */
    CHECK_STR(stk_run_status_state(&status), "ended");
    CHECK_NEAR(stk_run_status_used_s(&status), 99, 0);
    write_text(run, "summary.json",
               "{\"status\": \"complete\", \"stop_reason\": \"epochs\", \"used_s\": 100.5, "
               "\"best_acc1\": 71, \"metric\": \"qwk\", \"best_metric\": 0.5, "
               "\"verdict\": \"all \\u001b[31m is fine\", \"epochs_done\": 1}");
    must(look(&status, NULL), &(stk_error){0});
    CHECK_NEAR(stk_run_status_used_s(&status), 100.5, 0);
    char *text = lines_of(&status);
    CHECK_CONTAINS(text, "ended, complete (epochs)\n");
    CHECK_CONTAINS(text, "validation accuracy 71.0%, qwk 0.5, 1 epoch done\n");
    CHECK_CONTAINS(text, "submission  none\n");
    CHECK(strchr(text, '\x1b') == NULL); /* no text of others commands the terminal */
    stk_mem_free(text);
    stk_run_status_close(&status);
}

/* What the process before has told of its end and its speed is over; its results are not. */
static void a_run_that_was_resumed(void) {
    make_run(START_LINE EPOCH_LINE(2.0, 1, 55.0, true) STEP_LINE(4.0, 1, 2.5) WARNING_LINE(4.5)
                 STOP_LINE(5.0) START_LINE EPOCH_LINE(6.0, 2, 50.0, false));
    stk_run_status status = look_at(true);
    CHECK(!stk_run_view_has_ended(&status.view) && stk_run_view_step(&status.view) == NULL);
    CHECK(!status.view.is_current[STK_EVENT_WARNING]);
    CHECK_NEAR(status.view.best->val_acc1, 55, 0);
    CHECK_INT(status.view.epoch->epoch, 2);
    /* The same when it is watched meanwhile. */
    add_text("events.jsonl", STEP_LINE(7.0, 1, 2.0) STOP_LINE(8.0));
    must(look(&status, NULL), &(stk_error){0});
    CHECK(stk_run_view_has_ended(&status.view));
    add_text("events.jsonl", START_LINE);
    must(look(&status, NULL), &(stk_error){0});
    CHECK(!stk_run_view_has_ended(&status.view) && stk_run_view_step(&status.view) == NULL);
    CHECK_NEAR(status.view.best->val_acc1, 55, 0);
    stk_run_status_close(&status);
}

/* The summary of the run folder as `stoker report` reads it, or as `stoker status` does. */
static char *summary_text(bool by_report) {
    stk_error err = {0};
    stk_str text = {0};
    stk_run_read read = {0};
    stk_run_status status = {0};
    stk_summary summary;
    if (by_report) {
        must(stk_run_read_open(&read, run, &err), &err);
        summary = stk_run_read_summary(&read);
    } else {
        status = look_at(true);
        summary = stk_run_status_summary(&status);
    }
    summary.used_s = NAN; /* only status knows that the run goes on, and adds the time since */
    stk_json_writer writer = stk_json_write_to(&text, 2);
    stk_json_begin_object(&writer);
    stk_event_put(&writer, STK_EVENT_STOP, &summary);
    stk_json_end_object(&writer);
    stk_run_status_close(&status);
    stk_run_read_close(&read);
    return stk_str_take(&text);
}

#define ATTEMPT_LINE(t, number, ended)                                                         \
    "{\"t\": " #t ", \"event\": \"attempt\", \"ended\": " #ended ", \"number\": " #number ", " \
    "\"part\": \"train\", \"command\": \"python train.py\", \"batch\": 32, \"workers\": 4, "   \
    "\"images_per_second\": 300}\n"

static void status_and_report_agree(void) {
    static const struct {
        const char *events;
        const char *results;
    } cases[] = {
        {START_LINE, "fold,epoch\n"},
        {START_LINE SUBMISSION_LINE(0.2) STEP_LINE(4.0, 1, 2.5) EPOCH_LINE(5.0, 1, 64.5, true)
             EPOCH_LINE(6.0, 2, 60.0, false) SAMPLE_LINE(7.0) VERDICT_LINE(7.5, "input-bound")
                 STEP_LINE(8.0, 40, 1.25),
         "fold,epoch,val/acc1,images_per_second\n0,1,64.5,100\n0,2,60,200\n"},
        {START_LINE EPOCH_LINE(2.0, 1, 55.0, true) VERDICT_LINE(3.0, "old") STEP_LINE(4.0, 1, 2.5)
             STOP_LINE(5.0) START_LINE EPOCH_LINE(6.0, 2, 50.0, false),
         "fold,epoch,val/acc1\n0,1,55\n0,2,50\n"},
        {START_LINE ATTEMPT_LINE(1.0, 1, false) STEP_LINE(2.0, 4, 2.5), NULL},
        {START_LINE ATTEMPT_LINE(1.0, 1, false) STEP_LINE(2.0, 4, 2.5) ATTEMPT_LINE(3.0, 1, true)
             ATTEMPT_LINE(4.0, 2, false) SAMPLE_LINE(5.0),
         NULL},
        {START_LINE ATTEMPT_LINE(1.0, 1, false) STEP_LINE(2.0, 100, 2.5) ATTEMPT_LINE(3.0, 1, true),
         NULL},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        make_run(cases[i].events);
        write_text(run, "args.json", i % 2 == 0 ? "{\"metric\": \"acc1\"}" : "{}");
        write_text(run, "bad_images.csv", "path,split,reason\n");
        if (cases[i].results != NULL) {
            write_text(run, "results.csv", cases[i].results);
            write_text(run, "submission.csv", "id,label\n");
        }
        char *reported = summary_text(true);
        char *stands = summary_text(false);
        CHECK_STR(stands, reported);
        stk_mem_free(reported);
        stk_mem_free(stands);
    }
}

/* Feeding the lines that the search from the end has found gives what the whole file gives. */
static void the_search_finds_what_counts(void) {
    static const char *const lines[] = {START_LINE,
                                        SUBMISSION_LINE(1.0),
                                        STEP_LINE(1.5, 1, 2.5),
                                        STEP_LINE(2.0, 2, 2.0),
                                        EPOCH_LINE(2.5, 1, 50.0, true),
                                        EPOCH_LINE(3.0, 2, 40.0, false),
                                        SAMPLE_LINE(3.5),
                                        VERDICT_LINE(4.0, "slow"),
                                        WARNING_LINE(4.5),
                                        DECISION_LINE(5.0),
                                        STOP_LINE(5.5),
                                        ATTEMPT_LINE(6.0, 1, false),
                                        ATTEMPT_LINE(6.5, 1, true),
                                        ATTEMPT_LINE(7.0, 2, false)};
    for (uint64_t seed = 0; seed < 300; seed++) {
        stk_rng rng = stk_rng_make(seed, 0, 0, 0);
        stk_str text = {0};
        stk_str_append(&text, START_LINE);
        for (uint64_t n = stk_rng_u64(&rng) % 30; n > 0; n--) {
            stk_str_append(&text, lines[stk_rng_u64(&rng) % (sizeof lines / sizeof *lines)]);
        }
        make_run(stk_str_text(&text));
        stk_run_status found = look_at(true);
        stk_run_status whole = {0};
        must(stk_run_status_open(&whole, run, true, NULL), &(stk_error){0});
        whole.running = true;
        whole.pid = 123;
        whole.since_ns = 0;
        for (const char *line = text.text; *line != '\0'; line = strchr(line, '\n') + 1) {
            stk_run_status_take(&whole, line, (size_t)(strchr(line, '\n') - line));
        }
        whole.silent_s = found.silent_s;
        char *a = lines_of(&found);
        char *b = lines_of(&whole);
        CHECK_STR(a, b);
        CHECK(memcmp(found.view.is_current, whole.view.is_current, sizeof whole.view.is_current) ==
              0);
        stk_mem_free(a);
        stk_mem_free(b);
        stk_run_status_close(&found);
        stk_run_status_close(&whole);
        stk_str_free(&text);
    }
}

/* Every kind that is written is recognised by the first bytes of its line. */
static void lines_are_recognised(void) {
    for (stk_event_kind kind = 0; kind < STK_EVENT_KINDS; kind++) {
        stk_any_event event = stk_event_unknown(kind);
        stk_str line = {0};
        if (stk_event_forms[kind].name != NULL) {
            stk_event_put_line(&line, 1e12 + 1.0 / 3, kind, &event);
            CHECK_INT(stk_event_line_kind(line.text, line.length - 1), kind);
        }
        stk_str_free(&line);
    }
}

/* A line that is half there is read when it is whole. */
static void half_a_line(void) {
    const char whole[] = STEP_LINE(5.0, 2, 2.25);
    char half[64];
    snprintf(half, sizeof half, "%.40s", whole);
    make_run(START_LINE STEP_LINE(4.0, 1, 2.5));
    add_text("events.jsonl", half);
    stk_run_status status = look_at(true);
    CHECK_INT(stk_run_view_step(&status.view)->step, 1);
    must(look(&status, NULL), &(stk_error){0});
    CHECK_INT(stk_run_view_step(&status.view)->step, 1);
    add_text("events.jsonl", whole + strlen(half));
    must(look(&status, NULL), &(stk_error){0});
    CHECK_INT(stk_run_view_step(&status.view)->step, 2);
    CHECK_INT(status.losses.count, 2);
    stk_run_status_close(&status);
}

static void damaged_lines_are_passed_over(void) {
    static const char *const damaged[] = {
        "\n\n",
        "{\"t\": 5, \"event\": \"step\"\n",
        "{\"t\": 5, \"event\": \"step\n",
        "{\"t\": 5, \"event\": \"novelty\", \"step\": 7}\n",
        "[\"event\": \"step\"]\n",
        "[1, \"event\", \"step\"]\n",
        "no JSON at all \xff\n",
        "{\"t\": 5, \"event\": \"step\", \"step\": 7}}\n",
    };
    for (size_t i = 0; i < sizeof damaged / sizeof *damaged; i++) {
        make_run(START_LINE STEP_LINE(4.0, 1, 2.5));
        add_text("events.jsonl", damaged[i]);
        stk_run_status status = look_at(true);
        CHECK_INT(stk_run_view_step(&status.view)->step, 1);
        add_text("events.jsonl", damaged[i]);
        add_text("events.jsonl", STEP_LINE(6.0, 3, 1.5));
        must(look(&status, NULL), &(stk_error){0});
        CHECK_INT(stk_run_view_step(&status.view)->step, 3);
        stk_run_status_close(&status);
    }
    make_run("");
    write_text(run, "summary.json", "{\"status\": ");
    write_text(run, "args.json", "[]");
    stk_run_status status = look_at(false);
    CHECK_STR(stk_run_status_state(&status), "killed");
    char *text = lines_of(&status);
    CHECK_CONTAINS(text, "was killed before it began");
    stk_mem_free(text);
    stk_run_status_close(&status);
}

/* Values of other types than they should be are not known. */
static void odd_values(void) {
    make_run("{\"t\": \"soon\", \"event\": \"step\", \"epoch\": -1, \"step\": 1.5, \"loss\": "
             "\"low\", \"epochs\": [1], \"steps\": null}\n"
             "{\"t\": 1, \"event\": \"epoch\", \"best\": \"yes\", \"val_acc1\": {}}\n");
    stk_run_status status = look_at(true);
    CHECK_INT(stk_run_view_step(&status.view)->epoch, -1);
    CHECK_INT(stk_run_view_step(&status.view)->step, -1);
    CHECK(isnan(stk_run_view_step(&status.view)->loss));
    CHECK(status.view.best == NULL);
    CHECK_INT(status.losses.count, 0);
    stk_mem_free(lines_of(&status));
    stk_run_status_close(&status);
}

/* A folder may be anybody's: what stands in it must not command the terminal. */
static void foreign_texts_are_cleaned(void) {
    make_run("{\"t\": 1, \"event\": \"start\", \"folds\": 1}\n"
             "{\"t\": 2, \"event\": \"stop\", \"status\": \"\\u001b[2Jdone\", "
             "\"stop_reason\": \"a\\u001b[1m\", \"metric\": \"\\u001bm\", \"best_metric\": 1, "
             "\"best_acc1\": 50, \"epochs_done\": 1}\n");
    stk_run_status status = look_at(false);
    char *text = lines_of(&status);
    CHECK_CONTAINS(text, "ended, ");
    CHECK(strchr(text, '\x1b') == NULL);
    stk_mem_free(text);
    stk_run_status_close(&status);
}

/* What was said once stays known behind thousands of steps; the losses become fewer, not lost. */
static void long_files(void) {
    stk_str text = {0};
    make_run(NULL);
    stk_str_append(&text, START_LINE VERDICT_LINE(1.0, "said long ago"));
    for (int i = 0; i < 12000; i++) {
        stk_str_appendf(&text,
                        "{\"t\": %d, \"event\": \"step\", \"fold\": 0, \"epoch\": 1, \"step\": %d, "
                        "\"loss\": %d, \"padding\": \"%060d\"}\n",
                        i + 2, i, 12000 - i, i);
    }
    CHECK(text.length > 1 << 20);
    write_text(run, "events.jsonl", stk_str_text(&text));
    stk_run_status status = look_at(true);
    CHECK_STR(status.view.verdict->text, "said long ago");
    CHECK_STR(status.view.start->model, "resnet18");
    CHECK_INT(stk_run_view_step(&status.view)->step, 11999);
    const stk_curve *curve = &status.losses;
    CHECK(curve->count > STK_CURVE_POINTS / 4 && curve->count <= STK_CURVE_POINTS);
    for (int i = 1; i < curve->count; i++) {
        REQUIRE(curve->points[i] < curve->points[i - 1]);
    }
    CHECK(curve->points[0] > 11900 && curve->points[curve->count - 1] < 100);
    stk_run_status_close(&status);
    stk_str_free(&text);
}

/* A process that goes on with a run replaces the file; one whose write failed cuts it. */
static void replaced_files(void) {
    make_run(START_LINE EPOCH_LINE(2.0, 1, 55.0, true) STEP_LINE(4.0, 1, 2.5));
    stk_run_status status = look_at(true);
    write_text(run, "events.jsonl",
               START_LINE STEP_LINE(4.0, 9, 2.0) SAMPLE_LINE(5.0) STEP_LINE(6.0, 10, 1.0));
    must(look(&status, NULL), &(stk_error){0});
    CHECK(status.view.best == NULL);
    CHECK_INT(stk_run_view_step(&status.view)->step, 10);
    CHECK_INT(status.losses.count, 2);
    CHECK(truncate(in_run("events.jsonl"), (off_t)strlen(START_LINE)) == 0);
    must(look(&status, NULL), &(stk_error){0});
    CHECK(stk_run_view_step(&status.view) == NULL && status.view.start != NULL);
    stk_run_status_close(&status);
}

static void folders_without_a_run(void) {
    static const char *const words[] = {"there is no such folder", "holds no run"};
    for (int i = 0; i < 2; i++) {
        stk_error err = {0};
        stk_run_status status;
        make_run(NULL);
        must(stk_run_status_open(&status, i == 0 ? in_run("nothing") : run, false, &err), &err);
        CHECK_INT(look(&status, &err), STK_ERR_USAGE);
        CHECK_CONTAINS(err.message, words[i]);
        stk_run_status_close(&status);
    }
}

static void one_object_for_programs(void) {
    static const char *const keys[] = {"state",  "pid",  "status",    "stop_reason",   "epoch",
                                       "epochs", "step", "steps",     "loss",          "left_s",
                                       "used_s", "cpu",  "best_acc1", "submission",    "gpu_util",
                                       "since",  "data", "run_dir",   "budget_left_s", "jpeg_util"};
    for (int i = 0; i < 2; i++) {
        stk_error err = {0};
        stk_str text = {0};
        stk_json *object = NULL;
        make_run(i == 0 ? "" : START_LINE STEP_LINE(4.0, 1, 2.5) SAMPLE_LINE(5.0));
        stk_run_status status = look_at(i == 1);
        stk_json_writer writer = stk_json_write_to(&text, 0);
        stk_json_begin_object(&writer);
        stk_run_status_put(&status, &writer);
        stk_json_end_object(&writer);
        REQUIRE_OK(stk_json_parse(text.text, text.length, &object, &err), &err);
        for (size_t k = 0; k < sizeof keys / sizeof *keys; k++) {
            if (stk_json_get(object, keys[k]) == NULL) {
                CHECK_FAIL("the key %s is missing", keys[k]);
            }
        }
        CHECK_STR(stk_json_string(stk_json_get(object, "state")), i == 1 ? "running" : "killed");
        CHECK_NEAR(stk_json_number(stk_json_get(object, "pid"), -1), i == 1 ? 123 : -1, 0);
        CHECK_NEAR(stk_json_number(stk_json_get(object, "step"), -1), i == 1 ? 1 : -1, 0);
        CHECK_NEAR(stk_json_number(stk_json_get(object, "gpu_util"), -1), i == 1 ? 54 : -1, 0);
        CHECK_INT(stk_json_kind_of(stk_json_get(object, "budget_left_s")) == STK_JSON_NULL, i == 0);
        stk_json_free(object);
        stk_str_free(&text);
        stk_run_status_close(&status);
    }
}

static void without_memory(void) {
    make_run(START_LINE EPOCH_LINE(2.0, 1, 55.0, true) STEP_LINE(4.0, 1, 2.5) SAMPLE_LINE(5.0));
    write_text(run, "summary.json", "{\"status\": \"complete\"}");
    for (int64_t n = 0; n < 200; n++) {
        stk_error err = {0};
        stk_run_status status;
        stk_str text = {0};
        stk_mem_fail_after(n);
        bool good = stk_run_status_open(&status, run, true, &err) == STK_OK &&
                    look(&status, &err) == STK_OK;
        if (good) {
            stk_run_status_lines(&status, &text);
        }
        stk_mem_fail_after(-1);
        CHECK(good || err.status == STK_ERR_MEMORY);
        stk_str_free(&text);
        stk_run_status_close(&status);
    }
}

static const check_test tests[] = {
    TEST(a_run_that_goes_on),
    TEST(a_run_that_was_killed),
    TEST(a_run_that_ended),
    TEST(a_run_that_was_resumed),
    TEST(half_a_line),
    TEST(status_and_report_agree),
    TEST(the_search_finds_what_counts),
    TEST(lines_are_recognised),
    TEST(damaged_lines_are_passed_over),
    TEST(odd_values),
    TEST(foreign_texts_are_cleaned),
    TEST(long_files),
    TEST(replaced_files),
    TEST(folders_without_a_run),
    TEST(one_object_for_programs),
    TEST(without_memory),
};

CHECK_MAIN(tests)
