/*
 * client.h - inside storage: one bucket, asked over and over.
 *
 * Makes addresses, signs, sends and judges; knows the credentials and finds them again before they
 * expire, in a thread of its own; learns the bucket's region and the store's clock from the
 * answers. When to try again is the callers' business. Built with STK_HAVE_S3 only.
 *
 * Threads: everything but open and close may be called from many threads at once.
 */
#ifndef STK_STORAGE_S3_CLIENT_H
#define STK_STORAGE_S3_CLIENT_H

#include "storage/http/engine.h"
#include "storage/s3/classify.h"
#include "storage/s3/sign.h"

typedef struct stk_s3_client stk_s3_client;

#define STK_S3_QUERY_MAX 8

/*
 * One request. The caller sets the first part, keeps what it refers to until done, and may use the
 * call again afterwards; stk_s3_call_free() ends it. Starts zeroed.
 */
typedef struct stk_s3_call {
    const char *key; /* NULL: the bucket itself */
    stk_s3_pair query[STK_S3_QUERY_MAX];
    size_t query_count;
    uint64_t offset;
    uint64_t length;          /* 0: all of it */
    size_t max_bytes;         /* of the body, unless `limit` is there */
    uint64_t expected_bytes;  /* of the body: memory for them is waited for; 0: unknown */
    const uint64_t *listed;   /* the bytes of the object as it was listed, or NULL */
    double timeout_s;         /* 0: none */
    stk_bytes *bytes;         /* where the body goes */
    atomic_llong *started_ns; /* NULL, or where to write when it really begins */
    /* NULL, or asked when a good body begins: how many bytes it may have. */
    size_t (*limit)(const struct stk_s3_call *call);
    /* NULL, or told of each piece of a good body, at http.answer what the head said. */
    void (*received)(struct stk_s3_call *call, const uint8_t *piece, size_t size);
    /*
     * Exactly once, from a thread of the client's: calls without `received` all from the same one.
     * The call is the caller's again.
     */
    void (*done)(struct stk_s3_call *call);

    stk_s3_judgement judgement; /* out */
    stk_http_request http;      /* out: answer */

    stk_s3_client *client; /* the client's, as is the rest */
    stk_http *engine;
    stk_str url;
    stk_str path;
    stk_str range;
    stk_s3_signed signature;
    const char *headers[STK_HTTP_HEADERS_MAX];
    uint64_t identity; /* which credentials it was signed with */
    int64_t shift_s;   /* and by which clock */
    char region[40];   /* and for which region */
} stk_s3_call;

typedef struct stk_s3_client_config {
    const char *bucket;
    const char *place; /* "s3://bucket/prefix", for sentences */
    bool anonymous;
    double timeout_s; /* connecting takes less */
} stk_s3_client_config;

/* Finds settings and credentials, which may take seconds. */
STK_CHECKED stk_status stk_s3_client_open(stk_s3_client **client,
                                          const stk_s3_client_config *config, stk_error *err);

/* No call may be under way. NULL is fine. */
void stk_s3_client_close(stk_s3_client *client);

/* Begins a call; never waits. False without memory: then nothing was begun. */
bool stk_s3_client_send(stk_s3_client *client, stk_s3_call *call);

/* Has a call end soon; as stk_http_cancel. */
void stk_s3_client_cancel(stk_s3_call *call);

/* Most bytes that the answers to calls in flight may take together; one alone may take more. */
void stk_s3_client_bound(stk_s3_client *client, uint64_t bytes);

/* Threads that serve calls. */
int stk_s3_client_threads(const stk_s3_client *client);

void stk_s3_call_free(stk_s3_call *call);

/* The store's address, as settings name it: part of what makes two listings the same. */
const char *stk_s3_client_endpoint(const stk_s3_client *client);

/* The region that requests are signed for now. */
void stk_s3_client_region(stk_s3_client *client, char region[static 40]);

/* Takes a region that was right in an earlier run. */
void stk_s3_client_set_region(stk_s3_client *client, const char *region);

/* The region of the settings. */
const char *stk_s3_client_told_region(const stk_s3_client *client);

#endif
