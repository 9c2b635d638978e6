/* test_monitor_gpu.c - what NVML tells becomes a sample, and what it does not tell is not known. */
#include "check.h"

#include "base/mem.h"
#include "monitor/gpu_sampler.h"
#include "nvml_script.h"

#define BUS "0000:19:00.0"

static const char *const place = BUS;

static const char all[] = "bus " BUS "\nutil 87\njpeg 41\nmemory_used 3000000000\n"
                          "memory_total 9000000000\nmemory_reserved 1000000000\npower 312500\n"
                          "temperature 61\nclock 1400\nclock_most 1980\nreasons 0x24\n"
                          "pcie_in 2000\npcie_out 100\nsm 63.5\ngpm_pcie_in 5\ngpm_pcie_out 3\n";

/* The same without GPM. */
static const char no_gpm[] = "bus " BUS "\nutil 87\nmemory_used 3000000000\n"
                             "memory_total 9000000000\nmemory_reserved 1000000000\n"
                             "power 312500\ntemperature 61\nclock 1400\nclock_most 1980\n"
                             "reasons 0x24\npcie_in 2000\npcie_out 100\n";

static stk_gpu_sampler *open_sampler(const char *library, const char *script) {
    char why[300] = "";
    nvml_use(library, script);
    stk_gpu_sampler *sampler = stk_gpu_sampler_open(&place, 1, why, sizeof why);
    CHECK_STR(why, "");
    return sampler;
}

/* How many figures are missing; with a name, whether that one is. */
static int count_missing(const stk_gpu_sampler *sampler, const stk_event_sample *sample,
                         const char *name) {
    const char *names[STK_GPU_FIGURES];
    int count = 0;
    int missing = stk_gpu_sampler_missing(sampler, sample, names);
    for (int i = 0; i < missing; i++) {
        count += name == NULL || strcmp(names[i], name) == 0;
    }
    return count;
}

static void check_all_but_gpm(const stk_event_sample *s) {
    CHECK_NEAR(s->gpu_util, 87, 0);
    CHECK_NEAR(s->gpu_memory_total, 9e9, 0);
    CHECK_NEAR(s->gpu_power_w, 312.5, 1e-9);
    CHECK_NEAR(s->gpu_temperature_c, 61, 0);
    CHECK_NEAR(s->gpu_clock_mhz, 1400, 0);
    CHECK_NEAR(s->gpu_clock_most_mhz, 1980, 0);
    CHECK_STR(s->gpu_throttled, "power, heat");
}

static void everything_is_told(void) {
    stk_event_sample sample;
    stk_gpu_sampler *sampler = open_sampler("fake_nvml", all);
    REQUIRE(sampler != NULL);
    stk_gpu_sampler_read(sampler, NULL, &sample);
    check_all_but_gpm(&sample);
    CHECK_NEAR(sample.gpu_memory_used, 3e9, 0);
    CHECK_NEAR(sample.jpeg_util, 41, 0);
    CHECK(isnan(sample.sm_activity) && isnan(sample.pcie_in)); /* of no time yet */
    CHECK_INT(count_missing(sampler, &sample, NULL), 0);
    for (int i = 0; i < 3; i++) {
        stk_gpu_sampler_read(sampler, NULL, &sample);
        CHECK_NEAR(sample.sm_activity, 63.5, 1e-9);
        CHECK_NEAR(sample.pcie_in, 5 << 20, 1e-6);
        CHECK_NEAR(sample.pcie_out, 3 << 20, 1e-6);
    }
    stk_gpu_sampler_close(sampler);
}

/* A GPU before Hopper: PCIe is watched by NVML, one direction at a look. */
static void without_gpm(void) {
    stk_event_sample sample;
    stk_gpu_sampler *sampler = open_sampler("fake_nvml", no_gpm);
    REQUIRE(sampler != NULL);
    stk_gpu_sampler_read(sampler, NULL, &sample);
    CHECK(isnan(sample.pcie_in) != isnan(sample.pcie_out));
    CHECK_INT(count_missing(sampler, &sample, NULL), 1);
    CHECK_INT(count_missing(sampler, &sample, "SM activity (GPUs have it from Hopper on)"), 1);
    stk_gpu_sampler_read(sampler, NULL, &sample);
    check_all_but_gpm(&sample);
    CHECK(isnan(sample.sm_activity) && isnan(sample.jpeg_util)); /* has no engines for JPEG */
    CHECK_NEAR(sample.pcie_in, 2e6, 1e-6);
    CHECK_NEAR(sample.pcie_out, 1e5, 1e-6);
    stk_gpu_sampler_close(sampler);
}

/* Whose memory in use includes what the driver reserves. */
static void an_older_driver(void) {
    stk_event_sample sample;
    stk_gpu_sampler *sampler = open_sampler("fake_nvml_old", all);
    REQUIRE(sampler != NULL);
    stk_gpu_sampler_read(sampler, NULL, &sample);
    check_all_but_gpm(&sample);
    CHECK_NEAR(sample.gpu_memory_used, 4e9, 0);
    CHECK(isnan(sample.sm_activity) && isnan(sample.jpeg_util));
    stk_gpu_sampler_close(sampler);
}

/* GPM that fails for a while: what it would tell is not known until two looks saw it again. */
static void gpm_may_pause(void) {
    stk_event_sample sample;
    stk_gpu_sampler *sampler = open_sampler("fake_nvml", all);
    REQUIRE(sampler != NULL);
    stk_gpu_sampler_read(sampler, NULL, &sample);
    nvml_use("fake_nvml", no_gpm);
    stk_gpu_sampler_read(sampler, NULL, &sample);
    CHECK(isnan(sample.sm_activity) && isnan(sample.pcie_in));
    CHECK_NEAR(sample.gpu_util, 87, 0);
    nvml_use("fake_nvml", all);
    stk_gpu_sampler_read(sampler, NULL, &sample);
    CHECK(isnan(sample.sm_activity));
    stk_gpu_sampler_read(sampler, NULL, &sample);
    CHECK_NEAR(sample.sm_activity, 63.5, 1e-9);
    stk_gpu_sampler_close(sampler);
}

static void check_unknown(const stk_event_sample *s) {
    CHECK(isnan(s->gpu_util) && isnan(s->sm_activity) && isnan(s->jpeg_util));
    CHECK(isnan(s->gpu_memory_used) && isnan(s->gpu_memory_total));
    CHECK(isnan(s->gpu_power_w) && isnan(s->gpu_temperature_c));
    CHECK(isnan(s->gpu_clock_mhz) && isnan(s->gpu_clock_most_mhz));
    CHECK(isnan(s->pcie_in) && isnan(s->pcie_out));
    CHECK(isnan(s->gpu_memory_own));
    CHECK(s->gpu_throttled == NULL);
}

static void what_is_not_offered_is_not_known(void) {
    stk_event_sample sample;
    stk_gpu_sampler *sampler = open_sampler("fake_nvml", "bus " BUS "\n");
    REQUIRE(sampler != NULL);
    for (int i = 0; i < 2; i++) {
        stk_gpu_sampler_read(sampler, NULL, &sample);
        check_unknown(&sample);
    }
    CHECK_INT(count_missing(sampler, &sample, NULL), STK_GPU_FIGURES);
    stk_gpu_sampler_close(sampler);
    memset(&sample, 0, sizeof sample);
    stk_gpu_sampler_read(NULL, NULL, &sample);
    check_unknown(&sample);
    stk_gpu_sampler_close(NULL);
}

/* A GPU that falls off the bus in the middle of a run, and one that comes back. */
static void calls_that_fail_later(void) {
    stk_event_sample sample;
    stk_gpu_sampler *sampler = open_sampler("fake_nvml", all);
    REQUIRE(sampler != NULL);
    stk_gpu_sampler_read(sampler, NULL, &sample);
    nvml_use("fake_nvml", "fail 15\n");
    stk_gpu_sampler_read(sampler, NULL, &sample);
    sample.gpu_clock_most_mhz = NAN; /* which was asked for before */
    check_unknown(&sample);
    nvml_use("fake_nvml", all);
    stk_gpu_sampler_read(sampler, NULL, &sample);
    CHECK_NEAR(sample.gpu_util, 87, 0);
    stk_gpu_sampler_close(sampler);
}

static void throttling_in_words(void) {
    static const struct {
        int bits;
        const char *words;
    } cases[] = {
        {0, ""},
        {0x1, ""},            /* idle */
        {0x2 | 0x100, ""},    /* clocks that were asked for */
        {0x4, "power"},       /* the limit of power */
        {0x20, "heat"},       /* in time */
        {0x8 | 0x40, "heat"}, /* too late, so that the hardware acts */
        {0x8 | 0x80, "power brake"},
        {0x8, "hardware slowdown"},
        {0x10, "sync boost"},
        {0x1ff, "power, heat, power brake, sync boost"},
        {0x4000, ""}, /* what is not known yet */
    };
    stk_event_sample sample;
    char script[64];
    stk_gpu_sampler *sampler = open_sampler("fake_nvml", all);
    REQUIRE(sampler != NULL);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        snprintf(script, sizeof script, "reasons 0x%x\n", cases[i].bits);
        nvml_use("fake_nvml", script);
        stk_gpu_sampler_read(sampler, NULL, &sample);
        CHECK_STR(sample.gpu_throttled, cases[i].words);
    }
    stk_gpu_sampler_close(sampler);
}

static void what_cannot_be_looked_at_is_said(void) {
    const char *elsewhere = "0000:1A:00.0";
    char why[300];
    nvml_use("fake_nvml", "util 5\n");
    CHECK(stk_gpu_sampler_open(&place, 1, why, sizeof why) == NULL);
    CHECK_STR(why, "NVML does not find it: Not Found");
    nvml_use("fake_nvml", all);
    CHECK(stk_gpu_sampler_open(&elsewhere, 1, why, sizeof why) == NULL);
    CHECK_STR(why, "NVML does not find it: Not Found");
    nvml_use("fake_nvml", "fail 999\n");
    CHECK(stk_gpu_sampler_open(&place, 1, why, sizeof why) == NULL);
    CHECK_STR(why, "NVML does not start: Unknown Error");
    stk_mem_fail_after(0);
    CHECK(stk_gpu_sampler_open(&place, 1, why, sizeof why) == NULL);
    stk_mem_fail_after(-1);
    CHECK_STR(why, "no memory is left for it");
}

/* A file of that name that is no library; and a library that is another. */
static void what_is_no_nvml_is_said(void) {
    char why[300];
    char path[512];
    char folder[256];
    snprintf(folder, sizeof folder, "%s", check_folder());
    snprintf(path, sizeof path, "%s/libnvidia-ml.so.1", folder);
    FILE *file = fopen(path, "we");
    REQUIRE(file != NULL && fclose(file) == 0);
    setenv("STOKER_CUDA_LIBS", folder, 1);
    CHECK(stk_gpu_sampler_open(&place, 1, why, sizeof why) == NULL);
    /* The system may have a real one, which knows no such GPU, or starts on none. */
    bool real = strncmp(why, "NVML does not ", strlen("NVML does not ")) == 0;
    CHECK(real || strstr(why, "libnvidia-ml.so.1") != NULL);
    nvml_use("fake_driver", all);
    CHECK(stk_gpu_sampler_open(&place, 1, why, sizeof why) == NULL);
    CHECK_STR(why, "NVML does not start: it does not say why");
}

/* ---- Several ---- */

static const char *const two_places[] = {BUS, "0000:3B:00.0"};

#define SECOND "device\nbus 0000:3B:00.0\n"

static stk_event_sample look_at_two(const char *script, const char *missing) {
    char why[300] = "";
    stk_event_sample sample;
    nvml_use("fake_nvml", script);
    stk_gpu_sampler *sampler = stk_gpu_sampler_open(two_places, 2, why, sizeof why);
    CHECK(sampler != NULL);
    CHECK_STR(why, missing);
    stk_gpu_sampler_read(sampler, NULL, &sample);
    stk_gpu_sampler_read(sampler, NULL, &sample);
    static char kept[80]; /* the sampler's text ends with it */
    snprintf(kept, sizeof kept, "%s", sample.gpu_throttled != NULL ? sample.gpu_throttled : "?");
    sample.gpu_throttled = kept;
    stk_gpu_sampler_close(sampler);
    return sample;
}

static void several_become_one_sample(void) {
    char script[1024];
    snprintf(script, sizeof script,
             "%s" SECOND
             "util 13\njpeg 9\nmemory_used 1000000000\nmemory_total 9000000000\npower 100000\n"
             "temperature 40\nclock 1000\nclock_most 1980\nreasons 0x8\nsm 6.5\n"
             "gpm_pcie_in 1\ngpm_pcie_out 2\n",
             all);
    stk_event_sample s = look_at_two(script, "");
    CHECK_NEAR(s.gpu_util, 50, 1e-9);
    CHECK_NEAR(s.sm_activity, 35, 1e-9);
    CHECK_NEAR(s.jpeg_util, 25, 1e-9);
    CHECK_NEAR(s.gpu_memory_used, 4e9, 0);
    CHECK_NEAR(s.gpu_memory_total, 18e9, 0);
    CHECK_NEAR(s.gpu_power_w, 412.5, 1e-9);
    CHECK_NEAR(s.gpu_temperature_c, 61, 0);
    CHECK_NEAR(s.gpu_clock_mhz, 1200, 1e-9);
    CHECK_NEAR(s.gpu_clock_most_mhz, 1980, 1e-9);
    CHECK_NEAR(s.pcie_in, 6 << 20, 1e-6);
    CHECK_NEAR(s.pcie_out, 5 << 20, 1e-6);
    CHECK_STR(s.gpu_throttled, "power, heat, hardware slowdown");
}

static void one_that_does_not_tell_is_left_out(void) {
    char script[1024];
    snprintf(script, sizeof script, "%s" SECOND "temperature 80\n", all);
    stk_event_sample s = look_at_two(script, "");
    CHECK_NEAR(s.gpu_util, 87, 0);
    CHECK_NEAR(s.gpu_memory_used, 3e9, 0);
    CHECK_NEAR(s.gpu_temperature_c, 80, 0);
    CHECK_NEAR(s.sm_activity, 63.5, 1e-9);
    CHECK_NEAR(s.jpeg_util, 41, 0);
    CHECK_STR(s.gpu_throttled, "power, heat");
}

static void one_that_is_not_there_is_said(void) {
    stk_event_sample s = look_at_two(all, "NVML does not find it: Not Found");
    CHECK_NEAR(s.gpu_util, 87, 0);
    CHECK_NEAR(s.gpu_memory_total, 9e9, 0);
}

/* ---- The memory of one's own ---- */

/* What is told of our own memory by a script's lines. The tree has this process and 4000001. */
static double own_of(const char *library, const stk_proc_tree *own, const char *lines) {
    char script[1024];
    stk_event_sample sample;
    snprintf(script, sizeof script,
             "bus " BUS "\nmemory_used 3000000000\nmemory_total 9000000000\n%s", lines);
    stk_gpu_sampler *sampler = open_sampler(library, script);
    CHECK(sampler != NULL);
    stk_gpu_sampler_read(sampler, own, &sample);
    stk_gpu_sampler_close(sampler);
    return sample.gpu_memory_own;
}

/* Lines with this process's number in them. */
static const char *with_own_pid(const char *format) {
    static char text[256];
    snprintf(text, sizeof text, format, (int)getpid());
    return text;
}

static void own_memory_is_told_by_the_list(void) {
    static const char *const libraries[] = {"fake_nvml", "fake_nvml_old"};
    stk_proc procs[] = {{.pid = getpid()}, {.pid = 4000001}};
    stk_proc_tree tree = {.items = procs, .count = 2, .capacity = 2};
    for (int i = 0; i < 2; i++) {
        const char *list = with_own_pid("process 1 50\nprocess %d 700\nprocess 4000001 300\n");
        CHECK_NEAR(own_of(libraries[i], &tree, list), 1000, 0);
        CHECK_NEAR(own_of(libraries[i], NULL, list), 700, 0);
        tree.count = 0;
        CHECK(isnan(own_of(libraries[i], &tree, list))); /* nobody here has the last number */
        tree.count = 2;
    }
}

static void own_memory_of_containers_is_not_known(void) {
    CHECK(isnan(own_of("fake_nvml", NULL, "")));                    /* no list */
    CHECK(isnan(own_of("fake_nvml", NULL, "processes\n")));         /* empty, but 3 GB in use */
    CHECK(isnan(own_of("fake_nvml", NULL, "process 0 500\n")));     /* a number that hides it */
    CHECK(isnan(own_of("fake_nvml", NULL, "process 4000001 5\n"))); /* of another namespace */
    CHECK(isnan(own_of("fake_nvml", NULL, with_own_pid("process %d -1\n"))));
    CHECK_NEAR(own_of("fake_nvml", NULL, "process 1 500\n"), 0, 0); /* somebody else's */
}

static void of_several_those_count_that_are_used(void) {
    char why[300] = "";
    char script[1024];
    stk_event_sample sample;
    stk_proc procs[] = {{.pid = getpid()}};
    stk_proc_tree tree = {.items = procs, .count = 1, .capacity = 1};
    snprintf(script, sizeof script,
             "bus " BUS "\nutil 0\nmemory_used 500000000\nmemory_total 9000000000\n" SECOND
             "util 90\nmemory_used 8000000000\nmemory_total 9000000000\n%s",
             with_own_pid("process %d 7000000000\n"));
    nvml_use("fake_nvml", script);
    stk_gpu_sampler *sampler = stk_gpu_sampler_open(two_places, 2, why, sizeof why);
    REQUIRE(sampler != NULL);
    stk_gpu_sampler_read(sampler, &tree, &sample);
    CHECK_NEAR(sample.gpu_util, 90, 0);
    CHECK_NEAR(sample.gpu_memory_own, 7e9, 0);
    CHECK_NEAR(sample.gpu_memory_total, 9e9, 0);
    tree.count = 0; /* nobody uses any: all of them count */
    stk_gpu_sampler_read(sampler, &tree, &sample);
    CHECK_NEAR(sample.gpu_util, 45, 0);
    CHECK_NEAR(sample.gpu_memory_used, 8.5e9, 0);
    CHECK_NEAR(sample.gpu_memory_total, 18e9, 0);
    stk_gpu_sampler_close(sampler);
}

static void nobody_uses_an_empty_gpu(void) {
    stk_event_sample sample;
    stk_gpu_sampler *sampler =
        open_sampler("fake_nvml", "bus " BUS "\nmemory_used 2000000\nmemory_total "
                                  "9000000000\nprocesses\n");
    REQUIRE(sampler != NULL);
    stk_gpu_sampler_read(sampler, NULL, &sample);
    CHECK_NEAR(sample.gpu_memory_own, 0, 0);
    stk_gpu_sampler_close(sampler);
}

/* More than we look through. */
static void a_list_that_is_too_long(void) {
    static char lines[8192];
    size_t used = 0;
    for (int i = 0; i < 257; i++) {
        used += (size_t)snprintf(lines + used, sizeof lines - used, "process %d 1\n", i + 1);
    }
    stk_event_sample sample;
    stk_gpu_sampler *sampler = open_sampler("fake_nvml", "bus " BUS "\n");
    REQUIRE(sampler != NULL);
    nvml_use("fake_nvml", lines);
    stk_gpu_sampler_read(sampler, NULL, &sample);
    CHECK(isnan(sample.gpu_memory_own));
    stk_gpu_sampler_close(sampler);
}

static const check_test tests[] = {
    TEST(everything_is_told),
    TEST(without_gpm),
    TEST(an_older_driver),
    TEST(gpm_may_pause),
    TEST(what_is_not_offered_is_not_known),
    TEST(calls_that_fail_later),
    TEST(throttling_in_words),
    TEST(what_cannot_be_looked_at_is_said),
    TEST(what_is_no_nvml_is_said),
    TEST(several_become_one_sample),
    TEST(of_several_those_count_that_are_used),
    TEST(one_that_does_not_tell_is_left_out),
    TEST(one_that_is_not_there_is_said),
    TEST(own_memory_is_told_by_the_list),
    TEST(own_memory_of_containers_is_not_known),
    TEST(nobody_uses_an_empty_gpu),
    TEST(a_list_that_is_too_long),
};

CHECK_MAIN(tests)
