/*
 * write_behind.h - writing a file in the background while the caller goes on.
 *
 * The caller's stk_file_writer collects the new contents in memory, in a block that is reused for
 * the next file. A thread then writes the block to the disk in one replacement. Without memory or
 * without a thread the same calls write at once. One file at a time. Threads: one owner makes all
 * calls. A new stk_write_behind is all zeros; stk_write_behind_free ends it.
 *
 *     stk_write_behind_begin(&writer, &file, path, true, &err);
 *     stk_file_append(file, ...);
 *     stk_file_commit(file, &err);
 *     stk_write_behind_start(&writer);
 *     ... training goes on ...
 *     stk_write_behind_finish(&writer, &err);
 */
#ifndef STK_JOB_SAVED_WRITE_BEHIND_H
#define STK_JOB_SAVED_WRITE_BEHIND_H

#include "base/files/file.h"
#include "base/threads/timed_call.h"

/* The most files that may be removed once a new file is in place. */
#define STK_WRITE_BEHIND_MOST 4

typedef struct stk_write_load
    stk_write_load; /* one file that is being written, with copies of all it needs */

typedef struct stk_write_behind {
    stk_bytes block;        /* the contents; empty while the load has them */
    stk_write_load *load;   /* owned; the thread's while `running`; NULL: no file was begun */
    stk_timed_call *thread; /* owned: the thread; NULL: not needed yet */
    bool pending;           /* a file was started and not finished */
    bool running;           /* the thread writes it */
    int64_t begun_ns;       /* when the file was begun */
    int64_t ended_ns;       /* when the last finished file was on the disk */
    double sync_s; /* set by the owner: time-out of the next file's syncs, in sum; 0: none */
} stk_write_behind;

/*
 * Opens `file` for the new contents of `path`. With `gather` the contents are collected in memory,
 * otherwise they are written at once. The previous file must be finished.
 */
STK_CHECKED stk_status stk_write_behind_begin(stk_write_behind *writer, stk_file_writer **file,
                                              const char *path, bool gather, stk_error *err);

/* After begin: names a file that is removed once the new one is in place. */
void stk_write_behind_remove(stk_write_behind *writer, const char *path);

/* After stk_file_commit(): starts writing. From now on the file is pending. */
void stk_write_behind_start(stk_write_behind *writer);

/* Whether a file is pending, and whether finishing it would not wait. */
bool stk_write_behind_is_pending(const stk_write_behind *writer);
bool stk_write_behind_is_done(const stk_write_behind *writer);

/* Waits for the thread until a reading of stk_clock_ns() at most; true: finish will not wait. */
bool stk_write_behind_wait(stk_write_behind *writer, int64_t until_ns);

/* Waits for the file and returns how it went; STK_OK where nothing is pending. */
STK_CHECKED stk_status stk_write_behind_finish(stk_write_behind *writer, stk_error *err);

/*
 * The same without waiting: a file that is not done yet is abandoned with its thread, which is an
 * error. If the disk answers after all, the file is put in place late.
 */
STK_CHECKED stk_status stk_write_behind_give_up(stk_write_behind *writer, stk_error *err);

/* Seconds that the last finished file took from its begin to the disk. */
double stk_write_behind_seconds(const stk_write_behind *writer);

/* Seconds since the pending file was begun. */
double stk_write_behind_age(const stk_write_behind *writer);

/* Waits for a pending file and frees all memory; the struct can then be used again. */
void stk_write_behind_free(stk_write_behind *writer);

#endif
