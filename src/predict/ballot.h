/*
 * ballot.h - averaging what several models say of the same rows.
 *
 * Rows start with the priors. Each model adds its probabilities for the rows that it could predict;
 * a row that no model could keeps the priors, so that every row has an answer at any moment. Models
 * may count differently.
 */
#ifndef STK_PREDICT_BALLOT_H
#define STK_PREDICT_BALLOT_H

#include <stdbool.h>
#include <stddef.h>

#include <stoker/status.h>

typedef struct stk_ballot {
    size_t rows;
    size_t classes;
    int models;     /* that predicted a row at least */
    double *priors; /* classes, owned; uniform until somebody changes them */
    double *sum;    /* (rows, classes), owned */
    double *votes;  /* rows, owned: weights of the models that predicted the row, added up */
    double *probs;  /* (rows, classes), owned: filled by stk_ballot_count */
} stk_ballot;

STK_CHECKED stk_status stk_ballot_open(stk_ballot *ballot, size_t rows, size_t classes,
                                       stk_error *err);
void stk_ballot_free(stk_ballot *ballot);

/* Adds one model's word: probs (rows, classes) where have[row]; the weight is above 0. */
void stk_ballot_add(stk_ballot *ballot, const double *probs, const bool *have, double weight);

/* The averages as they stand, in ballot->probs. */
const double *stk_ballot_count(stk_ballot *ballot);

/*
 * How models count by their validation accuracy (percent; NaN: not known): by how far they are
 * above guessing among so many classes, a hundredth of the best at least. One that is not known
 * counts as much as the known ones do on average.
 */
void stk_ballot_weigh(const double *acc1, size_t models, int classes, double *weights);

#endif
