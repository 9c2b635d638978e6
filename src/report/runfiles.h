/*
 * runfiles.h - keeps the files of a run folder that tell how the run goes.
 *
 * results.csv (one row per epoch), bad_images.csv, events.jsonl, summary.json, results.png (or
 * results.svg in a build without cairo), report.html, and TensorBoard's files where they are
 * wanted. Whole files are replaced in one step and lines are appended with one write, so that a
 * kill at any moment leaves readable files. Callbacks have nobody to tell of a full disk: the first
 * error is kept, and later events are tried all the same. Threads: that of the events.
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
 * The same for a command that is supervised: it tells of no epochs and no pictures, and has neither
 * of these two tables. Only the owner may read its files: command lines are in them.
 */
STK_CHECKED stk_status stk_runfiles_new_supervised(stk_runfiles **files, const char *run_dir,
                                                   stk_error *err);

/*
 * The same for a run that is resumed: rows and events of epochs behind the point are taken out in
 * one step per file, the rest is continued. *last_t is the latest time that an event has.
 */
STK_CHECKED stk_status stk_runfiles_resume(stk_runfiles **files, const char *run_dir,
                                           const stk_runfiles_point *point, double *last_t,
                                           stk_error *err);

/* Whether results.csv of a resumed run was gone or lacked rows; *rows: that the events had for a
 * new one. */
bool stk_runfiles_table_was_gone(const stk_runfiles *files, size_t *rows);
void stk_runfiles_free(stk_runfiles *files);

/*
 * Lets the run be shown by TensorBoard too: event files in tensorboard/ (tfevents.h). `point` is
 * that of a run that is resumed, NULL for a new one.
 */
STK_CHECKED stk_status stk_runfiles_add_tensorboard(stk_runfiles *files,
                                                    const stk_runfiles_point *point,
                                                    stk_error *err);

/* Valid until stk_runfiles_free. */
const stk_observer *stk_runfiles_observer(stk_runfiles *files);

/*
 * The plot and what the page shows as they are to stay, before the summary that says how long all
 * took and with which the page is written once more; and the table of epochs, once more, where
 * something could not be written. `spare_s` is the time that there is beyond stk_runfiles_plot_s
 * (INFINITY or NaN: enough); below 0 plot and page stay as they were. Thumbnails of the page are
 * read from `store`; NULL: it has none.
 */
void stk_runfiles_finish(stk_runfiles *files, double spare_s, stk_store *store);

/* Seconds that the last plot and the last page took together; 0: none was drawn yet. */
double stk_runfiles_plot_s(const stk_runfiles *files);

/* Events that are told from now on happened at this reading of the clock; 0: when they are told. */
void stk_runfiles_at(stk_runfiles *files, int64_t moment_ns);

/* How the writing of summary.json went, which the stop event asks for. */
STK_CHECKED stk_status stk_runfiles_summary_error(const stk_runfiles *files, stk_error *err);

/* Says in one sentence what could not be written and is still missing; false: nothing is. */
bool stk_runfiles_lacking(const stk_runfiles *files, stk_str *text);

/* The first failure since the start, STK_OK when all was written. */
STK_CHECKED stk_status stk_runfiles_error(const stk_runfiles *files, stk_error *err);

#endif
