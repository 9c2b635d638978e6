/*
 * step_timer.h - how long steps or inferences of one executable take, on random pictures.
 *
 * Steps run ahead as in training. The first ones warm everything up and are told apart; the others
 * come in windows, each timed from an idle device to an idle device, and the median window counts,
 * since a neighbour on the machine makes some of them slow and none of them fast.
 */
#ifndef STK_PROBE_STEP_TIMER_H
#define STK_PROBE_STEP_TIMER_H

#include "engine/backend.h"
#include "loader/loader.h"

/* Steps are timed one by one until two in a row are about as fast as each other. */
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
    stk_halt halt;            /* asked before every window, and before every step of warming up */
    /* The timer's own: */
    uint8_t *images; /* (batch, size, size, 3), of the device's host memory */
    int *labels;     /* (batch) */
    float *logits;   /* (batch, classes) */
    uint64_t step;   /* number of the next one */
    double warm_s[STK_STEP_MOST_WARM];
    int warm_count;
    double times_s[STK_STEP_MOST_WINDOWS]; /* of one step, by windows; in order once measured */
} stk_step_timer;

typedef struct stk_step_times {
    double median_s; /* of a step, over windows */
    double fastest_s;
    double slowest_s;
    int64_t steps;
    int64_t windows;
    int64_t begin_ns; /* when the first window began */
} stk_step_times;

/* Makes the pictures; after an error, too, closing is the caller's. */
STK_CHECKED stk_status stk_step_timer_open(stk_step_timer *timer, stk_error *err);

/* Before the device is; the executable may be gone. */
void stk_step_timer_close(stk_step_timer *timer);

/* Until a step is about as fast as the one before; STK_ERR_STOPPED where it is halted. */
STK_CHECKED stk_status stk_step_timer_warm_up(stk_step_timer *timer, stk_error *err);

/* After warming up: for so long at least, and so many windows. Halted it makes do with those that
 * there are; without any it is STK_ERR_STOPPED. */
STK_CHECKED stk_status stk_step_timer_run(stk_step_timer *timer, double seconds, size_t windows,
                                          stk_step_times *times, stk_error *err);

/* An executable that is made for its measurement alone. */
typedef struct stk_step_ask {
    const stk_backend *backend;
    stk_device *device;
    const stk_graph *graph;
    stk_state *state; /* of that graph; training steps move its weights */
    stk_compile_config how;
    const stk_update *update;
    double seconds; /* as for stk_step_timer_run, and the windows */
    size_t windows;
    stk_halt halt; /* as of the timer: not asked before it is compiled */
} stk_step_ask;

/* Compiles, warms up, measures and gives everything back. */
STK_CHECKED stk_status stk_step_time(const stk_step_ask *ask, stk_step_times *times,
                                     stk_error *err);

/* Whether a step of so many seconds is not about as fast as one of the others. */
bool stk_step_is_slow(double seconds, double than_s);

#endif
