/* Run folders read back, and runs compared. */
#include "check.h"
#include "folder_texts.h"

#include "base/files/file.h"
#include "base/mem.h"
#include "base/text/json.h"
#include "events/events.h"
#include "report/state/replay.h"
#include "report/page/report_runs.h"
#include "report/state/run_read.h"
#include "report/runfiles.h"
#include "told_run.h"
#include "whole_files.h"

static void put_file(const char *folder, const char *name, const char *text) {
    stk_error err = {0};
    char *path = stk_path_join(folder, name);
    REQUIRE(path != NULL);
    if (stk_file_write(path, text, strlen(text), &err) != STK_OK) {
        CHECK_FAIL("%s", err.message);
    }
    stk_mem_free(path);
}

/* A run of some epochs, written by who writes runs. */
static void write_run(const char *folder, int epochs, bool ends) {
    stk_error err = {0};
    stk_runfiles *files = NULL;
    stk_events events = {0};
    const float cores[3] = {1, 50, 99};
    stk_event_start start = told_start();
    stk_event_verdict verdict = told_verdict();
    REQUIRE_OK(stk_runfiles_new(&files, folder, &err), &err);
    stk_events_add(&events, stk_runfiles_observer(files));
    stk_events_start(&events, &start);
    stk_events_decision(&events, "batch 32", "it fits");
    stk_events_warning(&events, "a class is rare");
    stk_events_bad_image(&events, TOLD_EVIL, "train", TOLD_EVIL);
    for (int i = 1; i <= epochs; i++) {
        stk_event_epoch epoch = told_epoch(0, i);
        stk_event_sample sample = told_sample(i, cores, 3);
        stk_events_sample(&events, &sample);
        stk_events_epoch(&events, &epoch);
    }
    stk_events_verdict(&events, &verdict);
    if (ends) {
        stk_summary summary = told_summary();
        stk_runfiles_finish(files, INFINITY, NULL);
        stk_events_stop(&events, &summary);
    }
    check_whole(files);
    stk_runfiles_free(files);
}

static void what_was_written_is_read(void) {
    stk_error err = {0};
    stk_run_read run;
    const char *folder = check_folder();
    write_run(folder, 5, true);
    put_file(folder, "args.json", "{\"batch\": 32}");
    REQUIRE_OK(stk_run_read_open(&run, folder, &err), &err);
    const stk_run_history *r = &run.history;
    stk_event_epoch third = told_epoch(0, 3);
    CHECK_STR(stk_str_text(&run.damage), "");
    CHECK_STR(run.name, stk_path_base(folder));
    REQUIRE(r->view.start != NULL && stk_run_view_has_ended(&r->view) && r->view.verdict != NULL);
    CHECK_STR(r->view.start->model, "convnet_s");
    CHECK_STR(r->view.start->device_name, "NVIDIA A10");
    CHECK_INT(r->view.start->device_bytes, INT64_C(24000000000));
    REQUIRE(r->row_count == 5);
    CHECK_NEAR(r->rows[2].train_loss, third.train_loss, 1e-5);
    CHECK_NEAR(r->rows[2].times.compute_s, 5, 1e-9);
    CHECK_NEAR(stk_run_history_times(r).total_s, 50, 1e-6);
    CHECK_INT(r->samples, 5);
    CHECK_INT(r->core_count, 3);
    CHECK_NEAR(r->moments[4].values[STK_GAUGE_GPU_MEMORY_USED], 18e9, 1e4);
    CHECK_STR(r->view.verdict->name, "decode-bound");
    REQUIRE(r->view.verdict->remedy_count == 2);
    CHECK_STR(r->view.verdict->remedies[0].flags, "stoker stage --size 256");
    CHECK_NEAR(r->view.verdict->remedies[0].gain, 2.1, 1e-9);
    CHECK(isnan(r->view.verdict->remedies[1].gain));
    CHECK_NEAR(r->moments[4].values[STK_GAUGE_JPEG_UTIL], 41, 1e-9);
    CHECK_NEAR(r->view.verdict->device_decoded, 0.92, 1e-9);
    CHECK_NEAR(r->view.verdict->jpeg_util, 41, 1e-9);
    CHECK_INT(r->notes[STK_NOTE_BAD_IMAGE].total, 1);
    CHECK_INT(r->notes[STK_NOTE_DECISION].total, 1);
    CHECK_STR(r->notes[STK_NOTE_WARNING].items[0].what, "a class is rare");
    CHECK_STR(r->view.summary->status, "complete");
    CHECK_NEAR(r->view.summary->used_s, 120, 1e-9);
    CHECK(isnan(r->view.summary->oof_acc1));
    CHECK_INT(stk_json_count(run.args), 1);
    stk_run_read_close(&run);
}

static void the_page_of_the_run_and_of_its_files_say_the_same(void) {
    stk_error err = {0};
    stk_report_runs report = {0};
    char folder[256];
    snprintf(folder, sizeof folder, "%s", check_folder());
    const char *dirs[] = {folder};
    write_run(folder, 5, true);
    char *written = get_file(folder, "report.html");
    REQUIRE(written != NULL);
    REQUIRE_OK(stk_report_runs_make(&report, dirs, 1, NULL, true, NULL, &err), &err);
    char *again = get_file(folder, "report.html");
    REQUIRE(again != NULL);
    /* All but the figures that were rounded on their way through the files. */
    CHECK_INT(strlen(written) > 0.95 * (double)strlen(again), 1);
    CHECK_CONTAINS(again, "plot-gpu-power");
    CHECK_CONTAINS(written, "plot-gpu-power");
    CHECK(strstr(again, "<script") == NULL && strstr(written, "<script") == NULL);
    stk_report_runs_free(&report);
    stk_mem_free(written);
    stk_mem_free(again);
}

static void a_killed_run_is_read(void) {
    stk_error err = {0};
    stk_run_read run;
    const char *folder = check_folder();
    write_run(folder, 3, false);
    /* It was killed within the line of an event, and before the row of its last epoch. */
    char *events = get_file(folder, "events.jsonl");
    char *rows = get_file(folder, "results.csv");
    REQUIRE(events != NULL && rows != NULL);
    char *last = strstr(rows, "\n0,3,");
    REQUIRE(last != NULL);
    last[1] = '\0';
    put_file(folder, "results.csv", rows);
    stk_str more = {0};
    stk_str_append(&more, events);
    stk_str_append(&more, "{\"t\": 99, \"event\": \"warn");
    put_file(folder, "events.jsonl", stk_str_text(&more));
    REQUIRE_OK(stk_run_read_open(&run, folder, &err), &err);
    CHECK(!stk_run_view_has_ended(&run.history.view));
    CHECK_INT(run.history.row_count, 3);
    CHECK_STR(stk_str_text(&run.damage), ""); /* the last line may be in the making */
    stk_summary summary = stk_run_read_summary(&run);
    CHECK(summary.status == NULL);
    CHECK_INT(summary.epochs_done, 3);
    CHECK_INT(summary.batch, 32);
    CHECK_NEAR(summary.images_per_second, 403, 1e-6); /* of the last epoch */
    CHECK_NEAR(summary.budget_s, 600, 1e-9);
    stk_run_read_close(&run);
    stk_str_free(&more);
    stk_mem_free(events);
    stk_mem_free(rows);
}

/* A stop before a later start was that of an earlier process. */
static void a_resumed_run_goes_on(void) {
    stk_error err = {0};
    stk_run_read run;
    const char *folder = check_folder();
    put_file(folder, "events.jsonl",
             "{\"t\": 0, \"event\": \"start\", \"model\": \"a\"}\n"
             "{\"t\": 5, \"event\": \"stop\", \"status\": \"partial\"}\n"
             "{\"t\": 6, \"event\": \"start\", \"model\": \"b\"}\n");
    REQUIRE_OK(stk_run_read_open(&run, folder, &err), &err);
    CHECK(!stk_run_view_has_ended(&run.history.view));
    CHECK_STR(run.history.view.start->model, "b");
    CHECK_INT(run.history.view.start->batch, -1);
    CHECK(isnan(run.history.view.start->budget_s));
    CHECK_NEAR(run.history.view.now_s, 6, 0);
    stk_run_read_close(&run);
}

static void damage_is_named_and_passed_over(void) {
    stk_error err = {0};
    stk_run_read run;
    const char *folder = check_folder();
    put_file(
        folder, "events.jsonl",
        "\n\n[1]\nnonsense\n{\"event\": 5}\n{\"event\": \"no such\"}\n"
        "{\"t\": \"x\", \"event\": \"epoch\", \"fold\": -3, \"epoch\": \"two\"}\n"
        "{\"event\": \"epoch\", \"fold\": 0, \"epoch\": 1, \"times\": 7, \"val_acc1\": 50}\n"
        "{\"event\": \"sample\", \"cores\": {\"a\": 1}, \"cpu\": \"much\"}\n"
        "{\"event\": \"verdict\", \"remedies\": [1, {\"text\": 3}, null, {}, {}, {}, {}, {}]}\n"
        "{\"event\": \"stop\", \"status\": null, \"epochs_done\": 1e99}\n"
        "{\"event\": \"warning\"}\n{\"event\": \"bad_image\"}\n{\"event\": \"decision\"}\n");
    put_file(folder, "results.csv", "fold,epoch\n0,1,2,3\n");
    put_file(folder, "summary.json", "{\"status\": ");
    put_file(folder, "args.json", "[]");
    REQUIRE_OK(stk_run_read_open(&run, folder, &err), &err);
    const char *damage = stk_str_text(&run.damage);
    CHECK_CONTAINS(damage, "events.jsonl: 4 lines are no events");
    CHECK_CONTAINS(damage, "results.csv");
    CHECK_CONTAINS(damage, "summary.json was left out");
    CHECK_CONTAINS(damage, "args.json was left out");
    CHECK_INT(run.history.row_count, 1);
    CHECK_NEAR(run.history.rows[0].val_acc1, 50, 0);
    CHECK_INT(run.history.view.verdict->remedy_count, STK_MOST_REMEDIES);
    CHECK(isnan(run.history.view.verdict->device_decoded)); /* as in runs of earlier versions */
    CHECK(isnan(run.history.moments[0].values[STK_GAUGE_JPEG_UTIL]));
    CHECK_INT(run.history.view.summary->epochs_done, -1);
    stk_run_read_close(&run);
    stk_report_runs report = {0};
    char copy[256];
    snprintf(copy, sizeof copy, "%s", folder);
    const char *dirs[] = {copy};
    REQUIRE_OK(stk_report_runs_make(&report, dirs, 1, NULL, true, NULL, &err), &err);
    stk_report_runs_free(&report);
}

static void what_is_no_run_is_refused(void) {
    stk_error err = {0};
    stk_run_read run;
    const char *folder = check_folder();
    CHECK_INT(stk_run_read_open(&run, "/nowhere/at/all", &err), STK_ERR_USAGE);
    CHECK_CONTAINS(err.message, "no such folder");
    stk_run_read_close(&run);
    err = (stk_error){0};
    CHECK_INT(stk_run_read_open(&run, folder, &err), STK_ERR_USAGE);
    CHECK_CONTAINS(err.message, "not a run folder");
    err = (stk_error){0};
    put_file(folder, "events.jsonl", "no event\n");
    put_file(folder, "results.csv", "");
    put_file(folder, "summary.json", "3");
    CHECK_INT(stk_run_read_open(&run, folder, &err), STK_ERR_DATA);
    CHECK_CONTAINS(err.message, "nothing of the run in");
}

/* A line that is longer than any of ours is passed over, wherever blocks of the file end. */
static void a_long_line_is_passed_over(void) {
    stk_error err = {0};
    stk_run_read run;
    const char *folder = check_folder();
    stk_str text = {0};
    for (int i = 1; i <= 6000; i++) { /* more than a block of the reader */
        stk_str_appendf(&text, "{\"t\": %d, \"event\": \"epoch\", \"fold\": 0, \"epoch\": %d}\n", i,
                        i);
    }
    stk_str_append(&text, "{\"event\": \"warning\", \"text\": \"");
    for (int i = 0; i < 300000; i++) {
        stk_str_append(&text, "0123456789");
    }
    stk_str_append(&text, "\"}\n{\"t\": 7000, \"event\": \"warning\", \"text\": \"short\"}\n");
    REQUIRE(stk_str_ok(&text));
    put_file(folder, "events.jsonl", stk_str_text(&text));
    stk_str_free(&text);
    REQUIRE_OK(stk_run_read_open(&run, folder, &err), &err);
    CHECK_INT(run.history.row_count, 6000);
    CHECK_NEAR(run.history.view.now_s, 7000, 0);
    REQUIRE(run.history.notes[STK_NOTE_WARNING].count == 1);
    CHECK_STR(run.history.notes[STK_NOTE_WARNING].items[0].what, "short");
    stk_run_read_close(&run);
}

/* ---- several runs ---- */

/* Two runs, the second of an odd name and without an end. */
static void make_two(char folders[2][300]) {
    const char *base = check_folder();
    stk_error err = {0};
    snprintf(folders[0], 300, "%s/first", base);
    snprintf(folders[1], 300, "%s/<script><b>", base);
    for (int i = 0; i < 2; i++) {
        REQUIRE_OK(stk_dir_make(folders[i], &err), &err);
    }
    write_run(folders[0], 4, true);
    write_run(folders[1], 2, false);
    put_file(folders[0], "args.json",
             "{\"lr\": 0.1, \"batch\": 32, \"out\": \"a\", \"data\": \"<i>\"}");
    put_file(folders[1], "args.json",
             "{\"lr\": 0.05, \"batch\": 32, \"out\": \"b\", \"data\": null, \"new\": 1}");
}

static void runs_are_compared(void) {
    stk_error err = {0};
    stk_report_runs report = {0};
    stk_str text = {0};
    char folders[2][300];
    make_two(folders);
    const char *dirs[] = {folders[0], folders[1]};
    char *page = stk_path_join(folders[0], "both.html");
    REQUIRE(page != NULL);
    REQUIRE_OK(stk_report_runs_make(&report, dirs, 2, page, true, NULL, &err), &err);
    REQUIRE_OK(stk_compare_text(report.runs, 2, &text, &err), &err);
    const char *table = stk_str_text(&text);
    CHECK_CONTAINS(table, "complete  90.00 %");
    CHECK_CONTAINS(table, "no end    65.00 %");
    CHECK_CONTAINS(table, "decode-bound");
    CHECK_CONTAINS(table, "\noptions that differ\n");
    CHECK_CONTAINS(table, "\nlr      0.1");
    CHECK(strstr(table, "\nout ") == NULL && strstr(table, "\nbatch ") == NULL &&
          strstr(table, "\nnew ") == NULL);
    char *html = get_file(folders[0], "both.html");
    REQUIRE(html != NULL);
    CHECK_CONTAINS(html, "id=\"plot-accuracy\"");
    CHECK_CONTAINS(html, "id=\"plot-accuracy-time\"");
    CHECK_CONTAINS(html, "2 runs compared");
    CHECK(strstr(html, "<b>") == NULL && strstr(html, "<i>") == NULL &&
          strstr(html, "<script") == NULL && strstr(html, "http:") == NULL);
    stk_mem_free(html);
    stk_str_free(&text);
    stk_mem_free(page);
    stk_report_runs_free(&report);
}

static void compare_text(const char *first, const char *second, stk_str *text) {
    stk_error err = {0};
    stk_run_read runs[2];
    REQUIRE_OK(stk_run_read_open(&runs[0], first, &err), &err);
    REQUIRE_OK(stk_run_read_open(&runs[1], second, &err), &err);
    REQUIRE_OK(stk_compare_text(runs, 2, text, &err), &err);
    stk_run_read_close(&runs[0]);
    stk_run_read_close(&runs[1]);
}

/* A process that resumes a run has no verdict before its own. */
static void a_verdict_of_an_earlier_process_is_not_shown(void) {
    stk_error err = {0};
    stk_report_runs report = {0};
    stk_str text = {0};
    char folder[256];
    snprintf(folder, sizeof folder, "%s", check_folder());
    const char *dirs[] = {folder};
    put_file(folder, "events.jsonl",
             "{\"t\": 0, \"event\": \"start\", \"model\": \"a\"}\n"
             "{\"t\": 5, \"event\": \"verdict\", \"name\": \"decode-bound\", \"text\": \"slow\"}\n"
             "{\"t\": 6, \"event\": \"start\", \"model\": \"a\"}\n");
    REQUIRE_OK(stk_report_runs_make(&report, dirs, 1, NULL, true, NULL, &err), &err);
    const stk_run_view *view = &report.runs[0].history.view;
    CHECK(view->verdict != NULL && stk_run_view_verdict(view) == NULL);
    char *html = get_file(folder, "report.html");
    REQUIRE(html != NULL);
    CHECK_CONTAINS(html, "<h2>Verdict</h2>\n<p class=\"lead\">Too little was seen");
    compare_text(folder, folder, &text);
    CHECK(strstr(stk_str_text(&text), "decode-bound") == NULL);
    stk_str_free(&text);
    stk_mem_free(html);
    stk_report_runs_free(&report);
}

static void a_verdict_of_an_earlier_attempt_is_shown(void) {
    stk_str text = {0};
    const char *folder = check_folder();
    put_file(folder, "events.jsonl",
             "{\"t\": 0, \"event\": \"start\"}\n"
             "{\"t\": 5, \"event\": \"verdict\", \"name\": \"launch-bound\", \"text\": \"slow\"}\n"
             "{\"t\": 6, \"event\": \"stop\", \"status\": \"partial\", \"verdict\": null}\n");
    compare_text(folder, folder, &text);
    CHECK_CONTAINS(stk_str_text(&text), "launch-bound");
    stk_str_free(&text);
}

static void a_comparison_is_one_object(void) {
    stk_error err = {0};
    stk_run_read runs[2];
    stk_str text = {0};
    stk_json *json = NULL;
    char folders[2][300];
    make_two(folders);
    for (int i = 0; i < 2; i++) {
        REQUIRE_OK(stk_run_read_open(&runs[i], folders[i], &err), &err);
    }
    stk_json_writer writer = stk_json_write_to(&text, 0);
    stk_json_begin_object(&writer);
    stk_compare_json(runs, 2, &writer);
    stk_json_end_object(&writer);
    REQUIRE_OK(stk_json_parse(stk_str_text(&text), text.length, &json, &err), &err);
    const stk_json *list = stk_json_get(json, "runs");
    REQUIRE(stk_json_count(list) == 2);
    const stk_json *second = stk_json_at(list, 1);
    CHECK_STR(stk_json_string(stk_json_get(second, "run")), folders[1]);
    CHECK_INT(stk_json_kind_of(stk_json_get(second, "status")), STK_JSON_NULL);
    CHECK_NEAR(stk_json_number(stk_json_get(second, "epochs_done"), 0), 2, 0);
    CHECK_STR(stk_json_string(stk_json_get(second, "verdict")), told_verdict().name);
    const stk_json *options = stk_json_get(json, "options");
    CHECK_INT(stk_json_count(options), 2); /* lr and data */
    CHECK_NEAR(stk_json_number(stk_json_at(stk_json_get(options, "lr"), 1), 0), 0.05, 0);
    stk_json_free(json);
    stk_str_free(&text);
    stk_run_read_close(&runs[0]);
    stk_run_read_close(&runs[1]);
}

static void nothing_is_lost_without_memory(void) {
    char folders[2][300];
    make_two(folders);
    const char *dirs[] = {folders[0], folders[1]};
    bool done = false;
    for (int64_t n = 0; n < 20000 && !done; n += n < 150 ? 1 : 97) {
        stk_error err = {0};
        stk_report_runs report = {0};
        char *page = stk_path_join(folders[0], "both.html");
        stk_mem_fail_after(n);
        stk_status status = stk_report_runs_make(&report, dirs, 2, page, true, NULL, &err);
        stk_mem_fail_after(-1);
        CHECK(status == STK_OK || status == STK_ERR_MEMORY);
        done = status == STK_OK;
        stk_report_runs_free(&report);
        stk_mem_free(page);
    }
    CHECK(done);
}

static const check_test tests[] = {
    TEST(what_was_written_is_read),
    TEST(the_page_of_the_run_and_of_its_files_say_the_same),
    TEST(a_killed_run_is_read),
    TEST(a_resumed_run_goes_on),
    TEST(damage_is_named_and_passed_over),
    TEST(what_is_no_run_is_refused),
    TEST(a_long_line_is_passed_over),
    TEST(runs_are_compared),
    TEST(a_verdict_of_an_earlier_process_is_not_shown),
    TEST(a_verdict_of_an_earlier_attempt_is_shown),
    TEST(a_comparison_is_one_object),
    TEST(nothing_is_lost_without_memory),
};

CHECK_MAIN(tests)
