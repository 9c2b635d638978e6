/* report_options.h - three structs of options: what every verb prints, what a training writes for
 * other programs, and where `stoker report` writes. */
#ifndef STK_REPORT_REPORT_OPTIONS_H
#define STK_REPORT_REPORT_OPTIONS_H

#include <stdbool.h>

#include "options/options.h"

/* Options of every verb. */
typedef struct stk_output_options {
    const char *config; /* YAML file with further options; NULL: none */
    bool quiet;         /* only warnings and errors are printed */
    bool json;          /* JSON is printed, one object a line */
} stk_output_options;

/* What a training writes for other programs. */
typedef struct stk_tools_options {
    bool tensorboard;         /* event files for TensorBoard */
    const char *metrics_file; /* NULL: none */
} stk_tools_options;

extern const stk_option_table stk_output_option_table;
extern const stk_option_table stk_tools_option_table;

/* Options of `stoker report`. */
typedef struct stk_report_options {
    const char *out; /* the page; NULL: report.html of the run, or compare.html */
    bool pictures;   /* thumbnails are read from the data set */
} stk_report_options;

extern const stk_option_table stk_report_option_table;

STK_CHECKED stk_status stk_options_for_report(stk_options **options, stk_error *err);

#endif
