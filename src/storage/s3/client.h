/*
 * client.h - requests to one bucket: the client builds the URL, signs, sends and classifies.
 *
 * The client owns the credentials and renews them in the background before they expire. It learns
 * the bucket's region and the store's clock from responses. It never repeats a request: callers
 * decide that. Built with STK_HAVE_S3 only.
 *
 * Threads: everything but open and close may be called from many threads at once.
 */
#ifndef STK_STORAGE_S3_CLIENT_H
#define STK_STORAGE_S3_CLIENT_H

#include "storage/s3/request.h"

typedef struct stk_s3_client stk_s3_client;

typedef struct stk_s3_client_config {
    const char *bucket;
    bool anonymous;   /* do not look for credentials, do not sign */
    double timeout_s; /* of a read; a connection gets half of it, at most ten seconds */
} stk_s3_client_config;

/* Finds settings and credentials on the calling thread, which may take seconds. */
STK_CHECKED stk_status stk_s3_client_open(stk_s3_client **client,
                                          const stk_s3_client_config *config, stk_error *err);

/* No request may be in flight. NULL is fine. */
void stk_s3_client_close(stk_s3_client *client);

/*
 * Sends a request; never waits. Its `done` is called exactly once, from a thread of the client's.
 * False without memory: nothing was sent.
 */
bool stk_s3_client_send(stk_s3_client *client, stk_s3_request *request);

/*
 * Writes the outcome of a request that has ended (classify.h). Recovers where it can: then a
 * verdict of LOST becomes AGAIN.
 */
void stk_s3_client_finish(stk_s3_request *request, stk_fetch_result *result);

/* Makes a request end soon; as stk_http_cancel(). */
void stk_s3_client_cancel(stk_s3_request *request);

void stk_s3_request_free(stk_s3_request *request);

/* Most bytes that the bodies of requests in flight may take together; one alone may take more. */
void stk_s3_client_limit_memory(stk_s3_client *client, uint64_t bytes);

/* Threads that serve requests. */
int stk_s3_client_threads(const stk_s3_client *client);

/* The store's URL, or "aws": part of what makes two listings the same. */
const char *stk_s3_client_endpoint(const stk_s3_client *client);

/* The region that requests are signed for now. */
void stk_s3_client_region(stk_s3_client *client, char region[static 40]);

/* Signs for a region that was right in an earlier run. */
void stk_s3_client_set_region(stk_s3_client *client, const char *region);

/* The region that the settings name. */
const char *stk_s3_client_configured_region(const stk_s3_client *client);

#endif
