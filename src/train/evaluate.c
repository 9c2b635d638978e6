/* evaluate.c - one pass over samples. */
#include "train/evaluate.h"

#include <math.h>

#include "base/error.h"
#include "base/mem.h"

/* A pass over few samples has so many batches, unless they would become too small: one that is
 * halted has something to show, and tells its pace before. */
#define LEAST_BATCHES 8
#define LEAST_BATCH 16

/*
 * Pictures that take longer than this are put aside until all others were seen, and then tried
 * again with so many times the patience, until none is left: one slow picture must not cost all
 * that come behind it when time ends the evaluation. Of those put aside there are few in a batch,
 * so that each counts as soon as it is there.
 */
#define FIRST_PATIENCE_NS ((int64_t)20000000)
#define PATIENCE_GROWTH 8
#define LATE_BATCHES 16

/* One pass of an evaluation while it runs: at most one batch is on its way through the device. */
typedef struct run {
    const stk_evaluation *evaluation;
    stk_loader_config data;
    stk_loader *loader;
    const stk_batch *pending; /* its logits have not been fetched */
    float *logits;            /* owned: (batch, classes) */
    size_t *batch_rows;       /* owned: (batch) */
    size_t seen;              /* in this pass */
    bool whole;               /* this pass has seen all that it should */
    /* Which samples the pass is about: their rows in evaluation->data; NULL: all. */
    size_t *rows;    /* owned, as the next: (data.count) */
    size_t *indices; /* the same as data.indices wants it */
} run;

/* Hands a batch with its logits on. */
static void take(run *r, const stk_batch *batch) {
    const size_t *positions = stk_loader_positions(batch);
    for (size_t i = 0; i < batch->count; i++) {
        r->batch_rows[i] = r->rows != NULL ? r->rows[positions[i]] : positions[i];
    }
    r->evaluation->batch(r->evaluation->user, batch, r->batch_rows, r->logits);
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

/* Goes through the samples of a pass, until all were seen or time ends it. */
static stk_status run_pass(run *r, stk_error *err) {
    const stk_evaluation *e = r->evaluation;
    bool ended = false;
    r->seen = 0;
    r->whole = false;
    stk_status status = stk_loader_start(&r->loader, &r->data, err);
    while (status == STK_OK && !r->whole && !ended) {
        if (e->halt.asked != NULL && e->halt.asked(e->halt.user)) {
            break;
        }
        stk_error why = {0};
        status = go_on(r, &ended, &why);
        if (status == STK_ERR_STOPPED) { /* pictures did not come in time, or the device was
                                            halted: as if by e->halt */
            status = STK_OK;
            break;
        }
        if (status != STK_OK) {
            (void)STK_FAIL(err, status, "%s", why.message);
        }
        r->whole = status == STK_OK && r->seen == r->data.count; /* a halt now comes too late */
    }
    if (r->pending != NULL) { /* the device is done with the pictures before the loader closes */
        (void)fetch(r, NULL);
        r->whole = status == STK_OK && r->seen == r->data.count;
    }
    return status;
}

/* Tells of samples that nobody has more patience for. */
static void give_up(const run *r, const size_t *indices, size_t count) {
    const stk_evaluation *e = r->evaluation;
    for (size_t i = 0; i < count && e->bad != NULL; i++) {
        e->bad(e->user, e->data.samples[indices[i]].path,
               "it takes too long to decode for the time that there is: scale it down");
    }
}

/* How patient the next pass is; 0: as patient as can be. */
static int64_t next_patience(const run *r) {
    int64_t most = r->evaluation->data.patience_ns;
    int64_t next = most > 0 ? most : PATIENCE_GROWTH * r->data.patience_ns;
    return next < STK_IMAGE_MAX_CPU_NS ? next : 0;
}

/* The samples that were put aside become the next pass; *more tells whether there is one. */
static stk_status go_back(run *r, bool *more, stk_error *err) {
    const size_t *all = r->evaluation->data.indices;
    size_t count = stk_loader_lates(r->loader);
    *more = count > 0;
    if (count == 0) {
        return STK_OK;
    }
    size_t *rows = stk_mem_new(count, sizeof *rows);
    size_t *indices = stk_mem_new(count, sizeof *indices);
    if (rows == NULL || indices == NULL) {
        stk_mem_free(rows);
        stk_mem_free(indices);
        return STK_FAIL_MEMORY(err, "predictions");
    }
    count = stk_loader_take_late(r->loader, rows, count);
    for (size_t i = 0; i < count; i++) {
        rows[i] = r->rows != NULL ? r->rows[rows[i]] : rows[i];
        indices[i] = all != NULL ? all[rows[i]] : rows[i];
    }
    int64_t most = r->evaluation->data.patience_ns;
    if (most > 0 && r->data.patience_ns >= most) {
        give_up(r, indices, count);
        *more = false;
    }
    stk_loader_close(r->loader);
    r->loader = NULL;
    stk_mem_free(r->rows);
    stk_mem_free(r->indices);
    r->rows = rows;
    r->indices = indices;
    r->data.indices = indices;
    r->data.count = count;
    r->data.shuffle = false;
    size_t batch = (count + LATE_BATCHES - 1) / LATE_BATCHES;
    r->data.batch = batch < r->data.batch ? batch : r->data.batch;
    r->data.patience_ns = next_patience(r);
    return STK_OK;
}

stk_status stk_evaluate(const stk_evaluation *e, bool *done, stk_error *err) {
    run r = {.evaluation = e, .data = e->data};
    bool more = true;
    *done = false;
    r.data.shuffle = e->shuffled;
    r.data.drop_last = false;
    r.data.replace_bad = false;
    r.data.epochs = 1;
    r.data.batch = batch_of(e);
    r.data.halt = e->halt.asked != NULL ? e->halt : e->data.halt;
    r.data.patience_ns = FIRST_PATIENCE_NS;
    r.logits = stk_mem_raw(r.data.batch * (size_t)e->classes, sizeof *r.logits);
    r.batch_rows = stk_mem_raw(r.data.batch, sizeof *r.batch_rows);
    stk_status status =
        r.logits != NULL && r.batch_rows != NULL ? STK_OK : STK_FAIL_MEMORY(err, "predictions");
    while (status == STK_OK && more) {
        status = run_pass(&r, err);
        if (r.loader != NULL && e->bad != NULL) {
            stk_loader_take_bad(r.loader, e->bad, e->user);
        }
        more = false;
        if (status == STK_OK && r.whole) {
            status = go_back(&r, &more, err);
            *done = status == STK_OK && !more;
        }
    }
    stk_loader_close(r.loader);
    stk_mem_free(r.logits);
    stk_mem_free(r.batch_rows);
    stk_mem_free(r.rows);
    stk_mem_free(r.indices);
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
