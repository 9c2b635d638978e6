/*
 * runfiles.h - the observer that writes the files of a run folder.
 *
 * These are results.csv (one row per epoch), bad_images.csv, events.jsonl, summary.json,
 * results.png (results.svg in a build without cairo), report.html, and TensorBoard's files where
 * they are asked for. Whole files are replaced in one step and lines are appended with one write,
 * so that a kill at any moment leaves readable files. Callbacks cannot return an error: the
 * first error is stored, and later events are written all the same. Threads: that of the events.
 */
#ifndef STK_REPORT_RUNFILES_H
#define STK_REPORT_RUNFILES_H

#include <stdint.h>

#include <stoker/events.h>

#include "base/str.h"
#include "report/state/earlier.h"
#include "storage/storage.h"

typedef struct stk_runfiles stk_runfiles;

/* The folder must exist. results.csv and bad_images.csv start anew; events.jsonl is continued. */
STK_CHECKED stk_status stk_runfiles_new(stk_runfiles **files, const char *run_dir, stk_error *err);

/*
 * The same for a supervised command: it has neither results.csv nor bad_images.csv, since Stoker
 * knows none of its epochs and pictures. Only the owner may read the files: they have command
 * lines.
 */
STK_CHECKED stk_status stk_runfiles_new_supervised(stk_runfiles **files, const char *run_dir,
                                                   stk_error *err);

/*
 * The same for a run that is resumed: rows and events of epochs after the point are removed, in one
 * step per file; the rest is continued. *last_t is the latest time of an event.
 */
STK_CHECKED stk_status stk_runfiles_resume(stk_runfiles **files, const char *run_dir,
                                           const stk_resume_point *point, double *last_t,
                                           stk_error *err);

/* Whether results.csv of a resumed run was missing or lacked rows and was made anew from the
 * events; *rows is how many rows it has now. */
bool stk_runfiles_table_was_gone(const stk_runfiles *files, size_t *rows);

/* Models of the last submission that was written, by this process or an earlier one; 0: there is
 * none, or it has class priors. */
int stk_runfiles_models(const stk_runfiles *files);

void stk_runfiles_free(stk_runfiles *files);

/*
 * Writes event files for TensorBoard, too, in tensorboard/ (tfevents.h). `point` is NULL for a new
 * run.
 */
STK_CHECKED stk_status stk_runfiles_add_tensorboard(stk_runfiles *files,
                                                    const stk_resume_point *point, stk_error *err);

/* Valid until stk_runfiles_free. */
const stk_observer *stk_runfiles_observer(stk_runfiles *files);

/*
 * Call it before the stop event. Draws the last plot and prepares the last page, which the stop
 * event then writes with the summary. Writes results.csv again if a write failed before. `spare_s`
 * is the time left beyond stk_runfiles_draw_s (INFINITY or NaN: enough); below 0 plot and page stay
 * as they are. Thumbnails of the page are read from `store`; NULL: the page has none.
 */
void stk_runfiles_finish(stk_runfiles *files, double spare_s, stk_store *store);

/* Seconds that the last drawing of plot and page took, or a later page alone if that took longer;
 * 0: none was drawn yet. */
double stk_runfiles_draw_s(const stk_runfiles *files);

/* Sets the time of the following events, a reading of stk_clock_ns; 0: when they arrive. */
void stk_runfiles_set_moment_ns(stk_runfiles *files, int64_t moment_ns);

/* How writing summary.json went at the stop event. */
STK_CHECKED stk_status stk_runfiles_summary_error(const stk_runfiles *files, stk_error *err);

/* Appends one sentence that names what could not be written; false: nothing is missing. */
bool stk_runfiles_lacking(const stk_runfiles *files, stk_str *text);

#endif
