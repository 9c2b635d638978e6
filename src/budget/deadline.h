/*
 * deadline.h - reads a moment of the wall clock from text, in the local time zone. Pure: the
 * current time is an argument.
 */
#ifndef STK_BUDGET_DEADLINE_H
#define STK_BUDGET_DEADLINE_H

#include <stdint.h>

#include <stoker/status.h>

typedef struct stk_deadline {
    double left_s;   /* seconds from now until the deadline; above 0 */
    int days_ahead;  /* days from today to its date; 1: tomorrow */
    char moment[32]; /* for people: "2026-11-16 14:30:00" */
} stk_deadline;

/*
 * Reads "14:30", "14:30:00", "2026-11-16T14:30" or "2026-11-16T14:30:00"; a blank may stand for the
 * T. Without a date the next such time is meant. STK_ERR_USAGE: a date in the past, a time of day
 * that was within the last three hours, or text that is no time. now_ns counts from 1970.
 */
STK_CHECKED stk_status stk_deadline_read(stk_deadline *deadline, const char *text, int64_t now_ns,
                                         stk_error *err);

#endif
