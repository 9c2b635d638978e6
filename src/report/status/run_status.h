/*
 * run_status.h - how a run stands, read from its folder by somebody outside.
 *
 * Serves `stoker status`, `stoker stop` and `stoker top`. The events that decide how the run stands
 * are found from the end of events.jsonl (last_lines.h) and reduced by run_view.h; the number of
 * epochs, the bad images and the end of the run come from the files beside it. Files may be long,
 * be written to meanwhile, or end within a line: reading is bounded and takes whole lines only.
 * Threads: one at a time.
 */
#ifndef STK_REPORT_STATUS_RUN_STATUS_H
#define STK_REPORT_STATUS_RUN_STATUS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/text/json.h"
#include "base/str.h"
#include "report/state/run_summary.h"

/* The saved state in a run folder: a run that has it can be resumed. */
#define STK_SAVED_STATE_FILE "state/train.safetensors"

/* Losses of the steps in order. When there are too many, neighbours are replaced by their mean. */
#define STK_CURVE_POINTS 512
typedef struct stk_curve {
    float points[STK_CURVE_POINTS];
    int count;
    int stride; /* losses per point; 0 counts as 1 */
    double sum; /* of the losses that do not fill a point yet */
    int summed; /* losses in `sum` */
} stk_curve;

void stk_curve_add(stk_curve *curve, double value);

typedef struct stk_run_status {
    char *folder; /* owned */

    /* What the folder's lock says; the caller sets it before each stk_run_status_read. */
    bool running;
    int64_t pid;      /* -1: not known */
    int64_t since_ns; /* wall clock; -1: not known */
    char host[65];    /* where the process runs; "": on this machine */

    /* What events.jsonl says, and summary.json where the run does not go on. */
    stk_run_view view;
    double last_t;    /* view.now_s, but NaN while there is no event */
    stk_curve losses; /* of the last hours; empty unless with_curve */
    bool with_curve;

    /* What other files of the folder say. */
    char *metric;        /* owned; of args.json, or NULL */
    int64_t epochs_done; /* rows of results.csv; -1: not known */
    int64_t bad_images;  /* rows of bad_images.csv; -1: not known */
    double silent_s;     /* since events.jsonl was written last; NaN: not known */
    bool resumable;      /* a saved state exists */

    /* How far events.jsonl was read. */
    uint64_t inode; /* of the file that was read; another file is read anew */
    uint64_t at;    /* bytes that were read; they end with a line */
} stk_run_status;

/* `with_curve`: the losses of the last hours are wanted. */
STK_CHECKED stk_status stk_run_status_open(stk_run_status *status, const char *folder,
                                           bool with_curve, stk_error *err);
void stk_run_status_close(stk_run_status *status);

/*
 * Reads the folder, or what is new in it since the last call. A folder without events.jsonl is
 * STK_ERR_USAGE: it holds no run. `now_ns` is the wall clock.
 */
STK_CHECKED stk_status stk_run_status_read(stk_run_status *status, int64_t now_ns, stk_error *err);

/* Takes one line of events.jsonl, without its line break; a line that is no event is skipped. */
void stk_run_status_take(stk_run_status *status, const char *line, size_t length);

/* "running", "ended" or "killed". */
const char *stk_run_status_state(const stk_run_status *status);

/* Seconds that the run has taken until now; NaN: not known. */
double stk_run_status_used_s(const stk_run_status *status);

/* What summary.json says, or would say by now. Texts point into the status. */
stk_summary stk_run_status_summary(const stk_run_status *status);

/* The last verdict as a sentence, or its name where no more is known; NULL: there was none. */
const char *stk_run_status_verdict(const stk_run_status *status);

/* Members of an open object: the keys of summary.json and those that say how the run stands. */
void stk_run_status_put(const stk_run_status *status, stk_json_writer *writer);

/* Appends lines for people: only the first, which says whether the run goes on; or all lines. */
void stk_run_status_headline(const stk_run_status *status, stk_str *out);
void stk_run_status_lines(const stk_run_status *status, stk_str *out);

#endif
