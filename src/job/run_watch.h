/*
 * run_watch.h - runs seen from outside: which there are, how one stands, and asking it to end.
 *
 * Nothing here changes a run folder. A run is known by its lock: see stk_run_folder_owner().
 * Threads: safe, each with values of its own.
 */
#ifndef STK_JOB_RUN_WATCH_H
#define STK_JOB_RUN_WATCH_H

#include <stdbool.h>

#include <stoker/stop.h>

#include "options/options.h"
#include "report/status/run_status.h"

typedef struct stk_watch_options {
    const char *run; /* NULL: the newest */
} stk_watch_options;

typedef struct stk_stop_options {
    double wait_s;
} stk_stop_options;

typedef struct stk_top_options {
    bool once;
} stk_top_options;

extern const stk_option_table stk_watch_option_table;
extern const stk_option_table stk_stop_option_table;
extern const stk_option_table stk_top_option_table;

STK_CHECKED stk_status stk_options_for_status(stk_options **options, stk_error *err);
STK_CHECKED stk_status stk_options_for_stop(stk_options **options, stk_error *err);
STK_CHECKED stk_status stk_options_for_top(stk_options **options, stk_error *err);

/*
 * The run below runs/ that began last, of all or of those that run now: its folder, freed with
 * stk_mem_free. STK_ERR_USAGE where there is none.
 */
STK_CHECKED stk_status stk_watch_newest(bool running, char **folder, stk_error *err);

/* Looks who writes the run, and reads what is new in it. */
STK_CHECKED stk_status stk_watch_look(stk_run_status *status, stk_error *err);

typedef struct stk_stopped {
    bool already; /* nothing was asked: it did not run */
    bool gone;    /* it does not run any more */
    int64_t pid;  /* that was asked to end; -1: none */
    double waited_s;
} stk_stopped;

/*
 * Asks the process of a run to end, as SIGTERM does: it delivers what there is within ten seconds.
 * Then waits until it has ended, wait_s at most and only until `stop` (or NULL) is asked for. A
 * process of another machine or user is STK_ERR_USAGE.
 */
STK_CHECKED stk_status stk_watch_stop(const char *folder, double wait_s, const stk_stop *stop,
                                      stk_stopped *stopped, stk_error *err);

#endif
