/* test_inference.c - what validating and predicting take, measured or estimated. */
#include "check.h"

#include <math.h>

#include "base/numbers/rng.h"
#include "budget/budget.h"
#include "budget/inference.h"

/* Steps of 32 pictures in 3.2 s: 0.1 s each, 0.033 s where nothing is learnt. */
static stk_inference_facts facts_of(double budget_s, double val_s, size_t test_images) {
    return (stk_inference_facts){.budget_s = budget_s,
                                 .step_s = 3.2,
                                 .wait_s = 0,
                                 .batch = 32,
                                 .pixels = 1,
                                 .val_s = val_s,
                                 .val_images = 40,
                                 .test_images = test_images,
                                 .unread_s = NAN,
                                 .views = 1,
                                 .least_views = 1};
}

static void cases_by_hand(void) {
    static const struct {
        const char *what;
        double budget, step_s, wait_s, val_s;
        size_t val, test;
        int views;
        double val_takes, view_takes;
        int views_kept;
        bool timed;
        double more_s; /* that the first view may take beyond view_takes */
    } cases[] = {
        {"a validation tells", 100, 3.2, 0, 4, 40, 10, 1, 4, 1, 1, true, 0},
        {"whatever steps take", 100, NAN, NAN, 4, 40, 10, 1, 4, 1, 1, true, 0},
        {"and whatever is waited for", 100, 3.2, 3, 4, 40, 10, 1, 4, 1, 1, true, 0},
        {"before it a third of a step", 100, 3.2, 0, NAN, 40, 10, 1, 1.32, 0.33, 1, false, 0},
        {"waiting for pictures: all of it", 100, 3.2, 1.6, NAN, 40, 10, 1, 4, 1, 1, false, 0},
        {"a little waiting is none", 100, 3.2, 0.3, NAN, 40, 10, 1, 1.32, 0.33, 1, false, 0},
        {"waiting is not known", 100, 3.2, NAN, NAN, 40, 10, 1, 1.32, 0.33, 1, false, 0},
        {"no test pictures", 100, 3.2, 0, 4, 40, 0, 8, 4, 0, 8, true, 0},
        {"no test pictures, from steps", 100, 3.2, 0, NAN, 40, 0, 8, 1.32, 0, 8, true, 0},
        {"no validation: twice that", 100, 3.2, 0, NAN, 0, 10, 1, 0, 0.33, 1, true, 0.33},
        {"up to 11 %", 100, 3.2, 0, NAN, 0, 200, 1, 0, 6.6, 1, true, 4.4},
        {"or what it takes", 100, 3.2, 0, NAN, 0, 400, 1, 0, 13.2, 1, true, 0},
        {"without a budget twice", NAN, 3.2, 0, NAN, 0, 400, 1, 0, 13.2, 1, true, 13.2},
        {"views that fit into 15 %", 100, 3.2, 0, 4, 40, 20, 8, 4, 2, 5, true, 0},
        {"the same from steps", 100, 3.2, 0, NAN, 40, 100, 8, 1.32, 3.3, 3, false, 0},
        {"one at least", 100, 3.2, 0, 4, 40, 2000, 8, 4, 200, 1, true, 0},
        {"without a budget all", NAN, 3.2, 0, 4, 40, 2000, 8, 4, 200, 8, true, 0},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        stk_inference_facts f = facts_of(cases[i].budget, cases[i].val_s, cases[i].test);
        f.step_s = cases[i].step_s;
        f.wait_s = cases[i].wait_s;
        f.val_images = cases[i].val;
        f.views = f.least_views = cases[i].views;
        stk_inference t = stk_inference_estimate(&f);
        if (!(fabs(t.val_s - cases[i].val_takes) < 1e-9) ||
            !(fabs(t.view_s - cases[i].view_takes) < 1e-9) || t.views != cases[i].views_kept) {
            CHECK_FAIL("%s: validation %g s, a view %g s, %d views", cases[i].what, t.val_s,
                       t.view_s, t.views);
        }
        if (t.timed != cases[i].timed) {
            CHECK_FAIL("%s: timed is %d", cases[i].what, t.timed);
        }
        CHECK_NEAR(t.predict_s, t.views * t.view_s + cases[i].more_s, 1e-9);
    }
}

/* Pictures that nobody has read yet took 0.3 s each. */
static void unread_pictures_may_take_longer(void) {
    stk_inference_facts f = facts_of(100, 4, 20);
    f.views = f.least_views = 2;
    f.unread_s = 0.3;
    stk_inference t = stk_inference_estimate(&f);
    CHECK_NEAR(t.picture_s, 0.1, 1e-9);
    CHECK_NEAR(t.val_s, 4, 1e-9);
    CHECK_NEAR(t.view_s, 2, 1e-9);
    CHECK_NEAR(t.predict_s, 6 + 2, 1e-9); /* the second view finds them read */
    f.test_images = 60;
    f.views = f.least_views = 1;
    CHECK_NEAR(stk_inference_estimate(&f).predict_s, 11, 1e-9); /* 18 s would be over 15 % */
    f.test_images = 200;
    CHECK_NEAR(stk_inference_estimate(&f).predict_s, 20, 1e-9);
    f.budget_s = NAN;
    CHECK_NEAR(stk_inference_estimate(&f).predict_s, 60, 1e-9);
    f.unread_s = 0.05; /* they were faster then */
    CHECK_NEAR(stk_inference_estimate(&f).predict_s, 20, 1e-9);
}

/* Three are remembered, each with what a step took then. */
static void validations_tell_what_one_takes_now(void) {
    stk_validations past = {0};
    CHECK(isnan(stk_validations_now(&past, 0.1)));
    stk_validations_note(&past, 4, 3.5, 0.1); /* its slowest batch took half a second too long */
    CHECK_NEAR(stk_validations_now(&past, 0.1), 3.5, 1e-9);
    CHECK_NEAR(stk_validations_now(&past, 0.5), 17.5, 1e-9); /* five times as slow since */
    CHECK_NEAR(stk_validations_now(&past, 0.03), 3.5, 1e-9); /* faster since: it may not last */
    CHECK_NEAR(stk_validations_now(&past, NAN), 3.5, 1e-9);
    stk_validations_note(&past, 5, 5, 0.1);
    CHECK_NEAR(stk_validations_now(&past, 0.1), 4, 1e-9);
    stk_validations_note(&past, 30, 29, 0.1); /* held up, and outvoted */
    CHECK_NEAR(stk_validations_now(&past, 0.1), 5, 1e-9);
    stk_validations_note(&past, 4.5, 4.5, NAN);
    CHECK_NEAR(stk_validations_now(&past, 0.1), 5, 1e-9);
    stk_validations_note(&past, 4.4, 4.4, 0.1);
    CHECK_NEAR(stk_validations_now(&past, 0.1), 4.5, 1e-9);
    stk_validations_note(&past, 40, 40, 0.1); /* two of three: they have become slow */
    stk_validations_note(&past, 42, 42, 0.1);
    CHECK_NEAR(stk_validations_now(&past, 0.1), 40, 1e-9);
}

static void nothing_is_known_before_two_steps(void) {
    stk_inference_facts f = facts_of(100, NAN, 10);
    f.step_s = f.wait_s = NAN;
    f.views = f.least_views = 4;
    stk_inference t = stk_inference_estimate(&f);
    CHECK(isnan(t.val_s) && isnan(t.view_s) && isnan(t.predict_s) && !t.timed);
    CHECK_INT(t.views, 1);
    f.val_images = 0;
    CHECK(isnan(stk_inference_estimate(&f).predict_s) && !stk_inference_estimate(&f).timed);
}

/*
 * However short the budget: what a first epoch is trained with can be predicted with afterwards.
 * Inference really takes a third of a training step's time.
 */
static void the_first_epoch_leaves_time_to_predict(void) {
    for (uint64_t i = 0; i < 5000 && check_failures < 5; i++) {
        stk_rng rng = stk_rng_make(3, STK_RNG_TEST, 0, i);
        stk_inference_facts f = facts_of(stk_rng_range(&rng, 2, 6), NAN, 0);
        f.step_s = stk_rng_range(&rng, 0.01, 0.5);
        f.val_images = 1 + (size_t)stk_rng_below(&rng, 200);
        f.test_images = (size_t)stk_rng_below(&rng, 2000);
        double now = stk_rng_range(&rng, 0.1, 1);
        double picture_s = f.step_s / 32 * 0.33;
        double val_s = picture_s * (double)f.val_images;
        double predict_s = picture_s * (double)f.test_images;
        stk_inference t = stk_inference_estimate(&f);
        stk_budget_facts facts = {.budget_s = f.budget_s,
                                  .elapsed_s = now,
                                  .fold_start_s = now,
                                  .share = 1,
                                  .epoch = 1,
                                  .steps_per_epoch = 50,
                                  .step_s = f.step_s,
                                  .val_s = t.val_s,
                                  .predict_s = t.predict_s,
                                  .final_s = 0.2};
        int steps = 0;
        while (steps < 50 && stk_budget_make(&facts).steps_left > 0) {
            facts.step = ++steps;
            facts.elapsed_s += f.step_s;
        }
        if (steps > 0) {
            CHECK(facts.elapsed_s + val_s + predict_s + 0.2 <= f.budget_s + 1e-9);
        }
    }
}

/* Of 80 pictures ten tell, in two batches after the first: a loader that begins is no pace, and
 * batches that are held up are none either, nor is the fastest of all. */
static void a_running_validation_tells_the_pace_of_now(void) {
    static const struct {
        size_t seen;
        double seconds, picture_s;
    } looks[] = {{0, 0, NAN},     {0, 2, NAN},       {16, 3, NAN},    {16, 3.5, NAN},
                 {20, 3.9, NAN},  {24, 4.3, NAN},    {26, 5, 0.225},  {26, 9, 0.225},
                 {36, 60, 0.225}, {46, 60.5, 0.225}, {56, 90, 0.225}, {80, 90.96, 0.225}};
    stk_inference_watch watch = {.images = 80};
    for (size_t i = 0; i < sizeof looks / sizeof *looks; i++) {
        double picture_s = stk_inference_look(&watch, looks[i].seen, looks[i].seconds);
        if (isnan(looks[i].picture_s)) {
            CHECK(isnan(picture_s));
        } else {
            CHECK_NEAR(picture_s, looks[i].picture_s, 1e-9);
        }
    }
    CHECK_NEAR(watch.first_s, 3, 0);
    watch = (stk_inference_watch){.images = 5}; /* each of them tells */
    CHECK(isnan(stk_inference_look(&watch, 1, 1)));
    CHECK(isnan(stk_inference_look(&watch, 2, 3)));
    CHECK_NEAR(stk_inference_look(&watch, 3, 5), 2, 1e-9);
    watch = (stk_inference_watch){.images = 80, .test_images = 400}; /* 30 are too few beside it */
    CHECK(isnan(stk_inference_look(&watch, 10, 1)));
    CHECK(isnan(stk_inference_look(&watch, 20, 2)));
    CHECK_NEAR(stk_inference_look(&watch, 30, 3), 0.1, 1e-9);
    CHECK(isnan(stk_inference_look(&watch, 31, 3.1)));
}

static const check_test tests[] = {
    TEST(cases_by_hand),
    TEST(unread_pictures_may_take_longer),
    TEST(validations_tell_what_one_takes_now),
    TEST(nothing_is_known_before_two_steps),
    TEST(the_first_epoch_leaves_time_to_predict),
    TEST(a_running_validation_tells_the_pace_of_now),
};

CHECK_MAIN(tests)
