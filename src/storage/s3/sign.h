/*
 * sign.h - Signature Version 4 for requests to S3 that have no body.
 *
 * Signed here instead of by libcurl, whose own signatures differ between versions. Nothing is kept
 * between calls. Threads: safe.
 */
#ifndef STK_STORAGE_S3_SIGN_H
#define STK_STORAGE_S3_SIGN_H

#include <stddef.h>
#include <stdint.h>

#include <stoker/status.h>

#include "storage/s3/credentials.h"

typedef struct stk_s3_pair {
    const char *name;
    const char *value;
} stk_s3_pair;

typedef struct stk_s3_unsigned {
    const char *method;       /* "GET", "HEAD" */
    const char *host;         /* as it is sent: "bucket.s3.amazonaws.com", "127.0.0.1:9000" */
    const char *path;         /* from stk_s3_encode_path, with a slash in front */
    const stk_s3_pair *query; /* not encoded, in any order; NULL where query_count is 0 */
    size_t query_count;
    const stk_s3_pair *headers; /* to sign and send besides; "Range" may be sent unsigned instead */
    size_t header_count;
} stk_s3_unsigned;

/* Room for Authorization, the three of x-amz and some of the caller's. */
#define STK_S3_HEADERS_MAX 16

typedef struct stk_s3_signed { /* starts zeroed; all text is owned */
    char *query;               /* "list-type=2&prefix=a%2Fb", no '?' in front; "" for none */
    char *headers[STK_S3_HEADERS_MAX]; /* "Name: value" each; Host is left to libcurl */
    size_t header_count;
} stk_s3_signed;

/*
 * Signs for the time now_s (unix). Without a key_id nothing is signed: the query and the caller's
 * headers come out alone. A header with a line break in it is refused (STK_ERR_USAGE).
 */
STK_CHECKED stk_status stk_s3_sign(const stk_s3_unsigned *request,
                                   const stk_s3_credentials *credentials, const char *region,
                                   int64_t now_s, stk_s3_signed *out, stk_error *err);

/* Wipes and frees the text. */
void stk_s3_signed_free(stk_s3_signed *out);

/*
 * A key as it stands in an address: every byte but A-Z a-z 0-9 - . _ ~ and / becomes %XX. Send the
 * address with CURLOPT_PATH_AS_IS: "a/../b" is a key like any other. NULL without memory;
 * stk_mem_free.
 */
char *stk_s3_encode_path(const char *path);

#endif
