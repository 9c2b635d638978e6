/*
 * model_choice.h - which of several pretrained models is trained. Pure arithmetic.
 *
 * A better model is slower, and with few epochs it learns less than a smaller one in the same time.
 * One model was measured; how long the others take follows from what they compute and move.
 */
#ifndef STK_BUDGET_MODEL_CHOICE_H
#define STK_BUDGET_MODEL_CHOICE_H

#include "budget/training_choice.h"

/* A model that could be trained. */
typedef struct stk_model_offer {
    double quality;       /* accuracy of its weights on ImageNet in percent; 0: not known */
    double multiply_adds; /* of a forward pass, per picture at img_size */
    double bytes;         /* that a training step moves, per picture at img_size */
    int img_size;         /* px */
} stk_model_offer;

typedef struct stk_model_choice {
    size_t index;         /* of the chosen offer */
    bool enough;          /* it gets enough epochs */
    double epochs;        /* that fit, of one model over all pictures; NaN: not known */
    size_t better;        /* the best offer that is better but gets too few; `index`: none is */
    double better_epochs; /* that it would get */
} stk_model_choice;

/* Without a time limit. On a CPU the fastest of good quality is taken, on a GPU the best one of
 * ordinary size; the result is the index. */
size_t stk_model_choose_untimed(const stk_model_offer *offers, size_t count, bool on_cpu);

/*
 * With a time limit: the best model that gets enough epochs, or else the one that gets the most.
 * `facts` are those of offer `measured`, and `compute_s` are the seconds that a picture takes it
 * without waiting for pictures. Of two equal ones the faster is taken.
 */
stk_model_choice stk_model_choose(const stk_model_offer *offers, size_t count, bool on_cpu,
                                  size_t measured, double compute_s,
                                  const stk_training_facts *facts);

/* The facts of another offer, estimated from those of offer `measured`. */
stk_training_facts stk_model_estimate(const stk_model_offer *offer, const stk_model_offer *measured,
                                      bool on_cpu, double compute_s,
                                      const stk_training_facts *facts);

/* How long a picture takes, in a unit of its own: only quotients mean something. */
double stk_model_cost(const stk_model_offer *offer, bool on_cpu);

#endif
