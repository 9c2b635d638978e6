/*
 * reader.h - reads many objects at a time, with time-outs, retries and hedges.
 *
 * The caller hands over reads with stk_reader_submit(), which never waits. The reader calls `done`
 * for each, from any thread but never from within a call to the reader. Reads begin in the order in
 * which they were handed over and may end in any order.
 *
 * One read policy holds for all locations. Bytes come from the cache if it has them; otherwise they
 * are read and put into the cache. An attempt that takes too long is given up. A failed attempt is
 * repeated after a random pause that grows (stk_backoff_s()). An attempt that is far slower than
 * others gets a hedge, and the first answer counts. A read ends with an error when time or attempts
 * are used up.
 *
 * An outage is waited out for as long as the options allow (outage.h); then the location is lost.
 * Where outages are not waited out, the location is lost after several failed reads in a row. Reads
 * of a lost location say so, and the caller should stop reading.
 */
#ifndef STK_STORAGE_READING_READER_H
#define STK_STORAGE_READING_READER_H

#include "storage/cache/cache.h"
#include "storage/source.h"
#include "storage/storage.h"

typedef struct stk_reader stk_reader;

/* One read, zeroed but for its path. It belongs to the reader from submit to done. */
typedef struct stk_read {
    const char *path; /* borrowed until done */

    /* What is asked for; 0: the bytes of an object. Only src/storage asks for other kinds. */
    stk_fetch_kind kind;
    bool bypasses_shards; /* the path is not looked up in the shards and may name a tar. Such a read
                             uses neither cache nor quarantine. Only store_reads.c sets this */
    uint64_t offset;      /* with bypasses_shards and a length: where the part begins */
    uint64_t length;      /* 0: all of it */

    stk_bytes bytes;   /* what was read; the block is used again */
    stk_error error;   /* error.status is STK_OK when it went well, STOPPED when cancelled */
    bool lost;         /* with an error: nothing more can be had from this location */
    bool refused;      /* with an error: the location has no such object, or does not give it */
    int64_t ns;        /* how long it took, without the wait for its turn */
    bool keep;         /* --cache decoded, and the object is not cached yet: stk_store_keep() will
                          cache what the caller makes of the bytes */
    stk_cache_key key; /* for stk_store_keep() */
} stk_read;

typedef struct stk_reader_config {
    stk_store *store; /* borrowed, must outlive the reader */
    void (*done)(void *user, stk_read *read);
    void *user;
} stk_reader_config;

STK_CHECKED stk_status stk_reader_open(stk_reader **reader, const stk_reader_config *config,
                                       stk_error *err);

/* Cancels the reads under way, waits for their callbacks, and frees the reader. NULL is fine. */
void stk_reader_close(stk_reader *reader);

/* False without memory: then the read is not under way. */
STK_CHECKED bool stk_reader_submit(stk_reader *reader, stk_read *read);

/* The caller lacks bytes: a location that uses threads starts one more. */
void stk_reader_hurry(stk_reader *reader);

/* Ends all reads that are under way soon, with STK_ERR_STOPPED unless they were done already. */
void stk_reader_cancel(stk_reader *reader);

#endif
