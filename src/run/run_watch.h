/*
 * run_watch.h - runs seen from another process: which runs exist, how one stands, how to end one.
 *
 * These are the calls behind `stoker status`, `top` and `stop`. Nothing here changes a run folder.
 * Whether a run is running is known from its lock (stk_run_folder_owner()). Threads: safe as long
 * as no two share a value.
 */
#ifndef STK_RUN_RUN_WATCH_H
#define STK_RUN_RUN_WATCH_H

#include <stdbool.h>

#include <stoker/stop.h>

#include "options/options.h"
#include "report/status/run_status.h"

/* Options of verbs that look at one run. */
typedef struct stk_watch_options {
    const char *run; /* run folder; NULL: the newest run below runs/ */
} stk_watch_options;

typedef struct stk_stop_options {
    double wait_s; /* how long `stoker stop` waits for the end of the run */
} stk_stop_options;

typedef struct stk_top_options {
    bool once; /* show one picture and end */
} stk_top_options;

extern const stk_option_table stk_watch_option_table;
extern const stk_option_table stk_stop_option_table;
extern const stk_option_table stk_top_option_table;

STK_CHECKED stk_status stk_options_for_status(stk_options **options, stk_error *err);
STK_CHECKED stk_status stk_options_for_stop(stk_options **options, stk_error *err);
STK_CHECKED stk_status stk_options_for_top(stk_options **options, stk_error *err);

/*
 * Finds the folder below runs/ whose run began last; with `running` only among runs that are
 * running. Freed with stk_mem_free. STK_ERR_USAGE: there is none.
 */
STK_CHECKED stk_status stk_watch_newest(bool running, char **folder, stk_error *err);

/* Updates `status`: which process writes the run, and what is new in its files. */
STK_CHECKED stk_status stk_watch_look(stk_run_status *status, stk_error *err);

/* What stk_watch_stop() did. */
typedef struct stk_stopped {
    bool already;    /* the run had ended before; no signal was sent */
    bool gone;       /* the run has ended */
    int64_t pid;     /* the process that got the signal; -1: none */
    double waited_s; /* seconds for which its end was waited for */
} stk_stopped;

/*
 * Sends SIGTERM to the process of a run, which then delivers its submission and ends. Waits for its
 * end for wait_s at most, or until `stop` (may be NULL) is requested. STK_ERR_USAGE: the process
 * belongs to another machine or user.
 */
STK_CHECKED stk_status stk_watch_stop(const char *folder, double wait_s, const stk_stop *stop,
                                      stk_stopped *stopped, stk_error *err);

#endif
