/*
 * in_flight.h - inside storage's reader: reads that are under way, and their attempts.
 *
 * A read that is under way is a flight. It has at most two attempts at a time; an attempt belongs
 * to its source until done, so one that is not wanted any more is cut loose from its flight,
 * cancelled and dropped when it ends.
 *
 * A read that fails for good may be one bad object or the first sign of a place that is gone. So
 * when reads get into trouble and the place is silent, the reader reads once more what it got
 * before: the probe. A read that is given up without anything having come since is a doubt: its
 * owner is told when the place answers somebody (the object was bad), when there are too many
 * doubts (the place is lost), or when there is no other read left to wait for.
 *
 * Where an outage is waited out (outage.h), silence is nobody's fault: such attempts are made again
 * until the place answers or the outage has lasted too long, and there are no doubts.
 *
 * Everything here is called with the reader's lock, unless it says otherwise.
 */
#ifndef STK_STORAGE_READING_IN_FLIGHT_H
#define STK_STORAGE_READING_IN_FLIGHT_H

#include <pthread.h>

#include "storage/reading/read_policy.h"
#include "storage/opened.h"

/* How an attempt gets its bytes. */
typedef enum stage { STAGE_SOURCE, STAGE_VERSION, STAGE_CACHE } stage;

typedef struct attempt {
    stk_fetch fetch; /* the source's between begin and done */
    stk_reader *reader;
    struct flight *flight; /* NULL: cut loose */
    stage stage;
    int64_t begun_ns;
    int holders;          /* the source, and whoever is about to cancel it */
    struct attempt *next; /* among those to be cancelled, or the spare ones */
} attempt;

/* A read that is under way. */
typedef struct flight {
    stk_read *read; /* its error is that of the last attempt that failed */
    stk_question question;
    stk_extent extent; /* where it is */
    bool is_part;      /* the extent counts: a member of a shard, or a part of an object */
    stk_cache_key key; /* when has_key */
    bool has_key;
    bool is_new; /* the bytes come from the source and belong into the cache */
    attempt *attempts[2];
    int64_t begun_ns;
    int64_t first_ns;    /* when the first attempt that ended really began; 0: none has */
    int64_t failed_ns;   /* when it failed; 0: none has */
    int64_t missed_ns;   /* when the latest failed; 0: none has */
    int64_t retry_ns;    /* when to try again; 0: an attempt is under way */
    bool excused;        /* the latest attempt failed, and its object was not to blame */
    int64_t doubt_ns;    /* since when it is a doubt; 0: it is none */
    bool hedged;         /* it has had its second attempt beside a first */
    bool ended;          /* the watch is to tell of it: nobody may be told from within submit */
    int failures;        /* attempts */
    int blamed;          /* of these: its object's fault, as far as that can be known */
    int damaged;         /* of these: the wrong bytes came */
    uint64_t generation; /* which cancel it came after */
    struct flight *prev, *next;
} flight;

struct stk_reader {
    stk_reader_config config;
    stk_store *store;
    pthread_mutex_t lock;
    pthread_cond_t wake; /* the watch */
    pthread_cond_t calm; /* no attempt is left */
    pthread_t watch;
    bool quit;         /* the lock guards this and all below */
    bool idle;         /* the watch sleeps until somebody wakes it */
    bool stirred;      /* the watch is to look at once */
    flight *first;     /* flights that are not finished, the latest first */
    size_t attempts;   /* that have not ended, with their callbacks */
    attempt *unwanted; /* to be cancelled */
    attempt *spare;    /* to be used again */
    uint64_t generation;
    uint64_t cancel_before; /* flights of earlier generations end */
    stk_patience patience;
    stk_error lost;   /* what is said once the place is lost */
    char *known;      /* owned: an object that was read lately, or NULL */
    int64_t known_ns; /* when it was */
    stk_read probe;   /* reads it again */
    char *probe_path; /* owned: not NULL while the probe is under way */
    int64_t probe_ns; /* when it last was begun */
};

/* Has the watch look now, also when it is just about to sleep. */
void stk_flights_stir(stk_reader *r);

/* A flight of a read, not in the air yet; NULL without memory. */
flight *stk_flights_make(const stk_reader *r, stk_read *read, const stk_question *question);

/* Puts a flight into the air. */
void stk_flights_launch(stk_reader *r, flight *f);

/* Goes on with a flight that has no attempt; `version` is what was learnt of it, or NULL. */
void stk_flights_go_on(stk_reader *r, flight *f, const char *version);

/* Makes a second attempt beside the first, once; without memory it is left at that. */
void stk_flights_hedge(stk_reader *r, flight *f);

/* Gives up an attempt that takes too long. True when the flight is over. */
bool stk_flights_expire(stk_reader *r, flight *f, int which);

/* Ends a flight with the place's loss, or as stopped. It has landed then. */
void stk_flights_end_lost(stk_reader *r, flight *f);
void stk_flights_end_stopped(stk_reader *r, flight *f);

/* The place has been silent for as long as an outage may last: it is lost. */
void stk_flights_lose_silent(stk_reader *r);

/* Takes a flight out of the air; whoever called then tells of it. */
void stk_flights_land(stk_reader *r, flight *f);

/* Cancels the attempts that were cut loose. Releases the lock meanwhile: sources may call back. */
void stk_flights_cancel_unwanted(stk_reader *r);

/* Tells a flight's owner, without the lock; the flight has landed and is freed. */
void stk_flights_tell(stk_reader *r, flight *f);

#endif
