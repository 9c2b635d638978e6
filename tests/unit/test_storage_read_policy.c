/* test_storage_read_policy.c - the numbers of the policy of reading, without waiting for them. */
#include "check.h"

#include "storage/reading/read_policy.h"

#define MS 1000000LL
#define S (1000 * MS)

/* A reader at work for a while: good reads of the same length, the last of them at now_ns. */
static stk_read_policy experienced(double timeout_s, int64_t took_ns, int64_t now_ns) {
    stk_read_policy p;
    stk_read_policy_init(&p, timeout_s, 7);
    for (int i = 0; i < STK_READ_POLICY_PEERS; i++) {
        stk_read_policy_note_success(&p, now_ns, took_ns);
    }
    stk_read_policy_update_median(&p);
    return p;
}

static void pauses_double_up_to_a_limit_and_are_never_the_same(void) {
    stk_read_policy p;
    stk_read_policy_init(&p, 30, 1);
    double most[] = {0.1, 0.2, 0.4, 0.8, 1.6, 3.2, 5, 5, 5};
    for (int failures = 1; failures <= 9; failures++) {
        int64_t before = 0;
        int same = 0;
        for (int i = 0; i < 50; i++) {
            int64_t pause = stk_read_policy_backoff_ns(&p, failures, 0);
            CHECK((double)pause >= 0.5e9 * most[failures - 1] - 1);
            CHECK((double)pause <= 1e9 * most[failures - 1]);
            same += pause == before;
            before = pause;
        }
        CHECK_INT(same, 0);
    }
    stk_read_policy other;
    stk_read_policy_init(&other, 30, 2);
    stk_read_policy_init(&p, 30, 1);
    CHECK(stk_read_policy_backoff_ns(&p, 1, 0) != stk_read_policy_backoff_ns(&other, 1, 0));
}

static void a_place_may_ask_for_a_longer_pause(void) {
    stk_read_policy p;
    stk_read_policy_init(&p, 30, 1);
    CHECK_INT(stk_read_policy_backoff_ns(&p, 1, 2.5), 2500 * MS);
    CHECK(stk_read_policy_backoff_ns(&p, 6, 0.001) > 1 * S);   /* a shorter one does not count */
    CHECK_INT(stk_read_policy_backoff_ns(&p, 1, 3600), 5 * S); /* nor one without reason */
}

static void attempts_and_time_run_out(void) {
    stk_read_policy p;
    stk_read_policy_init(&p, 10, 1);
    CHECK(!stk_read_policy_gives_up(&p, 1, 0, 100 * S, 101 * S));
    CHECK(!stk_read_policy_gives_up(&p, 11, 0, 100 * S, 101 * S));
    CHECK(stk_read_policy_gives_up(&p, 12, 0, 100 * S, 101 * S));
    CHECK(!stk_read_policy_gives_up(&p, 3, 3, 100 * S, 101 * S));
    CHECK(stk_read_policy_gives_up(&p, 4, 4, 100 * S, 101 * S));
    CHECK(!stk_read_policy_gives_up(&p, 2, 0, 100 * S, 120 * S));
    CHECK(stk_read_policy_gives_up(&p, 2, 0, 100 * S, 120 * S + 1));
    CHECK(!stk_read_policy_gives_up(&p, 1, 0, 100 * S, 500 * S)); /* a second chance in any case */
}

static void signs_of_life_are_waited_for(void) {
    stk_read_policy p;
    stk_read_policy_init(&p, 10, 1);
    CHECK(!stk_read_policy_has_timed_out(&p, 109 * S, 100 * S, 0));
    CHECK(stk_read_policy_has_timed_out(&p, 110 * S, 100 * S, 0));
    CHECK(!stk_read_policy_has_timed_out(&p, 110 * S, 100 * S, 105 * S));
    CHECK(stk_read_policy_has_timed_out(&p, 115 * S, 100 * S, 105 * S));
    CHECK(!stk_read_policy_has_timed_out(&p, 179 * S, 100 * S, 178 * S));
    CHECK(stk_read_policy_has_timed_out(&p, 180 * S, 100 * S, 179 * S)); /* there is an end to it */
}

static void waiting_for_a_turn_counts_when_nobody_has_one(void) {
    stk_read_policy p;
    stk_read_policy_init(&p, 10, 1);
    CHECK(!stk_read_policy_is_stuck(&p, 120 * S, 100 * S));
    CHECK(stk_read_policy_is_stuck(&p, 121 * S, 100 * S));
    stk_read_policy_note_success(&p, 115 * S, 1 * S);
    CHECK(!stk_read_policy_is_stuck(&p, 135 * S, 100 * S));
    CHECK(stk_read_policy_is_stuck(&p, 136 * S, 100 * S));
}

static void second_attempts_are_for_those_far_slower_than_their_peers(void) {
    stk_read_policy p;
    stk_read_policy_init(&p, 30, 1);
    stk_read_policy_update_median(&p);
    CHECK(!stk_read_policy_take_hedge(&p, 20 * S)); /* nobody to compare with */
    p = experienced(30, 10 * MS, 1 * S);
    CHECK(!stk_read_policy_take_hedge(&p, 200 * MS)); /* too little to gain */
    CHECK(stk_read_policy_take_hedge(&p, 300 * MS));
    p = experienced(30, 100 * MS, 1 * S);
    CHECK(!stk_read_policy_take_hedge(&p, 700 * MS)); /* all of them are slow */
    CHECK(stk_read_policy_take_hedge(&p, 900 * MS));
}

static void the_tail_does_not_move_the_median(void) {
    stk_read_policy p;
    stk_read_policy_init(&p, 30, 1);
    for (int i = 0; i < 1000; i++) {
        stk_read_policy_note_success(&p, 1 * S, i % 4 == 0 ? 2 * S : 10 * MS);
    }
    stk_read_policy_update_median(&p);
    CHECK_INT(p.median_ns, 10 * MS);
    CHECK(stk_read_policy_take_hedge(&p, 300 * MS));
}

static void few_reads_get_a_second_attempt(void) {
    stk_read_policy p = experienced(30, 10 * MS, 1 * S);
    int hedges = 0;
    for (int i = 0; i < 1000; i++) { /* as if all of them were slow */
        stk_read_policy_count_read(&p);
        hedges += stk_read_policy_take_hedge(&p, 1 * S);
    }
    CHECK(hedges >= 50 && hedges <= 52);
    for (int i = 0; i < 100000; i++) { /* what was not needed is not saved up for long */
        stk_read_policy_count_read(&p);
    }
    hedges = 0;
    for (int i = 0; i < 100; i++) {
        hedges += stk_read_policy_take_hedge(&p, 1 * S);
    }
    CHECK_INT(hedges, 8);
}

static void four_in_a_row_lose_the_place(void) {
    stk_read_policy p = experienced(10, 10 * MS, 100 * S);
    for (int i = 0; i < 3; i++) {
        CHECK(stk_read_policy_count_given_up(&p, 101 * S));
        CHECK(!stk_read_policy_is_lost(&p));
    }
    stk_read_policy_note_answer(&p, 130 * S); /* if only that there is no such object */
    for (int i = 0; i < 3; i++) {
        CHECK(stk_read_policy_count_given_up(&p, 131 * S));
        CHECK(!stk_read_policy_is_lost(&p));
    }
    CHECK(stk_read_policy_count_given_up(&p, 131 * S));
    CHECK(stk_read_policy_is_lost(&p));
}

static void bad_objects_are_no_doubt_while_others_come(void) {
    stk_read_policy p = experienced(10, 10 * MS, 100 * S);
    for (int i = 0; i < 10; i++) {
        CHECK(!stk_read_policy_count_given_up(&p, 99 * S));
    }
    CHECK(!stk_read_policy_is_lost(&p));
    stk_read_policy_init(&p, 10, 1); /* nothing ever came */
    CHECK(stk_read_policy_count_given_up(&p, 95 * S));
}

static const check_test tests[] = {
    TEST(pauses_double_up_to_a_limit_and_are_never_the_same),
    TEST(a_place_may_ask_for_a_longer_pause),
    TEST(attempts_and_time_run_out),
    TEST(signs_of_life_are_waited_for),
    TEST(waiting_for_a_turn_counts_when_nobody_has_one),
    TEST(second_attempts_are_for_those_far_slower_than_their_peers),
    TEST(the_tail_does_not_move_the_median),
    TEST(few_reads_get_a_second_attempt),
    TEST(four_in_a_row_lose_the_place),
    TEST(bad_objects_are_no_doubt_while_others_come),
};

CHECK_MAIN(tests)
