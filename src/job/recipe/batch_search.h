/*
 * batch_search.h - how many pictures a training step has.
 *
 * stk_batch_search_plan() chooses a batch from the data set and the memory by arithmetic, before
 * anything is allocated. On a GPU, a batch that nobody gave is then measured: a few steps of
 * several batches, once a first submission exists (stk_batch_search_measure()). The recipe holds
 * the batch that is used. This struct has the facts, the choice, the measured speeds and the
 * reason, which prepare.c, training_monitor.c and the verbs read. Threads: the job's.
 */
#ifndef STK_JOB_RECIPE_BATCH_SEARCH_H
#define STK_JOB_RECIPE_BATCH_SEARCH_H

#include "budget/batch_choice.h"
#include "job/recipe/job_options.h"
#include "job/recipe/network.h"
#include "job/recipe/recipe.h"
#include "run/run_clock.h"

typedef struct stk_batch_search {
    /* Borrowed; set by job.c when it opens the job. *recipe is the recipe that the job holds now:
     * when the job takes another one, *recipe changes. */
    stk_job_network *network;
    const stk_recipe *recipe;
    const stk_job_options *options;
    const stk_loader_options *loader_options;
    stk_run_clock *clock;
    double budget_s; /* the budget to plan for, from the start of the clock; NaN: the clock's own */
    /* Set by the search. */
    stk_batch_facts facts;   /* what the choice rests on */
    stk_batch_choice chosen; /* the batch */
    size_t infer_batch;      /* pictures of a step of validation and prediction */
    stk_batch_curve curve;   /* what was measured */
    bool to_be_measured;     /* stk_batch_search_measure() will measure */
    char skipped[96];        /* why it was not measured although it could be; "" otherwise */
    char why[320];           /* the reason for the batch, for people; "": not worth a line */
    double took_s;           /* seconds of measuring */
    double last_s;           /* seconds of measuring the last batch */
    double others_s;         /* seconds of measuring all batches but the first */
    double allowed_s;        /* limit for others_s; the first batch's steps get as much again */
} stk_batch_search;

/*
 * Chooses by memory and data set. STK_ERR_MEMORY: not even a batch of 1 fits. With `resuming` the
 * batch of args.json stays chosen even if memory is short: learning rate, args.json and the images
 * of an update follow from it. resume_batch() in prepare.c then finds the batch that is used.
 */
STK_CHECKED stk_status stk_batch_search_plan(stk_batch_search *search, const stk_options *options,
                                             size_t train_count, bool resuming, stk_error *err);

/* Whether these batches of training and of validation fit into the memory; STK_ERR_MEMORY: not. */
STK_CHECKED stk_status stk_batch_search_check(stk_batch_search *search, size_t batch,
                                              size_t infer_batch, stk_error *err);

/* Measures if to_be_measured, and chooses. Overwrites the weights in the state. */
void stk_batch_search_measure(stk_batch_search *search);

/* The batch that `--batch-policy fill` would choose, whatever was asked for. Unless it is 8 or
 * less, it takes at most 85 % of the free memory and leaves an epoch 15 steps. */
int64_t stk_batch_search_largest(const stk_batch_search *search);

#endif
