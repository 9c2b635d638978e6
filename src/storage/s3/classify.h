/*
 * classify.h - error classification: what a response of S3 means for the read that caused it.
 *
 * A status and an error code become a verdict (try again, never, the whole location is lost), a way
 * to recover where there is one, and one sentence. The sentence names the object, the cause, the
 * remedy and where the credentials came from; it never contains keys, tokens or signatures. Built
 * with STK_HAVE_S3 only. Threads: safe.
 */
#ifndef STK_STORAGE_S3_CLASSIFY_H
#define STK_STORAGE_S3_CLASSIFY_H

#include "storage/s3/request.h"

/* What requests of one client have in common, for sentences. All text is borrowed. */
typedef struct stk_s3_access {
    const char *bucket;
    const char *location; /* "s3://bucket/prefix" */
    const char *endpoint; /* the store's URL; NULL: Amazon */
    const stk_s3_credentials *credentials;
    bool anonymous; /* the user asked not to sign */
} stk_s3_access;

/*
 * Writes the outcome of an ended request: verdict, recovery, wait_s, right_region. The verdict is
 * OK for the statuses 200 and 206, and for 416 (the part lies behind the object's end) where an
 * object was asked for; the body is not looked at then. Otherwise, unless the transfer was
 * cancelled, err is overwritten with the sentence.
 */
void stk_s3_classify(stk_s3_request *request, const stk_s3_access *access, stk_error *err);

#endif
