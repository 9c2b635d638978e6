/* verb_predict.c - `stoker predict`. */
#include "cli/cli.h"

static int run(const cli_verb *verb, int argc, char **argv) {
    cli_session session;
    stk_error err = {0};
    int exit_code = 0;
    if (!cli_open(&session, verb, argc, argv, &exit_code)) {
        return exit_code;
    }
    stk_status status = STK_OK;
    if (session.word_count > 0) {
        status = stk_options_set(session.options, "run", session.words[0], &err);
    }
    if (status == STK_OK) {
        status = stk_predict(session.options, &session.run, NULL, &err);
    }
    return cli_close(&session, status, &err);
}

const cli_verb cli_predict = {
    .name = "predict",
    .summary = "Writes the submission again from a run folder, or predictions for other pictures.",
    .usage = "--run DIR [--data DIR] [--out FILE] [options]",
    .options = stk_options_for_predict,
    .run = run,
};
