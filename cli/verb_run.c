/* verb_run.c - `stoker run`: supervises another program within a budget. */
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <stoker/supervise.h>

#include "base/error.h"
#include "cli/cli.h"

/* Index of the "--" before the command; argc: there is none. */
static int find_command(int argc, char **argv) {
    int at = 0;
    while (at < argc && strcmp(argv[at], "--") != 0) {
        at++;
    }
    return at;
}

static int run(const cli_verb *verb, int argc, char **argv) {
    cli_session session;
    stk_error err = {0};
    stk_supervised outcome = {.size = sizeof outcome};
    int exit_code = 0;
    int dashes = find_command(argc, argv);
    if (!cli_open(&session, verb, dashes, argv, &exit_code)) {
        return exit_code;
    }
    if (session.word_count > 0) {
        stk_status wrong = STK_FAIL(&err, STK_ERR_USAGE,
                                    "'%s' is no option; the command stands after two dashes: "
                                    "stoker run [options] -- %s ...",
                                    session.words[0], session.words[0]);
        return cli_close(&session, wrong, &err);
    }
    const char *const *words = (const char *const *)(argv + dashes + 1);
    size_t count = dashes < argc ? (size_t)(argc - dashes - 1) : 0;
    /* With --json, standard output is for events only. */
    stk_passing passing = {.size = sizeof passing,
                           .out = session.json ? STDERR_FILENO : STDOUT_FILENO,
                           .err = STDERR_FILENO};
    stk_status status =
        stk_supervise(session.options, words, count, &session.run, &passing, &outcome, &err);
    exit_code = cli_close(&session, status, &err);
    return outcome.exit_code != 0 ? outcome.exit_code : exit_code;
}

const cli_verb cli_run = {
    .name = "run",
    .summary = "Runs any training command: checks it after a minute, restarts it with better "
               "settings, stops it in time, and runs the prediction.",
    .usage = "[--budget T] [--predict COMMAND] [options] -- COMMAND [ARGUMENTS]",
    .options = stk_options_for_run,
    .run = run,
    .most_words = CLI_MOST_WORDS,
    .beside = true,
};
