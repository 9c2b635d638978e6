/*
 * request.h - one GET to a bucket of S3: an object, a part of an object, or a page of a listing.
 *
 * A request is an HTTP transfer with what S3 adds: a key, a signature and an outcome. Its life:
 *
 *   1. The caller fills in the first two groups of fields and calls stk_s3_client_send().
 *   2. The transfer's `done` callback runs on a thread of the client.
 *   3. The caller calls stk_s3_client_finish(), in the callback or later, for the outcome.
 *
 * A request can be used again afterwards; stk_s3_request_free() ends it. Built with STK_HAVE_S3
 * only. Threads: a request belongs to one thread at a time.
 */
#ifndef STK_STORAGE_S3_REQUEST_H
#define STK_STORAGE_S3_REQUEST_H

#include "base/str.h"
#include "storage/fetch.h"
#include "storage/http/transfer.h"
#include "storage/s3/sign.h"

#define STK_S3_QUERY_MAX 8

/* What may make the same request succeed although the verdict is LOST. */
typedef enum stk_s3_recovery {
    STK_S3_RECOVERY_NONE,
    STK_S3_RECOVERY_REGION,     /* sign for the region in `right_region` */
    STK_S3_RECOVERY_CLOCK,      /* sign by the server's clock */
    STK_S3_RECOVERY_CREDENTIALS /* find credentials again: these have expired */
} stk_s3_recovery;

typedef struct stk_s3_request { /* starts zeroed */
    /*
     * The HTTP side, first: `done` gets from it to the request, and to the caller's struct that has
     * the request as its first member. The caller sets max_bytes, expected_bytes, known_etag,
     * known_bytes, timeout_s, hash_body, started_ns, heard_ns and done; the client sets the rest.
     */
    stk_http_transfer transfer;
    stk_str key;                         /* the object's key; empty: the bucket itself is asked */
    stk_s3_pair query[STK_S3_QUERY_MAX]; /* borrowed texts, not encoded */
    size_t query_count;
    uint64_t offset; /* with length: the first byte of a part */
    uint64_t length; /* bytes of a part; 0: the whole object */

    /* Part of the outcome, from stk_s3_client_finish(). */
    stk_s3_recovery recovery; /* what may help (STK_FETCH_LOST), or what the client has corrected
                                 (STK_FETCH_AGAIN) */
    char right_region[40];    /* with STK_S3_RECOVERY_REGION */

    /* The client's own. */
    struct stk_s3_client *client;
    stk_str url;
    stk_str path; /* of the URL, encoded */
    stk_s3_signed signature;
    uint64_t credentials_version; /* which credentials it was signed with */
    int64_t clock_offset_s;       /* which clock it was signed by */
    char region[40];              /* which region it was signed for */
} stk_s3_request;

#endif
