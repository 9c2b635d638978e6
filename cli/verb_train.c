/* verb_train.c - `stoker train`. */
#include "cli/cli.h"

static int run(const cli_verb *verb, int argc, char **argv) {
    return cli_run_job(verb, argc, argv, "data", stk_train);
}

const cli_verb cli_train = {
    .name = "train",
    .output = "metrics-file",
    .summary = "Trains a classifier on a folder of pictures and predicts the test pictures.",
    .usage = "--data DIR [--model NAME] [--budget T] [options] | --resume RUN",
    .options = stk_options_for_train,
    .run = run,
};
