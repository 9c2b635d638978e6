/*
 * forecast.h - estimates from the progress how long a training takes and how many epochs fit.
 *
 * Pure. Threads: safe.
 */
#ifndef STK_SUPERVISE_DECIDE_FORECAST_H
#define STK_SUPERVISE_DECIDE_FORECAST_H

#include <stdbool.h>
#include <stddef.h>

#include "supervise/output/command_progress.h"

typedef struct stk_forecast {
    double epoch_s; /* seconds per epoch */
    double total_s; /* seconds of the whole training; NaN: the number of epochs is unknown */
    double left_s;  /* seconds of the training from now on; NaN: as total_s */
    int epochs;     /* planned by the command; -1: unknown */
    int fitting;    /* whole epochs that end in time; -1: all, or no limit */
    double time_s;  /* from the start of the command until it is stopped; 0: unknown */
} stk_forecast;

/* False: too little is known yet. Training will be stopped at end_s; INFINITY: never. */
bool stk_forecast_make(const stk_command_progress *progress, double now_s, double end_s,
                       stk_forecast *estimate);

/*
 * Writes one line for people: "30 epochs need 75 min, budget 11 min: stopping in epoch 4; consider
 * --epochs 3", or "3 epochs need 7.5 min of 11 min". budget_s NaN: no budget.
 */
void stk_forecast_say(const stk_forecast *estimate, double budget_s, char *text, size_t room);

#endif
