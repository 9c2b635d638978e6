/*
 * stage.h - copies a data set near: a subset of it, perhaps with smaller pictures, as tar shards.
 *
 * Shards are written one after another, each under a hidden name until it is complete, with a
 * record of its contents beside it. So a staging that a signal, a full disk or a power cut has
 * interrupted continues when it is started again with the same flags. docs/staging.md describes the
 * files.
 */
#ifndef STK_STAGE_STAGE_H
#define STK_STAGE_STAGE_H

#include <stoker/job.h>

#include "dataset/dataset.h"

typedef struct stk_stage_options {
    int64_t max_side; /* px of the longer side; 0: no limit */
    int64_t quality;  /* 0: pictures are copied, but with max_side larger ones and those that are no
                         JPEG become JPEGs of quality 90 */
    int64_t shard_size; /* pictures per shard */
    int64_t workers;    /* STK_AUTO_INT: one per core */
    double max_bad;     /* percent of bad pictures allowed; STK_AUTO_DOUBLE */
    bool overwrite;     /* replaces another staging */
} stk_stage_options;

extern const stk_option_table stk_stage_option_table;

typedef struct stk_stage_request {
    const char *dir; /* the folder to fill; this and all below are borrowed */
    const stk_stage_options *options;
    const stk_dataset_options *data;    /* what to copy, and which part of it */
    const stk_storage_options *storage; /* how to read it */
    const stk_events *events;           /* may be NULL */
    const stk_stop *stop;               /* may be NULL */
} stk_stage_request;

/*
 * Stages the data set. STK_ERR_USAGE: `dir` holds a staging with other flags or of another source;
 * STK_ERR_DATA: too many bad pictures; STK_ERR_STORAGE: no space. After all these errors and a
 * request to stop, finished shards stay.
 */
STK_CHECKED stk_status stk_stage_run(const stk_stage_request *request, stk_staged *staged,
                                     stk_error *err);

#endif
