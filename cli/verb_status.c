/* verb_status.c - `stoker status`. */
#include "cli/cli.h"

#include <stdio.h>

#include "base/error.h"
#include "base/json.h"
#include "job/run_watch.h"

static stk_status print(const cli_session *session, const stk_run_status *seen, stk_error *err) {
    stk_str text = {0};
    if (session->json) {
        stk_json_writer writer = stk_json_write_to(&text, 0);
        stk_json_begin_object(&writer);
        stk_run_status_put(seen, &writer);
        stk_json_end_object(&writer);
        return cli_print_object(&text, err);
    }
    if (session->quiet) {
        stk_run_status_headline(seen, &text);
    } else {
        stk_run_status_lines(seen, &text);
    }
    stk_status status = stk_str_ok(&text) ? STK_OK : STK_FAIL_MEMORY(err, "what is to be printed");
    fputs(stk_str_text(&text), stdout);
    stk_str_free(&text);
    return status;
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
    .summary = "Says how a run stands: whether it runs, how far it is, how fast, what is left.",
    .usage = "[RUN] [--json]",
    .options = stk_options_for_status,
    .run = run,
};
