/*
 * ahead.c - collects the results of steps that run ahead of the host.
 *
 * A GPU computes one step while the next one is in its queue, so a result arrives about two steps
 * later. Results come in order, and each is used as if it had come at once, as on a CPU.
 */
#include "train/trainer.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/error.h"

/* After steps have become others (larger pictures, more than the head), so many must be timed until
 * they are believed. */
#define EXPECTED_STEPS 5

/* Steps that only wait for pictures become no slower when all layers learn. */
static double whole_step_s(const stk_trainer *t) {
    double step_s = stk_typical_step_s(&t->typical_step);
    double wait_s = stk_typical_step_wait_s(&t->typical_step);
    return t->frozen ? fmax(step_s, (step_s - wait_s) / STK_FROZEN_PART) : step_s;
}

void stk_trainer_expect_steps(stk_trainer *t) {
    double part = t->frozen ? STK_FROZEN_PART : 1;
    stk_typical_step_expect(&t->typical_step, part * t->standing.step_s,
                            t->frozen ? 0 : t->standing.wait_s);
    t->standing.expected = true;
}

static void note_step_time(stk_trainer *t, double seconds) {
    stk_typical_step_add(&t->typical_step, seconds);
    t->standing.steps_timed = t->typical_step.timed;
    t->standing.expected =
        t->frozen || (t->standing.expected && t->typical_step.timed <= EXPECTED_STEPS);
    t->standing.step_s = whole_step_s(t);
    if (t->frozen && t->standing.step_s > 0) {
        t->standing.frozen_part = stk_typical_step_s(&t->typical_step) / t->standing.step_s;
    }
    t->standing.wait_s = stk_typical_step_wait_s(&t->typical_step);
    t->epoch_train_s += seconds;
    t->result->train_s += seconds;
    t->account.spent.steps_s += seconds;
}

static void note_device_time(stk_trainer *t, const stk_step_output *output) {
    stk_spent *spent = &t->account.spent;
    t->epoch_busy_s += output->busy_s;
    t->standing.copy_s += output->copy_s;
    spent->busy_s += output->busy_s;
    spent->update_s += output->update_s;
    spent->copy_wait_s += output->copy_wait_s;
}

/*
 * A skipped update is no trouble: the loss scale has fallen, and the next update may fit. At a
 * scale of 1 no smaller one is left.
 */
static void use_result(stk_trainer *t, const stk_pending_step *step,
                       const stk_step_output *output) {
    t->result->images += (double)step->count;
    t->epoch_updates += step->update;
    t->epoch_skipped += output->skipped;
    t->loss_scale = output->loss_scale;
    if (output->skipped && output->loss_scale <= 1) {
        t->result->diverged = true;
        snprintf(t->result->trouble, sizeof t->result->trouble,
                 "gradients left the range of fp16 at step %lld of epoch %d", (long long)step->step,
                 t->standing.epoch);
    } else if (!output->skipped || isfinite(output->loss_sum)) {
        t->loss_sum += output->loss_sum;
        t->correct += (double)output->correct;
        t->images += (double)step->count;
        stk_trainer_judge_loss(t, output->loss_sum / (double)step->count, step->step);
    }
}

void stk_trainer_note_step(stk_trainer *t, size_t count, bool update, int64_t start_ns) {
    if (t->pending_count == 0) {
        t->arrived_ns = start_ns; /* what was done meanwhile is no part of a step */
    }
    t->pending[t->pending_count++] =
        (stk_pending_step){.count = count, .step = t->standing.step, .update = update};
}

void stk_trainer_let_go(stk_trainer *t) {
    if (t->held != NULL) {
        stk_loader_release(t->loader, t->held);
        t->held = NULL;
    }
}

stk_status stk_trainer_collect(stk_trainer *t, bool wait, stk_error *err) {
    stk_step_output outputs[STK_STEPS_AHEAD];
    size_t count = 0;
    if (t->pending_count == 0) {
        return STK_OK;
    }
    stk_status status =
        t->config->backend->collect(t->train_exec, wait, outputs, STK_STEPS_AHEAD, &count, err);
    if (status != STK_OK) {
        return status;
    }
    size_t pending = (size_t)t->pending_count;
    bool none_of_many = count == 0 && pending == STK_STEPS_AHEAD;
    if (count > pending || (wait && count < pending) || none_of_many) {
        return STK_FAIL(err, STK_ERR_INTERNAL, "%zu steps were done and %zu results came", pending,
                        count);
    }
    int64_t now = stk_clock_ns();
    for (size_t i = 0; i < count; i++) {
        note_step_time(t, (double)(now - t->arrived_ns) * 1e-9 / (double)count);
        note_device_time(t, &outputs[i]);
        if (!t->result->diverged) { /* results after the trouble are useless */
            use_result(t, &t->pending[i], &outputs[i]);
        }
    }
    if (count > 0) {
        t->arrived_ns = now;
        t->pending_count -= (int)count;
        memmove(t->pending, t->pending + count, (size_t)t->pending_count * sizeof *t->pending);
    }
    if (t->pending_count == 0) {
        stk_trainer_let_go(t);
    }
    return STK_OK;
}
