/* watched.c - which run a verb is to look at. */
#include "cli/cli.h"

#include "base/mem.h"
#include "job/run_watch.h"

stk_status cli_look_at_run(cli_session *session, bool running, bool with_curve,
                           stk_run_status *seen, stk_error *err) {
    const stk_watch_options *options =
        stk_options_values(session->options, &stk_watch_option_table);
    char *newest = NULL;
    *seen = (stk_run_status){0};
    stk_status status = cli_take_word(session, "run", err);
    if (status == STK_OK && options->run == NULL) {
        status = stk_watch_newest(running, &newest, err);
    }
    if (status == STK_OK) {
        status = stk_run_status_open(seen, newest != NULL ? newest : options->run, with_curve, err);
    }
    if (status == STK_OK) {
        status = stk_watch_look(seen, err);
    }
    stk_mem_free(newest);
    return status;
}
