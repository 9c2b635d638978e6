/*
 * file.h - reading files, and writing them so that a kill leaves the old or the new contents.
 *
 * Errors are STK_ERR_STORAGE with the path and the system's reason, or STK_ERR_MEMORY where the
 * process has run out of memory or descriptors. A regular file that becomes shorter while it is
 * read is an error. After a failed read errno is the system's reason, or 0 where the system gave
 * none.
 *
 * On a thread that has entered a stk_disk (disk.h) every call has a time-out, and a disk that does
 * not answer is an error like others. The exception is stk_file_read_stream. Threads: safe.
 *
 * Folders are in dir.h, paths in path.h, locks in file_lock.h.
 */
#ifndef STK_BASE_FILES_FILE_H
#define STK_BASE_FILES_FILE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <sys/types.h>

#include <stoker/status.h>
#include <stoker/stop.h>

#include "base/files/dir.h"
#include "base/files/path.h"

/* ---- reading ---- */

/* A block of bytes that callers reuse; starts zeroed, ends with stk_bytes_free. */
typedef struct stk_bytes {
    uint8_t *data; /* owned */
    size_t size;   /* bytes in use */
    size_t capacity;
} stk_bytes;

void stk_bytes_free(stk_bytes *bytes);

/* Makes room for `capacity` bytes and keeps the contents; false without memory. */
STK_CHECKED bool stk_bytes_reserve(stk_bytes *bytes, size_t capacity);

/* Reads a whole regular file into a block, which grows as needed. 0 as max_bytes: no limit. */
STK_CHECKED stk_status stk_file_read_into(const char *path, size_t max_bytes, stk_bytes *bytes,
                                          stk_error *err);

/* Reads `length` bytes from `offset` on, or fewer at the end of the file. */
STK_CHECKED stk_status stk_file_read_part(const char *path, uint64_t offset, size_t length,
                                          stk_bytes *bytes, stk_error *err);

/*
 * Reads a whole regular file into a new buffer with a NUL after the contents; stk_mem_free. A file
 * over max_bytes is an error; 0: no limit.
 */
STK_CHECKED stk_status stk_file_read(const char *path, size_t max_bytes, char **data, size_t *size,
                                     stk_error *err);

/* The same, also for pipes such as a shell's <(...). Waits until the pipe ends. */
STK_CHECKED stk_status stk_file_read_stream(const char *path, size_t max_bytes, char **data,
                                            size_t *size, stk_error *err);

/*
 * A regular file that any number of threads read in pieces. A read beyond the end is an error: the
 * file has become shorter. stk_file_close frees the reader; NULL is fine.
 */
typedef struct stk_file_reader stk_file_reader;
STK_CHECKED stk_status stk_file_open(stk_file_reader **reader, const char *path, stk_error *err);
uint64_t stk_file_size(const stk_file_reader *reader); /* bytes, when it was opened */
STK_CHECKED stk_status stk_file_read_at(const stk_file_reader *reader, uint64_t offset, void *data,
                                        size_t size, stk_error *err);
void stk_file_close(stk_file_reader *reader);

/* ---- writing ---- */

/*
 * How a file is written. NULL, or all zeros, is a file of Stoker's own, for example in a run
 * folder: it is synced before it gets its name, and a link or another thing in its place is
 * refused (write_target.h). A file that replaces another keeps its mode, and its owner where the
 * system allows that.
 *
 * A path that a user has `chosen` may also be a link or a stream. Bytes that went into a stream
 * before an error stay there. A writer to a pipe waits for the reader until `stop` or the deadline.
 */
typedef struct stk_file_how {
    bool chosen;          /* a user gave the path */
    bool passing;         /* will be replaced soon: not synced, and readable for everybody */
    bool owner_only;      /* mode 0600, whatever the umask and the replaced file's mode */
    const stk_stop *stop; /* borrowed; NULL: no request to stop */
    int64_t deadline_ns;  /* stk_clock_ns, for readers of a pipe; 0: none */
} stk_file_how;

/* Replaces or creates `path` in one step: a reader sees the old contents or all of the new. */
STK_CHECKED stk_status stk_file_write(const char *path, const void *data, size_t size,
                                      stk_error *err);
STK_CHECKED stk_status stk_file_write_how(const char *path, const void *data, size_t size,
                                          const stk_file_how *how, stk_error *err);

/* The same for a chosen file, which must exist. */
STK_CHECKED stk_status stk_file_rewrite(const char *path, const void *data, size_t size,
                                        stk_error *err);

/*
 * Gives the file `path` a second name in one step, replacing what has the name `alias`: a hard
 * link, or a copy where the file system has no links. Replacing one file later leaves the other.
 */
STK_CHECKED stk_status stk_file_alias(const char *path, const char *alias, stk_error *err);

/*
 * Writes a chosen `passing` file, such as a metrics page. Waits 10 ms at most for the reader of a
 * pipe: what others look at must not hold up the work.
 */
STK_CHECKED stk_status stk_file_show(const char *path, const void *data, size_t size,
                                     stk_error *err);

/*
 * Writing piece by piece. The pieces go to a hidden file in the same folder; commit syncs it and
 * renames it, discard (NULL is fine) removes it. Both free the writer.
 */
typedef struct stk_file_writer stk_file_writer;
STK_CHECKED stk_status stk_file_create(stk_file_writer **writer, const char *path, stk_error *err);
STK_CHECKED stk_status stk_file_create_how(stk_file_writer **writer, const char *path,
                                           const stk_file_how *how, stk_error *err);
STK_CHECKED stk_status stk_file_append(stk_file_writer *writer, const void *data, size_t size,
                                       stk_error *err);
STK_CHECKED stk_status stk_file_commit(stk_file_writer *writer, stk_error *err);
void stk_file_discard(stk_file_writer *writer);

/*
 * A writer that collects the pieces in a borrowed block while memory lasts. If the block holds
 * bytes after commit, they are the whole contents and nothing was written to the disk. If the block
 * is empty, the file is in place. The block's earlier contents are lost.
 */
STK_CHECKED stk_status stk_file_gather(stk_file_writer **writer, const char *path, stk_bytes *block,
                                       stk_error *err);

/*
 * Opens a file of Stoker's own that is appended to or changed in place. `flags` and `mode` are
 * those of open(2). A link, a pipe or a device is refused. stk_disk_close closes it.
 */
STK_CHECKED stk_status stk_file_open_own(const char *path, int flags, mode_t mode, int *fd,
                                         stk_error *err);

#endif
