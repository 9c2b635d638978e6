/*
 * metrics_file.h - the figures of a run as Prometheus text, in a file that node_exporter's textfile
 * collector reads.
 *
 * The file is replaced in one step, once a second at most, when something is told; the last figures
 * stay in it when the run has ended. Which there are is in docs/outputs.md. Callbacks have nobody
 * to tell of a full disk: the first error is kept, and later events are tried all the same.
 * Threads: that of the events.
 */
#ifndef STK_REPORT_OBSERVERS_METRICS_FILE_H
#define STK_REPORT_OBSERVERS_METRICS_FILE_H

#include <stdint.h>

#include <stoker/events.h>

typedef struct stk_metrics_file stk_metrics_file;

typedef struct stk_metrics_config {
    const char *path;         /* copied */
    int64_t (*now_ns)(void);  /* NULL: stk_clock_ns; tests bring their own */
    int64_t (*wall_ns)(void); /* NULL: stk_clock_wall_ns */
} stk_metrics_config;

/* A place where no file can be written is wrong usage. Nothing is written before the first event.
 */
STK_CHECKED stk_status stk_metrics_file_new(stk_metrics_file **metrics,
                                            const stk_metrics_config *config, stk_error *err);
void stk_metrics_file_free(stk_metrics_file *metrics);

/* Valid until stk_metrics_file_free. */
const stk_observer *stk_metrics_file_observer(stk_metrics_file *metrics);

/* The run has ended, and the command will with this exit code; without a start nothing is done. */
void stk_metrics_file_finish(stk_metrics_file *metrics, int exit_code);

/* The first write that failed, STK_OK when all went well. */
STK_CHECKED stk_status stk_metrics_file_error(const stk_metrics_file *metrics, stk_error *err);

#endif
