/*
 * json.h - a small JSON writer and reader.
 *
 * The writer appends to a stk_str and takes care of commas, escapes and numbers (a number that is
 * not finite becomes null, bytes that are not UTF-8 become U+FFFD). The reader makes a tree out of
 * one text; it refuses what RFC 8259 refuses, repeated keys and nesting over 64 levels. Threads:
 * many threads may read one tree.
 *
 * Names of files may hold bytes that are not UTF-8. Where such a name must be read back the writer
 * is `exact`: a byte 0x80 to 0xff that is part of no character becomes \udc80 to \udcff, as in
 * Python's surrogateescape, and the reader turns it back into the byte.
 */
#ifndef STK_BASE_TEXT_JSON_H
#define STK_BASE_TEXT_JSON_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <stoker/status.h>

#include "base/str.h"

typedef struct stk_json_writer {
    stk_str *out;    /* borrowed */
    bool need_comma; /* a value precedes in this object or array */
    bool after_key;  /* the next value belongs to the key just written */
    int indent;      /* spaces per level; 0: all on one line */
    int depth;       /* open objects and arrays */
    bool exact;      /* bytes that are not UTF-8 can be read back; set by the caller */
} stk_json_writer;

stk_json_writer stk_json_write_to(stk_str *out, int indent);
void stk_json_begin_object(stk_json_writer *writer);
void stk_json_end_object(stk_json_writer *writer);
void stk_json_begin_array(stk_json_writer *writer);
void stk_json_end_array(stk_json_writer *writer);
void stk_json_key(stk_json_writer *writer, const char *key);
void stk_json_put_string(stk_json_writer *writer, const char *text); /* NULL gives null */
void stk_json_put_int(stk_json_writer *writer, int64_t value);
void stk_json_put_double(stk_json_writer *writer, double value); /* the shortest exact text */
void stk_json_put_bool(stk_json_writer *writer, bool value);
void stk_json_put_null(stk_json_writer *writer);

typedef enum stk_json_kind {
    STK_JSON_NULL,
    STK_JSON_BOOL,
    STK_JSON_NUMBER,
    STK_JSON_STRING,
    STK_JSON_ARRAY,
    STK_JSON_OBJECT
} stk_json_kind;

typedef struct stk_json stk_json;

/* The error (STK_ERR_DATA) says at which byte what is wrong. Freed with stk_json_free(root). */
STK_CHECKED stk_status stk_json_parse(const char *text, size_t size, stk_json **root,
                                      stk_error *err);

/* Reads and parses a file of at most most_bytes. */
STK_CHECKED stk_status stk_json_read(const char *path, size_t most_bytes, stk_json **root,
                                     stk_error *err);

/* The same for a file of a folder; at most 1 MiB. Errors of the text do not name the file. */
STK_CHECKED stk_status stk_json_read_in(const char *folder, const char *name, stk_json **root,
                                        stk_error *err);
void stk_json_free(stk_json *root);

stk_json_kind stk_json_kind_of(const stk_json *value); /* NULL counts as STK_JSON_NULL */
const char *stk_json_string(const stk_json *value);    /* NULL unless it is a string */
double stk_json_number(const stk_json *value, double otherwise);
bool stk_json_bool(const stk_json *value, bool otherwise);

/* A whole number from 0 to 2^63-1, read without rounding; false for any other value. */
bool stk_json_u64(const stk_json *value, uint64_t *out);

/* Members of an object or elements of an array, in the order of the text. */
size_t stk_json_count(const stk_json *value);
const stk_json *stk_json_at(const stk_json *value, size_t index);
const char *stk_json_key_at(const stk_json *value, size_t index);

/* The member after `member`, or NULL: walks a container in linear time. */
const stk_json *stk_json_next(const stk_json *value, const stk_json *member);
const char *stk_json_key_of(const stk_json *member); /* NULL in an array */

/* The member of that name, or NULL. */
const stk_json *stk_json_get(const stk_json *object, const char *key);

#endif
