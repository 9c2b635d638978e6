/* verb_report.c - `stoker report`. */
#include "cli/cli.h"

#include <stdio.h>
#include <string.h>

#include "base/error.h"
#include "base/mem.h"
#include "base/text/json.h"
#include "report/report_options.h"
#include "report/page/report_runs.h"

static stk_status print_json(const stk_report_runs *report, stk_error *err) {
    stk_str text = {0};
    stk_json_writer writer = stk_json_write_to(&text, 0);
    stk_json_begin_object(&writer);
    stk_compare_json(report->runs, report->count, &writer);
    stk_json_key(&writer, "page");
    stk_json_put_string(&writer, report->page);
    stk_json_end_object(&writer);
    return cli_print_object(&text, err);
}

static stk_status print_text(const cli_session *session, const stk_report_runs *report,
                             stk_error *err) {
    stk_str text = {0};
    stk_status status = session->quiet || report->count < 2
                            ? STK_OK
                            : stk_compare_text(report->runs, report->count, &text, err);
    if (status == STK_OK && !session->quiet) {
        fprintf(cli_people(session), "%s%spage: %s\n", stk_str_text(&text),
                text.length > 0 ? "\n" : "", cli_clean(report->page));
    }
    stk_str_free(&text);
    return status;
}

/* Warns about files that could not be read, even with --quiet. */
static void warn(const stk_report_runs *report) {
    for (size_t i = 0; i < report->count; i++) {
        const char *line = stk_str_text(&report->runs[i].damage);
        while (*line != '\0') {
            size_t length = strcspn(line, "\n");
            char *one = stk_mem_strndup(line, length);
            fprintf(stderr, "stoker: warning: %s\n", cli_clean(one != NULL ? one : ""));
            stk_mem_free(one);
            line += length + 1; /* each line ends with a line break */
        }
    }
}

static int run(const cli_verb *verb, int argc, char **argv) {
    cli_session session;
    stk_error err = {0};
    stk_report_runs report = {0};
    int exit_code = 0;
    if (!cli_open(&session, verb, argc, argv, &exit_code)) {
        return exit_code;
    }
    const stk_report_options *options =
        stk_options_values(session.options, &stk_report_option_table);
    stk_status status =
        session.word_count > 0
            ? stk_report_runs_make(&report, session.words, session.word_count, options->out,
                                   options->pictures, session.run.stop, &err)
            : STK_FAIL(&err, STK_ERR_USAGE,
                       "say which run: stoker report RUN, or several to compare them");
    if (status == STK_OK) {
        warn(&report);
        status = session.json ? print_json(&report, &err) : print_text(&session, &report, &err);
    }
    stk_report_runs_free(&report);
    return cli_close(&session, status, &err);
}

const cli_verb cli_report = {
    .name = "report",
    .output = "out",
    .summary = "Writes the page of a run from its files, or compares several runs.",
    .usage = "RUN [RUN...] [--out FILE]",
    .options = stk_options_for_report,
    .run = run,
    .ends_at_stop = true,
    .most_words = CLI_MOST_WORDS,
};
