/*
 * compare.c - runs side by side.
 *
 * Terminal and page show the same cells, so a table is filled with texts first and then drawn.
 */
#include "report/page/report_runs.h"

#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/error.h"
#include "base/mem.h"
#include "report/text/attempt_text.h"
#include "report/plots/axis.h"
#include "report/plots/chart.h"
#include "report/text/event_json.h"
#include "report/page/html.h"
#include "report/text/text.h"

#define MOST_OPTIONS 200     /* in which runs differ */
#define MOST_CELL_LETTERS 40 /* on a terminal */
#define UNKNOWN "-"

/* ---- tables of texts ---- */

typedef struct compare_table {
    stk_str *cells; /* owned: (rows, columns); the first row is the heading */
    size_t rows;
    size_t columns;
} compare_table;

static bool table_open(compare_table *t, size_t rows, size_t columns) {
    *t = (compare_table){stk_mem_new(rows * columns, sizeof *t->cells), rows, columns};
    return t->cells != NULL;
}

static void table_free(compare_table *t) {
    for (size_t i = 0; t->cells != NULL && i < t->rows * t->columns; i++) {
        stk_str_free(&t->cells[i]);
    }
    stk_mem_free(t->cells);
}

static stk_str *cell(const compare_table *t, size_t row, size_t column) {
    return &t->cells[row * t->columns + column];
}

static bool table_ok(const compare_table *t) {
    for (size_t i = 0; i < t->rows * t->columns; i++) {
        if (!stk_str_ok(&t->cells[i])) {
            return false;
        }
    }
    return true;
}

/* ---- what the runs came to ---- */

static void put_count(stk_str *out, int64_t value) {
    if (value >= 0) {
        stk_str_appendf(out, "%lld", (long long)value);
    }
}

static void put_number(stk_str *out, const char *unit, int decimals, double value) {
    if (isfinite(value)) {
        stk_str_appendf(out, "%.*f%s", decimals, value, unit);
    }
}

static void put_text(stk_str *out, const char *text) {
    stk_report_append_line(out, text != NULL ? text : "");
}

static const char *const run_heads[] = {"run",    "state",   "best acc", "metric", "epochs",
                                        "img/s",  "wait",    "time",     "batch",  "workers",
                                        "device", "verdict", "attempts", "command"};

#define RUN_COLUMNS (sizeof run_heads / sizeof *run_heads)

static void fill_run(const compare_table *t, size_t row, const stk_run_read *run) {
    stk_summary s = stk_run_read_summary(run);
    const stk_event_attempt *best = stk_attempt_best(s.attempts, s.attempt_count);
    if (best != NULL) { /* what a supervised command was best with */
        s.images_per_second = best->images_per_second;
        s.batch = best->batch <= INT_MAX ? (int)best->batch : -1;
        s.workers = best->workers;
    }
    /* The summary of a supervised command has the last attempt's verdict, which may be none. */
    const stk_event_verdict *last = stk_run_view_verdict(&run->history.view);
    const char *verdict = last != NULL ? last->name : s.verdict;
    size_t c = 0;
    put_text(cell(t, row, c++), run->name);
    put_text(cell(t, row, c++), stk_run_view_has_ended(&run->history.view) ? s.status : "no end");
    put_number(cell(t, row, c++), " %", 2, s.best_acc1);
    if (s.metric != NULL && strcmp(s.metric, "acc1") != 0 && isfinite(s.best_metric)) {
        put_text(cell(t, row, c), s.metric);
        stk_str_appendf(cell(t, row, c), " %.4g", s.best_metric);
    }
    c++;
    put_count(cell(t, row, c++), s.epochs_done);
    put_number(cell(t, row, c++), "", s.images_per_second < 100 ? 1 : 0, s.images_per_second);
    put_number(cell(t, row, c++), " %", 1, 100 * s.wait_fraction);
    if (isfinite(s.used_s)) {
        stk_str_append(cell(t, row, c), stk_format_span(s.used_s).text);
    }
    c++;
    put_count(cell(t, row, c++), s.batch);
    put_count(cell(t, row, c++), s.workers);
    put_text(cell(t, row, c), s.device);
    if (s.device != NULL && s.precision != NULL) {
        stk_str_append(cell(t, row, c), " ");
        put_text(cell(t, row, c), s.precision);
    }
    put_text(cell(t, row, c + 1), verdict);
    if (s.command != NULL) {
        put_count(cell(t, row, c + 2), run->history.view.attempt_count);
        put_text(cell(t, row, c + 3), s.command);
    }
}

static stk_status make_runs(compare_table *t, const stk_run_read *runs, size_t count,
                            stk_error *err) {
    if (!table_open(t, count + 1, RUN_COLUMNS)) {
        return STK_FAIL_MEMORY(err, "a table");
    }
    for (size_t i = 0; i < RUN_COLUMNS; i++) {
        stk_str_append(cell(t, 0, i), run_heads[i]);
    }
    for (size_t i = 0; i < count; i++) {
        fill_run(t, i + 1, &runs[i]);
    }
    return table_ok(t) ? STK_OK : STK_FAIL_MEMORY(err, "a table");
}

/* ---- options that differ ---- */

static bool is_same(const stk_json *a, const stk_json *b) {
    stk_str x = {0};
    stk_str y = {0};
    stk_report_append_json(&x, a);
    stk_report_append_json(&y, b);
    bool same = strcmp(stk_str_text(&x), stk_str_text(&y)) == 0;
    stk_str_free(&x);
    stk_str_free(&y);
    return same;
}

/* Whether the runs differ in an option. The names of their folders do not count. */
static bool differs(const stk_run_read *runs, size_t count, const char *key) {
    static const char *const passed_over[] = {"out", "name", "quiet", "json"};
    const stk_json *first = NULL;
    for (size_t i = 0; i < sizeof passed_over / sizeof *passed_over; i++) {
        if (strcmp(key, passed_over[i]) == 0) {
            return false;
        }
    }
    for (size_t i = 0; i < count; i++) {
        const stk_json *value = stk_json_get(runs[i].args, key);
        if (first != NULL && value != NULL && !is_same(first, value)) {
            return true;
        }
        first = first != NULL ? first : value; /* what a run does not say is not different */
    }
    return false;
}

/* Fills in the names of the options that differ, each once; returns how many. */
static size_t find_differences(const stk_run_read *runs, size_t count,
                               const char *keys[MOST_OPTIONS]) {
    size_t found = 0;
    for (size_t r = 0; r < count; r++) {
        for (const stk_json *value = stk_json_at(runs[r].args, 0);
             value != NULL && found < MOST_OPTIONS; value = stk_json_next(runs[r].args, value)) {
            const char *key = stk_json_key_of(value);
            bool new = differs(runs, count, key);
            for (size_t k = 0; k < found && new; k++) {
                new = strcmp(keys[k], key) != 0;
            }
            if (new) {
                keys[found++] = key;
            }
        }
    }
    return found;
}

/* The table of options that differ; it has no rows where all are the same. */
static stk_status make_options(compare_table *t, const stk_run_read *runs, size_t count,
                               stk_error *err) {
    const char *keys[MOST_OPTIONS];
    size_t found = find_differences(runs, count, keys);
    *t = (compare_table){0};
    if (found == 0) {
        return STK_OK;
    }
    if (!table_open(t, found + 1, count + 1)) {
        return STK_FAIL_MEMORY(err, "a table");
    }
    stk_str_append(cell(t, 0, 0), "option");
    for (size_t r = 0; r < count; r++) {
        put_text(cell(t, 0, r + 1), runs[r].name);
    }
    for (size_t k = 0; k < found; k++) {
        put_text(cell(t, k + 1, 0), keys[k]);
        for (size_t r = 0; r < count; r++) {
            stk_str raw = {0};
            stk_report_append_json(&raw, stk_json_get(runs[r].args, keys[k]));
            put_text(cell(t, k + 1, r + 1), stk_str_text(&raw));
            stk_str_free(&raw);
        }
    }
    return table_ok(t) ? STK_OK : STK_FAIL_MEMORY(err, "a table");
}

/* ---- a terminal ---- */

/* Counts the letters of a text that fit into a cell of a terminal; *bytes is their length. */
static size_t letters_of(const char *text, size_t *bytes) {
    size_t letters = 0;
    size_t at = 0;
    size_t size = strlen(text);
    while (at < size && letters < MOST_CELL_LETTERS) {
        size_t length = stk_utf8_length(text + at, size - at);
        at += length > 0 ? length : 1;
        letters++;
    }
    *bytes = at;
    return letters;
}

static const char *shown(const compare_table *t, size_t row, size_t column) {
    const char *text = stk_str_text(cell(t, row, column));
    return text[0] != '\0' ? text : UNKNOWN;
}

/* Whether some run has a value in the column; other columns are left out. */
static bool is_used(const compare_table *t, size_t column) {
    for (size_t row = 1; row < t->rows; row++) {
        if (stk_str_text(cell(t, row, column))[0] != '\0') {
            return true;
        }
    }
    return false;
}

static void print_table(const compare_table *t, stk_str *out) {
    for (size_t row = 0; row < t->rows; row++) {
        stk_str line = {0};
        for (size_t column = 0; column < t->columns; column++) {
            size_t widest = 0;
            size_t bytes;
            if (column > 0 && !is_used(t, column)) {
                continue;
            }
            for (size_t r = 0; r < t->rows; r++) {
                size_t letters = letters_of(shown(t, r, column), &bytes);
                widest = letters > widest ? letters : widest;
            }
            size_t letters = letters_of(shown(t, row, column), &bytes);
            stk_str_append_bytes(&line, shown(t, row, column), bytes);
            stk_str_appendf(&line, "%*s", (int)(widest - letters) + 2, "");
        }
        size_t end = line.length;
        while (end > 0 && line.text[end - 1] == ' ') {
            end--;
        }
        stk_str_append_bytes(out, stk_str_text(&line), end);
        stk_str_append(out, "\n");
        stk_str_free_part(out, &line);
    }
}

stk_status stk_compare_text(const stk_run_read *runs, size_t count, stk_str *out, stk_error *err) {
    compare_table results = {0};
    compare_table options = {0};
    stk_status status = make_runs(&results, runs, count, err);
    STK_THEN(status, make_options(&options, runs, count, err));
    if (status == STK_OK) {
        print_table(&results, out);
        stk_str_append(out, options.rows > 0 ? "\noptions that differ\n"
                                             : "\nall options are the same\n");
        print_table(&options, out);
        status = stk_str_ok(out) ? STK_OK : STK_FAIL_MEMORY(err, "a table");
    }
    table_free(&results);
    table_free(&options);
    return status;
}

/* ---- JSON ---- */

static void put_json(stk_json_writer *writer, const stk_json *value) {
    switch (stk_json_kind_of(value)) {
    case STK_JSON_STRING:
        stk_json_put_string(writer, stk_json_string(value));
        break;
    case STK_JSON_NUMBER:
        stk_json_put_double(writer, stk_json_number(value, NAN));
        break;
    case STK_JSON_BOOL:
        stk_json_put_bool(writer, stk_json_bool(value, false));
        break;
    default:
        stk_json_put_null(writer);
    }
}

void stk_compare_json(const stk_run_read *runs, size_t count, stk_json_writer *writer) {
    const char *keys[MOST_OPTIONS];
    size_t found = find_differences(runs, count, keys);
    stk_json_key(writer, "runs");
    stk_json_begin_array(writer);
    for (size_t i = 0; i < count; i++) {
        stk_summary summary = stk_run_read_summary(&runs[i]);
        stk_json_begin_object(writer);
        stk_json_key(writer, "run");
        stk_json_put_string(writer, runs[i].dir);
        stk_event_put(writer, STK_EVENT_STOP, &summary);
        stk_json_end_object(writer);
    }
    stk_json_end_array(writer);
    stk_json_key(writer, "options");
    stk_json_begin_object(writer);
    for (size_t k = 0; k < found; k++) {
        stk_json_key(writer, keys[k]);
        stk_json_begin_array(writer);
        for (size_t i = 0; i < count; i++) {
            put_json(writer, stk_json_get(runs[i].args, keys[k]));
        }
        stk_json_end_array(writer);
    }
    stk_json_end_object(writer);
}

/* ---- a page ---- */

static void put_table(const compare_table *t, const char *id, const char *heading, stk_str *out) {
    if (t->rows == 0) {
        return;
    }
    stk_page_open_section(out, id, heading);
    stk_str_append(out, "<div class=\"scroll\"><table>\n");
    for (size_t row = 0; row < t->rows; row++) {
        stk_str_append(out, "<tr>");
        for (size_t column = 0; column < t->columns; column++) {
            if (column > 0 && !is_used(t, column)) {
                continue;
            }
            stk_str_append(out, row == 0 ? "<th>" : "<td>");
            if (row > 0 && column == 0 && strcmp(id, "runs") == 0) {
                stk_str_appendf(out, "<span style=\"color:#%06x\">&#9632;</span> ",
                                (unsigned)stk_axis_color(row - 1));
            }
            stk_report_append_markup(out, stk_str_text(cell(t, row, column)));
            stk_str_append(out, row == 0 ? "</th>" : "</td>");
        }
        stk_str_append(out, "</tr>\n");
    }
    stk_str_append(out, "</table></div>\n");
    stk_page_close_section(out);
}

/* A measure that runs are compared by. */
typedef struct measure {
    const char *id;
    const char *caption;
    size_t offset; /* of a double in stk_event_epoch */
    bool by_time;  /* over the seconds of training instead of epochs */
    bool percent;
    bool from_zero;
    bool sampled;    /* of a supervised command, which has no epochs: over its time */
    stk_gauge gauge; /* with `sampled`: what is drawn */
    double unit;     /* with `sampled`: the values are divided by this */
} measure;

#define AT(field) offsetof(stk_event_epoch, field)
#define TRAINED(id, caption, field, by_time, percent, from_zero) \
    { id, caption, AT(field), by_time, percent, from_zero, false, STK_GAUGE_COUNT, NAN }
#define SAMPLED(id, caption, gauge, unit, percent) \
    { id, caption, 0, true, percent, true, true, STK_GAUGE_##gauge, unit }

static const measure measures[] = {
    TRAINED("plot-accuracy", "Validation accuracy, %", val_acc1, false, true, false),
    TRAINED("plot-accuracy-time", "Validation accuracy, %, over time", val_acc1, true, true, false),
    TRAINED("plot-loss", "Validation loss", val_loss, false, false, false),
    TRAINED("plot-train-loss", "Training loss", train_loss, false, false, false),
    TRAINED("plot-lr", "Learning rate", lr, false, false, true),
    TRAINED("plot-speed", "Images per second", images_per_second, false, false, true),
    TRAINED("plot-waiting", "Waiting for data, 0 to 1", wait_fraction, false, false, true),
    SAMPLED("plot-said-rate", "Images per second, as the commands say", STEP_RATE, 1, false),
    SAMPLED("plot-said-loss", "Loss, as the commands say", LOSS, 1, false),
    SAMPLED("plot-gpu", "GPU, %", GPU_UTIL, 1, true),
    SAMPLED("plot-gpu-memory", "GPU memory in use, GB", GPU_MEMORY_USED, 1e9, false),
    SAMPLED("plot-cpu", "CPU of the run, % of all cores", CPU_OWN, 1, true),
};

/* Room for the lines and points of one plot. */
typedef struct overlay {
    stk_chart_line *lines;
    size_t line_count;
    stk_point *points;
    size_t point_count;
} overlay;

/* Adds the epochs of a run: each fold is a line in the colour of the run. */
static void add_lines(overlay *o, const stk_run_read *run, size_t number, const measure *m) {
    const stk_run_history *history = &run->history;
    double seconds = 0;
    stk_chart_line *line = NULL;
    for (size_t i = 0; i < history->row_count; i++) {
        const stk_event_epoch *row = &history->rows[i];
        double value;
        memcpy(&value, (const char *)row + m->offset, sizeof value);
        if (line == NULL || history->rows[i - 1].fold != row->fold) {
            line = &o->lines[o->line_count++];
            *line = (stk_chart_line){.label = i == 0 ? run->name : NULL,
                                     .color = stk_axis_color(number),
                                     .points = o->points + o->point_count};
        }
        seconds += row->seconds > 0 ? row->seconds : 0;
        o->points[o->point_count++] = (stk_point){m->by_time ? seconds : row->epoch, value};
        line->count++;
    }
}

static void add_moments(overlay *o, const stk_run_read *run, size_t number, const measure *m) {
    const stk_run_history *history = &run->history;
    stk_chart_line *line = &o->lines[o->line_count];
    if (stk_run_view_command(&history->view) == NULL) {
        return;
    }
    *line = (stk_chart_line){.label = run->name,
                             .color = stk_axis_color(number),
                             .points = o->points + o->point_count,
                             .count = history->moment_count};
    for (size_t i = 0; i < history->moment_count; i++) {
        const stk_moment *moment = &history->moments[i];
        o->points[o->point_count++] = (stk_point){moment->at_s, moment->values[m->gauge] / m->unit};
    }
    o->line_count++;
}

static stk_status put_overlays(const stk_run_read *runs, size_t count, stk_str *out,
                               stk_error *err) {
    size_t rows = 1;
    for (size_t i = 0; i < count; i++) {
        rows += runs[i].history.row_count + 1 + runs[i].history.moment_count;
    }
    overlay o = {.lines = stk_mem_new(rows, sizeof *o.lines),
                 .points = stk_mem_new(rows, sizeof *o.points)};
    stk_status status =
        o.lines != NULL && o.points != NULL ? STK_OK : STK_FAIL_MEMORY(err, "a plot");
    for (size_t i = 0; i < sizeof measures / sizeof *measures && status == STK_OK; i++) {
        const measure *m = &measures[i];
        o.line_count = o.point_count = 0;
        for (size_t r = 0; r < count; r++) {
            (m->sampled ? add_moments : add_lines)(&o, &runs[r], r, m);
        }
        stk_chart chart = {.id = m->id,
                           .caption = m->caption,
                           .x_label = m->sampled   ? "time since the start"
                                      : m->by_time ? "time of training"
                                                   : "epoch",
                           .x_scale = m->by_time ? STK_CHART_TIME : STK_CHART_WHOLE,
                           .percent = m->percent,
                           .from_zero = m->from_zero,
                           .lines = o.lines,
                           .line_count = o.line_count};
        if (stk_chart_has_points(&chart)) {
            status = stk_chart_put(&chart, out, err);
        }
    }
    stk_mem_free(o.lines);
    stk_mem_free(o.points);
    return status;
}

/* The section of all plots; it is left out without any. */
static stk_status put_curves(const stk_run_read *runs, size_t count, stk_str *out, stk_error *err) {
    stk_str plots = {0};
    stk_status status = put_overlays(runs, count, &plots, err);
    if (status == STK_OK && plots.length > 0) {
        stk_page_open_section(out, "curves", "Curves");
        stk_str_appendf(out, "<div class=\"grid\">\n%s</div>\n", plots.text);
        stk_page_close_section(out);
    }
    stk_str_free_part(out, &plots);
    return status;
}

stk_status stk_compare_page(const stk_run_read *runs, size_t count, stk_str *out, stk_error *err) {
    compare_table results = {0};
    compare_table options = {0};
    char title[64];
    stk_status status = make_runs(&results, runs, count, err);
    STK_THEN(status, make_options(&options, runs, count, err));
    if (status == STK_OK) {
        snprintf(title, sizeof title, "%zu runs compared", count);
        stk_page_begin(out, title);
        put_table(&results, "runs", "Runs", out);
        status = put_curves(runs, count, out, err);
        put_table(&options, "options", "Options that differ", out);
        stk_page_end(out);
    }
    if (status == STK_OK && !stk_str_ok(out)) {
        status = STK_FAIL_MEMORY(err, "a page");
    }
    table_free(&results);
    table_free(&options);
    return status;
}
