/*
 * members.h - the models of one or more run folders that form one ensemble.
 *
 * A run has one model, or one per fold; all that exist are members. They may differ in network and
 * picture size, but must have the same classes. Threads: the caller's.
 */
#ifndef STK_JOB_MEMBERS_H
#define STK_JOB_MEMBERS_H

#include "events/events.h"
#include "job/recipe/job_options.h"
#include "predict/predictions.h"
#include "weights/checkpoint.h"

typedef struct stk_member {
    const char *run;          /* borrowed: its run folder */
    char *path;               /* owned: its weights */
    stk_checkpoint_info info; /* owned */
    int *order; /* owned: where each class of the first member is in this one; NULL: same order */
    double weight; /* in the average, above 0 */
    int views;     /* of each picture that its run predicted in */
} stk_member;

typedef struct stk_members {
    stk_options *options; /* owned: the first run's options of its data set and of the run */
    stk_member *items;
    size_t count;
    size_t capacity;
    int wanted;      /* models that the runs would have if all their folds were trained */
    stk_error error; /* of the first model that cannot be used */
} stk_members;

/*
 * Looks for models in the run folders. `members` is zero-initialised, and freed by the caller in
 * any case. Missing and unreadable models are warnings. Finding no model is no error; finding only
 * models that cannot be read is one.
 */
STK_CHECKED stk_status stk_members_find(stk_members *members, const stk_predict_options *options,
                                        const stk_events *events, stk_error *err);
void stk_members_free(stk_members *members);

/* Warns of a model that cannot be used, and stores the reason of the first one. */
void stk_members_leave_out(stk_members *members, const stk_error *why, const stk_events *events);

/* Puts a member's probabilities (rows, classes) into the class order of the first member. */
STK_CHECKED stk_status stk_member_arrange(const stk_member *member, stk_predictions *probs,
                                          stk_error *err);

#endif
