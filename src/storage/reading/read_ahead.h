/*
 * read_ahead.h - keeps reads in flight in front of threads that use the bytes.
 *
 * The caller has a list of objects and threads that want their bytes in that order. It hands over
 * one read after another for as long as stk_read_ahead_has_room() says so, and its threads take the
 * reads that have arrived, the earliest first. The loader and `stoker stage` work this way. The
 * number of reads is limited in two ways: by a window, which doubles while threads are without
 * bytes, and by the memory that arriving and unused bytes take together.
 *
 * Ownership: a stk_read_ahead_item and its memory are the caller's. The read-ahead uses it between
 * submit and release.
 *
 * Threads: the caller's one lock guards the read-ahead and its reads. The caller holds it in every
 * call here but open and close; both callbacks are called with it. Waiting releases it.
 */
#ifndef STK_STORAGE_READING_READ_AHEAD_H
#define STK_STORAGE_READING_READ_AHEAD_H

#include <pthread.h>
#include <stdatomic.h>

#include "storage/reading/reader.h"

/* One object on its way. Zeros, but for read.path, before it is first used. */
typedef struct stk_read_ahead_item {
    stk_read read;  /* first: the reader's callback gets from it to the whole struct */
    uint64_t order; /* reads are taken in the order in which they were handed over */
    size_t held; /* bytes that count as used memory: what has arrived, or what stk_read_ahead_hold
                    says */
    double expected; /* bytes that count as used memory while the read is in flight */
    bool is_unsized; /* in flight, and no size was known to expect */
    bool is_alone;   /* read by stk_read_ahead_read_alone, outside of window and order */
    bool is_read;    /* a read that is alone has ended */
    struct stk_read_ahead_item *next; /* in the list of reads that have arrived */
} stk_read_ahead_item;

typedef struct stk_read_ahead_config {
    stk_store *store;      /* borrowed */
    pthread_mutex_t *lock; /* the caller's */
    pthread_cond_t *work;  /* the caller's, on the monotonic clock: signalled for each read that has
                              arrived; threads wait for it in stk_read_ahead_wait */
    size_t window;         /* reads between submit and release, at first */
    size_t most_window;    /* what the window may grow to */
    uint64_t memory;       /* bytes for reads in flight and for bytes that are held */
    double request_bytes;  /* memory of a read in flight besides its bytes */
    /*
     * A read has ended, well or not; a failed read has no bytes. The callback calls
     * stk_read_ahead_make_ready or stk_read_ahead_release, unless the read is alone. It is
     * stk_tasks_read_arrived() in the loader, take_read() in staging.
     */
    void (*arrived)(void *user, stk_read_ahead_item *item);
    /*
     * There may be room for more reads: hand them over. It is stk_tasks_issue() in the loader,
     * issue() in staging.
     */
    void (*issue)(void *user);
    void *user; /* of both callbacks */
} stk_read_ahead_config;

typedef struct stk_read_ahead {
    stk_read_ahead_config config;
    stk_reader *reader;         /* owned */
    pthread_cond_t alone;       /* a read that is alone has ended */
    stk_read_ahead_item *ready; /* have arrived, in order */
    uint64_t issued;            /* reads handed over so far */
    size_t window;              /* reads between submit and release, at most */
    size_t under_way;           /* reads between submit and release */
    size_t unsized;             /* reads in flight of unknown size */
    size_t held_bytes;          /* sum of `held` */
    double coming_bytes;        /* sum of `expected` */
    double mean_bytes;          /* running mean of the sizes of objects; 0: none is known */
    int64_t flight_ns;   /* how long at least one read was in flight, up to the last landing */
    int64_t took_off_ns; /* monotonic clock: since when reads are in flight, if any is */
    /* Written with the lock, read without it for statistics. */
    atomic_ullong in_flight;
    atomic_ullong ready_count;
} stk_read_ahead;

/* `mean_bytes` is what objects are expected to have, 0 where nobody knows. No thread may use the
 * read-ahead before this returns. */
STK_CHECKED stk_status stk_read_ahead_open(stk_read_ahead *ahead,
                                           const stk_read_ahead_config *config, double mean_bytes,
                                           stk_error *err);

/*
 * Ends the reads in flight, waits for their callbacks and frees the memory. No thread may use the
 * read-ahead any more. A struct of zeros is fine. Without the lock.
 */
void stk_read_ahead_close(stk_read_ahead *ahead);

/*
 * Whether one more read may be handed over: the window and the memory must have room. The memory
 * does not limit the first `least` reads, or nothing would move.
 */
bool stk_read_ahead_has_room(const stk_read_ahead *ahead, size_t least);

/* Hands over the next read. False without memory: it is not under way then. */
STK_CHECKED bool stk_read_ahead_submit(stk_read_ahead *ahead, stk_read_ahead_item *item);

/* The same for an item that needs no bytes: it is ready at once, in its order. */
void stk_read_ahead_skip(stk_read_ahead *ahead, stk_read_ahead_item *item);

/* Puts a read that has arrived among those that threads take. */
void stk_read_ahead_make_ready(stk_read_ahead *ahead, stk_read_ahead_item *item);

/* The earliest read that is ready, which is then the caller's; NULL: none is. */
stk_read_ahead_item *stk_read_ahead_take(stk_read_ahead *ahead);

/*
 * Waits until config.work is signalled. When reads are in flight and nothing arrives within two
 * milliseconds, the window doubles, more reads are issued, and storage gets one more thread.
 */
void stk_read_ahead_wait(stk_read_ahead *ahead);

/* Nanoseconds so far in which at least one read was in flight. The loader asks before and after a
 * wait; the difference is the part of the wait that storage caused. */
int64_t stk_read_ahead_flight_ns(const stk_read_ahead *ahead);

/* From now on so many bytes of the item count as used memory. */
void stk_read_ahead_hold(stk_read_ahead *ahead, stk_read_ahead_item *item, size_t bytes);

/*
 * The caller is done with an item: it leaves the window and may be submitted again. Its block is
 * kept for the next object unless it is unusually large.
 */
void stk_read_ahead_release(stk_read_ahead *ahead, stk_read_ahead_item *item);

/* Frees a block that is unusually large. */
void stk_read_ahead_trim(const stk_read_ahead *ahead, stk_bytes *bytes);

/*
 * Reads one more object at once and waits for it, outside of window and order. False without
 * memory.
 */
STK_CHECKED bool stk_read_ahead_read_alone(stk_read_ahead *ahead, stk_read_ahead_item *item);

/* Makes all reads in flight end soon, with STK_ERR_STOPPED. */
void stk_read_ahead_cancel(stk_read_ahead *ahead);

#endif
