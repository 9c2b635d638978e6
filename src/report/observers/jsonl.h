/*
 * jsonl.h - the events of a run as JSON, one object a line.
 *
 * Serves `--json` on standard output and events.jsonl of a run folder. Each object has `t` (seconds
 * since the start of the run), `event` (its kind) and then the fields of the event's struct in
 * stoker/events.h under their own names; what is not known is null. Step events are passed on twice
 * a second at most, and the last one before a command's end in any case; after an hour steps and
 * samples come less and less often, a tenth of them in the end. Threads: that of the events.
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

/* Events that are told from now on happened at this reading of the clock; 0: when they are told. */
void stk_jsonl_at(stk_jsonl *jsonl, int64_t moment_ns);

/* The first write that failed, STK_OK when all went well. Later events are tried all the same. */
STK_CHECKED stk_status stk_jsonl_error(const stk_jsonl *jsonl, stk_error *err);

#endif
