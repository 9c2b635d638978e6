/*
 * any_event.h - one event of any kind, for observers that treat all kinds alike.
 *
 * stk_observer has one callback per kind. An observer that writes, copies or reduces events wants
 * one function instead: a stk_event_sink turns the callbacks into calls of that function, and
 * stk_event_pass turns such a call back into a callback. An event of a kind is a pointer to its
 * struct of stoker/events.h; a warning, which is a bare text there, has a struct here.
 *
 * The chain of a call, for a step: stk_events_step(), made by the macro EMIT of events.c ->
 * stk_event_pass() -> the observer's `step`, which for a sink is take_step(), made by the macro
 * TAKE of any_event.c -> the sink's `take`: jsonl_take(), runfiles_take(), run_history_take(),
 * screen_take(), metrics_file_take() or queued_take() of src/report, or stk_run_view_take().
 * Threads: safe, nothing is stored.
 */
#ifndef STK_EVENTS_ANY_EVENT_H
#define STK_EVENTS_ANY_EVENT_H

#include <stoker/events.h>

/*
 * X(constant of the kind, callback and member of stk_any_event, struct): the events that their call
 * stk_events_NAME() passes on as they are.
 */
#define STK_PLAIN_EVENTS(X)                                   \
    X(STK_EVENT_START, start, stk_event_start)                \
    X(STK_EVENT_PLAN, plan, stk_event_plan)                   \
    X(STK_EVENT_STEP, step, stk_event_step)                   \
    X(STK_EVENT_EPOCH, epoch, stk_event_epoch)                \
    X(STK_EVENT_SUBMISSION, submission, stk_event_submission) \
    X(STK_EVENT_STOP, stop, stk_summary)                      \
    X(STK_EVENT_PROGRESS, progress, stk_event_progress)       \
    X(STK_EVENT_BATCH, batch, stk_event_batch)                \
    X(STK_EVENT_SAMPLE, sample, stk_event_sample)             \
    X(STK_EVENT_VERDICT, verdict, stk_event_verdict)          \
    X(STK_EVENT_ATTEMPT, attempt, stk_event_attempt)

/* All kinds but the warning, whose callback takes a text. */
#define STK_STRUCT_EVENTS(X)                                  \
    STK_PLAIN_EVENTS(X)                                       \
    X(STK_EVENT_DECISION, decision, stk_event_decision)       \
    X(STK_EVENT_CHECKPOINT, checkpoint, stk_event_checkpoint) \
    X(STK_EVENT_BAD_IMAGE, bad_image, stk_event_bad_image)

typedef enum stk_event_kind {
#define X(kind, name, type) kind,
    STK_STRUCT_EVENTS(X) STK_EVENT_WARNING,
    STK_EVENT_KINDS
#undef X
} stk_event_kind;

typedef struct stk_event_warning {
    const char *text;
} stk_event_warning;

/* Room for one event of any kind. Every member lies at the union's own address. */
typedef union stk_any_event {
#define X(kind, name, type) type name;
    STK_STRUCT_EVENTS(X)
#undef X
    stk_event_warning warning;
} stk_any_event;

/* Bytes of the struct of a kind. */
size_t stk_event_size(stk_event_kind kind);

/* Calls the observer's callback for this kind, if it has one. */
void stk_event_pass(const stk_observer *to, stk_event_kind kind, const void *event);

/* An observer all of whose callbacks call `take`. The sink must stay where it is while in use. */
typedef struct stk_event_sink {
    stk_observer observer; /* filled in by stk_event_sink_open */
    void (*take)(void *user, stk_event_kind kind, const void *event);
    void *user; /* borrowed; the first argument of `take` */
} stk_event_sink;

void stk_event_sink_open(stk_event_sink *sink,
                         void (*take)(void *user, stk_event_kind kind, const void *event),
                         void *user);

#endif
