/* position.c - saves and restores the position of a training, unless it is going wrong. */
#include "train/trainer.h"

#include "base/clock.h"

void stk_train_position_rebatch(stk_train_position *position, int64_t batch, int64_t accumulate,
                                int64_t steps_per_epoch) {
    int64_t before = position->batch;
    int64_t used = position->step - position->steps_waiting;
    if (before <= 0 || (before == batch && position->accumulate == accumulate)) {
        return;
    }
    bool whole = position->step > 0 && position->step == position->steps_per_epoch;
    int64_t step = used * before / batch;
    position->step = whole || step > steps_per_epoch ? steps_per_epoch : step;
    position->steps_done = position->epoch * steps_per_epoch + position->step;
    position->total_steps =
        position->steps_per_epoch > 0
            ? position->total_steps * steps_per_epoch / position->steps_per_epoch
            : 0;
    position->steps_per_epoch = steps_per_epoch;
    position->batch = batch;
    position->accumulate = accumulate;
    position->steps_waiting = 0;
}

/* The current position; `whole`: the running epoch is over and counted. */
static stk_train_position take_position(const stk_trainer *t, bool whole) {
    const stk_train_standing *p = &t->standing;
    const stk_train_result *r = t->result;
    bool begun = p->epoch > 0 && !whole;
    int counted = begun && t->epoch_counted; /* whoever continues counts this epoch again */
    return (stk_train_position){.epoch = begun ? p->epoch - 1 : p->epoch,
                                .step = begun ? p->step : 0,
                                .steps_per_epoch = p->steps_per_epoch,
                                .batch = (int64_t)t->config->train_compile.batch,
                                .accumulate = t->config->options->accumulate,
                                .steps_waiting = t->steps_waiting,
                                .steps_done = p->steps_done,
                                .updates = t->updates,
                                .total_steps = t->orders.total_steps,
                                .schedule = t->schedule,
                                .lr_scale = t->lr_scale,
                                .setbacks = t->setbacks,
                                .epochs_done = r->epochs_done - counted,
                                .since_best = t->since_best > 0 ? t->since_best - counted : 0,
                                .small = t->small,
                                .has_best = r->has_best,
                                .best_small = r->best_small,
                                .best = r->best,
                                .best_metric = r->best_metric,
                                .top_metric = t->top_metric,
                                .top_epoch = t->top_epoch,
                                .watch = t->watch,
                                .loss_sum = begun ? t->loss_sum : 0,
                                .correct = begun ? t->correct : 0,
                                .images = begun ? t->images : 0};
}

void stk_trainer_put(stk_trainer *t, const stk_train_position *from) {
    stk_train_standing *p = &t->standing;
    p->epoch = from->epoch;
    p->step = from->step;
    p->steps_per_epoch = from->steps_per_epoch;
    p->steps_done = from->steps_done;
    t->within_epoch = from->step > 0;
    t->steps_waiting = from->steps_waiting;
    t->updates = from->updates;
    t->schedule = from->schedule;
    t->lr_scale = from->lr_scale;
    t->result->lr_scale = from->lr_scale;
    t->setbacks = from->setbacks;
    bool known = from->top_epoch > 0;
    t->top_metric = known ? from->top_metric : from->best_metric;
    t->top_epoch = known ? from->top_epoch : from->has_best ? from->best.epoch : 0;
    t->since_best = from->since_best;
    t->watch = from->watch;
    t->loss_sum = from->loss_sum;
    t->correct = from->correct;
    t->images = from->images;
    t->result->epochs_done = from->epochs_done;
    t->small = stk_trainer_is_small_at(t, from);
    t->validated_epoch = from->epoch;
    t->result->has_best = from->has_best;
    t->result->best_small = from->best_small && t->config->small_graph != NULL;
    t->result->best = from->best;
    t->result->best_metric = from->best_metric;
    t->result->rated_loss = from->best.val_loss;
    t->result->rated_acc1 = from->best.val_acc1;
    t->saved_steps = from->steps_done; /* what was read back need not be written again */
    t->saved_ns = stk_clock_ns();
    t->went_on_at = -1;
}

void stk_trainer_save(stk_trainer *t, bool whole) {
    const stk_train_hooks *hooks = &t->config->hooks;
    if (hooks->save_state == NULL || !stk_loss_watch_is_calm(&t->watch)) {
        return;
    }
    stk_train_position position = take_position(t, whole);
    int64_t start = stk_clock_ns();
    hooks->save_state(hooks->user, &position);
    t->saved_steps = t->standing.steps_done;
    t->saved_ns = stk_clock_ns();
    t->account.spent.checkpoint_s += (double)(t->saved_ns - start) * 1e-9;
}

stk_status stk_trainer_save_within(stk_trainer *t, stk_error *err) {
    if (t->config->hooks.save_state == NULL || t->saved_steps == t->standing.steps_done) {
        return STK_OK;
    }
    stk_status status = stk_trainer_judge_weights(t, err);
    if (status == STK_OK && !t->result->diverged) {
        stk_trainer_save(t, false);
    }
    return status;
}

bool stk_trainer_save_is_due(const stk_trainer *t) {
    return t->config->hooks.save_state != NULL && t->standing.step < t->standing.steps_per_epoch &&
           stk_clock_since_s(t->saved_ns) >= t->config->hooks.save_every_s;
}
