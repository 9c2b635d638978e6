/* file_lock.c - flock, which ends with the process that holds it. */
#include "base/files/file_lock.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>

#include "base/error.h"
#include "base/files/disk.h"
#include "base/files/file.h"

#define FAIL_SYSTEM(err, what, path)                                            \
    STK_FAIL((err), stk_disk_status(errno), "cannot %s %s: %s", (what), (path), \
             stk_disk_reason(errno))

/* The error where the disk does not answer: nobody knows who holds the lock. */
static stk_status fail_locking(int fd, const char *path, stk_error *err) {
    stk_status status = FAIL_SYSTEM(err, "lock", path);
    (void)stk_disk_close(fd, path);
    return status;
}

stk_status stk_file_lock(const char *path, int *fd, bool *taken, stk_error *err) {
    *taken = false;
    *fd = -1;
    int opened = -1;
    stk_status status = stk_file_open_own(path, O_RDWR | O_CREAT, 0666, &opened, err);
    if (status != STK_OK) {
        return status;
    }
    if (stk_disk_lock(opened, path, LOCK_EX | LOCK_NB) != 0) {
        if (errno == ETIMEDOUT) {
            return fail_locking(opened, path, err);
        }
        /* File systems without locks (some network mounts) must not stop a run. */
        *taken = errno != EWOULDBLOCK;
        if (!*taken) {
            (void)stk_disk_close(opened, path);
            return STK_OK;
        }
    }
    /* If the folder was moved between opening and locking, `path` names another file now. */
    struct stat held;
    struct stat named;
    errno = 0;
    if (stk_disk_look_at(opened, path, &held) != 0 || stk_disk_look_link(path, &named) != 0 ||
        held.st_ino != named.st_ino || held.st_dev != named.st_dev) {
        *taken = false;
        if (errno == ETIMEDOUT) {
            return fail_locking(opened, path, err);
        }
        (void)stk_disk_close(opened, path);
        return STK_OK;
    }
    *taken = true;
    *fd = opened;
    return STK_OK;
}

void stk_file_unlock(int fd, const char *path) {
    if (fd >= 0) {
        (void)stk_disk_close(fd, path);
    }
}

stk_status stk_file_lock_look(const char *path, stk_lock_state *state, stk_error *err) {
    *state = STK_LOCK_FREE;
    /* O_NONBLOCK: a pipe in its place must not block. */
    int opened = stk_disk_open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK, 0);
    if (opened < 0) {
        return errno == ENOENT || errno == ENOTDIR ? STK_OK
                                                   : FAIL_SYSTEM(err, "open the lock", path);
    }
    if (stk_disk_lock(opened, path, LOCK_SH | LOCK_NB) != 0) {
        *state = errno == EWOULDBLOCK ? STK_LOCK_HELD : STK_LOCK_UNKNOWN;
    }
    (void)stk_disk_close(opened, path);
    return STK_OK;
}
