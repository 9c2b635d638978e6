/*
 * step_timer.h - times steps or inferences of one executable on random pictures.
 *
 * Steps run ahead as in training. The first steps warm up and do not count. The others come in
 * windows, each timed from an idle device to an idle device. The median window counts, since other
 * programs on the machine make some windows slow and none fast. Threads: the one with the device.
 */
#ifndef STK_PROBE_STEP_TIMER_H
#define STK_PROBE_STEP_TIMER_H

#include "engine/backend.h"
#include "loader/loader.h"

/* Learning rate of steps that are only timed: so low that training on random labels does not
 * diverge, since NaN and denormals would make steps slow. */
#define STK_TIMED_RATE 1e-3

/* Warming up times steps one by one until two in a row are about as fast as each other. */
#define STK_STEP_MOST_WARM 6
#define STK_STEP_MOST_WINDOWS 1000

typedef struct stk_step_timer {
    /* Set by the caller, and borrowed: */
    const stk_backend *backend;
    stk_device *device;
    const stk_graph *graph;
    stk_exec *exec;
    size_t batch;
    const stk_update *update; /* of every step; NULL: inferences are timed */
    stk_halt halt;            /* asked before every window and every warm-up step */
    /* The timer's own: */
    uint8_t *images; /* (batch, size, size, 3), of the device's host memory */
    int *labels;     /* (batch) */
    float *targets;  /* zeros, (batch, outputs); NULL where the loss has labels */
    float *features; /* zeros: (batch, features); NULL without */
    float *logits;   /* (batch, classes) */
    uint64_t step;   /* number of the next step */
    double warm_s[STK_STEP_MOST_WARM];
    int warm_count;
    double times_s[STK_STEP_MOST_WINDOWS]; /* seconds per step, by window; sorted after the run */
} stk_step_timer;

typedef struct stk_step_times {
    double median_s; /* of a step, over windows */
    double fastest_s;
    double slowest_s;
    int64_t steps;
    int64_t windows;
    int64_t begin_ns; /* when the first window began */
} stk_step_times;

/* Makes the pictures. The caller closes the timer, also after an error. */
STK_CHECKED stk_status stk_step_timer_open(stk_step_timer *timer, stk_error *err);

/* Call it before the device is closed; the executable may be freed already. */
void stk_step_timer_close(stk_step_timer *timer);

/* Runs steps until two in a row are about as fast as each other; STK_ERR_STOPPED when halted. */
STK_CHECKED stk_status stk_step_timer_warm_up(stk_step_timer *timer, stk_error *err);

/* After warming up: measures for `seconds` and `windows` at least. When halted it uses the windows
 * measured so far; without any it fails with STK_ERR_STOPPED. */
STK_CHECKED stk_status stk_step_timer_run(stk_step_timer *timer, double seconds, size_t windows,
                                          stk_step_times *times, stk_error *err);

/* An executable that is compiled only to be measured. */
typedef struct stk_step_ask {
    const stk_backend *backend;
    stk_device *device;
    const stk_graph *graph;
    stk_state *state; /* of `graph`; training steps change its weights */
    stk_compile_config how;
    const stk_update *update;
    double seconds; /* `seconds` and `windows` as for stk_step_timer_run */
    size_t windows;
    stk_halt halt; /* as in the timer; not asked before compiling */
} stk_step_ask;

/* Compiles, warms up, measures and frees everything. */
STK_CHECKED stk_status stk_step_time(const stk_step_ask *ask, stk_step_times *times,
                                     stk_error *err);

/* Whether a step of `seconds` is clearly slower than one of `than_s`. */
bool stk_step_is_slow(double seconds, double than_s);

#endif
