/* blocking.c - short blocking requests with libcurl's easy interface. */
#include "storage/http/blocking.h"

#ifdef STK_HAVE_S3

#include <curl/curl.h>
#include <pthread.h>
#include <stdbool.h>
#include <string.h>

#include "base/error.h"
#include "base/mem.h"
#include "storage/http/engine.h"

static pthread_once_t once = PTHREAD_ONCE_INIT;
static CURLcode ready; /* written once, by init_curl */

static void init_curl(void) {
    ready = curl_global_init(CURL_GLOBAL_DEFAULT);
}

stk_status stk_http_init(stk_error *err) {
    if (pthread_once(&once, init_curl) != 0 || ready != CURLE_OK) {
        return STK_FAIL(err, STK_ERR_INTERNAL, "libcurl cannot be started: %s",
                        curl_easy_strerror(ready));
    }
    return STK_OK;
}

/* More than the longest line of a head that libcurl takes. */
#define LINE_BYTES ((size_t)1 << 20)

bool stk_http_is_long_head(void *curl, int code) {
#if LIBCURL_VERSION_NUM >= 0x080600
    if (code == CURLE_TOO_LARGE) {
        return true;
    }
#endif
    curl_off_t begun_us = 0;
    if (code != CURLE_OUT_OF_MEMORY ||
        curl_easy_getinfo(curl, CURLINFO_STARTTRANSFER_TIME_T, &begun_us) != CURLE_OK ||
        begun_us == 0) {
        return false;
    }
    void *block = stk_mem_raw(LINE_BYTES, 1);
    bool has_memory = block != NULL;
    stk_mem_free(block);
    return has_memory;
}

/* An answer while it comes in; its room is there from the start, so that nothing is moved. */
typedef struct inbox {
    stk_http_answer *answer;
    size_t max_bytes;
    size_t head_bytes;
    bool overflow;
    bool long_head;
} inbox;

static size_t count_head(char *line, size_t size, size_t count, void *user) {
    inbox *in = user;
    (void)line;
    in->head_bytes += size * count;
    in->long_head = in->head_bytes > STK_HTTP_HEAD_MAX;
    return in->long_head ? 0 : size * count;
}

static size_t receive(char *data, size_t size, size_t count, void *user) {
    inbox *in = user;
    size_t bytes = size * count; /* size is 1, libcurl says */
    if (bytes > in->max_bytes - in->answer->size) {
        in->overflow = true;
        return 0;
    }
    memcpy(in->answer->body + in->answer->size, data, bytes);
    in->answer->size += bytes;
    in->answer->body[in->answer->size] = '\0';
    return bytes;
}

/* Headers may hold tokens. */
static void wipe_list(struct curl_slist *list) {
    for (struct curl_slist *item = list; item != NULL; item = item->next) {
        explicit_bzero(item->data, strlen(item->data));
    }
    curl_slist_free_all(list);
}

static bool append(struct curl_slist **list, const char *line) {
    struct curl_slist *longer = curl_slist_append(*list, line);
    *list = longer != NULL ? longer : *list;
    return longer != NULL;
}

/* Gives libcurl the question; false when it has no memory or does not know an option. */
static bool ask(CURL *curl, const stk_http_question *question, struct curl_slist *headers,
                inbox *in) {
    bool good =
        curl_easy_setopt(curl, CURLOPT_URL, question->url) == CURLE_OK &&
        curl_easy_setopt(curl, CURLOPT_HTTPHEADER, headers) == CURLE_OK &&
        curl_easy_setopt(curl, CURLOPT_CONNECTTIMEOUT_MS, question->connect_ms) == CURLE_OK &&
        curl_easy_setopt(curl, CURLOPT_TIMEOUT_MS, question->total_ms) == CURLE_OK &&
        curl_easy_setopt(curl, CURLOPT_PROXY, "") == CURLE_OK &&
        curl_easy_setopt(curl, CURLOPT_NOSIGNAL, 1L) == CURLE_OK &&
        curl_easy_setopt(curl, CURLOPT_USERAGENT, "stoker/" STK_VERSION) == CURLE_OK &&
        curl_easy_setopt(curl, CURLOPT_HEADERFUNCTION, count_head) == CURLE_OK &&
        curl_easy_setopt(curl, CURLOPT_HEADERDATA, in) == CURLE_OK &&
        curl_easy_setopt(curl, CURLOPT_WRITEFUNCTION, receive) == CURLE_OK &&
        curl_easy_setopt(curl, CURLOPT_WRITEDATA, in) == CURLE_OK;
    if (good && question->ca_bundle != NULL) {
        good = curl_easy_setopt(curl, CURLOPT_CAINFO, question->ca_bundle) == CURLE_OK;
    }
    if (good && strcmp(question->method, "GET") != 0) {
        good = curl_easy_setopt(curl, CURLOPT_POSTFIELDS, "") == CURLE_OK &&
               curl_easy_setopt(curl, CURLOPT_CUSTOMREQUEST, question->method) == CURLE_OK;
    }
    return good;
}

static stk_status perform(CURL *curl, inbox *in, stk_error *err) {
    CURLcode code = curl_easy_perform(curl);
    long status = 0;
    if (in->overflow) {
        return STK_FAIL(err, STK_ERR_STORAGE, "the answer has more than %zu bytes", in->max_bytes);
    }
    if (in->long_head || stk_http_is_long_head(curl, (int)code)) {
        return STK_FAIL(err, STK_ERR_STORAGE, "the head of the answer has more than %zu bytes",
                        STK_HTTP_HEAD_MAX);
    }
    if (code == CURLE_OK) {
        code = curl_easy_getinfo(curl, CURLINFO_RESPONSE_CODE, &status);
    }
    if (code == CURLE_OUT_OF_MEMORY) {
        return STK_FAIL_MEMORY(err, "an HTTP request");
    }
    if (code != CURLE_OK) {
        return STK_FAIL(err, STK_ERR_STORAGE, "there was no answer: %s", curl_easy_strerror(code));
    }
    in->answer->status = (int)status;
    return STK_OK;
}

stk_status stk_http_get(const stk_http_question *question, stk_http_answer *answer,
                        stk_error *err) {
    inbox in = {.answer = answer, .max_bytes = question->max_bytes};
    struct curl_slist *headers = NULL;
    stk_status status = stk_http_init(err);
    if (status != STK_OK) {
        return status;
    }
    CURL *curl = curl_easy_init();
    answer->body = stk_mem_new(question->max_bytes + 1, 1);
    bool good = curl != NULL && answer->body != NULL && append(&headers, "Content-Type:");
    for (size_t i = 0; i < question->header_count && good; i++) {
        good = append(&headers, question->headers[i]);
    }
    status = good && ask(curl, question, headers, &in) ? perform(curl, &in, err)
                                                       : STK_FAIL_MEMORY(err, "an HTTP request");
    curl_easy_cleanup(curl);
    wipe_list(headers);
    if (status != STK_OK) {
        stk_http_answer_free(answer);
    }
    return status;
}

void stk_http_answer_free(stk_http_answer *answer) {
    if (answer->body != NULL) {
        explicit_bzero(answer->body, answer->size);
    }
    stk_mem_free(answer->body);
    memset(answer, 0, sizeof *answer);
}

#endif
