/*
 * storage_probe.h - measures how fast a location delivers pictures, for several numbers of reads in
 * flight.
 *
 * Pictures of the location are read whole, in random order, each once as long as there are enough.
 * Each step keeps another number of reads in flight. Threads: one measurement at a time,
 * since reads compete.
 */
#ifndef STK_PROBE_STORAGE_PROBE_H
#define STK_PROBE_STORAGE_PROBE_H

#include <stoker/stop.h>

#include "probe/storage_figures.h"
#include "storage/storage.h"

typedef struct stk_storage_question {
    const char *data;         /* folder or address */
    stk_store *store;         /* borrowed: the open location; NULL: it is opened with `storage` */
    const char *const *paths; /* of pictures, borrowed; NULL: the location is searched */
    size_t path_count;        /* at least 1 with paths */
    bool once;                /* read each path at most once, in order, and end with the last */
    stk_storage_options storage;  /* an automatic cache is off: it would hide the storage */
    stk_in_flight_list in_flight; /* numbers to try, in this order */
    bool stop_when_flat;          /* end when more reads in flight bring nothing */
    double seconds;               /* for all steps together, about */
    double wanted;                /* objects per second */
    const stk_events *events;     /* receive warnings about skipped folders; may be NULL */
} stk_storage_question;

typedef struct stk_storage_findings {
    stk_storage_step steps[STK_STORAGE_STEPS_MOST];
    size_t step_count; /* at least 1 */
    stk_storage_choice choice;
    int64_t objects;         /* pictures found; listing ends at about 200,000 */
    double list_s;           /* seconds of opening and listing the location */
    double mean_bytes;       /* of the objects that were read */
    int64_t reads;           /* successful reads, also between steps */
    int64_t failed;          /* reads that failed after every retry */
    int64_t begun;           /* reads that were begun, abandoned ones included */
    stk_error first_failure; /* status STK_OK without one */
    int64_t threads;         /* I/O threads at the end */
    stk_store_counters counters;
} stk_storage_findings;

/*
 * Measures. An outage, or a location that refuses most reads, is an error; a few failed reads are
 * only counted. A request to stop gives STK_ERR_STOPPED.
 */
STK_CHECKED stk_status stk_probe_storage(const stk_storage_question *question, const stk_stop *stop,
                                         stk_storage_findings *findings, stk_error *err);

#endif
