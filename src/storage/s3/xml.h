/*
 * xml.h - parses what S3 answers in XML: pages of a listing, and errors.
 *
 * The input is untrusted. XML that is too large, broken or unexpected is an error or is ignored.
 * Document types are refused, because entities can make a short text long. Built with STK_HAVE_S3
 * only. Threads: safe.
 */
#ifndef STK_STORAGE_S3_XML_H
#define STK_STORAGE_S3_XML_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <stoker/status.h>

#include "base/str.h"

/* A page of ListObjectsV2. */
typedef struct stk_s3_page {
    /* Receives each object; its key is decoded. False ends parsing with STK_ERR_MEMORY. */
    bool (*object)(void *user, const char *key, size_t length, uint64_t size, const char *etag);
    /* Receives each common prefix (folder). False ends parsing with STK_ERR_MEMORY. */
    bool (*folder)(void *user, const char *prefix, size_t length);
    void *user;     /* first argument of both */
    bool truncated; /* out: another page follows */
    stk_str token;  /* out: its continuation token; starts zeroed, the caller frees it */
} stk_s3_page;

/* STK_ERR_STORAGE when the data is not a page; the message is part of a sentence. */
STK_CHECKED stk_status stk_s3_page_parse(const void *data, size_t size, stk_s3_page *page,
                                         stk_error *err);

/* The body of an error response: printable text, cut to fit; "" where it does not say. */
typedef struct stk_s3_error_body {
    char code[64];     /* "NoSuchKey" */
    char message[256]; /* the store's own sentence */
    char region[40];   /* the bucket's region, when the request was signed for another */
} stk_s3_error_body;

/* Fills in what can be found; a body that is not XML leaves all fields empty. */
void stk_s3_error_body_parse(const void *data, size_t size, stk_s3_error_body *error);

#endif
