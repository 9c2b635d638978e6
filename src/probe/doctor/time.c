/*
 * time.c - divides the time that is left over the phases that are left.
 *
 * The shares are computed anew before each phase. A phase that took too long, because a mount hung
 * or a step is slow, shortens all later ones.
 */
#include "probe/doctor/phases.h"

#include <math.h>

#include "base/clock.h"
#include "base/error.h"

#define LEAST_S 0.05

/* Shares of the time, by phase. */
static const double weights[DOCTOR_PHASES] = {
    [DOCTOR_COLD] = 8,    [DOCTOR_WARM] = 4,      [DOCTOR_DECODE] = 9,   [DOCTOR_REMADE] = 8,
    [DOCTOR_STEP] = 14,   [DOCTOR_FIXED] = 12,    [DOCTOR_SMALLER] = 12, [DOCTOR_COPY] = 1,
    [DOCTOR_LOADER] = 10, [DOCTOR_TOGETHER] = 20,
};

double stk_doctor_left(const doctor *d) {
    return d->patient->seconds - stk_clock_since_s(d->patient->start_ns);
}

double stk_doctor_seconds(const doctor *d, doctor_phase phase) {
    double sum = 0;
    for (int i = phase; i < DOCTOR_PHASES; i++) {
        sum += weights[i];
    }
    return fmax(stk_doctor_left(d) * weights[phase] / sum, LEAST_S);
}

stk_status stk_doctor_stopped(const doctor *d, stk_error *err) {
    return stk_stop_asked(d->patient->stop) == STK_STOP_NONE
               ? STK_OK
               : STK_FAIL(err, STK_ERR_STOPPED, "stopped before the examination was complete");
}
