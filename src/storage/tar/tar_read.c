/*
 * tar_read.c - reads the headers of tars of all common formats.
 *
 * A tar is a sequence of blocks of 512 bytes: a header, then the blocks of its file. If a value
 * does not fit into a header, an extra header before it has the value as a text file: GNU's 'L'
 * holds a long name, PAX's 'x' (for one file) and 'g' (for all that follow) hold lines "LENGTH
 * KEY=VALUE". A block of zeros ends a tar, but concatenated tars continue after it, and some tars
 * have no end block. See POSIX, `pax`, and the manual of GNU tar, "Basic Tar Format".
 */
#include "storage/tar/tar_read.h"

#include <stdio.h>
#include <string.h>

#include "base/error.h"
#include "base/mem.h"
#include "base/str.h"
#include "storage/tar/member_path.h"

/* Limit of long names and PAX lines; real ones are far below. */
#define MAX_EXTRA_BYTES ((uint64_t)1024 * 1024)

/* Offsets of the fields of a header. */
enum {
    NAME_AT = 0,
    NAME_BYTES = 100,
    SIZE_AT = 124,
    SIZE_BYTES = 12,
    SUM_AT = 148,
    SUM_BYTES = 8,
    KIND_AT = 156,
    MAGIC_AT = 257,
    PREFIX_AT = 345,
    PREFIX_BYTES = 155
};

/* Meaning of the bytes after a header. */
typedef enum body_kind {
    BODY_NONE, /* no body: a header comes next */
    BODY_NAME, /* long name of GNU's 'L' */
    BODY_PAX,
    BODY_GLOBAL,
    BODY_DROPPED, /* of GNU's 'K', the target of a link; ignored */
    BODY_TEXT     /* contents of a text member */
} body_kind;

/* Values of PAX headers that replace those of a header. */
typedef struct pax_values {
    stk_str path;
    bool has_path;
    bool has_size;
    bool sparse;
    uint64_t size;
} pax_values;

struct stk_tar_reader {
    char *name; /* owned */
    bool (*is_text)(const char *path);
    uint64_t at;    /* position in the tar of the next byte needed */
    uint64_t needs; /* least size of the tar, by the headers so far */
    uint8_t block[STK_TAR_BLOCK];
    size_t filled;      /* bytes of `block` that are filled */
    uint64_t header_at; /* position of the header in `block` */
    bool zeros;         /* the last block was all zeros */
    bool extended;      /* the last header was an extra header: another header must follow */
    body_kind body;
    uint64_t body_size;
    stk_str collected; /* bytes of the body so far */
    stk_str long_name;
    bool has_long_name;
    pax_values once;   /* for the next member only */
    pax_values global; /* for all members that follow */
    stk_str raw_path;  /* path of the last member as the tar has it, for errors */
    stk_str path;      /* cleaned */
    stk_tar_member member;
    stk_tar_counts counts;
};

/* Text for errors at a header: ", after the member x," or "". */
static const char *after_member(const stk_tar_reader *r, char *buf, size_t size) {
    buf[0] = '\0';
    if (r->raw_path.length > 0) {
        snprintf(buf, size, ", after the member %.300s,", r->raw_path.text);
    }
    return buf;
}

#define FAIL_HEADER(r, err, what)                                                                \
    STK_FAIL((err), STK_ERR_DATA,                                                                \
             "cannot read the tar %s: the header at byte %llu%s %s; make or copy the tar again", \
             (r)->name, (unsigned long long)(r)->header_at,                                      \
             after_member((r), (char[400]){0}, 400), (what))

#define FAIL_MEMBER(r, err, what)                                                           \
    STK_FAIL((err), STK_ERR_DATA,                                                           \
             "cannot read the tar %s: its member %.300s, with the header at byte %llu, %s", \
             (r)->name, stk_str_text(&(r)->raw_path), (unsigned long long)(r)->header_at, (what))

/* The compression format, by a file's first bytes; NULL: not compressed. */
static const char *compression(const uint8_t *bytes) {
    static const struct {
        const char *name;
        const char *magic;
        size_t size;
    } formats[] = {{"gzip", "\x1f\x8b", 2},        {"zstd", "\x28\xb5\x2f\xfd", 4},
                   {"xz", "\xfd\x37zXZ", 5},       {"bzip2", "BZh", 3},
                   {"lz4", "\x04\x22\x4d\x18", 4}, {"zip", "PK\x03\x04", 4}};
    for (size_t i = 0; i < STK_COUNT(formats); i++) {
        if (memcmp(bytes, formats[i].magic, formats[i].size) == 0) {
            return formats[i].name;
        }
    }
    return NULL;
}

/* Reads a number of a header: octal digits, or bytes of base 256 after 0x80. */
static bool parse_number(const uint8_t *field, size_t size, uint64_t *value) {
    *value = 0;
    if ((field[0] & 0x80) != 0) {
        *value = field[0] & 0x3f; /* the second bit is the sign */
        if ((field[0] & 0x40) != 0) {
            return false;
        }
        for (size_t i = 1; i < size; i++) {
            if (*value > UINT64_MAX >> 8) {
                return false;
            }
            *value = *value << 8 | field[i];
        }
        return *value <= INT64_MAX;
    }
    size_t i = 0;
    while (i < size && field[i] == ' ') {
        i++;
    }
    for (; i < size && field[i] >= '0' && field[i] <= '7'; i++) {
        *value = *value << 3 | (uint64_t)(field[i] - '0'); /* at most 12 digits: 36 bits */
    }
    for (; i < size; i++) {
        if (field[i] != ' ' && field[i] != '\0') {
            return false;
        }
        if (field[i] == '\0') {
            break;
        }
    }
    return true;
}

/* Whether the checksum is right: all bytes summed, its own field as blanks. Some old tars sum
 * signed bytes. */
static bool sum_fits(const uint8_t *block) {
    uint64_t wanted;
    int64_t plain = 0;
    int64_t with_sign = 0;
    for (size_t i = 0; i < STK_TAR_BLOCK; i++) {
        uint8_t byte = i >= SUM_AT && i < SUM_AT + SUM_BYTES ? ' ' : block[i];
        plain += byte;
        with_sign += byte < 128 ? byte : byte - 256;
    }
    return parse_number(block + SUM_AT, SUM_BYTES, &wanted) &&
           ((int64_t)wanted == plain || (int64_t)wanted == with_sign);
}

static bool is_zeros(const uint8_t *block) {
    for (size_t i = 0; i < STK_TAR_BLOCK; i++) {
        if (block[i] != 0) {
            return false;
        }
    }
    return true;
}

static stk_status check_block(stk_tar_reader *r, stk_error *err) {
    if (sum_fits(r->block)) {
        return STK_OK;
    }
    const char *format = r->header_at == 0 ? compression(r->block) : NULL;
    if (format != NULL) {
        return STK_FAIL(err, STK_ERR_DATA,
                        "cannot read %s: it is compressed (%s), and single members can be read "
                        "from a plain tar only; unpack it, and pass the folder or a plain tar",
                        r->name, format);
    }
    if (r->header_at == 0) {
        return STK_FAIL(err, STK_ERR_DATA,
                        "cannot read %s: it is no tar (its first block is no header)", r->name);
    }
    return FAIL_HEADER(r, err,
                       r->zeros ? "is none, though a tar goes on there after blocks of zeros"
                                : "is damaged (its checksum is wrong)");
}

/* Takes in one PAX value; an empty value removes an earlier one. */
static stk_status take_pax_value(stk_tar_reader *r, pax_values *values, const char *key,
                                 size_t key_size, const char *value, size_t size, stk_error *err) {
    if (key_size == 4 && memcmp(key, "path", 4) == 0) {
        if (memchr(value, '\0', size) != NULL) {
            return FAIL_HEADER(r, err, "has a name with a NUL byte");
        }
        stk_str_clear(&values->path);
        stk_str_append_bytes(&values->path, value, size);
        values->has_path = size > 0;
        return stk_str_ok(&values->path) ? STK_OK : STK_FAIL_MEMORY(err, r->name);
    }
    if (key_size == 4 && memcmp(key, "size", 4) == 0) {
        char number[24] = "";
        int64_t parsed = 0;
        memcpy(number, value, size < sizeof number ? size : sizeof number - 1);
        if (size > 0 && (size >= sizeof number || !stk_parse_int(number, &parsed) || parsed < 0)) {
            return FAIL_HEADER(r, err, "has a size that is no number");
        }
        values->has_size = size > 0;
        values->size = (uint64_t)parsed;
    }
    if (key_size > 11 && memcmp(key, "GNU.sparse.", 11) == 0) {
        values->sparse = true;
    }
    return STK_OK;
}

/* Reads PAX lines: "22 path=some/long/name\n"; the number is the length of the whole line. */
static stk_status read_pax(stk_tar_reader *r, pax_values *values, stk_error *err) {
    const char *line = stk_str_text(&r->collected);
    size_t left = r->collected.length;
    stk_status status = STK_OK;
    while (status == STK_OK && left > 0 && *line != '\0') {
        size_t digits = 0;
        size_t length = 0;
        for (; digits < left && digits < 8 && line[digits] >= '0' && line[digits] <= '9';
             digits++) {
            length = length * 10 + (size_t)(line[digits] - '0');
        }
        bool whole = digits > 0 && length <= left && length >= digits + 3 && line[digits] == ' ' &&
                     line[length - 1] == '\n';
        const char *key = line + digits + 1;
        const char *equals = whole ? memchr(key, '=', length - digits - 2) : NULL;
        if (equals == NULL) {
            return FAIL_HEADER(r, err, "has PAX lines that cannot be read");
        }
        status = take_pax_value(r, values, key, (size_t)(equals - key), equals + 1,
                                (size_t)(line + length - 1 - (equals + 1)), err);
        line += length;
        left -= length;
    }
    return status;
}

/* The name in the header itself; ustar may have a prefix for it. */
static void header_name(stk_tar_reader *r) {
    const char *name = (const char *)r->block + NAME_AT;
    const char *prefix = (const char *)r->block + PREFIX_AT;
    bool ustar = memcmp(r->block + MAGIC_AT, "ustar\0", 6) == 0;
    if (ustar && prefix[0] != '\0') {
        stk_str_append_bytes(&r->raw_path, prefix, strnlen(prefix, PREFIX_BYTES));
        stk_str_append(&r->raw_path, "/");
    }
    stk_str_append_bytes(&r->raw_path, name, strnlen(name, NAME_BYTES));
}

static stk_status find_name(stk_tar_reader *r, stk_error *err) {
    stk_str_clear(&r->raw_path);
    if (r->once.has_path) {
        stk_str_append(&r->raw_path, stk_str_text(&r->once.path));
    } else if (r->has_long_name) {
        stk_str_append(&r->raw_path, stk_str_text(&r->long_name));
    } else if (r->global.has_path) {
        stk_str_append(&r->raw_path, stk_str_text(&r->global.path));
    } else {
        header_name(r);
    }
    return stk_str_ok(&r->raw_path) ? STK_OK : STK_FAIL_MEMORY(err, r->name);
}

static void forget_extras(stk_tar_reader *r) {
    r->once.has_path = false;
    r->once.has_size = false;
    r->once.sparse = false;
    r->has_long_name = false;
    r->extended = false;
}

/* Moves past a body of `size` bytes that begins at r->at. */
static stk_status pass_body(stk_tar_reader *r, uint64_t size, stk_error *err) {
    uint64_t padded = (size + STK_TAR_BLOCK - 1) / STK_TAR_BLOCK * STK_TAR_BLOCK;
    if (size > INT64_MAX - STK_TAR_BLOCK || padded > INT64_MAX - r->at) {
        return FAIL_MEMBER(r, err, "has a size that no file has; make or copy the tar again");
    }
    r->needs = r->at + size;
    r->at += padded;
    return STK_OK;
}

/* Starts collecting the bytes after the header. */
static void begin_body(stk_tar_reader *r, body_kind kind, uint64_t size) {
    r->body = kind;
    r->body_size = size;
    r->needs = r->at + size;
    stk_str_clear(&r->collected);
}

/* Handles an extra header, whose body describes the next header. */
static stk_status take_extra(stk_tar_reader *r, char kind, uint64_t size, stk_error *err) {
    if (size > MAX_EXTRA_BYTES) {
        return FAIL_HEADER(r, err, "announces a name longer than any");
    }
    r->extended = kind != 'g';
    begin_body(r,
               kind == 'L'   ? BODY_NAME
               : kind == 'K' ? BODY_DROPPED
               : kind == 'g' ? BODY_GLOBAL
                             : BODY_PAX,
               size);
    return STK_OK;
}

/* Handles the header of a file: fills in the member. */
static stk_status take_file(stk_tar_reader *r, uint64_t size, stk_tar_found *found,
                            stk_error *err) {
    bool inside = stk_member_path_clean(stk_str_text(&r->raw_path), &r->path);
    if (!stk_str_ok(&r->path)) {
        return STK_FAIL_MEMORY(err, r->name);
    }
    r->member = (stk_tar_member){.path = stk_str_text(&r->path), .offset = r->at, .size = size};
    if (inside && size <= STK_TAR_TEXT_BYTES && r->is_text != NULL && r->is_text(r->member.path)) {
        begin_body(r, BODY_TEXT, size);
        return STK_OK;
    }
    r->counts.unknown += inside ? 0 : 1;
    *found = inside ? STK_TAR_MEMBER : STK_TAR_MORE;
    return pass_body(r, size, err);
}

/* Handles headers of all kinds but files, folders and links. */
static stk_status take_other(stk_tar_reader *r, char kind, uint64_t size, stk_error *err) {
    if (kind == 'S') {
        return FAIL_MEMBER(r, err,
                           "is a sparse file, whose bytes do not lie together; make the "
                           "tar again without --sparse");
    }
    if (kind == 'M') {
        return FAIL_MEMBER(r, err, "began in another volume; make one tar of all volumes");
    }
    /* Devices and pipes have no body, whatever their size field says. */
    r->counts.unknown += kind == 'V' ? 0 : 1;
    return kind == '3' || kind == '4' || kind == '6' ? STK_OK : pass_body(r, size, err);
}

/* Handles the complete header in r->block; r->at is after it. */
static stk_status take_header(stk_tar_reader *r, stk_tar_found *found, stk_error *err) {
    uint64_t size;
    char kind = (char)r->block[KIND_AT];
    stk_status status = check_block(r, err);
    if (status != STK_OK) {
        return status;
    }
    r->zeros = false;
    r->needs = r->at;
    if (!parse_number(r->block + SIZE_AT, SIZE_BYTES, &size)) {
        return FAIL_HEADER(r, err, "has a size that is no number");
    }
    if (kind == 'L' || kind == 'K' || kind == 'x' || kind == 'X' || kind == 'g') {
        return take_extra(r, kind, size, err);
    }
    if (r->once.has_size || r->global.has_size) {
        size = r->once.has_size ? r->once.size : r->global.size;
    }
    if (r->once.sparse || r->global.sparse) {
        kind = 'S';
    }
    status = find_name(r, err);
    forget_extras(r);
    if (status != STK_OK) {
        return status;
    }
    bool folder = r->raw_path.length > 0 && r->raw_path.text[r->raw_path.length - 1] == '/';
    switch (kind) {
    case '\0':
    case '0':
    case '7':
        /* V7 has no type for folders: their names end with a slash. */
        return folder ? pass_body(r, size, err) : take_file(r, size, found, err);
    case '1':
    case '2':
        r->counts.links++;
        return STK_OK; /* links have no body, though some tars store the size of the target */
    case '5':
        return STK_OK;
    default:
        return take_other(r, kind, size, err);
    }
}

/* Handles a body that was collected completely. */
static stk_status take_body(stk_tar_reader *r, stk_tar_found *found, stk_error *err) {
    body_kind kind = r->body;
    r->body = BODY_NONE;
    r->at += (STK_TAR_BLOCK - r->body_size % STK_TAR_BLOCK) % STK_TAR_BLOCK;
    if (!stk_str_ok(&r->collected)) {
        return STK_FAIL_MEMORY(err, r->name);
    }
    switch (kind) {
    case BODY_NAME:
        stk_str_clear(&r->long_name);
        stk_str_append(&r->long_name, stk_str_text(&r->collected)); /* stops at the first NUL */
        r->has_long_name = true;
        return stk_str_ok(&r->long_name) ? STK_OK : STK_FAIL_MEMORY(err, r->name);
    case BODY_PAX:
        return read_pax(r, &r->once, err);
    case BODY_GLOBAL:
        return read_pax(r, &r->global, err);
    case BODY_TEXT:
        r->member.text = stk_str_text(&r->collected);
        *found = STK_TAR_MEMBER;
        return STK_OK;
    default:
        return STK_OK;
    }
}

stk_status stk_tar_reader_open(stk_tar_reader **out, const char *name,
                               bool (*is_text)(const char *path), stk_error *err) {
    stk_tar_reader *r = stk_mem_new(1, sizeof *r);
    if (r == NULL || (r->name = stk_mem_strdup(name)) == NULL) {
        stk_mem_free(r);
        return STK_FAIL_MEMORY(err, name);
    }
    r->is_text = is_text;
    *out = r;
    return STK_OK;
}

void stk_tar_reader_close(stk_tar_reader *r) {
    if (r == NULL) {
        return;
    }
    stk_str_free(&r->collected);
    stk_str_free(&r->long_name);
    stk_str_free(&r->once.path);
    stk_str_free(&r->global.path);
    stk_str_free(&r->raw_path);
    stk_str_free(&r->path);
    stk_mem_free(r->name);
    stk_mem_free(r);
}

uint64_t stk_tar_reader_at(const stk_tar_reader *r) {
    return r->at;
}

uint64_t stk_tar_reader_needs(const stk_tar_reader *r) {
    return r->needs;
}

/* Uses bytes at r->at until a block or body is complete, and handles that. */
static stk_status take_bytes(stk_tar_reader *r, const uint8_t *bytes, size_t size,
                             stk_tar_found *found, stk_error *err) {
    if (r->body != BODY_NONE) {
        uint64_t missing = r->body_size - r->collected.length;
        size_t taken = size < missing ? size : (size_t)missing;
        stk_str_append_bytes(&r->collected, bytes, taken);
        r->at += taken;
        if (!stk_str_ok(&r->collected)) {
            return STK_FAIL_MEMORY(err, r->name);
        }
        return taken == missing ? take_body(r, found, err) : STK_OK;
    }
    size_t missing = STK_TAR_BLOCK - r->filled;
    size_t taken = size < missing ? size : missing;
    r->header_at = r->filled == 0 ? r->at : r->header_at;
    memcpy(r->block + r->filled, bytes, taken);
    r->filled += taken;
    r->at += taken;
    if (taken < missing) {
        return STK_OK;
    }
    r->filled = 0;
    if (is_zeros(r->block) && !r->extended) {
        r->zeros = true;
        return STK_OK;
    }
    return take_header(r, found, err);
}

stk_status stk_tar_reader_next(stk_tar_reader *r, uint64_t offset, const void *bytes, size_t size,
                               stk_tar_found *found, stk_tar_member *member, stk_error *err) {
    stk_status status = STK_OK;
    *found = STK_TAR_MORE;
    /* A body of zero bytes is complete before any byte arrives. */
    while (status == STK_OK && *found == STK_TAR_MORE &&
           ((r->body != BODY_NONE && r->body_size == r->collected.length) ||
            (r->at >= offset && r->at - offset < size))) {
        bool inside = r->at >= offset && r->at - offset < size;
        status = take_bytes(r, inside ? (const uint8_t *)bytes + (r->at - offset) : r->block,
                            inside ? size - (size_t)(r->at - offset) : 0, found, err);
    }
    *member = r->member;
    return status;
}

stk_status stk_tar_reader_finish(const stk_tar_reader *r, uint64_t size, stk_error *err) {
    if (size == 0) {
        return STK_FAIL(err, STK_ERR_DATA, "cannot read the tar %s: it is empty (0 bytes)",
                        r->name);
    }
    if (r->filled > 0 && r->header_at == 0) {
        const char *format = compression(r->block);
        return STK_FAIL(err, STK_ERR_DATA, "cannot read %s: it is no tar%s%s%s", r->name,
                        format != NULL ? " but compressed (" : " (it is shorter than one header)",
                        format != NULL ? format : "", format != NULL ? ")" : "");
    }
    bool in_extra = r->body != BODY_NONE && r->body != BODY_TEXT;
    if (r->filled > 0 || r->extended || in_extra) {
        return STK_FAIL(err, STK_ERR_DATA,
                        "the tar %s is cut off%s inside a header at byte %llu; copy it again",
                        r->name, after_member(r, (char[400]){0}, 400),
                        (unsigned long long)r->header_at);
    }
    if (r->needs > size) {
        return STK_FAIL(err, STK_ERR_DATA,
                        "the tar %s is cut off inside the member %.300s, whose header at byte %llu "
                        "says that it ends at byte %llu: the file ends before; copy it again",
                        r->name, stk_str_text(&r->raw_path), (unsigned long long)r->header_at,
                        (unsigned long long)r->needs);
    }
    return STK_OK;
}

stk_tar_counts stk_tar_reader_counts(const stk_tar_reader *r) {
    return r->counts;
}
