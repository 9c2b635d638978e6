/* report_options.c - the option tables of output. */
#include "report/report_options.h"

#define FIELD(name) offsetof(stk_output_options, name)

static const stk_option output_options[] = {
    STK_OPTION(TEXT, "config", config, .momentary = true, .metavar = "FILE",
               .help = "YAML file with options as `name: value` lines; flags win over it"),
    STK_OPTION(BOOL, "quiet", quiet, .fallback = "false", .may_change = true,
               .help = "print warnings and errors only"),
    STK_OPTION(BOOL, "json", json, .fallback = "false", .may_change = true,
               .help = "print JSON, one object a line"),
};

const stk_option_table stk_output_option_table =
    STK_OPTION_TABLE("Output", output_options, stk_output_options);

#undef FIELD
#define FIELD(name) offsetof(stk_tools_options, name)

static const stk_option tools_options[] = {
    STK_OPTION(BOOL, "tensorboard", tensorboard, .fallback = "true", .may_change = true,
               .help = "write event files for TensorBoard into the run folder"),
    STK_OPTION(TEXT, "metrics-file", metrics_file, .momentary = true, .metavar = "FILE.prom",
               .help = "keep a file with the run's figures as Prometheus text, for node_exporter's "
                       "textfile collector; replaced once a second at most"),
};

const stk_option_table stk_tools_option_table =
    STK_OPTION_TABLE("Other programs", tools_options, stk_tools_options);

#undef FIELD
#define FIELD(name) offsetof(stk_report_options, name)

static const stk_option report_options[] = {
    STK_OPTION(TEXT, "out", out, .metavar = "FILE",
               .help = "the page to write; without it report.html in the run folder, and "
                       "compare.html here for several runs"),
    STK_OPTION(
        BOOL, "pictures", pictures, .fallback = "true",
        .help = "read the worst-classified pictures from the data set, for thumbnails in the page"),
};

const stk_option_table stk_report_option_table =
    STK_OPTION_TABLE("Report", report_options, stk_report_options);

stk_status stk_options_for_report(stk_options **options, stk_error *err) {
    static const stk_option_table *const tables[] = {&stk_report_option_table,
                                                     &stk_output_option_table};
    return stk_options_new(options, "report", tables, sizeof tables / sizeof *tables, err);
}
