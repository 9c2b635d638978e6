/*
 * disk.h - the file system's calls with a time-out, for mounts that may never answer.
 *
 * A thread that enters a stk_disk makes the calls below on a second thread (timed_call.h) from then
 * on, and waits for each no longer than the config allows. A call that takes longer fails with
 * ETIMEDOUT and is abandoned. Until it returns, all calls below the same root fail at once. In all
 * else the calls are the system's; on a thread that has entered nothing they are exactly the
 * system's. Data to be written is copied first, so no abandoned call holds a caller's memory.
 *
 *     stk_disk *disk = stk_disk_enter(&config);
 *     stk_disk_root("runs/train", false);
 *     if (stk_disk_open(path, O_RDONLY, 0) < 0) { the cause is stk_disk_reason(errno) }
 *     stk_disk_leave(disk);
 *
 * Threads: a disk counts for the thread that entered it, which also leaves it. The child of a fork
 * goes on with its parent's disk.
 */
#ifndef STK_BASE_FILES_DISK_H
#define STK_BASE_FILES_DISK_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/stat.h>
#include <sys/types.h>
#include <sys/vfs.h>

#include <stoker/stop.h>

typedef struct stk_disk stk_disk;

/* Time-outs. All of them hold at once: the shortest ends a wait. */
typedef struct stk_disk_config {
    double look_s; /* for a call that opens, looks or renames */
    double move_s; /* for a call that reads, writes or syncs, and for stk_disk_run */
    /* A shorter time-out for a sync, after earlier syncs took waited_s in sum; see stk_disk_sync.
     * May be NULL. */
    double (*sync_s)(void *user, double waited_s);
    const stk_stop *stop;         /* after a request to stop a call has 3 to 15 s; may be NULL */
    double (*left_s)(void *user); /* seconds until nobody may wait any more; NULL: no limit */
    void *user;                   /* for the two functions */
} stk_disk_config;

/* A command's usual time-outs: longer than a slow disk needs. */
#define STK_DISK_LOOK_S 30.0
#define STK_DISK_MOVE_S 300.0

/*
 * Enters a disk, in place of the one entered before. The user's cache folder (stk_path_user_cache)
 * is an optional root from the start. NULL without memory: then calls are the system's.
 */
stk_disk *stk_disk_enter(const stk_disk_config *config);
bool stk_disk_is_entered(void); /* whether the calling thread has entered a disk */

/*
 * Enters a disk for work of several calls that has one time-out. Once within_s have passed, every
 * call fails at once, on any root: the rest of the work does nothing. A close then leaves its
 * descriptor open, since an abandoned call may still use it. NULL without memory.
 */
stk_disk *stk_disk_enter_within(double within_s);

/* Leaves the disk; the one entered before counts again. False: a call has timed out. NULL is fine.
 */
bool stk_disk_leave(stk_disk *disk);

/*
 * Declares that all paths below `path` are on one disk: when one call hangs, others fail at once.
 * Without a root each folder counts alone. Files below an optional root are dispensable and have
 * shorter time-outs: 3 s and a tenth of the time left for a call, 15 s and three tenths of it for
 * stk_disk_run. Does nothing on a thread that has entered nothing.
 */
void stk_disk_root(const char *path, bool optional);

/* strerror; after a time-out, how long the call was waited for and what to check. */
const char *stk_disk_reason(int error);

/* STK_ERR_MEMORY where the process lacks memory or descriptors, STK_ERR_STORAGE for all else. */
stk_status stk_disk_status(int error);

/*
 * Seconds that the calling thread may still wait for a disk; 0 or less: none. INFINITY without a
 * limit, and where nothing was entered.
 */
double stk_disk_left_s(void);

/* Whether a call below that path hangs now, so that another would fail at once. */
bool stk_disk_hangs(const char *path);

/*
 * Runs work(state), which may make any number of calls on files at or below `path`, with one
 * time-out. The state holds copies of all that the work needs. False, with errno: the work was
 * abandoned or not begun, and the state is no longer the caller's; drop(state) is called once no
 * thread uses it. True: the state is still the caller's.
 */
bool stk_disk_run(const char *path, void (*work)(void *state), void *state,
                  void (*drop)(void *state));

/* The system's calls of these names. Beside a descriptor, `path` is the path that was opened. */
int stk_disk_open(const char *path, int flags, mode_t mode);
int stk_disk_close(int fd, const char *path);
ssize_t stk_disk_read(int fd, const char *path, void *data, size_t size);
ssize_t stk_disk_read_at(int fd, const char *path, void *data, size_t size, off_t at); /* pread */
ssize_t stk_disk_write(int fd, const char *path, const void *data, size_t size);
ssize_t stk_disk_write_at(int fd, const char *path, const void *data, size_t size, off_t at);

/*
 * fsync (sync.h). A sync that takes longer than the config's sync_s is abandoned and counts as
 * done: the file is whole for every reader, and only a power cut could still harm it. The close
 * that follows, which stores the file on some file systems, has the same time-out.
 * stk_disk_unsynced() counts the abandoned syncs of the whole process, stk_disk_unstored() those
 * that failed later.
 */
int stk_disk_sync(int fd, const char *path);
int stk_disk_unsynced(void);
int stk_disk_unstored(void);

int stk_disk_cut(int fd, const char *path, off_t size);      /* ftruncate */
int stk_disk_lock(int fd, const char *path, int how);        /* flock */
int stk_disk_look(const char *path, struct stat *info);      /* stat */
int stk_disk_look_link(const char *path, struct stat *info); /* lstat */
int stk_disk_look_at(int fd, const char *path, struct stat *info);
int stk_disk_look_system(const char *path, struct statfs *system);          /* statfs */
ssize_t stk_disk_read_link(const char *path, char *text, size_t size);      /* readlink */
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
