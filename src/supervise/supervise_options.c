/* supervise_options.c - the option table of `stoker run`. */
#include "supervise/supervise_options.h"

#include <stoker/supervise.h>

#include "budget/budget.h"
#include "report/report_options.h"

#define FIELD(name) offsetof(stk_supervise_options, name)

static const stk_option options[] = {
    STK_OPTION(TEXT, "predict", predict, .metavar = "COMMAND",
               .help = "shell line that predicts; runs however training ended, and its exit code "
                       "is that of the run; the script may be written while training runs"),
    STK_OPTION(TEXT, "expect", expect, .metavar = "FILE",
               .help = "file that must exist at the end, be new and have rows"),
    STK_OPTION(TEXT, "reserve", reserve, .metavar = "SHARE|T",
               .help = "share of the budget, or time, reserved for --predict (15%)"),
    STK_OPTION(
        TEXT, "stop-at", stop_at, .metavar = "SHARE|T",
        .help = "when training is asked to stop, from the start of the budget; replaces --reserve"),
    STK_OPTION(TEXT, "stop-signal", stop_signal, .fallback = "TERM", .metavar = "NAME",
               .help = "the signal that asks training to stop"),
    STK_OPTION(DURATION, "stop-grace", stop_grace_s, STK_OPTION_AUTO, STK_OPTION_RANGE(0, 86400),
               .metavar = "T",
               .help = "time from that signal to SIGKILL, within the budget; auto: 10 s, at most a "
                       "tenth of the budget"),
    STK_OPTION(DURATION, "check-after", check_after_s, .fallback = "60s",
               STK_OPTION_RANGE(1, 86400), .metavar = "T",
               .help = "time from the first GPU work to the check of the command"),
    STK_OPTION(DURATION, "grace", grace_s, .fallback = "2m", STK_OPTION_RANGE(0, 86400),
               .metavar = "T", .help = "time that the command may take until its GPU work begins"),
    STK_OPTION(TEXT, "batch-env", batch_env, .metavar = "NAME",
               .help = "environment variable with the command's batch size"),
    STK_OPTION(TEXT, "batch-arg", batch_arg, .dashed = true, .metavar = "--FLAG",
               .help = "argument with the command's batch size"),
    STK_OPTION(TEXT, "batch-key", batch_key, .metavar = "KEY",
               .help = "key of --config-file with the command's batch size"),
    STK_OPTION(TEXT, "workers-env", workers_env, .metavar = "NAME",
               .help = "environment variable with the command's number of loader workers"),
    STK_OPTION(TEXT, "workers-arg", workers_arg, .dashed = true, .metavar = "--FLAG",
               .help = "argument with the command's number of loader workers"),
    STK_OPTION(TEXT, "workers-key", workers_key, .metavar = "KEY",
               .help = "key of --config-file with the command's number of loader workers"),
    STK_OPTION(TEXT, "config-file", config_file, .metavar = "FILE",
               .help =
                   "YAML or JSON file of the command; changed for trials and restored at the end"),
    STK_OPTION(TEXT, "fill", fill, .metavar = "SHARE",
               .help =
                   "share of GPU memory up to which the batch grows, however busy the GPU is; "
                   "without it the batch grows while memory is below 50% and activity below 60%"),
    STK_OPTION(BOOL, "dry-run", dry_run, .fallback = "false",
               .help = "say what would be done, and change nothing"),
    STK_OPTION(DURATION, "hang", hang_s, .fallback = "5m", STK_OPTION_RANGE(0, 1e9), .metavar = "T",
               .help = "a command without output and progress for this long, while the GPU idles "
                       "or spins, hangs; 0: never"),
    STK_OPTION(CHOICE, "on-hang", on_hang, .fallback = "restart", .choices = "restart stop report",
               .help = "what to do about a hang, after its processes are recorded"),
    STK_OPTION(INT, "retries", retries, .fallback = "1", STK_OPTION_RANGE(0, 20), .metavar = "N",
               .help = "how often a command that hangs is restarted"),
    STK_OPTION(INT, "json-fd", json_fd, STK_OPTION_AUTO, STK_OPTION_RANGE(1, 1048576),
               .momentary = true, .metavar = "N",
               .help = "write the events as JSON, one object a line, to this open file descriptor"),
    STK_OPTION(TEXT, "out", out, .metavar = "DIR",
               .help = "the run folder itself; an earlier run in it is moved aside"),
    STK_OPTION(TEXT, "name", name, .metavar = "NAME",
               .help = "without --out the run folder is runs/NAME, numbered when taken; without "
                       "--name it is called after the verb"),
};

const stk_option_table stk_supervise_option_table =
    STK_OPTION_TABLE("Supervision", options, stk_supervise_options);

static const stk_option_table *const tables[] = {
    &stk_supervise_option_table,
    &stk_budget_option_table,
    &stk_output_option_table,
};

stk_status stk_options_for_run(stk_options **made, stk_error *err) {
    return stk_options_new(made, "run", tables, sizeof tables / sizeof *tables, err);
}
