/* write.h - report.html of a run folder, from a record and the files that lie beside it. */
#ifndef STK_REPORT_PAGE_WRITE_H
#define STK_REPORT_PAGE_WRITE_H

#include "base/files/file.h"
#include "report/page/confusion.h"
#include "report/state/run_history.h"
#include "report/page/thumbs.h"

/* What validation.csv says, and its worst pictures; starts zeroed. */
typedef struct stk_page_pictures {
    bool known; /* there was such a file */
    stk_confusion confusion;
    stk_thumbs thumbs;
} stk_page_pictures;

/*
 * Reads validation.csv in place of what was read before. Nothing is known afterwards where it is
 * missing, damaged or larger than most_bytes; why (or NULL) is told of the last two.
 */
void stk_page_pictures_read(stk_page_pictures *pictures, const char *run_dir, size_t most_bytes,
                            stk_error *why);
void stk_page_pictures_free(stk_page_pictures *pictures);

/*
 * Replaces the file (NULL: report.html of the run folder), as `how` says, in one step. Files of the
 * folder that are missing or damaged are left out of it.
 */
STK_CHECKED stk_status stk_page_write(const char *run_dir, const char *file,
                                      const stk_file_how *how, const stk_run_history *history,
                                      const stk_page_pictures *pictures, stk_error *err);

#endif
