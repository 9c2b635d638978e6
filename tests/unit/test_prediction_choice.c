/* test_prediction_choice.c - views and models that fit into the time: cases by hand, and laws for
 * any numbers.
 */
#include "check.h"

#include <math.h>

#include "base/numbers/rng.h"
#include "budget/budget.h"
#include "budget/prediction_choice.h"

/* 100 pictures of 0.1 s: a pass takes 10 s, with the margin 11 s. */
static void cases_by_hand(void) {
    static const struct {
        const char *what;
        double left_s, picture_s, model_s;
        int models, views, views_done;
        int views_fit, models_fit;
    } cases[] = {
        {"no deadline", INFINITY, 0.1, 5, 5, 8, 0, 8, 5},
        {"nothing measured", 20, NAN, NAN, 5, 8, 0, 8, 5},
        {"nothing measured and no time", -1, NAN, NAN, 5, 8, 0, 8, 5},
        {"all of it just fits", 44.01, 0.1, 0, 2, 2, 0, 2, 2},
        {"not quite: a view goes", 43.9, 0.1, 0, 2, 2, 0, 1, 2},
        {"views go before models", 23, 0.1, 0, 2, 8, 0, 1, 2},
        {"then models", 21, 0.1, 0, 2, 8, 0, 1, 1},
        {"then all of them", 10.9, 0.1, 0, 2, 8, 0, 1, 0},
        {"no time at all", 0, 0.1, 0, 2, 8, 0, 1, 0},
        {"late already", -3, 0.1, 0, 2, 8, 0, 1, 0},
        {"loading counts", 44, 0.1, 1, 2, 2, 0, 1, 2},
        {"loading takes it all", 30, 0.1, 20, 2, 1, 0, 1, 0},
        {"loading is not known", 22.01, 0.1, NAN, 2, 1, 0, 1, 2},
        {"the last model's next view", 11.01, 0.1, 0, 0, 4, 1, 2, 0},
        {"no time for it", 10.9, 0.1, 0, 0, 4, 1, 1, 0},
        {"two more", 22.5, 0.1, 0, 0, 4, 1, 3, 0},
        {"all were made", 100, 0.1, 0, 0, 4, 4, 4, 0},
        {"another model needs its views, too", 33.01, 0.1, 0, 1, 2, 1, 2, 1},
        {"and comes before a view of this one", 32.9, 0.1, 0, 1, 2, 1, 1, 1},
        {"views that were made stay", 5, 0.1, 0, 3, 8, 3, 3, 0},
        {"pictures that take no time", 1, 0, 0, 3, 8, 0, 8, 3},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        stk_prediction_facts facts = {.left_s = cases[i].left_s,
                                      .rows = 100,
                                      .picture_s = cases[i].picture_s,
                                      .model_s = cases[i].model_s,
                                      .models = cases[i].models,
                                      .views = cases[i].views,
                                      .views_done = cases[i].views_done};
        stk_prediction_choice choice = stk_prediction_choose(&facts);
        if (choice.views != cases[i].views_fit || choice.models != cases[i].models_fit) {
            CHECK_FAIL("%s: %d views and %d models, expected %d and %d", cases[i].what,
                       choice.views, choice.models, cases[i].views_fit, cases[i].models_fit);
        }
    }
}

/* What fits, fits; no view is made while a model is left out; more time never means less. */
static void laws(void) {
    stk_rng rng = stk_rng_make(1, STK_RNG_TEST, 0, 0);
    for (int i = 0; i < 20000; i++) {
        stk_prediction_facts facts = {.left_s = stk_rng_range(&rng, -1, 100),
                                      .rows = (int64_t)stk_rng_below(&rng, 1000) + 1,
                                      .picture_s = stk_rng_range(&rng, 0.0001, 0.05),
                                      .model_s = stk_rng_range(&rng, 0, 3),
                                      .models = (int)stk_rng_below(&rng, 6),
                                      .views = 1 + (int)stk_rng_below(&rng, 8)};
        facts.views_done = (int)stk_rng_below(&rng, (uint64_t)facts.views + 1);
        stk_prediction_choice choice = stk_prediction_choose(&facts);
        int at_work = facts.views_done > 0 ? choice.views - facts.views_done : 0;
        double pass_s = (double)facts.rows * facts.picture_s;
        double need_s = at_work * pass_s + choice.models * (facts.model_s + choice.views * pass_s);
        CHECK(choice.views >= 1 && choice.views >= facts.views_done && choice.views <= facts.views);
        CHECK(choice.models >= 0 && choice.models <= facts.models);
        CHECK(at_work == 0 || choice.models == facts.models);
        CHECK(facts.views_done > 1 || choice.views == 1 || choice.models == facts.models);
        CHECK((at_work == 0 && choice.models == 0) || need_s <= facts.left_s);
        facts.left_s += stk_rng_range(&rng, 0, 20);
        stk_prediction_choice more = stk_prediction_choose(&facts);
        CHECK(more.views >= choice.views);
        CHECK(more.models >= choice.models || more.views > choice.views);
    }
}

/* As many as --tta asks for. */
static int in_reserve(double budget_s, double view_s, int views) {
    return stk_views_in_reserve(&(stk_view_facts){.budget_s = budget_s,
                                                  .view_s = view_s,
                                                  .all_s = 5 * view_s,
                                                  .views = views,
                                                  .least_views = views});
}

/* Views may take 15 of 100 s, and a need of n s keeps a third more, at least a second. */
static void views_in_the_reserve(void) {
    CHECK_INT(in_reserve(NAN, 5, 8), 8);
    CHECK_INT(in_reserve(100, NAN, 8), 1);
    CHECK_INT(in_reserve(100, 0, 8), 8);
    CHECK_INT(in_reserve(100, 1, 8), 8);
    CHECK_INT(in_reserve(100, 1.5, 8), 7);
    CHECK_INT(in_reserve(100, 2, 8), 5);
    CHECK_INT(in_reserve(100, 4, 8), 2);
    CHECK_INT(in_reserve(100, 4, 1), 1);
    CHECK_INT(in_reserve(100, 9, 8), 1);
    CHECK_INT(in_reserve(100, 90, 8), 1); /* one is always reserved for */
    CHECK_INT(in_reserve(1, 0, 8), 8);    /* the least that is kept is more than 15 % */
    CHECK_INT(in_reserve(1, 0.1, 8), 1);
}

/* The mirror image is a second view where training mirrors pictures, and a view of everything takes
 * at most a twentieth of what there is. */
static void the_mirror_image_where_it_is_cheap(void) {
    CHECK_INT(stk_views_choose(true, 5, 100), 2);
    CHECK_INT(stk_views_choose(true, 5.01, 100), 1);
    CHECK_INT(stk_views_choose(true, 0, 100), 2); /* nothing to predict: for later predictions */
    CHECK_INT(stk_views_choose(false, 0, 100), 1);
    CHECK_INT(stk_views_choose(true, NAN, 100), 1);
    CHECK_INT(stk_views_choose(true, 1, NAN), 1);
}

/* Views that nobody asked for stay cheap for all models together; those that were asked for need
 * not. */
static void views_that_were_chosen_are_given_up_sooner(void) {
    stk_view_facts facts = {.budget_s = 100, .view_s = 1, .all_s = 5, .views = 2, .least_views = 1};
    CHECK_INT(stk_views_in_reserve(&facts), 2);
    facts.all_s = 5.1;
    CHECK_INT(stk_views_in_reserve(&facts), 1);
    facts.least_views = 2;
    CHECK_INT(stk_views_in_reserve(&facts), 2);
    facts.budget_s = NAN;
    facts.least_views = 1;
    CHECK_INT(stk_views_in_reserve(&facts), 2);
    facts =
        (stk_view_facts){.budget_s = 100, .view_s = 5, .all_s = 5, .views = 1, .least_views = 1};
    CHECK_INT(stk_views_in_reserve(&facts), 1); /* cheap, and not wanted */
}

/* Once between 40 % of the budget and its last tenth of training, if it takes 3 % at most. */
static void early_predictions(void) {
    static const struct {
        const char *what;
        stk_early_facts facts;
        double most_s;
    } cases[] = {
        {"in the middle", {100, 50, 1, 35}, 5},
        {"at the first moment", {100, 40, 1, 45}, 5},
        {"too soon", {100, 39, 1, 46}, 0},
        {"at the last moment", {100, 75, 1, 10}, 5},
        {"the model soon predicts anyway", {100, 50, 1, 9}, 0},
        {"no time before the reserve", {100, 90, 1, -3}, 0},
        {"as dear as it may be", {100, 50, 3, 35}, 5},
        {"too dear", {100, 50, 3.1, 35}, 0},
        {"dear, but of a long budget", {1000, 500, 29, 350}, 50},
        {"without a budget", {NAN, 50, 1, 35}, 0},
        {"nothing was timed", {100, 50, NAN, 35}, 0},
        {"no step was timed", {100, 50, 1, NAN}, 0},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        double most_s = stk_early_prediction_s(&cases[i].facts);
        if (fabs(most_s - cases[i].most_s) > 1e-9) {
            CHECK_FAIL("%s: %g s, expected %g", cases[i].what, most_s, cases[i].most_s);
        }
    }
}

static const check_test tests[] = {
    TEST(cases_by_hand),
    TEST(laws),
    TEST(views_in_the_reserve),
    TEST(the_mirror_image_where_it_is_cheap),
    TEST(views_that_were_chosen_are_given_up_sooner),
    TEST(early_predictions),
};

CHECK_MAIN(tests)
