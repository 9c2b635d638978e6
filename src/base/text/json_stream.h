/*
 * json_stream.h - goes through a JSON text of any length, token by token, in one block of memory.
 *
 * The text is read in pieces of a stk_range_source, so a file of gigabytes takes a few megabytes.
 * What is no JSON is STK_ERR_DATA, and the message names the source, the line and the byte; so are
 * nesting over 64 levels and a string or number over 8 MiB. json.h makes a tree of a small text.
 *
 * Four things differ from json.h, since data sets are as they are. Several values may follow each
 * other (JSON Lines). NaN, which Python writes, counts as null. Bytes that are not UTF-8 stay as
 * they are: some files have names in Latin-1. Repeated keys are the caller's business. Threads: one
 * at a time.
 */
#ifndef STK_BASE_TEXT_JSON_STREAM_H
#define STK_BASE_TEXT_JSON_STREAM_H

#include "base/files/range_source.h"

typedef enum stk_json_token_kind {
    STK_JSON_TOKEN_END, /* of the text, behind a whole value */
    STK_JSON_TOKEN_OBJECT,
    STK_JSON_TOKEN_OBJECT_END,
    STK_JSON_TOKEN_ARRAY,
    STK_JSON_TOKEN_ARRAY_END,
    STK_JSON_TOKEN_KEY, /* the next token begins its value */
    STK_JSON_TOKEN_STRING,
    STK_JSON_TOKEN_NUMBER,
    STK_JSON_TOKEN_TRUE,
    STK_JSON_TOKEN_FALSE,
    STK_JSON_TOKEN_NULL
} stk_json_token_kind;

typedef struct stk_json_token {
    stk_json_token_kind kind;
    /* Of keys, strings (decoded), numbers (as written), true and false; "" otherwise. Has a NUL
     * after its bytes and is valid until the next call. */
    const char *text;
    size_t length;
    uint64_t offset; /* of its first byte in the source */
} stk_json_token;

typedef struct stk_json_stream stk_json_stream;

/* The source is borrowed until stk_json_stream_close(). Reads nothing yet. */
STK_CHECKED stk_status stk_json_stream_open(stk_json_stream **stream,
                                            const stk_range_source *source, stk_error *err);
void stk_json_stream_close(stk_json_stream *stream);

STK_CHECKED stk_status stk_json_stream_next(stk_json_stream *stream, stk_json_token *token,
                                            stk_error *err);

/* Passes over the rest of an array or object whose first token was read last. */
STK_CHECKED stk_status stk_json_stream_skip(stk_json_stream *stream, stk_error *err);

/* The line, from 1, and the byte, from 0, where the last token ends. */
uint64_t stk_json_stream_line(const stk_json_stream *stream);
uint64_t stk_json_stream_at(const stk_json_stream *stream);

/* STK_ERR_DATA for valid JSON that is not what is needed: "NAME, line L, byte B: WHAT". */
STK_CHECKED stk_status stk_json_stream_fail(const stk_json_stream *stream, const char *what,
                                            stk_error *err);

#endif
