/*
 * stoker/supervise.h - any other training command, under the same clock and the same eyes.
 *
 * A
 * process of its own is forked that the command is started from and that ends all of it should this
 * one be killed: call it while the process has no threads that hold locks, as with any fork. While
 * it runs, orphans below this process are handed to it (PR_SET_CHILD_SUBREAPER).
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

/* Where the command's output goes to: open file descriptors, or -1 for nowhere. */
typedef struct stk_passing {
    int out;
    int err;
} stk_passing;

/* What a supervised command has left behind. */
typedef struct stk_supervised {
    size_t size;        /* sizeof this struct; set by the caller */
    char run_dir[1024]; /* the run folder; "" when it was not made */
    char status[16];    /* "complete", "partial" or "failed" */
    int attempts;       /* starts of the training command */
    int exit_code;      /* that a shell would be given for all of it */
} stk_supervised;

/*
 * Runs a command until it has ended and, where one is given, the prediction behind it. `words` are
 * the program, found as a shell finds it, and its arguments; `passing` is NULL for standard output
 * and standard error. A command that fails is no error of this call: outcome->exit_code says it, as
 * summary.json does. What could not be written into the run folder is told as a warning.
 */
STK_API STK_CHECKED stk_status stk_supervise(stk_options *options, const char *const *words,
                                             size_t count, const stk_run *run,
                                             const stk_passing *passing, stk_supervised *outcome,
                                             stk_error *err);

#ifdef __cplusplus
}
#endif

#endif
