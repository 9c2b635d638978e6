/*
 * sampler_cost.c - what looking at the machine costs: sampler_cost [SECONDS [BUS_ID [PID]]],
 * with the place of a GPU as nvidia-smi --query-gpu=pci.bus_id tells it ("": none), and a process
 * whose tree is looked at instead of this process. Does nothing but look once a
 * second, so that the process's time is the sampler's; then prints the samples as lines of
 * events.jsonl and, last, one JSON object: percent of a core, and microseconds of a core's time
 * that a look takes.
 */
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "monitor/machine_sampler.h"
#include "report/observers/jsonl.h"

#define MOST_SAMPLES 60 /* that a sampler keeps for us */

static double core_s(void) {
    struct timespec t;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

int main(int argc, char **argv) {
    int seconds = argc > 1 ? atoi(argv[1]) : 20;
    stk_error err = {0};
    stk_machine_sampler *sampler = NULL;
    stk_jsonl *lines = NULL;
    stk_event_sample sample;
    const char *place = argc > 2 ? argv[2] : "";
    stk_machine_sampler_config config = {.gpu_bus_ids = &place,
                                         .gpu_count = place[0] != '\0' ? 1 : 0,
                                         .root = argc > 3 ? (pid_t)strtol(argv[3], NULL, 10) : 0,
                                         .start_ns = stk_clock_ns()};
    stk_jsonl_config output = {.fd = STDOUT_FILENO, .name = "standard output"};
    if (seconds < 1 || seconds > MOST_SAMPLES) {
        fprintf(stderr, "sampler_cost: it can look for 1 to %d seconds\n", MOST_SAMPLES);
        return 2;
    }
    if (stk_jsonl_new(&lines, &output, &err) != STK_OK ||
        stk_machine_sampler_start(&sampler, &config, &err) != STK_OK) {
        fprintf(stderr, "sampler_cost: %s\n", err.message);
        return 1;
    }
    while (!stk_machine_sampler_take(sampler, &sample)) { /* opening is over */
        usleep(10000);
    }
    double before_core_s = core_s();
    int64_t before_ns = stk_clock_ns();
    sleep((unsigned)seconds);
    double spent_s = core_s() - before_core_s;
    double passed_s = stk_clock_since_s(before_ns);
    int looks = 0;
    while (stk_machine_sampler_take(sampler, &sample)) {
        stk_jsonl_observer(lines)->sample(stk_jsonl_observer(lines)->user, &sample);
        looks++;
    }
    printf("{\"seconds\": %.3f, \"looks\": %d, \"core_percent\": %.4f, \"look_us\": %.0f, "
           "\"notes\": \"%s\"}\n",
           passed_s, looks, 100 * spent_s / passed_s, looks > 0 ? 1e6 * spent_s / looks : 0,
           stk_machine_sampler_notes(sampler));
    stk_machine_sampler_stop(sampler);
    stk_jsonl_free(lines);
    return looks > 0 ? 0 : 1;
}
