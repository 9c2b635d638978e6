/*
 * command_evidence.h - what a command under supervision shows from outside, and what follows for
 * the verdict.
 *
 * Once a second a sample of the machine and the tree of its processes are added; a stretch of them
 * becomes evidence for the same table of verdicts that a training of our own is judged by: the part
 * of the time in which the GPU works is computing, and what it waits for in the rest is told by who
 * is busy meanwhile: the processes that feed it (decoding), the disks (storage), or the one that
 * drives it (launching). Threads: one at a time.
 */
#ifndef STK_SUPERVISE_DECIDE_COMMAND_EVIDENCE_H
#define STK_SUPERVISE_DECIDE_COMMAND_EVIDENCE_H

#include <stdbool.h>

#include "base/threads/proc_tree.h"
#include "monitor/verdict.h"
#include "supervise/output/progress.h"

typedef struct stk_command_evidence stk_command_evidence;

STK_CHECKED stk_status stk_command_evidence_new(stk_command_evidence **symptoms, stk_error *err);
void stk_command_evidence_free(stk_command_evidence *symptoms); /* NULL is fine */

/* A new command begins; `level` is a sample from before (or NULL): what the GPUs held without it.
 */
void stk_command_evidence_begin(stk_command_evidence *symptoms, const stk_event_sample *level,
                                double at_s);

/* `tree` is that of the guardian; `command` the command's first process. */
void stk_command_evidence_add(stk_command_evidence *symptoms, const stk_event_sample *sample,
                              const stk_proc_tree *tree, pid_t command);

/* When the GPU work began that lasts since: the check's clock starts there. NaN: there was none. */
double stk_command_evidence_working_since(const stk_command_evidence *symptoms);

/* What was seen since a moment. NaN: not known. */
typedef struct stk_evidence_summary {
    double seconds;
    int samples;
    bool has_gpu;        /* the machine shows one that the command may use */
    bool gpu_used;       /* the command has memory on it, or it worked */
    double memory_used;  /* bytes, by the command: by its processes, or over the level before it */
    double memory_total; /* bytes, of all the GPUs that it may use */
    double memory_share; /* 0 to 1 */
    double activity;     /* percent of the time that the GPUs worked, their mean */
    double cpu_own;      /* percent of the cores, by the command's tree */
    double cpu;          /* by anybody */
    double iowait;
    double feeders_busy; /* percent of the time, the mean of the processes that feed the first one:
                            on a core, or waiting for one */
    int feeders;
    double driver_busy; /* percent of a core, of the first process */
    double blocked;     /* share of the looks at which a process of the tree waited for a disk */
    bool input_bound;
} stk_evidence_summary;

void stk_command_evidence_since(const stk_command_evidence *symptoms, double from_s,
                                stk_evidence_summary *seen);

/* Judges it by the table of verdicts; what the command said of itself is evidence too. */
void stk_command_evidence_judge(const stk_command_evidence *symptoms,
                                const stk_evidence_summary *seen, const stk_progress *progress,
                                double from_s, double to_s, int64_t batch, bool first,
                                stk_verdict *verdict);

#endif
