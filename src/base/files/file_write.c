/*
 * file_write.c - writing files: a hidden file grows beside the old one and takes its name at the
 * end.
 *
 * A crash at any moment leaves the old file, and at worst a hidden one. Pieces can be collected in
 * memory first.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/error.h"
#include "base/files/disk.h"
#include "base/files/file.h"
#include "base/files/stream.h"
#include "base/files/write_target.h"
#include "base/mem.h"
#include "base/random_id.h"
#include "base/str.h"

#define FAIL_WRITING(err, path) \
    STK_FAIL((err), stk_disk_status(errno), "cannot write %s: %s", (path), stk_disk_reason(errno))

/* A random name is free; the tries are for systems without random numbers. */
#define HIDDEN_TRIES 100
#define HIDDEN_DIGITS (STK_RANDOM_ID_TEXT - 1)
#define HIDDEN_END ".tmp"
#define HIDDEN_BASE_BYTES \
    200 /* of the file's own name in the hidden one; the system allows 255 for all */

/* Small pieces are collected to this many bytes: each write goes through another thread (disk.h),
 * which on a busy machine has to wait for a core. */
#define HOLD_BYTES ((size_t)1 << 20)

/* stk_file_show waits no longer than this for the reader of a pipe. */
#define SHOW_WAIT_NS INT64_C(10000000)

struct stk_file_writer {
    int fd;                  /* the hidden file or the stream; -1: not open yet */
    char *path;              /* owned: as the caller gave it */
    stk_file_how how;        /* its stop is borrowed */
    stk_write_target target; /* what the path stands for */
    char *hidden;            /* owned: path of the hidden file; NULL for a stream */
    bool made;               /* the hidden file exists */
    stk_bytes
        *block; /* borrowed: collects all pieces (stk_file_gather); NULL: pieces are written */
    char *held; /* owned: HOLD_BYTES for small pieces; NULL: not needed yet */
    size_t held_bytes; /* bytes in `held` that are not written yet */
};

static void free_writer(stk_file_writer *writer) {
    if (writer->fd >= 0) {
        (void)stk_disk_close(writer->fd, writer->path);
    }
    stk_write_target_free(&writer->target);
    stk_mem_free(writer->held);
    stk_mem_free(writer->hidden);
    stk_mem_free(writer->path);
    stk_mem_free(writer);
}

/* Puts sixteen random digits into a hidden name. */
static void draw_number(char *hidden) {
    char digits[STK_RANDOM_ID_TEXT];
    stk_random_id_text(digits);
    memcpy(hidden + strlen(hidden) - strlen(HIDDEN_END) - HIDDEN_DIGITS, digits, HIDDEN_DIGITS);
}

/*
 * The hidden name beside `path` for a file that is not whole yet: its own name, and room for a
 * random number.
 */
static char *hidden_name(const char *path) {
    const char *base = stk_path_base(path);
    return stk_str_format("%.*s.%.*s.%0*d" HIDDEN_END, (int)(base - path), path, HIDDEN_BASE_BYTES,
                          base, HIDDEN_DIGITS, 0);
}

/* Allocates all that opening the file needs: stk_file_gather opens it when memory has run out. */
static stk_status new_writer(stk_file_writer **out, const char *path, const stk_file_how *how,
                             stk_error *err) {
    stk_file_writer *writer = stk_mem_new(1, sizeof *writer);
    if (writer == NULL) {
        return STK_FAIL_MEMORY(err, path);
    }
    *writer = (stk_file_writer){.fd = -1, .path = stk_mem_strdup(path), .how = *how};
    stk_status status = writer->path != NULL
                            ? stk_write_target_find(&writer->target, path, how->chosen, err)
                            : STK_FAIL_MEMORY(err, path);
    if (status == STK_OK && !writer->target.stream) {
        writer->hidden = hidden_name(writer->target.path);
        status = writer->hidden != NULL ? STK_OK : STK_FAIL_MEMORY(err, path);
    }
    if (status != STK_OK) {
        free_writer(writer);
        return status;
    }
    *out = writer;
    return STK_OK;
}

/* Creates the hidden file; O_EXCL never opens a file that somebody else has put there. */
static stk_status open_hidden(stk_file_writer *writer, stk_error *err) {
    mode_t mode = writer->target.is_there || writer->how.owner_only ? 0600 : 0666;
    errno = EEXIST;
    for (int i = 0; i < HIDDEN_TRIES && writer->fd < 0 && errno == EEXIST; i++) {
        draw_number(writer->hidden);
        writer->fd = stk_disk_open(writer->hidden,
                                   O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, mode);
    }
    writer->made = writer->fd >= 0;
    return writer->made ? STK_OK : FAIL_WRITING(err, writer->path);
}

static stk_status open_target(stk_file_writer *writer, stk_error *err) {
    return writer->target.stream
               ? stk_file_stream_open(&writer->fd, &writer->target, writer->path, &writer->how, err)
               : open_hidden(writer, err);
}

stk_status stk_file_create_how(stk_file_writer **out, const char *path, const stk_file_how *how,
                               stk_error *err) {
    stk_file_writer *writer = NULL;
    static const stk_file_how own = {0};
    stk_status status = new_writer(&writer, path, how != NULL ? how : &own, err);
    if (status == STK_OK) {
        status = open_target(writer, err);
        if (status == STK_OK) {
            *out = writer;
        } else {
            free_writer(writer);
        }
    }
    return status;
}

stk_status stk_file_create(stk_file_writer **out, const char *path, stk_error *err) {
    return stk_file_create_how(out, path, NULL, err);
}

stk_status stk_file_gather(stk_file_writer **out, const char *path, stk_bytes *block,
                           stk_error *err) {
    stk_status status = new_writer(out, path, &(stk_file_how){0}, err);
    block->size = 0;
    if (status == STK_OK) {
        (*out)->block = block;
    }
    return status;
}

static stk_status write_all(const stk_file_writer *writer, const void *data, size_t size,
                            stk_error *err) {
    const char *bytes = data;
    if (writer->target.stream) {
        return stk_file_stream_write(writer->fd, data, size, writer->path, &writer->how, err);
    }
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

/* Writes the held bytes. */
static stk_status write_held(stk_file_writer *writer, stk_error *err) {
    size_t bytes = writer->held_bytes;
    writer->held_bytes = 0;
    return bytes > 0 ? write_all(writer, writer->held, bytes, err) : STK_OK;
}

/* Streams get each piece at once; so do files where there is no memory to hold pieces. */
static stk_status hold_or_write(stk_file_writer *writer, const void *data, size_t size,
                                stk_error *err) {
    stk_status status = STK_OK;
    if (writer->held == NULL && size < HOLD_BYTES && !writer->target.stream) {
        writer->held = stk_mem_raw(HOLD_BYTES, 1);
    }
    if (writer->held == NULL || size > HOLD_BYTES - writer->held_bytes) {
        status = write_held(writer, err);
    }
    if (status != STK_OK) {
        return status;
    }
    if (writer->held == NULL || size >= HOLD_BYTES) {
        return write_all(writer, data, size, err);
    }
    memcpy(writer->held + writer->held_bytes, data, size);
    writer->held_bytes += size;
    return STK_OK;
}

/* Writes the gathered block to the file; later pieces follow it there. */
static stk_status spill(stk_file_writer *writer, stk_error *err) {
    stk_bytes *block = writer->block;
    writer->block = NULL;
    stk_status status = open_target(writer, err);
    STK_THEN(status, write_all(writer, block->data, block->size, err));
    stk_bytes_free(block);
    return status;
}

/* Appends to the block; false without memory. */
static bool gather(stk_bytes *block, const void *data, size_t size) {
    if (block->size > SIZE_MAX - size ||
        !STK_RESERVE(block->data, block->capacity, block->size + size)) {
        return false;
    }
    if (size > 0) {
        memcpy(block->data + block->size, data, size);
    }
    block->size += size;
    return true;
}

stk_status stk_file_append(stk_file_writer *writer, const void *data, size_t size, stk_error *err) {
    if (size == 0 || (writer->block != NULL && gather(writer->block, data, size))) {
        return STK_OK;
    }
    stk_status status = writer->block != NULL ? spill(writer, err) : STK_OK;
    return status == STK_OK ? hold_or_write(writer, data, size, err) : status;
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
 * Gives the new file the mode and owner of the replaced one. Only root may give files away; where
 * the owner cannot be kept, the set-user and set-group bits are dropped. The mode comes last, since
 * a change of owner clears bits of it. Errors are ignored: some file systems have no modes.
 */
static void take_over_mode(const stk_file_writer *writer) {
    const struct stat *before = &writer->target.info;
    mode_t shown = writer->how.passing ? 0444 : 0;
    if (writer->how.owner_only) {
        return;
    }
    if (writer->target.is_there) {
        bool given =
            stk_disk_set_owner(writer->fd, writer->path, before->st_uid, before->st_gid) == 0;
        if (!given &&
            stk_disk_set_owner(writer->fd, writer->path, (uid_t)-1, before->st_gid) != 0) {
            errno = 0; /* it keeps the group of new files in this folder */
        }
        mode_t mode = before->st_mode & (given ? 07777 : 0777);
        (void)stk_disk_set_mode(writer->fd, writer->path, mode | shown);
    } else if (writer->how.passing) {
        (void)stk_disk_set_mode(writer->fd, writer->path, 0644);
    }
}

/*
 * Gives the hidden file its name. Some file systems (ext4) write a file out before it may replace
 * another by rename, which takes milliseconds. A passing file need not survive a power cut: the two
 * exchange names instead, and the old one is removed.
 */
static bool put_in_place(const stk_file_writer *writer) {
    const char *path = writer->target.path;
    if (writer->how.passing && writer->target.is_there &&
        stk_disk_exchange(writer->hidden, path) == 0) {
        (void)stk_disk_remove(writer->hidden);
        return true;
    }
    return stk_disk_rename(writer->hidden, path) == 0;
}

/* Whether the block has the contents and nothing is to be written. An empty file is written. */
static bool is_gathered(const stk_file_writer *writer) {
    return writer->block != NULL && writer->block->size > 0;
}

/* Syncs the hidden file and gives it its name. */
static stk_status replace(stk_file_writer *writer, stk_error *err) {
    bool passing = writer->how.passing;
    take_over_mode(writer);
    if (!passing && stk_disk_sync(writer->fd, writer->path) != 0 && errno != EINVAL &&
        errno != EROFS) {
        return FAIL_WRITING(err, writer->path);
    }
    int closed = stk_disk_close(writer->fd, writer->path);
    writer->fd = -1;
    if (closed != 0 || !put_in_place(writer)) {
        return FAIL_WRITING(err, writer->path);
    }
    if (!passing) {
        sync_parent(writer->target.path);
    }
    return STK_OK;
}

stk_status stk_file_commit(stk_file_writer *writer, stk_error *err) {
    if (is_gathered(writer)) {
        free_writer(writer);
        return STK_OK;
    }
    stk_status status = writer->block != NULL ? spill(writer, err) : STK_OK;
    STK_THEN(status, write_held(writer, err));
    if (status == STK_OK && !writer->target.stream) {
        status = replace(writer, err);
    }
    if (status != STK_OK) {
        stk_file_discard(writer);
        return status;
    }
    free_writer(writer);
    return STK_OK;
}

void stk_file_discard(stk_file_writer *writer) {
    if (writer != NULL) {
        if (writer->block != NULL) {
            writer->block->size = 0;
        } else if (writer->made) {
            (void)stk_disk_remove(writer->hidden);
        }
        free_writer(writer);
    }
}

/* Writes the whole contents and commits. */
static stk_status fill_and_commit(stk_file_writer *writer, const void *data, size_t size,
                                  stk_error *err) {
    stk_status status =
        write_all(writer, data, size, err); /* no later piece would be joined with it */
    if (status != STK_OK) {
        stk_file_discard(writer);
        return status;
    }
    return stk_file_commit(writer, err);
}

stk_status stk_file_write_how(const char *path, const void *data, size_t size,
                              const stk_file_how *how, stk_error *err) {
    stk_file_writer *writer = NULL;
    stk_status status = stk_file_create_how(&writer, path, how, err);
    return status == STK_OK ? fill_and_commit(writer, data, size, err) : status;
}

stk_status stk_file_write(const char *path, const void *data, size_t size, stk_error *err) {
    return stk_file_write_how(path, data, size, NULL, err);
}

stk_status stk_file_show(const char *path, const void *data, size_t size, stk_error *err) {
    stk_file_how how = {
        .chosen = true, .passing = true, .deadline_ns = stk_clock_ns() + SHOW_WAIT_NS};
    return stk_file_write_how(path, data, size, &how, err);
}

stk_status stk_file_rewrite(const char *path, const void *data, size_t size, stk_error *err) {
    stk_file_writer *writer = NULL;
    stk_status status = stk_file_create_how(&writer, path, &(stk_file_how){.chosen = true}, err);
    if (status == STK_OK && !writer->target.is_there) {
        stk_file_discard(writer);
        errno = ENOENT;
        return FAIL_WRITING(err, path);
    }
    return status == STK_OK ? fill_and_commit(writer, data, size, err) : status;
}

/* Makes a link to `path` under a hidden name and renames it to `alias`. */
static bool link_in_place(const char *path, const char *alias, char *hidden) {
    bool made = false;
    errno = EEXIST;
    for (int i = 0; i < HIDDEN_TRIES && !made && errno == EEXIST; i++) {
        draw_number(hidden);
        made = stk_disk_link(path, hidden) == 0;
    }
    bool linked = made && stk_disk_rename(hidden, alias) == 0;
    if (made) {
        (void)stk_disk_remove(hidden); /* a rename between two names of one file does nothing */
    }
    return linked;
}

stk_status stk_file_alias(const char *path, const char *alias, stk_error *err) {
    stk_write_target target = {0};
    char *data = NULL;
    size_t size = 0;
    stk_status status = stk_write_target_find(&target, alias, false, err);
    if (status != STK_OK) {
        return status;
    }
    stk_write_target_free(&target);
    char *hidden = hidden_name(alias);
    if (hidden == NULL) {
        return STK_FAIL_MEMORY(err, alias);
    }
    bool linked = link_in_place(path, alias, hidden);
    stk_mem_free(hidden);
    if (linked) {
        sync_parent(alias);
        return STK_OK;
    }
    status = stk_file_read(path, 0, &data, &size, err);
    STK_THEN(status, stk_file_write(alias, data, size, err));
    stk_mem_free(data);
    return status;
}

stk_status stk_file_open_own(const char *path, int flags, mode_t mode, int *fd, stk_error *err) {
    struct stat info;
    /* O_NONBLOCK: opening a pipe must not wait for its other end. */
    *fd = stk_disk_open(path, flags | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC, mode);
    int why = errno;
    if (*fd < 0) {
        bool other =
            why != ETIMEDOUT && stk_disk_look_link(path, &info) == 0 && !S_ISREG(info.st_mode);
        errno = why;
        return other ? stk_write_target_refuse(path, info.st_mode, err) : FAIL_WRITING(err, path);
    }
    bool known = stk_disk_look_at(*fd, path, &info) == 0;
    if (known && S_ISREG(info.st_mode)) {
        return STK_OK;
    }
    stk_status status =
        known ? stk_write_target_refuse(path, info.st_mode, err) : FAIL_WRITING(err, path);
    (void)stk_disk_close(*fd, path);
    *fd = -1;
    return status;
}
