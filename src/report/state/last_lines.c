/* last_lines.c - the rules of run_view.c, read from the last event to the first. */
#include "report/state/last_lines.h"

#include <string.h>

#include "base/mem.h"

bool stk_last_lines_want(stk_event_kind kind) {
    return kind < STK_EVENT_KINDS && stk_event_forms[kind].name != NULL &&
           kind != STK_EVENT_CHECKPOINT && kind != STK_EVENT_BAD_IMAGE;
}

/* Kinds whose last event counts also when an earlier process has emitted it. */
static bool outlives_its_process(stk_event_kind kind) {
    return kind == STK_EVENT_EPOCH || kind == STK_EVENT_SUBMISSION;
}

/* Whether a line that stands before all lines found so far says something new. */
static bool is_new(const stk_last_lines *last, stk_event_kind kind) {
    if (!stk_last_lines_want(kind) || (last->started && !outlives_its_process(kind))) {
        return false;
    }
    return kind == STK_EVENT_ATTEMPT ||
           (!last->found[kind] && !(kind == STK_EVENT_STEP && last->launched)) ||
           (kind == STK_EVENT_EPOCH && !last->found_best);
}

static bool is_true(const stk_json *object, const char *key) {
    return stk_json_bool(stk_json_get(object, key), false);
}

static void add_line(stk_last_lines *last, const char *line, size_t length) {
    if (!STK_RESERVE(last->lines, last->capacity, last->count + 1)) {
        last->failed = true;
        return;
    }
    last->lines[last->count++] = (stk_text_line){line, length};
}

/* Looks at a line that stands before all lines found so far. */
static void look_at_line(stk_last_lines *last, const char *line, size_t length) {
    stk_event_kind kind = stk_event_line_kind(line, length);
    stk_json *object = NULL;
    if (!is_new(last, kind) || stk_json_parse(line, length, &object, NULL) != STK_OK ||
        stk_json_kind_of(object) != STK_JSON_OBJECT) {
        stk_json_free(object);
        return;
    }
    const stk_json *loss = stk_json_get(object, "val_loss");
    bool best = kind == STK_EVENT_EPOCH && is_true(object, "best") && /* and not of a refit */
                (loss == NULL || stk_json_kind_of(loss) != STK_JSON_NULL);
    if (kind != STK_EVENT_EPOCH || !last->found[kind] || best) {
        add_line(last, line, length);
    }
    last->found[kind] = true;
    last->found_best = last->found_best || best;
    last->started = last->started || kind == STK_EVENT_START;
    last->launched = last->launched || (kind == STK_EVENT_ATTEMPT && !is_true(object, "ended"));
    stk_json_free(object);
    last->complete = last->found_best;
    for (stk_event_kind k = 0; k < STK_EVENT_KINDS; k++) {
        bool over = last->found[k] || (last->started && !outlives_its_process(k));
        last->complete = last->complete && (over || !stk_last_lines_want(k));
    }
}

void stk_last_lines_search(stk_last_lines *last, const char *text, size_t size, bool from_start) {
    const char *end = memrchr(text, '\n', size);
    while (end != NULL && !last->complete) {
        const char *before = memrchr(text, '\n', (size_t)(end - text));
        const char *line = before != NULL ? before + 1 : text;
        if (before != NULL || from_start) {
            look_at_line(last, line, (size_t)(end - line));
        }
        end = before;
    }
}

void stk_last_lines_free(stk_last_lines *last) {
    stk_mem_free(last->lines);
    *last = (stk_last_lines){0};
}
