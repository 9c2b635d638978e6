/* run_summary.c - the last events of a run to a summary. */
#include "report/state/run_summary.h"

#include <limits.h>
#include <math.h>

#include "base/str.h"
#include "report/text/event_json.h"

int stk_command_epochs_done(int epoch, int64_t step, int64_t steps) {
    bool within = steps > 0 && step < steps;
    return epoch > 0 && within ? epoch - 1 : epoch;
}

/* The fold in training, from 0; -1: none yet. */
static int fold_now(const stk_run_view *view) {
    const stk_event_step *step = stk_run_view_step(view);
    return step != NULL && step->fold >= 0 ? step->fold
           : view->epoch != NULL           ? view->epoch->fold
                                           : -1;
}

static stk_summary so_far(const stk_run_view *view, const stk_run_facts *facts) {
    const stk_any_event unknown = stk_event_unknown(STK_EVENT_START);
    const stk_event_start *start = view->start != NULL ? view->start : &unknown.start;
    const stk_event_step *step = stk_run_view_step(view);
    const stk_event_sample *sample = stk_run_view_sample(view);
    const stk_event_verdict *verdict = stk_run_view_verdict(view);
    const stk_event_epoch *epoch = view->epoch;
    double best = view->best != NULL ? view->best->val_acc1 : facts->best_acc1;
    bool best_is_metric = facts->metric != NULL && stk_str_equal(facts->metric, "acc1");
    return (stk_summary){
        .best_acc1 = best,
        .metric = facts->metric,
        .task = start->task,
        .best_metric = best_is_metric ? best : NAN,
        .epochs_done = (int)facts->epochs_done,
        .folds_done = fold_now(view),
        .folds_planned = view->start != NULL ? stk_run_view_models(view) : start->folds,
        .oof_acc1 = NAN,
        .oof_metric = NAN,
        .held_out = NAN,
        .temperature = NAN,
        .images_per_second = step != NULL    ? step->images_per_second
                             : epoch != NULL ? epoch->images_per_second
                                             : NAN,
        .wait_fraction = step != NULL    ? step->wait_fraction
                         : epoch != NULL ? epoch->wait_fraction
                                         : NAN,
        .budget_s = start->budget_s,
        .used_s = facts->used_s,
        .reserve_s = view->is_current[STK_EVENT_PLAN] ? view->plan->reserve_s : NAN,
        .batch = start->batch,
        .workers = sample != NULL && sample->workers >= 0 ? sample->workers : start->workers,
        .prefetch = start->prefetch,
        .device = start->device,
        .precision = start->precision,
        .bad_images = facts->bad_images,
        .verdict = verdict != NULL ? verdict->name : NULL,
        .submission = facts->has_submission ? "submission.csv" : NULL,
    };
}

/* Fills in the keys of a supervised command that has not ended. */
static void add_command(const stk_run_view *view, stk_summary *summary) {
    const stk_event_step *step = stk_run_view_step(view);
    const stk_event_attempt *last = stk_run_view_attempt(view);
    summary->exit_code = -1;
    summary->bad_images = -1;
    summary->folds_done = -1;
    summary->epochs_done =
        step != NULL ? stk_command_epochs_done(step->epoch, step->step, step->steps) : -1;
    summary->batch = last != NULL && last->batch <= INT_MAX ? (int)last->batch : -1;
    summary->workers = last != NULL ? last->workers : -1;
}

stk_summary stk_run_summary(const stk_run_view *view, const stk_run_facts *facts) {
    bool ended = stk_run_view_has_ended(view) && !facts->running;
    stk_summary summary = ended ? *view->summary : so_far(view, facts);
    summary.command = stk_run_view_command(view);
    summary.attempts = NULL;
    summary.attempt_count = 0;
    if (summary.command != NULL) {
        /* One command runs at a time, so only the last attempt can be without an end. */
        int count = view->attempt_count;
        summary.attempts = view->attempts;
        summary.attempt_count = count > 0 && !view->attempts[count - 1].ended ? count - 1 : count;
    }
    if (summary.command != NULL && !ended) {
        add_command(view, &summary);
    }
    return summary;
}
