/*
 * thinning.h - inside the report room: files of a run of days stay small.
 *
 * Steps and samples come all the time. For an hour they are written as often as they may be, then
 * less and less often, in proportion to the run's age, and in the end a tenth as often: a run of
 * three days writes some hundred megabytes less. Pure. Threads: safe.
 */
#ifndef STK_REPORT_OBSERVERS_THINNING_H
#define STK_REPORT_OBSERVERS_THINNING_H

#include <stdbool.h>

/* How many times as long the gap between two of a kind is at this age of the run: 1 to 10. */
double stk_thinning_times(double age_s);

/* Whether a sample is to be left out that was taken then, after the last one that was written. */
bool stk_thinning_drops(double at_s, double last_s);

#endif
