/*
 * record.h - what a report says of a run, gathered from its events and bounded in size.
 *
 * A record is an observer: a run that is going on tells it what happens, replay.h tells it what
 * happened. Samples become at most STK_RECORD_MOMENTS moments, each the mean of as many neighbours
 * as it takes; decisions, warnings and the like are kept up to STK_RECORD_NOTES of a kind and
 * counted beyond. Threads: one at a time.
 */
#ifndef STK_REPORT_STATE_RECORD_H
#define STK_REPORT_STATE_RECORD_H

#include <stddef.h>
#include <stdint.h>

#include <stoker/events.h>

#define STK_RECORD_MOMENTS 360
#define STK_RECORD_NOTES 100
#define STK_RECORD_CORES 256
#define STK_RECORD_ATTEMPTS 128

/* What is kept of a sample; units are those of stk_event_sample. */
typedef enum stk_gauge {
    STK_GAUGE_GPU_UTIL,
    STK_GAUGE_SM_ACTIVITY,
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
    STK_GAUGE_LOSS,      /* of the last step before the sample, as the next one */
    STK_GAUGE_STEP_RATE, /* images per second */
    STK_GAUGE_COUNT
} stk_gauge;

typedef struct stk_moment {
    double at_s;                    /* since the start of the run */
    double values[STK_GAUGE_COUNT]; /* NaN: not known */
} stk_moment;

/* Texts that live and go together. */
typedef struct stk_text_pool {
    char **texts; /* owned, as are they */
    size_t count;
    size_t capacity;
} stk_text_pool;

typedef enum stk_note_kind {
    STK_NOTE_DECISION,  /* what, why */
    STK_NOTE_WARNING,   /* what */
    STK_NOTE_VERDICT,   /* what: the line */
    STK_NOTE_BAD_IMAGE, /* what: the path; why: the reason */
    STK_NOTE_KINDS
} stk_note_kind;

typedef struct stk_note {
    double at_s;
    const char *what; /* never NULL */
    const char *why;  /* or NULL */
} stk_note;

typedef struct stk_notes {
    stk_note *items; /* owned; their texts are the record's */
    size_t count;
    size_t capacity;
    size_t told; /* with those beyond STK_RECORD_NOTES */
} stk_notes;

typedef struct stk_record {
    stk_observer observer; /* feeds it; user is the record */
    double now_s;          /* of the event that comes next, and so of the last one that came */
    bool started;
    stk_event_start start; /* the last one; its texts are kept */
    bool planned;
    stk_event_plan plan;   /* the last one */
    bool stepped;          /* since the last epoch ended */
    stk_event_step step;   /* the last one */
    stk_event_epoch *rows; /* owned: one per epoch, in the order of training */
    size_t row_count;
    size_t row_capacity;
    stk_event_attempt *attempts; /* owned; of a supervised command. Their texts are kept */
    int attempt_count;           /* STK_RECORD_ATTEMPTS at most; those behind are passed over */
    bool judged;
    stk_event_verdict verdict; /* the last one; its texts are kept */
    double verdict_s;          /* when that was */
    bool stopped;
    stk_summary summary; /* of the process that ended last; its texts are kept */
    stk_notes notes[STK_NOTE_KINDS];
    stk_moment *moments; /* owned: STK_RECORD_MOMENTS, made with the first sample */
    size_t moment_count;
    int64_t per_moment;             /* samples in each */
    stk_moment pending;             /* sums of the samples that are to be the next one */
    int64_t pending_count;          /* how many */
    int64_t known[STK_GAUGE_COUNT]; /* of these, by gauge */
    int64_t samples;                /* in all */
    int64_t throttled;              /* of these, where something held the clock down */
    const char *throttled_by;       /* the last such reason; kept */
    int core_count;
    double core_sums[STK_RECORD_CORES]; /* percent, over core_samples */
    int64_t core_samples;
    stk_text_pool start_texts;
    stk_text_pool verdict_texts;
    stk_text_pool summary_texts;
    stk_text_pool attempt_texts;
    stk_text_pool note_texts;
    stk_text_pool throttle_texts;
    bool failed; /* something could not be kept for want of memory */
} stk_record;

/* Must stay where it is while its observer is used. */
void stk_record_open(stk_record *record);
void stk_record_close(stk_record *record);

/* Says when the events that follow happened, in seconds since the start; for stk_replay.at. */
void stk_record_at(void *record, double now_s);

/*
 * Rows from elsewhere (results.csv) take the place of those that events told; what only events say
 * of an epoch, its times, is taken over. False without memory.
 */
bool stk_record_take_rows(stk_record *record, const stk_event_epoch *rows, size_t count);

/* Where the time of all training went so far; total_s is 0 when nothing is known. */
stk_times stk_record_times(const stk_record *record);

/*
 * The summary of a run that has stopped; otherwise, with a status of NULL, what is known so far.
 * Its texts are the record's.
 */
stk_summary stk_record_summary(const stk_record *record);

/* The command that was supervised, as one would type it; NULL: a run of our own. */
const char *stk_record_command(const stk_record *record);

/* 1 + the highest fold of the rows; 1 without any. */
int stk_record_folds(const stk_record *record);

/*
 * The best row: the last that was so at its time or, where nothing says which one was, that of the
 * highest accuracy. NULL without any, and with folds, each of which has its own.
 */
const stk_event_epoch *stk_record_best(const stk_record *record);

#endif
