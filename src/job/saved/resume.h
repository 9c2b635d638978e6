/*
 * resume.h - an earlier run that is resumed: its folder, its options, where it stands.
 *
 * stk_resume_open() reads everything before anything is written, so that a run that cannot be
 * resumed stays untouched. Threads: the job's.
 */
#ifndef STK_JOB_SAVED_RESUME_H
#define STK_JOB_SAVED_RESUME_H

#include "base/map.h"
#include "base/text/csv.h"
#include "base/text/json.h"
#include "events/events.h"
#include "job/saved/saved_state.h"
#include "options/options.h"
#include "run/run_folder.h"

typedef struct stk_resume {
    bool on;               /* a run is resumed; false: all else is empty */
    bool complete;         /* the run has nothing left to do */
    stk_saved_state state; /* owned: the numbers of the saved state */
    char *path;            /* owned: the file of the saved state */
    char *damage;          /* owned: why a later state could not be used; NULL: none was damaged */
    stk_json *given;       /* owned: options that were given to the earlier processes */
    stk_str
        changes;   /* owned: per changed option its name, new value and old value, each with NUL */
    double used_s; /* seconds used by the earlier processes */
    stk_csv bad;   /* owned: bad_images.csv; the map of bad images points into it */
} stk_resume;

/*
 * Locks the run folder of --resume, reads its saved state, and completes the options with those of
 * the run (stk_options_recall). Writes nothing. STK_ERR_USAGE: a wrong folder or option.
 * STK_ERR_DATA: damaged files.
 */
STK_CHECKED stk_status stk_resume_open(stk_resume *resume, stk_options *options,
                                       stk_run_folder *folder, stk_error *err);
void stk_resume_free(stk_resume *resume);

/* STK_ERR_DATA: the saved state contradicts the options of the run. */
STK_CHECKED stk_status stk_resume_check_folds(const stk_resume *resume, int folds, stk_error *err);
STK_CHECKED stk_status stk_resume_check_steps(const stk_resume *resume, int64_t seed,
                                              int64_t steps_per_epoch, stk_error *err);

/* Emits where the run continues, and which options have changed. Models from `folds` on are refits.
 */
void stk_resume_emit(const stk_resume *resume, int folds, const stk_events *events);

/* Raises used_s to `seconds`, the time of the last event in events.jsonl, if it is less: the
 * earlier processes ran at least that long. */
void stk_resume_note_used(stk_resume *resume, double seconds);

/* Adds the bad images of earlier processes to the map, so that they are not emitted again. */
STK_CHECKED stk_status stk_resume_bad_images(stk_resume *resume, const stk_run_folder *folder,
                                             stk_map *told, stk_error *err);

/*
 * Progress of the learning-rate schedule to continue with from a saved position. When the new plan
 * leaves more to train than the old one, the progress goes back to where it would be under the new
 * plan: the rate would be near zero otherwise. epochs 0: as many as budget_s allows.
 */
double stk_resume_schedule(const stk_resume *resume, const stk_train_position *at, int epochs,
                           double budget_s);

#endif
