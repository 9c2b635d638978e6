/* evaluate.c - one pass over samples. */
#include "train/evaluate.h"

#include <math.h>

#include "base/error.h"
#include "base/mem.h"

/* A pass over few samples has so many batches, unless they would become too small: one that is
 * halted has something to show, and tells its pace before. */
#define LEAST_BATCHES 8
#define LEAST_BATCH 16

/* One evaluation while it runs: at most one batch is on its way through the device. */
typedef struct run {
    const stk_evaluation *evaluation;
    stk_loader *loader;
    const stk_batch *pending; /* its logits have not been fetched */
    float *logits;            /* (batch, classes) */
    size_t seen;
} run;

/* Hands a batch with its logits on. */
static void take(run *r, const stk_batch *batch) {
    r->evaluation->batch(r->evaluation->user, batch, r->logits);
    r->seen += batch->count;
    stk_loader_release(r->loader, batch);
}

static stk_status fetch(run *r, stk_error *err) {
    const stk_evaluation *e = r->evaluation;
    if (r->pending == NULL) {
        return STK_OK;
    }
    stk_status status = e->backend->fetch(e->exec, r->logits, err);
    if (status == STK_OK) {
        take(r, r->pending);
    } else {
        stk_loader_release(r->loader, r->pending);
    }
    r->pending = NULL;
    return status;
}

/* Where the device can, a batch is sent before the last one's logits are waited for. */
static stk_status infer(run *r, const stk_batch *batch, stk_error *err) {
    const stk_evaluation *e = r->evaluation;
    bool ahead = e->backend->fetch != NULL;
    stk_status status =
        e->backend->infer(e->exec, batch->images, batch->count, ahead ? NULL : r->logits, err);
    if (status != STK_OK) {
        stk_loader_release(r->loader, batch);
        return status;
    }
    if (!ahead) {
        take(r, batch);
        return STK_OK;
    }
    status = fetch(r, err);
    r->pending = batch;
    return status;
}

/* The next batch, or what the device still has when there is none; *ended: nothing is left. */
static stk_status go_on(run *r, bool *ended, stk_error *err) {
    const stk_batch *batch = NULL;
    stk_status status = stk_loader_next(r->loader, &batch, err);
    *ended = status == STK_OK && batch == NULL;
    if (*ended) {
        return fetch(r, err);
    }
    return status == STK_OK ? infer(r, batch, err) : status;
}

/* A device that works ahead takes as long for a part of a batch as for all of it. */
static size_t batch_of(const stk_evaluation *e) {
    size_t part = (e->data.count + LEAST_BATCHES - 1) / LEAST_BATCHES;
    size_t least = part > LEAST_BATCH ? part : LEAST_BATCH;
    return e->backend->fetch != NULL || e->data.batch < least ? e->data.batch : least;
}

stk_status stk_evaluate(const stk_evaluation *e, bool *done, stk_error *err) {
    stk_loader_config data = e->data;
    run r = {.evaluation = e};
    bool ended = false;
    *done = false;
    data.shuffle = e->shuffled;
    data.drop_last = false;
    data.replace_bad = false;
    data.epochs = 1;
    data.batch = batch_of(e);
    data.halt = e->halt.asked != NULL ? e->halt : data.halt;
    r.logits = stk_mem_raw(data.batch * (size_t)e->classes, sizeof *r.logits);
    stk_status status = r.logits != NULL ? stk_loader_start(&r.loader, &data, err)
                                         : STK_FAIL_MEMORY(err, "predictions");
    while (status == STK_OK && !*done && !ended) {
        if (e->halt.asked != NULL && e->halt.asked(e->halt.user)) {
            break;
        }
        stk_error why = {0};
        status = go_on(&r, &ended, &why);
        if (status == STK_ERR_STOPPED) { /* pictures did not come in time, or the device was
                                            halted: as if by e->halt */
            status = STK_OK;
            break;
        }
        if (status != STK_OK) {
            (void)STK_FAIL(err, status, "%s", why.message);
        }
        *done = status == STK_OK && r.seen == data.count; /* a halt now comes too late */
    }
    if (r.pending != NULL) { /* the device is done with the pictures before the loader closes */
        (void)fetch(&r, NULL);
        *done = status == STK_OK && r.seen == data.count;
    }
    if (r.loader != NULL && e->bad != NULL) {
        stk_loader_take_bad(r.loader, e->bad, e->user);
    }
    stk_loader_close(r.loader);
    stk_mem_free(r.logits);
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
