/*
 * list.h - inside storage: all objects below a prefix.
 *
 * Listing waits until it is done. A store gives a thousand keys at a time, one page after another,
 * so many requests are made at once for different folders. Built with STK_HAVE_S3 only.
 */
#ifndef STK_STORAGE_S3_LIST_H
#define STK_STORAGE_S3_LIST_H

#include "events/events.h"
#include "storage/s3/client.h"
#include "storage/tree.h"

#include <stoker/stop.h>

typedef struct stk_s3_listing {
    stk_s3_client *client;
    const char *bucket;
    const char *prefix;  /* with a slash at its end, or "" */
    const char *place;   /* "s3://bucket/prefix", for sentences */
    double outage_s;     /* how long a store that has answered before may be silent */
    uint64_t most_bytes; /* of memory for what is found; 0: any */
    double timeout_s; /* of one request; when nothing good has come for twice as long it is over */
    const stk_stop *stop;     /* ends it, with STK_ERR_STOPPED; or NULL */
    int64_t deadline_ns;      /* ends it too, with STK_ERR_STORAGE; 0: none */
    const stk_events *events; /* told when no answer comes; or NULL */
} stk_s3_listing;

/*
 * Adds all objects to a zeroed tree, their paths without the prefix, and finishes it. None at all
 * is STK_ERR_DATA, with the nearest folder that is there.
 */
STK_CHECKED stk_status stk_s3_list(const stk_s3_listing *listing, stk_tree *tree, stk_error *err);

#endif
