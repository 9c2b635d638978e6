/*
 * run_status.c - a run's files, read from their end.
 *
 * An event that says how the run stands may lie far back (a verdict of an hour ago). So the end of
 * events.jsonl is searched in larger and larger pieces for the last line of each kind. Only lines
 * of a kind that is still missing are parsed, which makes the search cheap. The lines that were
 * found are then fed to the view in the order of the file, as if there were no others.
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
#include "report/state/replay.h"

#define FIRST_PIECE ((size_t)1 << 18)
#define LARGEST_PIECE ((size_t)1 << 25)
#define CURVE_PIECE ((uint64_t)1 << 23) /* more than an hour of a run */
#define HEAD_PIECE ((size_t)1 << 16)    /* the first start event lies within it */
#define FOLLOW_PIECE ((size_t)1 << 22)
#define KIND_WITHIN 80 /* bytes of a line that hold its time and its kind */
#define MOST_JSON_BYTES ((size_t)1 << 20)
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

/* Whether events of a kind say how a run stands. Other lines are skipped, and their time does not
 * count as the last one of the run. */
static bool is_looked_for(stk_event_kind kind) {
    return stk_event_forms[kind].name != NULL && kind != STK_EVENT_CHECKPOINT &&
           kind != STK_EVENT_BAD_IMAGE;
}

/* The kind of a line, by its beginning; STK_EVENT_KINDS: none that is looked for. */
static stk_event_kind kind_of(const char *line, size_t length) {
    static const char key[] = "\"event\": \"";
    const char *at = memmem(line, length < KIND_WITHIN ? length : KIND_WITHIN, key, sizeof key - 1);
    if (at == NULL) {
        return STK_EVENT_KINDS;
    }
    at += sizeof key - 1;
    size_t left = length - (size_t)(at - line);
    for (stk_event_kind kind = 0; kind < STK_EVENT_KINDS; kind++) {
        const char *name = is_looked_for(kind) ? stk_event_forms[kind].name : "";
        size_t size = strlen(name);
        if (size > 0 && size < left && memcmp(at, name, size) == 0 && at[size] == '"') {
            return kind;
        }
    }
    return STK_EVENT_KINDS;
}

static stk_json *parse(const char *line, size_t length) {
    stk_json *object = NULL;
    return stk_json_parse(line, length, &object, NULL) == STK_OK &&
                   stk_json_kind_of(object) == STK_JSON_OBJECT
               ? object
               : (stk_json_free(object), NULL);
}

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

static void list_ended_attempts(stk_run_status *status) {
    status->ended_count = 0;
    for (int i = 0; i < status->view.attempt_count; i++) {
        if (status->view.attempts[i].ended) {
            status->ended[status->ended_count++] = status->view.attempts[i];
        }
    }
}

void stk_run_status_take(stk_run_status *status, const char *line, size_t length) {
    stk_event_kind kind = kind_of(line, length);
    if (kind < STK_EVENT_KINDS && feed_line(status, line, length)) {
        if (kind == STK_EVENT_STEP && status->with_curve && status->view.step != NULL) {
            stk_curve_add(&status->losses, status->view.step->loss);
        }
        list_ended_attempts(status);
    }
}

/* ---- the search from the end ---- */

/* What one walk towards the beginning of a piece has found. */
typedef struct back_walk {
    struct {
        const char *text;
        size_t length;
    } * lines; /* owned: the lines to feed, the last of the file first */
    size_t count;
    size_t capacity;
    bool found[STK_EVENT_KINDS];
    bool found_best; /* an epoch that was the best */
    bool started;    /* the start of the last process: an earlier one has written what is before */
    bool launched;   /* the start of the last attempt: steps before it belong to an earlier one */
    bool complete;   /* nothing is left to look for */
    bool failed;     /* no memory */
} back_walk;

/* Kinds whose last event counts also when an earlier process has emitted it. */
static bool outlives_its_process(stk_event_kind kind) {
    return kind == STK_EVENT_EPOCH || kind == STK_EVENT_SUBMISSION;
}

/* Whether a line that stands before all lines found so far says something new. */
static bool is_wanted(const back_walk *walk, stk_event_kind kind) {
    if (kind == STK_EVENT_KINDS || (walk->started && !outlives_its_process(kind))) {
        return false;
    }
    return kind == STK_EVENT_ATTEMPT ||
           (!walk->found[kind] && !(kind == STK_EVENT_STEP && walk->launched)) ||
           (kind == STK_EVENT_EPOCH && !walk->found_best);
}

static bool is_true(const stk_json *object, const char *key) {
    return stk_json_bool(stk_json_get(object, key), false);
}

static void add_line(back_walk *walk, const char *line, size_t length) {
    void *grown = stk_mem_grow(walk->lines, &walk->capacity, walk->count + 1, sizeof *walk->lines);
    if (grown == NULL) {
        walk->failed = true;
        return;
    }
    walk->lines = grown;
    walk->lines[walk->count].text = line;
    walk->lines[walk->count++].length = length;
}

/* Looks at a line that stands before all lines found so far. */
static void look_at_line(back_walk *walk, const char *line, size_t length) {
    stk_event_kind kind = kind_of(line, length);
    stk_json *object = is_wanted(walk, kind) ? parse(line, length) : NULL;
    if (object == NULL) {
        return;
    }
    bool first_epoch = kind == STK_EVENT_EPOCH && !walk->found[kind];
    bool best_epoch = kind == STK_EVENT_EPOCH && is_true(object, "best");
    if (kind != STK_EVENT_EPOCH || first_epoch || best_epoch) {
        add_line(walk, line, length);
    }
    walk->found[kind] = true;
    walk->found_best = walk->found_best || best_epoch;
    walk->started = walk->started || kind == STK_EVENT_START;
    walk->launched = walk->launched || (kind == STK_EVENT_ATTEMPT && !is_true(object, "ended"));
    stk_json_free(object);
    walk->complete = walk->found_best;
    for (stk_event_kind k = 0; k < STK_EVENT_KINDS; k++) {
        bool over = walk->found[k] || (walk->started && !outlives_its_process(k));
        walk->complete = walk->complete && (over || !is_looked_for(k));
    }
}

/* Goes through the whole lines of a piece, the last first. */
static void walk_back(back_walk *walk, const char *text, size_t size, bool from_start) {
    const char *end = memrchr(text, '\n', size);
    while (end != NULL && !walk->complete) {
        const char *before = memrchr(text, '\n', (size_t)(end - text));
        const char *line = before != NULL ? before + 1 : text;
        if (before != NULL || from_start) { /* otherwise it may be the end of a line */
            look_at_line(walk, line, (size_t)(end - line));
        }
        end = before;
    }
}

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

/* The first start event of the file, which lies before all that the search has read. */
static void take_first_start(stk_run_status *status, const char *line, size_t length) {
    if (status->view.start == NULL && kind_of(line, length) == STK_EVENT_START) {
        (void)feed_line(status, line, length);
    }
}

static void take_loss(stk_run_status *status, const char *line, size_t length) {
    stk_json *object = kind_of(line, length) == STK_EVENT_STEP ? parse(line, length) : NULL;
    if (object != NULL) {
        stk_curve_add(&status->losses, stk_json_number(stk_json_get(object, "loss"), NAN));
        stk_json_free(object);
    }
}

static void forget_all(stk_run_status *status) {
    stk_run_view_close(&status->view);
    status->ended_count = 0;
    status->losses = (stk_curve){0};
    status->last_t = NAN;
    status->at = 0;
}

/* Feeds what the search has found, in the order of the file. */
static stk_status feed_found(stk_run_status *status, const char *path, const back_walk *walk,
                             stk_error *err) {
    stk_bytes head = {0};
    stk_status result = STK_OK;
    if (!walk->found[STK_EVENT_START]) {
        result = stk_file_read_part(path, 0, HEAD_PIECE, &head, err);
        if (result == STK_OK) {
            each_line(status, (const char *)head.data, head.size, take_first_start);
        }
    }
    for (size_t i = walk->count; i > 0; i--) {
        (void)feed_line(status, walk->lines[i - 1].text, walk->lines[i - 1].length);
    }
    list_ended_attempts(status);
    stk_bytes_free(&head);
    return walk->failed && result == STK_OK ? STK_FAIL_MEMORY(err, path) : result;
}

/* Everything that a file of `size` bytes has to say. */
static stk_status read_end(stk_run_status *status, const char *path, uint64_t size,
                           stk_error *err) {
    stk_bytes bytes = {0};
    stk_status result = STK_OK;
    back_walk walk = {0};
    forget_all(status);
    for (size_t piece = FIRST_PIECE;; piece *= 4) {
        piece = piece < LARGEST_PIECE ? piece : LARGEST_PIECE;
        uint64_t offset = size > piece ? size - piece : 0;
        stk_mem_free(walk.lines);
        walk = (back_walk){0};
        result = stk_file_read_part(path, offset, (size_t)(size - offset), &bytes, err);
        if (result != STK_OK) {
            break;
        }
        walk_back(&walk, (const char *)bytes.data, bytes.size, offset == 0);
        const char *end = memrchr(bytes.data, '\n', bytes.size);
        status->at = end != NULL ? offset + (size_t)(end - (const char *)bytes.data) + 1 : offset;
        if (walk.complete || offset == 0 || piece == LARGEST_PIECE) {
            break;
        }
    }
    if (result == STK_OK) {
        result = feed_found(status, path, &walk, err);
    }
    if (result == STK_OK && status->with_curve) {
        uint64_t offset = status->at > CURVE_PIECE ? status->at - CURVE_PIECE : 0;
        result = stk_file_read_part(path, offset, (size_t)(status->at - offset), &bytes, err);
        if (result == STK_OK) { /* half a line at the beginning is no event */
            each_line(status, (const char *)bytes.data, bytes.size, take_loss);
        }
    }
    stk_mem_free(walk.lines);
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
    char *path = stk_path_join(status->folder, name);
    char *text = NULL;
    size_t size = 0;
    stk_json *json = NULL;
    if (path != NULL && stk_file_read(path, MOST_JSON_BYTES, &text, &size, NULL) == STK_OK) {
        json = parse(text, size);
    }
    stk_mem_free(text);
    stk_mem_free(path);
    return json;
}

static bool has_file(const stk_run_status *status, const char *name) {
    char *path = stk_path_join(status->folder, name);
    bool has = path != NULL && stk_path_is_file(path);
    stk_mem_free(path);
    return has;
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
        list_ended_attempts(status);
        stk_json_free(summary);
    }
    status->epochs_done = count_rows(status, "results.csv");
    status->bad_images = count_rows(status, "bad_images.csv");
    status->resumable = has_file(status, "state/train.safetensors");
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
    size_t length = strlen(folder);
    while (length > 1 && folder[length - 1] == '/') {
        length--;
    }
    status->folder = stk_mem_strndup(folder, length);
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
                          "%s holds no training run: it has no events.jsonl; give the folder that "
                          "`stoker train` has written",
                          status->folder);
    } else if (status->inode != (uint64_t)info.st_ino || (uint64_t)info.st_size < status->at) {
        /* New to us, or written anew by a process that goes on with the run. */
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

const stk_event_step *stk_run_status_step(const stk_run_status *status) {
    return status->view.is_current[STK_EVENT_STEP] ? status->view.step : NULL;
}

const stk_event_sample *stk_run_status_sample(const stk_run_status *status) {
    return status->view.is_current[STK_EVENT_SAMPLE] ? status->view.sample : NULL;
}

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

/* The fold that is trained, from 0; -1: none yet. */
static int fold_now(const stk_run_status *status) {
    const stk_event_step *step = stk_run_status_step(status);
    const stk_event_epoch *epoch = status->view.epoch;
    return step != NULL && step->fold >= 0 ? step->fold : epoch != NULL ? epoch->fold : -1;
}

/* What a supervised command has beside or instead of what a training has. */
static void add_command(const stk_run_status *status, stk_summary *summary) {
    const stk_run_view *view = &status->view;
    summary->command = stk_run_view_command(view);
    if (summary->command == NULL) {
        summary->attempts = NULL;
        summary->attempt_count = 0;
        return;
    }
    summary->attempts = status->ended;
    summary->attempt_count = status->ended_count;
    if (end_of(status) == NULL) {
        const stk_event_step *step = stk_run_status_step(status);
        const stk_event_attempt *last = view->attempt;
        bool known = view->is_current[STK_EVENT_ATTEMPT];
        summary->exit_code = -1;
        summary->epochs_done = step != NULL && step->epoch > 0 ? step->epoch - 1 : -1;
        summary->folds_done = -1;
        summary->batch = known && last->batch <= INT32_MAX ? (int)last->batch : -1;
        summary->workers = known ? last->workers : -1;
    }
}

/* The summary of a run that has not ended. */
static stk_summary summary_so_far(const stk_run_status *status) {
    const stk_run_view *view = &status->view;
    const stk_any_event unknown = stk_event_unknown(STK_EVENT_START);
    const stk_event_start *start = view->start != NULL ? view->start : &unknown.start;
    const stk_event_step *step = stk_run_status_step(status);
    const stk_event_sample *sample = stk_run_status_sample(status);
    const stk_event_epoch *epoch = view->epoch;
    double best = view->best != NULL ? view->best->val_acc1 : NAN;
    bool best_is_metric = status->metric != NULL && stk_str_equal(status->metric, "acc1");
    return (stk_summary){
        .best_acc1 = best,
        .metric = status->metric,
        .best_metric = best_is_metric ? best : NAN,
        .epochs_done = (int)status->epochs_done,
        .folds_done = fold_now(status), /* the folds before it are done */
        .folds_planned = start->folds,
        .oof_acc1 = NAN,
        .oof_metric = NAN,
        .images_per_second = step != NULL    ? step->images_per_second
                             : epoch != NULL ? epoch->images_per_second
                                             : NAN,
        .wait_fraction = step != NULL    ? step->wait_fraction
                         : epoch != NULL ? epoch->wait_fraction
                                         : NAN,
        .budget_s = start->budget_s,
        .used_s = stk_run_status_used_s(status),
        .reserve_s = view->is_current[STK_EVENT_PLAN] ? view->plan->reserve_s : NAN,
        .batch = start->batch,
        .workers = sample != NULL && sample->workers >= 0 ? sample->workers : start->workers,
        .prefetch = start->prefetch,
        .device = start->device,
        .precision = start->precision,
        .bad_images = status->bad_images,
        .verdict = view->is_current[STK_EVENT_VERDICT] ? view->verdict->name : NULL,
        .submission = has_file(status, "submission.csv") ? "submission.csv" : NULL,
    };
}

void stk_run_status_summary(const stk_run_status *status, stk_summary *summary) {
    const stk_summary *end = end_of(status);
    *summary = end != NULL ? *end : summary_so_far(status);
    add_command(status, summary);
}

const char *stk_run_status_verdict(const stk_run_status *status) {
    const stk_run_view *view = &status->view;
    const stk_summary *end = end_of(status);
    const char *text = view->is_current[STK_EVENT_VERDICT] ? view->verdict->text : NULL;
    return text != NULL ? text : end != NULL ? end->verdict : NULL;
}
