/*
 * verdict.h - why a training is as fast as it is, by rules in one table.
 *
 * Pure: evidence goes in, a verdict with its sentence and remedies comes out. Rules are tried in
 * the table's order and the first that fits decides; thresholds stand beside them and in
 * docs/verdicts.md, and each rule has a test. Threads: safe, nothing is kept.
 */
#ifndef STK_MONITOR_VERDICT_H
#define STK_MONITOR_VERDICT_H

#include <stoker/events.h>

#include "monitor/rates.h"

typedef enum stk_verdict_kind {
    STK_VERDICT_UNKNOWN, /* too little was seen */
    STK_VERDICT_FINE,
    STK_VERDICT_STORAGE,   /* storage-bound */
    STK_VERDICT_DECODE,    /* decode-bound */
    STK_VERDICT_COPY,      /* copy-bound */
    STK_VERDICT_LAUNCH,    /* launch-bound: the device waits between small pieces of work */
    STK_VERDICT_COMPUTE,   /* compute-bound */
    STK_VERDICT_MEMORY,    /* memory-bound batch */
    STK_VERDICT_THROTTLED, /* throttled GPU */
    STK_VERDICT_NEIGHBOUR, /* noisy neighbour */
    STK_VERDICT_WARMING,   /* first-epoch cache warm-up */
    STK_VERDICT_COUNT
} stk_verdict_kind;

/* What a stretch of training showed. NaN or -1: not known. */
typedef struct stk_evidence {
    double seconds;           /* how long it was */
    int64_t steps;            /* in it */
    double images_per_second; /* of the steps, waiting included */
    stk_times times;          /* of it */
    stk_rates rates;          /* by the loader's counters and the device's own time; what is in
                                 times.other_s is no part of step and fixed_s: it is added here */
    bool is_gpu;
    bool is_foreign; /* a command that Stoker supervises: seen from outside, and its flags are not
                        ours; steps may be -1 */
    /* The loader */
    bool may_tune_workers; /* their number was left to Stoker, which adds some by itself */
    int prefetch;          /* batches per worker */
    double storage_share;  /* of the workers' waiting and reading: 0 decoding limits, 1 storage */
    bool is_remote;        /* every read has a long way */
    bool has_cache;        /* of encoded or decoded pictures */
    bool is_staged;        /* tar shards near by */
    bool first_epoch;      /* not everything can be in a cache yet */
    double cache_hits;     /* share of the reads, 0 to 1 */
    double cache_room;     /* bytes that a cache in memory may take; NaN: not known */
    /* The GPU, means of the samples */
    double gpu_util;         /* percent */
    double sm_activity;      /* percent */
    double gpu_memory_used;  /* bytes */
    double gpu_memory_total; /* bytes */
    double gpu_clock;        /* share of the highest, 0 to 1 */
    const char *throttled;   /* what holds the clock down: "power, heat"; "" or NULL: nothing */
    double throttled_share;  /* of the samples */
    /* The host, means of the samples */
    double cpu;            /* percent of the cores that this process may use, by anybody */
    double cpu_own;        /* percent of them, by this process */
    double iowait;         /* percent */
    const char *precision; /* "fp16" */
    int64_t largest_batch; /* that fits into the device's memory; -1: not known */
} stk_evidence;

/* Room for the texts that the event points into. */
typedef struct stk_verdict {
    stk_verdict_kind kind;
    stk_event_verdict event; /* its texts are here or static */
    char text[768];
    char evidence[320];
    char batch[200];
    char remedy_texts[STK_MOST_REMEDIES][96];
    char remedy_flags[STK_MOST_REMEDIES][96];
} stk_verdict;

/* Fills *verdict in, which must stay where it is while its event is used. */
void stk_verdict_judge(const stk_evidence *evidence, bool first, stk_verdict *verdict);

/* "decode-bound". */
const char *stk_verdict_name(stk_verdict_kind kind);

#endif
