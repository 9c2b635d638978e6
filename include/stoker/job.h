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
    const stk_observer *observer; /* borrowed; NULL: no events are emitted */
    stk_stop *stop;               /* borrowed; NULL: the run cannot be stopped */
    int64_t start_ns;             /* CLOCK_MONOTONIC: when the budget began; 0: with the call */
} stk_run;

/* The result of a run. */
typedef struct stk_outcome {
    size_t size;           /* sizeof this struct; set by the caller */
    char run_dir[1024];    /* the run folder; "" when it was not made */
    char submission[1024]; /* the file of predictions; "" when there is none */
    char status[16];       /* "complete", "partial", "prior" or "failed" */
    double best_acc1;      /* percent on the validation set; NaN when not known */
    int models;            /* members of the ensemble that predicted */
    int64_t rows;          /* of the submission */
} stk_outcome;

/* The result of staging a data set. */
typedef struct stk_staged {
    size_t size;  /* sizeof this struct; set by the caller */
    bool already; /* an earlier call had finished everything */
    int classes;
    int64_t train, val, test; /* pictures in the shards */
    int64_t bad;              /* unusable pictures, which were left out */
    int64_t shards;
    int64_t bytes; /* of the shards */
    /* What this call did: */
    int64_t kept_shards;  /* shards that an earlier call had finished */
    int64_t pictures;     /* put into shards */
    int64_t recoded;      /* pictures that were scaled or encoded anew */
    int64_t source_bytes; /* read from the data set */
    double seconds;
} stk_staged;

/* The result of a learning-rate test. */
#define STK_LR_MOST_STEPS 1000
typedef struct stk_found_lr {
    size_t size;        /* sizeof this struct; set by the caller */
    char run_dir[1024]; /* with lr.csv, the plot and the options */
    char plot[1024];    /* lr.png or lr.svg in run_dir */
    double lr;          /* suggested for this batch size; NaN: the loss fell at no rate */
    int64_t batch;
    int64_t accumulate; /* batches to an update */
    bool exploded;      /* the loss exploded before the highest rate was reached */
    double seconds;
    int count;
    stk_lr_point points[STK_LR_MOST_STEPS]; /* only the first `count` are set */
} stk_found_lr;

/* The most batch sizes that stk_plan_run() measures. */
#define STK_MOST_MEASURED 16

/* What a training would need: stk_plan_run() measures a few steps and computes the rest. */
typedef struct stk_estimate {
    size_t size; /* sizeof this struct; set by the caller */
    char device[64];
    char precision[16];
    int64_t batch;
    int64_t accumulate;
    /* Why this batch size, in words; "": it was given and fits, or is a CPU's by the rule. */
    char batch_why[320];
    struct {
        int64_t batch;
        double images_per_second;
    } measured[STK_MOST_MEASURED]; /* with pictures in memory, to choose the batch size */
    int measured_count;
    int64_t train_images, val_images, test_images; /* train and val: of one fold */
    int64_t steps_per_epoch;
    double setup_s; /* from the start to the first step: listing, opening, compiling */
    double step_s;
    double images_per_second;
    double wait_fraction;            /* share of the measured steps spent waiting for pictures */
    double val_s;                    /* one validation */
    double epoch_s;                  /* with its validation */
    double predict_s;                /* the test set with one model */
    int folds_wanted, epochs_wanted; /* epochs 0: as many as the budget allows */
    int epochs_weighed; /* epochs of each fold in total_s: the wanted ones; without a wish, those
                           that fit, or, if folds were given up, the number that did not fit */
    double total_s;     /* for everything wanted, with set-up and predictions; a last epoch that is
                           cut, and epochs of the head alone, count as what they take */
    double budget_s;    /* NaN: none */
    double reserve_s;   /* kept back for prediction; NaN without a budget */
    int folds, epochs;  /* what fits the budget; a part of an epoch counts */
    int64_t steps;      /* steps of each fold in `epochs`; 0: none fits */
    bool cut;           /* less fits than was wanted */
    /* Bytes on the device: */
    uint64_t weights, gradients, optimiser, average; /* average: with --ema */
    uint64_t activations, workspace; /* of a training step; activations: all that the executable
                                        takes beside its workspace */
    uint64_t inference;              /* what validation needs in addition */
    uint64_t decoder;                /* of pictures, on the device; 0: there is none */
    uint64_t device_bytes;           /* the sum of the above */
    uint64_t device_free, device_total;
    /* Bytes on the host: */
    uint64_t batches; /* batches that are prepared ahead, at most */
    uint64_t reads;   /* pictures that are read and not decoded yet, at most */
    uint64_t cache;   /* pictures in memory, with --cache ram or decoded; 0: none */
    uint64_t saving;  /* the copy of the state that is being written; 0: none is made */
    int workers;
    int refits; /* of folds_wanted: trained on all pictures, after the validated models */
    /* What is learned, and what is written into each row of the submission: */
    char task[16];              /* "single", "multilabel" and so on */
    char metric[24];            /* what picks the best weights */
    char submission_takes[200]; /* in words; "": there are no test pictures */
    char reason[320];           /* why this task and this submission; "": nothing was chosen */
    /* The form of the submission: */
    int64_t submission_rows;     /* 0: none is written */
    int submission_columns;      /* of the file */
    char submission_header[300]; /* "id,label"; or "id, 120 columns from A to B" */
    char submission_like[128];   /* the sample that it follows; "": there is none */
} stk_estimate;

/* The predicted effect of one change. */
typedef struct stk_what_if {
    char what[64];            /* "staged at 256 px" */
    char flags[96];           /* how to apply it; "" where no flag does */
    double images_per_second; /* predicted, of all stages together */
    double epoch_s;           /* the training of an epoch, validation aside */
    double gain;              /* factor over the prediction without the change */
    const char *narrowest;    /* static: the stage that would limit then */
    const char *basis; /* static: "measured", stage by stage with the change; or "computed" */
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
    int64_t measured_batch; /* smaller than `batch` where steps of `batch` took too long */
    int img_size;
    int64_t images;                /* of an epoch of training */
    int64_t pictures;              /* pictures that were read for measuring */
    double picture_bytes;          /* mean size of a stored picture */
    double picture_px;             /* its mean width times height */
    bool is_remote;                /* reads go over a network */
    bool is_kept;                  /* later reads come from memory or a cache */
    double storage_cold;           /* read for the first time */
    double storage_warm;           /* read again */
    double cold_bytes, warm_bytes; /* per second */
    double decode;                 /* decoding, scaling and augmenting, by all workers */
    double decode_worker;          /* decoding, scaling and augmenting, by one worker */
    double core_share; /* share of the cores that decoding got, 0 to 1: below 1 others use them */
    double loader;     /* the whole loader, with a consumer that takes no time */
    double copy;       /* from the host to the device; INFINITY: they share memory */
    double copy_bytes; /* per second */
    double step;       /* the bare training step, at `batch` */
    double step_ms;
    double fixed_ms;       /* part of a step that does not grow with the batch */
    double predicted;      /* all stages together, from the rates above */
    double together;       /* all stages together, measured: the loader feeds real training steps */
    double wait_fraction;  /* share of `together` in which the step waited for pictures */
    const char *narrowest; /* static: "storage", "decoding", "copying" or "training step" */
    double epoch_s;        /* the training of an epoch, by `together` */
    double first_epoch_s;  /* predicted, with pictures read for the first time */
    int what_if_count;
    stk_what_if what_ifs[STK_MOST_WHAT_IFS]; /* the greatest gain first */
    double seconds;                          /* how long the diagnosis took */
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

/* Writes predictions from the models of run folders (option "run", set once for each folder). */
STK_API STK_CHECKED stk_status stk_predict(stk_options *options, const stk_run *run,
                                           stk_outcome *outcome, stk_error *err);

/*
 * Trains as the options say, but only for a few steps and with a learning rate that grows from 1e-7
 * to 10, and suggests a rate. A loss that falls at no rate is STK_ERR_DATA; `found` has the curve
 * then, too. `run` may be NULL.
 */
STK_API STK_CHECKED stk_status stk_find_lr(stk_options *options, const stk_run *run,
                                           stk_found_lr *found, stk_error *err);

/*
 * Trains for a few steps as the options say, without writing anything, and says what the whole
 * training would need: time, memory, and what a budget would cut. `run` may be NULL.
 */
STK_API STK_CHECKED stk_status stk_plan_run(stk_options *options, const stk_run *run,
                                            stk_estimate *estimate, stk_error *err);

/*
 * Measures each stage of the training that the options describe, alone and together, within option
 * "seconds", names the narrowest and predicts what changes would bring. Writes nothing but the
 * picture that option "plot" asks for. If that picture cannot be written, the call fails, but the
 * diagnosis is complete (its `seconds` are above 0). `run` may be NULL.
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
