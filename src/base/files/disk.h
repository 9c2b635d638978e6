/*
 * disk.h - calls of the file system that a dead mount may never answer.
 *
 * Whoever enters a stk_disk makes the calls below through a second thread (timed_call.h) from then
 * on, and waits for each no longer than his patience says. A call that takes longer fails with
 * ETIMEDOUT and is left behind; until it returns, all calls below the same root fail at once. The
 * calls are the system's in everything else, and on a thread that has entered nothing they are the
 * system's altogether. What is written is copied, so that nobody's memory is left behind.
 *
 *     stk_disk *disk = stk_disk_enter(&config);
 *     stk_disk_root("runs/train", false);
 *     if (stk_disk_open(path, O_RDONLY, 0) < 0) ... stk_disk_reason(errno)
 *     stk_disk_leave(disk);
 *
 * Threads: what was entered counts for the calling thread alone, which leaves it again. A child of
 * fork goes on with what its parent had entered.
 */
#ifndef STK_BASE_FILES_DISK_H
#define STK_BASE_FILES_DISK_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/stat.h>
#include <sys/types.h>

#include <stoker/stop.h>

typedef struct stk_disk stk_disk;

/* How long a call is waited for; all of it holds at the same time. */
typedef struct stk_disk_config {
    double look_s; /* one that opens, looks or renames */
    double move_s; /* one that reads, writes or syncs; several together */
    /* A sync, where that is less, after waited_s that syncs took already; see stk_disk_sync. May be
     * NULL. */
    double (*sync_s)(void *user, double waited_s);
    const stk_stop *stop;         /* once it is asked, some seconds more at most; may be NULL */
    double (*left_s)(void *user); /* how long anybody may wait from now on; NULL: for good */
    void *user;
} stk_disk_config;

/* The patience of a command: what a slow disk can take, and a dead one should. */
#define STK_DISK_LOOK_S 30.0
#define STK_DISK_MOVE_S 300.0

/*
 * NULL without memory: then calls are the system's. Within another it takes its place. What is kept
 * between runs (stk_path_user_cache) is an optional root from the start.
 */
stk_disk *stk_disk_enter(const stk_disk_config *config);
bool stk_disk_is_entered(void); /* whether the calling thread has entered one */

/* What was entered before counts again. NULL is fine. */
void stk_disk_leave(stk_disk *disk);

/*
 * What lies below `path` hangs together: where one call hangs others would. Without a root this is
 * said of each folder by itself. What is below an optional root can be done without, and is waited
 * for less: a call has three seconds and a tenth of the time that is left, several together
 * (stk_disk_run) 15 seconds and three tenths of it. Nothing happens on a thread that
 * has entered nothing.
 */
void stk_disk_root(const char *path, bool optional);

/* strerror, or, for a call that was given up, how long it was waited for and what to look at. */
const char *stk_disk_reason(int error);

/* STK_ERR_MEMORY for what the process lacks, memory or descriptors, of which no disk is to blame;
 * STK_ERR_STORAGE for all else. */
stk_status stk_disk_status(int error);

/*
 * How long the calling thread may still wait for a disk, in seconds; 0 and less: no longer.
 * INFINITY where nothing limits it, or nothing was entered.
 */
double stk_disk_left_s(void);

/* Whether a call below that path hangs now, so that another would fail at once. */
bool stk_disk_hangs(const char *path);

/*
 * Runs work(state), which may make any calls and is about `path`, as one call: what it needs is in
 * its state, copied. False, with errno: it was given up, and the state is gone; drop(state) is
 * called should the work ever return. Otherwise the state is the caller's still.
 */
bool stk_disk_run(const char *path, void (*work)(void *state), void *state,
                  void (*drop)(void *state));

/* The system's calls of these names. Where a descriptor is given, `path` is what was opened. */
int stk_disk_open(const char *path, int flags, mode_t mode);
int stk_disk_close(int fd, const char *path);
ssize_t stk_disk_read(int fd, const char *path, void *data, size_t size);
ssize_t stk_disk_read_at(int fd, const char *path, void *data, size_t size, off_t at); /* pread */
ssize_t stk_disk_write(int fd, const char *path, const void *data, size_t size);
ssize_t stk_disk_write_at(int fd, const char *path, const void *data, size_t size, off_t at);

/*
 * fsync (base/files/sync.h). One that takes longer than the config's sync_s is left to itself and
 * counts as done: the file is whole for every reader, and only a power cut could still harm it.
 * Closing the file next, which stores it on some file systems, is waited for no longer either. Of
 * such syncs stk_disk_unsynced() is the number so far, in the whole process, and
 * stk_disk_unstored() of those which have failed since then.
 */
int stk_disk_sync(int fd, const char *path);
int stk_disk_unsynced(void);
int stk_disk_unstored(void);

int stk_disk_cut(int fd, const char *path, off_t size);      /* ftruncate */
int stk_disk_lock(int fd, const char *path, int how);        /* flock */
int stk_disk_look(const char *path, struct stat *info);      /* stat */
int stk_disk_look_link(const char *path, struct stat *info); /* lstat */
int stk_disk_look_at(int fd, const char *path, struct stat *info);
int stk_disk_set_mode(int fd, const char *path, mode_t mode);               /* fchmod */
int stk_disk_set_owner(int fd, const char *path, uid_t owner, gid_t group); /* fchown */
int stk_disk_access(const char *path, int mode);
int stk_disk_make_dir(const char *path, mode_t mode);
int stk_disk_remove_dir(const char *path);
int stk_disk_remove(const char *path); /* unlink */
int stk_disk_rename(const char *from, const char *to);
int stk_disk_exchange(const char *from, const char *to); /* renameat2, RENAME_EXCHANGE */
int stk_disk_link(const char *from, const char *to);
char *stk_disk_resolve(const char *path); /* realpath; stk_mem_free. NULL: errno says why */

#endif
