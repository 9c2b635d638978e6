/*
 * run_folder.h - the folder that one run writes its files into.
 *
 * Opening a run folder finds or makes it and locks it: one process at a time writes a run folder.
 * The lock is a file lock on state/lock, so it ends with the process, however that ends. The lock
 * file also names the process. Threads: the owner's; stk_run_folder_owner() may be called for any
 * folder from any thread.
 */
#ifndef STK_RUN_RUN_FOLDER_H
#define STK_RUN_RUN_FOLDER_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include <stoker/status.h>

#include "base/random_id.h"
#include "base/str.h"
#include "base/text/json.h"
#include "options/options.h"

/* The lock file in a run folder. */
#define STK_RUN_LOCK "state/lock"

/* Bytes of a run's random id. States carry it, so that a state of another run is recognised. */
#define STK_RUN_ID_TEXT STK_RANDOM_ID_TEXT

typedef struct stk_run_folder {
    char *path;               /* owned */
    char id[STK_RUN_ID_TEXT]; /* the run's random id; "": a version without ids began the run */
    int lock_fd;              /* owned: holds the lock until close; -1: none */
    char *moved;              /* owned: where open moved an earlier run to; NULL: nowhere */
} stk_run_folder;

/*
 * Makes and locks the folder of a new run. With `out` it is that folder, and an earlier run in it
 * is moved to out.1 (or out.2 and so on), so that nothing is lost. STK_ERR_USAGE: another process
 * writes there, or the folder holds something that is not a run. Without `out` it is runs/NAME, or
 * runs/NAME-2 and so on when that exists; a NULL name is "train".
 */
STK_CHECKED stk_status stk_run_folder_open(stk_run_folder *folder, const char *out,
                                           const char *name, stk_error *err);

/* Locks the folder of a run that is resumed. STK_ERR_USAGE: another process writes there. */
STK_CHECKED stk_status stk_run_folder_reopen(stk_run_folder *folder, const char *path,
                                             stk_error *err);

/* Removes temporary files that nobody will finish: the caller holds the lock. */
void stk_run_folder_sweep(const stk_run_folder *folder);

void stk_run_folder_close(stk_run_folder *folder);

/* The process that writes a run folder. */
typedef struct stk_run_owner {
    bool running;     /* the folder is locked: a process writes it */
    bool here;        /* `pid` is a process of this machine, with the same start time */
    pid_t pid;        /* as the lock file says; -1: not known */
    int64_t since_ns; /* wall clock: when it took the lock; -1: not known */
    char host[65];    /* name of its machine; "": not known */
} stk_run_owner;

/*
 * Finds out who writes a folder, which may be another user's. Changes nothing. The lock of a
 * process that was killed is free. A folder without a lock file has no owner and is no error.
 */
STK_CHECKED stk_status stk_run_folder_owner(const char *path, stk_run_owner *owner, stk_error *err);

/* A path inside the folder; NULL without memory; freed with stk_mem_free. */
char *stk_run_folder_file(const stk_run_folder *folder, const char *name);

/* Replaces a file of the folder atomically. Takes the text and empties it. */
STK_CHECKED stk_status stk_run_folder_write(const stk_run_folder *folder, const char *name,
                                            stk_str *text, stk_error *err);

/* Writes the resolved options as args.json, which also has the run's id, and as args.yaml. */
STK_CHECKED stk_status stk_run_folder_write_options(const stk_run_folder *folder,
                                                    const stk_options *options, stk_error *err);

#endif
