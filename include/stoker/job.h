/*
 * stoker/job.h - whole runs: train a classifier, predict with it, make a data set or copy one near.
 *
 * The simplest use:
 *
 *     stk_error err = {0};
 *     stk_options *options = NULL;
 *     stk_outcome outcome = {.size = sizeof outcome};
 *     if (stk_options_for_train(&options, &err) == STK_OK &&
 *         stk_options_set(options, "data", "pictures", &err) == STK_OK &&
 *         stk_options_set(options, "budget", "10m", &err) == STK_OK &&
 *         stk_train(options, NULL, &outcome, &err) == STK_OK) {
 *         printf("%s\n", outcome.submission);
 *     }
 *     stk_options_free(options);
 *
 * Structs that a caller allocates and that may grow begin with their size. Set it, as above: a call
 * refuses a struct of another version than its own with STK_ERR_USAGE.
 *
 * Calls run until they are done or asked to stop; two may run at a time in one process, each on a
 * thread of its own. Nothing is printed: give an observer (stoker/events.h) to see what happens.
 */
#ifndef STOKER_JOB_H
#define STOKER_JOB_H

#include <stdbool.h>
#include <stdint.h>

#include <stoker/events.h>
#include <stoker/options.h>
#include <stoker/status.h>
#include <stoker/stop.h>

#ifdef __cplusplus
extern "C" {
#endif

/* What surrounds a run. Every field but the size may be left zero. */
typedef struct stk_run {
    size_t size;                  /* sizeof this struct; set by the caller */
    const stk_observer *observer; /* borrowed; NULL: nobody listens */
    stk_stop *stop;               /* borrowed; NULL: it cannot be stopped */
    int64_t start_ns;             /* CLOCK_MONOTONIC: when the budget began; 0: with the call */
} stk_run;

/* What a run left behind. */
typedef struct stk_outcome {
    size_t size;           /* sizeof this struct; set by the caller */
    char run_dir[1024];    /* the run folder; "" when it was not made */
    char submission[1024]; /* the predictions; "" when there are none */
    char status[16];       /* "complete", "partial", "prior" or "failed" */
    double best_acc1;      /* percent on the validation set; NaN when not known */
    int models;            /* that the predictions are made from */
    int64_t rows;          /* of the predictions */
} stk_outcome;

/* What staging a data set has left behind. */
typedef struct stk_staged {
    size_t size;  /* sizeof this struct; set by the caller */
    bool already; /* all of it was there before */
    int classes;
    int64_t train, val, test; /* pictures in the shards */
    int64_t bad;              /* pictures that could not be used and are left out */
    int64_t shards;
    int64_t bytes; /* of the shards */
    /* Of this call alone: */
    int64_t kept_shards;  /* that an earlier one had finished */
    int64_t pictures;     /* put into shards */
    int64_t recoded;      /* of these, made smaller or of another kind */
    int64_t source_bytes; /* read for them */
    double seconds;
} stk_staged;

/* What a learning-rate test has come to. */
#define STK_LR_MOST_STEPS 1000
typedef struct stk_found_lr {
    size_t size;        /* sizeof this struct; set by the caller */
    char run_dir[1024]; /* with lr.csv, the plot and the options */
    char plot[1024];    /* lr.png or lr.svg in it */
    double lr;          /* suggested, for this batch; NaN: the loss fell at no rate */
    int64_t batch;
    int64_t accumulate; /* batches to an update */
    bool exploded;      /* ended by the loss, not by the highest rate */
    double seconds;
    int count;
    stk_lr_point points[STK_LR_MOST_STEPS]; /* the first `count` of them */
} stk_found_lr;

/* Batches that are measured for one choice, at most. */
#define STK_MOST_MEASURED 16

/* What a training would come to: measured in a few steps, the rest is arithmetic. */
typedef struct stk_estimate {
    size_t size; /* sizeof this struct; set by the caller */
    char device[64];
    char precision[16];
    int64_t batch;
    int64_t accumulate;
    char batch_why[320]; /* why it is this one, in words; "": it is what was given, or the rule's */
    struct {
        int64_t batch;
        double images_per_second;
    } measured[STK_MOST_MEASURED]; /* with pictures in memory, to choose the batch by */
    int measured_count;
    int64_t train_images, val_images, test_images; /* of one fold; of all of them */
    int64_t steps_per_epoch;
    double setup_s; /* from the start to the first step: listing, opening, compiling */
    double step_s;
    double images_per_second;
    double wait_fraction;            /* of the steps that were measured: waiting for pictures */
    double val_s;                    /* one validation */
    double epoch_s;                  /* with its validation */
    double predict_s;                /* the test set with one model */
    int folds_wanted, epochs_wanted; /* epochs 0: as many as the budget allows */
    int epochs_weighed;              /* that total_s has of each fold: the wanted, or as many as
                                        fit, or those that folds were given up for */
    double total_s;                  /* for all that was wanted, set-up and predictions included */
    double budget_s;                 /* NaN: none */
    double reserve_s;                /* kept back for prediction; NaN without a budget */
    int folds, epochs;               /* that there is time for; a part of an epoch counts */
    int64_t steps;                   /* of each fold in these epochs; 0: not even one */
    bool cut;                        /* that is less than was wanted */
    /* Bytes on the device: */
    uint64_t weights, gradients, optimiser, average; /* average: with --ema */
    uint64_t activations, workspace;                 /* of a training step */
    uint64_t inference;                              /* what validation takes beside it */
    uint64_t device_bytes;                           /* all of these */
    uint64_t device_free, device_total;
    /* Bytes on the host: */
    uint64_t batches; /* that are prepared ahead, at most */
    uint64_t reads;   /* pictures that were read and not decoded yet, at most */
    uint64_t cache;   /* of pictures in memory, with --cache ram or decoded; 0: none */
    uint64_t saving;  /* a copy of the state on its way to the disk, at most; 0: none is made */
    int workers;
} stk_estimate;

/* What a change would bring, by arithmetic on what was measured. */
typedef struct stk_what_if {
    char what[64];            /* "staged at 256 px" */
    char flags[96];           /* what applies it; "" where no flag does */
    double images_per_second; /* predicted, of all stages together */
    double epoch_s;           /* the training of an epoch, validation aside */
    double gain;              /* times what is predicted without it */
    const char *narrowest;    /* static: the stage that would limit then */
    const char *basis; /* static: "measured" with the change, stage by stage; or "computed" */
} stk_what_if;

#define STK_MOST_WHAT_IFS 12

/*
 * Each stage of a training measured alone, then all together. Rates are images per second; NaN: not
 * measured, INFINITY: there is no such stage.
 */
typedef struct stk_diagnosis {
    size_t size; /* sizeof this struct; set by the caller */
    char model[64];
    char device[16];
    char about[128]; /* the device in words */
    char precision[16];
    int cores;
    int workers; /* that decoded */
    int64_t batch;
    int64_t measured_batch; /* less than batch where steps of that took too long */
    int img_size;
    int64_t images;                /* that an epoch trains on */
    int64_t pictures;              /* of them, that were read to measure */
    double picture_bytes;          /* mean of a picture as it is stored */
    double picture_px;             /* the same: width times height */
    bool is_remote;                /* every read has a long way */
    bool is_kept;                  /* what was read once is near afterwards: in memory or a cache */
    double storage_cold;           /* read for the first time */
    double storage_warm;           /* read again */
    double cold_bytes, warm_bytes; /* per second */
    double decode;                 /* decoding, scaling and augmenting, by all workers */
    double decode_worker;          /* by each of them */
    double core_share; /* of the cores that decoding had, 0 to 1: less where others use them */
    double loader;     /* the loader, with nobody slowing it */
    double copy;       /* from the host to the device; INFINITY: there is no way between */
    double copy_bytes; /* per second */
    double step;       /* the bare training step, at `batch` */
    double step_ms;
    double fixed_ms;       /* of a step: what does not grow with the batch */
    double predicted;      /* all together, from the above */
    double together;       /* all together, measured: the loader feeds real training steps */
    double wait_fraction;  /* of that: the step waited for pictures */
    const char *narrowest; /* static: "storage", "decoding", "copying" or "training step" */
    double epoch_s;        /* the training of an epoch, by `together` */
    double first_epoch_s;  /* predicted, with pictures read for the first time */
    int what_if_count;
    stk_what_if what_ifs[STK_MOST_WHAT_IFS]; /* the greatest gain first */
    double seconds;                          /* that all of it took */
} stk_diagnosis;

/* Options of each verb at their defaults; freed with stk_options_free. */
STK_API STK_CHECKED stk_status stk_options_for_train(stk_options **options, stk_error *err);
STK_API STK_CHECKED stk_status stk_options_for_predict(stk_options **options, stk_error *err);
STK_API STK_CHECKED stk_status stk_options_for_sample(stk_options **options, stk_error *err);
STK_API STK_CHECKED stk_status stk_options_for_lr(stk_options **options, stk_error *err);
STK_API STK_CHECKED stk_status stk_options_for_plan(stk_options **options, stk_error *err);
STK_API STK_CHECKED stk_status stk_options_for_doctor(stk_options **options, stk_error *err);
STK_API STK_CHECKED stk_status stk_options_for_stage(stk_options **options, stk_error *err);

/*
 * Trains as the options say and writes a run folder. Success means that what was asked for exists:
 * the submission (perhaps from class priors only: see outcome.status) or, for data without test
 * images, trained weights. `run` may be NULL; so may `outcome`.
 */
STK_API STK_CHECKED stk_status stk_train(stk_options *options, const stk_run *run,
                                         stk_outcome *outcome, stk_error *err);

/* Writes predictions from the models of run folders (option "run", set once for each of them). */
STK_API STK_CHECKED stk_status stk_predict(stk_options *options, const stk_run *run,
                                           stk_outcome *outcome, stk_error *err);

/*
 * Trains for a few steps with a learning rate that grows from 1e-7 to 10, as the options say that
 * would be trained, and suggests a rate. A loss that falls at no rate is STK_ERR_DATA; the curve is
 * in `found` then, too. `run` may be NULL.
 */
STK_API STK_CHECKED stk_status stk_find_lr(stk_options *options, const stk_run *run,
                                           stk_found_lr *found, stk_error *err);

/*
 * Trains for a few steps as the options say, without writing anything, and says what all of it
 * would need: time, memory, and what a budget would cut. `run` may be NULL.
 */
STK_API STK_CHECKED stk_status stk_plan_run(stk_options *options, const stk_run *run,
                                            stk_estimate *estimate, stk_error *err);

/*
 * Measures each stage of the training that the options describe, alone and together, within option
 * "seconds", names the narrowest and predicts what changes would bring. Writes nothing but the
 * picture that option "plot" asks for; where that cannot be written the diagnosis is there all the
 * same (its `seconds` are above 0). `run` may be NULL.
 */
STK_API STK_CHECKED stk_status stk_doctor(stk_options *options, const stk_run *run,
                                          stk_diagnosis *diagnosis, stk_error *err);

/* Makes a data set of drawn pictures in the folder `dir`. */
STK_API STK_CHECKED stk_status stk_make_sample(const char *dir, stk_options *options,
                                               const stk_run *run, stk_error *err);

/*
 * Copies the data set of option "data", or the part of it that the options choose, into the folder
 * `dir` as tar shards. What an earlier call with the same options has finished there is kept. `run`
 * may be NULL; so may `staged`.
 */
STK_API STK_CHECKED stk_status stk_stage(const char *dir, stk_options *options, const stk_run *run,
                                         stk_staged *staged, stk_error *err);

#ifdef __cplusplus
}
#endif

#endif
