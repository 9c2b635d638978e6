/*
 * last_lines.h - inside the report room: the lines of events.jsonl that decide how a run stands.
 *
 * An event that matters may lie far back (a verdict of an hour ago), and the file may be long. So
 * the search goes from the last line towards the first and keeps only lines that still matter to a
 * view (run_view.h) of the whole file. These lines, fed in the order of the file, give a view
 * that says the same of the last process. Of earlier processes it has only the last epoch, the best
 * epoch and the submission; checkpoints and bad images are missing, and attempts beyond
 * STK_VIEW_ATTEMPTS may differ. Only lines that can matter are parsed, which makes the search
 * cheap. Threads: one at a time.
 */
#ifndef STK_REPORT_STATE_LAST_LINES_H
#define STK_REPORT_STATE_LAST_LINES_H

#include "report/text/event_json.h"

typedef struct stk_text_line {
    const char *text; /* within the text that was searched */
    size_t length;    /* without the line break */
} stk_text_line;

/* What a search has found. It starts zeroed and ends with stk_last_lines_free. */
typedef struct stk_last_lines {
    stk_text_line *lines; /* owned: the last of the file first */
    size_t count;
    size_t capacity;
    bool found[STK_EVENT_KINDS];
    bool found_best; /* found an epoch that was the best */
    bool started;    /* found the start of the last process; earlier lines are of another process */
    bool launched;   /* found the start of the last attempt; earlier steps are of another attempt */
    bool complete;   /* no earlier line can matter */
    bool failed;     /* no memory */
} stk_last_lines;

/* Whether events of a kind say how a run stands; lines of other kinds are skipped. */
bool stk_last_lines_want(stk_event_kind kind);

/*
 * Searches the whole lines of `text`, which is the end of a file. `from_start`: the text begins
 * with a line; otherwise the bytes before the first line break are half a line.
 */
void stk_last_lines_search(stk_last_lines *last, const char *text, size_t size, bool from_start);
void stk_last_lines_free(stk_last_lines *last);

#endif
