/*
 * in_flight.h - inside storage's reader: reads that are in flight, and their attempts.
 *
 * A stk_active_read is a read that has not ended. It has at most two attempts at a time: the first,
 * and a hedge. An attempt belongs to its source from begin to done. An attempt that is not wanted
 * any more is detached from its read, cancelled, and dropped when the source has ended it.
 *
 * A read that fails for good may mean one bad object, or be the first sign of a lost location.
 * When reads fail and the location is silent, the reader therefore reads an object again that it
 * read before: the probe. The failure of a read that is given up during silence is deferred. The
 * caller is told when the location answers somebody (the object was bad), when too many failures
 * are deferred (the location is lost), or when no other read is left to wait for.
 *
 * Where outages are waited out (outage.h), silence is no object's fault: such attempts are repeated
 * until the location answers or the outage has lasted too long, and no failure is deferred.
 *
 * The caller holds the reader's lock in all calls here, unless a comment says otherwise.
 */
#ifndef STK_STORAGE_READING_IN_FLIGHT_H
#define STK_STORAGE_READING_IN_FLIGHT_H

#include <pthread.h>

#include "storage/reading/read_policy.h"
#include "storage/reading/store_state.h"

/*
 * What an attempt asks: the source for bytes, the source for the version (for the cache's key), or
 * the cache.
 */
typedef enum stk_attempt_kind { ATTEMPT_SOURCE, ATTEMPT_VERSION, ATTEMPT_CACHE } stk_attempt_kind;

typedef struct stk_read_attempt {
    stk_fetch fetch; /* first: `done` gets from it to the attempt */
    stk_reader *reader;
    struct stk_active_read *active; /* its read; NULL: detached */
    stk_attempt_kind kind;
    const stk_storage_source *source; /* where it is made, unless the cache is asked */
    void *location;                   /* of `source` */
    int64_t begun_ns; /* when it was handed to the source or the cache. fetch.started_ns is when its
                         turn came there */
    int holders;      /* references: the source, and the thread that is about to cancel it */
    struct stk_read_attempt *next; /* in the list of unwanted or of spare attempts */
} stk_read_attempt;

/* A read that has not ended. */
typedef struct stk_active_read {
    stk_read *read;    /* the caller's; its error is that of the latest failed attempt */
    stk_extent extent; /* where it is */
    bool is_part;      /* `extent` is set: a member of a shard, or a part of an object */
    stk_cache_key key; /* when has_key */
    bool has_key;
    bool is_new; /* the bytes come from the source and are to be cached */
    stk_read_attempt *attempts[2];
    int64_t begun_ns;        /* when the read was submitted */
    int64_t counted_from_ns; /* start of the first attempt that counts, for giving up and for
                                read->ns; 0: none counts yet, or the latest was excused */
    int64_t first_failed_ns; /* when the first attempt failed; 0: none has failed */
    int64_t last_failed_ns;  /* when the latest attempt failed; 0: none has failed */
    int64_t retry_ns;        /* when the next attempt is due; 0: an attempt is in flight */
    bool hasten;             /* the latest failure was excused: try again soon, once, when the
                                location answers */
    int64_t deferred_ns;     /* since when its failure is deferred; 0: it is not */
    bool hedged;             /* the read has had its hedge */
    bool ended;              /* the read is over without an attempt: it is empty, too large or in
                                quarantine, or memory is short. The watch thread calls `done`, since
                                submit must not. */
    int failures;            /* failed attempts */
    int blamed;              /* failed attempts that count against the object */
    int damaged;             /* failed attempts that brought wrong bytes */
    uint64_t generation;     /* number of stk_reader_cancel calls before it was submitted */
    struct stk_active_read *prev, *next;
} stk_active_read;

struct stk_reader {
    stk_reader_config config;
    stk_store *store;
    pthread_mutex_t lock;
    pthread_cond_t wake; /* for the watch thread */
    pthread_cond_t calm; /* for close: no attempt is left */
    pthread_t watch;
    bool quit;                  /* the lock guards this and all below */
    bool idle;                  /* the watch thread sleeps without a time-out */
    bool stirred;               /* the watch thread is to look again at once */
    stk_active_read *first;     /* reads in flight, the latest first */
    size_t attempts;            /* attempts whose callback has not returned */
    stk_read_attempt *unwanted; /* attempts to be cancelled */
    stk_read_attempt *spare;    /* attempts to be reused */
    uint64_t generation;
    uint64_t cancel_before; /* reads of earlier generations are to end as stopped */
    stk_read_policy policy;
    stk_error lost;   /* the error of all reads once the location is lost */
    char *known;      /* owned: an object that was read lately, or NULL */
    int64_t known_ns; /* when `known` was read */
    stk_read probe;   /* the read of `probe_path` */
    char *probe_path; /* owned: not NULL while the probe is under way */
    int64_t probe_ns; /* when the probe last began */
};

/* Makes the watch thread look at all reads now, also when it is about to sleep. */
void stk_reader_wake(stk_reader *r);

/* Makes the struct for a read that is not in flight yet; NULL without memory. */
stk_active_read *stk_active_read_new(const stk_reader *r, stk_read *read);

/* Adds a new read to the list and begins its first attempt. */
void stk_active_read_start(stk_reader *r, stk_active_read *active);

/*
 * Begins the next attempt of a read that has none; `version` is the object's, or NULL. If no
 * attempt can or need be begun, marks the read ended; the watch reports it, because submit must not
 * call back.
 */
void stk_active_read_continue(stk_reader *r, stk_active_read *active, const char *version);

/* Makes a second attempt beside the first, once. Does nothing without memory. */
void stk_active_read_hedge(stk_reader *r, stk_active_read *active);

/* Gives up an attempt that takes too long. True when the read is over. */
bool stk_active_read_time_out(stk_reader *r, stk_active_read *active, int which);

/* Ends a read as lost or as stopped, and takes it out of the list. */
void stk_active_read_end_lost(stk_reader *r, stk_active_read *active);
void stk_active_read_end_stopped(stk_reader *r, stk_active_read *active);

/* The location has been silent for as long as an outage may last: it is lost. */
void stk_reader_lose_after_outage(stk_reader *r);

/* Takes a read out of the list; the caller then reports it. */
void stk_active_read_remove(stk_reader *r, stk_active_read *active);

/* Cancels the attempts that were detached. Releases the lock meanwhile: sources may call back. */
void stk_reader_cancel_unwanted(stk_reader *r);

/* Reports a read to the caller and frees it. Without the lock; the read has left the list. */
void stk_active_read_report(stk_reader *r, stk_active_read *active);

#endif
