/*
 * command_evidence.h - observes a supervised command from outside and judges what limits it.
 *
 * Once a second the caller adds a sample of the machine and the command's process tree. An interval
 * of samples becomes evidence for the same verdicts as a training of our own (monitor/verdict.h).
 * The time in which the GPU works counts as computing. What the GPU waits for in the rest follows
 * from who is busy meanwhile: the loader processes (decoding), the disks (storage), or the process
 * that drives the GPU (launching). Threads: one at a time.
 */
#ifndef STK_SUPERVISE_DECIDE_COMMAND_EVIDENCE_H
#define STK_SUPERVISE_DECIDE_COMMAND_EVIDENCE_H

#include <stdbool.h>

#include "base/threads/proc_tree.h"
#include "monitor/verdict.h"
#include "supervise/output/command_progress.h"

typedef struct stk_command_evidence stk_command_evidence;

STK_CHECKED stk_status stk_command_evidence_new(stk_command_evidence **evidence, stk_error *err);
void stk_command_evidence_free(stk_command_evidence *evidence); /* NULL is fine */

/* Starts over for a new command. `level` is a sample taken before the command started: its GPU
 * memory belongs to other programs, and is subtracted where the driver does not tell the memory of
 * each process. NULL: the first sample added is the level. */
void stk_command_evidence_begin(stk_command_evidence *evidence, const stk_event_sample *level,
                                double at_s);

/* `tree` is the guardian's process tree; `command` is the command's first process. */
void stk_command_evidence_add(stk_command_evidence *evidence, const stk_event_sample *sample,
                              const stk_proc_tree *tree, pid_t command);

/* When the GPU began to work for the command; NaN: not yet. */
double stk_command_evidence_working_since(const stk_command_evidence *evidence);

/* What an interval showed. NaN: unknown. */
typedef struct stk_evidence_summary {
    double seconds;
    int samples;
    bool has_gpu;  /* the machine shows a GPU that the command may use */
    bool gpu_used; /* the command holds memory on it, or it worked */
    double
        memory_used; /* bytes on the GPUs: of the command's processes, or above the level before */
    double memory_total; /* bytes of the GPUs that it may use */
    double memory_share; /* used by total, 0 to 1 */
    double activity;     /* mean utilisation of the GPUs, percent */
    double cpu_own;      /* percent of the cores, used by the command */
    double cpu;          /* percent of the cores, used by anybody */
    double iowait;       /* percent */
    double loaders_busy; /* percent of the time that loader processes ran or waited for a core */
    int loaders;         /* loader processes: they work below the process that drives the GPU */
    double driver_busy;  /* percent of a core, of the process that drives the GPU */
    double blocked;      /* share of samples in which a process waited for a disk */
    bool input_bound;    /* the GPU waits for data */
} stk_evidence_summary;

/* Sums up all samples after from_s; NaN: all of them. */
void stk_command_evidence_since(const stk_command_evidence *evidence, double from_s,
                                stk_evidence_summary *summary);

/* Judges the interval by the table of verdicts, with the progress that the command printed. */
void stk_command_evidence_judge(const stk_command_evidence *evidence,
                                const stk_evidence_summary *summary,
                                const stk_command_progress *progress, double from_s, double to_s,
                                int64_t batch, stk_verdict *verdict);

#endif
