/* curves.c - the plots of a page: curves over epochs, bars of time, timelines of samples. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/error.h"
#include "base/mem.h"
#include "report/plots/epoch_lines.h"
#include "report/page/html.h"
#include "report/page/page.h"
#include "report/text/results_csv.h"
#include "report/text/text.h"

#define MOST_MEASURES 3
#define MOST_LINES (MOST_MEASURES * (STK_AXIS_COLORS + 1)) /* with those of the legend */
#define BAR_HEIGHT_PX 34
#define GIGA 1e9
#define MEGA 1e6

/* ---- curves over epochs ---- */

#define AT STK_EPOCH_FIELD

static const stk_epoch_measure loss_measures[] = {
    {"train", AT(train_loss), 0x3b6fb6, 0, 5, 1, false},
    {"validation", AT(val_loss), 0xe07b39, 0, 0, 1, false},
};
static const stk_epoch_measure accuracy_measures[] = {
    {"train", AT(train_acc1), 0x3b6fb6, 0, 5, 1, false},
    {"validation", AT(val_acc1), 0xe07b39, 0, 0, 1, false},
    {"validation, top-5", AT(val_acc5), 0x8c6d4f, 0, 2, 1, false},
};
static const stk_epoch_measure metric_measures[] = {
    {"validation", AT(val_metric), 0xe07b39, 0, 0, 1, false},
};
static const stk_epoch_measure rate_measures[] = {
    {"learning rate", AT(lr), 0x8268ad, 0, 0, 1, false},
};
static const stk_epoch_measure speed_measures[] = {
    {"images/s, left", AT(images_per_second), 0x3f9d6c, 0, 0, 1, false},
    {"waiting for data, %, right", AT(wait_fraction), 0xc64f4f, 0, 3, 100, true},
};

static stk_status put_curve(const stk_run_history *history, stk_chart chart,
                            const stk_epoch_measure *measures, size_t count, stk_str *out,
                            stk_error *err) {
    int folds = stk_run_history_folds(history);
    folds = folds < STK_AXIS_COLORS ? folds : STK_AXIS_COLORS;
    stk_chart_line lines[MOST_LINES];
    stk_epoch_lines made;
    stk_status status =
        stk_epoch_lines_make(&made, history->rows, history->row_count, measures, count, folds, err);
    if (status != STK_OK) {
        return status;
    }
    chart.x_label = "epoch";
    chart.lines = lines;
    chart.line_count = made.count;
    memcpy(lines, made.lines, made.count * sizeof *lines);
    for (size_t i = 0; i < count; i++) {
        if (folds > 1) { /* a line for the legend alone */
            lines[chart.line_count++] = (stk_chart_line){.label = measures[i].label,
                                                         .color = STK_SOFT_INK,
                                                         .dash_px = measures[i].fold_dash_px,
                                                         .right = measures[i].right};
        } else if (i < made.count) {
            lines[i].label = measures[i].label;
        }
    }
    if (stk_chart_has_points(&chart)) {
        status = stk_chart_put(&chart, out, err);
    }
    stk_epoch_lines_free(&made);
    return status;
}

/* The legend: the colour of each fold. */
static void put_fold_key(const stk_run_history *history, stk_str *out) {
    int folds = stk_run_history_folds(history);
    if (folds < 2) {
        return;
    }
    stk_str_append(out, "<ul class=\"key\">");
    for (int fold = 0; fold < folds && fold < STK_AXIS_COLORS; fold++) {
        stk_str_appendf(out, "<li><i style=\"background:#%06x\"></i>fold %d</li>",
                        (unsigned)stk_axis_color((size_t)fold), fold + 1);
    }
    stk_str_appendf(out, "</ul>\n%s",
                    folds > STK_AXIS_COLORS ? "<p class=\"soft\">The first folds are drawn.</p>\n"
                                            : "");
}

stk_status stk_page_put_curves(const stk_run_history *history, stk_str *out, stk_error *err) {
    if (history->row_count == 0) {
        return STK_OK;
    }
    const char *metric = stk_results_metric(history->view.start);
    stk_page_open_section(out, "curves", "Curves");
    put_fold_key(history, out);
    stk_str_append(out, "<div class=\"grid\">\n");
    const struct {
        stk_chart chart;
        const stk_epoch_measure *measures;
        size_t count;
    } curves[] = {
        {{.id = "plot-loss",
          .caption = "Loss",
          .most = stk_epoch_highest_loss(history->rows, history->row_count)},
         loss_measures,
         2},
        {{.id = "plot-accuracy", .caption = "Accuracy, %", .percent = true},
         accuracy_measures,
         stk_epoch_top5_matters(history->rows, history->row_count) ? 3 : 2},
        {{.id = "plot-metric", .caption = metric}, metric_measures, metric != NULL ? 1 : 0},
        {{.id = "plot-lr", .caption = "Learning rate", .from_zero = true}, rate_measures, 1},
        {{.id = "plot-speed",
          .caption = "Speed and waiting by epoch",
          .from_zero = true,
          .right_percent = true},
         speed_measures,
         2},
    };
    stk_status status = STK_OK;
    for (size_t i = 0; i < sizeof curves / sizeof *curves && status == STK_OK; i++) {
        status = curves[i].count == 0 ? STK_OK
                                      : put_curve(history, curves[i].chart, curves[i].measures,
                                                  curves[i].count, out, err);
    }
    stk_str_append(out, "</div>\n");
    stk_page_close_section(out);
    return status;
}

/* ---- bars ---- */

/* A part of a bar. */
typedef struct time_part {
    const char *name;
    uint32_t color;
    double value;
    int tenths; /* of a percent, of the bar */
} time_part;

/* Percents with one decimal that add up to 100. The tenths that rounding down leaves go to the
 * parts with the largest remainders. */
static void share_out(time_part *parts, size_t count, double total) {
    int left = 1000;
    for (size_t i = 0; i < count; i++) {
        parts[i].tenths = (int)floor(1000 * parts[i].value / total);
        left -= parts[i].tenths;
    }
    for (; left > 0; left--) {
        size_t most = 0;
        double most_rest = -INFINITY;
        for (size_t i = 0; i < count; i++) {
            double rest = 1000 * parts[i].value / total - parts[i].tenths;
            if (rest > most_rest) {
                most_rest = rest;
                most = i;
            }
        }
        parts[most].tenths++;
    }
}

static stk_status put_bar(const char *id, const char *title, const time_part *parts, size_t count,
                          stk_str *out, stk_error *err) {
    const stk_font font = {12, 0xfffffe, true, STK_ALIGN_CENTER}; /* stays light in the dark */
    stk_canvas *canvas = NULL;
    stk_status status = stk_canvas_svg_new(&canvas, STK_CHART_WIDTH_PX, BAR_HEIGHT_PX, err);
    if (status != STK_OK) {
        return status;
    }
    double x = 0;
    for (size_t i = 0; i < count; i++) {
        double width = parts[i].tenths / 1000.0 * STK_CHART_WIDTH_PX;
        char text[32];
        if (width <= 0) {
            continue;
        }
        stk_canvas_rectangle(canvas, x, 0, width, BAR_HEIGHT_PX, parts[i].color);
        snprintf(text, sizeof text, "%.0f %%", parts[i].tenths / 10.0);
        if (width > 40) {
            stk_canvas_text(canvas, x + width / 2, BAR_HEIGHT_PX / 2.0 + 4.5, text, &font);
        }
        x += width;
    }
    status = stk_canvas_svg_embed(canvas, id, title, out, err);
    stk_str_append(out, "<ul class=\"key\">\n");
    for (size_t i = 0; i < count; i++) {
        if (parts[i].tenths > 0) {
            stk_str_appendf(out, "<li><i style=\"background:#%06x\"></i>%s %.1f %% (%s)</li>\n",
                            (unsigned)parts[i].color, parts[i].name, parts[i].tenths / 10.0,
                            stk_format_span(parts[i].value).text);
        }
    }
    stk_str_append(out, "</ul>\n");
    stk_canvas_free(canvas);
    return status;
}

stk_status stk_page_put_times(const stk_times *times, stk_str *out, stk_error *err) {
    time_part parts[] = {
        {"waiting for storage", 0xc64f4f, times->read_s, 0},
        {"waiting for decoding", 0xe07b39, times->decode_s, 0},
        {"waiting in the queue", 0xb98a1d, times->queue_s, 0},
        {"waiting for copies", 0x8268ad, times->copy_s, 0},
        {"computing", 0x3b6fb6, times->compute_s, 0},
        {"optimiser", 0x2b8394, times->update_s, 0},
        {"validation", 0x3f9d6c, times->validate_s, 0},
        {"checkpoints", 0x8c6d4f, times->checkpoint_s, 0},
        {"other", 0x6f7680, times->other_s, 0},
    };
    size_t count = STK_COUNT(parts);
    double total = 0;
    for (size_t i = 0; i < count; i++) {
        parts[i].value = parts[i].value > 0 ? parts[i].value : 0;
        total += parts[i].value;
    }
    if (!(total > 0) || !isfinite(total)) {
        return STK_OK;
    }
    share_out(parts, count, total);
    stk_page_open_section(out, "times", "Where the time of training went");
    stk_status status = put_bar("plot-times", "Where the time went", parts, count, out, err);
    stk_page_close_section(out);
    return status;
}

stk_status stk_page_put_budget(const stk_summary *summary, bool ended, stk_str *out,
                               stk_error *err) {
    double budget = summary->budget_s;
    if (!(budget > 0) || !isfinite(budget) || !isfinite(summary->used_s)) {
        return STK_OK;
    }
    double used = fmin(fmax(summary->used_s, 0), budget);
    double reserve = summary->reserve_s > 0 ? fmin(summary->reserve_s, budget - used) : 0;
    reserve = ended ? 0 : reserve; /* it was kept for what is done now */
    time_part parts[] = {
        {"used", 0x3b6fb6, used, 0},
        {"left", 0x3f9d6c, budget - used - reserve, 0},
        {"kept for prediction", 0xb98a1d, reserve, 0},
    };
    share_out(parts, 3, budget);
    stk_page_open_section(out, "budget", "Budget");
    stk_str_appendf(out, "<p>%s", stk_format_span(summary->used_s).text);
    stk_str_appendf(out, " of %s %s used", stk_format_span(budget).text, ended ? "were" : "are");
    if (summary->reserve_s > 0) {
        stk_str_appendf(out, "; %s were kept back for prediction",
                        stk_format_span(summary->reserve_s).text);
    }
    stk_str_append(out, ".</p>\n");
    stk_status status = put_bar("plot-budget", "The budget", parts, 3, out, err);
    stk_page_close_section(out);
    return status;
}

/* ---- timelines ---- */

/* A line of a timeline. */
typedef struct track {
    const char *label;
    stk_gauge gauge;
    uint32_t color;
    double unit; /* what is shown is the value by this */
    double dash_px;
    bool right;
} track;

#define MOST_TRACKS 4

typedef struct timeline {
    const char *id;
    const char *caption;
    bool percent;
    track tracks[MOST_TRACKS]; /* up to the first without a label */
} timeline;

/* Rows: arguments are members in their order; a gauge goes without STK_GAUGE_. */
#define TIMELINE(id, caption, percent, ...) \
    {                                       \
        id, caption, percent, {             \
            __VA_ARGS__                     \
        }                                   \
    }
#define TRACK(label, gauge, ...) \
    { label, STK_GAUGE_##gauge, __VA_ARGS__ }

static const timeline speed_timelines[] = {
    TIMELINE("plot-throughput", "Training images per second", false,
             TRACK("images/s", IMAGES_PER_SECOND, 0x3f9d6c, 1, 0, false)),
    TIMELINE("plot-waiting", "Waiting for data, %", true,
             TRACK("of the time", WAIT_FRACTION, 0xc64f4f, 0.01, 0, false)),
    TIMELINE("plot-queue", "Batches ready, and workers", false,
             TRACK("batches ready", BATCHES_READY, 0x3b6fb6, 1, 0, false),
             TRACK("room for", SLOTS, 0x6f7680, 1, 4, false),
             TRACK("workers", WORKERS, 0xe07b39, 1, 2, false)),
};

/* What a supervised command printed. */
static const timeline said_timelines[] = {
    TIMELINE("plot-throughput", "Images per second, as the command says", false,
             TRACK("images/s", STEP_RATE, 0x3f9d6c, 1, 0, false)),
    TIMELINE("plot-loss", "Loss, as the command says", false,
             TRACK("loss", LOSS, 0x3b6fb6, 1, 0, false)),
};

static const timeline gpu_timelines[] = {
    TIMELINE("plot-gpu", "GPU, %", true, TRACK("some kernel runs", GPU_UTIL, 0x3b6fb6, 1, 0, false),
             TRACK("multiprocessors active", SM_ACTIVITY, 0x3f9d6c, 1, 0, false),
             TRACK("JPEG engines busy", JPEG_UTIL, 0xe07b39, 1, 0, false)),
    TIMELINE("plot-gpu-memory", "GPU memory, GB", false,
             TRACK("used", GPU_MEMORY_USED, 0x8268ad, GIGA, 0, false),
             TRACK("by this run", GPU_MEMORY_OWN, 0x3b6fb6, GIGA, 0, false),
             TRACK("in all", GPU_MEMORY_TOTAL, 0x6f7680, GIGA, 4, false)),
    TIMELINE("plot-gpu-power", "GPU power and clock", false,
             TRACK("W, left", GPU_POWER, 0xc64f4f, 1, 0, false),
             TRACK("°C, left", GPU_TEMPERATURE, 0xe07b39, 1, 3, false),
             TRACK("MHz, right", GPU_CLOCK, 0x35a2b4, 1, 0, true)),
    TIMELINE("plot-pcie", "PCIe, MB/s", false,
             TRACK("to the GPU", PCIE_IN, 0x3b6fb6, MEGA, 0, false),
             TRACK("from it", PCIE_OUT, 0xe07b39, MEGA, 0, false)),
};

static const timeline host_timelines[] = {
    TIMELINE("plot-cpu", "CPU, % of all cores", true,
             TRACK("by anybody", CPU, 0x6f7680, 1, 0, false),
             TRACK("by this run", CPU_OWN, 0x3b6fb6, 1, 0, false),
             TRACK("waiting for disks", IOWAIT, 0xc64f4f, 1, 3, false)),
    TIMELINE("plot-memory", "Memory, GB", false,
             TRACK("of this run", RESIDENT, 0x8268ad, GIGA, 0, false),
             TRACK("of the machine", MEMORY_USED, 0x6f7680, GIGA, 0, false)),
    TIMELINE("plot-disk", "Disks, MB/s", false, TRACK("read", DISK_READ, 0x3f9d6c, MEGA, 0, false),
             TRACK("written", DISK_WRITTEN, 0xe07b39, MEGA, 0, false)),
    TIMELINE("plot-network", "Network, MB/s", false, TRACK("in", NET_IN, 0x3f9d6c, MEGA, 0, false),
             TRACK("out", NET_OUT, 0xe07b39, MEGA, 0, false)),
};

static stk_status put_timeline(const stk_run_history *history, const timeline *t, stk_point *points,
                               stk_str *out, stk_error *err) {
    stk_chart_line lines[MOST_TRACKS] = {0};
    stk_chart chart = {.id = t->id,
                       .caption = t->caption,
                       .x_label = "time since the start",
                       .x_scale = STK_CHART_TIME,
                       .percent = t->percent,
                       .from_zero = true,
                       .lines = lines};
    for (; chart.line_count < MOST_TRACKS && t->tracks[chart.line_count].label != NULL;
         chart.line_count++) {
        const track *from = &t->tracks[chart.line_count];
        stk_point *to = points + chart.line_count * history->moment_count;
        for (size_t i = 0; i < history->moment_count; i++) {
            const stk_moment *moment = &history->moments[i];
            to[i] = (stk_point){moment->at_s, moment->values[from->gauge] / from->unit};
        }
        lines[chart.line_count] = (stk_chart_line){.label = from->label,
                                                   .color = from->color,
                                                   .dash_px = from->dash_px,
                                                   .right = from->right,
                                                   .points = to,
                                                   .count = history->moment_count};
    }
    return stk_chart_has_points(&chart) ? stk_chart_put(&chart, out, err) : STK_OK;
}

/* A section of timelines; it is left out where none has a point. */
static stk_status put_timeline_section(const stk_run_history *history, const char *id,
                                       const char *heading, const timeline *timelines, size_t count,
                                       stk_str *out, stk_error *err) {
    stk_point *points = stk_mem_new(MOST_TRACKS * history->moment_count, sizeof *points);
    stk_str plots = {0};
    stk_status status = points != NULL ? STK_OK : STK_FAIL_MEMORY(err, "a plot");
    for (size_t i = 0; i < count && status == STK_OK; i++) {
        status = put_timeline(history, &timelines[i], points, &plots, err);
    }
    if (status == STK_OK && plots.length > 0) {
        stk_page_open_section(out, id, heading);
        stk_str_append(out, "<div class=\"grid\">\n");
        stk_str_append(out, stk_str_text(&plots));
        stk_str_append(out, "</div>\n");
        stk_page_close_section(out);
    }
    stk_str_free_part(out, &plots);
    stk_mem_free(points);
    return status;
}

/* The mean load of each core as a bar, so that one busy core among idle ones is seen. */
static stk_status put_cores(const stk_run_history *history, stk_str *out, stk_error *err) {
    if (history->core_samples == 0) {
        return STK_OK;
    }
    const double floor_px = 70;
    double least = 100;
    double most = 0;
    double width = (double)STK_CHART_WIDTH_PX / history->core_count;
    stk_canvas *canvas = NULL;
    stk_status status = stk_canvas_svg_new(&canvas, STK_CHART_WIDTH_PX, (int)floor_px, err);
    if (status != STK_OK) {
        return status;
    }
    for (int i = 0; i < history->core_count; i++) {
        double share = fmin(fmax(history->core_sums[i] / (double)history->core_samples, 0), 100);
        double height = share / 100 * floor_px;
        double gap = width > 4 ? 1 : 0;
        stk_canvas_rectangle(canvas, i * width, 0, width - gap, floor_px, STK_GRID);
        stk_canvas_rectangle(canvas, i * width, floor_px - height, width - gap, height, 0x3b6fb6);
        least = fmin(least, share);
        most = fmax(most, share);
    }
    stk_page_open_section(out, "cores", "Cores");
    stk_str_appendf(out,
                    "<p class=\"soft\">How busy each of %d cores was on average: from %.0f %% to "
                    "%.0f %%.</p>\n",
                    history->core_count, least, most);
    status = stk_canvas_svg_embed(canvas, "plot-cores", "How busy each core was", out, err);
    stk_page_close_section(out);
    stk_canvas_free(canvas);
    return status;
}

static void put_throttling(const stk_run_history *history, stk_str *out) {
    if (history->throttled > 0) {
        stk_str_appendf(out,
                        "<section id=\"throttling\"><p>Something held the GPU's clock down in "
                        "%.0f %% of the samples: ",
                        100.0 * (double)history->throttled / (double)history->samples);
        stk_report_append_markup(out, history->throttled_by != NULL ? history->throttled_by : "");
        stk_str_append(out, ".</p></section>\n");
    }
}

stk_status stk_page_put_timelines(const stk_run_history *history, stk_str *out, stk_error *err) {
    if (history->moment_count == 0) {
        return STK_OK;
    }
    stk_status status =
        stk_run_view_command(&history->view) != NULL
            ? put_timeline_section(history, "throughput", "Progress", said_timelines,
                                   STK_COUNT(said_timelines), out, err)
            : put_timeline_section(history, "throughput", "Throughput and waiting", speed_timelines,
                                   STK_COUNT(speed_timelines), out, err);
    if (status == STK_OK) {
        put_throttling(history, out);
        status = put_timeline_section(history, "gpu", "GPU", gpu_timelines,
                                      STK_COUNT(gpu_timelines), out, err);
    }
    STK_THEN(status, put_timeline_section(history, "host", "Host", host_timelines,
                                          STK_COUNT(host_timelines), out, err));
    return status == STK_OK ? put_cores(history, out, err) : status;
}
