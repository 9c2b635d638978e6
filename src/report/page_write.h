/* page_write.h - report.html of a run folder, from a record and the files that lie beside it. */
#ifndef STK_REPORT_PAGE_WRITE_H
#define STK_REPORT_PAGE_WRITE_H

#include "report/record.h"

/* Replaces report.html in one step. Files that are missing or damaged are left out of it. */
STK_CHECKED stk_status stk_page_write(const char *run_dir, const stk_record *record,
                                      stk_error *err);

#endif
