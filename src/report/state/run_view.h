/*
 * run_view.h - inside the report room: reduces the events of a run so far to its present state.
 *
 * last_lines.h knows which events a view needs, and run_summary.h makes the summary from a view. A
 * view stores the last event of each kind with its texts, the attempts of a supervised command and
 * a few counts; its memory is bounded. The screen, --metrics-file, `stoker status` and `stoker top`
 * read a view. The page, the plot and results.csv need more than the last events: run_history.h
 * adds that to a view.
 *
 * A run may be resumed, so that a view sees the events of several processes one after the other.
 * The last events stay when a new process starts; `is_current` says which of them the last process
 * has emitted itself.
 *
 * Ownership: a view starts zeroed, owns all that its pointers lead to, and ends with
 * stk_run_view_close. Threads: one at a time.
 */
#ifndef STK_REPORT_STATE_RUN_VIEW_H
#define STK_REPORT_STATE_RUN_VIEW_H

#include <stdbool.h>
#include <stdint.h>

#include "events/any_event.h"
#include "report/text/event_copy.h"

/* Attempts of a supervised command that are stored; later ones are left out. */
#define STK_VIEW_ATTEMPTS 128

/* One stored event and what it points to. */
typedef struct stk_stored_event {
    stk_any_event event;
    stk_event_pool pool;
} stk_stored_event;

typedef struct stk_run_view {
    double now_s; /* seconds since the start of the run, at the last event. run_view.c does not set
                     this: an owner that needs it sets it before each stk_run_view_take() */

    /* The last event of each kind; NULL before the first. */
    const stk_event_start *start;
    const stk_event_plan *plan;
    const stk_event_decision *decision;
    const stk_event_step *step;
    const stk_event_epoch *epoch;
    const stk_event_epoch *best;         /* the last epoch that was its fold's best until then */
    const stk_event_epoch *validated;    /* the last epoch that was validated */
    const stk_event_checkpoint *weights; /* the last checkpoint of the best weights */
    const stk_event_submission *submission;
    const stk_event_warning *warning;
    const stk_event_sample *sample;
    const stk_event_verdict *verdict;
    const stk_event_attempt *attempt;
    const stk_summary *summary; /* of the process that ended last; its attempts are in `attempts` */

    bool is_current[STK_EVENT_KINDS]; /* emitted since the last start event. A step also
                                         stops being current when another attempt starts */
    bool in_epoch;                    /* a step was emitted since the last epoch ended and since the
                                         last attempt began or ended */
    int64_t bad_images;               /* events of this kind, of all processes */

    stk_event_attempt *attempts; /* of the last process, in order; STK_VIEW_ATTEMPTS or NULL */
    int attempt_count;

    bool failed; /* something could not be stored for lack of memory */

    stk_stored_event *slots[STK_EVENT_KINDS]; /* what the pointers above lead to */
    stk_stored_event *best_slot;
    stk_stored_event *validated_slot;
    stk_event_pool attempt_texts;
} stk_run_view;

/* Takes one event. It has the shape of stk_event_sink.take; `view` is a stk_run_view. */
void stk_run_view_take(void *view, stk_event_kind kind, const void *event);
void stk_run_view_close(stk_run_view *view);

/* The last event of a kind if the last process has emitted it (a step: also the last attempt);
 * otherwise NULL. */
const stk_event_step *stk_run_view_step(const stk_run_view *view);
const stk_event_sample *stk_run_view_sample(const stk_run_view *view);
const stk_event_attempt *stk_run_view_attempt(const stk_run_view *view);
const stk_event_verdict *stk_run_view_verdict(const stk_run_view *view);

/* Models that the run trains, folds and refits; 0 before the start. */
int stk_run_view_models(const stk_run_view *view);

/* What these are called together: "folds", or "models" where there are refits. */
const char *stk_run_view_models_word(const stk_run_view *view);

/* "fold 2/5" or "refit 1/2", of the model with this number; "" where it is the only one of its
 * kind that is validated. */
const char *stk_run_view_model(const stk_run_view *view, int fold, char *text, size_t room);

/* Whether the run has ended: the last process has emitted its stop. */
bool stk_run_view_has_ended(const stk_run_view *view);

/* The supervised command as one would type it; NULL: the run is a training of Stoker. */
const char *stk_run_view_command(const stk_run_view *view);

#endif
