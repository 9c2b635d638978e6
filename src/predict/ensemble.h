/*
 * ensemble.h - the average of several models' predictions for the same rows.
 *
 * Every row begins with the class priors. Each model adds its probabilities for the rows that it
 * could predict. A row that no model could predict keeps the priors, so that every row has an
 * answer at any moment. Models may have different weights. Early predictions of a model that is
 * still being trained may stand in for the priors; they are no member. Threads: one at a time.
 */
#ifndef STK_PREDICT_ENSEMBLE_H
#define STK_PREDICT_ENSEMBLE_H

#include <stdbool.h>
#include <stddef.h>

#include <stoker/status.h>

#include "predict/predictions.h"
#include "weights/calibration.h"

typedef struct stk_ensemble {
    size_t rows;         /* rows to predict */
    size_t classes;      /* probabilities per row */
    int models;          /* members: models that predicted at least one row */
    double *priors;      /* (classes), owned; uniform until the caller sets them */
    stk_predictions sum; /* (rows, classes), owned: weighted sum of the members' probabilities */
    double *weights;    /* (rows), owned: sum of the weights of the models that predicted the row */
    double *scratch[2]; /* each (classes), owned */
    stk_calibration_mean calibration; /* owned: of the members */
    /* Early predictions, owned. */
    stk_predictions early;                  /* (rows, classes) */
    bool *early_have;                       /* (rows): which rows they have; NULL: there are none */
    stk_calibration_mean early_calibration; /* of the weights that made them */
} stk_ensemble;

/* `kept`: how many probabilities of a row are kept (stk_predictions_kept()); 0: all. */
STK_CHECKED stk_status stk_ensemble_open(stk_ensemble *ensemble, size_t rows, size_t classes,
                                         size_t kept, stk_error *err);
void stk_ensemble_free(stk_ensemble *ensemble);

/* Adds one model: its probs (rows, classes), at its temperature, where have[row]; the weight is
 * above 0. */
void stk_ensemble_add(stk_ensemble *ensemble, const stk_predictions *probs, const bool *have,
                      const stk_calibration *calibration, double weight);

/* From now on rows that no member has predicted have these predictions where have[row]. Takes
 * what is in `probs` (rows, classes) and `have`, unless it fails; earlier ones are freed. */
STK_CHECKED stk_status stk_ensemble_set_early(stk_ensemble *ensemble, stk_predictions *probs,
                                              bool *have, const stk_calibration *calibration,
                                              stk_error *err);

/* Whose values a row has, the better ones last. */
typedef enum stk_row_source { STK_ROW_PRIORS, STK_ROW_EARLY, STK_ROW_MEMBERS } stk_row_source;

stk_row_source stk_ensemble_source(const stk_ensemble *ensemble, size_t row);

/* Computes the averages of a row as they stand into `probs` (classes). */
void stk_ensemble_row(const stk_ensemble *ensemble, size_t row, double *probs);

/* How labels are chosen from these averages: the mean of the members' rules; before the first
 * member the rule of the early predictions, or the likeliest class. Valid until the next call. */
const stk_label_rule *stk_ensemble_rule(stk_ensemble *ensemble);

/* How these models pool the pictures of a row; as the rule, of whoever made the averages. */
stk_pooling stk_ensemble_pool(const stk_ensemble *ensemble);

/*
 * Weights of models from their validation accuracy (percent; NaN: not known): by how far each is
 * above guessing among so many classes, and at least a hundredth of the best one's weight. A model
 * of unknown accuracy gets the mean weight of the others.
 */
void stk_ensemble_weights(const double *acc1, size_t models, int classes, double *weights);

#endif
