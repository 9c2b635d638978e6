/* predict.h - probabilities for samples, from one model. */
#ifndef STK_PREDICT_PREDICT_H
#define STK_PREDICT_PREDICT_H

#include "events/events.h"
#include "train/evaluate.h"

/* Images per inference call; fixed, so that the same weights give the same bits everywhere. */
#define STK_PREDICT_BATCH 64

typedef struct stk_prediction {
    const stk_backend *backend;
    stk_state *state; /* the weights */
    bool ema;         /* their averages, which the state must have */
    const stk_graph *graph;
    stk_precision precision;
    stk_loader_config data; /* samples, transform, plan */
    const char *split;      /* "test" or "val": how bad images are told */
    const stk_events *events;
    stk_halt halt;
} stk_prediction;

/*
 * Fills the rows of `probs` (data.count, classes) and sets have[i] for each that was predicted;
 * rows of pictures that are missing or cannot be read, or that there was no time for, are left
 * alone. *done says whether there was time for all.
 */
STK_CHECKED stk_status stk_predict_samples(const stk_prediction *prediction, double *probs,
                                           bool *have, bool *done, stk_error *err);

#endif
