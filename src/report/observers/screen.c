/*
 * screen.c - lines for people.
 *
 * Every line is built in one growing text and leaves through end_line() or redraw(), where it is
 * cleaned: a file name must not be able to send commands to the terminal. There is room for lines
 * of an ordinary length from the start, so that one which says that there is no memory needs none.
 * A longer line that finds no memory is left out; the screen is never a reason to stop a run.
 */
#include "report/observers/screen.h"

#include <math.h>
#include <string.h>
#include <sys/ioctl.h>

#include "base/clock.h"
#include "base/error.h"
#include "base/files/file.h"
#include "base/mem.h"
#include "base/str.h"
#include "report/text/attempt_text.h"
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
    stk_observer observer;
    stk_str line;        /* being built */
    stk_str clean;       /* what goes out */
    char *run_dir;       /* owned; NULL until the start or without memory, as the next two */
    char *submission;    /* owned; the last one's path */
    char *weights;       /* owned; the best checkpoint's path */
    int folds;           /* planned */
    double budget_s;     /* NaN without one */
    bool live;           /* a redrawn line stands on the terminal, the cursor behind it */
    bool drawn;          /* drawn_ns holds the time of a drawing */
    int64_t drawn_ns;    /* the last drawing, or the last plain progress line */
    stk_event_step step; /* the last one; step.epoch is 0 before the first */
    stk_event_plan plan; /* the last one shown; plan.fold is -1 before the first */
    int64_t bad_images;  /* seen */
    char *verdict;       /* owned; the last one's sentence */
    bool supervised;     /* the run is a command's */
};

/* ---- lines ---- */

static void begin_line(stk_screen *screen) {
    stk_str_clear(&screen->line);
}

/* The finished line as it may be shown, NULL without memory. */
static const char *clean_line(stk_screen *screen) {
    stk_str_clear(&screen->clean);
    stk_report_append_line(&screen->clean, stk_str_text(&screen->line));
    return stk_str_ok(&screen->line) && stk_str_ok(&screen->clean) ? stk_str_text(&screen->clean)
                                                                   : NULL;
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

static void put_fold(const stk_screen *screen, stk_str *line, int fold, const char *behind) {
    if (screen->folds > 1) {
        stk_str_appendf(line, "fold %d/%d%s", fold + 1, screen->folds, behind);
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

/* ---- callbacks ---- */

/* Replaces an owned copy; NULL without memory, which leaves the line that needs it out. */
static void keep(char **copy, const char *text) {
    stk_mem_free(*copy);
    *copy = text != NULL ? stk_mem_strdup(text) : NULL;
}

static void show_data(stk_screen *screen, const stk_event_start *event) {
    begin_line(screen);
    stk_str *line = &screen->line;
    const char *comma = "";
    stk_str_append(line, "data: ");
    if (event->data != NULL) {
        stk_str_append(line, event->data);
        comma = ", ";
    }
    if (event->train_images >= 0) {
        stk_str_appendf(line, "%s%lld training image%s", comma, (long long)event->train_images,
                        plural(event->train_images));
        comma = ", ";
    }
    if (event->val_images > 0) {
        stk_str_appendf(line, "%s%lld validation", comma, (long long)event->val_images);
        comma = ", ";
    }
    if (event->test_images > 0) {
        stk_str_appendf(line, "%s%lld test", comma, (long long)event->test_images);
        comma = ", ";
    }
    if (event->classes > 0) {
        stk_str_appendf(line, "%s%d class%s", comma, event->classes,
                        event->classes == 1 ? "" : "es");
        comma = ", ";
    }
    if (comma[0] != '\0') {
        end_line(screen);
    }
}

static bool is_mixed(const char *precision) {
    return precision != NULL && (strcmp(precision, "fp16") == 0 || strcmp(precision, "bf16") == 0);
}

/*
 * What is used of the machine, in the form that people's tools look for in the output of a
 * training. A gigabyte is 2^30 bytes in it.
 */
static void show_resources(stk_screen *screen, const stk_event_start *event) {
    stk_str *line = &screen->line;
    if (event->cores <= 0) {
        return;
    }
    begin_line(screen);
    stk_str_appendf(line, "RESOURCES: %d CPU core%s, batch=%d, GPU=%s, Mixed Precision=%s",
                    event->cores, plural(event->cores), event->batch,
                    event->device_name != NULL ? event->device_name : "none",
                    is_mixed(event->precision) ? "ON" : "OFF");
    end_line(screen);
    if (event->device_name != NULL && event->device_bytes > 0) {
        begin_line(screen);
        stk_str_appendf(line, "GPU Memory: %.1f GB", (double)event->device_bytes / GIGABYTE);
        end_line(screen);
    }
    begin_line(screen);
    stk_str_appendf(line, "DataLoader: num_workers=%d, prefetch_factor=%d, persistent_workers=True",
                    event->workers, event->prefetch);
    end_line(screen);
}

static void on_start(void *user, const stk_event_start *event) {
    stk_screen *screen = user;
    keep(&screen->run_dir, event->run_dir);
    screen->folds = event->folds;
    screen->budget_s = event->budget_s;
    if (screen->config.quiet) {
        return;
    }
    if (event->chosen != NULL && !screen->config.beside) { /* there the attempt says it */
        begin_line(screen);
        stk_str_append(&screen->line, event->chosen);
        end_line(screen);
    }
    if (event->run_dir != NULL) {
        begin_line(screen);
        stk_str_appendf(&screen->line, "run folder: %s", event->run_dir);
        end_line(screen);
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
        if (isfinite(screen->budget_s)) {
            stk_str_append(line, " of ");
            put_seconds(line, screen->budget_s, false);
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

static void on_plan(void *user, const stk_event_plan *plan) {
    stk_screen *screen = user;
    stk_str *line = &screen->line;
    if (screen->config.quiet || !plan_is_news(&screen->plan, plan)) {
        return;
    }
    screen->plan = *plan;
    begin_line(screen);
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
        stk_str_append(line, ", ");
        put_seconds(line, plan->seconds_per_epoch, true);
        stk_str_append(line, plan->epochs > 1 ? " each" : " for a whole one");
    }
    put_time_plan(screen, line, plan);
    end_line(screen);
}

static void on_decision(void *user, const stk_event_decision *event) {
    stk_screen *screen = user;
    if (screen->config.quiet || event->what == NULL) {
        return;
    }
    begin_line(screen);
    stk_str_append(&screen->line, event->what);
    if (event->why != NULL) {
        stk_str_appendf(&screen->line, ": %s", event->why);
    }
    end_line(screen);
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
        bool ends = screen->step.step >= screen->step.steps; /* its own line follows */
        due = !ends && now - screen->drawn_ns >= PLAIN_GAP_NS;
    }
    if (due) {
        screen->drawn_ns = now;
        screen->drawn = true;
    }
    return due;
}

static void on_step(void *user, const stk_event_step *event) {
    stk_screen *screen = user;
    stk_str *line = &screen->line;
    bool new_epoch = screen->step.epoch != event->epoch || screen->step.fold != event->fold;
    screen->step = *event;
    if (screen->config.quiet || screen->config.beside || !is_due(screen, new_epoch)) {
        return;
    }
    begin_line(screen);
    put_epoch(screen, line, event->fold, event->epoch, event->epochs);
    put_progress(line, event);
    put_loss(line, "loss", event->loss);
    put_percent(line, "acc", event->acc1, 1);
    put_rate(line, event->steps_per_second, "it/s");
    put_rate(line, event->images_per_second, "img/s");
    put_percent(line, "wait", 100 * event->wait_fraction, 0);
    if (isfinite(event->left_s)) {
        stk_str_append(line, "  left ");
        put_duration(line, event->left_s);
    }
    if (screen->config.terminal) {
        redraw(screen);
    } else {
        end_line(screen);
    }
}

static void on_epoch(void *user, const stk_event_epoch *event) {
    stk_screen *screen = user;
    stk_str *line = &screen->line;
    if (screen->config.quiet) {
        return;
    }
    bool has_step = screen->step.epoch == event->epoch && screen->step.fold == event->fold;
    begin_line(screen);
    put_epoch(screen, line, event->fold, event->epoch, event->epochs);
    if (has_step) {
        put_progress(line, &screen->step);
    }
    put_loss(line, "loss", event->train_loss);
    put_percent(line, "acc", event->train_acc1, 1);
    put_loss(line, "val loss", event->val_loss);
    put_percent(line, "val acc", event->val_acc1, 1);
    stk_str_append(line, event->best ? "  best" : "");
    if (has_step) {
        put_rate(line, screen->step.steps_per_second, "it/s");
    }
    put_rate(line, event->images_per_second, "img/s");
    put_percent(line, "wait", 100 * event->wait_fraction, 0);
    if (isfinite(event->seconds)) {
        stk_str_append(line, "  ");
        put_duration(line, event->seconds);
    }
    end_line(screen);
}

static void on_checkpoint(void *user, const stk_event_checkpoint *event) {
    stk_screen *screen = user;
    if (event->best) {
        keep(&screen->weights, event->path);
    }
}

static void on_bad_image(void *user, const stk_event_bad_image *event) {
    stk_screen *screen = user;
    if (++screen->bad_images > NAMED_BAD_IMAGES) {
        return;
    }
    begin_line(screen);
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

static void on_submission(void *user, const stk_event_submission *event) {
    stk_screen *screen = user;
    stk_str *line = &screen->line;
    keep(&screen->submission, event->path);
    if (screen->config.quiet || event->path == NULL) {
        return;
    }
    begin_line(screen);
    stk_str_appendf(line, "submission: %s (", event->path);
    if (event->rows >= 0) {
        stk_str_appendf(line, "%lld row%s%s", (long long)event->rows, plural(event->rows),
                        screen->supervised ? "" : ", ");
    }
    if (screen->supervised) { /* how it was made is the command's affair */
        stk_str_append(line, event->rows >= 0 ? ")" : "rows were not counted)");
    } else if (event->models > 0 && event->models < event->models_wanted) {
        stk_str_appendf(line, "from %d of %d models)", event->models, event->models_wanted);
    } else if (event->models > 0) {
        stk_str_appendf(line, "from %d model%s)", event->models, plural(event->models));
    } else {
        stk_str_append(line, "class priors)");
    }
    end_line(screen);
}

/* Soon after the first steps: how much of the machine they use. */
static void show_use(stk_screen *screen, const stk_event_verdict *event) {
    stk_str *line = &screen->line;
    if (isfinite(event->gpu_memory_used) && event->gpu_memory_total > 0) {
        begin_line(screen);
        stk_str_appendf(line, "GPU Memory Used: %.1f GB / %.1f GB (%.1f%%)",
                        event->gpu_memory_used / GIGABYTE, event->gpu_memory_total / GIGABYTE,
                        100 * event->gpu_memory_used / event->gpu_memory_total);
        end_line(screen);
    }
    if (event->batch != NULL) {
        begin_line(screen);
        stk_str_appendf(line, "VALIDATION: %s", event->batch);
        end_line(screen);
    }
    if (isfinite(event->images_per_second)) {
        begin_line(screen);
        stk_str_append(line, "speed:");
        put_rate(line, event->images_per_second, "img/s");
        put_percent(line, "wait", 100 * event->wait_fraction, 0);
        put_percent(line, "GPU", event->gpu_util, 0);
        end_line(screen);
    }
}

static void on_verdict(void *user, const stk_event_verdict *event) {
    stk_screen *screen = user;
    keep(&screen->verdict, event->text);
    if (screen->config.quiet || event->text == NULL) {
        return;
    }
    if (event->first && !screen->config.beside) {
        show_use(screen, event);
    }
    begin_line(screen);
    stk_str_append(&screen->line, event->text);
    end_line(screen);
}

static void on_attempt(void *user, const stk_event_attempt *event) {
    stk_screen *screen = user;
    screen->supervised = true;
    if (screen->config.quiet) {
        return;
    }
    begin_line(screen);
    if (event->ended) {
        stk_attempt_put_line(&screen->line, event);
    } else {
        stk_attempt_put_name(&screen->line, event);
        stk_attempt_put_setting(&screen->line, ", ", event);
        stk_str_appendf(&screen->line, ": %s", event->command != NULL ? event->command : "");
    }
    end_line(screen);
}

static void on_warning(void *user, const char *text) {
    stk_screen *screen = user;
    begin_line(screen);
    stk_str_appendf(&screen->line, "warning: %s", text);
    end_line(screen);
}

/* "12.3 MB", "80.1 MB/s". */
static void put_bytes(stk_str *line, double bytes, const char *behind) {
    char text[32];
    if (isfinite(bytes) && bytes >= 0) {
        stk_str_appendf(line, "  %s%s", stk_format_bytes(text, sizeof text, (uint64_t)bytes),
                        behind);
    }
}

/* Work that is no training; its end is told by whoever asked for it. */
static void on_progress(void *user, const stk_event_progress *event) {
    stk_screen *screen = user;
    stk_str *line = &screen->line;
    screen->step = (stk_event_step){.step = event->done, .steps = event->total};
    if (screen->config.quiet || screen->config.beside || event->what == NULL ||
        !is_due(screen, false)) {
        return;
    }
    begin_line(screen);
    stk_str_append(line, event->what);
    put_progress(line, &screen->step);
    put_bytes(line, (double)event->bytes, "");
    put_rate(line, event->per_second, "img/s");
    put_bytes(line, event->bytes_per_second, "/s");
    if (isfinite(event->left_s)) {
        stk_str_append(line, "  left ");
        put_duration(line, event->left_s);
    }
    if (screen->config.terminal) {
        redraw(screen);
    } else {
        end_line(screen);
    }
}

/* ---- the closing block ---- */

static void show_result(stk_screen *screen, const stk_summary *summary) {
    stk_str *line = &screen->line;
    const char *between = ": ";
    begin_line(screen);
    stk_str_append(line, stk_report_words(summary->status != NULL ? summary->status : "complete"));
    if (isfinite(summary->best_acc1)) {
        stk_str_appendf(line, "%sbest validation accuracy %.1f%%", between, summary->best_acc1);
        between = ", ";
    }
    bool other_metric = summary->metric != NULL && !stk_str_equal(summary->metric, "acc1");
    if (other_metric && isfinite(summary->best_metric)) {
        stk_str_appendf(line, "%sbest %s %.4g", between, summary->metric, summary->best_metric);
        between = ", ";
    }
    if (summary->epochs_done >= 0) {
        stk_str_appendf(line, "%s%d epoch%s", between, summary->epochs_done,
                        plural(summary->epochs_done));
        between = ", ";
    }
    if (summary->folds_planned > 1 && summary->folds_done >= 0) {
        stk_str_appendf(line, "%s%d of %d folds", between, summary->folds_done,
                        summary->folds_planned);
        between = ", ";
        if (isfinite(summary->oof_acc1)) {
            stk_str_appendf(line, ", out-of-fold accuracy %.1f%%", summary->oof_acc1);
        }
        if (other_metric && isfinite(summary->oof_metric)) {
            stk_str_appendf(line, ", out-of-fold %s %.4g", summary->metric, summary->oof_metric);
        }
    }
    if (summary->stop_reason != NULL) {
        stk_str_appendf(line, "%s%s", between[0] == ':' ? between : "; ",
                        stk_report_stop_words(summary));
    }
    end_line(screen);
}

/* "  run folder  runs/demo": a row of the block; no value, no row. */
static void show_row(stk_screen *screen, const char *name, const char *value) {
    if (value != NULL) {
        begin_line(screen);
        stk_str_appendf(&screen->line, "  %-11s %s", name, value);
        end_line(screen);
    }
}

static void show_time(stk_screen *screen, const stk_summary *summary) {
    if (isfinite(summary->used_s)) {
        begin_line(screen);
        stk_str_appendf(&screen->line, "  %-11s ", "time");
        put_seconds(&screen->line, summary->used_s, true);
        if (isfinite(summary->budget_s)) {
            stk_str_append(&screen->line, " of ");
            put_seconds(&screen->line, summary->budget_s, false);
        }
        end_line(screen);
    }
}

/* The first one's row has the name, as in a table. */
static void show_attempts(stk_screen *screen, const stk_summary *summary) {
    show_row(screen, "estimate", summary->estimate);
    for (int i = 0; i < summary->attempt_count; i++) {
        begin_line(screen);
        stk_str_appendf(&screen->line, "  %-11s ", i == 0 ? "attempts" : "");
        stk_attempt_put_line(&screen->line, &summary->attempts[i]);
        end_line(screen);
    }
}

/* A path of the summary stands relative to the run folder; an absolute one stays. */
static void show_inside(stk_screen *screen, const char *name, const char *path, bool must_exist) {
    char *full = stk_path_join(screen->run_dir != NULL ? screen->run_dir : "", path);
    if (full != NULL && (!must_exist || stk_path_is_file(full))) {
        show_row(screen, name, full);
    }
    stk_mem_free(full);
}

static void on_stop(void *user, const stk_summary *summary) {
    stk_screen *screen = user;
    int64_t bad = summary->bad_images >= 0 ? summary->bad_images : screen->bad_images;
    const char *folder = screen->run_dir != NULL ? screen->run_dir : ".";
    if (screen->config.quiet) {
        if (bad > NAMED_BAD_IMAGES) {
            begin_line(screen);
            stk_str_appendf(&screen->line, "warning: %lld bad images; %s/bad_images.csv names them",
                            (long long)bad, folder);
            end_line(screen);
        }
        return;
    }
    if (!screen->config.beside) {
        begin_line(screen);
        end_line(screen);
    }
    show_result(screen, summary);
    show_attempts(screen, summary);
    show_time(screen, summary);
    if (bad > 0) {
        begin_line(screen);
        stk_str_appendf(&screen->line, "  %-11s %lld, named in %s/bad_images.csv", "bad images",
                        (long long)bad, folder);
        end_line(screen);
    }
    show_row(screen, "verdict", screen->verdict != NULL ? screen->verdict : summary->verdict);
    show_row(screen, "run folder", screen->run_dir);
    bool priors = summary->folds_done == 0 && strcmp(summary->status, "prior") == 0;
    if (screen->folds > 1 && !priors) {
        show_inside(screen, "weights", "weights", false);
    } else if (!priors) { /* weights that do not beat priors are not where they were saved */
        show_row(screen, "weights", screen->weights);
    }
    if (screen->submission != NULL) {
        show_row(screen, "submission", screen->submission);
    } else if (summary->submission != NULL && summary->command != NULL) {
        show_row(screen, "submission", summary->submission);
    } else if (summary->submission != NULL) {
        show_inside(screen, "submission", summary->submission, false);
    }
    if (screen->run_dir != NULL) {
        show_inside(screen, "plot", "results.png", true);
        show_inside(screen, "plot", "results.svg", true);
        show_inside(screen, "report", "report.html", true);
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
    screen->budget_s = NAN;
    screen->plan.fold = -1;
    screen->observer = (stk_observer){
        .user = screen,
        .start = on_start,
        .plan = on_plan,
        .decision = on_decision,
        .step = on_step,
        .epoch = on_epoch,
        .checkpoint = on_checkpoint,
        .bad_image = on_bad_image,
        .submission = on_submission,
        .warning = on_warning,
        .stop = on_stop,
        .progress = on_progress,
        .verdict = on_verdict,
        .attempt = on_attempt,
    };
    *out = screen;
    return STK_OK;
}

void stk_screen_free(stk_screen *screen) {
    if (screen != NULL) {
        if (screen->live) {
            fputs("\n", screen->config.out);
            fflush(screen->config.out);
        }
        stk_mem_free(screen->run_dir);
        stk_mem_free(screen->submission);
        stk_mem_free(screen->weights);
        stk_mem_free(screen->verdict);
        stk_str_free(&screen->line);
        stk_str_free(&screen->clean);
        stk_mem_free(screen);
    }
}

const stk_observer *stk_screen_observer(stk_screen *screen) {
    return &screen->observer;
}
