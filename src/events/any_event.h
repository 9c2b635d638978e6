/*
 * any_event.h - one event of any kind, for observers that treat all kinds alike.
 *
 * stk_observer has one callback per kind. An observer that writes, copies or reduces events wants
 * one function instead: a stk_event_sink turns the callbacks into calls of that function, and
 * stk_event_pass turns such a call back into a callback. An event of a kind is a pointer to its
 * struct of stoker/events.h; a warning, which is a bare text there, has a struct here.
 *
 * The chain of a call, for a step: stk_events_step() (events.c) -> stk_event_pass() -> the
 * observer's `step`, which for a sink is take_step(), made by the macro TAKE of any_event.c ->
 * the sink's `take`: jsonl_take(), runfiles_take(), run_history_take(), screen_take(),
 * metrics_file_take() or queued_take() of src/report, or stk_run_view_take().
 * Threads: safe, nothing is stored.
 */
#ifndef STK_EVENTS_ANY_EVENT_H
#define STK_EVENTS_ANY_EVENT_H

#include <stoker/events.h>

typedef enum stk_event_kind {
    STK_EVENT_START,
    STK_EVENT_PLAN,
    STK_EVENT_DECISION,
    STK_EVENT_STEP,
    STK_EVENT_EPOCH,
    STK_EVENT_CHECKPOINT,
    STK_EVENT_BAD_IMAGE,
    STK_EVENT_SUBMISSION,
    STK_EVENT_WARNING, /* stk_event_warning */
    STK_EVENT_STOP,    /* stk_summary */
    STK_EVENT_PROGRESS,
    STK_EVENT_BATCH,
    STK_EVENT_SAMPLE,
    STK_EVENT_VERDICT,
    STK_EVENT_ATTEMPT,
    STK_EVENT_KINDS
} stk_event_kind;

typedef struct stk_event_warning {
    const char *text;
} stk_event_warning;

/* Room for one event of any kind. Every member lies at the union's own address. */
typedef union stk_any_event {
    stk_event_start start;
    stk_event_plan plan;
    stk_event_decision decision;
    stk_event_step step;
    stk_event_epoch epoch;
    stk_event_checkpoint checkpoint;
    stk_event_bad_image bad_image;
    stk_event_submission submission;
    stk_event_warning warning;
    stk_summary stop;
    stk_event_progress progress;
    stk_event_batch batch;
    stk_event_sample sample;
    stk_event_verdict verdict;
    stk_event_attempt attempt;
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
