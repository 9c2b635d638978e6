/*
 * run_status.h - how a run stands, from the end of what it has written.
 *
 * Serves who looks at a run from outside: `stoker status`, `stoker stop`, `stoker top`. The last
 * line of each kind of event is kept as it was read, so that what a run tells can be asked for by
 * the names of docs/run-folder.md; what is not there is not known. Files may be long, be written
 * to, or end within a line: reading is bounded and takes what is whole. Threads: one at a time.
 */
#ifndef STK_REPORT_STATUS_RUN_STATUS_H
#define STK_REPORT_STATUS_RUN_STATUS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <stoker/events.h>

#include "base/str.h"
#include "base/text/json.h"

/* Kinds of events that are kept; those up to STK_TOLD_STOP are of the last process alone. */
typedef enum stk_told {
    STK_TOLD_PLAN,
    STK_TOLD_DECISION,
    STK_TOLD_WARNING,
    STK_TOLD_STEP,
    STK_TOLD_SAMPLE,
    STK_TOLD_VERDICT,
    STK_TOLD_ATTEMPT,
    STK_TOLD_STOP,
    STK_TOLD_START,
    STK_TOLD_EPOCH,
    STK_TOLD_BEST, /* an epoch that was the best so far */
    STK_TOLD_SUBMISSION,
    STK_TOLD_KINDS
} stk_told;

/* Losses of the steps in order, made fewer by taking means of neighbours as they become many. */
#define STK_CURVE_POINTS 512
typedef struct stk_curve {
    float points[STK_CURVE_POINTS];
    int count;
    int stride; /* losses to a point; 0 counts as 1 */
    double sum; /* of those that make no whole point yet */
    int summed; /* how many they are */
} stk_curve;

/* Attempts of a supervised command that are kept, the last ones. */
#define STK_STATUS_ATTEMPTS 64

void stk_curve_add(stk_curve *curve, double value);

typedef struct stk_run_status {
    char *folder; /* owned */
    /* What the folder's lock says, set by who has looked at it: */
    bool running;
    int64_t pid;      /* -1: not known */
    int64_t since_ns; /* wall clock; -1: not known */
    char host[65];    /* of the process where it is not of this machine; "": it is */
    /* What was read: */
    stk_json *told[STK_TOLD_KINDS];                  /* owned; NULL: none of this kind was told */
    stk_event_attempt attempts[STK_STATUS_ATTEMPTS]; /* that have ended, in order */
    stk_json *attempt_events[STK_STATUS_ATTEMPTS];   /* owned; what has their texts */
    int attempt_count;
    stk_json *summary;   /* owned; summary.json, or NULL */
    char *metric;        /* owned; of args.json, or NULL */
    int64_t epochs_done; /* rows of results.csv; -1: not known */
    int64_t bad_images;  /* rows of bad_images.csv; -1: not known */
    double last_t;       /* of the last event: seconds of the run; NaN: none */
    double silent_s;     /* since something was written last; NaN: not known */
    bool resumable;      /* there is a state to go on from */
    stk_curve losses;    /* empty unless it was asked for */
    bool with_curve;
    uint64_t inode; /* of events.jsonl: another one is read anew */
    uint64_t at;    /* bytes of it that were read; they end with a line */
} stk_run_status;

/* `with_curve`: the losses of the last hours are wanted. */
STK_CHECKED stk_status stk_run_status_open(stk_run_status *status, const char *folder,
                                           bool with_curve, stk_error *err);
void stk_run_status_close(stk_run_status *status);

/*
 * Reads what there is, or since the last call what is new. A folder without events is
 * STK_ERR_USAGE: it holds no run. `now_ns` is the wall clock.
 */
STK_CHECKED stk_status stk_run_status_read(stk_run_status *status, int64_t now_ns, stk_error *err);

/* Takes one line of events.jsonl, without its end; one that cannot be read is passed over. */
void stk_run_status_take(stk_run_status *status, const char *line, size_t length);

/* "running", "ended" or "killed". */
const char *stk_run_status_state(const stk_run_status *status);

/* A value of the last event of a kind; NaN, -1 and NULL where it is not known. */
double stk_told_number(const stk_run_status *status, stk_told kind, const char *key);
int64_t stk_told_count(const stk_run_status *status, stk_told kind, const char *key);
const char *stk_told_text(const stk_run_status *status, stk_told kind, const char *key);

/* The command that is supervised; NULL: a run of our own. */
const char *stk_run_status_command(const stk_run_status *status);

/* Seconds that the run has taken until now; NaN: not known. */
double stk_run_status_used_s(const stk_run_status *status);

/* What summary.json says, or would say by now. Texts are the status's. */
void stk_run_status_summary(const stk_run_status *status, stk_summary *summary);

/* The last verdict in a sentence, or its name where there is no more; NULL: none was told. */
const char *stk_run_status_verdict(const stk_run_status *status);

/* Members of an open object: the keys of summary.json and those that say how the run stands. */
void stk_run_status_put(const stk_run_status *status, stk_json_writer *writer);

/* The first line for people, which says what becomes of the run, and all of them. */
void stk_run_status_headline(const stk_run_status *status, stk_str *out);
void stk_run_status_lines(const stk_run_status *status, stk_str *out);

#endif
