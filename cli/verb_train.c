/* verb_train.c - `stoker train`. */
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
        /* `stoker train pictures` says what is meant as clearly as the flag does. */
        status = stk_options_set(session.options, "data", session.words[0], &err);
    }
    if (status == STK_OK) {
        status = stk_train(session.options, &session.run, NULL, &err);
    }
    return cli_close(&session, status, &err);
}

const cli_verb cli_train = {
    .name = "train",
    .summary = "Trains a classifier on a folder of pictures and predicts the test pictures.",
    .usage = "--data DIR [--budget T] [options]",
    .options = stk_options_for_train,
    .run = run,
};
