/*
 * tfevents.h - event files for TensorBoard.
 *
 * Training goes to FOLDER/events.out.tfevents.*, or with several folds to FOLDER/fold0/ and so on,
 * so that TensorBoard draws the folds' curves over each other; their x axis is the steps that the
 * fold has done. Samples of the machine go to FOLDER/machine/; their x axis is the seconds since
 * the start of the run. Samples need their own folder: when training is resumed, TensorBoard drops
 * all points of a folder after that step, so all curves of a folder must count the same unit.
 * docs/outputs.md lists the curves.
 *
 * Files and folders are made when they get their first record. Each record is one write, so that a
 * kill leaves readable files, and curves grow while the run goes on. A process that resumes a run
 * adds files of its own. Threads: that of the events.
 */
#ifndef STK_REPORT_OBSERVERS_TFEVENTS_H
#define STK_REPORT_OBSERVERS_TFEVENTS_H

#include <stdint.h>

#include <stoker/events.h>

typedef struct stk_tfevents stk_tfevents;

typedef struct stk_tfevents_config {
    const char *folder;       /* its parent must exist; copied */
    int fold;                 /* the fold that continues, from 0 */
    int64_t steps_done;       /* steps that this fold has done; 0: it begins */
    int64_t (*now_ns)(void);  /* NULL: stk_clock_ns; tests bring their own */
    int64_t (*wall_ns)(void); /* NULL: stk_clock_wall_ns */
} stk_tfevents_config;

STK_CHECKED stk_status stk_tfevents_new(stk_tfevents **tfevents, const stk_tfevents_config *config,
                                        stk_error *err);
void stk_tfevents_free(stk_tfevents *tfevents);

/* Valid until stk_tfevents_free. */
const stk_observer *stk_tfevents_observer(stk_tfevents *tfevents);

/* The first write that failed; STK_OK when none has. Later events are written all the same. */
STK_CHECKED stk_status stk_tfevents_error(const stk_tfevents *tfevents, stk_error *err);

#endif
