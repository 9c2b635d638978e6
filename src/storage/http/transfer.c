/* transfer.c - libcurl's callbacks for one transfer, and the sizes that they let through. */
#include "storage/http/transfer.h"

#ifdef STK_HAVE_S3

#include <fcntl.h>
#include <stdio.h>
#include <string.h>

#include "base/mem.h"
#include "storage/http/blocking.h"
#include "storage/http/response.h"

#define MS_PER_S 1000.0

/* What errors say in their bodies is short; the transfer of more of it is ended. */
#define ERROR_BODY_BYTES ((size_t)64 * 1024)

/* libcurl's buffer per transfer: fewer system calls for large objects. */
#define BUFFER_BYTES 65536L

/* ---- what libcurl calls ---- */

static size_t take_head(char *line, size_t one, size_t size, void *user) {
    http_slot *slot = user;
    (void)one;
    slot->head_bytes += size;
    slot->too_long = slot->head_bytes > STK_HTTP_HEAD_MAX;
    if (slot->too_long) {
        return 0;
    }
    stk_http_head_line(&slot->request->answer, line, size);
    return size;
}

/*
 * Room for a piece of the body: for all of the body at once where its length is told. What is more
 * than was expected is taken from the room of all.
 */
static bool make_room(http_slot *slot, size_t size) {
    const stk_http_request *request = slot->request;
    const stk_http_head *answer = &request->answer;
    stk_bytes *bytes = request->bytes;
    size_t need = bytes->size + size + 1;
    bool good = answer->status / 100 == 2; /* of others only the beginning is kept */
    if (good && bytes->size == 0 && answer->has_length && answer->length < request->limit_bytes) {
        size_t told = (size_t)answer->length + 1;
        need = told > need ? told : need;
    } else if (need > bytes->capacity && need < 2 * bytes->capacity) {
        size_t twice = 2 * bytes->capacity;
        need = twice < request->limit_bytes ? twice : request->limit_bytes + 1;
    }
    if (need > slot->held) {
        slot->no_room = !stk_http_room_take(slot->room, slot->held, need - slot->held);
        slot->held = slot->no_room ? slot->held : need;
    }
    slot->no_memory = !slot->no_room && !stk_bytes_reserve(bytes, need);
    return !slot->no_room && !slot->no_memory;
}

/* The first piece has come: how many bytes may come. */
static void begin_body(http_slot *slot) {
    stk_http_request *request = slot->request;
    slot->has_body = true;
    request->limit_bytes = request->limit != NULL && request->answer.status / 100 == 2
                               ? request->limit(request)
                               : request->max_bytes;
}

static size_t take_body(char *piece, size_t one, size_t size, void *user) {
    http_slot *slot = user;
    stk_http_request *request = slot->request;
    stk_bytes *bytes = request->bytes;
    (void)one;
    if (!slot->has_body) {
        begin_body(slot);
    }
    bool good = request->answer.status / 100 == 2;
    slot->cut_short = !good && bytes->size + size > ERROR_BODY_BYTES;
    slot->too_large =
        good && (bytes->size + size > request->limit_bytes ||
                 (request->answer.has_length && request->answer.length > request->limit_bytes));
    if (slot->cut_short || slot->too_large || !make_room(slot, size)) {
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

/* Programs that are started meanwhile, to ask for credentials say, must not keep connections. */
static int mark_socket(void *user, curl_socket_t fd, curlsocktype purpose) {
    (void)user;
    (void)purpose;
    (void)fcntl(fd, F_SETFD, FD_CLOEXEC);
    return CURL_SOCKOPT_OK;
}

/* ---- handles ---- */

/* What all requests of a handle share. */
static bool prepare_handle(const stk_http_slot_config *config, http_slot *slot) {
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
    SET(CURLOPT_CONNECTTIMEOUT_MS, config->connect_timeout_ms);
    SET(CURLOPT_USERAGENT, "stoker/" STK_VERSION);
#if LIBCURL_VERSION_NUM >= 0x075500
    SET(CURLOPT_PROTOCOLS_STR, "http,https");
#else
    SET(CURLOPT_PROTOCOLS, (long)(CURLPROTO_HTTP | CURLPROTO_HTTPS));
#endif
#if LIBCURL_VERSION_NUM >= 0x075700
    SET(CURLOPT_QUICK_EXIT, 1L); /* a name that is still looked up must not hold up a cancel */
#endif
    if (config->ca_bundle != NULL) {
        SET(CURLOPT_CAINFO, config->ca_bundle);
    }
#undef SET
    return code == CURLE_OK;
}

http_slot *stk_http_slot_new(const stk_http_slot_config *config) {
    http_slot *slot = stk_mem_new(1, sizeof *slot);
    if (slot == NULL) {
        return NULL;
    }
    slot->room = config->room;
    slot->easy = curl_easy_init();
    if (slot->easy == NULL || !prepare_handle(config, slot)) {
        stk_http_slot_free(slot);
        return NULL;
    }
    return slot;
}

void stk_http_slot_free(http_slot *slot) {
    curl_easy_cleanup(slot->easy);
    stk_mem_free(slot);
}

/* ---- requests ---- */

bool stk_http_slot_set(http_slot *slot, stk_http_request *request) {
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
    slot->held = request->expected_bytes;
    slot->head_bytes = 0;
    slot->has_body = false;
    slot->too_long = false;
    slot->too_large = false;
    slot->cut_short = false;
    slot->no_room = false;
    slot->no_memory = false;
    slot->reason[0] = '\0';
    return code == CURLE_OK;
}

/* A callback has told libcurl to end the transfer. */
static stk_http_end end_by_us(const http_slot *slot) {
    return slot->too_long    ? STK_HTTP_BAD_HEAD
           : slot->too_large ? STK_HTTP_TOO_LARGE
           : slot->cut_short ? STK_HTTP_ANSWERED
           : slot->no_room   ? STK_HTTP_NO_ROOM
                             : STK_HTTP_NO_MEMORY;
}

static stk_http_end end_of(const http_slot *slot, CURLcode code) {
    if (stk_http_is_long_head(slot->easy, (int)code)) {
        return STK_HTTP_BAD_HEAD;
    }
    switch (code) {
    case CURLE_OK:
        return STK_HTTP_ANSWERED;
    case CURLE_PARTIAL_FILE:
        return STK_HTTP_CUT_OFF;
    case CURLE_WRITE_ERROR:
        return end_by_us(slot);
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

stk_http_end stk_http_slot_end(const http_slot *slot, CURLcode code, char *reason, size_t size) {
    stk_http_end end = end_of(slot, code);
    const char *words = slot->reason[0] != '\0' ? slot->reason : curl_easy_strerror(code);
    snprintf(reason, size, "%s", end == STK_HTTP_ANSWERED ? "" : words);
    return end;
}

stk_http_request *stk_http_slot_clear(http_slot *slot) {
    stk_http_request *request = slot->request;
    stk_http_room_give(slot->room, slot->held);
    slot->held = 0;
    slot->request = NULL;
    return request;
}

#endif
