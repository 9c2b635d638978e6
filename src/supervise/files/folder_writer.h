/*
 * folder_writer.h - all that a supervised run writes into its folder, by a thread that may be left
 * behind.
 *
 * The folder may lie on a disk that hangs, and commands are to be stopped and started in time all
 * the same. So the supervising thread gives what it has to write and goes on; what finds no room in
 * the queue is lost and counted. Nobody waits for the disk but within a time. Threads: one owner.
 */
#ifndef STK_SUPERVISE_FILES_FOLDER_WRITER_H
#define STK_SUPERVISE_FILES_FOLDER_WRITER_H

#include <stdint.h>

#include <stoker/events.h>

#include "base/str.h"
#include "options/options.h"

typedef struct stk_folder_writer stk_folder_writer;

typedef struct stk_folder_writer_config {
    const char *out; /* as of stk_run_folder_open, like the next */
    const char *name;
    const stk_options *options; /* for args.json and args.yaml */
    double within_s;            /* that the disk may take to begin with; after that
                                   STK_ERR_STORAGE */
} stk_folder_writer_config;

/* Makes and locks the folder and begins its files. */
STK_CHECKED stk_status stk_folder_writer_open(stk_folder_writer **writer,
                                              const stk_folder_writer_config *config,
                                              stk_error *err);

const char *stk_folder_writer_path(const stk_folder_writer *writer);
const char *stk_folder_writer_full_path(const stk_folder_writer *writer); /* from the root */
const char *stk_folder_writer_moved(const stk_folder_writer *writer);     /* as of stk_run_folder */

/* Writes the events of the run; valid until the close. */
const stk_observer *stk_folder_writer_observer(stk_folder_writer *writer);

/* Writes a file of the folder. Takes the text over and empties it; a failure is told in the end. */
void stk_folder_writer_put(stk_folder_writer *writer, const char *name, stk_str *text);

/* The page as it is to stay, before the stop event is told; spare_s as of stk_runfiles_finish. */
void stk_folder_writer_finish(stk_folder_writer *writer, double spare_s);

/* Whether the disk has not answered for so long. */
bool stk_folder_writer_is_held(stk_folder_writer *writer, double for_s);

/*
 * Waits for all that was given, within_s at most. False: something is missing for good, or the disk
 * does not answer; `text` says in one sentence what. To be called once, behind the last event.
 */
bool stk_folder_writer_flush(stk_folder_writer *writer, double within_s, stk_str *text);

/* Closes the files and gives the folder free; a disk that is waited for has within_s. NULL is fine.
 */
void stk_folder_writer_close(stk_folder_writer *writer, double within_s);

#endif
