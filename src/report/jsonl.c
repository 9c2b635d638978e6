/*
 * jsonl.c - events to JSON lines.
 *
 * One table per kind of event says which fields it has, so that a new field is one new row.
 */
#include "report/jsonl.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/clock.h"
#include "base/error.h"
#include "base/mem.h"
#include "report/lines.h"
#include "report/text.h"

/* Between two step events; readers want to see life, not every step of a fast epoch. */
#define STEP_GAP_NS INT64_C(500000000)

typedef enum field_kind {
    TEXT,    /* const char *, NULL is null */
    COUNT,   /* int, negative is null */
    COUNT64, /* int64_t, negative is null */
    NUMBER,  /* double, to six digits */
    SECONDS, /* double, to the millisecond */
    TRUTH,   /* bool */
    TIMES    /* stk_times: an object */
} field_kind;

typedef struct field {
    const char *key;
    field_kind kind;
    size_t offset; /* in the event's struct */
} field;

#define FIELD(type, kind, name) \
    { #name, kind, offsetof(type, name) }
#define COUNT_OF(array) (sizeof(array) / sizeof *(array))

static const field start_fields[] = {
    FIELD(stk_event_start, TEXT, chosen),
    FIELD(stk_event_start, TEXT, run_dir),
    FIELD(stk_event_start, TEXT, data),
    FIELD(stk_event_start, TEXT, model),
    FIELD(stk_event_start, TEXT, device),
    FIELD(stk_event_start, TEXT, precision),
    FIELD(stk_event_start, COUNT, img_size),
    FIELD(stk_event_start, COUNT, batch),
    FIELD(stk_event_start, COUNT, workers),
    FIELD(stk_event_start, COUNT, prefetch),
    FIELD(stk_event_start, COUNT, classes),
    FIELD(stk_event_start, COUNT, folds),
    FIELD(stk_event_start, COUNT, cores),
    FIELD(stk_event_start, COUNT64, memory_bytes),
    FIELD(stk_event_start, TEXT, device_name),
    FIELD(stk_event_start, COUNT64, device_bytes),
    FIELD(stk_event_start, COUNT64, train_images),
    FIELD(stk_event_start, COUNT64, val_images),
    FIELD(stk_event_start, COUNT64, test_images),
    FIELD(stk_event_start, SECONDS, budget_s),
};

static const field plan_fields[] = {
    FIELD(stk_event_plan, COUNT, fold),
    FIELD(stk_event_plan, COUNT, epochs),
    FIELD(stk_event_plan, COUNT64, steps_per_epoch),
    FIELD(stk_event_plan, SECONDS, seconds_per_epoch),
    FIELD(stk_event_plan, SECONDS, total_s),
    FIELD(stk_event_plan, SECONDS, left_s),
    FIELD(stk_event_plan, SECONDS, reserve_s),
};

static const field decision_fields[] = {
    FIELD(stk_event_decision, TEXT, what),
    FIELD(stk_event_decision, TEXT, why),
};

static const field step_fields[] = {
    FIELD(stk_event_step, COUNT, fold),
    FIELD(stk_event_step, COUNT, epoch),
    FIELD(stk_event_step, COUNT, epochs),
    FIELD(stk_event_step, COUNT64, step),
    FIELD(stk_event_step, COUNT64, steps),
    FIELD(stk_event_step, COUNT64, steps_done),
    FIELD(stk_event_step, NUMBER, loss),
    FIELD(stk_event_step, NUMBER, acc1),
    FIELD(stk_event_step, NUMBER, lr),
    FIELD(stk_event_step, NUMBER, steps_per_second),
    FIELD(stk_event_step, NUMBER, images_per_second),
    FIELD(stk_event_step, NUMBER, wait_fraction),
    FIELD(stk_event_step, SECONDS, left_s),
    FIELD(stk_event_step, TIMES, times),
};

static const field epoch_fields[] = {
    FIELD(stk_event_epoch, COUNT, fold),
    FIELD(stk_event_epoch, COUNT, epoch),
    FIELD(stk_event_epoch, COUNT, epochs),
    FIELD(stk_event_epoch, NUMBER, train_loss),
    FIELD(stk_event_epoch, NUMBER, train_acc1),
    FIELD(stk_event_epoch, NUMBER, val_loss),
    FIELD(stk_event_epoch, NUMBER, val_acc1),
    FIELD(stk_event_epoch, NUMBER, val_acc5),
    FIELD(stk_event_epoch, NUMBER, lr),
    FIELD(stk_event_epoch, NUMBER, images_per_second),
    FIELD(stk_event_epoch, NUMBER, wait_fraction),
    FIELD(stk_event_epoch, SECONDS, seconds),
    FIELD(stk_event_epoch, TRUTH, best),
    FIELD(stk_event_epoch, TIMES, times),
};

static const field times_fields[] = {
    FIELD(stk_times, SECONDS, read_s),     FIELD(stk_times, SECONDS, decode_s),
    FIELD(stk_times, SECONDS, queue_s),    FIELD(stk_times, SECONDS, copy_s),
    FIELD(stk_times, SECONDS, compute_s),  FIELD(stk_times, SECONDS, update_s),
    FIELD(stk_times, SECONDS, validate_s), FIELD(stk_times, SECONDS, checkpoint_s),
    FIELD(stk_times, SECONDS, other_s),    FIELD(stk_times, SECONDS, total_s),
};

/* Its cores stand behind them. */
static const field sample_fields[] = {
    FIELD(stk_event_sample, SECONDS, at_s),
    FIELD(stk_event_sample, NUMBER, gpu_util),
    FIELD(stk_event_sample, NUMBER, sm_activity),
    FIELD(stk_event_sample, NUMBER, gpu_memory_used),
    FIELD(stk_event_sample, NUMBER, gpu_memory_total),
    FIELD(stk_event_sample, NUMBER, gpu_power_w),
    FIELD(stk_event_sample, NUMBER, gpu_temperature_c),
    FIELD(stk_event_sample, NUMBER, gpu_clock_mhz),
    FIELD(stk_event_sample, NUMBER, gpu_clock_most_mhz),
    FIELD(stk_event_sample, TEXT, gpu_throttled),
    FIELD(stk_event_sample, NUMBER, pcie_in),
    FIELD(stk_event_sample, NUMBER, pcie_out),
    FIELD(stk_event_sample, NUMBER, cpu),
    FIELD(stk_event_sample, NUMBER, cpu_own),
    FIELD(stk_event_sample, NUMBER, iowait),
    FIELD(stk_event_sample, NUMBER, resident),
    FIELD(stk_event_sample, NUMBER, memory_used),
    FIELD(stk_event_sample, NUMBER, disk_read),
    FIELD(stk_event_sample, NUMBER, disk_written),
    FIELD(stk_event_sample, NUMBER, net_in),
    FIELD(stk_event_sample, NUMBER, net_out),
    FIELD(stk_event_sample, NUMBER, images_per_second),
    FIELD(stk_event_sample, NUMBER, wait_fraction),
    FIELD(stk_event_sample, COUNT, batches_ready),
    FIELD(stk_event_sample, COUNT, slots),
    FIELD(stk_event_sample, COUNT, workers),
};

/* Its remedies stand behind them. */
static const field verdict_fields[] = {
    FIELD(stk_event_verdict, TEXT, name),
    FIELD(stk_event_verdict, TEXT, text),
    FIELD(stk_event_verdict, TEXT, evidence),
    FIELD(stk_event_verdict, TRUTH, fine),
    FIELD(stk_event_verdict, TRUTH, first),
    FIELD(stk_event_verdict, TEXT, batch),
    FIELD(stk_event_verdict, NUMBER, images_per_second),
    FIELD(stk_event_verdict, NUMBER, wait_fraction),
    FIELD(stk_event_verdict, NUMBER, gpu_util),
    FIELD(stk_event_verdict, NUMBER, gpu_memory_used),
    FIELD(stk_event_verdict, NUMBER, gpu_memory_total),
};

static const field remedy_fields[] = {
    FIELD(stk_remedy, TEXT, text),
    FIELD(stk_remedy, TEXT, flags),
    FIELD(stk_remedy, NUMBER, gain),
};

static const field checkpoint_fields[] = {
    FIELD(stk_event_checkpoint, TEXT, path),
    FIELD(stk_event_checkpoint, TRUTH, best),
};

static const field bad_image_fields[] = {
    FIELD(stk_event_bad_image, TEXT, path),
    FIELD(stk_event_bad_image, TEXT, split),
    FIELD(stk_event_bad_image, TEXT, reason),
};

static const field submission_fields[] = {
    FIELD(stk_event_submission, TEXT, path),           FIELD(stk_event_submission, TEXT, status),
    FIELD(stk_event_submission, COUNT64, rows),        FIELD(stk_event_submission, COUNT, models),
    FIELD(stk_event_submission, COUNT, models_wanted),
};

static const field summary_fields[] = {
    FIELD(stk_summary, TEXT, status),
    FIELD(stk_summary, TEXT, stop_reason),
    FIELD(stk_summary, NUMBER, best_acc1),
    FIELD(stk_summary, TEXT, metric),
    FIELD(stk_summary, NUMBER, best_metric),
    FIELD(stk_summary, COUNT, epochs_done),
    FIELD(stk_summary, COUNT, folds_done),
    FIELD(stk_summary, COUNT, folds_planned),
    FIELD(stk_summary, NUMBER, oof_acc1),
    FIELD(stk_summary, NUMBER, oof_metric),
    FIELD(stk_summary, NUMBER, images_per_second),
    FIELD(stk_summary, NUMBER, wait_fraction),
    FIELD(stk_summary, SECONDS, budget_s),
    FIELD(stk_summary, SECONDS, used_s),
    FIELD(stk_summary, SECONDS, reserve_s),
    FIELD(stk_summary, COUNT, batch),
    FIELD(stk_summary, COUNT, workers),
    FIELD(stk_summary, COUNT, prefetch),
    FIELD(stk_summary, TEXT, device),
    FIELD(stk_summary, TEXT, precision),
    FIELD(stk_summary, COUNT64, bad_images),
    FIELD(stk_summary, TEXT, verdict),
    FIELD(stk_summary, TEXT, submission),
};

struct stk_jsonl {
    stk_observer observer;
    stk_lines lines;         /* its name is owned */
    int64_t (*now_ns)(void); /* never NULL */
    int64_t start_ns;        /* what `t` counts from */
    int64_t step_ns;         /* when the last step event was written */
    bool stepped;            /* there was one */
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

static void put_fields(stk_json_writer *writer, const field *fields, size_t count,
                       const void *event) {
    for (size_t i = 0; i < count; i++) {
        const void *at = (const char *)event + fields[i].offset;
        stk_json_key(writer, fields[i].key);
        switch (fields[i].kind) {
        case TEXT:
            put_text(writer, *(const char *const *)at);
            break;
        case COUNT:
            put_count(writer, *(const int *)at);
            break;
        case COUNT64:
            put_count(writer, *(const int64_t *)at);
            break;
        case NUMBER:
            put_number(writer, *(const double *)at);
            break;
        case SECONDS:
            put_seconds(writer, *(const double *)at);
            break;
        case TRUTH:
            stk_json_put_bool(writer, *(const bool *)at);
            break;
        case TIMES:
            stk_json_begin_object(writer);
            put_fields(writer, times_fields, COUNT_OF(times_fields), at);
            stk_json_end_object(writer);
            break;
        }
    }
}

/* ---- lines ---- */

static stk_json_writer begin_line(stk_jsonl *jsonl, const char *event) {
    stk_str_clear(&jsonl->line);
    stk_json_writer writer = stk_json_write_to(&jsonl->line, 0);
    stk_json_begin_object(&writer);
    stk_json_key(&writer, "t");
    put_seconds(&writer, (double)(jsonl->now_ns() - jsonl->start_ns) * 1e-9);
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

static void put_event(stk_jsonl *jsonl, const char *name, const field *fields, size_t count,
                      const void *event) {
    stk_json_writer writer = begin_line(jsonl, name);
    put_fields(&writer, fields, count, event);
    end_line(jsonl, &writer);
}

/* ---- callbacks ---- */

static void on_start(void *user, const stk_event_start *event) {
    stk_jsonl *jsonl = user;
    jsonl->start_ns = event->start_ns;
    put_event(jsonl, "start", start_fields, COUNT_OF(start_fields), event);
}

static void on_plan(void *user, const stk_event_plan *event) {
    put_event(user, "plan", plan_fields, COUNT_OF(plan_fields), event);
}

static void on_decision(void *user, const stk_event_decision *event) {
    put_event(user, "decision", decision_fields, COUNT_OF(decision_fields), event);
}

static void on_step(void *user, const stk_event_step *event) {
    stk_jsonl *jsonl = user;
    int64_t now = jsonl->now_ns();
    if (jsonl->stepped && now - jsonl->step_ns < STEP_GAP_NS) {
        return;
    }
    jsonl->stepped = true;
    jsonl->step_ns = now;
    put_event(jsonl, "step", step_fields, COUNT_OF(step_fields), event);
}

static void on_epoch(void *user, const stk_event_epoch *event) {
    put_event(user, "epoch", epoch_fields, COUNT_OF(epoch_fields), event);
}

static void on_checkpoint(void *user, const stk_event_checkpoint *event) {
    put_event(user, "checkpoint", checkpoint_fields, COUNT_OF(checkpoint_fields), event);
}

static void on_bad_image(void *user, const stk_event_bad_image *event) {
    put_event(user, "bad_image", bad_image_fields, COUNT_OF(bad_image_fields), event);
}

static void on_submission(void *user, const stk_event_submission *event) {
    put_event(user, "submission", submission_fields, COUNT_OF(submission_fields), event);
}

static void on_sample(void *user, const stk_event_sample *event) {
    stk_json_writer writer = begin_line(user, "sample");
    put_fields(&writer, sample_fields, COUNT_OF(sample_fields), event);
    stk_json_key(&writer, "cores");
    stk_json_begin_array(&writer);
    for (int i = 0; i < event->core_count; i++) {
        put_number(&writer, round(event->cores[i]));
    }
    stk_json_end_array(&writer);
    end_line(user, &writer);
}

static void on_verdict(void *user, const stk_event_verdict *event) {
    stk_json_writer writer = begin_line(user, "verdict");
    put_fields(&writer, verdict_fields, COUNT_OF(verdict_fields), event);
    stk_json_key(&writer, "remedies");
    stk_json_begin_array(&writer);
    for (int i = 0; i < event->remedy_count; i++) {
        stk_json_begin_object(&writer);
        put_fields(&writer, remedy_fields, COUNT_OF(remedy_fields), &event->remedies[i]);
        stk_json_end_object(&writer);
    }
    stk_json_end_array(&writer);
    end_line(user, &writer);
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
    jsonl->start_ns = stk_clock_process_start_ns(); /* until the start event says better */
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
    put_fields(writer, summary_fields, COUNT_OF(summary_fields), summary);
}
