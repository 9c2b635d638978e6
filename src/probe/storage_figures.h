/*
 * storage_figures.h - the arithmetic of `bench storage`: which numbers in flight are tried,
 * percentiles, and how many in flight are enough. No threads, no clock, no storage.
 */
#ifndef STK_PROBE_STORAGE_FIGURES_H
#define STK_PROBE_STORAGE_FIGURES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <stoker/status.h>

#define STK_IN_FLIGHT_MOST 4096
#define STK_STORAGE_STEPS_MOST 32

/* Figures of one step: a fixed number of reads in flight for a while. */
typedef struct stk_storage_step {
    int64_t in_flight;
    double objects_per_second;
    double bytes_per_second;
    double p50_ms; /* latency of a whole read; p50_ms to max_ms are NaN without a read */
    double p90_ms;
    double p99_ms;
    double max_ms;
    int64_t reads;  /* successful */
    int64_t failed; /* reads that failed after every retry */
    double seconds;
} stk_storage_step;

typedef struct stk_in_flight_list {
    int64_t numbers[STK_STORAGE_STEPS_MOST]; /* rising */
    size_t count;
} stk_in_flight_list;

/* 1, 2, 4 .. 512. */
stk_in_flight_list stk_in_flight_auto(void);

/* "1,8,64" in any order; STK_ERR_USAGE for anything else. */
STK_CHECKED stk_status stk_in_flight_parse(const char *text, stk_in_flight_list *list,
                                           stk_error *err);

/* The value that this share (0 to 1) of the sorted values does not exceed; NaN without values. */
double stk_percentile(const int64_t *sorted, size_t count, double share);

/* Whether the last two steps were not faster than the steps before them. */
bool stk_storage_is_flat(const stk_storage_step *steps, size_t count);

typedef struct stk_storage_choice {
    int64_t enough;         /* reads in flight for the wanted rate; 0: no step reached it */
    int64_t best_in_flight; /* fewest reads in flight that gave nearly the highest rate */
    double best_rate;       /* objects per second with best_in_flight */
    bool is_last;           /* best_in_flight is the largest number tried */
} stk_storage_choice;

/*
 * How many reads in flight give `wanted` objects per second. Between two steps the rate is assumed
 * to grow evenly with the reads in flight, as it does where latency limits. The steps'
 * numbers in flight rise; count is at least 1.
 */
stk_storage_choice stk_storage_choose(const stk_storage_step *steps, size_t count, double wanted);

#endif
