/*
 * judge.c - whether a training has gone wrong: by its losses, its skipped updates and its weights.
 *
 * A judgement sets result->diverged and says in result->trouble what is wrong. fold.c then goes
 * back.
 */
#include "train/trainer.h"

#include <math.h>
#include <stdio.h>

/* Share of the updates of an epoch: skipping more is emitted every time. */
#define USUAL_SKIPS 0.01

/* With fewer updates all may be skipped while the loss scale is being found. */
#define LEAST_UPDATES 8

/* Sets result->diverged if every update was skipped; otherwise emits what was skipped. */
static void judge_skips(stk_trainer *t) {
    char what[64];
    char why[96];
    if (t->epoch_skipped == 0) {
        return;
    }
    if (t->epoch_skipped == t->epoch_updates && t->epoch_updates >= LEAST_UPDATES) {
        t->result->diverged = true;
        snprintf(t->result->trouble, sizeof t->result->trouble,
                 "every update of epoch %d left the range of fp16", t->standing.epoch);
        return;
    }
    if (t->told_skips && (double)t->epoch_skipped <= USUAL_SKIPS * (double)t->epoch_updates) {
        return;
    }
    snprintf(what, sizeof what, "loss scale %g", t->loss_scale);
    snprintf(why, sizeof why, "%lld update%s left out: gradients left the range of fp16",
             (long long)t->epoch_skipped, t->epoch_skipped == 1 ? " was" : "s were");
    stk_events_decision(t->config->events, what, why);
    t->told_skips = true;
}

void stk_trainer_judge_loss(stk_trainer *t, double loss, int64_t step) {
    stk_loss_verdict verdict = stk_loss_watch_add(&t->watch, loss);
    t->result->diverged = verdict != STK_LOSS_FINE;
    if (verdict == STK_LOSS_NOT_FINITE) {
        snprintf(t->result->trouble, sizeof t->result->trouble,
                 "the loss became NaN at step %lld of epoch %d", (long long)step,
                 t->standing.epoch);
    } else if (verdict == STK_LOSS_EXPLODED) {
        snprintf(t->result->trouble, sizeof t->result->trouble,
                 "the loss had risen to %.3g at step %lld of epoch %d", loss, (long long)step,
                 t->standing.epoch);
    }
}

static void judge_losses(stk_trainer *t, double train_loss, double val_loss) {
    char *trouble = t->result->trouble;
    size_t size = sizeof t->result->trouble;
    bool validated = t->val_metrics.count > 0;
    t->result->diverged = true; /* the weights are not worth saving */
    if (validated && !isfinite(val_loss)) {
        snprintf(trouble, size, "the validation loss of epoch %d is NaN", t->standing.epoch);
    } else if (validated && stk_loss_watch_is_absurd_validation(&t->watch, val_loss)) {
        snprintf(trouble, size, "the validation loss of epoch %d is %.3g", t->standing.epoch,
                 val_loss);
    } else if (stk_loss_watch_is_absurd(&t->watch, train_loss)) {
        snprintf(trouble, size, "the loss of epoch %d is %.3g", t->standing.epoch, train_loss);
    } else {
        t->result->diverged = false;
    }
}

stk_status stk_trainer_judge_weights(stk_trainer *t, stk_error *err) {
    const stk_train_config *c = t->config;
    bool finite = true;
    stk_status status = stk_train_finite(c->backend, c->state, c->graph, &finite, err);
    if (!finite) {
        t->result->diverged = true;
        snprintf(t->result->trouble, sizeof t->result->trouble,
                 "the weights became NaN by step %lld of epoch %d", (long long)t->standing.step,
                 t->standing.epoch);
    }
    return status;
}

stk_status stk_trainer_judge_epoch(stk_trainer *t, double train_loss, double val_loss,
                                   stk_error *err) {
    judge_losses(t, train_loss, val_loss);
    if (!t->result->diverged) {
        judge_skips(t);
    }
    return t->result->diverged ? STK_OK : stk_trainer_judge_weights(t, err);
}
