/*
 * verdict.h - names what limits the speed of a training, with a sentence and remedies.
 *
 * Pure: evidence goes in, a verdict comes out. verdict.c has a table of rules; the first rule that
 * fits decides. docs/verdicts.md lists rules and thresholds for users, and each rule has tests.
 * Threads: safe.
 */
#ifndef STK_MONITOR_VERDICT_H
#define STK_MONITOR_VERDICT_H

#include <stoker/events.h>

#include "monitor/rates.h"

typedef enum stk_verdict_kind {
    STK_VERDICT_UNKNOWN, /* too few steps were measured */
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

/* What an interval of training showed. NaN or -1: unknown. Texts are borrowed. */
typedef struct stk_evidence {
    double seconds;           /* length of the interval */
    int64_t steps;            /* in the interval */
    double images_per_second; /* including the time that steps waited for data */
    stk_times times;          /* where the interval's time went */
    stk_rates rates;          /* measured by the loader and the device. step and fixed_s exclude
                                 times.other_s; stk_verdict_judge() adds it, and sets
                                 device_share from device_decoded */
    bool is_gpu;
    bool is_foreign; /* a supervised command: measured from outside; it does not have our flags;
                        steps may be -1 */
    /* The loader */
    bool may_tune_workers; /* the loader chooses the number of workers itself */
    int prefetch;          /* batches per worker */
    double storage_share;  /* what batches waited for: 0 only decoding, 1 only reading */
    bool is_remote;        /* data lies on a network location */
    bool has_cache;        /* pictures are cached, encoded or decoded */
    bool is_staged;        /* the data set is tar shards from `stoker stage` */
    bool first_epoch;      /* the cache cannot be complete yet */
    double cache_hits;     /* share of reads that the cache answered, 0 to 1 */
    double cache_room;     /* bytes that a cache in memory may take */
    /* Decoding on the device. All zero: it decodes nothing, and cannot. */
    double device_decoded; /* share of the pictures that it decoded, 0 to 1 */
    bool device_decodes;   /* it could decode pictures */
    bool device_used;      /* the run lets it decode them */
    int decode_engines;    /* its hardware engines for JPEG; 0: none, or not known */
    /* The GPU: means of the samples */
    double gpu_util;         /* percent */
    double sm_activity;      /* percent */
    double jpeg_util;        /* percent: its engines for JPEG */
    double gpu_memory_used;  /* bytes */
    double gpu_memory_total; /* bytes */
    double gpu_clock;        /* share of the highest clock, 0 to 1 */
    const char *throttled;   /* throttle reasons: "power, heat"; "" or NULL: none */
    double throttled_share;  /* share of samples with a throttle reason */
    /* The host: means of the samples */
    double cpu;            /* percent of the allowed cores, used by anybody */
    double cpu_own;        /* percent of the allowed cores, used by the run */
    double iowait;         /* percent */
    const char *precision; /* "fp16" */
    int64_t largest_batch; /* the largest that memory and data set allow; -1: unknown */
} stk_evidence;

/* A verdict with the texts that its event points to. */
typedef struct stk_verdict {
    stk_verdict_kind kind;
    stk_event_verdict event; /* its texts lie in this struct or are static */
    char text[896];          /* the sentence with remedies */
    char evidence[384];      /* the figures behind it */
    char batch[200];         /* what the first verdict says of the batch size */
    char remedy_texts[STK_MOST_REMEDIES][96];
    char remedy_flags[STK_MOST_REMEDIES][96];
} stk_verdict;

/*
 * Judges the evidence. `first`: a quick look after the first steps, whose preparations still
 * distort times.other_s and the samples. *verdict must not move while its event is used.
 */
void stk_verdict_judge(const stk_evidence *evidence, bool first, stk_verdict *verdict);

/* The name in events and files: "decode-bound". */
const char *stk_verdict_name(stk_verdict_kind kind);

#endif
