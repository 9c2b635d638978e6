/*
 * blocking.h - one short HTTP request that blocks: for services that hand out credentials.
 *
 * No redirects are followed and no proxy is asked, since these services are on this machine or one
 * hop away. Built with STK_HAVE_S3 only. Threads: safe.
 */
#ifndef STK_STORAGE_HTTP_BLOCKING_H
#define STK_STORAGE_HTTP_BLOCKING_H

#include <stdbool.h>
#include <stddef.h>

#include <stoker/status.h>

/* Readies libcurl, once for the process; whoever uses libcurl calls it first. */
STK_CHECKED stk_status stk_http_init(stk_error *err);

/*
 * Whether a transfer of a CURL handle that ended with this CURLcode did so because the head of the
 * answer has an endless line: libcurl before 8.6 says that it has no memory then.
 */
bool stk_http_is_long_head(void *curl, int code);

typedef struct stk_http_question {
    const char *method; /* "GET"; "PUT" has an empty body */
    const char *url;
    const char *const *headers; /* "Name: value" each; NULL where header_count is 0 */
    size_t header_count;
    const char *ca_bundle; /* NULL: the system's */
    long connect_ms;       /* time for the connection */
    long total_ms;         /* time for everything */
    size_t max_bytes;      /* a longer answer is an error */
} stk_http_question;

typedef struct stk_http_answer { /* starts zeroed */
    int status;                  /* 200, 404 */
    char *body;                  /* owned, NUL-terminated */
    size_t size;
} stk_http_answer;

/* Any answer is a success, 404 too; STK_ERR_STORAGE says why there was none, without the url. */
STK_CHECKED stk_status stk_http_get(const stk_http_question *question, stk_http_answer *answer,
                                    stk_error *err);

/* Wipes and frees the body. */
void stk_http_answer_free(stk_http_answer *answer);

#endif
