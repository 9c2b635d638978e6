/*
 * run_history.h - inside the report room: what a report says of a run beyond its present state.
 *
 * A history is a view (run_view.h) and what happened over time: one row per epoch, the decisions,
 * warnings, verdicts and bad images, and the samples of the machine. It is an observer: a run that
 * is going on emits its events to it, or replay.h reads back those that events.jsonl has, which are
 * fewer steps and samples. Its memory is bounded: neighbouring samples are averaged until at most
 * STK_HISTORY_MOMENTS moments are left; of each kind of note STK_HISTORY_NOTES are stored and the
 * others only counted. Threads: one at a time.
 */
#ifndef STK_REPORT_STATE_RUN_HISTORY_H
#define STK_REPORT_STATE_RUN_HISTORY_H

#include <stddef.h>
#include <stdint.h>

#include "base/text/json.h"
#include "report/state/run_summary.h"

#define STK_HISTORY_MOMENTS 360
#define STK_HISTORY_NOTES 100
#define STK_HISTORY_CORES 256

/* The numbers of a sample that are stored; units are those of stk_event_sample. */
typedef enum stk_gauge {
    STK_GAUGE_GPU_UTIL,
    STK_GAUGE_SM_ACTIVITY,
    STK_GAUGE_JPEG_UTIL,
    STK_GAUGE_GPU_MEMORY_USED,
    STK_GAUGE_GPU_MEMORY_TOTAL,
    STK_GAUGE_GPU_MEMORY_OWN,
    STK_GAUGE_GPU_POWER,
    STK_GAUGE_GPU_TEMPERATURE,
    STK_GAUGE_GPU_CLOCK,
    STK_GAUGE_PCIE_IN,
    STK_GAUGE_PCIE_OUT,
    STK_GAUGE_CPU,
    STK_GAUGE_CPU_OWN,
    STK_GAUGE_IOWAIT,
    STK_GAUGE_RESIDENT,
    STK_GAUGE_MEMORY_USED,
    STK_GAUGE_DISK_READ,
    STK_GAUGE_DISK_WRITTEN,
    STK_GAUGE_NET_IN,
    STK_GAUGE_NET_OUT,
    STK_GAUGE_IMAGES_PER_SECOND,
    STK_GAUGE_WAIT_FRACTION,
    STK_GAUGE_BATCHES_READY,
    STK_GAUGE_SLOTS,
    STK_GAUGE_WORKERS,
    STK_GAUGE_LOSS,      /* of the last step before the sample */
    STK_GAUGE_STEP_RATE, /* of the last step before the sample: images per second */
    STK_GAUGE_COUNT
} stk_gauge;

typedef struct stk_moment {
    double at_s;                    /* seconds since the start of the run */
    double values[STK_GAUGE_COUNT]; /* NaN: not known */
} stk_moment;

typedef enum stk_note_kind {
    STK_NOTE_DECISION,  /* what, why */
    STK_NOTE_WARNING,   /* what */
    STK_NOTE_VERDICT,   /* what: the line */
    STK_NOTE_BAD_IMAGE, /* what: the path; why: the reason */
    STK_NOTE_KINDS
} stk_note_kind;

typedef struct stk_note {
    double at_s;      /* seconds since the start of the run */
    const char *what; /* owned by the history; never NULL */
    const char *why;  /* owned by the history; or NULL */
} stk_note;

typedef struct stk_notes {
    stk_note *items; /* owned: the first STK_HISTORY_NOTES at most */
    size_t count;
    size_t capacity;
    size_t total; /* all notes of this kind, including those that are not stored */
} stk_notes;

typedef struct stk_run_history {
    stk_event_sink sink; /* its observer feeds the history */
    stk_run_view view;
    stk_event_epoch *rows; /* owned: one per epoch, in the order of training */
    size_t row_count;
    size_t row_capacity;
    stk_notes notes[STK_NOTE_KINDS];
    stk_event_pool note_texts;
    stk_moment *moments; /* owned: STK_HISTORY_MOMENTS, made with the first sample */
    size_t moment_count;
    int64_t per_moment;                  /* samples in each moment */
    stk_moment pending;                  /* sums of the samples that will be the next moment */
    int64_t pending_count;               /* samples in `pending` */
    int64_t known[STK_GAUGE_COUNT];      /* samples in `pending` that know each gauge */
    int64_t samples;                     /* of the whole run */
    int64_t throttled;                   /* samples in which something held the GPU's clock down */
    stk_event_pool throttle_text;        /* owns throttled_by */
    const char *throttled_by;            /* the last reason of throttling, or NULL */
    int core_count;                      /* entries of core_sums */
    double core_sums[STK_HISTORY_CORES]; /* percent, summed over core_samples */
    int64_t core_samples;
    bool failed; /* something could not be stored for lack of memory */
} stk_run_history;

/* The history must stay where it is while its observer is used. */
void stk_run_history_open(stk_run_history *history);
void stk_run_history_close(stk_run_history *history);

/* Sets the time of the events that follow, in seconds since the start; for stk_replay.at. */
void stk_run_history_set_time_s(void *history, double now_s);

/*
 * Replaces the rows of the events by rows from elsewhere (results.csv). For an epoch that both
 * have, the planned epochs and the times stay those of the event: results.csv lacks them. False
 * without memory.
 */
bool stk_run_history_take_rows(stk_run_history *history, const stk_event_epoch *rows, size_t count);

/* Where the time of all training so far went; total_s is 0 when nothing is known. */
stk_times stk_run_history_times(const stk_run_history *history);

/* The summary by run_summary.h. `args` is args.json or NULL; `has_submission`: the run folder has a
 * submission.csv. The texts are those of the history and of args. */
stk_summary stk_run_history_summary(const stk_run_history *history, const stk_json *args,
                                    bool has_submission);

/* 1 + the highest fold of the rows; 1 without any. */
int stk_run_history_folds(const stk_run_history *history);

/*
 * The best epoch: the last row that is marked as the best or, if no row is, the row of the highest
 * validation accuracy. NULL without rows, and with several folds, since each has its own best.
 */
const stk_event_epoch *stk_run_history_best(const stk_run_history *history);

#endif
