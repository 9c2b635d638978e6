/* resume.c - from a run folder to options and a saved position, or to an error that says why not.
 */
#include "job/saved/resume.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/error.h"
#include "base/files/disk.h"
#include "base/files/file.h"
#include "base/mem.h"
#include "job/recipe/job_options.h"

/* Rounding of a sum of small steps against a quotient is less than this. */
#define SCHEDULE_NOISE 1e-6

static stk_status read_json(const stk_run_folder *folder, const char *name, stk_json **json,
                            stk_error *err) {
    stk_error cause = {0};
    stk_status status = stk_json_read_in(folder->path, name, json, &cause);
    return status == STK_OK ? status
                            : STK_FAIL(err, status, "%s/%s: %s", folder->path, name, cause.message);
}

/* Refuses a folder that cannot be resumed before anything in it is touched. */
static stk_status check_folder(const char *run, stk_error *err) {
    bool is_dir = stk_path_is_dir(run);
    bool has_args = is_dir && stk_path_has_file(run, "args.json");
    bool has_state = has_args && stk_path_has_file(run, STK_SAVED_STATE_FILE);
    stk_status answers = stk_path_check_answer(run, err);
    if (answers != STK_OK) {
        return answers;
    }
    if (!is_dir) {
        return STK_FAIL(err, STK_ERR_USAGE, "--resume %s: there is no such folder", run);
    }
    if (!has_args) {
        return STK_FAIL(err, STK_ERR_USAGE,
                        "--resume %s is not a run folder: it has no args.json; give the folder "
                        "that `stoker train` has written",
                        run);
    }
    if (!has_state) {
        return STK_FAIL(err, STK_ERR_USAGE,
                        "--resume %s: there is no %s to go on from: the run ended before its first "
                        "step, or a version of Stoker wrote it that kept none; begin a new run",
                        run, STK_SAVED_STATE_FILE);
    }
    return STK_OK;
}

static void note_change(void *user, const char *name, const char *now, const char *before) {
    stk_resume *resume = user;
    if (strcmp(name, "quiet") != 0 &&
        strcmp(name, "json") != 0) { /* they belong to one call only */
        stk_str_append_bytes(&resume->changes, name, strlen(name) + 1);
        stk_str_append_bytes(&resume->changes, now, strlen(now) + 1);
        stk_str_append_bytes(&resume->changes, before, strlen(before) + 1);
    }
}

/* The old value of an option that has changed, or NULL. */
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

/* Another path to the same folder is the same data. */
static stk_status accept_same_data(stk_options *options, const stk_json *args, stk_error *err) {
    const char *before = stk_json_string(stk_json_get(args, "data"));
    if (before == NULL || stk_options_source(options, "data") == STK_FROM_DEFAULT) {
        return STK_OK;
    }
    char *absolute = stk_disk_resolve(stk_options_get(options, "data"));
    bool same = absolute != NULL && strcmp(absolute, before) == 0;
    stk_mem_free(absolute);
    return same ? stk_options_set(options, "data", before, err) : STK_OK;
}

/* --epochs must not change once a fold is finished. */
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

/* Whether the summary says "complete" and no option asks for more; more_time: a budget was given.
 */
static bool is_complete(const stk_resume *resume, const stk_options *options,
                        const stk_run_folder *folder, bool more_time) {
    stk_json *summary = NULL;
    if (!stk_path_has_file(folder->path, "summary.json") ||
        read_json(folder, "summary.json", &summary, NULL) != STK_OK) {
        return false;
    }
    const char *status = stk_json_string(stk_json_get(summary, "status"));
    int64_t epochs = 0;
    bool more = changed_from(resume, "epochs") != NULL &&
                stk_parse_int(stk_options_get(options, "epochs"), &epochs) &&
                epochs > resume->state.position.epoch;
    const char *reason = stk_json_string(stk_json_get(summary, "stop_reason"));
    more = more || (more_time && reason != NULL && strcmp(reason, "budget") == 0);
    bool complete = status != NULL && strcmp(status, "complete") == 0 && !more &&
                    changed_from(resume, "patience") == NULL;
    stk_json_free(summary);
    return complete;
}

/* Reads one of the two state files. */
static stk_status read_state(stk_resume *resume, const stk_run_folder *folder, const char *name,
                             stk_error *err) {
    stk_mem_free(resume->path);
    resume->path = stk_run_folder_file(folder, name);
    if (resume->path == NULL) {
        return STK_FAIL_MEMORY(err, "a path");
    }
    stk_error cause = {0};
    stk_status status = stk_saved_state_read(resume->path, &resume->state, err);
    if (status != STK_OK) {
        return status;
    }
    const char *given = resume->state.given;
    status = stk_json_parse(given, strlen(given), &resume->given, &cause);
    if (status != STK_OK) {
        (void)STK_FAIL(err, status, "%s is damaged: 'given' in its metadata is %s", resume->path,
                       cause.message);
        stk_saved_state_free(&resume->state);
    }
    return status;
}

/* Reads the latest state or, where that is damaged, the state at the end of the last epoch. */
static stk_status find_state(stk_resume *resume, const stk_run_folder *folder, stk_error *err) {
    stk_error why = {0};
    stk_status status = read_state(resume, folder, STK_SAVED_STATE_FILE, &why);
    if (status == STK_ERR_DATA && stk_path_has_file(folder->path, STK_SAVED_STATE_EPOCH) &&
        read_state(resume, folder, STK_SAVED_STATE_EPOCH, NULL) == STK_OK) {
        resume->damage = stk_mem_strdup(why.message);
        return resume->damage != NULL ? STK_OK : STK_FAIL_MEMORY(err, "a message");
    }
    if (status == STK_ERR_DATA) {
        return STK_FAIL(err, status,
                        "%s; there is nothing else to go on from: begin a new run with another "
                        "--out; the weights in %s/weights are still good for predict and "
                        "--pretrained",
                        why.message, folder->path);
    }
    return status == STK_OK ? STK_OK : STK_FAIL(err, status, "%s", why.message);
}

/* Refuses a state that was copied here from another run. */
static stk_status check_run(const stk_resume *resume, const stk_run_folder *folder,
                            stk_error *err) {
    const char *id = resume->state.run;
    if (id[0] != '\0' && folder->id[0] != '\0' && strcmp(id, folder->id) != 0) {
        return STK_FAIL(err, STK_ERR_DATA,
                        "%s is the state of another run: it is of run %s, and %s/args.json is of "
                        "run %s; put this run's own file back, or begin a new run",
                        resume->path, id, folder->path, folder->id);
    }
    return STK_OK;
}

static stk_status take_up(stk_resume *resume, stk_options *options, const stk_run_folder *folder,
                          stk_error *err) {
    stk_json *args = NULL;
    stk_status status = find_state(resume, folder, err);
    STK_THEN(status, check_run(resume, folder, err));
    STK_THEN(status, read_json(folder, "args.json", &args, err));
    STK_THEN(status, accept_same_data(options, args, err));
    STK_THEN(status, stk_options_recall(options, args, resume->given, note_change, resume, err));
    if (status == STK_OK && !stk_str_ok(&resume->changes)) {
        status = STK_FAIL_MEMORY(err, "options");
    }
    STK_THEN(status, check_epochs(resume, options, err));
    stk_json_free(args);
    return status;
}

stk_status stk_resume_open(stk_resume *resume, stk_options *options, stk_run_folder *folder,
                           stk_error *err) {
    const stk_job_options *job = stk_options_values(options, &stk_job_option_table);
    memset(resume, 0, sizeof *resume);
    bool more_time = stk_options_source(options, "budget") != STK_FROM_DEFAULT ||
                     stk_options_source(options, "deadline") != STK_FROM_DEFAULT;
    stk_status status = check_folder(job->resume, err);
    STK_THEN(status, stk_run_folder_reopen(folder, job->resume, err));
    STK_THEN(status, take_up(resume, options, folder, err));
    if (status == STK_OK) {
        resume->on = true;
        resume->used_s = resume->state.used_s;
        resume->complete = is_complete(resume, options, folder, more_time);
    }
    return status;
}

stk_status stk_resume_check_folds(const stk_resume *resume, int folds, stk_error *err) {
    if (resume->state.fold >= folds) {
        return STK_FAIL(err, STK_ERR_DATA,
                        "%s and args.json contradict each other: the one is of fold %d, the "
                        "other says --folds %d; begin a new run",
                        resume->path, resume->state.fold + 1, folds);
    }
    return STK_OK;
}

stk_status stk_resume_check_steps(const stk_resume *resume, int64_t seed, int64_t steps_per_epoch,
                                  stk_error *err) {
    const stk_saved_state *state = &resume->state;
    if (state->seed != seed) {
        return STK_FAIL(err, STK_ERR_DATA,
                        "%s and args.json contradict each other: the one was trained with --seed "
                        "%lld, the other says %lld; begin a new run",
                        resume->path, (long long)state->seed, (long long)seed);
    }
    int64_t steps = state->position.steps_per_epoch;
    if (steps != 0 && steps != steps_per_epoch) { /* 0: saved before the first step */
        return STK_FAIL(err, STK_ERR_DATA,
                        "%s and args.json contradict each other: the one has %lld steps an epoch, "
                        "with the other it would be %lld; begin a new run",
                        resume->path, (long long)steps, (long long)steps_per_epoch);
    }
    return STK_OK;
}

void stk_resume_free(stk_resume *resume) {
    stk_saved_state_free(&resume->state);
    stk_json_free(resume->given);
    stk_mem_free(resume->path);
    stk_mem_free(resume->damage);
    stk_str_free(&resume->changes);
    stk_csv_free(&resume->bad);
    memset(resume, 0, sizeof *resume);
}

void stk_resume_emit(const stk_resume *resume, int folds, const stk_events *events) {
    const stk_train_position *at = &resume->state.position;
    int fold = resume->state.fold;
    char model[32] = "";
    char what[96];
    if (fold >= folds) {
        snprintf(model, sizeof model, " in refit %d", fold - folds + 1);
    } else if (fold > 0) {
        snprintf(model, sizeof model, " in fold %d", fold + 1);
    }
    snprintf(what, sizeof what, "goes on%s at epoch %d, step %lld", model, at->epoch + 1,
             (long long)at->step + 1);
    stk_events_decision(events, what, "resumed");
    if (resume->damage != NULL) {
        stk_events_warning(events, "the run goes on from the end of an epoch, %s, because %s",
                           resume->path, resume->damage);
    }
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

void stk_resume_note_used(stk_resume *resume, double seconds) {
    resume->used_s = fmax(resume->used_s, seconds);
}

stk_status stk_resume_bad_images(stk_resume *resume, const stk_run_folder *folder, stk_map *told,
                                 stk_error *err) {
    char *path = stk_run_folder_file(folder, "bad_images.csv");
    if (path == NULL) {
        return STK_FAIL_MEMORY(err, "a path");
    }
    /* An unreadable table only means that some bad images are emitted again. */
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

double stk_resume_schedule(const stk_resume *resume, const stk_train_position *at, int epochs,
                           double budget_s) {
    double fair = 1;
    if (epochs > 0 && at->steps_per_epoch > 0) {
        fair = (double)at->steps_done / ((double)epochs * (double)at->steps_per_epoch);
    } else if (!isnan(budget_s)) {
        fair = resume->used_s / (resume->used_s + budget_s);
    }
    return at->schedule > fair + SCHEDULE_NOISE ? fair : at->schedule;
}
