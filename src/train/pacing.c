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

/* Steps from here on in which only the head learns. */
static int64_t frozen_left(const stk_trainer *t, const stk_train_standing *at) {
    int64_t epochs = t->config->options->freeze_epochs - (at->epoch > 0 ? at->epoch - 1 : 0);
    int64_t steps = epochs * at->steps_per_epoch - at->step;
    return steps > 0 ? steps : 0;
}

static stk_train_orders orders_at(stk_trainer *t, stk_train_standing *standing) {
    standing->frozen_left = frozen_left(t, standing);
    standing->times = stk_account_all(&t->account, stk_clock_ns());
    standing->loader = stk_loader_counters_of(t->loader);
    standing->store = stk_loader_store(t->loader);
    return t->config->hooks.pace(t->config->hooks.user, standing);
}

void stk_trainer_ask_pace(stk_trainer *t) {
    t->orders = orders_at(t, &t->standing);
    if (t->orders.workers > 0 || t->orders.slots > 0) {
        t->asked_workers = t->orders.workers > 0 ? t->orders.workers : t->asked_workers;
        t->asked_slots = t->orders.slots > 0 ? t->orders.slots : t->asked_slots;
        stk_trainer_resize_loader(t);
    }
    int64_t left = t->orders.total_steps - t->standing.steps_done;
    t->lr_factor = t->lr_scale * stk_schedule_factor((stk_schedule)t->config->options->schedule,
                                                     t->config->options->warmup, t->schedule);
    t->lr = t->config->lr * t->lr_factor;
    t->schedule_next = t->schedule + (left > 0 ? (1 - t->schedule) / (double)left : 0);
}

bool stk_trainer_is_finished(const stk_trainer *t) {
    return t->orders.stop || t->result->halted || t->result->diverged ||
           t->result->ran_out_of_patience || t->standing.steps_done >= t->orders.total_steps;
}

bool stk_trainer_has_next_epoch(stk_trainer *t) {
    stk_train_standing next = t->standing;
    next.epoch++;
    next.step = 0;
    if (stk_trainer_is_finished(t)) {
        return false;
    }
    stk_train_orders orders = orders_at(t, &next);
    return !orders.stop && orders.total_steps > next.steps_done;
}

bool stk_trainer_goes_on(stk_trainer *t) {
    stk_train_standing *p = &t->standing;
    if (!stk_trainer_is_finished(t)) {
        return true;
    }
    if (t->orders.stop || t->result->halted || t->result->diverged ||
        t->result->ran_out_of_patience) {
        return false;
    }
    if (t->went_on_at == p->steps_done) {
        return false; /* it went on once already, and no step followed */
    }
    bool whole = p->step >= p->steps_per_epoch;
    stk_train_standing next = *p;
    next.over = true;
    next.epoch += whole;
    next.step = whole ? 0 : p->step;
    stk_train_orders more = orders_at(t, &next);
    if (more.stop || more.total_steps <= p->steps_done) {
        return false;
    }
    t->orders = more;
    t->went_on_at = p->steps_done;
    t->schedule = fmin(t->schedule, (double)p->steps_done / (double)more.total_steps);
    p->epoch -= !whole;
    t->within_epoch = t->epoch_again = !whole;
    return true;
}
