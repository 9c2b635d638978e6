/* test_budget.c - plans are arithmetic: cases by hand, and laws that hold for any numbers. */
#include "check.h"

#include "base/numbers/rng.h"
#include "budget/budget.h"

/* An epoch of 100 steps of 0.1 s and a validation of 1 s: 11 s. Budgets of 100 s reserve 15 s. */
static stk_budget_facts facts_of(double budget_s, double elapsed_s) {
    return (stk_budget_facts){.elapsed_s = elapsed_s,
                              .budget_s = budget_s,
                              .share = 1,
                              .epoch = 1,
                              .steps_per_epoch = 100,
                              .step_s = 0.1,
                              .val_s = 1,
                              .predict_s = 0};
}

static void reserve(void) {
    CHECK_NEAR(stk_budget_reserve(100, NAN), 15, 1e-12);
    CHECK_NEAR(stk_budget_reserve(100, 0), 1, 1e-12); /* a hundredth for stalls */
    CHECK_NEAR(stk_budget_reserve(100, 1.5), 2.5, 1e-12);
    CHECK_NEAR(stk_budget_reserve(100, 9), 12, 1e-12); /* a third more */
    CHECK_NEAR(stk_budget_reserve(100, 30), 40, 1e-12);
    CHECK_NEAR(stk_budget_reserve(3600, 0.3), 10.3, 1e-12);
    CHECK_NEAR(stk_budget_reserve(1, 0), 0.5, 1e-12);
    CHECK_NEAR(stk_budget_reserve_by(100, 9, true), 12, 1e-12);
    CHECK_NEAR(stk_budget_reserve_by(100, 9, false), 15, 1e-12); /* an estimate keeps 15 % */
    CHECK_NEAR(stk_budget_reserve_by(100, 30, false), 40, 1e-12);
    CHECK_NEAR(stk_budget_reserve_by(100, NAN, true), 15, 1e-12);
}

/* Validations take at most a twentieth of the time of training. */
static void validations_become_rarer(void) {
    static const struct {
        double val_s, save_s;
        int every;
    } cases[] = {{0, 0, 1}, {0.5, 0, 1}, {0.51, 0, 2}, {1, 0.2, 3}, {2, 0, 4}, {100, 0, 10}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        stk_budget_facts facts = facts_of(100, 10);
        facts.val_s = cases[i].val_s;
        facts.save_s = cases[i].save_s;
        CHECK_INT(stk_budget_validate_every(&facts), cases[i].every);
        facts.validate_every = cases[i].every;
        double epoch_s = 10 + (cases[i].val_s + cases[i].save_s) / cases[i].every;
        CHECK_NEAR(stk_budget_make(&facts).epoch_s, epoch_s, 1e-9);
        facts.epochs_wanted = 20; /* what was asked for does not depend on timing */
        CHECK_INT(stk_budget_validate_every(&facts), 1);
        facts.epochs_wanted = 0;
        facts.budget_s = NAN;
        CHECK_INT(stk_budget_validate_every(&facts), 1);
    }
    stk_budget_facts unknown = facts_of(100, 10);
    unknown.val_s = NAN;
    CHECK_INT(stk_budget_validate_every(&unknown), 1);
    unknown = facts_of(100, 10);
    unknown.step_s = NAN;
    CHECK_INT(stk_budget_validate_every(&unknown), 1);
    /* Epochs of 10 ms: a quarter of the fold's time, or ten epochs, may pass between two. */
    stk_budget_facts quick = facts_of(20, 10);
    quick.step_s = 1e-4;
    CHECK_INT(stk_budget_validate_every(&quick), STK_BUDGET_MOST_EPOCHS / 4);
    quick.share = 0.05;
    CHECK_INT(stk_budget_validate_every(&quick), 25);
    quick.fold_start_s = 19;
    CHECK_INT(stk_budget_validate_every(&quick), 10);
    quick.val_s = 0;
    quick.save_s = 0.01; /* without a validation set saving counts alone */
    CHECK_INT(stk_budget_validate_every(&quick), 10);
    quick.save_s = 0.001;
    CHECK_INT(stk_budget_validate_every(&quick), 2);
}

/* Steps in which only the head learns come first and are cheap. */
static void cheap_steps_leave_time_for_more(void) {
    stk_budget_facts facts = facts_of(100, 0);
    facts.val_s = 0;
    facts.timed = true; /* 99 s: 9.9 epochs of 10 s */
    CHECK_INT(stk_budget_make(&facts).steps_left, 990);
    facts.cheap_part = 0.25;
    facts.cheap_steps = 100; /* the first epoch takes 2.5 s */
    stk_budget_plan plan = stk_budget_make(&facts);
    CHECK_INT(plan.steps_left, 1065);
    CHECK_NEAR(plan.total_s, 99, 0.11);
    facts.cheap_steps = 250; /* and so do the second and half of the third */
    plan = stk_budget_make(&facts);
    CHECK_INT(plan.steps_left, 990 + 187);
    CHECK_NEAR(plan.total_s, 99, 0.11);
    facts.cheap_steps = 300; /* 4 s: the cheap epochs are not over */
    facts.budget_s = 5;
    facts.predict_s = 0.25;
    plan = stk_budget_make(&facts);
    CHECK_INT(plan.steps_left, 170); /* 4.25 s of 25 ms each */
    CHECK_INT(plan.epochs, 2);
    CHECK_NEAR(plan.total_s, 4.25, 1e-9);
    facts.cheap_steps = 100;
    facts.budget_s = 3; /* 2 s: not even the cheap epoch */
    facts.predict_s = 0.25;
    plan = stk_budget_make(&facts);
    CHECK_INT(plan.steps_left, 90);
    CHECK_NEAR(plan.total_s, 2.25, 1e-9);
    facts.budget_s = 5; /* 1.75 s more than that epoch */
    plan = stk_budget_make(&facts);
    CHECK_INT(plan.steps_left, 117);
    CHECK_INT(plan.epochs, 2);
    facts.budget_s = NAN;
    facts.epochs_wanted = 3;
    CHECK_NEAR(stk_budget_make(&facts).total_s, 22.5, 1e-9);
}

/* After a long start half of what is left is kept: less than 15 % of the budget. */
static void a_late_start_leaves_time_to_train(void) {
    stk_budget_facts facts = facts_of(20, 17.2);
    facts.fold_start_s = 17.2;
    facts.predict_s = NAN;
    facts.step_s = 1e-3;
    facts.val_s = 0;
    CHECK_NEAR(stk_budget_make(&facts).reserve_s, 1.4, 1e-9);
    CHECK_NEAR(stk_budget_make(&facts).fold_s, 1.4, 1e-9);
    CHECK(stk_budget_make(&facts).steps_left > 0);
    facts.predict_s = 0.3; /* an estimate */
    CHECK_NEAR(stk_budget_make(&facts).reserve_s, 1.4, 1e-9);
    facts.predict_s = 2.1; /* which asks for more */
    CHECK_NEAR(stk_budget_make(&facts).reserve_s, 2.8, 1e-9);
    facts.elapsed_s = facts.fold_start_s = 2;
    facts.predict_s = NAN;
    CHECK_NEAR(stk_budget_make(&facts).reserve_s, 3, 1e-9);
}

/* What else is kept time for after training. */
static void reserve_of_a_plan(void) {
    stk_budget_facts facts = facts_of(100, 10);
    facts.predict_s = 6;
    CHECK_NEAR(stk_budget_make(&facts).reserve_s, 15, 1e-9);
    facts.timed = true;
    CHECK_NEAR(stk_budget_make(&facts).reserve_s, 8, 1e-9);
    facts.more_s = 3;
    CHECK_NEAR(stk_budget_make(&facts).reserve_s, 12, 1e-9);
    facts.final_s = 2; /* has its own margin */
    CHECK_NEAR(stk_budget_make(&facts).reserve_s, 14, 1e-9);
    facts.state_s = 1.5; /* is written meanwhile */
    CHECK_NEAR(stk_budget_make(&facts).reserve_s, 14, 1e-9);
    facts.busy = 2; /* twice the half second is the hundredth that is kept anyway */
    CHECK_NEAR(stk_budget_make(&facts).reserve_s, 14, 1e-9);
    facts.predict_s = facts.more_s = 0;
    CHECK_NEAR(stk_budget_make(&facts).reserve_s, 1.5 + 1 + 2, 1e-9);
    facts.state_s = 50; /* not worth more than two hundredths */
    CHECK_NEAR(stk_budget_make(&facts).reserve_s, 2 + 1 + 2, 1e-9);
    facts.predict_s = NAN;
    CHECK_NEAR(stk_budget_make(&facts).reserve_s, 15, 1e-9);
    facts.final_s = 20;
    CHECK_NEAR(stk_budget_make(&facts).reserve_s, 22, 1e-9);
    facts = facts_of(10, 1);
    facts.timed = true;
    CHECK_NEAR(stk_budget_make(&facts).reserve_s, 0.5, 1e-9);
    facts.busy = 2;
    CHECK_NEAR(stk_budget_make(&facts).reserve_s, 1, 1e-9);
}

/* Of a minute or more at most 5 % are kept for a short prediction, files included. */
static void a_warm_budget_is_used(void) {
    for (double budget = 60; budget < 1e5; budget *= 1.3) {
        stk_budget_facts facts = facts_of(budget, 1);
        facts.timed = true;
        facts.predict_s = 0.3;
        facts.more_s = 0.05;
        facts.final_s = fmin(0.02 * budget, 2) + 0.1;
        facts.step = 1;
        facts.step_s = budget / 100000 * 0.97; /* below the most epochs */
        facts.val_s = facts.step_s * 10;
        stk_budget_plan plan = stk_budget_make(&facts);
        CHECK(1 + plan.total_s + facts.predict_s >= 0.95 * budget);
        CHECK(1 + plan.total_s + facts.predict_s + facts.more_s + facts.final_s <= budget);
    }
}

/* Saving counts with every validation, the last files count once. */
static void saving_takes_its_time(void) {
    stk_budget_facts facts = facts_of(100, 10);
    facts.save_s = 1.5; /* an epoch of 12.5 s: six are 75 s, exactly what there is */
    stk_budget_plan plan = stk_budget_make(&facts);
    CHECK_INT(plan.epochs, 6);
    CHECK_NEAR(plan.epoch_s, 12.5, 1e-9);
    CHECK_NEAR(plan.total_s, 75, 1e-9);
    facts.save_s = 2;
    CHECK_INT(stk_budget_make(&facts).steps_left, 500 + 70); /* 65 s, and 7 s before a last 3 */
    facts.save_s = 0;
    facts.final_s = 24; /* more than 15 %, with a hundredth for stalls: 25 s */
    plan = stk_budget_make(&facts);
    CHECK_NEAR(plan.reserve_s, 25, 1e-9);
    CHECK_INT(plan.steps_left, 500 + 90); /* 65 s: 55, and 9 before a validation */
    facts.budget_s = NAN;
    facts.save_s = 1;
    facts.epochs_wanted = 2;
    CHECK_NEAR(stk_budget_make(&facts).total_s, 24, 1e-9);
}

static void no_budget(void) {
    stk_budget_facts facts = facts_of(NAN, 50);
    stk_budget_plan plan = stk_budget_make(&facts);
    CHECK_INT(plan.epochs, STK_BUDGET_DEFAULT_EPOCHS);
    CHECK_INT(plan.steps_left, 100 * STK_BUDGET_DEFAULT_EPOCHS);
    CHECK(!plan.cut && isnan(plan.reserve_s) && isnan(plan.left_s));
    CHECK_NEAR(plan.epoch_s, 11, 1e-9);
    CHECK_NEAR(plan.total_s, 11 * STK_BUDGET_DEFAULT_EPOCHS, 1e-6);

    facts.epochs_wanted = 5;
    facts.epoch = 3;
    facts.step = 40;
    plan = stk_budget_make(&facts);
    CHECK_INT(plan.epochs, 5);
    CHECK_INT(plan.steps_left, 260);
    CHECK_NEAR(plan.total_s, 26 + 3, 1e-9);

    facts.step_s = NAN;
    facts.val_s = NAN;
    plan = stk_budget_make(&facts);
    CHECK_INT(plan.steps_left, 260);
    CHECK(isnan(plan.total_s) && isnan(plan.epoch_s));
}

static void cases_by_hand(void) {
    static const struct {
        const char *what;
        double budget, elapsed;
        int wanted, epoch;
        int64_t step;
        double val_s, predict_s;
        int epochs;
        int64_t steps_left;
        bool cut;
        double total_s;
        bool timed;
    } cases[] = {
        {"plenty", 1000, 10, 5, 1, 0, 1, 0, 5, 500, false, 55, false},
        {"plenty, in the middle", 1000, 10, 5, 4, 30, 1, 0, 5, 170, false, 19, false},
        {"exactly the last epoch", 1000, 10, 5, 5, 99, 1, 0, 5, 1, false, 1.1, false},
        {"as many as fit, and a part", 100, 10, 0, 1, 0, 1, 0, 7, 680, false, 75, false},
        {"fewer than wanted", 100, 10, 20, 1, 0, 1, 0, 7, 680, true, 75, false},
        {"fewer, in the middle", 100, 40, 20, 3, 50, 1, 0, 7, 400, true, 45, false},
        {"a part that is worth its validation", 100, 17.05, 20, 1, 0, 1, 0, 7, 609, true, 67.9,
         false},
        {"a part that is not", 100, 17.25, 20, 1, 0, 1, 0, 6, 600, true, 66, false},
        {"no part beyond what was wanted", 100, 10, 6, 1, 0, 1, 0, 6, 600, false, 66, false},
        {"as wanted, to the second", 100, 18.9, 6, 1, 0, 1, 0, 6, 600, false, 66, false},
        {"a hair less", 100, 19.05, 6, 1, 0, 1, 0, 6, 599, true, 65.9, false},
        {"a part of the first", 100, 79.95, 20, 1, 0, 1, 0, 1, 40, true, 5, false},
        {"a part of the first, free", 100, 79.95, 0, 1, 0, 1, 0, 1, 40, true, 5, false},
        {"the running one into the reserve", 100, 79.95, 20, 4, 20, 1, 0, 4, 80, true, 9, false},
        {"the same when prediction needs it", 100, 79.95, 20, 4, 20, 1, 9.6, 4, 40, true, 5, false},
        {"a part of a later one", 100, 83.55, 20, 4, 20, 1, 0, 4, 4, true, 1.4, false},
        {"a part of a later one, free", 100, 83.55, 0, 4, 20, 1, 0, 4, 4, false, 1.4, false},
        {"only a validation", 100, 84.5, 20, 2, 20, 1, 0, 2, 0, true, 1, false},
        {"not even that", 100, 84.5, 20, 2, 0, 1, 0, 2, 0, true, 0, false},
        {"nothing but the reserve", 100, 85, 20, 2, 20, 1, 0, 2, 0, true, 1, false},
        {"nothing left", 100, 92.55, 20, 2, 20, 1, 0, 2, 0, true, 0, false},
        {"too late", 100, 500, 20, 2, 20, 1, 0, 2, 0, true, 0, false},
        {"too late, free", 100, 500, 0, 2, 20, 1, 0, 2, 0, false, 0, false},
        {"a validation that takes nothing", 100, 10, 0, 1, 0, NAN, NAN, 8, 750, false, 75, false},
        {"prediction over 15 %", 100, 9.95, 0, 1, 0, 1, 24, 6, 520, false, 58, false},
        {"the same, timed", 100, 9.95, 0, 1, 0, 1, 24, 6, 520, false, 58, true},
        {"a short prediction, timed", 100, 7.95, 0, 1, 0, 1, 0.5, 9, 815, false, 90.5, true},
        {"a part of a later one, timed", 100, 92.95, 20, 4, 20, 1, 0.5, 4, 45, true, 5.5, true},
        {"a hair of the spare", 100, 89.85, 20, 4, 20, 1, 0.5, 4, 80, true, 9, true},
        {"more than half of it", 100, 90.05, 20, 4, 20, 1, 0.5, 4, 74, true, 8.4, true},
        {"prediction eats all", 100, 10, 0, 1, 0, 1, 70, 1, 0, true, 0, false},
        {"no more than the most", 1e6, 0, 0, 1, 0, 1, 0, STK_BUDGET_MOST_EPOCHS,
         100 * STK_BUDGET_MOST_EPOCHS, false, 11.0 * STK_BUDGET_MOST_EPOCHS, false},
        {"the last of the most", 1e6, 0, 0, STK_BUDGET_MOST_EPOCHS, 99, 1, 0,
         STK_BUDGET_MOST_EPOCHS, 1, false, 1.1, false},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        stk_budget_facts facts = facts_of(cases[i].budget, cases[i].elapsed);
        facts.epochs_wanted = cases[i].wanted;
        facts.epoch = cases[i].epoch;
        facts.step = cases[i].step;
        facts.val_s = cases[i].val_s;
        facts.predict_s = cases[i].predict_s;
        facts.timed = cases[i].timed;
        stk_budget_plan plan = stk_budget_make(&facts);
        if (plan.epochs != cases[i].epochs || plan.steps_left != cases[i].steps_left ||
            plan.cut != cases[i].cut || !(fabs(plan.total_s - cases[i].total_s) < 1e-6)) {
            CHECK_FAIL("%s: epochs %d, steps %lld, cut %d, total %g s", cases[i].what, plan.epochs,
                       (long long)plan.steps_left, plan.cut, plan.total_s);
        }
        CHECK_NEAR(plan.left_s, cases[i].budget - cases[i].elapsed, 1e-9);
        CHECK_NEAR(plan.reserve_s,
                   stk_budget_reserve_by(cases[i].budget, cases[i].predict_s, cases[i].timed),
                   1e-9);
    }
}

static void unmeasured_begins_as_if_all_were_possible(void) {
    stk_budget_facts facts = facts_of(100, 10);
    facts.step_s = facts.val_s = facts.predict_s = NAN;
    facts.epochs_wanted = 7;
    stk_budget_plan plan = stk_budget_make(&facts);
    CHECK_INT(plan.epochs, 7);
    CHECK_INT(plan.steps_left, 700);
    CHECK(!plan.cut && isnan(plan.total_s) && isnan(plan.epoch_s));
    facts.epochs_wanted = 0;
    CHECK_INT(stk_budget_make(&facts).steps_left, 100 * STK_BUDGET_MOST_EPOCHS);
    facts.elapsed_s = 86; /* inside the reserve: not even begun */
    CHECK_INT(stk_budget_make(&facts).steps_left, 0);
}

/* Three folds that follow their plans get like parts of the time, and none goes beyond the end. */
static void folds_share_the_time(void) {
    static const int wanted[] = {0, 20};
    for (size_t w = 0; w < 2; w++) {
        double now = 10;
        int done[3] = {0};
        for (int fold = 0; fold < 3; fold++) {
            stk_budget_facts facts = facts_of(200, now);
            facts.fold_start_s = now;
            facts.share = 1.0 / (3 - fold);
            facts.epochs_wanted = wanted[w];
            for (facts.epoch = 1;; facts.epoch++) { /* asked anew before every epoch */
                facts.elapsed_s = now;
                stk_budget_plan plan = stk_budget_make(&facts);
                if (plan.steps_left < 100) {
                    break;
                }
                done[fold]++;
                now += 11;
            }
        }
        /* 160 s are 14 epochs. */
        CHECK(now <= 170);
        CHECK_INT(done[0], 4);
        CHECK(done[1] >= 4 && done[1] <= 5);
        CHECK(done[2] >= 4 && done[2] <= 6);
    }
}

static stk_budget_facts draw_facts(stk_rng *rng) {
    stk_budget_facts f = {.budget_s = stk_rng_range(rng, 1, 1000)};
    f.elapsed_s = stk_rng_range(rng, 0, f.budget_s * 1.1);
    f.fold_start_s = stk_rng_range(rng, 0, f.elapsed_s);
    f.share = 1.0 / (double)(1 + stk_rng_below(rng, 5));
    f.epochs_wanted = (int)stk_rng_below(rng, 2) * (int)(1 + stk_rng_below(rng, 300));
    int most = f.epochs_wanted > 0 ? f.epochs_wanted : STK_BUDGET_MOST_EPOCHS;
    f.epoch = 1 + (int)stk_rng_below(rng, (uint64_t)most);
    f.steps_per_epoch = 1 + (int64_t)stk_rng_below(rng, 500);
    f.step = (int64_t)stk_rng_below(rng, (uint64_t)f.steps_per_epoch);
    f.step_s = stk_rng_below(rng, 20) == 0 ? 0 : stk_rng_range(rng, 0.0001, 2);
    f.val_s = stk_rng_below(rng, 5) == 0 ? NAN : stk_rng_range(rng, 0, 20);
    f.predict_s = stk_rng_below(rng, 5) == 0 ? NAN : stk_rng_range(rng, 0, 60);
    f.timed = stk_rng_below(rng, 2) == 0;
    return f;
}

static void check_laws(const stk_budget_facts *f) {
    stk_budget_plan plan = stk_budget_make(f);
    int most = f->epochs_wanted > 0 ? f->epochs_wanted : STK_BUDGET_MOST_EPOCHS;
    double val_s = isnan(f->val_s) ? 0 : f->val_s;
    double validations = plan.epochs - f->epoch + 1;
    double end_s = f->elapsed_s + (double)plan.steps_left * f->step_s + validations * val_s;
    /* The running epoch may be finished with half of what the reserve has to spare. */
    double need_s = isnan(f->predict_s) ? 0 : f->predict_s;
    bool finishing = f->step > 0 && plan.epochs == f->epoch;
    double slack_s = finishing ? (plan.reserve_s - need_s) / 2 * f->share : 0;
    if (plan.steps_left > 0) {
        CHECK(end_s <= f->budget_s - plan.reserve_s + slack_s + 1e-6);
        CHECK(end_s <= f->budget_s - need_s + 1e-6);
        CHECK(end_s - f->fold_start_s <=
              (f->budget_s - plan.reserve_s - f->fold_start_s) * f->share + slack_s + 1e-6);
        CHECK_NEAR(plan.total_s, end_s - f->elapsed_s, 1e-6);
    }
    CHECK(plan.steps_left >= 0);
    CHECK(plan.steps_left <= (int64_t)(most - f->epoch + 1) * f->steps_per_epoch - f->step);
    CHECK(plan.epochs >= f->epoch && plan.epochs <= most);
    if (!plan.cut && f->epochs_wanted > 0) {
        CHECK_INT(plan.epochs, f->epochs_wanted);
    }
    stk_budget_facts richer = *f;
    richer.budget_s += 10;
    CHECK(stk_budget_make(&richer).steps_left >= plan.steps_left);
    stk_budget_facts later = *f;
    later.elapsed_s += 1;
    CHECK(stk_budget_make(&later).steps_left <= plan.steps_left);
    stk_budget_facts slower = *f;
    slower.step_s = f->step_s * 1.5 + 1e-4;
    CHECK(stk_budget_make(&slower).steps_left <= plan.steps_left);
}

static void never_beyond_the_time(void) {
    for (uint64_t i = 0; i < 20000 && check_failures < 5; i++) {
        stk_rng rng = stk_rng_make(1, STK_RNG_TEST, 0, i);
        stk_budget_facts facts = draw_facts(&rng);
        int before = check_failures;
        check_laws(&facts);
        if (check_failures > before) {
            printf("  case %d\n", (int)i);
        }
    }
}

static const check_test tests[] = {
    TEST(reserve),
    TEST(validations_become_rarer),
    TEST(cheap_steps_leave_time_for_more),
    TEST(a_late_start_leaves_time_to_train),
    TEST(reserve_of_a_plan),
    TEST(a_warm_budget_is_used),
    TEST(saving_takes_its_time),
    TEST(no_budget),
    TEST(cases_by_hand),
    TEST(unmeasured_begins_as_if_all_were_possible),
    TEST(folds_share_the_time),
    TEST(never_beyond_the_time),
};

CHECK_MAIN(tests)
