/*
 * top_draw.c - the picture of a run: bars, the curve of the loss, what was said last.
 *
 * Every letter goes through put_text(), which counts columns and cuts what is too wide; colours do
 * not count. A line about something that is not known is left out, and the curve takes the rows
 * that the others leave.
 */
#include "report/status/top_draw.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/mem.h"
#include "report/text/attempt_text.h"
#include "report/text/event_json.h"
#include "report/text/text.h"

#define LEAST_COLUMNS 20
#define MOST_COLUMNS 300
#define NARROW_COLUMNS 60 /* below it a bar is a third of the line */
#define BAR_COLUMNS 30
#define CURVE_ROWS 8 /* where rows are not counted */
#define MOST_CURVE_ROWS 16
#define LEAST_CURVE_ROWS 3 /* a lower one shows nothing */
#define LABEL_COLUMNS 8    /* columns of a bar's name, and of the numbers beside the curve */
#define SAID_ROWS 2        /* of a verdict, a decision or a warning */
#define MANY_WAIT 20.0     /* percent: red, not yellow */
#define SOME_WAIT 5.0

typedef enum top_tint { PLAIN, BOLD, GREEN, YELLOW, RED, CYAN } top_tint;

typedef struct top_frame {
    const stk_run_status *status;
    const stk_event_start *start; /* the last start; never NULL, as `step` and `sample` */
    const stk_event_step *step;
    const stk_event_sample *sample;
    stk_top_look look;
    stk_str *out;
    int column; /* where the next letter goes */
    int line;   /* lines that are complete */
} top_frame;

/* ---- letters ---- */

/* Whether a character takes two columns: the scripts of East Asia and pictures. */
static bool is_wide(unsigned code) {
    static const unsigned ranges[][2] = {{0x1100, 0x115f}, {0x2e80, 0xa4cf},   {0xac00, 0xd7a3},
                                         {0xf900, 0xfaff}, {0xfe30, 0xfe6f},   {0xff00, 0xff60},
                                         {0xffe0, 0xffe6}, {0x1f300, 0x1faff}, {0x20000, 0x3fffd}};
    for (size_t i = 0; i < sizeof ranges / sizeof *ranges; i++) {
        if (code >= ranges[i][0] && code <= ranges[i][1]) {
            return true;
        }
    }
    return false;
}

/* The code of a whole UTF-8 character. */
static unsigned code_of(const char *text, size_t length) {
    static const unsigned char masks[] = {0, 0x7f, 0x1f, 0x0f, 0x07};
    unsigned code = (unsigned char)text[0] & masks[length];
    for (size_t i = 1; i < length; i++) {
        code = code << 6 | ((unsigned char)text[i] & 0x3f);
    }
    return code;
}

/* Puts clean text on the line, up to the column `end`; returns the bytes that had room. */
static size_t put_until(top_frame *f, const char *text, int end) {
    size_t left = strlen(text);
    const char *p = text;
    while (left > 0) {
        size_t length = stk_utf8_length(p, left);
        unsigned code = length > 0 ? code_of(p, length) : '?';
        bool shown = code < 0x80 || (f->look.utf8 && length > 0);
        int width = shown && is_wide(code) ? 2 : 1;
        if (f->column + width > end) {
            break;
        }
        length = length > 0 ? length : 1;
        if (shown) {
            stk_str_append_bytes(f->out, p, length);
        } else {
            stk_str_append(f->out, "?");
        }
        f->column += width;
        p += length;
        left -= length;
    }
    return (size_t)(p - text);
}

static void put_text(top_frame *f, const char *text) {
    put_until(f, text, f->look.columns);
}

/* Puts a text of others. */
static void put_foreign(top_frame *f, const char *text) {
    stk_str clean = {0};
    stk_report_append_line(&clean, text);
    put_text(f, stk_str_text(&clean));
    stk_str_free(&clean);
}

static void put_blanks(top_frame *f, int until) {
    while (f->column < until && f->column < f->look.columns) {
        put_text(f, " ");
    }
}

static void begin_tint(top_frame *f, top_tint tint) {
    static const char *const codes[] = {
        [PLAIN] = "",          [BOLD] = "\x1b[1m", [GREEN] = "\x1b[32m",
        [YELLOW] = "\x1b[33m", [RED] = "\x1b[31m", [CYAN] = "\x1b[36m"};
    if (f->look.colour) {
        stk_str_append(f->out, codes[tint]);
    }
}

static void end_tint(top_frame *f) {
    if (f->look.colour) {
        stk_str_append(f->out, "\x1b[0m");
    }
}

static void end_line(top_frame *f) {
    stk_str_append(f->out, "\n");
    f->column = 0;
    f->line++;
}

static bool has_room(const top_frame *f) {
    return f->look.rows == 0 || f->line < f->look.rows;
}

/* ---- bars ---- */

static int bar_columns(const top_frame *f) {
    return f->look.columns < NARROW_COLUMNS ? f->look.columns / 3 : BAR_COLUMNS;
}

/* A share of 0 to 1, to an eighth of a letter where the terminal has such letters. */
static void put_bar(top_frame *f, double share, top_tint tint) {
    static const char *const eighths[] = {"", "▏", "▎", "▍", "▌", "▋", "▊", "▉"};
    int columns = bar_columns(f);
    int start = f->column;
    double length = columns * fmin(fmax(share, 0), 1);
    int whole = (int)length;
    begin_tint(f, tint);
    for (int i = 0; i < whole; i++) {
        put_text(f, f->look.utf8 ? "█" : "#");
    }
    if (f->look.utf8) {
        put_text(f, eighths[(int)(8 * (length - whole))]);
    }
    end_tint(f);
    while (f->column < start + columns) {
        put_text(f, f->look.utf8 ? "·" : "-");
    }
}

/* "GPU     81% ######----  note": a line; the note may be NULL. */
static void draw_bar(top_frame *f, const char *name, const char *value, double share, top_tint tint,
                     const char *note) {
    if (!has_room(f)) {
        return;
    }
    put_text(f, name);
    put_blanks(f, LABEL_COLUMNS);
    put_blanks(f, LABEL_COLUMNS + 5 - (int)strlen(value));
    put_text(f, value);
    put_text(f, " ");
    put_bar(f, share, tint);
    if (note != NULL && note[0] != '\0') {
        put_text(f, "  ");
        put_foreign(f, note);
    }
    end_line(f);
}

/* A bar of a share in percent that may not be known. */
static void draw_percent(top_frame *f, const char *name, double percent, top_tint tint,
                         const char *note) {
    char value[16];
    if (isfinite(percent)) {
        snprintf(value, sizeof value, "%.0f%%", fmin(fmax(percent, 0), 999));
        draw_bar(f, name, value, percent / 100, tint, note);
    }
}

/* ---- lines ---- */

static void draw_title(top_frame *f) {
    const stk_run_status *s = f->status;
    char text[64];
    stk_summary summary = stk_run_status_summary(s);
    begin_tint(f, BOLD);
    put_foreign(f, s->folder);
    end_tint(f);
    put_text(f, "  ");
    bool good = s->running || (summary.status != NULL && strcmp(summary.status, "failed") != 0);
    begin_tint(f, good ? GREEN : RED);
    put_text(f, stk_run_status_state(s));
    end_tint(f);
    if (s->running && s->pid > 0) {
        snprintf(text, sizeof text, "  process %lld", (long long)s->pid);
        put_text(f, text);
    } else if (summary.status != NULL) {
        put_text(f, ": ");
        put_foreign(f, summary.status);
        put_text(f, summary.stop_reason != NULL ? ", " : "");
        put_foreign(f, summary.stop_reason != NULL ? summary.stop_reason : "");
    }
    end_line(f);
}

static void draw_model(top_frame *f) {
    const stk_event_start *start = f->start;
    const char *device = start->device_name != NULL ? start->device_name : start->device;
    const char *precision = start->precision;
    char text[64] = "";
    if (start->model == NULL || !has_room(f)) {
        return;
    }
    put_foreign(f, start->model);
    if (start->img_size >= 0 && start->batch >= 0) {
        snprintf(text, sizeof text, " at %d px, batch %d", start->img_size, start->batch);
    }
    put_text(f, text);
    put_text(f, precision != NULL ? ", " : "");
    put_foreign(f, precision != NULL ? precision : "");
    put_text(f, device != NULL ? " on " : "");
    put_foreign(f, device != NULL ? device : "");
    end_line(f);
}

/* The supervised command, and its last attempt. */
static void draw_command(top_frame *f) {
    const stk_run_status *s = f->status;
    const stk_run_view *view = &s->view;
    const stk_event_attempt *last = stk_run_view_attempt(view);
    stk_str words = {0};
    if (stk_run_view_command(view) == NULL || !has_room(f)) {
        return;
    }
    bool now = last != NULL && !last->ended && last->command != NULL;
    put_foreign(f, now ? last->command : stk_run_view_command(view));
    end_line(f);
    if (last == NULL || !has_room(f)) {
        return;
    }
    if (last->ended) {
        stk_attempt_put_line(&words, last);
    } else {
        stk_attempt_put_name(&words, last);
        stk_attempt_put_setting(&words, ", ", last);
    }
    put_foreign(f, stk_str_text(&words));
    end_line(f);
    stk_str_free_part(f->out, &words);
}

/* The progress of the running epoch. */
static void draw_epoch(top_frame *f) {
    const stk_event_step *step = f->step;
    char value[32];
    char note[128] = "";
    char duration[32];
    int length = 0;
    if (step->epoch < 0) {
        return;
    }
    snprintf(value, sizeof value, step->epochs >= step->epoch ? "%d/%d" : "%d", step->epoch,
             step->epochs);
    if (step->step >= 0) {
        length = snprintf(note, sizeof note, step->steps > 0 ? "step %lld/%lld" : "step %lld",
                          (long long)step->step, (long long)step->steps);
    }
    char model[48];
    stk_run_view_model(&f->status->view, step->fold, model, sizeof model);
    if (model[0] != '\0') {
        length += snprintf(note + length, sizeof note - (size_t)length, ", %s", model);
    }
    if (f->status->running && isfinite(step->left_s)) {
        snprintf(note + length, sizeof note - (size_t)length, "%sabout %s left",
                 length > 0 ? ", " : "",
                 stk_format_duration(duration, sizeof duration, step->left_s));
    }
    double share =
        step->step >= 0 && step->steps > 0 ? (double)step->step / (double)step->steps : 0;
    draw_bar(f, "epoch", value, share, CYAN, note);
}

static void draw_budget(top_frame *f) {
    double used = stk_run_status_used_s(f->status);
    double budget = f->start->budget_s;
    char value[32];
    char note[96];
    char total[32];
    char left[32];
    if (!isfinite(used)) {
        return;
    }
    stk_format_duration(value, sizeof value, used);
    if (isfinite(budget)) {
        snprintf(note, sizeof note, "of %s, %s left",
                 stk_format_duration(total, sizeof total, budget),
                 stk_format_duration(left, sizeof left, fmax(budget - used, 0)));
        draw_bar(f, "budget", value, used / budget, CYAN, note);
    } else if (has_room(f)) {
        put_text(f, "time");
        put_blanks(f, LABEL_COLUMNS + 5 - (int)strlen(value));
        put_text(f, value);
        put_text(f, "  without a budget");
        end_line(f);
    }
}

static void draw_gpu(top_frame *f) {
    const stk_event_sample *sample = f->sample;
    double used = sample->gpu_memory_used;
    double total = sample->gpu_memory_total;
    const char *throttled = sample->gpu_throttled;
    char note[160] = "";
    char text[2][32];
    if (isfinite(sample->gpu_power_w) && isfinite(sample->gpu_temperature_c)) {
        snprintf(note, sizeof note, "%.0f W, %.0f C%s%.80s", sample->gpu_power_w,
                 sample->gpu_temperature_c,
                 throttled != NULL && throttled[0] != '\0' ? ", held down by " : "",
                 throttled != NULL ? throttled : "");
    }
    draw_percent(f, "GPU", sample->gpu_util, GREEN, note);
    draw_percent(f, "SM", sample->sm_activity, GREEN, NULL);
    draw_percent(f, "JPEG", sample->jpeg_util > 0 ? sample->jpeg_util : NAN, GREEN, NULL);
    if (isfinite(used) && total > 0) {
        snprintf(note, sizeof note, "%s of %s",
                 stk_format_bytes(text[0], sizeof text[0], (uint64_t)fmax(used, 0)),
                 stk_format_bytes(text[1], sizeof text[1], (uint64_t)total));
        draw_percent(f, "GPU mem", 100 * used / total, GREEN, note);
    }
}

/* One letter for each core, as high as it is busy, where all of them fit. */
static void draw_cores(top_frame *f) {
    static const char *const heights[] = {"▁", "▂", "▃", "▄", "▅", "▆", "▇", "█"};
    int count = f->sample->core_count;
    if (count == 0 || count > f->look.columns - LABEL_COLUMNS || !has_room(f)) {
        return;
    }
    put_text(f, "cores");
    put_blanks(f, LABEL_COLUMNS);
    for (int i = 0; i < count; i++) {
        double share = fmin(fmax((double)f->sample->cores[i], 0), 100) / 100; /* NaN counts as 0 */
        char digit[2] = {(char)('0' + (int)(9 * share + 0.5)), '\0'};
        put_text(f, f->look.utf8 ? heights[(int)(7 * share + 0.5)] : digit);
    }
    end_line(f);
}

static void draw_host(top_frame *f) {
    double own = f->sample->cpu_own;
    double iowait = f->sample->iowait;
    double resident = f->sample->resident;
    char note[128] = "";
    char text[32];
    int length = 0;
    if (isfinite(own)) {
        length = snprintf(note, sizeof note, "own %.0f%%", own);
    }
    if (isfinite(iowait)) {
        length += snprintf(note + length, sizeof note - (size_t)length, "%siowait %.0f%%",
                           length > 0 ? ", " : "", iowait);
    }
    if (isfinite(resident)) {
        snprintf(note + length, sizeof note - (size_t)length, "%s%s", length > 0 ? ", " : "",
                 stk_format_bytes(text, sizeof text, (uint64_t)fmax(resident, 0)));
    }
    draw_percent(f, "CPU", f->sample->cpu, GREEN, note);
    draw_cores(f);
}

static void draw_loader(top_frame *f) {
    int ready = f->sample->batches_ready;
    int slots = f->sample->slots;
    int workers = f->sample->workers;
    /* A second without training has no rate: then the rate of the epoch is shown. */
    bool trained = isfinite(f->sample->images_per_second);
    double wait = 100 * (trained ? f->sample->wait_fraction : f->step->wait_fraction);
    double rate = trained ? f->sample->images_per_second : f->step->images_per_second;
    char value[48];
    char note[64] = "";
    if (ready >= 0 && slots > 0) {
        snprintf(value, sizeof value, "%d/%d", ready, slots);
        if (workers >= 0) {
            snprintf(note, sizeof note, "batches ready, %d worker%s", workers,
                     workers == 1 ? "" : "s");
        }
        draw_bar(f, "queue", value, (double)ready / (double)slots, GREEN, note);
    }
    note[0] = '\0';
    if (isfinite(rate)) {
        snprintf(note, sizeof note, "%.*f images/s", rate < 100 ? 1 : 0, rate);
    }
    draw_percent(f, "wait", wait, wait > MANY_WAIT ? RED : wait > SOME_WAIT ? YELLOW : GREEN, note);
}

static void draw_numbers(top_frame *f) {
    const stk_run_status *s = f->status;
    stk_summary summary = stk_run_status_summary(s);
    double loss = f->step->loss;
    double acc1 = f->step->acc1;
    double val = s->view.validated != NULL ? s->view.validated->val_acc1 : NAN;
    /* A training shows its rate beside the waiting. */
    double rate = summary.command != NULL ? summary.images_per_second : NAN;
    const struct {
        const char *format;
        double value;
    } numbers[] = {{"%.1f images/s  ", rate},
                   {"loss %.4g  ", loss},
                   {"accuracy %.1f%%  ", acc1},
                   {"validation %.1f%%  ", val},
                   {"best %.1f%%", summary.best_acc1}};
    if (!has_room(f) || (!isfinite(loss) && !isfinite(val) && !isfinite(rate))) {
        return;
    }
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++) {
        char text[64];
        snprintf(text, sizeof text, numbers[i].format, numbers[i].value);
        put_text(f, isfinite(numbers[i].value) ? text : "");
    }
    end_line(f);
}

/* ---- the curve ---- */

/* A grid of dots: several to a letter where the terminal has Braille. */
typedef struct dot_grid {
    unsigned char *dots; /* (height, width) */
    int width;
    int height;
    int across; /* dots of a letter */
    int down;
} dot_grid;

/* The loss of a column: the mean of its points, or a value between two points if there are few. */
static double value_at(const stk_curve *curve, int x, int width) {
    int from = (int)((int64_t)x * curve->count / width);
    int to = (int)((int64_t)(x + 1) * curve->count / width);
    double sum = 0;
    if (curve->count < width) {
        double at = (double)x * (curve->count - 1) / (width - 1);
        int before = at < curve->count - 1 ? (int)at : curve->count - 2;
        double share = at - before;
        return (1 - share) * curve->points[before] + share * curve->points[before + 1];
    }
    for (int i = from; i < to; i++) {
        sum += curve->points[i];
    }
    return sum / (to - from);
}

static void limits_of(const stk_curve *curve, double *least, double *most) {
    *least = curve->points[0];
    *most = curve->points[0];
    for (int i = 1; i < curve->count; i++) {
        *least = curve->points[i] < *least ? curve->points[i] : *least;
        *most = curve->points[i] > *most ? curve->points[i] : *most;
    }
}

/* Sets the dots of the curve, and those between neighbouring columns, so that it is a line. */
static void set_dots(dot_grid *grid, const stk_curve *curve, double least, double most) {
    int before = -1;
    for (int x = 0; x < grid->width; x++) {
        double share = most > least ? (most - value_at(curve, x, grid->width)) / (most - least) : 0;
        int y = (int)(fmin(fmax(share, 0), 1) * (grid->height - 1) + 0.5);
        int from = before < 0 || y == before ? y : before < y ? before + 1 : y;
        int to = before < 0 || y == before ? y : before < y ? y : before - 1;
        for (int i = from; i <= to; i++) {
            grid->dots[i * grid->width + x] = 1;
        }
        before = y;
    }
}

static void put_letter(top_frame *f, const dot_grid *grid, int column, int row) {
    static const unsigned char bits[2][4] = {{0x01, 0x02, 0x04, 0x40}, {0x08, 0x10, 0x20, 0x80}};
    unsigned set = 0;
    for (int dx = 0; dx < grid->across; dx++) {
        for (int dy = 0; dy < grid->down; dy++) {
            int x = column * grid->across + dx;
            int y = row * grid->down + dy;
            set |= grid->dots[y * grid->width + x] ? bits[dx][dy] : 0;
        }
    }
    if (!f->look.utf8 || set == 0) {
        put_text(f, set != 0 ? "*" : " ");
        return;
    }
    /* U+2800 and the dots, as UTF-8. */
    char letter[4] = {(char)0xe2, (char)(0xa0 | set >> 6), (char)(0x80 | (set & 0x3f)), '\0'};
    put_text(f, letter);
}

static void draw_curve(top_frame *f, int rows) {
    const stk_curve *curve = &f->status->losses;
    int columns = f->look.columns - LABEL_COLUMNS;
    dot_grid grid = {.across = f->look.utf8 ? 2 : 1, .down = f->look.utf8 ? 4 : 1};
    grid.width = columns * grid.across;
    grid.height = rows * grid.down;
    if (curve->count < 2 || rows < LEAST_CURVE_ROWS) {
        return;
    }
    grid.dots = stk_mem_new((size_t)grid.width * (size_t)grid.height, 1);
    if (grid.dots == NULL) {
        return;
    }
    double least;
    double most;
    limits_of(curve, &least, &most);
    set_dots(&grid, curve, least, most);
    for (int row = 0; row < rows; row++) {
        char label[32] = "";
        if (row == 0 || row == rows - 1) {
            snprintf(label, sizeof label, "%.3g", row == 0 ? most : least);
        }
        put_until(f, label, LABEL_COLUMNS - 1);
        put_blanks(f, LABEL_COLUMNS);
        begin_tint(f, CYAN);
        for (int column = 0; column < columns; column++) {
            put_letter(f, &grid, column, row);
        }
        end_tint(f);
        end_line(f);
    }
    stk_mem_free(grid.dots);
}

/* ---- what was said ---- */

/* A sentence on up to SAID_ROWS lines, broken between words where that is possible. */
static void draw_said(top_frame *f, top_tint tint, const char *name, const char *text) {
    stk_str clean = {0};
    stk_report_append_line(&clean, name);
    stk_str_append(&clean, ": ");
    stk_report_append_line(&clean, text);
    const char *p = stk_str_text(&clean);
    for (int row = 0; row < SAID_ROWS && *p != '\0' && has_room(f); row++) {
        top_frame probe = *f; /* how much fits */
        stk_str unused = {0};
        probe.out = &unused;
        size_t fits = put_until(&probe, p, f->look.columns);
        stk_str_free(&unused);
        size_t taken = fits;
        if (p[fits] != '\0' && row + 1 < SAID_ROWS) {
            while (taken > fits / 2 && p[taken] != ' ') {
                taken--;
            }
            taken = p[taken] == ' ' ? taken : fits;
        }
        stk_str piece = {0};
        stk_str_append_bytes(&piece, p, taken);
        begin_tint(f, tint);
        put_text(f, stk_str_text(&piece));
        end_tint(f);
        end_line(f);
        stk_str_free(&piece);
        p += taken;
        p += *p == ' ' ? 1 : 0;
    }
    stk_str_free(&clean);
}

static void draw_words(top_frame *f) {
    const stk_run_status *s = f->status;
    stk_summary summary = stk_run_status_summary(s);
    const stk_run_view *view = &s->view;
    const stk_event_verdict *verdict = stk_run_view_verdict(view);
    bool fine = verdict != NULL && verdict->fine;
    const stk_event_decision *decision =
        view->is_current[STK_EVENT_DECISION] ? view->decision : NULL;
    if (stk_run_status_verdict(s) != NULL) {
        draw_said(f, fine ? GREEN : YELLOW, "verdict", stk_run_status_verdict(s));
    }
    if (view->is_current[STK_EVENT_WARNING]) {
        draw_said(f, YELLOW, "warning", view->warning->text);
    }
    if (decision != NULL && decision->what != NULL) {
        draw_said(f, PLAIN, decision->what, decision->why != NULL ? decision->why : "");
    }
    if (!s->running && summary.submission != NULL) {
        draw_said(f, PLAIN, "submission", summary.submission);
    } else if (!s->running && summary.status == NULL && s->resumable) {
        stk_str words = {0};
        stk_str_appendf(&words, "stoker train --resume %s", s->folder);
        draw_said(f, PLAIN, "can be resumed with", stk_str_text(&words));
        stk_str_free(&words);
    }
    if (f->look.live && has_room(f)) {
        put_text(f, "q ends this view; the run goes on");
        end_line(f);
    }
}

void stk_top_draw(const stk_run_status *status, const stk_top_look *look, stk_str *out) {
    const stk_any_event no_start = stk_event_unknown(STK_EVENT_START);
    const stk_any_event no_step = stk_event_unknown(STK_EVENT_STEP);
    const stk_any_event no_sample = stk_event_unknown(STK_EVENT_SAMPLE);
    const stk_event_step *step = stk_run_view_step(&status->view);
    const stk_event_sample *sample = stk_run_view_sample(&status->view);
    top_frame f = {.status = status,
                   .start = status->view.start != NULL ? status->view.start : &no_start.start,
                   .step = step != NULL ? step : &no_step.step,
                   .sample = sample != NULL ? sample : &no_sample.sample,
                   .look = *look,
                   .out = out};
    f.look.columns = look->columns < LEAST_COLUMNS  ? LEAST_COLUMNS
                     : look->columns > MOST_COLUMNS ? MOST_COLUMNS
                                                    : look->columns;
    draw_title(&f);
    draw_model(&f);
    draw_command(&f);
    draw_epoch(&f);
    draw_budget(&f);
    draw_gpu(&f);
    draw_host(&f);
    draw_loader(&f);
    draw_numbers(&f);
    /* The sentences stand below the curve, but get their rows before it does. */
    stk_str words = {0};
    top_frame below = f;
    below.out = &words;
    draw_words(&below);
    int words_rows = below.line - f.line;
    int rows = f.look.rows == 0 ? CURVE_ROWS : f.look.rows - f.line - words_rows;
    draw_curve(&f, rows < MOST_CURVE_ROWS ? rows : MOST_CURVE_ROWS);
    stk_str_append(out, stk_str_text(&words));
    stk_str_free_part(out, &words);
}
