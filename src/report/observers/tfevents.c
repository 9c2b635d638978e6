/*
 * tfevents.c - events to TensorBoard's records.
 *
 * Field numbers are those of TensorFlow's event.proto, summary.proto and tensor.proto. A record is
 * one message Event: a time, a step, and one of three things. The first record of a file has the
 * file's version, a restart tells TensorBoard to drop later points, and all others have a Summary,
 * which is a list of named values.
 */
#include "report/observers/tfevents.h"

#include <math.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/error.h"
#include "base/files/disk.h"
#include "base/files/file.h"
#include "base/mem.h"
#include "report/observers/contact_sheet.h"
#include "report/observers/lines.h"
#include "report/text/results_csv.h"
#include "report/text/text.h"
#include "report/observers/tfrecord.h"
#include "report/observers/thinning.h"
#include "report/text/time_parts.h"

#define NAME_START "events.out.tfevents."
#define SHEET_QUALITY 90

enum {
    EVENT_WALL_TIME = 1,
    EVENT_STEP,
    EVENT_FILE_VERSION,
    EVENT_SUMMARY = 5,
    EVENT_SESSION_LOG = 7
};
enum { SESSION_LOG_STATUS = 1, SESSION_START = 1 };
enum { SUMMARY_VALUE = 1 };
enum { VALUE_TAG = 1, VALUE_SIMPLE = 2, VALUE_IMAGE = 4, VALUE_TENSOR = 8, VALUE_METADATA = 9 };
enum { IMAGE_HEIGHT = 1, IMAGE_WIDTH, IMAGE_COLORS, IMAGE_BYTES };
enum { TENSOR_TYPE = 1, TENSOR_SHAPE = 2, TENSOR_STRING = 8, TYPE_STRING = 7 };
enum { SHAPE_DIM = 2, DIM_SIZE = 1 };
enum { METADATA_PLUGIN = 1, PLUGIN_NAME = 1 };

typedef struct curve {
    const char *tag;
    size_t offset; /* of a double in the event's struct; one that is not finite is left out */
} curve;

#define STEP(name) \
    { "step/" #name, offsetof(stk_event_step, name) }
static const curve step_curves[] = {
    STEP(loss), STEP(acc1), STEP(lr), STEP(images_per_second), STEP(wait_fraction),
};

static const curve sample_curves[] = {
    {"gpu/util", offsetof(stk_event_sample, gpu_util)},
    {"gpu/sm_activity", offsetof(stk_event_sample, sm_activity)},
    {"gpu/jpeg_util", offsetof(stk_event_sample, jpeg_util)},
    {"gpu/memory_used", offsetof(stk_event_sample, gpu_memory_used)},
    {"gpu/power_w", offsetof(stk_event_sample, gpu_power_w)},
    {"gpu/temperature_c", offsetof(stk_event_sample, gpu_temperature_c)},
    {"gpu/clock_mhz", offsetof(stk_event_sample, gpu_clock_mhz)},
    {"gpu/pcie_in", offsetof(stk_event_sample, pcie_in)},
    {"gpu/pcie_out", offsetof(stk_event_sample, pcie_out)},
    {"host/cpu", offsetof(stk_event_sample, cpu)},
    {"host/cpu_own", offsetof(stk_event_sample, cpu_own)},
    {"host/iowait", offsetof(stk_event_sample, iowait)},
    {"host/resident", offsetof(stk_event_sample, resident)},
    {"host/memory_used", offsetof(stk_event_sample, memory_used)},
    {"host/disk_read", offsetof(stk_event_sample, disk_read)},
    {"host/disk_written", offsetof(stk_event_sample, disk_written)},
    {"host/net_in", offsetof(stk_event_sample, net_in)},
    {"host/net_out", offsetof(stk_event_sample, net_out)},
    {"loader/images_per_second", offsetof(stk_event_sample, images_per_second)},
    {"loader/wait_fraction", offsetof(stk_event_sample, wait_fraction)},
};

/* One event file, which may not be open yet. */
typedef struct event_file {
    char *path;      /* owned; NULL: not open */
    stk_lines lines; /* on a file descriptor that is owned */
} event_file;

struct stk_tfevents {
    stk_observer observer;
    char *folder;             /* owned */
    int64_t (*now_ns)(void);  /* never NULL */
    int64_t (*wall_ns)(void); /* never NULL */
    event_file training;      /* of the running fold */
    event_file machine;
    bool has_folds;     /* each fold has a folder of its own */
    int fold;           /* the running fold */
    int64_t step;       /* steps of the running fold that are done */
    int64_t next;       /* first step not yet written; a new file tells TensorBoard to drop points
                           from here */
    int64_t step_ns;    /* when the last step was written */
    bool stepped;       /* a step of this fold was written */
    int64_t start_ns;   /* of the run */
    const char *metric; /* as stk_results_metric() says */
    double sample_s;    /* time of the last sample that was written */
    /* Texts that are reused for every event. */
    stk_str summary;
    stk_str value;
    stk_str part; /* of a value */
    stk_str message;
    stk_str record;
    stk_error error; /* the first error */
};

/* A callback cannot return an error: t->error has it. */
static void drop_result(stk_status status) {
    (void)status;
}

static void free_texts(stk_tfevents *t) {
    stk_str_free(&t->summary);
    stk_str_free(&t->value);
    stk_str_free(&t->part);
    stk_str_free(&t->message);
    stk_str_free(&t->record);
}

/* ---- values of a summary ---- */

static void begin_value(stk_tfevents *t, const char *tag) {
    stk_str_clear(&t->value);
    stk_proto_text(&t->value, VALUE_TAG, tag);
}

static void end_value(stk_tfevents *t) {
    stk_proto_message(&t->summary, SUMMARY_VALUE, &t->value);
}

static void put_scalar(stk_tfevents *t, const char *tag, double number) {
    if (isfinite(number)) {
        begin_value(t, tag);
        stk_proto_float(&t->value, VALUE_SIMPLE, (float)number);
        end_value(t);
    }
}

static void put_curves(stk_tfevents *t, const curve *curves, size_t count, const void *event) {
    for (size_t i = 0; i < count; i++) {
        const void *at = (const char *)event + curves[i].offset;
        put_scalar(t, curves[i].tag, *(const double *)at);
    }
}

static void put_picture(stk_tfevents *t, const char *tag, const stk_image *image,
                        const uint8_t *bytes, size_t size) {
    stk_str_clear(&t->part);
    stk_proto_int(&t->part, IMAGE_HEIGHT, image->height);
    stk_proto_int(&t->part, IMAGE_WIDTH, image->width);
    stk_proto_int(&t->part, IMAGE_COLORS, 3);
    stk_proto_bytes(&t->part, IMAGE_BYTES, bytes, size);
    begin_value(t, tag);
    stk_proto_message(&t->value, VALUE_IMAGE, &t->part);
    end_value(t);
}

/* Markdown for TensorBoard's page of texts: a tensor with one string. */
static void put_text(stk_tfevents *t, const char *tag, const stk_str *text) {
    stk_str inner = {0};
    stk_str shape = {0};
    begin_value(t, tag);
    stk_proto_int(&inner, DIM_SIZE, 1);
    stk_proto_message(&shape, SHAPE_DIM, &inner);
    stk_str_clear(&t->part);
    stk_proto_int(&t->part, TENSOR_TYPE, TYPE_STRING);
    stk_proto_message(&t->part, TENSOR_SHAPE, &shape);
    stk_proto_message(&t->part, TENSOR_STRING, text);
    stk_proto_message(&t->value, VALUE_TENSOR, &t->part);
    stk_str_clear(&inner);
    stk_str_clear(&t->part);
    stk_proto_text(&inner, PLUGIN_NAME, "text");
    stk_proto_message(&t->part, METADATA_PLUGIN, &inner);
    stk_proto_message(&t->value, VALUE_METADATA, &t->part);
    end_value(t);
    stk_str_free(&inner);
    stk_str_free(&shape);
}

/* ---- records and files ---- */

static void close_file(event_file *file) {
    if (file->path != NULL) {
        (void)stk_disk_close(file->lines.fd, file->lines.name);
        stk_mem_free(file->path);
        *file = (event_file){0};
    }
}

static void begin_message(stk_tfevents *t, int64_t step) {
    stk_str_clear(&t->message);
    stk_proto_double(&t->message, EVENT_WALL_TIME, (double)t->wall_ns() * 1e-9);
    stk_proto_int(&t->message, EVENT_STEP, step);
}

static stk_status write_message(stk_tfevents *t, event_file *file, stk_error *err) {
    stk_str_clear(&t->record);
    stk_tfrecord_append(&t->record, &t->message);
    if (!stk_str_ok(&t->record)) {
        return STK_FAIL_MEMORY(err, file->path);
    }
    stk_status status = stk_lines_write(&file->lines, t->record.text, t->record.length, err);
    if (file->lines.torn) {
        close_file(file); /* readers stop at half a record, so the next one begins another file */
    }
    return status;
}

/* Makes TensorBoard drop the points of this step and of later ones. */
static stk_status write_restart(stk_tfevents *t, event_file *file, int64_t step, stk_error *err) {
    stk_str_clear(&t->part);
    stk_proto_int(&t->part, SESSION_LOG_STATUS, SESSION_START);
    begin_message(t, step);
    stk_proto_message(&t->message, EVENT_SESSION_LOG, &t->part);
    return write_message(t, file, err);
}

/*
 * The seconds in the name of a new file. TensorBoard reads files in the order of their names, so a
 * new file must have more seconds than all files of the folder, however soon this process follows
 * another.
 */
static stk_status name_seconds(const stk_tfevents *t, const char *folder, long long *seconds,
                               bool *is_first, stk_error *err) {
    stk_dir_list list = {0};
    stk_status status = stk_dir_read(folder, &list, err);
    *seconds = (long long)(t->wall_ns() / 1000000000);
    *is_first = true;
    for (size_t i = 0; status == STK_OK && i < list.count; i++) {
        const char *name = list.entries[i].name;
        if (strncmp(name, NAME_START, strlen(NAME_START)) == 0) {
            long long there = strtoll(name + strlen(NAME_START), NULL, 10);
            *seconds = there >= *seconds ? there + 1 : *seconds;
            *is_first = false;
        }
    }
    stk_dir_list_free(&list);
    return status;
}

/* The path of a new file in a folder, which is made. */
static stk_status name_file(const stk_tfevents *t, const char *folder, char **path, bool *is_first,
                            stk_error *err) {
    char host[128] = "";
    long long seconds = 0;
    stk_status status = stk_dir_make(folder, err);
    STK_THEN(status, name_seconds(t, folder, &seconds, is_first, err));
    if (status != STK_OK) {
        return status;
    }
    bool named = gethostname(host, sizeof host - 1) == 0 && host[0] != '\0';
    *path = stk_str_format("%s/" NAME_START "%010lld.%s.%ld.0", folder, seconds,
                           named ? host : "localhost", (long)getpid());
    return *path != NULL ? STK_OK : STK_FAIL_MEMORY(err, folder);
}

/*
 * Opens a new file if none is open, and makes its folder. `below` is "" or the name of a subfolder.
 * Where the folder has earlier files, their points of `step` and of later steps no longer count.
 */
static stk_status open_file(stk_tfevents *t, event_file *file, const char *below, int64_t step,
                            stk_error *err) {
    char *path = NULL;
    int fd = -1;
    bool is_first = true;
    if (file->path != NULL) {
        return STK_OK;
    }
    char *folder = below[0] != '\0' ? stk_path_join(t->folder, below) : stk_mem_strdup(t->folder);
    stk_status status = folder != NULL ? name_file(t, folder, &path, &is_first, err)
                                       : STK_FAIL_MEMORY(err, t->folder);
    stk_mem_free(folder);
    STK_THEN(status, stk_lines_open(path, &fd, err));
    if (status != STK_OK) {
        stk_mem_free(path);
        return status;
    }
    *file = (event_file){.path = path, .lines = {.fd = fd, .name = path}};
    begin_message(t, 0);
    stk_proto_text(&t->message, EVENT_FILE_VERSION, "brain.Event:2");
    status = write_message(t, file, err);
    if (status == STK_OK && !is_first) {
        status = write_restart(t, file, step, err);
    }
    if (status != STK_OK && file->path != NULL) { /* nobody can read a file without its head */
        (void)stk_disk_remove(file->path);
        close_file(file);
    }
    return status;
}

static stk_status open_training(stk_tfevents *t, stk_error *err) {
    char fold[24] = "";
    if (t->has_folds || t->fold > 0) {
        snprintf(fold, sizeof fold, "fold%d", t->fold);
    }
    return open_file(t, &t->training, fold, t->next, err);
}

static void begin_summary(stk_tfevents *t) {
    stk_str_clear(&t->summary);
}

static stk_status write_summary(stk_tfevents *t, event_file *file, int64_t step, stk_error *err) {
    begin_message(t, step);
    stk_proto_message(&t->message, EVENT_SUMMARY, &t->summary);
    return write_message(t, file, err);
}

/* Writes the summary to the fold's file, at the fold's present step. */
static void write_training(stk_tfevents *t) {
    stk_status status = open_training(t, &t->error);
    drop_result(status == STK_OK ? write_summary(t, &t->training, t->step, &t->error) : status);
    t->next = t->step + 1;
}

/* Another fold has another file. */
static void enter_fold(stk_tfevents *t, int fold) {
    if (fold != t->fold) {
        close_file(&t->training);
        t->fold = fold;
        t->step = 0;
        t->next = 1;
        t->stepped = false;
    }
}

/* ---- callbacks ---- */

static void on_start(void *user, const stk_event_start *event) {
    stk_tfevents *t = user;
    t->has_folds = event->folds + (event->refits > 0 ? event->refits : 0) > 1;
    t->start_ns = event->start_ns;
    t->metric = stk_results_metric(event);
}

/* Training repeats the present step and later ones: TensorBoard drops their points. */
static void write_training_restart(stk_tfevents *t) {
    stk_status status = open_training(t, &t->error);
    drop_result(status == STK_OK ? write_restart(t, &t->training, t->step, &t->error) : status);
}

static void on_step(void *user, const stk_event_step *event) {
    stk_tfevents *t = user;
    enter_fold(t, event->fold);
    bool again = event->steps_done <= t->step; /* training went back */
    t->step = event->steps_done;
    if (again) {
        write_training_restart(t);
    }
    int64_t now = t->now_ns();
    double at_s = (double)(now - t->start_ns) * 1e-9;
    double last_s = (double)(t->step_ns - t->start_ns) * 1e-9;
    if (t->stepped && stk_thinning_drops_step(at_s, last_s)) {
        return;
    }
    t->stepped = true;
    t->step_ns = now;
    begin_summary(t);
    put_curves(t, step_curves, STK_COUNT(step_curves), event);
    write_training(t);
}

static void on_epoch(void *user, const stk_event_epoch *event) {
    stk_tfevents *t = user;
    enter_fold(t, event->fold);
    if (!t->stepped && t->step > 0) {
        write_training_restart(t); /* a resumed epoch had only its validation left */
    }
    begin_summary(t);
    put_scalar(t, "epoch", event->epoch);
    for (size_t i = 0; i < STK_RESULTS_COLUMNS; i++) {
        put_scalar(t, stk_results_columns[i].name,
                   stk_results_value(&stk_results_columns[i], event));
    }
    char tag[32];
    if (t->metric != NULL) {
        snprintf(tag, sizeof tag, "val/%s", t->metric);
        put_scalar(t, tag, event->val_metric);
    }
    for (int i = 0; i < STK_TIME_PARTS; i++) {
        snprintf(tag, sizeof tag, "time/%s", stk_time_part_names[i]);
        put_scalar(t, tag, stk_time_share(&event->times, i));
    }
    write_training(t);
}

static void on_batch(void *user, const stk_event_batch *event) {
    stk_tfevents *t = user;
    stk_image sheet = {0};
    uint8_t *bytes = NULL;
    size_t size = 0;
    if (event->count == 0) {
        return;
    }
    enter_fold(t, event->fold);
    stk_status status = stk_contact_sheet(event, &sheet, &t->error);
    STK_THEN(status, stk_image_encode_jpeg(&sheet, SHEET_QUALITY, &bytes, &size, &t->error));
    if (status == STK_OK) {
        begin_summary(t);
        put_picture(t, "batch/train", &sheet, bytes, size);
        write_training(t);
        free_texts(t); /* nothing else is as large */
    }
    stk_mem_free(bytes);
    stk_image_free(&sheet);
}

static void on_sample(void *user, const stk_event_sample *event) {
    stk_tfevents *t = user;
    int64_t second = event->at_s > 0 ? (int64_t)event->at_s : 0;
    if (stk_thinning_drops_sample(event->at_s, t->sample_s)) {
        return;
    }
    t->sample_s = event->at_s;
    begin_summary(t);
    put_curves(t, sample_curves, STK_COUNT(sample_curves), event);
    put_scalar(t, "loader/batches_ready", event->batches_ready >= 0 ? event->batches_ready : NAN);
    put_scalar(t, "loader/workers", event->workers >= 0 ? event->workers : NAN);
    stk_status status = open_file(t, &t->machine, "machine", second, &t->error);
    drop_result(status == STK_OK ? write_summary(t, &t->machine, second, &t->error) : status);
}

static void on_verdict(void *user, const stk_event_verdict *event) {
    stk_tfevents *t = user;
    stk_str text = {0};
    stk_report_append_utf8(&text, event->text != NULL ? event->text : event->name);
    if (event->evidence != NULL) {
        stk_str_append(&text, "\n\n");
        stk_report_append_utf8(&text, event->evidence);
    }
    for (int i = 0; i < event->remedy_count; i++) {
        stk_str_append(&text, i == 0 ? "\n\n* " : "\n* ");
        stk_report_append_utf8(&text, event->remedies[i].text);
        stk_str_append(&text, ": `");
        stk_report_append_utf8(&text, event->remedies[i].flags);
        stk_str_append(&text, "`");
    }
    begin_summary(t);
    put_text(t, "verdict", &text);
    write_training(t);
    stk_str_free(&text);
}

/* ---- the header's functions ---- */

stk_status stk_tfevents_new(stk_tfevents **out, const stk_tfevents_config *config, stk_error *err) {
    stk_tfevents *t = stk_mem_new(1, sizeof *t);
    char *folder = stk_mem_strdup(config->folder);
    if (t == NULL || folder == NULL) {
        stk_mem_free(t);
        stk_mem_free(folder);
        return STK_FAIL_MEMORY(err, config->folder);
    }
    t->folder = folder;
    t->now_ns = config->now_ns != NULL ? config->now_ns : stk_clock_ns;
    t->wall_ns = config->wall_ns != NULL ? config->wall_ns : stk_clock_wall_ns;
    t->fold = config->fold;
    t->step = config->steps_done;
    t->next = config->steps_done + 1;
    t->observer = (stk_observer){
        .user = t,
        .start = on_start,
        .step = on_step,
        .epoch = on_epoch,
        .batch = on_batch,
        .sample = on_sample,
        .verdict = on_verdict,
    };
    *out = t;
    return STK_OK;
}

void stk_tfevents_free(stk_tfevents *t) {
    if (t != NULL) {
        close_file(&t->training);
        close_file(&t->machine);
        free_texts(t);
        stk_mem_free(t->folder);
        stk_mem_free(t);
    }
}

const stk_observer *stk_tfevents_observer(stk_tfevents *t) {
    return &t->observer;
}

stk_status stk_tfevents_error(const stk_tfevents *t, stk_error *err) {
    return stk_error_pass(&t->error, err);
}
