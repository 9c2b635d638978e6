/* verb_predict.c - `stoker predict`. */
#include "cli/cli.h"

static int run(const cli_verb *verb, int argc, char **argv) {
    return cli_run_job(verb, argc, argv, "run", stk_predict);
}

const cli_verb cli_predict = {
    .name = "predict",
    .output = "out",
    .summary = "Writes the submission again from run folders, or predictions for other pictures.",
    .usage = "--run DIR [--run DIR ...] [--data DIR] [--out FILE] [options]",
    .options = stk_options_for_predict,
    .run = run,
};
