/* test_base_rng.c - random numbers: repeatable, in range, and spread as they should be. */
#include "check.h"

#include <stdint.h>

#include "base/numbers/rng.h"

#define DRAWS 100000

static void is_a_function_of_its_purpose(void) {
    stk_rng a = stk_rng_make(1, STK_RNG_TEST, 2, 3);
    stk_rng b = stk_rng_make(1, STK_RNG_TEST, 2, 3);
    for (int i = 0; i < 100; i++) {
        CHECK(stk_rng_u64(&a) == stk_rng_u64(&b));
    }
    stk_rng others[] = {stk_rng_make(1, STK_RNG_TEST, 2, 3), stk_rng_make(2, STK_RNG_TEST, 2, 3),
                        stk_rng_make(1, STK_RNG_INIT, 2, 3), stk_rng_make(1, STK_RNG_TEST, 3, 3),
                        stk_rng_make(1, STK_RNG_TEST, 2, 4), stk_rng_make(1, STK_RNG_TEST, 3, 2)};
    uint64_t first[6];
    for (int i = 0; i < 6; i++) {
        first[i] = stk_rng_u64(&others[i]);
        for (int j = 0; j < i; j++) {
            CHECK(first[i] != first[j]);
        }
    }
}

static void the_numbers_never_change(void) {
    stk_rng rng = stk_rng_make(42, STK_RNG_ORDER, 1, 7);
    uint64_t first = stk_rng_u64(&rng);
    uint64_t second = stk_rng_u64(&rng);
    /* A change here changes every split, order and first weight: old runs could not be resumed. */
    CHECK(first == 0xF48A0AFBED6C0D2Aull);
    CHECK(second == 0x7BB1D05502DD54BBull);
}

static void ranges_hold(void) {
    stk_rng rng = stk_rng_make(1, STK_RNG_TEST, 0, 0);
    for (int i = 0; i < DRAWS; i++) {
        double u = stk_rng_uniform(&rng);
        REQUIRE(u >= 0 && u < 1);
        double r = stk_rng_range(&rng, -2, 3);
        REQUIRE(r >= -2 && r < 3);
        REQUIRE(stk_rng_below(&rng, 7) < 7);
        REQUIRE(stk_rng_below(&rng, 1) == 0);
        REQUIRE(stk_rng_below(&rng, UINT64_MAX) < UINT64_MAX);
        REQUIRE(isfinite(stk_rng_normal(&rng)));
    }
}

static void uniform_is_uniform(void) {
    int bins[10] = {0};
    int faces[6] = {0};
    double sum = 0;
    stk_rng rng = stk_rng_make(5, STK_RNG_TEST, 0, 0);
    for (int i = 0; i < DRAWS; i++) {
        double u = stk_rng_uniform(&rng);
        sum += u;
        bins[(int)(u * 10)]++;
        faces[stk_rng_below(&rng, 6)]++;
    }
    CHECK_NEAR(sum / DRAWS, 0.5, 0.005);
    for (int i = 0; i < 10; i++) {
        CHECK_NEAR(bins[i], DRAWS / 10, 500);
    }
    for (int i = 0; i < 6; i++) {
        CHECK_NEAR(faces[i], DRAWS / 6, 600);
    }
    /* The first number of neighbouring indices must be as good as a row of one generator. */
    sum = 0;
    double product = 0;
    double before = 0.5;
    for (uint64_t i = 0; i < DRAWS; i++) {
        stk_rng own = stk_rng_make(5, STK_RNG_TEST, 0, i);
        double u = stk_rng_uniform(&own);
        sum += u;
        product += (u - 0.5) * (before - 0.5);
        before = u;
    }
    CHECK_NEAR(sum / DRAWS, 0.5, 0.005);
    CHECK_NEAR(product / DRAWS, 0, 0.002);
}

static void normal_and_gamma_have_their_moments(void) {
    stk_rng rng = stk_rng_make(9, STK_RNG_TEST, 0, 0);
    double sum = 0;
    double squares = 0;
    for (int i = 0; i < DRAWS; i++) {
        double x = stk_rng_normal(&rng);
        sum += x;
        squares += x * x;
    }
    CHECK_NEAR(sum / DRAWS, 0, 0.02);
    CHECK_NEAR(squares / DRAWS, 1, 0.03);
    static const double shapes[] = {0.2, 0.5, 1, 2.5, 10};
    for (size_t s = 0; s < sizeof shapes / sizeof *shapes; s++) {
        sum = squares = 0;
        for (int i = 0; i < DRAWS; i++) {
            double x = stk_rng_gamma(&rng, shapes[s]);
            REQUIRE(x >= 0 && isfinite(x));
            sum += x;
            squares += x * x;
        }
        double mean = sum / DRAWS;
        CHECK_NEAR(mean, shapes[s], 0.03 * shapes[s] + 0.01);
        CHECK_NEAR(squares / DRAWS - mean * mean, shapes[s], 0.06 * shapes[s] + 0.02);
    }
}

static void permutations_are_bijections(void) {
    static bool seen[1001];
    for (uint64_t n = 1; n <= 1000; n++) {
        memset(seen, 0, sizeof seen);
        for (uint64_t i = 0; i < n; i++) {
            uint64_t place = stk_rng_permute(n * 7919, n, i);
            REQUIRE(place < n);
            if (seen[place]) {
                CHECK_FAIL("n = %llu: place %llu is taken twice", (unsigned long long)n,
                           (unsigned long long)place);
                return;
            }
            seen[place] = true;
        }
    }
    CHECK_INT(stk_rng_permute(1, 0, 0), 0);
    CHECK(stk_rng_permute(1, UINT64_MAX, 123) < UINT64_MAX);
    CHECK(stk_rng_permute(1, (uint64_t)1 << 40, 5) < (uint64_t)1 << 40);
}

/* Every element goes to every place about equally often, also in the smallest permutations. */
static void permutations_are_fair(void) {
    static const uint64_t sizes[] = {2, 3, 5, 10};
    for (size_t s = 0; s < sizeof sizes / sizeof *sizes; s++) {
        uint64_t n = sizes[s];
        int counts[10][10] = {{0}};
        int keys = 20000;
        for (int k = 0; k < keys; k++) {
            stk_rng rng = stk_rng_make((uint64_t)k, STK_RNG_TEST, 0, 0);
            uint64_t key = stk_rng_u64(&rng);
            for (uint64_t i = 0; i < n; i++) {
                counts[i][stk_rng_permute(key, n, i)]++;
            }
        }
        double expected = (double)keys / (double)n;
        for (uint64_t i = 0; i < n; i++) {
            for (uint64_t j = 0; j < n; j++) {
                CHECK_NEAR(counts[i][j], expected, 0.15 * expected);
            }
        }
    }
}

static const check_test tests[] = {
    TEST(is_a_function_of_its_purpose),
    TEST(the_numbers_never_change),
    TEST(ranges_hold),
    TEST(uniform_is_uniform),
    TEST(normal_and_gamma_have_their_moments),
    TEST(permutations_are_bijections),
    TEST(permutations_are_fair),
};

CHECK_MAIN(tests)
