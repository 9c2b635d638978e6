/* test_model_choice.c - which of several pretrained models is trained. */
#include "check.h"

#include <math.h>

#include "base/mem.h"
#include "budget/model_choice.h"

/* Three models of which each is better and takes twice as long as the one before. On both devices
 * the cost is the bytes, since nothing is multiplied. */
static const stk_model_offer offers[] = {{.quality = 72, .bytes = 100, .img_size = 224},
                                         {.quality = 75, .bytes = 200, .img_size = 240},
                                         {.quality = 80, .bytes = 400, .img_size = 300}};

/* 1000 pictures; an epoch of the first model takes a second. */
static stk_training_facts facts_of(double left_s) {
    return (stk_training_facts){.left_s = left_s,
                                .picture_s = 1e-3,
                                .pictures = 1000,
                                .val_part = 0.2,
                                .pretrained = true,
                                .img_size = 224,
                                .may_shrink = true,
                                .refits = -1};
}

static stk_model_choice choose(const stk_training_facts *facts) {
    return stk_model_choose(offers, STK_COUNT(offers), true, 0, facts->picture_s, facts);
}

static void the_best_that_gets_enough_epochs(void) {
    static const struct {
        double left_s;
        size_t index;
        double epochs;
        size_t better;
        double better_epochs;
        bool enough;
    } cases[] = {
        {1000, 2, 250, 2, 250, true}, {48, 2, 12, 2, 12, true},       {47, 1, 23.5, 2, 11.75, true},
        {24, 1, 12, 2, 6, true},      {23, 0, 23, 2, 5.75, true},     {12, 0, 12, 2, 3, true},
        {11, 0, 11, 2, 2.75, false},  {0.5, 0, 0.5, 2, 0.125, false}, {0, 0, 0, 2, 0, false},
    };
    for (size_t i = 0; i < STK_COUNT(cases); i++) {
        stk_training_facts facts = facts_of(cases[i].left_s);
        stk_model_choice c = choose(&facts);
        if (c.index != cases[i].index || c.better != cases[i].better ||
            c.enough != cases[i].enough) {
            CHECK_FAIL("case %zu: model %zu, better %zu, %s", i, c.index, c.better,
                       c.enough ? "enough" : "too few");
        }
        CHECK_NEAR(c.epochs, cases[i].epochs, 1e-6);
        CHECK_NEAR(c.better_epochs, cases[i].better_epochs, 1e-6);
    }
}

static void many_pictures_need_few_epochs(void) {
    stk_training_facts facts = facts_of(0);
    facts.pictures = 100000;
    facts.left_s = 400 * 0.7; /* 0.7 epochs of the largest are 70,000 pictures */
    CHECK_INT(choose(&facts).index, 2);
    facts.left_s = 400 * 0.5;
    CHECK_INT(choose(&facts).index, 1);
}

static void any_model_may_be_the_measured_one(void) {
    for (size_t measured = 0; measured < STK_COUNT(offers); measured++) {
        stk_training_facts facts = facts_of(30);
        facts.picture_s = 1e-3 * (double)(1 << measured);
        facts.predict_s = 1.0 * (double)(1 << measured);
        facts.img_size = offers[measured].img_size;
        stk_model_choice c =
            stk_model_choose(offers, STK_COUNT(offers), false, measured, facts.picture_s, &facts);
        CHECK_INT(c.index, 1);
        CHECK_NEAR(c.epochs, 14, 1e-6); /* 2 of the 30 s are for predictions */
        stk_training_facts own =
            stk_model_estimate(&offers[c.index], &offers[measured], false, facts.picture_s, &facts);
        CHECK_INT(own.img_size, 240);
        CHECK_NEAR(own.picture_s, 2e-3, 1e-9);
        CHECK_NEAR(own.predict_s, 2, 1e-9);
    }
}

/* Where training waits for pictures, a larger model may take no longer. */
static void pictures_bound_the_speed(void) {
    stk_training_facts facts = facts_of(48);
    facts.loader_s = facts.picture_s = 4e-3;
    stk_model_choice c = stk_model_choose(offers, STK_COUNT(offers), true, 0, 1e-3, &facts);
    CHECK_INT(c.index, 2);
    CHECK_NEAR(c.epochs, 12, 1e-6);
}

static void one_model_and_no_time_measured(void) {
    stk_training_facts facts = facts_of(1);
    stk_model_choice c = stk_model_choose(offers + 2, 1, true, 0, facts.picture_s, &facts);
    CHECK(c.index == 0 && c.better == 0 && !c.enough);
    CHECK_NEAR(c.epochs, 1, 1e-6);
    facts.picture_s = NAN;
    c = stk_model_choose(offers, STK_COUNT(offers), true, 1, NAN, &facts);
    CHECK(c.index == 1 && c.better == 1 && isnan(c.epochs));
    facts = facts_of(NAN);
    CHECK_INT(stk_model_choose(offers, STK_COUNT(offers), true, 1, 1e-3, &facts).index, 1);
}

static void of_equal_ones_the_faster(void) {
    static const stk_model_offer equal[] = {{.quality = 75, .bytes = 200, .img_size = 224},
                                            {.quality = 75, .bytes = 100, .img_size = 224},
                                            {.quality = 75, .bytes = 300, .img_size = 224}};
    stk_training_facts facts = facts_of(1000);
    CHECK_INT(stk_model_choose(equal, 3, true, 0, 1e-3, &facts).index, 1);
    facts = facts_of(0);
    CHECK_INT(stk_model_choose(equal, 3, true, 0, 1e-3, &facts).index, 1); /* no time at all */
    CHECK_INT(stk_model_choose_untimed(equal, 3, true), 1);
    CHECK_INT(stk_model_choose_untimed(equal, 3, false), 1);
}

static void without_a_time_limit_by_the_device(void) {
    static const stk_model_offer real[] = {
        {.quality = 0, .multiply_adds = 1e8, .bytes = 1e7, .img_size = 64},
        {.quality = 71.5, .multiply_adds = 1.8e9, .bytes = 1.8e8, .img_size = 224},
        {.quality = 74.8, .multiply_adds = 4e8, .bytes = 3.9e8, .img_size = 224},
        {.quality = 80.2, .multiply_adds = 4.1e9, .bytes = 7.9e8, .img_size = 224},
        {.quality = 86.8, .multiply_adds = 3.8e10, .bytes = 2e10, .img_size = 600}};
    CHECK_INT(stk_model_choose_untimed(real, 5, true), 2);
    CHECK_INT(stk_model_choose_untimed(real, 5, false), 3);
    CHECK_INT(stk_model_choose_untimed(real, 1, true), 0);      /* none is good */
    CHECK_INT(stk_model_choose_untimed(real + 4, 1, false), 0); /* none is of ordinary size */
}

static const check_test tests[] = {
    TEST(the_best_that_gets_enough_epochs),   TEST(many_pictures_need_few_epochs),
    TEST(any_model_may_be_the_measured_one),  TEST(pictures_bound_the_speed),
    TEST(one_model_and_no_time_measured),     TEST(of_equal_ones_the_faster),
    TEST(without_a_time_limit_by_the_device),
};

CHECK_MAIN(tests)
