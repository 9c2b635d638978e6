/*
 * outage.h - inside storage: outages, times in which a location answers nobody.
 *
 * An answer is bytes or a definite no; a response such as 503 is none, and a location that sends
 * only such responses is silent. A read that fails during an outage says nothing about its object.
 * The readers of a store report every answer and every attempt that failed without one. From these
 * reports outage.c knows whether an object is to blame, since when the location is silent, and when
 * the silence has lasted too long. A location that has never answered has no outages: it may not
 * exist.
 *
 * Threads: all calls are safe from any thread. Times are those of stk_clock_ns().
 */
#ifndef STK_STORAGE_READING_OUTAGE_H
#define STK_STORAGE_READING_OUTAGE_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct stk_outage {
    int64_t most_ns;        /* how long an outage is waited out; 0: not at all */
    atomic_llong answer_ns; /* when the location last answered; 0: it never has */
    atomic_llong begun_ns;  /* since when nothing comes; 0: there is no outage; written with lock */
    pthread_mutex_t lock;
    char why[300];     /* why the latest attempt failed; lock */
    int64_t looked_ns; /* when somebody last asked how long it lasts; lock */
    double failing;    /* the share of reads whose first attempt fails, lately; lock */
    bool told;         /* the present outage was reported; lock */
    double over_s;     /* how long an outage took whose end is still to be told; 0: none; lock */
} stk_outage;

void stk_outage_open(stk_outage *o, double most_s);
void stk_outage_close(stk_outage *o);

/* Whether silence is waited out: --outage is above 0, and the location has answered before. */
bool stk_outage_is_waited_out(const stk_outage *o);

/* The location has answered something. `first`: to the first attempt of a read. */
void stk_outage_answered(stk_outage *o, int64_t now_ns, bool first);

/*
 * An attempt has failed without an answer; `why` is the cause. `since_ns` is when the read failed
 * before, or else when the attempt started. True when the object is not to blame: no read got an
 * answer since then. `first`: it was the first attempt of its read.
 */
bool stk_outage_missed(stk_outage *o, int64_t since_ns, int64_t now_ns, bool first,
                       const char *why);

/* Whether over a quarter of the first attempts failed lately, though the location answers. */
bool stk_outage_is_ill(stk_outage *o);

/*
 * Whether the location has been silent for too long; asked many times a second while reads are
 * under way. Time in which nobody asked does not count: this process was stopped, not the location.
 */
bool stk_outage_is_too_long(stk_outage *o, int64_t now_ns);

/* One sentence for people, when an outage has lasted for some seconds, and one when it is over. */
bool stk_outage_notice(stk_outage *o, const char *location, int64_t now_ns, char *buf, size_t size);

#endif
