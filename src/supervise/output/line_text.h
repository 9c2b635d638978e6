/*
 * line_text.h - the characters and numbers of a line that a command has said.
 *
 * Pure, and the same whatever the locale is.
 */
#ifndef STK_SUPERVISE_OUTPUT_LINE_TEXT_H
#define STK_SUPERVISE_OUTPUT_LINE_TEXT_H

#include <stdbool.h>
#include <stddef.h>

/* Of clean text. */
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
 * The line as rules read it: without colours, with small letters, blanks for control characters and
 * '~' for every byte that is not ASCII. `out` has room for length bytes and a NUL.
 */
void stk_text_clean(const char *text, size_t length, char *out);

/* The line as people read it, without colours and control characters, cut to the room. */
void stk_text_plain(const char *text, size_t length, char *plain, size_t room);

typedef struct stk_figure {
    double value;
    double unit;     /* bytes; 0: none was given */
    bool point;      /* it has a decimal point or an exponent */
    const char *end; /* of it in the text */
} stk_figure;

/* False where clean text has no number right at `at`; one of more than 40 digits is none. */
bool stk_figure_read(const char *at, stk_figure *figure);

/* Reads a unit of memory behind a number: "GB", "GiB", "g", with or without a blank. */
void stk_figure_read_unit(stk_figure *figure);

#endif
