/* probe_options.h - the options of benchmarks. */
#ifndef STK_PROBE_PROBE_OPTIONS_H
#define STK_PROBE_PROBE_OPTIONS_H

#include "options/options.h"

typedef struct stk_probe_options {
    double seconds;    /* of the loader's measurement; 0 measures nothing */
    double rate;       /* images per second that the consumer takes; 0: as fast as it can */
    const char *sheet; /* file for a contact sheet; NULL: none */
} stk_probe_options;

extern const stk_option_table stk_probe_option_table;

/* `bench loader`: a loader's options, the above, and how the verb speaks. */
STK_CHECKED stk_status stk_options_for_bench_loader(stk_options **options, stk_error *err);

typedef struct stk_storage_probe_options {
    const char *data;      /* folder or address */
    const char *in_flight; /* numbers with commas between them; NULL: auto */
    double rate;           /* images per second that are wanted */
    double seconds;        /* of all steps together */
} stk_storage_probe_options;

extern const stk_option_table stk_storage_probe_option_table;

/* `bench storage`: the above, those of storage, and how the verb speaks. */
STK_CHECKED stk_status stk_options_for_bench_storage(stk_options **options, stk_error *err);

#endif
