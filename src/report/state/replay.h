/*
 * replay.h - events.jsonl read back: every line becomes the event that it was written from.
 *
 * A file of any size is read with bounded memory. Lines that are no event are skipped: half a line
 * from a disk that was full, somebody else's text. A field that a line lacks is not known (NaN, -1,
 * NULL). Threads: callbacks run on the caller's thread.
 */
#ifndef STK_REPORT_STATE_REPLAY_H
#define STK_REPORT_STATE_REPLAY_H

#include <stddef.h>
#include <stdint.h>

#include <stoker/events.h>

#include "base/text/json.h"
#include "report/text/event_json.h"

typedef struct stk_replay {
    const stk_observer *observer;     /* borrowed; receives the events */
    void (*at)(void *user, double t); /* called with the time of each event before it; or NULL */
    void *user;                       /* the first argument of `at` */
    int64_t events;                   /* counted here: lines that became an event */
    int64_t skipped;                  /* counted here: lines that are no event */
    stk_event_arrays arrays;          /* of the event that is emitted */
} stk_replay;

/* One line, without its line break; false when it is no event. */
bool stk_replay_line(stk_replay *replay, const char *line, size_t length);

/* Emits what summary.json says as a stop event. */
void stk_replay_summary(stk_replay *replay, const stk_json *summary);

/* All whole lines of a file, which may be growing. */
STK_CHECKED stk_status stk_replay_file(stk_replay *replay, const char *path, stk_error *err);

#endif
