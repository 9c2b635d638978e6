/*
 * stream.c - writes that never block, on descriptors that may be shared.
 *
 * O_NONBLOCK would change standard output for all who share it. So poll(2) says whether there is
 * room, and no write is larger than PIPE_BUF, which a pipe with room takes at once.
 */
#include "base/files/stream.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <math.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/error.h"

#define LOOK_GAP_MS 20

/* After a request to stop a reader still gets the rest, as long as it pauses no longer than this.
 */
#define STOPPED_WAIT_S 1.0

static stk_status fail_writing(const char *path, stk_error *err) {
    const char *why = errno == EPIPE ? "whoever read it has gone" : strerror(errno);
    return STK_FAIL(err, STK_ERR_STORAGE, "cannot write %s: %s", path, why);
}

/* Whether a wait of waited_s may go on: STK_OK, or the error that ends it. */
static stk_status check_wait(double waited_s, const char *path, const stk_file_how *how,
                             stk_error *err) {
    stk_stop_level asked = stk_stop_asked(how->stop);
    if (asked == STK_STOP_NOW || (asked != STK_STOP_NONE && waited_s > STOPPED_WAIT_S)) {
        return STK_FAIL(err, STK_ERR_STOPPED, "stopped while nobody read %s", path);
    }
    if (how->deadline_ns != 0 && stk_clock_ns() >= how->deadline_ns) {
        return STK_FAIL(err, STK_ERR_STORAGE,
                        "cannot write %s: nobody reads it, and the time is up; start the reader "
                        "first",
                        path);
    }
    return STK_OK;
}

stk_status stk_file_stream_open(int *fd, const stk_write_target *target, const char *path,
                                const stk_file_how *how, stk_error *err) {
    if (target->descriptor >= 0) {
        *fd = fcntl(target->descriptor, F_DUPFD_CLOEXEC, 0);
        return *fd >= 0 ? STK_OK : fail_writing(path, err);
    }
    stk_status status = STK_OK;
    for (;;) {
        *fd = open(target->path, O_WRONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC | O_APPEND);
        if (*fd >= 0 || (errno != ENXIO && errno != EINTR) || !S_ISFIFO(target->info.st_mode)) {
            return *fd >= 0 ? STK_OK : fail_writing(path, err);
        }
        status = check_wait(INFINITY, path, how, err);
        if (status != STK_OK) {
            return status;
        }
        (void)poll(NULL, 0, LOOK_GAP_MS);
    }
}

/*
 * Writes without SIGPIPE, which would end the program that uses the library: this thread
 * blocks the signal and takes away the one that the write has raised.
 */
static ssize_t write_quietly(int fd, const void *bytes, size_t size) {
    static const struct timespec at_once = {0};
    sigset_t pipe_set;
    sigset_t before;
    sigset_t waiting;
    sigemptyset(&pipe_set);
    sigaddset(&pipe_set, SIGPIPE);
    bool held = pthread_sigmask(SIG_BLOCK, &pipe_set, &before) == 0;
    bool pending = sigpending(&waiting) == 0 && sigismember(&waiting, SIGPIPE) == 1;
    ssize_t written = write(fd, bytes, size);
    int why = errno;
    if (written < 0 && why == EPIPE && held && !pending) {
        (void)sigtimedwait(&pipe_set, NULL, &at_once);
    }
    if (held) {
        (void)pthread_sigmask(SIG_SETMASK, &before, NULL);
    }
    errno = why;
    return written;
}

stk_status stk_file_stream_write(int fd, const void *data, size_t size, const char *path,
                                 const stk_file_how *how, stk_error *err) {
    const char *bytes = data;
    int64_t since_ns = stk_clock_ns();
    while (size > 0) {
        struct pollfd room = {.fd = fd, .events = POLLOUT};
        ssize_t written = 0;
        if (poll(&room, 1, LOOK_GAP_MS) > 0) {
            written = write_quietly(fd, bytes, size < PIPE_BUF ? size : PIPE_BUF);
        }
        if (written > 0) {
            bytes += written;
            size -= (size_t)written;
            since_ns = stk_clock_ns();
        } else if (written < 0 && errno != EAGAIN && errno != EINTR) {
            return fail_writing(path, err);
        } else {
            stk_status status = check_wait(stk_clock_since_s(since_ns), path, how, err);
            if (status != STK_OK) {
                return status;
            }
        }
    }
    return STK_OK;
}
