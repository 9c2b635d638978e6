/*
 * page.c - report.html, section by section.
 *
 * Sections of text and tables are here. Those with plots are in curves.c and matrix.c.
 */
#include "report/page/page.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/error.h"
#include "metrics/task.h"
#include "report/text/attempt_text.h"
#include "report/page/html.h"
#include "report/text/event_json.h"
#include "report/text/text.h"

#define MOST_EPOCH_ROWS 300 /* of the table; results.csv has all */

/* ---- the verdict ---- */

/* How much faster a remedy makes the run; nothing where that is not known. Small gains have two
 * decimals: with one, 1.03 would be "1.0 times". */
static void put_gain(stk_str *out, double gain) {
    if (isfinite(gain)) {
        stk_str_appendf(out, " <strong>predicted %.*f times as fast</strong>", gain < 1.095 ? 2 : 1,
                        gain);
    }
}

static void put_remedies(stk_str *out, const stk_event_verdict *verdict) {
    if (verdict->remedy_count <= 0) {
        return;
    }
    stk_str_append(out, "<h3>What would make it faster</h3>\n<ol class=\"remedies\">\n");
    for (int i = 0; i < verdict->remedy_count; i++) {
        const stk_remedy *remedy = &verdict->remedies[i];
        stk_page_put_in(out, "<li>", remedy->text, "");
        put_gain(out, remedy->gain);
        if (remedy->flags != NULL && remedy->flags[0] != '\0') {
            stk_page_put_in(out, "<br><code>", remedy->flags, "</code>");
        }
        stk_str_append(out, "</li>\n");
    }
    stk_str_append(out, "</ol>\n");
}

/* Who decoded the pictures; nothing where nothing is known of a device that decodes. */
static void put_decoding(stk_str *out, const stk_event_verdict *verdict) {
    double share = verdict->device_decoded;
    bool engines = isfinite(verdict->jpeg_util);
    if (!isfinite(share) || (!(share > 0) && !engines)) {
        return;
    }
    stk_str_appendf(out, "<p>Pictures: decoded by the GPU %.0f %%", 100 * share);
    if (engines) {
        stk_str_appendf(out, ", engines busy %.0f %% on average", verdict->jpeg_util);
    }
    stk_str_append(out, ".</p>\n");
}

static void put_verdict(stk_str *out, const stk_run_history *history) {
    const stk_event_verdict *verdict = stk_run_view_verdict(&history->view);
    const char *kind = verdict == NULL ? "" : verdict->fine ? " class=\"fine\"" : " class=\"slow\"";
    stk_str_appendf(out, "<section id=\"verdict\"%s>\n<h2>Verdict", kind);
    if (verdict != NULL && verdict->name != NULL) {
        stk_page_put_in(out, ": ", verdict->name, "");
    }
    stk_str_append(out, "</h2>\n");
    if (verdict == NULL) {
        const char *said =
            stk_run_view_has_ended(&history->view) ? history->view.summary->verdict : NULL;
        stk_page_put_in(
            out, "<p class=\"lead\">",
            said != NULL ? said : "Too little was seen to say why the run is as fast as it is.",
            "</p>\n</section>\n");
        return;
    }
    stk_page_put_in(out, "<p class=\"lead\">", verdict->text, "</p>\n");
    if (verdict->evidence != NULL && verdict->evidence[0] != '\0') {
        stk_page_put_in(out, "<p class=\"soft\">Evidence: ", verdict->evidence, "</p>\n");
    }
    if (verdict->batch != NULL) {
        stk_page_put_in(out, "<p>", verdict->batch, "</p>\n");
    }
    put_decoding(out, verdict);
    put_remedies(out, verdict);
    stk_page_close_section(out);
}

/* ---- figures ---- */

static void open_figure(stk_str *out, const char *name) {
    stk_str_appendf(out, "<div><dt>%s</dt><dd>", name);
}

static void close_figure(stk_str *out) {
    stk_str_append(out, "</dd></div>\n");
}

static void put_figure(stk_str *out, const char *name, const char *text) {
    if (text != NULL && text[0] != '\0') {
        open_figure(out, name);
        stk_page_put_text(out, text);
        close_figure(out);
    }
}

static void put_number(stk_str *out, const char *name, int decimals, double value,
                       const char *unit) {
    if (isfinite(value)) {
        open_figure(out, name);
        stk_str_appendf(out, "%.*f%s", decimals, value, unit);
        close_figure(out);
    }
}

static void put_count(stk_str *out, const char *name, int64_t value) {
    char text[32];
    if (value >= 0) {
        put_figure(out, name, stk_format_count(text, sizeof text, (uint64_t)value));
    }
}

static void put_span(stk_str *out, const char *name, double seconds) {
    if (isfinite(seconds)) {
        put_figure(out, name, stk_format_span(seconds).text);
    }
}

static void put_state(stk_str *out, const stk_run_history *history, const stk_summary *summary) {
    open_figure(out, "State");
    if (stk_run_view_has_ended(&history->view)) {
        stk_page_put_text(out, stk_report_words(summary->status));
        if (summary->stop_reason != NULL) {
            stk_page_put_in(out, ": ", stk_report_stop_words(summary), "");
        }
    } else {
        stk_str_append(out, "no end was written: it goes on, or was killed");
    }
    close_figure(out);
}

static void put_results(stk_str *out, const stk_run_history *history, const stk_summary *summary) {
    const stk_event_epoch *best = stk_run_history_best(history);
    bool other = summary->metric != NULL && strcmp(summary->metric, "acc1") != 0;
    put_number(out, "Best validation accuracy", 2, summary->best_acc1, " %");
    if (other && isfinite(summary->best_metric)) {
        stk_page_put_in(out, "<div><dt>Best ", summary->metric, "");
        stk_str_appendf(out, "</dt><dd>%.5g", summary->best_metric);
        close_figure(out);
    }
    put_number(out, "Out-of-fold accuracy", 2, summary->oof_acc1, " %");
    if (best != NULL) {
        put_count(out, "Best epoch", best->epoch);
    }
    put_count(out, "Epochs trained", summary->epochs_done);
    if (summary->folds_planned > 1) {
        open_figure(out, "Folds");
        stk_str_appendf(out, "%d of %d", summary->folds_done > 0 ? summary->folds_done : 0,
                        summary->folds_planned);
        close_figure(out);
    }
}

static void put_speed(stk_str *out, const stk_summary *summary) {
    put_number(out, "Images per second", summary->images_per_second < 100 ? 1 : 0,
               summary->images_per_second, "");
    put_number(out, "Waiting for data", 1, 100 * summary->wait_fraction, " %");
    put_span(out, "Time", summary->used_s);
    put_span(out, "Budget", summary->budget_s);
}

static void put_setting(stk_str *out, const stk_run_history *history, const stk_summary *summary) {
    const stk_any_event unknown = stk_event_unknown(STK_EVENT_START);
    const stk_event_start *start =
        history->view.start != NULL ? history->view.start : &unknown.start;
    char text[64];
    put_figure(out, "Model", start->model);
    put_figure(out, "Device", start->device_name != NULL ? start->device_name : summary->device);
    put_figure(out, "Precision", summary->precision);
    put_count(out, "Batch", summary->batch);
    put_count(out, "Workers", summary->workers);
    put_count(out, "Prefetch", summary->prefetch);
    if (history->view.start == NULL) {
        return;
    }
    if (start->img_size > 0) {
        snprintf(text, sizeof text, "%d px", start->img_size);
        put_figure(out, "Image size", text);
    }
    stk_task task = stk_task_named(start->task);
    put_count(out,
              task == STK_TASK_MULTILABEL   ? "Labels"
              : task == STK_TASK_REGRESSION ? "Numbers"
                                            : "Classes",
              start->classes);
    put_count(out, "Training images", start->train_images);
    put_count(out, "Validation images", start->val_images);
    put_count(out, "Test images", start->test_images);
    if (start->cores > 0) {
        put_count(out, "Cores", start->cores);
    }
    if (start->memory_bytes > 0) {
        put_figure(out, "Memory",
                   stk_format_bytes(text, sizeof text, (uint64_t)start->memory_bytes));
    }
    if (start->device_bytes > 0) {
        put_figure(out, "GPU memory",
                   stk_format_bytes(text, sizeof text, (uint64_t)start->device_bytes));
    }
}

/* The supervised command, and its forecast. */
static void put_command(stk_str *out, const stk_summary *summary) {
    if (summary->command != NULL) {
        stk_page_put_in(out, "<p class=\"soft\">Command: <code>", summary->command,
                        "</code></p>\n");
        if (summary->estimate != NULL) {
            stk_page_put_in(out, "<p>By its own words: ", summary->estimate, "</p>\n");
        }
    }
}

static void put_figures(stk_str *out, const stk_run_history *history, const stk_summary *summary) {
    stk_page_open_section(out, "summary", "Summary");
    stk_str_append(out, "<dl class=\"figures\">\n");
    put_state(out, history, summary);
    put_results(out, history, summary);
    put_speed(out, summary);
    put_setting(out, history, summary);
    put_count(out, "Bad images", summary->bad_images);
    put_figure(out, "Predictions", summary->submission);
    if (summary->command != NULL) {
        put_count(out, "Exit code", summary->exit_code);
    }
    stk_str_append(out, "</dl>\n");
    put_command(out, summary);
    if (history->view.start != NULL && history->view.start->data != NULL) {
        stk_page_put_in(out, "<p class=\"soft\">Data: <code>", history->view.start->data,
                        "</code></p>\n");
    }
    stk_page_close_section(out);
}

/* ---- what was told ---- */

static void put_time(stk_str *out, double at_s) {
    char text[32];
    stk_format_duration(text, sizeof text, at_s);
    stk_str_appendf(out, "<span class=\"soft\">%s</span> ", text);
}

static void put_notes(stk_str *out, const stk_run_history *history, stk_note_kind kind,
                      const char *heading, const char *more) {
    const stk_notes *notes = &history->notes[kind];
    char told[32];
    if (notes->count == 0) {
        return;
    }
    stk_str_appendf(out, "<h3>%s (%s)</h3>\n<ul>\n", heading,
                    stk_format_count(told, sizeof told, notes->total));
    for (size_t i = 0; i < notes->count; i++) {
        const stk_note *note = &notes->items[i];
        stk_str_append(out, "<li>");
        put_time(out, note->at_s);
        stk_page_put_text(out, note->what);
        if (note->why != NULL && note->why[0] != '\0') {
            stk_page_put_in(out, ": ", note->why, "");
        }
        stk_str_append(out, "</li>\n");
    }
    stk_str_append(out, "</ul>\n");
    if (notes->total > notes->count) {
        stk_str_appendf(out, "<p class=\"soft\">The rest is in %s.</p>\n", more);
    }
}

static void put_told(stk_str *out, const stk_run_history *history) {
    bool any = false;
    for (int kind = 0; kind < STK_NOTE_KINDS; kind++) {
        any = any || history->notes[kind].count > 0;
    }
    if (!any) {
        return;
    }
    stk_page_open_section(out, "notes", "What was told");
    put_notes(out, history, STK_NOTE_WARNING, "Warnings", "events.jsonl");
    put_notes(out, history, STK_NOTE_DECISION, "Decisions", "events.jsonl");
    put_notes(out, history, STK_NOTE_VERDICT, "Verdicts over time", "events.jsonl");
    put_notes(out, history, STK_NOTE_BAD_IMAGE, "Bad images", "bad_images.csv");
    stk_page_close_section(out);
}

/* ---- tables ---- */

static void put_count_cell(stk_str *out, int64_t value) {
    stk_page_put_number_cell(out, 0, value >= 0 ? (double)value : NAN);
}

static void put_attempt_row(stk_str *out, const stk_event_attempt *attempt) {
    stk_str name = {0};
    stk_str memory = {0};
    stk_str end = {0};
    stk_attempt_put_name(&name, attempt);
    stk_attempt_put_memory(&memory, attempt);
    stk_attempt_put_end(&end, attempt);
    stk_str_append(out, "<tr>");
    stk_page_put_cell(out, stk_str_text(&name));
    put_count_cell(out, attempt->batch);
    put_count_cell(out, attempt->workers);
    stk_page_put_number_cell(out, 1, attempt->images_per_second);
    stk_page_put_number_cell(out, 0, attempt->gpu_util);
    stk_page_put_cell(out, memory.length > 0 ? stk_str_text(&memory) : NULL);
    stk_page_put_number_cell(out, 1, attempt->seconds);
    stk_page_put_cell(out, attempt->verdict);
    stk_page_put_cell(out, stk_str_text(&end));
    stk_page_put_cell(out, attempt->kept ? "yes" : "");
    stk_page_put_in(out, "<td><code>", attempt->command, "</code></td></tr>\n");
    stk_str_free_part(out, &name);
    stk_str_free_part(out, &memory);
    stk_str_free_part(out, &end);
}

/* All attempts, also one that still runs. */
static void put_attempts(stk_str *out, const stk_run_view *view) {
    if (view->attempt_count == 0) {
        return;
    }
    stk_page_open_section(out, "attempts", "Attempts");
    stk_str_append(out, "<div class=\"scroll\"><table>\n<tr><th></th><th class=\"n\">batch</th>"
                        "<th class=\"n\">workers</th><th class=\"n\">images/s</th>"
                        "<th class=\"n\">GPU, %</th><th>GPU memory</th><th class=\"n\">seconds</th>"
                        "<th>verdict</th><th>end</th><th>kept</th><th>command</th></tr>\n");
    for (int i = 0; i < view->attempt_count; i++) {
        put_attempt_row(out, &view->attempts[i]);
    }
    stk_str_append(out, "</table></div>\n");
    stk_page_close_section(out);
}

static void put_epoch_row(stk_str *out, const stk_event_epoch *row) {
    stk_str_appendf(out, "<tr><td class=\"n\">%d</td><td class=\"n\">%d%s</td>", row->fold + 1,
                    row->epoch, row->best ? " *" : "");
    stk_page_put_number_cell(out, 4, row->train_loss);
    stk_page_put_number_cell(out, 2, row->train_acc1);
    stk_page_put_number_cell(out, 4, row->val_loss);
    stk_page_put_number_cell(out, 2, row->val_acc1);
    stk_page_put_number_cell(out, 2, row->val_acc5);
    stk_page_put_number_cell(out, 6, row->lr);
    stk_page_put_number_cell(out, 1, row->images_per_second);
    stk_page_put_number_cell(out, 1, 100 * row->wait_fraction);
    stk_page_put_number_cell(out, 1, row->seconds);
    stk_str_append(out, "</tr>\n");
}

static void put_epochs(stk_str *out, const stk_run_history *history) {
    static const char *const heads[] = {"fold",     "epoch",      "train loss", "train acc, %",
                                        "val loss", "val acc, %", "top-5, %",   "learning rate",
                                        "images/s", "waiting, %", "seconds"};
    size_t first = history->row_count > MOST_EPOCH_ROWS ? history->row_count - MOST_EPOCH_ROWS : 0;
    if (history->row_count == 0) {
        return;
    }
    stk_page_open_section(out, "epochs", "Epochs");
    stk_str_appendf(out, "<details><summary>%s %zu epochs as a table</summary>\n",
                    first > 0 ? "The last" : "All", history->row_count - first);
    stk_str_append(out, "<div class=\"scroll\"><table>\n<tr>");
    for (size_t i = 0; i < sizeof heads / sizeof *heads; i++) {
        stk_str_appendf(out, "<th class=\"n\">%s</th>", heads[i]);
    }
    stk_str_append(out, "</tr>\n");
    for (size_t i = first; i < history->row_count; i++) {
        put_epoch_row(out, &history->rows[i]);
    }
    stk_str_append(out, "</table></div>\n<p class=\"soft\">* the best so far at its time"
                        "</p></details>\n");
    stk_page_close_section(out);
}

/* The text after `  # ` in a line of args.yaml, or NULL. One within quotes does not count. */
static const char *find_reason(const char *value, const char *end) {
    bool quoted = false;
    for (const char *p = value; p + 4 <= end; p++) {
        if (*p == '\\' && quoted) {
            p++;
        } else if (*p == '"') {
            quoted = !quoted;
        } else if (!quoted && strncmp(p, "  # ", 4) == 0) {
            return p + 4;
        }
    }
    return NULL;
}

/* The reason that args.yaml has after a value ("batch: 32  # auto"), or nothing. */
static void put_reason(stk_str *out, const char *yaml, const char *key) {
    size_t length = strlen(key);
    for (const char *line = yaml; line != NULL && *line != '\0';) {
        const char *end = strchr(line, '\n');
        end = end != NULL ? end : line + strlen(line);
        if (strncmp(line, key, length) == 0 && line[length] == ':') {
            const char *reason = find_reason(line + length + 1, end);
            if (reason != NULL) {
                stk_str text = {0};
                stk_str_append_bytes(&text, reason, (size_t)(end - reason));
                stk_page_put_text(out, stk_str_text(&text));
                stk_str_free(&text);
            }
            return;
        }
        line = *end != '\0' ? end + 1 : end;
    }
}

static void put_options(stk_str *out, const stk_page *page) {
    if (stk_json_kind_of(page->args) != STK_JSON_OBJECT) {
        return;
    }
    stk_page_open_section(out, "options", "Configuration");
    /* The command of a supervised run is shown above. */
    const stk_run_view *view = &page->history->view;
    if (view->start != NULL && view->start->chosen != NULL && stk_run_view_command(view) == NULL) {
        stk_page_put_in(out, "<p>Chosen: ", view->start->chosen, "</p>\n");
    }
    stk_str_append(out, "<details><summary>All options as they were used</summary>\n"
                        "<div class=\"scroll\"><table>\n<tr><th>option</th><th>value</th>"
                        "<th>why</th></tr>\n");
    for (const stk_json *value = stk_json_at(page->args, 0); value != NULL;
         value = stk_json_next(page->args, value)) {
        stk_str text = {0};
        stk_report_append_json(&text, value);
        stk_str_append(out, "<tr>");
        stk_page_put_cell(out, stk_json_key_of(value));
        stk_page_put_cell(out, stk_str_text(&text));
        stk_str_append(out, "<td>");
        put_reason(out, page->args_yaml, stk_json_key_of(value));
        stk_str_append(out, "</td></tr>\n");
        stk_str_free_part(out, &text);
    }
    stk_str_append(out, "</table></div></details>\n");
    stk_page_close_section(out);
}

/* ---- the header's function ---- */

static void put_title(const stk_page *page, stk_str *title) {
    const stk_run_view *view = &page->history->view;
    const char *model = view->start != NULL ? view->start->model : NULL;
    const char *what = model != NULL ? model : stk_run_view_command(view);
    stk_str_append(title, page->name != NULL ? page->name : "A training run");
    if (what != NULL) {
        stk_str_appendf(title, ": %s", what);
    }
}

stk_status stk_page_put(const stk_page *page, stk_str *out, stk_error *err) {
    const stk_run_history *history = page->history;
    stk_summary summary = stk_run_history_summary(history, page->args, page->has_submission);
    stk_times times = stk_run_history_times(history);
    stk_str title = {0};
    put_title(page, &title);
    stk_page_begin(out, stk_str_text(&title));
    stk_str_free(&title);
    put_verdict(out, history);
    put_figures(out, history, &summary);
    put_attempts(out, &history->view);
    stk_status status = stk_page_put_curves(history, out, err);
    STK_THEN(status, stk_page_put_times(&times, out, err));
    STK_THEN(status,
             stk_page_put_budget(&summary, stk_run_view_has_ended(&history->view), out, err));
    STK_THEN(status, stk_page_put_timelines(history, out, err));
    STK_THEN(status, stk_page_put_confusion(page, out, err));
    put_told(out, history);
    put_epochs(out, history);
    put_options(out, page);
    stk_page_end(out);
    if (status == STK_OK && (history->failed || !stk_str_ok(out))) {
        status = STK_FAIL_MEMORY(err, "a page");
    }
    return status;
}
