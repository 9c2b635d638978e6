/*
 * str.h - text that grows, and small questions about text.
 *
 * A stk_str starts zeroed. Appending never fails at once: a failure is remembered and stk_str_ok()
 * tells at the end, so that building a file is a straight line of calls.
 */
#ifndef STK_BASE_STR_H
#define STK_BASE_STR_H

#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <stoker/status.h>

typedef struct stk_str {
    char *text;      /* owned, NUL-terminated when not NULL */
    size_t length;   /* bytes before the NUL */
    size_t capacity; /* bytes that text has room for, the NUL included */
    bool failed;     /* an append found no memory; text holds what came before it */
} stk_str;

void stk_str_free(stk_str *str);
void stk_str_clear(stk_str *str);

/* Frees a text that was put into another one, which fails if the part has failed. */
void stk_str_free_part(stk_str *whole, stk_str *part);

/* Makes room for so many more bytes: appending them needs no memory. False: there is none. */
bool stk_str_reserve(stk_str *str, size_t extra);

void stk_str_append(stk_str *str, const char *text);
void stk_str_append_bytes(stk_str *str, const void *bytes, size_t length);
void stk_str_appendf(stk_str *str, const char *format, ...) STK_PRINTF(2, 3);

/* Appends printf output of arguments that the caller has begun and ends. */
void stk_str_append_args(stk_str *str, const char *format, va_list args) STK_PRINTF(2, 0);

/* True while every append succeeded. */
bool stk_str_ok(const stk_str *str);

/* The text, "" when nothing was appended. Valid until the next append. */
const char *stk_str_text(const stk_str *str);

/* Hands the text over to the caller (freed with stk_mem_free), NULL after a failure. */
char *stk_str_take(stk_str *str);

/* A new string from a format; NULL when there is no memory. Freed with stk_mem_free. */
char *stk_str_format(const char *format, ...) STK_PRINTF(1, 2);

bool stk_str_equal(const char *a, const char *b);
bool stk_str_equal_nocase(const char *a, const char *b);
bool stk_str_ends_with_nocase(const char *text, const char *tail);

/*
 * The length of the UTF-8 character at text, which has `left` bytes before its end; 0 when the
 * bytes are no character, as overlong forms, surrogates and codes above U+10FFFF.
 */
size_t stk_utf8_length(const char *text, size_t left);

/*
 * The code of the UTF-8 character at text, of `length` bytes, if a terminal obeys it: a control
 * character (U+0000 to U+001F, U+007F to U+009F), or one that changes the writing direction (U+202A
 * to U+202E, U+2066 to U+2069). -1 for all others.
 */
int stk_utf8_control(const char *text, size_t length);

/*
 * The candidate nearest to `word` by edit distance, case aside. NULL when none is near: the
 * distance may be a third of the word's letters and one more, and some letter must agree.
 */
const char *stk_str_nearest(const char *word, const char *const *candidates, size_t count);

/*
 * Whole-string parsing: false unless all of text, blanks at the ends aside, is the value.
 * Bytes: "50G", "64MiB", "1024" (units are powers of 1024). Duration, in seconds: "11m", "2h30m",
 * "90s", "1.5h", "00:11:00", "11:30" (minutes and seconds), "660". Bool: yes/no, true/false,
 * on/off, 1/0.
 */
bool stk_parse_int(const char *text, int64_t *value);
bool stk_parse_double(const char *text, double *value);
bool stk_parse_bytes(const char *text, uint64_t *bytes);
bool stk_parse_duration(const char *text, double *seconds);
bool stk_parse_bool(const char *text, bool *value);

/* "0:41", "12:05", "1:02:03" into buf; returns buf. */
const char *stk_format_duration(char *buf, size_t size, double seconds);

/* An estimate within a sentence: "0.035 s", "4.1 s", "47 s", "32 min", "5.5 h". */
typedef struct stk_span {
    char text[24];
} stk_span;

stk_span stk_format_span(double seconds);

/* How many of something, to so many digits, never in powers of ten: "0.23 epochs", "1 epoch",
 * "1234 epochs". */
typedef struct stk_amount {
    char text[48];
} stk_amount;

stk_amount stk_format_amount(double value, int digits, const char *unit);

/*
 * The value rounded to the six digits that are written to files. A run that computes with the
 * rounded value can be repeated exactly from the file.
 */
double stk_as_shown(double value);

/* "12,345" into buf; returns buf. */
const char *stk_format_count(char *buf, size_t size, uint64_t count);

/* "412 kB", "1.3 GB" into buf (decimal units); returns buf. */
const char *stk_format_bytes(char *buf, size_t size, uint64_t bytes);

#endif
