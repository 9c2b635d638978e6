/* transcript.c - appending under one lock; what a full disk tore off is taken back. */
#include "supervise/transcript.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "base/error.h"
#include "base/file.h"
#include "base/mem.h"

#define NS_PER_MS 1000000
#define STAMP_SECONDS 999999 /* the last that a stamp has room for with three digits behind it */

/*
 * What else a run writes, its summary above all, needs room too: the log leaves this much of the
 * disk alone. It is looked at each time that so much was written.
 */
#define ROOM_BYTES ((uint64_t)64 << 20)
#define LOOK_BYTES ((uint64_t)4 << 20)

struct stk_transcript {
    int fd;
    uint64_t unlooked;       /* bytes written since the disk was looked at */
    bool full;               /* there was too little room then */
    char *path;              /* owned */
    pthread_mutex_t writing; /* of the file and the next */
    uint64_t lost;           /* bytes of the commands that are missing since the last record */
    pthread_mutex_t lock;    /* of the next; never held while something is written */
    stk_error first;         /* what went wrong first */
};

stk_status stk_transcript_open(stk_transcript **transcript, const char *path, stk_error *err) {
    stk_transcript *t = stk_mem_new(1, sizeof *t);
    if (t == NULL) {
        return STK_FAIL_MEMORY(err, path);
    }
    pthread_mutex_init(&t->writing, NULL);
    pthread_mutex_init(&t->lock, NULL);
    t->path = stk_mem_strdup(path);
    stk_status status =
        stk_file_open_own(path, O_WRONLY | O_CREAT | O_TRUNC | O_APPEND, 0666, &t->fd, err);
    if (status == STK_OK && t->path == NULL) {
        status = STK_FAIL_MEMORY(err, path);
    }
    if (status != STK_OK) {
        stk_transcript_close(t);
        return status;
    }
    *transcript = t;
    return STK_OK;
}

void stk_transcript_close(stk_transcript *transcript) {
    if (transcript == NULL) {
        return;
    }
    if (transcript->fd >= 0) {
        close(transcript->fd);
    }
    pthread_mutex_destroy(&transcript->writing);
    pthread_mutex_destroy(&transcript->lock);
    stk_mem_free(transcript->path);
    stk_mem_free(transcript);
}

/* Whole numbers: no locale has a say. After eleven days the milliseconds make room. */
void stk_transcript_stamp(char stamp[STK_OUTPUT_STAMP + 1], int64_t since_ns, char stream,
                          char mark) {
    char text[40];
    long long ms = since_ns > 0 ? since_ns / NS_PER_MS : 0;
    if (ms / 1000 <= STAMP_SECONDS) {
        snprintf(text, sizeof text, "%6lld.%03lld %c%c ", ms / 1000, ms % 1000, stream, mark);
    } else {
        snprintf(text, sizeof text, "%10lld %c%c ", ms / 1000, stream, mark);
    }
    memcpy(stamp, text, STK_OUTPUT_STAMP);
    stamp[STK_OUTPUT_STAMP] = '\0';
}

/* What commands wrote to make these records. */
static uint64_t bytes_told(const char *records, size_t size) {
    uint64_t told = 0;
    while (size > STK_OUTPUT_STAMP) {
        const char *end = memchr(records + STK_OUTPUT_STAMP, '\n', size - STK_OUTPUT_STAMP);
        size_t length = end != NULL ? (size_t)(end - records) + 1 : size;
        bool ended = records[STK_OUTPUT_STAMP - 2] != '+';
        told += length - STK_OUTPUT_STAMP - (ended ? 0 : 1);
        records += length;
        size -= length;
    }
    return told;
}

static void keep_error(stk_transcript *t, int why) {
    pthread_mutex_lock(&t->lock);
    (void)STK_FAIL(&t->first, STK_ERR_STORAGE, "cannot write %s: %s", t->path, strerror(why));
    pthread_mutex_unlock(&t->lock);
}

/* False where the disk is nearly full; one that does not tell has room. */
static bool has_room(stk_transcript *t, size_t size) {
    struct statvfs disk;
    t->unlooked += size;
    if (t->unlooked >= LOOK_BYTES || t->full) {
        t->unlooked = 0;
        t->full = fstatvfs(t->fd, &disk) == 0 && disk.f_blocks > 0 &&
                  (uint64_t)disk.f_bavail * disk.f_frsize < ROOM_BYTES;
    }
    return !t->full;
}

/* Returns the bytes that are in the file: all, or after an error those of whole records. */
static size_t append(stk_transcript *t, const char *records, size_t size) {
    size_t done = 0;
    bool room = has_room(t, size);
    errno = ENOSPC;
    while (done < size && room) {
        ssize_t put = write(t->fd, records + done, size - done);
        if (put < 0 && errno != EINTR) {
            break;
        }
        done += put > 0 ? (size_t)put : 0;
    }
    if (done == size) {
        return done;
    }
    keep_error(t, errno);
    const char *last = done > 0 ? memrchr(records, '\n', done) : NULL;
    size_t whole = last != NULL ? (size_t)(last - records) + 1 : 0;
    struct stat info;
    if (whole < done && fstat(t->fd, &info) == 0 &&
        ftruncate(t->fd, info.st_size - (off_t)(done - whole)) != 0) {
        keep_error(t, errno);
    }
    return whole;
}

void stk_transcript_write(stk_transcript *transcript, const char *records, size_t size,
                          int64_t since_ns) {
    stk_transcript *t = transcript;
    pthread_mutex_lock(&t->writing);
    if (t->lost > 0) {
        char stamp[STK_OUTPUT_STAMP + 1];
        char gap[120];
        stk_transcript_stamp(stamp, since_ns, '!', ' ');
        int length = snprintf(gap, sizeof gap, "%s%llu bytes could not be written here\n", stamp,
                              (unsigned long long)t->lost);
        t->lost = append(t, gap, (size_t)length) > 0 ? 0 : t->lost;
    }
    size_t done = t->lost > 0 ? 0 : append(t, records, size);
    t->lost += bytes_told(records + done, size - done);
    pthread_mutex_unlock(&t->writing);
}

stk_status stk_transcript_error(stk_transcript *transcript, stk_error *err) {
    pthread_mutex_lock(&transcript->lock);
    stk_error first = transcript->first;
    pthread_mutex_unlock(&transcript->lock);
    if (first.status != STK_OK && err != NULL && err->status == STK_OK) {
        *err = first;
    }
    return first.status;
}
