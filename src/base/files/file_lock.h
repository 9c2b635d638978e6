/*
 * file_lock.h - an exclusive lock between processes, on a file. The system drops the lock when the
 * process ends, however it ends. Errors and time-outs are those of file.h. Threads: safe.
 */
#ifndef STK_BASE_FILES_FILE_LOCK_H
#define STK_BASE_FILES_FILE_LOCK_H

#include <stdbool.h>

#include <stoker/status.h>

/*
 * Takes the lock; the file is created. *fd holds the lock until stk_file_unlock or the end of the
 * process. *taken is false, and *fd -1, when another process (or this one) holds the lock. On a
 * file system without locks *taken is true: such a mount must not stop a run.
 */
STK_CHECKED stk_status stk_file_lock(const char *path, int *fd, bool *taken, stk_error *err);
void stk_file_unlock(int fd, const char *path);

typedef enum stk_lock_state {
    STK_LOCK_FREE,
    STK_LOCK_HELD,
    STK_LOCK_UNKNOWN /* the file system has no locks */
} stk_lock_state;

/*
 * Asks whether a process holds the lock. To find out, this process shares the lock for an instant:
 * a caller of stk_file_lock that fails should try a second time. A missing file is free.
 */
STK_CHECKED stk_status stk_file_lock_look(const char *path, stk_lock_state *state, stk_error *err);

#endif
