/*
 * deadline.h - a moment by the clock on the wall, from text, in the local time zone. Pure: the time
 * that it is now is an argument.
 */
#ifndef STK_BUDGET_DEADLINE_H
#define STK_BUDGET_DEADLINE_H

#include <stdint.h>

#include <stoker/status.h>

typedef struct stk_deadline {
    double left_s;   /* from now to it; over 0 */
    int days_ahead;  /* of its date before today's; 1: tomorrow */
    char moment[32]; /* for people: "2026-11-16 14:30:00" */
} stk_deadline;

/*
 * Reads "14:30", "14:30:00", "2026-11-16T14:30" or "2026-11-16T14:30:00"; a blank may stand for the
 * T. Without a date the next time is meant that a clock shows it. STK_ERR_USAGE is a date that is
 * past, a time that a clock showed within the last three hours, and anything that is no time.
 * now_ns counts from 1970.
 */
STK_CHECKED stk_status stk_deadline_read(stk_deadline *deadline, const char *text, int64_t now_ns,
                                         stk_error *err);

#endif
