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

#endif
