/*
 * budget.h - how many epochs and steps of a fold fit into the budget.
 *
 * Pure arithmetic on measured numbers, so that it can be tested without training: no threads, no
 * clocks, no state.
 */
#ifndef STK_BUDGET_BUDGET_H
#define STK_BUDGET_BUDGET_H

#include <stdbool.h>
#include <stdint.h>

#include "options/options.h"

typedef struct stk_budget_options {
    double budget_s;      /* STK_AUTO_DOUBLE: no budget */
    const char *deadline; /* text such as "14:30"; NULL: none */
} stk_budget_options;

extern const stk_option_table stk_budget_option_table;

/* What is known when a plan is made. A time that was not measured is NaN. */
typedef struct stk_budget_facts {
    double elapsed_s;    /* since the start of the process */
    double budget_s;     /* NaN: none */
    double fold_start_s; /* elapsed_s when this fold began */
    double share;        /* this fold's share of the time left when it began; 1 for the last fold */
    int epochs_wanted;   /* 0: as many as fit */
    int epoch;    /* the running epoch, from 1; above stk_budget_most_epochs(): none is left */
    int64_t step; /* steps done of the running epoch */
    int64_t steps_per_epoch;
    double step_s;      /* seconds per training step */
    double cheap_steps; /* from now on, which take `cheap_part` of that: only the head learns */
    double cheap_part;  /* 0 means 1 */
    double val_s;       /* seconds per validation; see inference.h */
    double save_s;      /* seconds for saving after each validation; 0: not known */
    int validate_every; /* epochs from one validation to the next; 0 means 1 */
    double predict_s;   /* seconds for predicting the test set once */
    bool timed;         /* predict_s was measured; false: it is an estimate from training steps */
    double more_s;      /* seconds of what belongs to a prediction: reading the weights, predicting
                           out of fold; 0: not known */
    double state_s;     /* seconds of writing the last state, beside the prediction; 0: none */
    double final_s;     /* seconds to leave for the last files, see margin.h */
    double busy;        /* factor by which a busy machine makes times scatter; at most 1: idle */
} stk_budget_facts;

typedef struct stk_budget_plan {
    int epochs;         /* of this fold, including the running one and a last partial one */
    int64_t steps_left; /* from now on; 0: stop */
    bool cut;           /* the budget allows less than was wanted, or not even one epoch */
    double reserve_s;   /* kept back at the end of the budget */
    double epoch_s;     /* seconds of one epoch with its part of a validation; NaN: not known */
    double total_s;     /* from now to the end of this fold's training; NaN when not known */
    double left_s;      /* from now to the end of the budget; NaN without one */
    double fold_s;      /* part of left_s that this fold may still train for; NaN without budget */
} stk_budget_plan;

/* Epochs without a budget when none were asked for, and the most that a budget is filled with. */
#define STK_BUDGET_DEFAULT_EPOCHS 20
#define STK_BUDGET_MOST_EPOCHS 1000

/* The most epochs of a fold: the wanted ones, or STK_BUDGET_MOST_EPOCHS. */
int stk_budget_most_epochs(int epochs_wanted);

/*
 * Epochs from one validation to the next with which validations, and saving after them, take a
 * small part of the time. 1 without a budget, and where epochs were asked for: which epochs are
 * validated does not depend on timing then. facts->validate_every is not read.
 */
int stk_budget_validate_every(const stk_budget_facts *facts);

/*
 * Makes the plan. A new epoch begins only if it ends before the reserve; the last one may be
 * partial when whole epochs would leave more than 1 % of the fold's time unused. The running epoch
 * may use half of what the reserve has beyond the need: otherwise noise in the timing would cut it.
 * The other half is for its validation.
 */
stk_budget_plan stk_budget_make(const stk_budget_facts *facts);

/*
 * Seconds of the budget that training must leave for a prediction of predict_s, the last files not
 * counted: a third more than that, and at least what one short stall may take. NaN, a prediction of
 * which nothing is known yet: 15 % of the budget.
 */
double stk_budget_reserve(double budget_s, double predict_s);

/* The same for a predict_s that is `timed` or an estimate; an estimate never leaves less than 15 %.
 */
double stk_budget_reserve_by(double budget_s, double predict_s, bool timed);

#endif
