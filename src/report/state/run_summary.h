/*
 * run_summary.h - inside the report room: the summary of a run that has ended or goes on.
 *
 * `stoker status`, `stoker top`, the page and `stoker report` all show this summary, so they agree.
 * Threads: safe, nothing is stored.
 */
#ifndef STK_REPORT_STATE_RUN_SUMMARY_H
#define STK_REPORT_STATE_RUN_SUMMARY_H

#include "report/state/run_view.h"

/* What the summary of a run that has not ended needs besides the view. */
typedef struct stk_run_facts {
    bool running;        /* a process writes the run: a stop in the view is an earlier process's */
    int64_t epochs_done; /* rows of results.csv; -1: not known */
    int64_t bad_images;  /* rows of bad_images.csv; -1: not known */
    double best_acc1;    /* percent; used if no event says which epoch is the best; or NaN */
    double used_s;       /* seconds of the run; NaN: not known */
    const char *metric;  /* of args.json, or NULL */
    bool has_submission; /* the run folder has a submission.csv */
} stk_run_facts;

/*
 * The summary of a run that has ended. Otherwise what is known so far, with a status of NULL: speed
 * and waiting are those of the last step (before the first one, of the last epoch), and the folds
 * before the one in training are done. best_acc1 is that of the best epoch so far of one fold, the
 * newest that has finished an epoch; a run that has ended has the mean over its folds. For a
 * supervised command, `attempts` are those that have ended. Texts point into the view and the
 * facts.
 */
stk_summary stk_run_summary(const stk_run_view *view, const stk_run_facts *facts);

/*
 * Whole epochs that a supervised command has done, from what it printed last: the epoch (from 1),
 * the steps done in it and its steps; -1: not printed. A command that prints no steps usually
 * prints an epoch's number when the epoch is done.
 */
int stk_command_epochs_done(int epoch, int64_t step, int64_t steps);

#endif
