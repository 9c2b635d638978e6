/*
 * votes.h - how many views and models there is time to predict with: pure arithmetic.
 *
 * A vote is one model's word on all rows in so many views. Where time is short views are given up
 * first, since each adds less than a model does, and then models.
 */
#ifndef STK_BUDGET_VOTES_H
#define STK_BUDGET_VOTES_H

#include <stdint.h>

typedef struct stk_votes_facts {
    double left_s;    /* until only writing is left; INFINITY: no deadline */
    int64_t rows;     /* pictures to predict */
    double picture_s; /* seconds per picture in one view; NaN: not measured */
    double model_s;   /* seconds to load and compile one model; NaN: not measured */
    int models;       /* that have not begun */
    int views;        /* wanted of each picture, at least 1 */
    int views_done;   /* of the model that is at work now; 0: none is */
} stk_votes_facts;

typedef struct stk_votes {
    int views;  /* for the model at work and each after it, at least 1 */
    int models; /* of those that have not begun: how many will have voted on every row in time */
} stk_votes;

/* Before anything was measured all that is wanted seems possible. */
stk_votes stk_votes_plan(const stk_votes_facts *facts);

/*
 * Views that the reserve of a training is to allow for: as many as fit into the part of the budget
 * that is kept back in any case, one at least. budget_s NaN: all; predict_s, for one view, NaN: 1.
 */
int stk_votes_in_reserve(double budget_s, double predict_s, int views);

#endif
