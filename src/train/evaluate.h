/*
 * evaluate.h - runs a compiled network over samples once: for validation and prediction.
 */
#ifndef STK_TRAIN_EVALUATE_H
#define STK_TRAIN_EVALUATE_H

#include "engine/backend.h"
#include "loader/loader.h"

typedef struct stk_evaluation {
    const stk_backend *backend;
    stk_exec *exec; /* compiled for inference and at least data.batch samples */
    size_t answers; /* numbers of each sample that `exec` gives: stk_graph_answers() */
    /* The samples. Of data.order only `shuffle` is used; data.slow_after_ns is ignored. data.halt
     * is also asked between batches. */
    stk_loader_config data;
    int64_t final_limit_ns; /* CPU time after which a picture is reported as bad, unless the others
                               take as long; 0: none is */
    /*
     * Receives each batch with its logits (count, answers); the logits of a sample in batch->bad
     * are invalid. entries[i] is the entry of sample i in `data`. Slow pictures are evaluated last;
     * a batch before may already have contained them, marked bad.
     */
    void (*on_batch)(void *user, const stk_batch *batch, const size_t *entries,
                     const float *logits);
    void (*bad)(void *user, const char *path, const char *reason); /* may be NULL */
    void *user;
} stk_evaluation;

/* *done: every batch was evaluated. */
STK_CHECKED stk_status stk_evaluate(const stk_evaluation *evaluation, bool *done, stk_error *err);

#endif
