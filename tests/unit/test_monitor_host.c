/* test_monitor_host.c - what is read from texts of /proc, and what follows for the time between. */
#include "check.h"

#include "base/files/file.h"
#include "base/mem.h"
#include "monitor/host_sampler.h"

static char proc[256];
static char groups[256];
static cpu_set_t set;

/* Overwrites a file in place: the sampler keeps it open. */
static void put(const char *folder, const char *name, const char *text) {
    stk_error err = {0};
    char *path = stk_path_join(folder, name);
    char *parent = stk_mem_strndup(path, (size_t)(stk_path_base(path) - path));
    FILE *file = stk_dir_make(parent, &err) == STK_OK ? fopen(path, "we") : NULL;
    if (file == NULL || fputs(text, file) < 0 || fclose(file) != 0) {
        printf("cannot write %s\n", path);
        exit(1);
    }
    stk_mem_free(parent);
    stk_mem_free(path);
}

/* A machine of four cores, of which two may be used: numbers 1 and 3. */
static void begin(void) {
    snprintf(proc, sizeof proc, "%s", check_folder());
    snprintf(groups, sizeof groups, "%s", check_folder());
    CPU_ZERO(&set);
    CPU_SET(1, &set);
    CPU_SET(3, &set);
}

static stk_host_sampler *open_sampler(void) {
    stk_host_sampler *sampler = NULL;
    stk_error err = {0};
    stk_host_sampler_config config = {.proc = proc, .groups = groups, .cores = &set};
    if (stk_host_sampler_open(&sampler, &config, &err) != STK_OK) {
        printf("%s\n", err.message);
        exit(1);
    }
    return sampler;
}

/* Two looks with some seconds between them; `change` rewrites files before the second. */
static stk_event_sample look_twice(stk_host_sampler *sampler, double seconds,
                                   void (*change)(void)) {
    stk_event_sample sample;
    memset(&sample, 0xff, sizeof sample);
    stk_host_sampler_read(sampler, 1000, NULL, &sample);
    change();
    stk_host_sampler_read(sampler, 1000 + (int64_t)(seconds * 1e9), NULL, &sample);
    return sample;
}

/* How many parts the last look did not see; only those of a name, unless it is NULL. */
static int count_missing(const stk_host_sampler *sampler, const char *name) {
    const char *names[STK_HOST_FIGURES];
    int count = 0;
    int missing = stk_host_sampler_missing(sampler, names);
    for (int i = 0; i < missing; i++) {
        count += name == NULL || strcmp(names[i], name) == 0;
    }
    return count;
}

static const char stat_before[] = "cpu  1 2 3 4 5 6 7 8 9 0\n"
                                  "cpu0 900 0 0 900 0 0 0 0 0 0\n"
                                  "cpu1 100 0 50 1000 10 0 0 0 0 0\n"
                                  "cpu2 900 0 0 900 0 0 0 0 0 0\n"
                                  "cpu3 500 0 0 2000 0 0 0 0 0 0\n"
                                  "intr 1 2 3\n";

static void change_cores(void) {
    put(proc, "stat",
        "cpu  1 2 3 4 5 6 7 8 9 0\n"
        "cpu0 5900 0 0 900 0 0 0 0 0 0\n"
        "cpu1 140 10 60 1020 30 5 5 10 7 7\n" /* 80 busy, 20 iowait, 20 idle */
        "cpu2 5900 0 0 900 0 0 0 0 0 0\n"
        "cpu3 500 0 0 2120 0 0 0 0 0 0\n" /* 120 idle */
        "intr 1 2 3\n");
}

static void cores_that_may_be_used_count(void) {
    begin();
    put(proc, "stat", stat_before);
    stk_host_sampler *sampler = open_sampler();
    CHECK_INT(stk_host_sampler_cores(sampler), 2);
    stk_event_sample sample = look_twice(sampler, 1, change_cores);
    REQUIRE(sample.core_count == 2 && sample.cores != NULL);
    CHECK_NEAR(sample.cores[0], 100 * 80 / 120.0, 1e-4);
    CHECK_NEAR(sample.cores[1], 0, 0);
    CHECK_NEAR(sample.cpu, 100 * 80 / 240.0, 1e-9);
    CHECK_NEAR(sample.iowait, 100 * 20 / 240.0, 1e-9);
    stk_host_sampler_close(sampler);
}

static void nothing(void) {
}

static void the_first_look_knows_no_rates(void) {
    begin();
    put(proc, "stat", stat_before);
    put(proc, "self/stat", "7 (x) S 1 1 1 0 -1 0 0 0 0 0 10 20 30 40 20 0\n");
    put(proc, "self/statm", "900 250 30 1 0 2 0\n");
    put(proc, "meminfo", "MemTotal: 1000 kB\nMemFree: 1 kB\nMemAvailable:     400 kB\n");
    put(proc, "diskstats", "8 0 sda 1 2 3 4 5 6 7 8 9 10 11\n");
    put(proc, "net/dev", "eth0: 1 2 3 4 5 6 7 8 9 10\n");
    stk_host_sampler *sampler = open_sampler();
    stk_event_sample sample;
    memset(&sample, 0, sizeof sample);
    stk_host_sampler_read(sampler, 1000, NULL, &sample);
    CHECK(isnan(sample.cpu) && isnan(sample.cpu_own) && isnan(sample.iowait));
    CHECK(isnan(sample.disk_read) && isnan(sample.net_out));
    CHECK_INT(sample.core_count, 0);
    CHECK_NEAR(sample.resident, 250.0 * (double)sysconf(_SC_PAGE_SIZE), 0);
    CHECK_NEAR(sample.memory_used, 600 * 1024, 0);
    /* Nor does one at the same moment. */
    sample = look_twice(sampler, 0, nothing);
    CHECK(isnan(sample.cpu_own) && isnan(sample.disk_written) && isnan(sample.net_in));
    CHECK_INT(count_missing(sampler, NULL), 0);
    stk_host_sampler_close(sampler);
}

/* 60 ticks of own time and 140 of children, in two seconds. */
static void change_own(void) {
    put(proc, "self/stat", "7 (a) b ) 5 6) S 1 1 1 0 -1 0 0 0 0 0 40 50 70 140 20 0 1 2 3\n");
}

static void own_time_is_told_whatever_the_name_is(void) {
    begin();
    put(proc, "self/stat", "7 (a) b ) 5 6) S 1 1 1 0 -1 0 0 0 0 0 10 20 30 40 20 0 1 2 3\n");
    stk_host_sampler *sampler = open_sampler();
    stk_event_sample sample = look_twice(sampler, 2, change_own);
    double tick_s = 1.0 / (double)sysconf(_SC_CLK_TCK);
    CHECK_NEAR(sample.cpu_own, 100 * 200 * tick_s / 2 / 2, 1e-9);
    /* A child that ran on more cores for longer than the time between the looks. */
    sample = look_twice(sampler, 1e-3, change_own);
    CHECK_NEAR(sample.cpu_own, 0, 0);
    put(proc, "self/stat", "7 (x) S 1 1 1 0 -1 0 0 0 0 0 40 50 90000 140 20 0\n");
    stk_host_sampler_read(sampler, (int64_t)3e9, NULL, &sample);
    CHECK_NEAR(sample.cpu_own, 100, 0);
    stk_host_sampler_close(sampler);
}

/* The tree's CPU seconds at a moment; of two cores. */
static double own_after(stk_host_sampler *sampler, stk_proc_tree *tree, double at_s, double cpu_s,
                        double ended_s) {
    stk_event_sample sample;
    tree->items[1].cpu_s = cpu_s;
    tree->items[0].ended_s = ended_s;
    stk_host_sampler_read(sampler, (int64_t)(at_s * 1e9), tree, &sample);
    return sample.cpu_own;
}

/* One that ends and is waited for is its parent's from then on, be it a look later. */
static void a_tree_of_processes_is_told(void) {
    begin();
    put(proc, "self/stat", "7 (x) S 1 1 1 0 -1 0 0 0 0 0 10 20 30 40 20 0\n");
    stk_host_sampler *sampler = open_sampler();
    stk_event_sample sample;
    stk_proc procs[] = {{.pid = 8, .cpu_s = 5, .resident = 1000}, {.pid = 9, .resident = 234}};
    stk_proc_tree tree = {.items = procs, .count = 2, .capacity = 2};
    CHECK(isnan(own_after(sampler, &tree, 1, 100, 10)));
    CHECK_NEAR(own_after(sampler, &tree, 2, 101, 10), 50, 1e-9);
    CHECK_NEAR(own_after(sampler, &tree, 4, 102, 11), 50, 1e-9);
    CHECK_NEAR(own_after(sampler, &tree, 5, 0, 11), 0, 0);        /* read when it had just ended */
    CHECK_NEAR(own_after(sampler, &tree, 6, 0, 113.5), 25, 1e-9); /* half a second was used since */
    CHECK_NEAR(own_after(sampler, &tree, 7, 0, 114.5), 50, 1e-9);
    CHECK_NEAR(own_after(sampler, &tree, 8, 0, 50), 0, 0);
    CHECK_NEAR(own_after(sampler, &tree, 9, 0, 51), 0, 0); /* it could be the same again */
    CHECK_NEAR(own_after(sampler, &tree, 10, 0, 52), 50, 1e-9);
    stk_host_sampler_read(sampler, (int64_t)11e9, &tree, &sample);
    CHECK_NEAR(sample.resident, 1234, 0);
    tree.count = 0;
    stk_host_sampler_read(sampler, (int64_t)12e9, &tree, &sample);
    CHECK(isnan(sample.cpu_own) && isnan(sample.resident));
    stk_host_sampler_close(sampler);
}

static void change_disks(void) {
    put(proc, "diskstats",
        "   7       0 loop0 0 0 9000 0 0 0 9000 0 0 0 0\n"
        " 259       0 nvme0n1 0 0 1100 0 0 0 2000 0 0 0 0\n"
        " 259       1 nvme0n1p1 0 0 1100 0 0 0 2000 0 0 0 0\n"
        " 259       2 nvme0n10 0 0 30 0 0 0 40 0 0 0 0\n"
        "   8       0 sda 0 0 7 0 0 0 8 0 0 0 0 0 0 0 0 0 0\n"
        "   8       1 sda1 0 0 7 0 0 0 8 0 0 0 0\n"
        "   8      16 sdaa 0 0 500 0 0 0 0 0 0 0 0\n"
        " 202       1 xvdb1 0 0 50 0 0 0 0 0 0 0 0\n"
        " 253       0 dm-0 0 0 9000 0 0 0 9000 0 0 0 0\n"
        "   9     127 md127 0 0 9000 0 0 0 9000 0 0 0 0\n"
        " 252       0 zram0 0 0 9000 0 0 0 9000 0 0 0 0\n");
}

static void whole_disks_count_once(void) {
    begin();
    put(proc, "diskstats",
        "   7       0 loop0 0 0 0 0 0 0 0 0 0 0 0\n"
        " 259       0 nvme0n1 0 0 100 0 0 0 1000 0 0 0 0\n"
        " 259       1 nvme0n1p1 0 0 100 0 0 0 1000 0 0 0 0\n"
        " 259       2 nvme0n10 0 0 0 0 0 0 0 0 0 0 0\n"
        "   8       0 sda 0 0 0 0 0 0 0 0 0 0 0\n"
        "   8       1 sda1 0 0 0 0 0 0 0 0 0 0 0\n"
        "   8      16 sdaa 0 0 0 0 0 0 0 0 0 0 0\n"
        " 202       1 xvdb1 0 0 0 0 0 0 0 0 0 0 0\n"
        " 253       0 dm-0 0 0 0 0 0 0 0 0 0 0 0\n"
        "   9     127 md127 0 0 0 0 0 0 0 0 0 0 0\n"
        " 252       0 zram0 0 0 0 0 0 0 0 0 0 0 0\n");
    stk_host_sampler *sampler = open_sampler();
    stk_event_sample sample = look_twice(sampler, 0.5, change_disks);
    CHECK_NEAR(sample.disk_read, (1000 + 30 + 7 + 500 + 50) * 512 / 0.5, 1e-6);
    CHECK_NEAR(sample.disk_written, (1000 + 40 + 8) * 512 / 0.5, 1e-6);
    /* A disk that was taken away: less was read than before. */
    put(proc, "diskstats", "   8       0 sda 0 0 7 0 0 0 8 0 0 0 0\n");
    stk_host_sampler_read(sampler, (int64_t)2e9, NULL, &sample);
    CHECK(isnan(sample.disk_read) && isnan(sample.disk_written));
    stk_host_sampler_close(sampler);
}

static const char net_head[] =
    "Inter-|   Receive                         |  Transmit\n"
    " face |bytes    packets errs drop fifo frame compressed multicast|\n";

static void put_net(const char *lines) {
    char text[1024];
    snprintf(text, sizeof text, "%s%s", net_head, lines);
    put(proc, "net/dev", text);
}

static void change_net(void) {
    put_net("    lo: 9000 1 0 0 0 0 0 0 9000 1 0 0 0 0 0 0\n"
            "  eth0:3000 1 0 0 0 0 0 0 700 1 0 0 0 0 0 0\n"
            "eth0.5: 9000 1 0 0 0 0 0 0 9000 1 0 0 0 0 0 0\n"
            "docker0: 9000 1 0 0 0 0 0 0 9000 1 0 0 0 0 0 0\n"
            "  ib0: 500 1 0 0 0 0 0 0 40 1 0 0 0 0 0 0\n");
}

static void change_tap(void) {
    put_net("    lo: 9000 1 0 0 0 0 0 0 9000 1 0 0 0 0 0 0\n"
            "  tap0: 600 1 0 0 0 0 0 0 30 1 0 0 0 0 0 0\n");
}

static void network_without_doubles(void) {
    begin();
    put_net("    lo: 0 1 0 0 0 0 0 0 0 1 0 0 0 0 0 0\n"
            "  eth0:1000 1 0 0 0 0 0 0 500 1 0 0 0 0 0 0\n"
            "eth0.5: 0 1 0 0 0 0 0 0 0 1 0 0 0 0 0 0\n"
            "docker0: 0 1 0 0 0 0 0 0 0 1 0 0 0 0 0 0\n"
            "  ib0: 0 1 0 0 0 0 0 0 0 1 0 0 0 0 0 0\n");
    stk_host_sampler *sampler = open_sampler();
    stk_event_sample sample = look_twice(sampler, 2, change_net);
    CHECK_NEAR(sample.net_in, 1250, 1e-9);
    CHECK_NEAR(sample.net_out, 120, 1e-9);
    stk_host_sampler_close(sampler);
    /* The only way out of some containers. */
    begin();
    put_net("    lo: 0 1 0 0 0 0 0 0 0 1 0 0 0 0 0 0\n"
            "  tap0: 100 1 0 0 0 0 0 0 10 1 0 0 0 0 0 0\n");
    sampler = open_sampler();
    sample = look_twice(sampler, 1, change_tap);
    CHECK_NEAR(sample.net_in, 500, 1e-9);
    CHECK_NEAR(sample.net_out, 20, 1e-9);
    stk_host_sampler_close(sampler);
}

static void change_group(void) {
    change_cores();
    put(groups, "job/cpu.stat", "nr_periods 1\nusage_usec 1750000\nuser_usec 0\n");
    put(groups, "job/memory.current", "700000\n");
    put(proc, "self/stat", "7 (x) S 1 1 1 0 -1 0 0 0 0 0 60 0 0 0 20 0\n");
}

static void change_group_one(void) {
    put(groups, "cpu/cpuacct.usage", "600000000\n");
}

static void a_group_that_limits_is_the_machine(void) {
    begin();
    put(proc, "stat", stat_before);
    put(proc, "self/cgroup", "0::/job\n");
    put(proc, "self/stat", "7 (x) S 1 1 1 0 -1 0 0 0 0 0 0 0 0 0 20 0\n");
    put(proc, "meminfo", "MemTotal: 1000000 kB\nMemAvailable: 400000 kB\n");
    put(groups, "job/cpu.max", "150000 100000\n");
    put(groups, "job/cpu.stat", "nr_periods 1\nusage_usec 1000000\nuser_usec 0\n");
    put(groups, "job/memory.max", "1000000\n");
    put(groups, "job/memory.current", "600000\n");
    put(groups, "job/memory.stat", "anon 1\nfile 2\ninactive_file 200000\n");
    stk_host_sampler *sampler = open_sampler();
    stk_event_sample sample = look_twice(sampler, 1, change_group);
    CHECK_NEAR(sample.cpu, 100 * 0.75 / 1.5, 1e-9);
    CHECK_NEAR(sample.cpu_own, 100 * 60 / (double)sysconf(_SC_CLK_TCK) / 1.5, 1e-9);
    CHECK_NEAR(sample.memory_used, 500000, 0);
    CHECK_INT(sample.core_count, 2);
    stk_host_sampler_close(sampler);

    /* Version 1; its limit of memory is none: it is more than there is. */
    begin();
    put(proc, "self/cgroup", "4:cpu:/\n5:memory:/\n");
    put(proc, "meminfo", "MemTotal: 1000 kB\nMemAvailable: 400 kB\n");
    put(groups, "cpu/cpu.cfs_quota_us", "100000\n");
    put(groups, "cpu/cpu.cfs_period_us", "100000\n");
    put(groups, "cpu/cpuacct.usage", "100000000\n");
    put(groups, "cpu/cpu.stat", "nr_periods 1\n");
    put(groups, "memory/memory.limit_in_bytes", "9223372036854771712\n");
    put(groups, "memory/memory.usage_in_bytes", "5\n");
    sampler = open_sampler();
    sample = look_twice(sampler, 1, change_group_one);
    CHECK_NEAR(sample.cpu, 50, 1e-9);
    CHECK_NEAR(sample.memory_used, 600 * 1024, 0);
    stk_host_sampler_close(sampler);

    /* Groups below count in version 1. What the cores do says nothing where the group does not. */
    put(proc, "stat", stat_before);
    put(groups, "cpu/cpuacct.usage", "");
    put(groups, "memory/memory.limit_in_bytes", "900\n");
    put(groups, "memory/memory.usage_in_bytes", "800\n");
    put(groups, "memory/memory.stat", "inactive_file 1\ntotal_inactive_file 300\n");
    sampler = open_sampler();
    sample = look_twice(sampler, 1, change_cores);
    CHECK(isnan(sample.cpu) && !isnan(sample.iowait));
    CHECK_NEAR(sample.memory_used, 500, 0);
    CHECK_INT(count_missing(sampler, "CPU use of the control group"), 1);
    stk_host_sampler_close(sampler);
}

static void check_unknown(const stk_event_sample *s) {
    CHECK(isnan(s->cpu) && isnan(s->cpu_own) && isnan(s->iowait));
    CHECK(isnan(s->resident) && isnan(s->memory_used));
    CHECK(isnan(s->disk_read) && isnan(s->disk_written) && isnan(s->net_in) && isnan(s->net_out));
    CHECK_INT(s->core_count, 0);
}

static void what_is_missing_is_not_known(void) {
    begin();
    stk_host_sampler *sampler = open_sampler();
    stk_event_sample sample = look_twice(sampler, 1, nothing);
    check_unknown(&sample);
    CHECK_INT(count_missing(sampler, NULL), STK_HOST_FIGURES - 1);
    CHECK_INT(count_missing(sampler, "CPU use of the control group"), 0); /* there is none */
    CHECK_INT(count_missing(sampler, "network (/proc/net/dev)"), 1);
    stk_host_sampler_close(sampler);
}

static void nonsense_is_not_known(void) {
    static const char *const names[] = {"stat",    "self/stat", "self/statm",
                                        "meminfo", "diskstats", "net/dev"};
    static const char *const texts[] = {
        "",
        "\n\n\n",
        "nonsense",
        "cpu",
        "cpu1",
        "cpu1 1 2\ncpu99999999999999999999 1 2 3 4 5\ncpu3 -1 -2 -3 -4\n",
        "7 (x) S 1 2 3\n",
        ")",
        "x\n1 2 sda\n8 0 sda 1 2 3\n8 0\n",
        "eth0\neth0: 1 2 3\n: 1 2 3 4 5 6 7 8 9\n",
        "MemTotal: many kB\nMemAvailable:\n",
    };
    for (size_t t = 0; t < sizeof texts / sizeof *texts; t++) {
        begin();
        for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
            put(proc, names[i], texts[t]);
        }
        stk_host_sampler *sampler = open_sampler();
        stk_event_sample sample = look_twice(sampler, 1, nothing);
        check_unknown(&sample);
        stk_host_sampler_close(sampler);
    }
}

/* A core that is switched off while others work. */
static void change_to_one_core(void) {
    put(proc, "stat", "cpu  1 2 3 4\ncpu1 130 0 60 1040 10 0 0 0\n");
}

static void a_core_may_go(void) {
    begin();
    put(proc, "stat", stat_before);
    stk_host_sampler *sampler = open_sampler();
    stk_event_sample sample = look_twice(sampler, 1, change_to_one_core);
    CHECK_INT(sample.core_count, 2);
    CHECK_NEAR(sample.cores[0], 50, 1e-5);
    CHECK(isnan(sample.cores[1]));
    CHECK_NEAR(sample.cpu, 50, 1e-9);
    stk_host_sampler_close(sampler);
}

static void lack_of_memory_is_an_error(void) {
    stk_host_sampler_config config = {0};
    stk_host_sampler *sampler = NULL;
    for (int i = 0; i < 5; i++) {
        stk_error err = {0};
        stk_mem_fail_after(i);
        CHECK_INT(stk_host_sampler_open(&sampler, &config, &err), STK_ERR_MEMORY);
        stk_mem_fail_after(-1);
        CHECK_CONTAINS(err.message, "sampling the host");
    }
    CHECK(sampler == NULL);
    stk_host_sampler_close(NULL);
}

/* Whatever this machine shows is a share or no less than nothing. */
static void this_machine_makes_sense(void) {
    stk_host_sampler_config config = {0};
    stk_host_sampler *sampler = NULL;
    stk_error err = {0};
    stk_event_sample sample;
    REQUIRE_OK(stk_host_sampler_open(&sampler, &config, &err), &err);
    CHECK(stk_host_sampler_cores(sampler) >= 1);
    stk_host_sampler_read(sampler, 0, NULL, &sample);
    usleep(50000);
    stk_host_sampler_read(sampler, 50000000, NULL, &sample);
    const double shares[] = {sample.cpu, sample.cpu_own, sample.iowait};
    for (size_t i = 0; i < sizeof shares / sizeof *shares; i++) {
        CHECK(isnan(shares[i]) || (shares[i] >= 0 && shares[i] <= 100));
    }
    CHECK(isnan(sample.resident) || sample.resident > 1e5);
    CHECK(isnan(sample.memory_used) || sample.memory_used > 1e5);
    stk_host_sampler_close(sampler);
}

static const check_test tests[] = {
    TEST(cores_that_may_be_used_count),
    TEST(the_first_look_knows_no_rates),
    TEST(own_time_is_told_whatever_the_name_is),
    TEST(a_tree_of_processes_is_told),
    TEST(whole_disks_count_once),
    TEST(network_without_doubles),
    TEST(a_group_that_limits_is_the_machine),
    TEST(what_is_missing_is_not_known),
    TEST(nonsense_is_not_known),
    TEST(a_core_may_go),
    TEST(lack_of_memory_is_an_error),
    TEST(this_machine_makes_sense),
};

CHECK_MAIN(tests)
