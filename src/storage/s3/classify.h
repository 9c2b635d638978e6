/*
 * classify.h - error classification: what a response of S3 means for the read that caused it.
 *
 * A status and an error code become a verdict (try again, never, the whole location is lost), a way
 * to recover where there is one, and a cause: what is wrong, what to do, and where the credentials
 * came from. It never contains keys, tokens or signatures. Built with STK_HAVE_S3 only. Threads:
 * safe.
 */
#ifndef STK_STORAGE_S3_CLASSIFY_H
#define STK_STORAGE_S3_CLASSIFY_H

#include "storage/s3/request.h"

/* What all requests of a client have in common. The client's lock guards it. */
typedef struct stk_s3_access {
    char *bucket;         /* owned */
    const char *endpoint; /* the store's URL, borrowed from the settings; NULL: Amazon */
    stk_s3_credentials credentials;
    bool anonymous; /* the user asked not to sign */
} stk_s3_access;

/*
 * Writes the outcome of an ended request: the result, request->recovery and request->right_region.
 * The verdict is OK for the statuses 200 and 206, and for 416 (the part lies after the object's
 * end) where an object was asked for; the body is not looked at then.
 */
void stk_s3_classify(stk_s3_request *request, const stk_s3_access *access,
                     stk_fetch_result *result);

#endif
