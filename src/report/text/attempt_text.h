/*
 * attempt_text.h - inside the report room: one attempt of a supervised command in words, for
 * screen, page and status alike.
 */
#ifndef STK_REPORT_TEXT_ATTEMPT_TEXT_H
#define STK_REPORT_TEXT_ATTEMPT_TEXT_H

#include <stoker/events.h>

#include "base/str.h"

/* "attempt 2", or "prediction": what the attempt is called. */
void stk_attempt_put_name(stk_str *out, const stk_event_attempt *attempt);

/* "batch 64, 4 workers": what it was told; `between` first when there is anything. */
void stk_attempt_put_setting(stk_str *out, const char *between, const stk_event_attempt *attempt);

/* "3.1 GB of 24 GB (13 %)" of GPU memory; nothing where it is not known. */
void stk_attempt_put_memory(stk_str *out, const stk_event_attempt *attempt);

/* Why it ended: "it crashed (exit code 1)". One that has not ended runs. */
void stk_attempt_put_end(stk_str *out, const stk_event_attempt *attempt);

/* All that is known of one that has ended, in a line; texts may be foreign. */
void stk_attempt_put_line(stk_str *out, const stk_event_attempt *attempt);

/* The one of training with most images per second; NULL where none is known. */
const stk_event_attempt *stk_attempt_best(const stk_event_attempt *attempts, int count);

#endif
