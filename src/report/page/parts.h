/* parts.h - what the files of a page share: pieces of HTML, and the sections with plots. */
#ifndef STK_REPORT_PAGE_PARTS_H
#define STK_REPORT_PAGE_PARTS_H

#include "report/page/page.h"

#define STK_PAGE_UNKNOWN "–" /* stands for a value that is not known */

/* <section id="..."><h2>...</h2> and its end. */
void stk_page_open_section(stk_str *out, const char *id, const char *heading);
void stk_page_close_section(stk_str *out);

/* A cell of a table with foreign text (NULL: not known), or with a number. */
void stk_page_put_cell(stk_str *out, const char *text);
void stk_page_put_number_cell(stk_str *out, int decimals, double value);

/* Loss, accuracy, learning rate, speed over epochs. */
STK_CHECKED stk_status stk_page_put_curves(const stk_run_history *history, stk_str *out,
                                           stk_error *err);

/* Where the time went, as a bar that is 100 % wide. */
STK_CHECKED stk_status stk_page_put_times(const stk_times *times, stk_str *out, stk_error *err);

/* The budget: used, left, kept back. */
STK_CHECKED stk_status stk_page_put_budget(const stk_summary *summary, bool ended, stk_str *out,
                                           stk_error *err);

/* Throughput, the GPU and the host over time. */
STK_CHECKED stk_status stk_page_put_timelines(const stk_run_history *history, stk_str *out,
                                              stk_error *err);

/* What was taken for what, and the worst pictures. */
STK_CHECKED stk_status stk_page_put_confusion(const stk_page *page, stk_str *out, stk_error *err);

#endif
