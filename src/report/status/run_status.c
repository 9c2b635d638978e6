/*
 * run_status.c - a run's files, read from their end.
 *
 * The end of events.jsonl is searched in larger and larger pieces until nothing is missing
 * (last_lines.h). Later calls read on from where the last one stopped.
 */
#include "report/status/run_status.h"

#include <errno.h>
#include <math.h>
#include <string.h>
#include <sys/stat.h>

#include "base/error.h"
#include "base/files/disk.h"
#include "base/files/file.h"
#include "base/mem.h"
#include "report/state/last_lines.h"
#include "report/state/replay.h"

#define FIRST_PIECE ((size_t)1 << 18)
#define LARGEST_PIECE ((size_t)1 << 25)
#define CURVE_PIECE ((uint64_t)1 << 23) /* more than an hour of a run */
#define HEAD_PIECE ((size_t)1 << 16)    /* the first start events lie within it */
#define FOLLOW_PIECE ((size_t)1 << 22)
#define MOST_TABLE_BYTES ((size_t)1 << 24)

void stk_curve_add(stk_curve *curve, double value) {
    if (!isfinite(value)) {
        return;
    }
    if (curve->count == STK_CURVE_POINTS) {
        for (int i = 0; i < STK_CURVE_POINTS / 2; i++) {
            curve->points[i] = (curve->points[2 * i] + curve->points[2 * i + 1]) / 2;
        }
        curve->count = STK_CURVE_POINTS / 2;
        curve->stride = curve->stride > 0 ? 2 * curve->stride : 2;
    }
    curve->sum += value;
    curve->summed++;
    if (curve->summed >= curve->stride) {
        curve->points[curve->count++] = (float)(curve->sum / curve->summed);
        curve->sum = 0;
        curve->summed = 0;
    }
}

/* ---- lines ---- */

/* Sets the time of the event that follows; for stk_replay.at. */
static void set_time(void *user, double t) {
    stk_run_status *status = user;
    status->last_t = t;
    status->view.now_s = t;
}

/* Feeds one line to the view; false when it is no event. */
static bool feed_line(stk_run_status *status, const char *line, size_t length) {
    stk_event_sink sink;
    stk_event_sink_open(&sink, stk_run_view_take, &status->view);
    stk_replay replay = {.observer = &sink.observer, .at = set_time, .user = status};
    return stk_replay_line(&replay, line, length);
}

/* Feeds summary.json to the view as the stop of the run. */
static void feed_summary(stk_run_status *status, const stk_json *summary) {
    stk_event_sink sink;
    stk_event_sink_open(&sink, stk_run_view_take, &status->view);
    stk_replay replay = {.observer = &sink.observer};
    stk_replay_summary(&replay, summary);
}

void stk_run_status_take(stk_run_status *status, const char *line, size_t length) {
    stk_event_kind kind = stk_event_line_kind(line, length);
    if (stk_last_lines_want(kind) && feed_line(status, line, length) && kind == STK_EVENT_STEP &&
        status->with_curve && status->view.step != NULL) {
        stk_curve_add(&status->losses, status->view.step->loss);
    }
}

/* ---- the search from the end ---- */

/* Calls take for each whole line of a piece; returns the bytes of these lines. */
static size_t each_line(stk_run_status *status, const char *text, size_t size,
                        void (*take)(stk_run_status *status, const char *line, size_t length)) {
    const char *line = text;
    const char *end;
    while ((end = memchr(line, '\n', size - (size_t)(line - text))) != NULL) {
        take(status, line, (size_t)(end - line));
        line = end + 1;
    }
    return (size_t)(line - text);
}

/* The start events at the head of the file, before all that the search has read; the last one, with
 * the model that was chosen, counts. */
static void take_first_start(stk_run_status *status, const char *line, size_t length) {
    if (stk_event_line_kind(line, length) == STK_EVENT_START) {
        (void)feed_line(status, line, length);
    }
}

static void take_loss(stk_run_status *status, const char *line, size_t length) {
    stk_json *object = NULL;
    if (stk_event_line_kind(line, length) == STK_EVENT_STEP &&
        stk_json_parse(line, length, &object, NULL) == STK_OK) {
        stk_curve_add(&status->losses, stk_json_number(stk_json_get(object, "loss"), NAN));
        stk_json_free(object);
    }
}

static void forget_all(stk_run_status *status) {
    stk_run_view_close(&status->view);
    status->losses = (stk_curve){0};
    status->last_t = NAN;
    status->at = 0;
}

/* Feeds what the search has found, in the order of the file. */
static stk_status feed_found(stk_run_status *status, const char *path, const stk_last_lines *last,
                             stk_error *err) {
    stk_bytes head = {0};
    stk_status result = STK_OK;
    if (!last->found[STK_EVENT_START]) {
        result = stk_file_read_part(path, 0, HEAD_PIECE, &head, err);
        if (result == STK_OK) {
            each_line(status, (const char *)head.data, head.size, take_first_start);
        }
    }
    for (size_t i = last->count; i > 0; i--) {
        (void)feed_line(status, last->lines[i - 1].text, last->lines[i - 1].length);
    }
    stk_bytes_free(&head);
    return last->failed && result == STK_OK ? STK_FAIL_MEMORY(err, path) : result;
}

/* Reads events.jsonl, which has `size` bytes, from its end. */
static stk_status read_end(stk_run_status *status, const char *path, uint64_t size,
                           stk_error *err) {
    stk_bytes bytes = {0};
    stk_status result = STK_OK;
    stk_last_lines last = {0};
    forget_all(status);
    for (size_t piece = FIRST_PIECE;; piece *= 4) {
        piece = piece < LARGEST_PIECE ? piece : LARGEST_PIECE;
        uint64_t offset = size > piece ? size - piece : 0;
        stk_last_lines_free(&last);
        result = stk_file_read_part(path, offset, (size_t)(size - offset), &bytes, err);
        if (result != STK_OK) {
            break;
        }
        stk_last_lines_search(&last, (const char *)bytes.data, bytes.size, offset == 0);
        const char *end = memrchr(bytes.data, '\n', bytes.size);
        status->at = end != NULL ? offset + (size_t)(end - (const char *)bytes.data) + 1 : offset;
        if (last.complete || offset == 0 || piece == LARGEST_PIECE) {
            break;
        }
    }
    STK_THEN(result, feed_found(status, path, &last, err));
    if (result == STK_OK && status->with_curve) {
        uint64_t offset = status->at > CURVE_PIECE ? status->at - CURVE_PIECE : 0;
        result = stk_file_read_part(path, offset, (size_t)(status->at - offset), &bytes, err);
        if (result == STK_OK) { /* half a line at the beginning is no event */
            each_line(status, (const char *)bytes.data, bytes.size, take_loss);
        }
    }
    stk_last_lines_free(&last);
    stk_bytes_free(&bytes);
    return result;
}

/* What was added since the last call. */
static stk_status read_on(stk_run_status *status, const char *path, uint64_t size, stk_error *err) {
    stk_bytes bytes = {0};
    stk_status result = STK_OK;
    while (result == STK_OK && status->at < size) {
        size_t wanted =
            size - status->at < FOLLOW_PIECE ? (size_t)(size - status->at) : FOLLOW_PIECE;
        result = stk_file_read_part(path, status->at, wanted, &bytes, err);
        size_t taken = result == STK_OK ? each_line(status, (const char *)bytes.data, bytes.size,
                                                    stk_run_status_take)
                                        : 0;
        status->at += taken;
        if (taken == 0) {
            break; /* half a line: the rest comes later */
        }
    }
    stk_bytes_free(&bytes);
    return result;
}

/* ---- files ---- */

/* A small JSON file of the folder; NULL where there is none that can be read. */
static stk_json *read_json(const stk_run_status *status, const char *name) {
    stk_json *json = NULL;
    if (stk_json_read_in(status->folder, name, &json, NULL) == STK_OK &&
        stk_json_kind_of(json) != STK_JSON_OBJECT) {
        stk_json_free(json);
        json = NULL;
    }
    return json;
}

/* Rows below the header of a table; -1: there is no such file. */
static int64_t count_rows(const stk_run_status *status, const char *name) {
    char *path = stk_path_join(status->folder, name);
    char *text = NULL;
    size_t size = 0;
    int64_t lines = 0;
    if (path != NULL && stk_file_read(path, MOST_TABLE_BYTES, &text, &size, NULL) == STK_OK) {
        for (size_t i = 0; i < size; i++) {
            lines += text[i] == '\n';
        }
    }
    stk_mem_free(text);
    stk_mem_free(path);
    return lines - 1;
}

/* The files beside events.jsonl. A run that goes on has no end yet: its summary.json is that of an
 * earlier process. */
static void read_others(stk_run_status *status) {
    stk_json *summary = status->running ? NULL : read_json(status, "summary.json");
    if (summary != NULL) {
        feed_summary(status, summary);
        stk_json_free(summary);
    }
    status->epochs_done = count_rows(status, "results.csv");
    status->bad_images = count_rows(status, "bad_images.csv");
    status->resumable = stk_path_has_file(status->folder, STK_SAVED_STATE_FILE);
    if (status->metric == NULL) {
        stk_json *args = read_json(status, "args.json");
        const char *metric = stk_json_string(stk_json_get(args, "metric"));
        status->metric = metric != NULL ? stk_mem_strdup(metric) : NULL;
        stk_json_free(args);
    }
}

stk_status stk_run_status_open(stk_run_status *status, const char *folder, bool with_curve,
                               stk_error *err) {
    *status = (stk_run_status){.pid = -1,
                               .since_ns = -1,
                               .epochs_done = -1,
                               .bad_images = -1,
                               .last_t = NAN,
                               .silent_s = NAN,
                               .with_curve = with_curve};
    status->folder = stk_path_trim(folder);
    return status->folder != NULL ? STK_OK : STK_FAIL_MEMORY(err, "a path");
}

void stk_run_status_close(stk_run_status *status) {
    forget_all(status);
    stk_mem_free(status->metric);
    stk_mem_free(status->folder);
    memset(status, 0, sizeof *status);
}

stk_status stk_run_status_read(stk_run_status *status, int64_t now_ns, stk_error *err) {
    struct stat info;
    char *path = stk_path_join(status->folder, "events.jsonl");
    if (path == NULL) {
        return STK_FAIL_MEMORY(err, "a path");
    }
    stk_status result = STK_OK;
    bool is_dir = stk_path_is_dir(status->folder);
    if (stk_path_check_answer(status->folder, err) != STK_OK) {
        result = STK_ERR_STORAGE;
    } else if (!is_dir) {
        result = STK_FAIL(err, STK_ERR_USAGE, "%s: there is no such folder", status->folder);
    } else if (stk_disk_look(path, &info) != 0 && errno != ENOENT) {
        result = STK_FAIL(err, STK_ERR_STORAGE, "cannot read %s: %s", path, stk_disk_reason(errno));
    } else if (stk_disk_look(path, &info) != 0) {
        result = STK_FAIL(err, STK_ERR_USAGE,
                          "%s holds no run: it has no events.jsonl; give the folder of a `stoker "
                          "train` or `stoker run`",
                          status->folder);
    } else if (status->inode != (uint64_t)info.st_ino || (uint64_t)info.st_size < status->at) {
        /* Not read before, or written anew by a process that resumed the run. */
        status->inode = (uint64_t)info.st_ino;
        result = read_end(status, path, (uint64_t)info.st_size, err);
    } else {
        result = read_on(status, path, (uint64_t)info.st_size, err);
    }
    if (result == STK_OK) {
        double written_s = (double)info.st_mtim.tv_sec + (double)info.st_mtim.tv_nsec * 1e-9;
        status->silent_s = fmax((double)now_ns * 1e-9 - written_s, 0);
        read_others(status);
    }
    if (result == STK_OK && status->view.failed) {
        result = STK_FAIL_MEMORY(err, path);
    }
    stk_mem_free(path);
    return result;
}

/* ---- the state of the run ---- */

/* How the run ended; NULL: it goes on, or was killed. */
static const stk_summary *end_of(const stk_run_status *status) {
    bool ended = !status->running && stk_run_view_has_ended(&status->view);
    return ended ? status->view.summary : NULL;
}

const char *stk_run_status_state(const stk_run_status *status) {
    return status->running ? "running" : end_of(status) != NULL ? "ended" : "killed";
}

double stk_run_status_used_s(const stk_run_status *status) {
    const stk_summary *end = end_of(status);
    if (end != NULL) {
        return end->used_s;
    }
    return status->running ? status->last_t + status->silent_s : status->last_t;
}

stk_summary stk_run_status_summary(const stk_run_status *status) {
    const stk_run_facts facts = {.running = status->running,
                                 .epochs_done = status->epochs_done,
                                 .bad_images = status->bad_images,
                                 .best_acc1 = NAN,
                                 .used_s = stk_run_status_used_s(status),
                                 .metric = status->metric,
                                 .has_submission =
                                     stk_path_has_file(status->folder, "submission.csv")};
    return stk_run_summary(&status->view, &facts);
}

const char *stk_run_status_verdict(const stk_run_status *status) {
    const stk_event_verdict *verdict = stk_run_view_verdict(&status->view);
    const stk_summary *end = end_of(status);
    const char *text = verdict != NULL ? verdict->text : NULL;
    return text != NULL ? text : end != NULL ? end->verdict : NULL;
}
