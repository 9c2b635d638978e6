/* resume.c - from a run folder to options and a position, or to a sentence that says why not. */
#include "job/resume.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/file.h"
#include "base/mem.h"
#include "job/job_options.h"

#define MOST_JSON_BYTES ((size_t)1 << 20)

/* Sums of small steps differ from a quotient by less. */
#define SCHEDULE_NOISE 1e-6

static stk_status read_json(const stk_run_folder *folder, const char *name, stk_json **json,
                            stk_error *err) {
    char *path = stk_run_folder_file(folder, name);
    char *text = NULL;
    size_t size = 0;
    stk_error cause = {0};
    stk_status status = path != NULL ? stk_file_read(path, MOST_JSON_BYTES, &text, &size, &cause)
                                     : STK_FAIL_MEMORY(&cause, "a path");
    if (status == STK_OK) {
        status = stk_json_parse(text, size, json, &cause);
    }
    if (status != STK_OK) {
        status = STK_FAIL(err, status, "%s/%s: %s", folder->path, name, cause.message);
    }
    stk_mem_free(text);
    stk_mem_free(path);
    return status;
}

static bool has_file(const char *run, const char *name) {
    char *path = stk_path_join(run, name);
    bool there = path != NULL && stk_path_is_file(path);
    stk_mem_free(path);
    return there;
}

/* A folder that cannot be gone on with is told before anything in it is touched. */
static stk_status check_folder(const char *run, stk_error *err) {
    if (!stk_path_is_dir(run)) {
        return STK_FAIL(err, STK_ERR_USAGE, "--resume %s: there is no such folder", run);
    }
    if (!has_file(run, "args.json")) {
        return STK_FAIL(err, STK_ERR_USAGE,
                        "--resume %s is not a run folder: it has no args.json; give the folder "
                        "that `stoker train` has written",
                        run);
    }
    if (!has_file(run, STK_RUN_STATE_FILE)) {
        return STK_FAIL(err, STK_ERR_USAGE,
                        "--resume %s: there is no %s to go on from: the run ended before its first "
                        "step, or a version of Stoker wrote it that kept none; begin a new run",
                        run, STK_RUN_STATE_FILE);
    }
    return STK_OK;
}

static void note_change(void *user, const char *name, const char *now, const char *before) {
    stk_resume *resume = user;
    if (strcmp(name, "quiet") != 0 && strcmp(name, "json") != 0) { /* they are of this call alone */
        stk_str_append_bytes(&resume->changes, name, strlen(name) + 1);
        stk_str_append_bytes(&resume->changes, now, strlen(now) + 1);
        stk_str_append_bytes(&resume->changes, before, strlen(before) + 1);
    }
}

/* The value of then where an option is another now, or NULL. */
static const char *changed_from(const stk_resume *resume, const char *option) {
    const char *p = resume->changes.text;
    const char *end = p != NULL ? p + resume->changes.length : NULL;
    while (p < end) {
        const char *now = p + strlen(p) + 1;
        const char *before = now + strlen(now) + 1;
        if (strcmp(p, option) == 0) {
            return before;
        }
        p = before + strlen(before) + 1;
    }
    return NULL;
}

/* The same folder by another way is the same data. */
static stk_status settle_data(stk_options *options, const stk_json *args, stk_error *err) {
    const char *before = stk_json_string(stk_json_get(args, "data"));
    if (before == NULL || stk_options_source(options, "data") == STK_FROM_DEFAULT) {
        return STK_OK;
    }
    char *absolute = realpath(stk_options_get(options, "data"), NULL);
    bool same = absolute != NULL && strcmp(absolute, before) == 0;
    free(absolute);
    return same ? stk_options_set(options, "data", before, err) : STK_OK;
}

/* Folds that are finished had their epochs. */
static stk_status check_epochs(const stk_resume *resume, const stk_options *options,
                               stk_error *err) {
    const char *before = changed_from(resume, "epochs");
    if (before != NULL && resume->state.fold > 0) {
        return STK_FAIL(err, STK_ERR_USAGE,
                        "--epochs %s: the folds that are done were trained for %s; leave it out, "
                        "or begin a new run",
                        stk_options_get(options, "epochs"), before);
    }
    return STK_OK;
}

/* A summary that says so, and no option that asks for more. */
static bool is_complete(const stk_resume *resume, const stk_options *options,
                        const stk_run_folder *folder) {
    stk_json *summary = NULL;
    if (!has_file(folder->path, "summary.json") ||
        read_json(folder, "summary.json", &summary, NULL) != STK_OK) {
        return false;
    }
    const char *status = stk_json_string(stk_json_get(summary, "status"));
    int64_t epochs = 0;
    bool more = changed_from(resume, "epochs") != NULL &&
                stk_parse_int(stk_options_get(options, "epochs"), &epochs) &&
                epochs > resume->state.position.epoch;
    bool complete = status != NULL && strcmp(status, "complete") == 0 && !more &&
                    changed_from(resume, "patience") == NULL;
    stk_json_free(summary);
    return complete;
}

static stk_status take_up(stk_resume *resume, stk_options *options, const stk_run_folder *folder,
                          stk_error *err) {
    stk_json *args = NULL;
    char *path = stk_run_folder_file(folder, STK_RUN_STATE_FILE);
    stk_status status = path != NULL ? stk_run_state_read(path, &resume->state, err)
                                     : STK_FAIL_MEMORY(err, "a path");
    if (status == STK_OK) {
        status =
            stk_json_parse(resume->state.given, strlen(resume->state.given), &resume->given, err);
    }
    if (status == STK_OK) {
        status = read_json(folder, "args.json", &args, err);
    }
    if (status == STK_OK) {
        status = settle_data(options, args, err);
    }
    if (status == STK_OK) {
        status = stk_options_recall(options, args, resume->given, note_change, resume, err);
    }
    if (status == STK_OK && !stk_str_ok(&resume->changes)) {
        status = STK_FAIL_MEMORY(err, "options");
    }
    if (status == STK_OK) {
        status = check_epochs(resume, options, err);
    }
    stk_json_free(args);
    stk_mem_free(path);
    return status;
}

stk_status stk_resume_open(stk_resume *resume, stk_options *options, stk_run_folder *folder,
                           stk_error *err) {
    const stk_job_options *job = stk_options_values(options, &stk_job_option_table);
    memset(resume, 0, sizeof *resume);
    stk_status status = check_folder(job->resume, err);
    if (status == STK_OK) {
        status = stk_run_folder_reopen(folder, job->resume, err);
    }
    if (status == STK_OK) {
        status = take_up(resume, options, folder, err);
    }
    if (status == STK_OK) {
        resume->on = true;
        resume->used_s = resume->state.used_s;
        resume->complete = is_complete(resume, options, folder);
    }
    return status;
}

void stk_resume_free(stk_resume *resume) {
    stk_run_state_free(&resume->state);
    stk_json_free(resume->given);
    stk_str_free(&resume->changes);
    stk_csv_free(&resume->bad);
    memset(resume, 0, sizeof *resume);
}

void stk_resume_tell(const stk_resume *resume, const stk_events *events) {
    const stk_train_position *at = &resume->state.position;
    char what[96];
    if (resume->state.fold > 0) {
        snprintf(what, sizeof what, "goes on in fold %d at epoch %d, step %lld", resume->state.fold,
                 at->epoch + 1, (long long)at->step + 1);
    } else {
        snprintf(what, sizeof what, "goes on at epoch %d, step %lld", at->epoch + 1,
                 (long long)at->step + 1);
    }
    stk_events_decision(events, what, "resumed");
    const char *p = resume->changes.text;
    const char *end = p != NULL ? p + resume->changes.length : NULL;
    while (p < end) {
        const char *now = p + strlen(p) + 1;
        const char *before = now + strlen(now) + 1;
        char changed[160];
        char why[160];
        snprintf(changed, sizeof changed, "%s %s", p, now);
        snprintf(why, sizeof why, "it was %s", before);
        stk_events_decision(events, changed, why);
        p = before + strlen(before) + 1;
    }
}

stk_status stk_resume_bad_images(stk_resume *resume, const stk_run_folder *folder, stk_map *told,
                                 stk_error *err) {
    char *path = stk_run_folder_file(folder, "bad_images.csv");
    if (path == NULL) {
        return STK_FAIL_MEMORY(err, "a path");
    }
    /* A table that cannot be read costs some repetitions and nothing else. */
    stk_status status = stk_csv_read(path, &resume->bad, NULL);
    for (size_t i = 0; status == STK_OK && i < resume->bad.rows; i++) {
        bool added;
        if (!stk_map_add(told, stk_csv_cell(&resume->bad, i, 0), 0, &added)) {
            stk_mem_free(path);
            return STK_FAIL_MEMORY(err, "bad images");
        }
    }
    stk_mem_free(path);
    return STK_OK;
}

double stk_resume_schedule(const stk_resume *resume, int epochs, double budget_s) {
    const stk_train_position *at = &resume->state.position;
    double fair = 1;
    if (epochs > 0 && at->steps_per_epoch > 0) {
        fair = (double)at->steps_done / ((double)epochs * (double)at->steps_per_epoch);
    } else if (!isnan(budget_s)) {
        fair = resume->used_s / (resume->used_s + budget_s);
    }
    return at->schedule > fair + SCHEDULE_NOISE ? fair : at->schedule;
}
