/*
 * step_probe.h - measures training steps or inferences on pictures in memory: `bench step`.
 *
 * Threads: measure one thing at a time in a process, since memory is the process's.
 */
#ifndef STK_PROBE_STEP_PROBE_H
#define STK_PROBE_STEP_PROBE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <stoker/options.h>
#include <stoker/stop.h>

#include "engine/backend.h"

typedef struct stk_step_figures {
    const char *model;     /* static */
    char device[16];       /* "cuda:0" */
    char about[400];       /* the device for people: "NVIDIA H200, 139.8 GiB (given)" */
    const char *precision; /* static */
    int64_t batch;
    int64_t img_size;
    double images_per_second; /* by the median window */
    double ms_per_step;       /* the median over windows of steps */
    double ms_fastest;        /* mean of the fastest window */
    double ms_slowest;
    int64_t bytes;        /* memory need: executable and state, as allocated */
    int64_t arena_bytes;  /* part of `bytes`: the executable's memory; on the CPU its arena */
    int64_t rss_bytes;    /* peak resident memory of the process */
    double plan_ms;       /* time to compute the memory need */
    double warmup_s;      /* from opening the device to the end of the first step at full speed */
    int64_t steps;        /* measured */
    int64_t windows;      /* in which the steps were measured */
    double traffic_bytes; /* moved by a step: see engine/traffic.h */
    double bandwidth;     /* of the device's memory, bytes per second; NaN: not known */
    double traffic_fraction; /* share of the bandwidth that a step uses; NaN: not known */
    int64_t kernels_compiled, kernels_loaded; /* see stk_device_counts; 0 on a CPU */
    int64_t plans_timed, plans_loaded;
    char unkept[256]; /* why compiled kernels cannot be stored for the next start; "": they are */
    int64_t classes;
    int64_t threads;
    bool inference;
    /* Times of single operations, the longest first; valid during the callback. NULL: not asked
     * for, or not known. */
    const stk_profile_line *profile;
    size_t profile_count;
} stk_step_figures;

/* The most batches of one call. */
#define STK_STEP_MOST_BATCHES 64

/* The smallest batch whose images/s are nearly the best, as stk_batch_knee; 0 without any figures.
 */
int64_t stk_step_knee(const stk_step_figures *figures, size_t count);

/*
 * Measures every batch of the option "batch" (a list), one after the other, and calls `tell` after
 * each. A request to stop gives STK_ERR_STOPPED.
 */
STK_CHECKED stk_status stk_probe_step(stk_options *options, const stk_stop *stop,
                                      void (*tell)(void *user, const stk_step_figures *figures),
                                      void *user, stk_error *err);

#endif
