/*
 * transfer.c - libcurl's callbacks for one transfer, and the sizes that they let through.
 *
 * A callback that sees too much writes the transfer's result and returns 0, which makes libcurl end
 * the transfer with CURLE_WRITE_ERROR.
 */
#ifdef STK_HAVE_S3

#include "storage/http/transfer.h"

#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/error.h"
#include "base/mem.h"

#define MS_PER_S 1000.0

/* Error bodies are short. A longer one is cut off here; its beginning is all that is used. */
#define ERROR_BODY_BYTES ((size_t)64 * 1024)

/* libcurl's buffer per transfer: fewer system calls for large objects. */
#define BUFFER_BYTES 65536L

/* More than the longest header line that libcurl accepts. */
#define LONGEST_LINE_BYTES ((size_t)1 << 20)

/* ---- libcurl, once per process ---- */

/*
 * Global state, because libcurl's own initialisation is global. It is written once, under
 * pthread_once, and never undone: other parts of the process may use libcurl.
 */
static pthread_once_t curl_once = PTHREAD_ONCE_INIT;
static CURLcode curl_ready;

static void init_curl(void) {
    curl_ready = curl_global_init(CURL_GLOBAL_DEFAULT);
}

stk_status stk_http_init(stk_error *err) {
    if (pthread_once(&curl_once, init_curl) != 0 || curl_ready != CURLE_OK) {
        return STK_FAIL(err, STK_ERR_INTERNAL, "libcurl cannot be started: %s",
                        curl_easy_strerror(curl_ready));
    }
    return STK_OK;
}

/* ---- memory that transfers share ---- */

bool stk_http_memory_take(stk_http_memory *memory, uint64_t held, uint64_t bytes) {
    if (memory == NULL) {
        return true;
    }
    uint64_t limit = atomic_load(&memory->limit);
    unsigned long long used = atomic_load(&memory->used);
    do {
        bool alone = used == held;
        bool fits = used <= limit && bytes <= limit - used;
        if (limit > 0 && !alone && !fits) {
            return false;
        }
    } while (!atomic_compare_exchange_weak(&memory->used, &used, used + bytes));
    return true;
}

void stk_http_memory_give(stk_http_memory *memory, uint64_t bytes) {
    if (memory != NULL) {
        atomic_fetch_sub(&memory->used, bytes);
    }
}

/* ---- callbacks of libcurl ---- */

/* Ends the transfer from inside a callback. */
static size_t refuse(stk_http_transfer *t, stk_http_result result) {
    t->result = result;
    return 0;
}

static size_t take_header(char *line, size_t one, size_t size, void *user) {
    stk_http_transfer *t = user;
    (void)one; /* always 1 */
    t->header_bytes += size;
    if (t->header_bytes > STK_HTTP_HEADER_BYTES_MAX) {
        return refuse(t, STK_HTTP_BAD_HEADERS);
    }
    stk_http_response_line(&t->response, line, size);
    return size;
}

static bool is_good(const stk_http_transfer *t) {
    return t->response.status / 100 == 2;
}

/* How many bytes the body may have, now that the response's headers are known. */
static size_t body_limit(const stk_http_transfer *t) {
    const stk_http_response *response = &t->response;
    uint64_t bytes = t->max_bytes;
    if (!is_good(t)) {
        return t->max_bytes;
    }
    if (t->part_bytes > 0 && response->status == 206) {
        bytes = t->part_bytes;
    } else if (t->known_etag != NULL) {
        bool announced =
            response->has_length && stk_http_response_is_changed(response, t->known_etag);
        bytes = announced ? response->length : t->known_bytes;
    }
    return bytes < t->max_bytes ? (size_t)bytes : t->max_bytes;
}

/*
 * Reserves memory for a piece of the body: for all of the body at once where its length is known.
 * Bytes beyond the expected ones are taken from the shared memory first.
 */
static bool reserve_body(stk_http_transfer *t, size_t size) {
    const stk_http_response *response = &t->response;
    stk_bytes *body = &t->body;
    size_t need = body->size + size + 1;
    if (is_good(t) && body->size == 0 && response->has_length &&
        response->length < t->limit_bytes) {
        size_t announced = (size_t)response->length + 1;
        need = announced > need ? announced : need;
    } else if (need > body->capacity && need < 2 * body->capacity) {
        size_t twice = 2 * body->capacity;
        need = twice < t->limit_bytes ? twice : t->limit_bytes + 1;
    }
    if (need > t->held_bytes) {
        if (!stk_http_memory_take(t->memory, t->held_bytes, need - t->held_bytes)) {
            t->result = STK_HTTP_OVER_MEMORY;
            return false;
        }
        t->held_bytes = need;
    }
    if (!stk_bytes_reserve(body, need)) {
        t->result = STK_HTTP_NO_MEMORY;
        return false;
    }
    return true;
}

static void begin_body(stk_http_transfer *t) {
    t->has_body = true;
    t->limit_bytes = body_limit(t);
    t->hashed = t->hash_body && t->response.status == 200 && !t->response.user_encrypted &&
                stk_http_response_has_md5(&t->response);
    if (t->hashed) {
        stk_md5_begin(&t->md5);
    }
}

static size_t take_body(char *piece, size_t one, size_t size, void *user) {
    stk_http_transfer *t = user;
    stk_bytes *body = &t->body;
    (void)one; /* always 1 */
    if (!t->has_body) {
        begin_body(t);
    }
    bool good = is_good(t);
    if (!good && body->size + size > ERROR_BODY_BYTES) {
        return refuse(t, STK_HTTP_ANSWERED);
    }
    if (good && (body->size + size > t->limit_bytes ||
                 (t->response.has_length && t->response.length > t->limit_bytes))) {
        return refuse(t, STK_HTTP_TOO_LARGE);
    }
    if (!reserve_body(t, size)) {
        return 0;
    }
    memcpy(body->data + body->size, piece, size);
    if (good && t->heard_ns != NULL) {
        atomic_store(t->heard_ns, stk_clock_ns());
    }
    if (t->hashed) {
        stk_md5_add(&t->md5, body->data + body->size, size);
    }
    body->size += size;
    body->data[body->size] = '\0';
    return size;
}

/* Programs that are started meanwhile (credential_process) must not inherit connections. */
static int mark_socket(void *user, curl_socket_t fd, curlsocktype purpose) {
    (void)user;
    (void)purpose;
    (void)fcntl(fd, F_SETFD, FD_CLOEXEC);
    return CURL_SOCKOPT_OK;
}

/* ---- handles ---- */

/* Options that stay the same for all requests of a handle. */
static bool configure_handle(stk_http_transfer *t, const stk_http_connect *connect) {
    CURL *easy = t->easy;
    CURLcode code = CURLE_OK;
#define SET(option, value) code = code == CURLE_OK ? curl_easy_setopt(easy, option, value) : code
    SET(CURLOPT_PRIVATE, t);
    SET(CURLOPT_ERRORBUFFER, t->reason);
    SET(CURLOPT_HEADERFUNCTION, take_header);
    SET(CURLOPT_HEADERDATA, t);
    SET(CURLOPT_WRITEFUNCTION, take_body);
    SET(CURLOPT_WRITEDATA, t);
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
    SET(CURLOPT_CONNECTTIMEOUT_MS, (long)(connect->timeout_s * MS_PER_S));
    SET(CURLOPT_USERAGENT, "stoker/" STK_VERSION);
#if LIBCURL_VERSION_NUM >= 0x075500
    SET(CURLOPT_PROTOCOLS_STR, "http,https");
#else
    SET(CURLOPT_PROTOCOLS, (long)(CURLPROTO_HTTP | CURLPROTO_HTTPS));
#endif
#if LIBCURL_VERSION_NUM >= 0x075700
    SET(CURLOPT_QUICK_EXIT, 1L); /* a name lookup must not hold up a cancel */
#endif
    if (connect->ca_bundle != NULL) {
        SET(CURLOPT_CAINFO, connect->ca_bundle);
    }
    if (connect->no_proxy) {
        SET(CURLOPT_PROXY, "");
    }
    if (t->method != NULL) {
        SET(CURLOPT_POSTFIELDS, "");
        SET(CURLOPT_CUSTOMREQUEST, t->method);
    }
#undef SET
    return code == CURLE_OK;
}

static bool make_handle(stk_http_transfer *t, const stk_http_connect *connect) {
    t->easy = curl_easy_init();
    if (t->easy != NULL && !configure_handle(t, connect)) {
        curl_easy_cleanup(t->easy);
        t->easy = NULL;
    }
    return t->easy != NULL;
}

void stk_http_transfer_reset(stk_http_transfer *t) {
    t->result = STK_HTTP_NO_MEMORY; /* the only write error of libcurl's that no callback causes */
    t->body.size = 0;
    t->limit_bytes = 0;
    t->header_bytes = 0;
    t->has_body = false;
    t->hashed = false;
    t->reason[0] = '\0';
    memset(&t->response, 0, sizeof t->response);
}

bool stk_http_transfer_prepare(stk_http_transfer *t, const stk_http_connect *connect,
                               stk_http_memory *memory) {
    t->memory = memory;
    t->held_bytes = t->expected_bytes;
    if (t->easy == NULL && !make_handle(t, connect)) {
        return false;
    }
    struct curl_slist *list = NULL;
    for (size_t i = t->header_count; i-- > 0;) {
        t->nodes[i] = (struct curl_slist){.data = (char *)(uintptr_t)t->headers[i], .next = list};
        list = &t->nodes[i];
    }
    return curl_easy_setopt(t->easy, CURLOPT_URL, t->url) == CURLE_OK &&
           curl_easy_setopt(t->easy, CURLOPT_HTTPHEADER, list) == CURLE_OK &&
           curl_easy_setopt(t->easy, CURLOPT_TIMEOUT_MS, (long)(t->timeout_s * MS_PER_S)) ==
               CURLE_OK;
}

/* ---- ends ---- */

/*
 * Whether libcurl ended the transfer because of an endless header line. libcurl before 8.6 reports
 * that as a lack of memory; if memory can be had, the line was the reason.
 */
static bool is_long_line(const stk_http_transfer *t, CURLcode code) {
#if LIBCURL_VERSION_NUM >= 0x080600
    if (code == CURLE_TOO_LARGE) {
        return true;
    }
#endif
    curl_off_t begun_us = 0;
    if (code != CURLE_OUT_OF_MEMORY ||
        curl_easy_getinfo(t->easy, CURLINFO_STARTTRANSFER_TIME_T, &begun_us) != CURLE_OK ||
        begun_us == 0) {
        return false;
    }
    void *block = stk_mem_raw(LONGEST_LINE_BYTES, 1);
    bool has_memory = block != NULL;
    stk_mem_free(block);
    return has_memory;
}

static stk_http_result result_of(const stk_http_transfer *t, CURLcode code) {
    if (is_long_line(t, code)) {
        return STK_HTTP_BAD_HEADERS;
    }
    switch (code) {
    case CURLE_OK:
        return STK_HTTP_ANSWERED;
    case CURLE_PARTIAL_FILE:
        return STK_HTTP_TRUNCATED;
    case CURLE_WRITE_ERROR:
        return t->result; /* a callback refused more */
    case CURLE_OUT_OF_MEMORY:
        return STK_HTTP_NO_MEMORY;
    case CURLE_PEER_FAILED_VERIFICATION:
    case CURLE_SSL_ISSUER_ERROR:
        return STK_HTTP_BAD_CERTIFICATE;
    case CURLE_SSL_CACERT_BADFILE:
    case CURLE_SSL_ENGINE_NOTFOUND:
    case CURLE_UNSUPPORTED_PROTOCOL:
    case CURLE_URL_MALFORMAT:
    case CURLE_FAILED_INIT:
    case CURLE_NOT_BUILT_IN:
        return STK_HTTP_BAD_SETTINGS;
    default:
        return STK_HTTP_NO_RESPONSE;
    }
}

void stk_http_transfer_set_result(stk_http_transfer *t, CURLcode code) {
    t->result = result_of(t, code);
    if (t->result == STK_HTTP_ANSWERED) {
        t->reason[0] = '\0';
    } else if (t->reason[0] == '\0') {
        snprintf(t->reason, sizeof t->reason, "%s", curl_easy_strerror(code));
    }
}

void stk_http_transfer_release(stk_http_transfer *t) {
    stk_http_memory_give(t->memory, t->held_bytes);
    t->held_bytes = 0;
}

void stk_http_transfer_free(stk_http_transfer *t) {
    if (t->body.data != NULL) {
        explicit_bzero(t->body.data, t->body.capacity);
    }
    stk_bytes_free(&t->body);
    curl_easy_cleanup(t->easy);
    t->easy = NULL;
}

/* ---- on the caller's thread ---- */

stk_status stk_http_transfer_perform(stk_http_transfer *t, const stk_http_connect *connect,
                                     stk_error *err) {
    stk_status status = stk_http_init(err);
    if (status != STK_OK) {
        return status;
    }
    stk_http_transfer_reset(t);
    if (!stk_bytes_reserve(&t->body, t->max_bytes + 1) ||
        !stk_http_transfer_prepare(t, connect, NULL)) {
        return STK_FAIL_MEMORY(err, "an HTTP request");
    }
    t->body.data[0] = '\0';
    CURLcode code = curl_easy_perform(t->easy);
    stk_http_transfer_set_result(t, code);
    switch (t->result) {
    case STK_HTTP_ANSWERED:
        return STK_OK;
    case STK_HTTP_TOO_LARGE:
        return STK_FAIL(err, STK_ERR_STORAGE, "the answer has more than %zu bytes", t->max_bytes);
    case STK_HTTP_BAD_HEADERS:
        return STK_FAIL(err, STK_ERR_STORAGE, "the head of the answer has more than %zu bytes",
                        STK_HTTP_HEADER_BYTES_MAX);
    case STK_HTTP_NO_MEMORY:
        return STK_FAIL_MEMORY(err, "an HTTP request");
    default: /* t->reason may name the host */
        return STK_FAIL(err, STK_ERR_STORAGE, "there was no answer: %s", curl_easy_strerror(code));
    }
}

#endif
