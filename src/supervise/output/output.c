/*
 * output.c - one thread per pipe reads, logs, reports lines and passes the bytes on, in this order.
 *
 * The owner never waits for a thread without a time-out. A thread waits only where its wake-up
 * reaches it. If the system blocks it nevertheless (a terminal that takes part of a write), close
 * abandons it, and it frees the rest when its call returns. The log has a thread of its own.
 */
#include "supervise/output/output.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <math.h>
#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/error.h"
#include "base/mem.h"
#include "base/threads/thread.h"
#include "supervise/output/transcript.h"

#define PIPE_BYTES (1 << 20)     /* capacity of a pipe, if the system allows it */
#define CHUNK_BYTES (256 << 10)  /* bytes of one read */
#define TEXT_BYTES (64 << 10)    /* most bytes of one record */
#define RECORDS_BYTES (1 << 20)  /* bytes of one write */
#define UNFINISHED_NS 1000000000 /* unfinished text is logged and reported after this time */
#define LEAST_END_S 0.2          /* least time for threads to end */
#define LOG_S 30.0               /* time-out of opening the log */

/* How a record ends; see output.h. */
#define BY_NEWLINE ' '
#define BY_RETURN 'r'
#define NOT_YET '+'

typedef struct stream {
    stk_output *owner;
    pthread_t thread;
    char name;   /* 'o' or 'e' */
    int pipe;    /* read end of the pipe; -1: all writers have closed it */
    int to;      /* where bytes are passed on, our own descriptor; -1: nowhere */
    size_t most; /* bytes that one write may have after poll says that there is room */
    int wake;    /* readable when something under the lock has changed */
    /* Guarded by the owner's lock: */
    bool running;     /* the thread has not ended */
    unsigned settled; /* number of the last flush that was completed */
    bool dropped;     /* something was not passed on since that flush */
    /* The thread's own: */
    int64_t now_ns;        /* when the current bytes came */
    int64_t unfinished_ns; /* since when there is unfinished text */
    bool returned; /* the text ends with a carriage return; the next byte decides how the line ended
                    */
    size_t length; /* of `text` */
    size_t line_length;
    size_t line_reported; /* bytes of the line already reported */
    bool cut;             /* the line continues text of the last command, already reported */
    size_t records_length;
    char stamp[STK_TRANSCRIPT_STAMP + 1];
    char line[STK_OUTPUT_LINE];  /* the beginning of the unfinished line, to report */
    char text[TEXT_BYTES];       /* unfinished text that is in no record yet */
    char records[RECORDS_BYTES]; /* records that are not written yet */
    char chunk[CHUNK_BYTES];
} stream;

struct stk_output {
    stk_transcript *log; /* owned */
    int64_t start_ns;
    _Atomic uint64_t bytes;
    pthread_mutex_t line_lock; /* guards on_line and user */
    void (*on_line)(void *user, const char *line, size_t length, double at_s); /* NULL: closed */
    void *user;
    pthread_mutex_t lock;   /* guards the fields below and those of the streams */
    pthread_cond_t changed; /* a stream has completed a flush or ended */
    unsigned wanted;        /* number of the last flush that was asked for */
    unsigned given_up;      /* until this flush is completed nothing is passed on */
    bool ending;
    bool abandoned; /* the owner has closed it; the last thread frees it */
    stream streams[2];
};

static void destroy(stk_output *o) {
    for (int i = 0; i < 2; i++) {
        const int fds[] = {o->streams[i].pipe, o->streams[i].to, o->streams[i].wake};
        for (int k = 0; k < 3; k++) {
            if (fds[k] >= 0) {
                close(fds[k]);
            }
        }
    }
    stk_transcript_close(o->log);
    pthread_mutex_destroy(&o->line_lock);
    pthread_mutex_destroy(&o->lock);
    pthread_cond_destroy(&o->changed);
    stk_mem_free(o);
}

static size_t smaller(size_t a, size_t b) {
    return a < b ? a : b;
}

/* Text: from bytes to records and lines. */

static void call_on_line(stream *s, const char *line, size_t length) {
    stk_output *o = s->owner;
    pthread_mutex_lock(&o->line_lock);
    if (o->on_line != NULL) {
        o->on_line(o->user, line, length, (double)(s->now_ns - o->start_ns) / STK_NS_PER_S);
    }
    pthread_mutex_unlock(&o->line_lock);
}

/* Reports the unfinished line, unless nothing was added since the last report. */
static void report_line(stream *s) {
    if (s->line_length > s->line_reported) {
        call_on_line(s, s->line, s->line_length);
        s->line_reported = s->line_length;
    }
}

static void write_records(stream *s) {
    if (s->owner->log != NULL) {
        stk_transcript_write(s->owner->log, s->records, s->records_length,
                             s->now_ns - s->owner->start_ns);
    }
    s->records_length = 0;
}

/* Makes a record of the unfinished text and `bytes`, together at most TEXT_BYTES. */
static void put_record(stream *s, const char *bytes, size_t size, char mark) {
    size_t need = STK_TRANSCRIPT_STAMP + s->length + size + 1;
    if (s->records_length + need > RECORDS_BYTES) {
        write_records(s);
    }
    char *p = s->records + s->records_length;
    memcpy(p, s->stamp, STK_TRANSCRIPT_STAMP);
    p[STK_TRANSCRIPT_STAMP - 2] = mark;
    p += STK_TRANSCRIPT_STAMP;
    memcpy(p, s->text, s->length);
    memcpy(p + s->length, bytes, size);
    p[s->length + size] = '\n';
    s->records_length += need;
    s->length = 0;
    s->unfinished_ns = s->now_ns;
}

/* Makes records until the rest of `bytes` fits after the text; returns the bytes used. */
static size_t put_overflow(stream *s, const char *bytes, size_t size) {
    size_t taken = 0;
    while (s->length + size - taken > TEXT_BYTES) {
        size_t part = TEXT_BYTES - s->length;
        memcpy(s->text + s->length, bytes + taken, part);
        s->length += part;
        taken += part;
        put_record(s, "", 0, NOT_YET);
        report_line(s);
    }
    return taken;
}

static void gather_line(stream *s, const char *bytes, size_t size) {
    size_t part = smaller(size, STK_OUTPUT_LINE - s->line_length);
    memcpy(s->line + s->line_length, bytes, part);
    s->line_length += part;
}

/* Ends a line after `bytes`, which include the carriage return of a "\r\n". */
static void end_line(stream *s, const char *bytes, size_t size, char mark) {
    size_t text_size = size;
    if (mark == BY_NEWLINE && size > 0 && bytes[size - 1] == '\r') {
        text_size--;
    }
    if (s->line_length == 0 && size <= TEXT_BYTES) {
        put_record(s, bytes, size, mark);
        if (text_size > 0 || !s->cut) {
            call_on_line(s, bytes, smaller(text_size, STK_OUTPUT_LINE));
        }
        s->cut = false;
        return;
    }
    gather_line(s, bytes, text_size);
    size_t taken = put_overflow(s, bytes, size);
    put_record(s, bytes + taken, size - taken, mark);
    report_line(s);
    s->line_length = 0;
    s->line_reported = 0;
    s->cut = false;
}

static void keep_unended(stream *s, const char *bytes, size_t size) {
    if (s->length == 0) {
        s->unfinished_ns = s->now_ns;
    }
    gather_line(s, bytes, size);
    size_t taken = put_overflow(s, bytes, size);
    memcpy(s->text + s->length, bytes + taken, size - taken);
    s->length += size - taken;
}

static void split(stream *s, const char *bytes, size_t size) {
    const char *at = bytes;
    const char *end = bytes + size;
    const char *newline = NULL; /* the next one; searched once for many carriage returns */
    if (s->returned) {
        s->returned = false;
        bool both = *at == '\n';
        end_line(s, "\r", both ? 1 : 0, both ? BY_NEWLINE : BY_RETURN);
        at += both ? 1 : 0;
    }
    while (at < end) {
        if (newline == NULL || newline < at) {
            newline = memchr(at, '\n', (size_t)(end - at));
            newline = newline != NULL ? newline : end;
        }
        const char *back = memchr(at, '\r', (size_t)(newline - at));
        bool alone = back != NULL && back + 1 < end && back[1] != '\n';
        const char *stop = alone ? back : newline;
        if (stop == end) {
            s->returned = back != NULL;
            keep_unended(s, at, (size_t)(end - at) - (s->returned ? 1 : 0));
            return;
        }
        end_line(s, at, (size_t)(stop - at), alone ? BY_RETURN : BY_NEWLINE);
        at = stop + 1;
    }
}

static bool is_unfinished(const stream *s) {
    return s->length > 0 || s->returned;
}

/* All bytes of one read get the same time stamp. */
static void begin_stamp(stream *s) {
    s->now_ns = stk_clock_ns();
    stk_transcript_stamp(s->stamp, s->now_ns - s->owner->start_ns, s->name, NOT_YET);
}

static void tell_unended(stream *s) {
    begin_stamp(s);
    if (s->returned) {
        s->returned = false;
        end_line(s, "", 0, BY_RETURN);
    } else if (s->length > 0) {
        put_record(s, "", 0, NOT_YET);
        report_line(s);
    }
    write_records(s);
}

/* The thread. */

/* Clears the wake-up: call it before reading fields under the lock. */
static void forget_wake(const stream *s) {
    uint64_t count;
    (void)!read(s->wake, &count, sizeof count);
}

static bool is_given_up(stream *s) {
    stk_output *o = s->owner;
    pthread_mutex_lock(&o->lock);
    bool given_up = o->ending || s->settled < o->given_up;
    pthread_mutex_unlock(&o->lock);
    return given_up;
}

static bool is_room_lacking(int why) {
    return why == ENOSPC || why == EDQUOT || why == EFBIG;
}

static void pass_on(stream *s, const char *bytes, size_t size) {
    bool may = s->most > 0;
    while (size > 0 && s->to >= 0 && !is_given_up(s)) {
        struct pollfd fds[] = {{.fd = s->to, .events = POLLOUT}, {.fd = s->wake, .events = POLLIN}};
        (void)poll(fds, 2, -1);
        if (fds[1].revents != 0) {
            forget_wake(s);
        }
        ssize_t put = fds[0].revents != 0 ? write(s->to, bytes, smaller(size, s->most)) : 0;
        if (put >= 0) {
            bytes += put;
            size -= (size_t)put;
        } else if (is_room_lacking(errno)) {
            break;
        } else if (errno != EINTR && errno != EAGAIN) { /* nobody reads there any more */
            close(s->to);
            s->to = -1;
        }
    }
    if (size > 0 && may) {
        pthread_mutex_lock(&s->owner->lock);
        s->dropped = true;
        pthread_mutex_unlock(&s->owner->lock);
    }
}

static void take(stream *s, size_t size) {
    begin_stamp(s);
    atomic_fetch_add(&s->owner->bytes, size);
    if (s->owner->log != NULL) { /* without a log, lines are not reported either */
        split(s, s->chunk, size);
        write_records(s);
    }
    pass_on(s, s->chunk, size);
}

/* Reads available bytes; false: none. */
static bool read_some(stream *s) {
    if (s->pipe < 0) {
        return false;
    }
    ssize_t got = read(s->pipe, s->chunk, CHUNK_BYTES);
    if (got > 0) {
        take(s, (size_t)got);
        return true;
    }
    if (got < 0 && (errno == EAGAIN || errno == EINTR)) {
        return errno == EINTR;
    }
    close(s->pipe);
    s->pipe = -1;
    return false;
}

/* The pipe is empty: completes a flush if one is waiting; true: there was one. */
static bool settle_stream(stream *s) {
    stk_output *o = s->owner;
    pthread_mutex_lock(&o->lock);
    unsigned wanted = o->wanted;
    pthread_mutex_unlock(&o->lock);
    if (wanted == s->settled) {
        return false;
    }
    tell_unended(s);
    s->cut = s->cut || s->line_length > 0;
    s->line_length = s->line_reported = 0; /* the next command's output starts a new line */
    pthread_mutex_lock(&o->lock);
    s->settled = wanted;
    pthread_cond_broadcast(&o->changed);
    pthread_mutex_unlock(&o->lock);
    return true;
}

static void wait_for_more(stream *s) {
    struct pollfd fds[] = {{.fd = s->pipe, .events = POLLIN}, {.fd = s->wake, .events = POLLIN}};
    int timeout_ms = -1;
    if (is_unfinished(s)) {
        int64_t left_ns = s->unfinished_ns + UNFINISHED_NS - stk_clock_ns();
        timeout_ms = left_ns > 0 ? (int)(left_ns / 1000000) + 1 : 0;
    }
    (void)poll(fds, 2, timeout_ms);
    if (fds[1].revents != 0) {
        forget_wake(s);
    }
}

static bool is_ending(stk_output *o) {
    pthread_mutex_lock(&o->lock);
    bool ending = o->ending;
    pthread_mutex_unlock(&o->lock);
    return ending;
}

static void *work(void *argument) {
    stream *s = argument;
    stk_output *o = s->owner;
    while (!is_ending(o)) {
        if (!read_some(s) && !settle_stream(s)) {
            wait_for_more(s);
        }
        if (is_unfinished(s) && stk_clock_ns() >= s->unfinished_ns + UNFINISHED_NS) {
            tell_unended(s);
        }
    }
    tell_unended(s);
    pthread_mutex_lock(&o->lock);
    s->running = false;
    bool last = o->abandoned && !o->streams[0].running && !o->streams[1].running;
    pthread_cond_broadcast(&o->changed);
    pthread_mutex_unlock(&o->lock);
    if (last) {
        destroy(o);
    }
    return NULL;
}

/* The owner. */

/*
 * Makes our own descriptor for the destination: the caller may close its own, and the number may
 * be reused while a thread still writes. A pipe is opened again, so that it can be non-blocking
 * here without affecting other users of it. Terminals and sockets are written in pieces that poll
 * promises room for, files at once.
 */
static stk_status open_target(stream *s, int fd, stk_error *err) {
    struct stat info;
    if (fd < 0 || fstat(fd, &info) != 0) {
        return STK_OK; /* closed: nobody reads it */
    }
    s->most = S_ISREG(info.st_mode) ? CHUNK_BYTES : PIPE_BUF;
    if (S_ISFIFO(info.st_mode)) {
        char path[40];
        snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
        s->to = open(path, O_WRONLY | O_NONBLOCK | O_CLOEXEC);
        s->most = s->to >= 0 ? CHUNK_BYTES : PIPE_BUF;
    }
    if (s->to < 0) {
        s->to = fcntl(fd, F_DUPFD_CLOEXEC, 0);
    }
    return s->to >= 0 ? STK_OK
                      : STK_FAIL(err, STK_ERR_STORAGE, "cannot write to descriptor %d: %s", fd,
                                 strerror(errno));
}

static stk_status open_pipe(stream *s, int *end, stk_error *err) {
    int fds[2];
    s->wake = stk_event_fd();
    if (s->wake < 0 || stk_pipe(fds, 0) != 0) {
        return STK_FAIL(err, STK_ERR_MEMORY, "cannot make a pipe for a command's output: %s",
                        strerror(errno));
    }
    s->pipe = fds[0];
    *end = fds[1];
    (void)fcntl(s->pipe, F_SETPIPE_SZ, PIPE_BYTES); /* if it fails, a smaller pipe works as well */
    return fcntl(s->pipe, F_SETFL, O_NONBLOCK) == 0
               ? STK_OK
               : STK_FAIL(err, STK_ERR_INTERNAL, "cannot read a pipe without waiting: %s",
                          strerror(errno));
}

/* Starts a thread that blocks all signals: writing to a closed pipe is then an error like others.
 */
static stk_status start_thread(stream *s, stk_error *err) {
    const stk_thread_config config = {.what = "reads a command's output", .no_signals = true};
    s->running = true;
    stk_status status = stk_thread_start(&s->thread, &config, work, s, err);
    s->running = status == STK_OK;
    return status;
}

static stk_output *make_output(const stk_output_config *config) {
    stk_output *o = stk_mem_new(1, sizeof *o);
    if (o == NULL) {
        return NULL;
    }
    stk_cond_init(&o->changed);
    pthread_mutex_init(&o->line_lock, NULL);
    pthread_mutex_init(&o->lock, NULL);
    o->start_ns = config->start_ns;
    o->on_line = config->on_line;
    o->user = config->user;
    for (int i = 0; i < 2; i++) {
        o->streams[i].owner = o;
        o->streams[i].name = i == 0 ? 'o' : 'e';
        o->streams[i].pipe = o->streams[i].to = o->streams[i].wake = -1;
    }
    return o;
}

static stk_status open_stream(stream *s, int target, int *end, stk_error *err) {
    stk_status status = open_target(s, target, err);
    return status == STK_OK ? open_pipe(s, end, err) : status;
}

static void close_end(int *end) {
    if (*end >= 0) {
        close(*end);
        *end = -1;
    }
}

stk_status stk_output_open(stk_output **output, const stk_output_config *config, int *out_end,
                           int *err_end, stk_error *err) {
    *out_end = *err_end = -1;
    stk_output *o = make_output(config);
    if (o == NULL) {
        return STK_FAIL_MEMORY(err, "a command's output");
    }
    stk_status status = STK_OK;
    if (config->log_path != NULL) {
        double within_s = config->log_within_s > 0 ? config->log_within_s : LOG_S;
        status = stk_transcript_open(&o->log, config->log_path, within_s, err);
    }
    STK_THEN(status, open_stream(&o->streams[0], config->out, out_end, err));
    STK_THEN(status, open_stream(&o->streams[1], config->err, err_end, err));
    STK_THEN(status, start_thread(&o->streams[0], err));
    STK_THEN(status, start_thread(&o->streams[1], err));
    if (status == STK_OK) {
        *output = o;
        return STK_OK;
    }
    close_end(out_end);
    close_end(err_end);
    stk_output_close(o, 0);
    return status;
}

static void wake_streams(const stk_output *o) {
    const uint64_t one = 1;
    for (int i = 0; i < 2; i++) {
        if (o->streams[i].wake >= 0) {
            (void)!write(o->streams[i].wake, &one, sizeof one);
        }
    }
}

static bool has_settled(const stk_output *o) {
    return o->streams[0].settled == o->wanted && o->streams[1].settled == o->wanted;
}

static bool has_ended(const stk_output *o) {
    return !o->streams[0].running && !o->streams[1].running;
}

/* Waits with the lock held; true: `is` became true in time. */
static bool wait_until(stk_output *o, bool (*is)(const stk_output *o), int64_t moment_ns) {
    while (!is(o) && stk_cond_wait_until(&o->changed, &o->lock, moment_ns)) {
    }
    return is(o);
}

bool stk_output_flush(stk_output *output, double within_s) {
    stk_output *o = output;
    /* The last part of the time is for logging what could not be passed on. */
    int64_t give_up_ns = stk_clock_in(within_s - fmin(0.25, within_s / 4));
    int64_t end_ns = stk_clock_in(within_s);
    pthread_mutex_lock(&o->lock);
    o->wanted++;
    wake_streams(o);
    if (!wait_until(o, has_settled, give_up_ns)) {
        o->given_up = o->wanted;
        wake_streams(o);
    }
    bool whole = wait_until(o, has_settled, end_ns);
    for (int i = 0; i < 2; i++) {
        whole = whole && !o->streams[i].dropped;
        o->streams[i].dropped = false;
    }
    pthread_mutex_unlock(&o->lock);
    if (o->log != NULL) { /* so that stk_output_error() knows of a late error */
        (void)stk_transcript_flush(o->log, (double)(end_ns - stk_clock_ns()) / STK_NS_PER_S);
    }
    return whole;
}

void stk_output_close(stk_output *output, double within_s) {
    stk_output *o = output;
    if (o == NULL) {
        return;
    }
    if (o->streams[0].running && o->streams[1].running) {
        (void)stk_output_flush(o, within_s);
    }
    pthread_mutex_lock(&o->lock);
    bool joined[2] = {o->streams[0].running, o->streams[1].running};
    o->ending = true;
    wake_streams(o);
    bool ended = wait_until(o, has_ended, stk_clock_in(LEAST_END_S));
    o->abandoned = !ended;
    pthread_mutex_lock(&o->line_lock);
    o->on_line = NULL; /* the listener may be gone when an abandoned thread continues */
    pthread_mutex_unlock(&o->line_lock);
    for (int i = 0; i < 2; i++) {
        if (joined[i] && o->streams[i].running) {
            pthread_detach(o->streams[i].thread);
            joined[i] = false;
        }
    }
    const pthread_t threads[2] = {o->streams[0].thread, o->streams[1].thread};
    pthread_mutex_unlock(&o->lock);
    for (int i = 0; i < 2; i++) {
        if (joined[i]) {
            pthread_join(threads[i], NULL);
        }
    }
    if (ended) {
        destroy(o);
    }
}

uint64_t stk_output_bytes(const stk_output *output) {
    return atomic_load(&output->bytes);
}

stk_status stk_output_error(const stk_output *output, stk_error *err) {
    return output->log != NULL ? stk_transcript_error(output->log, err) : STK_OK;
}
