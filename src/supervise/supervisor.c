/*
 * supervisor.c - `stoker run` as a whole: trains, restarts with better settings, stops in time,
 * predicts, checks the expected file, and reports the end.
 */
#include <stoker/supervise.h>

#include <math.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/error.h"
#include "base/mem.h"
#include "base/text/locale.h"
#include "base/public_struct.h"
#include "budget/budget.h"
#include "report/observers/jsonl.h"
#include "supervise/settings/command_setting.h"
#include "supervise/output/relay.h"
#include "supervise/supervision.h"

#define SIGNAL_CODES 128 /* plus a signal's number: exit code of a process that it ended */
#define CLOSE_S 0.5      /* for passing on the last output */

/* Time for checking the expected file and for the last files: a share of the time left, within
 * limits. The lower limit does not apply to a disk that is known to hang. */
#define LAST_SHARE 0.5
#define LAST_LEAST_S 3.0
#define LAST_FILES_S 10.0
#define LAST_CHECK_S 600.0 /* the expected file may be a table of gigabytes */
#define HELD_S 2.0         /* a disk that has not answered for this long hangs */
#define FREE_S 0.2         /* for closing the files */
#define SETTING_S 10.0     /* for changing or restoring the file of a setting */

/* ---- Training ---- */

/* Changes a setting (below 0: undoes all changes). If this process is killed, the guardian restores
 * the file. */
static stk_status change_setting(stk_supervision *s, stk_command_setting *setting, int64_t value,
                                 stk_error *err) {
    if (value < 0) {
        return stk_setting_unset(setting, &s->command, err);
    }
    double within_s = stk_supervision_spare(s, SETTING_S);
    if (setting->kind == STK_SETTING_NONE ||
        value == stk_setting_value_within(setting, &s->command, within_s)) {
        return STK_OK;
    }
    stk_status status = stk_setting_set_within(setting, &s->command, value,
                                               stk_folder_writer_path(s->folder), within_s, err);
    if (status == STK_OK && setting->original != NULL) {
        status = stk_guardian_on_orphaned(s->guardian, setting->config.file, setting->changed,
                                          setting->original, err);
    }
    return status;
}

static stk_status apply_advice(stk_supervision *s, const stk_trial_advice *advice, stk_error *err) {
    stk_status status = change_setting(s, &s->batch_setting, advice->batch, err);
    return status == STK_OK ? change_setting(s, &s->workers_setting, advice->workers, err) : status;
}

/* Applies the advice; if that fails, the command runs unchanged. */
static void follow_advice(stk_supervision *s, const stk_trial_advice *advice) {
    stk_error why = {0};
    if (apply_advice(s, advice, &why) != STK_OK) {
        stk_trials_cancel(&s->trials);
        stk_events_warning(&s->events, "%s could not be set for the command: %s", advice->what,
                           why.message);
    }
}

/* Whether the training starts once more after an attempt. */
static bool restarts(const stk_supervision *s, const stk_attempt *a, stk_attempt_end why) {
    bool room = s->attempt_count + 1 < STK_ATTEMPTS_MOST && !stk_run_clock_stopping(&s->clock);
    switch (why) {
    case STK_END_HANG: /* a hanging trial is taken back, whatever --on-hang says */
        return room &&
               (a->advice.action == STK_TRIAL_TAKE_BACK ||
                (s->o->on_hang == STK_HANG_RESTART && s->hangs - s->trial_hangs <= s->o->retries));
    case STK_END_BATCH:
    case STK_END_WORKERS:
        return room;
    case STK_END_ITSELF:
        return room && a->exit.code != 0 && a->advice.action != STK_TRIAL_STAY;
    default:
        return false;
    }
}

static stk_status fail_lost(const stk_supervision *s, stk_error *err) {
    return stk_supervision_now(s) > s->clock.budget_s
               ? STK_FAIL(err, STK_ERR_STOPPED,
                          "this process was stopped, or waited for a disk, until its budget was "
                          "over: its guardian has ended the command")
               : STK_FAIL(err, STK_ERR_STOPPED,
                          "the guardian process was killed by somebody: the command has been "
                          "ended");
}

/*
 * Runs all attempts of the training; *last says how the last one ended. If a restart fails, the run
 * goes on: the earlier attempt may have left a model to predict with.
 */
static stk_status train(stk_supervision *s, stk_attempt_end *last, stk_error *err) {
    for (;;) {
        stk_attempt *a = NULL;
        stk_error why = {0};
        stk_status status = stk_attempt_start(s, &s->command, true, &a, &why);
        if (status != STK_OK && s->trainings == 0) {
            *err = why;
            return status;
        }
        if (status != STK_OK) {
            stk_events_warning(&s->events, "the command is not started again: %s", why.message);
            return STK_OK;
        }
        *last = stk_attempt_watch(s, a);
        stk_attempt_finish(s, a, *last);
        if (*last == STK_END_LOST) {
            return fail_lost(s, err);
        }
        s->trial_hangs += *last == STK_END_HANG && a->advice.action != STK_TRIAL_STAY;
        if (!restarts(s, a, *last)) {
            return STK_OK;
        }
        if (a->advice.action != STK_TRIAL_STAY) {
            follow_advice(s, &a->advice);
        }
        stk_attempt_wait_for_gpus(s);
    }
}

/* ---- Prediction ---- */

static int code_of(const stk_command_exit *ended) {
    return ended->signal != 0 ? SIGNAL_CODES + ended->signal : ended->code;
}

static stk_status predict(stk_supervision *s, stk_error *err) {
    stk_command command = {0};
    stk_attempt *a = NULL;
    stk_status status = stk_command_make(&command, NULL, 0, s->o->predict, err);
    STK_THEN(status, stk_supervision_set_environment(s, &command, err));
    STK_THEN(status, stk_attempt_start(s, &command, false, &a, err));
    if (status == STK_OK) {
        stk_attempt_end why = stk_attempt_watch(s, a);
        stk_attempt_finish(s, a, why);
        s->exit_code = code_of(&a->exit);
    }
    stk_command_free(&command);
    return status;
}

/* ---- After the last command ---- */

static const stk_attempt *last_training(const stk_supervision *s) {
    const stk_attempt *found = NULL;
    for (int i = 0; i < s->attempt_count; i++) {
        found = s->attempts[i].is_training ? &s->attempts[i] : found;
    }
    return found;
}

/* Exit code of a run without a prediction. */
static int training_code(const stk_supervision *s, stk_attempt_end why) {
    const stk_attempt *a = last_training(s);
    switch (why) {
    case STK_END_ITSELF:
        return code_of(&a->exit);
    case STK_END_BUDGET:
        return 0;
    case STK_END_SIGNAL:
        return s->o->expect != NULL ? 0 : stk_status_exit_code(STK_ERR_STOPPED);
    default:
        return code_of(&a->exit) != 0 ? code_of(&a->exit) : 1;
    }
}

/* Checks --expect, whatever the exit codes say. `missing` gives the exit code if only the file is
 * missing. */
static void check_expected(stk_supervision *s, stk_status missing) {
    stk_error why = {0};
    int64_t rows = -1;
    if (s->expected.path == NULL) {
        return;
    }
    double within_s =
        fmax(fmin(LAST_SHARE * stk_run_clock_left(&s->clock), LAST_CHECK_S), LAST_LEAST_S);
    stk_status status =
        stk_expected_file_check_within(&s->expected, within_s, &rows, s->expected_path, &why);
    if (status != STK_OK) {
        stk_events_warning(&s->events, "--expect: %s", why.message);
        /* Out of memory: unknown whether the file is complete. */
        missing = status == STK_ERR_MEMORY ? status : missing;
        s->exit_code = s->exit_code != 0 ? s->exit_code : stk_status_exit_code(missing);
        return;
    }
    stk_event_submission event = {
        .path = s->expected.path, .status = "complete", .rows = rows, .models = -1};
    stk_events_submission(&s->events, &event);
}

static void restore(stk_supervision *s, stk_command_setting *setting) {
    stk_error why = {0};
    bool mine = true;
    if (setting->original == NULL) {
        return;
    }
    /* Restoring the user's file is worth some seconds after the budget. */
    bool held = stk_folder_writer_is_held(s->folder, HELD_S);
    double within_s = fmax(stk_supervision_spare(s, SETTING_S), held ? FREE_S : LAST_LEAST_S);
    if (stk_setting_restore_within(setting, &mine, within_s, &why) != STK_OK) {
        stk_events_warning(&s->events, "%s could not be restored: %s", setting->config.file,
                           why.message);
    } else if (!mine) {
        stk_events_warning(
            &s->events,
            "%s was changed by another program and stays as it is; the original is in %s",
            setting->config.file, setting->original);
    } else if (s->guardian != NULL &&
               stk_guardian_on_orphaned(s->guardian, NULL, NULL, NULL, &why) != STK_OK) {
        stk_events_warning(&s->events, "%s", why.message);
    }
}

/* Stop reason of a prediction that failed; NULL: none failed. */
static const char *prediction_reason(const stk_supervision *s) {
    const stk_attempt *last = s->attempt_count > 0 ? &s->attempts[s->attempt_count - 1] : NULL;
    if (last == NULL || last->is_training || code_of(&last->exit) == 0) {
        return NULL;
    }
    const char *reason = last->event.stop_reason;
    return strcmp(reason, "budget") == 0 || strcmp(reason, "signal") == 0 ? reason : "error";
}

static const char *stop_reason(const stk_supervision *s, stk_attempt_end why, stk_status status,
                               const stk_attempt *a) {
    const char *prediction = prediction_reason(s);
    return status != STK_OK || a == NULL                ? "error"
           : prediction != NULL                         ? prediction
           : why == STK_END_BUDGET                      ? "budget"
           : why == STK_END_SIGNAL                      ? "signal"
           : why == STK_END_ITSELF && a->exit.code == 0 ? "epochs"
                                                        : "error";
}

/* Device of the training; NULL: it was too short to know. */
static const char *device_of(const stk_supervision *s, const stk_attempt *a) {
    if (s->gpu_count == 0) {
        return "cpu";
    }
    return a == NULL || !a->was_sampled ? NULL : a->on_gpu ? "cuda" : "cpu";
}

/* The summary; it borrows `events` and `command`. */
static stk_summary summarize(const stk_supervision *s, stk_attempt_end why, stk_status status,
                             const stk_event_attempt *events, const char *command) {
    const stk_attempt *a = last_training(s);
    const char *reason = stop_reason(s, why, status, a);
    bool good = status == STK_OK && s->exit_code == 0;
    return (stk_summary){.status = !good                           ? "failed"
                                   : strcmp(reason, "epochs") == 0 ? "complete"
                                                                   : "partial",
                         .stop_reason = reason,
                         .best_acc1 = NAN,
                         .best_metric = NAN,
                         .held_out = NAN,
                         .temperature = NAN,
                         .epochs_done = s->epochs_done,
                         .folds_done = -1,
                         .folds_planned = -1,
                         .oof_acc1 = NAN,
                         .oof_metric = NAN,
                         .images_per_second = a != NULL ? a->event.images_per_second : NAN,
                         .wait_fraction = NAN,
                         .budget_s = s->clock.budget_s,
                         .used_s = stk_supervision_now(s),
                         .reserve_s = s->timetable.reserve_s,
                         .batch = a != NULL ? stk_int_or_none(a->event.batch) : -1,
                         .workers = a != NULL ? a->event.workers : -1,
                         .prefetch = -1,
                         .device = device_of(s, a),
                         .bad_images = -1,
                         .verdict = a != NULL ? a->event.verdict : NULL,
                         .submission =
                             good && s->expected_path[0] != '\0' ? s->expected_path : NULL,
                         .command = command,
                         .attempts = events,
                         .attempt_count = s->attempt_count,
                         .estimate = s->estimate[0] != '\0' ? s->estimate : NULL,
                         .exit_code = s->exit_code};
}

/* Waits for the files of the run folder. Missing files cause a warning only: exit code and summary
 * are about the commands and the expected file. */
static void flush_folder(stk_supervision *s) {
    stk_str text = {0};
    double left_s = fmin(LAST_SHARE * stk_run_clock_left(&s->clock), LAST_FILES_S);
    double within_s =
        stk_folder_writer_is_held(s->folder, HELD_S) ? left_s : fmax(left_s, LAST_LEAST_S);
    if (!stk_folder_writer_flush(s->folder, within_s, &text)) {
        stk_events_warning(&s->other_observers, "%s",
                           stk_str_ok(&text) ? stk_str_text(&text)
                                             : "files of the run folder, summary.json perhaps one "
                                               "of them, are missing: there was no memory");
    }
    stk_str_free(&text);
}

static void finish(stk_supervision *s, stk_attempt_end why, stk_status status) {
    stk_event_attempt events[STK_ATTEMPTS_MOST];
    stk_str command = {0};
    for (int i = 0; i < s->attempt_count; i++) {
        events[i] = s->attempts[i].event;
    }
    stk_command_show(&s->command, &command);
    stk_supervision_shorten(&command);
    stk_folder_writer_finish(s->folder, s->clock.budget_s - stk_supervision_now(s));
    stk_summary summary = summarize(s, why, status, events, stk_str_text(&command));
    stk_events folder = {0};
    stk_events_add(&folder, stk_folder_writer_observer(s->folder));
    stk_events_stop(&folder, &summary); /* first: other observers may read the files */
    flush_folder(s);
    stk_events_stop(&s->other_observers, &summary);
    snprintf(s->status, sizeof s->status, "%s", summary.status);
    stk_str_free(&command);
}

static void fill_outcome(const stk_supervision *s, stk_supervised *outcome) {
    snprintf(outcome->run_dir, sizeof outcome->run_dir, "%s",
             s->folder != NULL ? stk_folder_writer_path(s->folder) : "");
    snprintf(outcome->status, sizeof outcome->status, "%s",
             s->status[0] != '\0' ? s->status : "failed");
    outcome->attempts = s->trainings;
    outcome->exit_code = s->exit_code;
}

static void close_all(stk_supervision *s) {
    stk_guardian_stop(s->guardian, stk_supervision_kill_s(s));
    stk_output_close(s->output, stk_supervision_spare(s, CLOSE_S));
    stk_machine_sampler_stop(s->sampler);
    stk_command_evidence_free(s->evidence);
    stk_proc_tree_free(&s->tree);
    for (int i = 0; i < s->attempt_count; i++) {
        stk_mem_free(s->attempts[i].command);
    }
    stk_setting_close(&s->batch_setting);
    stk_setting_close(&s->workers_setting);
    stk_command_free(&s->command);
    stk_folder_writer_close(s->folder, FREE_S);
    stk_jsonl_free(s->jsonl);
    stk_relay_close(s->json_relay, s->json_end, stk_supervision_spare(s, CLOSE_S));
    pthread_mutex_destroy(&s->lock);
}

/* Trains, then predicts, however the training ended. */
static stk_status run_commands(stk_supervision *s, stk_attempt_end *why, stk_error *err) {
    stk_status status = train(s, why, err);
    bool may_predict =
        status == STK_OK && s->guardian != NULL && stk_stop_asked(s->clock.stop) != STK_STOP_NOW;
    if (status == STK_OK) {
        s->exit_code = training_code(s, *why);
    }
    bool predicts = may_predict && s->o->predict != NULL;
    if (predicts) {
        status = predict(s, err);
    }
    if (status == STK_OK) {
        bool interrupted = *why == STK_END_SIGNAL && !predicts;
        check_expected(s, interrupted ? STK_ERR_STOPPED : STK_ERR_DATA);
    }
    return status;
}

static stk_status run(stk_supervision *s, const char *const *words, size_t count, stk_error *err) {
    stk_attempt_end why = STK_END_ITSELF;
    stk_status status = stk_supervision_begin(s, words, count, err);
    if (status != STK_OK) {
        return status;
    }
    status = run_commands(s, &why, err);
    restore(s, &s->batch_setting);
    restore(s, &s->workers_setting);
    if (status != STK_OK && s->exit_code == 0) {
        s->exit_code = stk_status_exit_code(status);
    }
    finish(s, why, status);
    return status;
}

stk_status stk_supervise(stk_options *options, const char *const *words, size_t count,
                         const stk_run *run_with, const stk_passing *passing,
                         stk_supervised *outcome, stk_error *err) {
    stk_error own = {0};
    err = err != NULL ? err : &own;
    stk_status status = STK_PUBLIC_CHECK(stk_passing, passing, err);
    STK_THEN(status, STK_PUBLIC_BEGIN(stk_supervised, outcome, run_with, err));
    if (status != STK_OK) {
        return status;
    }
    outcome->exit_code = stk_status_exit_code(STK_ERR_USAGE);
    if (count == 0) {
        return STK_FAIL(err, STK_ERR_USAGE,
                        "no command was given; write it after two dashes: stoker run --budget 30m "
                        "-- python -u train.py");
    }
    stk_supervision *s = stk_mem_new(1, sizeof *s);
    if (s == NULL) {
        outcome->exit_code = stk_status_exit_code(STK_ERR_MEMORY);
        return STK_FAIL_MEMORY(err, "the supervision");
    }
    const stk_budget_options *budget = stk_options_values(options, &stk_budget_option_table);
    stk_locale locale = stk_locale_enter();
    s->options = options;
    s->o = stk_options_values(options, &stk_supervise_option_table);
    s->passing =
        passing != NULL ? *passing : (stk_passing){.out = STDOUT_FILENO, .err = STDERR_FILENO};
    s->json_end = -1;
    s->epochs_done = -1;
    s->clock = (stk_run_clock){.start_ns = stk_clock_ns(), .budget_s = budget->budget_s};
    pthread_mutex_init(&s->lock, NULL);
    if (run_with != NULL) {
        s->clock.stop = run_with->stop;
        s->clock.start_ns = run_with->start_ns != 0 ? run_with->start_ns : s->clock.start_ns;
        stk_events_add(&s->events, run_with->observer);
    }
    status = stk_run_clock_set_deadline(&s->clock, budget->deadline, &s->events, err);
    STK_THEN(status, run(s, words, count, err));
    fill_outcome(s, outcome);
    close_all(s);
    stk_mem_free(s);
    stk_locale_leave(locale);
    return status;
}
