/*
 * source.h - inside storage: what a kind of location must be able to do, one table per kind.
 *
 * A source makes single attempts. It begins one when it is told to, and calls `done` when the
 * attempt has ended, however it ended. The reader (reading/) decides about time-outs, retries and
 * the cache, in the same way for all sources.
 */
#ifndef STK_STORAGE_SOURCE_H
#define STK_STORAGE_SOURCE_H

#include "events/events.h"
#include "storage/fetch.h"
#include "storage/storage.h"
#include "storage/tree.h"

typedef struct stk_storage_source {
    const char *name;                  /* "local" */
    bool remote;                       /* each read is a request to a distant server */
    bool (*matches)(const char *root); /* whether this source serves the root, by its spelling */

    /*
     * Checks that the location is there. `kept` is a folder for files that the source keeps between
     * runs, or NULL.
     */
    stk_status (*open)(void **location, const char *root, const stk_storage_options *options,
                       const char *kept, const stk_events *events, stk_error *err);

    /* Called when no attempt is left. Does not wait for calls that hang. */
    void (*close)(void *location);

    /* All objects, where the source lists them when it is opened; else NULL. */
    const stk_tree *(*tree)(const void *location);

    /* Never waits, and never calls done itself. False without memory: then nothing was begun. */
    bool (*begin)(void *location, stk_fetch *fetch);

    /*
     * Ends the attempt soon through done, perhaps before this returns. Does nothing if the attempt
     * has ended: `serving`, which the source's own lock guards, is NULL then.
     */
    void (*cancel)(void *location, stk_fetch *fetch);

    /*
     * Writes one sentence for people about something new, such as changed objects; false: nothing
     * new. May be NULL.
     */
    bool (*notice)(void *location, char *buf, size_t size);

    /* Most bytes that attempts in flight may take together; may be NULL. */
    void (*bound)(void *location, uint64_t bytes);

    /* The reader lacks bytes: serves one more attempt at a time, if possible. May be NULL. */
    void (*hurry)(void *location);

    /* Threads that serve attempts now. */
    int (*threads)(const void *location);
} stk_storage_source;

/* The sources, one file each. */
extern const stk_storage_source stk_storage_local;
#ifdef STK_HAVE_S3
extern const stk_storage_source stk_storage_s3;
#endif

#endif
