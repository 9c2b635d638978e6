/*
 * engine.c - one thread around libcurl's multi interface.
 *
 * The thread waits with epoll and hands libcurl only the sockets that are ready. With hundreds of
 * transfers in flight, curl_multi_perform(), which looks at all of them each time, costs a multiple
 * of that. Easy handles keep their options and connections stay open, so a request costs a URL, a
 * list of headers that lies in the transfer itself, and the bytes.
 */
#ifdef STK_HAVE_S3

#include "storage/http/engine.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/error.h"
#include "base/machine.h"
#include "base/mem.h"
#include "base/threads/thread.h"

#define NS_PER_MS 1000000

/*
 * Until a first response has come, every transfer looks up the host's name in a libcurl thread of
 * its own. So only a few transfers start at first, for at most this long.
 */
#define FIRST_TRANSFERS 8
#define FIRST_NS ((int64_t)1000 * NS_PER_MS)

/* How often an engine looks whether another engine has given back shared memory. */
#define MEMORY_POLL_NS ((int64_t)10 * NS_PER_MS)

#define EVENTS_AT_ONCE 64

struct stk_http_engine {
    pthread_t thread;
    pthread_mutex_t lock;
    stk_http_transfer *first; /* handed over, not yet taken by the thread; lock */
    stk_http_transfer *last;  /* valid while first is not NULL; lock */
    bool cancel;              /* some transfer is to be cancelled; lock */
    bool quit;                /* the thread is to end; lock */
    bool awake;               /* the thread will look at the above before it sleeps; lock */
    int wake_fd;              /* eventfd that ends the thread's sleep */
    int epoll_fd;             /* libcurl's sockets and wake_fd */
    char *ca_bundle;          /* owned, or NULL */
    stk_http_connect connect; /* constant */
    stk_http_memory *memory;  /* borrowed; NULL: no limit */
    int max_active;           /* constant */

    /* The thread's own from here on. */
    CURLM *multi;               /* owned; NULL: given up after an error, made again when needed */
    stk_http_transfer **active; /* owned array of max_active; the first active_count are in use */
    int active_count;
    stk_http_transfer *waiting_first; /* taken over, not yet started */
    stk_http_transfer *waiting_last;  /* valid while waiting_first is not NULL */
    int64_t timer_ns;                 /* when libcurl wants to be called; -1: never */
    int64_t first_ns;                 /* when the first transfer started; 0: none has */
    bool answered;                    /* a response has come from the host */
    bool memory_full;                 /* the first waiting transfer waits for memory */
    bool lost_track; /* a socket or timer could not be registered: some transfer would never end */
};

static void append(stk_http_transfer **first, stk_http_transfer **last,
                   stk_http_transfer *transfer) {
    transfer->next = NULL;
    *(*first != NULL ? &(*last)->next : first) = transfer;
    *last = transfer;
}

/* ---- callbacks of libcurl ---- */

static int watch_socket(CURL *easy, curl_socket_t fd, int what, void *user, void *known) {
    stk_http_engine *e = user;
    (void)easy;
    if (what == CURL_POLL_REMOVE) {
        (void)epoll_ctl(e->epoll_fd, EPOLL_CTL_DEL, fd, NULL);
        return 0;
    }
    struct epoll_event event = {
        .events = (uint32_t)((what & CURL_POLL_IN) != 0 ? EPOLLIN : 0) |
                  (uint32_t)((what & CURL_POLL_OUT) != 0 ? EPOLLOUT : 0),
        .data.fd = fd,
    };
    if (known == NULL) {
        (void)curl_multi_assign(e->multi, fd, e);
    }
    /* A descriptor number may be in use again before libcurl reports the old socket's end. */
    int failed = epoll_ctl(e->epoll_fd, known != NULL ? EPOLL_CTL_MOD : EPOLL_CTL_ADD, fd, &event);
    if (failed != 0 && (errno == ENOENT || errno == EEXIST)) {
        failed =
            epoll_ctl(e->epoll_fd, errno == ENOENT ? EPOLL_CTL_ADD : EPOLL_CTL_MOD, fd, &event);
    }
    e->lost_track = e->lost_track || failed != 0;
    return 0;
}

static int set_timer(CURLM *multi, long timeout_ms, void *user) {
    stk_http_engine *e = user;
    (void)multi;
    e->timer_ns = timeout_ms >= 0 ? stk_clock_ns() + (int64_t)timeout_ms * NS_PER_MS : -1;
    return 0;
}

static bool make_multi(stk_http_engine *e) {
    e->multi = curl_multi_init();
    if (e->multi != NULL &&
        curl_multi_setopt(e->multi, CURLMOPT_SOCKETFUNCTION, watch_socket) == CURLM_OK &&
        curl_multi_setopt(e->multi, CURLMOPT_SOCKETDATA, e) == CURLM_OK &&
        curl_multi_setopt(e->multi, CURLMOPT_TIMERFUNCTION, set_timer) == CURLM_OK &&
        curl_multi_setopt(e->multi, CURLMOPT_TIMERDATA, e) == CURLM_OK &&
        curl_multi_setopt(e->multi, CURLMOPT_PIPELINING, (long)CURLPIPE_NOTHING) == CURLM_OK &&
        curl_multi_setopt(e->multi, CURLMOPT_MAXCONNECTS, (long)e->max_active) == CURLM_OK) {
        return true;
    }
    (void)curl_multi_cleanup(e->multi);
    e->multi = NULL;
    return false;
}

/* ---- the thread's work ---- */

/* Ends a transfer that did not reach libcurl or was taken off it. */
static void finish(stk_http_transfer *transfer, stk_http_result result, const char *reason) {
    transfer->result = result;
    snprintf(transfer->reason, sizeof transfer->reason, "%s", reason);
    transfer->done(transfer);
}

/* Starts a transfer whose expected bytes were taken from the memory. */
static void start(stk_http_engine *e, stk_http_transfer *transfer) {
    int64_t now_ns = stk_clock_ns();
    e->first_ns = e->first_ns != 0 ? e->first_ns : now_ns;
    if (!stk_http_transfer_prepare(transfer, &e->connect, e->memory) ||
        (e->multi == NULL && !make_multi(e)) ||
        curl_multi_add_handle(e->multi, transfer->easy) != CURLM_OK) {
        stk_http_transfer_release(transfer);
        finish(transfer, STK_HTTP_NO_MEMORY, "out of memory");
        return;
    }
    transfer->position = e->active_count;
    e->active[e->active_count++] = transfer;
    if (transfer->started_ns != NULL) {
        atomic_store(transfer->started_ns, now_ns);
    }
}

/* How many transfers may be active now. */
static int allowed(const stk_http_engine *e) {
    bool cautious = !e->answered && e->max_active > FIRST_TRANSFERS &&
                    (e->first_ns == 0 || stk_clock_ns() - e->first_ns < FIRST_NS);
    return cautious ? FIRST_TRANSFERS : e->max_active;
}

static void start_waiting(stk_http_engine *e) {
    e->memory_full = false;
    while (e->waiting_first != NULL && e->active_count < allowed(e)) {
        stk_http_transfer *transfer = e->waiting_first;
        e->memory_full = !stk_http_memory_take(e->memory, 0, transfer->expected_bytes);
        if (e->memory_full) {
            return; /* a smaller one after it must not overtake it, or it might wait for ever */
        }
        e->waiting_first = transfer->next;
        start(e, transfer);
    }
}

/* Takes an active transfer off libcurl and returns it. */
static stk_http_transfer *detach(stk_http_engine *e, stk_http_transfer *transfer) {
    (void)curl_multi_remove_handle(e->multi, transfer->easy);
    stk_http_transfer *moved = e->active[--e->active_count];
    e->active[transfer->position] = moved;
    moved->position = transfer->position;
    stk_http_transfer_release(transfer);
    return transfer;
}

static void cancel_marked(stk_http_engine *e) {
    stk_http_transfer *waiting = e->waiting_first;
    stk_http_transfer *marked = NULL;
    stk_http_transfer *marked_last = NULL;
    e->waiting_first = NULL;
    while (waiting != NULL) {
        stk_http_transfer *transfer = waiting;
        waiting = transfer->next;
        if (atomic_load(&transfer->cancelled)) {
            append(&marked, &marked_last, transfer);
        } else {
            append(&e->waiting_first, &e->waiting_last, transfer);
        }
    }
    for (int i = e->active_count; i-- > 0;) { /* detach moves the last one down */
        if (atomic_load(&e->active[i]->cancelled)) {
            append(&marked, &marked_last, detach(e, e->active[i]));
        }
    }
    while (marked != NULL) {
        stk_http_transfer *transfer = marked;
        marked = transfer->next;
        finish(transfer, STK_HTTP_CANCELLED, "");
    }
}

/*
 * Without memory libcurl stops in the middle of its work. It does not report which transfer is no
 * longer watched, sets no timers, and keeps broken lists of its sockets. So all transfers end here,
 * and so do the connections; callers may begin the transfers again.
 */
static void end_all(stk_http_engine *e) {
    stk_http_transfer *ended = NULL;
    stk_http_transfer *last = NULL;
    e->lost_track = false;
    while (e->active_count > 0) {
        append(&ended, &last, detach(e, e->active[e->active_count - 1]));
    }
    (void)curl_multi_cleanup(e->multi);
    e->multi = NULL;
    e->timer_ns = -1;
    while (ended != NULL) {
        stk_http_transfer *transfer = ended;
        ended = transfer->next;
        finish(transfer, STK_HTTP_NO_MEMORY, "out of memory");
    }
}

static void act(stk_http_engine *e, curl_socket_t fd, int what) {
    int running;
    if (!e->lost_track && curl_multi_socket_action(e->multi, fd, what, &running) != CURLM_OK) {
        e->lost_track = true;
    }
}

/* Finishes all transfers that libcurl has ended. */
static void collect(stk_http_engine *e) {
    int left;
    for (CURLMsg *message;
         e->multi != NULL && (message = curl_multi_info_read(e->multi, &left)) != NULL;) {
        if (message->msg != CURLMSG_DONE) {
            continue;
        }
        stk_http_transfer *transfer = NULL;
        CURLcode code = message->data.result; /* invalid once the handle is removed */
        (void)curl_easy_getinfo(message->easy_handle, CURLINFO_PRIVATE, &transfer);
        stk_http_transfer_set_result(transfer, code);
        e->answered = e->answered || transfer->response.status != 0;
        (void)detach(e, transfer);
        transfer->done(transfer);
    }
}

/* Takes over new transfers, cancels and starts. False: the thread is to end. */
static bool take_over(stk_http_engine *e) {
    pthread_mutex_lock(&e->lock);
    stk_http_transfer *first = e->first;
    stk_http_transfer *last = e->last;
    bool cancel = e->cancel;
    bool quit = e->quit;
    e->first = NULL;
    e->cancel = false;
    pthread_mutex_unlock(&e->lock);
    if (first != NULL) {
        *(e->waiting_first != NULL ? &e->waiting_last->next : &e->waiting_first) = first;
        e->waiting_last = last;
    }
    if (cancel) {
        cancel_marked(e);
    }
    start_waiting(e);
    return !quit;
}

static int wait_ms(const stk_http_engine *e) {
    int64_t until_ns = e->timer_ns;
    if (e->waiting_first != NULL && e->active_count < e->max_active && !e->answered) {
        int64_t all_ns = e->first_ns + FIRST_NS;
        until_ns = until_ns < 0 || all_ns < until_ns ? all_ns : until_ns;
    }
    if (e->memory_full) { /* another engine may give memory back without waking this one */
        int64_t look_ns = stk_clock_ns() + MEMORY_POLL_NS;
        until_ns = until_ns < 0 || look_ns < until_ns ? look_ns : until_ns;
    }
    if (until_ns < 0) {
        return -1;
    }
    int64_t left_ns = until_ns - stk_clock_ns();
    return left_ns > 0 ? (int)((left_ns + NS_PER_MS - 1) / NS_PER_MS) : 0;
}

/* Waits for sockets, libcurl's timer or a call of wake(), and lets libcurl work. */
static void work_once(stk_http_engine *e) {
    struct epoll_event events[EVENTS_AT_ONCE];
    int timeout_ms = wait_ms(e);
    pthread_mutex_lock(&e->lock);
    bool more = e->first != NULL || e->cancel || e->quit;
    e->awake = more;
    pthread_mutex_unlock(&e->lock);
    int count = epoll_wait(e->epoll_fd, events, EVENTS_AT_ONCE, more ? 0 : timeout_ms);
    pthread_mutex_lock(&e->lock);
    e->awake = true;
    pthread_mutex_unlock(&e->lock);
    for (int i = 0; i < count; i++) {
        if (events[i].data.fd == e->wake_fd) {
            uint64_t times;
            (void)(read(e->wake_fd, &times, sizeof times) < 0);
            continue;
        }
        int what = ((events[i].events & EPOLLIN) != 0 ? CURL_CSELECT_IN : 0) |
                   ((events[i].events & EPOLLOUT) != 0 ? CURL_CSELECT_OUT : 0) |
                   ((events[i].events & (EPOLLERR | EPOLLHUP)) != 0 ? CURL_CSELECT_ERR : 0);
        act(e, events[i].data.fd, what);
    }
    if (e->timer_ns >= 0 && stk_clock_ns() >= e->timer_ns) {
        e->timer_ns = -1;
        act(e, CURL_SOCKET_TIMEOUT, 0);
    }
    collect(e);
    if (e->lost_track) {
        end_all(e);
    }
}

static void *run(void *argument) {
    stk_http_engine *e = argument;
    sigset_t pipes; /* TLS libraries may write to a closed connection */
    sigemptyset(&pipes);
    sigaddset(&pipes, SIGPIPE);
    pthread_sigmask(SIG_BLOCK, &pipes, NULL);
    while (take_over(e)) {
        work_once(e);
    }
    return NULL;
}

/* Ends the thread's sleep. Under the lock. */
static void wake(stk_http_engine *e) {
    if (!e->awake) {
        uint64_t once = 1;
        e->awake = true;
        (void)(write(e->wake_fd, &once, sizeof once) < 0);
    }
}

/* ---- public ---- */

/* A connection is a descriptor; connections may take a part of those that the process has. */
static int limit_connections(int wanted, int engines) {
    return stk_machine_files(wanted, STK_FILES_SHARE * (engines > 0 ? engines : 1));
}

static void destroy(stk_http_engine *e) {
    if (e->multi != NULL) {
        (void)curl_multi_cleanup(e->multi);
    }
    if (e->wake_fd >= 0) {
        close(e->wake_fd);
    }
    if (e->epoll_fd >= 0) {
        close(e->epoll_fd);
    }
    pthread_mutex_destroy(&e->lock);
    stk_mem_free(e->ca_bundle);
    stk_mem_free(e->active);
    stk_mem_free(e);
}

stk_status stk_http_engine_open(stk_http_engine **engine, const stk_http_engine_config *config,
                                stk_error *err) {
    stk_status status = stk_http_init(err);
    if (status != STK_OK) {
        return status;
    }
    stk_http_engine *e = stk_mem_new(1, sizeof *e);
    if (e == NULL) {
        return STK_FAIL_MEMORY(err, "requests");
    }
    pthread_mutex_init(&e->lock, NULL);
    e->max_active = limit_connections(config->max_connections, config->engines);
    e->memory = config->memory;
    e->timer_ns = -1;
    e->epoll_fd = stk_epoll_fd();
    e->wake_fd = stk_event_fd();
    if (e->epoll_fd < 0 || e->wake_fd < 0) {
        status =
            STK_FAIL(err, STK_ERR_DEVICE,
                     "cannot make requests: %s; allow this process more open files (ulimit -n)",
                     strerror(errno));
        destroy(e);
        return status;
    }
    struct epoll_event waking = {.events = EPOLLIN, .data.fd = e->wake_fd};
    const char *ca_bundle = config->connect.ca_bundle;
    e->active = stk_mem_new((size_t)e->max_active, sizeof *e->active);
    e->ca_bundle = ca_bundle != NULL ? stk_mem_strdup(ca_bundle) : NULL;
    e->connect = config->connect;
    e->connect.ca_bundle = e->ca_bundle;
    if (e->active == NULL || (ca_bundle != NULL && e->ca_bundle == NULL) ||
        epoll_ctl(e->epoll_fd, EPOLL_CTL_ADD, e->wake_fd, &waking) != 0 || !make_multi(e)) {
        destroy(e);
        return STK_FAIL_MEMORY(err, "requests");
    }
    const stk_thread_config asking = {.what = "makes requests"};
    status = stk_thread_start(&e->thread, &asking, run, e, err);
    if (status != STK_OK) {
        destroy(e);
        return status;
    }
    *engine = e;
    return STK_OK;
}

void stk_http_engine_close(stk_http_engine *e) {
    if (e == NULL) {
        return;
    }
    pthread_mutex_lock(&e->lock);
    e->quit = true;
    wake(e);
    pthread_mutex_unlock(&e->lock);
    pthread_join(e->thread, NULL);
    destroy(e);
}

void stk_http_begin(stk_http_engine *e, stk_http_transfer *transfer) {
    stk_http_transfer_reset(transfer);
    transfer->engine = e;
    atomic_store(&transfer->cancelled, false);
    pthread_mutex_lock(&e->lock);
    append(&e->first, &e->last, transfer);
    wake(e);
    pthread_mutex_unlock(&e->lock);
}

void stk_http_cancel(stk_http_transfer *transfer) {
    stk_http_engine *e = transfer->engine;
    atomic_store(&transfer->cancelled, true);
    pthread_mutex_lock(&e->lock);
    e->cancel = true;
    wake(e);
    pthread_mutex_unlock(&e->lock);
}

#endif
