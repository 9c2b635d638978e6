/*
 * folder_writer.h - writes the run folder of a supervised run in the background.
 *
 * The folder may lie on a disk that hangs, but commands must be stopped and started in time. So the
 * supervising thread puts its writes into a queue and goes on; a background thread does them.
 * Writes that find no room in the queue are lost and counted. No call waits for the disk without a
 * time-out; a thread whose call does not return is abandoned. Threads: one owner.
 */
#ifndef STK_SUPERVISE_FILES_FOLDER_WRITER_H
#define STK_SUPERVISE_FILES_FOLDER_WRITER_H

#include <stoker/events.h>

#include "base/str.h"
#include "options/options.h"

typedef struct stk_folder_writer stk_folder_writer;

typedef struct stk_folder_writer_config {
    const char *out;            /* see stk_run_folder_open() */
    const char *name;           /* see stk_run_folder_open() */
    const stk_options *options; /* written to args.json and args.yaml */
    double within_s;            /* time-out of opening; after it STK_ERR_STORAGE */
} stk_folder_writer_config;

/* Makes and locks the folder and opens its files. */
STK_CHECKED stk_status stk_folder_writer_open(stk_folder_writer **writer,
                                              const stk_folder_writer_config *config,
                                              stk_error *err);

const char *stk_folder_writer_path(const stk_folder_writer *writer);
const char *stk_folder_writer_full_path(const stk_folder_writer *writer); /* absolute */
const char *stk_folder_writer_moved(const stk_folder_writer *writer); /* see stk_run_folder.moved */

/* The observer that writes the run's events; valid until the writer is closed. */
const stk_observer *stk_folder_writer_observer(stk_folder_writer *writer);

/* Writes a file into the folder. Takes the text over and empties it. stk_folder_writer_flush()
 * reports a failure. */
void stk_folder_writer_put(stk_folder_writer *writer, const char *name, stk_str *text);

/* Writes the final page, before the stop event; spare_s: see stk_runfiles_finish(). */
void stk_folder_writer_finish(stk_folder_writer *writer, double spare_s);

/* Whether the disk has not answered for more than for_s. */
bool stk_folder_writer_is_held(stk_folder_writer *writer, double for_s);

/*
 * Waits at most within_s until everything is written. False: `text` says in one sentence what is
 * missing. Call it once, after the last event.
 */
bool stk_folder_writer_flush(stk_folder_writer *writer, double within_s, stk_str *text);

/* Closes the files and unlocks the folder, waiting at most within_s. NULL is fine. */
void stk_folder_writer_close(stk_folder_writer *writer, double within_s);

#endif
