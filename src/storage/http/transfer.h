/*
 * transfer.h - inside storage's http.c: one transfer of libcurl's and what comes through it.
 *
 * A slot is an easy handle that is used for one request after another. It looks after the sizes of
 * what a server sends: heads, bodies, and the room that all bodies share. Built with STK_HAVE_S3
 * only. Threads: one at a time.
 */
#ifndef STK_STORAGE_HTTP_TRANSFER_H
#define STK_STORAGE_HTTP_TRANSFER_H

#include <curl/curl.h>

#include "storage/http/engine.h"

typedef struct http_slot {
    CURL *easy;
    stk_http_room *room;                           /* borrowed */
    stk_http_request *request;                     /* NULL: free */
    struct curl_slist nodes[STK_HTTP_HEADERS_MAX]; /* the request's headers as libcurl wants them */
    long timeout_ms;                               /* as the handle has it now */
    size_t head_bytes;                             /* that have come */
    uint64_t held;                                 /* bytes of the room */
    bool has_body;                                 /* the first piece of the body has come */
    /* Why libcurl was told to end the transfer. */
    bool too_long;  /* the head does not end */
    bool too_large; /* the body */
    bool cut_short; /* the body of an error: enough has come */
    bool no_room;   /* the body is too large beside the others */
    bool no_memory;
    struct http_slot *next_free;
    char reason[CURL_ERROR_SIZE];
} http_slot;

typedef struct stk_http_slot_config {
    const char *ca_bundle; /* NULL: the system's */
    long connect_timeout_ms;
    stk_http_room *room;
} stk_http_slot_config;

/* NULL without memory. */
http_slot *stk_http_slot_new(const stk_http_slot_config *config);
void stk_http_slot_free(http_slot *slot);

/* Gives the slot a request, whose expected bytes were taken from the room. False without memory. */
bool stk_http_slot_set(http_slot *slot, stk_http_request *request);

/* How the transfer ended, by libcurl's word; `reason` gets a part of a sentence. */
stk_http_end stk_http_slot_end(const http_slot *slot, CURLcode code, char *reason, size_t size);

/* The request has ended: gives back its room. Returns it. */
stk_http_request *stk_http_slot_clear(http_slot *slot);

#endif
