/*
 * line_text.h - characters and numbers of an output line.
 *
 * Pure; independent of the locale.
 */
#ifndef STK_SUPERVISE_OUTPUT_LINE_TEXT_H
#define STK_SUPERVISE_OUTPUT_LINE_TEXT_H

#include <stdbool.h>
#include <stddef.h>

/* For text from stk_text_clean(), which has no capital letters. */
static inline bool stk_is_letter(char c) {
    return c >= 'a' && c <= 'z';
}

static inline bool stk_is_digit(char c) {
    return c >= '0' && c <= '9';
}

static inline const char *stk_skip_blanks(const char *at) {
    while (*at == ' ') {
        at++;
    }
    return at;
}

/*
 * The line in the form that rules match: without terminal colours, in small letters, blanks for
 * control characters, '~' for every byte that is not ASCII. `out` has room for length bytes and
 * NUL.
 */
void stk_text_clean(const char *text, size_t length, char *out);

/* The line for people: without terminal colours and control characters, cut to `room` bytes. */
void stk_text_plain(const char *text, size_t length, char *plain, size_t room);

typedef struct stk_line_number {
    double value;
    double unit;     /* bytes per unit of memory; 0: no unit */
    bool point;      /* has a decimal point or an exponent */
    const char *end; /* after the number */
} stk_line_number;

/* Reads the number at `at` in clean text; false: there is none, or it has over 40 digits. */
bool stk_line_number_read(const char *at, stk_line_number *figure);

/* Reads a unit of memory after the number: "GB", "GiB", "g", with or without a blank. */
void stk_line_number_read_unit(stk_line_number *figure);

#endif
