/*
 * event_copy.h - inside the report room: copies of events that outlive the callback.
 *
 * An event points to texts and arrays that are valid only during its callback. A copy owns them
 * through a pool: every piece that was copied into the pool is freed with it. A pool starts zeroed
 * and remembers a lack of memory. Threads: one at a time.
 */
#ifndef STK_REPORT_TEXT_EVENT_COPY_H
#define STK_REPORT_TEXT_EVENT_COPY_H

#include <stdbool.h>
#include <stddef.h>

#include "events/any_event.h"

typedef struct stk_event_pool {
    struct stk_event_piece *first; /* owned: a list */
    size_t bytes;                  /* of all pieces */
    bool failed;                   /* a piece found no memory; its pointer is NULL */
} stk_event_pool;

/* Frees all pieces and forgets a failure. */
void stk_event_pool_clear(stk_event_pool *pool);

/* A copy of a text; NULL for NULL, and without memory. */
const char *stk_event_pool_text(stk_event_pool *pool, const char *text);

/*
 * Copies an event into *copy, and its texts and arrays into the pool. Without memory texts are
 * NULL, arrays empty, and pool->failed is set. Progress and batches cannot be copied.
 */
void stk_event_copy(stk_event_pool *pool, stk_event_kind kind, const void *event,
                    stk_any_event *copy);

#endif
