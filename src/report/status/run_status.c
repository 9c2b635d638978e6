/*
 * run_status.c - reading a run's files from their end.
 *
 * An event that says how the run stands may lie far back (a verdict of an hour ago), so that the
 * end of events.jsonl is looked at in larger and larger pieces until every kind was met. Only lines
 * of a kind that is still missing are parsed, which makes that cheap.
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
#define HEAD_PIECE ((size_t)1 << 16)    /* where the first start stands */
#define FOLLOW_PIECE ((size_t)1 << 22)
#define KIND_WITHIN 80 /* bytes of a line that hold its time and its kind */
#define MOST_JSON_BYTES ((size_t)1 << 20)
#define MOST_TABLE_BYTES ((size_t)1 << 24)

static const char *const kind_names[STK_TOLD_KINDS] = {
    [STK_TOLD_PLAN] = "plan",
    [STK_TOLD_DECISION] = "decision",
    [STK_TOLD_WARNING] = "warning",
    [STK_TOLD_STEP] = "step",
    [STK_TOLD_SAMPLE] = "sample",
    [STK_TOLD_VERDICT] = "verdict",
    [STK_TOLD_ATTEMPT] = "attempt",
    [STK_TOLD_STOP] = "stop",
    [STK_TOLD_START] = "start",
    [STK_TOLD_EPOCH] = "epoch",
    [STK_TOLD_SUBMISSION] = "submission",
};

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

/* The kind of a line, by its beginning; STK_TOLD_KINDS: none that is kept. */
static stk_told kind_of(const char *line, size_t length) {
    static const char key[] = "\"event\": \"";
    const char *at = memmem(line, length < KIND_WITHIN ? length : KIND_WITHIN, key, sizeof key - 1);
    if (at == NULL) {
        return STK_TOLD_KINDS;
    }
    at += sizeof key - 1;
    size_t left = length - (size_t)(at - line);
    for (stk_told kind = 0; kind < STK_TOLD_KINDS; kind++) {
        const char *name = kind_names[kind];
        size_t size = name != NULL ? strlen(name) : 0;
        if (size > 0 && size < left && memcmp(at, name, size) == 0 && at[size] == '"') {
            return kind;
        }
    }
    return STK_TOLD_KINDS;
}

static stk_json *parse(const char *line, size_t length) {
    stk_json *event = NULL;
    return stk_json_parse(line, length, &event, NULL) == STK_OK &&
                   stk_json_kind_of(event) == STK_JSON_OBJECT
               ? event
               : (stk_json_free(event), NULL);
}

static void forget(stk_run_status *status, stk_told kind) {
    stk_json_free(status->told[kind]);
    status->told[kind] = NULL;
}

static bool is_best(const stk_json *event) {
    return stk_json_bool(stk_json_get(event, "best"), false);
}

static bool has_ended(const stk_json *attempt) {
    return stk_json_bool(stk_json_get(attempt, "ended"), false);
}

static void forget_attempts(stk_run_status *status) {
    for (int i = 0; i < status->attempt_count; i++) {
        stk_json_free(status->attempt_events[i]);
    }
    status->attempt_count = 0;
}

/* Puts the end of an attempt behind the others; takes the event, which may be NULL. */
static void add_attempt(stk_run_status *status, stk_json *event) {
    if (event == NULL || status->attempt_count == STK_STATUS_ATTEMPTS) {
        stk_json_free(event);
        return;
    }
    status->attempts[status->attempt_count] = stk_replay_read_attempt(event);
    status->attempt_events[status->attempt_count++] = event;
}

static void drop_oldest_attempt(stk_run_status *status) {
    stk_json_free(status->attempt_events[0]);
    status->attempt_count--;
    memmove(status->attempts, status->attempts + 1,
            (size_t)status->attempt_count * sizeof *status->attempts);
    memmove(status->attempt_events, status->attempt_events + 1,
            (size_t)status->attempt_count * sizeof *status->attempt_events);
}

/* They were met from the last to the first. */
static void turn_attempts(stk_run_status *status) {
    for (int a = 0, b = status->attempt_count - 1; a < b; a++, b--) {
        stk_event_attempt attempt = status->attempts[a];
        stk_json *event = status->attempt_events[a];
        status->attempts[a] = status->attempts[b];
        status->attempt_events[a] = status->attempt_events[b];
        status->attempts[b] = attempt;
        status->attempt_events[b] = event;
    }
}

/* An attempt has begun, or has ended. */
static void take_attempt(stk_run_status *status, const stk_json *event, const char *line,
                         size_t length) {
    if (!has_ended(event)) {
        forget(status, STK_TOLD_STEP); /* it is the one before's */
        return;
    }
    if (status->attempt_count == STK_STATUS_ATTEMPTS) {
        drop_oldest_attempt(status);
    }
    add_attempt(status, parse(line, length));
}

void stk_run_status_take(stk_run_status *status, const char *line, size_t length) {
    stk_told kind = kind_of(line, length);
    stk_json *event = kind < STK_TOLD_KINDS ? parse(line, length) : NULL;
    if (event == NULL) {
        return;
    }
    if (kind == STK_TOLD_START) { /* what an earlier process told of itself is over */
        for (stk_told k = 0; k <= STK_TOLD_STOP; k++) {
            forget(status, k);
        }
        forget_attempts(status);
    }
    if (kind == STK_TOLD_ATTEMPT) {
        take_attempt(status, event, line, length);
    }
    if (kind == STK_TOLD_EPOCH && is_best(event)) {
        forget(status, STK_TOLD_BEST);
        status->told[STK_TOLD_BEST] = parse(line, length);
    }
    forget(status, kind);
    status->told[kind] = event;
    status->last_t = stk_json_number(stk_json_get(event, "t"), status->last_t);
    if (kind == STK_TOLD_STEP && status->with_curve) {
        stk_curve_add(&status->losses, stk_told_number(status, kind, "loss"));
    }
}

/* ---- from the end ---- */

/* What one walk towards the beginning has met. */
typedef struct back_walk {
    bool started;  /* the start of the last process: what is before it is an earlier one's */
    bool any;      /* some event */
    bool launched; /* the start of the last attempt: steps before it are an earlier one's */
    bool complete; /* there is nothing left to look for */
} back_walk;

/* Whether a line that stands before all that were taken says something new. */
static bool is_wanted(const stk_run_status *status, const back_walk *walk, stk_told kind) {
    if (kind == STK_TOLD_KINDS || (walk->started && kind <= STK_TOLD_START)) {
        return false;
    }
    return kind == STK_TOLD_ATTEMPT ||
           (status->told[kind] == NULL && !(kind == STK_TOLD_STEP && walk->launched)) ||
           (kind == STK_TOLD_EPOCH && status->told[STK_TOLD_BEST] == NULL);
}

/* Takes a line that stands before all that were taken. */
static void take_earlier(stk_run_status *status, back_walk *walk, const char *line, size_t length) {
    stk_told kind = kind_of(line, length);
    if (!is_wanted(status, walk, kind)) {
        return;
    }
    stk_json *event = parse(line, length);
    if (event == NULL) {
        return;
    }
    if (!walk->any) {
        status->last_t = stk_json_number(stk_json_get(event, "t"), NAN);
        walk->any = true;
    }
    walk->started = walk->started || kind == STK_TOLD_START;
    if (kind == STK_TOLD_EPOCH && status->told[STK_TOLD_BEST] == NULL && is_best(event)) {
        status->told[STK_TOLD_BEST] = parse(line, length);
    }
    if (kind == STK_TOLD_ATTEMPT && has_ended(event)) {
        add_attempt(status, parse(line, length));
    } else if (kind == STK_TOLD_ATTEMPT) {
        walk->launched = true;
    }
    if (status->told[kind] == NULL) {
        status->told[kind] = event;
    } else {
        stk_json_free(event);
    }
    walk->complete = true;
    for (stk_told k = 0; k < STK_TOLD_KINDS; k++) {
        walk->complete =
            walk->complete && (status->told[k] != NULL || (walk->started && k <= STK_TOLD_START));
    }
}

/* Goes through the whole lines of a piece, the last first. */
static void walk_back(stk_run_status *status, back_walk *walk, const char *text, size_t size,
                      bool from_start) {
    const char *end = memrchr(text, '\n', size);
    while (end != NULL && !walk->complete) {
        const char *before = memrchr(text, '\n', (size_t)(end - text));
        const char *line = before != NULL ? before + 1 : text;
        if (before != NULL || from_start) { /* otherwise it may be the end of a line */
            take_earlier(status, walk, line, (size_t)(end - line));
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

static void take_first_start(stk_run_status *status, const char *line, size_t length) {
    if (status->told[STK_TOLD_START] == NULL && kind_of(line, length) == STK_TOLD_START) {
        status->told[STK_TOLD_START] = parse(line, length);
    }
}

static void take_loss(stk_run_status *status, const char *line, size_t length) {
    stk_json *event = kind_of(line, length) == STK_TOLD_STEP ? parse(line, length) : NULL;
    if (event != NULL) {
        stk_curve_add(&status->losses, stk_json_number(stk_json_get(event, "loss"), NAN));
        stk_json_free(event);
    }
}

static void forget_all(stk_run_status *status) {
    for (stk_told kind = 0; kind < STK_TOLD_KINDS; kind++) {
        forget(status, kind);
    }
    forget_attempts(status);
    status->losses = (stk_curve){0};
    status->last_t = NAN;
    status->at = 0;
}

/* Everything that a file of `size` bytes has to say. */
static stk_status read_end(stk_run_status *status, const char *path, uint64_t size,
                           stk_error *err) {
    stk_bytes bytes = {0};
    stk_status result = STK_OK;
    back_walk walk = {0};
    forget_all(status);
    for (size_t piece = FIRST_PIECE; result == STK_OK && !walk.complete; piece *= 4) {
        piece = piece < LARGEST_PIECE ? piece : LARGEST_PIECE;
        uint64_t offset = size > piece ? size - piece : 0;
        forget_all(status);
        walk = (back_walk){0};
        result = stk_file_read_part(path, offset, (size_t)(size - offset), &bytes, err);
        if (result != STK_OK) {
            break;
        }
        walk_back(status, &walk, (const char *)bytes.data, bytes.size, offset == 0);
        const char *end = memrchr(bytes.data, '\n', bytes.size);
        status->at = end != NULL ? offset + (size_t)(end - (const char *)bytes.data) + 1 : offset;
        if (offset == 0 || piece == LARGEST_PIECE) {
            break;
        }
    }
    turn_attempts(status);
    if (result == STK_OK && status->told[STK_TOLD_START] == NULL) {
        result = stk_file_read_part(path, 0, HEAD_PIECE, &bytes, err);
        if (result == STK_OK) {
            each_line(status, (const char *)bytes.data, bytes.size, take_first_start);
        }
    }
    if (result == STK_OK && status->with_curve) {
        uint64_t offset = status->at > CURVE_PIECE ? status->at - CURVE_PIECE : 0;
        result = stk_file_read_part(path, offset, (size_t)(status->at - offset), &bytes, err);
        if (result == STK_OK) { /* half a line in front is no event */
            each_line(status, (const char *)bytes.data, bytes.size, take_loss);
        }
    }
    stk_bytes_free(&bytes);
    return result;
}

/* What was added since. */
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

/* What a run has beside its events. */
static void read_others(stk_run_status *status) {
    stk_json_free(status->summary);
    status->summary = read_json(status, "summary.json");
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
    stk_json_free(status->summary);
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
    stk_mem_free(path);
    return result;
}

/* ---- what it comes to ---- */

static const stk_json *member(const stk_run_status *status, stk_told kind, const char *key) {
    return stk_json_get(status->told[kind], key);
}

/* A whole number from 0 on; -1: it is none. */
static int64_t count_of(const stk_json *value) {
    uint64_t count = 0;
    return stk_json_u64(value, &count) ? (int64_t)count : -1;
}

double stk_told_number(const stk_run_status *status, stk_told kind, const char *key) {
    return stk_json_number(member(status, kind, key), NAN);
}

int64_t stk_told_count(const stk_run_status *status, stk_told kind, const char *key) {
    return count_of(member(status, kind, key));
}

const char *stk_told_text(const stk_run_status *status, stk_told kind, const char *key) {
    return stk_json_string(member(status, kind, key));
}

/* How it ended: the file, or where a kill came between both the event. */
static const stk_json *ended(const stk_run_status *status) {
    const stk_json *end = status->summary != NULL ? status->summary : status->told[STK_TOLD_STOP];
    return status->running ? NULL : end;
}

const char *stk_run_status_state(const stk_run_status *status) {
    return status->running ? "running" : ended(status) != NULL ? "ended" : "killed";
}

double stk_run_status_used_s(const stk_run_status *status) {
    const stk_json *end = ended(status);
    if (end != NULL) {
        return stk_json_number(stk_json_get(end, "used_s"), NAN);
    }
    return status->running ? status->last_t + status->silent_s : status->last_t;
}

static const char *text_of(const stk_json *end, const char *key) {
    return stk_json_string(stk_json_get(end, key));
}

static double number_of(const stk_json *end, const char *key) {
    return stk_json_number(stk_json_get(end, key), NAN);
}

static int int_of(const stk_json *end, const char *key) {
    int64_t count = count_of(stk_json_get(end, key));
    return count <= INT32_MAX ? (int)count : -1;
}

/* The fold that is trained, from 0; -1: none yet. */
static int64_t fold_now(const stk_run_status *status) {
    int64_t fold = stk_told_count(status, STK_TOLD_STEP, "fold");
    return fold >= 0 ? fold : stk_told_count(status, STK_TOLD_EPOCH, "fold");
}

const char *stk_run_status_command(const stk_run_status *status) {
    const char *told = text_of(ended(status), "command");
    const char *first = status->attempt_count > 0
                            ? status->attempts[0].command
                            : stk_told_text(status, STK_TOLD_ATTEMPT, "command");
    return told != NULL ? told : first;
}

/* What a supervised command has beside or instead of what a run of our own has. */
static void add_command(const stk_run_status *status, stk_summary *summary) {
    const stk_json *attempt = status->told[STK_TOLD_ATTEMPT];
    summary->command = stk_run_status_command(status);
    if (summary->command == NULL) {
        return;
    }
    summary->attempts = status->attempts;
    summary->attempt_count = status->attempt_count;
    if (ended(status) == NULL) {
        int64_t epoch = stk_told_count(status, STK_TOLD_STEP, "epoch");
        summary->exit_code = -1;
        summary->epochs_done = epoch > 0 ? (int)epoch - 1 : -1;
        summary->folds_done = -1;
        summary->batch = int_of(attempt, "batch");
        summary->workers = int_of(attempt, "workers");
    }
}

void stk_run_status_summary(const stk_run_status *status, stk_summary *summary) {
    const stk_json *end = ended(status);
    const stk_json *start = status->told[STK_TOLD_START];
    if (end != NULL) {
        *summary = stk_replay_read_summary(end);
        add_command(status, summary);
        return;
    }
    double best = stk_told_number(status, STK_TOLD_BEST, "val_acc1");
    stk_told rates = status->told[STK_TOLD_STEP] != NULL ? STK_TOLD_STEP : STK_TOLD_EPOCH;
    int workers = int_of(status->told[STK_TOLD_SAMPLE], "workers");
    *summary = (stk_summary){
        .best_acc1 = best,
        .metric = status->metric,
        .best_metric = status->metric != NULL && stk_str_equal(status->metric, "acc1") ? best : NAN,
        .epochs_done = (int)status->epochs_done,
        .folds_done = (int)fold_now(status), /* those before it are done */
        .folds_planned = int_of(start, "folds"),
        .oof_acc1 = NAN,
        .oof_metric = NAN,
        .images_per_second = stk_told_number(status, rates, "images_per_second"),
        .wait_fraction = stk_told_number(status, rates, "wait_fraction"),
        .budget_s = number_of(start, "budget_s"),
        .used_s = stk_run_status_used_s(status),
        .reserve_s = stk_told_number(status, STK_TOLD_PLAN, "reserve_s"),
        .batch = int_of(start, "batch"),
        .workers = workers >= 0 ? workers : int_of(start, "workers"),
        .prefetch = int_of(start, "prefetch"),
        .device = text_of(start, "device"),
        .precision = text_of(start, "precision"),
        .bad_images = status->bad_images,
        .verdict = stk_told_text(status, STK_TOLD_VERDICT, "name"),
        .submission = has_file(status, "submission.csv") ? "submission.csv" : NULL,
    };
    add_command(status, summary);
}

const char *stk_run_status_verdict(const stk_run_status *status) {
    const char *told = stk_told_text(status, STK_TOLD_VERDICT, "text");
    return told != NULL ? told : text_of(ended(status), "verdict");
}
