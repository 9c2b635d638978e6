/*
 * torch_probe.h - measures a step of `bench step` in PyTorch, with a script built into the command.
 * Threads: one at a time.
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
    char error[320]; /* why it could not be measured; "" otherwise */
} stk_torch_figures;

/* Called after each mode: compiling the next one may take minutes. */
typedef struct stk_torch_listener {
    void *user;
    void (*told)(void *user, const stk_torch_figures *figures);
} stk_torch_listener;

/*
 * Measures the network and batch of `step` for `seconds` per mode. Where python3, torch or timm is
 * missing, `missing` says which and the listener is not called; that is no error. Otherwise
 * `missing` is "". A request to stop ends the measurement.
 */
STK_CHECKED stk_status stk_probe_torch(const stk_step_figures *step, double seconds,
                                       const stk_stop *stop, const stk_torch_listener *listener,
                                       char *missing, size_t room, stk_error *err);

#endif
