/* test_storage_outage.c - a place that answers nobody for a while, and how that is told. */
#include "reader_desk.h"
#include "storage/reading/outage.h"

#define SECOND 1000000000LL

/* ---- what is known of silence ---- */

/* The reads of a minute look at it. */
static bool is_too_long(stk_outage *o, int64_t from_s, int64_t to_s) {
    bool is = false;
    for (int64_t s = from_s; s <= to_s; s++) {
        is = stk_outage_is_too_long(o, s * SECOND);
    }
    return is;
}

static void silence_is_nobodys_fault(void) {
    stk_outage o;
    stk_outage_open(&o, 300);
    CHECK(!stk_outage_missed(&o, 1 * SECOND, 2 * SECOND, true, "x")); /* it has never answered */
    stk_outage_answered(&o, 10 * SECOND, true);
    CHECK(!stk_outage_missed(&o, 9 * SECOND, 11 * SECOND, true, "x")); /* somebody was answered */
    CHECK(!is_too_long(&o, 12, 1000));
    stk_outage_answered(&o, 1010 * SECOND, true);
    CHECK(stk_outage_missed(&o, 1010 * SECOND, 1011 * SECOND, true, "x"));
    CHECK(stk_outage_missed(&o, 1040 * SECOND, 1041 * SECOND, false, "x"));
    CHECK(!is_too_long(&o, 1011, 1309));
    CHECK(is_too_long(&o, 1310, 1310)); /* since it began */
    stk_outage_answered(&o, 1310 * SECOND, true);
    CHECK(!is_too_long(&o, 1311, 1900));
    stk_outage_close(&o);
    stk_outage_open(&o, 0); /* nobody waits */
    stk_outage_answered(&o, 10 * SECOND, true);
    CHECK(!stk_outage_missed(&o, 20 * SECOND, 21 * SECOND, true, "x"));
    stk_outage_close(&o);
}

/* A process that is stopped for an hour, before or in an outage, has not waited for an hour. */
static void time_in_which_nobody_looks_does_not_count(void) {
    stk_outage o;
    stk_outage_open(&o, 300);
    stk_outage_answered(&o, 10 * SECOND, true);
    CHECK(stk_outage_missed(&o, 10 * SECOND, 3610 * SECOND, true, "x"));
    CHECK(!is_too_long(&o, 3610, 3700));
    CHECK(!stk_outage_is_too_long(&o, 7300 * SECOND));
    CHECK(!is_too_long(&o, 7301, 7440));
    CHECK(is_too_long(&o, 7441, 7620));
    stk_outage_close(&o);
}

static void each_outage_is_told_twice(void) {
    stk_outage o;
    char words[400];
    stk_outage_open(&o, 300);
    stk_outage_answered(&o, 10 * SECOND, true);
    CHECK(stk_outage_missed(&o, 12 * SECOND, 13 * SECOND, true, "Connection refused"));
    CHECK(!stk_outage_notice(&o, "s3://b", 21 * SECOND, words, sizeof words));
    CHECK(stk_outage_notice(&o, "s3://b", 24 * SECOND, words, sizeof words));
    CHECK_STR(words, "s3://b: no answer for 12 s (Connection refused): waiting up to 300 s");
    CHECK(!stk_outage_notice(&o, "s3://b", 60 * SECOND, words, sizeof words));
    stk_outage_answered(&o, 72 * SECOND, false);
    CHECK(stk_outage_notice(&o, "s3://b", 73 * SECOND, words, sizeof words));
    CHECK_STR(words, "s3://b answers again after 60 s");
    CHECK(!stk_outage_notice(&o, "s3://b", 74 * SECOND, words, sizeof words));
    CHECK(stk_outage_missed(&o, 80 * SECOND, 81 * SECOND, true,
                            "reset")); /* a short one is not worth a word */
    stk_outage_answered(&o, 100 * SECOND, false);
    CHECK(!stk_outage_notice(&o, "s3://b", 101 * SECOND, words, sizeof words));
    stk_outage_close(&o);
}

/* Many reads that fail at first are the place's fault; one object that fails often is not. */
static void a_place_that_fails_many_is_ill(void) {
    stk_outage o;
    stk_outage_open(&o, 300);
    for (int i = 0; i < 200; i++) {
        stk_outage_answered(&o, (10 + i) * SECOND, true);
        CHECK(!stk_outage_missed(&o, (9 + i) * SECOND, (10 + i) * SECOND, false, "x"));
    }
    CHECK(!stk_outage_is_ill(&o));
    for (int i = 0; i < 200; i++) {
        stk_outage_answered(&o, (300 + i) * SECOND, true);
        CHECK(!stk_outage_missed(&o, (299 + i) * SECOND, (300 + i) * SECOND, true, "x"));
    }
    CHECK(stk_outage_is_ill(&o));
    for (int i = 0; i < 200; i++) {
        stk_outage_answered(&o, (600 + i) * SECOND, true);
    }
    CHECK(!stk_outage_is_ill(&o));
    stk_outage_close(&o);
}

/* ---- readers ---- */

static void pause_ms(long ms) {
    struct timespec moment = {.tv_sec = ms / 1000, .tv_nsec = ms % 1000 * SCRIPTED_MS};
    nanosleep(&moment, NULL);
}

static int told_so_far(inbox *in) {
    pthread_mutex_lock(&in->lock);
    int count = in->count;
    pthread_mutex_unlock(&in->lock);
    return count;
}

/* Reads in each state there is, and one that failed once while others were answered. */
static void an_outage_is_waited_out(void) {
    static const char *const paths[] = {"a", "b?a,o", "c?o5", "d?d,o", "e?h,o", "f", "g", "h"};
    desk d;
    char words[600];
    open_patient_desk(&d, TIMEOUT_S, 60);
    read_peers(&d, 10);
    CHECK(!stk_store_take_notice(d.store, words, sizeof words));
    scripted_set_away(d.place, true);
    for (size_t i = 0; i < sizeof paths / sizeof *paths; i++) {
        submit(&d, paths[i]);
    }
    pause_ms(2000); /* a read is given up after two time-outs */
    CHECK_INT(told_so_far(&d.in), 10);
    CHECK(!stk_store_is_lost(d.store, &(stk_error){0}));
    scripted_set_away(d.place, false);
    wait_for_all(&d);
    for (size_t i = 0; i < sizeof paths / sizeof *paths; i++) {
        expect_bytes(&d.in.reads[10 + i]);
    }
    CHECK(stats(&d).retries > 8);
    close_desk(&d);
}

static void people_are_told_of_an_outage(void) {
    desk d;
    char words[600] = "";
    open_patient_desk(&d, TIMEOUT_S, 4);
    read_peers(&d, 10);
    scripted_set_away(d.place, true);
    submit(&d, "dir/a");
    for (int i = 0; i < 300 && words[0] == '\0'; i++) { /* after a tenth of four seconds */
        pause_ms(10);
        (void)stk_store_take_notice(d.store, words, sizeof words);
    }
    CHECK_CONTAINS(words, "scripted: no answer for ");
    CHECK_CONTAINS(words, "failed with 'a'): waiting up to 4 s");
    CHECK(!stk_store_take_notice(d.store, words, sizeof words));
    scripted_set_away(d.place, false);
    wait_for_all(&d);
    CHECK(stk_store_take_notice(d.store, words, sizeof words));
    CHECK_CONTAINS(words, "scripted answers again after ");
    CHECK(!stk_store_take_notice(d.store, words, sizeof words));
    close_desk(&d);
}

static void an_outage_that_lasts_too_long_loses_the_place(void) {
    desk d;
    open_patient_desk(&d, TIMEOUT_S, 1.5);
    read_peers(&d, 10);
    scripted_set_away(d.place, true);
    submit(&d, "a");
    const stk_read *hung = submit(&d, "b?h");
    wait_for_all(&d);
    expect_lost(&d.in.reads[10], "nothing can be read from scripted any more: no answer for 1.5 s");
    expect_lost(hung, "as long as --outage allows (");
    close_desk(&d);
}

/* While others are answered, and while nobody else asks, in which case the reader itself does. */
static void one_bad_object_is_no_outage(void) {
    static const char *const bad[] = {"fails?a", "hangs?h"};
    desk d;
    open_patient_desk(&d, TIMEOUT_S, 60);
    for (int round = 0; round < 2; round++) {
        char paths[2][24];
        for (int i = 0; i < 2; i++) {
            snprintf(paths[i], sizeof paths[i], "%d%s", round, bad[i]);
            submit(&d, paths[i]);
        }
        for (int i = 0; i < 100 && round == 0; i++) {
            const stk_read *good = submit(&d, "good?o10");
            wait_until_told(&d.in, good);
        }
        wait_for_all(&d);
        for (int i = 0; i < 2; i++) {
            expect_error(&d.in.reads[round == 0 ? i : 102 + i], STK_ERR_STORAGE,
                         i == 0 ? "fails" : "hangs");
        }
    }
    CHECK(!stk_store_is_lost(d.store, &(stk_error){0}));
    close_desk(&d);
}

/* It may not be there at all. */
/* The location answers, but there is no memory for its bytes: waiting for it would not help. */
static void lack_of_memory_is_no_outage(void) {
    desk d;
    open_patient_desk(&d, TIMEOUT_S, 10);
    expect_bytes(read_now(&d, "fine"));
    const stk_read *read = read_now(&d, "large?m");
    CHECK_INT(read->error.status, STK_ERR_STORAGE);
    CHECK(!read->lost);
    CHECK_INT(atomic_load(&d.store->outage.begun_ns), 0);
    CHECK(!stk_quarantine_has(&d.store->quarantine, "large?m", stk_clock_ns(), &(stk_error){0}));
    expect_bytes(read_now(&d, "small?m,m,o"));
    close_desk(&d);
}

static void a_place_that_never_answered_is_not_waited_for(void) {
    desk d;
    open_patient_desk(&d, TIMEOUT_S, 600);
    scripted_set_away(d.place, true);
    expect_error(read_now(&d, "only"), STK_ERR_STORAGE, "only failed");
    close_desk(&d);
}

static const check_test tests[] = {
    TEST(silence_is_nobodys_fault),
    TEST(time_in_which_nobody_looks_does_not_count),
    TEST(each_outage_is_told_twice),
    TEST(a_place_that_fails_many_is_ill),
    TEST(an_outage_is_waited_out),
    TEST(people_are_told_of_an_outage),
    TEST(an_outage_that_lasts_too_long_loses_the_place),
    TEST(one_bad_object_is_no_outage),
    TEST(lack_of_memory_is_no_outage),
    TEST(a_place_that_never_answered_is_not_waited_for),
};

CHECK_MAIN(tests)
