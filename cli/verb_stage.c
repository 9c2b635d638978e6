/* verb_stage.c - `stoker stage`. */
#include "cli/cli.h"

#include <stdio.h>

#include "base/error.h"
#include "options/options.h"
#include "report/text/event_json.h"

/* With --json: collects the warnings, which become part of the one object that is printed. */
typedef struct warning_list {
    stk_observer observer;
    stk_str text; /* a JSON array, not closed yet */
    stk_json_writer writer;
} warning_list;

static void keep_warning(void *user, const char *text) {
    warning_list *list = user;
    stk_json_put_string(&list->writer, text);
}

static void begin_warnings(warning_list *list) {
    *list = (warning_list){
        .observer = {.size = sizeof list->observer, .user = list, .warning = keep_warning}};
    list->writer = stk_json_write_to(&list->text, 0);
    stk_json_begin_array(&list->writer);
}

static const stk_field staged_rows[] = {
    STK_FIELD(stk_staged, TRUTH, "already_staged", already),
    STK_FIELD(stk_staged, COUNT, "classes", classes),
    STK_FIELD(stk_staged, COUNT64, "train", train),
    STK_FIELD(stk_staged, COUNT64, "val", val),
    STK_FIELD(stk_staged, COUNT64, "test", test),
    STK_FIELD(stk_staged, COUNT64, "bad", bad),
    STK_FIELD(stk_staged, COUNT64, "shards", shards),
    STK_FIELD(stk_staged, COUNT64, "bytes", bytes),
    STK_FIELD(stk_staged, COUNT64, "kept_shards", kept_shards),
    STK_FIELD(stk_staged, COUNT64, "pictures", pictures),
    STK_FIELD(stk_staged, COUNT64, "recoded", recoded),
    STK_FIELD(stk_staged, COUNT64, "source_bytes", source_bytes),
    STK_FIELD(stk_staged, NUMBER, "seconds", seconds),
};

static stk_status print_json(const char *dir, const stk_staged *s, warning_list *warnings,
                             stk_error *err) {
    stk_str text = {0};
    stk_json_writer writer = stk_json_write_to(&text, 0);
    stk_json_begin_object(&writer);
    stk_json_key(&writer, "dir");
    stk_json_put_string(&writer, dir);
    stk_fields_put(&writer, &(stk_fields)STK_FIELDS(staged_rows), s);
    stk_json_key(&writer, "images_per_second");
    stk_json_put_double(&writer,
                        stk_as_shown(s->seconds > 0 ? (double)s->pictures / s->seconds : 0));
    stk_json_key(&writer, "warnings");
    stk_json_end_array(&warnings->writer);
    stk_str_append(&text, stk_str_text(&warnings->text));
    stk_str_append(&text, "}");
    text.failed = text.failed || !stk_str_ok(&warnings->text);
    return cli_print_object(&text, err);
}

static void tell(const cli_session *session, const char *dir, const stk_staged *s) {
    char why[1400];
    char size[32];
    snprintf(why, sizeof why,
             "%.1000s, %d class%s, %lld + %lld + %lld pictures (train, val, test) in %lld shard%s, "
             "%s; now: stoker train --data %.100s",
             dir, s->classes, s->classes == 1 ? "" : "es", (long long)s->train, (long long)s->val,
             (long long)s->test, (long long)s->shards, s->shards == 1 ? "" : "s",
             stk_format_bytes(size, sizeof size, (uint64_t)s->bytes), dir);
    stk_event_decision made = {.what = s->already ? "already staged" : "staged", .why = why};
    session->run.observer->decision(session->run.observer->user, &made);
}

/* Words are SRC DEST, or only DEST if --data or the configuration names SRC. */
static stk_status take_words(cli_session *session, const char **dir, stk_error *err) {
    stk_option_source given = stk_options_source(session->options, "data");
    if (session->word_count == 2 && given == STK_FROM_FLAG) {
        return STK_FAIL(err, STK_ERR_USAGE, "'%s' and --data %s both name what to copy; give one",
                        session->words[0], stk_options_get(session->options, "data"));
    }
    if (session->word_count == 2) {
        *dir = session->words[1];
        return stk_options_set(session->options, "data", session->words[0], err);
    }
    *dir = session->word_count == 1 && given != STK_FROM_DEFAULT ? session->words[0] : NULL;
    return STK_OK;
}

static int run(const cli_verb *verb, int argc, char **argv) {
    cli_session session;
    stk_error err = {0};
    stk_staged staged = {.size = sizeof staged};
    warning_list warnings;
    const char *dir = NULL;
    int exit_code = 0;
    if (!cli_open(&session, verb, argc, argv, &exit_code)) {
        return exit_code;
    }
    begin_warnings(&warnings);
    stk_run with = session.run;
    if (session.json) {
        with.observer = &warnings.observer;
    }
    stk_status status = take_words(&session, &dir, &err);
    status = status == STK_OK ? stk_stage(dir, session.options, &with, &staged, &err) : status;
    if (status == STK_OK && session.json) {
        status = print_json(dir, &staged, &warnings, &err);
    } else if (status == STK_OK) {
        tell(&session, dir, &staged);
    }
    stk_str_free(&warnings.text);
    return cli_close(&session, status, &err);
}

const cli_verb cli_stage = {
    .name = "stage",
    .summary = "Copies a data set, or a part of it, near: as tar shards, smaller if asked to.",
    .usage = "SRC DEST [--classes N] [--per-class N] [--max-side PX] [--quality Q] [options]",
    .options = stk_options_for_stage,
    .run = run,
    .ends_at_stop = true,
    .most_words = 2,
};
