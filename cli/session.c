/* session.c - reading a verb's command line, signals, and ending with the right exit code. */
#include "cli/cli.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/error.h"
#include "base/files/disk.h"
#include "base/files/file.h"
#include "base/files/write_target.h"
#include "base/threads/process.h"
#include "options/options.h"
#include "report/observers/jsonl.h"
#include "report/observers/screen.h"
#include "report/text/text.h"
#include "supervise/output/relay.h"

/* Global, because a signal handler can reach nothing else. */
static stk_stop stop_request;

/* The verb supervises a command: at a second SIGINT it must still end the command and report. */
static volatile sig_atomic_t stands_over;

/* SIGKILL usually follows SIGTERM after ten seconds: the process must have ended by then. */
#define TERM_DEADLINE_S 9

/* Time for the last lines to pass the relay. */
#define RELAY_S 0.1

static void on_signal(int number) {
    stk_stop_level asked = stk_stop_asked(&stop_request);
    if (number == SIGINT && asked == STK_STOP_SOON && stands_over) {
        stk_stop_request(&stop_request, STK_STOP_NOW, 0);
        return;
    }
    if (number == SIGINT && asked != STK_STOP_NONE) {
        static const char words[] = "\nstoker: stopped at once\n";
        ssize_t written = write(STDERR_FILENO, words, sizeof words - 1);
        (void)written;
        _exit(stk_status_exit_code(STK_ERR_STOPPED));
    }
    stk_stop_request(&stop_request, STK_STOP_SOON, number != SIGINT ? TERM_DEADLINE_S : 0);
}

/*
 * From here on SIGINT and SIGTERM request an end; a second SIGINT ends at once. Under `stoker run`
 * a closed terminal (SIGHUP) is a request too, so that the prediction still runs; nohup turns it
 * off.
 */
static void catch_signals(bool over_another) {
    struct sigaction action = {.sa_handler = on_signal, .sa_flags = SA_RESTART};
    struct sigaction hangup;
    stands_over = over_another;
    sigemptyset(&action.sa_mask);
    sigaction(SIGINT, &action, NULL);
    sigaction(SIGTERM, &action, NULL);
    if (over_another && sigaction(SIGHUP, NULL, &hangup) == 0 && hangup.sa_handler != SIG_IGN) {
        sigaction(SIGHUP, &action, NULL);
    }
    /* Writing to a closed pipe or beyond a file limit is an error of the write, not a signal. */
    signal(SIGPIPE, SIG_IGN);
    signal(SIGXFSZ, SIG_IGN);
}

#define CLEAN_TEXTS 8

const char *cli_clean(const char *text) {
    static stk_str kept[CLEAN_TEXTS]; /* the command prints on one thread */
    static size_t next;
    stk_str *clean = &kept[next++ % CLEAN_TEXTS];
    stk_str_free(clean);
    stk_report_append_line(clean, text);
    return stk_str_ok(clean) ? stk_str_text(clean) : "(there is no memory to show it)";
}

void cli_complain(const char *sentence) {
    stk_str clean = {0};
    stk_report_append_line(&clean, sentence);
    if (stk_str_ok(&clean)) {
        fprintf(stderr, "stoker: %s\n", stk_str_text(&clean));
    } else { /* the error may be a lack of memory: plain characters need none */
        fputs("stoker: ", stderr);
        for (const char *p = sentence; *p != '\0'; p++) {
            fputc(*p >= ' ' && *p <= '~' ? *p : '?', stderr);
        }
        fputc('\n', stderr);
    }
    stk_str_free(&clean);
}

/* False: the pipe's reader is gone, or the caller had closed the descriptor. */
static bool has_reader(int fd) {
    struct stat info;
    int flags = fcntl(fd, F_GETFL);
    return flags >= 0 && (flags & O_ACCMODE) != O_RDONLY && fstat(fd, &info) == 0 &&
           !S_ISFIFO(info.st_mode) && !S_ISSOCK(info.st_mode);
}

int cli_check_printed(int exit_code) {
    /* A long text is written in parts; the last may succeed after an earlier one failed. */
    bool failed = fflush(stdout) != 0 || ferror(stdout) != 0;
    if (failed && exit_code == 0 && has_reader(STDOUT_FILENO)) {
        cli_complain("cannot write to standard output");
        return stk_status_exit_code(STK_ERR_STORAGE);
    }
    return exit_code;
}

int cli_print_help(const cli_verb *verb) {
    stk_options *options = NULL;
    stk_error err = {0};
    stk_str text = {0};
    printf("usage: stoker %s %s\n\n%s\n", verb->name, verb->usage, verb->summary);
    for (size_t i = 0; verb->subjects != NULL && verb->subjects[i] != NULL; i++) {
        printf("%s  %-12s %s\n", i == 0 ? "\n" : "", cli_word(verb->subjects[i]),
               verb->subjects[i]->summary);
    }
    if (verb->options == NULL) {
        return cli_check_printed(0);
    }
    if (verb->options(&options, &err) != STK_OK) {
        cli_complain(err.message);
        return stk_status_exit_code(err.status);
    }
    stk_options_help(options, &text);
    fputs(stk_str_text(&text), stdout);
    stk_str_free(&text);
    stk_options_free(options);
    return cli_check_printed(0);
}

static bool is_true(const stk_options *options, const char *name) {
    const char *text = stk_options_get(options, name);
    bool truth = false;
    return text != NULL && stk_parse_bool(text, &truth) && truth;
}

/*
 * Beside a supervised command no output of ours may wait for its reader, so it goes through a
 * relay. `lines`: relays lines for people to standard error; otherwise relays standard output.
 */
static stk_status open_relay(cli_session *session, bool lines, stk_error *err) {
    stk_status status = stk_relay_open(&session->relay, lines ? STDERR_FILENO : STDOUT_FILENO,
                                       &session->relay_end, err);
    if (status == STK_OK && lines) {
        session->lines = fdopen(session->relay_end, "w");
        status = session->lines != NULL ? STK_OK : STK_FAIL_MEMORY(err, "lines for people");
    }
    return status;
}

static stk_status open_reports(cli_session *session, const cli_verb *verb, stk_error *err) {
    stk_status status = verb->beside ? open_relay(session, !session->json, err) : STK_OK;
    if (status != STK_OK) {
        return status;
    }
    if (session->json && !session->detach) {
        stk_jsonl_config config = {.fd = verb->beside ? session->relay_end : STDOUT_FILENO,
                                   .name = "standard output"};
        status = stk_jsonl_new(&session->jsonl, &config, err);
        session->run.observer = status == STK_OK ? stk_jsonl_observer(session->jsonl) : NULL;
    } else {
        int shown = verb->beside || session->stdout_taken ? STDERR_FILENO : STDOUT_FILENO;
        stk_screen_config config = {.out = verb->beside ? session->lines : cli_people(session),
                                    .terminal = !session->detach && isatty(shown) == 1,
                                    .quiet = session->quiet,
                                    .beside = verb->beside};
        status = stk_screen_new(&session->screen, &config, err);
        session->run.observer = status == STK_OK ? stk_screen_observer(session->screen) : NULL;
    }
    return status;
}

/* Finds out whether the result goes to standard output, where nothing else may be mixed in. */
static stk_status look_at_out(cli_session *session, const cli_verb *verb, stk_error *err) {
    const char *out = verb->output != NULL ? stk_options_get(session->options, verb->output) : NULL;
    session->stdout_taken = out != NULL && stk_write_target_is_descriptor(out, STDOUT_FILENO);
    return session->stdout_taken && session->json
               ? STK_FAIL(err, STK_ERR_USAGE,
                          "--%s %s and --json both write to standard output; give one of them",
                          verb->output, out)
               : STK_OK;
}

/* After SIGTERM, no wait for a disk is longer than the process may live. */
static double left_to_stop(void *user) {
    (void)user;
    return stk_stop_left_s(&stop_request);
}

bool cli_open(cli_session *session, const cli_verb *verb, int argc, char **argv, int *exit_code) {
    stk_error err = {0};
    bool help = false;
    memset(session, 0, sizeof *session);
    session->relay_end = -1;
    session->run.size = sizeof session->run;
    session->run.start_ns = stk_process_own_start_ns();
    session->run.stop = &stop_request;
    stk_status status = verb->options(&session->options, &err);
    if (status == STK_OK) {
        status = stk_options_parse(session->options, argc, argv, session->words,
                                   verb->most_words > 0 ? verb->most_words : 1,
                                   &session->word_count, &help, &err);
    }
    if (status == STK_OK && help) {
        *exit_code = cli_print_help(verb);
        stk_options_free(session->options);
        return false;
    }
    if (status == STK_OK) {
        session->json = is_true(session->options, "json");
        session->quiet = is_true(session->options, "quiet");
        session->detach = is_true(session->options, "detach");
        if (!verb->beside) { /* the supervisor limits its waits for disks itself */
            session->disk = stk_disk_enter(&(stk_disk_config){.look_s = STK_DISK_LOOK_S,
                                                              .move_s = STK_DISK_MOVE_S,
                                                              .stop = &stop_request,
                                                              .left_s = left_to_stop});
        }
        status = look_at_out(session, verb, &err);
    }
    if (status == STK_OK) {
        status = open_reports(session, verb, &err);
    }
    if (status != STK_OK) {
        *exit_code = cli_close(session, status, &err);
        return false;
    }
    catch_signals(verb->beside);
    session->guard = verb->ends_at_stop ? cli_guard_begin(&stop_request) : NULL;
    return true;
}

void cli_free(cli_session *session) {
    cli_guard_end(session->guard);
    stk_screen_free(session->screen);
    stk_jsonl_free(session->jsonl);
    if (session->lines != NULL) {
        fclose(session->lines);
        session->relay_end = -1;
    }
    stk_relay_close(session->relay, session->relay_end, RELAY_S);
    stk_options_free(session->options);
    stk_disk_leave(session->disk);
}

int cli_close(cli_session *session, stk_status status, const stk_error *err) {
    /* A storage error after a request to stop means that the request cut a wait short. */
    bool stopped = session->guard != NULL && stk_stop_asked(&stop_request) != STK_STOP_NONE;
    status = stopped && status == STK_ERR_STORAGE ? STK_ERR_STOPPED : status;
    cli_free(session);
    if (status != STK_OK) {
        cli_complain(err->message);
    }
    /* A reader that leaves early (head, less) is no failure: the run folder has everything. */
    return stk_status_exit_code(status);
}

stk_run cli_run_for_object(const cli_session *session) {
    static const stk_observer nobody = {.size = sizeof nobody};
    stk_run run = session->run;
    run.observer = session->json ? &nobody : run.observer;
    return run;
}

/* Prints the text and frees it. */
static stk_status print_to(FILE *file, stk_str *text, stk_error *err) {
    stk_status status = stk_str_ok(text) ? STK_OK : STK_FAIL_MEMORY(err, "what is to be printed");
    if (status == STK_OK) {
        fputs(stk_str_text(text), file);
        /* A reader that left, or a closed stream, is fine. */
        if (fflush(file) != 0 && errno != EPIPE && errno != EBADF) {
            status = STK_FAIL(err, STK_ERR_STORAGE, "cannot write to standard %s: %s",
                              file == stdout ? "output" : "error", strerror(errno));
        }
    }
    stk_str_free(text);
    return status;
}

FILE *cli_people(const cli_session *session) {
    return session->stdout_taken ? stderr : stdout;
}

stk_status cli_print_for_people(const cli_session *session, stk_str *text, stk_error *err) {
    stk_str_append(text, "\n");
    return print_to(cli_people(session), text, err);
}

stk_status cli_print_lines(stk_str *text, stk_error *err) {
    return print_to(stdout, text, err);
}

stk_status cli_print_object(stk_str *text, stk_error *err) {
    stk_str_append(text, "\n");
    return cli_print_lines(text, err);
}

stk_status cli_take_word(cli_session *session, const char *word_means, stk_error *err) {
    if (session->word_count == 0) {
        return STK_OK;
    }
    /* An unset shell variable gives "": the default, such as the newest run, may be the wrong one.
     */
    if (session->words[0][0] == '\0') {
        return STK_FAIL(err, STK_ERR_USAGE,
                        "an empty word was given for --%s; give a value or none", word_means);
    }
    if (stk_options_source(session->options, word_means) == STK_FROM_FLAG) {
        return STK_FAIL(err, STK_ERR_USAGE, "'%s' and --%s %s mean the same option; give one",
                        session->words[0], word_means,
                        stk_options_get(session->options, word_means));
    }
    return stk_options_set(session->options, word_means, session->words[0], err);
}

/* cli_open(), then cli_take_word(). */
static bool open_with_word(cli_session *session, const cli_verb *verb, int argc, char **argv,
                           const char *word_means, int *exit_code) {
    stk_error err = {0};
    if (!cli_open(session, verb, argc, argv, exit_code)) {
        return false;
    }
    stk_status status = cli_take_word(session, word_means, &err);
    if (status != STK_OK) {
        *exit_code = cli_close(session, status, &err);
    }
    return status == STK_OK;
}

int cli_run_work(const cli_verb *verb, int argc, char **argv, const char *word_means,
                 stk_status (*work)(cli_session *session, stk_error *err)) {
    cli_session session;
    stk_error err = {0};
    int exit_code = 0;
    if (!open_with_word(&session, verb, argc, argv, word_means, &exit_code)) {
        return exit_code;
    }
    stk_status status = work(&session, &err);
    return cli_close(&session, status, &err);
}

int cli_run_job(const cli_verb *verb, int argc, char **argv, const char *word_means,
                stk_status (*job)(stk_options *options, const stk_run *run, stk_outcome *outcome,
                                  stk_error *err)) {
    cli_session session;
    stk_error err = {0};
    int exit_code = 0;
    if (!open_with_word(&session, verb, argc, argv, word_means, &exit_code)) {
        return exit_code;
    }
    if (session.detach && !cli_detach(&session, &exit_code)) {
        cli_free(&session);
        return exit_code;
    }
    stk_status status = job(session.options, &session.run, NULL, &err);
    return cli_close(&session, status, &err);
}
