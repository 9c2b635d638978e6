/*
 * attempt_text.h - inside the report room: one attempt of a supervised command in words.
 *
 * Screen, page and status share these words. Texts of an attempt are foreign and appended as they
 * are: the caller cleans the whole line. Threads: safe, nothing is stored.
 */
#ifndef STK_REPORT_TEXT_ATTEMPT_TEXT_H
#define STK_REPORT_TEXT_ATTEMPT_TEXT_H

#include <stoker/events.h>

#include "base/str.h"

/* The name of the attempt: "attempt 2", or "prediction". */
void stk_attempt_put_name(stk_str *out, const stk_event_attempt *attempt);

/* The settings that the command got: "batch 64, 4 workers", with `between` in front; nothing if no
 * setting is known. */
void stk_attempt_put_setting(stk_str *out, const char *between, const stk_event_attempt *attempt);

/* "3.1 GB of 24 GB (13 %)" of GPU memory; nothing where it is not known. */
void stk_attempt_put_memory(stk_str *out, const stk_event_attempt *attempt);

/* Why the attempt ended: "it failed (exit code 1)". */
void stk_attempt_put_end(stk_str *out, const stk_event_attempt *attempt);

/* All that is known of an attempt that has ended, in one line. */
void stk_attempt_put_line(stk_str *out, const stk_event_attempt *attempt);

/* The training attempt with the most images per second; NULL where no rate is known. */
const stk_event_attempt *stk_attempt_best(const stk_event_attempt *attempts, int count);

#endif
