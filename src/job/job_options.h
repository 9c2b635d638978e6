/* job_options.h - the options that belong to a whole run rather than to one room. */
#ifndef STK_JOB_JOB_OPTIONS_H
#define STK_JOB_JOB_OPTIONS_H

#include <stdint.h>

#include <stoker/job.h>

#include "engine/backend.h"
#include "options/options.h"

typedef struct stk_job_options {
    const char *model;      /* NULL: auto */
    const char *pretrained; /* NULL: none; see stk_pretrained_wanted */
    int64_t img_size;       /* STK_AUTO_INT */
    double dropout;         /* STK_AUTO_DOUBLE: the model's */
    double drop_path;       /* the same */
    int64_t folds;
    const char *device;     /* NULL: auto */
    uint64_t assume_memory; /* bytes that the device is held to; 0: to what it has */
    int precision;          /* stk_precision */
    bool deterministic;
    bool compile;
    int64_t seed;
    const char *out;    /* NULL: below runs/ */
    const char *name;   /* NULL: "train" */
    const char *resume; /* NULL: a new run */
    double save_every_s;
    bool tune; /* try what verdicts ask for */
} stk_job_options;

/* In the order of the option's choices. */
typedef enum stk_vote { STK_VOTE_EQUAL, STK_VOTE_SCORE } stk_vote;

typedef struct stk_predict_options {
    stk_option_list runs; /* run folders */
    const char *out;      /* file; NULL: in the run folder; of several runs a new one */
    int vote;             /* stk_vote */
    const char *device;
    int precision; /* stk_precision */
    bool deterministic;
} stk_predict_options;

typedef struct stk_lr_options {
    int64_t steps;
} stk_lr_options;

typedef struct stk_detach_options {
    bool detach; /* of the command alone: a call of the library never leaves its process */
} stk_detach_options;

extern const stk_option_table stk_detach_option_table;
extern const stk_option_table stk_lr_option_table;
extern const stk_option_table stk_job_option_table;
extern const stk_option_table stk_predict_option_table;

#endif
