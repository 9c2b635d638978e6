/*
 * write.h - writes report.html of a run folder, for a run that goes on and for `stoker report`.
 *
 * The page is made by page.h from the run's history and from files of the folder: args.json,
 * args.yaml and, read before by stk_page_pictures_read, validation.csv. Threads: safe.
 */
#ifndef STK_REPORT_PAGE_WRITE_H
#define STK_REPORT_PAGE_WRITE_H

#include "base/files/file.h"
#include "report/page/confusion.h"
#include "report/state/run_history.h"
#include "report/page/thumbs.h"

/* validation.csv and thumbnails of its worst pictures; starts zeroed. */
typedef struct stk_page_pictures {
    bool known; /* validation.csv was read */
    stk_confusion confusion;
    stk_thumbs thumbs;
} stk_page_pictures;

/*
 * Reads validation.csv in place of what was read before. `known` is false if the file is missing,
 * damaged or larger than most_bytes, and where the run has no classes. *why (or NULL) says that it
 * is damaged or too large.
 */
void stk_page_pictures_read(stk_page_pictures *pictures, const char *run_dir,
                            const stk_run_history *history, size_t most_bytes, stk_error *why);
void stk_page_pictures_free(stk_page_pictures *pictures);

/*
 * Replaces the file (NULL: report.html of the run folder) in one step, as `how` says. The page
 * leaves out files of the folder that are missing or damaged.
 */
STK_CHECKED stk_status stk_page_write(const char *run_dir, const char *file,
                                      const stk_file_how *how, const stk_run_history *history,
                                      const stk_page_pictures *pictures, stk_error *err);

#endif
