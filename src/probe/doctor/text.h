/*
 * text.h - a diagnosis in words and bars, for a terminal and for a picture. Threads: safe.
 */
#ifndef STK_PROBE_DOCTOR_TEXT_H
#define STK_PROBE_DOCTOR_TEXT_H

#include <stoker/job.h>

#include "base/str.h"

/* Appends the whole diagnosis as lines for people. */
void stk_doctor_print(const stk_diagnosis *diagnosis, stk_str *text);

/* Appends one sentence that names the narrowest stage and what that means. */
void stk_doctor_verdict(const stk_diagnosis *diagnosis, stk_str *text);

#endif
