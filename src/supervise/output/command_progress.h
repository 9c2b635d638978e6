/*
 * command_progress.h - the progress of a supervised training, gathered from its output lines.
 *
 * Lines of progress bars, logs and prints go in; epoch, step, loss, speed, batch and memory come
 * out. line_rules.c has the table of rules for one line, docs/progress-lines.md lists it for users;
 * this file follows the training from line to line. Pure: no clock, no input. A figure that was not
 * printed is NaN or -1. Threads: one at a time.
 */
#ifndef STK_SUPERVISE_OUTPUT_COMMAND_PROGRESS_H
#define STK_SUPERVISE_OUTPUT_COMMAND_PROGRESS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/numbers/typical.h"

/* Length of the ring of points: enough for a speed over the last minute. */
#define STK_PROGRESS_POINTS 128

/* How far the training was at one moment. */
typedef struct stk_progress_point {
    double at_s;
    double steps; /* done since the progress last restarted */
} stk_progress_point;

/* Times are seconds since the start of the run. */
typedef struct stk_command_progress {
    double began_s;           /* when the command was started */
    int epoch;                /* running epoch, from 1 even where the command counts from 0 */
    int epochs;               /* planned by the command */
    int64_t step;             /* steps done in this epoch */
    int64_t steps;            /* per epoch */
    double loss;              /* last one printed */
    double steps_per_second;  /* last one printed */
    double images_per_second; /* last one printed */
    double gpu_memory_used;   /* bytes, largest printed so far */
    double gpu_memory_total;  /* bytes */
    int64_t batch;            /* images per step, as printed */
    int workers;              /* loader workers, as printed */
    double epoch_began_s;     /* when the running epoch first appeared */
    stk_typical epochs_s;     /* seconds of the last whole epochs */
    double epoch_s;           /* their typical length; NaN: no whole epoch yet */
    bool zero_based;          /* the command counts epochs from 0 */
    double progress_s;        /* when epoch, step or loss last changed; NaN: never */
    bool out_of_memory;       /* the command printed that a GPU ran out of memory */
    char error_line[200]; /* the line about lack of GPU memory, or the last line that looks like an
                             error; "" */
    stk_progress_point points[STK_PROGRESS_POINTS]; /* ring; the newest is point_count - 1 */
    size_t point_count;                             /* points since the progress last restarted */
    bool steps_span_epochs;                         /* step and steps count through all epochs */
    bool in_images;            /* step, steps and points count images, not steps */
    bool epoch_printed_at_end; /* the command prints an epoch when it is over */
    /* Private to command_progress.c. */
    bool epoch_printed;              /* a line has named the epoch */
    double done;                     /* steps since the progress last restarted */
    double step_rate_s;              /* when steps_per_second was printed */
    double image_rate_s;             /* when images_per_second was printed */
    int64_t other_step, other_steps; /* of a bar that may not be the training's */
    uint8_t rule_index[28];          /* see stk_line_index() */
} stk_command_progress;

/* Starts over for a new command. */
void stk_progress_begin(stk_command_progress *progress, double at_s);

/* Takes in one line without its line end. It may hold any bytes, terminal colours included. */
void stk_progress_read_line(stk_command_progress *progress, const char *line, size_t length,
                            double at_s);

/*
 * Images per second between two moments: as the command printed it, or steps times the batch.
 * `batch` over 0 replaces the printed batch. NaN: unknown.
 */
double stk_progress_image_rate(const stk_command_progress *progress, int64_t batch, double from_s,
                               double to_s);

/* Steps (with in_images: images) per second between two moments: measured, or as the command
 * printed it. NaN: unknown. */
double stk_progress_step_rate(const stk_command_progress *progress, double from_s, double to_s);

#endif
