/*
 * stoker/events.h - what happens during a run, reported through callbacks.
 *
 * The library never prints. A caller that wants to know what happens fills in a stk_observer. Every
 * callback is optional and is called on the thread that called the library, in the order of events.
 * The arguments of a callback are borrowed and valid only during the call. The command's own
 * screen, its JSON lines and the writer of the run folder's files are observers like any other.
 * Events may get new fields at their end.
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

/* The first event of a run. It comes again, before the first step, where a budget has chosen
 * another model than the one that was timed. */
typedef struct stk_event_start {
    const char *chosen;  /* what Stoker chose by itself and why, one line for people */
    const char *run_dir; /* the run folder */
    const char *data;    /* as given */
    const char *model;
    const char *device;    /* "cpu" */
    const char *precision; /* "fp32" */
    int64_t start_ns;      /* CLOCK_MONOTONIC: the times of events count from here */
    int img_size;          /* px */
    int batch;
    int workers;
    int prefetch; /* batches per worker */
    int classes;
    int folds;               /* models that are validated, as planned; see stk_event_plan */
    int cores;               /* cores that this process may use */
    int64_t memory_bytes;    /* of the machine or its container */
    const char *device_name; /* "NVIDIA H200"; NULL: the CPU */
    int64_t device_bytes;    /* memory of the device; -1: the CPU */
    int64_t train_images;
    int64_t val_images;
    int64_t test_images;
    double budget_s;    /* of the whole run, earlier processes included; NaN without a budget */
    int refits;         /* models after the folds that are trained on all pictures, as planned */
    const char *metric; /* what picks the best weights; NULL: not known */
    const char *task;   /* what is learned: "single", "multilabel" and so on; NULL: not known */
} stk_event_start;

/* The plan of one fold. A new plan follows when measured speed changes it. */
typedef struct stk_event_plan {
    int fold;
    int epochs; /* of this fold; a last epoch that is cut short counts */
    int64_t steps_per_epoch;
    double seconds_per_epoch; /* validation included; NaN before anything was measured */
    double total_s;           /* estimated, from now to the end of this fold's training */
    double left_s;            /* until the deadline; NaN without a budget */
    double reserve_s;         /* kept back for prediction */
    /* The run trains folds + refits models. `fold` of events counts them through: a number from
     * `folds` on is a refit, a model that is trained on all pictures and not validated. */
    int folds;
    int refits;
} stk_event_plan;

/* One choice that Stoker made by itself. */
typedef struct stk_event_decision {
    const char *what; /* "batch 32" */
    const char *why;  /* "the training set has 480 images" */
} stk_event_decision;

/* Where the wall time of training went, in seconds; the parts add up to total_s. */
typedef struct stk_times {
    double read_s;       /* waiting for storage: pictures were not read yet */
    double decode_s;     /* waiting for decoding */
    double queue_s;      /* waiting for the hand-over of decoded pictures */
    double copy_s;       /* waiting for the copy to the device */
    double compute_s;    /* forward and backward */
    double update_s;     /* the optimiser */
    double validate_s;   /* validation, and an early prediction of the test set */
    double checkpoint_s; /* saving weights, copying the state, waiting for its writer */
    double other_s;      /* all else: launching kernels, compiling, observers */
    double total_s;
} stk_times;

typedef struct stk_event_step {
    int fold;           /* from 0 */
    int epoch;          /* from 1 */
    int epochs;         /* planned */
    int64_t step;       /* steps of this epoch that were handed to the device; of a supervised
                           command: those that it has printed */
    int64_t steps;      /* steps of this epoch. A supervised command may count images instead */
    int64_t steps_done; /* steps of this fold that were handed to the device, of all epochs */
    double loss;        /* mean over the steps of this epoch whose results have come; on a GPU the
                           last few are missing. Of a supervised command: the last printed */
    double acc1;        /* percent, over the same steps */
    double lr;
    double steps_per_second;
    double images_per_second;
    double wait_fraction; /* share of this epoch's time that was spent waiting for data, 0 to 1 */
    double left_s;        /* estimated seconds to the end of training */
    stk_times times;      /* of this epoch so far */
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
    double seconds;    /* training and validation of this epoch */
    bool best;         /* the best epoch of its fold so far, by the chosen metric */
    stk_times times;   /* of this epoch; its checkpoint counts for the next epoch */
    double val_metric; /* the chosen metric, in its unit; NaN where it is not defined */
} stk_event_epoch;

/* The first batch of a fold, as training sees it. */
typedef struct stk_event_batch {
    int fold;
    const uint8_t *images; /* (count, size, size, channels); three are RGB */
    const int *labels;     /* (count) */
    size_t count;
    int size;     /* px */
    int channels; /* 0: 3 */
} stk_event_batch;

/*
 * What the machine did in about the second that ended at at_s. Shares are percent. Without a GPU,
 * or where the GPU cannot be asked, its numbers are NaN.
 */
typedef struct stk_event_sample {
    double at_s;             /* since the start of the run */
    double gpu_util;         /* share of time in which some kernel ran */
    double sm_activity;      /* share of the multiprocessors' time with a warp on them */
    double gpu_memory_used;  /* bytes, by all processes */
    double gpu_memory_total; /* bytes */
    double gpu_memory_own;   /* bytes, by the processes of the run */
    double gpu_power_w;
    double gpu_temperature_c;
    double gpu_clock_mhz;      /* of the multiprocessors, now */
    double gpu_clock_most_mhz; /* the highest clock of the GPU */
    const char *gpu_throttled; /* what holds the clock down, such as "power, heat"; "": nothing */
    double pcie_in;            /* bytes per second to the GPU */
    double pcie_out;
    double cpu; /* load of the cores that this process may use, by all processes */
    /* Load of the cores that this process may use, by this process and its children. */
    double cpu_own;
    double iowait;
    int core_count;     /* entries of `cores`; 0: not known */
    const float *cores; /* load of each core, by all processes */
    double resident;    /* bytes of this process */
    double memory_used; /* bytes, of the machine or its container */
    double disk_read;   /* bytes per second, of the machine's disks */
    double disk_written;
    double net_in; /* bytes per second, loopback left out */
    double net_out;
    double images_per_second; /* of training; NaN while nothing is trained */
    double wait_fraction;     /* share of the second that training waited for data, 0 to 1 */
    int batches_ready;        /* complete batches in the loader's ring; -1: not known */
    int slots;                /* batches that fit into the ring; -1: not known */
    int workers;              /* decode workers; -1: not known */
    double jpeg_util;         /* share of time in which the GPU's JPEG engines were busy */
} stk_event_sample;

#define STK_MOST_REMEDIES 6

/* One change that would make a run faster. */
typedef struct stk_remedy {
    const char *text;  /* "stage at 256 px" */
    const char *flags; /* how to apply it: "stoker stage ... --size 256"; never NULL */
    double gain;       /* predicted images/s divided by the present ones; NaN: not known */
} stk_remedy;

/* Why a run is as fast as it is. */
typedef struct stk_event_verdict {
    const char *name;     /* such as "decode-bound": a row of the table in docs/verdicts.md */
    const char *text;     /* the whole verdict in one line, for people */
    const char *evidence; /* the numbers behind it */
    bool fine;            /* nothing needs to be done */
    bool first;           /* the quick look soon after the first steps */
    const char *batch;    /* of the quick look: a sentence on the batch size, or NULL */
    double images_per_second;
    double wait_fraction;
    double gpu_util;         /* percent; NaN: not known */
    double gpu_memory_used;  /* bytes */
    double gpu_memory_total; /* bytes */
    int remedy_count;
    stk_remedy remedies[STK_MOST_REMEDIES]; /* the greatest gain first */
    double device_decoded; /* share of the pictures that the GPU decoded, 0 to 1; NaN: not known */
    double jpeg_util;      /* percent, mean: the GPU's JPEG engines; NaN: not known */
} stk_event_verdict;

/* A supervised command was started, or has ended. */
typedef struct stk_event_attempt {
    int number;          /* from 1, counted for each part */
    const char *part;    /* "train" or "predict" */
    const char *command; /* as one would type it */
    bool ended; /* false: the command was started; of the fields below only batch and workers are
                   known */
    int64_t batch;
    int workers;
    double images_per_second;
    double seconds;          /* from its start to its end */
    double gpu_util;         /* percent, mean since its work began */
    double gpu_memory_used;  /* bytes of its own processes, mean since its work began */
    double gpu_memory_total; /* bytes */
    const char *verdict;     /* such as "launch-bound"; NULL: none */
    const char *stop_reason; /* "done", "crash", "memory", "batch", "workers", "hang", "budget",
                                "signal": why it ended or was ended */
    int exit_code;           /* -1: a signal has ended it */
    int signal;              /* 0: none */
    bool kept;               /* a trial whose setting was better and stays */
} stk_event_attempt;

typedef struct stk_event_checkpoint {
    const char *path;
    bool best; /* always true for now: saving the last weights has no event */
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
    int models;        /* members of the ensemble; 0: class priors */
    int models_wanted; /* members once everything asked for is trained; 0: not known */
    int epoch; /* of an early prediction: the epoch whose weights made it; 0: the model was trained
                */
} stk_event_submission;

/* Progress of long work that is no training, some times a second. */
typedef struct stk_event_progress {
    const char *what;  /* "staging" */
    int64_t done;      /* pictures, those of earlier calls included */
    int64_t total;     /* pictures */
    int64_t bytes;     /* written by this run */
    double per_second; /* pictures, of this run */
    double bytes_per_second;
    double left_s; /* estimated */
} stk_event_progress;

/* One step of a learning-rate test. */
typedef struct stk_lr_point {
    double lr;
    double loss;     /* of the step's own pictures */
    double smoothed; /* exponential mean of the losses so far */
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
    double oof_acc1;   /* accuracy of the out-of-fold predictions, percent; NaN without folds */
    double oof_metric; /* `metric` of the out-of-fold predictions; NaN without folds */
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
    /* The fields below are of a supervised command; NULL and 0 for a training of Stoker. */
    const char *command; /* as one would type it */
    const stk_event_attempt *attempts;
    int attempt_count;
    const char
        *estimate; /* how long the whole command would have taken, in words; NULL: not known */
    int exit_code; /* exit code of the run; -1: not known */
    /* Of a training: `metric` on pictures that the judged models were not trained on, out of fold
     * or of the validation. */
    double held_out;           /* NaN where nothing was held out */
    const char *held_out_from; /* where that figure comes from, in words; NULL: there is none */
    /* Of a training: logits were divided by it before the softmax; with several models the
     * geometric mean. NaN where none was fitted. */
    double temperature;
    const char *task; /* what a training has learned, as in stk_event_start; NULL: not known */
    const char
        *pool; /* of a training: "mean" or "max" of the pictures of a row; NULL: a row has one */
} stk_summary;

typedef struct stk_observer {
    size_t size; /* sizeof this struct; set by the caller */
    void *user;  /* the first argument of every callback */
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
    void (*batch)(void *user, const stk_event_batch *event);
    void (*sample)(void *user, const stk_event_sample *event);
    void (*verdict)(void *user, const stk_event_verdict *event);
    void (*attempt)(void *user, const stk_event_attempt *event);
} stk_observer;

#ifdef __cplusplus
}
#endif

#endif
