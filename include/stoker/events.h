/*
 * stoker/events.h - what happens during a run, told through callbacks.
 *
 * The library never prints. Whoever wants to know fills a stk_observer: every callback is optional
 * and is called on the thread that runs the job, in the order in which things happen. Everything a
 * callback is handed is borrowed and valid only during the call. The screen, results.csv,
 * events.jsonl and the plots are observers like any other.
 *
 * A number that is not known is NaN, a text that is not known NULL, a count that is not known -1.
 */
#ifndef STOKER_EVENTS_H
#define STOKER_EVENTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <stoker/status.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct stk_event_start {
    const char *chosen;  /* what was chosen and why, one line for people */
    const char *run_dir; /* the run folder */
    const char *data;    /* as given */
    const char *model;
    const char *device;    /* "cpu" */
    const char *precision; /* "fp32" */
    int64_t start_ns;      /* monotonic: what the events' times count from */
    int img_size;          /* px */
    int batch;
    int workers;
    int prefetch; /* batches per worker */
    int classes;
    int folds; /* planned */
    int64_t train_images;
    int64_t val_images;
    int64_t test_images;
    double budget_s; /* NaN without a budget */
} stk_event_start;

/* What is going to be done, re-made when the measured rates say so. */
typedef struct stk_event_plan {
    int fold;
    int epochs; /* of this fold; a last one that time cuts short counts */
    int64_t steps_per_epoch;
    double seconds_per_epoch; /* validation included; NaN before anything was measured */
    double total_s;           /* estimated, from now to the end of this fold's training */
    double left_s;            /* until the deadline; NaN without a budget */
    double reserve_s;         /* kept back for prediction */
} stk_event_plan;

/* One choice that Stoker made by itself. */
typedef struct stk_event_decision {
    const char *what; /* "batch 32" */
    const char *why;  /* "the training set has 480 images" */
} stk_event_decision;

typedef struct stk_event_step {
    int fold;      /* from 0 */
    int epoch;     /* from 1 */
    int epochs;    /* planned */
    int64_t step;  /* steps of this epoch that are done */
    int64_t steps; /* steps of this epoch */
    double loss;   /* mean of this epoch so far */
    double acc1;   /* percent, of this epoch so far */
    double lr;
    double steps_per_second;
    double images_per_second;
    double wait_fraction; /* of this epoch's time, spent waiting for data; 0 to 1 */
    double left_s;        /* estimated seconds to the end of training */
} stk_event_step;

typedef struct stk_event_epoch {
    int fold;
    int epoch; /* from 1 */
    int epochs;
    double train_loss;
    double train_acc1; /* percent */
    double val_loss;
    double val_acc1; /* percent */
    double val_acc5; /* percent */
    double lr;       /* of the last step */
    double images_per_second;
    double wait_fraction;
    double seconds; /* training and validation of this epoch */
    bool best;      /* the best epoch so far by the chosen metric */
} stk_event_epoch;

typedef struct stk_event_checkpoint {
    const char *path;
    bool best; /* always true for now: the last weights are saved without a word */
} stk_event_checkpoint;

typedef struct stk_event_bad_image {
    const char *path;
    const char *split; /* "train", "val" or "test" */
    const char *reason;
} stk_event_bad_image;

typedef struct stk_event_submission {
    const char *path;
    const char *status; /* "prior", "partial" or "complete" */
    int64_t rows;
    int models;        /* that were averaged; 0 for priors */
    int models_wanted; /* that there are when everything asked for is trained; 0: not known */
} stk_event_submission;

/* How far work is that takes long and is no training, told some times a second. */
typedef struct stk_event_progress {
    const char *what;  /* "staging" */
    int64_t done;      /* pictures, with those that were done before */
    int64_t total;     /* pictures */
    int64_t bytes;     /* written by this run */
    double per_second; /* pictures of this run */
    double bytes_per_second;
    double left_s; /* estimated */
} stk_event_progress;

/* One step of a learning-rate test. */
typedef struct stk_lr_point {
    double lr;
    double loss;     /* of the step's own pictures */
    double smoothed; /* mean of the steps so far, the last ones weighing most */
} stk_lr_point;

/* How a run ended; the keys of summary.json. */
typedef struct stk_summary {
    const char *status;      /* "complete", "partial", "prior", "failed" */
    const char *stop_reason; /* "epochs", "patience", "budget", "signal", "error" */
    double best_acc1;        /* percent */
    const char *metric;
    double best_metric;
    int epochs_done;
    int folds_done;
    int folds_planned;
    double oof_acc1;   /* percent, over the out-of-fold predictions; NaN without folds */
    double oof_metric; /* the same by `metric` */
    double images_per_second;
    double wait_fraction;
    double budget_s;
    double used_s;
    double reserve_s;
    int batch;
    int workers;
    int prefetch;
    const char *device;
    const char *precision;
    int64_t bad_images;
    const char *verdict;
    const char *submission; /* path, relative to the run folder when inside it */
} stk_summary;

typedef struct stk_observer {
    void *user;
    void (*start)(void *user, const stk_event_start *event);
    void (*plan)(void *user, const stk_event_plan *event);
    void (*decision)(void *user, const stk_event_decision *event);
    void (*step)(void *user, const stk_event_step *event);
    void (*epoch)(void *user, const stk_event_epoch *event);
    void (*checkpoint)(void *user, const stk_event_checkpoint *event);
    void (*bad_image)(void *user, const stk_event_bad_image *event);
    void (*submission)(void *user, const stk_event_submission *event);
    void (*warning)(void *user, const char *text);
    void (*stop)(void *user, const stk_summary *summary);
    void (*progress)(void *user, const stk_event_progress *event);
} stk_observer;

#ifdef __cplusplus
}
#endif

#endif
