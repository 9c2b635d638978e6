/*
 * screen.c - lines for people.
 *
 * Every line is built in one growing text and leaves through end_line() or redraw(), where it is
 * cleaned: a file name must not be able to send commands to the terminal. Memory for lines of an
 * ordinary length is taken at the start, so that a message about lack of memory needs none.
 * A longer line that finds no memory is left out; the screen is never a reason to stop a run.
 */
#include "report/observers/screen.h"

#include <math.h>
#include <stdarg.h>
#include <string.h>
#include <sys/ioctl.h>

#include "base/clock.h"
#include "base/error.h"
#include "base/files/file.h"
#include "base/mem.h"
#include "base/str.h"
#include "metrics/task.h"
#include "report/state/run_view.h"
#include "report/text/attempt_text.h"
#include "report/text/results_csv.h"
#include "report/text/text.h"

#define REDRAW_GAP_NS INT64_C(100000000)  /* ten drawings a second */
#define PLAIN_GAP_NS INT64_C(10000000000) /* ten seconds between plain progress lines */
#define FALLBACK_COLUMNS 80               /* of a terminal that does not say */
#define NAMED_BAD_IMAGES 3                /* the others are in bad_images.csv */
#define GIGABYTE 1073741824.0             /* as in the lines on resources */
#define LINE_BYTES 4096                   /* more than a warning of all bytes replaced */
#define ERASE_TO_END "\x1b[K"
#define OUR_NAME "stoker: " /* beside another program */

struct stk_screen {
    stk_screen_config config;
    stk_event_sink sink;      /* receives the events */
    stk_run_view view;        /* state of the run; lacks texts for which there was no memory */
    stk_str line;             /* the line that is being built; empty between lines */
    stk_str clean;            /* `line`, fit for a terminal */
    bool live;                /* the cursor stands after a line that will be redrawn */
    bool drawn;               /* drawn_ns is set */
    int64_t drawn_ns;         /* when a line was redrawn last, or a plain progress line printed */
    stk_event_step last_step; /* of training, or of long work; its epoch is 0 before the first */
    stk_event_plan plan;      /* the last one that was shown; its fold is -1 before the first */
};

/* ---- lines ---- */

/* The finished line as it may be shown, NULL without memory. The next line begins empty. */
static const char *clean_line(stk_screen *screen) {
    stk_str_clear(&screen->clean);
    stk_report_append_line(&screen->clean, stk_str_text(&screen->line));
    bool whole = stk_str_ok(&screen->line) && stk_str_ok(&screen->clean);
    stk_str_clear(&screen->line);
    return whole ? stk_str_text(&screen->clean) : NULL;
}

/* Shows the line for good, in place of a redrawn one. */
static void end_line(stk_screen *screen) {
    const char *text = clean_line(screen);
    /* Another program's redrawn line comes again by itself. */
    bool over = screen->live || (screen->config.beside && screen->config.terminal);
    if (text != NULL) {
        fprintf(screen->config.out, "%s%s%s\n", over ? "\r" ERASE_TO_END : "",
                screen->config.beside ? OUR_NAME : "", text);
        fflush(screen->config.out);
        screen->live = false;
    }
}

/* Shows a line that is one format. */
STK_PRINTF(2, 3) static void say(stk_screen *screen, const char *format, ...) {
    va_list args;
    va_start(args, format);
    stk_str_append_args(&screen->line, format, args);
    va_end(args);
    end_line(screen);
}

static int columns_of(const stk_screen *screen) {
    if (screen->config.columns > 0) {
        return screen->config.columns;
    }
    struct winsize size;
    int fd = fileno(screen->config.out);
    bool known = fd >= 0 && ioctl(fd, TIOCGWINSZ, &size) == 0 && size.ws_col > 0;
    return known ? size.ws_col : FALLBACK_COLUMNS;
}

/*
 * Shows the line in place. The last column stays free: a cursor that waits there to wrap makes some
 * terminals erase the last letter. Progress lines are ASCII, so bytes are columns.
 */
static void redraw(stk_screen *screen) {
    const char *text = clean_line(screen);
    if (text != NULL) {
        fprintf(screen->config.out, "\r%.*s" ERASE_TO_END, columns_of(screen) - 1, text);
        fflush(screen->config.out);
        screen->live = true;
    }
}

/* ---- pieces of lines ---- */

/* "46 s", "11:00"; below ten seconds with a decimal when `fine`. */
static void put_seconds(stk_str *line, double seconds, bool fine) {
    char text[32];
    if (seconds >= 119.5) {
        stk_str_append(line, stk_format_duration(text, sizeof text, seconds));
    } else if (fine && seconds < 0.95) {
        stk_str_appendf(line, "%.2f s", seconds);
    } else {
        stk_str_appendf(line, fine && seconds < 9.95 ? "%.1f s" : "%.0f s", fmax(seconds, 0));
    }
}

static void put_duration(stk_str *line, double seconds) {
    char text[32];
    stk_str_append(line, stk_format_duration(text, sizeof text, seconds));
}

/* "812 img/s", "6.3 it/s", "0.25 it/s". */
static void put_rate(stk_str *line, double rate, const char *unit) {
    if (isfinite(rate)) {
        int decimals = rate >= 99.95 ? 0 : rate >= 0.995 ? 1 : 2;
        stk_str_appendf(line, "  %.*f %s", decimals, rate, unit);
    }
}

static void put_loss(stk_str *line, const char *name, double loss) {
    if (isfinite(loss)) {
        stk_str_appendf(line, fabs(loss) < 1e6 ? "  %s %.3f" : "  %s %.3g", name, loss);
    }
}

static void put_percent(stk_str *line, const char *name, double percent, int decimals) {
    if (isfinite(percent)) {
        stk_str_appendf(line, "  %s %.*f%%", name, decimals, percent);
    }
}

/* "fold 2/5" or "refit 1/1", with `after` behind it; nothing for a single model. */
static void put_fold(const stk_screen *screen, stk_str *line, int fold, const char *after) {
    char text[48];
    stk_run_view_model(&screen->view, fold, text, sizeof text);
    if (text[0] != '\0') {
        stk_str_appendf(line, "%s%s", text, after);
    }
}

/* "fold 2/5  epoch 3/10"; a plan that was cut to less than this epoch has no total to show. */
static void put_epoch(const stk_screen *screen, stk_str *line, int fold, int epoch, int epochs) {
    put_fold(screen, line, fold, "  ");
    stk_str_appendf(line, epochs >= epoch ? "epoch %d/%d" : "epoch %d", epoch, epochs);
}

/* "  33/71 46%", rounded down: 100% means done. */
static void put_progress(stk_str *line, const stk_event_step *step) {
    if (step->steps > 0 && step->step >= 0) {
        stk_str_appendf(line, "  %lld/%lld %.0f%%", (long long)step->step, (long long)step->steps,
                        floor(100.0 * (double)step->step / (double)step->steps));
    }
}

static const char *plural(int64_t count) {
    return count == 1 ? "" : "s";
}

/* Adds an item of a list: first what divides it from the text before it, which is ", " from then
 * on. */
STK_PRINTF(3, 4)
static void put_item(stk_str *line, const char **before, const char *format, ...) {
    va_list args;
    va_start(args, format);
    stk_str_append(line, *before);
    stk_str_append_args(line, format, args);
    va_end(args);
    *before = ", ";
}

/* ---- lines of events ---- */

static void show_data(stk_screen *screen, const stk_event_start *event) {
    stk_str *line = &screen->line;
    const char *before = "data: ";
    if (event->data != NULL) {
        put_item(line, &before, "%s", event->data);
    }
    if (event->train_images >= 0) {
        put_item(line, &before, "%lld training image%s", (long long)event->train_images,
                 plural(event->train_images));
    }
    if (event->val_images > 0) {
        put_item(line, &before, "%lld validation", (long long)event->val_images);
    }
    if (event->test_images > 0) {
        put_item(line, &before, "%lld test", (long long)event->test_images);
    }
    if (event->classes > 0) {
        put_item(line, &before, "%d %s", event->classes,
                 stk_task_outputs(stk_task_named(event->task), event->classes));
    }
    if (before[0] == ',') { /* an item was put; otherwise the line is empty */
        end_line(screen);
    }
}

static bool is_mixed(const char *precision) {
    return precision != NULL && (strcmp(precision, "fp16") == 0 || strcmp(precision, "bf16") == 0);
}

/*
 * The use of the machine in a form that other tools find in the output of a training. Its gigabyte
 * is 2^30 bytes.
 */
static void show_resources(stk_screen *screen, const stk_event_start *event) {
    if (event->cores <= 0) {
        return;
    }
    say(screen, "RESOURCES: %d CPU core%s, batch=%d, GPU=%s, Mixed Precision=%s", event->cores,
        plural(event->cores), event->batch,
        event->device_name != NULL ? event->device_name : "none",
        is_mixed(event->precision) ? "ON" : "OFF");
    if (event->device_name != NULL && event->device_bytes > 0) {
        say(screen, "GPU Memory: %.1f GB", (double)event->device_bytes / GIGABYTE);
    }
    say(screen, "DataLoader: num_workers=%d, prefetch_factor=%d, persistent_workers=True",
        event->workers, event->prefetch);
}

/* A second start says which model a budget has chosen; folder and data are the same. */
static void show_start(stk_screen *screen, const stk_event_start *event, bool again) {
    if (event->chosen != NULL && !screen->config.beside) { /* else the attempt's line says it */
        say(screen, "%s", event->chosen);
    }
    if (again) {
        return;
    }
    if (event->run_dir != NULL) {
        say(screen, "run folder: %s", event->run_dir);
    }
    if (!screen->config.beside) {
        show_data(screen, event);
        show_resources(screen, event);
    }
}

/* A plan is worth a line when it differs in what will be done or is the first one measured. */
static bool plan_is_news(const stk_event_plan *old, const stk_event_plan *plan) {
    return plan->fold != old->fold || plan->epochs != old->epochs ||
           plan->steps_per_epoch != old->steps_per_epoch ||
           (isfinite(plan->seconds_per_epoch) && !isfinite(old->seconds_per_epoch));
}

static void put_time_plan(const stk_screen *screen, stk_str *line, const stk_event_plan *plan) {
    if (isfinite(plan->left_s)) {
        stk_str_append(line, "; ");
        put_seconds(line, plan->left_s, false);
        if (screen->view.start != NULL && isfinite(screen->view.start->budget_s)) {
            stk_str_append(line, " of ");
            put_seconds(line, screen->view.start->budget_s, false);
        }
        stk_str_append(line, " left");
        if (isfinite(plan->reserve_s)) {
            stk_str_append(line, ", ");
            put_seconds(line, plan->reserve_s, false);
            stk_str_append(line, " kept for prediction");
        }
    } else if (isfinite(plan->total_s)) {
        stk_str_append(line, "; about ");
        put_seconds(line, plan->total_s, false);
        stk_str_append(line, " in all");
    }
}

static void show_plan(stk_screen *screen, const stk_event_plan *plan) {
    stk_str *line = &screen->line;
    if (!plan_is_news(&screen->plan, plan)) {
        return;
    }
    screen->plan = *plan;
    stk_str_append(line, "plan: ");
    put_fold(screen, line, plan->fold, ": ");
    if (plan->epochs > 0) {
        stk_str_appendf(line, "%d epoch%s", plan->epochs, plural(plan->epochs));
    } else {
        stk_str_append(line, "a part of one epoch");
    }
    if (plan->steps_per_epoch > 0) {
        stk_str_appendf(line, " of %lld step%s", (long long)plan->steps_per_epoch,
                        plural(plan->steps_per_epoch));
    }
    if (isfinite(plan->seconds_per_epoch)) {
        /* Those of the head alone take less, and the last one may be cut. */
        bool less = plan->epochs > 1 && screen->view.start != NULL &&
                    plan->epochs * plan->seconds_per_epoch > screen->view.start->budget_s;
        stk_str_append(line, less ? ", up to " : ", ");
        put_seconds(line, plan->seconds_per_epoch, true);
        stk_str_append(line, plan->epochs > 1 ? " each" : " for a whole one");
    }
    put_time_plan(screen, line, plan);
    end_line(screen);
}

static void show_decision(stk_screen *screen, const stk_event_decision *event) {
    if (event->what == NULL) {
        return;
    }
    bool has_why = event->why != NULL;
    say(screen, "%s%s%s", event->what, has_why ? ": " : "", has_why ? event->why : "");
}

/* Whether it is time to draw: at once on a terminal, after a first wait among plain lines. */
static bool is_due(stk_screen *screen, bool new_epoch) {
    int64_t now = screen->config.now_ns();
    bool due;
    if (screen->config.terminal) {
        due = !screen->drawn || now - screen->drawn_ns >= REDRAW_GAP_NS;
    } else {
        if (new_epoch || !screen->drawn) {
            screen->drawn_ns = now;
            screen->drawn = true;
        }
        bool ends =
            screen->last_step.step >= screen->last_step.steps; /* the epoch's own line follows */
        due = !ends && now - screen->drawn_ns >= PLAIN_GAP_NS;
    }
    if (due) {
        screen->drawn_ns = now;
        screen->drawn = true;
    }
    return due;
}

/* Adds the time left and shows the line: in place on a terminal. */
static void end_progress_line(stk_screen *screen, double left_s) {
    if (isfinite(left_s)) {
        stk_str_append(&screen->line, "  left ");
        put_duration(&screen->line, left_s);
    }
    if (screen->config.terminal) {
        redraw(screen);
    } else {
        end_line(screen);
    }
}

static void show_step(stk_screen *screen, const stk_event_step *event) {
    stk_str *line = &screen->line;
    bool new_epoch =
        screen->last_step.epoch != event->epoch || screen->last_step.fold != event->fold;
    screen->last_step = *event;
    if (screen->config.beside || !is_due(screen, new_epoch)) {
        return;
    }
    put_epoch(screen, line, event->fold, event->epoch, event->epochs);
    put_progress(line, event);
    put_loss(line, "loss", event->loss);
    put_percent(line, "acc", event->acc1, 1);
    put_rate(line, event->steps_per_second, "it/s");
    put_rate(line, event->images_per_second, "img/s");
    put_percent(line, "wait", 100 * event->wait_fraction, 0);
    end_progress_line(screen, event->left_s);
}

static void show_epoch(stk_screen *screen, const stk_event_epoch *event) {
    stk_str *line = &screen->line;
    const stk_event_step *step = &screen->last_step;
    bool has_step = step->epoch == event->epoch && step->fold == event->fold;
    put_epoch(screen, line, event->fold, event->epoch, event->epochs);
    if (has_step) {
        put_progress(line, step);
    }
    put_loss(line, "loss", event->train_loss);
    put_percent(line, "acc", event->train_acc1, 1);
    put_loss(line, "val loss", event->val_loss);
    put_percent(line, "val acc", event->val_acc1, 1);
    const char *metric = stk_results_metric(screen->view.start);
    if (metric != NULL && isfinite(event->val_metric)) {
        stk_str_appendf(line, "  %s %.4g", metric, event->val_metric);
    }
    bool best = event->best && isfinite(event->val_loss); /* every epoch of a refit is */
    stk_str_append(line, best ? "  best" : "");
    if (has_step) {
        put_rate(line, step->steps_per_second, "it/s");
    }
    put_rate(line, event->images_per_second, "img/s");
    put_percent(line, "wait", 100 * event->wait_fraction, 0);
    if (isfinite(event->seconds)) {
        stk_str_append(line, "  ");
        put_duration(line, event->seconds);
    }
    end_line(screen);
}

static void show_bad_image(stk_screen *screen, const stk_event_bad_image *event) {
    if (screen->view.bad_images > NAMED_BAD_IMAGES) {
        return;
    }
    stk_str_appendf(&screen->line, "warning: bad image %s",
                    event->path != NULL ? event->path : "without a name");
    if (event->split != NULL) {
        stk_str_appendf(&screen->line, " (%s)", event->split);
    }
    if (event->reason != NULL) {
        stk_str_appendf(&screen->line, ": %s", event->reason);
    }
    end_line(screen);
}

static void show_submission(stk_screen *screen, const stk_event_submission *event) {
    stk_str *line = &screen->line;
    bool supervised = screen->view.attempt != NULL;
    if (event->path == NULL) {
        return;
    }
    stk_str_appendf(line, "submission: %s (", event->path);
    if (event->rows >= 0) {
        stk_str_appendf(line, "%lld row%s%s", (long long)event->rows, plural(event->rows),
                        supervised ? "" : ", ");
    }
    if (supervised) { /* how it was made is the command's affair */
        stk_str_append(line, event->rows >= 0 ? ")" : "rows were not counted)");
    } else if (event->epoch > 0) {
        stk_str_appendf(line, "from the weights of epoch %d)", event->epoch);
    } else if (event->models > 0 && event->models < event->models_wanted) {
        stk_str_appendf(line, "from %d of %d models)", event->models, event->models_wanted);
    } else if (event->models > 0) {
        stk_str_appendf(line, "from %d model%s)", event->models, plural(event->models));
    } else {
        stk_str_append(line, "class priors)");
    }
    end_line(screen);
}

/* Shows, soon after the first steps, how much of the machine they use. */
static void show_use(stk_screen *screen, const stk_event_verdict *event) {
    stk_str *line = &screen->line;
    if (isfinite(event->gpu_memory_used) && event->gpu_memory_total > 0) {
        say(screen, "GPU Memory Used: %.1f GB / %.1f GB (%.1f%%)",
            event->gpu_memory_used / GIGABYTE, event->gpu_memory_total / GIGABYTE,
            100 * event->gpu_memory_used / event->gpu_memory_total);
    }
    if (event->batch != NULL) {
        say(screen, "VALIDATION: %s", event->batch);
    }
    if (isfinite(event->images_per_second)) {
        stk_str_append(line, "speed:");
        put_rate(line, event->images_per_second, "img/s");
        put_percent(line, "wait", 100 * event->wait_fraction, 0);
        put_percent(line, "GPU", event->gpu_util, 0);
        end_line(screen);
    }
}

static void show_verdict(stk_screen *screen, const stk_event_verdict *event) {
    if (event->text == NULL) {
        return;
    }
    if (event->first && !screen->config.beside) {
        show_use(screen, event);
    }
    say(screen, "%s", event->text);
}

static void show_attempt(stk_screen *screen, const stk_event_attempt *event) {
    if (event->ended) {
        stk_attempt_put_line(&screen->line, event);
    } else {
        stk_attempt_put_name(&screen->line, event);
        stk_attempt_put_setting(&screen->line, ", ", event);
        stk_str_appendf(&screen->line, ": %s", event->command != NULL ? event->command : "");
    }
    end_line(screen);
}

static void show_warning(stk_screen *screen, const char *text) {
    say(screen, "warning: %s", text);
}

/* "12.3 MB", "80.1 MB/s". */
static void put_bytes(stk_str *line, double bytes, const char *after) {
    char text[32];
    if (isfinite(bytes) && bytes >= 0) {
        stk_str_appendf(line, "  %s%s", stk_format_bytes(text, sizeof text, (uint64_t)bytes),
                        after);
    }
}

/* Long work that is no training. The caller shows its end. */
static void show_progress(stk_screen *screen, const stk_event_progress *event) {
    stk_str *line = &screen->line;
    screen->last_step = (stk_event_step){.step = event->done, .steps = event->total};
    if (screen->config.beside || event->what == NULL || !is_due(screen, false)) {
        return;
    }
    stk_str_append(line, event->what);
    put_progress(line, &screen->last_step);
    put_bytes(line, (double)event->bytes, "");
    put_rate(line, event->per_second, "img/s");
    put_bytes(line, event->bytes_per_second, "/s");
    end_progress_line(screen, event->left_s);
}

/* ---- the closing block ---- */

static void show_result(stk_screen *screen, const stk_summary *summary) {
    stk_str *line = &screen->line;
    const char *before = ": ";
    stk_str_append(line, stk_report_words(summary->status != NULL ? summary->status : "complete"));
    if (isfinite(summary->best_acc1)) {
        put_item(line, &before, "best validation accuracy %.1f%%", summary->best_acc1);
    }
    bool other_metric = summary->metric != NULL && !stk_str_equal(summary->metric, "acc1");
    if (other_metric && isfinite(summary->best_metric)) {
        put_item(line, &before, "best %s %.4g", summary->metric, summary->best_metric);
    }
    if (summary->epochs_done >= 0) {
        put_item(line, &before, "%d epoch%s", summary->epochs_done, plural(summary->epochs_done));
    }
    if (summary->folds_planned > 1 && summary->folds_done >= 0) {
        put_item(line, &before, "%d of %d %s", summary->folds_done, summary->folds_planned,
                 stk_run_view_models_word(&screen->view));
        if (isfinite(summary->oof_acc1)) {
            put_item(line, &before, "out-of-fold accuracy %.1f%%", summary->oof_acc1);
        }
        if (other_metric && isfinite(summary->oof_metric)) {
            put_item(line, &before, "out-of-fold %s %.4g", summary->metric, summary->oof_metric);
        }
    }
    if (summary->stop_reason != NULL) {
        stk_str_appendf(line, "%s%s", before[0] == ':' ? before : "; ",
                        stk_report_stop_words(summary));
    }
    end_line(screen);
}

/* A row of the block: "  run folder  runs/demo". Without a value there is no row. */
static void show_row(stk_screen *screen, const char *name, const char *value) {
    if (value != NULL) {
        say(screen, "  %-11s %s", name, value);
    }
}

static void show_time(stk_screen *screen, const stk_summary *summary) {
    if (isfinite(summary->used_s)) {
        stk_str_appendf(&screen->line, "  %-11s ", "time");
        put_seconds(&screen->line, summary->used_s, true);
        if (isfinite(summary->budget_s)) {
            stk_str_append(&screen->line, " of ");
            put_seconds(&screen->line, summary->budget_s, false);
        }
        end_line(screen);
    }
}

/* The figure to believe: of pictures that its models were not trained on. */
static void show_held_out(stk_screen *screen, const stk_summary *summary) {
    const char *from = summary->held_out_from;
    if (isfinite(summary->held_out) && summary->metric != NULL && from != NULL) {
        bool percent =
            stk_str_equal(summary->metric, "acc1") || stk_str_equal(summary->metric, "acc5");
        say(screen, percent ? "  %-11s %s %.1f%%, %s" : "  %-11s %s %.4g, %s", "held out",
            summary->metric, summary->held_out, from);
    }
}

/* The row of the first attempt has the name of the block. */
static void show_attempts(stk_screen *screen, const stk_summary *summary) {
    show_row(screen, "estimate", summary->estimate);
    for (int i = 0; i < summary->attempt_count; i++) {
        stk_str_appendf(&screen->line, "  %-11s ", i == 0 ? "attempts" : "");
        stk_attempt_put_line(&screen->line, &summary->attempts[i]);
        end_line(screen);
    }
}

/* NULL before the start. */
static const char *run_dir_of(const stk_screen *screen) {
    return screen->view.start != NULL ? screen->view.start->run_dir : NULL;
}

/* Shows a row with a path of the summary, which is absolute or relative to the run folder. */
static void show_inside(stk_screen *screen, const char *name, const char *path, bool must_exist) {
    const char *folder = run_dir_of(screen);
    char *full = stk_path_join(folder != NULL ? folder : "", path);
    if (full != NULL && (!must_exist || stk_path_is_file(full))) {
        show_row(screen, name, full);
    }
    stk_mem_free(full);
}

/* Bad images of the run, and where they are named. With --quiet only those count that had no line
 * of their own. */
static void show_bad_images(stk_screen *screen, const stk_summary *summary) {
    int64_t bad = summary->bad_images >= 0 ? summary->bad_images : screen->view.bad_images;
    const char *folder = run_dir_of(screen) != NULL ? run_dir_of(screen) : ".";
    bool quiet = screen->config.quiet;
    if (bad <= (quiet ? NAMED_BAD_IMAGES : 0)) {
        return;
    }
    if (quiet) {
        say(screen, "warning: %lld bad images; %s/bad_images.csv names them", (long long)bad,
            folder);
    } else {
        say(screen, "  %-11s %lld, named in %s/bad_images.csv", "bad images", (long long)bad,
            folder);
    }
}

/* Where the results lie. */
static void show_files(stk_screen *screen, const stk_summary *summary) {
    const stk_run_view *view = &screen->view;
    bool early = view->submission != NULL && view->submission->epoch > 0;
    /* Weights that do not beat priors were moved away. */
    bool moved = summary->folds_done == 0 && summary->status != NULL &&
                 (strcmp(summary->status, "prior") == 0 ||
                  (early && strcmp(summary->status, "partial") == 0));
    show_row(screen, "run folder", run_dir_of(screen));
    if (stk_run_view_models(&screen->view) > 1 && !moved) {
        show_inside(screen, "weights", "weights", false);
    } else if (!moved) {
        show_row(screen, "weights", view->weights != NULL ? view->weights->path : NULL);
    }
    if (view->submission != NULL && view->submission->path != NULL && early) {
        say(screen, "  %-11s %s, predicted early from the weights of epoch %d", "submission",
            view->submission->path, view->submission->epoch);
    } else if (view->submission != NULL && view->submission->path != NULL) {
        show_row(screen, "submission", view->submission->path);
    } else if (summary->submission != NULL && summary->command != NULL) {
        show_row(screen, "submission", summary->submission);
    } else if (summary->submission != NULL) {
        show_inside(screen, "submission", summary->submission, false);
    }
    if (run_dir_of(screen) != NULL) {
        show_inside(screen, "plot", "results.png", true);
        show_inside(screen, "plot", "results.svg", true);
        show_inside(screen, "report", "report.html", true);
    }
}

static void show_stop(stk_screen *screen, const stk_summary *summary) {
    const stk_event_verdict *verdict = stk_run_view_verdict(&screen->view);
    if (!screen->config.beside) {
        end_line(screen);
    }
    show_result(screen, summary);
    show_held_out(screen, summary);
    show_attempts(screen, summary);
    show_time(screen, summary);
    show_bad_images(screen, summary);
    show_row(screen, "verdict",
             verdict != NULL && verdict->text != NULL ? verdict->text : summary->verdict);
    show_files(screen, summary);
}

/* ---- events ---- */

/* With --quiet there are only warnings. */
static void take_quietly(stk_screen *screen, stk_event_kind kind, const void *event) {
    if (kind == STK_EVENT_BAD_IMAGE) {
        show_bad_image(screen, event);
    } else if (kind == STK_EVENT_WARNING) {
        show_warning(screen, ((const stk_event_warning *)event)->text);
    } else if (kind == STK_EVENT_STOP) {
        show_bad_images(screen, event);
    }
}

/* Whether the last start was of the same run. */
static bool has_begun(const stk_screen *screen, const stk_event_start *event) {
    const stk_event_start *before = screen->view.start;
    return before != NULL && before->run_dir != NULL && event->run_dir != NULL &&
           strcmp(before->run_dir, event->run_dir) == 0;
}

static void screen_take(void *user, stk_event_kind kind, const void *event) {
    stk_screen *screen = user;
    bool again = kind == STK_EVENT_START && has_begun(screen, event);
    stk_run_view_take(&screen->view, kind, event);
    if (screen->config.quiet) {
        take_quietly(screen, kind, event);
        return;
    }
    switch (kind) {
    case STK_EVENT_START:
        show_start(screen, event, again);
        break;
    case STK_EVENT_PLAN:
        show_plan(screen, event);
        break;
    case STK_EVENT_DECISION:
        show_decision(screen, event);
        break;
    case STK_EVENT_STEP:
        show_step(screen, event);
        break;
    case STK_EVENT_EPOCH:
        show_epoch(screen, event);
        break;
    case STK_EVENT_BAD_IMAGE:
        show_bad_image(screen, event);
        break;
    case STK_EVENT_SUBMISSION:
        show_submission(screen, event);
        break;
    case STK_EVENT_WARNING:
        show_warning(screen, ((const stk_event_warning *)event)->text);
        break;
    case STK_EVENT_STOP:
        show_stop(screen, event);
        break;
    case STK_EVENT_PROGRESS:
        show_progress(screen, event);
        break;
    case STK_EVENT_VERDICT:
        show_verdict(screen, event);
        break;
    case STK_EVENT_ATTEMPT:
        show_attempt(screen, event);
        break;
    case STK_EVENT_CHECKPOINT:
    case STK_EVENT_BATCH:
    case STK_EVENT_SAMPLE:
    case STK_EVENT_KINDS:
        break; /* these have no line */
    }
}

/* ---- the header's functions ---- */

stk_status stk_screen_new(stk_screen **out, const stk_screen_config *config, stk_error *err) {
    stk_screen *screen = stk_mem_new(1, sizeof *screen);
    if (screen == NULL) {
        return STK_FAIL_MEMORY(err, "the screen");
    }
    if (!stk_str_reserve(&screen->line, LINE_BYTES) ||
        !stk_str_reserve(&screen->clean, LINE_BYTES)) {
        stk_screen_free(screen);
        return STK_FAIL_MEMORY(err, "the screen");
    }
    screen->config = *config;
    screen->config.now_ns = config->now_ns != NULL ? config->now_ns : stk_clock_ns;
    screen->plan.fold = -1;
    stk_event_sink_open(&screen->sink, screen_take, screen);
    *out = screen;
    return STK_OK;
}

void stk_screen_free(stk_screen *screen) {
    if (screen != NULL) {
        if (screen->live) {
            fputs("\n", screen->config.out);
            fflush(screen->config.out);
        }
        stk_run_view_close(&screen->view);
        stk_str_free(&screen->line);
        stk_str_free(&screen->clean);
        stk_mem_free(screen);
    }
}

const stk_observer *stk_screen_observer(stk_screen *screen) {
    return &screen->sink.observer;
}
