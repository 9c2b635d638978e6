/* feed.h - the options of a loader that is opened on a folder (stoker/loader.h). */
#ifndef STK_LOADER_FEED_H
#define STK_LOADER_FEED_H

#include "options/options.h"

typedef enum stk_feed_split {
    STK_FEED_ALL, /* every picture with a label; in a folder without classes every picture */
    STK_FEED_TRAIN,
    STK_FEED_VAL,
    STK_FEED_TEST
} stk_feed_split;

typedef struct stk_feed_options {
    int64_t batch;
    int64_t img_size; /* px */
    int split;        /* stk_feed_split */
    bool train;       /* shuffled and augmented */
    int64_t epochs;   /* 0: for ever */
    int64_t seed;
    int64_t rank;
    int64_t world;
} stk_feed_options;

extern const stk_option_table stk_feed_option_table;

#endif
