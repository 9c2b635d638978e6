/* response.h - inside storage: one line after another of the head of an answer. Threads: safe. */
#ifndef STK_STORAGE_HTTP_RESPONSE_H
#define STK_STORAGE_HTTP_RESPONSE_H

#include "storage/http/engine.h"

/*
 * Takes a line as it came; its end (CR LF) may be there. A status line begins a new answer: all
 * that was known is forgotten. What is not understood is passed over.
 */
void stk_http_head_line(stk_http_head *answer, const char *line, size_t size);

/* The server's clock as unix time; 0: not known. */
int64_t stk_http_head_date_s(const stk_http_head *answer);

#endif
