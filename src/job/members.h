/*
 * members.h - the models of one or more run folders that predict together.
 *
 * A run has one model or one per fold, and whatever there is of them votes. They may differ in
 * network and picture size, but must know the same classes.
 */
#ifndef STK_JOB_MEMBERS_H
#define STK_JOB_MEMBERS_H

#include "base/text/json.h"
#include "events/events.h"
#include "job/job_options.h"
#include "weights/checkpoint.h"

typedef struct stk_member {
    const char *run; /* borrowed: its run folder */
    char *path;      /* owned: its weights */
    stk_checkpoint_info info;
    int *order; /* owned: where each class of the first member is among its own; NULL: the same */
    double weight;
} stk_member;

typedef struct stk_members {
    stk_json *args; /* owned: args.json of the first run */
    stk_member *items;
    size_t count;
    size_t capacity;
    int wanted;      /* models that there are when every run is trained as it was asked for */
    stk_error error; /* why the first one that cannot be read cannot */
} stk_members;

/*
 * Looks through the run folders; `members` is all zero and is freed in any case. What is missing or
 * cannot be read is told as a warning. No model at all is not an error here; when there are some
 * and none can be read, it is.
 */
STK_CHECKED stk_status stk_members_find(stk_members *members, const stk_predict_options *options,
                                        const stk_events *events, stk_error *err);
void stk_members_free(stk_members *members);

/* One that turned out to be damaged: says so, and remembers the reason if it is the first. */
void stk_members_leave_out(stk_members *members, const stk_error *why, const stk_events *events);

/* Brings a member's probabilities (rows, classes) into the order of the first one's classes. */
STK_CHECKED stk_status stk_member_arrange(const stk_member *member, double *probs, size_t rows,
                                          stk_error *err);

#endif
