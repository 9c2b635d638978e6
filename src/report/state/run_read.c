/*
 * run_read.c - the files of a run folder, one after the other.
 *
 * Events come first and say the most. results.csv has the epochs even where events were lost, and
 * summary.json says that the run has ended.
 */
#include "report/state/run_read.h"

#include <string.h>

#include "base/error.h"
#include "base/files/file.h"
#include "base/mem.h"
#include "report/state/replay.h"
#include "report/text/results_csv.h"

#define MOST_JSON_BYTES ((size_t)1 << 20)

/* The path of a file of the folder that exists, or NULL. */
static char *find(stk_run_read *run, const char *name) {
    char *path = stk_path_join(run->dir, name);
    run->history.failed = run->history.failed || path == NULL;
    if (path != NULL && !stk_path_is_file(path)) {
        stk_mem_free(path);
        path = NULL;
    }
    return path;
}

static bool has_file(stk_run_read *run, const char *name) {
    char *path = find(run, name);
    stk_mem_free(path);
    return path != NULL;
}

/* Notes that a file was left out, and why. Lack of memory also makes the history incomplete. */
static void note_damage(stk_run_read *run, const char *path, const stk_error *why) {
    run->history.failed = run->history.failed || why->status == STK_ERR_MEMORY;
    stk_str_appendf(&run->damage, "%s was left out: %s\n", path, why->message);
}

/* How many of the files that describe a run exist. */
static int count_files(stk_run_read *run) {
    static const char *const names[] = {"args.json", "events.jsonl", "results.csv", "summary.json"};
    int count = 0;
    for (size_t i = 0; i < STK_COUNT(names); i++) {
        count += has_file(run, names[i]);
    }
    return count;
}

/* True when something was told. */
static bool read_events(stk_run_read *run) {
    char *path = find(run, "events.jsonl");
    stk_replay replay = {.observer = &run->history.sink.observer,
                         .at = stk_run_history_set_time_s,
                         .user = &run->history};
    stk_error why = {0};
    if (path != NULL && stk_replay_file(&replay, path, &why) != STK_OK) {
        note_damage(run, path, &why);
    } else if (replay.skipped > 0) {
        stk_str_appendf(&run->damage, "%s: %lld lines are no events and were left out\n", path,
                        (long long)replay.skipped);
    }
    stk_mem_free(path);
    return replay.events > 0;
}

static bool read_results(stk_run_read *run) {
    char *path = find(run, "results.csv");
    stk_event_epoch *rows = NULL;
    size_t count = 0;
    stk_error why = {0};
    if (path != NULL && stk_results_csv_read(path, &rows, &count, &why) != STK_OK) {
        note_damage(run, path, &why);
    }
    /* A process that was killed between the two writes has one event more than rows. */
    if (count >= run->history.row_count && count > 0) {
        run->history.failed =
            !stk_run_history_take_rows(&run->history, rows, count) || run->history.failed;
    }
    stk_mem_free(rows);
    stk_mem_free(path);
    return count > 0;
}

/* A JSON object of the folder, or NULL. */
static stk_json *read_json(stk_run_read *run, const char *name) {
    char *path = find(run, name);
    stk_json *json = NULL;
    stk_error why = {0};
    stk_status status = path != NULL ? stk_json_read(path, MOST_JSON_BYTES, &json, &why) : STK_OK;
    if (status == STK_OK && json != NULL && stk_json_kind_of(json) != STK_JSON_OBJECT) {
        status = STK_FAIL(&why, STK_ERR_DATA, "it holds no object");
    }
    if (status != STK_OK) {
        note_damage(run, path, &why);
        stk_json_free(json);
        json = NULL;
    }
    stk_mem_free(path);
    return json;
}

static bool read_summary(stk_run_read *run) {
    stk_json *summary = read_json(run, "summary.json");
    bool known = summary != NULL;
    if (known) {
        stk_replay replay = {.observer = &run->history.sink.observer};
        stk_replay_summary(&replay, summary);
    }
    stk_json_free(summary);
    return known;
}

static stk_status read_all(stk_run_read *run, stk_error *err) {
    bool is_dir = stk_path_is_dir(run->dir);
    stk_status answers = stk_path_check_answer(run->dir, err);
    if (answers != STK_OK) {
        return answers;
    }
    if (!is_dir) {
        return STK_FAIL(err, STK_ERR_USAGE, "%s: there is no such folder", run->dir);
    }
    if (count_files(run) == 0 && !run->history.failed) {
        return STK_FAIL(err, STK_ERR_USAGE,
                        "%s is not a run folder: it has no args.json, events.jsonl, results.csv or "
                        "summary.json; give the folder of a `stoker train` or `stoker run`",
                        run->dir);
    }
    bool told = read_events(run);
    bool rows = read_results(run);
    bool ended = read_summary(run);
    run->args = read_json(run, "args.json");
    run->has_submission = has_file(run, "submission.csv");
    if (run->history.failed || !stk_str_ok(&run->damage)) {
        return STK_FAIL_MEMORY(err, run->dir);
    }
    if (!told && !rows && !ended && run->args == NULL) {
        const char *damage = stk_str_text(&run->damage);
        return STK_FAIL(err, STK_ERR_DATA, "nothing of the run in %s can be read%s%.*s", run->dir,
                        damage[0] != '\0' ? ": " : "", (int)strcspn(damage, "\n"), damage);
    }
    return STK_OK;
}

char *stk_run_name(const char *run_dir) {
    char *trimmed = stk_path_trim(run_dir);
    char *name = trimmed != NULL ? stk_mem_strdup(stk_path_base(trimmed)) : NULL;
    stk_mem_free(trimmed);
    return name;
}

stk_status stk_run_read_open(stk_run_read *run, const char *dir, stk_error *err) {
    memset(run, 0, sizeof *run);
    stk_run_history_open(&run->history);
    run->dir = stk_mem_strdup(dir);
    run->name = stk_run_name(dir);
    stk_status status =
        run->dir != NULL && run->name != NULL ? read_all(run, err) : STK_FAIL_MEMORY(err, "a path");
    if (status != STK_OK) {
        stk_run_read_close(run);
    }
    return status;
}

void stk_run_read_close(stk_run_read *run) {
    stk_run_history_close(&run->history);
    stk_json_free(run->args);
    stk_str_free(&run->damage);
    stk_mem_free(run->dir);
    stk_mem_free(run->name);
    memset(run, 0, sizeof *run);
}

stk_summary stk_run_read_summary(const stk_run_read *run) {
    return stk_run_history_summary(&run->history, run->args, run->has_submission);
}
