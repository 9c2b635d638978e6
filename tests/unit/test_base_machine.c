/* test_base_machine.c - limits of control groups, of both versions, nested and hidden. */
#include "check.h"

#include <sys/resource.h>

#include "base/files/file.h"
#include "base/machine.h"
#include "base/mem.h"

static char root[256];

static void put(const char *name, const char *text) {
    stk_error err = {0};
    char *path = stk_path_join(root, name);
    char *folder = stk_mem_strndup(path, (size_t)(stk_path_base(path) - path));
    if (stk_dir_make(folder, &err) != STK_OK ||
        stk_file_write(path, text, strlen(text), &err) != STK_OK) {
        printf("%s\n", err.message);
        exit(1);
    }
    stk_mem_free(folder);
    stk_mem_free(path);
}

static stk_machine_limits limits_of(const char *membership) {
    put("membership", membership);
    char *path = stk_path_join(root, "membership");
    stk_machine_limits limits = stk_machine_group_limits(path, root);
    stk_mem_free(path);
    return limits;
}

static void begin(void) {
    snprintf(root, sizeof root, "%s", check_folder());
}

static void version_two_and_every_group_above(void) {
    begin();
    put("cpu.max", "max 100000\n");
    put("memory.max", "max\n");
    put("a/cpu.max", "250000 100000\n");
    put("a/b/cpu.max", "400000 100000\n");
    put("a/b/memory.max", "1073741824\n");
    put("a/b/c/memory.max", "4294967296\n");
    stk_machine_limits limits = limits_of("0::/a/b/c\n");
    CHECK_NEAR(limits.cores, 2.5, 1e-9);
    CHECK_NEAR(limits.bytes, 1073741824.0, 0);
    char group[sizeof root + 8];
    snprintf(group, sizeof group, "%s/a", root);
    CHECK_STR(limits.cores_group, group);
    snprintf(group, sizeof group, "%s/a/b", root);
    CHECK_STR(limits.bytes_group, group);
    limits = limits_of("0::/\n");
    CHECK(isinf(limits.cores) && isinf(limits.bytes));
    CHECK_STR(limits.cores_group, "");
    CHECK_STR(limits.bytes_group, "");
}

static void version_one(void) {
    begin();
    put("cpu,cpuacct/job/cpu.cfs_quota_us", "50000\n");
    put("cpu,cpuacct/job/cpu.cfs_period_us", "100000\n");
    put("memory/outside/inside/memory.limit_in_bytes", "9223372036854771712\n");
    put("memory/outside/memory.limit_in_bytes", "2000000\n");
    stk_machine_limits limits =
        limits_of("5:memory:/outside/inside\n4:cpu,cpuacct:/job\n1:name=systemd:/x\n0::/\n");
    CHECK_NEAR(limits.cores, 0.5, 1e-9);
    CHECK_NEAR(limits.bytes, 2000000, 0);
    put("cpu/job/cpu.cfs_quota_us", "25000\n");
    put("cpu/job/cpu.cfs_period_us", "100000\n");
    CHECK_NEAR(limits_of("4:cpuacct,cpu:/job\n").cores, 0.25, 1e-9);
    CHECK(isinf(limits_of("4:cpuset,cpuacct:/job\n").cores));
    put("cpu/job/cpu.cfs_quota_us", "-1\n");
    put("cpu,cpuacct/job/cpu.cfs_quota_us", "-1\n");
    CHECK(isinf(limits_of("4:cpu,cpuacct:/job\n").cores));
}

/* A container that sees its own group as the root, but its path as it is outside. */
static void a_path_that_is_not_there(void) {
    begin();
    put("cpu.max", "300000 100000\n");
    CHECK_NEAR(limits_of("0::/docker/0123\n").cores, 3, 1e-9);
    put("unified/machine/memory.max", "5000000\n");
    CHECK_NEAR(limits_of("0::/machine\n").bytes, 5000000, 0);
}

static void nonsense_limits_nothing(void) {
    begin();
    put("cpu.max", "many\n");
    put("memory.max", "");
    stk_machine_limits limits = limits_of("nonsense\n\n0:\n0::\n");
    CHECK(isinf(limits.cores) && isinf(limits.bytes));
    put("cpu.max", "0 0\n");
    CHECK(isinf(limits_of("0::/\n").cores));
    char longest[9000];
    snprintf(longest, sizeof longest, "4:%4085s:/x\n0::/%4080s\n", "cpu", "y");
    CHECK(isinf(limits_of(longest).cores));
    put("cpu.max", "200000 100000\n");
    limits = stk_machine_group_limits("/nowhere/at/all", root);
    CHECK_NEAR(limits.cores, 2, 1e-9);
}

static void the_machine_has_something(void) {
    CHECK(stk_machine_cores() >= 1 && stk_machine_cores() <= 4096);
    CHECK(stk_machine_memory() > (uint64_t)1 << 24);
}

static void a_limit_of_the_address_space(void) {
    CHECK(stk_machine_can_map(1 << 20));
#ifndef CHECK_SANITIZED /* whose shadow memory is larger than any limit */
    const size_t most = (size_t)8 << 30;
    struct rlimit before;
    CHECK_INT(getrlimit(RLIMIT_AS, &before), 0);
    if (before.rlim_cur < most) {
        return;
    }
    struct rlimit limit = {.rlim_cur = most, .rlim_max = before.rlim_max};
    CHECK_INT(setrlimit(RLIMIT_AS, &limit), 0);
    CHECK(!stk_machine_can_map(most));
    CHECK(stk_machine_can_map(1 << 20));
    CHECK_INT(setrlimit(RLIMIT_AS, &before), 0);
#endif
}

static const check_test tests[] = {
    TEST(version_two_and_every_group_above), TEST(version_one),
    TEST(a_path_that_is_not_there),          TEST(nonsense_limits_nothing),
    TEST(the_machine_has_something),         TEST(a_limit_of_the_address_space),
};

CHECK_MAIN(tests)
