/* test_batch_choice.c - images a step and steps an update: cases by hand, and laws for any numbers.
 */
#include "check.h"

#include <math.h>

#include "base/numbers/rng.h"
#include "budget/batch_choice.h"

/* A network of 100 bytes and 10 for every image of a batch. */
static uint64_t linear(void *user, size_t batch) {
    (void)user;
    return 100 + 10 * (uint64_t)batch;
}

#define ANY SIZE_MAX
#define PLENTY ((uint64_t)1 << 40)

static stk_batch_facts facts_of(size_t given, int64_t accumulate, size_t train, uint64_t free) {
    return (stk_batch_facts){.given = given,
                             .accumulate = accumulate,
                             .train_count = train,
                             .quick_most = ANY,
                             .free_bytes = free,
                             .need = linear};
}

static void plans_by_hand(void) {
    static const struct {
        const char *what;
        size_t given;
        int64_t accumulate;
        size_t train, most;
        stk_batch_policy policy;
        uint64_t free;
        size_t batch;
        int64_t steps; /* an update */
        stk_batch_limit limit;
    } cases[] = {
        /* Left to Stoker, and memory is no question. */
        {"many images", 0, 1, 100000, ANY, 0, PLENTY, 128, 1, STK_BATCH_BY_RULE},
        {"15 steps of 32", 0, 1, 480, ANY, 0, PLENTY, 32, 1, STK_BATCH_BY_DATA},
        {"one less", 0, 1, 479, ANY, 0, PLENTY, 16, 1, STK_BATCH_BY_DATA},
        {"few images", 0, 1, 20, ANY, 0, PLENTY, 8, 1, STK_BATCH_BY_DATA},
        {"fewer than a batch", 0, 1, 5, ANY, 0, PLENTY, 5, 1, STK_BATCH_BY_DATA},
        {"one image", 0, 1, 1, ANY, 0, PLENTY, 1, 1, STK_BATCH_BY_DATA},
        {"a slow device", 0, 1, 100000, 20, 0, PLENTY, 16, 1, STK_BATCH_BY_STEP_TIME},
        {"a very slow one", 0, 1, 100000, 0, 0, PLENTY, 8, 1, STK_BATCH_BY_STEP_TIME},
        {"accumulation is kept", 0, 4, 480, ANY, 0, PLENTY, 32, 4, STK_BATCH_BY_DATA},
        /* 128 images need 1380 bytes, 85 % of 1624. */
        {"it just fits", 0, 1, 100000, ANY, 0, 1624, 128, 1, STK_BATCH_BY_RULE},
        {"it does not", 0, 1, 100000, ANY, 0, 1623, 64, 2, STK_BATCH_BY_MEMORY},
        {"not by far", 0, 1, 100000, ANY, 0, 310, 16, 8, STK_BATCH_BY_MEMORY},
        {"on top of what was asked for", 0, 3, 100000, ANY, 0, 310, 16, 24, STK_BATCH_BY_MEMORY},
        {"few may take all of it", 0, 1, 100000, ANY, 0, 130, 2, 64, STK_BATCH_BY_MEMORY},
        {"up to eight", 0, 1, 100000, ANY, 0, 200, 8, 16, STK_BATCH_BY_MEMORY},
        {"one image in all that there is", 0, 1, 100000, ANY, 0, 110, 1, 128, STK_BATCH_BY_MEMORY},
        {"not even one", 0, 1, 100000, ANY, 0, 109, 0, 1, STK_BATCH_BY_MEMORY},
        /* Given: all of the memory may be taken. */
        {"given", 26, 1, 480, ANY, 0, 360, 26, 1, STK_BATCH_GIVEN},
        {"given, for a slow device", 26, 1, 480, 8, 0, 360, 26, 1, STK_BATCH_GIVEN},
        {"half of it fits", 26, 1, 480, ANY, 0, 359, 13, 2, STK_BATCH_BY_MEMORY},
        {"about a quarter", 26, 1, 480, ANY, 0, 229, 6, 4, STK_BATCH_BY_MEMORY},
        {"a seventh", 7, 1, 480, ANY, 0, 120, 1, 7, STK_BATCH_BY_MEMORY},
        {"three sevenths", 7, 2, 480, ANY, 0, 140, 3, 4, STK_BATCH_BY_MEMORY},
        {"more steps than may be", 64, 65536, 480, ANY, 0, 500, 32, 65536, STK_BATCH_BY_MEMORY},
        {"cut to the images", 512, 1, 480, ANY, 0, PLENTY, 480, 1, STK_BATCH_GIVEN},
        {"cut, and then halved", 512, 1, 480, ANY, 0, 4000, 240, 2, STK_BATCH_BY_MEMORY},
        {"given, and not even one", 26, 1, 480, ANY, 0, 109, 0, 1, STK_BATCH_BY_MEMORY},
        {"the policy is for what is not given", 26, 1, 4800, ANY, STK_BATCH_FILL, PLENTY, 26, 1,
         STK_BATCH_GIVEN},
        /* Filled. */
        {"85 %", 0, 1, 100000, ANY, STK_BATCH_FILL, 10000, 840, 1, STK_BATCH_BY_MEMORY},
        {"85 %, of a slow device too", 0, 1, 100000, 8, STK_BATCH_FILL, 10000, 840, 1,
         STK_BATCH_BY_MEMORY},
        {"few images", 0, 1, 1000, ANY, STK_BATCH_FILL, 10000, 64, 1, STK_BATCH_BY_DATA},
        {"fewer", 0, 1, 479, ANY, STK_BATCH_FILL, 10000, 24, 1, STK_BATCH_BY_DATA},
        {"hardly any", 0, 1, 5, ANY, STK_BATCH_FILL, 10000, 5, 1, STK_BATCH_BY_DATA},
        {"little memory", 0, 1, 100000, ANY, STK_BATCH_FILL, 359, 16, 8, STK_BATCH_BY_MEMORY},
        {"less, and 8 would be 61 %", 0, 1, 100000, ANY, STK_BATCH_FILL, 295, 15, 9,
         STK_BATCH_BY_MEMORY},
        {"few may take all of it", 0, 1, 100000, ANY, STK_BATCH_FILL, 150, 4, 32,
         STK_BATCH_BY_MEMORY},
        {"one image fills all", 0, 1, 100000, ANY, STK_BATCH_FILL, 110, 1, 128,
         STK_BATCH_BY_MEMORY},
        {"no memory", 0, 1, 100000, ANY, STK_BATCH_FILL, 109, 0, 1, STK_BATCH_BY_MEMORY},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        stk_batch_facts f =
            facts_of(cases[i].given, cases[i].accumulate, cases[i].train, cases[i].free);
        f.quick_most = cases[i].most;
        f.policy = cases[i].policy;
        stk_batch_choice c = stk_batch_plan(&f);
        if (c.batch != cases[i].batch || c.accumulate != cases[i].steps ||
            c.limit != cases[i].limit) {
            CHECK_FAIL("%s: batch %zu x %lld, limit %d", cases[i].what, c.batch,
                       (long long)c.accumulate, (int)c.limit);
        }
        CHECK_INT(c.bytes, c.batch > 0 ? linear(NULL, c.batch) : 0);
    }
}

/* A device that computes 1004 images at a time, whatever its memory. */
static void no_more_than_the_device_computes_is_filled(void) {
    stk_batch_facts f = facts_of(0, 1, 100000, PLENTY);
    f.quick_most = ANY;
    f.policy = STK_BATCH_FILL;
    f.device_most = 1004;
    stk_batch_choice c = stk_batch_plan(&f);
    CHECK_INT(c.batch, 1000);
    CHECK_INT(c.limit, STK_BATCH_BY_DEVICE);
    f.free_bytes = 5000;
    c = stk_batch_plan(&f);
    CHECK(c.batch > 128 && c.batch < 500);
    CHECK_INT(c.limit, STK_BATCH_BY_MEMORY);
    f = facts_of(0, 1, 1000, PLENTY);
    f.quick_most = ANY;
    f.policy = STK_BATCH_FILL;
    f.device_most = 1004;
    CHECK_INT(stk_batch_plan(&f).limit, STK_BATCH_BY_DATA);
}

/* Images per second at 8, 16, 32 and so on up to 512. */
typedef struct speeds {
    double at[7];
} speeds;

static double speed_of(const speeds *s, size_t batch) {
    int place = 0;
    for (size_t b = 8; b < batch; b *= 2) {
        place++;
    }
    return s->at[place];
}

/* Measures until nothing is asked, or `most` were; returns what is chosen. */
static stk_batch_choice search(const stk_batch_facts *f, const speeds *s, size_t most,
                               stk_batch_curve *curve) {
    stk_batch_choice plan = stk_batch_plan(f);
    *curve = (stk_batch_curve){0};
    size_t batch = stk_batch_next(&plan, curve);
    while (batch != 0 && curve->count < most) {
        curve->points[curve->count++] = (stk_batch_point){batch, speed_of(s, batch)};
        batch = stk_batch_next(&plan, curve);
    }
    return stk_batch_choose_measured(f, &plan, curve);
}

static void searches_by_hand(void) {
    static const speeds h200 = {{3000, 4500, 6724, 8414, 9883, 10794, 11000}};
    static const speeds flat = {{100, 100, 100, 100, 100, 100, 100}};
    static const speeds slower = {{70, 99, 100, 98, 96, 90, 80}};
    static const speeds grows = {{1, 2, 4, 8, 16, 32, 64}};
    static const struct {
        const char *what;
        const speeds *speeds;
        size_t train, most; /* measurements */
        uint64_t free;
        size_t batch;
        int64_t steps; /* an update */
        size_t measured;
        stk_batch_limit limit;
    } cases[] = {
        {"the knee above", &h200, 100000, 16, PLENTY, 256, 1, 3, STK_BATCH_BY_SPEED},
        {"time for two", &h200, 100000, 2, PLENTY, 256, 1, 2, STK_BATCH_BY_TIME},
        {"time for one", &h200, 100000, 1, PLENTY, 128, 1, 1, STK_BATCH_BY_TIME},
        {"time for none", &h200, 100000, 0, PLENTY, 128, 1, 0, STK_BATCH_BY_RULE},
        {"always faster", &grows, 100000, 16, PLENTY, 512, 1, 3, STK_BATCH_BY_RULE},
        {"as far as the data set goes", &grows, 100 * 256, 16, PLENTY, 256, 1, 2,
         STK_BATCH_BY_DATA},
        {"one image short of that", &grows, 100 * 256 - 1, 16, PLENTY, 128, 1, 2,
         STK_BATCH_BY_DATA},
        {"few images", &grows, 480, 16, PLENTY, 32, 1, 2, STK_BATCH_BY_DATA},
        {"too few to choose", &grows, 200, 16, PLENTY, 8, 1, 0, STK_BATCH_BY_DATA},
        {"all the same", &flat, 100000, 16, PLENTY, 8, 1, 6, STK_BATCH_BY_SPEED},
        {"the knee below", &slower, 100000, 16, PLENTY, 16, 1, 6, STK_BATCH_BY_SPEED},
        /* 64 images need 740 bytes, 85 % of 871. */
        {"the memory ends it", &grows, 100000, 16, 871, 64, 2, 2, STK_BATCH_BY_MEMORY},
        {"with less it would be no slower", &flat, 100000, 16, 871, 8, 1, 4, STK_BATCH_BY_SPEED},
        {"above what is usual", &grows, 100000, 16, 3200, 256, 1, 2, STK_BATCH_BY_MEMORY},
        {"no memory for eight", &grows, 100000, 16, 150, 4, 32, 0, STK_BATCH_BY_MEMORY},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        stk_batch_facts f = facts_of(0, 1, cases[i].train, cases[i].free);
        stk_batch_curve curve;
        stk_batch_choice c = search(&f, cases[i].speeds, cases[i].most, &curve);
        if (c.batch != cases[i].batch || c.accumulate != cases[i].steps ||
            c.limit != cases[i].limit || curve.count != cases[i].measured) {
            CHECK_FAIL("%s: batch %zu x %lld, limit %d, after %zu measurements", cases[i].what,
                       c.batch, (long long)c.accumulate, (int)c.limit, curve.count);
        }
        CHECK_INT(c.bytes, linear(NULL, c.batch));
    }
}

/* Whatever is given: what was given is never measured, and no choice is beyond its bounds. */
static void laws(void) {
    stk_rng rng = stk_rng_make(7, STK_RNG_SAMPLE_DATA, 0, 0);
    for (int n = 0; n < 3000; n++) {
        size_t given = stk_rng_below(&rng, 3) == 0 ? 1 + stk_rng_below(&rng, 2000) : 0;
        stk_batch_facts f = facts_of(given, 1 + (int64_t)stk_rng_below(&rng, 3),
                                     1 + stk_rng_below(&rng, 20000), stk_rng_below(&rng, 30000));
        f.policy = (stk_batch_policy)stk_rng_below(&rng, 2);
        f.quick_most = stk_rng_below(&rng, 2) == 0 ? ANY : stk_rng_below(&rng, 300);
        speeds s;
        for (int i = 0; i < 7; i++) {
            s.at[i] = 50 + (double)stk_rng_below(&rng, 100);
        }
        stk_batch_curve curve;
        stk_batch_choice c = search(&f, &s, STK_MOST_MEASURED, &curve);
        double part = given > 0 || c.batch <= 8 ? 1 : STK_BATCH_MEMORY_PART;
        bool fits = (double)linear(NULL, c.batch) <= part * (double)f.free_bytes;
        bool steps = given > 0 || c.batch <= 8 ||
                     f.train_count / c.batch >= (size_t)stk_batch_least_steps(&f, c.batch);
        double scale = stk_batch_rate_scale(&f, &c);
        double update = (double)c.batch * (double)c.accumulate;
        double near = given > 0 && given <= f.train_count && c.batch > 0 ? fabs(scale - 1) : 0;
        if ((c.batch == 0 && f.free_bytes >= 110) || (c.batch > 0 && !fits) || !steps ||
            c.batch > f.train_count || c.accumulate < f.accumulate ||
            (given > 0 && curve.count > 0) || (f.policy == STK_BATCH_FILL && curve.count > 0) ||
            near > 0.5 || (given == 0 && scale != 1) ||
            (given > 0 && fabs(scale * (double)given * (double)f.accumulate - update) > 1e-6)) {
            CHECK_FAIL("case %d: given %zu, %zu images, %llu bytes free: batch %zu x %lld", n,
                       given, f.train_count, (unsigned long long)f.free_bytes, c.batch,
                       (long long)c.accumulate);
        }
    }
}

static void time_for_measuring(void) {
    static const double cases[][2] = {{-5, 0},   {0, 0},     {59.9, 0},     {60, 3},
                                      {600, 30}, {3600, 60}, {INFINITY, 60}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        CHECK_NEAR(stk_batch_measure_s(cases[i][0]), cases[i][1], 1e-9);
    }
}

static const check_test tests[] = {
    TEST(no_more_than_the_device_computes_is_filled),
    TEST(plans_by_hand),
    TEST(searches_by_hand),
    TEST(laws),
    TEST(time_for_measuring),
};

CHECK_MAIN(tests)
