/* run_folder.h - the folder that a run writes: found, claimed and locked. */
#ifndef STK_JOB_RUN_FOLDER_H
#define STK_JOB_RUN_FOLDER_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include <stoker/status.h>

#include "base/json.h"
#include "base/random_id.h"
#include "base/str.h"
#include "options/options.h"

/* Tells a run from every other, so that no state of another is taken for its own. */
#define STK_RUN_ID_TEXT STK_RANDOM_ID_TEXT

typedef struct stk_run_folder {
    char *path;               /* owned */
    char id[STK_RUN_ID_TEXT]; /* of the run, by chance; "": an older version began it */
    int lock_fd;              /* held while the run lives; -1: none */
    char *moved;              /* owned: where an earlier run of this name went, or NULL */
} stk_run_folder;

/*
 * With `out`: that folder; an earlier finished run in it is moved to out.1, out.2 ... so that
 * nothing is lost. A folder that another process is writing a run into, or that holds something
 * else than a run, is STK_ERR_USAGE. Without `out`: runs/NAME, or runs/NAME-2 ... when taken.
 */
STK_CHECKED stk_status stk_run_folder_open(stk_run_folder *folder, const char *out,
                                           const char *name, stk_error *err);

/* The folder of a run that is to be gone on with; STK_ERR_USAGE while a process writes there. */
STK_CHECKED stk_status stk_run_folder_reopen(stk_run_folder *folder, const char *path,
                                             stk_error *err);
void stk_run_folder_close(stk_run_folder *folder);

/* Who writes a run folder now. */
typedef struct stk_run_owner {
    bool running;     /* somebody does: the folder is locked */
    bool here;        /* it is the process `pid` of this machine, and no other of that number */
    pid_t pid;        /* as it called itself; -1: not known */
    int64_t since_ns; /* wall clock: when it began to; -1: not known */
    char host[65];    /* its machine's name; "": not known */
} stk_run_owner;

/*
 * Says who writes the folder, which may be another user's, and changes nothing. A process that was
 * killed writes no more. A folder without a lock is fine: nobody does.
 */
STK_CHECKED stk_status stk_run_folder_owner(const char *path, stk_run_owner *owner, stk_error *err);

/* A path inside the folder; NULL without memory; freed with stk_mem_free. */
char *stk_run_folder_file(const stk_run_folder *folder, const char *name);

/* Reads a JSON file of any run folder; freed with stk_json_free. The caller says which it was. */
STK_CHECKED stk_status stk_run_folder_json(const char *folder, const char *name, stk_json **json,
                                           stk_error *err);

/* Writes a file of the folder in one step. Takes the text over and empties it. */
STK_CHECKED stk_status stk_run_folder_write(const stk_run_folder *folder, const char *name,
                                            stk_str *text, stk_error *err);

/* The options of the run, resolved, as args.json, which also has the run's id, and args.yaml. */
STK_CHECKED stk_status stk_run_folder_write_options(const stk_run_folder *folder,
                                                    const stk_options *options, stk_error *err);

#endif
