/* cli.h - what the verbs share. A verb is one short file: parse, call, print. */
#ifndef STK_CLI_CLI_H
#define STK_CLI_CLI_H

#include <stdbool.h>
#include <stdio.h>

#include <stoker/job.h>

#include "base/str.h"
#include "report/status/run_status.h"

/*
 * A verb of the command line; `run` gets the words behind it and returns the exit code. A verb may
 * be two words: then the first is a verb without options that has subjects, each of which is a verb
 * in this sense with both words as its name.
 */
typedef struct cli_verb {
    const char *name;
    const char *summary; /* one line for `stoker --help` */
    const char *usage;   /* what stands behind `stoker NAME` */
    stk_status (*options)(stk_options **options, stk_error *err);
    int (*run)(const struct cli_verb *verb, int argc, char **argv);
    const struct cli_verb *const *subjects; /* ended by NULL; NULL for a verb of one word */
    size_t most_words;                      /* words without a flag that it takes; 0: one */
    const char *output; /* option that names a file, which may be standard output; or NULL */
    bool prints;        /* what it prints is what was asked for */
    bool beside; /* another program writes to standard output, and lines for people go elsewhere */
    bool ends_at_stop; /* a request to stop leaves nothing to deliver, so it ends whatever hangs */
} cli_verb;

extern const cli_verb cli_sample;
extern const cli_verb cli_stage;
extern const cli_verb cli_train;
extern const cli_verb cli_lr;
extern const cli_verb cli_plan;
extern const cli_verb cli_doctor;
extern const cli_verb cli_predict;
extern const cli_verb cli_run;
extern const cli_verb cli_status;
extern const cli_verb cli_top;
extern const cli_verb cli_stop;
extern const cli_verb cli_bench;
extern const cli_verb cli_bench_storage; /* a subject of bench */
extern const cli_verb cli_bench_step;    /* another */
extern const cli_verb cli_report;
extern const cli_verb cli_completion;
extern const cli_verb cli_help;

/* All of them, ended by NULL, in the order of the help. */
extern const cli_verb *const cli_verbs[];

/* Number i of what can be run: each verb, or its subjects where it has some; NULL past the last. */
const cli_verb *cli_command(size_t i);

/* The last word of a verb's name, by which a list of verbs knows it. */
const char *cli_word(const cli_verb *verb);

/* The verb of a list that this word means, or NULL. */
const cli_verb *cli_find(const cli_verb *const *verbs, const char *word);

/* Says that a list has no such verb, and which is near; returns the exit code. */
int cli_unknown(const cli_verb *const *verbs, const char *word);

#define CLI_MOST_WORDS 100

/* A command line that was read: options, words, and who is told what happens. */
typedef struct cli_session {
    stk_options *options;
    const char *words[CLI_MOST_WORDS];
    size_t word_count;
    bool json;
    bool quiet;
    bool stdout_taken; /* the verb's output means it: lines for people go to standard error */
    bool detach;       /* the work is done by another process than the one that was called */
    stk_run run;       /* observer, stop and start for the job */
    struct stk_screen *screen;
    struct stk_jsonl *jsonl;
    struct stk_output *relay; /* what is said beside another program goes through it; or NULL */
    int relay_end;
    FILE *lines; /* for people, through the relay; or NULL */
    struct stk_disk
        *disk; /* entered (base/files/disk.h): no disk is waited for without end; or NULL */
    struct cli_guard *guard; /* of a verb that ends at a request to stop (guard.c); or NULL */
} cli_session;

/*
 * Reads the command line of a verb and sets up the screen or the JSON lines. Returns true when the
 * verb is to go on; otherwise *exit_code says how to end (help was shown, or an error was told).
 */
bool cli_open(cli_session *session, const cli_verb *verb, int argc, char **argv, int *exit_code);

/* Tells the error if status is one, frees everything, and gives the exit code. */
int cli_close(cli_session *session, stk_status status, const stk_error *err);

/*
 * A word without a flag is the value of the option `word_means`: `stoker train pictures` says as
 * clearly what is meant.
 */
stk_status cli_take_word(cli_session *session, const char *word_means, stk_error *err);

/* For verbs that print one object with --json: the session's run, with nobody listening then. */
stk_run cli_run_for_object(const cli_session *session);

/* Prints the object as one line, and frees the text. */
stk_status cli_print_object(stk_str *text, stk_error *err);

/* The same for lines, which are whole already. */
stk_status cli_print_lines(stk_str *text, stk_error *err);

/* Where lines for people go: standard output, unless a file that was asked for is written there. */
FILE *cli_people(const cli_session *session);

/* Prints the text there with a line break behind it, and frees it. */
stk_status cli_print_for_people(const cli_session *session, stk_str *text, stk_error *err);

/*
 * A verb that works and prints in a way of its own: reads the command line, takes a word as above,
 * works, ends.
 */
int cli_run_work(const cli_verb *verb, int argc, char **argv, const char *word_means,
                 stk_status (*work)(cli_session *session, stk_error *err));

/*
 * A verb that is one job: reads the command line, runs the job, ends. A word is taken as
 * above.
 */
int cli_run_job(const cli_verb *verb, int argc, char **argv, const char *word_means,
                stk_status (*job)(stk_options *options, const stk_run *run, stk_outcome *outcome,
                                  stk_error *err));

/*
 * For --detach: makes a process that goes on with the work in a session of its own, and is true in
 * it. In the process that was called it is false, as soon as the run has begun, which it then has
 * told, or the other process has ended without that; *exit_code says how to end.
 */
bool cli_detach(cli_session *session, int *exit_code);

/*
 * Takes the signals that ask for an end away from the calling thread, which may hang in a call of
 * a dead mount. Another thread takes them, and ends the process with exit code 130 when the calling
 * one has not ended the guard some seconds after a request to stop. NULL without memory or thread.
 */
struct cli_guard *cli_guard_begin(const stk_stop *stop);
void cli_guard_end(struct cli_guard *guard); /* NULL is fine */

/* Like cli_close for who has nothing to tell. */
void cli_free(cli_session *session);

/*
 * Finds the run that a verb is to look at, the word or --run, otherwise the newest below runs/ (or
 * the newest that runs), and looks at it. Ended with stk_run_status_close also after an error.
 */
stk_status cli_look_at_run(cli_session *session, bool running, bool with_curve,
                           stk_run_status *seen, stk_error *err);

/* Prints how it stands as one object. */
stk_status cli_print_run(const stk_run_status *seen, stk_error *err);

/*
 * The exit code of who prints what was asked for: that of writing where some of it did not arrive,
 * which is told. A reader that left is fine.
 */
int cli_check_printed(int exit_code);

/* `stoker VERB --help` and one verb's part of docs/options.md on standard output. */
int cli_print_help(const cli_verb *verb);

/* "stoker: sentence" on standard error. What a terminal would obey in it becomes blanks. */
void cli_complain(const char *sentence);

/*
 * A name or a sentence from elsewhere as it may be printed for people, in one line. It is valid for
 * the next seven calls.
 */
const char *cli_clean(const char *text);

#endif
