/*
 * http.c - one thread around libcurl's multi interface.
 *
 * The thread waits with epoll and hands libcurl only the sockets that something happened on: with
 * hundreds of requests in flight the other way, in which libcurl looks at all of them each time,
 * costs a multiple. Easy handles keep their options and connections stay open, so that a request
 * costs an address, a list of headers that stands in the handle's own slot, and the bytes.
 */
#include "storage/http.h"

#ifdef STK_HAVE_S3

#include <curl/curl.h>
#include <errno.h>
#include <fcntl.h>
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
#include "base/thread.h"
#include "storage/http_easy.h"
#include "storage/http_head.h"

#define NS_PER_MS 1000000
#define MS_PER_S 1000.0

/* What errors say in their bodies is short; more of it is dropped. */
#define ERROR_BODY_BYTES ((size_t)64 * 1024)

/* libcurl's buffer per transfer: fewer system calls for large objects. */
#define BUFFER_BYTES 65536L

/*
 * Before anything has come from the host, each request would look up its name in a thread of its
 * own: the first few go ahead alone, but for no longer than this.
 */
#define FIRST_REQUESTS 8
#define FIRST_NS ((int64_t)1000 * NS_PER_MS)

#define EVENTS_AT_ONCE 64

/* An easy handle and what it works on. */
typedef struct http_slot {
    CURL *easy;
    stk_http_request *request;                     /* NULL: free */
    struct curl_slist nodes[STK_HTTP_HEADERS_MAX]; /* the request's headers as libcurl wants them */
    long timeout_ms;                               /* as the handle has it now */
    bool too_large;
    bool no_memory;
    struct http_slot *next_free;
    char reason[CURL_ERROR_SIZE];
} http_slot;

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
    CURLM *multi;
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
};

static void append(stk_http_request **first, stk_http_request **last, stk_http_request *request) {
    request->next = NULL;
    *(*first != NULL ? &(*last)->next : first) = request;
    *last = request;
}

/* ---- what libcurl calls ---- */

static size_t take_head(char *line, size_t one, size_t size, void *user) {
    http_slot *slot = user;
    (void)one;
    stk_http_head_line(&slot->request->answer, line, size);
    return size;
}

/* Room for the body: all of it at once where its length is told. */
static bool make_room(http_slot *slot, size_t size) {
    const stk_http_request *request = slot->request;
    stk_bytes *bytes = request->bytes;
    size_t need = bytes->size + size + 1;
    bool good = request->answer.status / 100 == 2; /* of others only the beginning is kept */
    if (good && bytes->size == 0 && request->answer.has_length &&
        request->answer.length < request->max_bytes) {
        size_t told = (size_t)request->answer.length + 1;
        need = told > need ? told : need;
    } else if (need > bytes->capacity && need < 2 * bytes->capacity) {
        need = 2 * bytes->capacity;
    }
    slot->no_memory = !stk_bytes_reserve(bytes, need);
    return !slot->no_memory;
}

static size_t take_body(char *piece, size_t one, size_t size, void *user) {
    http_slot *slot = user;
    stk_http_request *request = slot->request;
    stk_bytes *bytes = request->bytes;
    (void)one;
    bool good = request->answer.status / 100 == 2;
    if (!good && bytes->size + size > ERROR_BODY_BYTES) {
        return size;
    }
    slot->too_large =
        good && (bytes->size + size > request->max_bytes ||
                 (request->answer.has_length && request->answer.length > request->max_bytes));
    if (slot->too_large || !make_room(slot, size)) {
        return 0;
    }
    memcpy(bytes->data + bytes->size, piece, size);
    bytes->size += size;
    bytes->data[bytes->size] = '\0';
    if (good && request->received != NULL) {
        request->received(request, bytes->data + bytes->size - size, size);
    }
    return size;
}

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
    if (epoll_ctl(h->epoll_fd, known != NULL ? EPOLL_CTL_MOD : EPOLL_CTL_ADD, fd, &event) != 0 &&
        (errno == ENOENT || errno == EEXIST)) {
        (void)epoll_ctl(h->epoll_fd, errno == ENOENT ? EPOLL_CTL_ADD : EPOLL_CTL_MOD, fd, &event);
    }
    return 0;
}

/* Programs that are started meanwhile, to ask for credentials say, must not keep connections. */
static int mark_socket(void *user, curl_socket_t fd, curlsocktype purpose) {
    (void)user;
    (void)purpose;
    (void)fcntl(fd, F_SETFD, FD_CLOEXEC);
    return CURL_SOCKOPT_OK;
}

static int set_timer(CURLM *multi, long timeout_ms, void *user) {
    stk_http *h = user;
    (void)multi;
    h->timer_ns = timeout_ms >= 0 ? stk_clock_ns() + (int64_t)timeout_ms * NS_PER_MS : -1;
    return 0;
}

/* ---- handles ---- */

/* What all requests of a handle share. */
static bool prepare_handle(const stk_http *h, http_slot *slot) {
    CURL *easy = slot->easy;
    CURLcode code = CURLE_OK;
#define SET(option, value) code = code == CURLE_OK ? curl_easy_setopt(easy, option, value) : code
    SET(CURLOPT_PRIVATE, slot);
    SET(CURLOPT_ERRORBUFFER, slot->reason);
    SET(CURLOPT_HEADERFUNCTION, take_head);
    SET(CURLOPT_HEADERDATA, slot);
    SET(CURLOPT_WRITEFUNCTION, take_body);
    SET(CURLOPT_WRITEDATA, slot);
    SET(CURLOPT_SOCKOPTFUNCTION, mark_socket);
    SET(CURLOPT_NOSIGNAL, 1L);
    SET(CURLOPT_NOPROGRESS, 1L);
    SET(CURLOPT_HTTP_VERSION, (long)CURL_HTTP_VERSION_1_1);
    SET(CURLOPT_PATH_AS_IS, 1L);
    SET(CURLOPT_FOLLOWLOCATION, 0L);
    SET(CURLOPT_TCP_NODELAY, 1L);
    SET(CURLOPT_TCP_KEEPALIVE, 1L);
    SET(CURLOPT_DNS_SHUFFLE_ADDRESSES, 1L);
    SET(CURLOPT_BUFFERSIZE, BUFFER_BYTES);
    SET(CURLOPT_CONNECTTIMEOUT_MS, h->connect_timeout_ms);
    SET(CURLOPT_USERAGENT, "stoker/" STK_VERSION);
#if LIBCURL_VERSION_NUM >= 0x075500
    SET(CURLOPT_PROTOCOLS_STR, "http,https");
#else
    SET(CURLOPT_PROTOCOLS, (long)(CURLPROTO_HTTP | CURLPROTO_HTTPS));
#endif
#if LIBCURL_VERSION_NUM >= 0x075700
    SET(CURLOPT_QUICK_EXIT, 1L); /* a name that is still looked up must not hold up a cancel */
#endif
    if (h->ca_bundle != NULL) {
        SET(CURLOPT_CAINFO, h->ca_bundle);
    }
#undef SET
    return code == CURLE_OK;
}

/* A free handle, or NULL without memory. */
static http_slot *take_slot(stk_http *h) {
    http_slot *slot = h->free_slots;
    if (slot != NULL) {
        h->free_slots = slot->next_free;
        return slot;
    }
    slot = stk_mem_new(1, sizeof *slot);
    if (slot == NULL) {
        return NULL;
    }
    slot->easy = curl_easy_init();
    if (slot->easy == NULL || !prepare_handle(h, slot)) {
        curl_easy_cleanup(slot->easy);
        stk_mem_free(slot);
        return NULL;
    }
    h->slots[h->slot_count++] = slot;
    return slot;
}

static void give_slot(stk_http *h, http_slot *slot) {
    slot->request = NULL;
    slot->next_free = h->free_slots;
    h->free_slots = slot;
}

/* ---- the thread's work ---- */

static void finish(stk_http_request *request, stk_http_end end, const char *reason) {
    request->end = end;
    snprintf(request->reason, sizeof request->reason, "%s", reason);
    request->done(request);
}

static bool set_request(http_slot *slot, stk_http_request *request) {
    struct curl_slist *list = NULL;
    for (size_t i = request->header_count; i-- > 0;) {
        slot->nodes[i] =
            (struct curl_slist){.data = (char *)(uintptr_t)request->headers[i], .next = list};
        list = &slot->nodes[i];
    }
    long timeout_ms = (long)(request->timeout_s * MS_PER_S);
    CURLcode code = curl_easy_setopt(slot->easy, CURLOPT_URL, request->url);
    if (code == CURLE_OK) {
        code = curl_easy_setopt(slot->easy, CURLOPT_HTTPHEADER, list);
    }
    if (code == CURLE_OK && timeout_ms != slot->timeout_ms) {
        code = curl_easy_setopt(slot->easy, CURLOPT_TIMEOUT_MS, timeout_ms);
        slot->timeout_ms = timeout_ms;
    }
    slot->request = request;
    slot->too_large = false;
    slot->no_memory = false;
    slot->reason[0] = '\0';
    return code == CURLE_OK;
}

static void start(stk_http *h, stk_http_request *request) {
    http_slot *slot = take_slot(h);
    if (slot == NULL) {
        finish(request, STK_HTTP_NO_MEMORY, "out of memory");
        return;
    }
    int64_t now_ns = stk_clock_ns();
    h->first_ns = h->first_ns != 0 ? h->first_ns : now_ns;
    if (!set_request(slot, request) || curl_multi_add_handle(h->multi, slot->easy) != CURLM_OK) {
        give_slot(h, slot);
        finish(request, STK_HTTP_NO_MEMORY, "out of memory");
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
    while (h->waiting_first != NULL && h->in_flight < allowed(h)) {
        stk_http_request *request = h->waiting_first;
        h->waiting_first = request->next;
        start(h, request);
    }
}

/* Takes a request off its handle, which is free afterwards. */
static stk_http_request *detach(stk_http *h, http_slot *slot) {
    stk_http_request *request = slot->request;
    (void)curl_multi_remove_handle(h->multi, slot->easy);
    request->slot = NULL;
    h->in_flight--;
    give_slot(h, slot);
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

static stk_http_end end_of(const http_slot *slot, CURLcode code) {
    switch (code) {
    case CURLE_OK:
        return STK_HTTP_ANSWERED;
    case CURLE_PARTIAL_FILE:
        return STK_HTTP_CUT_OFF;
    case CURLE_WRITE_ERROR:
        return slot->too_large ? STK_HTTP_TOO_LARGE : STK_HTTP_NO_MEMORY;
    case CURLE_OUT_OF_MEMORY:
        return STK_HTTP_NO_MEMORY;
    case CURLE_PEER_FAILED_VERIFICATION:
    case CURLE_SSL_ISSUER_ERROR:
        return STK_HTTP_UNTRUSTED;
    case CURLE_SSL_CACERT_BADFILE:
    case CURLE_SSL_ENGINE_NOTFOUND:
    case CURLE_UNSUPPORTED_PROTOCOL:
    case CURLE_URL_MALFORMAT:
    case CURLE_FAILED_INIT:
    case CURLE_NOT_BUILT_IN:
        return STK_HTTP_IMPOSSIBLE;
    default:
        return STK_HTTP_NO_ANSWER;
    }
}

/* Tells of all transfers that libcurl has ended. */
static void collect(stk_http *h) {
    int left;
    for (CURLMsg *message; (message = curl_multi_info_read(h->multi, &left)) != NULL;) {
        if (message->msg != CURLMSG_DONE) {
            continue;
        }
        http_slot *slot = NULL;
        CURLcode code = message->data.result; /* gone once the handle is removed */
        (void)curl_easy_getinfo(message->easy_handle, CURLINFO_PRIVATE, &slot);
        stk_http_end end = end_of(slot, code);
        h->answered = h->answered || slot->request->answer.status != 0;
        char reason[CURL_ERROR_SIZE];
        snprintf(reason, sizeof reason, "%s",
                 slot->reason[0] != '\0' ? slot->reason : curl_easy_strerror(code));
        finish(detach(h, slot), end, end == STK_HTTP_ANSWERED ? "" : reason);
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
    if (until_ns < 0) {
        return -1;
    }
    int64_t left_ns = until_ns - stk_clock_ns();
    return left_ns > 0 ? (int)((left_ns + NS_PER_MS - 1) / NS_PER_MS) : 0;
}

/* Waits for sockets, the timer or somebody's request, and lets libcurl work. */
static void work_once(stk_http *h) {
    struct epoll_event events[EVENTS_AT_ONCE];
    int running;
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
        (void)curl_multi_socket_action(h->multi, events[i].data.fd, what, &running);
    }
    if (h->timer_ns >= 0 && stk_clock_ns() >= h->timer_ns) {
        h->timer_ns = -1;
        (void)curl_multi_socket_action(h->multi, CURL_SOCKET_TIMEOUT, 0, &running);
    }
    collect(h);
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

static bool prepare_multi(stk_http *h) {
    struct epoll_event event = {.events = EPOLLIN, .data.fd = h->wake_fd};
    return h->multi != NULL && h->epoll_fd >= 0 && h->wake_fd >= 0 &&
           curl_multi_setopt(h->multi, CURLMOPT_SOCKETFUNCTION, watch_socket) == CURLM_OK &&
           curl_multi_setopt(h->multi, CURLMOPT_SOCKETDATA, h) == CURLM_OK &&
           curl_multi_setopt(h->multi, CURLMOPT_TIMERFUNCTION, set_timer) == CURLM_OK &&
           curl_multi_setopt(h->multi, CURLMOPT_TIMERDATA, h) == CURLM_OK &&
           curl_multi_setopt(h->multi, CURLMOPT_PIPELINING, (long)CURLPIPE_NOTHING) == CURLM_OK &&
           curl_multi_setopt(h->multi, CURLMOPT_MAXCONNECTS, (long)h->most) == CURLM_OK &&
           epoll_ctl(h->epoll_fd, EPOLL_CTL_ADD, h->wake_fd, &event) == 0;
}

static void destroy(stk_http *h) {
    for (int i = 0; i < h->slot_count; i++) {
        curl_easy_cleanup(h->slots[i]->easy);
        stk_mem_free(h->slots[i]);
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
    h->timer_ns = -1;
    h->epoll_fd = stk_epoll_fd();
    h->wake_fd = stk_event_fd();
    h->multi = curl_multi_init();
    if (h->epoll_fd < 0 || h->wake_fd < 0) {
        status =
            STK_FAIL(err, STK_ERR_DEVICE,
                     "cannot make requests: %s; allow this process more open files (ulimit -n)",
                     strerror(errno));
        destroy(h);
        return status;
    }
    h->slots = stk_mem_new((size_t)h->most, sizeof *h->slots);
    h->ca_bundle = config->ca_bundle != NULL ? stk_mem_strdup(config->ca_bundle) : NULL;
    if (h->slots == NULL || (config->ca_bundle != NULL && h->ca_bundle == NULL) ||
        !prepare_multi(h)) {
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
