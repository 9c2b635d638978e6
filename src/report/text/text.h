/*
 * text.h - other people's text (paths, reasons, class names) made fit for a reader.
 *
 * File names may hold any bytes. JSON and SVG must be UTF-8, and a terminal obeys control
 * characters.
 */
#ifndef STK_REPORT_TEXT_TEXT_H
#define STK_REPORT_TEXT_TEXT_H

#include <stoker/events.h>

#include "base/str.h"
#include "base/text/json.h"

/* Appends text; each byte that belongs to no UTF-8 character becomes U+FFFD. */
void stk_report_append_utf8(stk_str *out, const char *text);

/*
 * The same for one line of a screen or an SVG: what a terminal obeys (stk_utf8_control), line
 * breaks too, becomes blanks.
 */
void stk_report_append_line(stk_str *out, const char *text);

/* The same for HTML and SVG, between tags and between quotes: what would be markup is escaped. */
void stk_report_append_markup(stk_str *out, const char *text);

/* The sentence behind a word of summary.json; the word itself when it is new or NULL. */
const char *stk_report_words(const char *word);

/* The sentence behind the stop reason of a summary, which is another one for a supervised command.
 * NULL where there is none. */
const char *stk_report_stop_words(const stk_summary *summary);

/* An option's value of args.json as people are shown it; nothing for one that is not set. */
void stk_report_append_json(stk_str *out, const stk_json *value);

#endif
