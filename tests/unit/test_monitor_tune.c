/*
 * test_monitor_tune.c - what --tune tries, keeps and takes back, on simulated trainings.
 */
#include "check.h"

#include "monitor/tune.h"

/* A training whose speed follows from its settings. */
typedef struct training {
    int settings[STK_TUNE_SETTINGS];
    int most[STK_TUNE_SETTINGS];
    int epoch;
    stk_verdict_kind (*verdict)(const struct training *t);
    double (*rate)(const struct training *t);
    int intervals;
    int tries, kept, taken_back;
} training;

static stk_tune_advice after_interval(stk_tune *tune, training *t) {
    stk_tune_interval s = {.seconds = 10,
                           .images_per_second = t->rate(t),
                           .verdict = t->verdict(t),
                           .epoch = t->epoch};
    memcpy(s.now, t->settings, sizeof s.now);
    memcpy(s.most, t->most, sizeof s.most);
    stk_tune_advice advice = stk_tune_after(tune, &s);
    t->intervals++;
    if (advice.action != STK_TUNE_NOTHING) {
        t->settings[advice.setting] = advice.value;
    }
    t->tries += advice.action == STK_TUNE_TRY;
    t->kept += advice.action == STK_TUNE_KEEP;
    t->taken_back += advice.action == STK_TUNE_TAKE_BACK;
    return advice;
}

static void go_on(stk_tune *tune, training *t, int intervals) {
    for (int i = 0; i < intervals; i++) {
        after_interval(tune, t);
    }
}

static stk_verdict_kind always_decode(const training *t) {
    (void)t;
    return STK_VERDICT_DECODE;
}

static stk_verdict_kind always_storage(const training *t) {
    (void)t;
    return STK_VERDICT_STORAGE;
}

static double hundred_per_worker(const training *t) {
    return 100.0 * t->settings[STK_TUNE_WORKERS];
}

static double always_hundred(const training *t) {
    (void)t;
    return 100;
}

static training starved(void) {
    return (training){.settings = {4, 4, 0},
                      .most = {16, 16, 0},
                      .epoch = 1,
                      .verdict = always_decode,
                      .rate = hundred_per_worker};
}

static void workers_are_added_while_they_help(void) {
    stk_tune tune = {0};
    training t = starved();
    stk_tune_advice advice = after_interval(&tune, &t);
    CHECK_INT(advice.action, STK_TUNE_TRY);
    CHECK_INT(advice.setting, STK_TUNE_WORKERS);
    CHECK_INT(advice.value, 8);
    CHECK_STR(advice.what, "workers 4 to 8");
    CHECK_STR(advice.why, "decode-bound at 400 img/s");
    advice = after_interval(&tune, &t); /* settles */
    CHECK_INT(advice.action, STK_TUNE_NOTHING);
    advice = after_interval(&tune, &t);
    CHECK_INT(advice.action, STK_TUNE_KEEP);
    CHECK_INT(advice.value, 8);
    CHECK_STR(advice.what, "workers 4 to 8");
    CHECK_STR(advice.why, "images/s went from 400 to 800: kept");
    go_on(&tune, &t, 100);
    CHECK_INT(t.settings[STK_TUNE_WORKERS], 16);
    CHECK_INT(t.kept, 2);
    CHECK_INT(t.settings[STK_TUNE_SLOTS], 4); /* tried in vain, once */
    CHECK_INT(t.taken_back, 1);
}

static void what_does_not_help_is_taken_back_and_left_alone(void) {
    stk_tune tune = {0};
    training t = starved();
    t.rate = always_hundred;
    after_interval(&tune, &t);
    CHECK_INT(t.settings[STK_TUNE_WORKERS], 8);
    after_interval(&tune, &t);
    stk_tune_advice advice = after_interval(&tune, &t);
    CHECK_INT(advice.action, STK_TUNE_TAKE_BACK);
    CHECK_INT(advice.value, 4);
    CHECK_STR(advice.what, "workers 8 to 4");
    CHECK_STR(advice.why, "images/s went from 100 to 100: taken back");
    CHECK_INT(after_interval(&tune, &t).action, STK_TUNE_NOTHING); /* settles */
    advice = after_interval(&tune, &t);
    CHECK_INT(advice.action, STK_TUNE_TRY);
    CHECK_STR(advice.what, "batches ahead 4 to 8");
    go_on(&tune, &t, 1000);
    CHECK_INT(t.tries, 2);
    CHECK_INT(t.taken_back, 2);
    CHECK_INT(t.kept, 0);
    CHECK_INT(t.settings[STK_TUNE_WORKERS], 4);
    CHECK_INT(t.settings[STK_TUNE_SLOTS], 4);
}

/* 1 % up and down, whatever is done. */
static double noisy(const training *t) {
    static const double noise[] = {0, 0.7, -0.5, 1, -1, 0.2, 0.5, -0.7};
    return 100 + noise[t->intervals % 8];
}

static void noise_is_no_gain(void) {
    stk_tune tune = {0};
    training t = starved();
    t.rate = noisy;
    go_on(&tune, &t, 1000);
    CHECK_INT(t.kept, 0);
    CHECK_INT(t.tries, 2);
    CHECK_INT(t.settings[STK_TUNE_WORKERS], 4);
    CHECK_INT(t.settings[STK_TUNE_SLOTS], 4);
}

static double gain_after; /* of anything that is changed */

static double gains_once(const training *t) {
    return t->settings[STK_TUNE_WORKERS] > 4 ? 100 * gain_after : 100;
}

static void three_percent_are_needed(void) {
    for (int side = 0; side < 2; side++) {
        stk_tune tune = {0};
        training t = starved();
        t.rate = gains_once;
        gain_after = side == 0 ? 1.029 : 1.031;
        go_on(&tune, &t, 3);
        CHECK_INT(t.kept, side);
        CHECK_INT(t.settings[STK_TUNE_WORKERS], side == 0 ? 4 : 8);
    }
}

static void limits_are_kept(void) {
    stk_tune tune = {0};
    training t = starved();
    t.most[STK_TUNE_WORKERS] = 5;
    t.most[STK_TUNE_SLOTS] = 6;
    after_interval(&tune, &t);
    CHECK_INT(t.settings[STK_TUNE_WORKERS], 5);
    go_on(&tune, &t, 2);
    stk_tune_advice advice = after_interval(&tune, &t); /* no more workers: slots */
    CHECK_INT(advice.setting, STK_TUNE_SLOTS);
    CHECK_INT(advice.value, 6);
    tune = (stk_tune){0};
    t = starved();
    memcpy(t.most, t.settings, sizeof t.most);
    go_on(&tune, &t, 100);
    CHECK_INT(t.tries, 0);
    t.most[STK_TUNE_WORKERS] = 2; /* fewer than there are: nothing is taken away */
    go_on(&tune, &t, 100);
    CHECK_INT(t.tries, 0);
    t = starved();
    t.settings[STK_TUNE_WORKERS] = 1;
    CHECK_INT(after_interval(&tune, &t).value, 2);
}

/* A cache helps from the epoch after that in which it was turned on. */
static double with_cache(const training *t) {
    return t->settings[STK_TUNE_CACHE] > 0 && t->epoch > 1 ? 200 : 100;
}

static void a_cache_has_time_to_fill(void) {
    stk_tune tune = {0};
    training t = {.settings = {4, 4, 0},
                  .most = {16, 4, 1},
                  .epoch = 1,
                  .verdict = always_storage,
                  .rate = with_cache};
    stk_tune_advice advice = after_interval(&tune, &t);
    CHECK_STR(advice.what, "cache on");
    CHECK_STR(advice.why, "storage-bound at 100 img/s");
    go_on(&tune, &t, 20); /* of the first epoch */
    CHECK_INT(t.tries, 1);
    CHECK_INT(t.taken_back, 0);
    t.epoch = 2;
    advice = after_interval(&tune, &t);
    CHECK_INT(advice.action, STK_TUNE_KEEP);
    CHECK_STR(advice.what, "cache on");
    go_on(&tune, &t, 20);
    CHECK_INT(t.settings[STK_TUNE_CACHE], 1);
    CHECK_INT(t.tries, 1);
}

static void a_cache_that_is_no_help_goes(void) {
    stk_tune tune = {0};
    training t = {.settings = {4, 4, 0},
                  .most = {16, 4, 1},
                  .epoch = 3,
                  .verdict = always_storage,
                  .rate = always_hundred};
    go_on(&tune, &t, 5);
    t.epoch = 4;
    go_on(&tune, &t, 5);
    CHECK_INT(t.settings[STK_TUNE_CACHE], 1);
    t.epoch = 5;
    stk_tune_advice advice = after_interval(&tune, &t);
    CHECK_INT(advice.action, STK_TUNE_TAKE_BACK);
    CHECK_STR(advice.what, "cache off");
    CHECK_INT(t.settings[STK_TUNE_CACHE], 0);
    go_on(&tune, &t, 100);
    CHECK_INT(t.tries, 1);
}

static stk_verdict_kind verdict_now;

static stk_verdict_kind as_it_is(const training *t) {
    (void)t;
    return verdict_now;
}

static void only_the_input_is_tuned(void) {
    for (int kind = 0; kind < STK_VERDICT_COUNT; kind++) {
        stk_tune tune = {0};
        training t = starved();
        t.most[STK_TUNE_CACHE] = 1;
        t.verdict = as_it_is;
        verdict_now = (stk_verdict_kind)kind;
        go_on(&tune, &t, 5);
        bool is_input = kind == STK_VERDICT_DECODE || kind == STK_VERDICT_STORAGE;
        CHECK_INT(t.tries > 0, is_input);
    }
}

static void another_verdict_tries_again_and_no_two_forever(void) {
    stk_tune tune = {0};
    training t = starved();
    t.rate = always_hundred;
    t.verdict = as_it_is;
    verdict_now = STK_VERDICT_DECODE;
    go_on(&tune, &t, 100);
    CHECK_INT(t.tries, 2);
    verdict_now = STK_VERDICT_STORAGE;
    go_on(&tune, &t, 100);
    CHECK_INT(t.tries, 3); /* slots, this time for storage's sake */
    for (int i = 0; i < 1000; i++) {
        verdict_now = i % 2 == 0 ? STK_VERDICT_DECODE : STK_VERDICT_STORAGE;
        after_interval(&tune, &t);
    }
    CHECK_INT(t.tries, 3);
    CHECK_INT(t.settings[STK_TUNE_WORKERS], 4);
    CHECK_INT(t.settings[STK_TUNE_SLOTS], 4);
}

/* Slots are of no use before there are workers to fill them. */
static double both_are_needed(const training *t) {
    double most = 100.0 * t->settings[STK_TUNE_WORKERS];
    double least = 30.0 * t->settings[STK_TUNE_WORKERS] + 70.0 * t->settings[STK_TUNE_SLOTS];
    return most < least ? most : least;
}

static void what_helped_opens_the_way_for_what_did_not(void) {
    stk_tune tune = {0};
    training t = starved();
    t.settings[STK_TUNE_SLOTS] = 2;
    t.rate = both_are_needed;
    go_on(&tune, &t, 200);
    CHECK_INT(t.settings[STK_TUNE_WORKERS], 16);
    CHECK_INT(t.settings[STK_TUNE_SLOTS], 16);
}

/* A trial during which the verdict becomes fine has helped. */
static void a_trial_is_judged_whatever_the_verdict_became(void) {
    stk_tune tune = {0};
    training t = starved();
    t.verdict = as_it_is;
    verdict_now = STK_VERDICT_DECODE;
    after_interval(&tune, &t);
    verdict_now = STK_VERDICT_FINE;
    go_on(&tune, &t, 2);
    CHECK_INT(t.kept, 1);
    go_on(&tune, &t, 50);
    CHECK_INT(t.tries, 1);
}

static void intervals_that_say_nothing_are_left_out(void) {
    stk_tune tune = {0};
    stk_tune_interval s = {.seconds = 10,
                           .images_per_second = 100,
                           .verdict = STK_VERDICT_DECODE,
                           .epoch = 1,
                           .now = {4, 4, 0},
                           .most = {8, 8, 0}};
    stk_tune_interval silent = s;
    silent.seconds = 0.99;
    CHECK_INT(stk_tune_after(&tune, &silent).action, STK_TUNE_NOTHING);
    silent = s;
    silent.images_per_second = NAN;
    CHECK_INT(stk_tune_after(&tune, &silent).action, STK_TUNE_NOTHING);
    silent = s;
    silent.verdict = STK_VERDICT_UNKNOWN;
    CHECK_INT(stk_tune_after(&tune, &silent).action, STK_TUNE_NOTHING);
    s.seconds = 1;
    CHECK_INT(stk_tune_after(&tune, &s).action, STK_TUNE_TRY);
    CHECK_INT(stk_tune_after(&tune, &silent).action, STK_TUNE_NOTHING); /* nor do they settle */
    s.images_per_second = 150;
    CHECK_INT(stk_tune_after(&tune, &s).action, STK_TUNE_NOTHING);
    CHECK_INT(stk_tune_after(&tune, &s).action, STK_TUNE_KEEP);
}

/* The next fold has a loader of its own, which the trial of the last one says nothing of. */
static void a_trial_ends_with_its_fold_but_for_a_cache(void) {
    stk_tune tune = {0};
    training t = starved();
    CHECK_INT(after_interval(&tune, &t).action, STK_TUNE_TRY);
    stk_tune_fold_ended(&tune);
    t.settings[STK_TUNE_WORKERS] = 4;
    stk_tune_advice advice = after_interval(&tune, &t);
    CHECK_INT(advice.action, STK_TUNE_TRY);
    CHECK_STR(advice.what, "workers 4 to 8");

    t = starved();
    t.most[STK_TUNE_CACHE] = 1;
    t.verdict = always_storage;
    t.rate = always_hundred;
    t.epoch = 7;
    tune = (stk_tune){0};
    CHECK_INT(after_interval(&tune, &t).setting, STK_TUNE_CACHE);
    stk_tune_fold_ended(&tune);
    t.epoch = 1;
    go_on(&tune, &t, 5);
    CHECK_INT(t.taken_back, 0);
    t.epoch = 2;
    CHECK_INT(after_interval(&tune, &t).action, STK_TUNE_TAKE_BACK);
}

static const check_test tests[] = {
    TEST(workers_are_added_while_they_help),
    TEST(what_does_not_help_is_taken_back_and_left_alone),
    TEST(noise_is_no_gain),
    TEST(three_percent_are_needed),
    TEST(limits_are_kept),
    TEST(a_cache_has_time_to_fill),
    TEST(a_cache_that_is_no_help_goes),
    TEST(only_the_input_is_tuned),
    TEST(another_verdict_tries_again_and_no_two_forever),
    TEST(what_helped_opens_the_way_for_what_did_not),
    TEST(a_trial_is_judged_whatever_the_verdict_became),
    TEST(intervals_that_say_nothing_are_left_out),
    TEST(a_trial_ends_with_its_fold_but_for_a_cache),
};

CHECK_MAIN(tests)
