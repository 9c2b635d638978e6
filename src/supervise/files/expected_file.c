/*
 * expected_file.c - compares a file before and after the run.
 *
 * A file is new if its identity, time, size or contents differ. Each of them alone can deceive: a
 * copy keeps its time, a clock was set back, a file was overwritten in place.
 */
#include "supervise/files/expected_file.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/error.h"
#include "base/files/disk.h"
#include "base/files/file.h"
#include "base/mem.h"
#include "base/numbers/digest.h"
#include "base/str.h"
#include "base/text/csv.h"
#include "base/threads/timed_call.h"

/* Bytes at either end of the file that the digest covers: gigabytes would take too long. */
#define END_BYTES (1 << 20)

_Static_assert(sizeof((stk_expected_file *)0)->digest == STK_SHA256_TEXT, "a digest's text");

/* Digest of both ends; "" if they cannot be read. Fails only for lack of memory. */
static stk_status digest_of(const char *path, int64_t size, char *text) {
    uint64_t tail = size > END_BYTES ? (uint64_t)size - END_BYTES : 0;
    uint8_t digest[STK_SHA256_BYTES];
    stk_bytes bytes = {0};
    stk_sha256 hash;
    stk_sha256_begin(&hash);
    stk_status status = stk_file_read_part(path, 0, END_BYTES, &bytes, NULL);
    if (status == STK_OK) {
        stk_sha256_add(&hash, bytes.data, bytes.size);
        status = stk_file_read_part(path, tail, END_BYTES, &bytes, NULL);
    }
    if (status == STK_OK) {
        stk_sha256_add(&hash, bytes.data, bytes.size);
        stk_sha256_end(&hash, digest);
        stk_hex(digest, sizeof digest, text);
    } else {
        text[0] = '\0';
    }
    stk_bytes_free(&bytes);
    return status == STK_ERR_MEMORY ? status : STK_OK;
}

/* Reads the file's present state. seen->there is false if it does not exist; errno says why. */
static stk_status read_state(const char *path, stk_expected_file *seen, stk_error *err) {
    struct stat info;
    memset(seen, 0, sizeof *seen);
    seen->path = path;
    if (path == NULL || stk_disk_look(path, &info) != 0) {
        return STK_OK;
    }
    seen->there = true;
    seen->device = (uint64_t)info.st_dev;
    seen->inode = (uint64_t)info.st_ino;
    seen->changed_ns = (int64_t)info.st_mtim.tv_sec * 1000000000 + info.st_mtim.tv_nsec;
    seen->size = (int64_t)info.st_size;
    if (S_ISREG(info.st_mode) && digest_of(path, seen->size, seen->digest) != STK_OK) {
        return STK_FAIL_MEMORY(err, path);
    }
    return STK_OK;
}

/* Lines that are not blank. */
static stk_status count_lines(const char *path, int64_t *lines, stk_error *err) {
    stk_bytes bytes = {0};
    stk_status status = stk_file_read_into(path, 0, &bytes, err);
    bool filled = false;
    *lines = 0;
    for (size_t i = 0; status == STK_OK && i < bytes.size; i++) {
        filled = filled || strchr(" \t\r\n", bytes.data[i]) == NULL;
        if (filled && (bytes.data[i] == '\n' || i + 1 == bytes.size)) {
            (*lines)++;
            filled = false;
        }
    }
    stk_bytes_free(&bytes);
    return status;
}

/* Tables have a header, whether separated by commas or tabs; texts have none. -1: the file's format
 * has no rows. */
static stk_status count_rows(const char *path, int64_t *rows, stk_error *err) {
    stk_status status = STK_OK;
    if (stk_str_ends_with_nocase(path, ".csv")) {
        stk_csv csv;
        status = stk_csv_read(path, &csv, err);
        *rows = status == STK_OK ? (int64_t)csv.rows : -1;
        stk_csv_free(&csv);
    } else if (stk_str_ends_with_nocase(path, ".tsv")) {
        status = count_lines(path, rows, err);
        *rows -= *rows > 0 ? 1 : 0;
    } else if (stk_str_ends_with_nocase(path, ".txt")) {
        status = count_lines(path, rows, err);
    }
    return status;
}

stk_status stk_expected_file_begin(stk_expected_file *expect, const char *path, stk_error *err) {
    return read_state(path, expect, err);
}

stk_status stk_expected_file_check(const stk_expected_file *expect, int64_t *rows, stk_error *err) {
    const char *path = expect->path;
    stk_expected_file now;
    *rows = -1;
    if (path == NULL) {
        return STK_OK;
    }
    errno = 0;
    stk_status status = read_state(path, &now, err);
    if (status != STK_OK) {
        return status;
    }
    if (!now.there) {
        return errno == ENOENT
                   ? STK_FAIL(err, STK_ERR_DATA, "%s was expected and is not there", path)
                   : STK_FAIL(err, STK_ERR_DATA, "%s was expected and cannot be looked at: %s",
                              path, strerror(errno));
    }
    if (!stk_path_is_file(path)) {
        return STK_FAIL(err, STK_ERR_DATA, "%s was expected to be a file and is %s", path,
                        stk_path_is_dir(path) ? "a folder" : "none");
    }
    if (expect->there && expect->device == now.device && expect->inode == now.inode &&
        expect->changed_ns == now.changed_ns && expect->size == now.size &&
        stk_str_equal(expect->digest, now.digest)) {
        return STK_FAIL(err, STK_ERR_DATA,
                        "%s is as it was before the run: nothing has written it anew", path);
    }
    if (now.size == 0) {
        return STK_FAIL(err, STK_ERR_DATA, "%s was expected to have rows and is empty", path);
    }
    status = count_rows(path, rows, err);
    if (status == STK_OK && *rows == 0) {
        status = STK_FAIL(err, STK_ERR_DATA, "%s has no rows%s", path,
                          stk_str_ends_with_nocase(path, ".txt") ? "" : ", at most a header");
    }
    if (status != STK_OK) {
        *rows = -1;
    }
    return status == STK_ERR_STORAGE ? STK_ERR_DATA : status;
}

/* ---- On a disk that may hang ---- */

/* A check that may be abandoned, with copies of all it needs. The check is one call with one
 * time-out, since counting the rows of gigabytes takes time as well. */
typedef struct expect_call {
    char *path;               /* owned */
    stk_expected_file expect; /* of that path */
    int64_t rows;
    stk_status status;
    stk_error why;
    char full_path[PATH_MAX];
} expect_call;

static void free_call(void *state) {
    expect_call *l = state;
    stk_mem_free(l->path);
    stk_mem_free(l);
}

static expect_call *new_call(const stk_expected_file *expect, stk_error *err) {
    expect_call *l = stk_mem_new(1, sizeof *l);
    if (l != NULL) {
        l->expect = *expect;
        l->expect.path = l->path = stk_mem_strdup(expect->path);
    }
    if (l == NULL || l->path == NULL) {
        stk_mem_free(l);
        (void)STK_FAIL_MEMORY(err, expect->path);
        return NULL;
    }
    return l;
}

static void check_call(void *state) {
    expect_call *l = state;
    l->status = stk_expected_file_check(&l->expect, &l->rows, &l->why);
    if (l->status == STK_OK && realpath(l->path, l->full_path) == NULL) {
        snprintf(l->full_path, sizeof l->full_path, "%s", l->path);
    }
}

stk_status stk_expected_file_begin_within(stk_expected_file *expect, const char *path,
                                          double within_s, stk_error *err) {
    stk_disk *disk = stk_disk_enter_within(within_s);
    stk_status status = stk_expected_file_begin(expect, path, err);
    if (!stk_disk_leave(disk)) {
        stk_error_clear(err);
        status = STK_FAIL(err, STK_ERR_STORAGE,
                          "the disk of --expect %s has not answered for %s: nothing was started",
                          path, stk_format_span(within_s).text);
    }
    return status;
}

stk_status stk_expected_file_check_within(const stk_expected_file *expect, double within_s,
                                          int64_t *rows, char full_path[PATH_MAX], stk_error *err) {
    *rows = -1;
    full_path[0] = '\0';
    expect_call *l = expect->path != NULL ? new_call(expect, err) : NULL;
    if (l == NULL) {
        return expect->path == NULL ? STK_OK : STK_ERR_MEMORY;
    }
    if (!stk_timed_call_within(check_call, l, free_call, within_s)) {
        return STK_FAIL(err, STK_ERR_DATA, "%s was expected, and its disk has not answered for %s",
                        expect->path, stk_format_span(within_s).text);
    }
    *rows = l->rows;
    snprintf(full_path, PATH_MAX, "%s", l->full_path);
    stk_status status =
        l->status == STK_OK ? STK_OK : STK_FAIL(err, l->status, "%s", l->why.message);
    free_call(l);
    return status;
}
