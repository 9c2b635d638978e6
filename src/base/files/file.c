/* file.c - reading files: whole, in part, in pieces; and the blocks that bytes are read into. */
#include "base/files/file.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/error.h"
#include "base/files/disk.h"
#include "base/mem.h"

struct stk_file_reader {
    int fd;
    uint64_t size; /* bytes, when it was opened */
    char *path;    /* owned: for errors */
};

static stk_status too_large(const char *path, size_t max_bytes, stk_error *err) {
    return STK_FAIL(err, STK_ERR_STORAGE, "cannot read %s: it is larger than %zu bytes", path,
                    max_bytes);
}

/* The error of a failed open or read; keeps errno. */
static stk_status fail_reading(const char *path, stk_error *err) {
    int why = errno;
    stk_status status =
        STK_FAIL(err, stk_disk_status(why), "cannot read %s: %s", path, stk_disk_reason(why));
    errno = why;
    return status;
}

static stk_status read_open_file(int fd, const char *path, const struct stat *info,
                                 size_t max_bytes, stk_bytes *bytes, stk_error *err) {
    if (S_ISDIR(info->st_mode)) {
        return STK_FAIL(err, STK_ERR_STORAGE, "cannot read %s: it is a folder", path);
    }
    if (max_bytes > 0 && info->st_size > 0 && (uint64_t)info->st_size > max_bytes) {
        return too_large(path, max_bytes, err);
    }
    /* One byte for the NUL and one more, so that the read that meets the end needs no growing. */
    size_t need = (size_t)(info->st_size > 0 ? info->st_size : 4096) + 2;
    bytes->size = 0;
    for (;;) {
        if (max_bytes > 0 && bytes->size > max_bytes) {
            return too_large(path, max_bytes, err);
        }
        if (bytes->size + 2 > need) {
            need *= 2;
        }
        if (!stk_bytes_reserve(bytes, need)) {
            return STK_FAIL_MEMORY(err, path);
        }
        ssize_t got =
            stk_disk_read(fd, path, bytes->data + bytes->size, bytes->capacity - bytes->size - 1);
        if (got < 0 && errno == EINTR) {
            continue;
        }
        if (got < 0) {
            return fail_reading(path, err);
        }
        if (got == 0) {
            break;
        }
        bytes->size += (size_t)got;
    }
    if (S_ISREG(info->st_mode) && (int64_t)bytes->size < (int64_t)info->st_size) {
        return STK_FAIL(err, STK_ERR_STORAGE,
                        "cannot read %s: it became shorter while it was read (%zu of %lld bytes)",
                        path, bytes->size, (long long)info->st_size);
    }
    bytes->data[bytes->size] = '\0';
    return STK_OK;
}

/* Closing must not hide why reading failed. */
static void close_quietly(int fd, const char *path) {
    int why = errno;
    (void)stk_disk_close(fd, path);
    errno = why;
}

/* Reads a whole file, or with `stream` also a pipe, which may block. */
static stk_status read_path(const char *path, bool stream, size_t max_bytes, stk_bytes *bytes,
                            stk_error *err) {
    errno = 0;
    /* A file is opened without waiting: a pipe without a writer is refused, not waited for. */
    int fd = stream ? open(path, O_RDONLY | O_CLOEXEC)
                    : stk_disk_open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK, 0);
    if (fd < 0) {
        return fail_reading(path, err);
    }
    struct stat info;
    stk_status status = STK_OK;
    if (stk_disk_look_at(fd, path, &info) != 0) {
        status = fail_reading(path, err);
    } else if (!stream && !S_ISREG(info.st_mode) && !S_ISDIR(info.st_mode)) {
        status = STK_FAIL(err, STK_ERR_STORAGE, "cannot read %s: it is not a file", path);
    } else {
        status = read_open_file(fd, path, &info, max_bytes, bytes, err);
    }
    close_quietly(fd, path);
    return status;
}

stk_status stk_file_open(stk_file_reader **out, const char *path, stk_error *err) {
    stk_file_reader *reader = stk_mem_new(1, sizeof *reader);
    char *copy = stk_mem_strdup(path);
    if (reader == NULL || copy == NULL) {
        stk_mem_free(reader);
        stk_mem_free(copy);
        return STK_FAIL_MEMORY(err, path);
    }
    errno = 0;
    reader->path = copy;
    reader->fd = stk_disk_open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK, 0);
    struct stat info = {0};
    stk_status status = STK_OK;
    if (reader->fd < 0 || stk_disk_look_at(reader->fd, path, &info) != 0) {
        status = fail_reading(path, err);
    } else if (!S_ISREG(info.st_mode)) {
        status = STK_FAIL(err, STK_ERR_STORAGE, "cannot read %s: it is %s", path,
                          S_ISDIR(info.st_mode) ? "a folder" : "not a file");
    }
    if (status != STK_OK) {
        stk_file_close(reader);
        return status;
    }
    reader->size = (uint64_t)info.st_size;
    *out = reader;
    return STK_OK;
}

uint64_t stk_file_size(const stk_file_reader *reader) {
    return reader->size;
}

stk_status stk_file_read_at(const stk_file_reader *reader, uint64_t offset, void *data, size_t size,
                            stk_error *err) {
    char *to = data;
    errno = 0;
    while (size > 0) {
        ssize_t got = stk_disk_read_at(reader->fd, reader->path, to, size, (off_t)offset);
        if (got < 0 && errno == EINTR) {
            continue;
        }
        if (got < 0) {
            return fail_reading(reader->path, err);
        }
        if (got == 0) {
            return STK_FAIL(err, STK_ERR_STORAGE,
                            "cannot read %s: it became shorter while it was read (%llu of %llu "
                            "bytes)",
                            reader->path, (unsigned long long)offset,
                            (unsigned long long)reader->size);
        }
        to += got;
        offset += (uint64_t)got;
        size -= (size_t)got;
    }
    return STK_OK;
}

void stk_file_close(stk_file_reader *reader) {
    if (reader != NULL) {
        if (reader->fd >= 0) {
            close_quietly(reader->fd, reader->path);
        }
        stk_mem_free(reader->path);
        stk_mem_free(reader);
    }
}

stk_status stk_file_read_part(const char *path, uint64_t offset, size_t length, stk_bytes *bytes,
                              stk_error *err) {
    bytes->size = 0;
    if (!stk_bytes_reserve(bytes, length + 1)) {
        return STK_FAIL_MEMORY(err, path);
    }
    errno = 0;
    int fd = stk_disk_open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK, 0);
    stk_status status = fd >= 0 ? STK_OK : fail_reading(path, err);
    while (status == STK_OK && bytes->size < length) {
        ssize_t got = stk_disk_read_at(fd, path, bytes->data + bytes->size, length - bytes->size,
                                       (off_t)(offset + bytes->size));
        if (got < 0 && errno != EINTR) {
            status = fail_reading(path, err);
        } else if (got == 0) {
            break;
        }
        bytes->size += got > 0 ? (size_t)got : 0;
    }
    bytes->data[bytes->size] = '\0';
    if (fd >= 0) {
        close_quietly(fd, path);
    }
    return status;
}

/* The same into a new block that the caller frees. */
static stk_status read_new(const char *path, bool stream, size_t max_bytes, char **data,
                           size_t *size, stk_error *err) {
    stk_bytes bytes = {0};
    stk_status status = read_path(path, stream, max_bytes, &bytes, err);
    if (status != STK_OK) {
        stk_bytes_free(&bytes);
        return status;
    }
    *data = (char *)bytes.data;
    *size = bytes.size;
    return STK_OK;
}

void stk_bytes_free(stk_bytes *bytes) {
    stk_mem_free(bytes->data);
    memset(bytes, 0, sizeof *bytes);
}

bool stk_bytes_reserve(stk_bytes *bytes, size_t capacity) {
    if (bytes->capacity >= capacity) {
        return true;
    }
    uint8_t *grown = stk_mem_resize(bytes->data, capacity, 1);
    if (grown != NULL) {
        bytes->data = grown;
        bytes->capacity = capacity;
    }
    return grown != NULL;
}

stk_status stk_file_read_into(const char *path, size_t max_bytes, stk_bytes *bytes,
                              stk_error *err) {
    return read_path(path, false, max_bytes, bytes, err);
}

stk_status stk_file_read(const char *path, size_t max_bytes, char **data, size_t *size,
                         stk_error *err) {
    return read_new(path, false, max_bytes, data, size, err);
}

stk_status stk_file_read_stream(const char *path, size_t max_bytes, char **data, size_t *size,
                                stk_error *err) {
    return read_new(path, true, max_bytes, data, size, err);
}
