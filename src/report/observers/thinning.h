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

/* Whether to leave out a step made at `at_s` if the last one written was made at `last_s`, both in
 * seconds since the start of the run. */
bool stk_thinning_drops_step(double at_s, double last_s);

/* The same for samples, by the time at which they were taken. */
bool stk_thinning_drops_sample(double at_s, double last_s);

#endif
