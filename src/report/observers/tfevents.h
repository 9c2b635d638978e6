/*
 * tfevents.h - event files for TensorBoard.
 *
 * Training goes to FOLDER/events.out.tfevents.*, with more than one fold to FOLDER/fold0/ and so
 * on, so that their curves lie over each other; all of it stands at the number of steps that the
 * fold has done. What the machine did goes to FOLDER/machine/ and stands at the seconds since the
 * start of the run: TensorBoard drops everything behind the step where a training goes on, of all
 * curves of a folder, so that they must count the same. Which curves there are is in
 * docs/outputs.md.
 *
 * Files and folders are made when there is something to write. Each record is one write, so that a
 * kill leaves readable files and curves are seen while the run goes on. A folder that has files of
 * an earlier process gets another one behind them. Threads: that of the events.
 */
#ifndef STK_REPORT_OBSERVERS_TFEVENTS_H
#define STK_REPORT_OBSERVERS_TFEVENTS_H

#include <stdint.h>

#include <stoker/events.h>

typedef struct stk_tfevents stk_tfevents;

typedef struct stk_tfevents_config {
    const char *folder;       /* its parent must exist; copied */
    int fold;                 /* the fold that goes on */
    int64_t steps_done;       /* steps that the fold has done; 0: it begins */
    int64_t (*now_ns)(void);  /* NULL: stk_clock_ns; tests bring their own */
    int64_t (*wall_ns)(void); /* NULL: stk_clock_wall_ns */
} stk_tfevents_config;

STK_CHECKED stk_status stk_tfevents_new(stk_tfevents **tfevents, const stk_tfevents_config *config,
                                        stk_error *err);
void stk_tfevents_free(stk_tfevents *tfevents);

/* Valid until stk_tfevents_free. */
const stk_observer *stk_tfevents_observer(stk_tfevents *tfevents);

/* The first write that failed, STK_OK when all went well. Later events are tried all the same. */
STK_CHECKED stk_status stk_tfevents_error(const stk_tfevents *tfevents, stk_error *err);

#endif
