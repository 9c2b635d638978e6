/*
 * progress.h - what a training says of itself, understood.
 *
 * Lines of progress bars, logs and prints go in; epoch, step, loss, speed, batch and memory come
 * out, by rules in one table (words_rules.c; docs/progress-lines.md lists them for users). A line
 * may match several rules. Pure: no clock, no input. What was not said is NaN or -1.
 */
#ifndef STK_SUPERVISE_OUTPUT_PROGRESS_H
#define STK_SUPERVISE_OUTPUT_PROGRESS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/numbers/typical.h"

/* Moments of the progress that are kept: enough for a rate over the last minute. */
#define STK_WORDS_MOMENTS 128

typedef struct stk_words_moment {
    double at_s;
    double steps; /* that were done since the command began, as far as its words tell */
} stk_words_moment;

typedef struct stk_words {
    double began_s; /* when the command was started */
    int epoch;      /* in work, from 1: the first one is 1 also where the command counts from 0 */
    int epochs;     /* wanted */
    int64_t step;   /* of this epoch, done */
    int64_t steps;  /* of an epoch */
    double loss;    /* the last one said */
    double steps_per_second;  /* as the command says it, the last time */
    double images_per_second; /* the same */
    double gpu_memory_used;   /* bytes, as the command says it, the largest so far */
    double gpu_memory_total;  /* bytes */
    int64_t batch;
    int workers;
    double epoch_began_s; /* when the epoch in work was first heard of */
    stk_typical epochs_s; /* seconds of the last whole epochs */
    double epoch_s;       /* seconds of a typical one of them; NaN: there was none */
    bool zero_based;      /* the command counts epochs from 0 */
    double progress_s;    /* when epoch, step or loss last changed; NaN: never */
    bool out_of_memory;   /* it said so */
    char trouble[200];    /* the line that said it, or the last that looks like an error; "" */
    stk_words_moment moments[STK_WORDS_MOMENTS]; /* a ring */
    size_t moment_count;                         /* all since the progress last began anew */
    bool whole;                                  /* step and steps count through all epochs */
    bool in_images; /* step and steps, and those of moments, count images */
    bool told_late; /* an epoch is told when it is over: the one in work is the next */
    /* For words.c alone. */
    bool epoch_said;
    double done;                      /* steps since the progress last began anew */
    double step_rate_s, image_rate_s; /* when speeds were last said */
    int64_t other_step, other_steps;  /* of a bar that may not be training's */
    uint8_t rule_index[28];           /* see words_rules.h */
} stk_words;

/* A new command begins: nothing is known. */
void stk_words_begin(stk_words *words, double at_s);

/* A line without its end; it may hold any bytes, colours of terminals included. */
void stk_words_hear(stk_words *words, const char *line, size_t length, double at_s);

/*
 * Images per second between two moments: what the command said itself of images, or steps times
 * the batch (that of `batch` where that is over 0, otherwise the one that it said). NaN: cannot be
 * told.
 */
double stk_words_rate(const stk_words *words, int64_t batch, double from_s, double to_s);

/* Steps per second between two moments (images, where it counts those): from the progress, or as
 * the command said it. NaN: cannot be told. */
double stk_words_steps_per_second(const stk_words *words, double from_s, double to_s);

#endif
