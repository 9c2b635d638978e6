/*
 * predict.h - probabilities for samples, from one model.
 *
 * Each picture may be predicted in several views (image/image.h; --tta). Every view is one pass
 * over all samples, and the result after any pass is complete, so that views can be left out when
 * time runs short. Threads: the caller's, and those of the loader.
 */
#ifndef STK_PREDICT_PREDICT_H
#define STK_PREDICT_PREDICT_H

#include "engine/exec_cache.h"
#include "events/events.h"
#include "options/options.h"
#include "predict/predictions.h"
#include "train/evaluate.h"
#include "weights/outputs.h"

typedef struct stk_view_options {
    int64_t tta; /* views of each picture, 1 to STK_TRANSFORM_VIEWS; STK_AUTO_INT: to be chosen */
} stk_view_options;

extern const stk_option_table stk_view_option_table;

/* Images per inference call, at most. It depends on no option, so that the same weights give the
 * same bits in train and predict. Fewer when memory runs out and, on a CPU, for few images
 * (train/evaluate.c). */
#define STK_PREDICT_BATCH 64

struct stk_predicted;

typedef struct stk_prediction {
    const stk_backend *backend;
    stk_state *state; /* the weights */
    const stk_graph *graph;
    /* When memory runs out, the batch is halved as often as needed. */
    stk_compile_config compile;
    /* Borrowed: where the executable comes from and goes back to. NULL: none is kept. */
    stk_exec_cache *execs;
    /* Borrowed: compiled with `compile` already, and in use elsewhere; its batch is not halved.
     * NULL: takes one from `execs`. */
    stk_exec *exec;
    stk_loader_config data; /* as stk_evaluation.data; each pass sets batch and view */
    const char *split;      /* "test" or "val": the split in events of bad images */
    const stk_events *events;
    const stk_outputs *outputs; /* what the network's outputs mean; NULL: a single class */
    double temperature;         /* of the model (weights/calibration.h); 0 means 1 */
    int views;                  /* of each picture, to be averaged; 0 means 1 */
    /* Asked before each view after the first; NULL: all are wanted. */
    bool (*wants_view)(void *user, const struct stk_predicted *so_far);
    void *user;
} stk_prediction;

/* How far a prediction came. */
typedef struct stk_predicted {
    bool done;      /* every sample was predicted in every view */
    int views;      /* complete views */
    size_t batch;   /* pictures of a call, after any halving */
    double start_s; /* seconds of compiling before the first batch; none where it was kept */
    /* Seconds of the last complete view, had its slowest batch been as fast as the others; NaN: no
     * view is complete. */
    double pass_s;
} stk_predicted;

/*
 * Fills the rows of `probs` (data.count, classes) and sets have[i] for each row that was predicted.
 * Rows of missing or unreadable pictures, and rows that there was no time for, stay untouched. With
 * one view a row is exactly what `outputs` makes of its logits at the temperature, probabilities or
 * numbers; with several it is their mean. Of a sample of one class its own is kept, too.
 */
STK_CHECKED stk_status stk_predict_samples(const stk_prediction *prediction, stk_predictions *probs,
                                           bool *have, stk_predicted *predicted, stk_error *err);

#endif
