/* test_training_choice.c - what the time for training is spent on. */
#include "check.h"

#include <math.h>

#include "base/mem.h"
#include "budget/training_choice.h"

/* 2000 pictures that take a millisecond each at 224 px: an epoch takes 2 s. */
static stk_training_facts facts_of(bool pretrained, double epochs) {
    return (stk_training_facts){.left_s = 2 * epochs,
                                .picture_s = 1e-3,
                                .pictures = 2000,
                                .val_part = 0.2,
                                .pretrained = pretrained,
                                .img_size = 224,
                                .may_shrink = true,
                                .source_px = NAN,
                                .folds = 1,
                                .refits = -1};
}

static void models_by_the_epochs_that_fit(void) {
    static const struct {
        bool pretrained;
        double fit; /* epochs over all pictures */
        int refits;
        double epochs; /* of a model */
    } cases[] = {
        {true, 4, 0, 5},          {true, 26.9, 0, 33.625}, {true, 27, 1, 15},
        {true, 41.9, 1, 23.278},  {true, 42, 2, 15},       {true, 87, 5, 15},
        {true, 406.9, 5, 70.155}, {true, 408, 6, 60},      {true, 708, 11, 60},
        {true, 1180, 11, 100},    {true, 12000, 11, 1000}, {false, 100, 0, 125},
        {false, 108, 1, 60},      {false, 279, 1, 155},    {false, 280, 2, 100},
        {false, 2900, 5, 500},
    };
    for (size_t i = 0; i < STK_COUNT(cases); i++) {
        stk_training_facts facts = facts_of(cases[i].pretrained, cases[i].fit);
        stk_training_choice c = stk_training_choose(&facts);
        if (c.refits != cases[i].refits) {
            CHECK_FAIL("case %zu: %d refits", i, c.refits);
        }
        CHECK_NEAR(c.epochs, cases[i].epochs, 0.01);
        CHECK_INT(c.img_size, 224);
    }
}

/* With time for several models pictures become larger first, if they have the detail. */
static void larger_pictures_where_there_is_time(void) {
    stk_training_facts facts = facts_of(true, 90);
    facts.may_grow = true;
    facts.source_px = 224;
    stk_training_choice c = stk_training_choose(&facts);
    CHECK_INT(c.img_size, 288);
    CHECK_INT(c.refits, 2); /* 54.4 epochs at 288 px */
    CHECK_NEAR(c.epochs, 90 * pow(224.0 / 288, 2) / 2.8, 0.01);
    facts.left_s = 2 * 89.9;
    CHECK_INT(stk_training_choose(&facts).img_size, 224);
    facts.left_s = 2 * 200;
    CHECK_INT(stk_training_choose(&facts).img_size, 288);
    facts.source_px = 223; /* nothing more to see */
    CHECK_INT(stk_training_choose(&facts).img_size, 224);
    facts.source_px = NAN;
    CHECK_INT(stk_training_choose(&facts).img_size, 224);
    facts.source_px = 500;
    facts.pretrained = false;
    CHECK_INT(stk_training_choose(&facts).img_size, 224);
    facts.pretrained = true;
    facts.epochs = 20; /* as asked for */
    CHECK_INT(stk_training_choose(&facts).img_size, 224);
    facts.epochs = 0;
    facts.folds = 5;
    CHECK_INT(stk_training_choose(&facts).img_size, 224);
    facts.folds = 1;
    facts.may_grow = false;
    CHECK_INT(stk_training_choose(&facts).img_size, 224);
    /* Prediction grows with the pictures: what it takes no model gets. */
    facts = facts_of(true, 100);
    facts.may_grow = true;
    facts.source_px = 400;
    facts.predict_s = 30; /* of 200 s: 85 epochs are left */
    CHECK_INT(stk_training_choose(&facts).img_size, 224);
}

/* From scratch a short training begins with pictures of half the size. */
static void small_pictures_in_the_first_half(void) {
    static const struct {
        double fit; /* epochs at 224 px */
        int early;
        double epochs; /* of a model: 2.5 times as many as without */
    } cases[] = {{10, 112, 31.25}, {20, 112, 62.5}, {29.9, 112, 93.4375}, {30, 0, 37.5}};
    for (size_t i = 0; i < STK_COUNT(cases); i++) {
        stk_training_facts facts = facts_of(false, cases[i].fit);
        facts.may_begin_small = true;
        stk_training_choice c = stk_training_choose(&facts);
        CHECK_INT(c.img_size, 224);
        CHECK_INT(c.early_size, cases[i].early);
        CHECK_NEAR(c.epochs, cases[i].epochs, 0.01);
    }
    stk_training_facts facts = facts_of(false, 20);
    CHECK_INT(stk_training_choose(&facts).early_size, 0);
    facts.may_begin_small = facts.pretrained = true;
    CHECK_INT(stk_training_choose(&facts).early_size, 0);
    facts.pretrained = false;
    facts.loader_s = facts.picture_s; /* waits for pictures, whatever their size */
    CHECK_INT(stk_training_choose(&facts).early_size, 0);
    facts.loader_s = 0;
    facts.epochs = 10; /* as asked for */
    CHECK_INT(stk_training_choose(&facts).early_size, 0);
    facts.epochs = 0;
    facts.img_size = 96; /* half of it shows too little */
    CHECK_INT(stk_training_choose(&facts).early_size, 0);
    facts.img_size = 128;
    CHECK_INT(stk_training_choose(&facts).early_size, 64);
    facts = facts_of(false, 9.9); /* fewer than 20,000 pictures */
    facts.may_begin_small = true;
    facts.may_shrink = false;
    CHECK_INT(stk_training_choose(&facts).early_size, 0);
    facts.may_shrink = true; /* 13.5 epochs at 192 px */
    CHECK_INT(stk_training_choose(&facts).img_size, 192);
    CHECK_INT(stk_training_choose(&facts).early_size, 96);
    facts.predict_s = 0.21 * facts.left_s; /* hardly a second half would be left */
    CHECK_INT(stk_training_choose(&facts).early_size, 0);
    facts.predict_s = 0;
    facts.pictures = 20000; /* 2.9 epochs: the second half would be hardly one */
    facts.left_s = 20 * 2.9;
    facts.may_shrink = false;
    CHECK_INT(stk_training_choose(&facts).early_size, 0);
    facts.left_s = 20 * 3.1;
    CHECK_INT(stk_training_choose(&facts).early_size, 112);
    facts.pictures = 300; /* from scratch few pictures need many passes */
    facts.left_s = 0.3 * 20;
    facts.may_shrink = true;
    CHECK_INT(stk_training_choose(&facts).img_size, 128);
}

/* The validated model leaves out a tenth, where that is enough pictures. */
static void fewer_pictures_validate_without_folds(void) {
    stk_training_facts facts = facts_of(true, 4);
    facts.may_hold_less = true;
    CHECK_NEAR(stk_training_choose(&facts).val_part, 0.1, 1e-9);
    CHECK_NEAR(stk_training_choose(&facts).epochs, 4 / 0.9, 1e-9);
    facts.pictures = 299;
    CHECK_NEAR(stk_training_choose(&facts).val_part, 0.2, 1e-9);
    facts.pictures = 2000;
    facts.val_part = 0.05;
    CHECK_NEAR(stk_training_choose(&facts).val_part, 0.05, 1e-9);
    facts.val_part = 0;
    CHECK_NEAR(stk_training_choose(&facts).val_part, 0, 1e-9);
    facts = facts_of(true, 40); /* with refits, too */
    facts.may_hold_less = true;
    CHECK_NEAR(stk_training_choose(&facts).val_part, 0.1, 1e-9);
    CHECK_INT(stk_training_choose(&facts).refits, 1);
    CHECK_NEAR(stk_training_choose(&facts).epochs, 40 / 1.9, 1e-9);
    facts.folds = 5;
    CHECK_NEAR(stk_training_choose(&facts).val_part, 0.2, 1e-9);
    facts = facts_of(true, 4); /* as asked for */
    CHECK_NEAR(stk_training_choose(&facts).val_part, 0.2, 1e-9);
}

static void what_was_asked_for_stays(void) {
    stk_training_facts facts = facts_of(true, 100);
    facts.folds = 3;
    CHECK_INT(stk_training_choose(&facts).refits, 0);
    CHECK_NEAR(stk_training_choose(&facts).epochs, 100 / 2.4, 1e-9);
    facts.refits = 2;
    CHECK_INT(stk_training_choose(&facts).refits, 2);
    facts = facts_of(true, 100);
    facts.refits = 0;
    CHECK_INT(stk_training_choose(&facts).refits, 0);
    facts.refits = -1;
    facts.epochs = 20; /* every model gets as many */
    CHECK_INT(stk_training_choose(&facts).refits, 4);
    CHECK_NEAR(stk_training_choose(&facts).epochs, 20, 1e-9);
    facts = facts_of(true, 0.1);
    facts.may_shrink = false;
    CHECK_INT(stk_training_choose(&facts).img_size, 224);
}

/* Every model predicts the test set: a large one leaves no time for many models. */
static void predictions_count_for_every_model(void) {
    stk_training_facts facts = facts_of(true, 60);
    CHECK_INT(stk_training_choose(&facts).refits, 3);
    facts.predict_s = 17; /* of 120 s: a third model would leave 12.3 epochs for each */
    stk_training_choice c = stk_training_choose(&facts);
    CHECK_INT(c.refits, 1);
    CHECK_NEAR(c.epochs, (120 - 2 * 17) / 2.0 / 1.8, 0.01);
    facts.predict_s = 200; /* smaller pictures are predicted faster, too */
    c = stk_training_choose(&facts);
    CHECK(c.refits == 0 && c.img_size == 160);
    CHECK_NEAR(c.epochs, (120 - 200 * pow(160.0 / 224, 2)) / pow(160.0 / 224, 2) / 2 / 0.8, 0.01);
    facts.may_shrink = false;
    c = stk_training_choose(&facts);
    CHECK(c.refits == 0 && c.epochs == 0);
}

/* A validation set of its own: all training pictures train anyway. */
static void nothing_set_apart_needs_no_refit(void) {
    stk_training_facts facts = facts_of(true, 20);
    facts.val_part = 0;
    facts.folds = 1;
    CHECK_INT(stk_training_choose(&facts).refits, 0);
    facts.left_s = NAN;
    CHECK_INT(stk_training_choose(&facts).refits, 0);
}

static void smaller_pictures_where_no_epoch_fits(void) {
    static const struct {
        bool pretrained;
        double fit; /* epochs at 224 px */
        int size;
    } cases[] = {
        {true, 4, 224},    {true, 3, 192},   {true, 2.1, 160}, {true, 1.4, 128}, {true, 0.45, 128},
        {true, 0.4, 96},   {true, 0.01, 96}, {false, 15, 224}, {false, 10, 160}, {false, 6, 128},
        {false, 1.7, 128}, {false, 1.6, 96}, {false, 0.3, 64},
    };
    for (size_t i = 0; i < STK_COUNT(cases); i++) {
        stk_training_facts facts = facts_of(cases[i].pretrained, cases[i].fit);
        stk_training_choice c = stk_training_choose(&facts);
        if (c.img_size != cases[i].size) {
            CHECK_FAIL("case %zu: %d px", i, c.img_size);
        }
        CHECK_NEAR(c.epochs_full, cases[i].fit, 1e-9);
    }
    /* Training that waits for decoding gains nothing from smaller pictures. */
    stk_training_facts bound = facts_of(true, 1);
    bound.loader_s = bound.picture_s;
    CHECK_NEAR(stk_training_choose(&bound).epochs, 1.25, 1e-9);
    CHECK_INT(stk_training_choose(&bound).img_size, 224);
    /* Many pictures need no four epochs. */
    stk_training_facts many = facts_of(true, 1);
    many.pictures = 20000;
    many.left_s = 20;
    CHECK_INT(stk_training_choose(&many).img_size, 224);
}

static void without_a_budget_or_a_measurement(void) {
    stk_training_facts facts = facts_of(true, 1);
    facts.left_s = NAN;
    stk_training_choice c = stk_training_choose(&facts);
    CHECK(c.refits == 1 && c.img_size == 224 && c.epochs == 20);
    facts.epochs = 7;
    CHECK_NEAR(stk_training_choose(&facts).epochs, 7, 1e-9);
    facts.pretrained = false;
    CHECK_INT(stk_training_choose(&facts).refits, 0);
    facts = facts_of(true, 50);
    facts.picture_s = NAN;
    c = stk_training_choose(&facts);
    CHECK(c.refits == 0 && c.img_size == 224);
}

/* A size that is no multiple of 32 px becomes smaller, too: 256 px after 260 would gain nothing. */
static void odd_sizes_become_smaller(void) {
    stk_training_facts facts = facts_of(true, 2);
    facts.img_size = 260;
    CHECK_INT(stk_training_choose(&facts).img_size, 160);
    facts.img_size = 240;
    CHECK_INT(stk_training_choose(&facts).img_size, 160);
    facts.left_s = 2 * 0.1;
    CHECK_INT(stk_training_choose(&facts).img_size, 96);
}

/* Windows show less of a picture when they are smaller: few epochs are enough to stay. */
static void windows_stay_large(void) {
    static const struct {
        size_t pictures;
        double epochs; /* at 224 px */
        int img_size;
    } cases[] = {{1000, 2, 224},   {1000, 1.9, 192},   {1000, 1.2, 160},
                 {1000, 0.1, 128}, {10000, 0.31, 224}, {10000, 0.2, 160}};
    for (size_t i = 0; i < STK_COUNT(cases); i++) {
        stk_training_facts facts = facts_of(i % 2 == 0, 1);
        facts.pictures = cases[i].pictures;
        facts.left_s = cases[i].epochs * 1e-3 * (double)cases[i].pictures;
        facts.windows = true;
        CHECK_INT(stk_training_choose(&facts).img_size, cases[i].img_size);
        facts.windows = false;
        CHECK(stk_training_choose(&facts).img_size < cases[i].img_size);
        facts.windows = true;
        facts.img_size = 96;
        CHECK_INT(stk_training_choose(&facts).img_size, 96);
    }
}

static const check_test tests[] = {
    TEST(windows_stay_large),
    TEST(models_by_the_epochs_that_fit),
    TEST(larger_pictures_where_there_is_time),
    TEST(small_pictures_in_the_first_half),
    TEST(fewer_pictures_validate_without_folds),
    TEST(what_was_asked_for_stays),
    TEST(predictions_count_for_every_model),
    TEST(nothing_set_apart_needs_no_refit),
    TEST(smaller_pictures_where_no_epoch_fits),
    TEST(without_a_budget_or_a_measurement),
    TEST(odd_sizes_become_smaller),
};

CHECK_MAIN(tests)
