/*
 * voters.h - the models of one or more run folders that predict together.
 *
 * A run has one model or one per fold, and whatever there is of them votes. They may differ in
 * network and picture size, but must know the same classes.
 */
#ifndef STK_JOB_VOTERS_H
#define STK_JOB_VOTERS_H

#include "base/text/json.h"
#include "events/events.h"
#include "job/job_options.h"
#include "weights/checkpoint.h"

typedef struct stk_voter {
    const char *run; /* borrowed: its run folder */
    char *path;      /* owned: its weights */
    stk_checkpoint_info info;
    int *order; /* owned: where each class of the first voter is among its own; NULL: the same */
    double weight;
} stk_voter;

typedef struct stk_voters {
    stk_json *args; /* owned: args.json of the first run */
    stk_voter *items;
    size_t count;
    size_t capacity;
    int wanted;      /* models that there are when every run is trained as it was asked for */
    stk_error error; /* why the first one that cannot be read cannot */
} stk_voters;

/*
 * Looks through the run folders; `voters` is all zero and is freed in any case. What is missing or
 * cannot be read is told as a warning. No model at all is not an error here; when there are some
 * and none can be read, it is.
 */
STK_CHECKED stk_status stk_voters_find(stk_voters *voters, const stk_predict_options *options,
                                       const stk_events *events, stk_error *err);
void stk_voters_free(stk_voters *voters);

/* One that turned out to be damaged: says so, and remembers the reason if it is the first. */
void stk_voters_leave_out(stk_voters *voters, const stk_error *why, const stk_events *events);

/* Brings a voter's probabilities (rows, classes) into the order of the first one's classes. */
STK_CHECKED stk_status stk_voter_arrange(const stk_voter *voter, double *probs, size_t rows,
                                         stk_error *err);

#endif
