/* probabilities.h - from a network's outputs to probabilities. Threads: safe. */
#ifndef STK_METRICS_PROBABILITIES_H
#define STK_METRICS_PROBABILITIES_H

/* Probabilities of one row of logits at a temperature above 0, by which the logits are divided. */
void stk_softmax(const float *logits, int classes, double temperature, double *probs);

/* The same for labels that do not exclude each other: a sigmoid for each. */
void stk_sigmoids(const float *logits, int labels, double temperature, double *probs);

#endif
