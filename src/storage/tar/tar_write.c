/* tar_write.c - ustar headers, with PAX headers for long or non-ASCII paths. */
#include "storage/tar/tar_write.h"

#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "base/error.h"
#include "base/files/file.h"
#include "base/mem.h"
#include "base/str.h"

#define BLOCK 512

/* Size of one write, unless a member is larger. */
#define BUFFER_BYTES ((size_t)256 * 1024)

/* Largest size in eleven octal digits. */
#define MAX_OCTAL_SIZE (((uint64_t)1 << 33) - 1)

typedef struct ustar_header {
    char name[100];
    char mode[8];
    char uid[8];
    char gid[8];
    char size[12];
    char mtime[12];
    char sum[8];
    char kind;
    char link[100];
    char magic[6];
    char version[2];
    char owner[32];
    char group[32];
    char device_major[8];
    char device_minor[8];
    char prefix[155];
    char unused[12];
} ustar_header;

_Static_assert(sizeof(ustar_header) == BLOCK, "a header is one block");

struct stk_tar_writer {
    stk_file_writer *file;
    uint8_t *buffer; /* owned; BUFFER_BYTES */
    size_t buffered;
    uint64_t size; /* bytes of the tar so far, including buffered ones */
};

static stk_status flush(stk_tar_writer *w, stk_error *err) {
    stk_status status = stk_file_append(w->file, w->buffer, w->buffered, err);
    w->buffered = 0;
    return status;
}

static stk_status put(stk_tar_writer *w, const void *bytes, size_t size, stk_error *err) {
    stk_status status = STK_OK;
    if (size > BUFFER_BYTES - w->buffered) {
        status = flush(w, err);
    }
    if (status == STK_OK && size > BUFFER_BYTES) {
        status = stk_file_append(w->file, bytes, size, err);
    } else if (status == STK_OK && size > 0) {
        memcpy(w->buffer + w->buffered, bytes, size);
        w->buffered += size;
    }
    w->size += size;
    return status;
}

/* Writes bytes, and zeros up to the end of their last block. */
static stk_status put_body(stk_tar_writer *w, const void *bytes, size_t size, stk_error *err) {
    static const uint8_t zeros[BLOCK];
    stk_status status = put(w, bytes, size, err);
    return status == STK_OK ? put(w, zeros, (BLOCK - size % BLOCK) % BLOCK, err) : status;
}

/* Writes `digits` octal digits and a NUL. */
static void set_octal(char *field, int digits, uint64_t value) {
    field[digits] = '\0';
    for (int i = digits - 1; i >= 0; i--) {
        field[i] = (char)('0' + (value & 7));
        value >>= 3;
    }
}

static stk_status put_header(stk_tar_writer *w, ustar_header *header, char kind, uint64_t size,
                             stk_error *err) {
    uint8_t bytes[BLOCK];
    unsigned sum = 0;
    set_octal(header->mode, 7, 0644);
    set_octal(header->uid, 7, 0);
    set_octal(header->gid, 7, 0);
    set_octal(header->size, 11, size <= MAX_OCTAL_SIZE ? size : 0);
    set_octal(header->mtime, 11, 0);
    set_octal(header->device_major, 7, 0);
    set_octal(header->device_minor, 7, 0);
    header->kind = kind;
    memcpy(header->magic, "ustar", 6);
    memcpy(header->version, "00", 2);
    memset(header->sum, ' ', sizeof header->sum);
    memcpy(bytes, header, sizeof bytes);
    for (size_t i = 0; i < BLOCK; i++) {
        sum += bytes[i];
    }
    set_octal(header->sum, 6, sum); /* and a blank after the NUL, as all tars have it */
    return put(w, header, sizeof *header, err);
}

/* Fills name and prefix; false: the path does not fit or is not ASCII. */
static bool set_path(ustar_header *header, const char *path, size_t length) {
    for (size_t i = 0; i < length; i++) {
        if ((unsigned char)path[i] < 0x20 || (unsigned char)path[i] > 0x7e) {
            return false;
        }
    }
    if (length <= sizeof header->name) {
        memcpy(header->name, path, length);
        return true;
    }
    /* The slash between prefix and name is not written; the first slash that leaves room is used.
     */
    for (size_t i = length - sizeof header->name - 1; i <= sizeof header->prefix && i < length;
         i++) {
        if (path[i] == '/' && i > 0 && i + 1 < length) {
            memcpy(header->prefix, path, i);
            memcpy(header->name, path + i + 1, length - i - 1);
            return true;
        }
    }
    return false;
}

/* A name for readers that do not know PAX: the end of the path, without bytes that are not ASCII.
 */
static void set_plain_name(char *name, size_t size, const char *before, const char *path) {
    size_t length = strlen(before);
    size_t path_length = strlen(path);
    size_t room = size - length;
    memcpy(name, before, length);
    path += path_length > room ? path_length - room : 0;
    for (; *path != '\0' && length < size; path++) {
        unsigned char byte = (unsigned char)*path;
        name[length++] = byte >= 0x20 && byte <= 0x7e ? *path : '_';
    }
}

/* Appends "LENGTH KEY=VALUE\n"; the length includes its own digits. */
static void append_pax(stk_str *out, const char *key, const char *value) {
    size_t rest = strlen(key) + strlen(value) + 3;
    size_t length = rest + 1;
    while ((size_t)snprintf(NULL, 0, "%zu", length) + rest > length) {
        length++;
    }
    stk_str_appendf(out, "%zu %s=%s\n", length, key, value);
}

static stk_status put_pax(stk_tar_writer *w, const char *path, bool path_fits, uint64_t size,
                          stk_error *err) {
    stk_str lines = {0};
    ustar_header header = {0};
    char number[24];
    if (!path_fits) {
        append_pax(&lines, "path", path);
    }
    if (size > MAX_OCTAL_SIZE) {
        snprintf(number, sizeof number, "%llu", (unsigned long long)size);
        append_pax(&lines, "size", number);
    }
    set_plain_name(header.name, sizeof header.name, "PaxHeaders/", path);
    stk_status status = stk_str_ok(&lines) ? STK_OK : STK_FAIL_MEMORY(err, path);
    STK_THEN(status, put_header(w, &header, 'x', lines.length, err));
    STK_THEN(status, put_body(w, lines.text, lines.length, err));
    stk_str_free(&lines);
    return status;
}

stk_status stk_tar_writer_open(stk_tar_writer **out, const char *file, stk_error *err) {
    stk_tar_writer *w = stk_mem_new(1, sizeof *w);
    if (w == NULL || (w->buffer = stk_mem_raw(BUFFER_BYTES, 1)) == NULL) {
        stk_mem_free(w);
        return STK_FAIL_MEMORY(err, file);
    }
    stk_status status = stk_file_create(&w->file, file, err);
    if (status != STK_OK) {
        stk_mem_free(w->buffer);
        stk_mem_free(w);
        return status;
    }
    *out = w;
    return STK_OK;
}

stk_status stk_tar_writer_add(stk_tar_writer *w, const char *path, const void *bytes, size_t size,
                              uint64_t *offset, stk_error *err) {
    ustar_header header = {0};
    stk_status status = STK_OK;
    bool fits = set_path(&header, path, strlen(path));
    if (!fits) {
        set_plain_name(header.name, sizeof header.name, "", path);
    }
    if (!fits || size > MAX_OCTAL_SIZE) {
        status = put_pax(w, path, fits, size, err);
    }
    STK_THEN(status, put_header(w, &header, '0', size, err));
    if (offset != NULL) {
        *offset = w->size;
    }
    return status == STK_OK ? put_body(w, bytes, size, err) : status;
}

stk_status stk_tar_writer_commit(stk_tar_writer *w, uint64_t *size, stk_error *err) {
    static const uint8_t end[2 * BLOCK];
    stk_status status = put(w, end, sizeof end, err);
    STK_THEN(status, flush(w, err));
    if (size != NULL) {
        *size = w->size;
    }
    if (status == STK_OK) {
        status = stk_file_commit(w->file, err);
        w->file = NULL;
    }
    stk_tar_writer_discard(w);
    return status;
}

void stk_tar_writer_discard(stk_tar_writer *w) {
    if (w != NULL) {
        stk_file_discard(w->file);
        stk_mem_free(w->buffer);
        stk_mem_free(w);
    }
}
