/*
 * torch_probe.h - the same step in PyTorch, measured by a script that travels inside the command.
 */
#ifndef STK_PROBE_TORCH_PROBE_H
#define STK_PROBE_TORCH_PROBE_H

#include "probe/step_probe.h"

typedef struct stk_torch_figures {
    char mode[16]; /* "eager", "compile", "reduce-overhead" */
    double images_per_second;
    double ms_per_step;
    double warmup_s;
    char version[32];
    char error[320]; /* "" unless it could not be measured */
} stk_torch_figures;

/* Told when a mode has been measured: compiling the next one may take minutes. */
typedef struct stk_torch_listener {
    void *user;
    void (*told)(void *user, const stk_torch_figures *figures);
} stk_torch_listener;

/*
 * Measures what `step` measured, in as many seconds. Where python3, torch or timm is not there
 * nothing is told and `missing` says what, which is "" otherwise: that is no error. A request to
 * stop ends it.
 */
STK_CHECKED stk_status stk_probe_torch(const stk_step_figures *step, double seconds,
                                       const stk_stop *stop, const stk_torch_listener *listener,
                                       char *missing, size_t room, stk_error *err);

#endif
