/*
 * jsonl.c - events to JSON lines, by the tables of event_fields.c.
 */
#include "report/observers/jsonl.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/clock.h"
#include "base/error.h"
#include "base/mem.h"
#include "base/threads/process.h"
#include "report/text/event_fields.h"
#include "report/observers/lines.h"
#include "report/text/text.h"
#include "report/observers/thinning.h"

/* Between two step events; readers want to see life, not every step of a fast epoch. */
#define STEP_GAP_NS 500e6

struct stk_jsonl {
    stk_observer observer;
    stk_lines lines;         /* its name is owned */
    int64_t (*now_ns)(void); /* never NULL */
    int64_t moment_ns;       /* of the events that are told now; 0: by now_ns */
    int64_t start_ns;        /* what `t` counts from */
    int64_t step_ns;         /* when the last step event was written */
    bool stepped;            /* there was one */
    bool passed_over;        /* the next was told too soon behind it */
    stk_event_step step;     /* of a command, the last that was told; it points to nothing */
    double sample_s;         /* when the last sample was taken that was written */
    stk_str line;            /* reused for every event */
    stk_error error;         /* the first that came up */
};

/* ---- values ---- */

/* Six digits, as in results.csv: what a float of the engine is good for. */
static void put_number(stk_json_writer *writer, double value) {
    char text[32];
    snprintf(text, sizeof text, "%.6g", value);
    stk_json_put_double(writer, isfinite(value) ? strtod(text, NULL) : value);
}

static void put_seconds(stk_json_writer *writer, double value) {
    stk_json_put_double(writer, round(value * 1000) / 1000);
}

static void put_count(stk_json_writer *writer, int64_t value) {
    if (value < 0) {
        stk_json_put_null(writer);
    } else {
        stk_json_put_int(writer, value);
    }
}

static void put_text(stk_json_writer *writer, const char *text) {
    stk_str clean = {0};
    if (text != NULL) {
        stk_report_append_utf8(&clean, text);
    }
    writer->out->failed = writer->out->failed || !stk_str_ok(&clean);
    stk_json_put_string(writer, text != NULL ? stk_str_text(&clean) : NULL);
    stk_str_free(&clean);
}

static void put_fields(stk_json_writer *writer, const stk_fields *fields, const void *event) {
    for (size_t i = 0; i < fields->count; i++) {
        const void *at = (const char *)event + fields->rows[i].offset;
        stk_json_key(writer, fields->rows[i].key);
        switch (fields->rows[i].kind) {
        case STK_FIELD_TEXT:
            put_text(writer, *(const char *const *)at);
            break;
        case STK_FIELD_COUNT:
            put_count(writer, *(const int *)at);
            break;
        case STK_FIELD_COUNT64:
            put_count(writer, *(const int64_t *)at);
            break;
        case STK_FIELD_NUMBER:
            put_number(writer, *(const double *)at);
            break;
        case STK_FIELD_SECONDS:
            put_seconds(writer, *(const double *)at);
            break;
        case STK_FIELD_TRUTH:
            stk_json_put_bool(writer, *(const bool *)at);
            break;
        case STK_FIELD_TIMES:
            stk_json_begin_object(writer);
            put_fields(writer, &stk_times_fields, at);
            stk_json_end_object(writer);
            break;
        }
    }
}

/* ---- lines ---- */

static int64_t moment(const stk_jsonl *jsonl) {
    return jsonl->moment_ns != 0 ? jsonl->moment_ns : jsonl->now_ns();
}

static stk_json_writer begin_line(stk_jsonl *jsonl, const char *event) {
    stk_str_clear(&jsonl->line);
    stk_json_writer writer = stk_json_write_to(&jsonl->line, 0);
    stk_json_begin_object(&writer);
    stk_json_key(&writer, "t");
    put_seconds(&writer, (double)(moment(jsonl) - jsonl->start_ns) * 1e-9);
    stk_json_key(&writer, "event");
    stk_json_put_string(&writer, event);
    return writer;
}

static void end_line(stk_jsonl *jsonl, stk_json_writer *writer) {
    stk_json_end_object(writer);
    stk_str_append(&jsonl->line, "\n");
    stk_status status =
        stk_str_ok(&jsonl->line)
            ? stk_lines_write(&jsonl->lines, jsonl->line.text, jsonl->line.length, &jsonl->error)
            : STK_FAIL_MEMORY(&jsonl->error, jsonl->lines.name);
    (void)status; /* kept in jsonl->error: a callback has nobody to tell */
}

static void put_event(stk_jsonl *jsonl, const stk_fields *fields, const void *event) {
    stk_json_writer writer = begin_line(jsonl, fields->event);
    put_fields(&writer, fields, event);
    end_line(jsonl, &writer);
}

/* ---- callbacks ---- */

static void on_start(void *user, const stk_event_start *event) {
    stk_jsonl *jsonl = user;
    jsonl->start_ns = event->start_ns;
    put_event(jsonl, &stk_start_fields, event);
}

static void on_plan(void *user, const stk_event_plan *event) {
    put_event(user, &stk_plan_fields, event);
}

static void on_decision(void *user, const stk_event_decision *event) {
    put_event(user, &stk_decision_fields, event);
}

static void on_step(void *user, const stk_event_step *event) {
    stk_jsonl *jsonl = user;
    int64_t now = moment(jsonl);
    double times = stk_thinning_times((double)(now - jsonl->start_ns) * 1e-9);
    jsonl->passed_over = jsonl->stepped && (double)(now - jsonl->step_ns) < times * STEP_GAP_NS;
    if (jsonl->passed_over) {
        jsonl->step = *event;
        return;
    }
    jsonl->stepped = true;
    jsonl->step_ns = now;
    put_event(jsonl, &stk_step_fields, event);
}

static void on_epoch(void *user, const stk_event_epoch *event) {
    put_event(user, &stk_epoch_fields, event);
}

static void on_checkpoint(void *user, const stk_event_checkpoint *event) {
    put_event(user, &stk_checkpoint_fields, event);
}

static void on_bad_image(void *user, const stk_event_bad_image *event) {
    put_event(user, &stk_bad_image_fields, event);
}

static void on_submission(void *user, const stk_event_submission *event) {
    put_event(user, &stk_submission_fields, event);
}

/* Samples may come many at a time, behind a validation: what counts is when each was taken. */
static void on_sample(void *user, const stk_event_sample *event) {
    stk_jsonl *jsonl = user;
    if (stk_thinning_drops(event->at_s, jsonl->sample_s)) {
        return;
    }
    jsonl->sample_s = event->at_s;
    stk_json_writer writer = begin_line(jsonl, "sample");
    put_fields(&writer, &stk_sample_fields, event);
    stk_json_key(&writer, "cores");
    stk_json_begin_array(&writer);
    for (int i = 0; i < event->core_count; i++) {
        put_number(&writer, roundf(event->cores[i]));
    }
    stk_json_end_array(&writer);
    end_line(user, &writer);
}

static void on_verdict(void *user, const stk_event_verdict *event) {
    stk_json_writer writer = begin_line(user, "verdict");
    put_fields(&writer, &stk_verdict_fields, event);
    stk_json_key(&writer, "remedies");
    stk_json_begin_array(&writer);
    for (int i = 0; i < event->remedy_count; i++) {
        stk_json_begin_object(&writer);
        put_fields(&writer, &stk_remedy_fields, &event->remedies[i]);
        stk_json_end_object(&writer);
    }
    stk_json_end_array(&writer);
    end_line(user, &writer);
}

/* How far a command came is told with its end, however soon that was behind the step before. */
static void on_attempt(void *user, const stk_event_attempt *event) {
    stk_jsonl *jsonl = user;
    if (event->ended && jsonl->passed_over) {
        put_event(jsonl, &stk_step_fields, &jsonl->step);
    }
    jsonl->passed_over = false;
    put_event(jsonl, &stk_attempt_fields, event);
}

static void on_warning(void *user, const char *text) {
    stk_json_writer writer = begin_line(user, "warning");
    stk_json_key(&writer, "text");
    put_text(&writer, text);
    end_line(user, &writer);
}

static void on_stop(void *user, const stk_summary *summary) {
    stk_json_writer writer = begin_line(user, "stop");
    stk_jsonl_put_summary(&writer, summary);
    end_line(user, &writer);
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
    jsonl->observer = (stk_observer){
        .user = jsonl,
        .start = on_start,
        .plan = on_plan,
        .decision = on_decision,
        .step = on_step,
        .epoch = on_epoch,
        .checkpoint = on_checkpoint,
        .bad_image = on_bad_image,
        .submission = on_submission,
        .warning = on_warning,
        .stop = on_stop,
        .sample = on_sample,
        .verdict = on_verdict,
        .attempt = on_attempt,
    };
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

void stk_jsonl_at(stk_jsonl *jsonl, int64_t moment_ns) {
    jsonl->moment_ns = moment_ns;
}

const stk_observer *stk_jsonl_observer(stk_jsonl *jsonl) {
    return &jsonl->observer;
}

stk_status stk_jsonl_error(const stk_jsonl *jsonl, stk_error *err) {
    if (err != NULL && err->status == STK_OK) {
        *err = jsonl->error;
    }
    return jsonl->error.status;
}

void stk_jsonl_put_summary(stk_json_writer *writer, const stk_summary *summary) {
    put_fields(writer, &stk_summary_fields, summary);
    if (summary->command == NULL) {
        return;
    }
    put_fields(writer, &stk_summary_command_fields, summary);
    stk_json_key(writer, "attempts");
    stk_json_begin_array(writer);
    for (int i = 0; i < summary->attempt_count; i++) {
        stk_json_begin_object(writer);
        put_fields(writer, &stk_attempt_done_fields, &summary->attempts[i]);
        stk_json_end_object(writer);
    }
    stk_json_end_array(writer);
}
