/* test_report_tfevents.c - event files as TensorBoard reads them, by a reader of our own. */
#include "check.h"

#include <signal.h>
#include <sys/resource.h>

#include "base/files/file.h"
#include "base/mem.h"
#include "base/str.h"
#include "events/events.h"
#include "image/image.h"
#include "report/observers/tfevents.h"
#include "report/observers/tfrecord.h"

#define SECOND INT64_C(1000000000)

static int64_t fake_ns;
static int64_t fake_wall_ns;

static int64_t fake_clock(void) {
    return fake_ns;
}

static int64_t fake_wall(void) {
    return fake_wall_ns;
}

/* ---- a reader of event files ---- */

typedef enum told_kind { VERSION, RESTART, SCALAR, PICTURE, TEXT } told_kind;

typedef struct told {
    told_kind kind;
    double wall_s;
    int64_t step;
    char tag[64];
    double value;    /* of a scalar */
    char bytes[512]; /* of a text */
    stk_image image; /* of a picture, decoded */
} told;

typedef struct event_log {
    told items[128];
    int count;
    int files;  /* that were read */
    bool sound; /* every record's checksums agree and the last one is whole */
} event_log;

typedef struct span {
    const uint8_t *at;
    const uint8_t *end;
} span;

typedef struct field {
    int number;
    int wire;
    uint64_t value; /* a varint, or the bits of a number */
    span bytes;
} field;

static uint64_t little(const uint8_t *at, int bytes) {
    uint64_t value = 0;
    for (int i = bytes - 1; i >= 0; i--) {
        value = value << 8 | at[i];
    }
    return value;
}

static bool take_varint(span *s, uint64_t *value) {
    *value = 0;
    for (int shift = 0; s->at < s->end && shift < 64; shift += 7) {
        uint8_t byte = *s->at++;
        *value |= (uint64_t)(byte & 0x7F) << shift;
        if (byte < 0x80) {
            return true;
        }
    }
    return false;
}

/* The next field of a message; false at its end and where it is damaged. */
static bool take_field(span *s, field *f) {
    uint64_t key = 0;
    if (s->at == s->end || !take_varint(s, &key)) {
        return false;
    }
    f->number = (int)(key >> 3);
    f->wire = (int)(key & 7);
    if (f->wire == 0) {
        return take_varint(s, &f->value);
    }
    uint64_t size = f->wire == 1 ? 8 : 4;
    if (f->wire == 2 && !take_varint(s, &size)) {
        return false;
    }
    if (size > (uint64_t)(s->end - s->at)) {
        return false;
    }
    f->bytes = (span){s->at, s->at + size};
    f->value = f->wire == 2 ? 0 : little(s->at, (int)size);
    s->at += size;
    return true;
}

/* The first field with this number, anywhere below the numbers before it. */
static bool find(span s, const int *path, int depth, field *f) {
    while (take_field(&s, f)) {
        if (f->number == path[0]) {
            if (depth == 1) {
                return true;
            }
            return find(f->bytes, path + 1, depth - 1, f);
        }
    }
    return false;
}

#define FIND(s, f, ...) \
    find((s), (int[]){__VA_ARGS__}, (int)(sizeof((int[]){__VA_ARGS__}) / sizeof(int)), (f))

static void copy_text(char *to, size_t room, span from) {
    size_t size = (size_t)(from.end - from.at);
    size = size < room - 1 ? size : room - 1;
    memcpy(to, from.at, size);
    to[size] = '\0';
}

static void read_value(event_log *log, told item, span value) {
    field f;
    field plugin;
    if (FIND(value, &f, 1)) {
        copy_text(item.tag, sizeof item.tag, f.bytes);
    }
    if (FIND(value, &f, 2)) {
        uint32_t bits = (uint32_t)f.value;
        float number;
        memcpy(&number, &bits, sizeof number);
        item.kind = SCALAR;
        item.value = (double)number;
    } else if (FIND(value, &f, 4, 4)) {
        item.kind = PICTURE;
        stk_error err = {0};
        if (stk_image_decode(f.bytes.at, (size_t)(f.bytes.end - f.bytes.at), &item.image, &err) !=
            STK_OK) {
            CHECK_FAIL("the picture cannot be decoded: %s", err.message);
        }
        CHECK(FIND(value, &f, 4, 1) && (int)f.value == item.image.height);
        CHECK(FIND(value, &f, 4, 2) && (int)f.value == item.image.width);
        CHECK(FIND(value, &f, 4, 3) && f.value == 3);
    } else if (FIND(value, &f, 8, 8)) {
        item.kind = TEXT;
        copy_text(item.bytes, sizeof item.bytes, f.bytes);
        CHECK(FIND(value, &f, 8, 1) && f.value == 7);
        CHECK(FIND(value, &f, 8, 2, 2, 1) && f.value == 1);
        CHECK(FIND(value, &plugin, 9, 1, 1));
        CHECK_INT(plugin.bytes.end - plugin.bytes.at, 4);
        CHECK(memcmp(plugin.bytes.at, "text", 4) == 0);
    } else {
        CHECK_FAIL("the value %s is of no known kind", item.tag);
    }
    if (log->count < (int)(sizeof log->items / sizeof *log->items)) {
        log->items[log->count++] = item;
    }
}

static void read_event(event_log *log, span event) {
    told item = {0};
    field f;
    double wall;
    if (FIND(event, &f, 1)) {
        memcpy(&wall, &f.value, sizeof wall);
        item.wall_s = wall;
    }
    if (FIND(event, &f, 2)) {
        item.step = (int64_t)f.value;
    }
    if (FIND(event, &f, 3)) {
        item.kind = VERSION;
        copy_text(item.bytes, sizeof item.bytes, f.bytes);
        log->items[log->count++] = item;
    } else if (FIND(event, &f, 7, 1)) {
        item.kind = RESTART;
        CHECK_INT(f.value, 1);
        log->items[log->count++] = item;
    } else if (FIND(event, &f, 5)) {
        span summary = f.bytes;
        while (take_field(&summary, &f)) {
            read_value(log, item, f.bytes);
        }
    }
}

/* Reads one file's records behind those that the log has. */
static void read_file(event_log *log, const char *path) {
    char *data = NULL;
    size_t size = 0;
    stk_error err = {0};
    REQUIRE_OK(stk_file_read(path, 0, &data, &size, &err), &err);
    const uint8_t *at = (const uint8_t *)data;
    const uint8_t *end = at + size;
    while (end - at >= 16) {
        uint64_t length = little(at, 8);
        bool whole = little(at + 8, 4) == stk_tfrecord_crc(at, 8) &&
                     length <= (uint64_t)(end - at - 16) &&
                     little(at + 12 + length, 4) == stk_tfrecord_crc(at + 12, length);
        if (!whole) {
            break;
        }
        read_event(log, (span){at + 12, at + 12 + length});
        at += 16 + length;
    }
    log->sound = log->sound && at == end;
    stk_mem_free(data);
}

/* All event files of a folder, in the order of their names. */
static event_log *read_folder(const char *parent, const char *name) {
    static event_log log;
    stk_dir_list list = {0};
    char *folder = stk_path_join(parent, name);
    for (int i = 0; i < log.count; i++) {
        stk_image_free(&log.items[i].image);
    }
    log = (event_log){.sound = true};
    if (stk_dir_read(folder, &list, NULL) == STK_OK) {
        for (size_t i = 0; i < list.count; i++) {
            if (!list.entries[i].is_dir) {
                char *path = stk_path_join(folder, list.entries[i].name);
                CHECK(strncmp(list.entries[i].name, "events.out.tfevents.", 20) == 0);
                read_file(&log, path);
                stk_mem_free(path);
                log.files++;
            }
        }
        stk_dir_list_free(&list);
    }
    stk_mem_free(folder);
    return &log;
}

/* The n-th (from 0) item with this tag, NULL when there is none. */
static const told *find_told(const event_log *log, const char *tag, int n) {
    for (int i = 0; i < log->count; i++) {
        if (strcmp(log->items[i].tag, tag) == 0 && n-- == 0) {
            return &log->items[i];
        }
    }
    return NULL;
}

static int count_kind(const event_log *log, told_kind kind) {
    int count = 0;
    for (int i = 0; i < log->count; i++) {
        count += log->items[i].kind == kind;
    }
    return count;
}

static void check_scalar(const event_log *log, const char *tag, int n, int64_t step, double value) {
    const told *item = find_told(log, tag, n);
    if (item == NULL || item->kind != SCALAR) {
        CHECK_FAIL("there is no scalar %s", tag);
        return;
    }
    CHECK_INT(item->step, step);
    CHECK_NEAR(item->value, value, fabs(value) * 1e-6);
}

/* ---- what is told ---- */

/* A run as far as event files go. */
typedef struct run {
    const char *parent; /* of the folder tensorboard */
    stk_tfevents *t;
    stk_events events;
} run;

/* One that has told its start, of so many folds, and goes on in a fold behind so many steps. */
static run begin(const char *parent, int folds, int fold, int64_t steps_done) {
    run r = {.parent = parent};
    stk_error err = {0};
    stk_event_start start = {.model = "convnet_s", .folds = folds, .budget_s = NAN};
    char *folder = stk_path_join(parent, "tensorboard");
    stk_tfevents_config config = {.folder = folder,
                                  .fold = fold,
                                  .steps_done = steps_done,
                                  .now_ns = fake_clock,
                                  .wall_ns = fake_wall};
    fake_wall_ns = INT64_C(1700000000) * SECOND + SECOND / 4;
    fake_ns = 5 * SECOND;
    if (stk_tfevents_new(&r.t, &config, &err) != STK_OK) {
        CHECK_FAIL("%s", err.message);
        exit(1);
    }
    stk_mem_free(folder);
    stk_events_add(&r.events, stk_tfevents_observer(r.t));
    stk_events_start(&r.events, &start);
    return r;
}

static void end(run *r) {
    stk_tfevents_free(r->t);
}

static void tell_step(const stk_events *events, int fold, int64_t done, double loss) {
    stk_event_step step = {.fold = fold,
                           .epoch = 1,
                           .step = done,
                           .steps_done = done,
                           .loss = loss,
                           .acc1 = 50,
                           .lr = 0.01,
                           .images_per_second = 1000,
                           .wait_fraction = NAN};
    stk_events_step(events, &step);
}

static void tell_epoch(const stk_events *events, int fold, int epoch) {
    stk_event_epoch event = {.fold = fold,
                             .epoch = epoch,
                             .train_loss = 1.25,
                             .train_acc1 = 61.5,
                             .val_loss = 1.125,
                             .val_acc1 = 64,
                             .val_acc5 = NAN,
                             .lr = 0.001,
                             .images_per_second = 812.5,
                             .wait_fraction = 0.25,
                             .seconds = 8,
                             .val_metric = 0.75,
                             .times = {.read_s = 1, .compute_s = 3, .other_s = NAN, .total_s = 4}};
    stk_events_epoch(events, &event);
}

static const stk_event_sample sample_event = {.at_s = 7.9,
                                              .gpu_util = 93,
                                              .sm_activity = NAN,
                                              .gpu_memory_used = 1e9,
                                              .gpu_memory_total = NAN,
                                              .gpu_power_w = NAN,
                                              .gpu_temperature_c = NAN,
                                              .gpu_clock_mhz = NAN,
                                              .pcie_in = NAN,
                                              .pcie_out = NAN,
                                              .cpu = 55.5,
                                              .cpu_own = 50,
                                              .iowait = NAN,
                                              .resident = 2e9,
                                              .memory_used = NAN,
                                              .disk_read = NAN,
                                              .disk_written = NAN,
                                              .net_in = NAN,
                                              .net_out = NAN,
                                              .images_per_second = NAN,
                                              .wait_fraction = NAN,
                                              .batches_ready = 3,
                                              .slots = -1,
                                              .workers = -1,
                                              .jpeg_util = 41};

static const stk_event_verdict verdict_event = {
    .name = "decode-bound",
    .text = "input-bound: the GPU waits 46 % \xff",
    .evidence = "2,900 img/s",
    .remedy_count = 1,
    .remedies = {{.text = "stage at 256 px", .flags = "stoker stage --size 256", .gain = 2.1}}};

static void tell_batch(const stk_events *events, size_t count, int size) {
    size_t bytes = (size_t)size * (size_t)size * 3;
    uint8_t *images = stk_mem_new(count > 0 ? count : 1, bytes);
    int *labels = stk_mem_new(count > 0 ? count : 1, sizeof *labels);
    stk_event_batch batch = {.images = images, .labels = labels, .count = count, .size = size};
    if (images != NULL && labels != NULL) {
        for (size_t i = 0; i < count; i++) { /* each picture is of one grey */
            memset(images + i * bytes, (int)(10 + i * 3), bytes);
        }
        stk_events_batch(events, &batch);
    }
    stk_mem_free(images);
    stk_mem_free(labels);
}

/* ---- tests ---- */

/* The bytes that TensorBoard's own writer makes of the same event. */
static void a_record_has_the_bytes_that_others_write(void) {
    static const uint8_t expected[] = {
        0x1b, 0,    0,    0,    0,    0,    0,    0,    0x1a, 0x0d, 0x9e, 0x13, 0x09, 0,    0,
        0,    0,    0,    0,    0xf8, 0x3f, 0x10, 0xac, 0x02, 0x2a, 0x0d, 0x0a, 0x0b, 0x0a, 0x04,
        0x6c, 0x6f, 0x73, 0x73, 0x15, 0,    0,    0x20, 0x40, 0x68, 0x99, 0x7c, 0x51};
    stk_str value = {0};
    stk_str summary = {0};
    stk_str event = {0};
    stk_str file = {0};
    stk_proto_text(&value, 1, "loss");
    stk_proto_float(&value, 2, 2.5f);
    stk_proto_message(&summary, 1, &value);
    stk_proto_double(&event, 1, 1.5);
    stk_proto_int(&event, 2, 300);
    stk_proto_message(&event, 5, &summary);
    stk_tfrecord_append(&file, &event);
    CHECK_INT(file.length, sizeof expected);
    CHECK(file.length == sizeof expected && memcmp(file.text, expected, sizeof expected) == 0);
    stk_str_free(&value);
    stk_str_free(&summary);
    stk_str_free(&event);
    stk_str_free(&file);
}

static void numbers_of_every_length_come_back(void) {
    static const int64_t numbers[] = {0, 1, 127, 128, 16383, 16384, INT32_MAX, INT64_MAX, -1};
    static const size_t lengths[] = {1, 1, 1, 2, 2, 3, 5, 9, 10};
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++) {
        stk_str message = {0};
        field f;
        stk_proto_int(&message, 100, numbers[i]); /* a field whose key takes two bytes */
        CHECK_INT(message.length, 2 + lengths[i]);
        span s = {(const uint8_t *)message.text, (const uint8_t *)message.text + message.length};
        CHECK(take_field(&s, &f) && f.number == 100 && (int64_t)f.value == numbers[i]);
        stk_str_free(&message);
    }
}

static void training_becomes_curves(void) {
    run r = begin(check_folder(), 1, 0, 0);
    for (int i = 1; i <= 10; i++) { /* ten steps a second: five are too many */
        tell_step(&r.events, 0, i, 2.0 / i);
        fake_ns += SECOND / 10;
    }
    tell_epoch(&r.events, 0, 1);
    event_log *log = read_folder(r.parent, "tensorboard"); /* while it is being written */
    CHECK(log->sound);
    CHECK_INT(log->files, 1);
    CHECK_INT(log->items[0].kind, VERSION);
    CHECK_STR(log->items[0].bytes, "brain.Event:2");
    CHECK_NEAR(log->items[0].wall_s, 1700000000.25, 1e-6);
    check_scalar(log, "step/loss", 0, 1, 2);
    check_scalar(log, "step/loss", 1, 6, 2.0 / 6);
    CHECK(find_told(log, "step/loss", 2) == NULL);
    check_scalar(log, "step/acc1", 0, 1, 50);
    check_scalar(log, "step/lr", 0, 1, 0.01);
    check_scalar(log, "step/images_per_second", 0, 1, 1000);
    CHECK(find_told(log, "step/wait_fraction", 0) == NULL);
    check_scalar(log, "epoch", 0, 10, 1);
    check_scalar(log, "train/loss", 0, 10, 1.25);
    check_scalar(log, "train/acc1", 0, 10, 61.5);
    check_scalar(log, "val/loss", 0, 10, 1.125);
    check_scalar(log, "val/acc1", 0, 10, 64);
    CHECK(find_told(log, "val/acc5", 0) == NULL);
    check_scalar(log, "lr", 0, 10, 0.001);
    check_scalar(log, "images_per_second", 0, 10, 812.5);
    check_scalar(log, "wait_fraction", 0, 10, 0.25);
    check_scalar(log, "seconds", 0, 10, 8);
    check_scalar(log, "time/read", 0, 10, 0.25);
    check_scalar(log, "time/compute", 0, 10, 0.75);
    check_scalar(log, "time/decode", 0, 10, 0);
    CHECK(find_told(log, "time/other", 0) == NULL);
    CHECK_INT(count_kind(log, RESTART), 0);
    CHECK_INT(stk_tfevents_error(r.t, NULL), STK_OK);
    end(&r);
}

static void another_metric_becomes_a_curve(void) {
    run r = begin(check_folder(), 1, 0, 0);
    stk_events_start(&r.events, &(stk_event_start){.folds = 1, .metric = "qwk"});
    tell_step(&r.events, 0, 1, 2);
    tell_epoch(&r.events, 0, 1);
    end(&r);
    event_log *log = read_folder(r.parent, "tensorboard");
    check_scalar(log, "val/qwk", 0, 1, 0.75);
}

static void folds_have_folders(void) {
    run r = begin(check_folder(), 2, 0, 0);
    for (int fold = 0; fold < 2; fold++) {
        for (int i = 1; i <= 3; i++) {
            tell_step(&r.events, fold, i, fold + i);
        }
        tell_epoch(&r.events, fold, 1);
    }
    end(&r);
    event_log *log = read_folder(r.parent, "tensorboard");
    CHECK_INT(log->files, 0);
    for (int fold = 0; fold < 2; fold++) {
        log = read_folder(r.parent, fold == 0 ? "tensorboard/fold0" : "tensorboard/fold1");
        CHECK(log->sound);
        CHECK_INT(log->files, 1);
        check_scalar(log, "step/loss", 0, 1, fold + 1);
        check_scalar(log, "val/acc1", 0, 3, 64);
        CHECK(find_told(log, "val/acc1", 1) == NULL);
        CHECK_INT(count_kind(log, RESTART), 0);
    }
}

/* Steps that are told again: what was told of them before is to be dropped. */
static void training_that_goes_back_says_so(void) {
    run r = begin(check_folder(), 1, 0, 0);
    tell_step(&r.events, 0, 7, 1);
    tell_step(&r.events, 0, 8, 1);
    tell_step(&r.events, 0, 4, 3); /* too soon after the one before to be written by itself */
    fake_ns += SECOND;
    tell_step(&r.events, 0, 5, 2);
    end(&r);
    event_log *log = read_folder(r.parent, "tensorboard");
    REQUIRE(log->sound && log->count == 10);
    CHECK_INT(log->items[5].kind, RESTART);
    CHECK_INT(log->items[5].step, 4);
    check_scalar(log, "step/loss", 1, 5, 2);
    CHECK_INT(count_kind(log, RESTART), 1);
}

/* Another process, within the same second, goes on behind step 6. */
static void a_resumed_run_has_another_file(void) {
    run r = begin(check_folder(), 3, 1, 0);
    tell_step(&r.events, 1, 9, 1);
    stk_events_sample(&r.events, &sample_event);
    end(&r);
    for (int i = 0; i < 2; i++) {
        r = begin(r.parent, 3, 1, 6);
        if (i == 0) {
            stk_events_verdict(&r.events, &verdict_event);
        }
        tell_step(&r.events, 1, 7, 5);
        stk_events_sample(&r.events, &sample_event);
        tell_step(&r.events, 2, 1, 4);
        end(&r);
    }
    event_log *log = read_folder(r.parent, "tensorboard/fold1");
    CHECK(log->sound);
    CHECK_INT(log->files, 3);
    CHECK_INT(count_kind(log, VERSION), 3);
    CHECK_INT(count_kind(log, RESTART), 2);
    for (int i = 0; i < log->count; i++) {
        CHECK(log->items[i].kind != RESTART || log->items[i].step == 7);
    }
    CHECK_INT(find_told(log, "verdict", 0)->step, 6);
    check_scalar(log, "step/loss", 0, 9, 1);
    check_scalar(log, "step/loss", 1, 7, 5);
    log = read_folder(r.parent, "tensorboard/fold2"); /* begun twice, from its first step */
    CHECK_INT(log->files, 2);
    CHECK_INT(count_kind(log, RESTART), 1);
    log = read_folder(r.parent, "tensorboard/machine");
    CHECK(log->sound);
    CHECK_INT(log->files, 3);
}

/* The process before was killed after the last step of an epoch: it is validated once more. */
static void an_epoch_that_is_told_again_counts_once(void) {
    run r = {.parent = check_folder()};
    for (int i = 0; i < 2; i++) {
        r = begin(r.parent, 1, 0, i * 6);
        if (i == 0) {
            tell_step(&r.events, 0, 6, 1);
        }
        tell_epoch(&r.events, 0, 1);
        end(&r);
    }
    event_log *log = read_folder(r.parent, "tensorboard");
    CHECK_INT(log->files, 2);
    int last = -1;
    for (int i = 0; i < log->count; i++) {
        last = log->items[i].kind == RESTART ? i : last;
    }
    REQUIRE(last > 0);
    CHECK_INT(log->items[last].step, 6);
    CHECK(find_told(log, "val/acc1", 1) > &log->items[last]);
}

static void the_machine_has_seconds(void) {
    run r = begin(check_folder(), 1, 0, 0);
    stk_events_sample(&r.events, &sample_event);
    event_log *log = read_folder(r.parent, "tensorboard/machine");
    CHECK(log->sound);
    check_scalar(log, "gpu/util", 0, 7, 93);
    check_scalar(log, "gpu/jpeg_util", 0, 7, 41);
    check_scalar(log, "gpu/memory_used", 0, 7, 1e9);
    check_scalar(log, "host/cpu", 0, 7, 55.5);
    check_scalar(log, "host/resident", 0, 7, 2e9);
    check_scalar(log, "loader/batches_ready", 0, 7, 3);
    CHECK_INT(count_kind(log, SCALAR), 7);
    end(&r);
}

static void a_batch_becomes_one_picture(void) {
    static const struct {
        size_t count;
        int size;
        int width;
        int height;
    } cases[] = {
        {70, 16, 142, 142}, /* 64 of them */
        {5, 16, 52, 34},    /* three beside each other */
        {1, 8, 8, 8},
        {30, 600, 1804, 1804}, /* nine large ones */
    };
    for (size_t c = 0; c < sizeof cases / sizeof *cases; c++) {
        run r = begin(check_folder(), 1, 0, 0);
        tell_batch(&r.events, 0, 16); /* nothing to be seen */
        tell_batch(&r.events, cases[c].count, cases[c].size);
        event_log *log = read_folder(r.parent, "tensorboard");
        const told *item = find_told(log, "batch/train", 0);
        REQUIRE(log->sound && item != NULL && item->kind == PICTURE && log->count == 2);
        CHECK_INT(item->image.width, cases[c].width);
        CHECK_INT(item->image.height, cases[c].height);
        int middle = cases[c].size / 2;
        CHECK_NEAR(item->image.pixels[(middle * cases[c].width + middle) * 3], 10, 2);
        if (cases[c].count > 1) { /* the second picture stands beside the first */
            int x = middle + cases[c].size + 2;
            CHECK_NEAR(item->image.pixels[(middle * cases[c].width + x) * 3], 13, 2);
        }
        CHECK_INT(stk_tfevents_error(r.t, NULL), STK_OK);
        end(&r);
    }
}

static void a_verdict_becomes_text(void) {
    run r = begin(check_folder(), 1, 0, 0);
    tell_step(&r.events, 0, 3, 1);
    stk_events_verdict(&r.events, &verdict_event);
    event_log *log = read_folder(r.parent, "tensorboard");
    const told *item = find_told(log, "verdict", 0);
    REQUIRE(item != NULL && item->kind == TEXT);
    CHECK_INT(item->step, 3);
    CHECK_STR(item->bytes, "input-bound: the GPU waits 46 % \xef\xbf\xbd\n\n2,900 img/s\n\n"
                           "* stage at 256 px: `stoker stage --size 256`");
    end(&r);
}

/* A limit on the size of files makes a write stop midway, as a disk that fills up does. */
static void a_full_disk_leaves_whole_records(void) {
    stk_error err = {0};
    struct rlimit old;
    run r = begin(check_folder(), 1, 0, 0);
    tell_step(&r.events, 0, 1, 1);
    REQUIRE(getrlimit(RLIMIT_FSIZE, &old) == 0);
    struct rlimit small = {.rlim_cur = 300, .rlim_max = old.rlim_max};
    void (*handler)(int) = signal(SIGXFSZ, SIG_IGN);
    REQUIRE(setrlimit(RLIMIT_FSIZE, &small) == 0);
    tell_epoch(&r.events, 0, 1);
    bool restored = setrlimit(RLIMIT_FSIZE, &old) == 0;
    signal(SIGXFSZ, handler);
    CHECK(restored);
    CHECK_INT(stk_tfevents_error(r.t, &err), STK_ERR_STORAGE);
    CHECK_CONTAINS(err.message, "events.out.tfevents.");
    tell_epoch(&r.events, 0, 2);
    event_log *log = read_folder(r.parent, "tensorboard");
    CHECK(log->sound);
    CHECK_INT(log->files, 1);
    check_scalar(log, "epoch", 0, 1, 2);
    CHECK_INT(stk_tfevents_error(r.t, NULL), STK_ERR_STORAGE);
    end(&r);
}

/* No folder can be made where a file is; once it is gone, all goes on. */
static void a_place_in_the_way_is_an_error(void) {
    stk_error err = {0};
    run r = begin(check_folder(), 1, 0, 0);
    char *path = stk_path_join(r.parent, "tensorboard");
    REQUIRE(path != NULL);
    REQUIRE_OK(stk_file_write(path, "", 0, &err), &err);
    tell_step(&r.events, 0, 1, 1);
    CHECK_INT(stk_tfevents_error(r.t, &err), STK_ERR_STORAGE);
    CHECK_CONTAINS(err.message, "tensorboard");
    REQUIRE(unlink(path) == 0);
    tell_epoch(&r.events, 0, 1);
    event_log *log = read_folder(r.parent, "tensorboard");
    CHECK(log->sound);
    check_scalar(log, "val/acc1", 0, 1, 64);
    end(&r);
    stk_mem_free(path);
}

static void lack_of_memory_is_survived(void) {
    bool done = false;
    const char *parent = check_folder();
    static uint8_t pixels[2 * 8 * 8 * 3];
    static const int labels[2];
    stk_event_batch batch = {.images = pixels, .labels = labels, .count = 2, .size = 8};
    for (int i = 0; i < 5000 && !done; i += 1 + i / 8) { /* each leaves files, which take some */
        run r = begin(parent, 2, 0, 0);
        stk_error err = {0};
        stk_mem_fail_after(i);
        stk_events_batch(&r.events, &batch);
        tell_step(&r.events, 0, 1, 1);
        tell_step(&r.events, 0, 1, 1);
        tell_epoch(&r.events, 0, 1);
        stk_events_sample(&r.events, &sample_event);
        stk_events_verdict(&r.events, &verdict_event);
        stk_status status = stk_tfevents_error(r.t, &err);
        stk_mem_fail_after(-1);
        done = status == STK_OK;
        CHECK(done || status == STK_ERR_MEMORY);
        CHECK(done || strlen(err.message) > 0);
        end(&r);
    }
    CHECK(done);
}

static void without_memory_there_is_none(void) {
    for (int i = 0; i < 2; i++) {
        stk_tfevents *t = NULL;
        stk_error err = {0};
        stk_tfevents_config config = {.folder = "tensorboard"};
        stk_mem_fail_after(i);
        stk_status status = stk_tfevents_new(&t, &config, &err);
        stk_mem_fail_after(-1);
        CHECK_INT(status, STK_ERR_MEMORY);
        CHECK(t == NULL);
    }
}

static const check_test tests[] = {
    TEST(a_record_has_the_bytes_that_others_write),
    TEST(numbers_of_every_length_come_back),
    TEST(training_becomes_curves),
    TEST(another_metric_becomes_a_curve),
    TEST(folds_have_folders),
    TEST(training_that_goes_back_says_so),
    TEST(a_resumed_run_has_another_file),
    TEST(an_epoch_that_is_told_again_counts_once),
    TEST(the_machine_has_seconds),
    TEST(a_batch_becomes_one_picture),
    TEST(a_verdict_becomes_text),
    TEST(a_full_disk_leaves_whole_records),
    TEST(a_place_in_the_way_is_an_error),
    TEST(lack_of_memory_is_survived),
    TEST(without_memory_there_is_none),
};

CHECK_MAIN(tests)
