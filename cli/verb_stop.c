/* verb_stop.c - `stoker stop`. */
#include "cli/cli.h"

#include <stdio.h>

#include "base/error.h"
#include "base/text/json.h"
#include "run/run_watch.h"

/* Exit code for a run that still runs: neither the input nor the machine is at fault. */
#define STILL_RUNNING_CODE 1

static stk_status print_json(const stk_stopped *stopped, const stk_run_status *seen,
                             stk_error *err) {
    stk_str text = {0};
    stk_json_writer writer = stk_json_write_to(&text, 0);
    stk_json_begin_object(&writer);
    stk_json_key(&writer, "stopped");
    stk_json_put_bool(&writer, stopped->gone);
    stk_json_key(&writer, "already_ended");
    stk_json_put_bool(&writer, stopped->already);
    stk_json_key(&writer, "waited_s");
    stk_json_put_double(&writer, stk_as_shown(stopped->waited_s));
    stk_run_status_put(seen, &writer);
    stk_json_end_object(&writer);
    return cli_print_object(&text, err);
}

static stk_status print_lines(const stk_stopped *stopped, const stk_run_status *seen,
                              stk_error *err) {
    stk_str text = {0};
    if (stopped->already) {
        stk_str_append(&text, "it had ended already; nothing was done\n");
    }
    stk_run_status_lines(seen, &text);
    return cli_print_lines(&text, err);
}

/* Asks the run to stop, waits, and reads its status again. */
static stk_status stop(cli_session *session, stk_run_status *seen, stk_stopped *stopped,
                       stk_error *err) {
    const stk_stop_options *options = stk_options_values(session->options, &stk_stop_option_table);
    bool can_be_asked = seen->running && seen->pid > 0 && seen->host[0] == '\0';
    if (!session->quiet && !session->json && can_be_asked) {
        printf("process %lld is asked to end; it %s\n", (long long)seen->pid,
               stk_run_view_command(&seen->view) != NULL
                   ? "stops its command, and predicts where that was asked for"
                   : "keeps its best weights and predicts, within nine seconds");
        fflush(stdout);
    }
    stk_status status =
        stk_watch_stop(seen->folder, options->wait_s, session->run.stop, stopped, err);
    status = status == STK_OK ? stk_watch_look(seen, err) : status;
    if (status == STK_OK && session->json) {
        status = print_json(stopped, seen, err);
    } else if (status == STK_OK && !session->quiet) {
        status = print_lines(stopped, seen, err);
    }
    return status;
}

static int run(const cli_verb *verb, int argc, char **argv) {
    cli_session session;
    stk_run_status seen = {0};
    stk_stopped stopped = {0};
    stk_error err = {0};
    int exit_code = 0;
    if (!cli_open(&session, verb, argc, argv, &exit_code)) {
        return exit_code;
    }
    const stk_stop_options *options = stk_options_values(session.options, &stk_stop_option_table);
    const stk_watch_options *which = stk_options_values(session.options, &stk_watch_option_table);
    stk_status status = STK_OK;
    if (session.word_count == 0 && which->run == NULL) { /* no default: it may be wrong */
        status = STK_FAIL(&err, STK_ERR_USAGE, "say which run is to end: stoker stop RUN");
    }
    status = status == STK_OK ? cli_look_at_run(&session, false, false, &seen, &err) : status;
    status = status == STK_OK ? stop(&session, &seen, &stopped, &err) : status;
    bool waited = options->wait_s > 0;
    stk_run_status_close(&seen);
    exit_code = cli_close(&session, status, &err);
    if (status == STK_OK && !stopped.gone && waited) {
        char sentence[160];
        snprintf(sentence, sizeof sentence,
                 "process %lld was asked to end and still runs after %.1f s; --wait T waits longer",
                 (long long)stopped.pid, stopped.waited_s);
        cli_complain(sentence);
        exit_code = STILL_RUNNING_CODE;
    }
    return exit_code;
}

const cli_verb cli_stop = {
    .name = "stop",
    .summary = "Asks a run to end, as SIGTERM does: it keeps its best weights and predicts.",
    .usage = "RUN [--wait T] [--json]",
    .options = stk_options_for_stop,
    .run = run,
};
