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

static const check_test tests[] = {
    TEST(a_hungry_consumer_gets_workers_up_to_the_cores), TEST(a_fed_consumer_changes_nothing),
    TEST(storage_that_is_slow_gets_no_workers),           TEST(a_consumer_in_bursts_gets_slots),
    TEST(idle_workers_go_one_by_one_and_not_at_once),     TEST(no_time_no_advice),
};

CHECK_MAIN(tests)
