/* test_monitor_sampler.c - samples come, wait to be taken, and the thread ends when it should. */
#include "check.h"

#include <dirent.h>
#include <signal.h>
#include <sys/wait.h>

#include "base/clock.h"
#include "base/mem.h"
#include "monitor/machine_sampler.h"
#include "nvml_script.h"

static const char *const gpu_place = "0000:19:00.0";

/* Waits until there is a sample; false: half a minute went by. */
static bool take(stk_machine_sampler *sampler, stk_event_sample *sample) {
    for (int i = 0; i < 30000; i++) {
        if (stk_machine_sampler_take(sampler, sample)) {
            return true;
        }
        usleep(1000);
    }
    return false;
}

static void samples_come_in_order(void) {
    stk_machine_sampler *sampler = NULL;
    stk_error err = {0};
    stk_event_sample sample;
    double before_s = 10;
    stk_machine_sampler_config config = {.every_s = 0.01, .start_ns = stk_clock_ns() - 10000000000};
    REQUIRE_OK(stk_machine_sampler_start(&sampler, &config, &err), &err);
    for (int i = 0; i < 5; i++) {
        REQUIRE(take(sampler, &sample));
        CHECK(sample.at_s > before_s);
        CHECK(sample.at_s <= stk_clock_since_s(config.start_ns));
        CHECK(isnan(sample.gpu_util) && isnan(sample.pcie_in));
        CHECK(isnan(sample.images_per_second) && isnan(sample.wait_fraction));
        CHECK_INT(sample.batches_ready, -1);
        CHECK_INT(sample.slots, -1);
        CHECK_INT(sample.workers, -1);
        CHECK(isnan(sample.resident) || sample.resident > 0);
        before_s = sample.at_s;
    }
    CHECK(stk_machine_sampler_notes(sampler) != NULL);
    stk_machine_sampler_stop(sampler);
}

/* Nobody takes for longer than the ring holds: the newest are there, one after the other. */
static void the_newest_are_kept(void) {
    stk_machine_sampler *sampler = NULL;
    stk_error err = {0};
    stk_event_sample sample;
    double before_s = 0;
    int count = 0;
    stk_machine_sampler_config config = {.every_s = 0.001, .start_ns = stk_clock_ns()};
    REQUIRE_OK(stk_machine_sampler_start(&sampler, &config, &err), &err);
    REQUIRE(take(sampler, &sample));
    double first_s = sample.at_s;
    usleep(400000);
    while (count < 1000 && stk_machine_sampler_take(sampler, &sample)) {
        CHECK(sample.at_s > before_s && sample.at_s > first_s);
        CHECK(sample.core_count == 0 || sample.cores != NULL);
        before_s = sample.at_s;
        count++;
    }
    CHECK(count > 0 && count < 1000);
    stk_machine_sampler_stop(sampler);
}

/* The next look would be a day later. */
static void stopping_waits_for_no_look(void) {
    stk_machine_sampler *sampler = NULL;
    stk_error err = {0};
    stk_event_sample sample;
    stk_machine_sampler_config config = {.every_s = 86400};
    REQUIRE_OK(stk_machine_sampler_start(&sampler, &config, &err), &err);
    CHECK(!stk_machine_sampler_take(sampler, &sample));
    stk_machine_sampler_stop(sampler);
    stk_machine_sampler_stop(NULL);
}

static void what_is_missing_is_said(void) {
    char empty[256];
    stk_machine_sampler *sampler = NULL;
    stk_error err = {0};
    stk_event_sample sample;
    snprintf(empty, sizeof empty, "%s", check_folder());
    stk_machine_sampler_config config = {.every_s = 0.01, .proc = empty, .groups = empty};
    REQUIRE_OK(stk_machine_sampler_start(&sampler, &config, &err), &err);
    REQUIRE(take(sampler, &sample));
    CHECK(isnan(sample.cpu) && isnan(sample.resident) && sample.core_count == 0);
    CHECK_CONTAINS(stk_machine_sampler_notes(sampler),
                   "this machine does not show: cores (/proc/stat), ");
    CHECK(strstr(stk_machine_sampler_notes(sampler), "GPU") == NULL);
    stk_machine_sampler_stop(sampler);
}

static void a_gpu_is_looked_at(void) {
    stk_machine_sampler *sampler = NULL;
    stk_error err = {0};
    stk_event_sample first, second;
    stk_machine_sampler_config config = {
        .every_s = 0.01, .gpu_bus_ids = &gpu_place, .gpu_count = 1};
    nvml_use("fake_nvml", "bus 0000:19:00.0\nutil 42\nsm 17\nreasons 4\n");
    REQUIRE_OK(stk_machine_sampler_start(&sampler, &config, &err), &err);
    REQUIRE(take(sampler, &first) && take(sampler, &second));
    CHECK_NEAR(first.gpu_util, 42, 0);
    CHECK_NEAR(first.sm_activity, 17, 0);
    CHECK_STR(first.gpu_throttled, "power");
    CHECK_NEAR(second.gpu_util, 42, 0);
    CHECK_CONTAINS(stk_machine_sampler_notes(sampler), "this machine does not show: ");
    CHECK_CONTAINS(stk_machine_sampler_notes(sampler), "GPU memory, GPU power");
    stk_machine_sampler_stop(sampler);
}

static void a_gpu_that_cannot_be_looked_at_is_said(void) {
    stk_machine_sampler *sampler = NULL;
    stk_error err = {0};
    stk_event_sample sample;
    stk_machine_sampler_config config = {
        .every_s = 0.01, .gpu_bus_ids = &gpu_place, .gpu_count = 1};
    nvml_use("fake_nvml", "util 42\n");
    REQUIRE_OK(stk_machine_sampler_start(&sampler, &config, &err), &err);
    REQUIRE(take(sampler, &sample));
    CHECK(isnan(sample.gpu_util));
    CHECK_CONTAINS(stk_machine_sampler_notes(sampler),
                   "the GPU (NVML does not find it: Not Found)");
    stk_machine_sampler_stop(sampler);
}

static void several_gpus_are_looked_at(void) {
    static const char *const places[] = {"0000:19:00.0", "0000:3b:00.0", "0000:99:00.0"};
    stk_machine_sampler *sampler = NULL;
    stk_error err = {0};
    stk_event_sample sample;
    stk_machine_sampler_config config = {.every_s = 0.01, .gpu_bus_ids = places, .gpu_count = 3};
    nvml_use("fake_nvml", "bus 0000:19:00.0\nutil 42\ndevice\nbus 0000:3b:00.0\nutil 2\n");
    REQUIRE_OK(stk_machine_sampler_start(&sampler, &config, &err), &err);
    REQUIRE(take(sampler, &sample));
    CHECK_NEAR(sample.gpu_util, 22, 1e-9);
    CHECK_CONTAINS(stk_machine_sampler_notes(sampler),
                   "one of the GPUs (NVML does not find it: Not Found)");
    stk_machine_sampler_stop(sampler);
}

/* What a child of ours does is seen below it and not below another. */
static void a_foreign_tree_is_looked_at(void) {
    stk_machine_sampler *sampler = NULL;
    stk_error err = {0};
    stk_event_sample sample;
    char script[300];
    int ends[2];
    REQUIRE(pipe(ends) == 0);
    pid_t child = fork();
    if (child == 0) {
        char byte;
        close(ends[1]);
        (void)!read(ends[0], &byte, 1); /* until the parent closes it */
        _exit(0);
    }
    close(ends[0]);
    snprintf(script, sizeof script,
             "bus 0000:19:00.0\nmemory_used 9000\nmemory_total 99999\nprocess %d 1000\n"
             "process %d 7000\n",
             (int)child, (int)getpid());
    nvml_use("fake_nvml", script);
    stk_machine_sampler_config config = {
        .every_s = 0.01, .root = child, .gpu_bus_ids = &gpu_place, .gpu_count = 1};
    REQUIRE_OK(stk_machine_sampler_start(&sampler, &config, &err), &err);
    REQUIRE(take(sampler, &sample));
    CHECK_NEAR(sample.gpu_memory_own, 1000, 0);
    CHECK(sample.resident > 0);
    CHECK(sample.cpu_own >= 0 && sample.cpu_own <= 100);
    close(ends[1]);
    REQUIRE(waitpid(child, NULL, 0) == child);
    bool is_gone = false; /* and then nothing is known of it */
    for (int i = 0; i < 1000 && !is_gone && take(sampler, &sample); i++) {
        is_gone = isnan(sample.resident) && isnan(sample.cpu_own);
    }
    CHECK(is_gone);
    stk_machine_sampler_stop(sampler);
}

/* A look that does not end while the sampler is stopped: the driver hangs. The thread ends by
 * itself when it is through, and takes what it needs with it. */
static void a_driver_that_hangs_is_left(void) {
    stk_machine_sampler *sampler = NULL;
    stk_error err = {0};
    char path[300];
    char waits[320];
    char script[400];
    stk_machine_sampler_config config = {
        .every_s = 0.01, .gpu_bus_ids = &gpu_place, .gpu_count = 1};
    snprintf(path, sizeof path, "%s/done", check_folder());
    snprintf(waits, sizeof waits, "%s.waits", path);
    snprintf(script, sizeof script, "bus 0000:19:00.0\nutil 1\nwait %s\n", path);
    nvml_use("fake_nvml", script);
    REQUIRE_OK(stk_machine_sampler_start(&sampler, &config, &err), &err);
    for (int i = 0; i < 30000 && access(waits, F_OK) != 0; i++) {
        usleep(1000);
    }
    REQUIRE(access(waits, F_OK) == 0);
    stk_machine_sampler_stop(sampler); /* returns, though nobody lets the driver go on */
    FILE *file = fopen(path, "we");
    REQUIRE(file != NULL && fclose(file) == 0);
    usleep(100000); /* for the thread, whose leaks a sanitizer would see */
}

/* How many threads of this process do not block a signal; libraries have such threads, too. */
static int open_to(int signal) {
    int count = 0;
    DIR *tasks = opendir("/proc/self/task");
    for (struct dirent *task; tasks != NULL && (task = readdir(tasks)) != NULL;) {
        char line[320];
        unsigned long long blocked;
        snprintf(line, sizeof line, "/proc/self/task/%s/status", task->d_name);
        FILE *status = fopen(line, "re");
        while (status != NULL && fgets(line, sizeof line, status) != NULL) {
            if (sscanf(line, "SigBlk: %llx", &blocked) == 1) {
                count += (blocked >> (signal - 1) & 1) == 0;
            }
        }
        if (status != NULL) {
            fclose(status);
        }
    }
    if (tasks != NULL) {
        closedir(tasks);
    }
    return count;
}

/* A signal to the process finds a thread that expects it, not this one. */
static void signals_are_for_others(void) {
    stk_machine_sampler *sampler = NULL;
    stk_error err = {0};
    stk_event_sample sample;
    stk_machine_sampler_config config = {.every_s = 0.005};
    int before = open_to(SIGUSR1);
    REQUIRE(before >= 1);
    REQUIRE_OK(stk_machine_sampler_start(&sampler, &config, &err), &err);
    REQUIRE(take(sampler, &sample)); /* the thread runs */
    CHECK_INT(open_to(SIGUSR1), before);
    stk_machine_sampler_stop(sampler);
}

static void lack_of_memory_is_an_error(void) {
    stk_machine_sampler *sampler = NULL;
    stk_machine_sampler_config config = {0};
    for (int i = 0; i < 7; i++) {
        stk_error err = {0};
        stk_mem_fail_after(i);
        CHECK_INT(stk_machine_sampler_start(&sampler, &config, &err), STK_ERR_MEMORY);
        stk_mem_fail_after(-1);
        CHECK_CONTAINS(err.message, "out of memory for sampling the ");
    }
    CHECK(sampler == NULL);
}

static const check_test tests[] = {
    TEST(samples_come_in_order),       TEST(the_newest_are_kept),
    TEST(stopping_waits_for_no_look),  TEST(what_is_missing_is_said),
    TEST(a_gpu_is_looked_at),          TEST(a_gpu_that_cannot_be_looked_at_is_said),
    TEST(a_driver_that_hangs_is_left), TEST(signals_are_for_others),
    TEST(several_gpus_are_looked_at),  TEST(a_foreign_tree_is_looked_at),
    TEST(lack_of_memory_is_an_error),
};

CHECK_MAIN(tests)
