/*
 * job_options.h - the options that belong to a whole run rather than to one room, and the list of
 * option tables of each verb (job_options.c).
 */
#ifndef STK_JOB_RECIPE_JOB_OPTIONS_H
#define STK_JOB_RECIPE_JOB_OPTIONS_H

#include <stdint.h>

#include <stoker/job.h>

#include "engine/backend.h"
#include "options/options.h"

/* The most folds that --folds or a column of folds may ask for. */
#define STK_MOST_FOLDS 100

/* The most models that --refit may ask for. */
#define STK_MOST_REFITS 20

typedef struct stk_job_options {
    const char *model;      /* NULL: auto */
    const char *pretrained; /* NULL: none; see stk_pretrained_wanted */
    int64_t img_size;       /* px; STK_AUTO_INT: the model's */
    int64_t eval_size;      /* px; STK_AUTO_INT: see stk_recipe.eval_size */
    int64_t early_size;     /* px; STK_AUTO_INT: see stk_recipe.early_size */
    double dropout;         /* STK_AUTO_DOUBLE: the model's */
    double drop_path;       /* STK_AUTO_DOUBLE: the model's */
    int recipe;             /* 0: auto; see STK_RECIPE_CHOICES */
    int64_t folds;          /* STK_AUTO_INT */
    int64_t refit;          /* STK_AUTO_INT */
    const char *device;     /* NULL: auto */
    uint64_t assume_memory; /* bytes of device memory to plan with; 0: what the device has */
    int precision;          /* stk_precision */
    bool deterministic;
    bool compile;
    int64_t seed;
    const char *out;     /* NULL: below runs/ */
    const char *name;    /* NULL: "train" */
    const char *resume;  /* NULL: a new run */
    double save_every_s; /* seconds between two saved states within an epoch */
    bool tune;           /* try what verdicts advise */
} stk_job_options;

/* Weights of the members of an ensemble; in the order of the choices of --vote. */
typedef enum stk_vote { STK_VOTE_EQUAL, STK_VOTE_SCORE } stk_vote;

typedef struct stk_predict_options {
    stk_option_list runs; /* run folders */
    const char *out;      /* file; NULL: in the run folder, or a new file for several runs */
    int vote;             /* stk_vote */
    const char *device;
    int precision; /* stk_precision */
    int decode;    /* stk_decode */
    bool deterministic;
} stk_predict_options;

typedef struct stk_lr_options {
    int64_t steps;
} stk_lr_options;

typedef struct stk_detach_options {
    bool detach; /* for the command line only: the library never leaves its process */
} stk_detach_options;

extern const stk_option_table stk_detach_option_table;
extern const stk_option_table stk_lr_option_table;
extern const stk_option_table stk_job_option_table;
extern const stk_option_table stk_predict_option_table;

#endif
