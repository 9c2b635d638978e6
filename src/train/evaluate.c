/*
 * evaluate.c - one pass over samples, in which slow pictures come last.
 */
#include "train/evaluate.h"

#include "base/error.h"
#include "base/mem.h"

/* Few samples are divided into LEAST_BATCHES, but not into batches below LEAST_BATCH: a pass that
 * is halted then has a result, and its speed is known early. */
#define LEAST_BATCHES 8
#define LEAST_BATCH 16

/*
 * Pictures that take longer than FIRST_LIMIT_NS of CPU time are put aside until all others were
 * seen. They are then tried again with LIMIT_GROWTH times the limit, until none is left. So one
 * slow picture does not cost the others when time ends the evaluation. The pictures that were put
 * aside are divided into PUT_ASIDE_BATCHES, so that each counts as soon as it is decoded.
 */
#define FIRST_LIMIT_NS ((int64_t)20000000)
#define LIMIT_GROWTH 8
#define PUT_ASIDE_BATCHES 16

/* One pass of an evaluation; at most one batch is in flight on the device. */
typedef struct evaluation_pass {
    const stk_evaluation *evaluation;
    stk_loader_config data;
    stk_loader *loader;
    const stk_batch *pending; /* the batch in flight; NULL: none */
    float *logits;            /* owned: (batch, answers) */
    size_t *batch_entries;    /* owned: (batch) */
    size_t seen;              /* samples evaluated in this pass */
    bool whole;               /* this pass evaluated all its samples */
    /* (data.count), owned: the entries of evaluation->data that this pass has; NULL: all. */
    size_t *entries;
    /* (data.count), owned: the indices of these entries, as data.indices; NULL in the first pass.
     */
    size_t *indices;
} evaluation_pass;

/* Hands a batch with its logits to the caller. */
static void take(evaluation_pass *r, const stk_batch *batch) {
    const size_t *in_pass = stk_loader_entries(batch);
    for (size_t i = 0; i < batch->count; i++) {
        r->batch_entries[i] = r->entries != NULL ? r->entries[in_pass[i]] : in_pass[i];
    }
    r->evaluation->on_batch(r->evaluation->user, batch, r->batch_entries, r->logits);
    r->seen += batch->count;
    stk_loader_release(r->loader, batch);
}

static stk_status fetch(evaluation_pass *r, stk_error *err) {
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

/* Sends a batch before the previous one's logits are fetched, where the device can do that. */
static stk_status infer(evaluation_pass *r, const stk_batch *batch, stk_error *err) {
    const stk_evaluation *e = r->evaluation;
    bool ahead = e->backend->fetch != NULL;
    stk_status status = e->backend->infer(e->exec, batch->images, batch->features, batch->count,
                                          ahead ? NULL : r->logits, err);
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

/* Evaluates the next batch, or fetches the last one; *ended: nothing is left. */
static stk_status go_on(evaluation_pass *r, bool *ended, stk_error *err) {
    const stk_batch *batch = NULL;
    stk_status status = stk_loader_next(r->loader, &batch, err);
    *ended = status == STK_OK && batch == NULL;
    if (*ended) {
        return fetch(r, err);
    }
    return status == STK_OK ? infer(r, batch, err) : status;
}

/* On a device with fetch(), a partial batch takes as long as a full one: no smaller batches there.
 */
static size_t batch_of(const stk_evaluation *e) {
    size_t part = (e->data.count + LEAST_BATCHES - 1) / LEAST_BATCHES;
    size_t least = part > LEAST_BATCH ? part : LEAST_BATCH;
    return e->backend->fetch != NULL || e->data.batch < least ? e->data.batch : least;
}

/* Evaluates the samples of a pass until all are done or it is halted. */
static stk_status run_pass(evaluation_pass *r, stk_error *err) {
    const stk_halt *halt = &r->data.halt;
    bool ended = false;
    r->seen = 0;
    r->whole = false;
    stk_status status = stk_loader_start(&r->loader, &r->data, err);
    while (status == STK_OK && !r->whole && !ended) {
        if (halt->asked != NULL && halt->asked(halt->user)) {
            break;
        }
        stk_error why = {0};
        status = go_on(r, &ended, &why);
        if (status == STK_ERR_STOPPED) { /* pictures did not come in time, or the device was
                                            halted: as if by data.halt */
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

/* Reports samples that exceeded the final limit as bad. */
static void give_up(const evaluation_pass *r, const size_t *indices, size_t count) {
    const stk_evaluation *e = r->evaluation;
    for (size_t i = 0; i < count && e->bad != NULL; i++) {
        e->bad(e->user, e->data.samples[indices[i]].path,
               "it takes too long to decode for the time that there is: scale it down");
    }
}

/* The CPU limit of the next pass; 0: none. */
static int64_t next_limit_ns(const evaluation_pass *r) {
    int64_t most = r->evaluation->final_limit_ns;
    int64_t next = most > 0 ? most : LIMIT_GROWTH * r->data.slow_after_ns;
    return next < STK_IMAGE_MAX_CPU_NS ? next : 0;
}

/* The samples that were put aside become the next pass; *more: there are some. */
static stk_status begin_next_pass(evaluation_pass *r, bool *more, stk_error *err) {
    const size_t *all = r->evaluation->data.indices;
    size_t count = stk_loader_put_aside_count(r->loader);
    *more = count > 0;
    if (count == 0) {
        return STK_OK;
    }
    size_t *entries = stk_mem_new(count, sizeof *entries);
    size_t *indices = stk_mem_new(count, sizeof *indices);
    if (entries == NULL || indices == NULL) {
        stk_mem_free(entries);
        stk_mem_free(indices);
        return STK_FAIL_MEMORY(err, "predictions");
    }
    count = stk_loader_take_put_aside(r->loader, entries, count);
    for (size_t i = 0; i < count; i++) {
        entries[i] = r->entries != NULL ? r->entries[entries[i]] : entries[i];
        indices[i] = all != NULL ? all[entries[i]] : entries[i];
    }
    int64_t most = r->evaluation->final_limit_ns;
    if (most > 0 && r->data.slow_after_ns >= most) {
        give_up(r, indices, count);
        *more = false;
    }
    stk_loader_close(r->loader);
    r->loader = NULL;
    stk_mem_free(r->entries);
    stk_mem_free(r->indices);
    r->entries = entries;
    r->indices = indices;
    r->data.indices = indices;
    r->data.count = count;
    r->data.order.shuffle = false;
    size_t batch = (count + PUT_ASIDE_BATCHES - 1) / PUT_ASIDE_BATCHES;
    r->data.batch = batch < r->data.batch ? batch : r->data.batch;
    r->data.slow_after_ns = next_limit_ns(r);
    return STK_OK;
}

stk_status stk_evaluate(const stk_evaluation *e, bool *done, stk_error *err) {
    evaluation_pass r = {.evaluation = e, .data = e->data};
    bool more = true;
    *done = false;
    r.data.order = (stk_loader_order){.shuffle = e->data.order.shuffle, .epochs = 1};
    r.data.batch = batch_of(e);
    r.data.slow_after_ns = FIRST_LIMIT_NS;
    r.logits = stk_mem_raw(r.data.batch * e->answers, sizeof *r.logits);
    r.batch_entries = stk_mem_raw(r.data.batch, sizeof *r.batch_entries);
    stk_status status =
        r.logits != NULL && r.batch_entries != NULL ? STK_OK : STK_FAIL_MEMORY(err, "predictions");
    while (status == STK_OK && more) {
        status = run_pass(&r, err);
        if (r.loader != NULL && e->bad != NULL) {
            stk_loader_take_bad(r.loader, e->bad, e->user);
        }
        more = false;
        if (status == STK_OK && r.whole) {
            status = begin_next_pass(&r, &more, err);
            *done = status == STK_OK && !more;
        }
    }
    stk_loader_close(r.loader);
    stk_mem_free(r.logits);
    stk_mem_free(r.batch_entries);
    stk_mem_free(r.entries);
    stk_mem_free(r.indices);
    return status;
}
