/* forecast.h - how long a training will take by its own words, and what fits. Pure. */
#ifndef STK_SUPERVISE_OUTPUT_FORECAST_H
#define STK_SUPERVISE_OUTPUT_FORECAST_H

#include <stdbool.h>
#include <stddef.h>

#include "supervise/output/progress.h"

typedef struct stk_forecast {
    double epoch_s; /* seconds of an epoch */
    double total_s; /* of all epochs from the command's start; NaN: it did not say how many */
    double left_s;  /* from now on, of the same */
    int epochs;     /* wanted; -1: not known */
    int fitting;    /* whole epochs that end in time; -1: all, or no limit */
    double time_s;  /* from the command's start until it is stopped; 0: not known */
} stk_forecast;

/* False: too little was said yet. end_s is when training will be stopped; INFINITY: never. */
bool stk_forecast_make(const stk_words *words, double now_s, double end_s, stk_forecast *estimate);

/*
 * One line for people into text: "30 epochs need 75 min, budget 11 min: stopping in epoch 4;
 * consider --epochs 3", or what there is to say where all fits. The number is one that ends in
 * time. budget_s NaN: there is none.
 */
void stk_forecast_say(const stk_forecast *estimate, double budget_s, char *text, size_t room);

#endif
