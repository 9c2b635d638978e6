/*
 * model_search.h - which model a run trains, and from which weights.
 *
 * A model that was named is taken. Weights that were named without a model have one. Otherwise the
 * models whose weights are on this machine are candidates, and one is chosen by device, memory and
 * time; with none the small network is trained from random weights. Nothing is downloaded.
 *
 * stk_model_search_find() finds the candidates, stk_model_search_begin() chooses among them without
 * regard to time, and training/fitting.c may choose another one, once steps were timed. Threads:
 * the job's.
 */
#ifndef STK_JOB_RECIPE_MODEL_SEARCH_H
#define STK_JOB_RECIPE_MODEL_SEARCH_H

#include "budget/model_choice.h"
#include "events/events.h"
#include "job/recipe/network.h"

#define STK_MOST_CANDIDATES 128

typedef struct stk_model_search {
    stk_model_source candidates[STK_MOST_CANDIDATES];
    stk_model_offer offers[STK_MOST_CANDIDATES]; /* of the candidates, where there are several */
    size_t count;                                /* at least 1, once they were found */
    size_t chosen;                               /* candidate */
    const char *why; /* of a single candidate, for people; NULL: it was asked for, or is the only
                        network without weights */
} stk_model_search;

/* Finds the candidates for a network of so many classes. Weights that cannot be used are left out
 * with a warning, unless they were asked for. */
STK_CHECKED stk_status stk_model_search_find(stk_model_search *search, const stk_recipe *recipe,
                                             const stk_options *options, int classes,
                                             const stk_events *events, stk_error *err);

/* Chooses by the device alone, once it is open; candidates without enough memory are dropped. */
STK_CHECKED stk_status stk_model_search_begin(stk_model_search *search, stk_job_network *network,
                                              const stk_recipe *recipe, int classes,
                                              stk_error *err);

/* Whether a time limit has something to choose from. */
bool stk_model_search_is_open(const stk_model_search *search);

/* Emits the model that was chosen; `choice` is that by time, or NULL. Nothing where the model was
 * named. */
void stk_model_search_emit(const stk_model_search *search, const stk_model_choice *choice,
                           bool on_cpu, const stk_events *events);

#endif
