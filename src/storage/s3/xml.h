/*
 * xml.h - inside storage: what S3 answers in XML: pages of a listing, and errors.
 *
 * Whatever comes is taken as a stranger's: too large, broken or strange XML is an error or is
 * passed over, and document types, which can make a short text long, are refused. Built with
 * STK_HAVE_S3 only. Threads: safe.
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
    /* Told of each object; keys are as they were when they were stored. False without memory. */
    bool (*object)(void *user, const char *key, size_t length, uint64_t size, const char *etag);
    /* Told of each common prefix. False without memory. */
    bool (*folder)(void *user, const char *prefix, size_t length);
    void *user;
    bool truncated; /* out: there is another page, */
    stk_str token;  /* out: which this asks for; starts zeroed, the caller frees it */
} stk_s3_page;

/* STK_ERR_STORAGE when it is no page; the message is part of a sentence. */
STK_CHECKED stk_status stk_s3_page_parse(const void *data, size_t size, stk_s3_page *page,
                                         stk_error *err);

/* An error, cut to fit and without anything but printable text; empty where it does not say. */
typedef struct stk_s3_error_body {
    char code[64];
    char message[256];
    char region[40]; /* the right one, when the complaint is about that */
} stk_s3_error_body;

void stk_s3_error_body_parse(const void *data, size_t size, stk_s3_error_body *complaint);

#endif
