/*
 * engine.c - one thread around libcurl's multi interface.
 *
 * The thread waits with epoll and hands libcurl only the sockets that something happened on: with
 * hundreds of requests in flight the other way, in which libcurl looks at all of them each time,
 * costs a multiple. Easy handles keep their options and connections stay open, so that a request
 * costs an address, a list of headers that stands in the handle's own slot, and the bytes.
 */
#include "storage/http/engine.h"

#ifdef STK_HAVE_S3

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/error.h"
#include "base/machine.h"
#include "base/mem.h"
#include "base/threads/thread.h"
#include "storage/http/blocking.h"
#include "storage/http/transfer.h"

#define NS_PER_MS 1000000
#define MS_PER_S 1000.0

/*
 * Before anything has come from the host, each request would look up its name in a thread of its
 * own: the first few go ahead alone, but for no longer than this.
 */
#define FIRST_REQUESTS 8
#define FIRST_NS ((int64_t)1000 * NS_PER_MS)

/* How often it is looked whether others have given back room. */
#define CROWDED_NS ((int64_t)10 * NS_PER_MS)

#define EVENTS_AT_ONCE 64

struct stk_http {
    pthread_t thread;
    pthread_mutex_t lock;
    stk_http_request *first; /* handed over, not taken up yet; lock */
    stk_http_request *last;  /* lock; only meaningful while first is not NULL */
    bool cancel;             /* some request is to be cancelled; lock */
    bool quit;               /* lock */
    bool awake;              /* the thread looks at the above before it sleeps; lock */
    int wake_fd;
    int epoll_fd;

    /* Everything below belongs to the thread. */
    CURLM *multi;        /* owned; NULL: it was given up, and the next request makes another */
    stk_http_room *room; /* borrowed, or own_room */
    stk_http_room own_room;
    char *ca_bundle; /* owned, or NULL */
    long connect_timeout_ms;
    http_slot **slots; /* owned; most of them, slot_count are there */
    int slot_count;
    int most;
    int in_flight;
    http_slot *free_slots;
    stk_http_request *waiting_first; /* taken up, no connection is free for them */
    stk_http_request *waiting_last;
    int64_t timer_ns; /* when libcurl wants to be called; -1: not at all */
    int64_t first_ns; /* when the first request began; 0: none has */
    bool answered;    /* something has come since */
    bool crowded;     /* the first that waits does so for room */
    bool lost_track; /* of a socket or a timer, for lack of memory: some transfer would never end */
};

static void append(stk_http_request **first, stk_http_request **last, stk_http_request *request) {
    request->next = NULL;
    *(*first != NULL ? &(*last)->next : first) = request;
    *last = request;
}

/* ---- what libcurl calls ---- */

static int watch_socket(CURL *easy, curl_socket_t fd, int what, void *user, void *known) {
    stk_http *h = user;
    (void)easy;
    if (what == CURL_POLL_REMOVE) {
        (void)epoll_ctl(h->epoll_fd, EPOLL_CTL_DEL, fd, NULL);
        return 0;
    }
    struct epoll_event event = {
        .events = (uint32_t)((what & CURL_POLL_IN) != 0 ? EPOLLIN : 0) |
                  (uint32_t)((what & CURL_POLL_OUT) != 0 ? EPOLLOUT : 0),
        .data.fd = fd,
    };
    if (known == NULL) {
        (void)curl_multi_assign(h->multi, fd, h);
    }
    /* A number may have come back for another socket before libcurl told of the old one's end. */
    int failed = epoll_ctl(h->epoll_fd, known != NULL ? EPOLL_CTL_MOD : EPOLL_CTL_ADD, fd, &event);
    if (failed != 0 && (errno == ENOENT || errno == EEXIST)) {
        failed =
            epoll_ctl(h->epoll_fd, errno == ENOENT ? EPOLL_CTL_ADD : EPOLL_CTL_MOD, fd, &event);
    }
    h->lost_track = h->lost_track || failed != 0;
    return 0;
}

static int set_timer(CURLM *multi, long timeout_ms, void *user) {
    stk_http *h = user;
    (void)multi;
    h->timer_ns = timeout_ms >= 0 ? stk_clock_ns() + (int64_t)timeout_ms * NS_PER_MS : -1;
    return 0;
}

static bool make_multi(stk_http *h) {
    h->multi = curl_multi_init();
    if (h->multi != NULL &&
        curl_multi_setopt(h->multi, CURLMOPT_SOCKETFUNCTION, watch_socket) == CURLM_OK &&
        curl_multi_setopt(h->multi, CURLMOPT_SOCKETDATA, h) == CURLM_OK &&
        curl_multi_setopt(h->multi, CURLMOPT_TIMERFUNCTION, set_timer) == CURLM_OK &&
        curl_multi_setopt(h->multi, CURLMOPT_TIMERDATA, h) == CURLM_OK &&
        curl_multi_setopt(h->multi, CURLMOPT_PIPELINING, (long)CURLPIPE_NOTHING) == CURLM_OK &&
        curl_multi_setopt(h->multi, CURLMOPT_MAXCONNECTS, (long)h->most) == CURLM_OK) {
        return true;
    }
    (void)curl_multi_cleanup(h->multi);
    h->multi = NULL;
    return false;
}

/* ---- handles ---- */

/* A free handle, or NULL without memory. */
static http_slot *take_slot(stk_http *h) {
    http_slot *slot = h->free_slots;
    if (slot != NULL) {
        h->free_slots = slot->next_free;
        return slot;
    }
    stk_http_slot_config config = {
        .ca_bundle = h->ca_bundle, .connect_timeout_ms = h->connect_timeout_ms, .room = h->room};
    slot = stk_http_slot_new(&config);
    if (slot != NULL) {
        h->slots[h->slot_count++] = slot;
    }
    return slot;
}

/* Frees a handle of its request, which it returns. */
static stk_http_request *give_slot(stk_http *h, http_slot *slot) {
    stk_http_request *request = stk_http_slot_clear(slot);
    slot->next_free = h->free_slots;
    h->free_slots = slot;
    return request;
}

/* ---- the thread's work ---- */

static void finish(stk_http_request *request, stk_http_end end, const char *reason) {
    request->end = end;
    snprintf(request->reason, sizeof request->reason, "%s", reason);
    request->done(request);
}

/* Begins a request whose expected bytes were taken from the room. */
static void start(stk_http *h, stk_http_request *request) {
    http_slot *slot = take_slot(h);
    if (slot == NULL) {
        stk_http_room_give(h->room, request->expected_bytes);
        finish(request, STK_HTTP_NO_MEMORY, "out of memory");
        return;
    }
    int64_t now_ns = stk_clock_ns();
    h->first_ns = h->first_ns != 0 ? h->first_ns : now_ns;
    if (!stk_http_slot_set(slot, request) || (h->multi == NULL && !make_multi(h)) ||
        curl_multi_add_handle(h->multi, slot->easy) != CURLM_OK) {
        finish(give_slot(h, slot), STK_HTTP_NO_MEMORY, "out of memory");
        return;
    }
    request->slot = slot;
    h->in_flight++;
    if (request->started_ns != NULL) {
        atomic_store(request->started_ns, now_ns);
    }
}

/* How many may be under way now. */
static int allowed(const stk_http *h) {
    bool cautious = !h->answered && h->most > FIRST_REQUESTS &&
                    (h->first_ns == 0 || stk_clock_ns() - h->first_ns < FIRST_NS);
    return cautious ? FIRST_REQUESTS : h->most;
}

static void start_waiting(stk_http *h) {
    h->crowded = false;
    while (h->waiting_first != NULL && h->in_flight < allowed(h)) {
        stk_http_request *request = h->waiting_first;
        h->crowded = !stk_http_room_take(h->room, 0, request->expected_bytes);
        if (h->crowded) {
            return; /* those behind it may be smaller, but then it would wait for ever */
        }
        h->waiting_first = request->next;
        start(h, request);
    }
}

/* Takes a request off its handle, which is free afterwards. */
static stk_http_request *detach(stk_http *h, http_slot *slot) {
    (void)curl_multi_remove_handle(h->multi, slot->easy);
    h->in_flight--;
    stk_http_request *request = give_slot(h, slot);
    request->slot = NULL;
    return request;
}

static void cancel_marked(stk_http *h) {
    stk_http_request *waiting = h->waiting_first;
    stk_http_request *marked = NULL;
    stk_http_request *marked_last = NULL;
    h->waiting_first = NULL;
    while (waiting != NULL) {
        stk_http_request *request = waiting;
        waiting = request->next;
        if (atomic_load(&request->cancelled)) {
            append(&marked, &marked_last, request);
        } else {
            append(&h->waiting_first, &h->waiting_last, request);
        }
    }
    for (int i = 0; i < h->slot_count; i++) {
        http_slot *slot = h->slots[i];
        if (slot->request != NULL && atomic_load(&slot->request->cancelled)) {
            append(&marked, &marked_last, detach(h, slot));
        }
    }
    while (marked != NULL) {
        stk_http_request *request = marked;
        marked = request->next;
        finish(request, STK_HTTP_CANCELLED, "");
    }
}

/*
 * Without memory libcurl gives up in the midst of its work. It does not say which transfer nobody
 * watches from then on, tells of no timers, and keeps broken lists of its sockets. So all transfers
 * end, with the connections, and may be begun again on others.
 */
static void end_all(stk_http *h) {
    stk_http_request *ended = NULL;
    stk_http_request *last = NULL;
    h->lost_track = false;
    for (int i = 0; i < h->slot_count; i++) {
        if (h->slots[i]->request != NULL) {
            append(&ended, &last, detach(h, h->slots[i]));
        }
    }
    (void)curl_multi_cleanup(h->multi);
    h->multi = NULL;
    h->timer_ns = -1;
    while (ended != NULL) {
        stk_http_request *request = ended;
        ended = request->next;
        finish(request, STK_HTTP_NO_MEMORY, "out of memory");
    }
}

static void act(stk_http *h, curl_socket_t fd, int what) {
    int running;
    if (!h->lost_track && curl_multi_socket_action(h->multi, fd, what, &running) != CURLM_OK) {
        h->lost_track = true;
    }
}

/* Tells of all transfers that libcurl has ended. */
static void collect(stk_http *h) {
    int left;
    for (CURLMsg *message;
         h->multi != NULL && (message = curl_multi_info_read(h->multi, &left)) != NULL;) {
        if (message->msg != CURLMSG_DONE) {
            continue;
        }
        http_slot *slot = NULL;
        CURLcode code = message->data.result; /* gone once the handle is removed */
        (void)curl_easy_getinfo(message->easy_handle, CURLINFO_PRIVATE, &slot);
        char reason[CURL_ERROR_SIZE];
        stk_http_end end = stk_http_slot_end(slot, code, reason, sizeof reason);
        h->answered = h->answered || slot->request->answer.status != 0;
        finish(detach(h, slot), end, reason);
    }
}

/* Takes up what was handed over. False: it is over. */
static bool take_over(stk_http *h) {
    pthread_mutex_lock(&h->lock);
    stk_http_request *first = h->first;
    stk_http_request *last = h->last;
    bool cancel = h->cancel;
    bool quit = h->quit;
    h->first = NULL;
    h->cancel = false;
    pthread_mutex_unlock(&h->lock);
    if (first != NULL) {
        *(h->waiting_first != NULL ? &h->waiting_last->next : &h->waiting_first) = first;
        h->waiting_last = last;
    }
    if (cancel) {
        cancel_marked(h);
    }
    start_waiting(h);
    return !quit;
}

static int wait_ms(const stk_http *h) {
    int64_t until_ns = h->timer_ns;
    if (h->waiting_first != NULL && h->in_flight < h->most && !h->answered) {
        int64_t bold_ns = h->first_ns + FIRST_NS;
        until_ns = until_ns < 0 || bold_ns < until_ns ? bold_ns : until_ns;
    }
    if (h->crowded) { /* another engine may have the room: it does not tell */
        int64_t look_ns = stk_clock_ns() + CROWDED_NS;
        until_ns = until_ns < 0 || look_ns < until_ns ? look_ns : until_ns;
    }
    if (until_ns < 0) {
        return -1;
    }
    int64_t left_ns = until_ns - stk_clock_ns();
    return left_ns > 0 ? (int)((left_ns + NS_PER_MS - 1) / NS_PER_MS) : 0;
}

/* Waits for sockets, the timer or somebody's request, and lets libcurl work. */
static void work_once(stk_http *h) {
    struct epoll_event events[EVENTS_AT_ONCE];
    int timeout_ms = wait_ms(h);
    pthread_mutex_lock(&h->lock);
    bool more = h->first != NULL || h->cancel || h->quit;
    h->awake = more;
    pthread_mutex_unlock(&h->lock);
    int count = epoll_wait(h->epoll_fd, events, EVENTS_AT_ONCE, more ? 0 : timeout_ms);
    pthread_mutex_lock(&h->lock);
    h->awake = true;
    pthread_mutex_unlock(&h->lock);
    for (int i = 0; i < count; i++) {
        if (events[i].data.fd == h->wake_fd) {
            uint64_t times;
            (void)(read(h->wake_fd, &times, sizeof times) < 0);
            continue;
        }
        int what = ((events[i].events & EPOLLIN) != 0 ? CURL_CSELECT_IN : 0) |
                   ((events[i].events & EPOLLOUT) != 0 ? CURL_CSELECT_OUT : 0) |
                   ((events[i].events & (EPOLLERR | EPOLLHUP)) != 0 ? CURL_CSELECT_ERR : 0);
        act(h, events[i].data.fd, what);
    }
    if (h->timer_ns >= 0 && stk_clock_ns() >= h->timer_ns) {
        h->timer_ns = -1;
        act(h, CURL_SOCKET_TIMEOUT, 0);
    }
    collect(h);
    if (h->lost_track) {
        end_all(h);
    }
}

static void *run(void *argument) {
    stk_http *h = argument;
    sigset_t pipes; /* TLS libraries write to connections that are gone */
    sigemptyset(&pipes);
    sigaddset(&pipes, SIGPIPE);
    pthread_sigmask(SIG_BLOCK, &pipes, NULL);
    while (take_over(h)) {
        work_once(h);
    }
    return NULL;
}

/* Under the lock. */
static void wake(stk_http *h) {
    if (!h->awake) {
        uint64_t once = 1;
        h->awake = true;
        (void)(write(h->wake_fd, &once, sizeof once) < 0);
    }
}

/* ---- public ---- */

/* A connection is an open file: a part of the descriptors is for them, the others for others. */
static int limit_connections(int wanted, int engines) {
    return stk_machine_files(wanted, STK_FILES_SHARE * (engines > 0 ? engines : 1));
}

static void destroy(stk_http *h) {
    for (int i = 0; i < h->slot_count; i++) {
        stk_http_slot_free(h->slots[i]);
    }
    if (h->multi != NULL) {
        (void)curl_multi_cleanup(h->multi);
    }
    if (h->wake_fd >= 0) {
        close(h->wake_fd);
    }
    if (h->epoll_fd >= 0) {
        close(h->epoll_fd);
    }
    pthread_mutex_destroy(&h->lock);
    stk_mem_free(h->ca_bundle);
    stk_mem_free(h->slots);
    stk_mem_free(h);
}

stk_status stk_http_open(stk_http **http, const stk_http_config *config, stk_error *err) {
    stk_status status = stk_http_init(err);
    if (status != STK_OK) {
        return status;
    }
    stk_http *h = stk_mem_new(1, sizeof *h);
    if (h == NULL) {
        return STK_FAIL_MEMORY(err, "requests");
    }
    pthread_mutex_init(&h->lock, NULL);
    h->most = limit_connections(config->most_connections, config->engines);
    h->connect_timeout_ms = (long)(config->connect_timeout_s * MS_PER_S);
    h->room = config->room != NULL ? config->room : &h->own_room;
    h->timer_ns = -1;
    h->epoll_fd = stk_epoll_fd();
    h->wake_fd = stk_event_fd();
    if (h->epoll_fd < 0 || h->wake_fd < 0) {
        status =
            STK_FAIL(err, STK_ERR_DEVICE,
                     "cannot make requests: %s; allow this process more open files (ulimit -n)",
                     strerror(errno));
        destroy(h);
        return status;
    }
    struct epoll_event waking = {.events = EPOLLIN, .data.fd = h->wake_fd};
    h->slots = stk_mem_new((size_t)h->most, sizeof *h->slots);
    h->ca_bundle = config->ca_bundle != NULL ? stk_mem_strdup(config->ca_bundle) : NULL;
    if (h->slots == NULL || (config->ca_bundle != NULL && h->ca_bundle == NULL) ||
        epoll_ctl(h->epoll_fd, EPOLL_CTL_ADD, h->wake_fd, &waking) != 0 || !make_multi(h)) {
        destroy(h);
        return STK_FAIL_MEMORY(err, "requests");
    }
    const stk_thread_config asking = {.what = "makes requests"};
    status = stk_thread_start(&h->thread, &asking, run, h, err);
    if (status != STK_OK) {
        destroy(h);
        return status;
    }
    *http = h;
    return STK_OK;
}

void stk_http_close(stk_http *h) {
    if (h == NULL) {
        return;
    }
    pthread_mutex_lock(&h->lock);
    h->quit = true;
    wake(h);
    pthread_mutex_unlock(&h->lock);
    pthread_join(h->thread, NULL);
    destroy(h);
}

void stk_http_begin(stk_http *h, stk_http_request *request) {
    request->slot = NULL;
    request->bytes->size = 0;
    request->reason[0] = '\0';
    memset(&request->answer, 0, sizeof request->answer);
    atomic_store(&request->cancelled, false);
    pthread_mutex_lock(&h->lock);
    append(&h->first, &h->last, request);
    wake(h);
    pthread_mutex_unlock(&h->lock);
}

void stk_http_cancel(stk_http *h, stk_http_request *request) {
    atomic_store(&request->cancelled, true);
    pthread_mutex_lock(&h->lock);
    h->cancel = true;
    wake(h);
    pthread_mutex_unlock(&h->lock);
}

int stk_http_most(const stk_http *h) {
    return h->most;
}

#endif
