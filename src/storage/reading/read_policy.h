/*
 * read_policy.h - inside storage: the read policy, which says when an attempt has timed out, and
 * when a read is retried, hedged or given up.
 *
 * It is arithmetic on times alone, the same for all sources, so that tests need not wait. All times
 * are those of stk_clock_ns(). Threads: the lock of the reader that owns it guards it.
 */
#ifndef STK_STORAGE_READING_READ_POLICY_H
#define STK_STORAGE_READING_READ_POLICY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/numbers/rng.h"

/* The peers: the latest successful reads, with which the age of an attempt is compared. */
#define STK_READ_POLICY_PEERS 64

typedef struct stk_read_policy {
    int64_t timeout_ns;                      /* for an attempt without a sign of life */
    int64_t peers_ns[STK_READ_POLICY_PEERS]; /* durations of the latest successful reads */
    size_t good_reads;                       /* successful reads so far */
    int64_t answer_ns;                       /* when the location last answered; 0: not yet */
    int64_t median_ns;                       /* of the peers; 0: there are too few */
    double credit; /* how many hedges may be made now; grows with each read */
    int given_up;  /* reads given up in a row without an answer in between */
    stk_rng rng;
} stk_read_policy;

/* `seed` makes the pauses of two readers differ. */
void stk_read_policy_init(stk_read_policy *p, double timeout_s, uint64_t seed);

/* A read was handed over. */
void stk_read_policy_count_read(stk_read_policy *p);

/* The location has answered something, if only that it has no such object. */
void stk_read_policy_note_answer(stk_read_policy *p, int64_t now_ns);

/* A read has brought its bytes. */
void stk_read_policy_note_success(stk_read_policy *p, int64_t now_ns, int64_t took_ns);

/* Computes the median of the peers again; called several times a second. */
void stk_read_policy_update_median(stk_read_policy *p);

/* The pause before the next attempt (stk_backoff_s()). */
int64_t stk_read_policy_backoff_ns(stk_read_policy *p, int failures, double asked_s);

/*
 * Whether a read is given up instead of retried at next_ns. `blamed` is the number of its failed
 * attempts that count against the object; the time of the read counts from from_ns.
 */
bool stk_read_policy_gives_up(const stk_read_policy *p, int blamed, int damaged, int64_t from_ns,
                              int64_t next_ns);

/* Whether an attempt is given up that started at started_ns; bytes last came at heard_ns. */
bool stk_read_policy_has_timed_out(const stk_read_policy *p, int64_t now_ns, int64_t started_ns,
                                   int64_t heard_ns);

/* Whether an attempt that was handed over at begun_ns and waits for its turn is given up: no read
 * has got an answer for long. */
bool stk_read_policy_is_stuck(const stk_read_policy *p, int64_t now_ns, int64_t begun_ns);

/* Takes a hedge for an attempt of this age out of the credit. False: the attempt gets none. */
bool stk_read_policy_take_hedge(stk_read_policy *p, int64_t age_ns);

/*
 * Counts a given-up read, which first failed at failed_ns, if no read got an answer since: the
 * location may be at fault. True: the read was counted, and its report is to be deferred.
 */
bool stk_read_policy_count_given_up(stk_read_policy *p, int64_t failed_ns);

/* Whether so many failures in a row are deferred that the location is lost. */
bool stk_read_policy_is_lost(const stk_read_policy *p);

#endif
