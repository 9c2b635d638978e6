/* test_report_metrics.c - Prometheus text: names, units, labels, and the file that holds it. */
#include "check.h"

#include <ctype.h>

#include "base/files/file.h"
#include "base/mem.h"
#include "base/str.h"
#include "events/events.h"
#include "report/observers/metrics_file.h"

#define SECOND INT64_C(1000000000)

static int64_t fake_ns;

static int64_t fake_clock(void) {
    return fake_ns;
}

static int64_t fake_wall(void) {
    return INT64_C(1700000000) * SECOND + fake_ns;
}

static const stk_event_start start_event = {
    .run_dir = "runs/a \"b\\c\"\n\xff",
    .model = "resnet50",
    .device = "cuda:0",
    .precision = "fp16",
    .start_ns = 10 * SECOND,
    .batch = 128,
    .workers = 8,
    .folds = 1,
    .train_images = 1000,
    .val_images = -1,
    .budget_s = 100,
};

static const stk_event_step step_event = {
    .epoch = 2,
    .epochs = 5,
    .step = 3,
    .steps = 7,
    .steps_done = 10,
    .loss = 0.5,
    .acc1 = 75,
    .lr = 0.001,
    .images_per_second = 1234.5,
    .wait_fraction = 0.25,
    .left_s = NAN,
};

static const stk_event_epoch epoch_event = {
    .epoch = 1,
    .val_loss = 0.75,
    .val_acc1 = 62.5,
    .val_acc5 = NAN,
    .seconds = 12.5,
    .times = {.read_s = 1, .compute_s = 3, .total_s = 4},
};

static const stk_event_sample sample_event = {
    .gpu_util = 93,
    .sm_activity = 41.5,
    .jpeg_util = 37.5,
    .gpu_memory_used = 18e9,
    .gpu_memory_total = 24e9,
    .gpu_power_w = 250.5,
    .gpu_temperature_c = 61,
    .gpu_clock_mhz = 1410,
    .pcie_in = NAN,
    .pcie_out = NAN,
    .cpu = 50,
    .cpu_own = 40,
    .iowait = 1,
    .resident = 3e9,
    .memory_used = NAN,
    .disk_read = 1e6,
    .disk_written = 2e6,
    .net_in = 3e6,
    .net_out = 4e6,
    .batches_ready = 4,
    .slots = 16,
    .workers = -1,
};

static stk_metrics_file *open_at(const char *path, stk_events *events) {
    stk_metrics_file *m = NULL;
    stk_error err = {0};
    stk_metrics_file_config config = {.path = path, .now_ns = fake_clock, .wall_ns = fake_wall};
    fake_ns = 12 * SECOND;
    *events = (stk_events){0};
    if (stk_metrics_file_new(&m, &config, &err) != STK_OK) {
        CHECK_FAIL("%s", err.message);
        return NULL;
    }
    stk_events_add(events, stk_metrics_file_observer(m));
    return m;
}

static char *read_text(const char *path) {
    char *text = NULL;
    size_t size = 0;
    return stk_file_read(path, 0, &text, &size, NULL) == STK_OK ? text : NULL;
}

/* Whether the file has this line. */
static bool has(const char *path, const char *line) {
    char *text = read_text(path);
    char *wanted = stk_str_format("\n%s\n", line);
    bool found = text != NULL && wanted != NULL && strstr(text, wanted) != NULL;
    stk_mem_free(text);
    stk_mem_free(wanted);
    return found;
}

#define CHECK_HAS(path, line)                                                        \
    do {                                                                             \
        if (!has((path), (line))) {                                                  \
            char *there = read_text(path);                                           \
            CHECK_FAIL("lacks %s: %s", (line), there != NULL ? there : "(no file)"); \
            stk_mem_free(there);                                                     \
        }                                                                            \
    } while (0)

/* Every figure has its two lines in front of it, by its own name, and none comes twice. */
static void check_form(const char *path) {
    char *text = read_text(path);
    char name[128] = "";
    REQUIRE(text != NULL);
    char *line = text;
    for (char *end; (end = strchr(line, '\n')) != NULL; line = end + 1) {
        *end = '\0';
        if (strncmp(line, "# HELP ", 7) == 0) {
            size_t length = strcspn(line + 7, " ");
            REQUIRE(length < sizeof name);
            memcpy(name, line + 7, length);
            name[length] = '\0';
            CHECK(strncmp(name, "stoker_", 7) == 0);
            for (const char *p = name; *p != '\0'; p++) {
                CHECK(islower((unsigned char)*p) || isdigit((unsigned char)*p) || *p == '_');
            }
            char *next = end + 1;
            char *type = stk_str_format("# TYPE %s gauge\n", name);
            REQUIRE(type != NULL);
            CHECK(strncmp(next, type, strlen(type)) == 0);
            CHECK(strstr(next + strlen(type), type) == NULL);
            stk_mem_free(type);
            line = end = strchr(next, '\n');
            REQUIRE(end != NULL);
            continue;
        }
        char *value = strrchr(line, ' ');
        double number = NAN;
        REQUIRE(value != NULL);
        CHECK(strncmp(line, name, strlen(name)) == 0);
        CHECK(line[strlen(name)] == ' ' || line[strlen(name)] == '{');
        CHECK(stk_parse_double(value + 1, &number) && isfinite(number));
    }
    CHECK_INT(*line, 0); /* the last line is a whole one */
    stk_mem_free(text);
}

static void all_figures_have_base_units(void) {
    stk_events events;
    char *path = stk_path_join(check_folder(), "stoker.prom");
    stk_event_verdict verdict = {.name = "decode-bound", .text = "..."};
    stk_summary summary = {.status = "complete", .stop_reason = "epochs", .batch = 64};
    stk_metrics_file *m = open_at(path, &events);
    REQUIRE(m != NULL);
    stk_events_step(&events, &step_event);
    CHECK(!stk_path_is_file(path)); /* before the start there is nothing to say */
    stk_events_start(&events, &start_event);
    CHECK_HAS(path, "stoker_batch_size 128");
    CHECK_HAS(path, "stoker_finished 0");
    stk_events_step(&events, &step_event);
    stk_events_epoch(&events, &epoch_event);
    stk_events_bad_image(&events, "a.jpg", "train", "broken");
    stk_events_verdict(&events, &verdict);
    fake_ns += 8 * SECOND;
    stk_events_sample(&events, &sample_event);
    check_form(path);
    char *text = read_text(path);
    REQUIRE(text != NULL);
    CHECK_CONTAINS(text,
                   "\nstoker_run_info{run=\"a \\\"b\\\\c\\\"\\n\xef\xbf\xbd\",model=\"resnet50\","
                   "device=\"cuda:0\",precision=\"fp16\"} 1\n");
    static const char *const absent[] = {"val_images",  "train_left",  "top5",
                                         "pcie",        "workers",     "stoker_memory_used",
                                         "exit_status", "stoker_ended"};
    for (size_t i = 0; i < sizeof absent / sizeof *absent; i++) {
        if (strstr(text, absent[i]) != NULL) {
            CHECK_FAIL("%s is not known", absent[i]);
        }
    }
    stk_mem_free(text);
    static const char *const lines[] = {
        "stoker_start_time_seconds 1700000010",
        "stoker_used_seconds 10",
        "stoker_budget_seconds 100",
        "stoker_budget_left_seconds 90",
        "stoker_epoch 2",
        "stoker_steps 7",
        "stoker_fold_steps 10",
        "stoker_train_loss 0.5",
        "stoker_train_accuracy_ratio 0.75",
        "stoker_learning_rate 0.001",
        "stoker_images_per_second 1234.5",
        "stoker_wait_ratio 0.25",
        "stoker_val_accuracy_ratio 0.625",
        "stoker_epoch_duration_seconds 12.5",
        "stoker_epoch_time_ratio{part=\"read\"} 0.25",
        "stoker_epoch_time_ratio{part=\"other\"} 0",
        "stoker_gpu_utilization_ratio 0.93",
        "stoker_gpu_sm_activity_ratio 0.415",
        "stoker_gpu_jpeg_utilization_ratio 0.375",
        "stoker_gpu_memory_used_bytes 18000000000",
        "stoker_gpu_clock_hertz 1410000000",
        "stoker_gpu_power_watts 250.5",
        "stoker_cpu_utilization_ratio 0.5",
        "stoker_network_sent_bytes_per_second 4000000",
        "stoker_batches_ready 4",
        "stoker_bad_images 1",
        "stoker_verdict{name=\"decode-bound\"} 1",
    };
    for (size_t i = 0; i < sizeof lines / sizeof *lines; i++) {
        CHECK_HAS(path, lines[i]);
    }
    stk_events_stop(&events, &summary);
    CHECK_HAS(path, "stoker_ended{status=\"complete\",reason=\"epochs\"} 1");
    CHECK_HAS(path, "stoker_finished 1");
    CHECK_HAS(path, "stoker_batch_size 64");
    stk_metrics_file_finish(m, 5);
    CHECK_HAS(path, "stoker_exit_status 5");
    check_form(path);
    CHECK_INT(stk_metrics_file_error(m, NULL), STK_OK);
    stk_metrics_file_free(m);
    stk_mem_free(path);
}

static void the_file_changes_once_a_second(void) {
    stk_events events;
    char *path = stk_path_join(check_folder(), "stoker.prom");
    stk_metrics_file *m = open_at(path, &events);
    REQUIRE(m != NULL);
    stk_events_start(&events, &start_event);
    for (int i = 0; i < 25; i++) { /* ten a second */
        stk_event_step step = step_event;
        step.step = i;
        fake_ns += SECOND / 10;
        stk_events_step(&events, &step);
    }
    CHECK_HAS(path, "stoker_step 19"); /* two seconds after the start */
    stk_metrics_file_free(m);
    stk_mem_free(path);
}

static void no_budget_has_none(void) {
    stk_events events;
    char *path = stk_path_join(check_folder(), "stoker.prom");
    stk_event_start start = start_event;
    start.budget_s = NAN;
    stk_metrics_file *m = open_at(path, &events);
    REQUIRE(m != NULL);
    stk_events_start(&events, &start);
    char *text = read_text(path);
    CHECK(text != NULL && strstr(text, "budget") == NULL);
    CHECK_HAS(path, "stoker_used_seconds 2");
    stk_mem_free(text);
    stk_metrics_file_free(m);
    stk_mem_free(path);
}

/* A run that was refused leaves the file of the one before alone. */
static void without_a_start_nothing_is_written(void) {
    stk_events events;
    char *path = stk_path_join(check_folder(), "stoker.prom");
    stk_metrics_file *m = open_at(path, &events);
    REQUIRE(m != NULL);
    stk_metrics_file_finish(m, 3);
    CHECK(!stk_path_is_file(path));
    stk_metrics_file_free(m);
    stk_mem_free(path);
}

static void a_place_that_cannot_be_is_wrong_usage(void) {
    static const char *const places[] = {"no/such/folder/x.prom", "/", "."};
    for (size_t i = 0; i < sizeof places / sizeof *places; i++) {
        stk_metrics_file *m = NULL;
        stk_error err = {0};
        stk_metrics_file_config config = {.path = places[i]};
        CHECK_INT(stk_metrics_file_new(&m, &config, &err), STK_ERR_USAGE);
        CHECK_CONTAINS(err.message, places[i]);
        CHECK_CONTAINS(err.message, "folder");
        CHECK(m == NULL);
    }
}

/* The folder goes away and comes back: the first error stays, and the file is written again. */
static void an_error_is_kept_and_writing_goes_on(void) {
    stk_events events;
    stk_error err = {0};
    const char *parent = check_folder();
    char *folder = stk_path_join(parent, "metrics");
    char *path = stk_path_join(parent, "metrics/a.prom");
    char *moved = stk_path_join(parent, "moved");
    REQUIRE_OK(stk_dir_make(folder, &err), &err);
    stk_metrics_file *m = open_at(path, &events);
    REQUIRE(m != NULL);
    REQUIRE(rename(folder, moved) == 0);
    stk_events_start(&events, &start_event);
    CHECK_INT(stk_metrics_file_error(m, &err), STK_ERR_STORAGE);
    CHECK_CONTAINS(err.message, "a.prom");
    REQUIRE(rename(moved, folder) == 0);
    stk_metrics_file_finish(m, 0);
    CHECK_HAS(path, "stoker_exit_status 0");
    CHECK_INT(stk_metrics_file_error(m, NULL), STK_ERR_STORAGE);
    stk_metrics_file_free(m);
    stk_mem_free(folder);
    stk_mem_free(path);
    stk_mem_free(moved);
}

static void lack_of_memory_is_survived(void) {
    char *path = stk_path_join(check_folder(), "stoker.prom");
    stk_event_verdict verdict = {.name = "fine"};
    stk_metrics_file_config config = {.path = path, .now_ns = fake_clock, .wall_ns = fake_wall};
    bool done = false;
    REQUIRE(path != NULL);
    for (int i = 0; i < 1000 && !done; i++) {
        stk_metrics_file *m = NULL;
        stk_error err = {0};
        stk_events events = {0};
        stk_mem_fail_after(i);
        stk_status status = stk_metrics_file_new(&m, &config, &err);
        if (status == STK_OK) {
            stk_events_add(&events, stk_metrics_file_observer(m));
            stk_events_start(&events, &start_event);
            stk_events_verdict(&events, &verdict);
            stk_events_epoch(&events, &epoch_event);
            stk_metrics_file_finish(m, 0);
            status = stk_metrics_file_error(m, &err);
        }
        stk_mem_fail_after(-1);
        done = status == STK_OK;
        CHECK(done || status == STK_ERR_MEMORY);
        stk_metrics_file_free(m);
    }
    CHECK(done);
    stk_mem_free(path);
}

static const check_test tests[] = {
    TEST(all_figures_have_base_units),
    TEST(the_file_changes_once_a_second),
    TEST(no_budget_has_none),
    TEST(without_a_start_nothing_is_written),
    TEST(a_place_that_cannot_be_is_wrong_usage),
    TEST(an_error_is_kept_and_writing_goes_on),
    TEST(lack_of_memory_is_survived),
};

CHECK_MAIN(tests)
