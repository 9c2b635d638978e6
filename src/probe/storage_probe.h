/*
 * storage_probe.h - how fast pictures can be read from a place, and with how many reads in flight.
 *
 * Pictures of the place are read whole, in random order and each once as far as there are enough,
 * with one number of reads in flight after the other. Threads: one measurement at a time, since
 * reads compete.
 */
#ifndef STK_PROBE_STORAGE_PROBE_H
#define STK_PROBE_STORAGE_PROBE_H

#include <stoker/stop.h>

#include "probe/storage_figures.h"
#include "storage/storage.h"

typedef struct stk_storage_question {
    const char *data;            /* folder or address */
    stk_store *store;            /* it is open already: borrowed; NULL: it is opened as below */
    const char *const *paths;    /* of pictures, borrowed; NULL: they are looked for in the place */
    size_t path_count;           /* at least 1 with paths */
    bool once;                   /* each at most once and in their order; ends with the last */
    stk_storage_options storage; /* a cache left to Stoker is none: it would hide the storage */
    stk_in_flight_list in_flight; /* what is tried, in this order */
    bool stop_when_flat;          /* do not go on when more in flight bring nothing */
    double seconds;               /* that all steps of the list take together, about */
    double wanted;                /* objects per second */
    const stk_events *events;     /* told which folders are no data; NULL is fine */
} stk_storage_question;

typedef struct stk_storage_findings {
    stk_storage_step steps[STK_STORAGE_STEPS_MOST];
    size_t step_count; /* at least 1 */
    stk_storage_choice choice;
    int64_t objects;         /* pictures that were found; more than some 100,000 are not listed */
    double list_s;           /* opening the place and listing them took so long */
    double mean_bytes;       /* of an object that was read */
    int64_t reads;           /* all that went well, also between steps */
    int64_t failed;          /* reads that failed after every retry */
    int64_t begun;           /* reads that were handed over, with those that nobody waited for */
    stk_error first_failure; /* status STK_OK without one */
    int64_t threads;         /* that served reads, at the end */
    stk_store_counters counters;
} stk_storage_findings;

/*
 * Measures. A place that is lost or that refuses most reads is an error, that of its reads; a few
 * failed reads are counted. A request to stop gives STK_ERR_STOPPED.
 */
STK_CHECKED stk_status stk_probe_storage(const stk_storage_question *question, const stk_stop *stop,
                                         stk_storage_findings *findings, stk_error *err);

#endif
