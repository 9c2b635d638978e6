/* queued.c - a copy of each event becomes a task of the queue. */
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
    stk_queued_target target;
    int64_t moment_ns; /* when it happened */
    uint64_t lost;     /* events that were lost directly before this one */
    bool lost_memory;  /* some of them for lack of memory */
    stk_event_kind kind;
    stk_any_event event;
    stk_event_pool pool; /* what the event points to */
} queued_event;

struct stk_queued {
    stk_event_sink sink; /* receives the events */
    stk_queued_target target;
    stk_task_queue *queue; /* borrowed */
    stk_queued_lost lost;
    uint64_t unreported;    /* events that were lost since the last one that was queued */
    bool unreported_memory; /* some of them for lack of memory */
};

static void free_event(queued_event *q) {
    stk_event_pool_clear(&q->pool);
    stk_mem_free(q);
}

/* ---- on the queue's thread ---- */

static void deliver(void *user) {
    queued_event *q = user;
    const stk_observer *to = q->target.observer;
    stk_locale locale = stk_locale_enter();
    if (q->target.at != NULL) {
        q->target.at(q->target.user, q->moment_ns);
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

/* ---- on the thread of the events ---- */

static void lose(stk_queued *a, stk_status why) {
    a->lost.events++;
    a->unreported++;
    a->lost.memory = a->lost.memory || why == STK_ERR_MEMORY;
    a->unreported_memory = a->unreported_memory || why == STK_ERR_MEMORY;
}

/* STK_OK: the queue has taken the event. */
static stk_status queue_event(stk_queued *a, stk_event_kind kind, const void *event) {
    queued_event *q = stk_mem_new(1, sizeof *q);
    if (q == NULL) {
        return STK_ERR_MEMORY;
    }
    *q = (queued_event){.target = a->target,
                        .moment_ns = stk_clock_ns(),
                        .lost = a->unreported,
                        .lost_memory = a->unreported_memory,
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

static void queued_take(void *user, stk_event_kind kind, const void *event) {
    stk_queued *a = user;
    if (kind == STK_EVENT_PROGRESS || kind == STK_EVENT_BATCH) {
        return;
    }
    stk_status status = queue_event(a, kind, event);
    if (status == STK_OK) {
        a->unreported = 0;
        a->unreported_memory = false;
    } else {
        lose(a, status);
    }
    if (kind == STK_EVENT_STOP) {
        a->lost.stop = status != STK_OK;
    }
}

stk_status stk_queued_new(stk_queued **queued, stk_task_queue *queue,
                          const stk_queued_target *target, stk_error *err) {
    stk_queued *a = stk_mem_new(1, sizeof *a);
    if (a == NULL) {
        return STK_FAIL_MEMORY(err, "an observer");
    }
    a->target = *target;
    a->queue = queue;
    stk_event_sink_open(&a->sink, queued_take, a);
    *queued = a;
    return STK_OK;
}

void stk_queued_free(stk_queued *queued) {
    stk_mem_free(queued);
}

const stk_observer *stk_queued_observer(stk_queued *queued) {
    return &queued->sink.observer;
}

stk_queued_lost stk_queued_lost_of(const stk_queued *queued) {
    return queued->lost;
}
