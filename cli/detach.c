/*
 * detach.c - `--detach`: a new process does the work, and the caller ends once the run has begun.
 *
 * The caller waits at a pipe. The new process keeps the caller's standard error until its run has
 * begun, so an earlier error reaches the user, and the caller returns its exit code. The start
 * event names the run folder: the new process then redirects its output to log.txt in it and writes
 * the folder's name into the pipe. The fork happens before Stoker starts a thread or opens a
 * device. OpenBLAS, which has threads from the beginning, ends them by itself before a fork.
 */
#include "cli/cli.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/error.h"
#include "base/files/file.h"
#include "base/mem.h"
#include "base/text/json.h"
#include "base/threads/thread.h"
#include "report/observers/lines.h"

#define LOG_NAME "log.txt"
#define SIGNAL_CODES 128 /* plus a signal's number: exit code of a process that it ended */
#define LOOK_GAP_MS 1000

/* State of the new process; global, because the screen's callbacks carry no pointer of ours. */
static struct {
    int out;              /* pipe to the caller; -1: the caller knows the run folder */
    stk_observer watched; /* the screen's observer, with our own start callback */
    void (*shown_start)(void *user, const stk_event_start *event);
} detached = {.out = -1};

/* Redirects output to the log, or to /dev/null if the log cannot be written. */
static void move_output(const char *run_dir) {
    stk_error err = {0};
    char *path = stk_path_join(run_dir, LOG_NAME);
    int log = -1;
    if (path == NULL || stk_lines_open(path, &log, &err) != STK_OK) {
        cli_complain(path == NULL ? "no memory for the name of the log" : err.message);
        log = open("/dev/null", O_WRONLY | O_CLOEXEC);
    }
    fflush(stdout);
    if (log >= 0) {
        dup2(log, STDOUT_FILENO);
        dup2(log, STDERR_FILENO);
        close(log);
    }
    stk_mem_free(path);
}

static void on_start(void *user, const stk_event_start *event) {
    if (detached.out >= 0) {
        size_t size = strlen(event->run_dir) + 1;
        move_output(event->run_dir);
        /* A caller that no longer waits is no failure. */
        ssize_t written = write(detached.out, event->run_dir, size);
        (void)written;
        close(detached.out);
        detached.out = -1;
    }
    detached.shown_start(user, event);
}

/* In the new process: leaves the caller's session and terminal, and reads nothing. */
static void settle(cli_session *session, int out) {
    int nothing = open("/dev/null", O_RDWR | O_CLOEXEC);
    setsid();
    signal(SIGHUP, SIG_IGN);
    if (nothing >= 0) {
        dup2(nothing, STDIN_FILENO);
        close(nothing);
    }
    if (session->json) { /* standard output is for the caller's one object */
        dup2(STDERR_FILENO, STDOUT_FILENO);
    }
    detached.out = out;
    detached.watched = *session->run.observer;
    detached.shown_start = detached.watched.start;
    detached.watched.start = on_start;
    session->run.observer = &detached.watched;
}

/*
 * Waits for the name of the run folder; true: it arrived completely. Passes a request to stop on to
 * the new process, since a terminal's Ctrl-C does not reach another session.
 */
static bool wait_for_start(const cli_session *session, int in, pid_t pid, stk_str *run_dir) {
    bool asked = false;
    for (;;) {
        char piece[512];
        struct pollfd wait = {.fd = in, .events = POLLIN};
        if (!asked && stk_stop_asked(session->run.stop) != STK_STOP_NONE) {
            asked = true;
            kill(pid, SIGTERM);
        }
        if (poll(&wait, 1, LOOK_GAP_MS) <= 0) {
            continue;
        }
        ssize_t got = read(in, piece, sizeof piece);
        if (got > 0) {
            stk_str_append_bytes(run_dir, piece, (size_t)got);
        } else if (got == 0 || errno != EINTR) {
            break;
        }
    }
    return stk_str_ok(run_dir) && run_dir->length > 0 && run_dir->text[run_dir->length - 1] == '\0';
}

/* Prints run folder and process id. Without a run folder there was nothing to do. */
static stk_status tell(const cli_session *session, const char *run_dir, pid_t pid, stk_error *err) {
    if (session->json) {
        stk_str text = {0};
        stk_json_writer writer = stk_json_write_to(&text, 0);
        stk_json_begin_object(&writer);
        stk_json_key(&writer, "run_dir");
        stk_json_put_string(&writer, run_dir);
        stk_json_key(&writer, "pid");
        if (run_dir != NULL) {
            stk_json_put_int(&writer, pid);
        } else {
            stk_json_put_null(&writer);
        }
        stk_json_end_object(&writer);
        return cli_print_object(&text, err);
    }
    if (run_dir != NULL && !session->quiet) {
        const char *shown = cli_clean(run_dir);
        printf("run folder: %s\nprocess: %lld\nlog: %s/" LOG_NAME "\n", shown, (long long)pid,
               shown);
    }
    return STK_OK;
}

/* Exit code of a process that ended before its run began. */
static int end_code(pid_t pid) {
    int how = 0;
    while (waitpid(pid, &how, 0) < 0 && errno == EINTR) {
    }
    if (!WIFSIGNALED(how)) {
        return WEXITSTATUS(how);
    }
    char sentence[96];
    snprintf(sentence, sizeof sentence, "signal %d ended the run before it had begun",
             WTERMSIG(how));
    cli_complain(sentence);
    return SIGNAL_CODES + WTERMSIG(how);
}

bool cli_detach(cli_session *session, int *exit_code) {
    int ends[2] = {-1, -1};
    stk_error err = {0};
    stk_str run_dir = {0};
    fflush(NULL);
    pid_t pid = stk_pipe(ends, 0) == 0 ? stk_fork() : -1;
    if (pid == 0) {
        close(ends[0]);
        settle(session, ends[1]);
        return true;
    }
    stk_status status = STK_OK;
    *exit_code = 0;
    if (pid < 0) {
        status = STK_FAIL(&err, STK_ERR_MEMORY, "--detach: no process can be started: %s",
                          strerror(errno));
        if (ends[0] >= 0) {
            close(ends[0]);
            close(ends[1]);
        }
    } else {
        close(ends[1]);
        bool begun = wait_for_start(session, ends[0], pid, &run_dir);
        close(ends[0]);
        *exit_code = begun ? 0 : end_code(pid);
        if (*exit_code == 0) {
            status = tell(session, begun ? run_dir.text : NULL, pid, &err);
        }
    }
    if (status != STK_OK) {
        cli_complain(err.message);
        *exit_code = stk_status_exit_code(status);
    }
    stk_str_free(&run_dir);
    return false;
}
