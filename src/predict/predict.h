/*
 * predict.h - probabilities for samples, from one model.
 *
 * A picture may be looked at in several views (image/image.h), one pass over all samples after the
 * other: what there is after any of them is an answer, so that views can be left out when time runs
 * short.
 */
#ifndef STK_PREDICT_PREDICT_H
#define STK_PREDICT_PREDICT_H

#include "events/events.h"
#include "options/options.h"
#include "train/evaluate.h"

typedef struct stk_view_options {
    int64_t tta; /* views of each picture, 1 to STK_TRANSFORM_VIEWS */
} stk_view_options;

extern const stk_option_table stk_view_option_table;

/* Images per inference call; fixed, so that the same weights give the same bits everywhere. Only
 * where memory runs out they are fewer. */
#define STK_PREDICT_BATCH 64

struct stk_predicted;

typedef struct stk_prediction {
    const stk_backend *backend;
    stk_state *state; /* the weights */
    bool ema;         /* their averages, which the state must have */
    const stk_graph *graph;
    stk_precision precision;
    /* Samples, transform, batch, plan. Batch 0: STK_PREDICT_BATCH. When memory runs out the batch
     * is halved, as often as needed. */
    stk_loader_config data;
    const char *split; /* "test" or "val": how bad images are told */
    const stk_events *events;
    stk_halt halt;
    int views; /* of each picture, averaged; 0 means 1 */
    /* Asked before each view behind the first, with what there is so far; NULL: all are wanted. */
    bool (*wants_view)(void *user, const struct stk_predicted *so_far);
    void *user;
} stk_prediction;

/* How far a prediction came. */
typedef struct stk_predicted {
    bool done;      /* every sample in every view */
    int views;      /* that were made of all samples */
    size_t batch;   /* that there was memory for */
    double start_s; /* seconds before the first batch: compiling */
    /* Seconds for all samples in one view, the last whole one, its slowest batch as fast as the
     * others; NaN: there is none. */
    double pass_s;
} stk_predicted;

/*
 * Fills the rows of `probs` (data.count, classes) and sets have[i] for each that was predicted;
 * rows of pictures that are missing or cannot be read, or that there was no time for, are left
 * alone. One view gives the softmax of its logits bit for bit; with several a row is the mean of
 * those that there was time for.
 */
STK_CHECKED stk_status stk_predict_samples(const stk_prediction *prediction, double *probs,
                                           bool *have, stk_predicted *predicted, stk_error *err);

#endif
