/*
 * fuzz_proc.c - what a machine tells of itself below /proc and in its control groups: any text
 * gives shares from 0 to 100, or says that nothing is known.
 */
#include "fuzz_folder.h"

#include <math.h>

#include "monitor/host_sampler.h"

static const fuzz_seed seeds[] = {
    FUZZ_SEED("cpu  10 0 5 100 3 0 0 1 0 0\ncpu0 5 0 2 50 1 0 0 0 0 0\ncpu1 5 0 3 50 2 0 0 1 0 "
              "0\nintr 1\n" FUZZ_NEXT
              "1 (a) b) S 0 1 1 0 -1 0 0 0 0 0 7 3 0 0 20 0 2 0 100 4096 250\n" FUZZ_NEXT
              "MemTotal: 8000000 kB\nMemFree: 1000 kB\nMemAvailable: 4000000 kB\n" FUZZ_NEXT
              "   8  0 sda 1 2 3 4 5 6 7 8 0 10 11 0 0 0 0\n   8  1 sda1 1 2 3 4 5 6 7 8 9 1 "
              "2\n" FUZZ_NEXT
              "Inter-|   Receive\n face |bytes\n eth0: 1000 1 0 0 0 0 0 0 2000 2 0 0 0 0 0 0\n"
              "    lo: 5 5 0 0 0 0 0 0 5 5 0 0 0 0 0 0\n" FUZZ_NEXT "0::/\n"),
    FUZZ_SEED("cpu 18446744073709551615 1 1 1\n" FUZZ_NEXT FUZZ_NEXT "MemTotal: -1 kB\n" FUZZ_NEXT
              "nvme0n1\n" FUZZ_NEXT "eth0:18446744073709551615 1\n" FUZZ_NEXT
              "1:cpu,cpuacct:/../x\n"),
};
FUZZ_PLAN_FILES(seeds)

static void put_files(const fuzz_seed parts[FUZZ_PARTS], const char *const names[]) {
    for (int i = 0; i < FUZZ_PARTS; i++) {
        fuzz_put(names[i], parts[i]);
    }
}

static void check_share(double share) {
    FUZZ_REQUIRE(isnan(share) || (share >= 0 && share <= 100.0001));
}

static void look(const fuzz_seed parts[FUZZ_PARTS], const char *const names[]) {
    char proc[600];
    char groups[1100];
    stk_host_sampler *sampler = NULL;
    stk_error err = {0};
    snprintf(proc, sizeof proc, "%s", fuzz_folder());
    snprintf(groups, sizeof groups, "%s", fuzz_path("groups"));
    const stk_host_sampler_config config = {.proc = proc, .groups = groups};
    FUZZ_REQUIRE(stk_host_sampler_open(&sampler, &config, &err) == STK_OK);
    for (int i = 0; i < 3; i++) {
        stk_event_sample sample = {0};
        stk_host_sampler_read(sampler, (int64_t)i * 1000000000, NULL, &sample);
        if (i > 0) {
            check_share(sample.cpu);
        }
        fuzz_seed turned[FUZZ_PARTS]; /* the next look sees other numbers */
        for (int k = 0; k < FUZZ_PARTS; k++) {
            turned[k] = parts[k];
            turned[k].size = turned[k].size / (size_t)(i + 1);
        }
        put_files(turned, names);
    }
    stk_host_sampler_close(sampler);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    static const char *const names[FUZZ_PARTS] = {"stat",      "self/stat", "meminfo",
                                                  "diskstats", "net/dev",   "self/cgroup"};
    fuzz_seed parts[FUZZ_PARTS];
    fuzz_make_folder("self");
    fuzz_make_folder("net");
    fuzz_make_folder("groups");
    fuzz_divide(data, size, parts);
    put_files(parts, names);
    fuzz_put("self/statm", parts[1]);
    fuzz_put("groups/cpu.max", parts[2]);
    fuzz_put("groups/cpu.stat", parts[2]);
    fuzz_put("groups/memory.max", parts[3]);
    fuzz_put("groups/memory.current", parts[3]);
    fuzz_put("groups/memory.stat", parts[4]);
    look(parts, names);
    return 0;
}
