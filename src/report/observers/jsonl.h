/*
 * jsonl.h - the events of a run as JSON, one object a line.
 *
 * Serves `--json` on standard output and events.jsonl of a run folder. Each object has `t` (seconds
 * since the start of the run), `event` (its kind) and then the fields of event_fields.c under their
 * own names; what is not known is null. Steps are written twice a second at most, and the last one
 * of a supervised command in any case. After an hour steps and samples become rarer (thinning.h).
 * Threads: that of the events.
 */
#ifndef STK_REPORT_OBSERVERS_JSONL_H
#define STK_REPORT_OBSERVERS_JSONL_H

#include <stdint.h>

#include <stoker/events.h>

typedef struct stk_jsonl stk_jsonl;

typedef struct stk_jsonl_config {
    int fd;                  /* borrowed; each line is one write */
    const char *name;        /* what errors call it, such as "standard output"; copied */
    int64_t (*now_ns)(void); /* NULL: stk_clock_ns; tests bring their own */
} stk_jsonl_config;

STK_CHECKED stk_status stk_jsonl_new(stk_jsonl **jsonl, const stk_jsonl_config *config,
                                     stk_error *err);
void stk_jsonl_free(stk_jsonl *jsonl);

/* Valid until stk_jsonl_free. */
const stk_observer *stk_jsonl_observer(stk_jsonl *jsonl);

/* Sets when the following events happened, by stk_clock_ns; 0: when they arrive. */
void stk_jsonl_set_moment_ns(stk_jsonl *jsonl, int64_t moment_ns);

/* The first write that failed; STK_OK when none has. Later events are written all the same. */
STK_CHECKED stk_status stk_jsonl_error(const stk_jsonl *jsonl, stk_error *err);

#endif
