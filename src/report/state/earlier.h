/*
 * earlier.h - inside the report room: for --resume, the files of a run folder cut back to the point
 * at which training continues.
 *
 * The earlier process has written rows and events after its last saved state. Training repeats
 * those epochs, so their rows and events must go. A missing file counts as an empty one. A file is
 * replaced in one step, and only if something is removed from it. Threads: safe.
 */
#ifndef STK_REPORT_STATE_EARLIER_H
#define STK_REPORT_STATE_EARLIER_H

#include <stoker/events.h>

/* Where training continues. */
typedef struct stk_resume_point {
    int fold;           /* the fold that continues, from 0 */
    int64_t steps_done; /* steps of that fold */
    int epoch;          /* its last completed epoch; 0: none */
    int best_epoch;     /* its best epoch; 0: none */
} stk_resume_point;

/* Reads the rows of results.csv up to the point, the best one marked; free them with stk_mem_free.
 */
STK_CHECKED stk_status stk_earlier_rows(const char *path, const stk_resume_point *point,
                                        stk_event_epoch **rows, size_t *count, stk_error *err);

/* Removes from events.jsonl the steps and epochs after the point and all lines that are no JSON,
 * half a last line included. *last_t is the latest time of an event. */
STK_CHECKED stk_status stk_earlier_events(const char *path, const stk_resume_point *point,
                                          double *last_t, stk_error *err);

/* Removes half a last line from a file of lines. */
STK_CHECKED stk_status stk_earlier_lines(const char *path, stk_error *err);

#endif
