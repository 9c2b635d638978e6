/* report_options.h - the options of every verb that say how it speaks, and to which other programs.
 */
#ifndef STK_REPORT_REPORT_OPTIONS_H
#define STK_REPORT_REPORT_OPTIONS_H

#include <stdbool.h>

#include "options/options.h"

typedef struct stk_output_options {
    const char *config;
    bool quiet;
    bool json;
} stk_output_options;

/* What a training writes for other programs. */
typedef struct stk_tools_options {
    bool tensorboard;
    const char *metrics_file; /* NULL: none */
} stk_tools_options;

extern const stk_option_table stk_output_option_table;
extern const stk_option_table stk_tools_option_table;

/* Of `stoker report`. */
typedef struct stk_report_options {
    const char *out;
    bool pictures;
} stk_report_options;

extern const stk_option_table stk_report_option_table;

STK_CHECKED stk_status stk_options_for_report(stk_options **options, stk_error *err);

#endif
