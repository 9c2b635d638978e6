/*
 * run_read.h - reads a run folder back into a history, even if the run was killed.
 *
 * Any file may be missing, end within a line or hold somebody else's text. What can be read is
 * taken; `damage` names the rest. events.jsonl may be large; memory is bounded. Threads: one at a
 * time.
 */
#ifndef STK_REPORT_STATE_RUN_READ_H
#define STK_REPORT_STATE_RUN_READ_H

#include "base/text/json.h"
#include "base/str.h"
#include "report/state/run_history.h"

typedef struct stk_run_read {
    char *dir;               /* owned; as given */
    char *name;              /* owned; its last part */
    stk_run_history history; /* must stay where it is */
    stk_json *args;          /* owned; args.json, or NULL */
    bool has_submission;     /* submission.csv exists */
    stk_str damage;          /* a line for each thing that could not be read */
} stk_run_read;

/*
 * STK_ERR_USAGE: the folder does not exist or holds no run. STK_ERR_DATA: nothing of it can be
 * read. After a failure *run is empty; closing it is harmless.
 */
STK_CHECKED stk_status stk_run_read_open(stk_run_read *run, const char *dir, stk_error *err);
void stk_run_read_close(stk_run_read *run);

/* How the run ended, or how it stands; its texts are the run's. */
stk_summary stk_run_read_summary(const stk_run_read *run);

/* The last part of the folder's path: "runs/demo/" is demo. NULL without memory; stk_mem_free. */
char *stk_run_name(const char *run_dir);

#endif
