/*
 * report_runs.h - `stoker report`: reads run folders back and writes one page.
 *
 * One folder gives its report.html again; several give a comparison. The caller prints
 * the damage and the summary of each run. Threads: one at a time; the functions
 * of compare.c are safe.
 */
#ifndef STK_REPORT_PAGE_REPORT_RUNS_H
#define STK_REPORT_PAGE_REPORT_RUNS_H

#include <stoker/stop.h>

#include "report/state/run_read.h"

typedef struct stk_report_runs {
    stk_run_read *runs; /* owned; in the order of the folders */
    size_t count;
    char *page; /* owned: the file that was written */
} stk_report_runs;

/*
 * Reads the runs and writes the page: to `out` or, when that is NULL, to report.html of the one
 * run, or for several to compare.html in the current folder. `pictures`: the worst pictures are
 * read from the data set, for some seconds at most. `stop` ends the wait for the reader of a pipe.
 * After a failure *report is empty.
 */
STK_CHECKED stk_status stk_report_runs_make(stk_report_runs *report, const char *const *dirs,
                                            size_t count, const char *out, bool pictures,
                                            const stk_stop *stop, stk_error *err);
void stk_report_runs_free(stk_report_runs *report);

/* ---- compare.c: several runs side by side: a table for a terminal, a JSON object, a page ---- */

/* Appends two tables: the results of the runs, and the options in which they differ. */
STK_CHECKED stk_status stk_compare_text(const stk_run_read *runs, size_t count, stk_str *out,
                                        stk_error *err);

/* Writes the members "runs" and "options" of an open object. */
void stk_compare_json(const stk_run_read *runs, size_t count, stk_json_writer *writer);

/* Appends an HTML page with both tables, and with the curves of all runs in each plot. */
STK_CHECKED stk_status stk_compare_page(const stk_run_read *runs, size_t count, stk_str *out,
                                        stk_error *err);

#endif
