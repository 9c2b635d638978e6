/*
 * write_behind.h - a file that is put to the disk while the caller goes on.
 *
 * What is to be in the file is gathered in memory, in a block that is kept for the next time, and a
 * thread puts it to the disk as one replacement. Without memory, or without a thread, the same
 * calls write at once. One file is on its way at a time. Threads: one owner, who makes all of the
 * calls; a fresh one is all zeros and ends with stk_write_behind_free.
 *
 *     stk_write_behind_begin(&behind, &writer, path, true, &err);
 *     stk_file_append(writer, ...);
 *     stk_file_commit(writer, &err);
 *     stk_write_behind_start(&behind);
 *     ... something else ...
 *     stk_write_behind_finish(&behind, &err);
 */
#ifndef STK_BASE_FILES_WRITE_BEHIND_H
#define STK_BASE_FILES_WRITE_BEHIND_H

#include "base/files/file.h"
#include "base/threads/timed_call.h"

/* Files that one file can make superfluous. */
#define STK_WRITE_BEHIND_MOST 4

typedef struct stk_write_load stk_write_load; /* a file on its way, with all that it needs */

typedef struct stk_write_behind {
    stk_bytes block;       /* what is gathered; in the load while that is on its way */
    stk_write_load *load;  /* owned; the thread's while it runs; NULL: none was begun */
    stk_timed_call *aside; /* owned: the thread; NULL: none was needed yet */
    bool pending;          /* there is a file to settle */
    bool running;          /* the thread was given it */
    int64_t begun_ns;      /* when its first byte was asked for */
    int64_t ended_ns;      /* when the last one that was settled was done */
    double sync_s;         /* the owner's: as of stk_disk_config, for the next file; 0: no limit */
} stk_write_behind;

/*
 * A writer for the new contents of `path`: they are gathered if they may be, and otherwise written
 * at once. The file before must be settled.
 */
STK_CHECKED stk_status stk_write_behind_begin(stk_write_behind *behind, stk_file_writer **writer,
                                              const char *path, bool gather, stk_error *err);

/* After begin: a file that the new one makes superfluous. It is removed once that is in place. */
void stk_write_behind_remove(stk_write_behind *behind, const char *path);

/* After the writer's commit: sends the file on its way. From now on it is pending. */
void stk_write_behind_start(stk_write_behind *behind);

/* Whether there is a file to settle, and whether that would not wait. */
bool stk_write_behind_is_pending(const stk_write_behind *behind);
bool stk_write_behind_is_done(const stk_write_behind *behind);

/* Waits until settling would not, until a reading of stk_clock_ns() at most; true: it would not. */
bool stk_write_behind_wait(stk_write_behind *behind, int64_t until_ns);

/* Waits for the file and says how it went, once: with nothing pending all is well. */
STK_CHECKED stk_status stk_write_behind_finish(stk_write_behind *behind, stk_error *err);

/*
 * The same without waiting: a file that is not done yet is left behind with its thread, which is an
 * error. Should the disk answer after all, the file comes into place late.
 */
STK_CHECKED stk_status stk_write_behind_give_up(stk_write_behind *behind, stk_error *err);

/* Seconds from the beginning of the last file that was settled until it was done. */
double stk_write_behind_seconds(const stk_write_behind *behind);

/* Seconds since the beginning of the file that is pending. */
double stk_write_behind_age(const stk_write_behind *behind);

/* Waits for a file that is pending and frees all memory; it can then be used again. */
void stk_write_behind_free(stk_write_behind *behind);

#endif
