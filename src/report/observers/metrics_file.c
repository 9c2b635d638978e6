/*
 * metrics_file.c - events to Prometheus text.
 *
 * One table says which figure comes from which field of which event; the last event counts. Names
 * and units follow Prometheus: seconds, bytes, ratios from 0 to 1. A figure that is not known is
 * left out.
 */
#include "report/observers/metrics_file.h"

#include <math.h>
#include <stddef.h>

#include "base/clock.h"
#include "base/error.h"
#include "base/files/file.h"
#include "base/files/write_target.h"
#include "base/mem.h"
#include "base/str.h"
#include "base/threads/timed_call.h"
#include "report/state/run_view.h"
#include "report/text/text.h"
#include "report/text/time_parts.h"

/* Least time between two writes. Collectors read the file about every 15 s. */
#define WRITE_GAP_NS INT64_C(1000000000)

/* How long a write may take. A longer one is taken for a disk that hangs: nothing is written until
 * it ends, and the run does not wait for it again. */
#define WAIT_NS INT64_C(1000000000)

/* Where a figure comes from: the last event of a kind; for the batch size, start or summary. */
typedef enum metric_source {
    FROM_START,
    FROM_STEP,
    FROM_EPOCH,
    FROM_SAMPLE,
    FROM_BATCH
} metric_source;

typedef enum metric_type { NUMBER, COUNT, COUNT64 } metric_type; /* double, int, int64_t */

typedef struct metric {
    const char *name; /* without "stoker_" in front */
    const char *help;
    metric_source from;
    metric_type type;
    size_t offset; /* in the event's struct */
    double scale;  /* to the base unit */
} metric;

#define START(kind, field) FROM_START, kind, offsetof(stk_event_start, field), 1
#define STEP(kind, field) FROM_STEP, kind, offsetof(stk_event_step, field)
#define EPOCH(field) FROM_EPOCH, NUMBER, offsetof(stk_event_epoch, field)
#define SAMPLE(field) FROM_SAMPLE, NUMBER, offsetof(stk_event_sample, field)
#define SAMPLE_COUNT(field) FROM_SAMPLE, COUNT, offsetof(stk_event_sample, field), 1
#define PERCENT 0.01

static const metric metrics[] = {
    {"folds", "Folds that were planned.", START(COUNT, folds)},
    {"batch_size", "Images of a step, as chosen at the start; once finished, as used.", FROM_BATCH,
     COUNT, 0, 1},
    {"train_images", "Images to train on.", START(COUNT64, train_images)},
    {"val_images", "Images to validate on.", START(COUNT64, val_images)},
    {"fold", "Fold in work, from 0.", STEP(COUNT, fold), 1},
    {"epoch", "Epoch in work, from 1.", STEP(COUNT, epoch), 1},
    {"epochs", "Epochs of this fold that are planned.", STEP(COUNT, epochs), 1},
    {"step", "Steps of this epoch that are done.", STEP(COUNT64, step), 1},
    {"steps", "Steps of this epoch.", STEP(COUNT64, steps), 1},
    {"fold_steps", "Steps of this fold that are done.", STEP(COUNT64, steps_done), 1},
    {"train_loss", "Mean training loss of this epoch so far.", STEP(NUMBER, loss), 1},
    {"train_accuracy_ratio", "Training accuracy of this epoch so far.", STEP(NUMBER, acc1),
     PERCENT},
    {"learning_rate", "Learning rate of the last step.", STEP(NUMBER, lr), 1},
    {"images_per_second", "Training images a second in this epoch so far.",
     STEP(NUMBER, images_per_second), 1},
    {"wait_ratio", "Share of this epoch's time spent waiting for data.",
     STEP(NUMBER, wait_fraction), 1},
    {"train_left_seconds", "Estimated time to the end of this fold's training.",
     STEP(NUMBER, left_s), 1},
    {"val_loss", "Validation loss of the last validated epoch.", EPOCH(val_loss), 1},
    {"val_accuracy_ratio", "Validation accuracy of the last validated epoch.", EPOCH(val_acc1),
     PERCENT},
    {"val_top5_accuracy_ratio", "The same where the label is among the five likeliest classes.",
     EPOCH(val_acc5), PERCENT},
    {"epoch_duration_seconds", "Training and validation of the last validated epoch.",
     EPOCH(seconds), 1},
    {"workers", "Threads that decode.", SAMPLE_COUNT(workers)},
    {"batches_ready", "Batches that wait to be trained on.", SAMPLE_COUNT(batches_ready)},
    {"batch_slots", "Batches that there is room for.", SAMPLE_COUNT(slots)},
    {"gpu_utilization_ratio", "Share of the last second in which some kernel ran.",
     SAMPLE(gpu_util), PERCENT},
    {"gpu_sm_activity_ratio", "Share of the multiprocessors' time with a warp on them.",
     SAMPLE(sm_activity), PERCENT},
    {"gpu_jpeg_utilization_ratio", "Share of the last second in which the JPEG engines were busy.",
     SAMPLE(jpeg_util), PERCENT},
    {"gpu_memory_used_bytes", "GPU memory in use, by everybody.", SAMPLE(gpu_memory_used), 1},
    {"gpu_memory_bytes", "GPU memory that there is.", SAMPLE(gpu_memory_total), 1},
    {"gpu_power_watts", "Power that the GPU draws.", SAMPLE(gpu_power_w), 1},
    {"gpu_temperature_celsius", "Temperature of the GPU.", SAMPLE(gpu_temperature_c), 1},
    {"gpu_clock_hertz", "Clock of the multiprocessors.", SAMPLE(gpu_clock_mhz), 1e6},
    {"pcie_received_bytes_per_second", "Bytes a second to the GPU.", SAMPLE(pcie_in), 1},
    {"pcie_sent_bytes_per_second", "Bytes a second from the GPU.", SAMPLE(pcie_out), 1},
    {"cpu_utilization_ratio", "Of the cores that the run may use, by anybody.", SAMPLE(cpu),
     PERCENT},
    {"cpu_own_utilization_ratio", "Of the same cores, by the run.", SAMPLE(cpu_own), PERCENT},
    {"iowait_ratio", "Share of the cores' time that waits for disks.", SAMPLE(iowait), PERCENT},
    {"resident_memory_bytes", "Resident memory of the run.", SAMPLE(resident), 1},
    {"memory_used_bytes", "Memory in use on the machine or in its container.", SAMPLE(memory_used),
     1},
    {"disk_read_bytes_per_second", "Read from the machine's disks.", SAMPLE(disk_read), 1},
    {"disk_written_bytes_per_second", "Written to the machine's disks.", SAMPLE(disk_written), 1},
    {"network_received_bytes_per_second", "Received, loopback left out.", SAMPLE(net_in), 1},
    {"network_sent_bytes_per_second", "Sent, loopback left out.", SAMPLE(net_out), 1},
};

/* A text on its way to the disk, with copies of everything that the write needs. */
typedef struct delivery {
    char *path;   /* owned */
    stk_str text; /* owned; reused */
    stk_error error;
} delivery;

struct stk_metrics_file {
    stk_event_sink sink;      /* receives the events */
    char *path;               /* owned */
    int64_t (*now_ns)(void);  /* never NULL */
    int64_t (*wall_ns)(void); /* never NULL */
    stk_run_view view;        /* state of the run */
    double start_s;           /* when the run began, by the wall clock: seconds since 1970 */
    int exit_code;            /* -1: the run goes on */
    int64_t written_ns;       /* when the file was replaced last */
    bool written;             /* the file was replaced */
    stk_timed_call *writer;   /* owned; NULL without a thread: then the caller's thread writes */
    delivery *delivery;       /* owned; used by the writer's thread while it writes */
    bool hangs;               /* the last write did not end in time */
    stk_error error;          /* the first error */
};

/* ---- the text ---- */

static void append_head(stk_str *out, const char *name, const char *help) {
    stk_str_appendf(out, "# HELP stoker_%s %s\n# TYPE stoker_%s gauge\n", name, help, name);
}

static void append_gauge(stk_str *out, const char *name, const char *help, double value) {
    if (isfinite(value)) {
        append_head(out, name, help);
        stk_str_appendf(out, "stoker_%s %.12g\n", name, value);
    }
}

/* A gauge of value 1 whose labels hold texts; nothing without labels. Frees the labels. */
static void append_labelled(stk_str *out, const char *name, const char *help, stk_str *labels) {
    if (labels->length > 0) {
        append_head(out, name, help);
        stk_str_appendf(out, "stoker_%s{%s} 1\n", name, stk_str_text(labels));
    }
    stk_str_free_part(out, labels);
}

/*
 * `name="text"`, divided from what is there by a comma; backslash, quote and line break are
 * escaped. A text that is not known is left out.
 */
static void append_label(stk_str *labels, const char *name, const char *text) {
    stk_str clean = {0};
    if (text == NULL) {
        return;
    }
    stk_report_append_utf8(&clean, text);
    stk_str_appendf(labels, "%s%s=\"", labels->length > 0 ? "," : "", name);
    for (const char *p = stk_str_text(&clean); *p != '\0'; p++) {
        if (*p == '\n') {
            stk_str_append(labels, "\\n");
        } else {
            stk_str_append(labels, *p == '\\' || *p == '"' ? "\\" : "");
            stk_str_append_bytes(labels, p, 1);
        }
    }
    stk_str_append(labels, "\"");
    stk_str_free_part(labels, &clean);
}

/* As chosen at the start. Once the run has ended, as used: it may have been measured, or shrunk
 * when memory ran out. -1: not known. */
static int batch_of(const stk_run_view *view) {
    return stk_run_view_has_ended(view) ? view->summary->batch
           : view->start != NULL        ? view->start->batch
                                        : -1;
}

static double value_of(const stk_metrics_file *m, const metric *row) {
    int batch = batch_of(&m->view);
    const void *const sources[] = {m->view.start, m->view.step, m->view.validated, m->view.sample,
                                   &batch};
    if (sources[row->from] == NULL) {
        return NAN;
    }
    const void *at = (const char *)sources[row->from] + row->offset;
    double value = NAN;
    switch (row->type) {
    case NUMBER:
        value = *(const double *)at;
        break;
    case COUNT:
        value = *(const int *)at;
        break;
    case COUNT64:
        value = (double)*(const int64_t *)at;
        break;
    }
    /* An unknown count is -1; nothing that is counted is negative. */
    return row->type != NUMBER && value < 0 ? NAN : value * row->scale;
}

static void append_times(stk_str *out, const stk_metrics_file *m) {
    const stk_event_epoch *epoch = m->view.validated;
    if (epoch == NULL || !(epoch->times.total_s > 0)) {
        return;
    }
    append_head(out, "epoch_time_ratio", "Where the time of the last validated epoch went.");
    for (int i = 0; i < STK_TIME_PARTS; i++) {
        double share = stk_time_share(&epoch->times, i);
        if (isfinite(share)) {
            stk_str_appendf(out, "stoker_epoch_time_ratio{part=\"%s\"} %.6g\n",
                            stk_time_part_names[i], share);
        }
    }
}

static void append_clock(stk_str *out, const stk_metrics_file *m) {
    const stk_event_start *start = m->view.start;
    if (start == NULL) {
        return;
    }
    double used = (double)(m->now_ns() - start->start_ns) * 1e-9;
    append_gauge(out, "start_time_seconds", "When the run began, since 1970.", m->start_s);
    append_gauge(out, "used_seconds", "Time since the run began.", used);
    append_gauge(out, "budget_seconds", "Time that the run was given.", start->budget_s);
    append_gauge(out, "budget_left_seconds", "Time until the budget is used up.",
                 start->budget_s - used);
}

static void append_info(stk_str *out, const stk_event_start *start) {
    stk_str labels = {0};
    if (start == NULL) {
        return;
    }
    append_label(&labels, "run", start->run_dir != NULL ? stk_path_base(start->run_dir) : NULL);
    append_label(&labels, "model", start->model);
    append_label(&labels, "device", start->device);
    append_label(&labels, "device_name", start->device_name);
    append_label(&labels, "precision", start->precision);
    append_labelled(out, "run_info", "What is trained, and on what.", &labels);
}

static void append_verdict(stk_str *out, const stk_event_verdict *verdict) {
    stk_str labels = {0};
    append_label(&labels, "name", verdict != NULL ? verdict->name : NULL);
    append_labelled(out, "verdict", "What limits the speed of the run.", &labels);
}

static void append_end(stk_str *out, const stk_run_view *view) {
    stk_str labels = {0};
    bool ended = stk_run_view_has_ended(view);
    append_label(&labels, "status", ended ? view->summary->status : NULL);
    append_label(&labels, "reason", ended ? view->summary->stop_reason : NULL);
    append_labelled(out, "ended", "How the run ended.", &labels);
    append_gauge(out, "finished", "Whether the run has ended.", ended);
}

static void append_all(stk_str *out, const stk_metrics_file *m) {
    append_info(out, m->view.start);
    append_clock(out, m);
    for (size_t i = 0; i < STK_COUNT(metrics); i++) {
        append_gauge(out, metrics[i].name, metrics[i].help, value_of(m, &metrics[i]));
    }
    append_times(out, m);
    append_gauge(out, "bad_images", "Images that could not be used.", (double)m->view.bad_images);
    append_verdict(out, stk_run_view_verdict(&m->view));
    append_end(out, &m->view);
    if (m->exit_code >= 0) {
        append_gauge(out, "exit_status", "What the command ended with.", m->exit_code);
    }
}

/* ---- the file ---- */

static void free_delivery(void *state) {
    delivery *d = state;
    stk_mem_free(d->path);
    stk_str_free(&d->text);
    stk_mem_free(d);
}

static void deliver(void *state) {
    delivery *d = state;
    stk_status status = stk_str_ok(&d->text) ? stk_file_show(d->path, stk_str_text(&d->text),
                                                             d->text.length, &d->error)
                                             : STK_FAIL_MEMORY(&d->error, d->path);
    (void)status; /* d->error has it: a callback cannot return an error */
}

/* Whether the last write has ended. Waits WAIT_NS at most, and not again while the disk hangs. */
static bool has_ended(stk_metrics_file *m) {
    int64_t wait_ns = m->hangs ? 0 : WAIT_NS;
    m->hangs = m->writer != NULL && !stk_timed_call_wait(m->writer, stk_clock_ns() + wait_ns);
    if (!m->hangs && m->error.status == STK_OK) {
        m->error = m->delivery->error;
    }
    return !m->hangs;
}

static void write_file(stk_metrics_file *m) {
    m->written = true;
    m->written_ns = m->now_ns();
    if (!has_ended(m)) {
        (void)STK_FAIL(&m->error, STK_ERR_STORAGE,
                       "cannot write %s in time: its disk does not answer; look whether it is "
                       "mounted and alive",
                       m->path);
        return;
    }
    if (m->view.failed) {
        (void)STK_FAIL_MEMORY(&m->error, m->path); /* some figures are missing or old */
    }
    stk_str_clear(&m->delivery->text);
    append_all(&m->delivery->text, m);
    if (m->writer == NULL) {
        deliver(m->delivery);
    } else {
        stk_timed_call_begin(m->writer, deliver, m->delivery, free_delivery);
    }
    (void)has_ended(m);
}

/* Called after every event; before the start event nothing is written. */
static void refresh(stk_metrics_file *m) {
    if (m->view.start != NULL && (!m->written || m->now_ns() - m->written_ns >= WRITE_GAP_NS)) {
        write_file(m);
    }
}

/* ---- events ---- */

static void take_start(stk_metrics_file *m, const stk_event_start *event) {
    m->start_s = (double)(m->wall_ns() - (m->now_ns() - event->start_ns)) * 1e-9;
}

static void metrics_file_take(void *user, stk_event_kind kind, const void *event) {
    stk_metrics_file *m = user;
    stk_run_view_take(&m->view, kind, event);
    switch (kind) {
    case STK_EVENT_START:
        take_start(m, event);
        write_file(m);
        break;
    case STK_EVENT_VERDICT:
    case STK_EVENT_STEP:
    case STK_EVENT_EPOCH:
    case STK_EVENT_SAMPLE:
        refresh(m);
        break;
    case STK_EVENT_STOP:
        write_file(m);
        break;
    default:
        break; /* the next of the events above shows what changed */
    }
}

/* ---- the header's functions ---- */

stk_status stk_metrics_file_new(stk_metrics_file **out, const stk_metrics_file_config *config,
                                stk_error *err) {
    stk_status status = stk_write_target_check("--metrics-file", config->path, err);
    if (status != STK_OK) {
        return status;
    }
    stk_metrics_file *m = stk_mem_new(1, sizeof *m);
    delivery *d = stk_mem_new(1, sizeof *d);
    char *path = stk_mem_strdup(config->path);
    char *same = stk_mem_strdup(config->path);
    if (m == NULL || d == NULL || path == NULL || same == NULL) {
        stk_mem_free(m);
        stk_mem_free(d);
        stk_mem_free(path);
        stk_mem_free(same);
        return STK_FAIL_MEMORY(err, config->path);
    }
    m->path = path;
    m->delivery = d;
    d->path = same;
    if (stk_timed_call_open(&m->writer, "writes figures", NULL) != STK_OK) {
        m->writer = NULL;
    }
    m->now_ns = config->now_ns != NULL ? config->now_ns : stk_clock_ns;
    m->wall_ns = config->wall_ns != NULL ? config->wall_ns : stk_clock_wall_ns;
    m->exit_code = -1;
    stk_event_sink_open(&m->sink, metrics_file_take, m);
    *out = m;
    return STK_OK;
}

void stk_metrics_file_free(stk_metrics_file *m) {
    if (m != NULL) {
        if (!stk_timed_call_close(m->writer)) {
            free_delivery(m->delivery);
        }
        stk_mem_free(m->path);
        stk_run_view_close(&m->view);
        stk_mem_free(m);
    }
}

const stk_observer *stk_metrics_file_observer(stk_metrics_file *m) {
    return &m->sink.observer;
}

void stk_metrics_file_finish(stk_metrics_file *m, int exit_code) {
    if (m->view.start != NULL) {
        m->exit_code = exit_code;
        write_file(m);
    }
}

stk_status stk_metrics_file_error(const stk_metrics_file *m, stk_error *err) {
    return stk_error_pass(&m->error, err);
}
