/*
 * transfer.h - one HTTP request and its response, over one libcurl easy handle.
 *
 * The caller fills in the request part, and either hands the transfer to an engine
 * (stk_http_begin() in engine.h: many at a time, with a callback) or performs it on its own thread
 * (stk_http_transfer_perform()). Redirects are not followed. Any response is a success here,
 * 404 as well: what a status means is the caller's decision.
 *
 * A server decides neither how much memory is used nor for how long: header lines, error bodies and
 * good bodies have limits, and all transfers that share a stk_http_memory stay within its limit.
 *
 * A transfer can be used again after it has ended; its libcurl handle then keeps its options, and
 * the engine keeps its connections open. stk_http_transfer_free() ends it.
 *
 * Built with STK_HAVE_S3 only. Threads: a transfer belongs to one thread at a time: the caller's,
 * then from begin to done the engine's.
 */
#ifndef STK_STORAGE_HTTP_TRANSFER_H
#define STK_STORAGE_HTTP_TRANSFER_H

#include <curl/curl.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <stoker/status.h>

#include "base/numbers/digest.h"
#include "base/files/file.h"
#include "storage/http/response.h"

#define STK_HTTP_HEADERS_MAX 18

/* Most bytes of all header lines of a response; S3 sends a tenth of that. */
#define STK_HTTP_HEADER_BYTES_MAX ((size_t)64 * 1024)

/*
 * The memory that the bodies of all transfers in flight may take together. A transfer takes its
 * expected bytes before it is sent, and more when more arrive; it gives them back when it has
 * ended. A single transfer alone may take any amount: its own limit bounds it. Threads: safe.
 */
typedef struct stk_http_memory {
    atomic_ullong limit; /* bytes; 0: no limit */
    atomic_ullong used;  /* bytes, by transfers in flight */
} stk_http_memory;

/*
 * Takes bytes for a transfer that has taken `held` bytes before. False: other transfers have to end
 * first. NULL is a memory without a limit.
 */
bool stk_http_memory_take(stk_http_memory *memory, uint64_t held, uint64_t bytes);
void stk_http_memory_give(stk_http_memory *memory, uint64_t bytes);

/* How a transfer ended. */
typedef enum stk_http_result {
    STK_HTTP_ANSWERED,        /* a response with any status, complete */
    STK_HTTP_TRUNCATED,       /* fewer bytes came than the response promised */
    STK_HTTP_TOO_LARGE,       /* the body has more than limit_bytes */
    STK_HTTP_OVER_MEMORY,     /* the body does not fit beside the others' now: it may work later */
    STK_HTTP_BAD_HEADERS,     /* more header bytes than STK_HTTP_HEADER_BYTES_MAX */
    STK_HTTP_NO_RESPONSE,     /* unknown host, refused, reset, timed out: it may work later */
    STK_HTTP_BAD_CERTIFICATE, /* the server's certificate is not trusted */
    STK_HTTP_BAD_SETTINGS,    /* the URL or the configuration cannot work */
    STK_HTTP_NO_MEMORY,       /* malloc failed, here or in libcurl */
    STK_HTTP_CANCELLED        /* stk_http_cancel() ended it */
} stk_http_result;

typedef struct stk_http_transfer { /* starts zeroed */
    /* The request. The caller sets it; pointers are borrowed until done. */
    const char *method; /* NULL: GET; another method has an empty body; constant per transfer */
    const char *url;
    const char *const *headers; /* "Name: value" each */
    size_t header_count;        /* at most STK_HTTP_HEADERS_MAX */
    double timeout_s;           /* for the whole transfer once it has started; 0: none */
    size_t max_bytes;           /* most bytes of a good (2xx) body */
    uint64_t part_bytes;        /* most bytes of a 206; 0: as any good body */
    const char *known_etag;     /* ETag of the object as the caller knows it, "": unknown ETag;
                                   NULL: the caller knows nothing of the object */
    uint64_t known_bytes;       /* with known_etag: the object's size. Most bytes of a good body,
                                   unless the response has another ETag and announces its length */
    size_t expected_bytes;      /* memory to take before the start; 0: unknown */
    bool hash_body;             /* compute the MD5 of a whole body whose ETag may be one */
    atomic_llong *started_ns;   /* NULL, or receives the time of the start, after any waiting */
    atomic_llong *heard_ns;     /* NULL, or receives the time of each piece of a good body */
    /* Called exactly once, from the engine's thread. The transfer is the caller's again. */
    void (*done)(struct stk_http_transfer *transfer);

    /* The response. */
    stk_http_result result;
    stk_http_response response;
    stk_bytes body;     /* owned; a block from before is used again. One NUL stands after it, unless
                           an engine received no byte */
    size_t limit_bytes; /* bytes that the body was allowed; 0: no body came */
    bool hashed;        /* `md5` has all of the body */
    stk_md5 md5;
    char reason[CURL_ERROR_SIZE]; /* why there is no response, part of a sentence; "" if there is */

    /* Private to http/. */
    CURL *easy;                                    /* owned; NULL until the first start */
    struct curl_slist nodes[STK_HTTP_HEADERS_MAX]; /* the headers in libcurl's form */
    stk_http_memory *memory;                       /* borrowed; NULL: no limit */
    uint64_t held_bytes;                           /* taken from `memory` */
    size_t header_bytes;                           /* of the response, so far */
    bool has_body;                                 /* the first piece of the body has come */
    struct stk_http_engine *engine;                /* which serves it, from begin to done */
    struct stk_http_transfer *next;                /* in a queue of the engine */
    int position;                                  /* among the engine's active transfers */
    atomic_bool cancelled;                         /* stk_http_cancel() was called */
} stk_http_transfer;

/* What every transfer to the same server has in common. */
typedef struct stk_http_connect {
    const char *ca_bundle; /* file of certificates to trust; NULL: the system's */
    double timeout_s;      /* for the connection alone */
    bool no_proxy;         /* ignore the proxies that the environment names */
} stk_http_connect;

/*
 * Initialises libcurl once per process; whoever uses libcurl calls it first. Engines and
 * stk_http_transfer_perform() do.
 */
STK_CHECKED stk_status stk_http_init(stk_error *err);

/*
 * Performs a transfer on the calling thread and waits for its end; `done` is not called. Reserves
 * max_bytes for the body at once, so that secrets in it are never moved. An error
 * (STK_ERR_STORAGE, STK_ERR_MEMORY) is part of a sentence and does not contain the URL.
 */
STK_CHECKED stk_status stk_http_transfer_perform(stk_http_transfer *transfer,
                                                 const stk_http_connect *connect, stk_error *err);

/* Wipes and frees the body, and frees the handle. Not while the transfer is in flight. */
void stk_http_transfer_free(stk_http_transfer *transfer);

/* ---- for engines ---- */

/* Clears the response. The body keeps its block. */
void stk_http_transfer_reset(stk_http_transfer *transfer);

/*
 * Makes the handle ready to start; makes the handle itself at the first time. The expected bytes
 * were taken from `memory` before. False without memory.
 */
bool stk_http_transfer_prepare(stk_http_transfer *transfer, const stk_http_connect *connect,
                               stk_http_memory *memory);

/* Writes result and reason of a transfer that libcurl has ended with this code. */
void stk_http_transfer_set_result(stk_http_transfer *transfer, CURLcode code);

/* Gives back the memory that the transfer holds. */
void stk_http_transfer_release(stk_http_transfer *transfer);

#endif
