/*
 * test_supervise_evidence.c - what commands show from outside, on both sides of each threshold.
 */
#include "check.h"

#include <math.h>

#include "base/mem.h"
#include "supervise/decide/command_evidence.h"

#define ROOT 100 /* of the tree: the guardian */
#define COMMAND 101

/* A machine whose looks come one second after the other. */
typedef struct machine {
    stk_command_evidence *s;
    stk_event_sample sample;
    stk_proc procs[600];
    double busy[600]; /* percent of a core, by which each uses CPU time */
    stk_proc_tree tree;
} machine;

static machine m;

static stk_event_sample gpu_sample(double util, double memory_used, double memory_own) {
    return (stk_event_sample){.gpu_util = util,
                              .sm_activity = NAN,
                              .gpu_memory_used = memory_used,
                              .gpu_memory_total = 24e9,
                              .gpu_memory_own = memory_own,
                              .gpu_clock_mhz = 1900,
                              .gpu_clock_most_mhz = 2000,
                              .gpu_throttled = "",
                              .cpu = 40,
                              .cpu_own = 30,
                              .iowait = 0,
                              .core_count = 8};
}

static stk_event_sample no_gpu_sample(void) {
    stk_event_sample sample = gpu_sample(NAN, NAN, NAN);
    sample.gpu_memory_total = NAN;
    sample.gpu_clock_mhz = NAN;
    sample.gpu_clock_most_mhz = NAN;
    sample.gpu_throttled = NULL;
    return sample;
}

/* One more process; its index. */
static size_t add_process(pid_t pid, pid_t parent, int depth, const char *name, double busy) {
    size_t index = m.tree.count++;
    m.procs[index] = (stk_proc){.pid = pid,
                                .parent = parent,
                                .born = (uint64_t)pid,
                                .state = 'S',
                                .depth = depth,
                                .cpu_s = 3, /* for starting */
                                .resident = 1000000000};
    snprintf(m.procs[index].name, sizeof m.procs[index].name, "%s", name);
    m.busy[index] = busy;
    return index;
}

/* A command of one process in a tree of two. */
static void begin(double driver_busy) {
    stk_error err = {0};
    stk_event_sample level = gpu_sample(0, 1e9, 0);
    if (m.s == NULL) {
        REQUIRE_OK(stk_command_evidence_new(&m.s, &err), &err);
    }
    m.tree = (stk_proc_tree){.items = m.procs, .capacity = 600};
    add_process(ROOT, 1, 0, "stoker", 0);
    add_process(COMMAND, ROOT, 1, "python", driver_busy);
    m.sample = gpu_sample(30, 3e9, 2e9);
    stk_command_evidence_begin(m.s, &level, 0);
}

static void end(void) {
    stk_command_evidence_free(m.s);
    m = (machine){0};
}

static void look(int times) {
    for (int i = 0; i < times; i++) {
        m.sample.at_s += 1;
        for (size_t p = 0; p < m.tree.count; p++) {
            m.procs[p].cpu_s += m.busy[p] / 100;
        }
        stk_command_evidence_add(m.s, &m.sample, &m.tree, COMMAND);
    }
}

static stk_evidence_summary seen_since(double from_s) {
    stk_evidence_summary seen;
    stk_command_evidence_since(m.s, from_s, &seen);
    return seen;
}

static void means_of_a_stretch(void) {
    begin(50);
    look(10);
    m.sample.gpu_util = 50;
    m.sample.cpu_own = 40;
    m.sample.iowait = 4;
    m.sample.gpu_memory_own = 6e9;
    look(20);
    stk_evidence_summary seen = seen_since(10);
    CHECK_INT(seen.samples, 20);
    CHECK_NEAR(seen.seconds, 20, 1e-9);
    CHECK_NEAR(seen.activity, 50, 1e-9);
    CHECK_NEAR(seen.cpu_own, 40, 1e-9);
    CHECK_NEAR(seen.iowait, 4, 1e-9);
    CHECK_NEAR(seen.memory_used, 6e9, 0);
    CHECK_NEAR(seen.memory_share, 0.25, 1e-9);
    CHECK_NEAR(seen.driver_busy, 50, 1e-6);
    CHECK_INT(seen.loaders, 0);
    CHECK(isnan(seen.loaders_busy));
    CHECK(seen.has_gpu && seen.gpu_used && !seen.input_bound);
    CHECK_NEAR(seen.blocked, 0, 0);
    seen = seen_since(NAN);
    CHECK_INT(seen.samples, 30);
    CHECK_NEAR(seen.seconds, 30, 1e-9);
    seen = seen_since(30);
    CHECK_INT(seen.samples, 0);
    CHECK_NEAR(seen.seconds, 0, 0);
    CHECK(isnan(seen.activity) && !seen.input_bound && !seen.has_gpu);
    end();
}

static void a_new_command_starts_anew(void) {
    begin(50);
    look(10);
    CHECK_NEAR(stk_command_evidence_working_since(m.s), 1, 0);
    stk_command_evidence_begin(m.s, NULL, 10);
    CHECK(isnan(stk_command_evidence_working_since(m.s)));
    m.sample.gpu_util = 0;
    m.busy[1] = 10;
    look(5);
    stk_evidence_summary seen = seen_since(NAN);
    CHECK_INT(seen.samples, 5);
    CHECK_NEAR(seen.seconds, 5, 1e-9);
    CHECK_NEAR(seen.activity, 0, 0);
    end();
}

/* A context, a short burst, then three looks of four. */
static void work_begins_when_it_lasts(void) {
    begin(50);
    m.sample.gpu_util = 0;
    look(5);
    m.sample.gpu_util = 90;
    look(2);
    m.sample.gpu_util = 4.9;
    look(5);
    CHECK(isnan(stk_command_evidence_working_since(m.s)));
    m.sample.gpu_util = 5;
    look(2);
    m.sample.gpu_util = 0;
    look(1);
    CHECK(isnan(stk_command_evidence_working_since(m.s)));
    m.sample.gpu_util = 5;
    look(1);
    CHECK_NEAR(stk_command_evidence_working_since(m.s), 13, 0);
    m.sample.gpu_util = 0;
    look(100);
    CHECK_NEAR(stk_command_evidence_working_since(m.s), 13, 0);
    end();
}

/* The list of processes says that the command has no part in it. */
static void work_of_others_is_not_meant(void) {
    begin(50);
    m.sample = gpu_sample(95, 20e9, 0);
    look(10);
    CHECK(isnan(stk_command_evidence_working_since(m.s)));
    CHECK(!seen_since(NAN).gpu_used);
    m.sample.gpu_memory_own = NAN; /* and here nobody says so */
    look(3);
    CHECK_NEAR(stk_command_evidence_working_since(m.s), 11, 0);
    CHECK(seen_since(NAN).gpu_used);
    end();
}

static void a_gpu_without_utilisation_works_by_its_memory(void) {
    begin(50);
    m.sample = gpu_sample(NAN, 1.5e9, NAN);
    look(10);
    CHECK(isnan(stk_command_evidence_working_since(m.s)));
    m.sample.gpu_memory_used = 1.7e9;
    look(3);
    CHECK_NEAR(stk_command_evidence_working_since(m.s), 11, 0);
    CHECK(isnan(seen_since(NAN).activity));
    end();
}

static void memory_is_told_or_over_the_level(void) {
    begin(50);
    m.sample = gpu_sample(30, 3e9, NAN);
    look(3);
    CHECK_NEAR(seen_since(NAN).memory_used, 2e9, 0); /* the level is 1e9 */
    m.sample.gpu_memory_used = 0.5e9;                /* another program has ended */
    look(1);
    CHECK_NEAR(seen_since(3).memory_used, 0, 0);
    CHECK_NEAR(seen_since(NAN).memory_used, 2e9, 0);
    stk_command_evidence_begin(m.s, NULL, 4); /* the level is what is seen first */
    look(1);
    m.sample.gpu_memory_used = 0.6e9;
    look(1);
    CHECK_NEAR(seen_since(NAN).memory_used, 0.1e9, 1);
    end();
}

static void without_a_gpu_there_is_no_work(void) {
    begin(50);
    m.sample = no_gpu_sample();
    m.sample.cpu_own = 99;
    look(20);
    stk_evidence_summary seen = seen_since(NAN);
    CHECK(isnan(stk_command_evidence_working_since(m.s)));
    CHECK(!seen.has_gpu && !seen.gpu_used && !seen.input_bound);
    CHECK(isnan(seen.activity) && isnan(seen.memory_share) && isnan(seen.memory_used));
    end();
}

static void feeders_are_what_works_below_the_driver(void) {
    begin(20);
    for (int i = 0; i < 4; i++) {
        add_process(200 + i, COMMAND, 2, "pt_data_worker", 85);
    }
    add_process(300, COMMAND, 2, "python", 0.5); /* a pool that waits */
    add_process(400, 200, 3, "cwebp", 85);
    look(30);
    stk_evidence_summary seen = seen_since(10);
    CHECK_INT(seen.loaders, 5);
    CHECK_NEAR(seen.loaders_busy, 85, 1e-6);
    CHECK_NEAR(seen.driver_busy, 20, 1e-6);
    end();
}

/* The shell and what it starts are no feeders. */
static void shells_are_no_drivers(void) {
    begin(0);
    snprintf(m.procs[1].name, sizeof m.procs[1].name, "bash");
    add_process(150, COMMAND, 2, "python", 30);
    add_process(151, COMMAND, 2, "tee", 1);
    add_process(200, 150, 3, "python", 90);
    add_process(201, 150, 3, "python", 70);
    look(20);
    stk_evidence_summary seen = seen_since(1);
    CHECK_INT(seen.loaders, 2);
    CHECK_NEAR(seen.loaders_busy, 80, 1e-6);
    CHECK_NEAR(seen.driver_busy, 30, 1e-6);
    end();
}

/* A wrapper whose name nobody knows: it does nothing, and what it has started is large. */
static void wrappers_are_no_drivers(void) {
    begin(0);
    m.procs[1].resident = 250000000;
    add_process(150, COMMAND, 2, "python", 95);
    look(20);
    stk_evidence_summary seen = seen_since(5);
    CHECK_INT(seen.loaders, 0);
    CHECK_NEAR(seen.driver_busy, 95, 1e-6);
    m.procs[1].resident = 250000001; /* one that waits for its only worker */
    look(1);
    seen = seen_since(5);
    CHECK_INT(seen.loaders, 1);
    CHECK_NEAR(seen.driver_busy, 0, 0);
    m.procs[1].resident = 250000000; /* and one that does a little itself */
    m.busy[1] = 1.1;
    look(20);
    CHECK_INT(seen_since(21).loaders, 1);
    end();
}

/* python -m torch.distributed.run: it imported much, and then it waits for those that drive. */
static void several_drivers(void) {
    begin(0.2);
    for (int rank = 0; rank < 2; rank++) {
        add_process(150 + rank, COMMAND, 2, "python", 60 + 10 * rank);
        for (int i = 0; i < 3; i++) {
            add_process(200 + 10 * rank + i, 150 + rank, 3, "python", 82);
        }
    }
    look(40);
    stk_evidence_summary seen = seen_since(5);
    CHECK_INT(seen.loaders, 6);
    CHECK_NEAR(seen.loaders_busy, 82, 1e-6);
    CHECK_NEAR(seen.driver_busy, 70, 1e-6);
    end();
}

/* An epoch has four workers, the next has four others: there are four. */
static void workers_of_epochs_follow_each_other(void) {
    begin(20);
    for (int epoch = 0; epoch < 5; epoch++) {
        m.tree.count = 2;
        for (int i = 0; i < 4; i++) {
            size_t index = add_process(200 + 10 * epoch + i, COMMAND, 2, "python", 50);
            m.procs[index].cpu_s = 0;
        }
        look(10);
    }
    stk_evidence_summary seen = seen_since(NAN);
    CHECK_INT(seen.loaders, 4);
    CHECK_NEAR(seen.loaders_busy, 50, 1e-6);
    end();
}

/* A number that another process got is another process. */
static void numbers_may_come_again(void) {
    begin(20);
    add_process(200, COMMAND, 2, "python", 90);
    look(10);
    m.procs[2].born = 7;
    m.procs[2].cpu_s = 0;
    look(10);
    stk_evidence_summary seen = seen_since(10);
    CHECK_INT(seen.loaders, 1);
    CHECK_NEAR(seen.loaders_busy, 90, 1e-6);
    end();
}

/* Longer than readings of processes are kept, and than looks are. */
static void long_stretches(void) {
    begin(20);
    size_t worker = add_process(200, COMMAND, 2, "python", 10);
    look(1000);
    m.busy[worker] = 90;
    look(200);
    stk_evidence_summary seen = seen_since(NAN);
    CHECK_INT(seen.samples, 1200);
    CHECK_NEAR(seen.loaders_busy, 90, 1e-6);
    CHECK_NEAR(seen.driver_busy, 20, 1e-6);
    look(4000);
    seen = seen_since(NAN);
    CHECK_INT(seen.samples, 3599);
    CHECK_NEAR(seen.seconds, 3599, 1e-6);
    CHECK_NEAR(seen.loaders_busy, 90, 1e-6);
    end();
}

/* More processes than are looked at: those that are gone make room. */
static void many_processes(void) {
    begin(20);
    for (int i = 0; i < 590; i++) {
        add_process(1000 + i, COMMAND, 2, "python", 50);
    }
    look(5);
    CHECK(seen_since(NAN).loaders > 500);
    m.tree.count = 2;
    look(125);
    add_process(3000, COMMAND, 2, "python", 50);
    look(5);
    CHECK_INT(seen_since(130).loaders, 1);
    end();
}

static void a_tree_that_cannot_be_read(void) {
    begin(20);
    m.tree.count = 0;
    look(10);
    stk_evidence_summary seen = seen_since(NAN);
    CHECK(isnan(seen.blocked) && isnan(seen.driver_busy));
    CHECK_INT(seen.loaders, 0);
    CHECK_INT(seen.samples, 10);
    end();
}

/* ---- Input-bound ---- */

/* Thirty looks at a GPU of this activity with four workers; then the question. */
static bool bound(double util, double loaders_busy, double cpu_own, double iowait, int blocked) {
    begin(20);
    for (int i = 0; i < 4; i++) {
        add_process(200 + i, COMMAND, 2, "python", loaders_busy);
    }
    m.sample.gpu_util = util;
    m.sample.cpu_own = cpu_own;
    m.sample.iowait = iowait;
    look(1); /* with what starting took */
    for (int i = 0; i < 30; i++) {
        m.procs[2].state = i < blocked ? 'D' : 'S';
        look(1);
    }
    bool is_bound = seen_since(1).input_bound;
    end();
    return is_bound;
}

static void input_bound_by_feeders(void) {
    CHECK(bound(30, 80.1, 50, 0, 0));
    CHECK(!bound(30, 79, 50, 0, 0));
    CHECK(bound(59.9, 95, 50, 0, 0));
    CHECK(!bound(60, 95, 50, 0, 0));
}

/* On cores that others use as well feeders get little of them, and would take more. */
static void feeders_that_wait_for_a_core_are_busy(void) {
    begin(20);
    add_process(200, COMMAND, 2, "python", 40);
    add_process(201, COMMAND, 2, "python", 40);
    look(1);
    m.procs[2].state = 'R';
    m.procs[3].state = 'R';
    look(24);
    CHECK(seen_since(1).input_bound);
    m.procs[3].state = 'S';
    look(6);
    CHECK_NEAR(seen_since(1).loaders_busy, 90, 1e-6);
    m.procs[2].state = 'S';
    look(10);
    stk_evidence_summary seen = seen_since(1);
    CHECK_NEAR(seen.loaders_busy, 67.5, 1e-6);
    CHECK(!seen.input_bound);
    end();
}

static void input_bound_by_cores(void) {
    CHECK(bound(30, 40, 90, 0, 0));
    CHECK(!bound(30, 40, 89, 0, 0));
}

static void input_bound_by_disks(void) {
    CHECK(bound(30, 5, 10, 20, 0));
    CHECK(!bound(30, 5, 10, 19, 0));
    CHECK(bound(30, 5, 10, 0, 15));
    CHECK(!bound(30, 5, 10, 0, 14));
}

/* One process that does it all on the only core may be loading or launching. */
static void a_single_core_says_nothing(void) {
    begin(99);
    m.sample.cpu_own = 99;
    m.sample.core_count = 1;
    look(30);
    CHECK(!seen_since(NAN).input_bound);
    m.sample.core_count = 2;
    look(1);
    CHECK(seen_since(NAN).input_bound);
    end();
}

/* Training on the cores of a machine whose GPU is left alone. */
static void a_gpu_that_is_not_used_waits_for_nothing(void) {
    begin(99);
    m.sample = gpu_sample(0, 1e9, 0);
    m.sample.cpu_own = 99;
    look(30);
    stk_evidence_summary seen = seen_since(NAN);
    CHECK(seen.has_gpu && !seen.gpu_used && !seen.input_bound);
    end();
}

/* ---- Verdicts ---- */

static stk_verdict verdict;

/* What a command said of its speed a moment after it began. */
static stk_command_progress words_of(double steps_per_second, double images_per_second) {
    stk_command_progress progress;
    stk_progress_begin(&progress, 0);
    progress.steps_per_second = steps_per_second;
    progress.images_per_second = images_per_second;
    progress.step_rate_s = 2;
    progress.image_rate_s = 2;
    return progress;
}

static stk_verdict_kind judge(const stk_command_progress *progress, int64_t batch) {
    stk_evidence_summary seen = seen_since(1);
    stk_command_evidence_judge(m.s, &seen, progress, 1, m.sample.at_s, batch, &verdict);
    return verdict.kind;
}

/* The script of the issue: 1 % of the memory, a GPU that hardly works, a driver that launches. */
static void a_small_batch_is_launch_bound(void) {
    stk_command_progress progress = words_of(40, 320);
    begin(99);
    m.sample = gpu_sample(25, 1.3e9, 0.3e9);
    look(60);
    CHECK_INT(judge(&progress, 8), STK_VERDICT_LAUNCH);
    CHECK(verdict.event.batch == NULL); /* only the first verdict of a training has that text */
    REQUIRE(verdict.event.remedy_count == 1);
    CHECK_CONTAINS(verdict.event.remedies[0].text, "a batch of ");
    CHECK_STR(verdict.event.remedies[0].flags, ""); /* Stoker's flag is not the command's */
    CHECK(verdict.event.remedies[0].gain > 1.5);
    CHECK_NEAR(verdict.event.gpu_util, 25, 1e-9);
    CHECK_NEAR(verdict.event.gpu_memory_used, 0.3e9, 0);
    CHECK(strstr(verdict.text, "--") == NULL);
    end();
}

static void busy_workers_are_decode_bound(void) {
    stk_command_progress progress = words_of(10, 640);
    begin(20);
    add_process(200, COMMAND, 2, "python", 97);
    add_process(201, COMMAND, 2, "python", 95);
    look(60);
    CHECK_INT(judge(&progress, 64), STK_VERDICT_DECODE);
    CHECK_CONTAINS(verdict.text, "input-bound: GPU waits 70 % (decode)");
    CHECK_CONTAINS(verdict.text, "8 loader workers (num_workers)");
    CHECK_INT(verdict.event.remedy_count, 1);
    CHECK_STR(verdict.event.remedies[0].flags, "");
    end();
}

static void disks_are_storage_bound(void) {
    stk_command_progress progress = words_of(10, 640);
    begin(20);
    add_process(200, COMMAND, 2, "python", 20);
    m.procs[2].state = 'D';
    look(60);
    CHECK_INT(judge(&progress, 64), STK_VERDICT_STORAGE);
    CHECK_STR(verdict.event.name, "storage-bound");
    CHECK_CONTAINS(verdict.text, "Faster storage would help"); /* and none of Stoker's caches */
    CHECK_INT(verdict.event.remedy_count, 0);
    end();
}

static void a_busy_gpu_is_fine(void) {
    stk_command_progress progress = words_of(10, 640);
    begin(60);
    m.sample = gpu_sample(97, 15e9, 14e9);
    look(60);
    CHECK_INT(judge(&progress, 64), STK_VERDICT_FINE);
    CHECK(verdict.event.fine);
    end();
}

/* A command that says nothing of its steps is judged by what it shows. */
static void silence_is_no_obstacle(void) {
    stk_command_progress progress = words_of(NAN, NAN);
    begin(99);
    m.sample = gpu_sample(25, 1.3e9, 0.3e9);
    look(60);
    CHECK_INT(judge(&progress, -1), STK_VERDICT_LAUNCH);
    CHECK(verdict.event.batch == NULL);
    CHECK_INT(verdict.event.remedy_count, 0);
    m.sample.gpu_util = 98;
    look(2000);
    CHECK_INT(judge(&progress, -1), STK_VERDICT_FINE);
    end();
    begin(99);
    look(3);
    CHECK_INT(judge(&progress, 8), STK_VERDICT_UNKNOWN);
    end();
}

static void a_throttled_gpu(void) {
    stk_command_progress progress = words_of(10, 640);
    char reason[] = "heat";
    begin(60);
    m.sample = gpu_sample(97, 15e9, 14e9);
    m.sample.gpu_throttled = reason;
    m.sample.gpu_clock_mhz = 1000;
    look(60);
    reason[0] = 'x'; /* the sample's text is not needed any more */
    CHECK_INT(judge(&progress, 64), STK_VERDICT_THROTTLED);
    CHECK_CONTAINS(verdict.text, "heat held its clock at 50 % of the highest in 100 %");
    CHECK_STR(verdict.event.remedies[0].flags, "nvidia-smi -q -d PERFORMANCE");
    end();
}

static void cores_that_compute(void) {
    stk_command_progress progress = words_of(0.5, 32);
    begin(380);
    m.sample = no_gpu_sample();
    look(60);
    CHECK_INT(judge(&progress, 64), STK_VERDICT_COMPUTE);
    CHECK_CONTAINS(verdict.text, "the machine computes 100 % of the time at 32 img/s");
    m.busy[1] = 10;
    m.procs[1].state = 'D';
    look(300);
    stk_evidence_summary seen = seen_since(100);
    stk_command_evidence_judge(m.s, &seen, &progress, 100, m.sample.at_s, 64, &verdict);
    CHECK_INT(verdict.kind, STK_VERDICT_STORAGE);
    end();
}

static void lack_of_memory_is_an_error(void) {
    stk_command_evidence *evidence = NULL;
    stk_error err = {0};
    stk_mem_fail_after(0);
    CHECK_INT(stk_command_evidence_new(&evidence, &err), STK_ERR_MEMORY);
    stk_mem_fail_after(-1);
    CHECK_CONTAINS(err.message, "out of memory for the evidence of a command");
    stk_command_evidence_free(NULL);
}

static const check_test tests[] = {
    TEST(means_of_a_stretch),
    TEST(a_new_command_starts_anew),
    TEST(work_begins_when_it_lasts),
    TEST(work_of_others_is_not_meant),
    TEST(a_gpu_without_utilisation_works_by_its_memory),
    TEST(memory_is_told_or_over_the_level),
    TEST(without_a_gpu_there_is_no_work),
    TEST(feeders_are_what_works_below_the_driver),
    TEST(shells_are_no_drivers),
    TEST(wrappers_are_no_drivers),
    TEST(several_drivers),
    TEST(workers_of_epochs_follow_each_other),
    TEST(numbers_may_come_again),
    TEST(long_stretches),
    TEST(many_processes),
    TEST(a_tree_that_cannot_be_read),
    TEST(input_bound_by_feeders),
    TEST(feeders_that_wait_for_a_core_are_busy),
    TEST(input_bound_by_cores),
    TEST(input_bound_by_disks),
    TEST(a_single_core_says_nothing),
    TEST(a_gpu_that_is_not_used_waits_for_nothing),
    TEST(a_small_batch_is_launch_bound),
    TEST(busy_workers_are_decode_bound),
    TEST(disks_are_storage_bound),
    TEST(a_busy_gpu_is_fine),
    TEST(silence_is_no_obstacle),
    TEST(a_throttled_gpu),
    TEST(cores_that_compute),
    TEST(lack_of_memory_is_an_error),
};

CHECK_MAIN(tests)
