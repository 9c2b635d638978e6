/*
 * resume.h - taking up an earlier run: its folder, its options and where it stands.
 */
#ifndef STK_JOB_RESUME_H
#define STK_JOB_RESUME_H

#include "base/map.h"
#include "base/text/csv.h"
#include "base/text/json.h"
#include "events/events.h"
#include "run/run_folder.h"
#include "job/saved_state.h"
#include "options/options.h"

typedef struct stk_resume {
    bool on;               /* there is an earlier run to go on with */
    bool complete;         /* nothing is left to do of it */
    stk_saved_state state; /* as it was saved */
    char *path;            /* owned: the file that it was read from */
    char *damage;          /* owned: what is wrong with a later one; NULL: there is none */
    bool taken_up;         /* its fold is in work, or done */
    stk_json *given;       /* owned: what had been given then */
    stk_str changes; /* per option that is another now: name, value, value of then, each with NUL */
    double used_s;   /* by the processes before */
    stk_csv bad;     /* its bad_images.csv: what the map of bad images points into */
} stk_resume;

/*
 * Opens and locks the run folder of option "resume" and completes the options with those of the
 * run. Nothing is written. Errors are STK_ERR_USAGE for a folder or an option, STK_ERR_DATA for
 * files that are damaged.
 */
STK_CHECKED stk_status stk_resume_open(stk_resume *resume, stk_options *options,
                                       stk_run_folder *folder, stk_error *err);
void stk_resume_free(stk_resume *resume);

/* STK_ERR_DATA with a sentence when the state cannot be of a run with these options. */
STK_CHECKED stk_status stk_resume_check_folds(const stk_resume *resume, int folds, stk_error *err);
STK_CHECKED stk_status stk_resume_check_steps(const stk_resume *resume, int64_t seed,
                                              int64_t steps_per_epoch, stk_error *err);

/* Where the run goes on, and which options are others than before. */
void stk_resume_tell(const stk_resume *resume, const stk_events *events);

/* Bad images that were told before go into the map, so that they are not told again. */
STK_CHECKED stk_status stk_resume_bad_images(stk_resume *resume, const stk_run_folder *folder,
                                             stk_map *told, stk_error *err);

/*
 * Progress of the schedule to go on with from a position that was saved by an earlier process. A
 * plan that leaves more to train than the one before, or a new budget, takes the learning rate back
 * to where it would be with that plan: it would be near zero otherwise. epochs 0: as many as the
 * budget of budget_s allows.
 */
double stk_resume_schedule(const stk_resume *resume, const stk_train_position *at, int epochs,
                           double budget_s);

#endif
