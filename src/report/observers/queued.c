/* queued.c - events copied by the tables of their fields, and told again elsewhere. */
#include "report/observers/queued.h"

#include <inttypes.h>
#include <stdio.h>

#include "base/clock.h"
#include "base/error.h"
#include "base/text/locale.h"
#include "base/mem.h"
#include "report/text/event_copy.h"

/* One event on its way to the other thread. */
typedef struct queued_event {
    stk_observer_told told;
    int64_t moment_ns; /* when it happened */
    uint64_t lost;     /* events that were lost directly before this one */
    bool lost_memory;  /* some of them for lack of memory */
    stk_event_kind kind;
    stk_any_event event;
    stk_event_pool pool; /* what the event points to */
} queued_event;

struct stk_observer_aside {
    stk_event_sink sink; /* receives the events */
    stk_observer_told told;
    stk_task_queue *queue; /* borrowed */
    stk_observer_lost lost;
    uint64_t untold;    /* events that were lost since the last one that was taken */
    bool untold_memory; /* some of these for lack of memory */
};

static void free_event(queued_event *q) {
    stk_event_pool_clear(&q->pool);
    stk_mem_free(q);
}

/* ---- the thread's side ---- */

static void deliver(void *user) {
    queued_event *q = user;
    const stk_observer *to = q->told.observer;
    stk_locale locale = stk_locale_enter();
    if (q->told.at != NULL) {
        q->told.at(q->told.user, q->moment_ns);
    }
    if (q->lost > 0 && to->warning != NULL) {
        char text[120];
        snprintf(text, sizeof text, "%" PRIu64 " events are missing here: %s", q->lost,
                 q->lost_memory ? "there was no memory for them" : "the disk did not answer");
        to->warning(to->user, text);
    }
    stk_event_pass(to, q->kind, &q->event);
    stk_locale_leave(locale);
    free_event(q);
}

/* ---- the giver's side ---- */

static void lose(stk_observer_aside *a, stk_status why) {
    a->lost.events++;
    a->untold++;
    a->lost.memory = a->lost.memory || why == STK_ERR_MEMORY;
    a->untold_memory = a->untold_memory || why == STK_ERR_MEMORY;
}

/* STK_OK: the queue has taken the event. */
static stk_status queue_event(stk_observer_aside *a, stk_event_kind kind, const void *event) {
    queued_event *q = stk_mem_new(1, sizeof *q);
    if (q == NULL) {
        return STK_ERR_MEMORY;
    }
    *q = (queued_event){.told = a->told,
                        .moment_ns = stk_clock_ns(),
                        .lost = a->untold,
                        .lost_memory = a->untold_memory,
                        .kind = kind};
    stk_event_copy(&q->pool, kind, event, &q->event);
    /* A task of 0 bytes is never refused for lack of room. */
    stk_queue_task task = {.work = deliver,
                           .user = q,
                           .bytes = kind == STK_EVENT_STOP ? 0 : sizeof *q + q->pool.bytes};
    stk_status status = q->pool.failed ? STK_ERR_MEMORY : stk_task_queue_put(a->queue, &task, 0);
    if (status != STK_OK) {
        free_event(q);
    }
    return status;
}

static void take(void *user, stk_event_kind kind, const void *event) {
    stk_observer_aside *a = user;
    if (kind == STK_EVENT_PROGRESS || kind == STK_EVENT_BATCH) {
        return;
    }
    stk_status status = queue_event(a, kind, event);
    if (status == STK_OK) {
        a->untold = 0;
        a->untold_memory = false;
    } else {
        lose(a, status);
    }
    if (kind == STK_EVENT_STOP) {
        a->lost.stop = status != STK_OK;
    }
}

stk_status stk_observer_aside_new(stk_observer_aside **aside, stk_task_queue *queue,
                                  const stk_observer_told *told, stk_error *err) {
    stk_observer_aside *a = stk_mem_new(1, sizeof *a);
    if (a == NULL) {
        return STK_FAIL_MEMORY(err, "an observer");
    }
    a->told = *told;
    a->queue = queue;
    stk_event_sink_open(&a->sink, take, a);
    *aside = a;
    return STK_OK;
}

void stk_observer_aside_free(stk_observer_aside *aside) {
    stk_mem_free(aside);
}

const stk_observer *stk_observer_aside_observer(stk_observer_aside *aside) {
    return &aside->sink.observer;
}

stk_observer_lost stk_observer_aside_lost(const stk_observer_aside *aside) {
    return aside->lost;
}
