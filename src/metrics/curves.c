/* curves.c - areas under the ROC curve. */
#include <math.h>
#include <stdlib.h>

#include "metrics/formulas.h"

/* The strip of true-positive rates that counts twice in the weighted area. */
#define STRIP 0.4

/* So few positives are compared with every negative: that is quicker than sorting. */
#define FEW 8

static int by_score(const void *a, const void *b) {
    float x = ((const stk_scored *)a)->score;
    float y = ((const stk_scored *)b)->score;
    return x < y ? -1 : x > y;
}

/* The number of positives; SIZE_MAX where no curve can be drawn. */
static size_t count_positives(const stk_scored *rows, size_t count) {
    size_t positives = 0;
    bool ranked = true; /* NaN has no rank */
    for (size_t i = 0; i < count; i++) {
        positives += rows[i].positive;
        ranked = ranked && !isnan(rows[i].score);
    }
    return ranked && positives > 0 && positives < count ? positives : SIZE_MAX;
}

/* Of the negatives, those below a score, ties counted half. */
static double beaten_by(const stk_scored *rows, size_t count, float score) {
    double beaten = 0;
    for (size_t i = 0; i < count; i++) {
        bool below = rows[i].score < score;
        beaten += rows[i].positive ? 0 : below ? 1 : rows[i].score > score ? 0 : 0.5;
    }
    return beaten;
}

/* The sum of the positives' ranks in rising order, from 1; ties share their mean rank. */
static double rank_sum(const stk_scored *rows, size_t count) {
    double ranks = 0;
    for (size_t i = 0; i < count;) {
        size_t end = i;
        size_t inside = 0;
        while (end < count && rows[end].score == rows[i].score) {
            inside += rows[end++].positive;
        }
        ranks += (double)inside * ((double)(i + end + 1) / 2);
        i = end;
    }
    return ranks;
}

/* The share of (positive, negative) pairs in the right order, ties counted half. */
double stk_metrics_auc(stk_scored *rows, size_t count) {
    size_t positives = count_positives(rows, count);
    double beaten = 0;
    if (positives == SIZE_MAX) {
        return NAN;
    }
    if (positives <= FEW) {
        for (size_t i = 0; i < count; i++) {
            beaten += rows[i].positive ? beaten_by(rows, count, rows[i].score) : 0;
        }
    } else {
        double p = (double)positives;
        qsort(rows, count, sizeof *rows, by_score);
        beaten = rank_sum(rows, count) - p * (p + 1) / 2;
    }
    return beaten / ((double)positives * (double)(count - positives));
}

/* The weight of all true-positive rates up to this one. */
static double weight_up_to(double rate) {
    return rate + fmin(rate, STRIP);
}

/* The mean of weight_up_to() along a straight piece of the curve. */
static double mean_weight(double from, double to) {
    double share = to > from ? (STRIP - from) / (to - from) : 1; /* of the piece, in the strip */
    if (share <= 0 || share >= 1) {
        return (weight_up_to(from) + weight_up_to(to)) / 2;
    }
    double bend = weight_up_to(STRIP);
    return share * (weight_up_to(from) + bend) / 2 + (1 - share) * (bend + weight_up_to(to)) / 2;
}

/* The curve is walked from the highest score down; equal scores make one straight piece. */
double stk_metrics_weighted_auc(stk_scored *rows, size_t count) {
    size_t positives = count_positives(rows, count);
    size_t found = 0;
    double area = 0;
    if (positives == SIZE_MAX) {
        return NAN;
    }
    qsort(rows, count, sizeof *rows, by_score);
    for (size_t end = count; end > 0;) {
        size_t begin = end;
        size_t inside = 0;
        while (begin > 0 && rows[begin - 1].score == rows[end - 1].score) {
            inside += rows[--begin].positive;
        }
        double width = (double)(end - begin - inside) / (double)(count - positives);
        area += width * mean_weight((double)found / (double)positives,
                                    (double)(found + inside) / (double)positives);
        found += inside;
        end = begin;
    }
    return area / weight_up_to(1);
}
