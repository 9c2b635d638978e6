/* What is written and shown of a command that is supervised. */
#include "check.h"
#include "folder_texts.h"
#include "told_command.h"
#include "whole_files.h"

#include <sys/stat.h>

#include "base/clock.h"
#include "base/files/file.h"
#include "base/mem.h"
#include "base/text/json.h"
#include "report/page/report_runs.h"
#include "report/state/run_read.h"
#include "report/status/run_status.h"
#include "report/runfiles.h"
#include "report/observers/screen.h"
#include "report/status/top_draw.h"

static bool has_file(const char *folder, const char *name) {
    char *path = stk_path_join(folder, name);
    bool has = path != NULL && stk_path_is_file(path);
    stk_mem_free(path);
    return has;
}

/* A run of a command, written by who writes runs. */
static void write_run(const char *folder, bool ends) {
    stk_error err = {0};
    stk_runfiles *files = NULL;
    stk_events events = {0};
    REQUIRE_OK(stk_runfiles_new_supervised(&files, folder, &err), &err);
    stk_events_add(&events, stk_runfiles_observer(files));
    tell_command_half(&events);
    if (ends) {
        stk_runfiles_finish(files, INFINITY, NULL);
        tell_command_rest(&events);
    }
    check_whole(files);
    stk_runfiles_free(files);
}

static stk_json *parse(const char *text) {
    stk_json *json = NULL;
    stk_error err = {0};
    if (text == NULL || stk_json_parse(text, strlen(text), &json, &err) != STK_OK) {
        CHECK_FAIL("no JSON: %s", err.message);
    }
    return json;
}

/* Command lines are in them. */
static void its_files_are_for_their_owner(void) {
    static const char *const names[] = {"events.jsonl", "summary.json", "report.html"};
    const char *folder = check_folder();
    mode_t before = umask(0);
    write_run(folder, true);
    umask(before);
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        struct stat info = {0};
        char *path = stk_path_join(folder, names[i]);
        CHECK(path != NULL && stat(path, &info) == 0);
        CHECK_INT(info.st_mode & 0777, 0600);
        stk_mem_free(path);
    }
}

static void its_folder_has_what_it_told(void) {
    const char *folder = check_folder();
    write_run(folder, true);
    char *text = get_file(folder, "summary.json");
    stk_json *summary = parse(text);
    const stk_json *attempts = stk_json_get(summary, "attempts");
    const stk_json *second = stk_json_at(attempts, 1);
    CHECK_STR(stk_json_string(stk_json_get(summary, "command")), TOLD_COMMAND);
    CHECK_STR(stk_json_string(stk_json_get(summary, "estimate")), "30 epochs need 75 min");
    CHECK_NEAR(stk_json_number(stk_json_get(summary, "exit_code"), NAN), 1, 0);
    CHECK_INT(stk_json_count(attempts), 3);
    CHECK_INT(stk_json_count(second), 15);
    CHECK(stk_json_get(second, "ended") == NULL);
    CHECK_STR(stk_json_string(stk_json_get(second, "stop_reason")), "memory");
    CHECK_NEAR(stk_json_number(stk_json_get(second, "batch"), NAN), 64, 0);
    CHECK(stk_json_kind_of(stk_json_get(second, "images_per_second")) == STK_JSON_NULL);
    CHECK(stk_json_bool(stk_json_get(stk_json_at(attempts, 0), "kept"), false));
    stk_json_free(summary);
    stk_mem_free(text);
    text = get_file(folder, "events.jsonl");
    REQUIRE(text != NULL);
    CHECK_CONTAINS(text, "\"event\": \"attempt\", \"ended\": false, \"number\": 1, ");
    CHECK_CONTAINS(text, "\"gpu_memory_own\": 2.4e+09");
    stk_mem_free(text);
    CHECK(has_file(folder, "report.html"));
    CHECK(!has_file(folder, "results.csv") && !has_file(folder, "bad_images.csv"));
    CHECK(!has_file(folder, "results.png") && !has_file(folder, "results.svg"));
}

static void what_was_written_is_read(void) {
    stk_error err = {0};
    stk_run_read run;
    const char *folder = check_folder();
    write_run(folder, true);
    REQUIRE_OK(stk_run_read_open(&run, folder, &err), &err);
    stk_summary summary = stk_run_read_summary(&run);
    CHECK_STR(stk_str_text(&run.damage), "");
    CHECK_STR(stk_run_view_command(&run.history.view), TOLD_COMMAND);
    CHECK_STR(summary.command, TOLD_COMMAND);
    CHECK_STR(summary.estimate, "30 epochs need 75 min");
    CHECK_INT(summary.exit_code, 1);
    CHECK_INT(summary.attempt_count, 3);
    CHECK_STR(summary.attempts[0].verdict, "launch-bound");
    CHECK(summary.attempts[0].ended && summary.attempts[0].kept);
    CHECK_NEAR(summary.attempts[0].gpu_memory_used, 2.4e9, 0);
    CHECK_INT(summary.attempts[0].signal, 15);
    CHECK_INT(summary.attempts[0].exit_code, -1);
    CHECK_NEAR(summary.attempts[1].seconds, 20.25, 0);
    CHECK_STR(summary.attempts[2].part, "predict");
    /* What it said of itself belongs to the samples behind it. */
    CHECK_INT(run.history.moment_count, 4);
    CHECK_NEAR(run.history.moments[0].values[STK_GAUGE_LOSS], 2, 0);
    CHECK_NEAR(run.history.moments[0].values[STK_GAUGE_STEP_RATE], 410.5, 0);
    CHECK_NEAR(run.history.moments[0].values[STK_GAUGE_GPU_MEMORY_OWN], 2.4e9, 0);
    stk_run_read_close(&run);
}

static char *page_of(const char *folder) {
    stk_report_runs report;
    stk_error err = {0};
    if (stk_report_runs_make(&report, &folder, 1, NULL, true, NULL, &err) != STK_OK) {
        CHECK_FAIL("%s", err.message);
        return NULL;
    }
    stk_report_runs_free(&report);
    return get_file(folder, "report.html");
}

static void its_page_has_attempts_and_no_empty_sections(void) {
    const char *folder = check_folder();
    write_run(folder, true);
    char *page = page_of(folder);
    REQUIRE(page != NULL);
    CHECK_CONTAINS(page, ": python -u train.py --note &#39;&lt;b&gt; [31m&amp;&#39;</h1>");
    CHECK_CONTAINS(page, "done in part: the command was stopped when its time was up");
    CHECK_CONTAINS(page, "By its own words: 30 epochs need 75 min");
    CHECK_CONTAINS(page, "<td>attempt 1</td><td class=\"n\">32</td><td class=\"n\">4</td>"
                         "<td class=\"n\">410.5</td><td class=\"n\">35</td>");
    CHECK_CONTAINS(page, "<td>stopped to try another batch</td><td>yes</td>");
    CHECK_CONTAINS(page, "<td>it ran out of memory (exit code 1)</td>");
    CHECK_CONTAINS(page, "<td>prediction</td>");
    CHECK_CONTAINS(page, "<td>it failed (signal 11)</td>");
    CHECK_CONTAINS(page, "id=\"plot-throughput\"");
    CHECK_CONTAINS(page, "id=\"plot-loss\"");
    CHECK_CONTAINS(page, "id=\"plot-gpu-memory\"");
    static const char *const absent[] = {"<b>",           "\x1b",
                                         "id=\"curves\"", "id=\"epochs\"",
                                         "id=\"times\"",  "id=\"confusion\"",
                                         "Bad images",    "id=\"plot-queue\""};
    for (size_t i = 0; i < sizeof absent / sizeof *absent; i++) {
        CHECK(strstr(page, absent[i]) == NULL);
    }
    stk_mem_free(page);
}

static void a_page_of_one_that_was_killed(void) {
    const char *folder = check_folder();
    write_run(folder, false);
    char *page = page_of(folder);
    REQUIRE(page != NULL);
    CHECK_CONTAINS(page, "no end was written: it goes on, or was killed");
    CHECK_CONTAINS(page, "<td>attempt 2</td><td class=\"n\">64</td>");
    CHECK_CONTAINS(page, "<td>no end was written</td>");
    CHECK(strstr(page, "Exit code") == NULL);
    stk_mem_free(page);
}

/* Lines that somebody put in: numbers that repeat, more attempts than are kept. */
static void odd_attempts_are_bounded(void) {
    stk_run_history history;
    stk_event_attempt attempt = told_launch("train", 1, 32);
    const stk_observer *to = &history.sink.observer;
    stk_run_history_open(&history);
    for (int i = 0; i < 1000; i++) {
        to->attempt(to->user, &attempt);
    }
    CHECK_INT(history.view.attempt_count, 1);
    CHECK(history.view.attempt_texts.bytes < 1000);
    for (int i = 1; i <= 2 * STK_VIEW_ATTEMPTS; i++) {
        attempt = told_launch(i % 2 == 0 ? NULL : "train", i, INT64_MAX);
        to->attempt(to->user, &attempt);
    }
    CHECK_INT(history.view.attempt_count, STK_VIEW_ATTEMPTS);
    CHECK_INT(stk_run_history_summary(&history, NULL, false).batch, -1);
    CHECK(!history.failed);
    stk_run_history_close(&history);
}

/* ---- the screen ---- */

static char *shown(bool quiet) {
    char *text = NULL;
    size_t size = 0;
    stk_error err = {0};
    stk_screen *screen = NULL;
    stk_events events = {0};
    FILE *out = open_memstream(&text, &size);
    stk_screen_config config = {.out = out, .beside = true, .quiet = quiet};
    if (out == NULL || stk_screen_new(&screen, &config, &err) != STK_OK) {
        CHECK_FAIL("no screen: %s", err.message);
        exit(1);
    }
    stk_events_add(&events, stk_screen_observer(screen));
    tell_command_half(&events);
    stk_events_warning(&events, "it is odd");
    tell_command_rest(&events);
    stk_screen_free(screen);
    fclose(out);
    return text;
}

#define SHOWN_COMMAND "python -u train.py --note '<b> [31m&'"
#define SHOWN_FIRST                                                                           \
    "attempt 1: stopped to try another batch; batch 32, 4 workers, 410 img/s, GPU 35 %, GPU " \
    "memory 2.4 GB of 24 GB (10 %), launch-bound, 61 s; kept\n"
#define SHOWN_SECOND "attempt 2: it ran out of memory (exit code 1); batch 64, 4 workers, 20 s\n"
#define SHOWN_THIRD "prediction: it failed (signal 11), 5 s\n"

static void the_screen_beside_a_command(void) {
    char *text = shown(false);
    CHECK_STR(text,
              "stoker: run folder: runs/sup\n"
              "stoker: attempt 1, batch 32, 4 workers: " SHOWN_COMMAND "\n"
              "stoker: launch-bound: the GPU works 35 %\n"
              "stoker: batch 64: memory 10 %, activity 35 %\n"
              "stoker: " SHOWN_FIRST "stoker: attempt 2, batch 64, 4 workers: " SHOWN_COMMAND "\n"
              "stoker: warning: it is odd\n"
              "stoker: " SHOWN_SECOND "stoker: prediction: " SHOWN_COMMAND "\n"
              "stoker: " SHOWN_THIRD "stoker: submission: submission.csv (12 rows)\n"
              "stoker: done in part: 3 epochs; the command was stopped when its time was up\n"
              "stoker:   estimate    30 epochs need 75 min\n"
              "stoker:   attempts    " SHOWN_FIRST "stoker:               " SHOWN_SECOND
              "stoker:               " SHOWN_THIRD "stoker:   time        2:00 of 10:00\n"
              "stoker:   verdict     launch-bound: the GPU works 35 %\n"
              "stoker:   run folder  runs/sup\n"
              "stoker:   submission  submission.csv\n");
    free(text);
    text = shown(true);
    CHECK_STR(text, "stoker: warning: it is odd\n");
    free(text);
}

/* ---- from outside ---- */

static stk_run_status look_at(const char *folder, bool running) {
    stk_error err = {0};
    stk_run_status status;
    if (stk_run_status_open(&status, folder, true, &err) != STK_OK) {
        CHECK_FAIL("%s", err.message);
        exit(1);
    }
    status.running = running;
    status.pid = 123;
    CHECK_INT(stk_run_status_read(&status, stk_clock_wall_ns(), &err), STK_OK);
    return status;
}

static char *lines_of(const stk_run_status *status) {
    stk_str text = {0};
    stk_run_status_lines(status, &text);
    return stk_str_take(&text);
}

static char *picture_of(const stk_run_status *status) {
    stk_str text = {0};
    stk_top_draw(status, &(stk_top_look){.columns = 100}, &text);
    return stk_str_take(&text);
}

static void one_that_runs_seen_from_outside(void) {
    const char *folder = check_folder();
    write_run(folder, false);
    stk_run_status status = look_at(folder, true);
    char *text = lines_of(&status);
    CHECK_CONTAINS(text, "\n  command     " SHOWN_COMMAND "\n");
    CHECK_CONTAINS(text, "\n  attempts    " SHOWN_FIRST);
    CHECK_CONTAINS(text, "\n  now         attempt 2, batch 64, 4 workers\n");
    CHECK_CONTAINS(text, "\n  machine     GPU 35%, GPU memory 3.0 GB of 24 GB, CPU 70%\n");
    CHECK_CONTAINS(text, "\n  verdict     launch-bound: the GPU works 35 %\n");
    CHECK(strstr(text, "training") == NULL); /* what was said was said of the first */
    CHECK(strstr(text, "submission") == NULL && strchr(text, '\x1b') == NULL);
    stk_mem_free(text);
    static const char step[] = "{\"t\": 9, \"event\": \"step\", \"epoch\": 2, \"epochs\": 30}";
    stk_run_status_take(&status, step, sizeof step - 1);
    text = lines_of(&status);
    CHECK_CONTAINS(text, "\n  training    epoch 2/30\n");
    CHECK_CONTAINS(text, "\n  epochs      2 done\n");
    stk_mem_free(text);
    text = picture_of(&status);
    CHECK_CONTAINS(text, "\n" SHOWN_COMMAND "\nattempt 2, batch 64, 4 workers\nepoch    2/30 ");
    stk_mem_free(text);
    stk_run_status_close(&status);
}

static void one_that_ended_seen_from_outside(void) {
    const char *folder = check_folder();
    stk_str object = {0};
    write_run(folder, true);
    stk_run_status status = look_at(folder, false);
    char *text = lines_of(&status);
    CHECK_CONTAINS(text, ": ended, partial (the command was stopped when its time was up)\n");
    CHECK_CONTAINS(text, "\n  attempts    " SHOWN_FIRST "              " SHOWN_SECOND
                         "              " SHOWN_THIRD "  epochs      3 done\n");
    CHECK(strstr(text, "  now ") == NULL);
    stk_mem_free(text);
    text = picture_of(&status);
    CHECK_CONTAINS(text, "\n" SHOWN_COMMAND "\n" SHOWN_THIRD);
    CHECK_CONTAINS(text, "410.5 images/s");
    stk_mem_free(text);
    stk_json_writer writer = stk_json_write_to(&object, 0);
    stk_json_begin_object(&writer);
    stk_run_status_put(&status, &writer);
    stk_json_end_object(&writer);
    stk_json *json = parse(stk_str_text(&object));
    CHECK_INT(stk_json_count(stk_json_get(json, "attempts")), 3);
    CHECK_STR(stk_json_string(stk_json_get(json, "part")), "predict");
    CHECK_NEAR(stk_json_number(stk_json_get(json, "attempt"), NAN), 1, 0);
    CHECK_STR(stk_json_string(stk_json_get(json, "command")), TOLD_COMMAND);
    stk_json_free(json);
    stk_str_free(&object);
    stk_run_status_close(&status);
}

/* More attempts than a supervisor makes: the first ones are stored. */
static void many_attempts_seen_from_outside(void) {
    stk_run_status status;
    stk_error err = {0};
    REQUIRE_OK(stk_run_status_open(&status, "runs/sup", false, &err), &err);
    for (int i = 1; i <= STK_VIEW_ATTEMPTS + 5; i++) {
        char line[160];
        int length =
            snprintf(line, sizeof line,
                     "{\"t\": %d, \"event\": \"attempt\", \"ended\": true, \"number\": %d, "
                     "\"command\": \"c\"}",
                     i, i);
        stk_run_status_take(&status, line, (size_t)length);
    }
    CHECK_INT(stk_run_status_summary(&status).attempt_count, STK_VIEW_ATTEMPTS);
    CHECK_INT(status.view.attempts[0].number, 1);
    CHECK_INT(status.view.attempts[STK_VIEW_ATTEMPTS - 1].number, STK_VIEW_ATTEMPTS);
    CHECK_STR(stk_run_view_command(&status.view), "c");
    stk_run_status_close(&status);
}

static void a_comparison_has_the_best_attempt(void) {
    stk_error err = {0};
    stk_run_read runs[2];
    stk_str text = {0};
    stk_str page = {0};
    const char *folder = check_folder();
    write_run(folder, true);
    for (int i = 0; i < 2; i++) {
        REQUIRE_OK(stk_run_read_open(&runs[i], folder, &err), &err);
    }
    REQUIRE_OK(stk_compare_text(runs, 2, &text, &err), &err);
    CHECK_CONTAINS(text.text, "attempts  command\n");
    CHECK_CONTAINS(text.text, "partial  3       410");
    CHECK(strstr(text.text, "best acc") == NULL);
    REQUIRE_OK(stk_compare_page(runs, 2, &page, &err), &err);
    CHECK_CONTAINS(page.text, "id=\"plot-said-rate\"");
    CHECK_CONTAINS(page.text, "id=\"plot-said-loss\"");
    CHECK(strstr(page.text, "<b>") == NULL);
    for (int i = 0; i < 2; i++) {
        stk_run_read_close(&runs[i]);
    }
    stk_str_free(&text);
    stk_str_free(&page);
}

static void nothing_is_lost_without_memory(void) {
    const char *folder = check_folder();
    write_run(folder, true);
    bool good = false;
    for (int64_t n = 0; n < 3000 && !good; n++) {
        stk_error err = {0};
        stk_report_runs report = {0};
        stk_mem_fail_after(n);
        good = stk_report_runs_make(&report, &folder, 1, NULL, false, NULL, &err) == STK_OK;
        stk_mem_fail_after(-1);
        CHECK(good || err.status == STK_ERR_MEMORY);
        stk_report_runs_free(&report);
    }
    for (int64_t n = 0; n < 300; n++) {
        stk_error err = {0};
        stk_run_status status = {0};
        stk_mem_fail_after(n);
        if (stk_run_status_open(&status, folder, true, &err) == STK_OK &&
            stk_run_status_read(&status, 0, &err) == STK_OK) {
            char *lines = lines_of(&status);
            stk_mem_free(lines);
        }
        stk_mem_fail_after(-1);
        CHECK(err.status == STK_OK || err.status == STK_ERR_MEMORY);
        stk_run_status_close(&status);
    }
}

static const check_test tests[] = {
    TEST(its_files_are_for_their_owner),     TEST(its_folder_has_what_it_told),
    TEST(what_was_written_is_read),          TEST(its_page_has_attempts_and_no_empty_sections),
    TEST(a_page_of_one_that_was_killed),     TEST(odd_attempts_are_bounded),
    TEST(the_screen_beside_a_command),       TEST(one_that_runs_seen_from_outside),
    TEST(one_that_ended_seen_from_outside),  TEST(many_attempts_seen_from_outside),
    TEST(a_comparison_has_the_best_attempt), TEST(nothing_is_lost_without_memory),
};

CHECK_MAIN(tests)
