/*
 * supervision.h - inside the room: the state of one `stoker run`, and the steps that work on it.
 *
 * supervisor.c owns the state and calls the steps in order: begin.c prepares, attempt.c runs one
 * command, watch.c watches it and decides, supervision.c answers questions about the state.
 * Threads: the caller's, for all but two things. The threads of `output` write live_progress under
 * `lock`, and the folder writer has a thread of its own.
 */
#ifndef STK_SUPERVISE_SUPERVISION_H
#define STK_SUPERVISE_SUPERVISION_H

#include <limits.h>
#include <pthread.h>

#include <stoker/supervise.h>

#include "events/events.h"
#include "monitor/gpu_list.h"
#include "monitor/machine_sampler.h"
#include "report/observers/jsonl.h"
#include "run/run_clock.h"
#include "supervise/decide/command_evidence.h"
#include "supervise/decide/hang.h"
#include "supervise/decide/timetable.h"
#include "supervise/decide/trials.h"
#include "supervise/files/expected_file.h"
#include "supervise/files/folder_writer.h"
#include "supervise/output/output.h"
#include "supervise/process/guardian.h"
#include "supervise/settings/command_setting.h"
#include "supervise/supervise_options.h"

/* Attempts of one run: trials, restarts after a hang, and the prediction. */
#define STK_ATTEMPTS_MOST (STK_TRIALS_MOST + 24)

/* Why watching an attempt ended. Except after ITSELF and LOST, the command still runs and must be
 * ended. */
typedef enum stk_attempt_end {
    STK_END_ITSELF,  /* the command has ended */
    STK_END_BUDGET,  /* its time is over */
    STK_END_SIGNAL,  /* the user asked to end */
    STK_END_HANG,    /* it hangs */
    STK_END_BATCH,   /* it will be restarted with another batch */
    STK_END_WORKERS, /* it will be restarted with more workers */
    STK_END_LOST     /* the guardian was killed, and the command with it */
} stk_attempt_end;

/* One start of a command. Times are seconds since the start of the run. */
typedef struct stk_attempt {
    stk_event_attempt event; /* its texts are `command` or static */
    char *command;           /* owned: the command line, shortened, without secrets */
    pid_t pid;
    bool is_training; /* false: the prediction */
    double began_s;
    double stop_s;                 /* when it is asked to stop */
    double kill_s;                 /* when it is killed */
    double check_from_s;           /* the check judges samples after this; NaN: not known yet */
    bool gpu_worked;               /* check_from_s is when the GPU began to work */
    bool checked;                  /* the check has run */
    bool on_gpu;                   /* the command held memory on a GPU, or a GPU worked */
    bool was_sampled;              /* samples were taken during the attempt */
    bool told_no_gpu;              /* the warning that no GPU is used was given */
    double first_progress_s;       /* when progress first appeared; NaN: not yet */
    double estimate_reported_s;    /* when an estimate was last emitted */
    double estimated_total_s;      /* the last estimate: seconds of the whole training; NaN: none */
    double judged_s;               /* when a verdict was last made */
    double stepped_s;              /* when progress was last reported */
    double progress_s;             /* time of the progress last reported */
    stk_verdict_kind last_verdict; /* the last verdict reported */
    stk_command_exit exit;         /* how the command ended */
    stk_trial_advice advice;       /* of the check, or of the end */
} stk_attempt;

typedef struct stk_supervision {
    /* Options and command */
    stk_options *options;           /* borrowed */
    const stk_supervise_options *o; /* their values */
    stk_command command;            /* the training */
    stk_passing passing;            /* where the command's output goes */
    int stop_signal;                /* asks the training to stop */
    double fill;                    /* --fill; NaN: not given */
    stk_expected_file expected;     /* --expect */
    char expected_path[PATH_MAX];   /* full path of the expected file once it is complete; "" until
                                       then */

    /* Time */
    stk_run_clock clock;
    stk_timetable timetable;
    bool end_requested;    /* the timetable takes account of a request to end */
    bool end_has_deadline; /* the timetable takes account of the request's deadline */

    /* Reporting */
    stk_events events;          /* all observers, the run folder's first */
    stk_events other_observers; /* all but the run folder's */
    stk_folder_writer *folder;  /* owned; NULL: not opened yet */
    stk_jsonl *jsonl;           /* owned: writes --json-fd; NULL: not asked for */
    stk_output *json_relay;     /* owned: passes the lines of jsonl on without waiting */
    int json_end;               /* descriptor that jsonl writes to; -1: none */
    char estimate[240];         /* last estimate reported; "": none */
    bool told_not_passed;       /* the warning that output was lost was given */
    bool told_not_logged;       /* the warning that the log has gaps was given */

    /* The running command */
    stk_guardian *guardian;             /* owned; NULL: not started, or lost */
    stk_output *output;                 /* owned */
    pthread_mutex_t lock;               /* guards live_progress */
    stk_command_progress live_progress; /* written by the threads of `output` */
    stk_command_progress progress;      /* a copy, made by stk_watch_command() */
    stk_machine_sampler *sampler;       /* owned; NULL: the machine cannot be sampled */
    stk_event_sample last_sample; /* before the first sample only GPU memory; texts are not valid */
    bool has_sample;              /* last_sample is a real sample */
    stk_command_evidence *evidence; /* owned */
    stk_verdict verdict;            /* the last verdict */
    stk_hang hang;
    int hangs;          /* of the training so far */
    int trial_hangs;    /* hangs during trials */
    stk_proc_tree tree; /* below the guardian, at the last sample */
    stk_gpu_info gpus[STK_GPU_MOST];
    size_t gpu_count;
    double gpu_level; /* bytes in use on the GPUs before the first command; NaN: unknown */

    /* Trials */
    stk_command_setting batch_setting;
    stk_command_setting workers_setting;
    int64_t batch_given; /* batch of the running command by its setting; -1: unknown */
    int workers_given;   /* workers of the running command by their setting; -1: unknown */
    stk_trials trials;

    /* Results */
    stk_attempt attempts[STK_ATTEMPTS_MOST];
    int attempt_count;
    int trainings;   /* starts of the training */
    int epochs_done; /* of the last training; -1: unknown */
    int exit_code;   /* of the run */
    char status[16]; /* "complete", "partial" or "failed"; "": not known yet */
} stk_supervision;

/* ---- supervision.c: questions about the state ---- */

/* The number as an int; -1 where it does not fit. */
int stk_int_or_none(int64_t number);

/* Seconds since the start of the run. */
double stk_supervision_now(const stk_supervision *s);

/* Returns wanted_s, or less if that is too large a share of the time left: for waits that may be in
 * vain. */
double stk_supervision_spare(const stk_supervision *s, double wanted_s);

/* How long to wait until killed processes are gone. */
double stk_supervision_kill_s(const stk_supervision *s);

/* Batch and workers of the running command, by its settings or its output; -1: unknown. */
int64_t stk_supervision_batch(const stk_supervision *s);
int stk_supervision_workers(const stk_supervision *s);

/* Cuts a command line that is too long to be shown. */
void stk_supervision_shorten(stk_str *command);

/* Sets STOKER_RUN_DIR and STOKER_STOP_AT for a command, and makes Python print at once and print
 * its stack when it is killed. */
STK_CHECKED stk_status stk_supervision_set_environment(const stk_supervision *s,
                                                       stk_command *command, stk_error *err);

/* ---- begin.c: everything before the first command ---- */

/* Reads the options, opens run folder, guardian and samplers, and reports the start. */
STK_CHECKED stk_status stk_supervision_begin(stk_supervision *s, const char *const *words,
                                             size_t count, stk_error *err);

/* ---- watch.c: what a running command does, and what follows ---- */

/* Takes in one line of the command's output; `user` is the stk_supervision. Threads: those of
 * `output`. */
void stk_watch_line(void *user, const char *line, size_t length, double at_s);

/* Takes in new samples and the progress so far; emits samples, steps and the estimate. */
void stk_watch_command(stk_supervision *s, stk_attempt *attempt);

/* Makes a verdict when it is time. True: the command must be restarted; *why says for what. */
bool stk_judge_if_due(stk_supervision *s, stk_attempt *attempt, stk_attempt_end *why);

/* Fills in the advice after a training that ended, or hung, before its check. */
void stk_judge_ended(stk_supervision *s, stk_attempt *attempt, bool hung);

/* Records a hang in the run folder. True: it hangs, and the command must be ended. */
bool stk_judge_hang(stk_supervision *s);

/* ---- attempt.c: one command, from its start until all its processes are gone ---- */

/* Starts a command and reports it. *attempt points into s->attempts. */
STK_CHECKED stk_status stk_attempt_start(stk_supervision *s, const stk_command *command,
                                         bool is_training, stk_attempt **attempt, stk_error *err);

/* Watches the command until it has ended or must be ended. */
stk_attempt_end stk_attempt_watch(stk_supervision *s, stk_attempt *attempt);

/* Ends the command's processes, passes the rest of its output on, and reports how it ended. */
void stk_attempt_finish(stk_supervision *s, stk_attempt *attempt, stk_attempt_end why);

/* Waits some seconds until the GPUs hold no more memory than before the run. */
void stk_attempt_wait_for_gpus(stk_supervision *s);

#endif
