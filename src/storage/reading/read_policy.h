/*
 * read_policy.h - inside storage: when a read is slow, is tried again or twice, and is given up.
 *
 * Arithmetic on times alone, the same for all kinds of places, so that it can be tested without
 * waiting. All times are those of stk_clock_ns(). Threads: its owner's lock guards it.
 */
#ifndef STK_STORAGE_READING_READ_POLICY_H
#define STK_STORAGE_READING_READ_POLICY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/numbers/rng.h"

/* How many of the latest good reads are the peers that others are compared with. */
#define STK_READ_POLICY_PEERS 64

typedef struct stk_read_policy {
    int64_t timeout_ns;                      /* for an attempt without a sign of life */
    int64_t peers_ns[STK_READ_POLICY_PEERS]; /* how long the latest good reads took */
    size_t good_reads;                       /* so far */
    int64_t answer_ns;                       /* when the location last answered; 0: not yet */
    int64_t median_ns;                       /* of the peers; 0: there are too few */
    double credit;                           /* second attempts that may be made */
    int given_up;                            /* reads in a row, without an answer between them */
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

/* Looks at the peers again; for now and then. */
void stk_read_policy_update_median(stk_read_policy *p);

/*
 * How long to wait after a number of failures: twice as long each time, from half to all of that,
 * since those who failed together must not come back together; at least what the location asked
 * for, within reason.
 */
int64_t stk_read_policy_pause_ns(stk_read_policy *p, int failures, double asked_s);

/* Whether a read that is at work since first_ns and could be tried again at next_ns is not. */
bool stk_read_policy_gives_up(const stk_read_policy *p, int failures, int damaged, int64_t first_ns,
                              int64_t next_ns);

/* Whether an attempt is given up that began at started_ns and was last heard of at heard_ns.
 */
bool stk_read_policy_has_timed_out(const stk_read_policy *p, int64_t now_ns, int64_t started_ns,
                                   int64_t heard_ns);

/* The same for one that still waits for its turn: when nobody has got anything for long. */
bool stk_read_policy_is_stuck(const stk_read_policy *p, int64_t now_ns, int64_t begun_ns);

/* Whether a second attempt is made beside one that has taken age_ns; if so it is counted. */
bool stk_read_policy_hedges(stk_read_policy *p, int64_t age_ns);

/*
 * A read that first failed at failed_ns was given up. True when that may be the location's fault,
 * and then it is counted: nobody got an answer since.
 */
bool stk_read_policy_defers(stk_read_policy *p, int64_t failed_ns);

/* So many doubts in a row that the location is lost. */
bool stk_read_policy_is_lost(const stk_read_policy *p);

#endif
