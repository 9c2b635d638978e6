/* file_write.c - atomic files out, in pieces or whole, at once or gathered in memory first. */
#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/disk.h"
#include "base/error.h"
#include "base/file.h"
#include "base/mem.h"
#include "base/str.h"

#define FAIL_WRITING(err, path) \
    STK_FAIL((err), STK_ERR_STORAGE, "cannot write %s: %s", (path), stk_disk_reason(errno))

struct stk_file_writer {
    int fd;           /* the hidden file; -1: there is none yet */
    char *path;       /* owned: where it goes */
    char *hidden;     /* owned: where it grows */
    bool passing;     /* nobody minds when a power cut undoes it */
    stk_bytes *block; /* borrowed: where it grows instead; NULL: it does not, or not any more */
};

static void free_writer(stk_file_writer *writer) {
    if (writer->fd >= 0) {
        (void)stk_disk_close(writer->fd, writer->path);
    }
    stk_mem_free(writer->hidden);
    stk_mem_free(writer->path);
    stk_mem_free(writer);
}

/* Where a file grows that is to be called `path`: the thread's number keeps writers of one path
 * apart, in this process and in others. */
static char *hidden_name(const char *path) {
    const char *base = stk_path_base(path);
    return stk_str_format("%.*s.%s.%ld.tmp", (int)(base - path), path, base, (long)gettid());
}

static stk_status new_writer(stk_file_writer **out, const char *path, stk_error *err) {
    stk_file_writer *writer = stk_mem_new(1, sizeof *writer);
    if (writer == NULL) {
        return STK_FAIL_MEMORY(err, path);
    }
    writer->path = stk_mem_strdup(path);
    writer->hidden = hidden_name(path);
    writer->fd = -1;
    if (writer->path == NULL || writer->hidden == NULL) {
        free_writer(writer);
        return STK_FAIL_MEMORY(err, path);
    }
    *out = writer;
    return STK_OK;
}

static stk_status open_hidden(stk_file_writer *writer, stk_error *err) {
    writer->fd = stk_disk_open(writer->hidden, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
    return writer->fd >= 0 ? STK_OK : FAIL_WRITING(err, writer->path);
}

stk_status stk_file_create(stk_file_writer **out, const char *path, stk_error *err) {
    stk_file_writer *writer = NULL;
    stk_status status = new_writer(&writer, path, err);
    if (status == STK_OK) {
        status = open_hidden(writer, err);
        if (status == STK_OK) {
            *out = writer;
        } else {
            free_writer(writer);
        }
    }
    return status;
}

stk_status stk_file_gather(stk_file_writer **out, const char *path, stk_bytes *block,
                           stk_error *err) {
    stk_status status = new_writer(out, path, err);
    block->size = 0;
    if (status == STK_OK) {
        (*out)->block = block;
    }
    return status;
}

static stk_status write_all(const stk_file_writer *writer, const void *data, size_t size,
                            stk_error *err) {
    const char *bytes = data;
    while (size > 0) {
        ssize_t written = stk_disk_write(writer->fd, writer->path, bytes, size);
        if (written < 0 && errno == EINTR) {
            continue;
        }
        if (written < 0) {
            return FAIL_WRITING(err, writer->path);
        }
        bytes += written;
        size -= (size_t)written;
    }
    return STK_OK;
}

/* What was gathered goes to the hidden file, as all that follows does. */
static stk_status spill(stk_file_writer *writer, stk_error *err) {
    stk_bytes *block = writer->block;
    writer->block = NULL;
    stk_status status = open_hidden(writer, err);
    if (status == STK_OK) {
        status = write_all(writer, block->data, block->size, err);
    }
    stk_bytes_free(block);
    return status;
}

/* False without memory for them. */
static bool gather(stk_bytes *block, const void *data, size_t size) {
    uint8_t *grown = block->size > SIZE_MAX - size
                         ? NULL
                         : stk_mem_grow(block->data, &block->capacity, block->size + size, 1);
    if (grown == NULL) {
        return false;
    }
    block->data = grown;
    memcpy(grown + block->size, data, size);
    block->size += size;
    return true;
}

stk_status stk_file_append(stk_file_writer *writer, const void *data, size_t size, stk_error *err) {
    if (size == 0 || (writer->block != NULL && gather(writer->block, data, size))) {
        return STK_OK;
    }
    stk_status status = writer->block != NULL ? spill(writer, err) : STK_OK;
    return status == STK_OK ? write_all(writer, data, size, err) : status;
}

/* The rename itself must reach the disk too; a file system that cannot sync folders is fine. */
static void sync_parent(const char *path) {
    char *folder = stk_mem_strndup(path, (size_t)(stk_path_base(path) - path));
    if (folder != NULL) {
        int fd =
            stk_disk_open(folder[0] != '\0' ? folder : ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC, 0);
        if (fd >= 0) {
            (void)stk_disk_sync(fd, path);
            (void)stk_disk_close(fd, path);
        }
        stk_mem_free(folder);
    }
}

/*
 * Gives the hidden file its name. Some file systems (ext4) write a file out before it may take the
 * place of another, which takes milliseconds; where nobody minds a power cut the two change places
 * instead, and the old one goes.
 */
static bool put_in_place(const stk_file_writer *writer) {
    if (writer->passing && stk_path_is_file(writer->path) &&
        stk_disk_exchange(writer->hidden, writer->path) == 0) {
        (void)stk_disk_remove(writer->hidden);
        return true;
    }
    return stk_disk_rename(writer->hidden, writer->path) == 0;
}

/* All that was gathered stays where it is; nothing gathered is an empty file. */
static bool is_gathered(const stk_file_writer *writer) {
    return writer->block != NULL && writer->block->size > 0;
}

stk_status stk_file_commit(stk_file_writer *writer, stk_error *err) {
    if (is_gathered(writer)) {
        free_writer(writer);
        return STK_OK;
    }
    stk_status status = writer->block != NULL ? spill(writer, err) : STK_OK;
    if (status == STK_OK && !writer->passing && stk_disk_sync(writer->fd, writer->path) != 0 &&
        errno != EINVAL && errno != EROFS) {
        status = FAIL_WRITING(err, writer->path);
    }
    if (writer->fd >= 0 && stk_disk_close(writer->fd, writer->path) != 0 && status == STK_OK) {
        status = FAIL_WRITING(err, writer->path);
    }
    writer->fd = -1;
    if (status == STK_OK && !put_in_place(writer)) {
        status = FAIL_WRITING(err, writer->path);
    }
    if (status != STK_OK) {
        stk_file_discard(writer);
        return status;
    }
    if (!writer->passing) {
        sync_parent(writer->path);
    }
    free_writer(writer);
    return STK_OK;
}

void stk_file_discard(stk_file_writer *writer) {
    if (writer != NULL) {
        if (writer->block != NULL) {
            writer->block->size = 0;
        } else {
            (void)stk_disk_remove(writer->hidden);
        }
        free_writer(writer);
    }
}

/* All that a new file is to hold, and its name. */
static stk_status fill_and_commit(stk_file_writer *writer, const void *data, size_t size,
                                  stk_error *err) {
    stk_status status = stk_file_append(writer, data, size, err);
    if (status != STK_OK) {
        stk_file_discard(writer);
        return status;
    }
    return stk_file_commit(writer, err);
}

static stk_status write_whole(const char *path, const void *data, size_t size, bool passing,
                              stk_error *err) {
    stk_file_writer *writer = NULL;
    stk_status status = stk_file_create(&writer, path, err);
    if (status != STK_OK) {
        return status;
    }
    writer->passing = passing;
    if (passing) {
        (void)fchmod(writer->fd, 0644); /* a file system without modes has them as they are */
    }
    return fill_and_commit(writer, data, size, err);
}

stk_status stk_file_write(const char *path, const void *data, size_t size, stk_error *err) {
    return write_whole(path, data, size, false, err);
}

stk_status stk_file_show(const char *path, const void *data, size_t size, stk_error *err) {
    return write_whole(path, data, size, true, err);
}

stk_status stk_file_rewrite(const char *path, const void *data, size_t size, stk_error *err) {
    struct stat info;
    stk_file_writer *writer = NULL;
    char *target = realpath(path, NULL);
    if (target == NULL || stat(target, &info) != 0) {
        stk_status status = FAIL_WRITING(err, path);
        free(target);
        return status;
    }
    stk_status status = stk_file_create(&writer, target, err);
    free(target);
    if (status != STK_OK) {
        return status;
    }
    /* Only root may give files away; the mode comes last, since that takes bits of it off. */
    if (fchown(writer->fd, info.st_uid, info.st_gid) != 0) {
        errno = 0;
    }
    (void)fchmod(writer->fd, info.st_mode & 07777);
    return fill_and_commit(writer, data, size, err);
}

stk_status stk_file_alias(const char *path, const char *alias, stk_error *err) {
    char *hidden = hidden_name(alias);
    char *data = NULL;
    size_t size = 0;
    if (hidden == NULL) {
        return STK_FAIL_MEMORY(err, alias);
    }
    (void)stk_disk_remove(hidden);
    bool linked = stk_disk_link(path, hidden) == 0 && stk_disk_rename(hidden, alias) == 0;
    (void)stk_disk_remove(hidden); /* two names of one file are left alone by a rename */
    stk_mem_free(hidden);
    if (linked) {
        sync_parent(alias);
        return STK_OK;
    }
    stk_status status = stk_file_read(path, 0, &data, &size, err);
    if (status == STK_OK) {
        status = stk_file_write(alias, data, size, err);
    }
    stk_mem_free(data);
    return status;
}
