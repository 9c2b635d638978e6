/*
 * list.h - lists all objects below a prefix.
 *
 * The call blocks until the listing is complete. A store returns a thousand keys per page, and each
 * page needs the token of the page before, so the lister asks for many folders at the same time.
 * Built with STK_HAVE_S3 only. Threads: any, one listing each.
 */
#ifndef STK_STORAGE_S3_LIST_H
#define STK_STORAGE_S3_LIST_H

#include "events/events.h"
#include "storage/s3/client.h"
#include "storage/tree.h"

#include <stoker/stop.h>

typedef struct stk_s3_listing {
    stk_s3_client *client; /* borrowed, like all pointers here */
    const char *bucket;
    const char *prefix;   /* ends with a slash, or "" */
    const char *location; /* "s3://bucket/prefix", for messages */
    double timeout_s;     /* of one request; twice as long without a good page is an error */
    double outage_s; /* once a good page has come: this long without another is an error, if that is
                        longer than twice timeout_s */
    uint64_t max_bytes;       /* of memory for the names; 0: no limit */
    const stk_stop *stop;     /* ends the listing with STK_ERR_STOPPED; or NULL */
    int64_t deadline_ns;      /* ends it with STK_ERR_STORAGE; 0: none */
    const stk_events *events; /* receives a warning when no answer comes; or NULL */
} stk_s3_listing;

/*
 * Adds all objects to a zeroed tree, with their paths below the prefix, and finishes the tree. No
 * object at all is STK_ERR_DATA; the message names the nearest folder that exists.
 */
STK_CHECKED stk_status stk_s3_list(const stk_s3_listing *listing, stk_tree *tree, stk_error *err);

#endif
