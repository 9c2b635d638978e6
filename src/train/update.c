/* update.c - from the options of training to what the optimiser does at one update. */
#include "train/train.h"

#include <math.h>

#include "base/error.h"
#include "base/mem.h"

#define ADAMW_EPSILON 1e-8f /* as in PyTorch */

/* Updates after the frozen phase during which the backbone's rate rises: its moments start then,
 * and the head is far ahead. */
#define THAW_UPDATES 30

/*
 * The decay of averaged weights. An average over the last 1 / (1 - decay) updates would contain the
 * random initial weights until there were that many updates. Early on the decay is therefore lower:
 * the average spans about a ninth of the updates so far.
 */
static double ema_decay(double wanted, int64_t updates) {
    return fmin(wanted, (1.0 + (double)updates) / (10.0 + (double)updates));
}

stk_update stk_update_make(const stk_train_options *o, const stk_update_point *point) {
    int64_t number = point->updates + 1;
    int64_t thawed = number - point->frozen_updates;
    double rise = point->frozen_updates > 0 ? fmin(fmax((double)thawed, 0) / THAW_UPDATES, 1) : 1;
    return (stk_update){.kind = (stk_optimizer)o->optimizer,
                        .lr = (float)(rise * point->lr * o->backbone_lr_scale),
                        .head_lr = (float)point->head_lr,
                        .momentum = (float)o->momentum,
                        .nesterov = o->nesterov,
                        .beta2 = (float)o->beta2,
                        .epsilon = ADAMW_EPSILON,
                        .updates = thawed > 1 ? thawed : 1,
                        .head_updates = number,
                        .weight_decay = (float)o->weight_decay,
                        .grad_scale = 1.0f / (float)point->steps,
                        .clip_norm = (float)o->clip_grad,
                        .ema_decay = (float)ema_decay(o->ema, point->updates)};
}

int64_t stk_update_frozen_count(const stk_train_options *o, int64_t steps_per_epoch) {
    return o->freeze_epochs * ((steps_per_epoch + o->accumulate - 1) / o->accumulate);
}

stk_status stk_train_reset_state(const stk_backend *backend, stk_state *state,
                                 const stk_graph *graph, stk_error *err) {
    static const stk_tensor_kind zeroed[] = {STK_TENSOR_MOMENTUM, STK_TENSOR_SECOND};
    stk_status status = STK_OK;
    for (int p = 0; p < graph->param_count && status == STK_OK; p++) {
        float *values = stk_mem_new(graph->params[p].count, sizeof *values);
        if (values == NULL) {
            return STK_FAIL_MEMORY(err, "the parameters");
        }
        for (size_t k = 0; k < 2 && status == STK_OK; k++) {
            if (backend->state_has(state, zeroed[k])) {
                status = backend->state_write(state, zeroed[k], p, values, err);
            }
        }
        if (status == STK_OK && backend->state_has(state, STK_TENSOR_EMA)) {
            status = backend->state_read(state, STK_TENSOR_VALUE, p, values, err);
            STK_THEN(status, backend->state_write(state, STK_TENSOR_EMA, p, values, err));
        }
        stk_mem_free(values);
    }
    /* The loss scale of an earlier training may be far too small for this one. */
    return status == STK_OK && backend->extras_write != NULL
               ? backend->extras_write(state, NULL, err)
               : status;
}
