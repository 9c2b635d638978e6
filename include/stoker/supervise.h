/*
 * stoker/supervise.h - runs any other training command within a budget, with Stoker's monitor.
 *
 * stk_supervise() forks a small process, the guardian. The guardian starts the command, and ends
 * all processes of the command if this process is killed. As with any fork, call it while no other
 * thread holds locks. During the call orphans below this process become its children
 * (PR_SET_CHILD_SUBREAPER).
 */
#ifndef STOKER_SUPERVISE_H
#define STOKER_SUPERVISE_H

#include <stddef.h>

#include <stoker/job.h>
#include <stoker/options.h>
#include <stoker/status.h>

#ifdef __cplusplus
extern "C" {
#endif

STK_API STK_CHECKED stk_status stk_options_for_run(stk_options **options, stk_error *err);

/* Where the command's output goes: open file descriptors; -1: nowhere. */
typedef struct stk_passing {
    size_t size; /* sizeof this struct; set by the caller */
    int out;
    int err;
} stk_passing;

/* Result of a supervised run. */
typedef struct stk_supervised {
    size_t size;        /* sizeof this struct; set by the caller */
    char run_dir[1024]; /* run folder; "": it was not made */
    char status[16];    /* "complete", "partial" or "failed" */
    int attempts;       /* starts of the training command */
    int exit_code;      /* of the whole run, for the shell */
} stk_supervised;

/*
 * Runs a training command and then the command of option `predict`, if that is set. `words` are the
 * program, found through PATH, and its arguments. `passing` NULL: standard output and standard
 * error. A command that fails is no error of this call: outcome->exit_code and summary.json say so.
 * Files that could not be written into the run folder cause a warning.
 */
STK_API STK_CHECKED stk_status stk_supervise(stk_options *options, const char *const *words,
                                             size_t count, const stk_run *run,
                                             const stk_passing *passing, stk_supervised *outcome,
                                             stk_error *err);

#ifdef __cplusplus
}
#endif

#endif
