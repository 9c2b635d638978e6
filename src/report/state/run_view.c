/* run_view.c - copies the last event of each kind; a few kinds change more than their copy. */
#include "report/state/run_view.h"

#include <math.h>
#include <stdio.h>

#include <stddef.h>
#include <string.h>

#include "base/mem.h"

/* ---- the last events ---- */

/* Stores a copy in a slot, which is made with the first event; NULL without memory. */
static const stk_any_event *store(stk_run_view *view, stk_stored_event **slot, stk_event_kind kind,
                                  const void *event) {
    if (*slot == NULL) {
        *slot = stk_mem_new(1, sizeof **slot);
    }
    if (*slot == NULL) {
        view->failed = true;
        return NULL;
    }
    stk_event_pool_clear(&(*slot)->pool);
    stk_event_copy(&(*slot)->pool, kind, event, &(*slot)->event);
    view->failed = view->failed || (*slot)->pool.failed;
    return &(*slot)->event;
}

static void free_slot(stk_stored_event *slot) {
    if (slot != NULL) {
        stk_event_pool_clear(&slot->pool);
        stk_mem_free(slot);
    }
}

/* The pointers of a view by kind; bad images, progress and batches are not stored. */
static const size_t pointers[STK_EVENT_KINDS] = {
    [STK_EVENT_START] = offsetof(stk_run_view, start),
    [STK_EVENT_PLAN] = offsetof(stk_run_view, plan),
    [STK_EVENT_DECISION] = offsetof(stk_run_view, decision),
    [STK_EVENT_STEP] = offsetof(stk_run_view, step),
    [STK_EVENT_EPOCH] = offsetof(stk_run_view, epoch),
    [STK_EVENT_CHECKPOINT] = offsetof(stk_run_view, weights),
    [STK_EVENT_SUBMISSION] = offsetof(stk_run_view, submission),
    [STK_EVENT_WARNING] = offsetof(stk_run_view, warning),
    [STK_EVENT_STOP] = offsetof(stk_run_view, summary),
    [STK_EVENT_SAMPLE] = offsetof(stk_run_view, sample),
    [STK_EVENT_VERDICT] = offsetof(stk_run_view, verdict),
    [STK_EVENT_ATTEMPT] = offsetof(stk_run_view, attempt),
};

/* Sets the pointer of a kind to the stored event: all events lie at the union's address. */
static void show(stk_run_view *view, stk_event_kind kind, const stk_any_event *stored) {
    memcpy((char *)view + pointers[kind], &stored, sizeof stored);
}

/* ---- attempts ---- */

static void forget_attempts(stk_run_view *view) {
    view->attempt_count = 0;
    stk_event_pool_clear(&view->attempt_texts);
}

static bool is_same(const char *a, const char *b) {
    return a != NULL && b != NULL ? strcmp(a, b) == 0 : a == b;
}

/* Adds an attempt to the list, or replaces its start by its end. */
static void list_attempt(stk_run_view *view, const stk_event_attempt *event) {
    int at = 0;
    while (at < view->attempt_count && !(view->attempts[at].number == event->number &&
                                         is_same(view->attempts[at].part, event->part))) {
        at++;
    }
    if (view->attempts == NULL) {
        view->attempts = stk_mem_new(STK_VIEW_ATTEMPTS, sizeof *view->attempts);
        view->failed = view->failed || view->attempts == NULL;
    }
    if (view->attempts == NULL || at == STK_VIEW_ATTEMPTS) {
        return;
    }
    if (at == view->attempt_count || (event->ended && !view->attempts[at].ended)) {
        stk_any_event copy;
        stk_event_copy(&view->attempt_texts, STK_EVENT_ATTEMPT, event, &copy);
        view->attempts[at] = copy.attempt;
        view->attempt_count += at == view->attempt_count;
        view->failed = view->failed || view->attempt_texts.failed;
    }
}

/* ---- events that change more than their slot ---- */

static void take_start(stk_run_view *view) {
    memset(view->is_current, 0, sizeof view->is_current);
    forget_attempts(view);
}

static void take_epoch(stk_run_view *view, const stk_event_epoch *event) {
    view->in_epoch = false;
    /* Every epoch of a refit is its best, and none has figures. */
    bool judged = isfinite(event->val_loss) || isfinite(event->val_acc1);
    if (judged) {
        const stk_any_event *stored = store(view, &view->validated_slot, STK_EVENT_EPOCH, event);
        view->validated = stored != NULL ? &stored->epoch : view->validated;
    }
    if (event->best && (judged || view->best == NULL)) {
        const stk_any_event *stored = store(view, &view->best_slot, STK_EVENT_EPOCH, event);
        view->best = stored != NULL ? &stored->epoch : view->best;
    }
}

static void take_attempt(stk_run_view *view, const stk_event_attempt *event) {
    list_attempt(view, event);
    view->in_epoch = false;
    if (!event->ended) {
        view->is_current[STK_EVENT_STEP] = false; /* it is a step of the previous attempt */
    }
}

/* A summary has all attempts, also those whose events were lost. */
static void take_stop(stk_run_view *view, const stk_summary *summary) {
    if (summary->attempt_count > 0) {
        forget_attempts(view);
    }
    for (int i = 0; i < summary->attempt_count; i++) {
        list_attempt(view, &summary->attempts[i]);
    }
}

void stk_run_view_take(void *user, stk_event_kind kind, const void *event) {
    stk_run_view *view = user;
    switch (kind) {
    case STK_EVENT_START:
        take_start(view);
        break;
    case STK_EVENT_STEP:
        view->in_epoch = true;
        break;
    case STK_EVENT_EPOCH:
        take_epoch(view, event);
        break;
    case STK_EVENT_ATTEMPT:
        take_attempt(view, event);
        break;
    case STK_EVENT_STOP:
        take_stop(view, event);
        break;
    case STK_EVENT_BAD_IMAGE:
        view->bad_images++;
        return;
    case STK_EVENT_CHECKPOINT:
        if (!((const stk_event_checkpoint *)event)->best) {
            return;
        }
        break;
    case STK_EVENT_PROGRESS:
    case STK_EVENT_BATCH:
        return;
    default:
        break;
    }
    const stk_any_event *stored = store(view, &view->slots[kind], kind, event);
    if (stored != NULL) {
        show(view, kind, stored);
        view->is_current[kind] = true;
    }
}

void stk_run_view_close(stk_run_view *view) {
    for (int kind = 0; kind < STK_EVENT_KINDS; kind++) {
        free_slot(view->slots[kind]);
    }
    free_slot(view->best_slot);
    free_slot(view->validated_slot);
    stk_event_pool_clear(&view->attempt_texts);
    stk_mem_free(view->attempts);
    *view = (stk_run_view){0};
}

const stk_event_step *stk_run_view_step(const stk_run_view *view) {
    return view->is_current[STK_EVENT_STEP] ? view->step : NULL;
}

const stk_event_sample *stk_run_view_sample(const stk_run_view *view) {
    return view->is_current[STK_EVENT_SAMPLE] ? view->sample : NULL;
}

const stk_event_attempt *stk_run_view_attempt(const stk_run_view *view) {
    return view->is_current[STK_EVENT_ATTEMPT] ? view->attempt : NULL;
}

const stk_event_verdict *stk_run_view_verdict(const stk_run_view *view) {
    return view->is_current[STK_EVENT_VERDICT] ? view->verdict : NULL;
}

/* The models as planned last. A log of an earlier version has neither number in its plans. */
static void count_models(const stk_run_view *view, int *folds, int *refits) {
    bool planned = view->plan != NULL && view->is_current[STK_EVENT_PLAN] && view->plan->folds > 0;
    *folds = planned ? view->plan->folds : view->start != NULL ? view->start->folds : 0;
    *refits = planned ? view->plan->refits : view->start != NULL ? view->start->refits : 0;
    *refits = *refits > 0 ? *refits : 0;
}

int stk_run_view_models(const stk_run_view *view) {
    int folds;
    int refits;
    count_models(view, &folds, &refits);
    return folds + refits;
}

const char *stk_run_view_models_word(const stk_run_view *view) {
    int folds;
    int refits;
    count_models(view, &folds, &refits);
    return refits > 0 ? "models" : "folds";
}

const char *stk_run_view_model(const stk_run_view *view, int fold, char *text, size_t room) {
    int folds;
    int refits;
    count_models(view, &folds, &refits);
    text[0] = '\0';
    if (fold >= folds && refits > 0) {
        snprintf(text, room, "refit %d/%d", fold - folds + 1, refits);
    } else if (folds > 1) {
        snprintf(text, room, "fold %d/%d", fold + 1, folds);
    }
    return text;
}

bool stk_run_view_has_ended(const stk_run_view *view) {
    return view->is_current[STK_EVENT_STOP];
}

const char *stk_run_view_command(const stk_run_view *view) {
    if (stk_run_view_has_ended(view) && view->summary->command != NULL) {
        return view->summary->command;
    }
    return view->attempt_count > 0 ? view->attempts[0].command : NULL;
}
