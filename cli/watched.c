/* watched.c - finds the run that status, top and stop look at, and prints its status as JSON. */
#include "cli/cli.h"

#include "base/mem.h"
#include "run/run_watch.h"

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

stk_status cli_print_run(const stk_run_status *seen, stk_error *err) {
    stk_str text = {0};
    stk_json_writer writer = stk_json_write_to(&text, 0);
    stk_json_begin_object(&writer);
    stk_run_status_put(seen, &writer);
    stk_json_end_object(&writer);
    return cli_print_object(&text, err);
}
