/*
 * hide.h - replaces secrets in command lines and addresses by ***.
 *
 * Whoever stores or shows a command hides three things: values whose names look like those of
 * secrets (--token X, --api-key=X, PASSWORD=X, "token": "X", an Authorization header, ?signature=X
 * in an address), user and password in an address, and words that begin like well-known tokens. It
 * is a guess: a secret without a name stays, and a harmless value may be hidden. Threads: safe.
 */
#ifndef STK_BASE_HIDE_H
#define STK_BASE_HIDE_H

#include <stdbool.h>
#include <stddef.h>

#include "base/str.h"

/* What stands in place of a secret. */
#define STK_HIDDEN "***"

/* When the value of a name is hidden. */
typedef enum stk_hide_when {
    STK_HIDE_NEVER,
    STK_HIDE_RANDOM, /* where it looks like a key */
    STK_HIDE_TEXT,   /* unless it is a number, true or false */
    STK_HIDE_ALWAYS,
} stk_hide_when;

/* What the words so far say about the next one. Starts zeroed but for `arguments`. */
typedef struct stk_hider {
    bool arguments;     /* words are arguments of a program, not lines for a shell: the value of
                           --name=VALUE reaches to the end of the word */
    stk_hide_when next; /* the word before was a flag, and the next is its value */
    bool line_next;     /* the word before was -c: a line for a shell follows */
} stk_hider;

/* Appends a word of a command line, which may be a whole line for a shell, with secrets hidden. */
void stk_hide_word(stk_hider *hider, const char *word, stk_str *out);

/* Hides the values of secret-looking environment variables wherever they occur in the text, since a
 * shell may have expanded them. `environment` has the form of `environ`. */
void stk_hide_values(char *const *environment, stk_str *text);

/* Hides user and password of the addresses in a text, in place and without memory. */
void stk_hide_addresses(char *text);

/* Whether a value of this name is hidden; dashes in front of the name do not matter. */
bool stk_hide_is_secret(const char *name, size_t length);

#endif
