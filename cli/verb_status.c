/* verb_status.c - `stoker status`. */
#include "cli/cli.h"

#include "run/run_watch.h"

static stk_status print(const cli_session *session, const stk_run_status *seen, stk_error *err) {
    stk_str text = {0};
    if (session->json) {
        return cli_print_run(seen, err);
    }
    if (session->quiet) {
        stk_run_status_headline(seen, &text);
    } else {
        stk_run_status_lines(seen, &text);
    }
    return cli_print_lines(&text, err);
}

static int run(const cli_verb *verb, int argc, char **argv) {
    cli_session session;
    stk_run_status seen;
    stk_error err = {0};
    int exit_code = 0;
    if (!cli_open(&session, verb, argc, argv, &exit_code)) {
        return exit_code;
    }
    stk_status status = cli_look_at_run(&session, false, false, &seen, &err);
    if (status == STK_OK) {
        status = print(&session, &seen, &err);
    }
    stk_run_status_close(&seen);
    return cli_close(&session, status, &err);
}

const cli_verb cli_status = {
    .name = "status",
    .prints = true,
    .summary = "Says how a run stands: whether it runs, how far it is, how fast, what is left.",
    .usage = "[RUN] [--json]",
    .options = stk_options_for_status,
    .run = run,
    .ends_at_stop = true,
};
