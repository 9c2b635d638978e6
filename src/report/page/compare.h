/*
 * compare.h - several runs side by side: a table for a terminal, a JSON object, a page.
 *
 * Threads: safe, nothing is stored.
 */
#ifndef STK_REPORT_PAGE_COMPARE_H
#define STK_REPORT_PAGE_COMPARE_H

#include "report/state/run_read.h"

/* Appends two tables: the results of the runs, and the options in which they differ. */
STK_CHECKED stk_status stk_compare_text(const stk_run_read *runs, size_t count, stk_str *out,
                                        stk_error *err);

/* Writes the members "runs" and "options" of an open object. */
void stk_compare_json(const stk_run_read *runs, size_t count, stk_json_writer *writer);

/* Appends an HTML page with both tables, and with the curves of all runs in each plot. */
STK_CHECKED stk_status stk_compare_page(const stk_run_read *runs, size_t count, stk_str *out,
                                        stk_error *err);

#endif
