/*
 * earlier.h - inside the report room: what an earlier process left in the files of a run folder.
 *
 * A missing file counts as an empty one. Files are replaced in one step, and only where something
 * is taken out of them.
 */
#ifndef STK_REPORT_STATE_EARLIER_H
#define STK_REPORT_STATE_EARLIER_H

#include <stoker/events.h>

/* Up to where the files of an earlier process count. */
typedef struct stk_runfiles_point {
    int fold;
    int64_t steps_done; /* of that fold */
    int epoch;          /* the last one of that fold which is done; 0: none is */
    int best_epoch;     /* of that fold; 0: none */
} stk_runfiles_point;

/* The rows of results.csv up to the point, freed with stk_mem_free; the file is left alone. */
STK_CHECKED stk_status stk_earlier_rows(const char *path, const stk_runfiles_point *point,
                                        stk_event_epoch **rows, size_t *count, stk_error *err);

/* Takes steps and epochs behind the point, and half a last line, out of events.jsonl. */
STK_CHECKED stk_status stk_earlier_events(const char *path, const stk_runfiles_point *point,
                                          double *last_t, stk_error *err);

/* Takes half a last line out of a file of lines. */
STK_CHECKED stk_status stk_earlier_lines(const char *path, stk_error *err);

#endif
