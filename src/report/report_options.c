/* report_options.c - how a verb speaks. */
#include "report/report_options.h"

static const stk_option output_options[] = {
    {.name = "config",
     .momentary = true,
     .type = STK_OPTION_TEXT,
     .offset = offsetof(stk_output_options, config),
     .metavar = "FILE",
     .help = "YAML file with options as `name: value` lines; flags win over it"},
    {.name = "quiet",
     .may_change = true,
     .type = STK_OPTION_BOOL,
     .offset = offsetof(stk_output_options, quiet),
     .fallback = "false",
     .help = "print warnings and errors only"},
    {.name = "json",
     .may_change = true,
     .type = STK_OPTION_BOOL,
     .offset = offsetof(stk_output_options, json),
     .fallback = "false",
     .help = "print JSON, one object a line"},
};

const stk_option_table stk_output_option_table =
    STK_OPTION_TABLE("Output", output_options, stk_output_options);
