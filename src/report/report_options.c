/* report_options.c - the option tables of output. */
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

static const stk_option tools_options[] = {
    {.name = "tensorboard",
     .may_change = true,
     .type = STK_OPTION_BOOL,
     .offset = offsetof(stk_tools_options, tensorboard),
     .fallback = "true",
     .help = "write event files for TensorBoard into the run folder"},
    {.name = "metrics-file",
     .momentary = true,
     .type = STK_OPTION_TEXT,
     .offset = offsetof(stk_tools_options, metrics_file),
     .metavar = "FILE.prom",
     .help = "keep a file with the run's figures as Prometheus text, for node_exporter's textfile "
             "collector; replaced once a second at most"},
};

const stk_option_table stk_tools_option_table =
    STK_OPTION_TABLE("Other programs", tools_options, stk_tools_options);

static const stk_option report_options[] = {
    {.name = "out",
     .type = STK_OPTION_TEXT,
     .offset = offsetof(stk_report_options, out),
     .metavar = "FILE",
     .help = "the page to write; without it report.html in the run folder, and compare.html here "
             "for several runs"},
    {.name = "pictures",
     .type = STK_OPTION_BOOL,
     .offset = offsetof(stk_report_options, pictures),
     .fallback = "true",
     .help = "read the worst-classified pictures from the data set, for thumbnails in the page"},
};

const stk_option_table stk_report_option_table =
    STK_OPTION_TABLE("Report", report_options, stk_report_options);

stk_status stk_options_for_report(stk_options **options, stk_error *err) {
    static const stk_option_table *const tables[] = {&stk_report_option_table,
                                                     &stk_output_option_table};
    return stk_options_new(options, "report", tables, sizeof tables / sizeof *tables, err);
}
