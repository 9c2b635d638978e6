/*
 * any_event.c - turns the callbacks of an observer into calls of one function, and back.
 *
 * KINDS lists every kind whose callback takes a pointer to a struct: a new event is one row there.
 * The warning, whose callback takes a text, is written out.
 */
#include "events/any_event.h"

/* X(constant, callback and member of stk_any_event, type of its event) */
#define KINDS(X)                                              \
    X(STK_EVENT_START, start, stk_event_start)                \
    X(STK_EVENT_PLAN, plan, stk_event_plan)                   \
    X(STK_EVENT_DECISION, decision, stk_event_decision)       \
    X(STK_EVENT_STEP, step, stk_event_step)                   \
    X(STK_EVENT_EPOCH, epoch, stk_event_epoch)                \
    X(STK_EVENT_CHECKPOINT, checkpoint, stk_event_checkpoint) \
    X(STK_EVENT_BAD_IMAGE, bad_image, stk_event_bad_image)    \
    X(STK_EVENT_SUBMISSION, submission, stk_event_submission) \
    X(STK_EVENT_STOP, stop, stk_summary)                      \
    X(STK_EVENT_PROGRESS, progress, stk_event_progress)       \
    X(STK_EVENT_BATCH, batch, stk_event_batch)                \
    X(STK_EVENT_SAMPLE, sample, stk_event_sample)             \
    X(STK_EVENT_VERDICT, verdict, stk_event_verdict)          \
    X(STK_EVENT_ATTEMPT, attempt, stk_event_attempt)

#define SIZE(kind, callback, type) [kind] = sizeof(type),
static const size_t sizes[STK_EVENT_KINDS] = {[STK_EVENT_WARNING] = sizeof(stk_event_warning),
                                              KINDS(SIZE)};

size_t stk_event_size(stk_event_kind kind) {
    return sizes[kind];
}

#define PASS(kind, callback, type)         \
    case kind:                             \
        if (to->callback != NULL) {        \
            to->callback(to->user, event); \
        }                                  \
        break;

void stk_event_pass(const stk_observer *to, stk_event_kind kind, const void *event) {
    switch (kind) {
        KINDS(PASS)
    case STK_EVENT_WARNING:
        if (to->warning != NULL) {
            to->warning(to->user, ((const stk_event_warning *)event)->text);
        }
        break;
    case STK_EVENT_KINDS:
        break;
    }
}

/* The callbacks of a sink; `user` is the sink. */
#define TAKE(kind, callback, type)                               \
    static void take_##callback(void *user, const type *event) { \
        const stk_event_sink *sink = user;                       \
        sink->take(sink->user, kind, event);                     \
    }
KINDS(TAKE)

static void take_warning(void *user, const char *text) {
    const stk_event_sink *sink = user;
    const stk_event_warning event = {text};
    sink->take(sink->user, STK_EVENT_WARNING, &event);
}

#define ENTRY(kind, callback, type) .callback = take_##callback,

void stk_event_sink_open(stk_event_sink *sink,
                         void (*take)(void *user, stk_event_kind kind, const void *event),
                         void *user) {
    *sink = (stk_event_sink){
        .observer = {.size = sizeof sink->observer,
                     .user = sink,
                     .warning = take_warning,
                     KINDS(ENTRY)},
        .take = take,
        .user = user,
    };
}
