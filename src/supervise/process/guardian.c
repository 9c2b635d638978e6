/*
 * guardian.c - the maker's side of the guardian.
 *
 * Only starting a command needs the guardian. The maker reads and signals the process tree below it
 * directly, so a stopped or hanging guardian blocks nothing. If the guardian is killed, its
 * processes become children of this process; tree_kill.h says how to tell them from other children.
 */
#include "supervise/process/guardian.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/error.h"
#include "base/files/file.h"
#include "base/mem.h"
#include "base/str.h"
#include "base/threads/proc_tree.h"
#include "base/threads/thread.h"
#include "supervise/process/guard_process.h"
#include "supervise/process/tree_kill.h"

/* Time for the guardian to start a program, which may be loaded from a slow mount. A guardian that
 * takes longer counts as hung. */
#define LAUNCH_S 30

/* Time for orders that need no answer. */
#define ORDER_S 1

/* Time for the guardian to end after the order. */
#define QUIT_S 1

#define WAKE_S 0.2 /* between two checks whether the guardian was stopped */

struct stk_guardian {
    pid_t pid;
    uint64_t born;
    int socket;
    bool closed;               /* the guardian's end of the socket is closed */
    bool lost;                 /* the guardian has ended and was waited for */
    pid_t command;             /* first process of the running command; 0: none */
    bool ended;                /* the command has ended; not reported yet */
    int wait_status;           /* of the ended command, from waitpid */
    bool answered;             /* `launched` answers the last order to launch */
    stk_guard_answer incoming; /* answer being received */
    stk_guard_answer launched; /* last LAUNCHED answer */
    size_t got;                /* bytes of `incoming` received */
    int64_t woken_ns;          /* last check whether the guardian was stopped */
    int64_t until_ns;          /* when the guardian ends all processes and itself; 0: never */
};

static stk_kill_target target_of(const stk_guardian *g) {
    if (g->lost) {
        return (stk_kill_target){.root = getpid(), .strays = true, .since = g->born};
    }
    return (stk_kill_target){.root = g->pid};
}

/* Whether the guardian lives. Its process id is not reused until this function waits for it. */
static bool is_alive(stk_guardian *g) {
    if (!g->lost && waitpid(g->pid, NULL, WNOHANG) != 0) {
        g->lost = true;
    }
    return !g->lost;
}

/* Continues a guardian that somebody has stopped. */
static void wake(stk_guardian *g) {
    stk_proc proc;
    if (stk_clock_since_s(g->woken_ns) < WAKE_S) {
        return;
    }
    g->woken_ns = stk_clock_ns();
    if (is_alive(g) && stk_proc_read(&proc, g->pid) && proc.state == 'T') {
        kill(g->pid, SIGCONT);
    }
}

/* ---- Answers ---- */

static void handle_answer(stk_guardian *g) {
    if (g->incoming.kind == STK_GUARD_LAUNCHED) {
        g->launched = g->incoming;
        g->answered = true;
        g->command = g->incoming.value == 0 ? g->incoming.pid : 0;
        g->ended = false;
    } else if (g->incoming.kind == STK_GUARD_ENDED && g->incoming.pid == g->command) {
        g->command = 0;
        g->ended = true;
        g->wait_status = g->incoming.value;
    }
}

/* Receives one answer; false: none is complete. */
static bool receive(stk_guardian *g) {
    while (g->got < sizeof g->incoming) {
        void *at = (char *)&g->incoming + g->got;
        ssize_t got = recv(g->socket, at, sizeof g->incoming - g->got, MSG_DONTWAIT);
        g->closed = g->closed || got == 0;
        if (got == 0 || (got < 0 && errno != EINTR)) {
            return false;
        }
        g->got += got > 0 ? (size_t)got : 0;
    }
    g->got = 0;
    handle_answer(g);
    return true;
}

/* ---- Orders ---- */

/* Waits a moment for the socket; false: the guardian has ended, or the time is over. */
static bool wait_for(stk_guardian *g, short events, int64_t start_ns, double within_s) {
    struct pollfd waiting = {.fd = g->socket, .events = events};
    int ready = poll(&waiting, 1, (int)(WAKE_S * 1000));
    wake(g);
    bool gone = (waiting.revents & (POLLHUP | POLLERR)) != 0 && (waiting.revents & POLLIN) == 0;
    /* A socket that is closed at the other end stays readable. */
    return !gone && !g->closed && stk_clock_since_s(start_ns) < within_s &&
           (ready > 0 || is_alive(g));
}

static bool send_all(stk_guardian *g, const void *data, size_t size, double within_s) {
    const char *at = data;
    int64_t start_ns = stk_clock_ns();
    while (size > 0) {
        ssize_t sent = send(g->socket, at, size, MSG_NOSIGNAL | MSG_DONTWAIT);
        if (sent > 0) {
            at += sent;
            size -= (size_t)sent;
            start_ns = stk_clock_ns();
        } else if (errno != EAGAIN && errno != EINTR) {
            return false;
        } else if (!wait_for(g, POLLOUT, start_ns, within_s)) {
            return false;
        }
    }
    return true;
}

static void append_text(stk_str *texts, const char *text, uint32_t *count) {
    stk_str_append_bytes(texts, text, strlen(text) + 1);
    *count += 1;
}

/* Waits until the guardian has ended. */
static void await_guardian_end(stk_guardian *g) {
    int64_t start_ns = stk_clock_ns();
    while (is_alive(g) && stk_clock_since_s(start_ns) < QUIT_S) {
        wake(g);
        usleep(1000);
    }
}

/* Kills the guardian. Its processes become children of this process. */
static void end_process(stk_guardian *g) {
    int64_t start_ns = stk_clock_ns();
    while (is_alive(g) && stk_clock_since_s(start_ns) < QUIT_S) {
        kill(g->pid, SIGKILL);
        usleep(1000);
    }
    g->lost = true;
}

/* A guardian that does not take orders is useless, and half an order cannot be undone: kills it. */
static stk_status fail_lost(stk_guardian *g, stk_error *err) {
    end_process(g);
    return STK_FAIL(err, STK_ERR_DEVICE,
                    "the process that guards commands was killed or does not answer; run again");
}

static stk_status send_order(stk_guardian *g, stk_guard_order order, const stk_str *texts,
                             stk_error *err) {
    if (!stk_str_ok(texts) || texts->length > UINT32_MAX) {
        return STK_FAIL_MEMORY(err, "a command and its environment");
    }
    order.bytes = (uint32_t)texts->length;
    bool sent = !g->lost && send_all(g, &order, sizeof order, ORDER_S) &&
                send_all(g, texts->text, texts->length, ORDER_S);
    return sent ? STK_OK : fail_lost(g, err);
}

/* ---- Life ---- */

static stk_status make_process(stk_guardian *g, const stk_guardian_config *config, stk_error *err) {
    int ends[2] = {-1, -1};
    pid_t maker = getpid();
    if (prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) != 0 || stk_socket_pair(ends) != 0) {
        return STK_FAIL(err, STK_ERR_DEVICE, "cannot prepare the process that guards commands: %s",
                        strerror(errno));
    }
    /* Makes sure that all children so far started in an earlier clock tick than the guardian. */
    usleep((useconds_t)(1100000 / sysconf(_SC_CLK_TCK)));
    g->pid = stk_fork();
    if (g->pid == 0) {
        stk_guard_run(ends[1], config, maker);
    }
    int error = errno;
    close(ends[1]);
    g->socket = ends[0];
    if (g->pid < 0) {
        close(g->socket);
        return STK_FAIL(err, STK_ERR_DEVICE, "cannot start the process that guards commands: %s",
                        strerror(error));
    }
    stk_proc proc;
    g->born = stk_proc_read(&proc, g->pid) ? proc.born : 0;
    return STK_OK;
}

stk_status stk_guardian_start(stk_guardian **guardian, const stk_guardian_config *config,
                              stk_error *err) {
    *guardian = NULL;
    stk_guardian *g = stk_mem_new(1, sizeof *g);
    if (g == NULL) {
        return STK_FAIL_MEMORY(err, "the process that guards commands");
    }
    g->until_ns = config->until_ns;
    stk_status status = make_process(g, config, err);
    if (status != STK_OK) {
        stk_mem_free(g);
        return status;
    }
    *guardian = g;
    return STK_OK;
}

void stk_guardian_stop(stk_guardian *g, double within_s) {
    if (g == NULL) {
        return;
    }
    size_t stuck = stk_guardian_kill(g, within_s);
    const stk_str nothing = {0};
    const stk_guard_order quit = {.kind = STK_GUARD_QUIT};
    /* A guardian with processes left would wait for them. */
    if (stuck == 0 && is_alive(g) && send_order(g, quit, &nothing, NULL) == STK_OK) {
        await_guardian_end(g);
    }
    end_process(g);
    (void)stk_guardian_kill(g, within_s);
    close(g->socket);
    stk_mem_free(g);
}

pid_t stk_guardian_pid(const stk_guardian *g) {
    return g->pid;
}

int stk_guardian_fd(const stk_guardian *g) {
    return g->socket;
}

/* ---- Commands ---- */

static stk_status fail_launch(const char *program, int error, int *code, stk_error *err) {
    bool path = strchr(program, '/') != NULL;
    *code = 126;
    if (error == ENOENT && path && access(program, F_OK) == 0) {
        return STK_FAIL(err, STK_ERR_USAGE,
                        "cannot run '%s': the interpreter that it names is not there", program);
    }
    if (error == ENOENT || error == ENOTDIR) {
        *code = 127;
        return STK_FAIL(err, STK_ERR_USAGE, "cannot run '%s': no such program; %s", program,
                        path ? "is the path right?" : "is it installed and on the PATH?");
    }
    if (error == EACCES && path && stk_path_is_dir(program)) {
        return STK_FAIL(err, STK_ERR_USAGE, "cannot run '%s': it is a folder", program);
    }
    if (error == EACCES) {
        return STK_FAIL(err, STK_ERR_USAGE,
                        "cannot run '%s': it may not be executed; chmod +x allows it", program);
    }
    if (error == E2BIG) {
        return STK_FAIL(err, STK_ERR_USAGE,
                        "cannot run '%s': its arguments and environment are longer than the "
                        "system takes",
                        program);
    }
    return STK_FAIL(err, STK_ERR_USAGE, "cannot run '%s': %s", program, strerror(error));
}

stk_status stk_guardian_launch(stk_guardian *g, char *const *argv, char *const *envp, pid_t *pid,
                               int *code, stk_error *err) {
    *pid = 0;
    *code = 126;
    g->answered = false;
    stk_guard_order order = {.kind = STK_GUARD_LAUNCH};
    stk_str texts = {0};
    size_t i = 0;
    do { /* argv[0] always exists */
        append_text(&texts, argv[i], &order.first_texts);
    } while (argv[++i] != NULL);
    for (i = 0; envp[i] != NULL; i++) {
        append_text(&texts, envp[i], &order.more_texts);
    }
    stk_status status = send_order(g, order, &texts, err);
    stk_str_free(&texts);
    if (status != STK_OK) {
        return status;
    }
    int64_t start_ns = stk_clock_ns();
    /* Later answers stay in the socket, so that the descriptor is readable. */
    for (bool going = true; !g->answered && going;) {
        going = wait_for(g, POLLIN, start_ns, LAUNCH_S);
        while (!g->answered && receive(g)) {
        }
    }
    if (!g->answered) {
        return fail_lost(g, err);
    }
    if (g->launched.value != 0) {
        return fail_launch(argv[0], g->launched.value, code, err);
    }
    *pid = g->command;
    *code = 0;
    return STK_OK;
}

stk_guardian_report stk_guardian_poll(stk_guardian *g, stk_command_exit *ended) {
    /* A guardian whose time is over kills the command before it ends. */
    if (g->until_ns > 0 && stk_clock_ns() >= g->until_ns) {
        await_guardian_end(g);
    }
    bool alive = is_alive(g); /* checked first: an ended guardian sends no further answer */
    while (!g->ended && receive(g)) {
    }
    if (g->ended) {
        g->ended = false;
        bool killed = WIFSIGNALED(g->wait_status);
        *ended = (stk_command_exit){.code = killed ? -1 : WEXITSTATUS(g->wait_status),
                                    .signal = killed ? WTERMSIG(g->wait_status) : 0};
        return STK_GUARDIAN_ENDED;
    }
    wake(g);
    return alive ? STK_GUARDIAN_NOTHING : STK_GUARDIAN_LOST;
}

void stk_guardian_signal(stk_guardian *g, int number, stk_guardian_target whom) {
    (void)is_alive(g);
    stk_kill_target target = target_of(g);
    pid_t first = g->command > 0 ? g->command : -1; /* -1: the first process has ended */
    stk_tree_signal(&target, whom == STK_GUARDIAN_FIRST ? first : 0,
                    whom == STK_GUARDIAN_OTHERS ? first : 0, number);
}

/* Waits for the guardian's answer that the command has ended. */
static void await_command_end(stk_guardian *g) {
    int64_t start_ns = stk_clock_ns();
    for (bool going = !g->lost; g->command > 0 && going;) {
        while (g->command > 0 && receive(g)) {
        }
        going = g->command > 0 && wait_for(g, POLLIN, start_ns, ORDER_S);
    }
}

size_t stk_guardian_alive(stk_guardian *g) {
    (void)is_alive(g);
    stk_kill_target target = target_of(g);
    size_t count = stk_tree_alive(&target);
    if (count == 0) {
        await_command_end(g);
    }
    return count;
}

size_t stk_guardian_kill(stk_guardian *g, double within_s) {
    (void)is_alive(g);
    stk_kill_target target = target_of(g);
    size_t left = stk_tree_kill(&target, within_s);
    if (left == 0) {
        await_command_end(g);
    }
    return left;
}

stk_status stk_guardian_on_orphaned(stk_guardian *g, const char *path, const char *changed,
                                    const char *original, stk_error *err) {
    stk_guard_order order = {.kind = STK_GUARD_ORPHANED};
    stk_str texts = {0};
    if (path != NULL) {
        append_text(&texts, path, &order.first_texts);
        append_text(&texts, changed, &order.first_texts);
        append_text(&texts, original, &order.first_texts);
    }
    stk_status status = send_order(g, order, &texts, err);
    stk_str_free(&texts);
    return status;
}
