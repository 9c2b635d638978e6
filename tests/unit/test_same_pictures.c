/* test_same_pictures.c - two validations on the pictures that both have seen. */
#include "check.h"

#include "base/numbers/rng.h"
#include "train/same_pictures.h"

static void open_for(stk_same_pictures *same, size_t count) {
    stk_error err = {0};
    CHECK_INT(stk_same_pictures_open(same, count, &err), STK_OK);
}

/* So many right answers of the best weights, then of the last ones; both see all. */
static bool fewer_right(const char *best, const char *now) {
    stk_same_pictures same;
    open_for(&same, strlen(best));
    for (size_t i = 0; best[i] != '\0'; i++) {
        stk_same_pictures_add(&same, i, best[i] == '1', 1);
    }
    stk_same_pictures_take_best(&same);
    stk_same_pictures_reset(&same);
    for (size_t i = 0; now[i] != '\0'; i++) {
        if (now[i] != ' ') {
            stk_same_pictures_add(&same, i, now[i] == '1', 1);
        }
    }
    bool worse = stk_same_pictures_is_worse(&same, false);
    CHECK(!stk_same_pictures_is_worse(&same, true)); /* all losses are equal */
    stk_same_pictures_free(&same);
    return worse;
}

static void right_answers(void) {
    CHECK(!fewer_right("1111", "1111"));
    CHECK(!fewer_right("0000", "1111"));
    CHECK(!fewer_right("1111", "1110")); /* one may be chance */
    CHECK(fewer_right("1111", "1100"));
    CHECK(!fewer_right("11110", "11001")); /* two against one */
    CHECK(fewer_right("11111110", "11100001"));
    CHECK(fewer_right("111111", "00    ")); /* what was not seen does not count */
    CHECK(!fewer_right("111100", "11    "));
    CHECK(!fewer_right("1111", "    "));
}

/* The part that was seen is harder than the rest, which does not matter. */
static void losses(void) {
    stk_same_pictures same;
    open_for(&same, 100);
    CHECK_INT(stk_same_pictures_shared(&same), 0);
    CHECK(!stk_same_pictures_is_worse(&same, true));
    for (size_t i = 0; i < 100; i++) {
        stk_same_pictures_add(&same, i, true, i < 20 ? 3 : 0.1);
    }
    CHECK_INT(stk_same_pictures_shared(&same), 0); /* nothing to compare with */
    stk_same_pictures_take_best(&same);
    for (int worse = 0; worse < 2; worse++) {
        stk_same_pictures_reset(&same);
        for (size_t i = 0; i < 20; i++) {
            stk_rng rng = stk_rng_make(1, STK_RNG_TEST, 0, i);
            double noise = stk_rng_range(&rng, -0.2, 0.2);
            stk_same_pictures_add(&same, i, true, (worse ? 3.15 : 2.9) + noise);
        }
        CHECK_INT(stk_same_pictures_shared(&same), 20);
        CHECK_INT(stk_same_pictures_is_worse(&same, true), worse);
        double acc1, loss;
        stk_same_pictures_differ(&same, &acc1, &loss);
        CHECK_NEAR(acc1, 0, 1e-9);
        CHECK_NEAR(loss, worse ? 0.15 : -0.1, 0.1);
        CHECK(!stk_same_pictures_is_worse(&same, false));
    }
    stk_same_pictures_free(&same);
}

/* By chance alone, one of six is called worse, and weights that are better hardly ever. */
static void chance(void) {
    int worse[2] = {0};
    for (int better = 0; better < 2; better++) {
        for (uint64_t i = 0; i < 2000; i++) {
            stk_rng rng = stk_rng_make(2, STK_RNG_TEST, (uint64_t)better, i);
            stk_same_pictures same;
            open_for(&same, 64);
            for (size_t p = 0; p < 64; p++) {
                stk_same_pictures_add(&same, p, stk_rng_uniform(&rng) < 0.7, 1);
            }
            stk_same_pictures_take_best(&same);
            stk_same_pictures_reset(&same);
            for (size_t p = 0; p < 64; p++) {
                stk_same_pictures_add(&same, p, stk_rng_uniform(&rng) < (better ? 0.8 : 0.7), 1);
            }
            worse[better] += stk_same_pictures_is_worse(&same, false);
            stk_same_pictures_free(&same);
        }
    }
    CHECK(worse[0] > 200 && worse[0] < 450);
    CHECK(worse[1] < 60);
}

static void nothing_to_validate(void) {
    stk_same_pictures same;
    open_for(&same, 0);
    stk_same_pictures_reset(&same);
    CHECK_INT(stk_same_pictures_shared(&same), 0);
    CHECK(!stk_same_pictures_is_worse(&same, true));
    stk_same_pictures_take_best(&same);
    stk_same_pictures_free(&same);
}

static const check_test tests[] = {
    TEST(right_answers),
    TEST(losses),
    TEST(chance),
    TEST(nothing_to_validate),
};

CHECK_MAIN(tests)
