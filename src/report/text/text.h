/*
 * text.h - foreign text (paths, reasons, class names) made safe to show, and words for summaries.
 *
 * File names may hold any bytes, but JSON and SVG must be UTF-8, and a terminal obeys control
 * characters. Threads: safe, nothing is stored.
 */
#ifndef STK_REPORT_TEXT_TEXT_H
#define STK_REPORT_TEXT_TEXT_H

#include <stoker/events.h>

#include "base/str.h"
#include "base/text/json.h"

/* Appends text; each byte that belongs to no UTF-8 character becomes U+FFFD. */
void stk_report_append_utf8(stk_str *out, const char *text);

/*
 * Appends text as one line of a screen, or as a line that cairo draws: bytes as above; control
 * characters (stk_utf8_control) and line breaks become blanks.
 */
void stk_report_append_line(stk_str *out, const char *text);

/*
 * Appends text as one line of HTML or SVG source, between tags or quotes: as
 * stk_report_append_line(), with characters of markup escaped.
 */
void stk_report_append_markup(stk_str *out, const char *text);

/* The sentence for a status or stop reason of summary.json; an unknown word stands for itself. */
const char *stk_report_words(const char *word);

/* The sentence for the stop reason of a summary; a supervised command has sentences of its own.
 * NULL where there is no reason. */
const char *stk_report_stop_words(const stk_summary *summary);

/* The value of an option in args.json, for people; nothing when it is not set. */
void stk_report_append_json(stk_str *out, const stk_json *value);

#endif
