/*
 * staging_list.h - which picture goes into which shard. Decided before anything is written, from
 * the data set and the flags alone, so that an interrupted staging continues as it began.
 */
#ifndef STK_STAGE_STAGING_LIST_H
#define STK_STAGE_STAGING_LIST_H

#include "dataset/dataset.h"
#include "stage/stage.h"

typedef enum stk_stage_split { STK_STAGE_TRAIN, STK_STAGE_VAL, STK_STAGE_TEST } stk_stage_split;
#define STK_STAGE_SPLITS 3

extern const char *const stk_stage_split_names[STK_STAGE_SPLITS];

/* Digits of the number in the name of a member, and of a shard. */
#define STK_STAGE_MEMBER_DIGITS 9
#define STK_STAGE_SHARD_DIGITS 6

typedef struct stk_stage_shard {
    stk_stage_split split;
    size_t number; /* among the shards of its split */
    size_t first;  /* index in the list's pictures */
    size_t count;  /* number of pictures */
} stk_stage_shard;

/* A picture of the list. `number` counts the pictures of its split and names its member. */
typedef struct stk_stage_picture {
    const stk_sample *sample;
    stk_stage_split split;
    size_t number;
} stk_stage_picture;

typedef struct stk_staging_list {
    const stk_dataset *dataset;  /* borrowed */
    stk_stage_picture *pictures; /* owned: split by split; samples without a file are left out */
    size_t picture_count;
    stk_stage_shard *shards; /* owned; none is empty */
    size_t shard_count;
    char *source;      /* owned: absolute name of the location */
    char checksum[20]; /* text; of everything that decides what is written */
} stk_staging_list;

STK_CHECKED stk_status stk_staging_list_make(stk_staging_list *list, const stk_dataset *dataset,
                                             const stk_stage_options *options, stk_error *err);
void stk_staging_list_free(stk_staging_list *list);

/* The sample's value in the column that divides the training samples; "" without such a column. */
const char *stk_stage_part(const stk_dataset *dataset, const stk_sample *sample);

/* All samples of a split, with or without a file. */
const stk_sample_list *stk_stage_samples(const stk_dataset *dataset, stk_stage_split split);

/* Writes "train-000000.tar" into buf; returns buf. */
#define STK_STAGE_NAME_SIZE 40
const char *stk_stage_shard_name(const stk_stage_shard *shard, char buf[STK_STAGE_NAME_SIZE]);

#endif
