/*
 * write_behind.h - a file that is put to the disk while the caller goes on.
 *
 * What is to be in the file is gathered in memory, in a block that is kept for the next time, and a
 * thread puts it to the disk as one replacement. Without memory the same calls write at once. One
 * file is on its way at a time. Threads: one owner, who makes all of the calls; a fresh one is all
 * zeros and ends with stk_write_behind_free.
 *
 *     stk_write_behind_begin(&behind, &writer, path, true, &err);
 *     stk_file_append(writer, ...);
 *     stk_file_commit(writer, &err);
 *     stk_write_behind_go(&behind, NULL, NULL);
 *     ... something else ...
 *     stk_write_behind_settle(&behind, &err);
 */
#ifndef STK_BASE_WRITE_BEHIND_H
#define STK_BASE_WRITE_BEHIND_H

#include <pthread.h>
#include <stdatomic.h>

#include "base/file.h"

typedef struct stk_write_behind {
    stk_bytes block;              /* what is to be written; the thread's while it runs */
    char *path;                   /* owned: where to */
    void (*in_place)(void *user); /* called when it is there; may be NULL */
    void *user;
    bool pending;      /* there is a file to settle: ... */
    bool running;      /* ... and a thread to wait for */
    atomic_bool done;  /* the file is in place, or has failed */
    int64_t begun_ns;  /* when its first byte was asked for */
    int64_t ended_ns;  /* when it was done; the thread's until then, like ... */
    stk_status status; /* ... how it went ... */
    stk_error failure; /* ... and why not well */
    pthread_t thread;
} stk_write_behind;

/*
 * A writer for the new contents of `path`: they are gathered if they may be, and otherwise written
 * at once. The file before must be settled.
 */
STK_CHECKED stk_status stk_write_behind_begin(stk_write_behind *behind, stk_file_writer **writer,
                                              const char *path, bool gather, stk_error *err);

/*
 * After the writer's commit: sends the file on its way. From now on it is pending. Once it is in
 * place, and before it is done, in_place(user) is called by the thread, as a rule to remove what
 * the file makes superfluous; NULL: there is nothing.
 */
void stk_write_behind_go(stk_write_behind *behind, void (*in_place)(void *user), void *user);

/* Whether there is a file to settle, and whether that would not wait. */
bool stk_write_behind_is_pending(const stk_write_behind *behind);
bool stk_write_behind_is_done(const stk_write_behind *behind);

/* Waits for the file and says how it went, once: with nothing pending all is well. */
STK_CHECKED stk_status stk_write_behind_settle(stk_write_behind *behind, stk_error *err);

/* Seconds from the beginning of the last file that was settled until it was done. */
double stk_write_behind_seconds(const stk_write_behind *behind);

/* Seconds since the beginning of the file that is pending. */
double stk_write_behind_age(const stk_write_behind *behind);

/* Waits for a file that is pending and frees all memory; it can then be used again. */
void stk_write_behind_free(stk_write_behind *behind);

#endif
