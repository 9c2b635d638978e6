/*
 * class_means.h - a head that knows rare classes by the mean of their pictures.
 *
 * Training moves the head's row of a class a little with each of its pictures. Of a class with one
 * or two pictures it learns little, although the features of these pictures, the inputs of the
 * head, say what the class looks like. So each class gets the direction from the mean of all
 * features to the mean of its own. A picture's product with it is the class's score by the nearest
 * mean, and a sum of both scores is a head again: the network, its file and its predictions stay
 * what they are. How much of the means joins the head is chosen on held-out pictures.
 *
 * Memory: the directions take classes x width floats, as much as the head itself; the held-out
 * pictures 256 MiB at most. Threads: one at a time.
 */
#ifndef STK_TRAIN_CLASS_MEANS_H
#define STK_TRAIN_CLASS_MEANS_H

#include <stdbool.h>
#include <stddef.h>

#include <stoker/status.h>

#include "metrics/metrics.h"
#include "train/calibrate/calibrate.h"

typedef struct stk_class_means {
    size_t classes;
    size_t width;      /* inputs of the head */
    int stranger;      /* a class whose members look like nothing in common; -1: there is none */
    size_t count;      /* pictures added */
    size_t *counts;    /* (classes), owned: pictures of each class */
    float *directions; /* (classes, width), owned: sums; after finish of length 1, or zeros */
    double *centre;    /* (width), owned: the sum, then the mean, of all features */
} stk_class_means;

STK_CHECKED stk_status stk_class_means_open(stk_class_means *means, int classes, size_t width,
                                            int stranger, stk_error *err);
void stk_class_means_free(stk_class_means *means);

/* Adds a training picture; features that are not finite do not count. */
void stk_class_means_add(stk_class_means *means, int label, const float *features /* (width) */);

/* Makes directions of the sums, once all pictures were added. */
void stk_class_means_finish(stk_class_means *means);

/* Factor that gives the directions the length of a head's rows, about their mean. */
double stk_class_means_scale(const stk_class_means *means, const float *weights);

/* Adds `factor` times the means to a head: weights (classes, width) and bias (classes). */
void stk_class_means_join(const stk_class_means *means, double factor, float *weights, float *bias);

/* ---- held-out pictures ---- */

typedef struct stk_means_trial {
    stk_metrics_config rated; /* its capacity is that of the trial */
    size_t count;
    float *plain; /* (capacity, classes), owned: logits */
    float *near;  /* (capacity, classes), owned: products with the directions */
    int *labels;  /* (capacity), owned */
} stk_means_trial;

/* So many held-out pictures can be tried in memory and in about a second. */
size_t stk_means_trial_most(size_t classes, size_t width);

STK_CHECKED stk_status stk_means_trial_open(stk_means_trial *trial, const stk_metrics_config *rated,
                                            stk_error *err);
void stk_means_trial_free(stk_means_trial *trial);

/* Adds a held-out picture, once the means are finished. */
void stk_means_trial_add(stk_means_trial *trial, const stk_class_means *means, int label,
                         const float *logits, const float *features);

/* What a trial came to; freed with stk_calibration_free(&choice.calibration). */
typedef struct stk_means_choice {
    double weight; /* of the means, as a part of the head's own length; 0: they do not help */
    double plain;  /* the metric without means, as answers are chosen */
    double best;   /* with means, on pictures that have not chosen their weight; if no weight gains
                      enough, with the best one that was tried */
    stk_calibration calibration; /* owned: of the head with these means; zeros at weight 0 */
} stk_means_choice;

/*
 * Tries weights of the means on the held-out pictures, each with its own temperature and rule;
 * `config` NULL: without. The best weight has to gain more than chance gives, and the means have to
 * help each quarter's pictures with the weight that is best for the others. What they gain so is
 * calibration.means_gain. `scale` is that of the head.
 */
STK_CHECKED stk_status stk_means_trial_choose(const stk_means_trial *trial, double scale,
                                              const stk_calibrate_config *config,
                                              stk_means_choice *choice, stk_error *err);

#endif
