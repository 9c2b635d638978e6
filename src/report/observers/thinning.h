/*
 * thinning.h - inside the report room: how often steps and samples are written, so that the files
 * of a run of days stay small.
 *
 * For an hour steps and samples are written at the full rate, then ever more rarely in proportion
 * to the age of the run, down to a tenth of that rate. A run of three days writes some hundred
 * megabytes less. Pure arithmetic. Threads: safe.
 */
#ifndef STK_REPORT_OBSERVERS_THINNING_H
#define STK_REPORT_OBSERVERS_THINNING_H

#include <stdbool.h>

/* The factor by which the gap between two steps or samples grows at this age of the run: 1 to 10.
 */
double stk_thinning_times(double age_s);

/* Whether to leave out a sample taken at `at_s` if the last one written was taken at `last_s`. */
bool stk_thinning_drops(double at_s, double last_s);

#endif
