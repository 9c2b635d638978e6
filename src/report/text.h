/*
 * text.h - other people's text (paths, reasons, class names) made fit for a reader.
 *
 * File names may hold any bytes. JSON and SVG must be UTF-8, and a terminal obeys control
 * characters.
 */
#ifndef STK_REPORT_TEXT_H
#define STK_REPORT_TEXT_H

#include "base/str.h"

/* Appends text; each byte that belongs to no UTF-8 character becomes U+FFFD. */
void stk_report_append_utf8(stk_str *out, const char *text);

/* The same for one line of a screen or an SVG: control characters, line breaks too, become blanks.
 */
void stk_report_append_line(stk_str *out, const char *text);

#endif
