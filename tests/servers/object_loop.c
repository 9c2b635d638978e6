/*
 * object_loop.c - see the header.
 *
 * A connection reads a request, waits as long as the faults say, sends the answer and reads again.
 * A delay is an entry in a heap of timers, so that thousands of requests wait at once at no cost.
 * Files go out by sendfile. Events are level-triggered; interest in readable data is dropped only
 * when a client sends ahead, which spares a system call for every ordinary request.
 */
#include "object_loop.h"

#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <signal.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/sendfile.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include "object_timers.h"

/* Bytes that one connection may send before the others have their turn. */
#define TURN_BYTES (1 << 20)

/* A connection with a limited rate sends what has come together in this time. */
#define RATE_TICK_NS 10000000

#define EVENTS 256

typedef enum connection_state {
    READING, /* for a request */
    WAITING, /* for the end of the delay */
    SENDING, /* the answer, maybe at a limited rate */
    SILENT,  /* until the client goes away */
} connection_state;

typedef struct connection {
    int fd;
    connection_state state;
    uint32_t interest; /* events that epoll watches for */
    char *bytes;       /* what came, ended by a NUL */
    size_t size, room;
    size_t request_size; /* of `bytes` that are the request now answered */
    os_request request;
    os_target target;
    os_plan plan;
    os_answer answer;
    bool is_counted; /* among the requests in flight */
    size_t head_sent;
    uint64_t body_sent;
    int64_t rate_from_ns; /* when the body's first byte was due */
    os_timer timer;
    struct connection *previous, *next;
} connection;

typedef struct loop {
    os_server *server;
    FILE *log;
    int epoll_fd, listen_fd, timer_fd, signal_fd;
    int64_t armed_ns; /* what timer_fd is set to; 0: not set */
    bool is_full;     /* no more file descriptors: the listener is not watched */
    os_timers timers;
    connection *connections;
} loop;

/* What epoll's data points to when it is no connection. */
static char mark_listen, mark_timer, mark_signal, mark_input;

static void watch(loop *l, int operation, int fd, uint32_t events, void *data) {
    struct epoll_event event = {.events = events, .data.ptr = data};
    if (epoll_ctl(l->epoll_fd, operation, fd, &event) != 0) {
        os_die("epoll_ctl: %s", strerror(errno));
    }
}

static void set_interest(loop *l, connection *c, uint32_t interest) {
    if (c->interest != interest) {
        c->interest = interest;
        watch(l, EPOLL_CTL_MOD, c->fd, interest, c);
    }
}

static void finish_counting(loop *l, connection *c) {
    if (c->is_counted) {
        c->is_counted = false;
        l->server->stats.in_flight--;
    }
}

static void close_connection(loop *l, connection *c, bool with_reset) {
    if (with_reset) {
        struct linger now = {.l_onoff = 1, .l_linger = 0};
        setsockopt(c->fd, SOL_SOCKET, SO_LINGER, &now, sizeof now);
    }
    close(c->fd);
    finish_counting(l, c);
    os_timers_unset(&l->timers, &c->timer);
    os_answer_free(&c->answer);
    l->server->stats.open_connections--;
    if (c->previous != NULL) {
        c->previous->next = c->next;
    } else {
        l->connections = c->next;
    }
    if (c->next != NULL) {
        c->next->previous = c->previous;
    }
    free(c->bytes);
    free(c);
    if (l->is_full) {
        l->is_full = false;
        watch(l, EPOLL_CTL_ADD, l->listen_fd, EPOLLIN, &mark_listen);
    }
}

static void accept_connections(loop *l) {
    for (;;) {
        int fd = accept4(l->listen_fd, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
        if (fd < 0) {
            if (errno == EMFILE || errno == ENFILE) {
                l->is_full = true;
                watch(l, EPOLL_CTL_DEL, l->listen_fd, 0, NULL);
            }
            if (errno == ECONNABORTED || errno == EINTR) {
                continue;
            }
            return;
        }
        int on = 1;
        setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
        connection *c = os_resize(NULL, sizeof *c);
        *c = (connection){.fd = fd, .interest = EPOLLIN | EPOLLRDHUP, .next = l->connections};
        os_answer_start(&c->answer);
        if (c->next != NULL) {
            c->next->previous = c;
        }
        l->connections = c;
        watch(l, EPOLL_CTL_ADD, fd, c->interest, c);
        l->server->stats.connections++;
        l->server->stats.open_connections++;
    }
}

/* ---- sending ---- */

/* How much of the body may go now; 0 when the rate says to wait, and then a timer is set. */
static uint64_t allowed_bytes(loop *l, connection *c) {
    uint64_t rest = c->answer.stop_at - c->body_sent;
    uint64_t limit = rest < TURN_BYTES ? rest : TURN_BYTES;
    if (c->plan.bytes_per_s <= 0) {
        return limit;
    }
    int64_t now_ns = os_now_ns();
    double earned = (double)(now_ns - c->rate_from_ns) * 1e-9 * c->plan.bytes_per_s;
    double free_bytes = earned - (double)c->body_sent;
    double tick = RATE_TICK_NS * 1e-9 * c->plan.bytes_per_s;
    double wanted = tick < (double)rest ? tick : (double)rest;
    if (free_bytes < 1 || free_bytes < wanted) {
        double missing_s =
            (wanted > 1 ? wanted - free_bytes : 1 - free_bytes) / c->plan.bytes_per_s;
        os_timers_set(&l->timers, &c->timer, now_ns + (int64_t)(missing_s * 1e9) + 1);
        return 0;
    }
    return free_bytes < (double)limit ? (uint64_t)free_bytes : limit;
}

/* Sends one piece of the body, as send does. The byte that is to be wrong is a piece of its own. */
static ssize_t send_piece(connection *c, uint64_t size) {
    const os_answer *answer = &c->answer;
    if (answer->endless) {
        uint64_t from = c->body_sent % answer->body.size;
        uint64_t rest = answer->body.size - from;
        return send(c->fd, answer->body.bytes + from, size < rest ? size : rest, MSG_NOSIGNAL);
    }
    if (answer->fd < 0) {
        return send(c->fd, answer->body.bytes + c->body_sent, size, MSG_NOSIGNAL);
    }
    off_t at = (off_t)(answer->offset + c->body_sent);
    if (c->body_sent == answer->flip_at) {
        unsigned char byte;
        if (pread(answer->fd, &byte, 1, at) != 1) {
            return 0;
        }
        byte ^= answer->flip_mask;
        return send(c->fd, &byte, 1, MSG_NOSIGNAL);
    }
    if (c->body_sent < answer->flip_at && answer->flip_at - c->body_sent < size) {
        size = answer->flip_at - c->body_sent;
    }
    return sendfile(c->fd, answer->fd, &at, size);
}

typedef enum progress { DONE, BLOCKED, PAUSED, BROKEN } progress;

static progress send_answer(loop *l, connection *c) {
    const os_answer *answer = &c->answer;
    while (c->head_sent < answer->head.size) {
        int more = answer->stop_at > 0 && c->plan.bytes_per_s <= 0 ? MSG_MORE : 0;
        ssize_t sent = send(c->fd, answer->head.bytes + c->head_sent,
                            answer->head.size - c->head_sent, MSG_NOSIGNAL | more);
        if (sent < 0) {
            return errno == EAGAIN ? BLOCKED : BROKEN;
        }
        c->head_sent += (size_t)sent;
    }
    uint64_t turn_end = c->body_sent + TURN_BYTES;
    while (c->body_sent < answer->stop_at) {
        uint64_t allowed = allowed_bytes(l, c);
        if (allowed == 0) {
            return PAUSED;
        }
        if (c->body_sent >= turn_end) {
            return BLOCKED;
        }
        ssize_t sent = send_piece(c, allowed);
        if (sent <= 0) {
            return sent < 0 && errno == EAGAIN ? BLOCKED : BROKEN;
        }
        c->body_sent += (uint64_t)sent;
        l->server->stats.bytes += (uint64_t)sent;
    }
    return DONE;
}

static void log_answer(const loop *l, const connection *c) {
    if (l->log != NULL) {
        fprintf(l->log, "%s %s%s%s %d %llu%s%s\n", c->request.method, c->request.path,
                c->request.query[0] != '\0' ? "?" : "", c->request.query, c->answer.status,
                (unsigned long long)c->answer.stop_at, c->answer.fault != NULL ? " " : "",
                c->answer.fault != NULL ? c->answer.fault : "");
        fflush(l->log);
    }
}

/* Goes on sending. False when the connection is gone; else it waits for something, or the answer is
 * out and the next request may be looked for. */
static bool continue_sending(loop *l, connection *c) {
    switch (send_answer(l, c)) {
    case BLOCKED:
        set_interest(l, c, c->interest | EPOLLOUT);
        return true;
    case PAUSED:
        set_interest(l, c, c->interest & ~(uint32_t)EPOLLOUT);
        return true;
    case BROKEN:
        close_connection(l, c, true);
        return false;
    case DONE:
        break;
    }
    if (c->answer.end == OS_END_SILENT) {
        c->state = SILENT;
        set_interest(l, c, EPOLLRDHUP);
        return true;
    }
    if (c->answer.end != OS_END_KEEP) {
        close_connection(l, c, c->answer.end == OS_END_RESET);
        return false;
    }
    finish_counting(l, c);
    os_answer_free(&c->answer);
    c->size -= c->request_size;
    memmove(c->bytes, c->bytes + c->request_size, c->size + 1);
    c->state = READING;
    set_interest(l, c, EPOLLIN | EPOLLRDHUP);
    return true;
}

static bool start_sending(loop *l, connection *c) {
    c->state = SENDING;
    c->head_sent = 0;
    c->body_sent = 0;
    c->rate_from_ns = os_now_ns();
    os_answer_make(l->server, &c->request, &c->target, &c->plan, &c->answer);
    log_answer(l, c);
    return continue_sending(l, c);
}

/* ---- reading ---- */

/* Refuses bytes that are no request of ours. */
static bool refuse_bytes(loop *l, connection *c, int status) {
    c->request = (os_request){.method = "", .path = "", .query = ""};
    c->plan = (os_plan){0};
    os_answer_text(&c->answer, &c->request, status, "text/plain");
    c->state = SENDING;
    c->head_sent = 0;
    c->body_sent = 0;
    log_answer(l, c);
    return continue_sending(l, c);
}

static bool take_request(loop *l, connection *c) {
    if (!os_request_parse(c->bytes, c->request_size, &c->request)) {
        return refuse_bytes(l, c, 400);
    }
    os_stats *stats = &l->server->stats;
    os_target_find(l->server, &c->request, &c->target);
    os_target_plan(l->server, &c->request, &c->target, &c->plan);
    if (c->target.kind != OS_TARGET_CONTROL && c->target.kind != OS_TARGET_STATS) {
        c->is_counted = true;
        stats->in_flight++;
        stats->max_in_flight =
            stats->in_flight > stats->max_in_flight ? stats->in_flight : stats->max_in_flight;
    }
    if (c->plan.delay_ns > 0 && c->plan.fault != OS_FAULT_REFUSE) {
        c->state = WAITING;
        os_timers_set(&l->timers, &c->timer, os_now_ns() + c->plan.delay_ns);
        return true;
    }
    return start_sending(l, c);
}

/* Answers the requests that are there until one has to wait; false when the connection is gone. */
static bool take_requests(loop *l, connection *c) {
    while (c->state == READING && c->size > 0) {
        ssize_t size = os_request_size(c->bytes, c->size);
        if (size == 0) {
            return true;
        }
        c->request_size = size > 0 ? (size_t)size : c->size;
        if (!(size > 0 ? take_request(l, c) : refuse_bytes(l, c, (int)-size))) {
            return false;
        }
    }
    return true;
}

/* Reads what has come. False when the connection is gone. */
static bool read_bytes(loop *l, connection *c) {
    if (c->size + 1024 > c->room) {
        c->room = c->room > 0 ? 2 * c->room : 4096;
        c->bytes = os_resize(c->bytes, c->room);
    }
    ssize_t got = recv(c->fd, c->bytes + c->size, c->room - c->size - 1, 0);
    if (got == 0 || (got < 0 && errno != EAGAIN)) {
        close_connection(l, c, false);
        return false;
    }
    if (got > 0) {
        c->size += (size_t)got;
        c->bytes[c->size] = '\0';
        return take_requests(l, c);
    }
    return true;
}

static void on_connection(loop *l, connection *c, uint32_t events) {
    if ((events & (EPOLLERR | EPOLLHUP)) != 0 ||
        ((events & EPOLLRDHUP) != 0 && c->state != READING)) {
        close_connection(l, c, false);
        return;
    }
    if (c->state == SENDING && (events & EPOLLOUT) != 0) {
        if (!continue_sending(l, c) || !take_requests(l, c)) {
            return;
        }
    }
    if ((events & (EPOLLIN | EPOLLRDHUP)) != 0) {
        if (c->state == READING) {
            read_bytes(l, c);
        } else {
            set_interest(l, c, c->interest & ~(uint32_t)EPOLLIN);
        }
    }
}

/* ---- the loop ---- */

static void run_timers(loop *l) {
    int64_t now_ns = os_now_ns();
    os_timer *timer;
    while ((timer = os_timers_first(&l->timers)) != NULL && timer->due_ns <= now_ns) {
        connection *c = (connection *)((char *)timer - offsetof(connection, timer));
        os_timers_unset(&l->timers, timer);
        if (c->state == WAITING ? start_sending(l, c) : continue_sending(l, c)) {
            take_requests(l, c);
        }
    }
    int64_t due_ns = timer != NULL ? timer->due_ns : 0;
    if (due_ns != l->armed_ns) {
        struct itimerspec at = {
            .it_value = {.tv_sec = due_ns / 1000000000, .tv_nsec = due_ns % 1000000000}};
        timerfd_settime(l->timer_fd, TFD_TIMER_ABSTIME, &at, NULL);
        l->armed_ns = due_ns;
    }
}

static int open_listener(int port) {
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    int on = 1;
    struct sockaddr_in address = {.sin_family = AF_INET,
                                  .sin_port = htons((uint16_t)port),
                                  .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    if (fd < 0 || setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on) != 0 ||
        bind(fd, (const struct sockaddr *)&address, sizeof address) != 0 || listen(fd, 4096) != 0) {
        os_die("cannot listen on port %d: %s", port, strerror(errno));
    }
    return fd;
}

static int open_signals(void) {
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, SIGTERM);
    sigaddset(&set, SIGINT);
    sigaddset(&set, SIGALRM);
    sigprocmask(SIG_BLOCK, &set, NULL);
    signal(SIGPIPE, SIG_IGN);
    return signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
}

static void open_loop(loop *l, const os_loop_options *options) {
    struct rlimit files;
    if (getrlimit(RLIMIT_NOFILE, &files) == 0) {
        files.rlim_cur = files.rlim_max;
        setrlimit(RLIMIT_NOFILE, &files);
    }
    l->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
    l->timer_fd = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK);
    l->signal_fd = open_signals();
    if (l->epoll_fd < 0 || l->timer_fd < 0 || l->signal_fd < 0) {
        os_die("cannot start: %s", strerror(errno));
    }
    l->listen_fd = open_listener(options->port);
    watch(l, EPOLL_CTL_ADD, l->listen_fd, EPOLLIN, &mark_listen);
    watch(l, EPOLL_CTL_ADD, l->timer_fd, EPOLLIN, &mark_timer);
    watch(l, EPOLL_CTL_ADD, l->signal_fd, EPOLLIN, &mark_signal);
    if (options->until_eof) {
        watch(l, EPOLL_CTL_ADD, STDIN_FILENO, EPOLLIN, &mark_input);
    }
    alarm((unsigned)options->max_seconds);
}

static void close_loop(loop *l) {
    l->is_full = false;
    while (l->connections != NULL) {
        close_connection(l, l->connections, false);
    }
    os_timers_free(&l->timers);
    close(l->listen_fd);
    close(l->timer_fd);
    close(l->signal_fd);
    close(l->epoll_fd);
}

/* Whether standard input has ended; what it says does not matter. */
static bool input_ended(void) {
    char text[256];
    return read(STDIN_FILENO, text, sizeof text) <= 0;
}

static void say_where(int listen_fd) {
    struct sockaddr_in address = {0};
    socklen_t size = sizeof address;
    getsockname(listen_fd, (struct sockaddr *)&address, &size);
    printf("listening on http://127.0.0.1:%d\n", ntohs(address.sin_port));
    fflush(stdout);
}

void os_loop_run(os_server *server, const os_loop_options *options) {
    loop l = {.server = server, .log = options->log};
    open_loop(&l, options);
    say_where(l.listen_fd);
    bool is_over = false;
    while (!is_over) {
        struct epoll_event events[EVENTS];
        int count = epoll_wait(l.epoll_fd, events, EVENTS, -1);
        for (int i = 0; i < count; i++) {
            void *data = events[i].data.ptr;
            if (data == &mark_listen) {
                accept_connections(&l);
            } else if (data == &mark_timer) {
                uint64_t times;
                l.armed_ns = read(l.timer_fd, &times, sizeof times) > 0 ? 0 : l.armed_ns;
            } else if (data == &mark_signal) {
                is_over = true;
            } else if (data == &mark_input) {
                is_over = is_over || input_ended();
            } else {
                on_connection(&l, data, events[i].events);
            }
        }
        run_timers(&l);
    }
    close_loop(&l);
}
