/*
 * png_tags.c - the orientation of a PNG.
 *
 * The chunk eXIf has it. Older programs write EXIF as a text of hexadecimal digits, others write
 * XMP as a text; texts may be compressed. This file walks the chunks itself: they may lie after
 * the pixels, which libpng has not reached yet, and libpng would keep all texts. The first chunk of
 * each kind counts, and a text is read up to a limit.
 */
#include "image/decode/decoders.h"

#include <string.h>

#include <zlib.h>

#include "base/error.h"
#include "base/mem.h"

#define SIGNATURE_BYTES 8
#define CHUNK_FRAME 12 /* length, name and checksum of a chunk */

/* Limit of a text: EXIF has its first directory at the beginning, and XMP is some kilobytes. */
#define MOST_TEXT_BYTES ((size_t)1 << 20)
#define FIRST_TEXT_BYTES ((size_t)16 << 10)

/* Lines before the hexadecimal digits: an empty line, the name and the length. */
#define HEX_HEAD_LINES 3

static const char exif_key[] = "Raw profile type exif";
static const char xmp_key[] = "XML:com.adobe.xmp";

/* A text chunk as stored in the file. */
typedef struct png_text_chunk {
    const uint8_t *data; /* after the key; NULL: there is none */
    size_t size;
    bool compressed;
} png_text_chunk;

typedef struct png_tags {
    const uint8_t *exif; /* of eXIf; NULL: there is none */
    size_t exif_size;
    png_text_chunk hex_exif;
    png_text_chunk xmp;
} png_tags;

static uint32_t big_endian(const uint8_t *bytes) {
    return (uint32_t)bytes[0] << 24 | (uint32_t)bytes[1] << 16 | (uint32_t)bytes[2] << 8 | bytes[3];
}

/* Moves past the next NUL; false: there is none. */
static bool pass_string(const uint8_t **data, size_t *size) {
    const uint8_t *end = memchr(*data, '\0', *size);
    if (end != NULL) {
        *size -= (size_t)(end - *data) + 1;
        *data = end + 1;
    }
    return end != NULL;
}

/* Takes a text chunk with this key, unless an earlier one was taken. */
static void take_text(png_text_chunk *text, const char *key, const uint8_t *name,
                      const uint8_t *data, size_t size) {
    size_t length = strlen(key) + 1;
    if (text->data != NULL || size < length || memcmp(data, key, length) != 0) {
        return;
    }
    data += length;
    size -= length;
    bool compressed = memcmp(name, "zTXt", 4) == 0;
    if (compressed && size > 1) { /* skips the byte for the compression method */
        *text = (png_text_chunk){data + 1, size - 1, true};
    } else if (memcmp(name, "tEXt", 4) == 0) {
        *text = (png_text_chunk){data, size, false};
    } else if (memcmp(name, "iTXt", 4) == 0 && size > 2) { /* flag, method, language, translation */
        compressed = data[0] == 1;
        data += 2;
        size -= 2;
        bool language = pass_string(&data, &size);
        bool translation = language && pass_string(&data, &size);
        if (translation) {
            *text = (png_text_chunk){data, size, compressed};
        }
    }
}

static png_tags find_tags(const uint8_t *bytes, size_t size) {
    png_tags tags = {0};
    size_t offset = SIGNATURE_BYTES;
    while (offset + CHUNK_FRAME <= size && tags.exif == NULL) {
        size_t length = big_endian(bytes + offset);
        if (length > size - offset - CHUNK_FRAME) {
            break;
        }
        const uint8_t *name = bytes + offset + 4;
        const uint8_t *data = name + 4;
        if (memcmp(name, "eXIf", 4) == 0) {
            tags.exif = data;
            tags.exif_size = length;
        } else if (memcmp(name + 1, "TXt", 3) == 0 || memcmp(name, "tEXt", 4) == 0) {
            take_text(&tags.hex_exif, exif_key, name, data, length);
            take_text(&tags.xmp, xmp_key, name, data, length);
        }
        offset += CHUNK_FRAME + length;
    }
    return tags;
}

/* ---- texts ---- */

/* Inflates up to the limit: damage after the first bytes does not matter. */
static stk_status inflate_text(const png_text_chunk *text, stk_bytes *out, stk_error *err) {
    z_stream stream = {.zalloc = stk_mem_zlib_new, .zfree = stk_mem_zlib_free};
    stream.next_in = (Bytef *)(uintptr_t)text->data;
    stream.avail_in = (uInt)text->size;
    int code = inflateInit(&stream);
    size_t room = FIRST_TEXT_BYTES;
    bool kept = true;
    while (code == Z_OK && kept && out->size < MOST_TEXT_BYTES) {
        kept = stk_bytes_reserve(out, room);
        if (kept) {
            stream.next_out = out->data + out->size;
            stream.avail_out = (uInt)(room - out->size);
            code = inflate(&stream, Z_NO_FLUSH);
            out->size = room - stream.avail_out;
            room *= 2;
        }
    }
    (void)inflateEnd(&stream);
    return kept && code != Z_MEM_ERROR ? STK_OK : STK_FAIL_MEMORY(err, "decoding a PNG");
}

/* Reads a text; one that is compressed is inflated into `own`. */
static stk_status read_text(const png_text_chunk *text, stk_bytes *own, const uint8_t **data,
                            size_t *size, stk_error *err) {
    *data = text->data;
    *size = text->size;
    if (text->data == NULL || !text->compressed) {
        return STK_OK;
    }
    stk_status status = inflate_text(text, own, err);
    *data = own->data;
    *size = own->size;
    return status;
}

static int digit(uint8_t c) {
    return c >= '0' && c <= '9'   ? c - '0'
           : c >= 'a' && c <= 'f' ? c - 'a' + 10
           : c >= 'A' && c <= 'F' ? c - 'A' + 10
                                  : -1;
}

/* Converts the hexadecimal digits after the head to bytes, in place; returns how many. */
static size_t read_digits(uint8_t *text, size_t size) {
    size_t at = 0;
    for (int lines = 0; lines < HEX_HEAD_LINES && at < size; at++) {
        lines += text[at] == '\n';
    }
    size_t count = 0;
    int half = -1;
    for (; at < size; at++) {
        int value = digit(text[at]);
        if (value < 0 && text[at] != '\n' && text[at] != ' ') {
            break;
        }
        if (value >= 0 && half >= 0) {
            text[count++] = (uint8_t)(half << 4 | value);
            half = -1;
        } else if (value >= 0) {
            half = value;
        }
    }
    return count;
}

/* Reads EXIF from a text into `own`. */
static stk_status read_hex_exif(const png_text_chunk *text, stk_bytes *own, stk_error *err) {
    const uint8_t *data;
    size_t size;
    stk_status status = read_text(text, own, &data, &size, err);
    if (status == STK_OK && data != NULL && own->data == NULL) {
        size = size < MOST_TEXT_BYTES ? size : MOST_TEXT_BYTES;
        if (!stk_bytes_reserve(own, size + 1)) {
            return STK_FAIL_MEMORY(err, "decoding a PNG");
        }
        memcpy(own->data, data, size);
        own->size = size;
    }
    if (status == STK_OK && own->data != NULL) {
        own->size = read_digits(own->data, own->size);
    }
    return status;
}

stk_status stk_image_png_orientation(const uint8_t *bytes, size_t size, int *orientation,
                                     stk_error *err) {
    png_tags found = find_tags(bytes, size);
    stk_image_tags tags = {.exif = found.exif, .exif_size = found.exif_size};
    stk_bytes exif = {0};
    stk_bytes xmp = {0};
    stk_status status = STK_OK;
    if (found.exif == NULL) {
        status = read_hex_exif(&found.hex_exif, &exif, err);
        tags.exif = exif.data;
        tags.exif_size = exif.size;
    }
    STK_THEN(status, read_text(&found.xmp, &xmp, &tags.xmp, &tags.xmp_size, err));
    *orientation = stk_image_orientation(&tags);
    stk_bytes_free(&exif);
    stk_bytes_free(&xmp);
    return status;
}
