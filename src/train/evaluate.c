/* evaluate.c - one pass over samples, in order. */
#include "train/evaluate.h"

#include <math.h>

#include "base/error.h"
#include "base/mem.h"

stk_status stk_evaluate(const stk_evaluation *e, bool *done, stk_error *err) {
    stk_loader_config data = e->data;
    stk_loader *loader = NULL;
    size_t seen = 0;
    *done = false;
    data.shuffle = false;
    data.drop_last = false;
    data.replace_bad = false;
    data.epochs = 1;
    data.halt = e->halt.asked != NULL ? e->halt : data.halt;
    float *logits = stk_mem_raw(data.batch * (size_t)e->classes, sizeof *logits);
    stk_status status = logits != NULL ? stk_loader_start(&loader, &data, err)
                                       : STK_FAIL_MEMORY(err, "predictions");
    while (status == STK_OK && !*done) {
        const stk_batch *batch = NULL;
        if (e->halt.asked != NULL && e->halt.asked(e->halt.user)) {
            break;
        }
        stk_error why = {0};
        status = stk_loader_next(loader, &batch, &why);
        if (status == STK_ERR_STOPPED) { /* pictures did not come in time: as if by e->halt */
            status = STK_OK;
            break;
        }
        if (status != STK_OK || batch == NULL) {
            status = status == STK_OK ? STK_OK : STK_FAIL(err, status, "%s", why.message);
            break;
        }
        status = e->backend->infer(e->exec, batch->images, batch->count, logits, &why);
        if (status == STK_ERR_STOPPED) { /* the device was halted: as if by e->halt */
            stk_loader_release(loader, batch);
            status = STK_OK;
            break;
        }
        if (status != STK_OK) {
            (void)STK_FAIL(err, status, "%s", why.message);
        } else {
            e->batch(e->user, batch, logits);
            seen += batch->count;
            *done = seen == data.count; /* a halt that comes now comes too late */
        }
        stk_loader_release(loader, batch);
    }
    if (loader != NULL && e->bad != NULL) {
        stk_loader_take_bad(loader, e->bad, e->user);
    }
    stk_loader_close(loader);
    stk_mem_free(logits);
    return status;
}

void stk_softmax(const float *logits, int classes, double *probs) {
    double largest = logits[0];
    double sum = 0;
    for (int c = 1; c < classes; c++) {
        largest = logits[c] > largest ? logits[c] : largest;
    }
    for (int c = 0; c < classes; c++) {
        probs[c] = exp(logits[c] - largest);
        sum += probs[c];
    }
    for (int c = 0; c < classes; c++) {
        probs[c] /= sum;
    }
}
