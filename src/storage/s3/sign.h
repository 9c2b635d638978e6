/*
 * sign.h - AWS Signature Version 4 for requests to S3 that have no body.
 *
 * libcurl can sign as well, but its signatures differ between versions. The functions keep nothing
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

/* A request as the signature sees it. All pointers are borrowed. */
typedef struct stk_s3_unsigned {
    const char *method;       /* "GET", "HEAD" */
    const char *host;         /* the Host header: "bucket.s3.amazonaws.com", "127.0.0.1:9000" */
    const char *path;         /* encoded (stk_s3_encode_path), with a slash in front */
    const stk_s3_pair *query; /* not encoded, in any order; NULL where query_count is 0 */
    size_t query_count;
    const stk_s3_pair *headers; /* further headers to sign. The client has none (it sends Range
                                   unsigned); tests check Amazon's examples with them */
    size_t header_count;
} stk_s3_unsigned;

/* Authorization, up to three x-amz headers, and the caller's. */
#define STK_S3_HEADERS_MAX 16

typedef struct stk_s3_signed { /* starts zeroed; all text is owned */
    char *query;               /* "list-type=2&prefix=a%2Fb", no '?' in front; "" for none */
    char *headers[STK_S3_HEADERS_MAX]; /* "Name: value" each; Host is left to libcurl */
    size_t header_count;
} stk_s3_signed;

/*
 * Signs for the unix time now_s. Credentials without a key_id sign nothing: the result then has the
 * query and the caller's headers only. A header with a line break is refused (STK_ERR_USAGE).
 */
STK_CHECKED stk_status stk_s3_sign(const stk_s3_unsigned *request,
                                   const stk_s3_credentials *credentials, const char *region,
                                   int64_t now_s, stk_s3_signed *out, stk_error *err);

/* Wipes and frees the text. */
void stk_s3_signed_free(stk_s3_signed *out);

/*
 * Encodes a key for a URL: every byte but A-Z a-z 0-9 - . _ ~ and / becomes %XX. The URL must be
 * sent with CURLOPT_PATH_AS_IS: "a/../b" is a key like any other. NULL without memory; freed with
 * stk_mem_free.
 */
char *stk_s3_encode_path(const char *path);

#endif
