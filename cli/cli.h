/*
 * cli.h - what the verbs share. A verb is one short file: parse, call, print.
 *
 * A verb opens a cli_session, which reads its command line and prepares its output, works, and
 * closes it. Functions that return stk_status leave printing the error to cli_close. Threads: the
 * main thread alone.
 */
#ifndef STK_CLI_CLI_H
#define STK_CLI_CLI_H

#include <stdbool.h>
#include <stdio.h>

#include <stoker/job.h>

#include "base/str.h"
#include "report/status/run_status.h"

/*
 * A verb of the command line; `run` gets the words after it and returns the exit code. `bench` has
 * subjects: each is a verb of its own, whose name is both words.
 */
typedef struct cli_verb {
    const char *name;
    const char *summary; /* one line for `stoker --help` */
    const char *usage;   /* what follows `stoker NAME` */
    stk_status (*options)(stk_options **options, stk_error *err);
    int (*run)(const struct cli_verb *verb, int argc, char **argv);
    const struct cli_verb *const *subjects; /* list ended by NULL; NULL: the verb has no subjects */
    size_t most_words;                      /* most words without a flag; 0 means 1 */
    const char *output; /* option for an output file, perhaps standard output; or NULL */
    bool prints;        /* the printed output is the result: failing to print is an error */
    bool beside;        /* a supervised command writes to standard output, so lines for people go to
                           standard error */
    bool ends_at_stop;  /* a request to stop ends the verb without a result, even if a disk hangs */
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
extern const cli_verb cli_bench_storage; /* `stoker bench storage` */
extern const cli_verb cli_bench_step;    /* `stoker bench step` */
extern const cli_verb cli_report;
extern const cli_verb cli_completion;
extern const cli_verb cli_help;

/* All verbs, ended by NULL, in the order of the help. */
extern const cli_verb *const cli_verbs[];

/* Command number i, where each subject of a verb counts as a command; NULL after the last. */
const cli_verb *cli_command(size_t i);

/* The last word of a verb's name. */
const char *cli_word(const cli_verb *verb);

/* The verb with this last word in a list, or NULL. */
const cli_verb *cli_find(const cli_verb *const *verbs, const char *word);

/* Prints that the list has no such verb, and suggests the nearest; returns the exit code. */
int cli_unknown(const cli_verb *const *verbs, const char *word);

#define CLI_MOST_WORDS 100

/* A command line after it was read: options, words, and the observer that shows the work. */
typedef struct cli_session {
    stk_options *options;
    const char *words[CLI_MOST_WORDS];
    size_t word_count;
    bool json;
    bool quiet;
    bool stdout_taken; /* the result goes to standard output, so lines for people go to standard
                          error */
    bool detach;       /* another process does the work (detach.c) */
    stk_run run;       /* observer, stop and start for the job */
    struct stk_screen *screen;
    struct stk_jsonl *jsonl;
    struct stk_output *relay; /* carries our lines beside a supervised command; or NULL */
    int relay_end;            /* descriptor that writes into the relay */
    FILE *lines;              /* stream into the relay, for lines for people; or NULL */
    struct stk_disk
        *disk; /* entered (base/files/disk.h): waits for a disk have a time-out; or NULL */
    struct cli_guard *guard; /* only for a verb with ends_at_stop (guard.c); or NULL */
} cli_session;

/*
 * Reads the command line of a verb and sets up the screen or the JSON lines. True: the verb
 * continues. False: help or an error was printed, and the verb returns *exit_code.
 */
bool cli_open(cli_session *session, const cli_verb *verb, int argc, char **argv, int *exit_code);

/* Prints the error if there is one, frees everything, and returns the exit code. */
int cli_close(cli_session *session, stk_status status, const stk_error *err);

/* Takes a word without a flag as the value of the option `word_means`: `stoker train pictures`
 * means `--data pictures`. */
stk_status cli_take_word(cli_session *session, const char *word_means, stk_error *err);

/* The session's run for verbs that print one object: with --json it has no observer. */
stk_run cli_run_for_object(const cli_session *session);

/* Prints the object as one line, and frees the text. */
stk_status cli_print_object(stk_str *text, stk_error *err);

/* Prints text that consists of whole lines, and frees it. */
stk_status cli_print_lines(stk_str *text, stk_error *err);

/* Where lines for people go: standard output, or standard error if the result goes to standard
 * output. */
FILE *cli_people(const cli_session *session);

/* Prints the text on cli_people(), ends it with a line break, and frees it. */
stk_status cli_print_for_people(const cli_session *session, stk_str *text, stk_error *err);

/* A whole verb: cli_open(), cli_take_word(), `work`, which prints by itself, and cli_close(). */
int cli_run_work(const cli_verb *verb, int argc, char **argv, const char *word_means,
                 stk_status (*work)(cli_session *session, stk_error *err));

/* A whole verb around one job of the library: cli_open(), cli_take_word(), the job, cli_close(). */
int cli_run_job(const cli_verb *verb, int argc, char **argv, const char *word_means,
                stk_status (*job)(stk_options *options, const stk_run *run, stk_outcome *outcome,
                                  stk_error *err));

/*
 * For --detach: forks a process that does the work in a session of its own, and returns true in
 * that process. In the calling process it returns false once the run has begun, after printing
 * where, or once the new process has ended before that. *exit_code is then the exit code of the
 * caller.
 */
bool cli_detach(cli_session *session, int *exit_code);

/*
 * Starts a thread that receives SIGINT and SIGTERM instead of the calling thread, which may hang in
 * a call on a dead mount. Some seconds after a request to stop, the guard's thread ends the process
 * with exit code 130, unless cli_guard_end() was called first. NULL: no memory or no thread.
 */
struct cli_guard *cli_guard_begin(const stk_stop *stop);
void cli_guard_end(struct cli_guard *guard); /* NULL is harmless */

/* As cli_close(), but prints nothing. */
void cli_free(cli_session *session);

/*
 * Finds a run and reads its status: the run named by the word or by --run, otherwise the newest
 * below runs/, or with `running` the newest that still runs. Call stk_run_status_close() also after
 * an error.
 */
stk_status cli_look_at_run(cli_session *session, bool running, bool with_curve,
                           stk_run_status *seen, stk_error *err);

/* Prints the status as one JSON object. */
stk_status cli_print_run(const stk_run_status *seen, stk_error *err);

/*
 * The exit code of a verb whose printed output is its result: if printing failed, reports the
 * failure and returns its code, otherwise `exit_code`. A reader that closed its pipe is no failure.
 */
int cli_check_printed(int exit_code);

/* Prints the help of a verb on standard output. */
int cli_print_help(const cli_verb *verb);

/* Prints "stoker: sentence" on standard error; control characters become blanks. */
void cli_complain(const char *sentence);

/* Makes foreign text safe to print in one line. The result is valid for the next seven calls. */
const char *cli_clean(const char *text);

#endif
