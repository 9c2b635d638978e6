/* test_fold_choice.c - folds against epochs: cases by hand, and laws that hold for any numbers. */
#include "check.h"

#include <math.h>

#include "base/numbers/rng.h"
#include "budget/fold_choice.h"

/* Epochs of 10 s; a budget of 1000 s keeps 200 while a prediction is not timed. */
static stk_fold_facts facts_of(double budget_s, double elapsed_s, int folds, int epochs) {
    return (stk_fold_facts){.elapsed_s = elapsed_s,
                            .budget_s = budget_s,
                            .folds_wanted = folds,
                            .epochs_wanted = epochs,
                            .between = true,
                            .epoch_s = 10,
                            .predict_s = 0};
}

static void cases_by_hand(void) {
    static const struct {
        const char *what;
        double budget, elapsed;
        int folds, begun, done, epochs;
        bool between;
        double predict_s;
        int chosen, chosen_epochs;
        bool timed;
    } cases[] = {
        {"all of it fits", 1000, 0, 5, 0, 0, 16, true, 0, 5, 16, false},
        {"one epoch too many is one less of each", 1000, 0, 5, 0, 0, 17, true, 0, 5, 16, false},
        {"three folds lose less than two of five epochs", 1000, 0, 5, 0, 0, 26, true, 0, 3, 26,
         false},
        {"thirty epochs, five folds", 1000, 0, 5, 0, 0, 30, true, 0, 3, 26, false},
        {"three folds at half the epochs are as good as one", 1000, 0, 3, 0, 0, 52, true, 0, 3, 26,
         false},
        {"less than half: one", 1000, 0, 3, 0, 0, 60, true, 0, 1, 60, false},
        {"far too much", 1000, 0, 5, 0, 0, 200, true, 0, 1, 80, false},
        {"the post-mortem: 5 folds of 30 epochs of 30 s in 660 s", 220, 0, 5, 0, 0, 30, true, 0, 1,
         17, false},
        {"not one epoch", 1000, 795, 5, 0, 0, 30, true, 0, 1, 1, false},
        {"nothing left", 1000, 1200, 5, 0, 0, 30, true, 0, 1, 1, false},
        {"what was begun stays", 1000, 700, 5, 2, 4, 30, false, 0, 2, 14, false},
        {"the running one goes on", 1000, 500, 5, 1, 10, 20, false, 0, 3, 13, false},
        {"between folds", 1000, 500, 5, 3, 0, 20, true, 0, 5, 15, false},
        {"a quarter of the epochs", 1000, 700, 5, 1, 0, 40, true, 0, 2, 10, false},
        {"less than a quarter", 1000, 710, 5, 1, 0, 40, true, 0, 1, 40, false},
        {"one more with what is left over", 1000, 640, 5, 1, 0, 40, true, 0, 2, 16, false},
        {"too little for another", 1000, 785, 5, 3, 0, 20, true, 0, 3, 20, false},
        {"two folds go to one", 1000, 700, 2, 0, 0, 30, true, 0, 1, 10, false},
        {"seven folds go to five", 1000, 0, 7, 0, 0, 16, true, 0, 5, 16, false},
        {"one fold stays one", 1000, 0, 1, 0, 0, 300, true, 0, 1, 80, false},
        {"as many as fit, compared with ten", 600, 0, 5, 0, 0, 0, true, 0, 5, 9, false},
        {"predictions of all models but the last", 1000, 0, 5, 0, 0, 16, true, 40, 3, 16, false},
        {"a large reserve", 1000, 0, 3, 0, 0, 16, true, 270, 1, 16, false},
        {"a timed prediction leaves more", 1000, 0, 5, 0, 0, 17, true, 0, 5, 17, true},
        {"up to 95 % less the reserve", 1000, 0, 5, 0, 0, 19, true, 0, 5, 18, true},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        stk_fold_facts f =
            facts_of(cases[i].budget, cases[i].elapsed, cases[i].folds, cases[i].epochs);
        f.folds_begun = cases[i].begun;
        f.epochs_done = cases[i].done;
        f.between = cases[i].between;
        f.predict_s = cases[i].predict_s;
        f.timed = cases[i].timed;
        stk_fold_choice c = stk_budget_choose_folds(&f);
        if (c.folds != cases[i].chosen || c.epochs != cases[i].chosen_epochs) {
            printf("%s: %d folds of %d epochs\n", cases[i].what, c.folds, c.epochs);
        }
        CHECK_INT(c.folds, cases[i].chosen);
        CHECK_INT(c.epochs, cases[i].chosen_epochs);
        CHECK_INT(c.all_epochs, cases[i].epochs > 0 ? cases[i].epochs : STK_BUDGET_FAIR_EPOCHS);
    }
}

/* 16 epochs of five folds fit exactly, see above: not if each fold begins slowly. */
static void beginning_a_fold_takes_time(void) {
    stk_fold_facts f = facts_of(1000, 0, 5, 16);
    f.setup_s = 10;
    CHECK_INT(stk_budget_choose_folds(&f).folds, 5);
    CHECK_INT(stk_budget_choose_folds(&f).epochs, 15);
    f.setup_s = 100;
    CHECK_INT(stk_budget_choose_folds(&f).folds, 3);
    CHECK_INT(stk_budget_choose_folds(&f).epochs, 16);
    f.setup_s = 300;
    CHECK_INT(stk_budget_choose_folds(&f).folds, 1);
}

static void nothing_is_cut_without_numbers(void) {
    stk_fold_facts f = facts_of(NAN, 5000, 5, 300);
    stk_fold_choice c = stk_budget_choose_folds(&f);
    CHECK_INT(c.folds, 5);
    CHECK_NEAR(c.wanted_s, 15000, 1e-9);
    CHECK(isnan(c.left_s));

    f = facts_of(100, 10, 5, 300);
    f.epoch_s = NAN;
    c = stk_budget_choose_folds(&f);
    CHECK_INT(c.folds, 5);
    CHECK(isnan(c.wanted_s));
}

/* What is chosen fits, never is more than was asked for and never less than was begun. */
static void laws(void) {
    stk_rng rng = stk_rng_make(7, STK_RNG_SPLIT, 0, 0);
    for (int i = 0; i < 20000; i++) {
        stk_fold_facts f =
            facts_of(10 + 1000 * stk_rng_uniform(&rng), 1000 * stk_rng_uniform(&rng),
                     1 + (int)(stk_rng_u64(&rng) % 10), (int)(stk_rng_u64(&rng) % 50));
        f.between = stk_rng_u64(&rng) % 2 == 0;
        f.folds_begun = (int)(stk_rng_u64(&rng) % (uint64_t)(f.folds_wanted + 1));
        f.between = f.between || f.folds_begun == 0;
        int most = f.epochs_wanted > 0 ? f.epochs_wanted : STK_BUDGET_FAIR_EPOCHS;
        f.epochs_done = f.between ? 0 : (int)(stk_rng_u64(&rng) % (uint64_t)most);
        f.epoch_s = 0.1 + 20 * stk_rng_uniform(&rng);
        f.predict_s = 30 * stk_rng_uniform(&rng);
        f.timed = stk_rng_u64(&rng) % 2 == 0;
        stk_fold_choice c = stk_budget_choose_folds(&f);
        CHECK(c.folds >= 1 && c.folds <= f.folds_wanted && c.folds >= f.folds_begun);
        CHECK(c.epochs >= 1 && c.epochs <= most);
        double running = f.between ? 0 : fmax(c.epochs - f.epochs_done, 0);
        double training = ((c.folds - f.folds_begun) * (double)c.epochs + running) * f.epoch_s;
        bool least = c.folds == (f.folds_begun > 0 ? f.folds_begun : 1);
        CHECK(training <= c.left_s + 1e-6 || least);
        stk_fold_facts more = f;
        more.budget_s *= 1.5;
        CHECK(stk_budget_choose_folds(&more).folds >= c.folds || c.epochs < most);
    }
}

static const check_test tests[] = {
    TEST(cases_by_hand),
    TEST(beginning_a_fold_takes_time),
    TEST(nothing_is_cut_without_numbers),
    TEST(laws),
};

CHECK_MAIN(tests)
