/* test_loader_tuner.c - what the tuner advises, rule by rule. */
#include "check.h"

#include "loader/tuner.h"

static stk_tuner_reading reading(int workers, int slots, double wait, double spare,
                                 double starved) {
    return (stk_tuner_reading){.seconds = 0.5,
                               .wait_s = wait * 0.5,
                               .full_wait_s = spare * 0.5,
                               .other_wait_s = starved * 0.5,
                               .workers = workers,
                               .slots = slots};
}

static stk_tuner_advice judge(stk_tuner *tuner, stk_tuner_reading r) {
    return stk_tuner_judge(tuner, &r);
}

static void a_hungry_consumer_gets_workers_up_to_the_cores(void) {
    stk_tuner tuner = {.most_workers = 4, .most_slots = 8};
    CHECK_INT(judge(&tuner, reading(2, 4, 0.3, 0, 0)).workers, 3);
    CHECK_INT(judge(&tuner, reading(3, 4, 0.3, 0.1, 0.1)).workers, 4);
    CHECK_INT(judge(&tuner, reading(4, 4, 0.9, 0, 0)).workers, 4);
    CHECK_INT(judge(&tuner, reading(4, 4, 0.9, 0, 0)).slots, 4);
    tuner.fix_workers = true;
    CHECK_INT(judge(&tuner, reading(2, 4, 0.3, 0, 0)).workers, 2);
}

static void a_fed_consumer_changes_nothing(void) {
    stk_tuner tuner = {.most_workers = 4, .most_slots = 8};
    for (int i = 0; i < 20; i++) {
        stk_tuner_advice advice = judge(&tuner, reading(2, 4, 0.01, 0.5, 0));
        CHECK_INT(advice.workers, 2);
        CHECK_INT(advice.slots, 4);
    }
}

/* More decoding threads do not make storage faster. */
static void storage_that_is_slow_gets_no_workers(void) {
    stk_tuner tuner = {.most_workers = 16, .most_slots = 8};
    stk_tuner_advice advice = judge(&tuner, reading(2, 4, 0.8, 0, 1.9));
    CHECK_INT(advice.workers, 2);
    CHECK_INT(advice.slots, 4);
}

static void a_consumer_in_bursts_gets_slots(void) {
    stk_tuner tuner = {.most_workers = 4, .most_slots = 5};
    CHECK_INT(judge(&tuner, reading(4, 4, 0.2, 2, 0)).slots, 5);
    CHECK_INT(judge(&tuner, reading(4, 5, 0.2, 2, 0)).slots, 5);
    tuner.fix_slots = true;
    CHECK_INT(judge(&tuner, reading(4, 4, 0.2, 2, 0)).slots, 4);
}

static void idle_workers_go_one_by_one_and_not_at_once(void) {
    stk_tuner tuner = {.most_workers = 8, .most_slots = 8};
    int workers = 8;
    int readings = 0;
    while (workers > 1 && readings < 100) {
        double spare = workers - 1.2; /* 1.2 workers' worth of work */
        int advised = judge(&tuner, reading(workers, 4, 0, spare, 0)).workers;
        CHECK(advised == workers || advised == workers - 1);
        workers = advised;
        readings++;
    }
    CHECK_INT(workers, 2); /* one alone would not do */
    CHECK(readings >= 100);
    /* A moment of need starts the counting anew. */
    tuner = (stk_tuner){.most_workers = 8, .most_slots = 4};
    for (int i = 0; i < 20; i++) {
        CHECK_INT(judge(&tuner, reading(8, 4, i % 3 == 2 ? 0.1 : 0, 6, 0)).workers, 8);
    }
}

static void no_time_no_advice(void) {
    stk_tuner tuner = {.most_workers = 8, .most_slots = 8};
    stk_tuner_reading none = {.workers = 3, .slots = 4};
    CHECK_INT(stk_tuner_judge(&tuner, &none).workers, 3);
    CHECK_INT(stk_tuner_judge(&tuner, &none).slots, 4);
}

/* A machine whose device makes 25,000 pictures per second if four cores feed it, and less with
 * fewer; a worker that decodes makes 650 and takes more than its core. */
static double fed_part(int workers, int decoding) {
    double cores = workers - 1.5 * decoding;
    return cores > 4 ? 1 : cores > 0 ? cores / 4 : 0;
}

static double machine_rate(int workers, int decoding) {
    return 25000 * fed_part(workers, decoding) + 650.0 * decoding;
}

/* The rate that judging comes to, as a part of the best that the machine could do. */
static double part_of_best(int workers, int from, double noise, bool tells_idle) {
    stk_core_share share = {.cores = from};
    double best = 0;
    double sum = 0;
    for (int k = 0; k < workers; k++) {
        best = machine_rate(workers, k) > best ? machine_rate(workers, k) : best;
    }
    for (int i = 0; i < 60; i++) {
        double rate = machine_rate(workers, share.cores) * (1 + (i % 3 - 1) * noise);
        double idle = tells_idle ? 1 - fed_part(workers, share.cores) : 0;
        sum += i >= 30 ? rate : 0;
        stk_core_share_judge(&share, &(stk_core_reading){.seconds = 0.25,
                                                         .wait_s = 0.2,
                                                         .idle_s = 0.25 * idle,
                                                         .images = 0.25 * rate,
                                                         .workers = workers});
        CHECK(share.cores >= 0 && share.cores < workers);
    }
    return sum / 30 / best;
}

static void cores_decode_beside_a_device_as_far_as_that_helps(void) {
    static const int workers[] = {4, 8, 16};
    for (size_t i = 0; i < sizeof workers / sizeof *workers; i++) {
        for (int from = 0; from < workers[i]; from++) {
            CHECK(part_of_best(workers[i], from, 0, true) > 0.9);
            CHECK(part_of_best(workers[i], from, 0.004, true) > 0.9);
        }
        /* A device whose thread lacks a core does not look idle. */
        CHECK(part_of_best(workers[i], workers[i] - 3 > 0 ? workers[i] / 2 : 1, 0, false) > 0.9);
    }
}

static void a_device_without_pictures_gets_workers_back(void) {
    stk_core_share share = {.cores = 5, .way = 1};
    stk_core_reading r = {
        .seconds = 0.25, .wait_s = 0.1, .idle_s = 0.05, .images = 100, .workers = 8};
    for (int i = 0; i < 8; i++) {
        stk_core_share_judge(&share, &r);
    }
    CHECK_INT(share.cores, 0);
}

static void nothing_changes_where_no_batch_is_missing(void) {
    stk_core_share share = {.cores = 5, .kept = 5, .way = 1, .rate = 10};
    stk_core_reading r = {.seconds = 0.25, .idle_s = 0.2, .images = 100, .workers = 8};
    stk_core_share_judge(&share, &r);
    CHECK_INT(share.cores, 5);
}

static const check_test tests[] = {TEST(a_hungry_consumer_gets_workers_up_to_the_cores),
                                   TEST(a_fed_consumer_changes_nothing),
                                   TEST(storage_that_is_slow_gets_no_workers),
                                   TEST(a_consumer_in_bursts_gets_slots),
                                   TEST(idle_workers_go_one_by_one_and_not_at_once),
                                   TEST(no_time_no_advice),
                                   TEST(cores_decode_beside_a_device_as_far_as_that_helps),
                                   TEST(a_device_without_pictures_gets_workers_back),
                                   TEST(nothing_changes_where_no_batch_is_missing)};

CHECK_MAIN(tests)
