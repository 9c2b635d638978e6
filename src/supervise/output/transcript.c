/*
 * transcript.c - a queue whose thread appends records to the file; a torn record is cut off again.
 *
 * stk_transcript_write() waits for a slow disk, as a command waits for a slow reader of its output,
 * but not for a disk that does not answer.
 */
#include "supervise/output/transcript.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "base/error.h"
#include "base/files/disk.h"
#include "base/files/file.h"
#include "base/mem.h"
#include "base/threads/task_queue.h"

#define NS_PER_MS 1000000
#define STAMP_SECONDS 999999 /* highest number of seconds that leaves room for milliseconds */

/*
 * The log leaves this much of the disk free for the run's other files, or half of the space that
 * was free at first if that is less. Free space is checked each time another CHECKS-th part of it
 * is written.
 */
#define ROOM_BYTES ((uint64_t)64 << 20)
#define CHECKS 16

#define QUEUE_BYTES ((size_t)8 << 20) /* most bytes of records that wait for the disk */
#define PUT_WAIT_S 2.0                /* longest wait for a disk that takes no record */
#define HELD_S 1.0  /* a disk that takes longer for some records counts as not answering */
#define CLOSE_S 0.2 /* time for closing the file */

static const char no_answer[] = "its disk does not answer";

/* The file; used by the queue's thread. */
typedef struct log_file {
    int fd;
    char *path;           /* owned */
    uint64_t room;        /* bytes of the disk to leave free; 0: not checked yet */
    uint64_t unchecked;   /* bytes written since the last check */
    bool full;            /* too little space at the last check */
    uint64_t lost;        /* bytes of output missing since the last record */
    pthread_mutex_t lock; /* guards `first`; never held during a write */
    stk_error first;      /* the first error */
} log_file;

struct stk_transcript {
    log_file *file;         /* freed by the queue's last task */
    stk_task_queue *queue;  /* owned */
    pthread_mutex_t giving; /* guards `refused` and the order of records */
    uint64_t refused;       /* bytes refused since the queue last took records */
};

/* Records in the queue. */
typedef struct log_records {
    log_file *file;
    uint64_t refused; /* bytes missing before them */
    int64_t since_ns;
    size_t size;
    char records[];
} log_records;

static void free_file(void *user) {
    log_file *f = user;
    if (f->fd >= 0) {
        close(f->fd);
    }
    pthread_mutex_destroy(&f->lock);
    stk_mem_free(f->path);
    stk_mem_free(f);
}

static stk_status open_within(log_file *f, double within_s, stk_error *err) {
    stk_disk *disk = stk_disk_enter_within(within_s);
    /* Output may hold secrets, so only the owner may read it. */
    stk_status status =
        stk_file_open_own(f->path, O_WRONLY | O_CREAT | O_TRUNC | O_APPEND, 0600, &f->fd, err);
    if (!stk_disk_leave(disk)) {
        stk_error_clear(err);
        status = STK_FAIL(err, STK_ERR_STORAGE, "cannot write %s: %s", f->path, no_answer);
    }
    return status;
}

static log_file *new_file(const char *path) {
    log_file *f = stk_mem_new(1, sizeof *f);
    if (f != NULL) {
        pthread_mutex_init(&f->lock, NULL);
        f->fd = -1;
        f->path = stk_mem_strdup(path);
    }
    return f;
}

stk_status stk_transcript_open(stk_transcript **transcript, const char *path, double within_s,
                               stk_error *err) {
    stk_transcript *t = stk_mem_new(1, sizeof *t);
    if (t == NULL) {
        return STK_FAIL_MEMORY(err, path);
    }
    pthread_mutex_init(&t->giving, NULL);
    t->file = new_file(path);
    stk_status status = t->file != NULL && t->file->path != NULL
                            ? open_within(t->file, within_s, err)
                            : STK_FAIL_MEMORY(err, path);
    STK_THEN(status, stk_task_queue_open(&t->queue, "writes output.log", QUEUE_BYTES, err));
    if (status != STK_OK) {
        stk_transcript_close(t);
        return status;
    }
    *transcript = t;
    return STK_OK;
}

void stk_transcript_close(stk_transcript *transcript) {
    stk_transcript *t = transcript;
    if (t == NULL) {
        return;
    }
    stk_queue_task last = {.work = free_file, .user = t->file};
    if (t->queue == NULL && t->file != NULL) {
        free_file(t->file);
    } else if (t->queue != NULL) {
        stk_task_queue_put_last(t->queue, &last);
    }
    (void)stk_task_queue_close(t->queue, CLOSE_S);
    pthread_mutex_destroy(&t->giving);
    stk_mem_free(t);
}

/* Uses integers only, so the locale does not matter. After eleven days there are no milliseconds.
 */
void stk_transcript_stamp(char stamp[STK_TRANSCRIPT_STAMP + 1], int64_t since_ns, char stream,
                          char mark) {
    char text[40];
    long long ms = since_ns > 0 ? since_ns / NS_PER_MS : 0;
    if (ms / 1000 <= STAMP_SECONDS) {
        snprintf(text, sizeof text, "%6lld.%03lld %c%c ", ms / 1000, ms % 1000, stream, mark);
    } else {
        snprintf(text, sizeof text, "%10lld %c%c ", ms / 1000, stream, mark);
    }
    memcpy(stamp, text, STK_TRANSCRIPT_STAMP);
    stamp[STK_TRANSCRIPT_STAMP] = '\0';
}

/* Bytes of output in the records. */
static uint64_t output_bytes(const char *records, size_t size) {
    uint64_t bytes = 0;
    while (size > STK_TRANSCRIPT_STAMP) {
        const char *end = memchr(records + STK_TRANSCRIPT_STAMP, '\n', size - STK_TRANSCRIPT_STAMP);
        size_t length = end != NULL ? (size_t)(end - records) + 1 : size;
        bool ended = records[STK_TRANSCRIPT_STAMP - 2] != '+';
        bytes += length - STK_TRANSCRIPT_STAMP - (ended ? 0 : 1);
        records += length;
        size -= length;
    }
    return bytes;
}

static void store_error(log_file *f, const char *why) {
    pthread_mutex_lock(&f->lock);
    (void)STK_FAIL(&f->first, STK_ERR_STORAGE, "cannot write %s: %s", f->path, why);
    pthread_mutex_unlock(&f->lock);
}

/* False: the disk is nearly full. Unknown free space counts as enough. */
static bool has_room(log_file *f, size_t size) {
    struct statvfs disk;
    f->unchecked += size;
    if (f->room == 0 || f->unchecked >= f->room / CHECKS || f->full) {
        bool known = fstatvfs(f->fd, &disk) == 0 && disk.f_blocks > 0;
        uint64_t free_bytes = known ? (uint64_t)disk.f_bavail * disk.f_frsize : UINT64_MAX;
        if (f->room == 0) {
            f->room = free_bytes / 2 < ROOM_BYTES ? free_bytes / 2 + 1 : ROOM_BYTES;
        }
        f->unchecked = 0;
        f->full = free_bytes < f->room || free_bytes - f->room < size;
    }
    return !f->full;
}

/* Appends records; returns the bytes in the file: all, or after an error those of whole records. */
static size_t append(log_file *f, const char *records, size_t size) {
    size_t done = 0;
    bool room = has_room(f, size);
    errno = ENOSPC;
    while (done < size && room) {
        ssize_t put = write(f->fd, records + done, size - done);
        if (put < 0 && errno != EINTR) {
            break;
        }
        done += put > 0 ? (size_t)put : 0;
    }
    if (done == size) {
        return done;
    }
    store_error(f, strerror(errno));
    const char *last = done > 0 ? memrchr(records, '\n', done) : NULL;
    size_t whole = last != NULL ? (size_t)(last - records) + 1 : 0;
    struct stat info;
    if (whole < done && fstat(f->fd, &info) == 0 &&
        ftruncate(f->fd, info.st_size - (off_t)(done - whole)) != 0) {
        store_error(f, strerror(errno));
    }
    return whole;
}

/* Runs on the queue's thread. */
static void write_records(void *user) {
    log_records *p = user;
    log_file *f = p->file;
    f->lost += p->refused;
    if (f->lost > 0) {
        char stamp[STK_TRANSCRIPT_STAMP + 1];
        char gap[120];
        stk_transcript_stamp(stamp, p->since_ns, '!', ' ');
        int length = snprintf(gap, sizeof gap, "%s%llu bytes could not be written here\n", stamp,
                              (unsigned long long)f->lost);
        f->lost = append(f, gap, (size_t)length) > 0 ? 0 : f->lost;
    }
    size_t done = f->lost > 0 ? 0 : append(f, p->records, p->size);
    f->lost += output_bytes(p->records + done, p->size - done);
    stk_mem_free(p);
}

void stk_transcript_write(stk_transcript *transcript, const char *records, size_t size,
                          int64_t since_ns) {
    stk_transcript *t = transcript;
    if (size == 0) {
        return;
    }
    log_records *p = stk_mem_raw(1, sizeof *p + size);
    pthread_mutex_lock(&t->giving);
    stk_status status = STK_ERR_MEMORY;
    if (p != NULL) {
        *p = (log_records){
            .file = t->file, .refused = t->refused, .since_ns = since_ns, .size = size};
        memcpy(p->records, records, size);
        stk_queue_task job = {.work = write_records, .user = p, .bytes = sizeof *p + size};
        status = stk_task_queue_put(t->queue, &job, PUT_WAIT_S);
    }
    if (status == STK_OK) {
        t->refused = 0;
    } else {
        t->refused += output_bytes(records, size);
        store_error(t->file, status == STK_ERR_MEMORY ? strerror(ENOMEM) : no_answer);
        stk_mem_free(p);
    }
    pthread_mutex_unlock(&t->giving);
}

bool stk_transcript_flush(stk_transcript *transcript, double within_s) {
    bool settled = stk_task_queue_flush(transcript->queue, within_s);
    if (!settled && stk_task_queue_busy_s(transcript->queue) > HELD_S) {
        store_error(transcript->file, no_answer);
    }
    return settled;
}

stk_status stk_transcript_error(stk_transcript *transcript, stk_error *err) {
    log_file *f = transcript->file;
    pthread_mutex_lock(&f->lock);
    stk_error first = f->first;
    pthread_mutex_unlock(&f->lock);
    return stk_error_pass(&first, err);
}
