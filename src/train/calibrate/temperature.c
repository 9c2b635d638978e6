/* temperature.c - the temperature with the least log loss, by Newton's method. */
#include <math.h>

#include "train/calibrate/fitting.h"

/* 8 (ln T)^2 is added to the sum of the losses: a few pictures that are all right, or one that is
 * quite wrong, do not give extreme temperatures. */
#define PULL 8.0

#define NEWTON_STEPS 12
#define NEWTON_NEAR 1e-4

/* The loss of one row of scaled logits, with its first and second derivative by the scale. */
static double class_loss(const float *row, int classes, int label, double scale, double *slope,
                         double *bend) {
    int best = 0;
    double sum =
        1; /* of exp(scale z), z the distance from the best; the best's own to begin with */
    double first = 0;
    double second = 0;
    for (int c = 1; c < classes; c++) {
        best = row[c] > row[best] ? c : best;
    }
    for (int c = 0; c < classes; c++) {
        double z = (double)row[c] - row[best];
        double p = c != best ? exp(scale * z) : 0;
        sum += p;
        first += p * z;
        second += p * z * z;
    }
    first /= sum;
    double own = (double)row[label] - row[best];
    *slope += first - own;
    *bend += second / sum - first * first;
    return log(sum) - scale * own;
}

/* A product of numbers from 1 to 2 below this one has room for another. */
#define MOST_PRODUCT 1e300

/*
 * The same for sigmoids: the sum over the labels, those that are not known by the others' mean. Of
 * thousands of labels one exponential each is what takes time: the sum of log(1 + e) is the
 * logarithm of a product.
 */
static double label_loss(const float *row, const int8_t *answers, int labels, double scale,
                         double *slope, double *bend) {
    double loss = 0;
    double product = 1;
    double first = 0;
    double second = 0;
    int known = 0;
    for (int l = 0; l < labels; l++) {
        double z = answers[l] == 1 ? row[l] : -(double)row[l];
        double e = exp(-fabs(scale * z));
        double wrong = (z >= 0 ? e : 1) / (1 + e); /* the probability of the other answer */
        if (answers[l] != STK_TARGET_UNKNOWN) {
            loss -= fmin(scale * z, 0);
            product *= 1 + e;
            if (product > MOST_PRODUCT) {
                loss += log(product);
                product = 1;
            }
            first -= z * wrong;
            second += z * z * wrong * (1 - wrong);
            known++;
        }
    }
    double part = known > 0 ? (double)labels / known : 0;
    *slope += part * first;
    *bend += part * second;
    return part * (loss + log(product));
}

double stk_fit_loss_at(const stk_fitting *f, double temperature, double *slope, double *bend) {
    const stk_held_rows *rows = &f->some;
    double loss = 0;
    *slope = *bend = 0;
    for (size_t i = 0; i < rows->count; i++) {
        loss += f->task == STK_TASK_MULTILABEL
                    ? label_loss(rows->logits[i], rows->answers[i], f->outputs, 1 / temperature,
                                 slope, bend)
                    : class_loss(rows->logits[i], f->outputs, rows->labels[i], 1 / temperature,
                                 slope, bend);
    }
    return loss;
}

/*
 * The temperature with the least loss, found in u = ln T: with b = 1 / T the first derivative is
 * -b L'(b), the second b L'(b) + b^2 L''(b). The sign of the first keeps the answer in brackets; a
 * step out of them halves them.
 */
double stk_fit_temperature(const stk_fitting *f) {
    double low = log(STK_LEAST_TEMPERATURE);
    double high = log(STK_MOST_TEMPERATURE);
    double u = 0;
    double step = 1;
    for (int i = 0; i < NEWTON_STEPS && fabs(step) > NEWTON_NEAR; i++) {
        double slope, bend;
        double b = exp(-u);
        (void)stk_fit_loss_at(f, exp(u), &slope, &bend);
        double first = -b * slope + 2 * PULL * u;
        double second = b * slope + b * b * bend + 2 * PULL;
        low = first < 0 ? u : low;
        high = first < 0 ? high : u;
        double next = u - first / second;
        next = second > 0 && next >= low && next <= high ? next : (low + high) / 2;
        step = next - u;
        u = next;
    }
    return stk_calibration_round(exp(u));
}
