/*
 * page.h - a run as one HTML page: report.html.
 *
 * The page needs nothing but itself: no script, no outside picture, font or style. It says first
 * what is slow and what to do about it, then how the run went. Texts of a run (paths, class names,
 * reasons) are foreign and are escaped. A section without content is left out, except the verdict.
 * Threads: safe, nothing is stored.
 */
#ifndef STK_REPORT_PAGE_PAGE_H
#define STK_REPORT_PAGE_PAGE_H

#include "base/str.h"
#include "base/text/json.h"
#include "report/page/confusion.h"
#include "report/state/run_history.h"
#include "report/page/thumbs.h"

/* All pointers are borrowed. A part of the page whose pointer is NULL is not shown. */
typedef struct stk_page {
    const char *name;               /* of the run */
    const stk_run_history *history; /* never NULL */
    const stk_json *args;           /* args.json */
    const char *args_yaml;          /* the text of args.yaml, which has the reasons */
    bool has_submission;            /* the run folder has a submission.csv */
    const stk_confusion *confusion;
    const stk_thumbs *thumbs; /* of confusion->worst */
} stk_page;

/* Appends the page. */
STK_CHECKED stk_status stk_page_put(const stk_page *page, stk_str *out, stk_error *err);

/*
 * The sections with plots, only for page.c. Each function appends one section, or nothing where
 * there is nothing to show.
 */

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
