/*
 * manifest.c - writes and reads a listing as text.
 *
 *     stoker-listing 1 1794650580 5000 us-east-1 https://host s3://bucket/prefix
 *     48213 9e107d9d372bb6826bd81d3542a419d6 train/cat/0001.jpg
 *     ...
 *     end 5000 MD5-OF-ALL-LINES-ABOVE
 *
 * Only bytes that would break lines or fields are written as %XX, so that people can read and
 * search the file. An empty field is a "-".
 */
#include "storage/s3/manifest.h"

#ifdef STK_HAVE_S3

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/error.h"
#include "base/files/file.h"
#include "base/mem.h"
#include "base/numbers/digest.h"
#include "base/str.h"

#define VERSION "stoker-listing 1 "
#define NAME_DIGITS 32
#define PIECE_BYTES ((size_t)1024 * 1024)

/* Enough for millions of objects; a larger file is not ours. */
#define MANIFEST_BYTES ((size_t)4 * 1024 * 1024 * 1024)

/* ---- writing ---- */

static void append_escaped(stk_str *out, const char *text) {
    if (text[0] == '\0' || (text[0] == '-' && text[1] == '\0')) {
        stk_str_append(out, text[0] == '\0' ? "-" : "%2D");
        return;
    }
    for (const char *at = text; *at != '\0';) {
        size_t plain = 0;
        while ((unsigned char)at[plain] > 0x20 && at[plain] != '%' && at[plain] != 0x7f) {
            plain++;
        }
        stk_str_append_bytes(out, at, plain);
        at += plain;
        if (*at != '\0') {
            stk_str_appendf(out, "%%%02X", (unsigned)(unsigned char)*at++);
        }
    }
}

/* Moves the collected text into the file and the checksum. */
static stk_status flush(stk_file_writer *writer, stk_md5 *sum, stk_str *piece, stk_error *err) {
    if (!stk_str_ok(piece)) {
        return STK_FAIL_MEMORY(err, "the listing");
    }
    stk_md5_add(sum, stk_str_text(piece), piece->length);
    stk_status status = stk_file_append(writer, stk_str_text(piece), piece->length, err);
    stk_str_clear(piece);
    return status;
}

static stk_status write_all(stk_file_writer *writer, const stk_s3_manifest *manifest,
                            const stk_tree *tree, stk_error *err) {
    stk_md5 sum;
    stk_str piece = {0};
    stk_status status = STK_OK;
    stk_md5_begin(&sum);
    stk_str_appendf(&piece, VERSION "%" PRId64 " %zu ", manifest->time_s, tree->count);
    append_escaped(&piece, manifest->region);
    stk_str_append(&piece, " ");
    append_escaped(&piece, manifest->endpoint);
    stk_str_append(&piece, " ");
    append_escaped(&piece, manifest->location);
    stk_str_append(&piece, "\n");
    for (size_t i = 0; i < tree->count && status == STK_OK; i++) {
        const stk_tree_object *object = &tree->objects[i];
        stk_str_appendf(&piece, "%" PRIu64 " ", object->size);
        append_escaped(&piece, object->version);
        stk_str_append(&piece, " ");
        append_escaped(&piece, object->path);
        stk_str_append(&piece, "\n");
        if (piece.length >= PIECE_BYTES) {
            status = flush(writer, &sum, &piece, err);
        }
    }
    STK_THEN(status, flush(writer, &sum, &piece, err));
    if (status == STK_OK) {
        uint8_t digest[STK_MD5_BYTES];
        char text[STK_MD5_TEXT];
        stk_md5_end(&sum, digest);
        stk_str_appendf(&piece, "end %zu %s\n", tree->count, stk_hex(digest, sizeof digest, text));
        status = flush(writer, &sum, &piece, err);
    }
    stk_str_free(&piece);
    return status;
}

/* ---- reading ---- */

static int hex_digit(char c) {
    return c >= '0' && c <= '9' ? c - '0' : c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;
}

/* Decodes in place; false for a text that append_escaped() does not write. */
static bool unescape(char *text, size_t *length) {
    if (*length == 1 && text[0] == '-') {
        *length = 0;
    }
    char *at = memchr(text, '%', *length);
    if (at != NULL) {
        const char *end = text + *length;
        char *out = at;
        while (at < end) {
            if (*at != '%') {
                *out++ = *at++;
                continue;
            }
            int high = end - at > 2 ? hex_digit(at[1]) : -1;
            int low = high >= 0 ? hex_digit(at[2]) : -1;
            if (low < 0 || high * 16 + low == 0) {
                return false;
            }
            *out++ = (char)(high * 16 + low);
            at += 3;
        }
        *length = (size_t)(out - text);
    }
    text[*length] = '\0';
    return true;
}

/* Reads a field up to the byte `stop`, decodes it and ends it with a NUL. NULL: none. */
static char *take_field(char **at, char *end, char stop, size_t *length) {
    char *field = *at;
    char *after = field < end ? memchr(field, stop, (size_t)(end - field)) : NULL;
    if (after == NULL) {
        return NULL;
    }
    *at = after + 1;
    *length = (size_t)(after - field);
    return unescape(field, length) ? field : NULL;
}

/* Reads digits up to a blank. */
static bool take_number(char **at, const char *end, uint64_t *number) {
    char *start = *at;
    uint64_t value = 0;
    while (*at < end && **at >= '0' && **at <= '9' && *at - start < 19) {
        value = value * 10 + (uint64_t)(*(*at)++ - '0');
    }
    *number = value;
    return *at > start && *at < end && *(*at)++ == ' ';
}

static bool read_head(char **at, char *end, stk_s3_manifest *manifest, uint64_t *count) {
    size_t length = sizeof VERSION - 1;
    uint64_t time_s;
    if ((size_t)(end - *at) < length || memcmp(*at, VERSION, length) != 0) {
        return false;
    }
    *at += length;
    if (!take_number(at, end, &time_s) || !take_number(at, end, count)) {
        return false;
    }
    const char *region = take_field(at, end, ' ', &length);
    const char *endpoint = region != NULL ? take_field(at, end, ' ', &length) : NULL;
    const char *location = endpoint != NULL ? take_field(at, end, '\n', &length) : NULL;
    if (location == NULL || !stk_str_equal(location, manifest->location) ||
        !stk_str_equal(endpoint, manifest->endpoint)) {
        return false;
    }
    manifest->time_s = (int64_t)time_s;
    snprintf(manifest->region, sizeof manifest->region, "%s", region);
    return true;
}

/* Checks the last line: the checksum must fit. Returns where the line begins, or NULL. */
static char *check_end(char *data, size_t size, uint64_t *count) {
    size_t start = size > 0 ? size - 1 : 0;
    while (start > 0 && data[start - 1] != '\n') {
        start--;
    }
    char *line = data + start;
    char *at = line + 4;
    char *end = data + size;
    uint8_t digest[STK_MD5_BYTES];
    char text[STK_MD5_TEXT];
    if (size - start < 4 || memcmp(line, "end ", 4) != 0 || !take_number(&at, end, count) ||
        (size_t)(end - at) != STK_MD5_TEXT || end[-1] != '\n') {
        return NULL;
    }
    stk_md5_of(data, start, digest);
    stk_hex(digest, sizeof digest, text);
    return memcmp(at, text, STK_MD5_TEXT - 1) == 0 ? line : NULL;
}

static bool read_all(char *data, size_t size, stk_s3_manifest *manifest, stk_tree *tree) {
    uint64_t count;
    uint64_t count_again;
    char *at = data;
    char *end = check_end(data, size, &count_again);
    if (end == NULL || !read_head(&at, end, manifest, &count) || count != count_again) {
        return false;
    }
    for (uint64_t i = 0; i < count; i++) {
        uint64_t bytes;
        size_t version_length;
        size_t length;
        const char *version =
            take_number(&at, end, &bytes) ? take_field(&at, end, ' ', &version_length) : NULL;
        const char *path = version != NULL ? take_field(&at, end, '\n', &length) : NULL;
        if (path == NULL || stk_tree_add(tree, path, length, bytes, version, 0, NULL) != STK_OK) {
            return false;
        }
    }
    return at == end && stk_tree_finish(tree, NULL) == STK_OK && tree->count == count;
}

/* ---- public ---- */

char *stk_s3_manifest_path(const char *folder, const stk_s3_manifest *manifest) {
    uint8_t digest[STK_SHA256_BYTES];
    char text[STK_SHA256_TEXT];
    stk_sha256 hash;
    stk_sha256_begin(&hash);
    stk_sha256_add(&hash, manifest->endpoint, strlen(manifest->endpoint) + 1);
    stk_sha256_add(&hash, manifest->location, strlen(manifest->location) + 1);
    stk_sha256_end(&hash, digest);
    stk_hex(digest, sizeof digest, text);
    return stk_str_format("%s/s3-%.*s.list", folder, NAME_DIGITS, text);
}

stk_status stk_s3_manifest_save(const char *path, const stk_s3_manifest *manifest,
                                const stk_tree *tree, stk_error *err) {
    stk_file_writer *writer = NULL;
    char *folder = stk_mem_strndup(path, (size_t)(stk_path_base(path) - path));
    if (folder == NULL) {
        return STK_FAIL_MEMORY(err, path);
    }
    stk_status status = folder[0] != '\0' ? stk_dir_make(folder, err) : STK_OK;
    stk_mem_free(folder);
    STK_THEN(status, stk_file_create(&writer, path, err));
    STK_THEN(status, write_all(writer, manifest, tree, err));
    if (status != STK_OK) {
        stk_file_discard(writer);
        return status;
    }
    return stk_file_commit(writer, err);
}

bool stk_s3_manifest_load(const char *path, stk_s3_manifest *manifest, stk_tree *tree) {
    char *data = NULL;
    size_t size = 0;
    bool good = stk_file_read(path, MANIFEST_BYTES, &data, &size, NULL) == STK_OK &&
                stk_s3_manifest_parse(data, size, manifest, tree);
    stk_mem_free(data);
    return good;
}

bool stk_s3_manifest_parse(char *data, size_t size, stk_s3_manifest *manifest, stk_tree *tree) {
    bool good = read_all(data, size, manifest, tree);
    if (!good) {
        stk_tree_free(tree);
    }
    return good;
}

#endif
