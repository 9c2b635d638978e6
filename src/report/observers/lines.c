/* lines.c - appending lines with one write each. */
#include "report/observers/lines.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/error.h"
#include "base/files/disk.h"
#include "base/files/file.h"

static stk_status open_with(const char *path, mode_t mode, int *fd, stk_error *err) {
    return stk_file_open_own(path, O_WRONLY | O_APPEND | O_CREAT, mode, fd, err);
}

stk_status stk_lines_open(const char *path, int *fd, stk_error *err) {
    return open_with(path, 0666, fd, err);
}

stk_status stk_lines_open_private(const char *path, int *fd, stk_error *err) {
    return open_with(path, 0600, fd, err);
}

/* Writes all bytes unless a write fails; *done counts the bytes written. */
static bool write_all(const stk_lines *lines, const char *text, size_t length, size_t *done) {
    int fd = lines->fd;
    while (*done < length) {
        /* The reader of a standard stream is waited for; a disk has to answer. */
        ssize_t written = fd > STDERR_FILENO
                              ? stk_disk_write(fd, lines->name, text + *done, length - *done)
                              : write(fd, text + *done, length - *done);
        if (written >= 0) {
            *done += (size_t)written;
        } else if (errno == EAGAIN) {
            /* Somebody made standard output non-blocking: wait, as a plain write would. */
            struct pollfd wait = {.fd = fd, .events = POLLOUT};
            if (poll(&wait, 1, -1) < 0 && errno != EINTR) {
                return false;
            }
        } else if (errno != EINTR) {
            return false;
        }
    }
    return true;
}

/* Removes the last `bytes` of a regular file; false where that cannot be done. */
static bool take_back(const stk_lines *lines, size_t bytes) {
    struct stat info;
    return stk_disk_look_at(lines->fd, lines->name, &info) == 0 && S_ISREG(info.st_mode) &&
           info.st_size >= (off_t)bytes &&
           stk_disk_cut(lines->fd, lines->name, info.st_size - (off_t)bytes) == 0;
}

stk_status stk_lines_write(stk_lines *lines, const char *text, size_t length, stk_error *err) {
    size_t done = 0;
    bool written = true;
    if (lines->torn) {
        written = write_all(lines, "\n", 1, &done);
        lines->torn = !written;
        done = 0;
    }
    written = written && write_all(lines, text, length, &done);
    if (written) {
        return STK_OK;
    }
    int reason = errno;
    if (done > 0 && !take_back(lines, done)) {
        lines->torn = true;
    }
    return STK_FAIL(err, STK_ERR_STORAGE, "cannot write %s: %s", lines->name,
                    stk_disk_reason(reason));
}
