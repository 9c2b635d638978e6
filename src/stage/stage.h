/*
 * stage.h - copies a data set near: a subset of it, perhaps with smaller pictures, as tar shards.
 *
 * The shards are written one after the other, each under a hidden name until it is whole, with a
 * record beside it that says what is in it. So a staging that ends at any moment, by a signal, a
 * full disk or a power cut, goes on where it was when it is started again with the same flags.
 * docs/staging.md describes what is written.
 */
#ifndef STK_STAGE_STAGE_H
#define STK_STAGE_STAGE_H

#include <stoker/job.h>

#include "dataset/dataset.h"

typedef struct stk_stage_options {
    int64_t max_side;   /* px; 0: any */
    int64_t quality;    /* 0: pictures are copied, or with max_side made with 90 where needed */
    int64_t shard_size; /* pictures */
    int64_t workers;    /* STK_AUTO_INT: as many as cores */
    double max_bad;     /* percent; STK_AUTO_DOUBLE */
    bool overwrite;     /* replace another staging */
} stk_stage_options;

extern const stk_option_table stk_stage_option_table;

typedef struct stk_stage_request {
    const char *dir;                    /* the folder to fill */
    const stk_stage_options *options;   /* all borrowed */
    const stk_dataset_options *data;    /* what to copy, and which part of it */
    const stk_storage_options *storage; /* how to read it */
    const stk_events *events;           /* may be NULL */
    const stk_stop *stop;               /* may be NULL */
} stk_stage_request;

/*
 * Stages. Other flags or another source than those of what `dir` holds are STK_ERR_USAGE, too many
 * bad pictures STK_ERR_DATA, no space STK_ERR_STORAGE; in all these cases and when stopped, what is
 * finished stays.
 */
STK_CHECKED stk_status stk_stage_run(const stk_stage_request *request, stk_staged *staged,
                                     stk_error *err);

#endif
