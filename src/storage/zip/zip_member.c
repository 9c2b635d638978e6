/* zip_member.c - finds the data of a member behind its header, inflates it and checks it. */
#include "storage/zip/zip_member.h"

#include <limits.h>
#include <string.h>
#include <zlib.h>

#include "base/mem.h"
#include "storage/zip/zip_bytes.h"
#include "storage/zip/zip_directory.h"

/* Inflates into `to`, which has room for exactly the promised bytes. */
static const char *inflate_all(const uint8_t *from, size_t packed, uint8_t *to, size_t size,
                               bool *no_memory) {
    uint8_t end[1]; /* zlib wants a place for output, also where none is left to come */
    z_stream stream = {.zalloc = stk_mem_zlib_new, .zfree = stk_mem_zlib_free};
    if (packed > UINT_MAX || size > UINT_MAX) {
        return "it is too large";
    }
    stream.next_in = (Bytef *)(uintptr_t)from; /* zlib does not write to it */
    stream.avail_in = (uInt)packed;
    stream.next_out = size > 0 ? to : end;
    stream.avail_out = (uInt)size;
    if (inflateInit2(&stream, -MAX_WBITS) != Z_OK) {
        *no_memory = true;
        return "memory is short";
    }
    int end_code = inflate(&stream, Z_FINISH);
    size_t made = size - stream.avail_out;
    (void)inflateEnd(&stream);
    *no_memory = end_code == Z_MEM_ERROR;
    if (end_code == Z_STREAM_END) {
        return made == size ? NULL : "it has fewer bytes than the directory says";
    }
    return end_code == Z_BUF_ERROR && made == size ? "it has more bytes than the directory says"
                                                   : "it cannot be unpacked";
}

static const char *take_stored(stk_bytes *bytes, size_t start, size_t size) {
    if (bytes->size - start < size) {
        return "it is cut off";
    }
    memmove(bytes->data, bytes->data + start, size);
    bytes->size = size;
    return NULL;
}

static const char *take_deflated(stk_bytes *bytes, size_t start, size_t size, bool *no_memory) {
    stk_bytes whole = {0};
    if (!stk_bytes_reserve(&whole, size > 0 ? size : 1)) {
        *no_memory = true;
        return "memory is short";
    }
    const char *why =
        inflate_all(bytes->data + start, bytes->size - start, whole.data, size, no_memory);
    if (why != NULL) {
        stk_bytes_free(&whole);
        return why;
    }
    stk_bytes_free(bytes);
    *bytes = whole;
    bytes->size = size;
    return NULL;
}

const char *stk_zip_member_unpack(stk_bytes *bytes, const stk_zip_promise *promise,
                                  bool *no_memory) {
    *no_memory = false;
    if (bytes->size < STK_ZIP_HEADER_BYTES ||
        stk_zip_number(bytes->data, 4) != STK_ZIP_HEADER_MAGIC) {
        return "no member begins where the directory says";
    }
    size_t start = STK_ZIP_HEADER_BYTES + (size_t)stk_zip_number(bytes->data + 26, 2) +
                   (size_t)stk_zip_number(bytes->data + 28, 2);
    if (start > bytes->size || promise->size > SIZE_MAX / 2) {
        return "it is cut off";
    }
    size_t size = (size_t)promise->size;
    const char *why = promise->method == STK_ZIP_STORED
                          ? take_stored(bytes, start, size)
                          : take_deflated(bytes, start, size, no_memory);
    bool same = why != NULL || crc32_z(0, size > 0 ? bytes->data : NULL, size) == promise->crc32;
    return same ? why : "it has another checksum";
}
