/* verb_sample.c - `stoker sample`. */
#include "cli/cli.h"

#include <stdio.h>

static int run(const cli_verb *verb, int argc, char **argv) {
    cli_session session;
    stk_error err = {0};
    int exit_code = 0;
    if (!cli_open(&session, verb, argc, argv, &exit_code)) {
        return exit_code;
    }
    const char *dir = session.word_count > 0 ? session.words[0] : NULL;
    stk_status status = stk_make_sample(dir, session.options, &session.run, &err);
    if (status == STK_OK && !session.quiet && !session.json) {
        printf("sample data: %s (%s classes, %s training pictures each)\n"
               "try:         stoker train --data %s --budget 60s\n",
               dir, stk_options_get(session.options, "classes"),
               stk_options_get(session.options, "per-class"), dir);
    }
    return cli_close(&session, status, &err);
}

const cli_verb cli_sample = {
    .name = "sample",
    .summary = "Makes a small data set of drawn pictures to try things on.",
    .usage = "DIR [--layout folder|kaggle] [--classes N] [--per-class N] [--seed S]",
    .options = stk_options_for_sample,
    .run = run,
};
