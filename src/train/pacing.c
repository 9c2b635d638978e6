/*
 * pacing.c - asks the pace hook how far training goes, and applies the answer.
 */
#include "train/trainer.h"

#include <math.h>

#include "base/clock.h"

void stk_trainer_resize_loader(stk_trainer *t) {
    int workers = t->asked_workers;
    int slots = t->asked_slots;
    stk_loader_resize(t->loader, &workers, &slots);
    t->result->workers = t->asked_workers > 0 ? workers : t->result->workers;
    t->result->slots = t->asked_slots > 0 ? slots : t->result->slots;
}

static stk_train_pace pace_at(stk_trainer *t, stk_train_progress *progress) {
    progress->times = stk_account_all(&t->account, stk_clock_ns());
    progress->loader = stk_loader_counters_of(t->loader);
    progress->store = stk_loader_store(t->loader);
    return t->config->hooks.pace(t->config->hooks.user, progress);
}

void stk_trainer_ask_pace(stk_trainer *t) {
    t->pace = pace_at(t, &t->progress);
    if (t->pace.workers > 0 || t->pace.slots > 0) {
        t->asked_workers = t->pace.workers > 0 ? t->pace.workers : t->asked_workers;
        t->asked_slots = t->pace.slots > 0 ? t->pace.slots : t->asked_slots;
        stk_trainer_resize_loader(t);
    }
    int64_t left = t->pace.total_steps - t->progress.steps_done;
    t->lr_factor = t->lr_scale * stk_schedule_factor((stk_schedule)t->config->options->schedule,
                                                     t->config->options->warmup, t->schedule);
    t->lr = t->config->lr * t->lr_factor;
    t->schedule_next = t->schedule + (left > 0 ? (1 - t->schedule) / (double)left : 0);
}

bool stk_trainer_is_finished(const stk_trainer *t) {
    return t->pace.stop || t->result->halted || t->result->diverged ||
           t->result->ran_out_of_patience || t->progress.steps_done >= t->pace.total_steps;
}

bool stk_trainer_goes_on(stk_trainer *t) {
    stk_train_progress *p = &t->progress;
    if (!stk_trainer_is_finished(t)) {
        return true;
    }
    if (t->pace.stop || t->result->halted || t->result->diverged ||
        t->result->ran_out_of_patience) {
        return false;
    }
    if (t->went_on_at == p->steps_done) {
        return false; /* it has done so for nothing */
    }
    bool whole = p->step >= p->steps_per_epoch;
    stk_train_progress next = *p;
    next.over = true;
    next.epoch += whole;
    next.step = whole ? 0 : p->step;
    stk_train_pace more = pace_at(t, &next);
    if (more.stop || more.total_steps <= p->steps_done) {
        return false;
    }
    t->pace = more;
    t->went_on_at = p->steps_done;
    t->schedule = fmin(t->schedule, (double)p->steps_done / (double)more.total_steps);
    p->epoch -= !whole;
    t->within_epoch = t->epoch_again = !whole;
    return true;
}
