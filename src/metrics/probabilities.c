/* probabilities.c - softmax and sigmoids at a temperature. */
#include "metrics/probabilities.h"

#include <math.h>

void stk_softmax(const float *logits, int classes, double temperature, double *probs) {
    double largest = logits[0];
    double sum = 0;
    for (int c = 1; c < classes; c++) {
        largest = logits[c] > largest ? logits[c] : largest;
    }
    for (int c = 0; c < classes; c++) {
        probs[c] = exp((logits[c] - largest) / temperature);
        sum += probs[c];
    }
    for (int c = 0; c < classes; c++) {
        probs[c] /= sum;
    }
}

void stk_sigmoids(const float *logits, int labels, double temperature, double *probs) {
    for (int c = 0; c < labels; c++) {
        probs[c] = 1 / (1 + exp(-logits[c] / temperature));
    }
}
