/* sections.h - inside the report room: the sections of report.html that have plots. */
#ifndef STK_REPORT_PAGE_SECTIONS_H
#define STK_REPORT_PAGE_SECTIONS_H

#include "report/page/page.h"

/* Each function appends one section, or nothing where there is nothing to show. */

/* curves.c: loss, accuracy, learning rate and speed over epochs. */
STK_CHECKED stk_status stk_page_put_curves(const stk_run_history *history, stk_str *out,
                                           stk_error *err);

/* curves.c: where the time of training went, as one bar. */
STK_CHECKED stk_status stk_page_put_times(const stk_times *times, stk_str *out, stk_error *err);

/* curves.c: the budget as one bar: used, left, reserve. */
STK_CHECKED stk_status stk_page_put_budget(const stk_summary *summary, bool ended, stk_str *out,
                                           stk_error *err);

/* curves.c: throughput, the GPU and the host over time. */
STK_CHECKED stk_status stk_page_put_timelines(const stk_run_history *history, stk_str *out,
                                              stk_error *err);

/* matrix.c: which classes were taken for which, and the worst pictures. */
STK_CHECKED stk_status stk_page_put_confusion(const stk_page *page, stk_str *out, stk_error *err);

#endif
