/* test_schedule.c - the learning rate and the mixing, which are rules without state. */
#include "check.h"

#include "train/train.h"

/* ---- schedule ---- */

static void schedule_values(void) {
    static const struct {
        stk_schedule schedule;
        double warmup, progress, expected;
    } cases[] = {
        {STK_SCHEDULE_COSINE, 0.1, 0, 0.02}, /* not zero: the first step counts */
        {STK_SCHEDULE_COSINE, 0.1, 0.05, 0.5},   {STK_SCHEDULE_COSINE, 0.1, 0.1, 1},
        {STK_SCHEDULE_COSINE, 0.1, 0.55, 0.5},   {STK_SCHEDULE_COSINE, 0.1, 0.4, 0.75},
        {STK_SCHEDULE_COSINE, 0.1, 1, 0},        {STK_SCHEDULE_COSINE, 0.1, 1.5, 0},
        {STK_SCHEDULE_COSINE, 0, 0, 1},          {STK_SCHEDULE_COSINE, 0, 0.5, 0.5},
        {STK_SCHEDULE_LINEAR, 0.1, 0.05, 0.5},   {STK_SCHEDULE_LINEAR, 0.1, 0.1, 1},
        {STK_SCHEDULE_LINEAR, 0.1, 0.325, 0.75}, {STK_SCHEDULE_LINEAR, 0, 0.75, 0.25},
        {STK_SCHEDULE_LINEAR, 0.1, 1, 0},        {STK_SCHEDULE_LINEAR, 0.1, 2, 0},
        {STK_SCHEDULE_STEP, 0.1, 0.05, 0.5},     {STK_SCHEDULE_STEP, 0.1, 0.29, 1},
        {STK_SCHEDULE_STEP, 0.1, 0.31, 0.1},     {STK_SCHEDULE_STEP, 0, 0.59, 0.1},
        {STK_SCHEDULE_STEP, 0, 0.61, 0.01},      {STK_SCHEDULE_STEP, 0.5, 0.89, 0.01},
        {STK_SCHEDULE_STEP, 0, 0.91, 0.001},     {STK_SCHEDULE_STEP, 0, 1, 0.001},
        {STK_SCHEDULE_CONSTANT, 0.1, 0.05, 0.5}, {STK_SCHEDULE_CONSTANT, 0.1, 0.1, 1},
        {STK_SCHEDULE_CONSTANT, 0, 0, 1},        {STK_SCHEDULE_CONSTANT, 0.1, 1, 1},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        double factor = stk_schedule_factor(cases[i].schedule, cases[i].warmup, cases[i].progress);
        if (!(fabs(factor - cases[i].expected) < 1e-12)) {
            CHECK_FAIL("case %zu: %.9g, expected %.9g", i, factor, cases[i].expected);
        }
    }
}

static void schedule_rises_then_falls(void) {
    static const double warmups[] = {0, 0.05, 0.5, 0.9};
    static const double ends[] = {[STK_SCHEDULE_COSINE] = 0,
                                  [STK_SCHEDULE_LINEAR] = 0,
                                  [STK_SCHEDULE_STEP] = 0.001,
                                  [STK_SCHEDULE_CONSTANT] = 1};
    for (int k = 0; k < 16; k++) {
        stk_schedule schedule = (stk_schedule)(k / 4);
        double warmup = warmups[k % 4];
        double last = stk_schedule_factor(schedule, warmup, 0);
        for (int i = 1; i <= 1000; i++) {
            double factor = stk_schedule_factor(schedule, warmup, i / 1000.0);
            CHECK(factor >= 0 && factor <= 1);
            if (i / 1000.0 < warmup) {
                CHECK(factor >= last);
            } else if ((i - 1) / 1000.0 >= warmup) {
                CHECK(factor <= last);
            }
            last = factor;
        }
        CHECK_NEAR(last, ends[schedule], 1e-12);
    }
}

/* ---- mixing ---- */

/* The backbone begins slowly after the frozen phase; the head goes on. */
static void the_backbone_thaws(void) {
    static const struct {
        int64_t updates, frozen;
        double part;
    } cases[] = {{0, 0, 1},   {9, 0, 1},   {10, 10, 1.0 / 30}, {24, 10, 0.5},
                 {39, 10, 1}, {99, 10, 1}, {3, 10, 0}};
    const stk_train_options options = {.backbone_lr_scale = 0.5};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        stk_update_point point = {.lr = 0.2,
                                  .head_lr = 0.3,
                                  .steps = 1,
                                  .updates = cases[i].updates,
                                  .frozen_updates = cases[i].frozen};
        stk_update update = stk_update_make(&options, &point);
        CHECK_NEAR(update.lr, 0.1 * cases[i].part, 1e-7);
        CHECK_NEAR(update.head_lr, 0.3, 1e-7);
    }
}

static void mix_is_off(void) {
    stk_mix mix = stk_mix_draw(0, 0, 1, 2, 32);
    CHECK_INT(mix.kind, STK_MIX_NONE);
    CHECK_NEAR(mix.keep, 1, 0);
}

static void mixup_ranges(void) {
    double sum = 0;
    for (uint64_t step = 0; step < 2000; step++) {
        stk_mix mix = stk_mix_draw(1, 0, 3, step, 32);
        CHECK_INT(mix.kind, STK_MIX_MIXUP);
        CHECK(mix.keep >= 0 && mix.keep <= 1);
        sum += mix.keep;
    }
    CHECK_NEAR(sum / 2000, 0.5, 0.03); /* Beta(1, 1) is uniform: deviation of the mean 0.0065 */
}

static void cutmix_keeps_the_area(void) {
    static const int sizes[] = {8, 17, 32};
    int cut = 0;
    for (size_t s = 0; s < 3; s++) {
        for (uint64_t step = 0; step < 1000; step++) {
            int size = sizes[s];
            stk_mix mix = stk_mix_draw(0, 1, 3, step, size);
            CHECK_INT(mix.kind, STK_MIX_CUTMIX);
            CHECK(mix.left >= 0 && mix.left <= mix.right && mix.right <= size);
            CHECK(mix.top >= 0 && mix.top <= mix.bottom && mix.bottom <= size);
            double area = (double)(mix.right - mix.left) * (mix.bottom - mix.top);
            CHECK_NEAR(mix.keep, 1 - area / (size * size), 1e-6);
            cut += area > 0;
        }
    }
    CHECK(cut > 2000);
}

static void mix_derives_from_seed_and_step(void) {
    int kinds[3] = {0};
    int same_step = 0;
    int same_seed = 0;
    for (uint64_t step = 0; step < 400; step++) {
        stk_mix mix = stk_mix_draw(0.4, 1, 5, step, 32);
        stk_mix again = stk_mix_draw(0.4, 1, 5, step, 32);
        stk_mix next = stk_mix_draw(0.4, 1, 5, step + 1, 32);
        stk_mix other = stk_mix_draw(0.4, 1, 6, step, 32);
        CHECK(mix.kind == again.kind && mix.keep == again.keep && mix.left == again.left &&
              mix.top == again.top && mix.right == again.right && mix.bottom == again.bottom);
        same_step += mix.keep == next.keep;
        same_seed += mix.keep == other.keep;
        kinds[mix.kind]++;
    }
    CHECK_INT(kinds[STK_MIX_NONE], 0);
    CHECK(kinds[STK_MIX_MIXUP] > 140 && kinds[STK_MIX_CUTMIX] > 140);
    CHECK(same_step < 40 && same_seed < 40);
}

static const check_test tests[] = {
    TEST(schedule_values),
    TEST(schedule_rises_then_falls),
    TEST(the_backbone_thaws),
    TEST(mix_is_off),
    TEST(mixup_ranges),
    TEST(cutmix_keeps_the_area),
    TEST(mix_derives_from_seed_and_step),
};

CHECK_MAIN(tests)
