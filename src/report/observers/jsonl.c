/* jsonl.c - one line per event; steps and samples less often than they come. */
#include "report/observers/jsonl.h"

#include "base/clock.h"
#include "base/threads/process.h"
#include "base/error.h"
#include "base/mem.h"
#include "report/text/event_json.h"
#include "report/observers/lines.h"
#include "report/observers/thinning.h"

struct stk_jsonl {
    stk_event_sink sink;     /* receives the events */
    stk_lines lines;         /* its name is owned */
    int64_t (*now_ns)(void); /* never NULL */
    int64_t moment_ns;       /* when the current event happened; 0: now */
    int64_t start_ns;        /* `t` of a line counts from here */
    int64_t step_ns;         /* when the last step was written */
    bool stepped;            /* a step was written */
    bool skipped;            /* the last step came too soon and was not written */
    stk_event_step step;     /* the step that was skipped */
    double sample_s;         /* when the last sample that was written was taken */
    stk_str line;            /* reused for every event */
    stk_error error;         /* the first error */
};

/* ---- lines ---- */

static int64_t moment(const stk_jsonl *jsonl) {
    return jsonl->moment_ns != 0 ? jsonl->moment_ns : jsonl->now_ns();
}

/* A time in seconds since the start of the run. */
static double seconds_at(const stk_jsonl *jsonl, int64_t at_ns) {
    return (double)(at_ns - jsonl->start_ns) * 1e-9;
}

static void write_line(stk_jsonl *jsonl, stk_event_kind kind, const void *event) {
    stk_str_clear(&jsonl->line);
    stk_event_put_line(&jsonl->line, seconds_at(jsonl, moment(jsonl)), kind, event);
    stk_status status =
        stk_str_ok(&jsonl->line)
            ? stk_lines_write(&jsonl->lines, jsonl->line.text, jsonl->line.length, &jsonl->error)
            : STK_FAIL_MEMORY(&jsonl->error, jsonl->lines.name);
    (void)status; /* stored in jsonl->error: a callback cannot return it */
}

/* ---- events ---- */

/* Whether a step is to be written: not too soon after the one before. */
static bool step_is_due(stk_jsonl *jsonl, const stk_event_step *event) {
    int64_t now = moment(jsonl);
    jsonl->skipped = jsonl->stepped && stk_thinning_drops_step(seconds_at(jsonl, now),
                                                               seconds_at(jsonl, jsonl->step_ns));
    if (jsonl->skipped) {
        jsonl->step = *event;
        return false;
    }
    jsonl->stepped = true;
    jsonl->step_ns = now;
    return true;
}

/* The same for a sample. Many may arrive at once after a validation, so the time at which each was
 * taken counts. */
static bool sample_is_due(stk_jsonl *jsonl, const stk_event_sample *event) {
    if (stk_thinning_drops_sample(event->at_s, jsonl->sample_s)) {
        return false;
    }
    jsonl->sample_s = event->at_s;
    return true;
}

/* The last step of a command is written in any case: it says how far the command came. */
static void flush_step(stk_jsonl *jsonl, const stk_event_attempt *event) {
    if (event->ended && jsonl->skipped) {
        write_line(jsonl, STK_EVENT_STEP, &jsonl->step);
    }
    jsonl->skipped = false;
}

static void jsonl_take(void *user, stk_event_kind kind, const void *event) {
    stk_jsonl *jsonl = user;
    bool due = stk_event_forms[kind].name != NULL;
    if (kind == STK_EVENT_START) {
        jsonl->start_ns = ((const stk_event_start *)event)->start_ns;
    } else if (kind == STK_EVENT_STEP) {
        due = step_is_due(jsonl, event);
    } else if (kind == STK_EVENT_SAMPLE) {
        due = sample_is_due(jsonl, event);
    } else if (kind == STK_EVENT_ATTEMPT) {
        flush_step(jsonl, event);
    }
    if (due) {
        write_line(jsonl, kind, event);
    }
}

/* ---- the header's functions ---- */

stk_status stk_jsonl_new(stk_jsonl **out, const stk_jsonl_config *config, stk_error *err) {
    stk_jsonl *jsonl = stk_mem_new(1, sizeof *jsonl);
    char *name = stk_mem_strdup(config->name);
    if (jsonl == NULL || name == NULL) {
        stk_mem_free(jsonl);
        stk_mem_free(name);
        return STK_FAIL_MEMORY(err, config->name);
    }
    jsonl->lines = (stk_lines){.fd = config->fd, .name = name};
    jsonl->now_ns = config->now_ns != NULL ? config->now_ns : stk_clock_ns;
    jsonl->start_ns = stk_process_own_start_ns(); /* until the start event says better */
    stk_event_sink_open(&jsonl->sink, jsonl_take, jsonl);
    *out = jsonl;
    return STK_OK;
}

void stk_jsonl_free(stk_jsonl *jsonl) {
    if (jsonl != NULL) {
        stk_mem_free((void *)jsonl->lines.name);
        stk_str_free(&jsonl->line);
        stk_mem_free(jsonl);
    }
}

void stk_jsonl_set_moment_ns(stk_jsonl *jsonl, int64_t moment_ns) {
    jsonl->moment_ns = moment_ns;
}

const stk_observer *stk_jsonl_observer(stk_jsonl *jsonl) {
    return &jsonl->sink.observer;
}

stk_status stk_jsonl_error(const stk_jsonl *jsonl, stk_error *err) {
    return stk_error_pass(&jsonl->error, err);
}
