/*
 * relay.h - what the rooms tell, passed on to a job's listeners with each bad image once.
 *
 * Pictures are read again in every epoch, by every fold and by every model; who listens wants to
 * hear of a bad one a single time. One thread at a time.
 */
#ifndef STK_JOB_RELAY_H
#define STK_JOB_RELAY_H

#include <stdint.h>

#include "base/map.h"
#include "events/events.h"

typedef struct stk_relay {
    stk_events events;    /* what rooms are handed */
    stk_observer own;     /* the only one in events */
    const stk_events *to; /* borrowed: the listeners */
    stk_map told;         /* paths; they belong to the data set */
    int64_t bad_images;   /* told so far */
} stk_relay;

/* The relay must stay where it is until it is freed; so must what it is told of. */
void stk_relay_open(stk_relay *relay, const stk_events *to);
void stk_relay_free(stk_relay *relay);

#endif
