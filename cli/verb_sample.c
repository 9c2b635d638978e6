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
    if (status == STK_OK) {
        char why[1024];
        snprintf(why, sizeof why,
                 "%s, %s classes of %s training pictures; now: stoker train --data %s --budget 60s",
                 dir, stk_options_get(session.options, "classes"),
                 stk_options_get(session.options, "per-class"), dir);
        stk_event_decision made = {.what = "made", .why = why};
        session.run.observer->decision(session.run.observer->user, &made);
    }
    return cli_close(&session, status, &err);
}

const cli_verb cli_sample = {
    .name = "sample",
    .summary = "Makes a small data set of drawn pictures to try things on.",
    .usage = "DIR [--layout folder|kaggle] [--classes N] [--per-class N] [--seed S]",
    .options = stk_options_for_sample,
    .run = run,
    .ends_at_stop = true,
};
