/*
 * metrics_file.h - the figures of a run as Prometheus text, in a file that node_exporter's textfile
 * collector reads.
 *
 * An event replaces the file in one step, once a second at most; the last figures stay when the run
 * has ended. docs/outputs.md lists the figures. Callbacks cannot return an error: the first error
 * is stored, and later events are written all the same. Callbacks run on the events' thread.
 * Another thread writes, so that a disk that hangs does not stop the run.
 */
#ifndef STK_REPORT_OBSERVERS_METRICS_FILE_H
#define STK_REPORT_OBSERVERS_METRICS_FILE_H

#include <stdint.h>

#include <stoker/events.h>

typedef struct stk_metrics_file stk_metrics_file;

typedef struct stk_metrics_file_config {
    const char *path;         /* copied */
    int64_t (*now_ns)(void);  /* NULL: stk_clock_ns; tests bring their own */
    int64_t (*wall_ns)(void); /* NULL: stk_clock_wall_ns */
} stk_metrics_file_config;

/* A path at which no file can be written is STK_ERR_USAGE. The start event is the first that
 * writes the file. */
STK_CHECKED stk_status stk_metrics_file_new(stk_metrics_file **metrics,
                                            const stk_metrics_file_config *config, stk_error *err);
void stk_metrics_file_free(stk_metrics_file *metrics);

/* Valid until stk_metrics_file_free. */
const stk_observer *stk_metrics_file_observer(stk_metrics_file *metrics);

/* Adds the exit code of the command to the figures; nothing happens without a start event. */
void stk_metrics_file_finish(stk_metrics_file *metrics, int exit_code);

/* The first failure of a write, or of memory for its figures; STK_OK when there was none. */
STK_CHECKED stk_status stk_metrics_file_error(const stk_metrics_file *metrics, stk_error *err);

#endif
