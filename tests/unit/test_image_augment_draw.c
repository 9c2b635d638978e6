/* test_image_augment_draw.c - which changes are drawn, how strong, how often and in which order. */
#include "check.h"

#include "base/error.h"
#include "image/augment/ops.h"
#include "image/augment/draw.h"

#define SIZE 224
#define COUNT(array) (sizeof(array) / sizeof *(array))

static void needed_when_an_option_asks(void) {
    stk_error err = {0};
    stk_options *options = NULL;
    const stk_option_table *tables[] = {&stk_augment_option_table};
    REQUIRE_OK(stk_options_new(&options, "train", tables, 1, &err), &err);
    const stk_augment_options *values = stk_options_values(options, &stk_augment_option_table);
    CHECK(!stk_augment_is_needed(values));
    stk_augment_draw draw;
    stk_rng rng = stk_rng_make(1, STK_RNG_AUGMENT, 0, 0);
    stk_augment_choose(values, 224, &rng, &draw);
    CHECK_INT(draw.count, 0);

    static const char *const asks[][3] = {{"color-jitter", "0.1", "0"},
                                          {"hue", "0.1", "0"},
                                          {"rotate", "5", "0"},
                                          {"augment", "randaugment", "none"},
                                          {"augment", "trivialaugment", "none"},
                                          {"erasing", "0.25", "0"}};
    for (size_t i = 0; i < COUNT(asks); i++) {
        REQUIRE_OK(stk_options_set(options, asks[i][0], asks[i][1], &err), &err);
        CHECK(stk_augment_is_needed(values));
        REQUIRE_OK(stk_options_set(options, asks[i][0], asks[i][2], &err), &err);
        CHECK(!stk_augment_is_needed(values));
    }
    stk_options_free(options);
}

/* The least and the greatest amount of each kind over many plans, and how often it came. */
typedef struct seen {
    int count[STK_CHANGE_ERASE + 1];
    int low[STK_CHANGE_ERASE + 1];
    int high[STK_CHANGE_ERASE + 1];
} seen;

static seen draw_many(const stk_augment_options *options, int size, uint64_t plans) {
    seen all = {.count = {0}};
    for (uint64_t i = 0; i < plans; i++) {
        stk_rng rng = stk_rng_make(2, STK_RNG_AUGMENT, 0, i);
        stk_augment_draw draw;
        stk_augment_choose(options, size, &rng, &draw);
        for (int j = 0; j < draw.count; j++) {
            int kind = (int)draw.changes[j].kind;
            int amount = draw.changes[j].amount;
            all.low[kind] = all.count[kind] == 0 || amount < all.low[kind] ? amount : all.low[kind];
            all.high[kind] =
                all.count[kind] == 0 || amount > all.high[kind] ? amount : all.high[kind];
            all.count[kind]++;
        }
    }
    return all;
}

/* What a policy may draw at most, in the units of the draw. */
typedef struct range {
    stk_change_kind kind;
    double low, high;
} range;

static void check_ranges(const stk_augment_options *options, const range *ranges, size_t count,
                         int per_kind, double slack) {
    seen all = draw_many(options, SIZE, 14 * (uint64_t)per_kind);
    int operations = 0;
    for (size_t i = 0; i < count; i++) {
        const range *r = &ranges[i];
        CHECK_NEAR(all.low[r->kind], r->low, slack);
        CHECK_NEAR(all.high[r->kind], r->high, slack);
        int64_t expected =
            per_kind * (options->augment == STK_POLICY_TRIVIALAUGMENT ? 1 : options->augment_ops);
        /* Five deviations of a binomial; the generator is fixed, so this never varies. */
        CHECK_NEAR(all.count[r->kind], expected, 5 * sqrt((double)expected));
        operations += all.count[r->kind];
    }
    for (int kind = 0; kind <= STK_CHANGE_ERASE; kind++) {
        operations -= all.count[kind];
    }
    CHECK_INT(operations, 0); /* and nothing else was drawn */
}

static void randaugment_draws_from_its_table(void) {
    stk_augment_options options = {
        .augment = STK_POLICY_RANDAUGMENT, .augment_ops = 2, .augment_magnitude = 30};
    const double one = STK_FACTOR_ONE;
    const range at_30[] = {
        {STK_CHANGE_IDENTITY, 0, 0},
        {STK_CHANGE_SHEAR_X, -0.3 * STK_SHEAR_ONE, 0.3 * STK_SHEAR_ONE},
        {STK_CHANGE_SHEAR_Y, -0.3 * STK_SHEAR_ONE, 0.3 * STK_SHEAR_ONE},
        {STK_CHANGE_TRANSLATE_X, -101, 101}, /* 150/331 of 224 px, cut off */
        {STK_CHANGE_TRANSLATE_Y, -101, 101},
        {STK_CHANGE_ROTATE, -30000, 30000},
        {STK_CHANGE_BRIGHTNESS, 0.1 * one, 1.9 * one},
        {STK_CHANGE_SATURATION, 0.1 * one, 1.9 * one},
        {STK_CHANGE_CONTRAST, 0.1 * one, 1.9 * one},
        {STK_CHANGE_SHARPNESS, 0.1 * one, 1.9 * one},
        {STK_CHANGE_POSTERIZE, 4, 4},
        {STK_CHANGE_SOLARIZE, 0, 0},
        {STK_CHANGE_AUTOCONTRAST, 0, 0},
        {STK_CHANGE_EQUALIZE, 0, 0},
    };
    check_ranges(&options, at_30, COUNT(at_30), 200, 0.5);
    options.augment_ops = 14;
    options.augment_magnitude = 9;
    const range at_9[] = {
        {STK_CHANGE_IDENTITY, 0, 0},
        {STK_CHANGE_SHEAR_X, -0.09 * STK_SHEAR_ONE, 0.09 * STK_SHEAR_ONE},
        {STK_CHANGE_SHEAR_Y, -0.09 * STK_SHEAR_ONE, 0.09 * STK_SHEAR_ONE},
        {STK_CHANGE_TRANSLATE_X, -30, 30}, /* 30.45 */
        {STK_CHANGE_TRANSLATE_Y, -30, 30},
        {STK_CHANGE_ROTATE, -9000, 9000},
        {STK_CHANGE_BRIGHTNESS, 0.73 * one, 1.27 * one},
        {STK_CHANGE_SATURATION, 0.73 * one, 1.27 * one},
        {STK_CHANGE_CONTRAST, 0.73 * one, 1.27 * one},
        {STK_CHANGE_SHARPNESS, 0.73 * one, 1.27 * one},
        {STK_CHANGE_POSTERIZE, 1, 1},    /* 1.2 */
        {STK_CHANGE_SOLARIZE, 179, 179}, /* 178.5: from 179 on */
        {STK_CHANGE_AUTOCONTRAST, 0, 0},
        {STK_CHANGE_EQUALIZE, 0, 0},
    };
    check_ranges(&options, at_9, COUNT(at_9), 100, 0.7);
}

static void trivialaugment_draws_from_its_table(void) {
    stk_augment_options options = {.augment = STK_POLICY_TRIVIALAUGMENT, .augment_ops = 5};
    const double one = STK_FACTOR_ONE;
    const range ranges[] = {
        {STK_CHANGE_IDENTITY, 0, 0},
        {STK_CHANGE_SHEAR_X, -0.99 * STK_SHEAR_ONE, 0.99 * STK_SHEAR_ONE},
        {STK_CHANGE_SHEAR_Y, -0.99 * STK_SHEAR_ONE, 0.99 * STK_SHEAR_ONE},
        {STK_CHANGE_TRANSLATE_X, -32, 32},
        {STK_CHANGE_TRANSLATE_Y, -32, 32},
        {STK_CHANGE_ROTATE, -135000, 135000},
        {STK_CHANGE_BRIGHTNESS, 0.01 * one, 1.99 * one},
        {STK_CHANGE_SATURATION, 0.01 * one, 1.99 * one},
        {STK_CHANGE_CONTRAST, 0.01 * one, 1.99 * one},
        {STK_CHANGE_SHARPNESS, 0.01 * one, 1.99 * one},
        {STK_CHANGE_POSTERIZE, 0, 6},
        {STK_CHANGE_SOLARIZE, 0, 255},
        {STK_CHANGE_AUTOCONTRAST, 0, 0},
        {STK_CHANGE_EQUALIZE, 0, 0},
    };
    check_ranges(&options, ranges, COUNT(ranges), 2000, 0.7);
}

static void jitter_and_rotation_fill_their_ranges(void) {
    stk_augment_options options = {.color_jitter = 0.4, .hue = 0.1, .rotate = 20};
    seen all = draw_many(&options, SIZE, 4000);
    static const stk_change_kind factors[] = {STK_CHANGE_BRIGHTNESS, STK_CHANGE_CONTRAST,
                                              STK_CHANGE_SATURATION};
    for (size_t i = 0; i < COUNT(factors); i++) {
        CHECK_INT(all.count[factors[i]], 4000);
        CHECK(all.low[factors[i]] >= lround(0.6 * STK_FACTOR_ONE));
        CHECK(all.high[factors[i]] <= lround(1.4 * STK_FACTOR_ONE));
        CHECK_NEAR(all.low[factors[i]], 0.6 * STK_FACTOR_ONE, 30);
        CHECK_NEAR(all.high[factors[i]], 1.4 * STK_FACTOR_ONE, 30);
    }
    CHECK_INT(all.count[STK_CHANGE_HUE], 4000);
    CHECK_NEAR(all.low[STK_CHANGE_HUE], -0.6 * STK_HUE_SIXTH, 20);
    CHECK_NEAR(all.high[STK_CHANGE_HUE], 0.6 * STK_HUE_SIXTH, 20);
    CHECK_INT(all.count[STK_CHANGE_ROTATE], 4000);
    CHECK(all.low[STK_CHANGE_ROTATE] >= -20000 && all.high[STK_CHANGE_ROTATE] <= 20000);
    CHECK_NEAR(all.low[STK_CHANGE_ROTATE], -20000, 50);
    CHECK_NEAR(all.high[STK_CHANGE_ROTATE], 20000, 50);

    options = (stk_augment_options){.color_jitter = 1, .hue = 0.5, .rotate = 180};
    all = draw_many(&options, SIZE, 20000);
    CHECK(all.low[STK_CHANGE_CONTRAST] >= 0 && all.high[STK_CHANGE_CONTRAST] <= STK_FACTOR_MAX);
    CHECK(all.low[STK_CHANGE_HUE] >= -STK_HUE_MAX && all.high[STK_CHANGE_HUE] <= STK_HUE_MAX);
    options = (stk_augment_options){.hue = 0.5};
    all = draw_many(&options, SIZE, 10);
    CHECK_INT(all.count[STK_CHANGE_HUE], 10);
    CHECK_INT(all.count[STK_CHANGE_BRIGHTNESS], 0);
}

/* All 24 orders of the four parts come about equally often, behind rotation. */
static void jitter_comes_in_every_order(void) {
    stk_augment_options options = {.color_jitter = 0.4, .hue = 0.1, .rotate = 20};
    int orders[4][4] = {{0}}; /* how often a part stood at a place */
    int first_two[4][4] = {{0}};
    static const int part_of[STK_CHANGE_ERASE + 1] = {[STK_CHANGE_BRIGHTNESS] = 0,
                                                      [STK_CHANGE_CONTRAST] = 1,
                                                      [STK_CHANGE_SATURATION] = 2,
                                                      [STK_CHANGE_HUE] = 3};
    for (uint64_t i = 0; i < 12000; i++) {
        stk_rng rng = stk_rng_make(3, STK_RNG_AUGMENT, 0, i);
        stk_augment_draw draw;
        stk_augment_choose(&options, SIZE, &rng, &draw);
        REQUIRE(draw.count == 5 && draw.changes[0].kind == STK_CHANGE_ROTATE);
        for (int j = 0; j < 4; j++) {
            orders[part_of[draw.changes[1 + j].kind]][j]++;
        }
        first_two[part_of[draw.changes[1].kind]][part_of[draw.changes[2].kind]]++;
    }
    for (int i = 0; i < 4; i++) {
        for (int j = 0; j < 4; j++) {
            CHECK_NEAR(orders[i][j], 3000, 250);
            CHECK_NEAR(first_two[i][j], i == j ? 0 : 1000, i == j ? 0 : 150);
        }
    }
}

static void erasing_keeps_its_probability_and_shape(void) {
    stk_augment_options options = {.erasing = 0.25};
    int erased = 0;
    double least_area = 1;
    double most_area = 0;
    for (uint64_t i = 0; i < 8000; i++) {
        stk_rng rng = stk_rng_make(4, STK_RNG_AUGMENT, 0, i);
        stk_augment_draw draw;
        stk_augment_choose(&options, SIZE, &rng, &draw);
        if (draw.count == 0) {
            continue;
        }
        const stk_change *e = &draw.changes[0];
        REQUIRE(e->kind == STK_CHANGE_ERASE && e->x >= 0 && e->y >= 0);
        REQUIRE(e->x + e->width <= SIZE && e->y + e->height <= SIZE);
        double area = (double)e->width * e->height / SIZE / SIZE;
        double aspect = (double)e->height / e->width;
        CHECK(area > 0.019 && area < 0.334); /* sides are rounded to whole pixels */
        CHECK(aspect > 0.29 && aspect < 3.4);
        least_area = fmin(least_area, area);
        most_area = fmax(most_area, area);
        erased++;
    }
    CHECK_NEAR(erased, 2000, 200);
    CHECK(least_area < 0.022 && most_area > 0.32);
    options.erasing = 1;
    for (int size = 1; size <= 9; size++) {
        seen all = draw_many(&options, size, 300);
        CHECK_INT(all.count[STK_CHANGE_ERASE] > 0, 1);
    }
}

static const check_test tests[] = {
    TEST(needed_when_an_option_asks),          TEST(randaugment_draws_from_its_table),
    TEST(trivialaugment_draws_from_its_table), TEST(jitter_and_rotation_fill_their_ranges),
    TEST(jitter_comes_in_every_order),         TEST(erasing_keeps_its_probability_and_shape),
};

CHECK_MAIN(tests)
