/*
 * html.h - inside the report room: the small pieces that all pages are made of.
 *
 * Texts of a run (paths, class names, reasons) are other people's: whatever is called `text` here
 * is escaped. Headings and ids are the code's own and are not. Threads: safe, nothing is stored.
 */
#ifndef STK_REPORT_PAGE_HTML_H
#define STK_REPORT_PAGE_HTML_H

#include "base/str.h"

#define STK_PAGE_UNKNOWN "–" /* stands for a value that is not known */

/* The beginning of a page, up to the end of its heading, which is `title`; and its end. */
void stk_page_begin(stk_str *out, const char *title);
void stk_page_end(stk_str *out);

/* <section id="..."><h2>...</h2> and its end. */
void stk_page_open_section(stk_str *out, const char *id, const char *heading);
void stk_page_close_section(stk_str *out);

/* A text; NULL: not known. */
void stk_page_put_text(stk_str *out, const char *text);

/* A text between two pieces of markup, which are not escaped. */
void stk_page_put_in(stk_str *out, const char *before, const char *text, const char *after);

/* A cell of a table with a text (NULL: not known), or with a number (NaN: not known). */
void stk_page_put_cell(stk_str *out, const char *text);
void stk_page_put_number_cell(stk_str *out, int decimals, double value);

#endif
