/* supervision.h - inside the room: all that one supervised run has at hand. */
#ifndef STK_SUPERVISE_SUPERVISION_H
#define STK_SUPERVISE_SUPERVISION_H

#include <limits.h>
#include <pthread.h>

#include <stoker/supervise.h>

#include "events/events.h"
#include "run/run_clock.h"
#include "monitor/gpu_list.h"
#include "monitor/machine_sampler.h"
#include "report/observers/jsonl.h"
#include "supervise/files/expected_file.h"
#include "supervise/files/folder_writer.h"
#include "supervise/process/guardian.h"
#include "supervise/decide/hang.h"
#include "supervise/settings/command_setting.h"
#include "supervise/output/output.h"
#include "supervise/supervise_options.h"
#include "supervise/decide/command_evidence.h"
#include "supervise/decide/timetable.h"
#include "supervise/decide/trials.h"

/* Trials and starts after a hang, and the prediction. */
#define STK_ATTEMPTS_MOST (STK_TRIALS_MOST + 24)

/* Why a command is no longer watched. */
typedef enum stk_attempt_end {
    STK_END_ITSELF, /* it has ended */
    STK_END_BUDGET, /* from here on: it is to be ended */
    STK_END_SIGNAL,
    STK_END_HANG,
    STK_END_BATCH,   /* to be started again with another one */
    STK_END_WORKERS, /* the same */
    STK_END_LOST     /* the guardian was killed */
} stk_attempt_end;

/* One start of a command; the texts that the event points to are here or static. */
typedef struct stk_attempt {
    stk_event_attempt event;
    char *command; /* owned */
    pid_t pid;
    bool is_training;
    double began_s;
    double stop_s;  /* when it is asked to stop */
    double kill_s;  /* when it is killed */
    double since_s; /* what the check looks at begins here; NaN: not known yet */
    bool worked;    /* that is when the GPU began to work */
    bool checked;
    bool on_gpu;             /* it had memory on one, or one worked */
    bool looked;             /* there were samples of it */
    bool blind;              /* it was said that no GPU is used */
    double first_progress_s; /* when it was first heard of; NaN: not yet */
    double estimated_s;      /* when an estimate of its time was last told */
    double estimate_s;       /* that estimate; NaN: none was told */
    double judged_s;         /* when it was last judged */
    double stepped_s;        /* when its progress was last told */
    double progress_s;       /* of what was told */
    stk_verdict_kind told;   /* the last verdict */
    stk_command_exit ended;
    stk_trial_advice advice; /* of the check, or of its end */
} stk_attempt;

typedef struct stk_supervision {
    stk_options *options;
    const stk_supervise_options *o;
    stk_run_clock clock;
    stk_timetable table;
    stk_events events;
    stk_folder_writer *folder; /* NULL: there is none yet */
    stk_events others;         /* all observers but the folder's */
    stk_jsonl *jsonl;          /* for --json-fd, or NULL */
    stk_output *json_relay;
    int json_end; /* of it; -1: none */
    stk_passing passing;
    stk_output *output;
    stk_guardian *guardian;
    stk_machine_sampler *sampler;
    stk_command_evidence *evidence;
    stk_proc_tree tree;
    stk_gpu_info gpus[STK_GPU_MOST];
    size_t gpu_count;
    double gpu_level;      /* bytes that others held on the GPUs before the first command; NaN */
    stk_event_sample last; /* sample, before the first one only the level; no texts of it */
    bool looked;           /* there was one */
    pthread_mutex_t lock;  /* of the next one, which the readers of the output write */
    stk_progress live_progress;
    stk_progress progress; /* a copy of it as of the last look */
    stk_command command;
    stk_command_setting batch;
    stk_command_setting workers;
    int64_t batch_told; /* by its knob, to the command that runs; -1: not known */
    int workers_told;
    stk_trials trials;
    stk_expected_file expect;
    char expected[PATH_MAX]; /* the file's full path once it is there; "": it is not */
    stk_hang hang;
    stk_verdict verdict;
    char estimate[240]; /* "": none was made */
    double fill;        /* NaN: by the rule */
    int stop_signal;
    int hangs;       /* of the command so far */
    int trial_hangs; /* hangs that a trial is to blame for */
    bool not_passed; /* it was told that output was lost, and the same of the log */
    bool not_logged;
    bool hurried;    /* the timetable knows that an end was asked for */
    bool rushed;     /* and by when */
    int launched;    /* starts of the training command */
    int epochs_done; /* of the last training; -1: not known */
    int exit_code;   /* of the whole */
    char status[16];
    stk_attempt attempts[STK_ATTEMPTS_MOST];
    int attempt_count;
} stk_supervision;

/* A number that may be any; -1, which is not known, where no int can be it. */
static inline int stk_int_or_none(int64_t number) {
    return number >= 0 && number <= INT_MAX ? (int)number : -1;
}

/* Seconds since the start of the run. */
double stk_supervision_now(const stk_supervision *s);

/* As many as are wanted, or what may be spent of the budget's rest on things that may be in vain.
 */
double stk_supervision_spare(const stk_supervision *s, double wanted_s);

/* How long killed processes may take to be gone. */
double stk_supervision_kill_s(const stk_supervision *s);

/* Cuts a command line that is too long to be shown. */
void stk_supervision_shorten(stk_str *command);

/* ---- supervise_begin.c: all before the first command ---- */

/* Reads what was asked for, makes the run folder, the guardian and the eyes, and tells the start.
 */
STK_CHECKED stk_status stk_supervision_begin(stk_supervision *s, const char *const *words,
                                             size_t count, stk_error *err);

/* What a command may want to know, and what makes Python speak at once and of its stack. */
STK_CHECKED stk_status stk_supervision_set_environment(const stk_supervision *s,
                                                       stk_command *command, stk_error *err);

/* ---- attend.c: one command, from its start until nothing of it is left ---- */

/* Starts it, and tells it. */
STK_CHECKED stk_status stk_attempt_start(stk_supervision *s, const stk_command *command,
                                         bool is_training, stk_attempt **attempt, stk_error *err);

/* Watches it until it has ended or is to be ended. */
stk_attempt_end stk_attempt_watch(stk_supervision *s, stk_attempt *attempt);

/* Ends whatever of it is left, passes its last words on, and tells how it ended. */
void stk_attempt_finish(stk_supervision *s, stk_attempt *attempt, stk_attempt_end why);

/* Waits until the GPUs hold no more than before, for some seconds at most. */
void stk_attempt_wait_for_gpus(stk_supervision *s);

/* ---- check.c: what is seen of it, and what follows ---- */

/* All that is new: samples, words, progress, the estimate. */
void stk_observe(stk_supervision *s, stk_attempt *attempt);

/* Judges where it is time to; true where the command is to be started anew: *why says for what. */
bool stk_judge_if_due(stk_supervision *s, stk_attempt *attempt, stk_attempt_end *why);

/* The advice after a training command that has ended, or hung, before it was checked. */
void stk_judge_ended(stk_supervision *s, stk_attempt *attempt, bool hung);

/* True where it hangs and something is to be done about it; where it is, is recorded. */
bool stk_judge_hang(stk_supervision *s);

/* The batch and workers that the command has, by its knobs or its words; -1: not known. */
int64_t stk_supervision_batch(const stk_supervision *s);
int stk_supervision_workers(const stk_supervision *s);

#endif
