/*
 * source.h - inside storage: what a kind of location must be able to do, one table per kind.
 *
 * A source makes single attempts. It begins one when it is told to, and calls `done` when the
 * attempt has ended, however it ended. The reader (reading/reader.c) decides about time-outs,
 * retries and the cache, in the same way for all sources.
 */
#ifndef STK_STORAGE_SOURCE_H
#define STK_STORAGE_SOURCE_H

#include <stdatomic.h>

#include "base/files/file.h"
#include "events/events.h"
#include "storage/io_threads.h"
#include "storage/storage.h"
#include "storage/tree.h"

/* What an attempt is to bring; the last three only from sources that have no tree. */
typedef enum stk_fetch_kind {
    STK_FETCH_BYTES,    /* of an object, all or a part */
    STK_FETCH_LIST,     /* of a folder: for each entry "d" or "f", its name and a NUL; sorted. */
    STK_FETCH_IDENTITY, /* of a folder: a stk_store_identity. */
    STK_FETCH_VERSION   /* a text that changes when the object does. */
} stk_fetch_kind;

/* How an attempt ended. */
typedef enum stk_fetch_verdict {
    STK_FETCH_OK,
    STK_FETCH_AGAIN,     /* the location is busy or does not answer: it may work later */
    STK_FETCH_NO_MEMORY, /* this process has no memory for it now: it may work later */
    STK_FETCH_DAMAGED,   /* the wrong number of bytes or a wrong checksum: it may work at once */
    STK_FETCH_NEVER,     /* this object is missing or refused */
    STK_FETCH_LOST,      /* nothing can be had from this location: credentials, no such bucket */
    STK_FETCH_CANCELLED, /* it was told to stop */
} stk_fetch_verdict;

typedef struct stk_fetch {
    stk_fetch_kind kind;
    const char *path; /* below the location; for begin only: it may be gone before done */
    uint64_t offset;
    uint64_t length;           /* 0: the whole object */
    stk_bytes bytes;           /* out; a block may be there already */
    stk_error error;           /* out, unless the verdict is OK or CANCELLED */
    stk_fetch_verdict verdict; /* out */
    double wait_s; /* out: the location asks to wait so long; 0: it does not. The reader waits, but
                      no longer than its longest pause */
    atomic_llong started_ns; /* when it really began, after waiting for its turn; 0: not yet */
    atomic_llong heard_ns;   /* when some of a long answer last came; a source may leave it */
    void (*done)(struct stk_fetch *fetch); /* exactly once; the fetch is not touched afterwards */
    void *owner;                           /* the beginner's */
    void *task;                            /* the source's, between begin and done */
} stk_fetch;

typedef struct stk_storage_source {
    const char *name;                  /* "local" */
    bool remote;                       /* every read has a long way */
    bool (*matches)(const char *root); /* whether this source serves the root, by its spelling */

    /*
     * Checks that the location is there. `io_threads` are the store's threads for work that blocks;
     * they outlive the location. `kept` is a folder for what should be remembered between runs, or
     * NULL.
     */
    stk_status (*open)(void **place, const char *root, const stk_storage_options *options,
                       stk_io_threads *io_threads, const char *kept, const stk_events *events,
                       stk_error *err);

    /* Nothing of it is under way, but for what io_threads are stuck in: it is then called later. */
    void (*close)(void *place);

    /* All objects, where the source lists them when it is opened; else NULL. */
    const stk_tree *(*tree)(const void *place);

    /* Never waits, and never calls done itself. False without memory: then nothing was begun. */
    bool (*begin)(void *place, stk_fetch *fetch);

    /*
     * Has the attempt end soon: done is called, perhaps before this returns. An attempt may have
     * ended meanwhile: then `task` is NULL, which the source's own lock guards, and nothing
     * happens.
     */
    void (*cancel)(void *place, stk_fetch *fetch);

    /* One sentence for people about what was noticed since, once; may be NULL. */
    bool (*notice)(void *place, char *buf, size_t size);

    /* Most bytes that attempts in flight may take together; may be NULL. */
    void (*bound)(void *place, uint64_t bytes);

    /* Threads that serve attempts now. */
    int (*threads)(const void *place);
} stk_storage_source;

/* The sources, one file each. */
extern const stk_storage_source stk_storage_local;
#ifdef STK_HAVE_S3
extern const stk_storage_source stk_storage_s3;
#endif

#endif
