/*
 * engine.h - inside storage: many GETs in flight on one thread, over libcurl.
 *
 * A stk_http is a thread with connections that are used again and again. Requests are handed over
 * with stk_http_begin(), which never waits, and each is told of by its `done` callback, from that
 * thread. Requests begin in the order in which they were handed over; when as many are under way as
 * connections are allowed, or as much memory is promised to answers as there is room for, the
 * others wait for their turn. Answers are bytes and a few headers:
 * what they mean, and whether to ask again, is the caller's business. Redirects are not followed.
 *
 * Built with STK_HAVE_S3 only. Threads: safe.
 */
#ifndef STK_STORAGE_HTTP_ENGINE_H
#define STK_STORAGE_HTTP_ENGINE_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <stoker/status.h>

#include "base/files/file.h"
#include "storage/http/room.h"

#define STK_HTTP_HEADERS_MAX 18

/* Bytes that the head of an answer may have: S3's have a tenth of that at most. */
#define STK_HTTP_HEAD_MAX ((size_t)64 * 1024)

/* How a request ended. */
typedef enum stk_http_end {
    STK_HTTP_ANSWERED,   /* with any status; all of the body is there */
    STK_HTTP_CUT_OFF,    /* fewer bytes came than were promised */
    STK_HTTP_TOO_LARGE,  /* more than limit_bytes */
    STK_HTTP_NO_ROOM,    /* more than there is room for beside the others: it may work later */
    STK_HTTP_BAD_HEAD,   /* the head of the answer does not end */
    STK_HTTP_NO_ANSWER,  /* no such host, refused, reset, timed out: it may work later */
    STK_HTTP_UNTRUSTED,  /* the server's certificate is not good */
    STK_HTTP_IMPOSSIBLE, /* the address or the settings cannot work */
    STK_HTTP_NO_MEMORY,
    STK_HTTP_CANCELLED
} stk_http_end;

/* What the head of an answer said, as far as anybody here asks. */
typedef struct stk_http_head {
    int status; /* 0: no answer came */
    bool has_length;
    bool has_range;       /* the answer is a part */
    bool sealed;          /* encrypted with a key of the user's: the ETag is no MD5 */
    uint64_t length;      /* Content-Length */
    uint64_t range_first; /* the offset of the first byte */
    uint64_t range_total; /* bytes of the whole; 0: not told */
    double retry_after_s; /* 0: not told */
    char date[40];        /* the server's clock, as it writes it; "" */
    char etag[128];       /* without quotes, cut when longer; "" */
    char region[40];      /* x-amz-bucket-region; "" */
} stk_http_head;

/* One request. It belongs to the engine from begin to done. */
typedef struct stk_http_request {
    const char *url;            /* borrowed, as are the headers, until done */
    const char *const *headers; /* "Name: value" */
    size_t header_count;        /* at most STK_HTTP_HEADERS_MAX */
    double timeout_s;           /* for all of it once it has begun; 0: none */
    size_t max_bytes;           /* of the body, unless `limit` is there */
    size_t expected_bytes;    /* of the body: so much room is taken before it begins; 0: unknown */
    stk_bytes *bytes;         /* the body goes here; a block may be there already */
    atomic_llong *started_ns; /* NULL, or where to write when it really begins */

    /* NULL, or asked when the body of a 200 or 206 begins: how many bytes it may have. */
    size_t (*limit)(struct stk_http_request *request);
    /* NULL, or told of each piece of the body of a 200 or 206 once it stands at bytes' end. */
    void (*received)(struct stk_http_request *request, const uint8_t *piece, size_t size);
    /* Exactly once; the request is not touched afterwards. */
    void (*done)(struct stk_http_request *request);

    stk_http_end end;     /* out */
    stk_http_head answer; /* out */
    size_t limit_bytes;   /* out: how many bytes the body was allowed; 0: none came */
    char reason[256];     /* out: part of a sentence, unless ANSWERED or CANCELLED */

    struct stk_http_request *next; /* the engine's, as is the rest */
    struct http_slot *slot;
    atomic_bool cancelled;
} stk_http_request;

typedef struct stk_http stk_http;

typedef struct stk_http_config {
    const char *ca_bundle; /* certificates to trust; NULL: the system's */
    double connect_timeout_s;
    int most_connections; /* fewer where the process may open few files */
    int engines;          /* that share those files; 0 means 1 */
    stk_http_room *room;  /* borrowed: that several engines share; NULL: one without a limit */
} stk_http_config;

STK_CHECKED stk_status stk_http_open(stk_http **http, const stk_http_config *config,
                                     stk_error *err);

/* No request may be under way. NULL is fine. */
void stk_http_close(stk_http *http);

void stk_http_begin(stk_http *http, stk_http_request *request);

/*
 * Has a request end soon, with CANCELLED unless it was done already. The caller must know that the
 * request is still there: that its own `done` has not let go of it.
 */
void stk_http_cancel(stk_http *http, stk_http_request *request);

/* Connections at most, after the limit of the process was looked at. */
int stk_http_most(const stk_http *http);

#endif
