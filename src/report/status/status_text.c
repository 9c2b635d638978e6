/* status_text.c - the status of a run: one JSON object for programs, lines for people. */
#include <math.h>
#include <time.h>

#include "base/mem.h"
#include "report/text/attempt_text.h"
#include "report/status/run_status.h"
#include "report/text/event_json.h"
#include "report/text/text.h"

/* Seconds are enough: "2026-11-16T06:40:01Z"; NULL where the moment is not known. */
static const char *moment(char *buf, size_t size, int64_t wall_ns) {
    time_t seconds = (time_t)(wall_ns / 1000000000);
    struct tm utc;
    return wall_ns >= 0 && gmtime_r(&seconds, &utc) != NULL &&
                   strftime(buf, size, "%Y-%m-%dT%H:%M:%SZ", &utc) > 0
               ? buf
               : NULL;
}

/* ---- for programs ---- */

/* Members that are copied from the last step and the last sample. */
static const char *const step_keys[] = {"fold", "epoch", "epochs", "step",  "steps",
                                        "loss", "acc1",  "lr",     "left_s"};
static const char *const sample_keys[] = {
    "gpu_util",         "sm_activity",    "jpeg_util", "gpu_memory_used",
    "gpu_memory_total", "gpu_memory_own", "cpu",       "cpu_own",
    "resident",         "batches_ready",  "slots"};

static void put_whole(stk_json_writer *writer, const char *key, int64_t value) {
    stk_json_key(writer, key);
    if (value >= 0) {
        stk_json_put_int(writer, value);
    } else {
        stk_json_put_null(writer);
    }
}

static void put_name(stk_json_writer *writer, const char *key, const char *text) {
    stk_json_key(writer, key);
    stk_json_put_string(writer, text);
}

void stk_run_status_put(const stk_run_status *status, stk_json_writer *writer) {
    const stk_event_start *start = status->view.start;
    char since[32];
    stk_summary summary = stk_run_status_summary(status);
    put_name(writer, "run_dir", status->folder);
    put_name(writer, "state", stk_run_status_state(status));
    put_whole(writer, "pid", status->running ? status->pid : -1);
    put_name(writer, "since", moment(since, sizeof since, status->running ? status->since_ns : -1));
    stk_json_key(writer, "resumable");
    stk_json_put_bool(writer, status->resumable && !status->running);
    stk_event_put(writer, STK_EVENT_STOP, &summary);
    for (size_t i = 0; i < STK_COUNT(step_keys); i++) {
        stk_event_put_member(writer, STK_EVENT_STEP, stk_run_view_step(&status->view),
                             step_keys[i]);
    }
    for (size_t i = 0; i < STK_COUNT(sample_keys); i++) {
        stk_event_put_member(writer, STK_EVENT_SAMPLE, stk_run_view_sample(&status->view),
                             sample_keys[i]);
    }
    stk_json_key(writer, "budget_left_s");
    double left_s = summary.budget_s - summary.used_s;
    stk_json_put_double(writer, left_s < 0 ? 0 : round(1e3 * left_s) / 1e3);
    put_name(writer, "verdict_text", stk_run_status_verdict(status));
    put_name(writer, "model", start != NULL ? start->model : NULL);
    put_name(writer, "data", start != NULL ? start->data : NULL);
    if (summary.command != NULL) {
        const stk_event_attempt *attempt = stk_run_view_attempt(&status->view);
        put_name(writer, "part", attempt != NULL ? attempt->part : NULL);
        put_whole(writer, "attempt", attempt != NULL ? attempt->number : -1);
    }
}

/* ---- for people ---- */

/* A foreign text; nothing for NULL. */
static void put_bracketed(stk_str *out, const char *text) {
    if (text != NULL) {
        stk_str_append(out, " (");
        stk_report_append_line(out, text);
        stk_str_append(out, ")");
    }
}

void stk_run_status_headline(const stk_run_status *status, stk_str *out) {
    char text[32];
    stk_summary summary = stk_run_status_summary(status);
    stk_report_append_line(out, status->folder);
    if (status->running) {
        stk_str_append(out, ": running");
        if (status->pid > 0) {
            stk_str_appendf(out, ", process %lld", (long long)status->pid);
        }
        if (status->host[0] != '\0') {
            stk_str_append(out, " on ");
            stk_report_append_line(out, status->host);
        }
        if (moment(text, sizeof text, status->since_ns) != NULL) {
            stk_str_appendf(out, ", since %s", text);
        }
    } else if (summary.status != NULL) {
        stk_str_append(out, ": ended, ");
        stk_report_append_line(out, summary.status);
        put_bracketed(out, summary.command != NULL ? stk_report_stop_words(&summary)
                                                   : summary.stop_reason);
    } else if (summary.command != NULL) {
        stk_str_append(out, ": was killed; begin a new run");
    } else if (status->resumable) {
        stk_str_append(out, ": was killed; can be resumed with: stoker train --resume ");
        stk_report_append_line(out, status->folder);
    } else {
        stk_str_appendf(out, ": was killed %s; begin a new run",
                        status->view.start != NULL ? "before its first step" : "before it began");
    }
    stk_str_append(out, "\n");
}

static void begin_row(stk_str *out, const char *name) {
    stk_str_appendf(out, "  %-11s ", name);
}

/* A line of words that may be foreign. */
static void put_words(stk_str *out, const char *name, stk_str *words) {
    begin_row(out, name);
    stk_report_append_line(out, stk_str_text(words));
    stk_str_append(out, "\n");
    stk_str_free_part(out, words);
}

/* The command, its attempts that have ended, and the one that runs. */
static void put_command(const stk_run_status *status, const stk_summary *summary, stk_str *out) {
    const stk_event_attempt *last = stk_run_view_attempt(&status->view);
    stk_str words = {0};
    if (summary->command == NULL) {
        return;
    }
    stk_str_append(&words, summary->command);
    put_words(out, "command", &words);
    for (int i = 0; i < summary->attempt_count; i++) {
        stk_attempt_put_line(&words, &summary->attempts[i]);
        put_words(out, i == 0 ? "attempts" : "", &words);
    }
    if (last != NULL && !last->ended) {
        stk_attempt_put_name(&words, last);
        stk_attempt_put_setting(&words, ", ", last);
        put_words(out, status->running ? "now" : "at the end", &words);
    }
    if (summary->epochs_done >= 0) {
        begin_row(out, "epochs");
        stk_str_appendf(out, "%d done\n", summary->epochs_done);
    }
}

static void put_training(const stk_run_status *status, stk_str *out) {
    const stk_event_step *step = stk_run_view_step(&status->view);
    if (step == NULL || step->epoch < 0 || stk_str_equal(stk_run_status_state(status), "ended")) {
        return; /* the rows below say how it ended */
    }
    begin_row(out, "training");
    char model[48];
    stk_run_view_model(&status->view, step->fold, model, sizeof model);
    stk_str_appendf(out, "%s%s", model, model[0] != '\0' ? ", " : "");
    stk_str_appendf(out, "epoch %d", step->epoch);
    if (step->epochs >= step->epoch) {
        stk_str_appendf(out, "/%d", step->epochs);
    }
    if (step->step >= 0) {
        stk_str_appendf(out, ", step %lld", (long long)step->step);
        if (step->steps >= 0) {
            stk_str_appendf(out, "/%lld", (long long)step->steps);
        }
    }
    if (isfinite(step->loss)) {
        stk_str_appendf(out, ", loss %.4g", step->loss);
    }
    if (isfinite(step->acc1)) {
        stk_str_appendf(out, ", accuracy %.1f%%", step->acc1);
    }
    stk_str_append(out, "\n");
}

static void put_best(const stk_summary *summary, stk_str *out) {
    bool other = summary->metric != NULL && !stk_str_equal(summary->metric, "acc1") &&
                 isfinite(summary->best_metric);
    bool accuracy = isfinite(summary->best_acc1); /* numbers have none */
    if (accuracy || other) {
        begin_row(out, "best");
        if (accuracy) {
            stk_str_appendf(out, "validation accuracy %.1f%%", summary->best_acc1);
        }
        if (other) {
            stk_str_append(out, accuracy ? ", " : "validation ");
            stk_report_append_line(out, summary->metric);
            stk_str_appendf(out, " %.4g", summary->best_metric);
        }
        if (summary->epochs_done >= 0) {
            stk_str_appendf(out, ", %d epoch%s done", summary->epochs_done,
                            summary->epochs_done == 1 ? "" : "s");
        }
        stk_str_append(out, "\n");
    }
}

static void put_speed(const stk_summary *summary, stk_str *out) {
    if (isfinite(summary->images_per_second)) {
        begin_row(out, "speed");
        stk_str_appendf(out, "%.*f images/s", summary->images_per_second < 100 ? 1 : 0,
                        summary->images_per_second);
        if (isfinite(summary->wait_fraction)) {
            stk_str_appendf(out, ", waiting for data %.0f%%", 100 * summary->wait_fraction);
        }
        stk_str_append(out, "\n");
    }
}

static void put_time(const stk_run_status *status, const stk_summary *summary, stk_str *out) {
    char used[32];
    char text[32];
    if (!isfinite(summary->used_s)) {
        return;
    }
    begin_row(out, "time");
    stk_str_append(out, stk_format_duration(used, sizeof used, summary->used_s));
    if (isfinite(summary->budget_s)) {
        stk_str_appendf(out, " of %s", stk_format_duration(text, sizeof text, summary->budget_s));
        double left = fmax(summary->budget_s - summary->used_s, 0);
        stk_str_appendf(out, ", %s left", stk_format_duration(text, sizeof text, left));
    }
    const stk_event_step *step = stk_run_view_step(&status->view);
    if (status->running && step != NULL && isfinite(step->left_s)) {
        stk_str_appendf(out, "; about %s of training to go",
                        stk_format_duration(text, sizeof text, step->left_s));
    }
    stk_str_append(out, "\n");
}

/* "GPU 81%": nothing where it is not known. */
static void put_share(stk_str *out, const char **between, const char *name, double share) {
    if (isfinite(share)) {
        stk_str_appendf(out, "%s%s %.0f%%", *between, name, share);
        *between = ", ";
    }
}

static void put_machine(const stk_run_status *status, stk_str *out) {
    const stk_event_sample *sample = stk_run_view_sample(&status->view);
    const char *between = "";
    stk_str row = {0};
    char text[32];
    if (sample == NULL) {
        return;
    }
    put_share(&row, &between, "GPU", sample->gpu_util);
    put_share(&row, &between, "SM", sample->sm_activity);
    put_share(&row, &between, "JPEG engines", sample->jpeg_util > 0 ? sample->jpeg_util : NAN);
    if (isfinite(sample->gpu_memory_used) && sample->gpu_memory_total > 0) {
        stk_str_appendf(&row, "%sGPU memory %s", between,
                        stk_format_bytes(text, sizeof text, (uint64_t)sample->gpu_memory_used));
        stk_str_appendf(&row, " of %s",
                        stk_format_bytes(text, sizeof text, (uint64_t)sample->gpu_memory_total));
        between = ", ";
    }
    put_share(&row, &between, "CPU", sample->cpu);
    if (row.length > 0) {
        begin_row(out, "machine");
        stk_str_appendf(out, "%s\n", row.text);
    }
    stk_str_free(&row);
}

static void put_submission(const stk_run_status *status, const stk_summary *summary, stk_str *out) {
    const stk_run_view *view = &status->view;
    if (summary->command != NULL && summary->submission == NULL) {
        return; /* whether a submission will be made is not known */
    }
    begin_row(out, "submission");
    if (summary->submission != NULL) {
        /* A command's file is relative to where the command was started, not to the run folder. */
        if (summary->submission[0] != '/' && summary->command == NULL) {
            stk_report_append_line(out, status->folder);
            stk_str_append(out, "/");
        }
        stk_report_append_line(out, summary->submission);
        put_bracketed(out, view->submission != NULL ? view->submission->status : NULL);
    } else {
        bool without_test = view->start != NULL && view->start->test_images == 0;
        stk_str_append(out, without_test ? "none: the data has no test pictures" : "none");
    }
    stk_str_append(out, "\n");
}

void stk_run_status_lines(const stk_run_status *status, stk_str *out) {
    stk_summary summary = stk_run_status_summary(status);
    stk_run_status_headline(status, out);
    put_command(status, &summary, out);
    put_training(status, out);
    put_best(&summary, out);
    put_speed(&summary, out);
    put_time(status, &summary, out);
    if (status->running) {
        put_machine(status, out);
    }
    if (stk_run_status_verdict(status) != NULL) {
        begin_row(out, "verdict");
        stk_report_append_line(out, stk_run_status_verdict(status));
        stk_str_append(out, "\n");
    }
    put_submission(status, &summary, out);
}
