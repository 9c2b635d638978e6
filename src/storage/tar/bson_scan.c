/*
 * bson_scan.c - goes through the documents of a BSON file behind a window of its bytes.
 *
 * Pictures are small, so that the file is read from front to back, several pieces at a time. Where
 * the window lies in front of a large picture or another large value, reading goes on behind it.
 */
#include "storage/tar/bson_scan.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/mem.h"
#include "base/text/csv_rows.h"
#include "base/threads/pool.h"

#define PIECE_BYTES ((size_t)1 << 20)
#define PIECES_MOST 64

/* Longer names and texts are no columns and no cells. */
#define NAME_BYTES_MOST 255
#define TEXT_BYTES_MOST ((size_t)64 << 10)

/* The least document: its length and its end. */
#define LEAST_BYTES 5

/* Types of elements. */
enum {
    TYPE_DOUBLE = 0x01,
    TYPE_STRING = 0x02,
    TYPE_DOCUMENT = 0x03,
    TYPE_ARRAY = 0x04,
    TYPE_BINARY = 0x05,
    TYPE_UNDEFINED = 0x06,
    TYPE_ID = 0x07,
    TYPE_BOOL = 0x08,
    TYPE_DATE = 0x09,
    TYPE_NULL = 0x0A,
    TYPE_REGEX = 0x0B,
    TYPE_POINTER = 0x0C,
    TYPE_CODE = 0x0D,
    TYPE_SYMBOL = 0x0E,
    TYPE_CODE_IN_SCOPE = 0x0F,
    TYPE_INT32 = 0x10,
    TYPE_TIMESTAMP = 0x11,
    TYPE_INT64 = 0x12,
    TYPE_DECIMAL = 0x13,
    TYPE_LEAST_KEY = 0xFF,
    TYPE_MOST_KEY = 0x7F
};

/* The first byte of a binary's contents that repeats the length inside. */
#define SUBTYPE_OLD 0x02

typedef struct reader {
    const stk_range_source *source;
    const stk_bson_how *how;
    stk_bson_scan *scan;
    stk_pool *pool; /* NULL: one read at a time */
    uint8_t *window;
    size_t pieces; /* of PIECE_BYTES that the window has room for */
    uint64_t base; /* of the window in the file */
    size_t size;   /* bytes in the window */
    bool ended;    /* the file ends with the window */
    size_t got[PIECES_MOST];
    stk_error errors[PIECES_MOST];
    stk_csv_rows rows;
    uint64_t document; /* where the document begins that is being read */
} reader;

/* A part of the file in which elements stand. */
typedef struct span {
    uint64_t at;  /* the next bson_element */
    uint64_t end; /* behind the NUL that ends the document */
} span;

/* An element; the bytes of its value begin at `at`. */
typedef struct bson_element {
    int type; /* 0: the end of the document */
    char name[NAME_BYTES_MOST + 1];
    uint64_t at;
    uint64_t bytes;
} bson_element;

static stk_status fail_damaged(const reader *r, uint64_t at, const char *what, stk_error *err) {
    return STK_FAIL(err, STK_ERR_DATA,
                    "%s is no BSON file or is damaged: in the document at byte %" PRIu64
                    ", at byte %" PRIu64 ": %s; copy or download it again",
                    r->source->name, r->document, at, what);
}

/* ---- the window ---- */

static void read_piece(void *context, size_t task, int thread) {
    reader *r = context;
    (void)thread;
    stk_error_clear(&r->errors[task]);
    r->got[task] = 0;
    (void)(r->source->read(r->source->user, r->base + task * PIECE_BYTES,
                           r->window + task * PIECE_BYTES, PIECE_BYTES, &r->got[task],
                           &r->errors[task]) == STK_OK);
}

/* Fills the window from `at` on. */
static stk_status fill(reader *r, uint64_t at, stk_error *err) {
    r->base = at;
    r->size = 0;
    r->ended = false;
    if (r->pool != NULL) {
        stk_pool_run(r->pool, r->pieces, read_piece, r);
    } else {
        read_piece(r, 0, 0);
    }
    for (size_t i = 0; i < r->pieces; i++) {
        if (r->errors[i].status != STK_OK) {
            return stk_error_pass(&r->errors[i], err);
        }
        r->size += r->got[i];
        r->ended = r->got[i] < PIECE_BYTES;
        if (r->ended) {
            break;
        }
    }
    return STK_OK;
}

/* Has up to `most` bytes from `at` on in the window; *left is how many there are. */
static stk_status look(reader *r, uint64_t at, size_t most, const uint8_t **bytes, size_t *left,
                       stk_error *err) {
    stk_status status = STK_OK;
    bool inside = at >= r->base && at - r->base <= r->size;
    if (!inside || (!r->ended && r->size - (size_t)(at - r->base) < most)) {
        status = fill(r, at, err);
    }
    *bytes = r->window + (status == STK_OK ? at - r->base : 0);
    *left = status == STK_OK ? r->size - (size_t)(at - r->base) : 0;
    return status;
}

/* Exactly `count` bytes, all of them before `end`. */
static stk_status need(reader *r, uint64_t at, size_t count, uint64_t end, const uint8_t **bytes,
                       stk_error *err) {
    size_t left = 0;
    if (end - at < count) {
        return fail_damaged(r, at, "a value is longer than its document", err);
    }
    stk_status status = look(r, at, count, bytes, &left, err);
    if (status == STK_OK && left < count) {
        status = fail_damaged(r, at, "the file ends here", err);
    }
    return status;
}

static uint64_t take_number(const uint8_t *bytes, int size) {
    uint64_t value = 0;
    for (int i = 0; i < size; i++) {
        value |= (uint64_t)bytes[i] << (8 * i);
    }
    return value;
}

/* ---- elements ---- */

/* The bytes of a text with a NUL at its end, the NUL included. */
static stk_status pass_text(reader *r, uint64_t at, uint64_t end, uint64_t *count, stk_error *err) {
    const uint8_t *bytes = NULL;
    size_t left = 0;
    stk_status status = look(r, at, NAME_BYTES_MOST + 1, &bytes, &left, err);
    if (status != STK_OK) {
        return status;
    }
    size_t most = left < NAME_BYTES_MOST + 1 ? left : NAME_BYTES_MOST + 1;
    most = most < end - at ? most : (size_t)(end - at);
    const uint8_t *nul = memchr(bytes, 0, most);
    if (nul == NULL) {
        return fail_damaged(r, at, "a name does not end", err);
    }
    *count = (uint64_t)(nul - bytes) + 1;
    return STK_OK;
}

/* The bytes of a value that begins with its length; `more` are not counted in that. */
static stk_status pass_long(reader *r, uint64_t at, uint64_t end, uint64_t least, uint64_t more,
                            uint64_t *count, stk_error *err) {
    const uint8_t *bytes = NULL;
    stk_status status = need(r, at, 4, end, &bytes, err);
    if (status != STK_OK) {
        return status;
    }
    uint64_t length = take_number(bytes, 4);
    if (length < least || length > INT32_MAX || length + more > end - at) {
        return fail_damaged(r, at, "a length that cannot be", err);
    }
    *count = length + more;
    return STK_OK;
}

static stk_status pass_regex(reader *r, uint64_t at, uint64_t end, uint64_t *count,
                             stk_error *err) {
    uint64_t second = 0;
    stk_status status = pass_text(r, at, end, count, err);
    STK_THEN(status, pass_text(r, at + *count, end, &second, err));
    *count += second;
    return status;
}

static stk_status measure(reader *r, bson_element *e, uint64_t end, stk_error *err) {
    stk_status status = STK_OK;
    switch (e->type) {
    case TYPE_DOUBLE:
    case TYPE_DATE:
    case TYPE_TIMESTAMP:
    case TYPE_INT64:
        e->bytes = 8;
        break;
    case TYPE_INT32:
        e->bytes = 4;
        break;
    case TYPE_BOOL:
        e->bytes = 1;
        break;
    case TYPE_ID:
        e->bytes = 12;
        break;
    case TYPE_DECIMAL:
        e->bytes = 16;
        break;
    case TYPE_NULL:
    case TYPE_UNDEFINED:
    case TYPE_LEAST_KEY:
    case TYPE_MOST_KEY:
        e->bytes = 0;
        break;
    case TYPE_STRING:
    case TYPE_CODE:
    case TYPE_SYMBOL:
        status = pass_long(r, e->at, end, 1, 4, &e->bytes, err);
        break;
    case TYPE_POINTER:
        status = pass_long(r, e->at, end, 1, 16, &e->bytes, err);
        break;
    case TYPE_BINARY:
        status = pass_long(r, e->at, end, 0, 5, &e->bytes, err);
        break;
    case TYPE_DOCUMENT:
    case TYPE_ARRAY:
    case TYPE_CODE_IN_SCOPE:
        status = pass_long(r, e->at, end, LEAST_BYTES, 0, &e->bytes, err);
        break;
    case TYPE_REGEX:
        status = pass_regex(r, e->at, end, &e->bytes, err);
        break;
    default:
        status = fail_damaged(r, e->at, "a type of value that there is not", err);
    }
    return status == STK_OK && e->bytes > end - e->at
               ? fail_damaged(r, e->at, "a value is longer than its document", err)
               : status;
}

/* Reads the head of the next element and moves the span behind the element. */
static stk_status next_element(reader *r, span *s, bson_element *e, stk_error *err) {
    const uint8_t *bytes = NULL;
    uint64_t count = 0;
    stk_status status = need(r, s->at, 1, s->end, &bytes, err);
    if (status != STK_OK) {
        return status;
    }
    e->type = bytes[0];
    if (e->type == 0 && s->at + 1 != s->end) {
        return fail_damaged(r, s->at, "a document ends before its length says so", err);
    }
    s->at++;
    if (e->type == 0) {
        return STK_OK;
    }
    uint64_t end = s->end - 1; /* the NUL of the document is no part of an bson_element */
    if (s->at >= end) {
        return fail_damaged(r, s->at, "a document does not end", err);
    }
    status = pass_text(r, s->at, end, &count, err);
    if (status != STK_OK) {
        return status;
    }
    (void)need(r, s->at, (size_t)count, end, &bytes, err); /* pass_text has it in the window */
    memcpy(e->name, bytes, (size_t)count);
    e->at = s->at + count;
    status = measure(r, e, end, err);
    s->at = e->at + (status == STK_OK ? e->bytes : 0);
    return status;
}

/* The elements of a document or an array. */
static span span_of(const bson_element *e) {
    return (span){.at = e->at + 4, .end = e->at + e->bytes};
}

/* ---- pictures and cells ---- */

static stk_status add_picture(reader *r, const bson_element *e, stk_error *err) {
    stk_bson_scan *scan = r->scan;
    const uint8_t *head = NULL;
    uint64_t skip = 5;
    stk_status status = need(r, e->at, 5, e->at + e->bytes, &head, err);
    if (status == STK_OK && head[4] == SUBTYPE_OLD) {
        skip = 9;
        status =
            e->bytes >= skip ? STK_OK : fail_damaged(r, e->at, "a binary value is too short", err);
    }
    if (status == STK_OK &&
        !STK_RESERVE(scan->pictures, scan->picture_capacity, scan->picture_count + 1)) {
        status = STK_FAIL_MEMORY(err, r->source->name);
    }
    if (status == STK_OK) {
        scan->pictures[scan->picture_count++] =
            (stk_bson_picture){.offset = e->at + skip,
                               .bytes = (uint32_t)(e->bytes - skip),
                               .row = (uint32_t)r->rows.rows};
    }
    return status;
}

/* The pictures in a list: binary values, or (`outermost`) documents with such values. */
static stk_status find_in_list(reader *r, const bson_element *list, bool outermost,
                               stk_error *err) {
    span s = span_of(list);
    bson_element e = {.type = TYPE_NULL};
    stk_status status = STK_OK;
    while (status == STK_OK && e.type != 0) {
        status = next_element(r, &s, &e, err);
        if (status == STK_OK && e.type == TYPE_BINARY) {
            status = add_picture(r, &e, err);
        } else if (status == STK_OK && e.type == TYPE_DOCUMENT && outermost) {
            status = find_in_list(r, &e, false, err);
        }
    }
    return status;
}

static bool is_cell(const bson_element *e) {
    switch (e->type) {
    case TYPE_DOUBLE:
    case TYPE_ID:
    case TYPE_BOOL:
    case TYPE_DATE:
    case TYPE_NULL:
    case TYPE_INT32:
    case TYPE_INT64:
        return true;
    case TYPE_STRING:
    case TYPE_SYMBOL:
        return e->bytes - 4 <= TEXT_BYTES_MOST;
    default:
        return false;
    }
}

/* Spells a value of fixed length. */
static void spell(const bson_element *e, const uint8_t *bytes, char *text, size_t room) {
    double real;
    uint64_t value = take_number(bytes, e->type == TYPE_INT32 ? 4 : e->bytes >= 8 ? 8 : 0);
    text[0] = '\0';
    switch (e->type) {
    case TYPE_DOUBLE:
        memcpy(&real, &value, sizeof real);
        snprintf(text, room, "%.15g", real);
        if (strtod(text, NULL) != real) {
            snprintf(text, room, "%.17g", real);
        }
        break;
    case TYPE_BOOL:
        snprintf(text, room, "%s", bytes[0] != 0 ? "true" : "false");
        break;
    case TYPE_INT32:
        snprintf(text, room, "%" PRId32, (int32_t)(uint32_t)value);
        break;
    case TYPE_INT64:
    case TYPE_DATE:
        snprintf(text, room, "%" PRId64, (int64_t)value);
        break;
    case TYPE_ID:
        for (size_t i = 0; i < 12; i++) {
            snprintf(text + 2 * i, room - 2 * i, "%02x", bytes[i]);
        }
        break;
    default: /* null */
        break;
    }
}

static stk_status add_cell(reader *r, const bson_element *e, stk_error *err) {
    char text[64];
    const char *cell = text;
    const uint8_t *bytes = NULL;
    size_t column = 0;
    stk_status status = need(r, e->at, (size_t)e->bytes, e->at + e->bytes, &bytes, err);
    if (status != STK_OK) {
        return status;
    }
    size_t length = 0;
    if (e->type == TYPE_STRING || e->type == TYPE_SYMBOL) {
        cell = (const char *)bytes + 4;
        length = (size_t)e->bytes - 5;
        if (cell[length] != '\0' || memchr(cell, '\0', length) != NULL) {
            return fail_damaged(r, e->at, "a text with a zero byte in it", err);
        }
    } else {
        spell(e, bytes, text, sizeof text);
        length = strlen(text);
    }
    status = stk_csv_rows_column_of(&r->rows, e->name, strlen(e->name), &column, err);
    if (status == STK_OK && stk_csv_rows_has(&r->rows, column)) {
        status = fail_damaged(r, e->at, "a field stands twice", err);
    }
    STK_THEN(status, stk_csv_rows_put(&r->rows, column, cell, length, err));
    return status;
}

/* ---- documents ---- */

static stk_status read_document(reader *r, uint64_t bytes, stk_error *err) {
    span s = {.at = r->document + 4, .end = r->document + bytes};
    bson_element e = {.type = TYPE_NULL};
    stk_status status = stk_csv_rows_begin(&r->rows, r->rows.rows + 1, err);
    while (status == STK_OK && e.type != 0) {
        status = next_element(r, &s, &e, err);
        if (status != STK_OK || e.type == 0) {
            continue;
        }
        if (e.type == TYPE_BINARY) {
            status = add_picture(r, &e, err);
        } else if (e.type == TYPE_ARRAY) {
            status = find_in_list(r, &e, true, err);
        } else if (is_cell(&e)) {
            status = add_cell(r, &e, err);
        }
    }
    STK_THEN(status, stk_csv_rows_end(&r->rows, err));
    return status;
}

static stk_status read_documents(reader *r, stk_error *err) {
    stk_status status = STK_OK;
    uint64_t asked = 0; /* where `enough` was asked last */
    while (status == STK_OK) {
        const uint8_t *bytes = NULL;
        size_t left = 0;
        status = look(r, r->document, 4, &bytes, &left, err);
        if (status != STK_OK || left == 0) {
            r->scan->is_whole = status == STK_OK;
            break;
        }
        uint64_t length = left >= 4 ? take_number(bytes, 4) : 0;
        if (length < LEAST_BYTES || length > INT32_MAX) {
            return fail_damaged(r, r->document, "a length that cannot be", err);
        }
        status = read_document(r, length, err);
        r->document += status == STK_OK ? length : 0;
        r->scan->bytes = r->document;
        if (status == STK_OK && r->how->enough != NULL && r->document - asked >= PIECE_BYTES) {
            asked = r->document;
            if (r->how->enough(r->how->user, asked)) {
                break;
            }
        }
    }
    return status;
}

stk_status stk_bson_read(const stk_range_source *source, const stk_bson_how *how,
                         stk_bson_scan *scan, stk_error *err) {
    static const stk_bson_how plain = {0};
    memset(scan, 0, sizeof *scan);
    reader *r = stk_mem_new(1, sizeof *r);
    if (r == NULL) {
        return STK_FAIL_MEMORY(err, source->name);
    }
    r->source = source;
    r->how = how != NULL ? how : &plain;
    r->scan = scan;
    r->rows.name = source->name;
    r->pieces = r->how->at_a_time < 1             ? 1
                : r->how->at_a_time > PIECES_MOST ? PIECES_MOST
                                                  : (size_t)r->how->at_a_time;
    r->window = stk_mem_raw(r->pieces, PIECE_BYTES);
    stk_status status = r->window != NULL ? STK_OK : STK_FAIL_MEMORY(err, source->name);
    if (r->pieces > 1) {
        STK_THEN(status, stk_pool_new(&r->pool, (int)r->pieces, err));
    }
    STK_THEN(status, read_documents(r, err));
    if (status == STK_OK && r->rows.rows == 0) {
        status = STK_FAIL(err, STK_ERR_DATA, "%s is empty", source->name);
    }
    STK_THEN(status, stk_csv_rows_finish(&r->rows, &scan->csv, err));
    if (status != STK_OK) {
        stk_bson_scan_free(scan);
    }
    stk_csv_rows_free(&r->rows);
    stk_pool_free(r->pool);
    stk_mem_free(r->window);
    stk_mem_free(r);
    return status;
}

void stk_bson_scan_free(stk_bson_scan *scan) {
    stk_csv_free(&scan->csv);
    stk_mem_free(scan->pictures);
    memset(scan, 0, sizeof *scan);
}
