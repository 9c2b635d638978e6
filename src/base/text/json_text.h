/*
 * json_text.h - inside text: how JSON spells strings and numbers, for the reader that makes a tree
 * (json.h) and the one that goes through a long text (json_stream.h). Threads: any, no state.
 */
#ifndef STK_BASE_TEXT_JSON_TEXT_H
#define STK_BASE_TEXT_JSON_TEXT_H

#include <stddef.h>

/*
 * Decodes the escape whose backslash stands before text[*at]. Appends its bytes, fewer than the
 * escape has, to `out` at *used; `out` may be the text itself. NULL, or what is wrong.
 */
const char *stk_json_unescape(const char *text, size_t size, size_t *at, char *out, size_t *used);

/* Moves *at behind the number that begins there. NULL, or what is wrong. */
const char *stk_json_pass_number(const char *text, size_t size, size_t *at);

#endif
