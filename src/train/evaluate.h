/*
 * evaluate.h - running a compiled network over samples once: for validation and prediction.
 */
#ifndef STK_TRAIN_EVALUATE_H
#define STK_TRAIN_EVALUATE_H

#include "engine/backend.h"
#include "loader/loader.h"

typedef struct stk_evaluation {
    const stk_backend *backend;
    stk_exec *exec; /* compiled for inference and at least data.batch samples */
    int classes;
    /* One pass; bad samples are marked, not replaced. Those that take longer than patience_ns,
     * unless others do, are told as bad; 0: all are waited for. */
    stk_loader_config data;
    bool shuffled; /* not in order: a part of them is a random one */
    stk_halt halt;
    /*
     * Each batch with its logits (count, classes); batch->bad marks rows without meaning. rows[i]
     * is the place of sample i in the list of data: pictures that are slow come last, and may be in
     * a batch before where they are marked bad.
     */
    void (*batch)(void *user, const stk_batch *batch, const size_t *rows, const float *logits);
    void (*bad)(void *user, const char *path, const char *reason); /* may be NULL */
    void *user;
} stk_evaluation;

/* *done says whether every batch was evaluated. */
STK_CHECKED stk_status stk_evaluate(const stk_evaluation *evaluation, bool *done, stk_error *err);

/* Probabilities of one row of logits. */
void stk_softmax(const float *logits, int classes, double *probs);

#endif
