/*
 * in_flight.h - inside storage's reader: reads that are under way, and their attempts.
 *
 * A read that is under way is a read. It has at most two attempts at a time; an attempt
 * belongs to its source until done, so one that is not wanted any more is cut loose from its
 * read, cancelled and dropped when it ends.
 *
 * A read that fails for good may be one bad object or the first sign of a location that is gone. So
 * when reads get into trouble and the location is silent, the reader reads once more what it got
 * before: the probe. A read that is given up without anything having come since is a doubt: its
 * owner is told when the location answers somebody (the object was bad), when there are too many
 * doubts (the location is lost), or when there is no other read left to wait for.
 *
 * Where an outage is waited out (outage.h), silence is nobody's fault: such attempts are made again
 * until the location answers or the outage has lasted too long, and there are no doubts.
 *
 * Everything here is called with the reader's lock, unless it says otherwise.
 */
#ifndef STK_STORAGE_READING_IN_FLIGHT_H
#define STK_STORAGE_READING_IN_FLIGHT_H

#include <pthread.h>

#include "storage/reading/read_policy.h"
#include "storage/reading/store_state.h"

/* How an attempt gets its bytes. */
typedef enum stk_attempt_kind { ATTEMPT_SOURCE, ATTEMPT_VERSION, ATTEMPT_CACHE } stk_attempt_kind;

typedef struct stk_read_attempt {
    stk_fetch fetch; /* the source's between begin and done */
    stk_reader *reader;
    struct stk_active_read *owner; /* NULL: cut loose */
    stk_attempt_kind kind;
    int64_t begun_ns;
    int holders;                   /* the source, and whoever is about to cancel it */
    struct stk_read_attempt *next; /* among those to be cancelled, or the spare ones */
} stk_read_attempt;

/* A read that is under way. */
typedef struct stk_active_read {
    stk_read *read; /* its error is that of the last attempt that failed */
    stk_read_request request;
    stk_extent extent; /* where it is */
    bool is_part;      /* the extent counts: a member of a shard, or a part of an object */
    stk_cache_key key; /* when has_key */
    bool has_key;
    bool is_new; /* the bytes come from the source and belong into the cache */
    stk_read_attempt *attempts[2];
    int64_t begun_ns;
    int64_t first_ns;    /* when the first attempt that ended really began; 0: none has */
    int64_t failed_ns;   /* when it failed; 0: none has */
    int64_t missed_ns;   /* when the latest failed; 0: none has */
    int64_t retry_ns;    /* when to try again; 0: an attempt is under way */
    bool excused;        /* the latest attempt failed, and its object was not to blame */
    int64_t deferred_ns; /* since when it is a doubt; 0: it is none */
    bool hedged;         /* it has had its second attempt beside a first */
    bool ended;          /* the watch is to tell of it: nobody may be told from within submit */
    int failures;        /* attempts */
    int blamed;          /* of these: its object's fault, as far as that can be known */
    int damaged;         /* of these: the wrong bytes came */
    uint64_t generation; /* which cancel it came after */
    struct stk_active_read *prev, *next;
} stk_active_read;

struct stk_reader {
    stk_reader_config config;
    stk_store *store;
    pthread_mutex_t lock;
    pthread_cond_t wake; /* the watch */
    pthread_cond_t calm; /* no attempt is left */
    pthread_t watch;
    bool quit;                  /* the lock guards this and all below */
    bool idle;                  /* the watch sleeps until somebody wakes it */
    bool stirred;               /* the watch is to look at once */
    stk_active_read *first;     /* reads that are not finished, the latest first */
    size_t attempts;            /* that have not ended, with their callbacks */
    stk_read_attempt *unwanted; /* to be cancelled */
    stk_read_attempt *spare;    /* to be used again */
    uint64_t generation;
    uint64_t cancel_before; /* reads of earlier generations end */
    stk_read_policy policy;
    stk_error lost;   /* what is said once the location is lost */
    char *known;      /* owned: an object that was read lately, or NULL */
    int64_t known_ns; /* when it was */
    stk_read probe;   /* reads it again */
    char *probe_path; /* owned: not NULL while the probe is under way */
    int64_t probe_ns; /* when it last was begun */
};

/* Has the watch look now, also when it is just about to sleep. */
void stk_reader_wake(stk_reader *r);

/* A read of a read, not in the air yet; NULL without memory. */
stk_active_read *stk_active_read_new(const stk_reader *r, stk_read *read,
                                     const stk_read_request *request);

/* Puts a read into the air. */
void stk_active_read_start(stk_reader *r, stk_active_read *active);

/* Goes on with a read that has no attempt; `version` is what was learnt of it, or NULL.
 */
void stk_active_read_continue(stk_reader *r, stk_active_read *active, const char *version);

/* Makes a second attempt beside the first, once; without memory it is left at that. */
void stk_active_read_hedge(stk_reader *r, stk_active_read *active);

/* Gives up an attempt that takes too long. True when the read is over. */
bool stk_active_read_time_out(stk_reader *r, stk_active_read *active, int which);

/* Ends a read with the location's loss, or as stopped. It has landed then. */
void stk_active_read_end_lost(stk_reader *r, stk_active_read *active);
void stk_active_read_end_stopped(stk_reader *r, stk_active_read *active);

/* The location has been silent for as long as an outage may last: it is lost. */
void stk_reader_lose_silent(stk_reader *r);

/* Takes a read out of the air; whoever called then tells of it. */
void stk_active_read_remove(stk_reader *r, stk_active_read *active);

/* Cancels the attempts that were cut loose. Releases the lock meanwhile: sources may call back. */
void stk_reader_cancel_unwanted(stk_reader *r);

/* Tells a read's owner, without the lock; the read has landed and is freed. */
void stk_active_read_report(stk_reader *r, stk_active_read *active);

#endif
