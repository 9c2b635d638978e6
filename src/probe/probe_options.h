/* probe_options.h - the options of benchmarks. */
#ifndef STK_PROBE_PROBE_OPTIONS_H
#define STK_PROBE_PROBE_OPTIONS_H

#include "options/options.h"

typedef struct stk_probe_options {
    double seconds;     /* of the loader's measurement; 0 measures nothing */
    double rate;        /* images per second that the consumer takes; 0: as fast as it can */
    const char *sheet;  /* file for a contact sheet; NULL: none */
    const char *device; /* that may decode, and takes the batches; NULL: auto */
} stk_probe_options;

extern const stk_option_table stk_probe_option_table;

/* Options of `bench loader`: those of a loader, of the measurement and of output. */
STK_CHECKED stk_status stk_options_for_bench_loader(stk_options **options, stk_error *err);

typedef struct stk_storage_probe_options {
    const char *data;      /* folder or address */
    const char *in_flight; /* numbers with commas between them; NULL: auto */
    double rate;           /* images per second that are wanted */
    double seconds;        /* of all steps together */
} stk_storage_probe_options;

extern const stk_option_table stk_storage_probe_option_table;

typedef struct stk_step_probe_options {
    const char *model;
    const char *batch; /* a list: "16,32" */
    int64_t img_size;  /* STK_AUTO_INT: the model's */
    int64_t classes;
    const char *device;     /* NULL: auto */
    uint64_t assume_memory; /* bytes that the device is held to; 0: all that it has */
    int64_t threads;        /* STK_AUTO_INT: all cores */
    int precision;          /* stk_precision */
    bool deterministic;
    double seconds; /* least length per batch */
    bool inference;
    const char *compare; /* NULL, or "torch" */
    bool compile;        /* kernels are fused; false: node by node */
    bool profile;        /* where the time of a step goes */
} stk_step_probe_options;

extern const stk_option_table stk_step_probe_option_table;

/* Options of `bench step`: those of the measurement and of output. */
STK_CHECKED stk_status stk_options_for_bench_step(stk_options **options, stk_error *err);

/* Options of `bench storage`: those of the measurement, of storage and of output. */
STK_CHECKED stk_status stk_options_for_bench_storage(stk_options **options, stk_error *err);

#endif
