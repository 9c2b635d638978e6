/* zip_files.h - zips for tests: small ones, and ones that lie. */
#ifndef STK_TESTS_ZIP_FILES_H
#define STK_TESTS_ZIP_FILES_H

#include <stdint.h>
#include <string.h>
#include <zlib.h>

#include "base/files/file.h"
#include "base/str.h"

enum {
    ZIP_DEFLATE = 1,    /* packed; otherwise stored */
    ZIP_DESCRIPTOR = 2, /* sizes and checksum behind the data, not in the member's header */
    ZIP_WIDE = 4,       /* numbers of 64 bits */
    ZIP_LOCKED = 8,     /* marked as encrypted */
    ZIP_LINK = 16,      /* a symbolic link */
    ZIP_EXTRA = 32,     /* an extra field in the member's header that the directory does not have */
    ZIP_DOS = 64        /* made on Windows */
};

typedef struct zip_writer {
    stk_str body;      /* members, then the whole zip */
    stk_str directory; /* entries */
    unsigned count;
    /* What the directory says of the next member instead of the truth; 0: the truth. */
    uint64_t says_size, says_packed, says_offset;
    uint32_t says_crc;
    uint16_t says_method;
} zip_writer; /* starts zeroed */

static inline void zip_put(stk_str *out, uint64_t value, int size) {
    for (int i = 0; i < size; i++) {
        char byte = (char)(value >> (8 * i));
        stk_str_append_bytes(out, &byte, 1);
    }
}

/* The part of a record that a member's header and the directory have in common. */
static inline void zip_put_common(stk_str *out, unsigned flags, uint16_t method, uint32_t crc,
                                  uint64_t packed, uint64_t size, size_t name) {
    zip_put(out, (flags & ZIP_WIDE) != 0 ? 45 : 20, 2);
    zip_put(out, ((flags & ZIP_LOCKED) != 0 ? 1 : 0) | ((flags & ZIP_DESCRIPTOR) != 0 ? 8 : 0), 2);
    zip_put(out, method, 2);
    zip_put(out, 0, 4);
    zip_put(out, crc, 4);
    zip_put(out, packed, 4);
    zip_put(out, size, 4);
    zip_put(out, name, 2);
}

static inline void zip_add(zip_writer *w, const char *name, const void *data, size_t size,
                           unsigned flags) {
    static uint8_t packed[1 << 20];
    uint16_t method = (flags & ZIP_DEFLATE) != 0 ? 8 : 0;
    uint32_t crc = (uint32_t)crc32_z(0, size > 0 ? data : NULL, size);
    uint64_t offset = w->body.length;
    size_t length = size;
    const void *bytes = data;
    size_t name_length = strlen(name);
    if (method == 8) {
        z_stream stream = {.next_in = (Bytef *)(uintptr_t)data, .avail_in = (uInt)size};
        stream.next_out = packed;
        stream.avail_out = sizeof packed;
        (void)deflateInit2(&stream, 6, Z_DEFLATED, -15, 8, Z_DEFAULT_STRATEGY);
        (void)deflate(&stream, Z_FINISH);
        length = sizeof packed - stream.avail_out;
        (void)deflateEnd(&stream);
        bytes = packed;
    }
    method = w->says_method > 0 ? w->says_method : method;
    bool later = (flags & ZIP_DESCRIPTOR) != 0;
    zip_put(&w->body, 0x04034b50, 4);
    zip_put_common(&w->body, flags, method, later ? 0 : crc, later ? 0 : length, later ? 0 : size,
                   name_length);
    zip_put(&w->body, (flags & ZIP_EXTRA) != 0 ? 9 : 0, 2);
    stk_str_append(&w->body, name);
    if ((flags & ZIP_EXTRA) != 0) {
        zip_put(&w->body, 0x5455, 2);
        zip_put(&w->body, 5, 2);
        stk_str_append_bytes(&w->body, "\x01PPPP", 5);
    }
    stk_str_append_bytes(&w->body, bytes, length);
    if (later) {
        zip_put(&w->body, 0x08074b50, 4);
        zip_put(&w->body, crc, 4);
        zip_put(&w->body, length, 4);
        zip_put(&w->body, size, 4);
    }
    bool wide = (flags & ZIP_WIDE) != 0;
    uint64_t says_size = w->says_size > 0 ? w->says_size : size;
    uint64_t says_packed = w->says_packed > 0 ? w->says_packed : length;
    uint64_t says_offset = w->says_offset > 0 ? w->says_offset : offset;
    stk_str *d = &w->directory;
    zip_put(d, 0x02014b50, 4);
    zip_put(d, (flags & ZIP_DOS) != 0 ? 20 : 3 << 8 | 30, 2);
    zip_put_common(d, flags, method, w->says_crc > 0 ? w->says_crc : crc,
                   wide ? UINT32_MAX : says_packed, wide ? UINT32_MAX : says_size, name_length);
    zip_put(d, wide ? 28 : 0, 2);
    zip_put(d, 0, 2); /* comment */
    zip_put(d, 0, 4); /* disk, inner attributes */
    zip_put(d, (uint64_t)((flags & ZIP_LINK) != 0 ? 0120777u : 0100644u) << 16, 4);
    zip_put(d, wide ? UINT32_MAX : says_offset, 4);
    stk_str_append(d, name);
    if (wide) {
        zip_put(d, 1, 2);
        zip_put(d, 24, 2);
        zip_put(d, says_size, 8);
        zip_put(d, says_packed, 8);
        zip_put(d, says_offset, 8);
    }
    w->count++;
    w->says_size = w->says_packed = w->says_offset = 0;
    w->says_crc = 0;
    w->says_method = 0;
}

static inline void zip_add_text(zip_writer *w, const char *name, const char *text, unsigned flags) {
    zip_add(w, name, text, strlen(text), flags);
}

/* Appends the directory and the records at the end; `wide`: those of zip64, too. */
static inline void zip_end(zip_writer *w, bool wide, const char *comment) {
    uint64_t offset = w->body.length;
    uint64_t size = w->directory.length;
    stk_str *out = &w->body;
    stk_str_append_bytes(out, stk_str_text(&w->directory), w->directory.length);
    if (wide) {
        uint64_t at = out->length;
        zip_put(out, 0x06064b50, 4);
        zip_put(out, 44, 8);
        zip_put(out, 45, 2);
        zip_put(out, 45, 2);
        zip_put(out, 0, 8);
        zip_put(out, w->count, 8);
        zip_put(out, w->count, 8);
        zip_put(out, size, 8);
        zip_put(out, offset, 8);
        zip_put(out, 0x07064b50, 4);
        zip_put(out, 0, 4);
        zip_put(out, at, 8);
        zip_put(out, 1, 4);
    }
    zip_put(out, 0x06054b50, 4);
    zip_put(out, 0, 4);
    zip_put(out, wide ? UINT16_MAX : w->count, 2);
    zip_put(out, wide ? UINT16_MAX : w->count, 2);
    zip_put(out, wide ? UINT32_MAX : size, 4);
    zip_put(out, wide ? UINT32_MAX : offset, 4);
    zip_put(out, strlen(comment), 2);
    stk_str_append(out, comment);
}

/* Ends the zip and writes it to a file; the writer is empty then. */
static inline stk_status zip_save(zip_writer *w, const char *path, stk_error *err) {
    zip_end(w, false, "");
    stk_status status = stk_file_write(path, stk_str_text(&w->body), w->body.length, err);
    stk_str_free(&w->body);
    stk_str_free(&w->directory);
    memset(w, 0, sizeof *w);
    return status;
}

#endif
