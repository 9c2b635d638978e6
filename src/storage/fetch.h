/*
 * fetch.h - inside storage: one attempt to get something from a location, its result, and the wait
 * before the next attempt.
 *
 * Threads: a stk_fetch belongs to whoever begins it until the source's begin(), then to the source
 * until it calls `done`.
 */
#ifndef STK_STORAGE_FETCH_H
#define STK_STORAGE_FETCH_H

#include <stdatomic.h>

#include <stoker/status.h>

#include "base/files/file.h"
#include "base/numbers/rng.h"

/* What an attempt shall bring. Only sources without a tree are asked for the last three. */
typedef enum stk_fetch_kind {
    STK_FETCH_BYTES,    /* of an object, all or a part */
    STK_FETCH_LIST,     /* of a folder: for each entry "d" or "f", its name and a NUL; sorted */
    STK_FETCH_IDENTITY, /* of a folder: a stk_store_identity */
    STK_FETCH_VERSION   /* a text that changes when the object does */
} stk_fetch_kind;

/* How an attempt ended. */
typedef enum stk_fetch_verdict {
    STK_FETCH_OK,
    STK_FETCH_AGAIN,     /* the location is busy or does not answer: it may work later */
    STK_FETCH_NO_MEMORY, /* it may work later. With STK_ERR_STORAGE: responses in flight take all
                            memory that they may; with STK_ERR_MEMORY: an allocation failed */
    STK_FETCH_DAMAGED,   /* the wrong number of bytes or a wrong checksum: it may work at once */
    STK_FETCH_NEVER,     /* this object is missing or refused */
    STK_FETCH_LOST,      /* nothing can be had from this location: credentials, no such bucket */
    STK_FETCH_CANCELLED, /* it was told to stop */
} stk_fetch_verdict;

/* Most bytes of a cause, the NUL included. */
#define STK_FETCH_CAUSE_BYTES 500

/* How the cause begins when no response came; sentences about an outage leave it out. */
#define STK_FETCH_NO_ANSWER "no answer: "

typedef struct stk_fetch_result {
    stk_fetch_verdict verdict;
    double wait_s; /* how long the location asks to wait before the next try; 0: it does not ask.
                      stk_backoff_s() limits the wait */
    stk_status status; /* of the error, unless the verdict is OK or CANCELLED */
    bool is_sentence;  /* the cause is a whole sentence that names the object */
    /* What follows "cannot read OBJECT: ". STK_ERR_MEMORY has a sentence of its own instead. */
    char cause[STK_FETCH_CAUSE_BYTES];
} stk_fetch_result;

/* Writes a failure, but for wait_s, and returns the verdict. */
stk_fetch_verdict stk_fetch_fail(stk_fetch_result *result, stk_fetch_verdict verdict,
                                 stk_status status, const char *format, ...) STK_PRINTF(4, 5);

/* The error for users: "cannot read WHERE/PATH: cause". It replaces what is in err. */
void stk_fetch_explain(const stk_fetch_result *result, const char *where, const char *path,
                       stk_error *err);

typedef struct stk_fetch {
    stk_fetch_kind kind;
    const char *path; /* below the location; for begin only: it may be gone before done */
    uint64_t offset;
    uint64_t length;         /* 0: the whole object */
    stk_bytes bytes;         /* out; may hold a block to be used again */
    stk_fetch_result result; /* out; the beginner clears wait_s */
    atomic_llong started_ns; /* when it really began, after waiting for its turn; 0: not yet */
    atomic_llong heard_ns;   /* when bytes last arrived; a source need not set it */
    void *serving; /* the source's own struct for the fetch; NULL: the fetch has ended and cannot be
                      cancelled */
    /*
     * The source calls it exactly once, as the last use of the fetch. It is attempt_done() of
     * reading/in_flight.c.
     */
    void (*done)(struct stk_fetch *fetch);
} stk_fetch;

/*
 * Seconds to wait after `failures` failures in a row, 1 or more: 0.1 after the first, twice as long
 * after each further one, at most 5. A random part, up to half, is left out, so that requests that
 * failed together do not come back together. If the location asks for a wait of `asked_s`, the
 * pause is at least that long, but at most 5. Readers and the lister of S3 share it; the caller's
 * lock guards `rng`.
 */
double stk_backoff_s(stk_rng *rng, int failures, double asked_s);

#endif
