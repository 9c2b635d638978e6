/* probe_options.h - the options of benchmarks. */
#ifndef STK_PROBE_PROBE_OPTIONS_H
#define STK_PROBE_PROBE_OPTIONS_H

#include "options/options.h"

typedef struct stk_probe_options {
    double seconds;    /* of the loader's measurement; 0 measures nothing */
    const char *sheet; /* file for a contact sheet; NULL: none */
} stk_probe_options;

extern const stk_option_table stk_probe_option_table;

/* `bench loader`: a loader's options, the above, and how the verb speaks. */
STK_CHECKED stk_status stk_options_for_bench_loader(stk_options **options, stk_error *err);

#endif
