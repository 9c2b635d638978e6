/*
 * runfiles.c - the observer that writes a run folder.
 *
 * Each event goes to the writer of events.jsonl first, which leaves out most steps and some samples
 * (thinning.h), then into a history, which takes all. results.csv, the plot and the page are made
 * from the whole history each time, which costs little and never leaves half a row.
 */
#include "report/runfiles.h"

#include <math.h>

#include "base/files/disk.h"
#include "base/clock.h"
#include "base/threads/process.h"
#include "base/text/csv.h"
#include "base/error.h"
#include "base/files/file.h"
#include "base/mem.h"
#include "report/state/earlier.h"
#include "report/observers/jsonl.h"
#include "report/observers/lines.h"
#include "report/page/write.h"
#include "report/plots/plots.h"
#include "report/state/run_history.h"
#include "report/state/replay.h"
#include "report/observers/tfevents.h"
#include "report/text/event_json.h"
#include "report/text/results_csv.h"

/* Between two drawings of the plot and the page while epochs are short: so many seconds, and on a
 * slow disk so many times as long as a drawing takes. */
#define PLOT_GAP_S 5.0
#define PLOT_GAP_TIMES 20.0

/* While a run goes on, a validation.csv of at most so many bytes is read for the page. */
#define SMALL_VALIDATION_BYTES ((size_t)1 << 20)

/* At the end of a run: bytes of validation.csv that a busy core reads in a second, the most bytes
 * that are read, and the most seconds for thumbnails. */
#define VALIDATION_BYTES_PER_S 10e6
#define MOST_VALIDATION_BYTES 100e6
#define MOST_THUMBS_S 2.0

static const char bad_images_header[] = "path,split,reason\n";

/* What may be missing in a folder at the end, one bit each. */
enum {
    LACKS_RESULTS = 1,
    LACKS_BAD_IMAGES = 2,
    LACKS_EVENTS = 4,
    LACKS_TENSORBOARD = 8,
    LACKS_PLOT = 16,
    LACKS_PAGE = 32,
    LACKS_SUMMARY = 64
};

struct stk_runfiles {
    stk_event_sink sink; /* receives the events */
    /* Paths, all owned. */
    char *run_dir;
    char *results_path;
    char *bad_path;
    char *events_path;
    char *summary_path;
    char *plot_path;
    char *title;            /* owned; of the plot, NULL before the start */
    int events_fd;          /* owned */
    int bad_fd;             /* owned */
    stk_lines bad_lines;    /* on bad_fd */
    stk_jsonl *jsonl;       /* owned; on events_fd */
    stk_tfevents *tfevents; /* owned; NULL: without TensorBoard */
    stk_run_history history;
    stk_page_pictures pictures;
    stk_file_how how;   /* how whole files are written */
    unsigned lacking;   /* bits: files whose last write failed */
    int64_t start_ns;   /* the times of events count from here */
    int64_t moment_ns;  /* when the current event happened; 0: now */
    int64_t plotted_ns; /* when the last drawing of plot and page ended */
    bool plotted;       /* plot and page were drawn */
    bool plot_is_new;   /* the plot has all epochs */
    int64_t page_ns;    /* when the last page was written; 0: never */
    bool page_at_stop;  /* time is left for a page with the summary */
    bool table_rebuilt; /* rows of results.csv were missing and were made from the events */
    bool supervised;    /* a supervised command: no tables of epochs and pictures */
    double draw_s;      /* how long drawing takes: see stk_runfiles_draw_s() */
    stk_error error;    /* the first error */
    stk_error summary_error;
};

/* ---- files ---- */

/* A callback cannot return an error: files->error has it, and files->lacking has a bit for each
 * thing that is missing. Writing the whole file later clears its bit. */
static void note(stk_runfiles *files, unsigned what, stk_status status) {
    files->lacking = status == STK_OK ? files->lacking & ~what : files->lacking | what;
}

static stk_status write_text(const stk_runfiles *files, const char *path, const stk_str *text,
                             stk_error *err) {
    return stk_str_ok(text)
               ? stk_file_write_how(path, stk_str_text(text), text->length, &files->how, err)
               : STK_FAIL_MEMORY(err, path);
}

static stk_status write_results(const stk_runfiles *files, stk_error *err) {
    stk_str text = {0};
    stk_results_csv_put(&text, files->history.rows, files->history.row_count,
                        stk_results_metric(files->history.view.start));
    stk_status status = write_text(files, files->results_path, &text, err);
    stk_str_free(&text);
    return status;
}

static stk_status write_summary(const stk_runfiles *files, const stk_summary *summary,
                                stk_error *err) {
    stk_str text = {0};
    stk_json_writer writer = stk_json_write_to(&text, 2);
    stk_json_begin_object(&writer);
    stk_event_put(&writer, STK_EVENT_STOP, summary);
    stk_json_end_object(&writer);
    stk_str_append(&text, "\n");
    stk_status status = write_text(files, files->summary_path, &text, err);
    if (status != STK_OK) {
        (void)stk_disk_remove(
            files->summary_path); /* the summary of an earlier process would be wrong */
    }
    stk_str_free(&text);
    return status;
}

static void draw_plot(stk_runfiles *files) {
    stk_plot plot = {.title = files->title,
                     .rows = files->history.rows,
                     .count = files->history.row_count,
                     .folds = stk_run_history_folds(&files->history),
                     .best = stk_run_history_best(&files->history),
                     .metric = stk_results_metric(files->history.view.start)};
    stk_status status = stk_plot_write(&plot, files->plot_path, &files->error);
    note(files, LACKS_PLOT, status);
    files->plot_is_new = status == STK_OK;
}

static void write_page(stk_runfiles *files) {
    note(files, LACKS_PAGE,
         stk_page_write(files->run_dir, NULL, &files->how, &files->history, &files->pictures,
                        &files->error));
    files->page_ns = stk_clock_ns();
}

/* Draws plot and page and notes how long that took: the reserve before a deadline needs it. */
static void draw(stk_runfiles *files) {
    int64_t start = stk_clock_ns();
    draw_plot(files);
    stk_page_pictures_read(&files->pictures, files->run_dir, &files->history,
                           SMALL_VALIDATION_BYTES, NULL);
    write_page(files);
    files->plotted = true;
    files->plotted_ns = stk_clock_ns();
    files->draw_s = stk_clock_since_s(start);
}

/* Whether the drawing that ended at drawn_ns is old enough to draw again. */
static bool is_old(const stk_runfiles *files, int64_t drawn_ns) {
    return stk_clock_since_s(drawn_ns) > fmax(PLOT_GAP_S, PLOT_GAP_TIMES * files->draw_s);
}

/* Writes the page without the plot, within an epoch, which may take hours, and notes how long that
 * took. */
static void write_page_timed(stk_runfiles *files) {
    int64_t start = stk_clock_ns();
    write_page(files);
    files->draw_s = fmax(files->draw_s, stk_clock_since_s(start));
}

/* ---- events ---- */

/* When the current event happened, in seconds since the start of the run. */
static double seconds_at(const stk_runfiles *files) {
    int64_t now_ns = files->moment_ns != 0 ? files->moment_ns : stk_clock_ns();
    return (double)(now_ns - files->start_ns) * 1e-9;
}

/* Passes an event (all kinds but progress) to the writers of events.jsonl and of TensorBoard's
 * files, which may leave it out, and to the history. */
static void pass_on(stk_runfiles *files, stk_event_kind kind, const void *event) {
    stk_event_pass(stk_jsonl_observer(files->jsonl), kind, event);
    note(files, LACKS_EVENTS, stk_jsonl_error(files->jsonl, &files->error));
    if (files->tfevents != NULL) {
        stk_event_pass(stk_tfevents_observer(files->tfevents), kind, event);
        note(files, LACKS_TENSORBOARD, stk_tfevents_error(files->tfevents, &files->error));
    }
    stk_run_history_set_time_s(&files->history, seconds_at(files));
    stk_event_pass(&files->history.sink.observer, kind, event);
}

/* The title of the plot. */
static void take_start(stk_runfiles *files, const stk_event_start *event) {
    stk_mem_free(files->title);
    files->title = stk_str_format("%s", event->model != NULL ? event->model : "Results");
    if (event->model != NULL && event->data != NULL && stk_path_base(event->data)[0] != '\0') {
        stk_mem_free(files->title);
        files->title = stk_str_format("%s on %s", event->model, stk_path_base(event->data));
    }
}

/* results.csv, and now and then the plot and the page. */
static void take_epoch(stk_runfiles *files) {
    files->plot_is_new = false;
    if (files->history.failed) {
        note(files, LACKS_RESULTS, STK_FAIL_MEMORY(&files->error, files->results_path));
        return;
    }
    note(files, LACKS_RESULTS, write_results(files, &files->error));
    if (!files->plotted || is_old(files, files->plotted_ns)) {
        draw(files);
    }
}

/* A row of bad_images.csv. */
static void take_bad_image(stk_runfiles *files, const stk_event_bad_image *event) {
    const char *const cells[] = {event->path, event->split, event->reason};
    stk_str row = {0};
    for (size_t i = 0; i < 3; i++) {
        stk_csv_append(&row, cells[i] != NULL ? cells[i] : "");
        stk_str_append(&row, i < 2 ? "," : "\n");
    }
    stk_status status =
        stk_str_ok(&row) ? stk_lines_write(&files->bad_lines, row.text, row.length, &files->error)
                         : STK_FAIL_MEMORY(&files->error, files->bad_path);
    if (status != STK_OK) { /* a missing row is never written later */
        note(files, LACKS_BAD_IMAGES, status);
    }
    stk_str_free(&row);
}

/* summary.json, and the page with it. */
static void take_stop(stk_runfiles *files, const stk_summary *summary) {
    stk_error_clear(&files->summary_error);
    stk_status status = write_summary(files, summary, &files->summary_error);
    note(files, LACKS_SUMMARY, status);
    if (status != STK_OK && files->error.status == STK_OK) {
        files->error = files->summary_error;
    }
    if (files->page_at_stop) {
        write_page(files);
    }
}

/* Whether the page is to be written now, within an epoch: it is missing or old. */
static bool page_is_due(const stk_runfiles *files, stk_event_kind kind, const void *event) {
    bool old = files->page_ns == 0 || is_old(files, files->page_ns);
    if (kind == STK_EVENT_VERDICT) {
        /* After an epoch a deadline may be near, and the page exists already. */
        return old && (files->page_ns == 0 || files->history.view.in_epoch);
    }
    return kind == STK_EVENT_ATTEMPT && ((const stk_event_attempt *)event)->ended && old;
}

static void runfiles_take(void *user, stk_event_kind kind, const void *event) {
    stk_runfiles *files = user;
    if (kind == STK_EVENT_PROGRESS) {
        return;
    }
    if (kind == STK_EVENT_START) {
        files->start_ns = ((const stk_event_start *)event)->start_ns;
    }
    pass_on(files, kind, event);
    if (kind == STK_EVENT_START) {
        take_start(files, event);
    } else if (kind == STK_EVENT_EPOCH) {
        take_epoch(files);
    } else if (kind == STK_EVENT_BAD_IMAGE) {
        take_bad_image(files, event);
    } else if (kind == STK_EVENT_STOP) {
        take_stop(files, event);
    } else if (page_is_due(files, kind, event)) {
        write_page_timed(files);
    }
}

/* ---- the header's functions ---- */

/* The tables of epochs and of bad images. */
static stk_status open_tables(stk_runfiles *files, bool again, stk_error *err) {
    stk_status status = write_results(files, err);
    if (status == STK_OK && !(again && stk_path_is_file(files->bad_path))) {
        status =
            stk_file_write(files->bad_path, bad_images_header, sizeof bad_images_header - 1, err);
    }
    STK_THEN(status, stk_lines_open(files->bad_path, &files->bad_fd, err));
    if (status == STK_OK) {
        files->bad_lines = (stk_lines){.fd = files->bad_fd, .name = files->bad_path};
    }
    return status;
}

/* Makes the files that exist from the start, so that a folder that cannot be written shows now. */
static stk_status open_files(stk_runfiles *files, bool again, stk_error *err) {
    stk_status status = files->supervised ? STK_OK : open_tables(files, again, err);
    STK_THEN(status, files->how.owner_only
                         ? stk_lines_open_private(files->events_path, &files->events_fd, err)
                         : stk_lines_open(files->events_path, &files->events_fd, err));
    if (status == STK_OK) {
        stk_jsonl_config config = {.fd = files->events_fd, .name = files->events_path};
        status = stk_jsonl_new(&files->jsonl, &config, err);
    }
    return status;
}

/* Everything but the files themselves. */
static stk_status make_files(stk_runfiles **out, const char *run_dir, stk_error *err) {
    stk_runfiles *files = stk_mem_new(1, sizeof *files);
    if (files == NULL) {
        return STK_FAIL_MEMORY(err, run_dir);
    }
    files->events_fd = -1;
    files->bad_fd = -1;
    files->start_ns = stk_process_own_start_ns(); /* until the start event says better */
    stk_run_history_open(&files->history);
    stk_event_sink_open(&files->sink, runfiles_take, files);
    files->run_dir = stk_mem_strdup(run_dir);
    files->results_path = stk_path_join(run_dir, "results.csv");
    files->bad_path = stk_path_join(run_dir, "bad_images.csv");
    files->events_path = stk_path_join(run_dir, "events.jsonl");
    files->summary_path = stk_path_join(run_dir, "summary.json");
    files->plot_path = stk_path_join(run_dir, stk_canvas_has_png() ? "results.png" : "results.svg");
    bool named = files->run_dir != NULL && files->results_path != NULL && files->bad_path != NULL &&
                 files->events_path != NULL && files->summary_path != NULL &&
                 files->plot_path != NULL;
    if (!named) {
        stk_runfiles_free(files);
        return STK_FAIL_MEMORY(err, run_dir);
    }
    *out = files;
    return STK_OK;
}

static stk_status begin_files(stk_runfiles **out, const char *run_dir, bool supervised,
                              stk_error *err) {
    stk_runfiles *files = NULL;
    stk_status status = make_files(&files, run_dir, err);
    if (status == STK_OK) {
        files->supervised = supervised;
        files->how.owner_only = supervised;
        status = open_files(files, false, err);
    }
    if (status != STK_OK) {
        stk_runfiles_free(files);
        return status;
    }
    *out = files;
    return STK_OK;
}

stk_status stk_runfiles_new(stk_runfiles **out, const char *run_dir, stk_error *err) {
    return begin_files(out, run_dir, false, err);
}

stk_status stk_runfiles_new_supervised(stk_runfiles **out, const char *run_dir, stk_error *err) {
    return begin_files(out, run_dir, true, err);
}

/*
 * Reads what earlier processes have written, which belongs to the page as well. Epochs come from
 * results.csv or, where that is missing, unreadable or has fewer rows, from the events.
 */
static stk_status recall(stk_runfiles *files, const stk_resume_point *point, stk_error *err) {
    stk_replay replay = {.observer = &files->history.sink.observer,
                         .at = stk_run_history_set_time_s,
                         .user = &files->history};
    stk_event_epoch *rows = NULL;
    size_t count = 0;
    stk_status status = stk_path_is_file(files->events_path)
                            ? stk_replay_file(&replay, files->events_path, err)
                            : STK_OK;
    bool begun = point->epoch > 0 || point->fold > 0;
    files->table_rebuilt = begun && !stk_path_is_file(files->results_path);
    if (status != STK_OK || files->table_rebuilt) {
        return status;
    }
    status = stk_earlier_rows(files->results_path, point, &rows, &count, err);
    files->table_rebuilt =
        (status == STK_OK || status == STK_ERR_DATA) && count < files->history.row_count;
    if (files->table_rebuilt) {
        stk_error_clear(err);
        status = STK_OK;
    }
    if (status == STK_OK && !files->table_rebuilt &&
        !stk_run_history_take_rows(&files->history, rows, count)) {
        status = STK_FAIL_MEMORY(err, files->results_path);
    }
    stk_mem_free(rows);
    return status;
}

stk_status stk_runfiles_resume(stk_runfiles **out, const char *run_dir,
                               const stk_resume_point *point, double *last_t, stk_error *err) {
    stk_runfiles *files = NULL;
    stk_status status = make_files(&files, run_dir, err);
    STK_THEN(status, stk_earlier_lines(files->bad_path, err));
    STK_THEN(status, stk_earlier_events(files->events_path, point, last_t, err));
    STK_THEN(status, recall(files, point, err));
    STK_THEN(status, open_files(files, true, err));
    if (status != STK_OK) {
        stk_runfiles_free(files);
        return status;
    }
    *out = files;
    return STK_OK;
}

bool stk_runfiles_table_was_gone(const stk_runfiles *files, size_t *rows) {
    *rows = files->history.row_count;
    return files->table_rebuilt;
}

int stk_runfiles_models(const stk_runfiles *files) {
    const stk_event_submission *last = files->history.view.submission;
    return last != NULL && last->models > 0 ? last->models : 0;
}

void stk_runfiles_free(stk_runfiles *files) {
    if (files == NULL) {
        return;
    }
    stk_jsonl_free(files->jsonl);
    stk_tfevents_free(files->tfevents);
    if (files->events_fd >= 0) {
        (void)stk_disk_close(files->events_fd, files->events_path);
    }
    if (files->bad_fd >= 0) {
        (void)stk_disk_close(files->bad_fd, files->bad_path);
    }
    stk_mem_free(files->run_dir);
    stk_mem_free(files->results_path);
    stk_mem_free(files->bad_path);
    stk_mem_free(files->events_path);
    stk_mem_free(files->summary_path);
    stk_mem_free(files->plot_path);
    stk_mem_free(files->title);
    stk_run_history_close(&files->history);
    stk_page_pictures_free(&files->pictures);
    stk_mem_free(files);
}

stk_status stk_runfiles_add_tensorboard(stk_runfiles *files, const stk_resume_point *point,
                                        stk_error *err) {
    char *folder = stk_path_join(files->run_dir, "tensorboard");
    if (folder == NULL) {
        return STK_FAIL_MEMORY(err, files->run_dir);
    }
    stk_tfevents_config config = {.folder = folder,
                                  .fold = point != NULL ? point->fold : 0,
                                  .steps_done = point != NULL ? point->steps_done : 0};
    stk_status status = stk_tfevents_new(&files->tfevents, &config, err);
    stk_mem_free(folder);
    return status;
}

const stk_observer *stk_runfiles_observer(stk_runfiles *files) {
    return &files->sink.observer;
}

/* Reads validation.csv and makes thumbnails, the slowest part of the page, within the time left. */
static void finish_pictures(stk_runfiles *files, double spare_s, stk_store *store) {
    int64_t start = stk_clock_ns();
    stk_page_pictures *pictures = &files->pictures;
    stk_page_pictures_read(
        pictures, files->run_dir, &files->history,
        (size_t)fmin(fmax(spare_s, 0.1) * VALIDATION_BYTES_PER_S, MOST_VALIDATION_BYTES), NULL);
    double left_s = fmin(spare_s - stk_clock_since_s(start), MOST_THUMBS_S);
    if (pictures->known && store != NULL && left_s > 0) {
        stk_thumbs_make(&pictures->thumbs, &pictures->confusion, store, stk_clock_in(left_s));
    }
}

void stk_runfiles_finish(stk_runfiles *files, double spare_s, stk_store *store) {
    if (files->error.status != STK_OK && !files->supervised) {
        note(files, LACKS_RESULTS,
             write_results(files, &files->error)); /* a disk that was full may have room again */
    }
    files->page_at_stop = !(spare_s < 0);
    if (files->page_at_stop && files->history.row_count > 0 && !files->plot_is_new) {
        draw_plot(files);
    }
    if (files->page_at_stop) {
        finish_pictures(files, spare_s, store);
    }
}

double stk_runfiles_draw_s(const stk_runfiles *files) {
    return files->draw_s;
}

void stk_runfiles_set_moment_ns(stk_runfiles *files, int64_t moment_ns) {
    files->moment_ns = moment_ns;
    stk_jsonl_set_moment_ns(files->jsonl, moment_ns);
}

stk_status stk_runfiles_summary_error(const stk_runfiles *files, stk_error *err) {
    return stk_error_pass(&files->summary_error, err);
}

bool stk_runfiles_lacking(const stk_runfiles *files, stk_str *text) {
    static const char *const names[] = {"rows of results.csv",
                                        "rows of bad_images.csv",
                                        "lines of events.jsonl",
                                        "TensorBoard's events",
                                        "the plot",
                                        "report.html",
                                        "summary.json"};
    const char *before = "files of the run folder could not be written (";
    for (size_t i = 0; i < STK_COUNT(names); i++) {
        if ((files->lacking & (1U << i)) != 0) {
            stk_str_appendf(text, "%s%s", before, names[i]);
            before = ", ";
        }
    }
    if (files->lacking != 0) {
        stk_str_appendf(text, "): %s", files->error.message);
    }
    return files->lacking != 0;
}
