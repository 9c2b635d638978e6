/*
 * replay.h - events.jsonl told again: every line becomes the event that it was written from.
 *
 * A file of any size is read with bounded memory. Lines that are no event (half a line of a disk
 * that was full, somebody else's text) are passed over; what a line does not say is not known
 * (NaN, -1, NULL). Threads: that of the call.
 */
#ifndef STK_REPORT_STATE_REPLAY_H
#define STK_REPORT_STATE_REPLAY_H

#include <stddef.h>
#include <stdint.h>

#include <stoker/events.h>

#include "base/text/json.h"

#define STK_REPLAY_MOST_CORES 1024
#define STK_REPLAY_MOST_ATTEMPTS 128 /* of a summary; later ones are passed over */

/* Who is told. */
typedef struct stk_replay {
    const stk_observer *observer;       /* borrowed */
    void (*at)(void *user, double t);   /* called before each event; NULL: nobody cares */
    void *user;                         /* of `at` */
    int64_t events;                     /* counted here: that were told */
    int64_t passed_over;                /* lines that were no event */
    float cores[STK_REPLAY_MOST_CORES]; /* of the sample that is told */
} stk_replay;

/* One line, without its line break; false when it is no event that the observer could be told. */
bool stk_replay_line(stk_replay *replay, const char *line, size_t length);

/* One attempt of a supervised command, from its event; texts are those of the JSON. */
stk_event_attempt stk_replay_read_attempt(const stk_json *event);

/* What summary.json or a stop event says, but for the attempts; texts are those of the JSON. */
stk_summary stk_replay_read_summary(const stk_json *summary);

/* Tells what summary.json says as a stop event. */
void stk_replay_summary(const stk_observer *observer, const stk_json *summary);

/* All whole lines of a file, which may be growing. */
STK_CHECKED stk_status stk_replay_file(stk_replay *replay, const char *path, stk_error *err);

#endif
